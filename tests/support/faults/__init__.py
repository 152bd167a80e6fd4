"""Random faults on a real run over three hosts, and the truth of each: what was injected when, and what devices did.

The truth knows nothing of ivypy: it is the time at which a fault was injected and lifted, and the I/Os that the block
layer counted on each host's device meanwhile.
"""
