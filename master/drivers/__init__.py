"""Driver processes: many hosts' pipes, decoding and merging, on cores of their own."""
