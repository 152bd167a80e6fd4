"""Which LUNs and hosts a plan means: host ranges, conditions on attributes."""
