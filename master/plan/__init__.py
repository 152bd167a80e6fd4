"""A test plan, from YAML text to resolved steps, with the place of every fault."""
