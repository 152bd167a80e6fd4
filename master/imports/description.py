"""Describes what a test of another tool does, in words of neither tool. A reader makes it, `to_plan` writes it as a
plan.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from ..text.mixes import Operations, Sizes


@dataclass(frozen=True, slots=True)
class ImportContext:
    """The surroundings that a file of another tool refers to."""

    folder: str  # absolute; relative names of files to drive start here
    environment: Mapping[str, str]
    included: Callable[[str], str]  # the text of a file to include; raises OSError
    is_file: Callable[[str], bool]  # whether a file to drive exists


@dataclass(frozen=True, slots=True)
class Dropped:
    """Something that has no counterpart in a plan."""

    where: str  # file:line
    what: str  # the option as written
    why: str
    nearest: str  # what to do instead; "" where nothing comes near
    matters: bool  # whether the plan's load differs from the original's

    def __str__(self) -> str:
        said = f"{self.where}: {self.what}: {self.why}" + (f"; {self.nearest}" if self.nearest else "")
        return "".join(char if char.isprintable() else "?" for char in said)


def in_file_order(dropped: Iterable[Dropped]) -> tuple[Dropped, ...]:
    """Each once, as someone who goes through the file comes to them."""
    return tuple(sorted(dict.fromkeys(dropped), key=_place))


def _place(dropped: Dropped) -> tuple[str, int]:
    file, _, line = dropped.where.rpartition(":")
    return (file, int(line)) if line.isdecimal() else (dropped.where, 0)


def is_device(path: str) -> bool:
    """Whether a path that another tool names is that of a device, by its name alone: no host is asked."""
    return path.startswith("/dev/") and not path.startswith(("/dev/shm/", "/dev/mqueue/"))


@dataclass(frozen=True, slots=True)
class ImportedTarget:
    """A device or a file to drive."""

    path: str  # absolute
    device: bool
    exists: bool
    size: int | None  # bytes, of a file to create
    host: str = ""  # where only one of the hosts has it


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream of I/Os on each of some targets; depth and `iops` are per target. Texts are as a plan writes them."""

    name: str
    paths: tuple[str, ...]  # empty: all targets
    sequential: bool
    fraction_read: float
    blocksize: int | Sizes  # bytes
    depth: int
    iops: str  # "max", "100"; "0": until an edit
    operations: Operations = ()  # in place of fraction_read
    poisson: bool = False
    span: tuple[str, str] | None = None  # first byte and the byte after the last; None: all
    seed: int | None = None
    random_map: bool = False  # random: each block of the range once before any again
    until: str = ""  # its end by volume on each target
    more: "Settings" = ()  # of the order of addresses, the cache and flushes
    on: tuple[tuple[str, tuple[str, ...]], ...] = ()  # hosts and their paths, where not every host has all of them

    @property
    def iosequencer(self) -> str:
        return "sequential" if self.sequential else "random_independent" if self.poisson else "random_steady"


Settings = tuple[tuple[str, str], ...]  # names and values as a plan writes them


@dataclass(frozen=True, slots=True)
class ImportedEdit:
    """New settings from here on."""

    rollup: str  # `workload={a,b}`
    settings: Settings


@dataclass(frozen=True, slots=True)
class ImportedRun:
    """A step under load."""

    name: str
    keys: Settings  # of a plan's `go`, without the name
    loop: "Loop" = ()


Loop = tuple[tuple[str, tuple[str, ...]], ...]  # settings and their values; the first changes slowest


@dataclass(frozen=True, slots=True)
class Description:
    """A whole test."""

    source: str  # the file's name
    targets: tuple[ImportedTarget, ...]
    streams: tuple[Stream, ...]
    actions: tuple[ImportedEdit | ImportedRun, ...]  # in their order
    dropped: tuple[Dropped, ...]
    backend: str = "auto"
    hosts: tuple[str, ...] = ()  # as a plan writes them; empty: this machine
    host_keys: tuple[tuple[str, Settings], ...] = ()  # of some of the hosts, by their names: address, user
    user: str = ""  # to log in as, where the file says so
    notes: tuple[str, ...] = ()  # what else to know about the plan
