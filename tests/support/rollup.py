"""Workload instances, specs and results for tests of rollups and output."""

from ivypy.master.rollup.instances import Rollups, RollupSpec, WorkloadInstance
from ivypy.master.rollup.merge import MergedSubinterval, Merger
from ivypy.protocol.payload import Attribute

from .rollup_results import HostData, result


def instance(number: int, host: str, workload: str = "w", **attributes: Attribute) -> WorkloadInstance:
    return WorkloadInstance(number, host, f"/dev/sd{number}", workload, attributes)


def rollup_spec(by: str, quantity: int | None = None, max_droop: float | None = None, csv: bool = True) -> RollupSpec:
    """`by`: "host", "host+port" ..."""
    return RollupSpec(tuple(by.split("+")), quantity, max_droop, csv)


def rollups_by(instances: list[WorkloadInstance], *by: str) -> Rollups:
    """Rollups by `all` and each of `by`: "host", "host+port" ..."""
    return Rollups.build(instances, [rollup_spec(one) for one in by])


def merger_of(rollups: Rollups) -> Merger:
    return Merger(rollups, {host: rollups.order(host) for host in rollups.hosts()})


def merged(merger: Merger, data: dict[str, HostData], subinterval: int = 0, **changes: object) -> MergedSubinterval:
    """One subinterval of these hosts, closed."""
    merger.open(subinterval)
    for host, one in data.items():
        merger.add(host, result(one, subinterval, **changes))  # type: ignore[arg-type]
    return merger.close()
