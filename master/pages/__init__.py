"""A run's folder as the data of a page, and the page itself."""
