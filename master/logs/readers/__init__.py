"""Reading logs: format detection, and one reader for each format."""
