"""Quantities as people write them, and back.

Rule: every quantity says its unit, and what could be meant in two ways is refused with both ways to write it.
A parser takes the text of a YAML scalar and raises ValueError, whose text names what is wrong and the remedy; a
formatter gives the shortest text that parses to the same value. Arithmetic is decimal, so 0.1s is exactly 0.1.
"""

import re
from collections.abc import Iterable
from decimal import Decimal, InvalidOperation
from typing import Final, NamedTuple

from ...protocol.parameters import MAX, NEVER, NO_BURSTS, NO_FLUSH, Bursts, Flush, FlushKind, Iops, VolumeKind
from .mixes import Operations, Sizes, Weighted
from .places import BEGINNING, HotZone, HotZones, Position, Span
from .plan_parameters import NO_END, OfStep, Volume


class Expected(NamedTuple):
    """The form that a text should have had, and how that is written."""

    what: str
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.what}; {self.remedy}" if self.remedy else self.what


IOPS: Final = Expected("an IOPS setting", "write a number, max, or 50% of step NAME")
_SIZE: Final = Expected("a size", "write for example 8KiB, 1.5GiB or 4096 (bytes)")
_FRACTION: Final = Expected("a fraction", "write for example 70% or 0.7")
_RATE: Final = Expected("a number of I/Os per second", "write for example 5000 or 5k")
_PLAIN_NUMBER: Final = Expected("a number", "write for example 1.1")
_IOS: Final = Expected("a number of I/Os", "write for example 1M or 2x")
_NUMBER: Final = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_QUANTITY: Final = re.compile(rf"({_NUMBER})\s*([A-Za-z%]*)")
_LONGEST: Final = 100  # characters of a quantity
_MOST_SECONDS: Final = 10 * 365 * 86400
_LARGEST: Final = Decimal("1e24")  # no quantity of a plan comes near; keeps 1e999999999 from being worked out

_BYTES: Final = {"": 1, "B": 1} | {
    unit: factor
    for n, letter in enumerate("KMGTP", 1)
    for unit, factor in ((f"{letter}iB", 1024**n), (f"{'k' if letter == 'K' else letter}B", 1000**n))
}
_LETTERS: Final = frozenset("KMGTP")
_SECONDS: Final = {
    "d": Decimal(86400), "h": Decimal(3600), "m": Decimal(60), "min": Decimal(60), "s": Decimal(1),
    "ms": Decimal("1e-3"), "us": Decimal("1e-6"), "ns": Decimal("1e-9"),
}  # fmt: skip
_DURATION_PART: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(d|h|min|ms|us|ns|m|s)\s*")
_WORDED_PART: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)\.?\s*(?:and\b)?\s*")
_UNIT_OF_WORD: Final = {
    word: unit
    for unit, words in {
        "d": "day days", "h": "hr hrs hour hours", "m": "mins minute minutes", "s": "sec secs second seconds",
        "ms": "msec msecs millisecond milliseconds", "us": "usec usecs microsecond microseconds",
        "ns": "nsec nsecs nanosecond nanoseconds",
    }.items()
    for word in words.split()
}  # fmt: skip
_MULTIPLES: Final = {"": 1, "k": 1000, "K": 1000, "M": 1_000_000}
_OF_STEP: Final = re.compile(rf"({_NUMBER}\s*%)\s+of\s+step\s+(\S.*)")


def parse_bytes(text: str) -> int:
    """ "8KiB", "8k", "1.5GiB", "4096": bytes of an I/O or a file. KiB and a bare letter (k, M, g) are powers of 1024,
    as in fio and vdbench; kB, MB are powers of 1000."""
    number, unit = _quantity(text, _SIZE)
    letter = unit.upper()
    return _whole_bytes(text, number, f"{letter}iB" if letter in _LETTERS else unit)


def parse_capacity(text: str) -> int:
    """Bytes of a disk: "1.5TiB", "1.92TB". A bare k, M, G is refused: of disks, it often is a power of 1000."""
    return _whole_bytes(text, *_quantity(text, _SIZE))


def _whole_bytes(text: str, number: Decimal, unit: str) -> int:
    if unit not in _BYTES:
        raise ValueError(_unit_of_size(text, number, unit))
    size = number * _BYTES[unit]
    if size != int(size):
        raise ValueError(f"{text!r} is not a whole number of bytes")
    return int(size)


def _unit_of_size(text: str, number: Decimal, unit: str) -> str:
    letter = unit[:1].upper()
    if letter and letter in "KMGTP" and unit.lower() in (letter.lower(), f"{letter}B".lower()):
        n = "KMGTP".index(letter) + 1
        decimal = f"{'k' if letter == 'K' else letter}B"
        both = [
            f"{_plain(number)}{u} ({_plain(number * f)} bytes)"
            for u, f in ((f"{letter}iB", 1024**n), (decimal, 1000**n))
        ]
        return f"{text!r} can mean two sizes; write {' or '.join(both)}"
    if letter and letter in "KMGTP" and unit.lower() == f"{letter}ib".lower():
        return f"{text!r} is not a size; write {_plain(number)}{letter}iB"
    return f"{text!r} is not {_SIZE}"


def format_bytes(size: int) -> str:
    """The largest binary unit that holds `size` a whole number of times."""
    for n, letter in reversed(list(enumerate("KMGTP", 1))):
        if size and size % 1024**n == 0:
            return f"{size // 1024**n}{letter}iB"
    return str(size)


def parse_duration(text: str) -> float:
    """ "5s", "250ms", "1m30s", "2h": seconds. Units d, h, m (or min), s, ms, us, ns, each once, largest first."""
    stripped = text.strip()
    if len(stripped) > _LONGEST:
        raise ValueError(f"{_cut(text)} is not a duration; write for example 5s, 250ms, 1m30s or 2h")
    if re.fullmatch(r"0+(\.0*)?", stripped):
        return 0.0
    if re.fullmatch(r"\d+(\.\d+)?", stripped):
        raise ValueError(f"{text!r} has no unit; write {stripped}s for seconds")
    if clock := re.fullmatch(r"(?:(\d+):)?(\d+):(\d+)", stripped):
        parts = "".join(f"{int(n)}{u}" for n, u in zip(clock.groups(), "hms", strict=True) if n and int(n))
        raise ValueError(f"{text!r} is not a duration; write {parts or '0s'}")
    parts_found = _DURATION_PART.findall(stripped)
    factors = [_SECONDS[unit] for _, unit in parts_found]
    whole = _DURATION_PART.sub("", stripped) == "" and bool(parts_found)
    if not whole or factors != sorted(set(factors), reverse=True):
        meant = _meant_duration(stripped) or "for example 5s, 250ms, 1m30s or 2h"
        raise ValueError(f"{text!r} is not a duration; write {meant}")
    seconds = sum(Decimal(number) * factor for (number, _), factor in zip(parts_found, factors, strict=True))
    if seconds > _MOST_SECONDS:
        raise ValueError(f"{text!r} is longer than 10 years; write a shorter duration")
    return float(seconds)


def _meant_duration(text: str) -> str:
    """The duration that "30 sec" or "1h30" means, as a plan writes it; "" where that is not clear."""
    parts = _WORDED_PART.findall(text.lower())
    if not parts or _WORDED_PART.sub("", text.lower()).strip(" ,"):
        return ""
    words = [_UNIT_OF_WORD.get(word, word) for _, word in parts]
    if words[-1] == "" and len(words) > 1:  # after 1h, minutes; after 1m, seconds
        words[-1] = {"d": "h", "h": "m", "m": "s", "min": "s"}.get(words[-2], "")
    factors = [_SECONDS[word] for word in words if word in _SECONDS]
    if len(factors) < len(words) or factors != sorted(set(factors), reverse=True):
        return ""
    return "".join(f"{number}{word}" for (number, _), word in zip(parts, words, strict=True))


def format_duration(seconds: float) -> str:
    rest = Decimal(repr(seconds))
    if rest < 1:
        for unit in ("ms", "us"):
            if rest and (scaled := rest / _SECONDS[unit]) == int(scaled):
                return f"{int(scaled)}{unit}"
        return f"{_plain(rest)}s"
    text = ""
    for unit in ("h", "m"):
        count, rest = divmod(rest, _SECONDS[unit])
        text += f"{_plain(count)}{unit}" if count else ""
    return text + (f"{_plain(rest)}s" if rest else "")


def parse_fraction(text: str) -> float:
    """ "70%" or 0.7: a fraction. A number above 1 without a percent sign is refused."""
    number, unit = _quantity(text, _FRACTION)
    if unit == "%":
        return float(number / 100)
    if unit:
        raise ValueError(f"{text!r} is not {_FRACTION}")
    if number > 1:
        raise ValueError(f"{text!r} is more than 1; write {_plain(number)}% if percent is meant")
    return float(number)


def format_fraction(fraction: float) -> str:
    return f"{_plain(Decimal(repr(fraction)) * 100)}%"


def parse_number(text: str) -> float:
    """ "1.1", or "30%", which is 0.3."""
    number, unit = _quantity(text, _PLAIN_NUMBER)
    if unit not in ("", "%"):
        raise ValueError(f"{text!r} is not {_PLAIN_NUMBER}")
    return float(number / 100 if unit else number)


def parse_count(text: str) -> int:
    """A whole number; 1e3 is one, 010 is not (nobody knows whether it is 8 or 10)."""
    number, unit = _quantity(text, Expected("a whole number"))
    if unit or number != int(number):
        raise ValueError(f"{text!r} is not a whole number")
    if re.match(r"[+-]?0\d", text.strip()):
        raise ValueError(f"{text!r} has a leading zero; write {int(number)}")
    return int(number)


def parse_iops(text: str, wanted: Expected = IOPS) -> Iops | OfStep:
    """A number per second (k and M are 1,000 and 1,000,000), "max", or "50% of step NAME".

    `wanted`: what any other text should have been.
    """
    stripped = text.strip()
    if stripped == MAX:
        return MAX
    if reference := _OF_STEP.fullmatch(stripped):
        return OfStep(parse_fraction(reference[1]), reference[2])
    number, unit = _quantity(text, wanted)
    if unit == "%":
        raise ValueError(f"{text!r} needs a step; write {_plain(number)}% of step NAME")
    return _per_second(text, wanted)


def parse_rate(text: str) -> float:
    """A number of I/Os per second, and nothing else."""
    return _per_second(text, _RATE)


def _per_second(text: str, wanted: Expected) -> float:
    number, unit = _quantity(text, wanted)
    if unit not in _MULTIPLES:
        raise ValueError(f"{text!r} is not {wanted}")
    return float(number * _MULTIPLES[unit])


def format_iops(iops: Iops | OfStep) -> str:
    if isinstance(iops, OfStep):
        return f"{format_fraction(iops.fraction)} of step {iops.step}"
    return iops if isinstance(iops, str) else format_number(iops)


def format_number(number: float) -> str:
    """A float without a needless `.0`, and never in a form that loses digits."""
    return str(int(number)) if number == int(number) and abs(number) < 1e15 else repr(number)


def parse_bool(text: str) -> bool:
    """true or false, as YAML 1.2 has it; yes, no, on and off are text there."""
    if text in ("true", "false"):
        return text == "true"
    meant = {"yes": "true", "on": "true", "1": "true", "no": "false", "off": "false", "0": "false"}
    lower = text.lower()
    remedy = meant.get(lower, lower if lower in ("true", "false") else "true or false")
    raise ValueError(f"{text!r} is neither true nor false; write {remedy}")


def parse_position(text: str) -> Position:
    """A place in a LUN: "50%" of its size, bytes from its start, or "50%+1GiB", that far after the middle."""
    if both := re.fullmatch(r"([^+]*%)\s*\+(.*)", text.strip()):
        return Position(parse_position(both[1]).fraction, parse_position(both[2]).bytes)
    if text.strip().endswith("%"):
        fraction = parse_fraction(text)
        if not 0 <= fraction <= 1:
            raise ValueError(f"{text!r} is not in the LUN; a place in it is from 0% to 100%")
        return Position(fraction=fraction)
    size = parse_bytes(text)
    if size < 0:
        raise ValueError(f"{text!r} is not in the LUN; a place in it is at least 0")
    return Position(bytes=size)


def format_position(position: Position) -> str:
    fraction = [] if position.fraction is None else [format_fraction(position.fraction)]
    return "+".join(fraction + ([] if position.bytes is None else [format_bytes(position.bytes)]))


def format_part(part: Position) -> str:
    """A part of a range, or a place in it, from its beginning."""
    return "0" if part == BEGINNING else format_position(part)


def format_hot_zones(hot_zones: HotZones) -> str:
    """As a plan has it: `[{ range: 10%, share: 90% }]`."""
    return f"[{', '.join(map(_format_zone, hot_zones))}]"


def _format_zone(zone: HotZone) -> str:
    place = format_position(zone.place) if isinstance(zone.place, Position) else format_span(zone.place)
    shares = [f"share: {format_fraction(zone.reads)}"]
    if zone.others != zone.reads:
        shares = [f"read_share: {format_fraction(zone.reads)}", f"write_share: {format_fraction(zone.others)}"]
    return _braced([f"range: {place}", *shares])


def format_span(span: Span) -> str:
    return f"{format_position(span[0])}..{format_position(span[1])}"


def parse_volume(what: VolumeKind, text: str) -> Volume:
    """Of I/Os "1M", of bytes "100GiB", and of either "2x", twice the range; of time "60s"."""
    stripped = text.strip()
    if what is VolumeKind.TIME:
        volume = Volume(what, round(parse_duration(text) * 1e9))
    elif stripped.endswith("x"):
        volume = Volume(what, times=float(_quantity(stripped[:-1], _IOS if what is VolumeKind.IOS else _SIZE)[0]))
    elif what is VolumeKind.IOS:
        volume = Volume(what, _whole_ios(text))
    else:
        volume = Volume(what, parse_bytes(text))
    if not (volume.times or volume.amount) > 0:
        raise ValueError(f"{text!r} is too little; it must be above 0")
    return volume


def _whole_ios(text: str) -> int:
    count = _per_second(text, _IOS)
    if count != int(count):
        raise ValueError(f"{text!r} is not a whole number of I/Os")
    return int(count)


def format_volume(volume: Volume) -> str:
    if volume == NO_END:
        return str(VolumeKind.NEVER)
    if volume.times is not None:
        amount = f"{format_number(volume.times)}x"
    else:
        amount = _format_amount(volume)
    return f"{{ {volume.what}: {amount} }}"


def _format_amount(volume: Volume) -> str:
    match volume.what:
        case VolumeKind.IOS:
            return str(volume.amount)
        case VolumeKind.TIME:
            return format_duration(volume.amount / 1e9)
        case _:
            return format_bytes(volume.amount)


def format_bursts(bursts: Bursts) -> str:
    if bursts == NO_BURSTS:
        return NEVER
    return f"{{ on: {format_duration(bursts.on)}, off: {format_duration(bursts.off)} }}"


def format_flush(flush: Flush) -> str:
    if flush == NO_FLUSH:
        return NEVER
    how = "" if flush.how is FlushKind.FSYNC else f", with: {flush.how}"
    return f"{{ every: {flush.every}{how} }}"


def format_sizes(blocksize: int | Sizes) -> str:
    """As a plan has it: `8KiB`, `{ 4KiB: 60%, 64KiB: 40% }` or `{ read: 4KiB, write: 64KiB }`."""
    if isinstance(blocksize, int):
        return format_bytes(blocksize)
    if not blocksize.own:
        return _format_weighted(blocksize.usual)
    return _braced(f"{operation}: {_format_weighted(weighted)}" for operation, weighted in blocksize.own)


def _format_weighted(weighted: Weighted) -> str:
    if len(weighted) == 1:
        return format_bytes(weighted[0][0])
    return _braced(f"{format_bytes(size)}: {format_fraction(share)}" for size, share in weighted)


def format_operations(operations: Operations) -> str:
    """As a plan has it: `{ read: 60%, trim: 40% }`."""
    return _braced(f"{operation}: {format_fraction(share)}" for operation, share in operations)


def _braced(items: Iterable[str]) -> str:
    return f"{{ {', '.join(items)} }}"


def _quantity(text: str, wanted: Expected) -> tuple[Decimal, str]:
    match = _QUANTITY.fullmatch(text.strip())
    if match and len(text) > _LONGEST:
        raise ValueError(f"{_cut(text)} is beyond all sizes that ivypy can handle")
    if match is None:
        without = re.fullmatch(r"(\d{1,3}([,_]\d{3})+)(\D*)", text.strip())
        remedy = f"; write {re.sub('[,_]', '', text.strip())}" if without else ""
        raise ValueError(f"{text!r} is not {wanted.what}{remedy}" if without else f"{text!r} is not {wanted}")
    try:
        number = Decimal(match[1])
    except InvalidOperation:  # an exponent of twenty digits
        raise ValueError(f"{text!r} is beyond all sizes that ivypy can handle") from None
    if not -_LARGEST < number < _LARGEST or (number and number.adjusted() < -30):
        raise ValueError(f"{text!r} is beyond all sizes that ivypy can handle")
    return number, match[2]


def _cut(text: str) -> str:
    """The beginning of a long text, as a sentence quotes it."""
    return f"{text[:20]!r}..." if len(text) > _LONGEST else repr(text)


def _plain(number: Decimal | int) -> str:
    """Digits without an exponent or trailing zeros."""
    text = f"{Decimal(number):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
