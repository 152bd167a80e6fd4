"""Figures for people: three significant digits and a unit that scales, `42.1 k` and `1.35 ms`.

Rule: the unit follows from the value alone, and the text is never longer than WIDEST, so columns stay in line. The
exact figure is in the CSV.
"""

from datetime import datetime
from typing import Final

BLANK: Final = "-"  # for a figure that is blank in the CSV too
WIDEST: Final = 7  # characters: "16.9 ms", "-1.35 k"
_COUNTS: Final = ((1.0, ""), (1e3, " k"), (1e6, " M"), (1e9, " G"), (1e12, " T"))
_SIZES: Final = tuple((1024.0**n, f" {unit}") for n, unit in enumerate(("B", "KiB", "MiB", "GiB", "TiB", "PiB")))
_TIMES: Final = ((1.0, " us"), (1e3, " ms"), (1e6, " s"))  # in microseconds


def scaled_count(value: float | None) -> str:
    """I/Os or bytes, or their rates, by powers of 1,000: `612`, `42.1 k`, `3.05 M`."""
    if value is not None and abs(value) < 1000 and value == int(value):
        return str(int(value))
    return _scaled(value, _COUNTS)


def scaled_range(value: float, low: float, high: float) -> tuple[str, str]:
    """A count, and the range it lies in, in one unit where both ends have it: `1.63 k`, `1.48 to 1.69 k`."""
    first, last = scaled_count(low), scaled_count(high)
    unit = last.partition(" ")[2]
    if unit and first.endswith(f" {unit}"):
        first = first.removesuffix(f" {unit}")
    return scaled_count(value), f"{first} to {last}"


def scaled_time(us: float | None) -> str:
    """A latency, given in microseconds: `32.1 us`, `1.35 ms`, `2.18 s`."""
    return _scaled(us, _TIMES)


def scaled_size(size: int) -> str:
    """Bytes by powers of 1,024: `16.0 MiB`, `1.46 TiB`."""
    return _scaled(float(size), _SIZES)


def _scaled(value: float | None, units: tuple[tuple[float, str], ...]) -> str:
    if value is None:
        return BLANK
    for factor, unit in units:
        text = _three_digits(value / factor)
        if abs(float(text)) < 1000:  # after rounding: 999.6 us are 1.00 ms
            return text + unit
    factor, unit = units[-1]
    return f"{value / factor:.0f}{unit}"


def _three_digits(value: float) -> str:
    """Rounded first: 9.996 has one digit before the point, and 10.0 two."""
    size = abs(float(f"{value:.3g}"))
    return f"{value:.{2 if size < 10 else 1 if size < 100 else 0}f}"


def duration(seconds: float) -> str:
    """`42s`, `1m20s`, `3h58m`: whole seconds, from an hour on minutes."""
    whole = round(seconds)
    hours, minutes = divmod(whole // 60, 60)
    if hours:
        return f"{hours}h{minutes:02}m"
    return f"{minutes}m{whole % 60:02}s" if minutes else f"{whole}s"


def time_of_day(end: datetime, now: datetime) -> str:
    """When something ends, in the zone of `end`: `14:02`, on another day `Tue 02:15`."""
    return end.strftime("%H:%M" if end.date() == now.date() else "%a %H:%M")
