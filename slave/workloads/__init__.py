"""Workload instances: their LUNs, threads, cores and backend."""
