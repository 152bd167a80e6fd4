"""The controller. ARCHITECTURE.md lists its rooms in the order in which they may import each other."""
