"""A step in figures: the rows, marks, metrics and tables that are the same wherever it is shown."""
