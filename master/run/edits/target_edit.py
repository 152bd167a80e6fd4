"""`ivypy edit ... target=2ms`: sets a new target for the feedback control of a running step.

Rule: pure. Every fault is found before anything changes, and all are reported together. No host gets a command: control
moves the load from the next subinterval on. The clauses must select whole instances of the controlled rollup type,
because a part of an instance has no target of its own.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ...control.control_state import ControlState
from ...control.steer import steered_state
from ...plan.read.field_types import CHANGES
from ...rollup.instances import RollupInstance, Rollups
from ...text.metric_amounts import MetricUnit, format_amount, parse_amount
from ...text.suggestions import suggestion
from .edit_parser import RELATIVE, factor_of, instances_of
from .edit_types import EditRefused

TARGET: Final = "target"


@dataclass(frozen=True, slots=True)
class NewTarget:
    """The targets of control's instances, by name, and what is different, for people."""

    targets: Mapping[str, float]
    what: str


def names_target(words: Sequence[str], rollups: Rollups) -> bool:
    """Whether an edit is of a target; a rollup type of that name would be a clause."""
    return any(_is_target(word) for word in words) and all(kind.name != TARGET for kind in rollups.types)


def _is_target(word: str) -> bool:
    return word.partition("=")[0].strip() == TARGET


def new_target(words: Sequence[str], rollups: Rollups, state: ControlState) -> NewTarget:
    """Parse the target that the edit sets for the step's control. Raises EditRefused with every fault."""
    steered = steered_state(state)
    if steered is None:
        raise EditRefused(["the step has no control: pid, so nothing in it has a target"])
    selected, amount = _read(words, rollups)
    focus, present = steered.steer.focus, steered.steer.targets
    names = _whole(rollups.type(focus.rollup).instances, selected)
    try:
        targets = {name: _amount(focus.unit, amount, present[name]) for name in names}
    except ValueError as error:
        raise EditRefused([str(error)]) from None
    if faults := steered.steer.refuses(targets):
        raise EditRefused(faults)
    changed = {name: target for name, target in targets.items() if target != present[name]}
    pairs = [
        f"target of {focus.rollup}={name} {format_amount(focus.unit, present[name])} -> "
        f"{format_amount(focus.unit, target)}"
        for name, target in changed.items()
    ]
    return NewTarget(changed, ", ".join(pairs))


def _read(words: Sequence[str], rollups: Rollups) -> tuple[list[RollupInstance], str]:
    """(what the clauses name, the amount). Raises EditRefused."""
    amounts = [word.partition("=")[2].strip() for word in words if _is_target(word)]
    faults = [f"target is given {len(amounts)} times; remove all but one"] if len(amounts) > 1 else []
    selected: dict[int, RollupInstance] = {}
    types = [kind.name for kind in rollups.types]
    for word in words:
        name = word.partition("=")[0].strip()
        if name in CHANGES:
            faults.append(f"{name} and target are in one edit; use two: a target is not a setting of hosts")
        elif name not in types and not _is_target(word):
            faults.append(f"{name!r} is no rollup type of the plan{suggestion(name, types)}")
        elif name in types:
            try:
                selected |= {one.row: one for one in instances_of(word, rollups)}
            except EditRefused as refused:
                faults += refused.reasons
            except ValueError as error:
                faults.append(str(error))
    if len(words) == len(amounts):
        faults.append("the edit has no clause; name instances, for example all=all or 'host={h1,h2}'")
    if faults:
        raise EditRefused(faults)
    return list(selected.values()), amounts[0]


def _whole(instances: Sequence[RollupInstance], selected: Sequence[RollupInstance]) -> list[str]:
    """The names of `instances` that are selected; EditRefused where one is selected in part."""
    named = {(member.host, member.number) for instance in selected for member in instance.members}
    whole: list[RollupInstance] = []
    parts: list[RollupInstance] = []
    for instance in instances:
        inside = sum((member.host, member.number) in named for member in instance.members)
        (whole if inside == len(instance.members) else parts if inside else []).append(instance)
    if parts:
        raise EditRefused(f"{part} has one target; the edit names only a part of it" for part in parts)
    return [instance.name for instance in whole]


def _amount(unit: MetricUnit, text: str, present: float) -> float:
    """Absolute, or relative to what is in force."""
    relative = RELATIVE.fullmatch(text)
    try:
        if relative is None:
            amount = parse_amount(unit, text)
        elif relative[1] == "*":
            amount = present * factor_of(relative[2])
        else:
            amount = present + parse_amount(unit, relative[2]) * (-1 if relative[1] == "-" else 1)
    except (ValueError, ArithmeticError) as error:
        raise ValueError(f"target: {error}") from None
    if not math.isfinite(amount):
        raise ValueError("target: the value is larger than any number that can be set")
    if amount <= 0:
        raise ValueError(f"target is {format_amount(unit, amount)}; it must be above 0")
    return amount
