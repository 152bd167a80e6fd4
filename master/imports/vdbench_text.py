"""A parameter file of vdbench as text: lines, includes, variables, lists and ranges, numbers with units."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ..text.units import format_number
from .description import Dropped, ImportContext

MOST_VALUES: Final = 10_000  # of one list
_COMMENT: Final = ("*", "#", "/")
_VARIABLE: Final = re.compile(r"[$!](\w+)")
_BY_HOST: Final = frozenset({"host"})  # $host: the record is repeated for every host
_DASH: Final = object()
_UNITS: Final = {"": 1.0, "k": 1024.0, "m": 1024.0**2, "g": 1024.0**3, "t": 1024.0**4, "h": 3600.0}
_TIMES: Final = ("el", "in", "pa", "wa")  # keywords that begin so are times, where m is a minute
_WHOLE_NAMES: Final = frozenset({"host", "hd", "misc", "replay"})  # a dash in their lists is part of a name


@dataclass(frozen=True, slots=True)
class Parameter:
    """`keyword=value` or `keyword=(value,value)`."""

    keyword: str  # as typed, in lower case
    values: tuple[str, ...]  # ranges written out
    where: str  # file:line
    text: str  # as written


@dataclass(frozen=True, slots=True)
class _Character:
    char: str
    quoted: bool
    where: str

    def ends(self, marks: str) -> bool:
        return not self.quoted and self.char in marks


def parameters(
    text: str, name: str, around: ImportContext, faults: list[str], dropped: list[Dropped]
) -> list[Parameter]:
    """All parameters of a file in their order; what cannot be read is added to `faults`."""
    read: list[Parameter] = []
    line: list[_Character] = []
    for where, raw in _lines(text, name, around, faults):
        line += _characters(raw, where, dropped)
        if line and line[-1].ends(","):
            continue
        read += _split(line, faults)
        line = []
    return read + list(_split(line, faults))


def number(text: str, keyword: str = "") -> float:
    """`4k`, `1.5g`, `30`, and of keywords that are times `5m`, `2h`. Raises ValueError."""
    match = re.fullmatch(r"(-?(?:\d+\.?\d*|\.\d+))([kmgth]?)b?", text.strip().lower())
    if match is None:
        raise ValueError(f"{text!r} is not a number")
    minutes = keyword.startswith(_TIMES) and match[2] == "m"
    return float(match[1]) * (60.0 if minutes else _UNITS[match[2]])


def _lines(
    text: str, name: str, around: ImportContext, faults: list[str], included: bool = False
) -> Iterator[tuple[str, str]]:
    """Lines without comments, with their places; includes replaced by what they include."""
    for count, raw in enumerate(text.split("\n"), 1):
        line, where = raw.strip(), f"{name}:{count}"
        if line.startswith("eof"):
            return
        if not line or line.startswith(_COMMENT):
            continue
        line = _substituted(line, where, around, faults)
        if not line.startswith("include="):
            yield where, line
        elif included:
            faults.append(f"{where}: {line}: vdbench includes no files in included ones")
        else:
            beside = line.removeprefix("include=")
            try:
                yield from _lines(around.included(beside), beside, around, faults, included=True)
            except (OSError, UnicodeDecodeError) as error:
                faults.append(f"{where}: {line}: {getattr(error, 'strerror', None) or 'not UTF-8 text'}")


def _substituted(line: str, where: str, around: ImportContext, faults: list[str]) -> str:
    """The line without `$name` and `!name`: vdbench has them from its command line, ivypy from the environment."""

    def value(match: re.Match[str]) -> str:
        name = match[1]
        needed = match[0][0] == "$" or line[match.start() - 1 : match.start()] == "="
        if name in around.environment and name not in _BY_HOST:
            return around.environment[name]
        if needed and name not in _BY_HOST:
            faults.append(f"{where}: {line}: the environment has no {name}; run {name}=VALUE ivypy import ...")
        return match[0]

    return _VARIABLE.sub(value, line)


def _characters(line: str, where: str, dropped: list[Dropped]) -> Iterator[_Character]:
    """Up to the first blank; what is in double quotes stands for itself."""
    quoted = False
    for place, char in enumerate(line):
        if char == '"':
            quoted = not quoted
        elif char.isspace() and not quoted:
            rest = line[place:].strip()
            if re.match(r"\w+=", rest):
                why = "what follows a blank is a comment to vdbench"
                dropped.append(Dropped(where, rest, why, "remove the blank if it is meant", matters=False))
            return
        else:
            yield _Character(char, quoted, where)


def _split(line: list[_Character], faults: list[str]) -> Iterator[Parameter]:
    """The parameters of a whole line, apart at commas outside of parentheses."""
    part: list[_Character] = []
    depth = 0
    for character in line:
        depth += character.ends("(") - character.ends(")")
        if depth < 0:
            break
        if character.ends(",") and depth == 0:
            yield from _parameter(part, faults)
            part = []
        else:
            part.append(character)
    if depth:
        faults.append(f"{line[0].where}: {_joined(line)}: a parenthesis without its counterpart")
    else:
        yield from _parameter(part, faults)


def _parameter(part: list[_Character], faults: list[str]) -> Iterator[Parameter]:
    if not part:
        return
    text, where = _joined(part), part[0].where
    equals = next((i for i, one in enumerate(part) if one.ends("=")), None)
    if equals is None or equals < 2 or equals == len(part) - 1:
        faults.append(f"{where}: {text}: not keyword=value; a keyword has two letters or more")
        return
    keyword, rest = _joined(part[:equals]).lower(), part[equals + 1 :]
    if not rest[0].ends("("):
        yield Parameter(keyword, (_joined(rest),), where, text)
        return
    try:
        if not (values := tuple(_written_out(_items(rest, keyword), keyword))):
            raise ValueError("an empty list")
        yield Parameter(keyword, values, where, text)
    except ValueError as error:
        faults.append(f"{where}: {text}: {error}")


def _items(listed: list[_Character], keyword: str) -> list[object]:
    """The values between parentheses, as text; _DASH between the ends of a range."""
    dashes = keyword not in _WHOLE_NAMES
    items: list[object] = []
    value: list[str] = []
    for character in listed:
        if not character.ends("(),-" if dashes else "(),"):
            value.append(character.char)
            continue
        items += ["".join(value)] if value else []
        items += [_DASH] if character.char == "-" else []
        value.clear()
    return items


def _written_out(items: list[object], keyword: str) -> Iterator[str]:
    """`1-3` after names; `(1-64,d)` doubles, `(10-100,10)` adds. Raises ValueError."""
    values: list[str] = []
    place = 0
    while place < len(items):
        item = items[place]
        if item is not _DASH:
            values.append(str(item))
            place += 1
            continue
        if not values or place + 1 == len(items) or items[place + 1] is _DASH:
            raise ValueError("a range needs two ends")
        first, last = values[-1], str(items[place + 1])
        if not _is_number(first, keyword):
            values += _named(first, last)
            place += 2
            continue
        if place + 2 == len(items) or items[place + 2] is _DASH:
            raise ValueError("a range of numbers needs an increment: (10-100,10), or (1-64,d) to double")
        values += _numbered(number(first, keyword), number(last, keyword), str(items[place + 2]), keyword)
        place += 3
    if len(values) > MOST_VALUES:
        raise ValueError(f"{len(values):,} values are more than {MOST_VALUES:,}")
    return iter(values)


def _is_number(text: str, keyword: str) -> bool:
    try:
        number(text, keyword)
    except ValueError:
        return False
    return True


def _numbered(first: float, last: float, by: str, keyword: str) -> list[str]:
    """The values after `first`, up to `last`."""
    numbers: list[str] = []
    factor = 2.0 if last > first else 0.5
    increment = None if by == "d" else number(by, keyword)
    if first <= 0 if increment is None else increment <= 0:
        raise ValueError("the range never ends")
    if increment and (count := int((last - first) // increment) + 1) > MOST_VALUES:
        raise ValueError(f"{count:,} values are more than {MOST_VALUES:,}")
    value = first
    while True:
        value = value * factor if increment is None else value + increment
        if (value < last) if increment is None and last < first else (value > last):
            break
        numbers.append(format_number(value))
    return numbers


def _named(first: str, last: str) -> list[str]:
    """`sd1` and `sd4`: sd2, sd3 and sd4."""
    stems = [text.rstrip("0123456789") for text in (first, last)]
    numbers = [text[len(stem) :] for text, stem in zip((first, last), stems, strict=True)]
    if stems[0] != stems[1] or not all(numbers):
        raise ValueError(
            f"{first}-{last} is no range of names, like sd1-sd4; in double quotes a dash is part of a name"
        )
    start, end = map(int, numbers)
    if not 0 < end - start <= MOST_VALUES:
        raise ValueError(f"{first}-{last} does not ascend, or is too long")
    return [f"{stems[0]}{count}" for count in range(start + 1, end + 1)]


def _joined(characters: list[_Character]) -> str:
    return "".join(one.char for one in characters)
