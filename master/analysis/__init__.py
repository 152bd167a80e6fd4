"""Results as data frames, Parquet and SQL."""
