"""The types of the single fields of a plan: how the text of each is read, and how its JSON schema reads.

Rule: a field's reader gets the document's value (text, list, mapping or None) and returns the typed value
or raises ValueError with the remedy; pydantic only walks the structure and gathers the faults.
"""

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from ....protocol.parameters import (
    AUTO,
    NEVER,
    NO_BURSTS,
    NO_FLUSH,
    PARAMETERS,
    About,
    Bursts,
    DropAfter,
    Flush,
    FlushKind,
    Notation,
    Operation,
    Parameters,
    VolumeKind,
)
from ....protocol.payload import Spin
from ...text.mixes import Operations, Sizes, Weighted
from ...text.places import MOST_HOT, HotZone, HotZones, Position, Span, do_overlap
from ...text.plan_parameters import NO_END, Volume
from ...text.suggestions import suggestion
from ...text.units import (  # fmt: skip
    format_bursts,
    format_bytes,
    format_duration,
    format_flush,
    format_fraction,
    format_hot_zones,
    format_iops,
    format_number,
    format_operations,
    format_part,
    format_sizes,
    format_span,
    format_volume,
    parse_bool,
    parse_bytes,
    parse_count,
    parse_duration,
    parse_fraction,
    parse_iops,
    parse_number,
    parse_position,
    parse_volume,
)
from ..attempts import PATTERN, parse_on_invalid
from ..model import TOTAL_IOPS
from .substitute import Unreadable
from .yaml_positions import AlreadyReported, Predicate


@dataclass(frozen=True, slots=True, eq=False)  # by identity: pydantic wants annotations that can be hashed
class Reads:
    """Annotation: `read` makes this field's value from the document's."""

    read: Callable[[Any], Any]
    schema: dict[str, Any]
    write: Callable[[Any], str] = str  # the text that `read` would make the same value of

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self._read)

    def _read(self, value: Any) -> Any:
        if _unreadable(value):
            raise AlreadyReported
        return self.read(value)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return dict(self.schema)


def _unreadable(value: Any) -> bool:
    if isinstance(value, (list, dict)):
        return any(_unreadable(v) for v in (value.values() if isinstance(value, dict) else value))
    return isinstance(value, Unreadable)


def kind_of(value: object) -> str:
    """The document's value in words."""
    if value is None:
        return "empty"
    return "a list" if isinstance(value, list) else "a mapping" if isinstance(value, dict) else f"{value!r}"


def scalar(
    parse: Callable[[str], object], wanted: str, schema: dict[str, Any], write: Callable[[Any], str] = str
) -> Reads:
    """A field that holds one text, which `parse` reads; `wanted` names what it needs."""

    def read(value: Any) -> object:
        if not isinstance(value, str):
            raise Predicate(f"is {kind_of(value)}; it needs {wanted}")
        return parse(value)

    return Reads(read, schema, write)


# A value may contain a reference to a parameter.
_REFERENCE: Final = r"\$\{"


def _text(*patterns: str) -> dict[str, Any]:
    return {"type": "string", "pattern": "|".join([*(f"^\\s*{p}\\s*$" for p in patterns), _REFERENCE])}


_NUMBER: Final = r"[+-]?[0-9.]+([eE][+-]?[0-9]+)?"
_NUMERIC: Final = [{"type": "number"}]
SIZE_SCHEMA: Final = {"anyOf": [*_NUMERIC, _text(rf"{_NUMBER}\s*([KMGTP]i?B|kB|B|[KMGTPkmgtp])?")]}
DURATION_SCHEMA: Final = {"anyOf": [{"const": 0}, _text(r"([0-9.]+\s*(d|h|min|m|s|ms|us|ns)\s*)+", "0")]}
TIMEOUT_SCHEMA: Final = {"anyOf": [_text("never", r"([0-9.]+\s*(d|h|min|m|s|ms|us|ns)\s*)+")]}
FRACTION_SCHEMA: Final = {"anyOf": [*_NUMERIC, _text(rf"{_NUMBER}\s*%?")]}
COUNT_SCHEMA: Final = {"anyOf": [*_NUMERIC, _text(_NUMBER)]}
COUNT_OR_AUTO_SCHEMA: Final = {"anyOf": [*_NUMERIC, _text(AUTO, _NUMBER)]}
IOPS_SCHEMA: Final = {"anyOf": [*_NUMERIC, _text("max", rf"{_NUMBER}\s*[kKM]?", rf"{_NUMBER}\s*%\s+of\s+step\s+\S.*")]}
FLAG_SCHEMA: Final = {"anyOf": [{"type": "boolean"}, _text("true", "false")]}
TEXT_SCHEMA: Final = {"type": ["string", "number", "boolean"]}
RANGE_SCHEMA: Final = {
    "anyOf": [
        {"type": "array", "items": {"type": ["string", "number"]}, "minItems": 2, "maxItems": 2},
        _text(r"\S+\s*\.\.\s*\S+"),
    ]
}


def bounded(parse: Callable[[str], Any], write: Callable[[Any], str], low: Any, high: Any) -> Callable[[str], Any]:
    """`parse`, refusing numbers below `low` and above `high` (None: no bound); `write` shows the bound."""

    def read(text: str) -> Any:
        value = parse(text)
        if isinstance(value, (int, float)):
            if low is not None and value < low:
                raise ValueError(f"{text!r} is too little; the least is {write(low)}")
            if high is not None and value > high:
                raise ValueError(f"{text!r} is too much; the most is {write(high)}")
        return value

    return read


def one_of(words: type[StrEnum] | tuple[str, ...]) -> Callable[[str], Any]:
    """One word of a closed choice."""
    known = [str(word) for word in words]

    def read(text: str) -> Any:
        if text not in known:
            raise ValueError(f"{text!r} is not known here{suggestion(text, known)}")
        return text if isinstance(words, tuple) else words(text)

    return read


def choice_field(words: type[StrEnum] | tuple[str, ...]) -> Reads:
    known = [str(word) for word in words]
    return scalar(one_of(words), f"one of {', '.join(known)}", {"anyOf": [{"enum": known}, _text(r"\$\{.*")]})


def duration_field(low: float = 0.0, high: float | None = None) -> Reads:
    return scalar(
        bounded(parse_duration, format_duration, low, high), "a time like 5s or 1m30s", DURATION_SCHEMA, format_duration
    )


def fraction_field(low: float = 0.0, high: float = 1.0) -> Reads:
    return scalar(
        bounded(parse_fraction, format_fraction, low, high), "a fraction like 70%", FRACTION_SCHEMA, format_fraction
    )


def count_field(low: int = 0, high: int | None = None) -> Reads:
    return scalar(bounded(parse_count, str, low, high), "a whole number", COUNT_SCHEMA)


def count_or_auto_field(low: int = 0, high: int | None = None) -> Reads:
    count = bounded(parse_count, str, low, high)

    def parse(text: str) -> int | str:
        return AUTO if text == AUTO else count(text)

    return scalar(parse, "a whole number, or auto", COUNT_OR_AUTO_SCHEMA)


def size_field(low: int = 0, high: int | None = None) -> Reads:
    return scalar(bounded(parse_bytes, format_bytes, low, high), "a size like 8KiB", SIZE_SCHEMA, format_bytes)


FLAG: Final = scalar(parse_bool, "true or false", FLAG_SCHEMA, lambda flag: str(flag).lower())


def _spin(text: str) -> Spin:
    """`on` and `off` are true and false of YAML 1.1, and `true` is what a plan said before there was `auto`."""
    spin: Spin = one_of(Spin)({"true": "on", "false": "off"}.get(text, text))
    return spin


SPIN: Final = scalar(_spin, "off, auto or on", {"anyOf": [{"enum": list(Spin)}, *FLAG_SCHEMA["anyOf"]]})


ON_INVALID: Final = scalar(
    parse_on_invalid, "continue, stop, or repeat with a number, like repeat 2", {"anyOf": [_text(PATTERN)]}
)


def _some_text(text: str) -> str:
    if not text.strip() or any(not c.isprintable() for c in text):
        raise ValueError(f"{text!r} is not a line of text")
    return text


TEXT: Final = scalar(_some_text, "text", TEXT_SCHEMA)


def _absolute(text: str) -> str:
    if not text.startswith("/"):
        raise ValueError(f"{text!r} is not an absolute path; hosts have no common folder to start from")
    return _some_text(text)


ABSOLUTE: Final = scalar(_absolute, "an absolute path", {"type": "string", "pattern": "^/|\\$\\{"})


def _shell_words(text: str) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise ValueError(f"{text!r} is not a line of shell words: {str(error).lower()}") from None
    if not words:
        raise Predicate("is empty; it needs a command line")
    return words


WORDS: Final = scalar(_shell_words, "a command line, like: sudo -n python3.11", TEXT_SCHEMA)


HIGHEST_CORE: Final = 4095


def read_cores(value: Any) -> tuple[int, ...]:
    """`cpus`: numbers of cores and ranges of them, as '0-3,8' or [0-3, 8]. Inside of { }, YAML parts the first at its
    comma where it has no quotes."""
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, list) or not parts or not all(isinstance(part, str) and part.strip() for part in parts):
        raise Predicate(f"is {kind_of(value)}; it needs cores, like '0-3,8'")
    cores: list[int] = []
    for part in (part.strip() for part in parts):
        ends = [parse_count(end) for end in part.split("-")] if re.fullmatch(r"\d+(-\d+)?", part) else []
        if not ends:
            wanted = "write for example '0-3,8', with the quotes"
            raise ValueError(f"{part!r} is neither a core nor a range of them; {wanted}")
        if ends[0] > ends[-1]:
            raise ValueError(f"{part!r} ends before it begins; write the smaller number first")
        if ends[-1] > HIGHEST_CORE:
            raise ValueError(f"{part!r} is beyond the last core that Linux numbers, {HIGHEST_CORE}")
        for core in range(ends[0], ends[-1] + 1):
            if core in cores:
                raise ValueError(f"duplicate core {core}")
            cores.append(core)
    return tuple(cores)


def write_cores(cores: Sequence[int]) -> str:
    return ",".join(map(str, cores))


_CORES_SCHEMA: Final = [{"type": "integer", "minimum": 0}, _text(r"\d+(-\d+)?(\s*,\s*\d+(-\d+)?)*")]
CORES: Final = Reads(
    read_cores, {"anyOf": [*_CORES_SCHEMA, {"type": "array", "items": {"anyOf": _CORES_SCHEMA}}]}, write_cores
)


def read_span(value: Any) -> Span:
    """`range`: from where to where in the LUN, as 0%..50%, [0%, 50%] or 50%..50%+1GiB."""
    ends = [end.strip() for end in value.split("..")] if isinstance(value, str) else value
    if not isinstance(ends, list) or len(ends) != 2 or not all(isinstance(end, str) and end for end in ends):
        raise Predicate(f"is {kind_of(value)}; it needs two places in the LUN, like 0%..50% or 1GiB..2GiB")
    start, end = parse_position(ends[0]), parse_position(ends[1])
    if (start.fraction or 0) >= (end.fraction or 0) and (start.bytes or 0) >= (end.bytes or 0):
        raise ValueError(f"{ends[0]}..{ends[1]} ends before it begins; write the smaller place first")
    return (start, end)


PART_SCHEMA: Final = {"anyOf": [*SIZE_SCHEMA["anyOf"], _text(rf"{_NUMBER}\s*%(\s*\+.*)?")]}
PART: Final = scalar(parse_position, "a part of the range, like 10% or 5GiB", PART_SCHEMA, format_part)
_SHARES_OF_ZONE: Final = ("share", "read_share", "write_share")
_ZONE_SCHEMA: Final = {
    "type": "object",
    "properties": {"range": {"anyOf": [PART_SCHEMA, RANGE_SCHEMA]}} | dict.fromkeys(_SHARES_OF_ZONE, FRACTION_SCHEMA),
    "additionalProperties": False,
    "required": ["range"],
}
HOT_ZONES_SCHEMA: Final = {"anyOf": [_ZONE_SCHEMA, {"type": "array", "items": _ZONE_SCHEMA, "maxItems": MOST_HOT}]}


def read_hot_zones(value: Any) -> HotZones:
    """`hot_zones`: where, and the share of the I/Os there, as [{ range: 10%, share: 90% }]."""
    zones = [value] if isinstance(value, dict) else value
    example = "{ range: 10%, share: 90% }"
    if not isinstance(zones, list) or not all(isinstance(zone, dict) and zone for zone in zones):
        raise Predicate(f"is {kind_of(value)}; it needs zones, like [{example}]")
    if len(zones) > MOST_HOT:
        raise Predicate(f"has {len(zones)} zones; the most is {MOST_HOT}")
    made = tuple(_hot_zone(zone, example) for zone in zones)
    for total in (sum(zone.reads for zone in made), sum(zone.others for zone in made)):
        if total > 1 + _ROUNDING:
            raise Predicate(f"has shares that add up to {format_number(round(total * 100, 6))}%; the most is 100%")
    if do_overlap(made):
        raise Predicate("has zones that overlap; each I/O is of one zone")
    return made


def _hot_zone(zone: dict[str, Any], example: str) -> HotZone:
    known = ("range", *_SHARES_OF_ZONE)
    for key in zone:
        if key not in known:
            raise ValueError(f"{key!r} is not known here{suggestion(str(key), known)}")
    if "range" not in zone:
        raise Predicate(f"has a zone without range; it needs its part of the range, like {example}")
    shares = {key: _SHARE.read(zone[key]) for key in _SHARES_OF_ZONE if key in zone}
    both = shares.get("share")
    reads, others = shares.get("read_share", both), shares.get("write_share", both)
    if reads is None or others is None:
        missing = "share" if reads is others is None else "read_share" if reads is None else "write_share"
        raise Predicate(f"has a zone without {missing}; it needs its share of the I/Os, like {example}")
    where = zone["range"]
    if isinstance(where, list) or ".." in str(where):
        return HotZone(read_span(where), reads, others)
    part: Position = PART.read(where)
    if not (part.fraction or part.bytes):
        raise ValueError(f"{where!r} is an empty zone; write for example 10%")
    return HotZone(part, reads, others)


VOLUMES: Final = tuple(str(one) for one in VolumeKind if one is not VolumeKind.NEVER)
_AMOUNT_SCHEMA: Final = {"anyOf": [*_NUMERIC, _text(rf"{_NUMBER}\s*([KMGTP]i?B|kB|B|[KMGTPkmgtp]|x)?")]}
VOLUME_SCHEMA: Final = {
    "anyOf": [
        _text(VolumeKind.NEVER),
        {
            "type": "object",
            "properties": {**dict.fromkeys(VOLUMES, _AMOUNT_SCHEMA), "time": DURATION_SCHEMA},
            "additionalProperties": False,
            "minProperties": 1,
            "maxProperties": 1,
        },
    ]
}


def volume_field(what: VolumeKind) -> Reads:
    example = {VolumeKind.IOS: "an amount like 1M or 2x", VolumeKind.TIME: "a time like 60s"}
    schema = DURATION_SCHEMA if what is VolumeKind.TIME else _AMOUNT_SCHEMA
    words = example.get(what, "an amount like 100GiB or 2x")
    return scalar(lambda text: parse_volume(what, text), words, schema, format_volume)


def read_volume(value: Any) -> Volume:
    """`until`: what counts, and how much of it, as { written: 2x }; or never."""
    if isinstance(value, str) and value.strip() == VolumeKind.NEVER:
        return NO_END
    if not isinstance(value, dict):
        raise Predicate(f"is {kind_of(value)}; it needs what counts and how much, like {{ written: 2x }}")
    for key in value:
        if key not in VOLUMES:
            raise ValueError(f"{key!r} is not known here{suggestion(str(key), VOLUMES)}")
    if len(value) != 1:
        raise Predicate(f"has {len(value)} ends; it needs one of {', '.join(VOLUMES)}")
    ((what, amount),) = value.items()
    if not isinstance(amount, str):
        example = "60s" if what == VolumeKind.TIME else "2x"
        raise Predicate(f"has {what}: {kind_of(amount)}; it needs an amount, like {{ {what}: {example} }}")
    return parse_volume(VolumeKind(what), amount)


_EVERY, _WITH = "every", "with"
_EVERY_FIELD: Final = count_field(1, (1 << 32) - 1)
_WITH_FIELD: Final = choice_field(FlushKind)
FLUSH_SCHEMA: Final = {
    "anyOf": [
        _text(NEVER),
        {
            "type": "object",
            "properties": {_EVERY: _EVERY_FIELD.schema, _WITH: _WITH_FIELD.schema},
            "additionalProperties": False,
            "required": [_EVERY],
        },
    ]
}


def read_flush(value: Any) -> Flush:
    """`flush`: after how many writes, and with which system call, as { every: 32, with: fdatasync }; or never."""
    if isinstance(value, str) and value.strip() == NEVER:
        return NO_FLUSH
    if not isinstance(value, dict):
        raise Predicate(f"is {kind_of(value)}; it needs after how many writes, like {{ every: 32 }}, or never")
    for key in value:
        if key not in (_EVERY, _WITH):
            raise ValueError(f"{key!r} is not known here{suggestion(str(key), (_EVERY, _WITH))}")
    if _EVERY not in value:
        raise Predicate("has no every; it needs after how many writes, like { every: 32 }")
    return Flush(_EVERY_FIELD.read(value[_EVERY]), _WITH_FIELD.read(value.get(_WITH, FlushKind.FSYNC)))


_BURST_FIELD: Final = duration_field(1e-4, 86400)
BURSTS_SCHEMA: Final = {
    "anyOf": [
        _text(NEVER),
        {
            "type": "object",
            "properties": dict.fromkeys(("on", "off"), DURATION_SCHEMA),
            "additionalProperties": False,
            "required": ["on", "off"],
        },
    ]
}


def read_bursts(value: Any) -> Bursts:
    """`bursty`: how long on, and how long off, as { on: 1s, off: 3s }; or never."""
    if isinstance(value, str) and value.strip() == NEVER:
        return NO_BURSTS
    if not isinstance(value, dict):
        raise Predicate(f"is {kind_of(value)}; it needs both times, like {{ on: 1s, off: 3s }}, or never")
    for key in value:
        if key not in ("on", "off"):
            raise ValueError(f"{key!r} is not known here{suggestion(str(key), ('on', 'off'))}")
    if missing := next((key for key in ("on", "off") if key not in value), ""):
        raise Predicate(f"has no {missing}; it needs both times, like {{ on: 1s, off: 3s }}")
    return Bursts(_BURST_FIELD.read(value["on"]), _BURST_FIELD.read(value["off"]))


_OPERATIONS: Final = tuple(map(str, Operation))
_ROUNDING: Final = 1e-6  # of shares that add up to 1
_NOISE: Final = 1e-12  # of a sum of floats
_LEAST_SHARE: Final = 1e-5
_WEIGHTED_SCHEMA: Final = {
    "type": "object",
    "additionalProperties": FRACTION_SCHEMA,
    "minProperties": 1,
}
_SOME_SIZES: Final = [SIZE_SCHEMA, _WEIGHTED_SCHEMA]
SIZES_SCHEMA: Final = {
    "anyOf": [
        *_SOME_SIZES,
        {
            "type": "object",
            "properties": {key: {"anyOf": _SOME_SIZES} for key in _OPERATIONS},
            "additionalProperties": False,
            "minProperties": 1,
        },
    ]
}
OPERATIONS_SCHEMA: Final = {
    "type": "object",
    "properties": dict.fromkeys(_OPERATIONS, FRACTION_SCHEMA),
    "additionalProperties": False,
    "minProperties": 1,
}


def _shares(value: dict[str, Any], noun: str) -> dict[str, float]:
    """Those above 0, which add up to 1. Raises ValueError."""
    shares = {}
    for key, text in value.items():
        if not isinstance(text, str):
            raise Predicate(f"has {key}: {kind_of(text)}; it needs a share, like {{ {key}: 60% }}")
        shares[key] = _SHARE.read(text)
        if 0 < shares[key] < _LEAST_SHARE:
            raise ValueError(f"{key}: {text!r} is too little; the least is {format_fraction(_LEAST_SHARE)}, or 0")
    total = sum(shares.values())
    if abs(total - 1) > _ROUNDING:
        percent = format_number(round(total * 100, 6))
        raise Predicate(f"has shares that add up to {percent}%; those of all {noun} are 100%")
    scale = total if abs(total - 1) > _NOISE else 1.0
    return {key: share / scale for key, share in shares.items() if share > 0}


_SHARE: Final = fraction_field(0.0, 1.0)


def _sizes_reader(parse_size: Callable[[str], int]) -> Callable[[Any], int | Sizes]:
    """`blocksize`: a size; several, each with its share; or of each operation."""

    def weighted(value: Any) -> Weighted:
        if isinstance(value, str):
            return ((parse_size(value), 1.0),)
        if not isinstance(value, dict) or not value:
            example = "a size like 8KiB, or sizes like { 4KiB: 60%, 64KiB: 40% }"
            raise Predicate(f"is {kind_of(value)}; it needs {example}")
        shares = {parse_size(key): share for key, share in _shares(value, "sizes").items()}
        if len(shares) < len([text for text in value.values() if _SHARE.read(text)]):
            raise ValueError("a size is given twice; add up their shares")
        return tuple(shares.items())

    def read(value: Any) -> int | Sizes:
        if isinstance(value, str):
            return parse_size(value)
        named = [key for key in value if key in _OPERATIONS] if isinstance(value, dict) else []
        if named and (other := next((key for key in value if key not in named), "")):
            raise ValueError(f"{other!r} is no operation, as {named[0]} is{suggestion(other, _OPERATIONS)}")
        if not named:
            usual = weighted(value)
            return usual[0][0] if len(usual) == 1 else Sizes(usual)
        return Sizes((), tuple((Operation(key), weighted(value[key])) for key in named))

    return read


def read_operations(value: Any) -> Operations:
    """`operations`: the share of each, as { read: 60%, write: 30%, trim: 10% }."""
    if not isinstance(value, dict) or not value:
        raise Predicate(f"is {kind_of(value)}; it needs shares of operations, like {{ read: 60%, write: 40% }}")
    for key in value:
        if key == "flush":
            raise ValueError("'flush' is no share of I/Os here; write flush: { every: 32 } beside operations")
        if key not in _OPERATIONS:
            raise ValueError(f"{key!r} is not known here{suggestion(str(key), _OPERATIONS)}")
    return tuple((Operation(key), share) for key, share in _shares(value, "operations").items())


TOTAL: Final = About(
    Notation.IOPS,
    "I/Os per second of all that the edit selects, shared equally over the LUNs and within a LUN over its workloads; "
    "a percentage of a step is taken for each rollup instance separately.",
    low=0,
    high=1e12,
    live=True,
)

# What an edit's `set` and a step's `loop` may change.
CHANGES: Final[dict[str, About]] = {**PARAMETERS, TOTAL_IOPS: TOTAL}

_DEFAULTS: Final = Parameters()
OF_THE_RUN: Final = "of the run"


def _parse_timeout(text: str) -> DropAfter:
    return NEVER if text.strip() == NEVER else parse_duration(text)


def _format_timeout(value: DropAfter) -> str:
    return NEVER if value == NEVER else format_duration(float(value))


def _parameter(name: str) -> Reads:
    """The reader of a workload parameter, or of total_iops, made from its row of the table."""
    about = CHANGES[name]
    low, high = about.low, about.high
    match about.unit:
        case Notation.BYTES:
            return scalar(_size_parser(about), "a size like 8KiB", SIZE_SCHEMA, format_bytes)
        case Notation.SIZES:
            return Reads(_sizes_reader(_size_parser(about)), SIZES_SCHEMA, format_sizes)
        case Notation.MIX:
            return Reads(read_operations, OPERATIONS_SCHEMA, format_operations)
        case Notation.FRACTION:
            return fraction_field(low or 0.0, 1.0 if high is None else high)
        case Notation.COUNT:
            return count_field(int(low or 0), None if high is None else int(high))
        case Notation.DURATION:
            return duration_field(low or 0.0, high)
        case Notation.TIMEOUT:
            parse_timeout = bounded(_parse_timeout, format_duration, low, high)
            return scalar(parse_timeout, "a time like 1s, or never", TIMEOUT_SCHEMA, _format_timeout)
        case Notation.COUNT_OR_AUTO:
            return count_or_auto_field(int(low or 0), None if high is None else int(high))
        case Notation.IOPS:
            parse = bounded(parse_iops, format_number, low, high)
            return scalar(parse, "a number, max, or 50% of step NAME", IOPS_SCHEMA, format_iops)
        case Notation.RANGE:
            return Reads(read_span, RANGE_SCHEMA, format_span)
        case Notation.NUMBER:
            return scalar(
                bounded(parse_number, format_number, low, high), "a number like 1.1", FRACTION_SCHEMA, format_number
            )
        case Notation.ZONES:
            return Reads(read_hot_zones, HOT_ZONES_SCHEMA, format_hot_zones)
        case Notation.PART:
            return PART
        case Notation.FLAG:
            return FLAG
        case Notation.VOLUME:
            return Reads(read_volume, VOLUME_SCHEMA, format_volume)
        case Notation.BURSTS:
            return Reads(read_bursts, BURSTS_SCHEMA, format_bursts)
        case Notation.FLUSH:
            return Reads(read_flush, FLUSH_SCHEMA, format_flush)
        case Notation.CHOICE:
            return choice_field(type(getattr(_DEFAULTS, name)))


def _size_parser(about: About) -> Callable[[str], int]:
    """Of a size within the bounds of a row of the table."""
    return bounded(parse_bytes, format_bytes, int(about.low or 0), None if about.high is None else int(about.high))


LARGEST_SIZE: Final = scalar(_size_parser(PARAMETERS["blocksize"]), "a size like 8KiB", SIZE_SCHEMA, format_bytes)
PARAMETER_FIELDS: Final[dict[str, Reads]] = {name: _parameter(name) for name in CHANGES}


def written(name: str, value: Any) -> str:
    """A parameter's value as a plan would write it; None, which only a seed can be, in words."""
    return OF_THE_RUN if value is None else PARAMETER_FIELDS[name].write(value)
