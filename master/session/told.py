"""What the hosts have been told: the parameters of every workload instance, and every change of them.

Rule: only here are workload instances created, edited and deleted, so that what is remembered is what was
acknowledged. Edits are numbered through the whole run, since results name the number in force. Whoever reads the
parameters in order to change them holds `changing` meanwhile: two changes at once would each undo the other.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ...protocol.messages import CreateWorkloads, DeleteWorkloads, EditWorkloads, Setting, WorkloadToCreate
from ...protocol.parameters import LIVE, Parameters
from ..errors import HostFault, HostsError
from ..hosts.driver import Driver, barrier
from .discover import Discovered
from .fleet import Fleet, ask_in_parts
from .seeds import on_host
from .settings import Key

TELLING_S: Final = 60.0  # between steps; creating instances opens LUNs
EDIT_S: Final = 5.0  # for an edit: a host that is lost is noticed earlier, by its probes


@dataclass(frozen=True, slots=True)
class Edited:
    """What came of one edit."""

    number: int
    effective_ns: Mapping[str, int]  # by host: when its last thread took it, on the controller's clock
    failed: Mapping[str, str]  # by host: why it did not


class Told:
    """Remembers what every workload instance was told, and the number of the last edit."""

    def __init__(self, fleet: Fleet, parameters: Mapping[Key, Parameters] | None = None) -> None:
        self.parameters: dict[Key, Parameters] = dict(parameters or {})
        self.changing = asyncio.Lock()
        self._fleet = fleet
        self.blocksizes: dict[Key, int] = {}  # that the buffers of each instance hold
        self._unsure: set[Key] = set()  # an edit of them was not answered: told again before the next step
        self._edits = 0

    def next_edit(self) -> int:
        """A number for an edit, known before it is sent."""
        self._edits += 1
        return self._edits

    def needs(self, key: Key, wanted: Parameters) -> bool:
        """Whether an instance has to be told: it has other parameters, or may have."""
        return self.parameters[key] != wanted or key in self._unsure

    async def edit(self, number: int, settings: Mapping[Key, Parameters]) -> Edited:
        """Live settings, to all their hosts at once."""
        by_host: dict[str, list[Setting]] = {}
        for (host, instance), parameters in settings.items():
            by_host.setdefault(host, []).append(Setting(instance, on_host(parameters, host)))

        async def one(driver: Driver) -> int:
            answer = await ask_in_parts(driver, EditWorkloads, "settings", by_host[driver.name], edit=number)
            return driver.clock.to_controller(answer[-1].effective_ns)  # type: ignore[union-attr]

        chosen = [driver for driver in self._fleet.alive if driver.name in by_host]
        answers, failed = await barrier(chosen, one, asyncio.get_running_loop().time() + EDIT_S)
        effective = {driver.name: at_ns for driver, at_ns in answers.items()}
        self.parameters.update({key: value for key, value in settings.items() if key[0] in effective})
        self._unsure -= {key for key in settings if key[0] in effective}
        self._unsure |= {key for key in settings if key[0] not in effective}
        reasons = {driver.name: reason for driver, reason in failed.items()}
        reasons |= {host: "it is lost" for host in by_host.keys() - effective.keys() - reasons.keys()}
        return Edited(number, effective, reasons)

    async def tell(self, discovered: Discovered, wanted: Mapping[Key, Parameters]) -> None:
        """Between steps: make every instance have these parameters; edit what can be edited, else make it anew.

        A host that does not do it the first time is a reason not to begin: raises HostsError, with all of them. Later
        it is lost, and costs itself: what was measured with it stands, and the others go on.
        """
        async with self.changing:
            have = self.parameters
            blocksizes = {key: discovered.limits.blocksize_beginning_with(value) for key, value in wanted.items()}
            anew = {
                key
                for key, value in wanted.items()
                if not _editable(have.get(key), value) or self.blocksizes.get(key) != blocksizes[key]
            }
            edited = {key for key, value in wanted.items() if key not in anew and self.needs(key, value)}
            number = self.next_edit() if edited else self._edits

            async def one(driver: Driver) -> None:
                mine = sorted(key for key in anew if key[0] == driver.name)
                gone = [instance for host, instance in mine if (host, instance) in have]
                await ask_in_parts(driver, DeleteWorkloads, "numbers", gone)
                made = [_to_create(discovered, key, wanted[key], blocksizes[key]) for key in mine]
                await ask_in_parts(driver, CreateWorkloads, "workloads", made)
                changed = [
                    Setting(key[1], on_host(wanted[key], driver.name))
                    for key in sorted(edited)
                    if key[0] == driver.name
                ]
                await ask_in_parts(driver, EditWorkloads, "settings", changed, edit=number)

            deadline = asyncio.get_running_loop().time() + TELLING_S
            _, failed = await barrier(self._fleet.alive, one, deadline)
            if failed and not have:
                raise HostsError([HostFault(driver.name, reason, "") for driver, reason in failed.items()])
            for driver, reason in failed.items():
                driver.lose(reason)
            self.parameters, self.blocksizes = dict(wanted), blocksizes
            self._unsure.clear()


def _editable(have: Parameters | None, wanted: Parameters) -> bool:
    """Whether an instance with parameters `have` can be edited to `wanted`; else it has to be made anew."""
    if have is None:
        return False
    return all(getattr(have, name) == getattr(wanted, name) for name in Parameters.__slots__ if name not in LIVE)


def _to_create(discovered: Discovered, key: Key, parameters: Parameters, blocksize: int) -> WorkloadToCreate:
    lun = discovered.placement.lun_of[key]
    return WorkloadToCreate(
        number=key[1],
        instance=discovered.placement.names[key],
        lun=lun.lun.path,
        consent=key in discovered.limits.writers,
        parameters=on_host(parameters, key[0]),
        ceiling=discovered.limits.tags[key],
        blocksize_ceiling=blocksize,
        seen=lun.lun.identity,
    )
