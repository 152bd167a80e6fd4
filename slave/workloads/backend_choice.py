"""The ways of doing I/O: which work here, why one does not, and which `auto` stands for.

Rule: `auto` is libaio, unless some step needs the faster backend and a short trial on its LUNs says that io_uring is:
its slowest turn has to be faster than libaio's fastest by more than turns differ. So noise does not decide, and hosts
that are alike choose alike. With an instance that only io_uring can drive it is that, without a trial. LUNs that would
make io_uring wait are not tried. A trial only reads, with the shape of the workload that will be run (block size,
tags), in turns taken alternately. It reads at random, from a seed of its own: no step then finds its first addresses in
a cache, nor does the second backend those of the first.
"""

from __future__ import annotations

import errno
import os
import select
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ...protocol.counters import Count
from ...protocol.older_python import zip_strict
from ...protocol.parameters import ENDLESS, MAX, Iosequencer, Parameters, engine_fields, releases
from ...protocol.payload import Refusal, WorkloadToCreate
from ...protocol.refusals import RefusalReason
from ..devices.nowait import lacks_nowait, without_nowait
from ..engine._engine import Engine, abilities, missing, now_ns, probe
from ..kernel_files import number_in

AUTO: Final = "auto"
LIBAIO: Final = "libaio"
IO_URING: Final = "io_uring"

MOST_LUNS: Final = 4  # that are tried
MOST_TAGS: Final = 64
TURNS: Final = 4
TURN_NS: Final = 45_000_000
AHEAD_NS: Final = 2_000_000  # from `go` to the start of a turn
PATIENCE_NS: Final = 10 * 10**9  # for a turn, with the LUN's slowest I/O
TRIAL_NS: Final = 10 * 10**9  # after so long, no other LUN is tried
EVENTFD_BYTES: Final = 8
FASTER: Final = 1.05  # io_uring's slowest turn, of libaio's fastest
FEWEST_PER_S: Final = 2000.0  # reads: 90 in a turn
MOST_BYTES: Final = 64 << 20  # of I/O buffers of a trial, for each of the two engines


def why_not(backend: str, polled: bool = False) -> str:
    """Why a backend does not work so on this kernel, and what to do; "" if it does."""
    if (number := probe(backend, polled)) == 0:
        return ""
    of_backend = abilities()[backend]
    disabled = number_in("/proc/sys/kernel/io_uring_disabled") or 0
    if number == errno.EINVAL and polled:
        if not of_backend.polled:
            return f"polled: an option of io_uring, but the backend is {backend}"
        return "this kernel's io_uring does not know polled: leave it out"
    if of_backend.needs_io_uring and number == errno.EPERM and disabled:
        others = ", or run the slave as root or in the group kernel.io_uring_group" if disabled == 1 else ""
        return f"kernel.io_uring_disabled is {disabled}: set it to 0 (sysctl -w kernel.io_uring_disabled=0){others}"
    return missing(backend, number) or os.strerror(number)


def kernel_threads_on(luns: Sequence[str]) -> str:
    """The notice for these LUNs under io_uring; "" if there is none."""
    handed = without_nowait(luns)
    if not handed:
        return ""
    more = f" and {len(handed) - 1:,} more LUNs" if len(handed) > 1 else ""
    return (
        f"io_uring uses kernel threads for each I/O on {handed[0]}{more}, because its driver lacks RWF_NOWAIT: "
        "no figure of CPU time includes these threads, and libaio does not need them"
    )


def only_io_uring(parameters: Parameters) -> tuple[str, str] | None:
    """Name what of a workload only io_uring has, and what to do instead; None where libaio will do."""
    if not parameters.direct:
        return "direct: false", "set `direct: true`"
    asked = releases(parameters)
    return (f"operations: {asked[0]}", "leave it out") if asked else None


def any_only_io_uring(workloads: Sequence[WorkloadToCreate]) -> bool:
    return any(only_io_uring(workload.parameters) for workload in workloads)


def against_backend(workloads: Sequence[WorkloadToCreate], backend: str, polled: bool = False) -> list[Refusal]:
    """Refuse the instances that only io_uring can drive, where the backend is another; `backend`: AUTO as long as that
    is not decided."""
    why = why_not(IO_URING) if backend == AUTO and not polled else ""
    refused = []
    for workload in workloads:
        needs = only_io_uring(workload.parameters)
        if needs is None:
            continue
        what, instead = needs
        if polled:
            reason = RefusalReason.CANNOT_BE_POLLED.sentence(what=what, instead=instead)
        elif why:
            reason = RefusalReason.NO_IO_URING.sentence(what=what, why=why, instead=instead)
        elif backend != AUTO and not _can(backend, workload.parameters):
            reason = RefusalReason.BACKEND_UNABLE.sentence(what=what, backend=backend, instead=instead)
        else:
            continue
        refused.append(Refusal(workload.instance, reason))
    return refused


def _can(backend: str, parameters: Parameters) -> bool:
    able = abilities()[backend]
    return (able.buffered or parameters.direct) and (able.trims or not releases(parameters))


@dataclass(frozen=True)
class Choice:
    backend: str
    reason: str = ""  # a clause; "" where there was nothing to choose


@dataclass(frozen=True)
class Trial:
    """Reads per second in each turn."""

    libaio: Sequence[float]
    io_uring: Sequence[float]

    @property
    def io_uring_is_faster(self) -> bool:
        """With so few reads in a turn that one more or less decides, nobody knows."""
        enough = min(*self.io_uring, *self.libaio) >= FEWEST_PER_S
        return enough and min(self.io_uring) >= FASTER * max(self.libaio)

    @property
    def outcome(self) -> str:
        """Which of the two is faster, as a clause."""
        if self.io_uring_is_faster:
            return "io_uring is faster"
        if min(self.libaio) > max(self.io_uring):
            return "libaio is faster"
        return "the default, since io_uring is not clearly faster"

    def __str__(self) -> str:
        return (
            f"{self.outcome}: {min(self.libaio):,.0f} to {max(self.libaio):,.0f} reads/s with libaio, "
            f"{min(self.io_uring):,.0f} to {max(self.io_uring):,.0f} with io_uring"
        )


def choose(workloads: Sequence[WorkloadToCreate]) -> Choice:
    """The backend that `auto` stands for with these workload instances. Where steps need the faster backend, it reads
    from some of their LUNs, for a second or two.
    """
    for workload in workloads:
        if needs := only_io_uring(workload.parameters):
            return Choice(IO_URING, f"{needs[0]} needs it")
    no_libaio = why_not(LIBAIO)
    if no_libaio:
        return Choice(IO_URING, f"libaio does not work here: {no_libaio}")
    ascending = sorted(workloads, key=lambda one: one.fast_tags)  # of several on a LUN, the one with the most tags
    by_lun = {one.lun: replace(one.parameters, maxtags=one.fast_tags) for one in ascending if one.fast_tags}
    if not by_lun:
        return Choice(LIBAIO)
    if why := why_not(IO_URING):
        return Choice(LIBAIO, f"io_uring does not work here: {why}")
    return _tried(by_lun, list(by_lun)[:: -(-len(by_lun) // MOST_LUNS)])


def _tried(by_lun: Mapping[str, Parameters], luns: Sequence[str]) -> Choice:
    """io_uring, if it is faster on each of these LUNs."""
    until_ns = now_ns() + TRIAL_NS
    why = ""
    for lun in luns:
        try:
            if lacks_nowait(lun):
                return Choice(LIBAIO, f"io_uring would use kernel threads for each I/O on {lun} (no RWF_NOWAIT)")
            trial = try_both(lun, by_lun[lun])
        except OSError as error:
            return Choice(LIBAIO, f"no trial was possible on {lun}: {error.strerror}")
        why = f"{trial} on {lun}"
        if not trial.io_uring_is_faster:
            return Choice(LIBAIO, why)
        if now_ns() > until_ns:
            break
    return Choice(IO_URING, why)


def try_both(lun: str, parameters: Parameters) -> Trial:
    """Read from a LUN with both backends, in turns. Raises OSError."""
    engines = [Engine(backend, [-1]) for backend in (LIBAIO, IO_URING)]
    try:
        for engine in engines:
            shape = _shape(parameters)
            lun_handle = engine.open_lun(lun, False)
            engine.create(0, lun_handle, 0, shape.maxtags, shape.blocksize, engine_fields(shape))
        turns = [[_turn(engine) for engine in engines] for _ in range(TURNS)]
    finally:
        for engine in engines:
            engine.close(PATIENCE_NS / 1e9)
    return Trial(*zip_strict(*turns))


def _shape(parameters: Parameters) -> Parameters:
    tags = min(parameters.maxtags, MOST_TAGS, max(MOST_BYTES // parameters.blocksize, 1))
    how = Iosequencer.RANDOM_STEADY
    seed = int.from_bytes(os.urandom(7), "little")
    return replace(
        parameters,
        iosequencer=how,
        fraction_read=1.0,
        operations=(),
        sequential=0.0,
        iops=MAX,
        maxtags=tags,
        seed=seed,
        think_time=0.0,
        random_map=False,
        until=ENDLESS,
        align=0,
        streams=1,
    )


def _turn(engine: Engine) -> float:
    """One subinterval, closed loop: reads per second."""
    number = array("I", [0]).tobytes()
    deadline_ns = now_ns() + PATIENCE_NS
    engine.set_lease(deadline_ns)
    engine.go(now_ns() + AHEAD_NS, TURN_NS, number, number, number)
    engine.stop(0)
    completed = 0
    news = select.poll()  # a descriptor may be beyond what select() takes
    news.register(engine.fileno(), select.POLLIN)
    while (ended := engine.ended()) is None:
        if (found := engine.collect()) is not None:
            completed += array("q", found.counts)[Count.COMPLETED]
            continue
        if now_ns() > 2 * PATIENCE_NS + deadline_ns:
            raise TimeoutError(errno.ETIMEDOUT, "its reads do not complete")
        if news.poll(100):
            os.read(engine.fileno(), EVENTFD_BYTES)
    if ended.uncaught:
        raise TimeoutError(errno.ETIMEDOUT, "its reads do not complete")
    return completed / TURN_NS * 1e9
