"""The runs of a parameter file of vdbench: which streams each step drives, and how.

vdbench's `iorate` is the rate of everything that an rd drives. Each of its workloads has its skew of it, or an equal
part, and a workload divides its part over its LUNs. `threads` are the I/Os in flight on an sd, by all hosts and
workloads together.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Final

from ...protocol.parameters import MOST_PARTS, PARAMETERS
from ..text.mixes import Sizes, Weighted
from ..text.suggestions import suggestion
from ..text.units import format_bytes, format_duration, format_fraction, format_number, format_sizes
from .description import Dropped, Settings, Stream, is_device
from .sizes import fewer, spaced
from .vdbench_definitions import DIRECT, Rd, Sd, Wd
from .vdbench_luns import VdbenchLun, VdbenchLuns, matches, span_of

MOST_STEPS: Final = 10_000  # of a plan
_SETTING_OF: Final = {
    "xfersize": "blocksize", "threads": "maxtags", "rdpct": "fraction_read", "seekpct": "iosequencer",
    "iorate": "total_iops",
}  # fmt: skip
_RATE: Final = "iorate"
_Values = Mapping[str, float | None]  # what the lists of an rd set, of one combination

# Depth, range, which of the same LUN, and the keys of flags and of the order of addresses.
_Alike = tuple[float, tuple[str, str] | None, int, Settings]


@dataclass(frozen=True, slots=True)
class Load:
    """A stream in one step."""

    stream: Stream  # without a rate; its name is that of the wd
    rate: str | None  # I/Os per second of the stream on all LUNs; None: max
    copy: int = 1  # which of the streams that are alike: of sds that are one LUN

    @property
    def identity(self) -> object:
        """The settings that edits cannot change: loads of several steps that agree in it are one workload of the
        plan.
        """
        return self.stream.name, self.stream.paths, self.stream.on, self.stream.span, self.stream.more, self.copy

    @property
    def fixed(self) -> dict[str, str]:
        """All settings but the rate."""
        return {
            "iosequencer": self.stream.iosequencer,
            "blocksize": format_sizes(self.stream.blocksize),
            "fraction_read": format_fraction(self.stream.fraction_read),
            "maxtags": str(self.stream.depth),
        }

    @property
    def settings(self) -> dict[str, str]:
        return {**self.fixed, **({"iops": "max"} if self.rate is None else {"total_iops": self.rate})}


@dataclass(frozen=True, slots=True)
class Pass:
    """One combination of an rd's lists."""

    label: str  # `threads-8`
    loads: tuple[Load, ...]
    threads: float | None  # instead of those of the sds


@dataclass(frozen=True, slots=True)
class Runs:
    """An rd written out."""

    name: str
    keys: Settings
    dimensions: tuple[tuple[str, int], ...]  # settings of a plan and how many values each takes
    passes: tuple[Pass, ...]
    curve: tuple[float, ...]  # each pass is at max, and is followed by these shares of it

    @property
    def steps(self) -> int:
        return len(self.passes) * (1 + len(self.curve))


@dataclass
class RunReader:
    """An rd on its way to steps."""

    rd: Rd
    wds: Sequence[Wd]
    luns: VdbenchLuns
    faults: list[str]
    dropped: list[Dropped]
    of_wd: dict[str, list[VdbenchLun]] = field(default_factory=dict)
    hosts: dict[str, set[str]] = field(default_factory=dict)  # by sd: those that drive it
    users: dict[tuple[str, str], int] = field(default_factory=dict)  # by sd and host: number of workloads
    is_tied: bool = False  # its workloads hold their shares at their maximum

    def read(self) -> Runs | None:
        """None where the rd cannot be read."""
        before = len(self.faults)
        chosen = self._chosen()
        for wd in chosen:
            self.of_wd[wd.name] = self._luns(wd)
            for lun in self.of_wd[wd.name]:
                self.hosts.setdefault(lun.name, set()).update(lun.paths)
                for host in lun.paths:
                    self.users[lun.name, host] = self.users.get((lun.name, host), 0) + 1
        shares = self._shares(chosen)
        if len(self.faults) > before or not chosen:
            return None
        loops: list[tuple[str, tuple[float | None, ...]]] = [(loop.name, loop.values) for loop in self.rd.loops]
        loops += [(_RATE, self.rd.rates)] if self.rd.rates else []
        count = math.prod(len(values) for _, values in loops) * (1 + len(self.rd.curve or ()))
        if count > MOST_STEPS:
            self._fault(f"its lists make {count:,} steps; a plan has at most {MOST_STEPS:,}")
            return None
        self._note_sharing()
        passes = []
        for combination in product(*(values for _, values in loops)):
            values = dict(zip((name for name, _ in loops), combination, strict=True))
            label = "-".join(f"{name}-{_short(name, values[name])}" for name, all_ in loops if len(all_) > 1)
            loads = tuple(load for wd in chosen for load in self._loads(wd, shares[wd.name], values))
            passes.append(Pass(label, loads, values.get("threads")))
        self._note_depth(passes)
        dimensions = tuple((_SETTING_OF[name], len(values)) for name, values in loops if len(values) > 1)
        return Runs(self.rd.name, self._keys(), dimensions, tuple(passes), self.rd.curve or ())

    def _keys(self) -> Settings:
        rd = self.rd
        keys = [("subinterval", format_duration(rd.interval_s))] if rd.interval_s != 1.0 else []
        keys += [("warmup", format_duration(rd.warmup_s)), ("measure", format_duration(rd.elapsed_s))]
        return (*keys, *([("cooldown", format_duration(rd.pause_s))] if rd.pause_s else []))

    def _chosen(self) -> list[Wd]:
        """The rd's workloads, each once."""
        wds: dict[str, Wd] = {}
        for pattern in self.rd.wds:
            of_one = [wd for wd in self.wds if matches(pattern, wd.name)]
            if not of_one:
                self._fault(f"no wd {pattern}{suggestion(pattern, [wd.name for wd in self.wds])}")
            wds |= {wd.name: wd for wd in of_one}
        if not self.rd.wds:
            self._fault("no `wd`")
        return list(wds.values())

    def _luns(self, wd: Wd) -> list[VdbenchLun]:
        """Of a workload, with the paths of its hosts only."""
        patterns = self.rd.sds or wd.sds
        if not patterns:
            self.faults.append(f"{wd.record.where}: {wd.record.text}: no `sd`")
        record = self.rd.record if self.rd.sds else wd.record
        hosts = self.luns.hosts.matching(wd.hosts)
        luns = []
        named = self.luns.matching(patterns, record.where, record.text)
        for lun in named:
            paths = {host: path for host, path in lun.paths.items() if host in hosts}
            luns += [VdbenchLun(lun.sd, paths)] if paths else []
        if named and not luns:
            self.faults.append(f"{wd.record.where}: {wd.record.text}: none of its hosts has any of its LUNs")
        return luns

    def _shares(self, chosen: Sequence[Wd]) -> Mapping[str, float]:
        """Of the rate that is left beside workloads with rates of their own."""
        free = [wd for wd in chosen if wd.iorate is None]
        given = sum(wd.skew or 0.0 for wd in free)
        without = [wd for wd in free if not wd.skew]
        if free and (given > 100.0001 or (not without and given < 99.9999)):
            self._fault(f"the skew of its workloads is {given:g}, and has to be 100")
        rest = (100.0 - given) / len(without) if without else 0.0
        if (None in self.rd.rates or self.rd.curve) and given and len(chosen) > 1:
            self.is_tied = len({frozenset(lun.name for lun in self.of_wd[wd.name]) for wd in free}) == 1
            for wd in free:
                if wd.skew and not self.is_tied:
                    why = "workloads at their maximum hold their shares of each LUN, and these have other LUNs"
                    self._drop_of(wd, "skew", why, "give the rd a rate")
        return {wd.name: (wd.skew or rest) / 100 for wd in chosen}

    def _loads(self, wd: Wd, share: float, values: _Values) -> Iterator[Load]:
        reads = (values.get("rdpct", wd.reads) or 0.0) / 100
        sizes = self._sizes(wd, values, MOST_PARTS // 2 if 0 < reads < 1 else MOST_PARTS)
        sequential = self._seek(wd, values) == 0
        rate = self._rate(wd, share, values)
        if sequential and self.rd.poisson and rate is not None:
            asked = "distribution" in self.rd.record.parameters
            why = "vdbench's gaps are exponential unless `distribution` says otherwise"
            self._drop_of(self.rd, "distribution", why, "those of a sequential workload are even", matters=asked)
        everywhere = sum(len(lun.paths) for lun in self.of_wd[wd.name])
        for (depth, span, copy, more), alike in self._groups(wd, values, sizes).items():
            stream = Stream(
                name=wd.name, paths=tuple(dict.fromkeys(path for _, path in alike)), sequential=sequential,
                fraction_read=reads, blocksize=sizes[0][0] if len(sizes) == 1 else Sizes(sizes),
                depth=max(round(depth), 1), iops="0", poisson=self.rd.poisson and not sequential, span=span,
                on=self._on(alike),
                more=(*(key for key in more if key[0] != "sync" or reads < 1), *self._skew(wd, share)),
            )  # fmt: skip
            if stream.depth > int(PARAMETERS["maxtags"].high or stream.depth):
                self._fault(f"{stream.depth} I/Os in flight are too many")
            own = None if rate is None else rate * len(alike) / everywhere
            yield Load(stream, None if own is None else format_number(round(own, 6)), copy)

    def _skew(self, wd: Wd, share: float) -> Settings:
        return (("skew", format_fraction(round(share, 6))),) if self.is_tied and wd.iorate is None else ()

    def _groups(self, wd: Wd, values: _Values, sizes: Weighted) -> Mapping[_Alike, list[tuple[str, str]]]:
        """Hosts and paths where the workload's LUNs have the same depth, range and flags, by these.

        Two sds that are one LUN are in two groups, the first and the second: in one, it would be driven once.
        """
        groups: dict[_Alike, list[tuple[str, str]]] = {}
        seen: dict[tuple[str, str], int] = {}
        for lun in self.of_wd[wd.name]:
            threads = values.get("threads") or lun.sd.threads
            for host, path in lun.paths.items():
                seen[host, path] = seen.get((host, path), 0) + 1
                depth = threads / (len(self.hosts[lun.name]) * self.users[lun.name, host])
                span = span_of(lun.sd, wd.range, self.luns.is_created(lun.sd, path))
                opened = _opened(path, self.rd.flags | wd.flags | lun.sd.flags)
                more = (*self._order(wd, lun.sd, values, sizes), *opened)
                groups.setdefault((depth, span, seen[host, path], more), []).append((host, path))
        return groups

    def _on(self, alike: Sequence[tuple[str, str]]) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """The hosts and their paths, where not every host drives each of the paths."""
        names = self.luns.hosts.names
        by_host = {name: tuple(path for host, path in alike if host == name) for name in names}
        if len(set(by_host.values())) == 1:
            return ()
        return tuple((name, paths) for name, paths in by_host.items() if paths)

    def _rate(self, wd: Wd, share: float, values: _Values) -> float | None:
        """I/Os per second of a workload; None: max."""
        if wd.iorate is not None:
            return wd.iorate
        rate = values.get(_RATE)
        if rate is None:
            return None
        own = sum(one.iorate or 0.0 for one in self.wds if one.name in self.of_wd)
        return max(rate - own, 0.0) * share

    def _sizes(self, wd: Wd, values: _Values, most: int) -> Weighted:
        """The sizes of a workload's I/Os, `most` at most."""
        looped = values.get("xfersize")
        given = wd.sizes if looped is None else (looped,)
        count, sizes = 1, spaced(int(given[0]), 0, 1, 1)
        if len(given) == 3:
            least, largest, step = map(int, given)
            count = (largest - least) // step + 1
            sizes = spaced(least, step, count, most)
        elif len(given) > 1:
            shares: dict[int, float] = {}
            for size, percent in zip(given[::2], given[1::2], strict=True):
                shares[int(size)] = shares.get(int(size), 0.0) + percent / 100
            count, sizes = len(shares), fewer(list(shares.items()), most, 512)
        if count > most:
            why = f"a plan has at most {MOST_PARTS} sizes of reads and writes together"
            self._drop_of(wd, "xfersize", why, "it has neighbours' mean sizes")
        high = int(PARAMETERS["blocksize"].high or 0)
        for size, _ in sizes:
            if size % 512 or not 1 <= size <= high:
                self._fault(f"xfersize {size}: an I/O is a multiple of 512, up to {format_bytes(high)}")
                break
        return sizes

    def _seek(self, wd: Wd, values: _Values) -> float:
        """The share of I/Os that go anywhere, in percent."""
        if wd.streams > 1:
            return 0.0
        looped = values.get("seekpct")
        return wd.seek if looped is None else looped

    def _order(self, wd: Wd, sd: Sd, values: _Values, sizes: Weighted) -> Settings:
        """The keys of where its I/Os go: `align`, `sequential`, `streams`.

        In vdbench, a random I/O begins at a multiple of `align`, or of its own size; a sequential one where the last
        one ended, be that read or written.
        """
        all_sizes, seek = [size for size, _ in sizes], self._seek(wd, values)
        if seek == 0:
            unit = math.gcd(*all_sizes)
            keys = [("align", format_bytes(unit))] if unit != min(all_sizes) else []
            if wd.streams > 1:
                why = "a thread of vdbench keeps to its stream"
                self._drop_of(wd, "streams", why, "the plan's streams take turns")
                keys.append(("streams", str(wd.streams)))
            return tuple(keys)
        align = sd.align or min(all_sizes)
        if not sd.align and len(sizes) > 1:
            why = "vdbench's I/Os begin at multiples of their own size"
            self._drop_of(wd, "xfersize", why, "the plan's at multiples of the smallest; use `align`")
        elif seek < 100 and any(size % align for size in all_sizes):
            why = "vdbench's I/O begins where the last one ended, aligned or not"
            self._drop_of(sd, "align", why, "the plan's at the next multiple of `align`")
        keys = [("align", format_bytes(align))] if sd.align else []
        return (*keys, *([("sequential", f"{format_number(100 - seek)}%")] if seek < 100 else []))

    # What differs

    def _note_sharing(self) -> None:
        if max(self.users.values()) > 1:
            matters = self.rd.curve is not None or None in self.rd.rates
            why = "the threads of an sd serve all of its workloads"
            self._drop_of(self.rd, "wd", why, "the plan gives each an equal part", matters=matters)

    def _note_depth(self, passes: Sequence[Pass]) -> None:
        """Names the first LUN whose I/Os in flight are not those of vdbench."""
        looped = any(loop.name == "threads" for loop in self.rd.loops)
        sds = {lun.name: lun.sd for found in self.of_wd.values() for lun in found}
        places: dict[str, set[tuple[str, str]]] = {name: set() for name in sds}
        for lun in (lun for found in self.of_wd.values() for lun in found):
            places[lun.name] |= set(lun.paths.items())
        for pass_ in passes:
            planned = _depths(pass_.loads, self.luns.hosts.names)
            asked: dict[tuple[str, str], float] = {}
            for name, sd in sds.items():
                for place in places[name]:
                    asked[place] = asked.get(place, 0.0) + (pass_.threads or sd.threads) / len(places[name])
            for name, sd in sds.items():
                asked_depth = round(sum(asked[place] for place in places[name]))
                planned_depth = sum(planned.get(place, 0) for place in places[name])
                if asked_depth != planned_depth:
                    why = f"vdbench has {asked_depth} I/Os in flight on {name}, of all hosts and workloads"
                    nearest = f"the plan has {planned_depth}: `maxtags` is that of each host and workload"
                    self._drop_of(self.rd if looped else sd, "threads", why, nearest)
                    return

    def _fault(self, why: str) -> None:
        self.faults.append(f"{self.rd.record.where}: {self.rd.record.text}: {why}")

    def _drop_of(self, of: Rd | Wd | Sd, name: str, why: str, nearest: str, *, matters: bool = True) -> None:
        one = of.record.parameters.get(name)
        where, text = (one.where, one.text) if one else (of.record.where, of.record.text)
        self.dropped.append(Dropped(where, text, why, nearest, matters))


def _opened(path: str, flags: frozenset[str]) -> Settings:
    """The keys of what vdbench opens so: a file through the page cache, which it does not drop, unless it is told."""
    cached = DIRECT.isdisjoint(flags) and not is_device(path)
    keys = [("direct", "false"), ("drop_cache", "false")] if cached else []
    durable = "sync" if "o_sync" in flags else "dsync" if "o_dsync" in flags else ""
    return (*keys, ("sync", durable)) if durable else tuple(keys)


def _depths(loads: Sequence[Load], names: Sequence[str]) -> Mapping[tuple[str, str], int]:
    """I/Os in flight by host and path."""
    depths: dict[tuple[str, str], int] = {}
    for load in loads:
        for host, paths in load.stream.on or [(name, load.stream.paths) for name in names]:
            for path in paths:
                depths[host, path] = depths.get((host, path), 0) + load.stream.depth
    return depths


def _short(name: str, value: float | None) -> str:
    if value is None:
        return "max"
    return format_bytes(int(value)) if name == "xfersize" else format_number(value)
