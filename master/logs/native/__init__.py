"""The C parsers of text logs."""
