"""`ivypy edit`: parses clauses and settings, and applies them to the parameters of workload instances.

Rule: pure. Every fault is found before anything is sent, and all are reported together. Values go through the plan's
own parsers. `+100`, `-100` and `*1.2` are relative to the value in force. Several clauses select the union of their
instances; `total_iops` is shared over the union.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from ....protocol.parameters import LIVE, MAX, Iops, Parameters
from ...plan.model import TOTAL_IOPS
from ...plan.read.field_types import CHANGES, PARAMETER_FIELDS
from ...plan.select.attributes import ATTRIBUTES
from ...plan.steps import clause
from ...rollup.instances import InstanceKey, RollupInstance, Rollups
from ...rollup.parameters_in_force import text
from ...text.mixes import reading, resized
from ...text.places import in_bytes
from ...text.plan_parameters import OfStep, Value
from ...text.suggestions import SAME, did_you_mean, listed, suggestion
from ...text.units import format_bytes, parse_fraction
from ..setup.baseline_step import Measured, equal, of_step, shares
from ..setup.placement import Placement
from ..setup.resolve_settings import NotMeasured
from .edit_types import EditRefused

EDITABLE: Final = (*sorted(LIVE - {"operations"}), TOTAL_IOPS)
RELATIVE: Final = re.compile(r"([-+*])\s*(\S.*)")
_FACTOR: Final = re.compile(r"\d+(\.\d*)?|\.\d+")
MOST_SAID: Final = 5  # pairs of values that are spelled out


@dataclass(frozen=True, slots=True)
class Relative:
    sign: str  # + - *
    amount: float

    def of(self, present: float) -> float:
        """Raises ValueError where that is no number any more."""
        value = present * self.amount if self.sign == "*" else present + self.amount * (-1 if self.sign == "-" else 1)
        return float(f"{_finite(value):.12g}")  # 100 and a tenth are 110


Change = Value | Relative


@dataclass(frozen=True, slots=True)
class LiveEdit:
    """One edit, parse_edit."""

    words: str  # as it was written
    selected: tuple[RollupInstance, ...]  # the union; at least one
    changes: Mapping[str, Change]  # of EDITABLE; at least one


def parse_edit(words: Sequence[str], rollups: Rollups) -> LiveEdit:
    """Read `host={h1,h2} iops=5000`. Raises EditRefused with every fault."""
    faults: list[str] = []
    selected: dict[int, RollupInstance] = {}
    changes: dict[str, Change] = {}
    types = [kind.name for kind in rollups.types]
    named = False
    for word in words:
        name, equals, value = (part.strip() for part in word.partition("="))
        try:
            if equals and name in CHANGES:
                if name in changes:
                    raise ValueError(f"{name} is given twice; remove one")
                changes[name] = _change(name, value)
            elif name in types:
                named = True
                selected |= {instance.row: instance for instance in instances_of(word, rollups)}
            else:
                named |= name not in CHANGES
                raise ValueError(_unknown(word, name, types))
        except EditRefused as refused:
            faults += refused.reasons
        except ValueError as error:
            faults.append(str(error))
    if "iops" in changes and TOTAL_IOPS in changes:
        faults.append("iops and total_iops set the same thing; remove one")
    if not changes and not faults:
        faults.append("the edit has no setting; add one, for example iops=5000 or fraction_read=50%")
    if not named:
        faults.append("the edit has no clause; name instances, for example all=all or 'host={h1,h2}'")
    if faults:
        raise EditRefused(faults)
    return LiveEdit(" ".join(words), tuple(selected.values()), changes)


def _shown(name: str, parameters: Parameters) -> str:
    value = getattr(parameters, name)
    if name == "blocksize":
        return format_bytes(value)
    if name == "range" and value != (0, 0):
        return "..".join(map(format_bytes, value))
    return text(value)


def _unknown(word: str, name: str, types: Sequence[str]) -> str:
    if name in CHANGES:
        return f"{word!r} has no value; write for example {name}=..."
    what = f"{name!r} is neither a setting that can change now nor a rollup type of the plan"
    if name in ATTRIBUTES:
        return f"{what}; add it to the plan: rollups: [ {name} ]"
    meant = SAME[name] if SAME.get(name) in EDITABLE else name
    if asked := did_you_mean(meant, [*EDITABLE, *types]):
        return what + asked
    return f"{what}; settings are {listed(list(EDITABLE))}, rollup types {listed(list(types))}"


def instances_of(word: str, rollups: Rollups) -> Sequence[RollupInstance]:
    """The rollup instances that one clause, of a rollup type that there is, names. Raises ValueError, EditRefused."""
    name, instances = clause(word)
    kind = rollups.type(name)
    known = [instance.name for instance in kind.instances]
    unknown = [instance for instance in instances if instance not in known]
    if unknown:
        raise EditRefused(f"rollup {name} has no instance {one!r}{suggestion(one, known)}" for one in unknown)
    return [instance for instance in kind.instances if not instances or instance.name in instances]


def _change(name: str, value: str) -> Change:
    if name not in EDITABLE:
        live = listed(list(EDITABLE))
        raise ValueError(f"{name} cannot change while a step runs ({live} can); give it in the plan, before a step")
    relative = RELATIVE.fullmatch(value)
    try:
        if relative is not None and name == "range":
            raise ValueError(f"{value!r} is no place in a LUN; write both, for example 0%..50%")
        if relative is None:
            change: Change = PARAMETER_FIELDS[name].read(value)
            return _finite(change) if isinstance(change, float) else change
        return _relative(name, relative[1], relative[2])
    except (ValueError, ArithmeticError) as error:
        raise ValueError(f"{name}: {error}") from None


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError("the value is larger than any number that can be set")
    return value


def _relative(name: str, sign: str, value: str) -> Relative:
    """`+10%` is a tenth more, but of `fraction_read`, whose values are percentages: 10 % of all I/Os more."""
    if sign == "*":
        return Relative(sign, _finite(factor_of(value)))
    if name != "fraction_read" and value.endswith("%"):
        return Relative("*", Relative(sign, parse_fraction(value)).of(1.0))
    amount = PARAMETER_FIELDS[name].read(value)
    if not isinstance(amount, (int, float)):
        raise ValueError(f"'{sign}{value}' is not a number to add; write for example {sign}100")
    return Relative(sign, _finite(float(amount)))


def factor_of(value: str) -> float:
    """`1.2` or `120%`. Raises ValueError."""
    if value.endswith("%"):
        return parse_fraction(value)
    if not _FACTOR.fullmatch(value):
        raise ValueError(f"'*{value}' is not a factor; write for example *1.2")
    return float(value)


def is_relative(value: str) -> bool:
    return RELATIVE.fullmatch(value.strip()) is not None


def apply_edit(
    edit: LiveEdit, present: Mapping[InstanceKey, Parameters], measured: Measured, placement: Placement
) -> dict[InstanceKey, Parameters]:
    """The parameters of the instances that `edit` selects, after it. Raises EditRefused."""
    members = {(member.host, member.number): member for one in edit.selected for member in one.members}
    changed = {key: present[key] for key in members}
    try:
        for name in ("fraction_read", "maxtags", "blocksize"):
            if name in edit.changes:
                _number(changed, name, edit.changes[name])
        if "range" in edit.changes:  # behind blocksize: in whole blocks
            _range(changed, edit.changes["range"], placement)
        for name in _APPLY.keys() & edit.changes.keys():
            _APPLY[name](changed, edit.changes[name], edit.selected, measured)
    except (NotMeasured, ValueError, ArithmeticError) as error:
        raise EditRefused([str(error)]) from None
    return changed


def _number(changed: dict[InstanceKey, Parameters], name: str, change: Any) -> None:
    """A setting whose value is a number; where it is a count or a size, what is worked out is rounded."""
    for key, parameters in changed.items():
        value = change.of(getattr(parameters, name)) if isinstance(change, Relative) else change
        # Decimals such as 70% + 10% are exact for people, and so they are here.
        if name == "fraction_read":
            changed[key] = reading(parameters, round(value, 12))
        elif name == "blocksize":
            changed[key] = resized(parameters, round(value))
        else:
            changed[key] = replace(parameters, maxtags=round(value))


def _range(found: dict[InstanceKey, Parameters], span: Any, placement: Placement) -> None:
    for key, one in found.items():
        found[key] = replace(one, range=in_bytes(span, placement.lun_of[key].lun.size, one.blocksize))


def _iops(
    changed: dict[InstanceKey, Parameters], change: Any, selected: Sequence[RollupInstance], measured: Measured
) -> None:
    if isinstance(change, OfStep):
        for rollup in selected:
            _set(changed, of_step(change, rollup, measured, equal))
        return
    numbers = _numbers("iops", changed) if isinstance(change, Relative) else {}
    _set(changed, {key: change.of(numbers[key]) if key in numbers else change for key in changed})


def _total(
    changed: dict[InstanceKey, Parameters], change: Any, selected: Sequence[RollupInstance], measured: Measured
) -> None:
    skews = {key: one.skew for key, one in changed.items()}
    if isinstance(change, OfStep):
        for rollup in selected:
            _set(changed, of_step(change, rollup, measured, partial(shares, skews=skews)))
        return
    if isinstance(change, Relative):
        change = change.of(sum(_numbers(TOTAL_IOPS, changed).values()))
    members = [member for rollup in selected for member in rollup.members]
    _set(changed, {key: MAX if change == MAX else change * share for key, share in shares(members, skews).items()})


_Apply = Callable[[dict[InstanceKey, Parameters], Any, Sequence[RollupInstance], Measured], None]
_APPLY: Final[Mapping[str, _Apply]] = {"iops": _iops, TOTAL_IOPS: _total}  # never both


def _set(found: dict[InstanceKey, Parameters], iops: Mapping[InstanceKey, Iops]) -> None:
    for key, value in iops.items():
        found[key] = replace(found[key], iops=value)


def _numbers(name: str, selected: Mapping[InstanceKey, Parameters]) -> dict[InstanceKey, float]:
    numbers = {key: float(one.iops) for key, one in selected.items() if one.iops != MAX}
    if len(numbers) < len(selected):
        some = f"{len(selected) - len(numbers)} of the {len(selected)} instances" if numbers else "what is selected"
        raise ValueError(f"{name}: + - and * need numbers, and iops is max for {some}; give an absolute value")
    return numbers


def describe_change(before: Mapping[InstanceKey, Parameters], after: Mapping[InstanceKey, Parameters]) -> str:
    """Describe a change for people: `iops 1000 -> 5000 (2 instances)`."""
    parts = []
    for name in sorted(LIVE):
        pairs = Counter((_shown(name, before[key]), _shown(name, one)) for key, one in after.items())
        changed = [(old, new, n) for (old, new), n in pairs.most_common() if old != new]
        parts += [f"{name} {old} -> {new} ({n} instance{'s' * (n > 1)})" for old, new, n in changed[:MOST_SAID]]
        parts += [f"and {len(changed) - MOST_SAID} more changes of {name}"] if len(changed) > MOST_SAID else []
    return ", ".join(parts)
