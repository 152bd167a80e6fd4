"""The page with its data inside, as one file."""
