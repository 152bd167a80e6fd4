"""The parameters that every workload instance has on its host, and every change of them.

Rule: only this module creates, edits and deletes workload instances, so `parameters` holds what the hosts acknowledged.
Edits are numbered through the whole run, because results name the edit in force. Hold `changing` while you work out a
change from the parameters: two changes at once would undo each other.
"""

import asyncio
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from ....protocol.messages import (
    MOST_IN_A_LIST,
    Command,
    CreateWorkloads,
    DeleteWorkloads,
    EditWorkloads,
    HostMessage,
    Ok,
    ReinspectLuns,
)
from ....protocol.parameters import LIVE, PARAMETERS, Parameters
from ....protocol.payload import Consent, Setting, WorkloadToCreate, packed_numbers
from ...errors import HostFault
from ...hosts.controller_lag import Deadline
from ...hosts.driver import Driver, barrier
from ...rollup.instances import InstanceKey
from .discover_luns import PlacedPlan
from .fleet import Fleet

MOST_SEED: Final = int(PARAMETERS["seed"].high or 0)  # 2**63 - 1
APPLYING_S: Final = 24 * 3600.0  # gigabytes of I/O buffers take minutes; a host that hangs is noticed by its probes
EDITING_S: Final = 60.0  # between steps


@dataclass(frozen=True, slots=True)
class EditResult:
    """The result of one edit, for each host."""

    number: int
    effective_ns: Mapping[str, int]  # by host: when its last thread took it, on the controller's clock
    failed: Mapping[str, str]  # by host: why it did not
    lost: frozenset[str] = frozenset()  # hosts that were lost meanwhile
    discarded: int = 0  # overdue I/Os that its changes of rates discarded, on the hosts that took it


class HostSettings:
    """Holds the parameters that every workload instance has, and the number of the last edit."""

    def __init__(self, fleet: Fleet, parameters: Mapping[InstanceKey, Parameters] | None = None) -> None:
        self.parameters: dict[InstanceKey, Parameters] = dict(parameters or {})
        self.wanted: dict[InstanceKey, Parameters] = dict(self.parameters)  # sent last, acknowledged or not
        self.changing = asyncio.Lock()
        self._fleet = fleet
        self.blocksizes: dict[InstanceKey, int] = {}  # that the buffers of each instance hold
        self.backends: dict[str, str] = {}  # by host: what backend `auto` is there; kept by a slave that comes later
        self._unsure: set[InstanceKey] = set()  # an edit of them was not answered: sent again before the next step
        self._cached_on: set[str] = set()  # hosts with instances that use, or used, the page cache
        self._edits = 0
        self.begun = bool(parameters)  # the instances of all hosts were created

    def next_edit(self) -> int:
        """A number for an edit, known before it is sent."""
        self._edits += 1
        return self._edits

    def needs(self, key: InstanceKey, wanted: Parameters) -> bool:
        """Whether an instance needs these parameters sent: it has others, or may have."""
        return self.parameters[key] != wanted or key in self._unsure

    def forget(self, host: str) -> None:
        """It has a new slave, which has no workload instances."""
        for remembered in (self.parameters, self.blocksizes):
            for key in [key for key in remembered if key[0] == host]:
                del remembered[key]

    def now_ns(self) -> int:
        return self._fleet.now_ns()

    def deadline(self, within_s: float) -> Deadline:
        return self._fleet.lag.deadline(within_s)

    async def edit(
        self, number: int, settings: Mapping[InstanceKey, Parameters], deadline: Deadline, mute_s: float | None = None
    ) -> EditResult:
        """Live settings, to all their hosts at once, of which answers are awaited until `deadline`; for `mute_s` where
        a host has not answered the edit before."""
        self.wanted.update(settings)
        by_host: dict[str, list[Setting]] = {}
        for (host, instance), parameters in settings.items():
            by_host.setdefault(host, []).append(Setting(instance, host_parameters(parameters, host)))

        async def edit_on(driver: Driver) -> tuple[int, int]:
            patience_s = mute_s if driver.has_pending(EditWorkloads) else None
            async with asyncio.timeout(patience_s):
                answer = await ask_in_parts(driver, EditWorkloads, "settings", by_host[driver.name], edit=number)
            taken = [part for part in answer if isinstance(part, Ok)]
            return driver.clock.to_controller(taken[-1].effective_ns), sum(part.discarded for part in taken)

        chosen = [driver for driver in self._fleet.alive if driver.name in by_host]
        answers, failed = await barrier(chosen, edit_on, deadline)
        effective = {driver.name: at_ns for driver, (at_ns, _) in answers.items()}
        self.acknowledged({key: value for key, value in settings.items() if key[0] in effective})
        self._unsure |= {key for key in settings if key[0] not in effective}
        reasons = {driver.name: reason for driver, reason in failed.items() if driver.lost is None}
        lost = frozenset(by_host.keys() - effective.keys() - reasons.keys())
        return EditResult(number, effective, reasons, lost, sum(discarded for _, discarded in answers.values()))

    def release(self, settings: Mapping[InstanceKey, Parameters]) -> None:
        """These are of lost hosts, to which nothing is sent."""
        self.wanted.update(settings)
        self.acknowledged(settings)

    def acknowledged(self, settings: Mapping[InstanceKey, Parameters]) -> None:
        """These are in force: the host acknowledged them, or its results show it."""
        self.parameters.update(settings)
        self._unsure -= settings.keys()

    async def apply(self, discovered: PlacedPlan, wanted: Mapping[InstanceKey, Parameters]) -> None:
        """Give every instance these parameters, between steps: edit what can be edited, create the rest anew.

        Each host checks the LUNs that stay open for writing again, because they may have come into use meanwhile; and
        it writes back, and drops, what is in its page cache.

        A host that fails the first time is left out, if as many may be missing; otherwise raises HostsError, which
        names all such hosts. A host that fails later is lost: what was measured with it is kept, the others continue.
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
            made_on, edits_on = _by_host(anew), _by_host(edited)
            cached = [key for key, value in wanted.items() if not value.direct]
            cached_on = {
                host: [number for _, number in keys if wanted[host, number].iops != 0]
                for host, keys in _by_host(cached).items()
            }
            self._cached_on |= cached_on.keys()
            kept_on = {key[0] for key in (wanted.keys() & discovered.limits.writers) - anew}

            async def apply_on(driver: Driver) -> None:
                keys = made_on.get(driver.name, [])
                gone = [instance for host, instance in keys if (host, instance) in have]
                await ask_in_parts(driver, DeleteWorkloads, "numbers", gone)
                made = [_to_create(discovered, key, wanted[key], blocksizes[key]) for key in keys]
                created = await ask_in_parts(driver, CreateWorkloads, "workloads", made, gathered=True)
                self.backends.update(
                    (driver.name, part.backend) for part in created if isinstance(part, Ok) and part.backend
                )
                changed = [
                    Setting(key[1], host_parameters(wanted[key], driver.name)) for key in edits_on.get(driver.name, [])
                ]
                async with asyncio.timeout(EDITING_S):
                    await ask_in_parts(driver, EditWorkloads, "settings", changed, edit=number)
                if driver.name in kept_on | self._cached_on:
                    await driver.request(ReinspectLuns, order=packed_numbers(cached_on.get(driver.name, ())))

            _, failed = await barrier(self._fleet.alive, apply_on, self.deadline(APPLYING_S))
            if not self.begun:
                self._fleet.miss([HostFault(driver.name, reason, "") for driver, reason in failed.items()])
            for driver, reason in failed.items():
                driver.lose(reason)
            self.begun = True
            self.parameters, self.wanted, self.blocksizes = dict(wanted), dict(wanted), blocksizes
            self._unsure.clear()


async def ask_in_parts(
    driver: Driver, kind: type[Command], name: str, items: Sequence[Any], gathered: bool = False, **fields: Any
) -> list[HostMessage]:
    """A command whose list `name` may be longer than one message holds; `gathered`: the host is told of `more`, and
    acts on all of it at once. Returns all answers."""
    answer: list[HostMessage] = []
    for start in range(0, len(items), MOST_IN_A_LIST):
        end = start + MOST_IN_A_LIST
        told = {"more": end < len(items)} if gathered else {}
        answer += await driver.request(kind, **{name: tuple(items[start:end])}, **told, **fields)
    return answer


def host_parameters(parameters: Parameters, host: str) -> Parameters:
    """The parameters of a workload as a host gets them: with a seed of its own, so that equal workloads on two hosts do
    not do the same I/Os at the same instants.

    It is a hash of the seed of the plan, or of the run, and of the host's name in the plan: the same seed gives the
    same addresses and gaps, whatever other hosts take part. On a host, the engine tells its instances apart by their
    numbers, and steps by theirs. Rows and files have the seed itself.
    """
    digest = hashlib.sha256(f"{parameters.seed}\n{host}".encode()).digest()
    return replace(parameters, seed=int.from_bytes(digest[:8], "little") & MOST_SEED)


def _by_host(keys: Iterable[InstanceKey]) -> dict[str, list[InstanceKey]]:
    """By host, ascending by number."""
    keys_of: dict[str, list[InstanceKey]] = {}
    for key in sorted(keys):
        keys_of.setdefault(key[0], []).append(key)
    return keys_of


def _editable(have: Parameters | None, wanted: Parameters) -> bool:
    """Whether an instance with parameters `have` can be edited to `wanted`; else it has to be made anew."""
    if have is None:
        return False
    return all(getattr(have, name) == getattr(wanted, name) for name in PARAMETERS if name not in LIVE)


def _to_create(discovered: PlacedPlan, key: InstanceKey, parameters: Parameters, blocksize: int) -> WorkloadToCreate:
    lun = discovered.placement.lun_of[key]
    agreed = lun.lun.identity if key in discovered.limits.writers else None
    return WorkloadToCreate(
        number=key[1],
        instance=discovered.placement.names[key],
        lun=lun.lun.path,
        consent=Consent(agreed, discovered.limits.written[key]) if agreed is not None else None,
        parameters=host_parameters(parameters, key[0]),
        ceiling=discovered.limits.tags[key],
        blocksize_ceiling=blocksize,
        fast_tags=discovered.limits.fast_tags.get(key, 0),
    )
