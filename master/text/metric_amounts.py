"""Amounts of a metric, as people write them: the metric's name says which unit they need.

Rule: `overall_response_us_p99` takes a time, `overall_iops` a number, `overall_mib_per_s` MiB/s, `cpu_busy_percent` a
percentage. An amount is kept in the unit that the metric's column has. Whether there is such a metric is not known
here.
"""

from typing import Final

from .units import format_duration, format_number, parse_bytes, parse_duration, parse_fraction, parse_rate

_SCALES: Final = ((1e6, "s"), (1e3, "ms"), (1, "us"))


def parse_amount(metric: str, text: str) -> float:
    """`text` in the metric's unit. Raises ValueError with the remedy."""
    if "_us_" in metric:
        return _microseconds(text)
    if metric.endswith("_mib_per_s"):
        return _mib_per_s(text)
    if metric.endswith("_percent"):
        return 100 * parse_fraction(text)
    return parse_rate(text)


def parse_limit(metric: str, text: str) -> tuple[float, bool]:
    """(a limit on a metric, whether it is in percent of the mean): `2%`, or an amount of the metric. Raises ValueError
    with the remedy.
    """
    relative = text.strip().endswith("%")
    return parse_amount("_percent" if relative else metric, text), relative


def format_amount(metric: str, amount: float) -> str:
    """The text that `parse_amount` makes `amount` of."""
    if "_us_" in metric:
        return format_duration(round(amount * 1e-6, 15))
    number = format_number(amount)
    return f"{number}MiB/s" if metric.endswith("_mib_per_s") else f"{number}%" if "_percent" in metric else number


def amount_in_words(metric: str, amount: float, digits: int = 6) -> str:
    """An amount for people, rounded: `83.2154 us`, `100 ms`, `412 MiB/s`, `80 %`; IOPS are a number alone."""
    if "_us_" in metric:
        factor, unit = next(scale for scale in _SCALES if abs(amount) >= scale[0] or scale[0] == 1)
        return f"{amount / factor:.{digits}g} {unit}"
    unit = " MiB/s" if metric.endswith("_mib_per_s") else " %" if metric.endswith("_percent") else ""
    return f"{amount:.{digits}g}{unit}"


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
    return parse_bytes(size.strip()) / 2**20
