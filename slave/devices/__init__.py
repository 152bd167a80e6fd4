"""Block devices as the kernel and their first blocks show them: names, tables, mounts, exports, signatures."""
