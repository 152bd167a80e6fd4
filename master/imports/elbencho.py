"""Reads a command that starts elbencho on block devices or large files. Each of its phases becomes a step.

Rule: pure; what lies outside of the command comes through ImportContext. What elbencho does is told from its published
source (ProgArgs, LocalWorker, OffsetGenerator).
"""

import os.path
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from ..errors import PlanError
from ..text.units import format_bytes, format_duration, format_number
from .course import Course, UniqueNames
from .description import Description, Dropped, ImportContext, ImportedTarget, Settings, Stream, in_file_order, is_device
from .elbencho_command import ELBENCHO, Command, command_of

MOST_ITERATIONS: Final = 100
_PATHS: Final = "its paths"  # in the place of an option, where none asks for it
_SIZE: Final = re.compile(r"(\d+)([kmgtp]?)(i?b)?", re.IGNORECASE)  # every letter is a power of 1024
_DEFAULT_BLOCK: Final = "1M"
_PATTERN: Final = re.compile(r"[*?\[\]{}\n\"\\]")

# Options without a counterpart: why, what the plan has, and whether the load differs.
_NO_COUNTERPART: Final = {
    "backward": ("no stream of a plan goes backwards", "the plan goes forwards", True),
    "strided": ("threads of a plan take no turns within a stride", "the plan gives each a part", True),
    "mmap": ("a plan maps no files into memory", "the plan reads and writes", True),
    "norandalign": ("addresses of a plan are aligned", "the plan aligns them to the blocks", True),
    "rwmixthrpct": ("readers of a plan do not wait for writers", "two workloads with rates would", True),
    "verify": ("ivypy does not check data yet", "", True),
    "verifydirect": ("ivypy does not check data yet", "", True),
    "trunc": ("files of a plan keep their blocks", "", False),
    "sync": ("what elbencho writes out between its phases is in none of its figures", "", False),
    "flock": ("I/Os of a plan lock no ranges", "", True),
    "fadv": ("a plan gives the kernel no advice", "", False),
    "madv": ("a plan gives the kernel no advice", "", False),
    "cores": ("the engine chooses the cores", "`engine: cpus`", False),
    "zones": ("the engine chooses the cores", "`engine: cpus`", False),
}


def read_elbencho_command(words: Sequence[str], around: ImportContext) -> Description:
    """Return what elbencho does, started with these words of a shell. Raises PlanError with every reason why it cannot
    be read, a line each."""
    faults: list[str] = []
    command = command_of(words, faults)
    reader = _Reader(command, around, faults) if not faults else None
    read = reader.read() if reader else None
    if faults or read is None:
        raise PlanError("\n".join(dict.fromkeys(faults)))
    return read


@dataclass(frozen=True, slots=True)
class _Phase:
    """A load of all threads at once, before that of the next."""

    name: str
    fraction_read: float
    limit: str  # the option with the bytes per second of each thread


class _Reader:
    """Of a command whose options are known; faults and what is dropped are collected."""

    def __init__(self, command: Command, around: ImportContext, faults: list[str]) -> None:
        self.command = command
        self.options = command.options
        self.around = around
        self.faults = faults
        self.dropped: list[Dropped] = []

    def read(self) -> Description | None:
        """None where there is a fault."""
        phases = self._phases()
        targets = tuple(self._targets())
        hosts = self._hosts()
        keys = self._keys()
        depth = self._threads * self._count("iodepth", 1)
        iterations = self._count("iterations", 1)
        if iterations > MOST_ITERATIONS:
            self._fault("iterations", f"more than {MOST_ITERATIONS}; run the plan again instead")
        if self.faults:
            return None
        streams = [self._stream(phase, targets, max(depth // len(targets), 1), max(len(hosts), 1)) for phase in phases]
        for name, (why, nearest, matters) in _NO_COUNTERPART.items():
            if name in self.options:
                self._drop(name, why, nearest, matters=matters)
        self._note_content(targets)
        self._note_order(len(targets), depth, phases, len(hosts))
        if self.faults:
            return None
        first = streams[0].name
        created = [stream if stream.name == first else replace(stream, iops="0") for stream in streams]
        course = Course({stream.name: {"iops": stream.iops} for stream in created})
        names = UniqueNames()
        for _ in range(iterations):
            for stream in streams:
                course.run(names.of(stream.name), {stream.name: {"iops": stream.iops}}, keys)
        before = self.command.before
        notes = [f"what stands before {ELBENCHO} is left out: {' '.join(before)}"] if before else []
        return Description(
            source=ELBENCHO, targets=targets, streams=tuple(created), actions=tuple(course.actions),
            dropped=in_file_order(self.dropped), hosts=hosts, notes=tuple(notes),
        )  # fmt: skip

    def _phases(self) -> list[_Phase]:
        percent = self._count("rwmixpct", 0)
        if percent > 100:
            self._fault("rwmixpct", "more than 100")
        if "rwmixthr" in self.options:
            self._fault("rwmixthr", "write two workloads, one that reads and one that writes")
        for name in ("rwmixpct", "rwmixthr"):
            if name in self.options and "write" not in self.options:
                self._fault(name, "is for a phase that writes: add -w")
        writing = _Phase("mix" if percent else "write", percent / 100, "limitwrite")
        reading = _Phase("read", 1.0, "limitread")
        phases = [phase for phase, name in ((writing, "write"), (reading, "read")) if name in self.options]
        if not phases:
            self.faults.append(f"{ELBENCHO}: neither -w nor -r: it does no I/O")
        return phases

    @cached_property
    def _block(self) -> int:
        block = self._size("block", _DEFAULT_BLOCK)
        size = self._size("size", "0")
        if not block:
            self._fault("block", "no size")
        return min(block, size) if size else block  # as elbencho takes it

    @cached_property
    def _part(self) -> int:
        """Bytes of each path that are driven; 0: all of it."""
        size = self._size("size", "0")
        if not self._block or not size % self._block:
            return size
        if "direct" not in self.options:
            self._fault("size", "no multiple of the block size; the last I/O of a plan would be missing")
        return size - size % self._block  # as elbencho takes it

    @property
    def _is_random(self) -> bool:
        return "rand" in self.options

    @property
    def _threads(self) -> int:
        return self._count("threads", 1)

    def _targets(self) -> list[ImportedTarget]:
        targets: list[ImportedTarget] = []
        for written in self.command.paths:
            path = os.path.normpath(os.path.join(self.around.folder, written))
            device = is_device(path)
            exists = not device and self.around.is_file(path)
            if _PATTERN.search(written):
                self.faults.append(f"{ELBENCHO}: {written}: names of targets cannot have any of * ? [ ] {{ }} here")
            elif not device and not exists and not self._part:
                self.faults.append(f"{ELBENCHO}: {written}: no such file; give its size with -s")
            targets.append(ImportedTarget(path, device, exists, self._part or None))
        new = [one for one in targets if not one.device and not one.exists]
        if new and "write" in self.options:
            self._drop("write", "elbencho writes into new files", "the plan writes them in full before", matters=False)
        return targets

    def _stream(self, phase: _Phase, targets: Sequence[ImportedTarget], depth: int, hosts: int) -> Stream:
        """The load of all threads of the phase, on each target."""
        files = len(targets)
        more = list(self._cached())
        if not self._is_random and self._threads > files:
            more.insert(0, ("streams", str(self._threads // files)))
        is_map = self._is_random and phase.fraction_read < 1 and self._threads == 1 and "randalgo" not in self.options
        if self._is_random and not is_map and phase.fraction_read < 1 and "randalgo" not in self.options:
            why = "each thread writes no block twice, and may write what another wrote"
            self._drop("rand", why, "the plan's blocks are drawn anew each time", matters=False)
        driven = any(target.device or target.exists for target in targets)
        return Stream(
            name=phase.name, paths=tuple(one.path for one in targets),
            sequential=not self._is_random, fraction_read=phase.fraction_read,
            blocksize=self._block, depth=depth, iops=self._rate(phase, files), random_map=is_map,
            span=("0", format_bytes(self._part)) if self._part and driven else None,
            until=self._until(files, hosts), more=tuple(more),
        )  # fmt: skip

    def _until(self, files: int, hosts: int) -> str:
        """The end of a phase by volume, on each target of each host."""
        if "infloop" in self.options:
            return ""
        shared = hosts if self._is_random and "nosvcshare" not in self.options else 1
        amount = self._size("randamount", "0") if self._is_random else 0
        if amount:
            each = amount // (files * shared * self._block) * self._block
            if not each:
                self._fault("randamount", "less than a block of each path")
            return f"{{ bytes: {format_bytes(each)} }}"
        return f"{{ bytes: {format_number(round(1 / shared, 6))}x }}"

    def _rate(self, phase: _Phase, files: int) -> str:
        limit = self._size(phase.limit, "0")
        if not limit:
            return "max"
        why = "elbencho sends what a second may have at once, and waits for its end then"
        self._drop(phase.limit, why, "the plan has the same rate, evenly", matters=True)
        return format_number(round(limit * self._threads / (files * self._block), 6))

    def _cached(self) -> Settings:
        if "direct" in self.options:
            return ()
        return (("direct", "false"), *([] if "dropcache" in self.options else [("drop_cache", "false")]))

    def _keys(self) -> Settings:
        limit_s = self._count("timelimit", 0)
        if "infloop" in self.options and not limit_s:
            self._fault("infloop", "it never ends; add --timelimit")
        return (("warmup", "0s"), *([("measure", format_duration(limit_s))] if limit_s else []))

    def _hosts(self) -> tuple[str, ...]:
        text = self.options.get("hosts", "")
        if "hostsfile" in self.options:
            try:
                text += "," + self.around.included(self.options["hostsfile"])
            except (OSError, UnicodeDecodeError) as error:
                self._fault("hostsfile", getattr(error, "strerror", None) or "not UTF-8 text")
        hosts = tuple(dict.fromkeys(re.sub(r":\d+$", "", word) for word in re.split(r"[,\s]+", text) if word))
        most = self._count("numhosts", len(hosts)) if "numhosts" in self.options else len(hosts)
        return hosts[:most]

    def _note_content(self, targets: Sequence[ImportedTarget]) -> None:
        if "blockvarpct" in self.options and self._count("blockvarpct", 100) < 100 and "write" in self.options:
            self._drop("blockvarpct", "blocks of a plan have random content", "", matters=True)
        if "delfiles" in self.options and any(one.exists for one in targets):
            self._drop("delfiles", "a plan deletes no file that was there before", "", matters=False)

    def _note_order(self, files: int, depth: int, phases: Sequence[_Phase], hosts: int) -> None:
        """Name shares of the work that threads have and workloads of a plan have not."""
        option = "iodepth" if "iodepth" in self.options else "threads" if "threads" in self.options else _PATHS
        if not self._is_random and files > 1 and self._threads % files:
            why = f"elbencho's {self._threads} threads drive the {files} paths one after another"
            self._drop(option, why, f"the plan drives all at once, each with {max(depth // files, 1)}", matters=True)
        elif self._is_random and files > 1:
            why = f"elbencho's {depth} I/Os are shared by the {files} paths"
            nearest = f"the plan has {max(depth // files, 1)} on each"
            self._drop(option, why, nearest, matters=depth % files > 0 or any(map(is_device, self.command.paths)))
        if hosts > 1 and not self._is_random and "nosvcshare" not in self.options:
            name = "hosts" if "hosts" in self.options else "hostsfile"
            why = "elbencho gives each host a part of the paths"
            self._drop(name, why, "the plan's hosts do all of them; see `range`", matters=True)

    def _count(self, name: str, otherwise: int) -> int:
        text = self.options.get(name)
        if text is None:
            return otherwise
        if not text.isdecimal():
            self._fault(name, "not a whole number")
            return max(otherwise, 1)
        return max(int(text), 1) if name in ("threads", "iodepth") else int(text)

    def _size(self, name: str, otherwise: str) -> int:
        text = self.options.get(name, otherwise)
        size = _SIZE.fullmatch(text)
        if size is None:
            self._fault(name, "not a size: 4k, 1m, 10g")
            return 1
        return int(size[1]) << 10 * " kmgtp".index(size[2].lower() or " ")

    def _written(self, name: str) -> str:
        if name == _PATHS:
            return " ".join(self.command.paths)
        value = self.options.get(name, "")
        return f"--{name}={value}" if value else f"--{name}"

    def _fault(self, name: str, why: str) -> None:
        self.faults.append(f"{ELBENCHO}: {self._written(name)}: {why}")

    def _drop(self, name: str, why: str, nearest: str, *, matters: bool) -> None:
        self.dropped.append(Dropped(ELBENCHO, self._written(name), why, nearest, matters))
