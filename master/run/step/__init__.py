"""One step: the cycle of its subintervals, from `go` to `stop`, and the hosts that it loses."""
