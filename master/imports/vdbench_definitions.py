"""Reads each definition of a parameter file: hosts, storage, workloads and runs, in numbers.

Rule: faults and what is dropped are collected, so that a user sees all of them at once.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from ...protocol.parameters import PARAMETERS
from .description import Dropped
from .vdbench_records import Record
from .vdbench_text import Parameter, number
from .vdbench_words import LOOPS, RD, Without

THREADS: Final = 8
ELAPSED_S: Final = 30.0
INTERVAL_S: Final = 1.0
CURVE: Final = (0.1, 0.5, 0.7, 0.8, 0.9, 1.0)
DIRECT: Final = frozenset({"o_direct", "directio"})
_WITHOUT: Final = frozenset({"o_rsync", "fsync", "sync", "clear_cache"})  # openflags without counterpart

Range = tuple[float, float]  # both ends as written: up to 100 (the second up to 200) a percentage, else bytes


@dataclass(frozen=True, slots=True)
class Hd:
    """A host."""

    record: Record
    label: str
    address: str
    user: str
    clients: int


@dataclass(frozen=True, slots=True)
class Sd:
    """A LUN or a file."""

    record: Record
    name: str
    luns: tuple[
        tuple[str, tuple[str, ...]], ...
    ]  # each path, and the names of the hosts that have it, with * at the end
    size: int | None
    threads: int  # I/Os in flight, of all hosts and workloads together
    range: Range | None
    flags: frozenset[str]  # openflags
    align: int  # random I/Os begin at its multiples; 0: of their own size


@dataclass(frozen=True, slots=True)
class Wd:
    """A workload."""

    record: Record
    name: str
    sds: tuple[str, ...]  # names, with * at the end
    hosts: tuple[str, ...]
    sizes: tuple[float, ...]  # one, or (size, percent, ...), or (least, most, multiple)
    reads: float  # a percentage, as seek and skew
    seek: float
    skew: float | None
    iorate: float | None
    range: Range | None
    flags: frozenset[str]  # openflags
    streams: int  # sequential ones, each in its own part


@dataclass(frozen=True, slots=True)
class VdbenchLoop:
    """A parameter for each of whose values an rd runs."""

    name: str
    values: tuple[float, ...]
    parameter: Parameter


@dataclass(frozen=True, slots=True)
class Rd:
    """A run, or one for each combination of its lists."""

    record: Record
    name: str
    wds: tuple[str, ...]  # names, with * at the end
    sds: tuple[str, ...] | None  # instead of those of the wds
    rates: tuple[float | None, ...]  # I/Os per second of everything; None: max
    curve: tuple[float, ...] | None  # shares of the maximum that follow a run at max
    loops: tuple[VdbenchLoop, ...]  # the first changes slowest
    elapsed_s: float
    warmup_s: float
    interval_s: float
    pause_s: float
    poisson: bool
    flags: frozenset[str]  # openflags


@dataclass
class Reader:
    """The parameters of one definition."""

    record: Record
    faults: list[str]
    dropped: list[Dropped]

    def hd(self) -> Hd:
        named = self.record.name
        address = self._words("system")[0] if "system" in self.record.parameters else named
        user = self._words("user")
        return Hd(self.record, named, address, user[0] if user else "", int(self._number("clients", 0)))

    def sds(self) -> Iterator[Sd]:
        """One, or as many as `count` says."""
        sd = Sd(
            self.record, self.record.name, self._luns(), self._divided("size"), self._divided("threads") or THREADS,
            self._range(), self._flags(), self._align(),
        )  # fmt: skip
        counted = self._numbers("count")
        if "count" not in self.record.parameters:
            yield sd
        elif len(counted) != 2 or not 0 < counted[1] <= 10_000:
            self._fault("count", "write (first,number), like count=(1,8)")
        else:
            for place in range(int(counted[0]), int(counted[0] + counted[1])):
                luns = tuple((_counted(path, place), hosts) for path, hosts in sd.luns)
                yield replace(sd, name=_counted(sd.name, place), luns=luns)

    def wd(self) -> Wd:
        sizes = _without_zeros(self._numbers("xfersize")) or (4096.0,)
        if len(sizes) not in (1, 3) and (len(sizes) % 2 or round(sum(sizes[1::2])) != 100):
            self._fault("xfersize", "write pairs of a size and a percentage that add up to 100")
        reads = self._number("rdpct", self._number("readpct", 100.0))
        for name in ("wrpct", "writepct"):
            reads = 100 - self._number(name, 100 - reads)
        if len(sizes) == 3 and (min(sizes) < 1 or sizes[0] > sizes[1]):
            self._fault("xfersize", "write (least,largest,step), like xfersize=(4k,64k,4k)")
        for name, percent in (("rdpct", reads), ("skew", self._number("skew", 0.0))):
            if not 0 <= percent <= 100:
                self._fault(name, "not a percentage")
        if self._number("iorate", 0.0) < 0:
            self._fault("iorate", "a rate is above 0")
        return Wd(
            self.record, self.record.name, self._words("sd"), self._words("host") or self._words("hd") or ("*",), sizes,
            reads, self._seek(), self._optional("skew"), self._optional("iorate") or None, self._range(),
            self._flags(), self._streams(),
        )  # fmt: skip

    def rd(self) -> Rd:
        words = self._words("iorate")
        curve = words == ("curve",)
        elapsed, interval = self._number("elapsed", ELAPSED_S), self._number("interval", INTERVAL_S) or INTERVAL_S
        if elapsed < 2 * interval:
            self._fault("elapsed", f"{elapsed:g} s are not two intervals of {interval:g} s")
        points = self._numbers("curve")
        if self.record.parameters.get("iorate") is None:
            self._fault(None, "no `iorate`")
        if any(point <= 0 for point in points):
            self._fault("curve", "write percentages of the maximum, like curve=(10-100,10)")
        warmup = self._number("warmup", 0.0)
        for name in ("warmup", "pause", "interval"):
            if self._number(name, 0.0) < 0:
                self._fault(name, "a time is not below 0")
        return Rd(
            record=self.record, name=self.record.name, wds=self._words("wd"), sds=self._words("sd") or None,
            rates=() if curve else self._rates(words),
            curve=(tuple(point / 100 for point in points) or CURVE) if curve else None,
            loops=tuple(self._loops()),
            # Without `warmup`, vdbench leaves the first interval out of the totals.
            elapsed_s=elapsed if warmup else max(elapsed - interval, 1.0), warmup_s=warmup or interval,
            interval_s=interval, pause_s=self._number("pause", 0.0), poisson=self._poisson(),
            flags=self._flags(),
        )  # fmt: skip

    # The parts of a definition

    def _luns(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        paths = [one.values[0] for one in self.record.places if "lun".startswith(one.keyword) and one.values]
        hosts = [one.values for one in self.record.places if not "lun".startswith(one.keyword)]
        if not paths:
            self._fault(None, "no `lun`")
        if not hosts:
            hosts = [self._words("host") or self._words("hd") or ("*",)] * len(paths[:1])
        if len(hosts) != len(paths):
            self._fault(None, "`host` and `lun` stand in pairs: lun=/dev/sdb,host=a,lun=/dev/sdc,host=b")
        return tuple(zip(paths, hosts, strict=False))

    def _flags(self) -> frozenset[str]:
        """Those with which vdbench opens what it drives."""
        flags = [flag.lower() for flag in self._words("openflags")]
        if any(flag in _WITHOUT for flag in flags):
            self._drop("openflags", "the plan has `o_sync` and `o_dsync` alone", "use `end_fsync`", matters=True)
        return frozenset(flags)

    def _align(self) -> int:
        align = int(self._number("align", 0.0))
        if align < 0 or align % 512:
            self._fault("align", "not a multiple of 512")
        return align

    def _streams(self) -> int:
        streams = int(self._number("streams", 1.0))
        if not 1 <= streams <= int(PARAMETERS["streams"].high or streams):
            self._fault("streams", f"from 1 to {PARAMETERS['streams'].high:g}")
        return streams

    def _divided(self, name: str) -> int | None:
        """`32`, or `(32,4)`, which is a fourth of it."""
        given = self._numbers(name)
        if not given:
            return None
        by = given[1] if len(given) > 1 else 1.0
        if by < 1 or given[0] < by:
            self._fault(name, "not above 0")
            return None
        return int(given[0] / by)

    def _range(self) -> Range | None:
        ends = self._numbers("range")
        if "range" not in self.record.parameters:
            return None
        if len(ends) != 2 or not 0 <= ends[0] < ends[1]:
            self._fault("range", "write its begin and end, like range=(10,20)")
            return None
        if 100 < ends[1] <= 200:
            self._drop("range", "a range that goes on at the LUN's begin", "the plan's ends at its end", matters=True)
        return ends[0], ends[1]

    def _seek(self) -> float:
        value = 100.0
        for word in self._words("seekpct"):
            if "sequential".startswith(word) or word in ("seqnz", "eof", "-1"):
                value = 0.0
            elif "random".startswith(word) or "poisson".startswith(word):
                value = 100.0
            elif self._words("seekpct")[0] == word:
                value = self._number("seekpct", 100.0)
            if word in ("eof", "-1"):
                why, nearest = "vdbench stops at the end of the LUN", "the plan runs for `elapsed`; use `until`"
                self._drop("seekpct", why, nearest, matters=True)
            elif len(word) > 1 and "poisson".startswith(word):
                self._drop("seekpct", "random addresses are evenly distributed", "a small `range`", matters=True)
        if not 0 <= value <= 100:
            self._fault("seekpct", "not a percentage")
        return value

    def _rates(self, words: tuple[str, ...]) -> tuple[float | None, ...]:
        rates: list[float | None] = []
        for word in words:
            if word.endswith("%"):
                self._fault("iorate", "a percentage of the run before; use iorate=curve, or a number")
            elif word.lower() == "max":
                rates.append(None)
            else:
                rates += self._each("iorate", (word,))
        if any(rate is not None and rate <= 0 for rate in rates):
            self._fault("iorate", "a rate is above 0")
        return tuple(rates)

    def _loops(self) -> Iterator[VdbenchLoop]:
        for name, parameter in self.record.parameters.items():
            if name not in LOOPS or isinstance(RD[name], Without):
                continue
            if name == "seekpct" and len(parameter.values) == 1:
                yield VdbenchLoop(name, (self._seek(),), parameter)
            elif values := self._numbers(name):
                yield VdbenchLoop(name, values, parameter)

    def _poisson(self) -> bool:
        shape = "exponential"
        for word in self._words("distribution"):
            if "variable".startswith(word.lower()) or "spike".startswith(word.lower()):
                self._fault("distribution", "rates that change during a run; write an rd for each rate")
            else:
                known = ("exponential", "uniform", "deterministic")
                shape = next((name for name in known if name.startswith(word.lower())), "")
        if not shape:
            self._fault("distribution", "not exponential, uniform or deterministic")
        if shape == "uniform":
            self._drop("distribution", "gaps are even or exponential", "the plan has even gaps", matters=True)
        return shape == "exponential"

    # Single parameters

    def _fault(self, name: str | None, why: str) -> None:
        one = self.record.parameters.get(name) if name else None
        where, text = (one.where, one.text) if one else (self.record.where, self.record.text)
        self.faults.append(f"{where}: {text}: {why}")

    def _drop(self, name: str, why: str, nearest: str, *, matters: bool) -> None:
        one = self.record.parameters[name]
        self.dropped.append(Dropped(one.where, one.text, why, nearest, matters))

    def _words(self, name: str) -> tuple[str, ...]:
        one = self.record.parameters.get(name)
        return one.values if one else ()

    def _each(self, name: str, words: tuple[str, ...]) -> tuple[float, ...]:
        try:
            return tuple(number(word, name) for word in words)
        except ValueError as error:
            self._fault(name, str(error))
            return ()

    def _numbers(self, name: str) -> tuple[float, ...]:
        return self._each(name, self._words(name))

    def _optional(self, name: str) -> float | None:
        return next(iter(self._numbers(name)), None)

    def _number(self, name: str, default: float) -> float:
        found = self._optional(name)
        return default if found is None else found


def _without_zeros(sizes: tuple[float, ...]) -> tuple[float, ...]:
    """Pairs of a size and a percentage without those of 0 %; a size of 100 % alone is that size."""
    if len(sizes) < 2 or len(sizes) % 2:
        return sizes
    pairs = [(size, percent) for size, percent in zip(sizes[::2], sizes[1::2], strict=True) if percent]
    return (
        pairs[0][:1] if [percent for _, percent in pairs] == [100.0] else tuple(one for pair in pairs for one in pair)
    )


def _counted(name: str, place: int) -> str:
    """`file`, `file*` and `file%02d` with a number."""
    if re.search(r"%0?\d*d", name):
        return re.sub(r"%0?\d*d", lambda match: match[0] % place, name)
    return name.replace("*", str(place)) if "*" in name else f"{name}{place}"
