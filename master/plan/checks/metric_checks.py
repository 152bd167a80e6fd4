"""The metrics that a step uses can exist: no response time of a load at max, no writes of read-only workloads, no
percentile of fewer I/Os than it needs.

Rule: only what is certain without the test hosts, and where nobody may change it while the step runs.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import ceil
from typing import Any, Final

from ....protocol.counters import Kind
from ....protocol.parameters import MAX, NO_FLUSH, Iosequencer, Operation
from ...control.control_spec import ControlSpec
from ...control.control_state import Keys
from ...rollup.figures import CATEGORIES, FLUSH, OVERALL
from ...rollup.instances import ALL
from ...rollup.metrics import METRICS, metric_of
from ...stats.percentiles import fewest_ios
from ...text.units import format_duration
from ..model import TOTAL_IOPS, Edit, Workload
from ..read.field_types import written
from ..read.schema import LunsDoc, PlanDoc
from ..read.yaml_positions import Faults, Path
from ..steps import Schedule
from .io_mix import WORKLOAD, Deciding, Mix

_SEQUENCES: Final = {"random": "random_steady", "sequential": "sequential"}  # a category: a way to have its I/O
_PATTERN: Final = frozenset("*?[")  # a path with one of these matches what exists
_DIRECTIONS: Final = {
    "read": "fraction_read above 0%", "write": "fraction_read below 100%",
    "trim": "operations with trim", "zeroes": "operations with write_zeroes",
}  # fmt: skip
_CATEGORIES: Final = {one: str(one) for one in Operation} | {Operation.WRITE_ZEROES: "zeroes"}


Sort = tuple[str, str]  # of I/O: one of _SEQUENCES, one of _DIRECTIONS


def check_paced(doc: PlanDoc, workloads: Collection[Workload], schedule: Schedule, faults: Faults) -> None:
    """No step is measured by a response time where some workload is certain to run at max, and so has none."""
    unread = {one.name for one in workloads if faults.unreadable(("workloads", one.name, "iops"))}
    for entry, step in schedule.steps():
        paced = [(keys, focus) for keys, focus in step.control.checked() if focus.needs_pacing]
        if step.control.load is not None or not paced:
            continue
        at_max = _at_max([one for one in workloads if one.name not in unread], step.edits)
        if at_max is not None:
            for keys, focus in paced:
                metric = focus.metric
                place = _place(doc, entry, keys)
                what = (
                    f"{metric}: in step {step.name!r} workload {at_max!r} runs at max, where there is no response time"
                )
                if not faults.has_fault(place):
                    faults.add(place, f"{what}; use {focus.of_service}, or set iops")


def check_thinking(doc: PlanDoc, workloads: Collection[Workload], schedule: Schedule, faults: Faults) -> None:
    """No workload thinks where control would take the users' rate for the storage's, nor where its I/Os are paced in
    every step: think_time would have no effect.

    Control may set max itself, and who edits the running step may do so.
    """
    thinks = next((workload.name for workload in workloads if workload.parameters.think_time), "")
    for entry, step in schedule.steps() if thinks else ():
        load = step.control.load
        if load is not None and load.goes_by_max:
            what = f"in step {step.name!r} the rate at max is taken for the most that is possible"
            faults.add(_place(doc, entry, load.keys), f"{what}, but workload {thinks!r} thinks; leave think_time out")
    if doc.live is not None or any(step.control.load is not None for _, step in schedule.steps()):
        return
    changes = [edit.changes for _, step in schedule.steps() for edit in step.edits]
    if any(MAX in (change.get("iops"), change.get(TOTAL_IOPS)) for change in changes):
        return
    for workload in workloads:
        parameters = workload.parameters
        if parameters.think_time and parameters.iops not in (MAX, 0):
            rate = f"think_time has no effect with iops: {written('iops', parameters.iops)}, and no step sets max"
            faults.add(("workloads", workload.name, "think_time"), f"{rate}; leave one of them out")


def check_kinds(
    doc: PlanDoc, workloads: Sequence[Workload], schedule: Schedule, hosts: Collection[str], faults: Faults
) -> None:
    """No step uses a metric of I/O that it cannot have: it would wait for it until its timeout."""
    used = [
        (entry, step, keys, focus.metric, focus.rollup)
        for entry, step in schedule.steps()
        for keys, focus in (*step.control.checked(), *step.control.steered())
        if any(kind_of(focus.metric))
        and not (METRICS[focus.metric].is_rate and _met_by_zero(step.control, keys))  # it is 0, not blank
    ]
    if not used or not workloads:
        return
    deciding = Deciding.of(schedule)
    kinds = {one.name: _kinds(one, deciding, hosts, doc.live is not None) for one in workloads}
    for entry, step, keys, metric, rollup in used:
        place = _place(doc, entry, keys)
        alone = WORKLOAD in rollup.split("+")
        for names in [[name] for name in kinds] if alone else [list(kinds)]:
            present = {kind for name in names for kind in kinds[name].get(step.number, ())}
            if not any(_is_of(kind, metric) for kind in present) and not faults.has_fault(place):
                who = f"workload {names[0]!r}, an instance of rollup {rollup!r}, does" if alone else "the workloads do"
                what = f"{metric}: in step {step.name!r} {who} no {_in_words(metric)} I/O"
                faults.add(place, f"{what}; use {_of_all(metric)}, or set {_remedy(metric, present)}")


def check_flushes(doc: PlanDoc, workloads: Iterable[Workload], schedule: Schedule, faults: Faults) -> None:
    """No step uses a metric of flushes where nothing flushes."""
    changes = [change for _, step in schedule.steps() for change in (step.loop, *(edit.changes for edit in step.edits))]
    asked = [one.parameters.flush for one in workloads] + [one.get("flush", NO_FLUSH) for one in changes]
    ends = any(one.parameters.end_fsync for one in workloads) or any(one.get("end_fsync") for one in changes)
    if ends or any(one != NO_FLUSH for one in asked):
        return
    for entry, step in schedule.steps():
        for keys, focus in (*step.control.checked(), *step.control.steered()):
            place = _place(doc, entry, keys)
            if METRICS.get(focus.metric, METRICS["due"]).category == FLUSH and not faults.has_fault(place):
                faults.add(place, f"{focus.metric}: no workload flushes; give one for example flush: {{ every: 32 }}")


def check_samples(
    doc: PlanDoc, workloads: Sequence[Workload], schedule: Schedule, hosts: Collection[str], faults: Faults
) -> None:
    """No threshold is on a percentile of fewer I/Os than it needs: its figure would be blank, and the step invalid.

    Only where the plan bounds the IOPS of all LUNs together, and gives the time of the measurement.
    """
    luns = _most_luns(doc.luns, hosts)
    checked = [
        (entry, step)
        for entry, step in schedule.steps()
        if step.control.fixed and any(workload.focus.fraction is not None for workload in step.control.slo)
    ]
    shares_in: dict[int, dict[str, float]] = {step.number: {"": 1.0} for _, step in checked}
    deciding = Deciding.of(schedule)
    for one in workloads if checked else ():
        for _, step, mix in deciding.possible(one, hosts):
            for operation, share in mix.shares.items() if step.number in shares_in else ():
                most, category = shares_in[step.number], _CATEGORIES[operation]
                most[category] = max(share, most.get(category, 0.0))
    for entry, step in checked:
        iops = _most_iops(step.edits, workloads, luns)
        if iops is None:
            continue
        for i, threshold in enumerate(step.control.slo):
            focus = threshold.focus
            if focus.fraction is None:
                continue
            per_s = iops * shares_in[step.number].get(kind_of(focus.metric)[1], 0.0)
            needed, place = fewest_ios(focus.fraction), _place(doc, entry, ("slo", i))
            if 0 < per_s * step.measure_s < needed and not faults.has_fault(place):
                what = f"{focus.metric}: in step {step.name!r} {per_s * step.measure_s:.0f} I/Os are measured"
                longer = format_duration(ceil(needed / per_s))
                faults.add(place, f"{what}, and it needs {needed}; measure for {longer}, or use a lower percentile")


def _most_iops(edits: Iterable[Edit], workloads: Sequence[Workload], luns: int | None) -> float | None:
    """The most that the plan asks of all LUNs together; None where it has no such bound."""
    set_by = [edit for edit in edits if {TOTAL_IOPS, "iops"} & edit.changes.keys()]
    if set_by:
        found: Any = set_by[-1].changes.get(TOTAL_IOPS) if set_by[-1].rollup == ALL else None
        return found if isinstance(found, (int, float)) else None
    rates = [workload.parameters.iops for workload in workloads]
    numbers = [rate for rate in rates if isinstance(rate, (int, float))]
    return sum(numbers) * luns if luns is not None and len(numbers) == len(rates) else None


def _most_luns(doc: LunsDoc | None, hosts: Collection[str]) -> int | None:
    """How many LUNs there are at most; None where that depends on what the hosts have."""
    if doc is None or doc.select is not None:
        return None
    named = [*doc.paths, *doc.files]
    if any(_PATTERN & {*path} for path in named):
        return None
    return (len(named) + sum(file.count for file in doc.create)) * len(hosts)


def _met_by_zero(control: ControlSpec, keys: Keys) -> bool:
    """The keys lead to a threshold that a rate of 0 meets."""
    return keys[0] == "slo" and control.slo[int(keys[1])].excess(0.0) <= 0


def kind_of(metric: str) -> tuple[str, str]:
    """The sequence and the direction that a metric is of; empty for either, and for what is about no I/O."""
    kinds = set(CATEGORIES.get(METRICS[metric].category, Kind)) if metric in METRICS else set(Kind)

    def only(categories: Iterable[str]) -> str:
        return next((name for name in categories if kinds <= set(CATEGORIES[name])), "")

    return only(_SEQUENCES), only(_DIRECTIONS)


def _is_of(kind: Sort, metric: str) -> bool:
    return all(not wanted or wanted == there for wanted, there in zip(kind_of(metric), kind, strict=True))


def _kinds(workload: Workload, deciding: Deciding, hosts: Collection[str], live: bool) -> Mapping[int, set[Sort]]:
    """The kinds of I/O that the workload may do in each step, by its number. `live`: edits of running steps are meant
    to come.
    """
    kinds_of: dict[int, set[Sort]] = {}
    for _, step, mix in deciding.possible(workload, hosts):
        kinds_of.setdefault(step.number, set()).update(_of_mix(mix))
    writes = any(direction == "write" for kinds in kinds_of.values() for _, direction in kinds)
    if live:  # an edit may let it read wherever it is, and write where some step writes
        for kinds in kinds_of.values():
            more = ("read", "write") if writes else ("read",)
            kinds.update([(sequence, direction) for sequence, _ in kinds for direction in more])
    return kinds_of


def _of_mix(mix: Mix) -> Iterator[Sort]:
    sequence = "sequential" if mix.iosequencer is Iosequencer.SEQUENTIAL else "random"
    yield from ((sequence, _CATEGORIES[operation]) for operation in mix.shares)


def _in_words(metric: str) -> str:
    return " ".join(filter(None, kind_of(metric)))


def _of_all(metric: str) -> str:
    own = METRICS[metric]
    return metric_of(OVERALL, own.quantity, own.statistic).name


def _remedy(metric: str, present: Iterable[Sort]) -> str:
    """The settings that would let such I/O be."""
    sequence, direction = kind_of(metric)
    sequences, directions = ({kind[place] for kind in present} for place in (0, 1))
    remedies = []
    if sequence and (sequence not in sequences or direction in directions):
        remedies.append(f"iosequencer: {_SEQUENCES[sequence]}")
    if direction and (direction not in directions or not remedies):
        remedies.append(_DIRECTIONS[direction])
    return " and ".join(remedies)


def _place(doc: PlanDoc, entry: int, keys: Path) -> Path:
    """The place of a metric: in the step, or in `defaults`."""
    own = getattr(doc.steps[entry].go, str(keys[0]), None) is not None
    return (*(("steps", entry, "go") if own else ("defaults",)), *keys, "metric")


def _at_max(workloads: Collection[Workload], edits: Sequence[Edit]) -> str | None:
    """The first workload all instances of which are certain to run at max; None: there is none.

    Edits of some to max let all that were at max be so; an edit of some to a rate may be one of any workload.
    """
    for edit in reversed(edits):
        value = edit.changes.get(TOTAL_IOPS, edit.changes.get("iops"))
        if value is not None and value != MAX:
            return None
        if value == MAX and edit.rollup == ALL:
            return next((one.name for one in workloads), None)
    return next((one.name for one in workloads if one.parameters.iops == MAX), None)
