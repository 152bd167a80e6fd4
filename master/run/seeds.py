"""A seed for each host, so that equal workloads on two hosts do not do the same I/Os at the same instants.

Rule: made of the plan's seed and the host's name in the plan, by a hash: the same plan gives the same addresses and
gaps in every run, whatever other hosts take part. On a host, the engine tells its instances apart by their numbers, and
steps by theirs. The plan's own seed is what rows and files say.
"""

import hashlib
from dataclasses import replace
from typing import Final

from ...protocol.parameters import PARAMETERS, Parameters

MOST: Final = int(PARAMETERS["seed"].high or 0)  # 2**63 - 1


def on_host(parameters: Parameters, host: str) -> Parameters:
    """What a host is told of a workload with these parameters."""
    digest = hashlib.sha256(f"{parameters.seed}\n{host}".encode()).digest()
    return replace(parameters, seed=int.from_bytes(digest[:8], "little") & MOST)
