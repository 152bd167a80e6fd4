"""The connectors that come with ivypy and run on the controller's side: a module each, registered in pyproject.toml."""
