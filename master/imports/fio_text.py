"""A job file of fio as text: sections, includes, comments, environment variables; how fio writes sizes, times
and shares."""

import os.path
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from .description import ImportContext, whole_blocks
from .fio_options import SYNONYMS

DEEPEST: Final = 16  # includes within includes
MOST_INCLUDES: Final = 100
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


def mean_of_range(text: str, size: Callable[[str], int]) -> int:
    low, _, high = text.partition("-")
    ends = size(low), size(high or low)
    return whole_blocks(sum(ends) / 2, min(ends))


def mean_of_split(text: str, size: Callable[[str], int]) -> int:
    """Of `4k/10:64k/50:32k`; sizes without a share divide what is left."""
    parts = [(size(part.partition("/")[0]), part.partition("/")[2]) for part in text.split(":") if part]
    if not parts or any(share and not share.isdigit() for _, share in parts):
        raise ValueError(f"{text!r} is not a split of sizes")
    open_parts = sum(not share for _, share in parts)
    left = max(100 - sum(int(share) for _, share in parts if share), 0) / max(open_parts, 1)
    weights = [(bytes_, float(share) if share else left) for bytes_, share in parts]
    total = sum(weight for _, weight in weights) or 1
    mean = sum(bytes_ * weight for bytes_, weight in weights) / total
    return whole_blocks(mean, min(bytes_ for bytes_, _ in weights))
