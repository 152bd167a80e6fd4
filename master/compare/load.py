"""Whether runs had the same load in a step: what was asked of the storage.

Rule: the load is the rate, block size, order, mix, queue depth, range, think time, what is dropped, cached and
flushed, and its end. All else is the testbed, which is what a comparison is about: hosts, devices, kernels, backends,
threads (`spread`), seeds. A rate that follows from an earlier step or is found by control, and a range in percent,
differ by nature from run to run: of these the plan's own words are compared.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from ...protocol.parameters import MAX
from ..control.profile import ProfileSpec
from ..errors import PlanError
from ..plan.attempts import step_of_plan
from ..results.finished_run import FinishedRun, Key, StepRow
from ..rollup.instances import ALL
from ..rollup.parameters_in_force import PROFILE
from ..text.places import BEGINNING, WHOLE, is_in_percent
from ..text.plan_parameters import NO_END, OfStep, Value
from ..text.units import format_duration
from ..verdicts import Reason, Scope, Verdict

if TYPE_CHECKING:
    from ..plan.model import Plan, Step

OTHER_LOAD: Final = "not the same load"
RATE: Final = "iops_setting"
RANGE: Final = "range"
UNTIL: Final = "until"
HOT_ZONES: Final = "hot_zones"
WORKING_SET: Final = "working_set"
START: Final = "start"
RELATIVE: Final = (RATE, RANGE, UNTIL, HOT_ZONES, WORKING_SET, START)  # may be shares: of a step, or of the LUN
LOAD: Final = (
    RATE, "blocksize", "iosequencer", "fraction_read", "maxtags", RANGE, "think_time", "drop_after",
    "operations", "align", "sequential", "streams", "cursors",
    "zipf", "pareto", "normal", HOT_ZONES, WORKING_SET, "scattered", START, "skew",
    "start_after", "bursty", "random_map", UNTIL, "direct", "drop_cache", "sync", "flush", "end_fsync",
)  # fmt: skip
MISSING_HOSTS: Final = frozenset({Reason.HOST_LOST.word, Reason.HOST_LATE.word, Reason.HOST_MISSING.word})
_ONE_OF_SEVERAL: Final = re.compile(r"(.+)\((\d+)/([1-9]\d*)\)")  # 4096(2/3)
_NOT_AS_PLANNED: Final = MISSING_HOSTS | {Reason.EDITED.word}

_PLACES: Final[Mapping[str, Any]] = {HOT_ZONES: (), WORKING_SET: BEGINNING, START: BEGINNING}
# What runs of versions without these did, and did not write.
_ADDED: Final[Mapping[str, str]] = {
    **dict.fromkeys(("zipf", "pareto", "normal", WORKING_SET, START, "skew", "start_after", "sequential"), "0"),
    "operations": "plain", HOT_ZONES: "none", "bursty": "never",
}  # fmt: skip
Load = tuple[FinishedRun, StepRow]  # a run, and its row of the step
Relative = Mapping[str, str]  # those of RELATIVE in the plan's words, where the run alone knows their numbers


def other_loads(run: FinishedRun, newest: Sequence[FinishedRun]) -> dict[str, str]:
    """By the step's name: how its load differs from the newest run that has the step; steps that differ alone."""
    differing = {}
    for key, row in run.rows.items():
        reference = _reference(key, newest) if key.rollup_type == ALL else None
        if reference is None or reference is run:
            continue
        if lines := _differing(key, (run, row), (reference, reference.rows[key])):
            differing[key.step] = "; ".join(lines)
    return differing


def _reference(key: Key, newest: Sequence[FinishedRun]) -> FinishedRun | None:
    """The newest run whose figures of the step count, and whose load nobody changed; else the newest that has it."""
    having = [run for run in reversed(newest) if key in run.rows]
    return next((run for run in having if _is_as_planned(run.rows[key])), having[0] if having else None)


def _is_as_planned(row: StepRow) -> bool:
    is_usable = any(row.verdict(scope) is not Verdict.INVALID for scope in Scope)
    return is_usable and row.hosts_in >= row.hosts_of and not row.reasons & _NOT_AS_PLANNED


def _differing(key: Key, before: Load, after: Load) -> list[str]:
    """ "iops_setting: 200 -> 150": a line for each setting."""
    lines = []
    for name in LOAD:
        values = [_value(name, row) for _, row in (before, after)]
        if name in _ADDED and len({*values} - {None}) == 1:
            values = [_ADDED[name] if value is None else value for value in values]
        if None in values:
            continue
        if name == RATE and (profiles := _other_profiles(key.step, before, after)):
            lines.append(f"{name}: {' -> '.join(profiles)}")
            continue
        if _shares(values[0]) == _shares(values[1]):
            if name != RATE or not _has_other_parts(before[1], after[1]):
                continue
            values = [row.cells["iops"] for _, row in (before, after)]
        if name in RELATIVE:
            words = [_relative(run, key.step).get(name, "") for run, _ in (before, after)]
            if words[0] == words[1] and (words[0] or before[1].number in before[0].searches):
                continue
            values = [in_words or value for in_words, value in zip(words, values, strict=True)]
        lines.append(f"{name}: {values[0]} -> {values[1]}")
    return lines


def _other_profiles(step: str, before: Load, after: Load) -> list[str]:
    """The profiles of a rate that changes, where they are not the same; none where neither has one."""
    if PROFILE not in [row.cells.get("iops") for _, row in (before, after)]:
        return []
    of_both = [_profile(run, step) or row.cells.get(RATE, "") for run, row in (before, after)]
    return of_both if of_both[0] != of_both[1] else []


def _has_other_parts(before: StepRow, after: StepRow) -> bool:
    """Whether the instances share the same total otherwise."""
    parts = [_parts(row) for row in (before, after)]
    return None not in parts and parts[0] != parts[1]


def _value(name: str, row: StepRow) -> str | None:
    """None where the run's version did not write it."""
    cell = row.cells.get(name)
    return row.cells.get("iops") if name == RATE and cell == "" else cell  # no total: some instances are at max


def _shares(cell: str | None) -> Mapping[str, Fraction]:
    """By value, which share of the workload instances has it: their order and number are no load."""
    shares: dict[str, Fraction] = {}
    for word in (cell or "").split():
        several = _ONE_OF_SEVERAL.fullmatch(word)
        value, share = (several[1], Fraction(int(several[2]), int(several[3]))) if several else (word, Fraction(1))
        shares[value] = shares.get(value, Fraction(0)) + share
    return shares


def _parts(row: StepRow) -> Mapping[float, Fraction] | None:
    """Of instances that all have a rate, by its ratio to their mean, the share that has it; None where it is not
    known."""
    try:
        rates = {float(rate): share for rate, share in _shares(row.cells.get("iops")).items()}
    except ValueError:  # some are at max, or too many differ
        return None
    mean = sum(rate * share for rate, share in rates.items())
    return {round(rate / mean, 6): share for rate, share in rates.items()} if mean else None


def _relative(run: FinishedRun, name: str) -> Relative:
    """Of a step of the run's plan; nothing where the plan cannot be read, as of another version."""
    plan, step = _planned(run, name)
    if plan is None or step is None:
        return {}
    words = {RATE: _rate(plan, step), RANGE: _range(plan, step), UNTIL: _until(plan, step)}
    words |= {name: _places(plan, step, name, usual) for name, usual in _PLACES.items()}
    return {setting: said for setting, said in words.items() if said}


def _planned(run: FinishedRun, name: str) -> "tuple[Plan | None, Step | None]":
    """The run's plan and a step of it, where they can be read."""
    hosts = ",".join(dict.fromkeys(row["host"] for row in run.hosts)) or "local"
    plan = _plan(run.plan, tuple(run.defines.items()), hosts)
    return plan, next((one for one in plan.steps if one.name == step_of_plan(name)), None) if plan else None


@lru_cache(maxsize=32)
def _plan(text: str, defines: tuple[tuple[str, str], ...], hosts: str) -> "Plan | None":
    """`hosts`: those of the run, where the plan's own say nothing here, as those of a Slurm job do."""
    from ..plan.load import AS_IT_IS, Instead, read  # takes 0.3 s, which runs of the same load need not wait for

    for instead in (AS_IT_IS, Instead(hosts=hosts)):
        with suppress(PlanError):
            return read(text, "plan.yaml", dict(defines), instead)
    return None


def _rate(plan: "Plan", step: "Step") -> str:
    """Of a rate that the plan does not give as a number: "50% of step max", or how control finds it."""
    if step.control.load is not None:
        return step.control.load.in_words.partition(", ")[0]  # what for; not how exactly and how long
    rates = _settings(plan, step, MAX, "iops", "total_iops")
    return _in_words(rates, len(plan.workloads)) if any(isinstance(value, OfStep) for _, _, value in rates) else ""


def _profile(run: FinishedRun, name: str) -> str:
    """The points of a step's profile, in words; "" where it has none."""
    plan, step = _planned(run, name)
    load = step.control.load if plan and step else None
    if not isinstance(load, ProfileSpec):
        return ""
    return f"profile {', '.join(f'{iops:g} at {format_duration(at_s)}' for at_s, iops in load.points)}"


def _range(plan: "Plan", step: "Step") -> str:
    """Of a range in percent."""
    ranges = _settings(plan, step, WHOLE, RANGE)
    are_relative = any(span != WHOLE and place.bytes is None for _, _, span in ranges for place in span)
    return _in_words(ranges, len(plan.workloads)) if are_relative else ""


def _places(plan: "Plan", step: "Step", name: str, usual: Any) -> str:
    """Of places in percent of the range, and of such in a range of which the same is true."""
    settings = _settings(plan, step, usual, name)
    are_relative = bool(_range(plan, step)) or any(is_in_percent(value) for _, _, value in settings)
    return _in_words(settings, len(plan.workloads)) if settings and are_relative else ""


def _until(plan: "Plan", step: "Step") -> str:
    """Of an end in multiples of the range."""
    volumes = _settings(plan, step, NO_END, UNTIL)
    return _in_words(volumes, len(plan.workloads)) if any(volume.times is not None for _, _, volume in volumes) else ""


def _settings(plan: "Plan", step: "Step", usual: Value, *names: str) -> list[tuple[str, str, Any]]:
    """(where, parameter, value): what workloads begin with, but for the `usual`, and all edits in force."""
    own = [(f"{one.name} ", names[0], getattr(one.parameters, names[0])) for one in plan.workloads]
    edited = [
        (f"{edit.rollup}={','.join(edit.instances)} ", name, value)
        for edit in step.edits
        for name, value in edit.changes.items()
        if name in names
    ]
    return [setting for setting in own if setting[2] != usual] + edited


def _in_words(changes: Sequence[tuple[str, str, Any]], workloads: int) -> str:
    """`workloads`: how many there are; where each has the same value, and no edit another, that stands alone."""
    from ..plan.read.field_types import written

    texts = [(where, written(name, value)) for where, name, value in changes]
    are_alike = len({text for _, text in texts}) == 1 and (len(texts) >= workloads or texts[0][0].startswith(f"{ALL}="))
    return texts[0][1] if are_alike else ", ".join(f"{where}{text}" for where, text in texts)
