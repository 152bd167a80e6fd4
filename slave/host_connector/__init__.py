"""The connector `host`: what a test host knows of its disks, cores, memory and network."""
