"""What the hosts have, and where the plan's workloads go on it.

Rule: discovery changes nothing on a host but for the files that the plan asks to be created, and those only when a run
is about to use them; `ivypy devices` shows them as they would be.
"""

from dataclasses import dataclass
from typing import Final

from ...protocol.messages import Lun, Prepare
from ..hosts.driver import Driver
from ..plan.model import Plan
from ..rollup.instances import Rollups
from .consent import Target
from .fleet import Fleet, luns_of
from .limits import Limits, limits_of
from .placement import Placement, created_sizes, globs, place, to_create

CREATING_S: Final = 24 * 3600.0  # files may be large; a host that hangs is noticed by its probes


@dataclass(frozen=True, slots=True)
class Discovered:
    """The plan, placed."""

    placement: Placement
    rollups: Rollups
    limits: Limits

    @property
    def targets(self) -> list[Target]:
        """The LUNs that any step could write."""
        luns = {(lun.host, lun.lun.path): lun for key in self.limits.writers for lun in [self.placement.lun_of[key]]}
        return [Target(lun.host, lun.lun, lun.created) for lun in luns.values()]


async def prepare(plan: Plan, fleet: Fleet) -> None:
    """Tell every host what holds for the whole run. Raises HostsError."""

    async def one(driver: Driver) -> None:
        await driver.ask(
            Prepare,
            backend=plan.backend,
            threads=plan.threads,
            cpus=plan.cpus,
            spin=plan.spin,
            polled=plan.polled,
            sqpoll=plan.sqpoll,
            lease_ns=round(plan.lease_s * 1e9),
        )

    await fleet.ask_all(dict.fromkeys(fleet.alive, one))


async def discover(plan: Plan, fleet: Fleet, seen: "Discovered | None" = None) -> Discovered:
    """List every host's LUNs, and place the workloads. What was `seen` before is what the plan's files are now created
    for, first of all.

    Raises HostsError, PlanFaults.
    """

    async def one(driver: Driver) -> list[Lun]:
        found = await luns_of(
            driver,
            blocks=plan.luns.select is not None,
            globs=globs(plan, driver.name),
            create=to_create(plan, driver.name) if seen else (),
            tags=seen.limits.tags_on(driver.name) if seen else 0,
            paths=plan.luns.paths,
        )
        return found if seen else [*found, *_to_be_created(plan, driver.name, found)]

    answers = await fleet.ask_all(dict.fromkeys(fleet.alive, one), CREATING_S)
    hostnames = {name: hello.hostname for name, hello in fleet.hellos().items()}
    placement = place(plan, {driver.name: luns for driver, luns in answers.items()}, hostnames)
    rollups = Rollups.build(placement.instances, plan.rollups)
    return Discovered(placement, rollups, limits_of(plan, placement, rollups))


def _to_be_created(plan: Plan, host: str, found: list[Lun]) -> list[Lun]:
    """The plan's files as they would be once created."""
    there = {lun.path for lun in found}
    sizes = created_sizes(plan, host)
    return [
        Lun(path, "file", sizes[path], 512, {"path": path, "size": sizes[path], "kind": "file"}, (), ())
        for path in sorted(sizes.keys() - there)
    ]
