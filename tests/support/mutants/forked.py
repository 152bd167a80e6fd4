"""Tests run once for each mutant, each time in a process of its own that is forked when everything is imported.

Nothing is written: a mutant is code in the memory of its process. So the checkout stays as it is, and a program that a
test starts runs without the mutant.
"""

import contextlib
import gc
import importlib.abc
import importlib.machinery
import json
import os
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from mmap import mmap
from types import CodeType, ModuleType
from typing import Final

import pytest

from tests.support.mutants.mutant import Change, Mutant
from tests.support.mutants.python_changes import Place, PythonModule
from tests.support.mutants.swapped import NotSwapped, forget, swap

OPTIONS: Final = ["-q", "-x", "-s", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header", "--no-summary"]
WALL_S: Final = 3.0  # a process may take so many times its limit of CPU seconds before it is ended
_MUST_IMPORT, _FINISHED, _UNFINISHED = 77, 0, 3  # exit codes


NO_CHANGE: Final = Mutant[Place]("", Change(0, "", "", "", Place(None, "", None, None, None)))


class Fate(Enum):
    KILLED = "killed"
    TIMEOUT = "timeout"  # killed, too: the tests would not end
    SURVIVED = "survived"


@dataclass(frozen=True)
class Limit:
    """What the tests of one mutant may take."""

    cpu_s: float

    @classmethod
    def of(cls, unchanged_s: float) -> "Limit":
        """From what they take without a mutant."""
        return cls(6 + 4 * unchanged_s)


class MutatedImport(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module from code that is given."""

    def __init__(self, name: str, code: CodeType) -> None:
        self.name, self.code = name, code

    def find_spec(self, fullname: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        return (
            importlib.machinery.ModuleSpec(fullname, self, origin=self.code.co_filename)
            if fullname == self.name
            else None
        )

    def exec_module(self, module: ModuleType) -> None:
        exec(self.code, module.__dict__)


def in_processes(
    tasks: Iterable[tuple[Mutant[Place], Callable[[], int]]], jobs: int, limit: Limit, silent: bool = True
) -> Iterator[tuple[Mutant[Place], int]]:
    """Each task in a forked process, several at once: (mutant, exit code); negative: ended by that signal."""
    running: dict[int, tuple[Mutant[Place], float]] = {}
    waiting = iter(tasks)
    try:
        while True:
            while len(running) < jobs and (task := next(waiting, None)) is not None:
                running[_fork(task[1], limit, silent)] = task[0], time.monotonic() + WALL_S * limit.cpu_s
            if not running:
                return
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid in running:
                yield running.pop(pid)[0], os.waitstatus_to_exitcode(status)
                continue
            for late in [pid for pid, (_, until) in running.items() if time.monotonic() > until]:
                os.killpg(late, signal.SIGKILL)
            time.sleep(0.01)
    finally:
        for pid in running:
            os.killpg(pid, signal.SIGKILL)


def _fork(task: Callable[[], int], limit: Limit, silent: bool) -> int:
    sys.stdout.flush()
    if pid := os.fork():
        return pid
    code = 1
    with contextlib.suppress(BaseException):
        os.setpgid(0, 0)
        if silent:
            nowhere = os.open(os.devnull, os.O_RDWR)
            for fd in (0, 1, 2):
                os.dup2(nowhere, fd)
        cpu_s = int(limit.cpu_s)
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 5))
        code = task()
        sys.stdout.flush()
    os._exit(code)


def _cpu_s() -> float:
    """Of the processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run_session(files: Sequence[str], markers: str, plugins: Sequence[object] = ()) -> int:
    """pytest's exit code."""
    return int(pytest.main([*OPTIONS, "-m", markers, *files], plugins=plugins))


def imported(module: PythonModule, mutant: Mutant[Place], files: Sequence[str], markers: str) -> Callable[[], int]:
    """The tests of a module that is imported with the change."""

    def task() -> int:
        sys.meta_path.insert(0, MutatedImport(module.name, module.code(mutant)))
        return run_session(files, markers)

    return task


class Records:
    """How long each test took without a change, and how many mutants it has killed: in memory that forks share."""

    def __init__(self, tests: int) -> None:
        size = tests * 8
        self.seconds, self.kills = (memoryview(mmap(-1, max(size, 8))).cast("d")[:tests] for _ in range(2))

    def best_first(self) -> list[int]:
        """The numbers of the tests, those that kill the most in the least time first; the others as they were."""
        return sorted(range(len(self.kills)), key=lambda place: -self.kills[place] / (self.seconds[place] + 0.01))


class Swapping:
    """A plugin that runs the collected tests once without a change, then once for each mutant."""

    def __init__(
        self,
        module: PythonModule,
        mutants: Sequence[Mutant[Place]],
        jobs: int,
        survived: Callable[[Mutant[Place]], None],
    ) -> None:
        self.module, self.mutants, self.jobs, self.survived = module, mutants, jobs, survived
        self.fates: dict[str, Fate] = {}
        self.limit = Limit(300.0)
        self.state = _UNFINISHED
        self.records = Records(0)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            return False
        gc.unfreeze()  # the functions that are swapped are found among all objects
        self.records = Records(len(session.items))
        before = _cpu_s()
        ((_, code),) = in_processes([(NO_CHANGE, lambda: self._run(session, None))], 1, self.limit, silent=False)
        if code != 0:
            return True
        self.limit = Limit.of(_cpu_s() - before)
        tasks = ((one, self._task(session, one)) for one in self.mutants if one.change.place.function)
        for mutant, code in in_processes(tasks, self.jobs, self.limit):
            if code != _MUST_IMPORT:
                self.fates[mutant.id] = fate(code)
                if fate(code) is Fate.SURVIVED:
                    self.survived(mutant)
        self.state = _FINISHED
        return True

    def _task(self, session: pytest.Session, mutant: Mutant[Place]) -> Callable[[], int]:
        return lambda: self._run(session, mutant)

    def _run(self, session: pytest.Session, mutant: Mutant[Place] | None) -> int:
        if mutant is not None:
            try:
                function = mutant.change.place.function
                assert function is not None  # else it has no task here
                swap(self.module.name, function, self.module.code(mutant))
            except NotSwapped:
                return _MUST_IMPORT
            forget()
        places = self.records.best_first()
        for place, following in zip(places, [*places[1:], -1], strict=True):
            began = time.monotonic()
            item = session.items[place]
            after = None if following < 0 else session.items[following]
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            if mutant is None:
                self.records.seconds[place] = time.monotonic() - began
            if session.testsfailed:
                self.records.kills[place] += 1
                session._setupstate.teardown_exact(None)
                return 1
        return 0


@dataclass(frozen=True)
class Swapped:
    """What a session in which functions were swapped has found."""

    fates: dict[str, Fate]  # without those that must be imported
    limit: Limit


def swap_in_a_session(
    module: PythonModule, mutants: Sequence[Mutant[Place]], files: Sequence[str], markers: str, jobs: int
) -> Swapped:
    """Run the tests for every mutant that is within one function. Raises SystemExit if they fail without a change."""
    with tempfile.TemporaryFile("w+") as log, tempfile.TemporaryFile("w+") as found:
        if not (pid := os.fork()):
            terminal = os.fdopen(os.dup(1), "w", buffering=1)
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
            swapping = Swapping(module, mutants, jobs, lambda one: print(one, file=terminal))
            run_session(files, markers, [swapping])
            json.dump([swapping.limit.cpu_s, {name: one.name for name, one in swapping.fates.items()}], found)
            found.flush()
            os._exit(swapping.state)
        try:
            _, status = os.waitpid(pid, 0)
        except BaseException:
            os.kill(pid, signal.SIGTERM)
            raise
        if os.waitstatus_to_exitcode(status) != _FINISHED:
            log.seek(0)
            raise SystemExit(f"{log.read()}\nthe tests fail without a change: {' '.join(files)}")
        found.seek(0)
        cpu_s, names = json.load(found)
        return Swapped({name: Fate[one] for name, one in names.items()}, Limit(cpu_s))


def fate(code: int) -> Fate:
    """What an exit code of pytest, or the signal that ended it, says of a mutant."""
    if code == 0:
        return Fate.SURVIVED
    return Fate.TIMEOUT if code < 0 else Fate.KILLED
