"""A job file of fio as text: sections, includes, comments, environment variables; how fio writes sizes, times
and shares."""

import os.path
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import takewhile
from operator import itemgetter
from typing import Final

from .description import ImportContext
from .fio_options import SYNONYMS

DEEPEST: Final = 16  # includes within includes
MOST_INCLUDES: Final = 100
WeightedSizes = tuple[tuple[int, int], ...]  # bytes of an I/O, and their share in percent
_KEYWORD: Final = re.compile(r"\$(pagesize|mb_memory|ncpus)\b")
_POWERS: Final = "kmgtp"
_SECONDS: Final = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6}


@dataclass(frozen=True, slots=True)
class Option:
    """One line of a section."""

    name: str  # in lower case, one name of those that mean the same
    value: str
    where: str  # file:line
    typed: str

    @property
    def written(self) -> str:
        """As in the file, with the name under which the documentation has it."""
        known_as = "" if self.typed.lower() == self.name else f" ({self.name})"
        return (f"{self.typed}={self.value}" if self.value else self.typed) + known_as


@dataclass(frozen=True, slots=True)
class FioSection:
    """A job with all its options, those of [global] included."""

    name: str
    where: str
    options: Mapping[str, Option]


def sections(lines: Iterable[tuple[str, str]], around: ImportContext, faults: list[str]) -> list[FioSection]:
    """The jobs of lines, each with its place, in their order; what cannot be read is added to `faults`."""
    shared: dict[str, Option] = {}
    parsed: list[tuple[str, str, dict[str, Option]]] = []
    current: dict[str, Option] | None = None
    for where, line in lines:
        if title := re.fullmatch(r"\[(.*)\]", line, re.DOTALL):
            if title[1].startswith("global"):  # fio compares no more
                current = shared
            else:
                current = dict(shared)
                parsed.append((title[1].strip() or "job", where, current))
            continue
        option = _option(line, where, around.environment, faults)
        if current is None:
            faults.append(f"{where}: {line}: an option before the first [section]")
        elif option is not None:
            before = current.pop(option.name, None)  # the order is that of the last of each
            if before and option.name == "filename":  # fio adds to the files that it has
                option = replace(option, value=f"{before.value}:{option.value}")
            current[option.name] = option
    return [FioSection(title, where, options) for title, where, options in parsed]


def file_lines(
    text: str, name: str, around: ImportContext, faults: list[str], opened: list[str], within: tuple[str, ...] = ()
) -> list[tuple[str, str]]:
    """Lines of a job file without comments, with their places; includes replaced by what they include.

    `opened` has every file included so far; `within` those that this text stands in.
    """
    lines: list[tuple[str, str]] = []
    for number, raw in enumerate(text.split("\n"), 1):  # no other character ends a line in fio
        line = re.split(r"[;#]", raw, maxsplit=1)[0].strip()
        where = f"{name}:{number}"
        if not (include := re.fullmatch(r"include\s+(\S.*)", line)):
            lines += [(where, line)] if line else []
        elif len(within) == DEEPEST:
            faults.append(f"{where}: {line}: more than {DEEPEST} includes within each other")
        elif len(opened) == MOST_INCLUDES:
            faults.append(f"{where}: {line}: more than {MOST_INCLUDES} includes")
            return lines
        else:
            beside = os.path.join(os.path.dirname(within[-1]) if within else "", include[1])
            opened.append(beside)
            try:
                lines += file_lines(around.included(beside), beside, around, faults, opened, (*within, beside))
            except (OSError, UnicodeDecodeError) as error:
                faults.append(f"{where}: {line}: {getattr(error, 'strerror', None) or 'not UTF-8 text'}")
    return lines


def _option(line: str, where: str, environment: Mapping[str, str], faults: list[str]) -> Option | None:
    if keyword := _KEYWORD.search(line):
        faults.append(f"{where}: {line}: fio's keywords are not read; write the value of {keyword[0]}")
        return None
    missing = [name for name in re.findall(r"\$\{(\w+)\}", line) if name not in environment]
    if missing:
        faults.append(f"{where}: {line}: the environment has no {missing[0]}; run {missing[0]}=VALUE ivypy import ...")
        return None
    full = re.sub(r"\$\{(\w+)\}", lambda match: environment[match[1]], line)
    typed, _, value = (part.strip() for part in full.partition("="))
    name = typed.lower()
    return Option(SYNONYMS.get(name, name), value, where, typed)


def size_of(text: str, kb_base: int = 1024) -> int:
    """Bytes. As in fio, where kb_base is 1024: k and kb are 1024, KiB is 1000; where it is 1000: the opposite.

    Raises ValueError.
    """
    match = re.fullmatch(r"(\d+|0x[0-9a-f]+)\s*([kmgtp]?)(i?b?)", text.strip().lower())
    if match is None:
        raise ValueError(f"{text!r} is not a size")
    other = 1000 if kb_base == 1024 else 1024
    power = _POWERS.index(match[2]) + 1 if match[2] else 0
    number = int(match[1], 16 if match[1].startswith("0x") else 10)
    factor: int = (other if match[3] == "ib" else kb_base) ** power
    return number * factor


def seconds_of(text: str, unit: str = "s") -> float:
    """ "30", "10s", "5m"; a plain number is in `unit`. Raises ValueError."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(ms|msec|us|usec|[dhms]|sec)?", text.strip().lower())
    if match is None:
        raise ValueError(f"{text!r} is not a time")
    return float(match[1]) * _SECONDS[(match[2] or unit).removesuffix("ec")]


def whole_number(text: str) -> int:
    if not re.fullmatch(r"\d{1,18}", text):
        raise ValueError(f"{text!r} is not a whole number")
    return int(text)


def percentage(text: str) -> float:
    if not re.fullmatch(r"\d+%?", text) or int(text.rstrip("%")) > 100:
        raise ValueError(f"{text!r} is not a percentage from 0 to 100")
    return int(text.rstrip("%")) / 100


def of_each(text: str) -> tuple[str, str, str]:
    """Of reads, of writes and of trims, in `4k`, `4k,8k` or `,8k`: the last stands for those that follow; "" is fio's
    default."""
    parts = [part.strip() for part in text.split(",")]
    return parts[0], parts[min(1, len(parts) - 1)], parts[min(2, len(parts) - 1)]


def ends_of_range(text: str, size: Callable[[str], int]) -> tuple[int, int]:
    """Of `4k-64k`, in either order. Raises ValueError."""
    first, dash, second = text.partition("-")
    if not dash:
        raise ValueError(f"{text!r} is not a range of sizes, like 4k-64k")
    low, high = sorted((size(first), size(second)))
    if not low:
        raise ValueError(f"{text!r} begins at 0")
    return low, high


def least_of_split(text: str, size: Callable[[str], int]) -> int:
    """The smallest size of `4k/10:64k/90:8k`, those that are never drawn included."""
    return min(_weighted_size(part, size)[0] for part in takewhile(bool, text.split(":")))


def split_of_sizes(text: str, size: Callable[[str], int]) -> WeightedSizes:
    """Of `4k/10:64k/50:32k`, each size with its share in percent; () where `bs` has it. Raises ValueError.

    As fio 3.33 draws them: sizes without a share, or with 0, divide what is left, in whole percent; the smallest
    share comes first, the largest has what is missing to 100%, and nothing comes after 100%.
    """
    # an empty part ends the list
    parts = [_weighted_size(part, size) for part in takewhile(bool, text.split(":"))]
    total, without = sum(share for _, share in parts), sum(not share for _, share in parts)
    if total > 100 and without:
        raise ValueError(f"{text!r} adds up to {total}%, which leaves nothing to sizes without a share")
    left = (100 - total) // without if without else 0
    if len(parts) == 1:
        left = 100
    ordered = sorted(((bytes_, share or left) for bytes_, share in parts), key=itemgetter(1))
    drawn: list[tuple[int, int]] = []
    for number, (bytes_, share) in enumerate(ordered, 1):
        room = 100 - sum(before for _, before in drawn)
        drawn.append((bytes_, room if number == len(ordered) else min(share, room)))
    return tuple((bytes_, share) for bytes_, share in drawn if share)


def _weighted_size(part: str, size: Callable[[str], int]) -> tuple[int, int]:
    """Of `64k/50`; the share is 0 where there is none."""
    match = re.fullmatch(r"([^/\s]+)\s*(/\s*((\d+)(\.\d*)?%?)?\s*)?", part)  # fio: " 8k" is 8 bytes
    bytes_ = size(match[1]) if match else 0
    if match is None or not bytes_:
        raise ValueError(f"{part!r} is not a size and its share, like 64k/50")
    return bytes_, min(int(match[4] or 0), 100)
