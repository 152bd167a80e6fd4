"""A command line of fio as the lines of a job file: options before the first --name are those of [global].

Rule: pure. A word is read as fio's own getopt_long_only reads it: one dash or two, a value after `=` or in the next
word, which no flag has.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Final

FIO: Final = "fio"

# Options of jobs that fio takes without a value: its type "empty or boolean value", whose value stands after a `=`.
_FLAGS: Final = frozenset(
    "bs_unaligned blocksize_unaligned norandommap time_based verify_only exitall exitall_on_error stonewall "
    "wait_for_previous new_group thread threads group_reporting zero_buffers refill_buffers "
    "userspace_reap hipri fixedbufs registerfiles sqthread_poll".split()  # of its engines
)
# Options of fio itself that are no part of the load: without a value, and with one.
_PLAIN: Final = frozenset("minimal append-terse readonly warnings-fatal parse-only showcmd bandwidth-log".split())
_WITH_VALUE: Final = frozenset(
    "output output-format terse-version eta eta-newline status-interval debug alloc-size max-jobs idle-prof aux-path "
    "inflate-log".split()
)
# Those with which fio runs something else than these jobs here.
_IN_PLAN: Final = "name the hosts in the plan: hosts: [ ... ]"
_ELSEWHERE: Final = {
    "client": _IN_PLAN, "server": _IN_PLAN, "remote-config": "import the job file itself",
    "section": "import the job file itself, and delete other sections", "profile": "write its jobs out",
    "o": "an option of ivypy stands before the word fio",
    **dict.fromkeys(
        "trigger trigger-file trigger-timeout trigger-remote daemonize latency-log merge-blktrace-only cpuclock-test "
        "crctest cmdhelp enghelp help version".split(),
        "leave it out",
    ),
}  # fmt: skip
_NAME: Final = re.compile(r"--?name(=.*)?", re.DOTALL)
_OWN: Final = re.compile(r"-o|--output(=.*)?|--strict", re.DOTALL)  # of `ivypy import`
_OPTION: Final = re.compile(r"--?([A-Za-z][^=]*)(?:=(.*))?", re.DOTALL)


def is_fio_command(words: Sequence[str]) -> bool:
    """Whether these are words of a shell that start fio: `sudo taskset -c 0 /usr/bin/fio --name=a`; a file of that name
    has at most ivypy's own options behind it."""
    place = next((at for at, word in enumerate(words) if PurePath(word).name == FIO), len(words))
    options = words[place + 1 :]
    if place and words[place - 1] in ("-o", "--output"):
        return False
    return any(_NAME.fullmatch(word) for word in options) or (bool(options) and not _OWN.fullmatch(options[0]))


def parted(words: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """The words before the word fio, and those that follow it."""
    at = next(place for place, word in enumerate(words) if PurePath(word).name == FIO)
    return words[:at], words[at + 1 :]


def command_lines(options: Sequence[str], faults: list[str]) -> list[tuple[str, str]]:
    """The lines of the job file that does the same, each with its place; what cannot be read is added to `faults`."""
    lines = ["[global]"]
    for name, value in _options(options, faults):
        if name == "name":
            lines.append(f"[{value}]")
        else:
            lines.append(name if value is None else f"{name}={value}")
    return [(FIO, line) for line in lines]


def _options(words: Sequence[str], faults: list[str]) -> Iterator[tuple[str, str | None]]:
    """Those of jobs, each with its value; None: it has none."""
    remaining = list(words)
    while remaining:
        word = remaining.pop(0)
        option = _OPTION.fullmatch(word)
        if option is None:
            faults.append(f"{FIO}: {word}: no option; a job file is imported as `ivypy import {word}`")
            continue
        name, value = option[1], option[2]
        if name in _ELSEWHERE:
            faults.append(f"{FIO}: {word}: fio does something else then; {_ELSEWHERE[name]}")
        if value is None and name not in _FLAGS | _PLAIN | _ELSEWHERE.keys():
            if not remaining or remaining[0].startswith("--"):  # else the load would lack that option
                faults.append(f"{FIO}: {word}: needs a value")
                continue
            value = remaining.pop(0)
        if name not in _PLAIN | _WITH_VALUE | _ELSEWHERE.keys():
            yield name, value
