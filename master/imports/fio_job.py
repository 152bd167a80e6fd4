"""One job of a job file of fio, with the options of `global`: its streams and times.

Rule: as in fio.py. Faults and what is dropped are collected, so that a user sees all of them at once.
"""

import os.path
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil
from typing import Final

from ...protocol.geometry import LEAST_CACHED
from ...protocol.parameters import PARAMETERS, Operation
from ..text.suggestions import did_you_mean, suggestion
from ..text.units import format_bytes, format_duration, format_fraction, format_number
from .description import ImportedTarget, Settings, Stream, is_device
from .fio_distribution import EVEN, Law, law_of
from .fio_options import ALWAYS, BACKENDS, DEFAULT_ENGINE, MAPPED, OFF, OFF_OF, REFUSED, SYNC_ENGINES, UNMAPPED
from .fio_places import DrivenPart
from .fio_sizes import PLACE_OF, DrawnSizes, common_unit, plan_sizes
from .fio_targets import MOST_CLONES, TargetsReader
from .fio_text import FioSection, Option, percentage, seconds_of, whole_number

STEADY_TIMEOUT_S: Final = 900.0  # where a job has no runtime
_SEQUENTIAL: Final = {"read", "write", "rw", "trim"}
_ALONE: Final = {f"{order}{operation}": operation for order in ("", "rand") for operation in PLACE_OF}
_NOT_WRITING: Final = {name for name, operation in _ALONE.items() if operation is not Operation.WRITE}
_RW: Final = {*_ALONE, "rw", "randrw"}
_IN_TURN: Final = {"trimwrite", "randtrimwrite"}
_MIX: Final = {"rwmixread", "rwmixwrite"}
_CACHED: Final = {"direct", "buffered"}  # the same option, and its opposite
_OF_CACHE: Final = {"pre_read", "uncached"}  # without effect on direct I/O
_SYNC: Final = {"1": "sync", "sync": "sync", "dsync": "dsync"}
_CRITERIA: Final = {"iops": "iops", "iops_slope": "iops_slope", "bw": "bw", "bw_slope": "bw_slope"}


@dataclass(frozen=True, slots=True)
class FioSteady:
    """A steady state to wait for."""

    criterion: str
    limit: str
    window_s: float
    timeout_s: float


@dataclass(frozen=True, slots=True)
class ReadJob:
    """A job, read."""

    section: FioSection
    begins_group: bool
    backend: str
    targets: list[ImportedTarget]
    streams: list[Stream]
    warmup_s: float
    measure_s: float | None  # None: until its volume is done
    steady: FioSteady | None
    start_s: float = 0.0  # after its group's start

    def starting(self, first_s: float) -> "ReadJob":
        """The job whose streams start so much later than those of its group that start first, at `first_s`."""
        after_s = round(self.start_s - first_s, 9)
        if after_s <= 0:
            return self
        later = ("start_after", format_duration(after_s))
        return replace(self, streams=[replace(stream, more=(*stream.more, later)) for stream in self.streams])

    @property
    def times(self) -> tuple[float, float | None, FioSteady | None]:
        return self.warmup_s, self.measure_s, self.steady

    @property
    def has_both_ends(self) -> bool:
        """Whether it ends by its volume or its time, whichever is first."""
        return self.measure_s is not None and any(stream.until for stream in self.streams)

    @property
    def ends_itself(self) -> "ReadJob":
        """The job whose streams end by `until` in any case, after its time."""
        if self.measure_s is None or self.steady:
            return self
        until = f"{{ time: {format_duration(self.warmup_s + self.measure_s)} }}"
        streams = [replace(stream, until=stream.until or until) for stream in self.streams]
        return replace(self, streams=streams, measure_s=None)


@dataclass(frozen=True, slots=True)
class _FioVolume:
    """How much a clone of a job does: exactly one of these."""

    times: float | None = None  # of the driven part of each file
    bytes: int | None = None  # of all files together
    ios: int | None = None

    def until(self, clones: int, part: "_JobPart", files: int) -> str:
        """A plan's end, on each file, of a part of the I/Os of so many clones. Bytes that are trimmed are not counted
        there."""
        counted = "ios" if Operation.TRIM in part.shares else "bytes"
        if self.times is not None:
            return f"{{ {counted}: {format_number(round(self.times * clones * part.of_volume, 6))}x }}"
        each = clones * part.of_volume / files
        if self.bytes is not None and counted == "bytes":
            return f"{{ bytes: {format_bytes(max(round(self.bytes * each), 1))} }}"
        ios = (self.ios or 0) if self.bytes is None else ceil(self.bytes / part.mean)
        return f"{{ ios: {max(round(ios * each), 1)} }}"

    @property
    def is_whole(self) -> bool:
        """Whether all of each file is driven, or several times all of it."""
        return self.times is not None and self.times % 1 == 0

    def is_even(self, clones: int, files: int, blocksize: float) -> bool:
        """Whether each file has the same number of I/Os."""
        ios = self.ios if self.bytes is None else self.bytes // blocksize
        return self.times is not None or (ios or 0) * clones % files == 0


@dataclass(frozen=True, slots=True)
class _JobPart:
    """A stream of a clone."""

    label: str  # part of the stream's name
    shares: Mapping[Operation, float]  # of its I/Os; they add up to 1
    rate: float | None  # I/Os per second
    drawn: Mapping[Operation, DrawnSizes]
    of_depth: float = 1.0  # its share of the I/Os in flight
    of_volume: float = 1.0

    @property
    def reads(self) -> float:
        return self.shares.get(Operation.READ, 0.0)

    @property
    def mean(self) -> float:
        """Bytes of an I/O."""
        return sum(share * self.drawn[operation].mean for operation, share in self.shares.items())

    @property
    def all_sizes(self) -> list[int]:
        return [size for one in self.drawn.values() for size in one.all]

    @property
    def least(self) -> int:
        return min(one.least for one in self.drawn.values())

    @property
    def has_one_size(self) -> bool:
        """Whether all I/Os are blocks of a random map."""
        return len({*self.all_sizes, *(one.least for one in self.drawn.values())}) == 1


class Job(TargetsReader):
    """A section on its way to streams."""

    def read(self) -> ReadJob:
        """Where this adds a fault, the result means nothing."""
        backend = self._backend()
        empty = ReadJob(self.section, False, "auto", [], [], 0.0, None, None)
        if backend is None or not self._known():
            return empty
        rw = self._rw()
        targets, driven_parts = self._targets()
        if rw is None or not targets or not self._can_trim(rw, targets):
            return empty
        ramp = self._value("ramp_time", seconds_of, 0.0)
        runtime = self._value("runtime", seconds_of, 0.0)
        steady = self._steady(runtime)
        if runtime and not self._flag("time_based") and self._ends_flushed() and rw not in _NOT_WRITING:
            why = "fio flushes after its time, too, where that is over before its volume is done"
            option = self.section.options.get("end_fsync") or self.section.options["fsync_on_close"]
            self._drop(option, why, "the plan flushes after its volume", matters=True)
        by_volume = not (runtime and self._flag("time_based"))
        if steady and by_volume:
            why = "a step that looks for a steady state does not end by volume"
            self._drop(None, f"fio stops after `size`: {why}", "", matters=True)
        self._note_repetitions(rw, steady is not None)
        self._note_law(rw)
        streams = self._streams(rw, targets, driven_parts, by_volume and not steady)
        return ReadJob(
            section=self.section, begins_group=self._flag("stonewall"), backend=backend, targets=targets,
            streams=streams,
            warmup_s=max(ramp, self._value("ss_ramp", seconds_of, 0.0)) if steady else ramp,
            measure_s=max(runtime, 1.0) if runtime else None, steady=steady,
            start_s=self._value("startdelay", seconds_of, 0.0),
        )  # fmt: skip

    # The parts of a job

    def _backend(self) -> str | None:
        engine = self._text("ioengine", DEFAULT_ENGINE).partition(":")[0]
        option = self.section.options.get("ioengine")
        if engine in SYNC_ENGINES:
            return "auto"
        if engine == "mmap":
            nearest = "the plan reads and writes through the page cache" if self._is_cached() else ""
            self._drop(option, "ivypy does not map files", nearest, matters=True)
            return "auto"
        if engine == "io_uring_cmd":
            advice = "name the block device, and use `engine: { backend: nvme }` (docs/hosts.md)"
            self._fault(option, f"NVMe commands: {advice}")
            return None
        if engine not in BACKENDS:
            self._fault(option, "no engine for blocks or files; ivypy drives these alone")
            return None
        needs_uring = self._is_cached() or "trim" in self._text("rw")
        return "auto" if engine == "libaio" and needs_uring else BACKENDS[engine]

    def _known(self) -> bool:
        """Notes what is dropped; whether every option is one of fio's."""
        before = len(self.faults)
        for option in self.section.options.values():
            if option.name in UNMAPPED:
                if not self._idle(option):
                    why, nearest, matters = UNMAPPED[option.name]
                    self._drop(option, why, nearest, matters=matters)
            elif option.name in REFUSED:
                if self._flag(option.name):
                    self._fault(option, REFUSED[option.name])
            elif option.name == "zonemode":
                if option.value != "none":
                    self._fault(option, "zones cannot be driven")
            elif option.name not in MAPPED and option.name not in ALWAYS:
                near = did_you_mean(option.name, [*MAPPED, *UNMAPPED, *REFUSED, *ALWAYS])
                self._fault(option, f"not an option of fio that ivypy knows{near}")
        return len(self.faults) == before

    def _idle(self, option: Option) -> bool:
        """Whether the option changes nothing: fio's default, an even distribution."""
        if option.name == "blocksize_unaligned":
            return self._sized() != "bsrange"
        if option.name == "fill_device" and self._fills_devices():
            return True
        if option.name in _OF_CACHE and not self._is_cached():
            return True
        off = OFF_OF.get(option.name, OFF)
        if all(part.strip() in off for part in option.value.split(",")):
            return True
        return False

    def _fills_devices(self) -> bool:
        """Whether the job writes devices from end to end in any case: to be full ends it no sooner."""
        paths = self._text("filename").split(":")
        whole = not {"size", "offset", "io_size", "number_ios", "loops"} & self.section.options.keys()
        return whole and self._text("rw", "read") == "write" and all(map(is_device, paths))

    def _is_cached(self) -> bool:
        """Whether it uses the page cache: fio's default."""
        if self._text("ioengine", DEFAULT_ENGINE) == "null":
            return False
        options = self.section.options
        last = next((name for name in reversed(list(options)) if name in _CACHED), None)
        return last is None or self._flag(last) is (last == "buffered")

    def _has_devices(self) -> bool:
        return any(map(is_device, self._text("filename").split(":")))

    def _in_parts_of_pages(self, blocksize: int) -> bool:
        """Whether a device is to be driven in parts of the page cache's pages."""
        if self._has_devices() and blocksize % LEAST_CACHED:
            option = self.section.options.get("bs")
            why = f"a device is driven through the page cache in multiples of {LEAST_CACHED}"
            self._drop(option, why, "the plan has direct I/O", matters=True)
            return True
        return False

    def _cache_and_flushes(self, writes: bool, blocksize: int) -> Settings:
        """The keys of a stream; of flushes where it writes."""
        keys = []
        if self._is_cached() and not self._in_parts_of_pages(blocksize):
            keys.append(("direct", "false"))
            if not self._drops_cache():
                keys.append(("drop_cache", "false"))
        if not writes:
            return tuple(keys)
        keys += self._flushes()
        if self._ends_flushed() and "ss" not in self.section.options:
            keys.append(("end_fsync", "true"))
        sync = self.section.options.get("sync")
        if sync is not None and sync.value not in OFF:
            keys.append(("sync", _SYNC.get(sync.value, "sync")))
        return tuple(keys)

    def _note_repetitions(self, rw: str, steady: bool) -> None:
        """Name what fio does again in each loop, or between reads, and a plan does not."""
        options, loops = self.section.options, self._value("loops", whole_number, 1) > 1
        writes = rw not in _NOT_WRITING
        flush = next((options[name] for name in ("fsync", "fdatasync") if self._value(name, whole_number, 0)), None)
        if flush and writes and rw not in _ALONE and 0 < self._mix() < 1:
            why = "fio flushes again after each read behind a flush, until the next write"
            self._drop(flush, why, "the plan flushes once", matters=True)
        depth = self._value("iodepth", whole_number, 1)
        if flush and writes and self._text("ioengine", DEFAULT_ENGINE) == "io_uring" and depth > 1:
            why = "with io_uring at this depth, fio flushes up to four times as often"
            self._drop(flush, why, "the plan flushes as often as it says", matters=True)
        if loops and self._ends_flushed() and writes:
            self._drop(options["loops"], "fio flushes after each loop", "the plan flushes at the end", matters=True)
        if loops and self._drops_cache() and rw in ("read", "randread", "rw", "randrw"):
            why = "fio drops the page cache before each loop"
            self._drop(options["loops"], why, "the plan drops it before the step", matters=True)
        if steady and self._ends_flushed() and writes:
            end = options.get("end_fsync") or options["fsync_on_close"]
            self._drop(end, "a step that looks for a steady state does not end with a flush", "", matters=True)

    def _drops_cache(self) -> bool:
        return self._is_cached() and ("invalidate" not in self.section.options or self._flag("invalidate"))

    def _flushes(self) -> Settings:
        every = {name: self._value(name, whole_number, 0) for name in ("fsync", "fdatasync")}
        given = {name: number for name, number in every.items() if number}
        if len(given) > 1:
            self._drop(
                self.section.options["fdatasync"],
                "a workload has one kind of flush",
                "the plan has fsync",
                matters=True,
            )
        for name, number in given.items():
            how = "" if name == "fsync" else f", with: {name}"
            return (("flush", f"{{ every: {number}{how} }}"),)
        return ()

    def _ends_flushed(self) -> bool:
        return self._flag("end_fsync") or self._flag("fsync_on_close")

    def _volume(self, files: int, driven: DrivenPart, part: _JobPart) -> _FioVolume:
        """Read what a clone does until it ends: `loops` times `size`, or `io_size` instead; at most `number_ios`."""
        loops = max(self._value("loops", whole_number, 1), 1)
        ios = self._value("number_ios", whole_number, 0)
        room = driven.room
        whole = None if room is None else room * files
        times, most = 1.0, None
        option = self.section.options.get("io_size")
        if option is not None and option.value.endswith("%"):
            times = self._value("io_size", _share, 1.0)
        else:
            most = self._value("io_size", self._size, 0) or self._part_of_files(whole)
        if ios and ((end := most or (whole and whole * times)) is None or ios * part.mean < end):
            return _FioVolume(ios=ios * loops)
        if not most:
            return _FioVolume(times=times * loops)
        return _FioVolume(bytes=-(-most // part.least) * part.least * loops)

    def _part_of_files(self, whole: int | None) -> int | None:
        """`size`, where files are larger by `filesize`; None: all of them."""
        if "filesize" not in self.section.options or self._text("size").endswith("%"):
            return None
        size = self._value("size", self._size, 0)
        return size if whole is not None and 0 < size < whole else None

    def _rw(self) -> str | None:
        option = self.section.options.get("rw")
        word, _, modifier = self._text("rw", "read").lower().partition(":")
        word = {"readwrite": "rw"}.get(word, word)
        if word in _IN_TURN:
            why = "fio trims each block and writes it then; operations of a workload follow no order"
            self._fault(option, f"{why}; write a job that trims, and one with `stonewall` that writes")
            return None
        if word not in _RW:
            self._fault(option, f"not a kind of I/O{suggestion(word, sorted(_RW))}")
            return None
        if modifier:
            self._drop(
                option, f"ivypy does not support the modifier of `rw` :{modifier}", f"the plan has {word}", matters=True
            )
        return word

    def _can_trim(self, rw: str, targets: list[ImportedTarget]) -> bool:
        files = [target.path for target in targets if not target.device]
        if "trim" not in rw or not files or self._text("ioengine") == "null":
            return True
        self._fault(self.section.options.get("rw"), f"fio trims block devices alone, and fails on the file {files[0]}")
        return False

    def _operations(self, rw: str) -> list[Operation]:
        """The operations of its I/Os."""
        if rw in _ALONE:
            return [_ALONE[rw]]
        mix = self._mix()
        return [Operation.READ] * (mix > 0) + [Operation.WRITE] * (mix < 1)

    def _is_sequential(self, rw: str) -> bool:
        """Whether none of its I/Os goes anywhere at random."""
        return rw in _SEQUENTIAL or not any(self._random_shares(rw))

    def _random_shares(self, rw: str) -> list[float]:
        """The share of I/Os that go anywhere, for each operation of a random job."""
        shares = self._each("percentage_random", percentage, 1.0)
        return [shares[PLACE_OF[operation]] for operation in self._operations(rw)]

    def _order(self, rw: str, part: _JobPart) -> Settings:
        """The keys of where its I/Os go: `align`, `sequential`, `cursors`."""
        keys: list[tuple[str, str]] = []
        operations = list(part.drawn)
        by_operation = [("cursors", "by_operation")] if len(operations) > 1 else []
        if self._is_sequential(rw):
            if any(size % min(one.all) for one in part.drawn.values() for size in one.all):
                keys.append(("align", format_bytes(common_unit(part.drawn))))
            return (*keys, *by_operation)
        align = self._aligned(part.drawn)
        if align:
            keys.append(("align", format_bytes(align)))
        keys += self._law().keys
        random = min(self._random_shares(rw))
        if random == 1.0:
            return tuple(keys)
        option = self.section.options["percentage_random"]
        if len(set(self._random_shares(rw))) > 1:
            why = "reads and writes of a workload have one share of random I/Os"
            self._drop(option, why, f"the plan has {format_fraction(random)}", matters=True)
        if any(size % (align or part.least) for size in part.all_sizes):
            why = "fio's I/O begins where the last one ended, aligned or not"
            self._drop(option, why, "the plan's at the next multiple of `align`", matters=True)
        return (*keys, ("sequential", format_fraction(round(1 - random, 6))), *by_operation)

    def _streams(
        self, rw: str, targets: list[ImportedTarget], driven_parts: list[DrivenPart], by_volume: bool
    ) -> list[Stream]:
        sequential = self._is_sequential(rw)
        engine = self._text("ioengine", DEFAULT_ENGINE)
        depth = self._depth(rw, engine)
        own_files = "filename" not in self.section.options  # a clone has files of its own
        files = self._files_of_clone() if own_files else len(targets)
        clones = len(targets) // files if own_files else self._jobs()
        shifted = len(set(driven_parts[:clones])) > 1
        # each clone has a cursor, or frequent places, of its own
        of_its_own = sequential or not (self._law().is_even or self._law().keeps_map)
        apart = clones > 1 and (shifted or (of_its_own and not own_files))
        if apart and clones > MOST_CLONES:
            self._fault(self.section.options.get("numjobs"), f"more than {MOST_CLONES} streams of a job")
            return []
        of_all = 1 if apart or own_files else clones  # random clones add up
        parts = self._directions(rw, sequential)
        orders = [self._order(rw, part) for part in parts]
        think = self._think(depth, files, any(part.rate is not None for part in parts) or len(parts) > 1)
        streams = []
        in_flight = 0  # of a clone that is apart, or of all
        for clone in range(clones if apart else 1):
            driven = driven_parts[clone]
            own = targets[clone * files :][:files] if own_files and apart else targets
            for part, order in zip(parts, orders, strict=True):
                volume = self._volume(files, driven, part) if by_volume else None
                if volume and not volume.is_even(of_all, files, part.mean):
                    self._note_uneven(files)
                if volume and not volume.is_whole:
                    self._note_order(1 if sequential else of_all)
                align = self._aligned(part.drawn) or part.least
                self._note_parts_of_blocks(driven, max(align, part.least))
                largest = max(part.all_sizes)
                if not driven.holds(largest, align):
                    text = f"{driven.room} bytes of a file hold no I/O of {format_bytes(largest)}"
                    self._fault(self._placing(), f"{text} at a multiple of {format_bytes(align)}")
                maxtags = max(round(depth * of_all * part.of_depth / files), 1)
                if maxtags > int(PARAMETERS["maxtags"].high or maxtags):
                    self._fault(self.section.options.get("iodepth"), f"{maxtags} I/Os in flight are too many")
                in_flight += 0 if clone else maxtags * files
                trims = Operation.TRIM in part.shares
                cache = () if trims else self._cache_and_flushes(part.reads < 1, common_unit(part.drawn))
                streams.append(
                    Stream(
                        name="-".join(filter(None, [self.section.name, part.label, str(clone) if apart else ""])),
                        paths=tuple(target.path for target in own), sequential=sequential, fraction_read=part.reads,
                        operations=tuple(part.shares.items()) if trims else (),
                        blocksize=plan_sizes(part.drawn), depth=maxtags,
                        iops=_iops(part.rate, of_all / files),
                        poisson=self._poisson(sequential), span=driven.span,
                        seed=self._value("randseed", whole_number, None),
                        random_map=not sequential and self._maps() and self._keeps_map(rw, part),
                        until=volume.until(of_all, part, files) if volume else "",
                        more=(*order, *cache, *think),
                    )
                )  # fmt: skip
        if in_flight != depth * of_all:
            why = f"fio has {depth * of_all} I/Os in flight over all files, reads and writes; the plan has {in_flight}"
            self._drop(self._sharing(), why, "`maxtags` is that of each file", matters=True)
        elif files > 1 and engine != "null" and any(part.rate is None for part in parts):
            self._note_shared_depth([target.path for target in targets[:files]], depth * of_all)
        return streams

    def _depth(self, rw: str, engine: str) -> int:
        """The I/Os that fio really has in flight."""
        depth = self._value("iodepth", whole_number, 1)
        if engine in SYNC_ENGINES or engine == "mmap":
            named = "" if "ioengine" in self.section.options else ", fio's default engine,"
            why = f"{engine}{named} waits for each I/O"
        elif "trim" in rw and engine != "null":
            why = f"{engine} trims one block after the other"
        elif engine == "libaio" and self._is_cached():
            why = "libaio waits for each I/O through the page cache"
        else:
            return depth
        if depth > 1:
            self._drop(self.section.options["iodepth"], why, "the plan has depth 1, as fio really has", matters=False)
        return 1

    def _think(self, depth: int, files: int, is_paced: bool) -> Settings:
        """The time after each I/O, where fio's job has one in flight."""
        time = self._value("thinktime", lambda text: seconds_of(text, "us"), 0.0)
        if not time:
            return ()
        option, blocks = self.section.options["thinktime"], self._value("thinktime_blocks", whole_number, 1)
        if depth == 1 and files == 1 and blocks <= 1 and not is_paced:
            return (("think_time", format_duration(time)),)
        why = f"fio waits for all its I/Os in flight, and then for its time, after each {blocks} blocks"
        if is_paced:
            why = "a workload with a rate does not think"
        self._drop(option, why, "the plan does not wait", matters=True)
        return ()

    def _sharing(self) -> Option | None:
        """The option that has several files, or reads and writes, share a depth."""
        names = ("filename", "nrfiles", "iodepth", "rw")
        return next((self.section.options[key] for key in names if key in self.section.options), None)

    def _note_shared_depth(self, paths: list[str], depth: int) -> None:
        """Name the I/Os in flight that fio shares among the files of a clone, in turn.

        A device has all of them where it holds every file. Several devices have equally many I/Os in fio, and most of
        those in flight wait for the slowest.
        """
        each = depth // len(paths)
        if not any(map(is_device, paths)) and len({os.path.dirname(path) for path in paths}) == 1:
            why = f"fio shares {depth} I/Os in flight among {len(paths)} files"
            self._drop(self._sharing(), why, f"the plan has {each} of each", matters=False)
        else:
            why = "fio does equally many I/Os on each, and waits for the slowest"
            nearest = f"the plan has {each} in flight on each, at its own pace; a rate makes both the same"
            self._drop(self._sharing(), why, nearest, matters=True)

    def _note_parts_of_blocks(self, part: DrivenPart, blocksize: int) -> None:
        """Name a part of a block at either end of what is driven, for which fio has an I/O."""
        size = part.room if part.room and self._has_devices() else 0
        bytes_of = {name: self._place(name).bytes for name in ("offset", "offset_increment")}
        uneven = [name for name, bytes_ in {**bytes_of, "size": size}.items() if bytes_ % blocksize]
        for name in [name for name in uneven if name in self.section.options]:
            why = f"no multiple of {blocksize} bytes: fio has an I/O for the rest"
            self._drop(self.section.options[name], why, "the plan has whole blocks", matters=True)

    def _note_uneven(self, files: int) -> None:
        """Name the option whose I/Os are no multiple of the files."""
        names = ("number_ios", "io_size", "size")
        option = next((self.section.options[key] for key in names if key in self.section.options), None)
        self._drop(option, f"its I/Os are no multiple of {files} files", "`until` rounds those of each", matters=True)

    def _note_order(self, clones: int) -> None:
        """Name what visits other blocks than the plan does, where not all of them are driven."""
        if clones > 1 and self._maps():
            why = "each clone of fio visits the blocks in an order of its own"
            self._drop(self.section.options.get("numjobs"), why, "the plan visits each block once", matters=True)
        loops = self.section.options.get("loops")
        # with io_size or number_ios, fio's next loop goes on where the last ended
        if (
            loops
            and self._value("loops", whole_number, 1) > 1
            and not {"io_size", "number_ios"} & {*self.section.options}
        ):
            self._drop(loops, "each loop of fio visits the same blocks", "the plan goes on to others", matters=True)

    def _maps(self) -> bool:
        """Whether fio visits each block once before any again."""
        keeps = self._law().keeps_map
        return keeps and not self._flag("norandommap") and not self._is_aligned_apart()

    def _law(self) -> Law:
        return self._value("random_distribution", lambda text: law_of(text, self._size), EVEN)

    def _note_law(self, rw: str) -> None:
        """Name where fio's frequent places are others."""
        made = self._law()
        if made.why and not self._is_sequential(rw):
            self._drop(self.section.options["random_distribution"], made.why, made.nearest, matters=True)

    def _keeps_map(self, rw: str, part: _JobPart) -> bool:
        """Whether a plan can visit blocks so, where fio does."""
        options = self.section.options
        if min(self._random_shares(rw)) < 1:
            why = "fio's random I/Os go to blocks that they have not visited yet"
            self._drop(options["percentage_random"], why, "the plan's go anywhere; use `norandommap`", matters=True)
        elif not self._law().is_even:
            why = "fio visits each block of a zone once"
            self._drop(options["random_distribution"], why, "the plan's go anywhere; use `norandommap`", matters=True)
        elif not part.has_one_size:
            why = "fio visits each block once, and fills gaps with smaller I/Os"
            self._drop(options[self._sized()], why, "the plan's go anywhere; use `norandommap`", matters=True)
        else:
            return True
        return False

    def _mix(self) -> float:
        """The share of reads of a mixed job."""
        option = self._mix_option()
        share = self._value(option.name, percentage, 0.5) if option else 0.5
        return 1 - share if option and option.name == "rwmixwrite" else share

    def _mix_option(self) -> Option | None:
        """The later of the two, which fio obeys."""
        return next((self.section.options[key] for key in reversed(list(self.section.options)) if key in _MIX), None)

    def _directions(self, rw: str, sequential: bool) -> list[_JobPart]:
        """The streams that a clone of the job is made of."""
        rates = self._rates()
        operations = self._operations(rw)
        if len(operations) == 1:
            return [self._part_of("", {operations[0]: 1.0}, rates[PLACE_OF[operations[0]]])]
        mix, read_rate, write_rate = self._mix(), *rates[:2]
        shares = {Operation.READ: mix, Operation.WRITE: 1 - mix}
        if sequential and read_rate != write_rate:  # fio holds each, whatever the mix is
            if read_rate is None or write_rate is None:
                why = "fio's reads and writes share the I/Os in flight; the plan's are two workloads"
                self._drop(self._rated(), why, "give each a rate: `rate_iops=READS,WRITES`", matters=True)
            of_reads = read_rate / (read_rate + write_rate) if read_rate and write_rate else mix
            reads = self._part_of("reads", {Operation.READ: 1.0}, read_rate)
            writes = self._part_of("writes", {Operation.WRITE: 1.0}, write_rate)
            return [
                replace(reads, of_depth=mix, of_volume=of_reads),
                replace(writes, of_depth=1 - mix, of_volume=1 - of_reads),
            ]
        if read_rate is None or write_rate is None:
            if (read_rate, write_rate) != (None, None):
                why = "a workload has one rate for reads and writes"
                self._drop(self._rated(), why, "two workloads", matters=True)
            return [self._part_of("", shares, None)]
        # fio holds both rates, whatever the mix is
        total = read_rate + write_rate
        shares = {Operation.READ: read_rate / total, Operation.WRITE: write_rate / total}
        return [self._part_of("", shares, total)]

    def _part_of(self, label: str, shares: Mapping[Operation, float], rate: float | None) -> _JobPart:
        unit = 1 if self._is_cached() and not self._has_devices() else 512
        part = _JobPart(label, shares, rate, self._checked_sizes([*shares], unit))
        by_bytes = "rate" in self.section.options and "rate_iops" not in self.section.options
        if by_bytes and rate is not None and len(set(part.all_sizes)) > 1:
            why = "fio's gaps are as long as an I/O is large"
            self._drop(self.section.options["rate"], why, "the plan's are alike, at the same rate", matters=False)
        return part

    def _rated(self) -> Option | None:
        return self.section.options.get("rate_iops") or self.section.options.get("rate")

    def _rates(self) -> tuple[float | None, ...]:
        """I/Os per second of reads, writes and trims, of one clone; None: not limited."""
        rates = self._each("rate_iops", lambda text: float(self._size(text)), 0.0)
        if "rate_iops" in self.section.options:
            return tuple(rate or None for rate in rates)
        in_bytes = self._each("rate", lambda text: float(self._size(text)), 0.0)
        return tuple(rate / self._drawn(one).mean or None for one, rate in zip(PLACE_OF, in_bytes, strict=True))

    def _poisson(self, sequential: bool) -> bool:
        option = self.section.options.get("rate_process")
        if option is None or option.value != "poisson":
            return False
        if sequential:
            self._drop(option, "a sequential workload has even gaps", "", matters=True)
        return not sequential

    def _steady(self, runtime: float) -> FioSteady | None:
        option = self.section.options.get("ss")
        if option is None:
            return None
        criterion, _, limit = option.value.partition(":")
        if criterion not in _CRITERIA or not re.fullmatch(r"\d+(\.\d+)?%", limit):
            self._drop(option, "a limit is a percentage of iops or bw", "use `steady` (docs/control.md)", matters=True)
            return None
        window = self._value("ss_dur", seconds_of, 0.0)
        if not window:
            why = "without `ss_dur`, fio looks for no steady state"
            self._drop(option, why, "the plan measures for its time", matters=False)
            return None
        timeout = runtime or STEADY_TIMEOUT_S
        if timeout < 4 * window:
            why = f"a steady state needs four windows here: {format_duration(4 * window)} at most"
            self._drop(option, why, "shorten `window`", matters=True)
        return FioSteady(_CRITERIA[criterion], limit, window, max(timeout, 4 * window))


def _share(text: str) -> float:
    """ "150%": 1.5. Raises ValueError."""
    number = text.strip().removesuffix("%")
    if not re.fullmatch(r"\d+(\.\d+)?", number) or float(number) <= 0:
        raise ValueError(f"{text!r} is not a percentage above 0")
    return float(number) / 100


def _iops(rate: float | None, share: float) -> str:
    return "max" if rate is None else format_number(round(rate * share, 6))
