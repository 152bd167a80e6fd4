"""From `steps:` to the steps that run: loops expanded, edits in force gathered, times made whole subintervals.

Rule: an edit is in force from its place to the end of the plan, or until a later one overrides it. The values of a
loop are in force in its own passes only. Every pass of a loop is a step of its own, with the values in its name.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, reduce
from itertools import product
from typing import Any, Final

from ...protocol.parameters import MAX, NO_BURSTS
from ..control.choices import USUAL_METRIC, OnDisturbance
from ..control.control_spec import ControlSpec
from ..control.fixed import FixedSpec
from ..control.observe import focus_on
from ..control.rounds import RoundsSpec
from ..rollup.instances import ALL
from ..rollup.metrics import connector_of
from ..text.plan_parameters import NO_END, ONE_PASS, OfStep, Value
from ..text.units import format_duration, format_fraction
from .attempts import ATTEMPT, ROUND, OnInvalid
from .control_keys import check_measures, check_some_end, check_until, control_spec, until_spec
from .model import TOTAL_IOPS, Edit, Step
from .preconditioning import steps_of_recipe
from .read.field_types import written
from .read.schema import TIMES, EditDoc, GoDoc, PlanDoc, RoundsDoc, StepDoc, TimesDoc
from .read.yaml_positions import Faults, Path

MOST_STEPS: Final = 10_000
SAME_THING: Final = "set the same thing; remove one"
_TWICE: Final = {TOTAL_IOPS: "iops", "operations": "fraction_read"}  # settings that another name sets, too


@dataclass(slots=True)
class Schedule:
    """Each entry of `steps:`: an edit, or the steps of a `go` (none where it was faulty)."""

    entries: list[Edit | list[Step]]

    def steps(self) -> Iterator[tuple[int, Step]]:
        """Every step in the order in which they run, with the number of its entry."""
        for i, entry in enumerate(self.entries):
            if not isinstance(entry, Edit):
                yield from ((i, step) for step in entry)

    def edits(self) -> Iterator[tuple[int, Edit]]:
        for i, entry in enumerate(self.entries):
            if isinstance(entry, Edit):
                yield i, entry


def schedule_of(doc: PlanDoc, faults: Faults) -> Schedule:
    """All steps of the plan."""
    in_force = EditsInForce()
    schedule = Schedule([])
    check_measures(doc.defaults, ("defaults",), faults)
    count = 0
    for i, entry in enumerate(doc.steps):
        path: Path = ("steps", i)
        steps: list[Step] = []
        kinds = [kind for kind in StepDoc.model_fields if getattr(entry, kind) is not None]
        if len(kinds) != 1:
            which = f"both {kinds[0]!r} and {kinds[1]!r}; make it two" if kinds else "neither 'go' nor 'edit'"
            faults.add(path, f"a step has {which}")
        elif entry.edit is not None:
            edit = _edit(entry.edit, (*path, "edit"), faults)
            in_force.add(edit)
            schedule.entries.append(edit)
            continue
        else:
            runs = _runs(entry, path, doc, in_force, faults)
            steps = [replace(step, number=number) for number, step in enumerate(runs, count)]
            count += len(steps)
        schedule.entries.append(steps)
        if count > MOST_STEPS:
            faults.add(path, f"with its loops written out, the plan has more than {MOST_STEPS:,} steps")
            break
    if schedule.entries and isinstance(schedule.entries[-1], Edit):
        faults.add(("steps", len(schedule.entries) - 1), "this edit is never in force: no 'go' follows it")
    return schedule


def _runs(entry: StepDoc, path: Path, doc: PlanDoc, in_force: "EditsInForce", faults: Faults) -> Iterator[Step]:
    """The steps of a `go`, or of a recipe."""
    if entry.go is not None:
        yield from _passes(entry.go, (*path, "go"), doc, in_force.edits(), faults)
    elif entry.precondition is not None:
        at = (*path, "precondition")
        times = TimesDoc.model_construct(**{key: getattr(doc.defaults, key) for key in ("subinterval", "warmup")})
        for go, edits in steps_of_recipe(entry.precondition, doc, in_force.edits(), at, faults):
            before = reduce(with_edit, edits, in_force.edits())
            yield from _passes(go, at, doc.model_copy(update={"defaults": times}), before, faults)


def with_edit(edits: tuple[Edit, ...], new: Edit) -> tuple[Edit, ...]:
    """`edits`, then `new`, without what `new` overrides."""
    return (*(left for old in edits if (left := _left_of(old, new)) is not None), new)


def _left_of(old: Edit, new: Edit) -> Edit | None:
    """An edit without what a later one overrides; None where nothing is left."""
    if not _covers(new, old):
        return old
    overridden = {_overrides(name) for name in new.changes}
    rest = {name: value for name, value in old.changes.items() if _overrides(name) not in overridden}
    return replace(old, changes=rest) if rest else None


class EditsInForce:
    """State: the edits of a plan up to some place, as `with_edit` would have them; each is looked at only by those that
    may override it."""

    def __init__(self) -> None:
        self._edits: dict[int, Edit] = {}  # in their order
        self._count = 0
        self._found: defaultdict[tuple[str, ...], set[int]] = defaultdict(set)  # by `_keys`

    def edits(self) -> tuple[Edit, ...]:
        return tuple(self._edits.values())

    def add(self, new: Edit) -> None:
        overridden = {_overrides(name) for name in new.changes}
        for number in sorted({one for name in overridden for one in self._may_be_covered(name, new)}):
            old = self._edits[number]
            for key in _keys(old):
                self._found[key].discard(number)
            if (left := _left_of(old, new)) is not None:
                self._put(number, left)
            else:
                del self._edits[number]
        self._put(self._count, new)
        self._count += 1

    def _put(self, number: int, edit: Edit) -> None:
        self._edits[number] = edit
        for key in _keys(edit):
            self._found[key].add(number)

    def _may_be_covered(self, name: str, new: Edit) -> set[int]:
        if new.rollup == ALL:
            return self._found[name,]
        if not new.instances:
            return self._found[name, new.rollup]
        return {one for instance in new.instances for one in self._found[name, new.rollup, instance]}


def _keys(edit: Edit) -> Iterator[tuple[str, ...]]:
    """By what it is found: what it sets, of which rollup type, and the first of its instances."""
    for name in map(_overrides, edit.changes):
        yield (name,)
        yield name, edit.rollup
        yield from ((name, edit.rollup, instance) for instance in edit.instances[:1])


def _overrides(name: str) -> str:
    """`iops` and `total_iops` set the same thing."""
    return "iops" if name == TOTAL_IOPS else name


def _covers(new: Edit, old: Edit) -> bool:
    """Whether `new` selects everything that `old` does."""
    if new.rollup == ALL:
        return True
    inside = not new.instances or (bool(old.instances) and set(old.instances) <= set(new.instances))
    return new.rollup == old.rollup and inside


def _edit(doc: EditDoc, path: Path, faults: Faults) -> Edit:
    changes = given(doc.set)
    for one, other in _TWICE.items():
        if one in changes and other in changes:
            faults.add_key((*path, "set", one), f"{other} and {one} {SAME_THING}")
    try:
        rollup, instances = clause(doc.rollup)
    except ValueError as error:
        faults.add((*path, "rollup"), f"rollup: {error}")
        rollup, instances = ALL, ()
    return Edit(rollup, instances, changes, faults.document.key_place(path))


def given(section: Any) -> dict[str, Any]:
    """The parameters that a section states, in the order of the table."""
    return {name: getattr(section, name) for name in type(section).model_fields if name in section.model_fields_set}


def clause(text: str) -> tuple[str, tuple[str, ...]]:
    """`host={h1,h2}`, `host=h1`, `all=all`, `host`: a rollup type and its instances; () for all of them."""
    example = "write for example all=all, host=h1 or host={h1,h2}"
    rollup, equals, which = (part.strip() for part in text.partition("="))
    if not rollup or (equals and not which):
        raise ValueError(f"{text!r} names no instances; {example}")
    if not which.startswith("{"):
        return rollup, (which,) if which else ()
    names = tuple(name.strip() for name in which[1:-1].split(","))
    if not which.endswith("}") or not all(names):
        raise ValueError(f"{text!r} is not a list of instances; {example}")
    return rollup, names


def _passes(go: GoDoc, path: Path, doc: PlanDoc, in_force: tuple[Edit, ...], faults: Faults) -> Iterator[Step]:
    """A step for each combination of the loop's values; one if there is no loop. Their numbers are all 0."""
    check_measures(go, path, faults)
    times, notes = _times(go, path, doc.defaults, faults)
    subinterval_s = times["subinterval_s"]
    warmup, measurement = (round(times[key] / subinterval_s) for key in ("warmup_s", "measure_s"))
    spec = control_spec(
        go, path, doc.defaults, FixedSpec(measurement), warmup, subinterval_s, doc.achieved_iops_tolerance, faults
    )
    check_until(go, path, faults)
    notes = (*notes, *(spec.load.notes if spec.load else ()))
    place = faults.document.key_place(path)
    on_invalid = go.on_invalid or doc.defaults.on_invalid or OnInvalid()
    for mark in (ATTEMPT, ROUND):
        if mark in go.name:
            faults.add((*path, "name"), f"{go.name!r}: names with {mark} are those of repeated steps; choose another")
    some_end = False
    rounds = _rounds(go, path, faults)
    for values in _combinations(go, path, faults):
        name = "+".join([go.name, *(f"{key}={written(key, value)}" for key, value in values.items())])
        for suffix, more in _curve(go, name):
            changes = {**values, **more}
            set_here = {**_volume(go), **changes}
            edits = with_edit(in_force, Edit(ALL, (ALL,), set_here, place)) if set_here else in_force
            control, more_notes = _without_response(spec) if more.get(TOTAL_IOPS) == MAX else (spec, ())
            if ends_by_volume(doc.workloads, edits):
                some_end = True
                control = _until(control, go, path, subinterval_s, faults)
            if _have_bursts(doc.workloads, edits):
                control = replace(control, disturbed=OnDisturbance.KEEP)
            if rounds is not None:
                control = replace(control, rounds=rounds, is_watched=_is_watched(go.rounds, values))
            longest_s = None if control.fixed else _whole(round(control.longest_s, 6), subinterval_s)
            own_times = times if control.warmup else {**times, "warmup_s": 0.0}
            yield Step(
                0, name + suffix, edits, **own_times, loop=changes,
                place=place, notes=(*notes, *more_notes), longest_s=longest_s, control=control, on_invalid=on_invalid,
            )  # fmt: skip
    check_some_end(go, some_end, path, faults)


def _rounds(go: GoDoc, path: Path, faults: Faults) -> RoundsSpec | None:
    """The rounds of a step. A pass that is named is one of the loop's."""
    doc = go.rounds
    if doc is None:
        return None
    at = (*path, "rounds")
    for key in ("iops_curve", "staircase", "find"):
        if getattr(go, key) is not None:
            faults.add_key(at, f"a round has one figure of each pass, and {key} makes several; leave it out")
    metric = doc.metric
    if connector_of(metric):
        faults.add((*at, "metric"), f"metric {metric}: rounds look at figures of the run's own, not of connectors")
        metric = USUAL_METRIC
    watched: Mapping[str, Any] = given(doc.watch) if doc.watch else {}
    for key, value in watched.items():
        looped = getattr(go.loop, key) if go.loop is not None and key in go.loop.model_fields_set else None
        if looped is None:
            faults.add_key((*at, "watch", key), f"{key} is not in the loop of step {go.name!r}: it names no pass")
        elif value not in looped and not faults.unreadable((*path, "loop", key)):
            values = ", ".join(written(key, one) for one in looped)
            faults.add((*at, "watch", key), f"{key}: {written(key, value)} is not among the loop's values: {values}")
    return RoundsSpec(go.name, focus_on(metric), doc.most)


def _is_watched(doc: RoundsDoc | None, values: Mapping[str, Value]) -> bool:
    return doc is not None and (doc.watch is None or given(doc.watch).items() <= values.items())


def once() -> dict[str, Any]:
    """`once: true`, as the parameters that it is short for."""
    return {"until": ONE_PASS, "random_map": True}


def _volume(go: GoDoc) -> dict[str, Any]:
    """The workload parameters that a step's `until` or `once` sets."""
    if go.once:
        return once()
    volume = go.until.volume if go.until else None
    return {} if volume is None else {"until": volume}


def _have_bursts(workloads: Mapping[str, Any], edits: Sequence[Edit]) -> bool:
    """Whether some workloads may be driven in bursts: a subinterval that is set aside would be missing of one."""
    given = [one.bursty for one in workloads.values()] + [edit.changes.get("bursty") for edit in edits]
    return any(bursts not in (None, NO_BURSTS) for bursts in given)


def ends_by_volume(workloads: Mapping[str, Any], edits: Sequence[Edit]) -> bool:
    """Whether some of the workloads, as the plan has them, may be driven and end by volume under these edits."""
    return any(_ends(name, workload, edits) for name, workload in workloads.items())


def _ends(name: str, workload: Any, edits: Sequence[Edit]) -> bool:
    until: Any = ONE_PASS if workload.once else workload.until
    iops: Any = workload.iops
    for edit in edits:
        certain = edit.rollup == ALL or (edit.rollup == "workload" and (not edit.instances or name in edit.instances))
        if not certain and edit.rollup == "workload":
            continue
        changes = {_overrides(key): value for key, value in edit.changes.items()}
        if certain or changes.get("until", NO_END) != NO_END:
            until = changes.get("until", until)
        if certain or changes.get("iops", 0) != 0:
            iops = changes.get("iops", iops)
    return until not in (None, NO_END) and iops != 0


def _until(spec: ControlSpec, go: GoDoc, path: Path, subinterval_s: float, faults: Faults) -> ControlSpec:
    """The control of a step that ends by volume. Nothing else sets its load or completes it; what is measured begins
    with the step, unless that says otherwise."""
    key = "" if spec.load is None else str(spec.load.keys[0])
    is_own = bool(key) and getattr(go, key, None) is not None
    if key and not (is_own and _volume(go)):  # that was found before
        text = f"{key} sets the load, but a workload of step {go.name!r} ends by volume (until)"
        faults.add_key((*path, key) if is_own else ("defaults", key), f"{text}; make it two steps")
    warmup = 0 if go.warmup is None else spec.warmup
    return replace(spec, measurement=until_spec(go, subinterval_s), load=None, warmup=warmup)


def _without_response(spec: ControlSpec) -> tuple[ControlSpec, tuple[str, ...]]:
    """The control of a curve's run at max, where there is no response time for a threshold to be over; and notes."""
    kept = tuple(one for one in spec.slo if not one.focus.needs_pacing)
    dropped = [one.focus.metric for one in spec.slo if one.focus.needs_pacing]
    notes = tuple(f"slo of {metric} is not checked at max: there is no response time" for metric in dropped)
    return replace(spec, slo=kept), notes


def _curve(go: GoDoc, name: str) -> Iterator[tuple[str, dict[str, Value]]]:
    """The steps that `iops_curve` makes of one step: (suffix of the name, settings) each; one without either if there
    is none.
    """
    if go.iops_curve is None:
        yield "", {}
        return
    yield f"+{TOTAL_IOPS}={MAX}", {TOTAL_IOPS: MAX}
    for fraction in go.iops_curve:
        yield f"+{TOTAL_IOPS}={format_fraction(fraction)}", {TOTAL_IOPS: OfStep(fraction, f"{name}+{TOTAL_IOPS}={MAX}")}


def _combinations(go: GoDoc, path: Path, faults: Faults) -> Iterator[Mapping[str, Value]]:
    looped = (*path, "loop")
    if go.loop is None:
        yield {}
        return
    keys = [key for key in faults.document.keys(looped) if key in go.loop.model_fields_set]  # the order of the text
    for one, other in _TWICE.items():
        if one in keys and other in keys:
            faults.add_key((*looped, one), f"{other} and {one} {SAME_THING}")
    choices: list[list[Value]] = []
    for key in keys:
        values = getattr(go.loop, key)
        texts = [written(key, value) for value in values]
        for i, text in enumerate(texts):
            if text in texts[:i]:
                faults.add((*looped, key, i), f"{key}: duplicate value {text} in the loop")
        if not values:
            faults.add((*looped, key), f"{key} is an empty list; a loop needs values")
        choices.append(values)
    if math.prod(map(len, choices)) > MOST_STEPS:
        faults.add(looped, f"the loop has more than {MOST_STEPS:,} combinations")
        return
    for values in product(*choices):
        yield dict(zip(keys, values, strict=True))


def _times(go: GoDoc, path: Path, defaults: TimesDoc, faults: Faults) -> tuple[dict[str, float], tuple[str, ...]]:
    """The step's times in seconds, whole subintervals each; and a note for each that had to be rounded up."""
    wanted = {key: _time(key, go, defaults) for key in TIMES}
    subinterval = wanted["subinterval"]
    if wanted["measure"] <= 0 and _fixed(go, defaults):
        own = go.measure is not None
        faults.add((*path, "measure") if own else ("defaults", "measure"), "measure: a measurement cannot be empty")
    times = {"subinterval_s": subinterval}
    notes = []
    for key in ("warmup", "measure", "cooldown"):
        whole = _whole(wanted[key], subinterval)
        times[f"{key}_s"] = whole
        if whole != wanted[key] and (key != "measure" or _fixed(go, defaults)):
            notes.append(
                f"{key} {format_duration(wanted[key])} becomes {format_duration(whole)}: "
                f"whole subintervals of {format_duration(subinterval)}"
            )
    return times, tuple(notes)


def _time(key: str, go: GoDoc, defaults: TimesDoc) -> float:
    for source in (go, defaults):
        value = getattr(source, key)
        if key == "measure" and value is not None:
            value = value.time
        if value is not None:
            return float(value)
    return TIMES[key]


def _fixed(go: GoDoc, defaults: TimesDoc) -> bool:
    """Whether the time under `measure` is what the measurement lasts."""
    measure = go.measure or (defaults.measure if go.steady is None else None)
    steady = go.steady or (defaults.steady if go.measure is None else None)
    return go.find is None and steady is None and (measure is None or measure.metric is None)


@cache
def _whole(seconds: float, subinterval: float) -> float:
    """`seconds` rounded up to a multiple of `subinterval`, both taken as the decimals that they were written as."""
    unit = Fraction(repr(subinterval))
    return float(math.ceil(Fraction(repr(seconds)) / unit) * unit)
