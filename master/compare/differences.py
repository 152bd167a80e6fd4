"""Finds what differs between two sides besides their figures: plan, parameters, hosts, kernel, firmware, settings.

Rule: pure. A fact differs where the values that it has over the runs of one side are not those of the other, so
that seeds 1, 2, 3 on both sides are no difference.
"""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ..results.finished_run import FinishedRun
from ..rollup.instances import ALL
from ..text.suggestions import listed
from .load import LOAD, RATE

MOST_PLAN_LINES: Final = 20
_MOST_NAMED: Final = 3  # hosts or LUNs
_MOST_VALUES: Final = 3  # of a fact that is a number
_NOT_THERE: Final = "-"
_NOT_GIVEN: Final = "not given"  # of a parameter: as in the plan
_RUN: Final = "run"
_HOSTS: Final = "hosts"
_LUNS: Final = "LUNs"
_PRESENT: Final = "in the run"
_BUNDLE: Final = 12  # digits of a hash
_OF_HOST: Final = frozenset({"host", "oom_score_adj"})  # that are no fact about the measurement
_OF_LUN: Final = frozenset({"host", "path", "hostname", "notices"})
_SETTINGS: Final = (*LOAD, "spread")

Facts = dict[tuple[str, str], dict[str, str]]  # (where, fact): the value by who has it


@dataclass(frozen=True, slots=True)
class Difference:
    """`fact` is `a` on one side and `b` on the other; several values of a side are joined with " | "."""

    where: str  # "run", "hosts", "LUNs", "step NAME"
    fact: str
    a: str
    b: str
    who: str = ""  # of several hosts or LUNs, those with these values

    def __str__(self) -> str:
        return f"{self.where}: {self.fact}: {self.a} -> {self.b}" + (f" ({self.who})" if self.who else "")


def differences(a: Sequence[FinishedRun], b: Sequence[FinishedRun]) -> list[Difference]:
    """In the order: run, hosts, LUNs, settings of the steps that both sides have."""
    differing: list[Difference] = []
    order = [_RUN, _HOSTS, _LUNS]  # then the steps
    sides = _facts(a), _facts(b)
    for fact in dict.fromkeys([*sides[0], *sides[1]]):
        value, other = (side.get(fact, {}) for side in sides)
        if fact[0].startswith("step ") and not (value and other):
            continue  # a step of one side alone is not compared at all
        differing += _of_fact(*fact, value, other)
    return sorted(differing, key=lambda one: order.index(one.where) if one.where in order else len(order))


def plan_lines(a: Sequence[FinishedRun], b: Sequence[FinishedRun]) -> list[str]:
    """How the plans differ, as lines with - and +; none where each side ran the same ones. Comments do not count."""
    plans, others = ({_without_comments(run.plan) for run in side} for side in (a, b))
    if plans == others:
        return []
    first, second = min(plans), min(others)
    lines = [line for line in difflib.unified_diff(first, second, n=0, lineterm="")][2:]
    lines = [line for line in lines if not line.startswith("@@")]
    rest = len(lines) - MOST_PLAN_LINES
    return [*lines[:MOST_PLAN_LINES], *([f"and {rest} more lines: see plan.yaml of the runs"] if rest > 0 else [])]


def _without_comments(plan: str) -> tuple[str, ...]:
    return tuple(line.rstrip() for line in plan.splitlines() if line.strip() and not line.lstrip().startswith("#"))


def _of_fact(where: str, fact: str, a: Mapping[str, str], b: Mapping[str, str]) -> Iterator[Difference]:
    """Grouped by the pair of values. That a host or LUN is on one side alone is said once, not for each fact."""
    by_values: dict[tuple[str, str], list[str]] = {}
    for who in dict.fromkeys([*a, *b]):
        missing = _NOT_GIVEN if where == _RUN else _NOT_THERE
        values = a.get(who, missing), b.get(who, missing)
        is_alone = who not in a or who not in b
        if values[0] != values[1] and not (is_alone and where in (_HOSTS, _LUNS) and fact != _PRESENT):
            by_values.setdefault(values, []).append(who)
    for (one, other), names in by_values.items():
        yield Difference(where, fact, one, other, listed(names, _MOST_NAMED) if names != [""] else "")


def _facts(runs: Sequence[FinishedRun]) -> Facts:
    """The values of each fact over the runs of a side, by who has it ("" of the run as a whole)."""
    values: dict[tuple[str, str], dict[str, list[str]]] = {}
    for run in runs:
        for where, fact, who, value in _of_run(run):
            values.setdefault((where, fact), {}).setdefault(who, []).append(value)
    return {fact: {who: _joined(seen) for who, seen in by_who.items()} for fact, by_who in values.items()}


def _joined(values: Sequence[str]) -> str:
    """Each value once; many numbers as their range."""
    different = sorted({value or _NOT_THERE for value in values})
    if len(different) > _MOST_VALUES:
        try:
            numbers = sorted(map(float, different))
            return f"{numbers[0]:g} to {numbers[-1]:g}"
        except ValueError:
            pass
    return " | ".join(different)


def _of_run(run: FinishedRun) -> Iterator[tuple[str, str, str, str]]:
    """(where, fact, who, value)"""
    yield _RUN, "version of ivypy", "", str(run.record.get("version", ""))
    for name, value in run.defines.items():
        yield _RUN, f"parameter {name}", "", value
    for host, backend in dict(run.record.get("backends") or {}).items():
        yield _HOSTS, "backend", host, str(backend)
    for host in run.hosts:
        yield _HOSTS, _PRESENT, host["host"], "yes"
        for fact, value in host.items():
            if fact not in _OF_HOST:
                yield _HOSTS, fact, host["host"], value[:_BUNDLE] if fact == "bundle" else value
    for lun in run.luns:
        who = f"{lun['host']}:{lun['path']}"
        yield _LUNS, _PRESENT, who, "yes"
        for fact, value in lun.items():
            if fact not in _OF_LUN:
                yield _LUNS, fact, who, value
    for key, row in run.rows.items():
        if key.rollup_type == ALL:
            is_search = row.number in run.searches  # whose load is what it found
            for fact in _SETTINGS:
                if not (is_search and fact == RATE):
                    yield f"step {key.step}", fact, "", row.cells.get(fact, "")
