"""The conditions of a `select`, from text.

    vendor: HITACHI                 equal, without case; a path with case
    model: "SAM*"                   * any text, ? one character
    size: ">= 100GiB"               >, >=, <, <=; sizes with their unit
    size: 100GiB..200GiB            from .. to, both included
    host: "lab[01-04]"              ranges, for host, hostname, name and path
    partition_of: none              the LUN has no such attribute
    transport: not usb              the opposite of any of these
    vendor: [HITACHI, IBM]          one of these; of several `not`, all

Rule: how a condition is read follows from what the attribute holds; of an attribute that is not in the table
(a plan's own), from what the condition looks like.
"""

import operator
import re
from collections.abc import Callable, Collection
from typing import Any, Final

from ....protocol.payload import Attribute
from ...text.suggestions import suggestion
from ...text.units import parse_capacity
from ..read.field_types import kind_of
from ..read.yaml_positions import Faults, Path, Predicate, sentence
from .attributes import ATTRIBUTES, Holds
from .host_ranges import expand
from .selection import Condition, Select

_COMPARE: Final[dict[str, Callable[[float, float], bool]]] = {
    ">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt,
}  # fmt: skip
_ABSENT: Final = ("none", "null")
_RANGED: Final = ("host", "hostname", "name", "path")  # may be written with ranges
_EXACT: Final = ("path",)  # two names that differ in case are two devices
_FLAGS: Final = {"true": 1, "false": 0, "1": 1, "0": 0}
_INSTEAD: Final = {
    "workload": "a select chooses LUNs, before workloads are placed on them",
    "lun": "name its host and path",
    "all": "leave the select out to have all",
}

Test = Callable[[Attribute | None], bool]


def condition(attribute: str, text: str) -> Condition:
    """Raises ValueError with the remedy."""
    stripped = text.strip()
    negation, wanted = re.fullmatch(r"(not\b)?\s*(.*)", stripped, re.DOTALL).groups()  # type: ignore[union-attr]
    if not wanted:
        raise ValueError(f"{text!r} does not say which value")
    return Condition(stripped, _test(attribute, wanted), negated=negation is not None)


def _test(attribute: str, wanted: str) -> Test:
    about = ATTRIBUTES.get(attribute)
    holds = about.holds if about else None
    if wanted.lower() in _ABSENT and attribute != "scheduler":  # "none" is a scheduler's name
        return lambda value: value is None or value == ""
    if compared := re.match(r"(>=|<=|>|<)\s*(.*)", wanted):
        compare, bound = _COMPARE[compared[1]], _number(compared[2], holds)
        return lambda value: (number := _as_number(value)) is not None and compare(number, bound)
    if holds is not Holds.TEXT and (span := re.fullmatch(r"(.+?)\s*\.\.\s*(.+)", wanted)):
        low, high = (_number(side, holds) for side in span.groups())
        if low > high:
            raise ValueError(f"{wanted!r} runs backwards; write the smaller value first")
        return lambda value: (number := _as_number(value)) is not None and low <= number <= high
    if holds is Holds.FLAG:
        if wanted.lower() not in _FLAGS:
            raise ValueError(f"{wanted!r} is neither true nor false")
        flag = _FLAGS[wanted.lower()]
        return lambda value: value is not None and _as_number(value) == flag
    if holds in (Holds.BYTES, Holds.NUMBER):
        exact = _number(wanted, holds)
        return lambda value: _as_number(value) == exact
    if attribute in _RANGED and "[" in wanted:
        tests = [_text_test(name, attribute) for name in expand(wanted)]
        return lambda value: any(test(value) for test in tests)
    return _text_test(wanted, attribute)


def _text_test(wanted: str, attribute: str) -> Test:
    exact = attribute in _EXACT
    if "*" in wanted or "?" in wanted:
        inner = "".join({"*": ".*", "?": "."}.get(c, re.escape(c)) for c in wanted)
        pattern = re.compile(inner, re.DOTALL if exact else re.IGNORECASE | re.DOTALL)
        return lambda value: value is not None and pattern.fullmatch(str(value)) is not None
    if exact:
        return lambda value: value == wanted
    folded = wanted.casefold()
    return lambda value: value is not None and str(value).casefold() == folded


def _number(text: str, holds: Holds | None) -> float:
    if holds in (Holds.TEXT, Holds.FLAG):
        raise Predicate(f"cannot be compared with {text!r}, since it is not a number; name its value")
    if holds is not Holds.BYTES and re.fullmatch(r"[+-]?\d+(\.\d+)?", text.strip()):
        return float(text)
    if holds is Holds.NUMBER:
        raise ValueError(f"{text!r} is not a number")
    return parse_capacity(text)


def _as_number(value: Attribute | None) -> float | None:
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return None
    return value


def read_select(raw: Any, path: Path, faults: Faults, own: Collection[str]) -> Select | None:
    """A mapping of attributes to conditions, or a list of such; None where there was a fault.

    `own` are the attributes which the plan itself defines.
    """
    clauses = raw if isinstance(raw, list) else [raw]
    if not clauses or not all(isinstance(clause, dict) and clause for clause in clauses):
        faults.add(path, f"{path[-1]} is {kind_of(raw) if raw else 'empty'}; it needs attributes, like vendor: HITACHI")
        return None
    known = len(faults.collected)
    read = tuple(
        _clause(clause, (*path, i) if isinstance(raw, list) else path, faults, own) for i, clause in enumerate(clauses)
    )
    return Select(read) if len(faults.collected) == known else None


def _clause(raw: dict[str, Any], path: Path, faults: Faults, own: Collection[str]) -> dict[str, tuple[Condition, ...]]:
    clause = {}
    for name, wanted in raw.items():
        about = ATTRIBUTES.get(name)
        if about is not None and not about.selectable:
            faults.add_key((*path, name), f"nothing can be selected by {name!r}; {_INSTEAD[name]}")
        elif about is None and name not in own:
            choices = [a for a, row in ATTRIBUTES.items() if row.selectable] + list(own)
            faults.add_key((*path, name), f"LUNs have no attribute {name!r}{suggestion(name, choices)}")
        else:
            clause[name] = tuple(_conditions(name, wanted, (*path, name), faults))
    return clause


def _conditions(name: str, wanted: Any, path: Path, faults: Faults) -> list[Condition]:
    conditions = []
    if wanted == []:
        faults.add(path, f"{name} is an empty list; it needs at least one condition")
    for i, text in enumerate(wanted if isinstance(wanted, list) else [wanted]):
        place = (*path, i) if isinstance(wanted, list) else path
        if not isinstance(text, str):
            faults.add(place, f"{name} is {kind_of(text)}; it needs a value, a list of values, or a comparison")
            continue
        try:
            conditions.append(condition(name, text))
        except ValueError as error:
            faults.add(place, sentence(name, error))
    return conditions
