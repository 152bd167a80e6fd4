"""The plan of `ivypy quick`: from its options to a commented YAML text that the ordinary loader reads.

Rule: pure. What is at a path was found before (`Target`). The plan has no privilege: gate, consent and verdicts are the
same as for a plan that a person wrote.
"""

import glob
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Final

from ...protocol.geometry import LEAST_BLOCK
from ...protocol.parameters import PARAMETERS, Operation
from ..control.choices import LATENCIES
from ..control.search import probes_within, search_length, shortest_search
from ..errors import PlanError
from ..rollup.metrics import HOW_SHORT, METRICS, SHORT_NAMES, Quantity, full_name, metric_of
from ..text.metric_amounts import parse_amount
from ..text.mixes import Operations, Sizes, Weighted, all_sizes, mix_of, shares_of
from ..text.suggestions import did_you_mean, listed
from ..text.units import (
    format_bytes,
    format_duration,
    format_operations,
    format_sizes,
    parse_bytes,
    parse_duration,
)

_THRESHOLD: Final = re.compile(r"([A-Za-z0-9_.]+)\s*(<=|>=)\s*(\S.*)")
_CUT_NUMBER: Final = re.compile(r"[^,]*[<>]=\s*-?\d+(\s*,\s*\d[^,]*)+")  # 20,000: no metric begins with a digit
_SIDES: Final = {"<=": "at_most", ">=": "at_least"}
MAX_STEP_S: Final = 10.0  # the run at max that `--rate 80%` refers to
LONG_S: Final = 10.0  # a measurement from which on the warmup is LONG_WARMUP_S
LONG_WARMUP_S: Final = 2.0
SHORT_WARMUP_S: Final = 1.0
HIGHEST_RATE: Final = 5e7  # beyond it, bytes are meant, as fio's --rate has them
USUAL_TIME_S: Final = 30.0
USUAL_SEARCH_S: Final = 180.0
FEW_PROBES, ENOUGH_PROBES = 5, 8  # of a search: with fewer it may end without an answer; with so many rarely
SHORTEST_PROBE, LONGEST_PROBE = 10, 10_000  # subintervals, as `find` takes them
OBJECTIVES: Final = {name.replace("_", "."): name for name in LATENCIES}  # --p99.9: the metric's statistic


class TargetKind(Enum):
    DEVICE = "paths"
    FILE = "files"
    NEW = "create"


@dataclass(frozen=True, slots=True)
class QuickTarget:
    """A path to drive, and what is there."""

    path: str  # absolute
    kind: TargetKind
    size: int | None = None  # bytes, of a file that exists


class Rw(StrEnum):
    """The kind of I/O, in fio's words."""

    READ = "read"
    WRITE = "write"
    RANDREAD = "randread"
    RANDWRITE = "randwrite"
    RW = "rw"
    READWRITE = "readwrite"
    RANDRW = "randrw"
    TRIM = "trim"
    RANDTRIM = "randtrim"


_TRIMS: Final = (Rw.TRIM, Rw.RANDTRIM)
_SEQUENTIAL: Final = (Rw.READ, Rw.WRITE, Rw.RW, Rw.READWRITE, Rw.TRIM)
_READS: Final = {Rw.READ: 1.0, Rw.RANDREAD: 1.0, Rw.WRITE: 0.0, Rw.RANDWRITE: 0.0, **dict.fromkeys(_TRIMS, 0.0)}
_BS_OF: Final = (Operation.READ, Operation.WRITE, Operation.TRIM)  # in fio's order


@dataclass(frozen=True, slots=True)
class QuickOptions:
    """The command line; texts as typed."""

    targets: tuple[QuickTarget, ...] = ()
    select: tuple[str, ...] = ()
    hosts: str | None = None
    user: str | None = None
    rw: str = Rw.RANDREAD
    blocksize: str = "4k"
    bssplit: str | None = None
    blockalign: str | None = None
    percentage_random: int | None = None
    random_distribution: str | None = None
    by_address: int | None = None
    iodepth: int = 32
    numjobs: int = 1
    rwmixread: str | None = None
    time: str | None = None
    io_size: str | None = None
    number_ios: str | None = None
    once: bool = False
    ramp: str | None = None
    size: str | None = None
    buffered: bool = False
    keep_cache: bool = False
    fsync: int | None = None
    fdatasync: int | None = None
    end_fsync: bool = False
    sync: str | None = None
    rate: str | None = None
    objectives: tuple[tuple[str, str], ...] = ()  # ("p99", "5ms")
    within: str | None = None
    slo: tuple[str, ...] = ()  # "p99<=5ms,iops>=20k"
    backend: str | None = None
    name: str = "quick"


@dataclass(frozen=True, slots=True)
class _Workload:
    name: str
    sequential: bool
    reads: float
    trims: bool
    sizes: int | Sizes
    maxtags: int

    @property
    def operations(self) -> Operations:
        return ((Operation.TRIM, 1.0),) if self.trims else shares_of((), self.reads)

    @property
    def mean_bytes(self) -> float:
        return sum(part.share * part.bytes for part in mix_of(self.sizes, self.reads, self.operations))


@dataclass(frozen=True, slots=True)
class QuickPlan:
    """The plan, and what it does in one line."""

    text: str
    heading: str
    notes: tuple[str, ...] = ()  # sentences on what its result may lack


def quick_plan(options: QuickOptions, command: str) -> QuickPlan:
    """`command` becomes the plan's first comment. Raises PlanError, whose text names the option."""
    rw = parsed_rw(options.rw)
    size = None if options.size is None else _size("--size", options.size)
    measure_s = USUAL_TIME_S if options.time is None else seconds("--time", options.time)
    if measure_s < 1:
        raise PlanError(f"--time {options.time}: a measurement takes 1s at least")
    default_ramp_s = LONG_WARMUP_S if measure_s >= LONG_S else SHORT_WARMUP_S
    ramp_s = default_ramp_s if options.ramp is None else seconds("--ramp", options.ramp)
    workload = _workload(options, rw)
    steps, what = _steps(options, rw, measure_s, ramp_s, workload)
    writes = workload.reads < 1
    cache, flushes = _cache(options), _flushes(options, rw, writes)
    existing = bool(options.select) or any(one.kind is not TargetKind.NEW for one in options.targets)
    lines = [
        f"# {_one_line(command)}",
        f"name: {_quoted(options.name)}",
        *_hosts(options),
        *([f"engine: {{ backend: {_quoted(options.backend)} }}"] if options.backend else []),
        *([f"by_address: {options.by_address}"] if options.by_address else []),
        "",
        *_luns(options, size, max(all_sizes(workload.sizes))),
        *(["destroy: true                  # allows writing; the token agrees to it"] if writes and existing else []),
        "",
        "workloads:",
        *_lines(options, workload, size if existing else None),
        *cache,
        *flushes,
        "",
        f"defaults: {{ subinterval: 1s, warmup: {format_duration(ramp_s)}, measure: {format_duration(measure_s)} }}",
        "",
        *_rollups(options),
        *steps,
    ]
    first = f", the first {format_bytes(size)}" if size is not None and existing else ""
    return QuickPlan(
        "\n".join(lines) + "\n",
        f"{rw} {_sizes_in_words(options)}, iodepth {workload.maxtags}{_through(options)}, {what}{first}",
        _notes(options, ramp_s),
    )


def parsed_rw(text: str) -> Rw:
    """Raises PlanError with the nearest word."""
    word = text.lower().partition(":")[0]
    if word in ("trimwrite", "randtrimwrite"):
        raise PlanError(f"--rw {text}: no block is written as soon as it was trimmed; write randtrim or randwrite")
    if word not in list(Rw):
        kinds = [str(one) for one in Rw]
        meant = did_you_mean(word, kinds) or f";\nthere are {listed(kinds)}"
        raise PlanError(f"--rw {text}: not a kind of I/O{meant}")
    return Rw(word)


def seconds(option: str, text: str) -> float:
    """ "30s", "5m", or a plain number of seconds, as fio has it. Raises PlanError."""
    try:
        plain = re.fullmatch(r"\d+(\.\d+)?", text.strip())
        return parse_duration(f"{text.strip()}s" if plain else text)
    except ValueError as error:
        raise PlanError(f"{option}: {error}") from None


_NO_SIZE: Final = {
    ("--size", "%"): "write a size, like 1G; a part of a device is the `range` of a plan (--save)",
}


def _size(option: str, text: str) -> int:
    """ "4k", "10G": powers of two, as fio has them; "4kB" as in plans. Raises PlanError."""
    stripped = text.strip()
    if hint := _NO_SIZE.get((option, stripped[-1:])):
        raise PlanError(f"{option} {text}: {hint}")
    bare = re.fullmatch(r"([\d.]+)\s*([kKmMgGtTpP])", stripped)
    try:
        return parse_bytes(f"{bare[1]}{bare[2].upper()}iB" if bare else stripped)
    except ValueError as error:
        raise PlanError(f"{option}: {error}") from None


def _bounded(option: str, parameter: str, value: int) -> int:
    about = PARAMETERS[parameter]
    low, high = int(about.low or 0), int(about.high or value)
    if not low <= value <= high:
        least, most = (format_bytes(n) if parameter == "blocksize" else str(n) for n in (low, high))
        raise PlanError(f"{option}: {value} is out of range; from {least} to {most}")
    return value


def _workload(options: QuickOptions, rw: Rw) -> _Workload:
    sequential = rw in _SEQUENTIAL
    if options.numjobs < 1:
        raise PlanError(f"--numjobs {options.numjobs}: at least 1")
    if sequential and options.numjobs > 1:
        raise PlanError(
            f"--numjobs {options.numjobs}: ivypy drives one sequential stream per target, with a thread per core;\n"
            "for more I/Os in flight write --iodepth, for random addresses --rw randread"
        )
    iodepth = _bounded("--iodepth", "maxtags", options.iodepth)
    depth = _bounded("--iodepth x --numjobs", "maxtags", iodepth * options.numjobs)
    if options.percentage_random is not None and sequential:
        raise PlanError(f"--percentage-random with --rw {rw}: fio ignores it there; write --rw rand{rw}")
    return _Workload(str(rw), sequential, _reads(options, rw), rw in _TRIMS, _sizes(options), depth)


def _sizes(options: QuickOptions) -> int | Sizes:
    """Of --bssplit, else of --bs: one, or of reads and writes apart. Raises PlanError."""
    if options.bssplit is not None:
        return _split(options.bssplit)
    texts = [text for text in options.blocksize.split(",") if text.strip()]
    if not 1 <= len(texts) <= len(_BS_OF):
        raise PlanError(f"--bs {options.blocksize}: write a size like 4k, or those of reads and writes: 4k,64k")
    sizes = [_block(options, text) for text in texts]
    if len(sizes) == 1:
        return sizes[0]
    sizes += sizes[-1:] * (len(_BS_OF) - len(sizes))  # fio: whatever has none has the last
    return Sizes((), tuple((operation, ((size, 1.0),)) for operation, size in zip(_BS_OF, sizes, strict=True)))


def _block(options: QuickOptions, text: str) -> int:
    size = _bounded("--bs", "blocksize", _size("--bs", text))
    if size % LEAST_BLOCK and not options.buffered:
        raise PlanError(f"--bs {text.strip()}: not a multiple of {LEAST_BLOCK} bytes; a file takes it --buffered")
    return size


def _split(text: str) -> int | Sizes:
    """`4k/60:64k/40`, with a comma between those of reads and of writes, as fio has it. Raises PlanError."""
    from ..imports.fio_text import split_of_sizes

    directions: list[Weighted] = []
    for part in text.split(","):
        try:
            sizes = split_of_sizes(part, lambda size: _size("--bssplit", size))
        except ValueError as error:
            raise PlanError(f"--bssplit {text}: {error}") from None
        directions.append(tuple((size, share / 100) for size, share in sizes))
    if not all(directions) or len(directions) > len(_BS_OF):
        raise PlanError(f"--bssplit {text}: write sizes like 4k/60:64k/40, with a comma before those of writes")
    if len(directions) == 1:
        return directions[0][0][0] if len(directions[0]) == 1 else Sizes(directions[0])
    directions += directions[-1:] * (len(_BS_OF) - len(directions))
    return Sizes((), tuple(zip(_BS_OF, directions, strict=True)))


def _sizes_in_words(options: QuickOptions) -> str:
    if options.bssplit is not None:
        return options.bssplit
    return "/".join(format_bytes(_size("--bs", text)) for text in options.blocksize.split(",") if text.strip())


def _reads(options: QuickOptions, rw: Rw) -> float:
    """The share of I/Os that are reads."""
    if rw in _READS:
        if options.rwmixread is not None:
            raise PlanError(f"--rwmixread {options.rwmixread}: --rw {rw} is not mixed; write --rw randrw")
        return _READS[rw]
    text = "50" if options.rwmixread is None else options.rwmixread
    number = text.strip().removesuffix("%")
    if not re.fullmatch(r"\d+(\.\d+)?", number) or not 0 <= float(number) <= 100:
        raise PlanError(f"--rwmixread {text}: write the percentage of reads, from 0 to 100")
    return float(number) / 100


def _hosts(options: QuickOptions) -> list[str]:
    if options.hosts is None:
        if options.user is not None:
            raise PlanError("--user is for --hosts: this machine is driven without a login")
        return []
    lines = [f"hosts: {_quoted(options.hosts)}"]
    return lines + ([f"ssh: {{ user: {_quoted(options.user)} }}"] if options.user is not None else [])


def _luns(options: QuickOptions, size: int | None, blocksize: int) -> list[str]:
    lines = ["luns:"]
    for kind in (TargetKind.DEVICE, TargetKind.FILE):
        paths = [target.path for target in options.targets if target.kind is kind]
        if kind is TargetKind.FILE:
            paths = [glob.escape(path) for path in paths]
        if paths:
            lines.append(f"  {kind.value}: [ {', '.join(map(_quoted, paths))} ]")
    new = [target for target in options.targets if target.kind is TargetKind.NEW]
    if new:
        lines.append("  create:                       # written in full, and removed at the end")
        for target in new:
            if "{" in target.path:
                raise PlanError(f"{target.path}: a new file cannot have {{ in its name; choose another")
            if size is None:
                raise PlanError(f"{target.path}: to create it, write its size: --size 1G")
            lines.append(f"    - {{ path: {_quoted(target.path)}, size: {format_bytes(size)} }}")
    if options.select:
        lines.append(f"  select: {{ {', '.join(_selected(options.select))} }}")
    for target in options.targets:
        if size is not None and target.size is not None and target.size < size:
            raise PlanError(
                f"--size {options.size}: {target.path} has only {format_bytes(target.size)};\n"
                "leave --size out to drive all of it, or name a file that does not exist"
            )
    if size is not None and size < blocksize:
        raise PlanError(f"--size {options.size}: smaller than one I/O (--bs {options.blocksize})")
    return lines


def _selected(texts: Sequence[str]) -> list[str]:
    """`vendor=HITACHI,size>=1T` as the entries of a plan's `select`. Raises PlanError."""
    values_by_key: dict[str, list[str]] = {}
    values: list[str] = []
    for part in (part for text in texts for part in text.split(",")):
        named = re.fullmatch(r"\s*([A-Za-z_][A-Za-z0-9_]*)\s*(!=|>=|<=|=|>|<)\s*(.+?)\s*", part)
        if named is None:
            if not part.strip() or not values:
                raise PlanError(f"--select {part!r}: write ATTRIBUTE=VALUE, like vendor=HITACHI or 'size>=1T'")
            values.append(part.strip())
            continue
        name, sign, value = named.groups()
        if name in values_by_key:
            raise PlanError(f"--select: {name} is named twice; write {name}=A,B for one of several")
        if name == "size" and ".." not in value:
            value = str(_size("--select size", value))
        prefix = {"=": "", "!=": "not "}.get(sign, f"{sign} ")
        values = values_by_key[name] = [prefix + value]
    return [
        f"{name}: {_quoted(some[0]) if len(some) == 1 else '[ ' + ', '.join(map(_quoted, some)) + ' ]'}"
        for name, some in values_by_key.items()
    ]


def _lines(options: QuickOptions, workload: _Workload, first_bytes: int | None) -> list[str]:
    """Lines of the workload. Raises PlanError."""
    order = "sequential" if workload.sequential else "random_steady"
    about = "ascending addresses" if workload.sequential else "random addresses, even gaps"
    mix = f"fraction_read: {workload.reads * 100:g}%"
    lines = [
        f"  {workload.name}:",
        f"    iosequencer: {order:14} # {about}",
        f"    blocksize: {format_sizes(workload.sizes)}",
        f"    {f'operations: {format_operations(workload.operations)}' if workload.trims else mix}",
        f"    maxtags: {workload.maxtags:<18} # I/Os in flight per target",
    ]
    if workload.sequential and 0 < workload.reads < 1:
        lines.append("    cursors: by_operation      # a stream of reads and one of writes")
    if options.percentage_random not in (None, 100):
        lines.append(f"    sequential: {100 - (options.percentage_random or 0)}%            # the rest at random")
    lines += _distribution(options, workload)
    if options.blockalign is not None:
        lines.append(f"    align: {format_bytes(_size('--blockalign', options.blockalign))}")
    return lines + ([f"    range: 0..{format_bytes(first_bytes)}"] if first_bytes is not None else [])


def _distribution(options: QuickOptions, workload: _Workload) -> list[str]:
    """Lines of where random I/Os go. Raises PlanError."""
    from ..imports.fio_distribution import law_of

    text = options.random_distribution
    if text is None:
        return []
    name = f"--random-distribution {text}"
    if workload.sequential:
        raise PlanError(f"{name}: --rw {workload.name} is not random; write --rw rand{workload.name}")
    try:
        made = law_of(text, lambda size: _size("--random-distribution", size))
    except ValueError as error:
        raise PlanError(f"{name}: {error}") from None
    if made.why:
        nearest = ", ".join(f"`{key}: {value}`" for key, value in made.keys)
        raise PlanError(f"{name}: {made.why};\nwhat comes nearest in a plan (--save FILE) is {nearest}")
    if options.once and not made.is_even:
        raise PlanError(f"{name} with --once: each block comes once, or some come more often; leave one of them out")
    return [f"    {key}: {value}" for key, value in made.keys]


def _cache(options: QuickOptions) -> list[str]:
    """Lines of a workload. Raises PlanError."""
    if options.keep_cache and not options.buffered:
        raise PlanError("--keep-cache: direct I/O goes past the page cache; write --buffered, too")
    if not options.buffered:
        return []
    if options.backend == "libaio":
        raise PlanError("--ioengine libaio: it waits for each I/O through the page cache; write --ioengine io_uring")
    keep = ["    drop_cache: false"] if options.keep_cache else []
    return ["    direct: false               # through the page cache", *keep]


def _through(options: QuickOptions) -> str:
    return ", through the page cache" if options.buffered else ""


def _flushes(options: QuickOptions, rw: Rw, writes: bool) -> list[str]:
    """Lines of a workload that writes. Raises PlanError."""
    every = {"--fsync": options.fsync, "--fdatasync": options.fdatasync}
    given = [name for name, number in every.items() if number]
    if len(given) > 1:
        raise PlanError(f"{given[0]} and {given[1]}: a workload has one kind of flush; leave one of them out")
    asked = [*given, *(["--end-fsync"] if options.end_fsync else [])]
    sync = _sync(options.sync)
    asked += ["--sync"] if sync else []
    if asked and not writes:
        raise PlanError(f"{asked[0]}: --rw {rw} writes nothing; leave it out")
    how = "" if given != ["--fdatasync"] else ", with: fdatasync"
    lines = [f"    flush: {{ every: {every[name]}{how} }}" for name in given]
    lines += [f"    sync: {sync}"] if sync else []
    return lines + (["    end_fsync: true"] if options.end_fsync else [])


def _sync(text: str | None) -> str:
    """ "" where writes need not be durable. Raises PlanError."""
    known = {None: "", "0": "", "none": "", "1": "sync", "sync": "sync", "dsync": "dsync"}
    if text not in known:
        raise PlanError(f"--sync {text}: write dsync (data) or sync (data and metadata)")
    return known[text]


def _rollups(options: QuickOptions) -> list[str]:
    """Rollup types of what there may be several of: `attach --by host` and the CSV show them apart."""
    several = {
        "host": options.hosts is not None,
        "lun": bool(options.select) or len(options.targets) > 1,
    }
    chosen = [name for name, is_so in several.items() if is_so]
    return [f"rollups: [ {', '.join(chosen)} ]", ""] if chosen else []


def _steps(
    options: QuickOptions, rw: Rw, measure_s: float, ramp_s: float, workload: _Workload
) -> tuple[list[str], str]:
    """The plan's steps, and what they are in a few words."""
    if options.within is not None and not options.objectives:
        raise PlanError("--within: the longest time of a search; name what to search for, like --p99 5ms")
    slo = _slo(options.slo, is_paced=options.rate is not None or bool(options.objectives))
    if options.objectives:
        if _ends_by(options) or options.end_fsync:
            end = "the volume" if _ends_by(options) else "--end-fsync"
            raise PlanError(f"--{options.objectives[0][0]}: a search takes a time: leave {end} out")
        if slo:
            raise PlanError(f"--slo with --{options.objectives[0][0]}: the search has its own threshold; leave one out")
        return _find(options, measure_s, ramp_s)
    volume, took = _volume(options, measure_s) or ([], f"for {format_duration(measure_s)}")
    if options.rate is None:
        return ["steps:", *_go(rw, [*volume, *slo])], f"at max {took}"
    rate = options.rate.strip()
    if rate.endswith("%"):
        if not re.fullmatch(r"\d+(\.\d+)?\s*%", rate) or not 0 < float(rate[:-1]) <= 1000:
            raise PlanError(f"--rate {rate}: write a share of the maximum, like 80%")
        first = format_duration(min(measure_s, MAX_STEP_S))
        return [
            "steps:",
            f"  - go: {{ name: max, measure: {first} }}",
            f"  - edit: {{ rollup: all=all, set: {{ total_iops: {rate} of step max }} }}",
            *_go("rate", [*volume, *slo]),
        ], f"{rate} of max {took}"
    if "-" in rate[1:]:
        return _ramp(options, rate, workload.mean_bytes, [*volume, *slo], measure_s)
    iops = _iops(rate, workload.mean_bytes)
    return [
        "steps:",
        f"  - edit: {{ rollup: all=all, set: {{ total_iops: {iops:.10g} }} }}   # of all targets together",
        *_go("rate", [*volume, *slo]),
    ], f"{iops:,.10g} IOPS {took}"


def _ramp(
    options: QuickOptions, rate: str, mean_bytes: float, keys: list[str], measure_s: float
) -> tuple[list[str], str]:
    """A rate that goes from one to another over the measurement: 1000-5000."""
    if _ends_by(options) or options.end_fsync:
        raise PlanError(f"--rate {rate}: a rate that changes takes a time: leave the volume out")
    ends = [part.strip() for part in rate.split("-")]
    if len(ends) != 2 or not all(ends):
        raise PlanError(f"--rate {rate}: a ramp has two rates, like 1000-5000")
    first, last = (_iops(end, mean_bytes) for end in ends)
    took = format_duration(measure_s)
    return [
        "steps:",
        *_go("ramp", [f"      profile: {{ ramp: [{first:.10g}, {last:.10g}] }}   # of all targets together", *keys]),
    ], f"{first:,.10g} to {last:,.10g} IOPS in {took}"


def _volume(options: QuickOptions, measure_s: float) -> tuple[list[str], str] | None:
    """The keys of a step that ends by volume, or with a flush, and what it does in a few words; None: by time."""
    names = _ends_by(options)
    if not names and options.end_fsync:
        return _flushed(options, measure_s)
    if not names:
        return None
    if len(names) > 1:
        raise PlanError(f"{names[0]} and {names[1]} both end the test; leave one of them out")
    keys = ["once: true"]
    words, longest = "each block once", ""
    if options.io_size is not None:
        keys, words = _io_size(options.io_size.strip())
    elif options.number_ios is not None:
        keys, words = _number_ios(options.number_ios.strip())
    if options.ramp is not None:
        keys.append(f"warmup: {format_duration(seconds('--ramp', options.ramp))}")
    if options.time is not None:
        time = format_duration(seconds("--time", options.time))
        keys.append(f"measure: {time:<18} # at most")
        longest = f", at most {time}"
    return [f"      {key}" for key in keys], f"until {words} on each target{longest}"


def _flushed(options: QuickOptions, measure_s: float) -> tuple[list[str], str]:
    ramp_s = 0.0 if options.ramp is None else seconds("--ramp", options.ramp)
    keys = [
        f"until: {{ time: {format_duration(ramp_s + measure_s)} }}   # and the flush",
        f"warmup: {format_duration(ramp_s)}",
    ]
    return [f"      {key}" for key in keys], f"for {format_duration(measure_s)} and a flush"


def _ends_by(options: QuickOptions) -> list[str]:
    """The options that end the test by volume, an empty one too: of a shell whose variable is not set."""
    given = {"--io-size": options.io_size, "--number-ios": options.number_ios, "--once": options.once or None}
    return [name for name, value in given.items() if value is not None]


def _io_size(text: str) -> tuple[list[str], str]:
    """ "10G", "2x", and "200%" as fio has it."""
    times = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([xX%])", text)
    if times is None:
        size = _size("--io-size", text) if text else 0
        amount = format_bytes(size) if size > 0 else "0"
    else:
        amount = f"{float(times[1]) / (100 if times[2] == '%' else 1):.10g}x"
    if not re.search(r"[1-9]", amount):
        raise PlanError(f"--io-size {text or repr(text)}: write a size above 0, like 10G, or 2x of each target")
    return [f"until: {{ bytes: {amount} }}"], amount


def _number_ios(text: str) -> tuple[list[str], str]:
    number = re.fullmatch(r"(\d+)([kKmM]?)", text)
    count = int(number[1]) * {"": 1, "k": 1000, "m": 1_000_000}[number[2].lower()] if number else 0
    if count < 1:
        raise PlanError(f"--number-ios {text or repr(text)}: write a number of I/Os, like 100000 or 1M")
    return [f"until: {{ ios: {count} }}"], f"{count:,} I/Os"


def _go(name: str, more: Sequence[str]) -> list[str]:
    return ["  - go:", f"      name: {name}", *more] if more else [f"  - go: {name}"]


def _thresholds(text: str) -> list[str]:
    """The parts of `p99<=5ms,iops>=20k`. Raises PlanError for a comma that separates no two of them."""
    if number := _CUT_NUMBER.search(text):
        raise PlanError(f"--slo {number[0].strip()}: write no comma within a number; it separates thresholds")
    parts = [part.strip() for part in text.split(",")]
    if len(parts) > 1 and not all(parts):
        raise PlanError(f"--slo {text}: a comma without a threshold; leave it out")
    return parts


def _slo(texts: Sequence[str], is_paced: bool) -> list[str]:
    """`p99<=5ms,iops>=20k` as thresholds of a step. Raises PlanError."""
    lines = []
    for part in (part for text in texts for part in _thresholds(text)):
        named = _THRESHOLD.fullmatch(part)
        if named is None:
            raise PlanError(
                f"--slo {part or repr(part)}: write METRIC<=VALUE or METRIC>=VALUE, like 'p99<=5ms' or 'iops>=20k'"
            )
        given, sign, value = named.groups()
        name = full_name(given)
        if name not in METRICS:
            raise PlanError(f"--slo {part}: there is no such metric{did_you_mean(given, SHORT_NAMES)}; {HOW_SHORT}")
        metric = METRICS[name]
        if is_paced and metric.quantity is Quantity.SERVICE and "service" not in given:  # p99: as --p99, from due times
            metric = metric_of(metric.category, Quantity.RESPONSE, metric.statistic)
        try:
            amount = parse_amount(metric.unit, value)
        except ValueError as error:
            raise PlanError(f"--slo {part}: {error}") from None
        may_be_0 = sign == "<=" and metric.quantity is Quantity.CPU  # no steal
        if amount < 0 or (amount == 0 and not may_be_0):
            raise PlanError(f"--slo {part}: write {'0 or more' if may_be_0 else 'a value above 0'}")
        if metric.needs_pacing and not is_paced:
            service = part.replace("response", "service")
            raise PlanError(f"--slo {part}: there is no response time at max; give a --rate, or write {service}")
        lines.append(f"        - {{ metric: {metric.name}, {_SIDES[sign]}: {_quoted(value)} }}")
    return ["      slo:", *lines] if lines else []


def _iops(rate: str, mean_bytes: float) -> float:
    """ "20000", "20k": I/Os per second; "200MiB/s": as many as make that. Raises PlanError."""
    if rate.lower().endswith("/s"):
        return _size("--rate", rate[:-2]) / mean_bytes
    number = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kKmMgG]?)", rate)
    if number is None:
        raise PlanError(f"--rate {rate}: write I/Os per second (20000, 20k), 200MiB/s, or 80% (of the maximum)")
    if number[2].lower() in ("m", "g"):  # bytes per second in fio
        as_size, as_count = f"{number[1]}{number[2].upper()}iB/s", f"{float(number[1]) * 1000:.10g}k"
        raise PlanError(f"--rate {rate}: write {as_size} or {as_count}: a transfer rate, or I/Os per second")
    iops = float(number[1]) * (1e3 if number[2] else 1.0)
    if not 0 < iops <= HIGHEST_RATE:
        raise PlanError(f"--rate {rate}: this is in I/Os per second, above 0 and up to {HIGHEST_RATE:,.0f}")
    return iops


def _find(options: QuickOptions, measure_s: float, ramp_s: float) -> tuple[list[str], str]:
    if len(options.objectives) > 1:
        raise PlanError("only one of " + ", ".join(f"--{name}" for name, _ in options.objectives) + " can be searched")
    ((name, text),) = options.objectives
    if options.rate is not None:
        raise PlanError(f"--rate and --{name}: --{name} searches for the rate; leave one of them out")
    try:
        target_s = parse_duration(text)
    except ValueError:
        raise PlanError(f"--{name} {text}: write a time with its unit, like 5ms or 500us") from None
    if not target_s:
        raise PlanError(f"--{name} {text}: write a time above 0, like 5ms")
    within_s = USUAL_SEARCH_S if options.within is None else seconds("--within", options.within)
    shortest_s = shortest_search(max(1, round(ramp_s)))
    if within_s < shortest_s:
        raise PlanError(
            f"--within {options.within}: a run at max and two probes take {format_duration(shortest_s)}; allow more"
        )
    longest = min(max(round(measure_s), SHORTEST_PROBE), LONGEST_PROBE)
    return [
        "steps:",
        "  - go:                         # the highest rate that meets it, with its interval",
        f"      name: {_quoted(name)}",
        f"      warmup: {format_duration(ramp_s)}",
        "      find:",
        f"        metric: overall_response_us_{OBJECTIVES[name]}",
        f"        target: {text.strip()}",
        "        resolution: 5%",
        f"        within: {format_duration(within_s)}",
        f"        longest_probe: {longest:<4}     # subintervals",
    ], f"search for {name} at most {text.strip()} within {format_duration(within_s)}"


def _notes(options: QuickOptions, ramp_s: float) -> tuple[str, ...]:
    """Of a short search, how few probes it has time for, and what time would tell more, in whole minutes."""
    if not options.objectives or options.within is None:
        return ()
    settle = max(1, round(ramp_s))
    probes = probes_within(int(seconds("--within", options.within)), settle)
    if probes >= FEW_PROBES:
        return ()
    enough_s = 60 * math.ceil(search_length(ENOUGH_PROBES, settle) / 60)
    return (f"time for about {probes} probes; --within {format_duration(enough_s)} tells more",)


def _quoted(text: str) -> str:
    """As YAML, taken literally."""
    return json.dumps(text.replace("${", "$${"), ensure_ascii=False)


def _one_line(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)
