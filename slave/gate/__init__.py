"""May this LUN be written? Evidence, verdict, and what holds a LUN meanwhile."""
