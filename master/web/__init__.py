"""`ivypy web`: the page's server."""
