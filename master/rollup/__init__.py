"""Slicings of the workload instances, and the exact merging of what they measured."""
