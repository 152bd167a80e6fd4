"""What the engine's tests share: its C drivers, a step as the slave would command it, and a machine to run it on.

Rule: a driver is one C file of tests/engine, linked with the core, so that the core runs without Python and under every
sanitizer. It exits 0, or says which check failed. tests/engine/Makefile builds them, and no test does.
"""

import ctypes
import functools
import importlib.util
import os
import select
import shutil
import subprocess
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ivypy.protocol.counters import SERIES, Count, Moment, SectionCount, ThreadCount
from ivypy.protocol.parameters import EngineFields, Parameters, engine_fields
from ivypy.slave.engine._engine import Collected, Ended, Engine, backends, now_ns

ENGINE = Path(__file__).parents[2] / "slave" / "engine"
DRIVERS = Path(__file__).parents[1] / "engine"
CORE = sorted(path for path in ENGINE.rglob("*.c") if path.parent.name != "binding")  # which alone knows Python
BUILT = "../../.venv/built"  # from DRIVERS, as its Makefile names it

BACKENDS = backends()  # that work here
REAL = [backend for backend in BACKENDS if backend != "null"]  # that do I/O

MS = 1_000_000
S = 1_000_000_000

EVERYWHERE = ((0, 1 << 62),)  # extents that any LUN lies in


@functools.cache
def built(driver: str, sanitizer: str = "asan") -> str:
    """The path of a driver that `scripts/setup test` built from the sources as they are; without gcc the test skips."""
    if missing := [program for program in ("gcc", "make") if shutil.which(program) is None]:
        pytest.skip(f"this machine lacks {', '.join(missing)}")
    path = f"{BUILT}/{sanitizer}/{driver}"
    asked = subprocess.run(["make", "-q", "-C", DRIVERS, path], capture_output=True, check=False)
    if asked.returncode != 0:
        pytest.fail(f"{sanitizer}/{driver} is older than its sources: run scripts/setup test", pytrace=False)
    return str((DRIVERS / path).resolve())


def run(driver: str, *words: object, sanitizer: str = "asan", stdin: str = "", wrapper: Sequence[str] = ()) -> str:
    """What a driver says; a failed check, or a sanitizer's report, fails the test."""
    command = [*wrapper, built(driver, sanitizer), *map(str, words)]
    environment = os.environ | {"TSAN_OPTIONS": "halt_on_error=1", "UBSAN_OPTIONS": "print_stacktrace=1"}
    done = subprocess.run(
        command, input=stdin, capture_output=True, text=True, timeout=100, check=False, env=environment
    )
    assert done.returncode == 0, f"{' '.join(command)}: {done.returncode}\n{done.stderr[:8000]}"
    return done.stdout


@dataclass(frozen=True)
class Machine:
    """Where an engine runs, and what time is there."""

    engine: type[Engine]
    now_ns: Callable[[], int]
    await_news: Callable[[int, float], bool]  # whether a file can be read, at the latest after so many seconds


def _await_news(fd: int, seconds: float) -> bool:
    return bool(select.select([fd], [], [], seconds)[0])


THIS_MACHINE = Machine(Engine, now_ns, _await_news)


@functools.cache
def simulated_machine() -> Machine:
    """The same engine where time is simulated, and only its backend `null` knows no other time (simulation.c)."""
    path = built("_engine.abi3.so", "simulated")
    spec = importlib.util.spec_from_file_location("simulated._engine", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    library = ctypes.CDLL(path)
    # At the drivers' speed a second of a closed loop would take a second.
    ctypes.c_uint64.in_dll(library, "simulation_batch_ns").value = 10_000
    ctypes.c_uint64.in_dll(library, "simulation_poll_ns").value = 1_000

    def await_news(fd: int, seconds: float) -> bool:
        return bool(library.simulation_poll(fd, int(seconds * 1000)) > 0)

    return Machine(module.Engine, module.now_ns, await_news)


def fields(**changes: object) -> EngineFields:
    """Parameters of an instance, as the binding takes them."""
    return engine_fields(Parameters(maxtags=4, iops=1000.0)) | changes


@dataclass
class Result:
    """A Collected, unpacked."""

    raw: Collected
    counts: NDArray[np.int64]  # (instances, Count)
    moments: NDArray[np.uint64]  # (classes, SERIES, Moment)
    threads: NDArray[np.int64]  # (threads, ThreadCount)
    histograms: list[list[dict[int, int]]]  # [class][series]: bucket -> count
    sections: NDArray[np.uint64]  # (instances, sections, SectionCount)

    def total(self, column: Count) -> int:
        return int(self.counts[:, column].sum())

    def thread(self, column: ThreadCount) -> int:
        return int(self.threads[:, column].sum())

    def series(self, number: int, column: Moment = Moment.COUNT) -> int:
        return int(self.moments[:, number, column].sum())


def unpack(raw: Collected) -> Result:
    moments = np.frombuffer(raw.moments, "<u8").reshape(-1, SERIES, len(Moment))
    spans = np.frombuffer(raw.spans, "<u4").reshape(-1, SERIES, 2)
    buckets = iter(np.frombuffer(raw.buckets, f"<u{raw.bucket_size}").tolist())
    histograms = [
        [{int(first) + n: count for n in range(many) if (count := next(buckets))} for first, many in row]
        for row in spans
    ]
    assert next(buckets, None) is None
    counts = np.frombuffer(raw.counts, "<i8").reshape(-1, len(Count))
    return Result(
        raw,
        counts,
        moments,
        np.frombuffer(raw.threads, "<i8").reshape(-1, len(ThreadCount)),
        histograms,
        np.frombuffer(raw.sections, "<u8").reshape(len(counts), -1, len(SectionCount)),
    )


@dataclass
class Drive:
    """An engine, and the step that it is in: collects what is finished while it waits."""

    engine: Engine
    machine: Machine = THIS_MACHINE
    results: list[Result] = field(default_factory=list)
    end: Ended | None = None
    start_ns: int = 0
    length_ns: int = 0
    discarded: int = 0  # by the last edit

    def now_ns(self) -> int:
        """The time where it runs."""
        return self.machine.now_ns()

    def lun(self, path: object, writable: bool = False, direct: bool = True) -> int:
        return self.engine.open_lun(str(path), writable, direct=direct)

    def create(
        self,
        number: int,
        lun: int,
        thread: int = 0,
        ceilings: tuple[int, int] | None = None,
        extents: tuple[tuple[int, int], ...] = EVERYWHERE,
        **changes: object,
    ) -> None:
        """`ceilings`: the most tags, and the largest blocksize. `extents`: what may be written."""
        parameters = fields(**changes)
        tags, blocksize = ceilings or (parameters["maxtags"], parameters["blocksize"])
        self.engine.create(number, lun, thread, tags, blocksize, parameters, extents)

    def go(
        self,
        order: Iterable[int],
        length_ns: int,
        classes: Iterable[int] | None = None,
        lease_s: float = 60,
        rows: Iterable[int] | None = None,
        sections: int = 0,
    ) -> None:
        numbers = array("I", order)
        of = array("I", classes if classes is not None else [0] * len(numbers))
        row = array("I", rows if rows is not None else range(len(numbers)))
        self.engine.set_lease(self.now_ns() + int(lease_s * S))
        self.results, self.end = [], None
        self.start_ns, self.length_ns = self.now_ns() + 10 * MS, length_ns
        self.engine.go(self.start_ns, length_ns, numbers.tobytes(), of.tobytes(), row.tobytes(), sections=sections)

    def news(self, seconds: float) -> None:
        """Sleeps until the engine has something to say."""
        if self.machine.await_news(self.engine.fileno(), seconds):
            os.eventfd_read(self.engine.fileno())

    def collect(self, force: bool = False) -> None:
        while (raw := self.engine.collect(force)) is not None:
            self.results.append(unpack(raw))

    def until(self, results: int, seconds: float = 60) -> list[Result]:
        """Collects until there are so many results."""
        deadline = self.now_ns() + int(seconds * S)
        self.collect()
        while len(self.results) < results:
            assert self.now_ns() < deadline, f"{len(self.results)} results after {seconds} s"
            self.news(0.5)
            self.collect()
        return self.results

    def finish(self, seconds: float = 60) -> Ended:
        """Collects until the step has ended."""
        deadline = self.now_ns() + int(seconds * S)
        while self.end is None:
            self.collect()
            self.end = self.engine.ended()
            assert self.now_ns() < deadline, f"the step has not ended after {seconds} s"
            if self.end is None:
                self.news(0.5)
        return self.end

    def edit(self, number: int, settings: list[tuple[int, EngineFields]]) -> int:
        """Posts an edit, and waits until it is taken: when it was; `discarded` then says what it cost."""
        self.engine.edit(number, settings)
        deadline = self.now_ns() + 10 * S
        while (taken := self.engine.edited()) is None:
            assert self.now_ns() < deadline, "an edit was not taken"
            self.news(0.1)
            self.collect()
        assert taken[0] == number
        self.discarded = taken[2]
        return taken[1]

    def total(self, column: Count) -> int:
        return sum(result.total(column) for result in self.results)

    def each(self, column: Count) -> list[int]:
        """The total of each instance; empty before the first result."""
        rows = [result.counts[:, column].tolist() for result in self.results]
        return [sum(counts) for counts in zip(*rows, strict=True)]


def conserved(step: Drive) -> Iterator[Result]:
    """Each result, once it and those before keep the law: due = completed + errors + dropped + expired + backlog + in
    flight, of each instance."""
    sums = np.zeros((), np.int64)
    for result in step.results:
        counts = result.counts
        assert (counts >= 0).all()
        sums = sums + counts
        ends = [Count.COMPLETED, Count.ERRORS, Count.DROPPED, Count.EXPIRED]
        outstanding = counts[:, Count.BACKLOG] + counts[:, Count.IN_FLIGHT]
        assert (sums[:, Count.DUE] == sums[:, ends].sum(axis=1) + outstanding).all()
        yield result


def started(backend: str, cpus: list[int], machine: Machine = THIS_MACHINE) -> Engine:
    name, _, option = backend.partition("+")
    engine = machine.engine(name, cpus)
    if option:
        engine.use(name, **{option: True})
    return engine


def drive(backend: str, threads: int = 1) -> Iterator[Drive]:
    """A generator for a fixture: the engine is closed at the end. "io_uring+polled" is io_uring with that option;
    "simulated" is null in simulated time."""
    machine = THIS_MACHINE
    if backend == "simulated":
        backend, machine = "null", simulated_machine()
    engine = started(backend, [-1] * threads, machine)
    yield Drive(engine, machine)
    assert engine.close(15.0) == []
