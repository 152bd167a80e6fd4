"""A result as CSV, JSON, text, HTML, PNG or HdrHistogram files."""
