"""A command line of elbencho as its options and paths.

Rule: pure. A word is read as elbencho's own parser reads it (boost::program_options, unix_style): one letter with its
value behind it or in the next word, a whole name or what only one name begins with.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final

from ..text.suggestions import did_you_mean

ELBENCHO: Final = "elbencho"
MOST_PATHS: Final = 1024

_SHORT: Final = {
    "b": "block", "c": "configfile", "d": "mkdirs", "D": "deldirs", "F": "delfiles", "h": "help", "i": "iterations",
    "n": "dirs", "N": "files", "r": "read", "s": "size", "t": "threads", "w": "write",
}  # fmt: skip
# Without a part in the load: flags, and those with a value.
_SAID_FLAGS: Final = frozenset(
    "allelapsed cpu dirstats lat lathisto latpercent live1 live1n livecsvex livejsnex no0usecerr nocsvlabels nodelerr "
    "nodiocheck nofdsharing nolive opsloglock svcelapsed".split()
)
_SAID_VALUES: Final = frozenset(
    "csvfile jsonfile label latpercent9s livecsv liveint livejson log opslog phasedelay port resfile start svcpwfile "
    "svcupint".split()
)
_LOAD_FLAGS: Final = frozenset(
    "backward delfiles direct dropcache infloop nopathexp norandalign nosvcshare preallocfile rand randalign read stat "
    "strided sync trunc trunctosize verifydirect write mmap".split()
)
_LOAD_VALUES: Final = frozenset(
    "block blockvaralgo blockvarpct cores fadv flock hosts hostsfile iodepth iterations limitread limitwrite madv "
    "numhosts path randalgo randamount rwmixpct rwmixthr rwmixthrpct size threads timelimit verify zones".split()
)
# Those of tests that no plan can be.
_TREES: Final = "files in directories, which ivypy does not test; it drives block devices and large files"
_ELSEWHERE: Final = {
    **dict.fromkeys("deldirs dirs dirsharing files mkdirs sharesize treefile treerand treeroundup".split(), _TREES),
    **dict.fromkeys("cufile gds gpuids cuhostbufreg gdsbufreg gpuperservice".split(), "ivypy uses no memory of a GPU"),
    **dict.fromkeys("netbench servers serversfile clients clientsfile".split(), "a test of the network"),
    **dict.fromkeys("s3endpoints s3key s3secret hdfs".split(), "object storage, which ivypy does not test"),
    **dict.fromkeys("service quit interrupt".split(), "starts no test; ivypy starts what it needs on the hosts by ssh"),
    **dict.fromkeys("dryrun help help-large help-all version".split(), "starts no test; leave it out"),
    "configfile": "write its options into the command",
}  # fmt: skip
_VALUES_ELSEWHERE: Final = frozenset(
    "clients clientsfile configfile dirs files gpuids s3endpoints s3key s3secret servers serversfile sharesize "
    "treefile treeroundup".split()
)
_VALUED: Final = _LOAD_VALUES | _SAID_VALUES | _VALUES_ELSEWHERE
_NAMES: Final = sorted(_VALUED | _LOAD_FLAGS | _SAID_FLAGS | _ELSEWHERE.keys())
_BETWEEN: Final = re.compile(r"[,\n](?![^\[]*\])")  # no comma within brackets
_BRACKETS: Final = re.compile(r"\[([0-9,-]+)\]")


@dataclass(frozen=True, slots=True)
class Command:
    """A command line, read."""

    before: tuple[str, ...]  # the words before elbencho: sudo
    options: Mapping[str, str]  # of the load, by their long names; a flag has ""
    paths: tuple[str, ...]


def is_elbencho_command(words: Sequence[str]) -> bool:
    """Whether these are words of a shell that start elbencho; a file of that name has no options behind it."""
    at = next((place for place, word in enumerate(words) if PurePath(word).name == ELBENCHO), len(words))
    if at and words[at - 1] in ("-o", "--output"):
        return False
    options = [word for word in words[at + 1 :] if word.startswith("-")]
    return any(not re.fullmatch(r"-o|--output(=.*)?|--strict", word) for word in options)


def command_of(words: Sequence[str], faults: list[str]) -> Command:
    """Return what the words say; what cannot be read, or is no test of block devices or files, is added to `faults`."""
    at = next(place for place, word in enumerate(words) if PurePath(word).name == ELBENCHO)
    options: dict[str, str] = {}
    paths: list[str] = []
    for name, value in _options(words[at + 1 :], faults):
        if name in _ELSEWHERE:
            faults.append(f"{ELBENCHO}: {_written(name)}: {_ELSEWHERE[name]}")
        elif name == "path":
            paths += [path for path in _BETWEEN.split(value) if path]
        elif name in _LOAD_VALUES | _LOAD_FLAGS:
            options[name] = value
    if "nopathexp" not in options:
        paths = [path for written in paths for path in _expanded(written, faults)]
    if not paths and not faults:
        faults.append(f"{ELBENCHO}: no path; name block devices or files behind the options")
    return Command(tuple(words[:at]), options, tuple(dict.fromkeys(paths)))


def _written(name: str) -> str:
    return f"--{name}"


def _options(words: Sequence[str], faults: list[str]) -> Iterator[tuple[str, str]]:
    """The options in their order; paths are those of `path`."""
    remaining = list(words)
    while remaining:
        word = remaining.pop(0)
        if word.startswith("--") and len(word) > 2:
            begun, is_given, value = word[2:].partition("=")
            name = _whole(begun, faults)
            if name in _VALUED:
                yield from _valued(name, value if is_given else None, remaining, faults)
            elif name and is_given:
                faults.append(f"{ELBENCHO}: {word}: takes no value")
            elif name:
                yield name, ""
        elif word.startswith("-") and len(word) > 1:
            yield from _short(word[1:], remaining, faults)
        else:
            yield "path", word


def _short(letters: str, remaining: list[str], faults: list[str]) -> Iterator[tuple[str, str]]:
    """`-w`, `-wr`, `-b 4k`, `-b4k`."""
    while letters:
        letter, letters = letters[0], letters[1:]
        name = _SHORT.get(letter)
        if name is None:
            way_out = f"; an option of ivypy stands before the word {ELBENCHO}" if letter == "o" else ""
            faults.append(f"{ELBENCHO}: -{letter}: no option of elbencho{way_out}")
            return
        if name in _VALUED:
            yield from _valued(name, letters or None, remaining, faults)
            return
        yield name, ""


def _valued(name: str, value: str | None, remaining: list[str], faults: list[str]) -> Iterator[tuple[str, str]]:
    if value is None and remaining and not remaining[0].startswith("-"):
        value = remaining.pop(0)
    if value:
        yield name, value
    else:
        faults.append(f"{ELBENCHO}: {_written(name)}: needs a value")


def _whole(begun: str, faults: list[str]) -> str:
    """The option that has this name, or that alone begins so; "": none."""
    fitting = [begun] if begun in _NAMES else [name for name in _NAMES if name.startswith(begun)]
    if len(fitting) == 1:
        return fitting[0]
    several = f"; it may be {' or '.join(map(_written, fitting[:4]))}" if fitting else did_you_mean(begun, _NAMES)
    faults.append(f"{ELBENCHO}: --{begun}: no option of elbencho that ivypy knows{several}")
    return ""


def _expanded(path: str, faults: list[str]) -> Iterator[str]:
    """`/dev/nvme[0-3,7]n1`; a range keeps its leading zeros."""
    brackets = _BRACKETS.search(path)
    if brackets is None:
        yield path
        return
    numbers: list[str] = []
    for part in brackets[1].split(","):
        first, is_range, last = part.partition("-")
        last = last if is_range else first
        if not (first.isdecimal() and last.isdecimal()) or not 0 <= int(last) - int(first) < MOST_PATHS:
            faults.append(f"{ELBENCHO}: {path}: not a list of numbers: [{part}]")
            return
        numbers += [str(number).zfill(len(first)) for number in range(int(first), int(last) + 1)]
    for number in numbers[:MOST_PATHS]:
        yield from _expanded(path[: brackets.start()] + number + path[brackets.end() :], faults)
