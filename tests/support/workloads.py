"""Workload instances on a LUN, as the controller has a slave create them."""

from ivypy.protocol.parameters import Parameters
from ivypy.protocol.payload import WorkloadToCreate
from tests.support.loop_devices import agreed

WRITE = Parameters(fraction_read=0.5)


def workloads_on(
    lun: str, *parameters: Parameters, consent: bool = False, first: int = 0, ceiling: int = 8
) -> list[WorkloadToCreate]:
    given = agreed(lun) if consent else None
    return [
        WorkloadToCreate(first + i, f"h+{lun}+w{first + i}", lun, given, p, ceiling, p.blocksize)
        for i, p in enumerate(parameters)
    ]
