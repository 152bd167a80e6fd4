"""The LUNs of the hosts, and the plan's workloads placed on them.

Rule: nothing is discovered twice. LUNs are listed once without opening any; those that the plan selects are opened and
inspected once. From then on a LUN is known by its identity. Only files that hosts create for this run are added later;
`ivypy devices` lists those as they would be.
"""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

from ....protocol.messages import MOST_IN_A_LIST, Command, CreateFiles, InspectLuns, ListLuns, Luns, Prepare
from ....protocol.parameters import Operation
from ....protocol.payload import Identity, Lun, NoticeKind, Refusal
from ...errors import HostFault, HostsError
from ...hosts.driver import CommandRefused, Driver
from ...plan.model import Plan
from ...rollup.instances import Rollups
from .consent import Target, check_same
from .fleet import Fleet
from .limits import Limits, check_sections, limits_of
from .placement import MoreAttributes, PlacedLun, Placement, created_sizes, globs, no_more, place, selected, to_create

CREATING_S: Final = 24 * 3600.0  # files may be large; a host that hangs is noticed by its probes
PREPARING_FACTOR: Final = 2  # a host that makes no progress, or is silent, is lost after one timeout
AUTO, IO_URING = "auto", "io_uring"  # backends: the host's choice; for `direct: false`, trims and zeroes
LOOKING_S: Final = 3600.0  # there may be thousands of LUNs; a host has a limit for each of them


@dataclass(frozen=True, slots=True)
class PlacedPlan:
    """The plan, placed."""

    placement: Placement
    rollups: Rollups
    limits: Limits

    @property
    def targets(self) -> list[Target]:
        """The LUNs that any step could write."""
        luns = {(lun.host, lun.lun.path): lun for key in self.limits.writers for lun in [self.placement.lun_of[key]]}
        return [Target(lun.host, lun.lun, lun.created) for lun in luns.values()]

    @property
    def paths(self) -> dict[str, list[str]]:
        """Of the LUNs of each host."""
        paths: dict[str, list[str]] = {}
        for lun in self.placement.luns:
            paths.setdefault(lun.host, []).append(lun.lun.path)
        return paths

    def check_answers(self) -> None:
        """Raise HostsError that names the LUNs that would be driven and did not answer."""
        luns = {(lun.host, lun.lun.path): lun.lun for lun in self.placement.lun_of.values()}
        silent = [
            HostFault(host, f"{path}: {notice.text}", "")
            for (host, path), lun in luns.items()
            for notice in lun.notices
            if notice.kind is NoticeKind.NO_ANSWER
        ]
        if silent:
            raise HostsError(silent)


async def prepare(plan: Plan, fleet: Fleet) -> None:
    """Send every host the settings of the whole run. Raises HostsError."""

    await fleet.request_all(
        dict.fromkeys(fleet.alive, lambda driver: _prepare(plan, driver)), PREPARING_FACTOR * plan.prepare_timeout_s
    )


async def _prepare(plan: Plan, driver: Driver, backend: str = "") -> None:
    """`backend`: in the place of the plan's, where it is decided."""
    await driver.request(
        Prepare,
        engine=replace(plan.engine, backend=backend or _backend(plan)),
        patience_ns=round(plan.prepare_timeout_s * 1e9),
        lease_ns=round(plan.lease_s * 1e9),
    )


def _backend(plan: Plan) -> str:
    """The plan's; where it is left to a host, which decides by the first step, and a later one needs io_uring: that."""
    edited = any(map(_only_io_uring, (edit.changes for step in plan.steps for edit in step.edits)))
    return IO_URING if plan.engine.backend == AUTO and edited else plan.engine.backend


def _only_io_uring(changes: Mapping[str, Any]) -> bool:
    has = {operation for operation, _ in changes.get("operations", ())}
    return changes.get("direct") is False or not has <= {Operation.READ, Operation.WRITE}


async def discover(plan: Plan, fleet: Fleet, more: MoreAttributes = no_more) -> PlacedPlan:
    """List every host's LUNs, inspect those that the plan selects, and place the workloads on them, and on the files
    that are still to be created. `more`: attributes from connectors.

    Raises HostsError, PlanFaults.
    """
    hostnames = _hostnames(fleet)

    async def inspect_on(driver: Driver) -> list[Lun]:
        name = driver.name
        wanted = globs(plan, name)
        answered = await _luns_of(
            driver, ListLuns, blocks=plan.luns.select is not None, globs=wanted, paths=plan.luns.paths
        )
        chosen = {lun.path: lun for lun in answered if selected(plan, name, hostnames.get(name, ""), lun, more)}
        files = to_create(plan, name)
        if not chosen and not files:
            return answered  # none of which is selected: an error will say why
        with _naming_the_option(plan):
            looked = await _luns_of(driver, InspectLuns, "paths", [*chosen], create=files)
        asked = chosen.keys() | created_sizes(plan, name).keys()
        luns = {lun.path: _completed(lun, chosen.get(lun.path)) for lun in looked if lun.path in asked}
        return [*luns.values(), *_to_be_created(plan, name, luns)]

    answers = await fleet.request_all(dict.fromkeys(fleet.alive, inspect_on), LOOKING_S)
    return _placed(plan, {driver.name: luns for driver, luns in answers.items()}, hostnames, more)


async def block_devices(driver: Driver) -> list[Lun]:
    """Every block device of a host, inspected; one that cannot be, as it was listed, with the reason.

    Raises HostLost, CommandRefused.
    """
    listed = {lun.path: lun for lun in await _luns_of(driver, ListLuns, blocks=True, globs=(), paths=())}
    uninspected: dict[str, Lun] = {}
    while left := [path for path in listed if path not in uninspected]:
        try:
            looked = await _luns_of(driver, InspectLuns, "paths", left, create=())
        except CommandRefused as refused:
            # It went away since, or is broken: the others are listed all the same.
            why = {refusal.what: refusal.reason for refusal in refused.refusals if refusal.what in left}
            if not why:
                raise
            uninspected |= {path: replace(listed[path], refusals=(reason,)) for path, reason in why.items()}
        else:
            inspected = {lun.path: _completed(lun, listed.get(lun.path)) for lun in looked}
            return [uninspected.get(path) or inspected[path] for path in listed]
    return [*uninspected.values()]


async def create(plan: Plan, fleet: Fleet, seen: PlacedPlan, more: MoreAttributes = no_more) -> PlacedPlan:
    """Have the plan's files created; what was `seen`, with them in the place of those that were to be.

    Raises HostsError, PlanFaults, and RefusedError where anything would be written beyond what was agreed to.
    """

    answers = await fleet.request_all(
        dict.fromkeys(fleet.alive, lambda driver: _create(plan, driver, seen, _agreed(seen, driver.name))), CREATING_S
    )
    present = {driver.name for driver in answers}
    made = {(driver.name, lun.path): lun for driver, luns in answers.items() for lun in luns}
    luns_of: dict[str, list[Lun]] = {}
    for lun in seen.placement.luns:
        if lun.host not in present:
            continue  # it is missed
        new = made.get((lun.host, lun.lun.path)) if lun.created else None
        if lun.created and new is None:
            raise HostsError([HostFault(lun.host, f"{lun.lun.path} should have been created, but does not exist", "")])
        luns_of.setdefault(lun.host, []).append(new or lun.lun)
    placed = _placed(plan, luns_of, _hostnames(fleet), more)
    check_same([target for target in seen.targets if target.host in present], placed.targets)
    return placed


async def _create(
    plan: Plan, driver: Driver, seen: PlacedPlan, known: Mapping[str, Identity], made: Container[str] = ()
) -> list[Lun]:
    """Have the plan's files on one host created. Those that are `known`, by path, are used though they were written
    since ivypy made them; those that were `made` for this run are removed at its end."""
    name = driver.name
    used = tuple((path, known[path]) for path in sorted(created_sizes(plan, name).keys() & known.keys()))
    files, tags = to_create(plan, name), seen.limits.tags_on.get(name, 0)
    mine = tuple(path for path, _ in used if path in made)
    with _naming_the_option(plan):
        return await _luns_of(driver, CreateFiles, files=files, used=used, tags=tags, made=mine)


@contextmanager
def _naming_the_option(plan: Plan) -> Iterator[None]:
    """With the option that gives a file another path, where its path is a parameter of the plan."""
    try:
        yield
    except CommandRefused as refused:
        raise CommandRefused(tuple(_with_option(plan, one) for one in refused.refusals)) from None


def _with_option(plan: Plan, refusal: Refusal) -> Refusal:
    for name, value in plan.parameters.items():
        is_path = any(file.path == value for file in plan.luns.create)
        if is_path and refusal.what.startswith(value.split("{}")[0]):
            return replace(refusal, reason=f"{refusal.reason} (-D {name}=PATH gives another path)")
    return refusal


async def _luns_of(
    driver: Driver, kind: type[Command], name: str = "", items: Sequence[Any] = (), **fields: Any
) -> list[Lun]:
    """A host's LUNs; where `name` is given, its `items` go out in as many messages as they take."""
    luns: list[Lun] = []
    for start in range(0, max(len(items), 1), MOST_IN_A_LIST):
        part = {name: tuple(items[start : start + MOST_IN_A_LIST])} if name else {}
        answer = await driver.request(kind, **part, **fields)
        luns += [lun for saying in answer if isinstance(saying, Luns) for lun in saying.luns]
    return luns


def _agreed(seen: PlacedPlan, host: str) -> dict[str, Identity]:
    """The identities that the user agreed to on a host, by path."""
    return _known(target.lun for target in seen.targets if target.host == host and not target.created)


def _created(seen: PlacedPlan, host: str) -> list[Lun]:
    """The files that this run made on a host, or had for itself there."""
    return [placed.lun for placed in seen.placement.luns if placed.host == host and placed.created]


def _known(luns: Iterable[Lun]) -> dict[str, Identity]:
    """By path."""
    return {lun.path: lun.identity for lun in luns if lun.identity is not None}


async def begin_again(plan: Plan, driver: Driver, seen: PlacedPlan, backend: str) -> Sequence[Lun]:
    """Bring a new slave of a host to where the old one was before the first step; the files that it created.

    `backend`: what the old one had for `auto`; "" where nothing was decided.

    Raises HostLost, CommandRefused.
    """
    await _prepare(plan, driver, backend)
    if not plan.luns.create:
        return ()
    # A killed slave has written to its files and could not mark them.
    name = driver.name
    made = {lun.path for lun in _created(seen, name) if lun.made}
    return await _create(plan, driver, seen, _agreed(seen, name) | _known(_created(seen, name)), made)


def with_files(seen: PlacedPlan, host: str, made: Sequence[Lun]) -> PlacedPlan:
    """Return what was `seen`, with files that were created anew on `host` in the place of the old ones.

    Raises HostsError where they are not the same but for their identities.
    """
    new = {lun.path: lun for lun in made}

    def renewed(placed: PlacedLun) -> PlacedLun:
        if placed.host != host or not placed.created:
            return placed
        lun = new.get(placed.lun.path)
        if lun is None or (lun.size, lun.block) != (placed.lun.size, placed.lun.block):
            raise HostsError([HostFault(host, f"{placed.lun.path} was created again, but is not the same", "")])
        return replace(placed, lun=lun)

    placement = seen.placement
    luns = tuple(renewed(placed) for placed in placement.luns)
    lun_of = {key: renewed(placed) for key, placed in placement.lun_of.items()}
    return replace(seen, placement=replace(placement, luns=luns, lun_of=lun_of))


def _placed(
    plan: Plan, found: Mapping[str, Sequence[Lun]], hostnames: Mapping[str, str], more: MoreAttributes
) -> PlacedPlan:
    placement = place(plan, found, hostnames, more)
    rollups = Rollups.build(placement.instances, plan.rollups, plan.by_address)
    check_sections(plan, rollups)
    return PlacedPlan(placement, rollups, limits_of(plan, placement, rollups))


def _hostnames(fleet: Fleet) -> dict[str, str]:
    return {name: hello.hostname for name, hello in fleet.hellos().items()}


def _completed(looked: Lun, listed: Lun | None) -> Lun:
    """The inspected LUN with the names that only the list has; the listed one where the LUN did not answer."""
    if listed is None:
        return looked
    if looked.silent:
        return replace(listed, refusals=looked.refusals, notices=looked.notices, silent=True)
    return replace(looked, named=listed.named)


def _to_be_created(plan: Plan, host: str, existing: Mapping[str, Lun]) -> list[Lun]:
    """The plan's files as they would be once created."""
    sizes = created_sizes(plan, host)
    return [
        Lun(path, "file", sizes[path], 512, {"path": path, "size": sizes[path], "kind": "file"}, (), (), ours=True)
        for path in sorted(sizes.keys() - existing.keys())
    ]
