"""What a test of another tool does, in words of neither tool. A reader makes it, `to_plan` writes it as a plan."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a file of another tool refers to outside of itself."""

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
        return f"{self.where}: {self.what}: {self.why}" + (f"; {self.nearest}" if self.nearest else "")


@dataclass(frozen=True, slots=True)
class Target:
    """A device or a file to drive."""

    path: str  # absolute
    device: bool
    exists: bool
    size: int | None  # bytes, of a file to create


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream of I/Os on each of some targets; depth and rate are per target."""

    name: str
    paths: tuple[str, ...]
    sequential: bool
    fraction_read: float
    blocksize: int  # bytes
    depth: int
    iops: float | None  # None: as fast as the depth allows
    poisson: bool
    span: tuple[str, str] | None  # first byte and the byte after the last, as a plan writes positions; None: all
    seed: int | None


@dataclass(frozen=True, slots=True)
class Steady:
    """A steady state to wait for."""

    criterion: str
    limit: str
    window_s: float
    timeout_s: float


@dataclass(frozen=True, slots=True)
class Group:
    """Streams that run at the same time."""

    name: str
    streams: tuple[Stream, ...]
    warmup_s: float
    measure_s: float
    steady: Steady | None


@dataclass(frozen=True, slots=True)
class Description:
    """A whole test: its groups run one after the other."""

    source: str  # the file's name
    backend: str
    targets: tuple[Target, ...]
    groups: tuple[Group, ...]
    dropped: tuple[Dropped, ...]
