"""Amounts of a metric, as people write them: the metric's unit says how.

Rule: microseconds and milliseconds are written as a time, a transfer rate as MiB/s, a percentage with its sign,
everything else as a number. An amount is kept in the unit that the metric's column has. Where an amount is shown beside
its limit, it is rounded to its own side of it: a text does not contradict the verdict that it explains.
"""

from enum import StrEnum
from typing import Final, Literal

from .units import format_duration, format_number, parse_capacity, parse_duration, parse_fraction, parse_rate


class MetricUnit(StrEnum):
    """The unit of a metric's column, as the docs print it."""

    IOS = "I/Os"
    WAITS = "waits"
    PER_S = "1/s"
    MIB_PER_S = "MiB/s"
    KIB = "KiB"
    MS = "ms"
    US = "us"
    PERCENT = "%"
    NONE = ""  # of a column that is no metric: a number alone


LIMIT_DIGITS: Final = 12  # of a limit in words: all that a person writes
_SUFFIXES: Final = {  # of a metric's name
    "_percent": MetricUnit.PERCENT,
    "_us": MetricUnit.US,
    "_ms": MetricUnit.MS,
    "_mib_per_s": MetricUnit.MIB_PER_S,
    "_kib": MetricUnit.KIB,
}
_SCALES: Final = ((1e6, "s"), (1e3, "ms"), (1, "us"))
_MOST_DIGITS: Final = 17  # with so many, different floats are different texts


def unit_by_suffix(name: str) -> MetricUnit:
    """The unit that the end of a metric's name says; NONE where it says none."""
    return next((unit for suffix, unit in _SUFFIXES.items() if name.endswith(suffix)), MetricUnit.NONE)


def parse_amount(unit: MetricUnit, text: str) -> float:
    """`text` in the metric's unit. Raises ValueError with the remedy."""
    match unit:
        case MetricUnit.US:
            return _microseconds(text)
        case MetricUnit.MS:
            return _microseconds(text) / 1e3
        case MetricUnit.MIB_PER_S:
            return _mib_per_s(text)
        case MetricUnit.PERCENT:
            return 100 * parse_fraction(text)
        case _:
            return parse_rate(text)


def parse_limit(unit: MetricUnit, text: str) -> tuple[float, bool]:
    """(a limit on a metric, whether it is in percent of the mean): `2%`, or an amount of the metric. Raises ValueError
    with the remedy.
    """
    relative = text.strip().endswith("%")
    return parse_amount(MetricUnit.PERCENT if relative else unit, text), relative


def format_amount(unit: MetricUnit, amount: float) -> str:
    """The text that `parse_amount` makes `amount` of."""
    if unit is MetricUnit.US:
        return format_duration(round(amount * 1e-6, 15))
    if unit is MetricUnit.MS:
        return format_duration(round(amount * 1e-3, 15))
    return f"{format_number(amount)}{unit if unit in (MetricUnit.MIB_PER_S, MetricUnit.PERCENT) else ''}"


def amount_in_words(unit: MetricUnit, amount: float, digits: int = 6, limit: float | None = None) -> str:
    """An amount for people, rounded: `83.2154 us`, `100 ms`, `412 MiB/s`, `80 %`; others are a number alone.

    With a `limit`, it has as many more digits as show on which side of it the amount is.
    """
    factor, name = 1.0, str(unit) if unit in (MetricUnit.MIB_PER_S, MetricUnit.PERCENT, MetricUnit.MS) else ""
    if unit is MetricUnit.US:
        factor, name = next(scale for scale in _SCALES if abs(amount) >= scale[0] or scale[0] == 1)
    limit = amount if limit is None else limit
    return f"{rounded(amount / factor, limit / factor, digits)}{f' {name}' if name else ''}"


def rounded(number: float, limit: float, digits: int, form: Literal["g", "f", "%"] = "g") -> str:
    """`number` with so many digits ("f", "%": decimals), and as many more as show its side of `limit`."""
    for enough in range(digits, _MOST_DIGITS + 1):
        if (shown := f"{number:.{enough}{form}}") != f"{limit:.{enough}{form}}":
            return shown
    return f"{number:.{digits}{form}}"


def _microseconds(text: str) -> float:
    try:
        float(text)
    except ValueError:
        return parse_duration(text) * 1e6
    if float(text) == 0:
        return 0.0
    raise ValueError(f"{text!r} has no unit; write {text.strip()}us for microseconds")


def _mib_per_s(text: str) -> float:
    size, slash, per = text.strip().partition("/")
    if not slash or per.strip() != "s" or not size.strip()[-1:].isalpha():
        raise ValueError(f"{text!r} is not a transfer rate; write for example 200MiB/s")
    return parse_capacity(size.strip()) / 2**20
