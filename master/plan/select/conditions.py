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
from collections.abc import Callable
from typing import Final

from ....protocol.payload import Attribute
from ...text.units import parse_bytes
from ..read.places import Predicate
from .attributes import ATTRIBUTES, Holds
from .host_ranges import expand
from .selection import Condition

_COMPARE: Final[dict[str, Callable[[float, float], bool]]] = {
    ">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt,
}  # fmt: skip
_ABSENT: Final = ("none", "null")
_RANGED: Final = ("host", "hostname", "name", "path")  # may be written with ranges
_EXACT: Final = ("path",)  # two names that differ in case are two devices
_FLAGS: Final = {"true": 1, "false": 0, "1": 1, "0": 0}

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
            raise ValueError(f"{wanted!r} runs backwards; the smaller value stands first")
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
    return parse_bytes(text)


def _as_number(value: Attribute | None) -> float | None:
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return None
    return value
