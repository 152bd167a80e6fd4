"""Messages as lines: one JSON object each, UTF-8, ended by a newline; and back, strictly.

Rule: bytes in, messages out, no I/O. `LineReader` is the only splitter of lines in the project: asyncio's
readline stops at 64 KiB, and asyncssh's returns a cut line at 2 MiB without an error. Whatever is not exactly a
known message of the right shape is a ProtocolError: every number has bounds (64 bits, or narrower ones that its field
names), no float is infinite, every text is printable, and no text, list or mapping is longer than it can need to be.

An array travels as {"t": type, "n": elements, "z": base64 of zlib level 1}: dense and compressed beats sparse
pairs in bytes and in time.
"""

from __future__ import annotations

import base64
import binascii
import json
import sys
import types
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Annotated, Any, Final, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from .errors import ProtocolError
from .messages import TYPES, Message, wire_name
from .older_python import StrEnum, zip_strict
from .payload import Array, ArrayType, Fact, Facts, Within
from .text import sendable, why_unsendable

Decoded = TypeVar("Decoded")

UNIONS: Final = (Union, getattr(types, "UnionType", Union))  # `Union[X, Y]` and, from Python 3.10 on, `X | Y`
LONGEST_LINE: Final = 16 << 20  # bytes, newline included
LARGEST_ARRAY: Final = 256 << 20  # bytes when inflated, of all arrays of a message together
LONGEST_LIST: Final = 100_000
MOST_ENTRIES: Final = 1_000  # of a mapping
MOST_VALUES: Final = 600_000  # in a line: as objects they take much more memory than as text
LONG_LINE: Final = 1 << 20  # bytes: shorter ones cannot hold too much
MOST_LOGGED: Final = 1 << 14  # bytes of such a line
INTEGER: Final = Within(-(1 << 63), (1 << 63) - 1)
FLOAT: Final = Within(-sys.float_info.max, sys.float_info.max)
LEAST_READING: Final = -sys.float_info.max
MOST_READING: Final = sys.float_info.max
_NUMBERS: Final = frozenset({int, float, bool, type(None)})
_SIZES: Final = {str(kind): kind.size for kind in ArrayType}


class LineReader:
    """Splits a byte stream into lines; feed it whatever arrives."""

    def __init__(self, longest: int = LONGEST_LINE) -> None:
        self._longest = longest
        self._parts: list[bytes] = []
        self._held = 0  # bytes in _parts: a line that has not ended yet

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the lines that `data` completes, without their newline.

        Raises ProtocolError at a line longer than the limit, as soon as that is known.
        """
        *complete, rest = data.split(b"\n")
        for line in complete:
            self._check(len(line) + 1)
            if self._parts:
                line = b"".join((*self._parts, line))
                self._parts.clear()
                self._held = 0
            yield line
        if rest:
            self._check(len(rest))
            self._parts.append(rest)
            self._held += len(rest)

    def close(self) -> None:
        """The stream has ended. Raises ProtocolError if it did so in the middle of a line."""
        if self._parts:
            start = b"".join(self._parts)[:60].decode("utf-8", "backslashreplace")
            raise ProtocolError(f"the stream ended inside a line of {self._held} bytes that begins {start!r}")

    def _check(self, more: int) -> None:
        if self._held + more > self._longest:
            raise ProtocolError(f"a line is longer than {self._longest} bytes")


def encode_line(message: Any) -> bytes:
    """The line of a message, newline included."""
    encoded = {"type": wire_name(type(message))} | _plain(message)
    data = json.dumps(encoded, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode() + b"\n"
    if len(data) > LONGEST_LINE:
        raise ProtocolError(f"a {wire_name(type(message))!r} of {len(data)} bytes is longer than a line may be")
    return data


def decode_line(data: bytes, room: int = LARGEST_ARRAY) -> Message:
    """The message of a line. Raises ProtocolError that names the fault and its place.

    `room`: bytes that its arrays may inflate to, all together.
    """
    return decode(data, TYPES, room)


def decode(data: bytes, table: Mapping[str, type[Decoded]], room: int = LARGEST_ARRAY) -> Decoded:
    """As `decode_line`, for a link with a table of its own: the wire name of each message, and its dataclass."""
    if len(data) > LONG_LINE and sum(map(data.count, (b",", b"[", b"{"))) > MOST_VALUES:
        raise ProtocolError(f"a line of {len(data)} bytes holds more than {MOST_VALUES:,} values")
    try:
        value = json.loads(data, object_pairs_hook=_unique, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        start = data[:60].decode("utf-8", "backslashreplace")
        raise ProtocolError(f"a line is not JSON ({error}): {start!r}") from None
    if not isinstance(value, dict):
        raise ProtocolError("a line is not a JSON object")
    name = value.pop("type", None)
    kind: Any = table.get(name) if isinstance(name, str) else None
    if kind is None:
        raise ProtocolError(f"unknown message {_shown(name)}")
    if (size := sum(map(_inflated, value.values()))) > room:
        raise ProtocolError(f"{name}: its arrays announce {size} bytes, and may have {room}")
    try:
        result: Decoded = _reader(kind)(value, "")
    except ProtocolError:  # again, to name its place: the names of places cost more than what is read
        result = _reader(kind)(value, str(name))
    return result


def shortened(data: bytes) -> str:
    """A line as a log shows it: arrays as `<4.1 kB>`, and only the beginning of an overlong line."""
    if len(data) > LONG_LINE:
        return f"{shortened(data[:MOST_LOGGED])}... ({len(data) / 1000:.1f} kB)"
    text = data.decode("utf-8", "backslashreplace").rstrip("\n")
    pieces = text.split('"z":"')
    for i in range(1, len(pieces)):
        array, quote, rest = pieces[i].partition('"')
        pieces[i] = f"<{len(array) / 1000:.1f} kB>{quote}{rest}"
    return '"z":"'.join(pieces)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    by_key = dict(pairs)
    if len(by_key) < len(pairs):
        raise ValueError("duplicate key")
    return by_key


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not a number here")


def _plain(value: Any) -> Any:
    """A value as json.dumps takes it. By its exact type first: results and reports have thousands of numbers."""
    kind: Any = type(value)
    if kind in _NUMBERS:
        return value
    if kind is str:
        return sendable(value)
    if kind is tuple:
        return [_plain(v) for v in value]
    if (names := _field_names(kind)) is not None:
        return {name: _plain(getattr(value, name)) for name in names}
    return _plain_other(value)


@cache
def _field_names(kind: type) -> tuple[str, ...] | None:
    """Of a dataclass that is an object on the link; None: it is none."""
    return tuple(f.name for f in fields(kind)) if is_dataclass(kind) and kind is not Array else None


def _plain_other(value: Any) -> Any:
    if isinstance(value, Array):
        return {"t": value.type, "n": len(value), "z": base64.b64encode(value.stream).decode()}
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    if isinstance(value, dict):
        return {sendable(k): _plain(v) for k, v in value.items()}
    if isinstance(value, str):
        return sendable(value)
    if isinstance(value, Enum) and not isinstance(value, (str, int)):
        return value.name.lower()
    return value


def _shown(value: Any) -> str:
    """A value for an error message: short, whatever it is."""
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, dict):
        return f"an object of {len(value)}"
    text = repr(value[:40] if isinstance(value, str) else value)
    return text if len(text) <= 60 else f"{text[:20]}..."


def _inflated(value: Any) -> int:
    """The bytes that a packed array announces, or all in an object, or in a list of objects; 0 for what is none."""
    if isinstance(value, list):
        return sum(_inflated(item) for item in value if type(item) is dict)
    if not isinstance(value, dict):
        return 0
    kind, n = value.get("t"), value.get("n")
    if not isinstance(kind, str) or kind not in _SIZES or type(n) is not int:
        return sum(map(_inflated, value.values()))
    return min(max(n, 0), LARGEST_ARRAY) * _SIZES[kind]


# A reader turns a JSON value into a field's value, or raises ProtocolError with the path to it; "": it is not wanted.
Reader = Callable[[Any, str], Any]


@cache
def _reader(kind: Any) -> Reader:
    """The reader of one type annotation. The grammar is small on purpose; a new form of field is added here."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _scalar_reader(arguments[0], arguments[1])
    if kind is Array:
        return _read_array
    if kind is Facts:
        return _read_facts
    if is_dataclass(kind):
        return _dataclass_reader(kind)
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        return _list_reader(_reader(arguments[0]))
    if origin is tuple:
        return _fixed_reader([_reader(a) for a in arguments])
    if origin is dict:
        return _dict_reader(_reader(arguments[1]))
    if origin is Literal:
        return _choice_reader(arguments)
    if origin in UNIONS:
        return _union_reader([_reader(a) for a in arguments])
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return _enum_reader(kind)
    if isinstance(kind, type) and issubclass(kind, Enum) and not issubclass(kind, int):
        return _name_reader(kind)
    if kind in (int, float, str, bool, type(None)):
        return _scalar_reader(kind)
    raise TypeError(f"no reader for {kind}")


def _dataclass_reader(kind: Any) -> Reader:
    hints = get_type_hints(kind, include_extras=True)
    readers = {f.name: _reader(hints[f.name]) for f in fields(kind)}
    needed = {f.name for f in fields(kind) if not f.metadata.get("optional")}

    def read(value: Any, path: str) -> Any:
        if not isinstance(value, dict):
            raise ProtocolError(f"{path}: not an object")
        if value.keys() != readers.keys() and not (needed <= value.keys() <= readers.keys()):
            missing, unknown = needed - value.keys(), value.keys() - readers.keys()
            some = [key[:40] for key in sorted(unknown)[:5]]
            raise ProtocolError(f"{path}: missing {sorted(missing)}, unknown {some}")
        return kind(**{name: readers[name](one, path and f"{path}.{name}") for name, one in value.items()})

    return read


def _list_reader(item: Reader) -> Reader:
    def read(value: Any, path: str) -> Any:
        if not isinstance(value, list):
            raise ProtocolError(f"{path}: not a list")
        if len(value) > LONGEST_LIST:
            raise ProtocolError(f"{path}: {len(value)} are more than {LONGEST_LIST:,}")
        if not path:
            return tuple([item(v, "") for v in value])
        return tuple(item(v, f"{path}[{i}]") for i, v in enumerate(value))

    return read


def _fixed_reader(items: list[Reader]) -> Reader:
    def read(value: Any, path: str) -> Any:
        if not isinstance(value, list) or len(value) != len(items):
            raise ProtocolError(f"{path}: not a list of {len(items)}")
        return tuple(item(v, f"{path}[{i}]") for i, (item, v) in enumerate(zip_strict(items, value)))

    return read


def _dict_reader(item: Reader) -> Reader:
    def read(value: Any, path: str) -> Any:
        if not isinstance(value, dict):
            raise ProtocolError(f"{path}: not an object")
        if len(value) > MOST_ENTRIES:
            raise ProtocolError(f"{path}: {len(value)} are more than {MOST_ENTRIES:,}")
        return {text(key, f"{path}, a key"): item(v, f"{path}.{key[:40]}") for key, v in value.items()}

    text = _scalar_reader(str)
    return read


def _choice_reader(choices: tuple[Any, ...]) -> Reader:
    def read(value: Any, path: str) -> Any:
        if not isinstance(value, str) or value not in choices:
            raise ProtocolError(f"{path}: {_shown(value)} is none of {list(choices)}")
        return value

    return read


def _union_reader(arms: list[Reader]) -> Reader:
    def read(value: Any, path: str) -> Any:
        for arm in arms:
            try:
                return arm(value, path)
            except ProtocolError:
                continue
        raise ProtocolError(f"{path}: {_shown(value)} is of none of the types allowed")

    return read


def _enum_reader(kind: type[StrEnum]) -> Reader:
    def read(value: Any, path: str) -> Any:
        if not isinstance(value, str) or value not in words:
            raise ProtocolError(f"{path}: {_shown(value)} is none of {list(words)}")
        return words[value]

    words = {str(member): member for member in kind}

    return read


def _name_reader(kind: type[Enum]) -> Reader:
    """Reader of an enum whose values are no strings: it travels by its name, in lower case."""
    names = {member.name.lower(): member for member in kind}

    def read(value: Any, path: str) -> Any:
        if not isinstance(value, str) or value not in names:
            raise ProtocolError(f"{path}: {_shown(value)} is none of {list(names)}")
        return names[value]

    return read


def _scalar_reader(kind: type, within: Within | None = None) -> Reader:
    if kind is int:
        return _number_reader(int, within or INTEGER)
    if kind is float:
        return _number_reader(float, within or FLOAT)
    if kind is str:
        return _read_text

    def read(value: Any, path: str) -> Any:
        if type(value) is not kind:
            raise ProtocolError(f"{path}: {_shown(value)} is not {kind.__name__}")
        return value

    return read


def _number_reader(kind: type[int | float], within: Within) -> Reader:
    low, high = within.low, within.high

    def read(value: Any, path: str) -> Any:
        if type(value) is not kind and (kind is not float or type(value) is not int):
            raise ProtocolError(f"{path}: {_shown(value)} is not {kind.__name__}")
        if not low <= value <= high:
            raise ProtocolError(f"{path}: {_shown(value)} is not within {low:g} and {high:g}")
        return kind(value)

    return read


def _read_text(value: Any, path: str) -> str:
    if not isinstance(value, str):
        raise ProtocolError(f"{path}: {_shown(value)} is not str")
    if why := why_unsendable(value):
        raise ProtocolError(f"{path}: {why}")
    return value


def _read_facts(value: Any, path: str) -> Facts:
    """Without a reader for each part: there may be 10,000 a second."""
    if not isinstance(value, list):
        raise ProtocolError(f"{path}: not a list")
    if len(value) > LONGEST_LIST:
        raise ProtocolError(f"{path}: {len(value)} are more than {LONGEST_LIST:,}")
    seen: set[str] = set()  # texts that may be sent: most stand in many facts
    fact: Any
    for i, fact in enumerate(value):
        if type(fact) is not list or len(fact) != 4:
            raise ProtocolError(f"{path}[{i}]: {_shown(fact)} is not [element, instance, attribute, value]")
        reading, kind = fact[3], type(fact[3])
        if kind is not str and kind is not float and kind is not int:
            raise ProtocolError(f"{path}[{i}]: {_shown(reading)} is neither text nor a number")
        if kind is not str and not LEAST_READING <= reading <= MOST_READING:
            raise ProtocolError(f"{path}[{i}]: {_shown(reading)} is too large")
        for text in fact if kind is str else fact[:3]:
            if text.__hash__ is None or text not in seen:
                seen.add(_read_text(text, f"{path}[{i}]"))
    return Facts(map(Fact._make, value))


def inflated(packed: bytes, most: int = LARGEST_ARRAY) -> bytes:
    """Inflate a stream of zlib, which may become a thousand times as long. Raises ValueError where it is damaged, or
    holds more than `most` bytes."""
    inflate, most = zlib.decompressobj(), min(most, LARGEST_ARRAY)
    try:
        data = inflate.decompress(packed, most + 1)
    except zlib.error as error:
        raise ValueError(f"damaged array ({error})") from None
    if len(data) > most:
        raise ValueError(f"an array inflates to more than {most} bytes")
    if not inflate.eof or inflate.unused_data:
        raise ValueError("damaged array (its stream does not end where it does)")
    return data


def _read_array(value: Any, path: str) -> Array:
    if not isinstance(value, dict) or value.keys() != {"t", "n", "z"} or type(value["n"]) is not int:
        raise ProtocolError(f"{path}: not a packed array")
    try:
        kind = ArrayType(value["t"])
        size = value["n"] * kind.size
        if not 0 <= size <= LARGEST_ARRAY:
            raise ProtocolError(f"{path}: {size} bytes are no size for an array")
        inflate = zlib.decompressobj()
        packed = base64.b64decode(value["z"], validate=True)
        data = inflate.decompress(packed, size + 1)
    except (ValueError, TypeError, binascii.Error, zlib.error) as error:
        raise ProtocolError(f"{path}: damaged array ({error})") from None
    if len(data) != size or not inflate.eof or inflate.unused_data:
        raise ProtocolError(f"{path}: the array does not inflate to the {size} bytes that it announces")
    return Array(kind, data, packed)
