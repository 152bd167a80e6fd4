"""The ways of doing I/O: which work here, why one does not, and which `auto` stands for.

Rule: `auto` is io_uring where it works, where the LUNs take I/O without waiting, and where a short trial says that it
is not slower than libaio on them; else libaio. A trial only reads, with the shape of the workload that will be run
(block size, tags), and each backend has its best of several turns, taken alternately. It reads at random, from a seed
of its own: no step then finds its first addresses in a cache, nor does the second backend those of the first.
"""

import errno
import mmap
import os
import select
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from ..protocol.counters import Count
from ..protocol.older_python import zip_strict
from ..protocol.parameters import MAX, Iosequencer, Parameters
from ..protocol.payload import WorkloadToCreate
from .engine._engine import Engine, now_ns, probe
from .kernel_files import number_in
from .workloads import engine_fields

if TYPE_CHECKING:
    from .engine._engine import Fields  # a shape, not a class: only its stub knows it

AUTO: Final = "auto"
LIBAIO: Final = "libaio"
IO_URING: Final = "io_uring"
NVME: Final = "nvme"

MOST_LUNS: Final = 4  # that are tried
MOST_TAGS: Final = 64
TURNS: Final = 3
TURN_NS: Final = 60_000_000
AHEAD_NS: Final = 2_000_000  # from `go` to the start of a turn
PATIENCE_NS: Final = 10 * 10**9  # for a turn, with the LUN's slowest I/O
EVENTFD_BYTES: Final = 8
SLOWER: Final = 0.98  # of the other's IOPS: less is not what two turns differ by anyway

_NO_AIO: Final = "this kernel has no asynchronous I/O, or a seccomp filter hides it"
_NO_RING: Final = "this kernel has no io_uring that can wait with a timeout (5.11 has), or a seccomp filter hides it"
_FILTER: Final = (
    "a seccomp filter forbids it, as those of containers do: run the slave outside, or allow io_uring_setup, "
    "io_uring_enter and io_uring_register"
)
_WHY: Final = {
    (IO_URING, errno.EPERM): _FILTER,
    (IO_URING, errno.EACCES): _FILTER,
    (IO_URING, errno.ENOMEM): "the limit of locked memory is too low: raise it (ulimit -l, LimitMEMLOCK)",
    (IO_URING, errno.ENOSYS): _NO_RING,
    (NVME, errno.EPERM): _FILTER,
    (NVME, errno.EACCES): _FILTER,
    (NVME, errno.ENOMEM): "the limit of locked memory is too low: raise it (ulimit -l, LimitMEMLOCK)",
    (NVME, errno.ENOSYS): _NO_RING,
    (NVME, errno.EINVAL): "this kernel's io_uring has no commands for drivers (Linux 5.19 has): use backend: io_uring",
    (NVME, errno.ENODEV): "no NVMe namespace here has a generic device (/dev/ng0n1): use backend: io_uring",
    (LIBAIO, errno.ENOSYS): _NO_AIO,
    (LIBAIO, errno.EAGAIN): "fs.aio-max-nr is used up: raise it (sysctl -w fs.aio-max-nr=1048576)",
}


def why_not(backend: str, polled: bool = False, sqpoll: bool = False) -> str:
    """Why a backend does not work so on this kernel, and what to do; "" if it does."""
    if (number := probe(backend, polled, sqpoll)) == 0:
        return ""
    disabled = number_in("/proc/sys/kernel/io_uring_disabled") or 0
    asked = [name for name, wanted in (("polled", polled), ("sqpoll", sqpoll)) if wanted]
    if number == errno.EINVAL and asked:
        if backend != IO_URING:
            return f"{' and '.join(asked)}: an option of io_uring, but the backend is {backend}"
        return f"this kernel's io_uring does not know {' with '.join(asked)}: leave it out"
    if backend == IO_URING and number == errno.EPERM and sqpoll and probe(backend) == 0:
        return "before Linux 5.13 sqpoll is for root only: run the slave as root, or leave it out"
    if backend in (IO_URING, NVME) and number == errno.EPERM and disabled:
        others = ", or run the slave as root or in the group kernel.io_uring_group" if disabled == 1 else ""
        return f"kernel.io_uring_disabled is {disabled}: set it to 0 (sysctl -w kernel.io_uring_disabled=0){others}"
    return _WHY.get((backend, number)) or os.strerror(number)


def handed_on(lun: str) -> bool:
    """Whether io_uring has a thread of the kernel do each I/O on this LUN, as its driver or file system cannot report
    that an I/O would wait: it does not take RWF_NOWAIT."""
    try:
        fd = os.open(lun, os.O_RDONLY | os.O_DIRECT)
    except OSError:
        return False  # the one who drives it reports why
    try:
        with mmap.mmap(-1, mmap.PAGESIZE) as page:
            os.preadv(fd, [page], mmap.PAGESIZE, os.RWF_NOWAIT)
    except OSError as error:
        return error.errno == errno.EOPNOTSUPP
    finally:
        os.close(fd)
    return False


def kernel_threads_on(luns: Sequence[str]) -> str:
    """The notice for these LUNs under io_uring; "" if there is none."""
    handed = [lun for lun in dict.fromkeys(luns) if handed_on(lun)]
    if not handed:
        return ""
    more = f" and {len(handed) - 1:,} more LUNs" if len(handed) > 1 else ""
    return (
        f"io_uring uses kernel threads for each I/O on {handed[0]}{more}, because its driver lacks RWF_NOWAIT: "
        "no figure of CPU time includes these threads, and libaio does not need them"
    )


@dataclass(frozen=True)
class Choice:
    backend: str
    reason: str  # a clause


def choose(workloads: Sequence[WorkloadToCreate]) -> Choice:
    """What `auto` stands for with these workload instances. Reads from some of their LUNs, for a second or two."""
    if why := why_not(IO_URING):
        return Choice(LIBAIO, f"io_uring does not work here: {why}")
    if why := why_not(LIBAIO):
        return Choice(IO_URING, f"libaio does not work here: {why}")
    by_lun = {workload.lun: workload.parameters for workload in workloads}
    tried = list(by_lun)[:: -(-len(by_lun) // MOST_LUNS) or 1]
    found = Choice(LIBAIO, "there was no LUN to try it on")
    for lun in tried:
        try:
            if handed_on(lun):
                return Choice(LIBAIO, f"io_uring would use kernel threads for each I/O on {lun} (no RWF_NOWAIT)")
            aio, ring = try_both(lun, by_lun[lun])
        except OSError as error:
            return Choice(LIBAIO, f"no trial was possible on {lun}: {error.strerror}")
        said = f"{ring:,.0f} reads/s with io_uring, {aio:,.0f} with libaio on {lun}"
        if ring < SLOWER * aio:
            return Choice(LIBAIO, said)
        found = Choice(IO_URING, said)
    return found


def try_both(lun: str, parameters: Parameters) -> tuple[float, float]:
    """The most reads per second from a LUN with (libaio, io_uring). Raises OSError."""
    engines = [Engine(backend, [-1]) for backend in (LIBAIO, IO_URING)]
    try:
        for engine in engines:
            shape = _shape(parameters)
            engine.create(0, engine.open_lun(lun, False), 0, shape["maxtags"], shape["blocksize"], shape)
        turns = [[_turn(engine) for engine in engines] for _ in range(TURNS)]
    finally:
        for engine in engines:
            engine.close(PATIENCE_NS / 1e9)
    aio, ring = (max(column) for column in zip_strict(*turns))
    return aio, ring


def _shape(parameters: Parameters) -> "Fields":
    tags = min(parameters.maxtags, MOST_TAGS)
    how = Iosequencer.RANDOM_STEADY
    seed = int.from_bytes(os.urandom(7), "little")
    return engine_fields(replace(parameters, iosequencer=how, fraction_read=1.0, iops=MAX, maxtags=tags, seed=seed))


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
