"""From a plan's YAML text to the document as written, each value with its place."""
