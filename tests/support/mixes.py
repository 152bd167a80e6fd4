"""Mixes of operations, sizes and places, as the driver `mix` has them: a mix alone, or an engine that submits it."""

import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .engine import run

KIB, MIB = 1 << 10, 1 << 20
READ, WRITE, TRIM, ZEROES = range(4)
SIGMAS = 5.0  # one of 3.5 million fair draws is as far out; the seeds are fixed


class Part(NamedTuple):
    share: float
    bytes: int
    op: int = READ


class Io(NamedTuple):
    op: int
    offset: int
    bytes: int

    @property
    def end(self) -> int:
        return self.offset + self.bytes


Parts = Sequence[Part]


def text(parts: Parts) -> str:
    return " ".join(f"{part.share!r} {part.bytes} {part.op}" for part in parts)


def table_of(said: str) -> NDArray[np.int64]:
    """Lines of as many whole numbers each as an Io has, as an array: there may be 100,000 of them."""
    table: NDArray[np.int64] = np.fromstring(said, np.int64, sep=" ").reshape(-1, len(Io._fields))
    return table


def ios_of(said: str) -> list[Io]:
    return list(map(Io._make, table_of(said).tolist()))


class Where(NamedTuple):
    """Which places of a random workload come more often than others."""

    zipf: float = 0.0
    pareto: float = 0.0
    normal: float = 0.0
    working_set: int = 0
    scattered: bool = False
    seed: int = 0
    zones: tuple[tuple[int, int, float, float], ...] = ()

    def words(self) -> list[object]:
        zones = itertools.chain(*self.zones)
        return [*self[:4], int(self.scattered), self.seed, len(self.zones), *zones]


EVERYWHERE = Where()


class Ways(NamedTuple):
    """What of a mix does not change, and its range."""

    order: str = "random"
    align: int = 0
    sequential: float = 0.0
    streams: int = 1
    by_operation: bool = False
    span: tuple[int, int] = (0, 0)
    size: int = 64 * MIB
    device: bool = False
    where: Where = EVERYWHERE


def drawn(parts: Parts, count: int, ways: Ways) -> list[Io]:
    """The first I/Os of a mix; none, if there is no place for them."""
    return list(map(Io._make, table_drawn(parts, count, ways).tolist()))


def table_drawn(parts: Parts, count: int, ways: Ways) -> NDArray[np.int64]:
    """The same: a row for each, a column for each field of Io."""
    words = (ways.size, int(ways.device), *ways[:4], int(ways.by_operation), *ways.where.words())
    said = run("mix", "next", *words, stdin=f"{count} {ways.span[0]} {ways.span[1]} {text(parts)}")
    return table_of("" if said.startswith("no place") else said)


def is_fair(count: int, of: int, share: float) -> bool:
    return abs(count - of * share) <= SIGMAS * max(1.0, math.sqrt(of * share * (1 - share)))


class Setting(NamedTuple):
    """Of an instance, once so many I/Os were submitted."""

    since: int
    parts: Parts = ()
    span: tuple[int, int] = (0, 0)
    fraction_read: float = 1.0
    blocksize: int = 4 * KIB
    maxtags: int = 4

    def line(self) -> str:
        start, end = self.span
        return f"{self.since} {start} {end} {self.fraction_read!r} {self.blocksize} {self.maxtags} {text(self.parts)}"


BATCHES = 64  # I/Os under way when an edit is posted
ANYWHERE = ((0, 1 << 40),)


def submitted(
    path: Path,
    *changes: Setting,
    order: int = 0,  # 2: sequential
    align: int = 0,
    sequential: float = 0.0,
    streams: int = 1,
    cursors: int = 0,
    ios: int = 1000,
    tags: int = 4,
    ceiling: int = MIB,
    agreed: Sequence[tuple[int, int]] = ANYWHERE,
    start: int = 0,
    where: Where = EVERYWHERE,
    sanitizer: str = "asan",
) -> list[Io]:
    said = run(
        "mix", "run", path, order, align, sequential, streams, cursors, ios, tags, ceiling, start,
        *where.words(), *itertools.chain(*agreed), stdin="\n".join(change.line() for change in changes) + "\n",
        sanitizer=sanitizer,
    )  # fmt: skip
    assert not said.startswith("refused:"), said
    return ios_of("\n".join(line for line in said.splitlines() if not line.startswith("refused")))
