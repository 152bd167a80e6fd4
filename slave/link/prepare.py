"""The engine that a `prepare` command names: whether this host can have it, and how it is opened.

Rule: every refusal comes before the engine is opened, and states its remedy.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from ...protocol.counters import MOST_THREADS
from ...protocol.messages import Prepare
from ...protocol.payload import EngineOptions
from ..engine._engine import Engine, backends
from ..host.cpu_placement import CpuPlacement, node_of_cores, place_threads, unusable_cores
from ..kernel_files import cpu_list, first_line
from ..workloads.backend_choice import AUTO, IO_URING, LIBAIO, why_not

MOST_LATENCY_US: Final = 1_000_000
SIBLINGS_OF_CORE_0: Final = "/sys/devices/system/cpu/cpu0/topology/thread_siblings_list"


@dataclass(frozen=True)
class EngineSetup:
    """The arguments with which an engine is opened."""

    backend: str
    auto: bool  # the backend is only the one until there are LUNs to try others on
    placement: CpuPlacement
    options: EngineOptions

    @classmethod
    def of(cls, options: EngineOptions, cores: Sequence[int]) -> EngineSetup:
        siblings = cpu_list(first_line(SIBLINGS_OF_CORE_0)) or (0,)
        placement = place_threads(options.threads, options.cpus, cores, siblings)
        auto = options.backend == AUTO
        return cls(LIBAIO if auto else options.backend, auto, placement, options)

    def opened(self, new_engine: Callable[[str, list[int]], Engine]) -> Engine:
        """Blocks while its threads start. Raises OSError."""
        engine = new_engine(self.backend, list(self.placement.threads))
        engine.spin(self.options.spin)
        engine.reserved_pages(self.options.reserved_huge_pages)
        if self.options.polled:
            engine.use(self.backend, polled=True)
        return engine

    def leave_cores(self) -> None:
        """Move the calling thread to the cores that are left to it. Only once the engine has its own threads."""
        if self.placement.spared:
            os.sched_setaffinity(0, self.placement.spared)

    @property
    def nodes(self) -> list[int | None]:
        """The NUMA node of each workload thread's core; None: not known."""
        node_of = node_of_cores()
        return [node_of.get(core) for core in self.placement.threads]


def against_prepare(command: Prepare, cores: Sequence[int]) -> str | None:
    """Why a host with these `cores` cannot be prepared so; None if it can."""
    options = command.engine
    if reason := _against_backend(options):
        return reason
    if not 0 <= options.threads <= MOST_THREADS:
        return f"{options.threads} threads were requested: choose 0 (one per core) to {MOST_THREADS}"
    if reason := unusable_cores(options.cpus, cores):
        return reason
    if not 0 <= (options.cpu_dma_latency or 0) <= MOST_LATENCY_US:
        return f"an exit latency of {options.cpu_dma_latency} us is not in 0 to {MOST_LATENCY_US}: choose another"
    if command.lease_ns <= 0:
        return f"a lease of {command.lease_ns} ns has run out before it began: choose a longer one"
    return None


def _against_backend(options: EngineOptions) -> str | None:
    backend, known = options.backend, backends()
    auto = {LIBAIO, IO_URING} & set(known)  # what `auto` may stand for
    if backend == AUTO and auto:
        return "polled is an option of io_uring: choose it as the backend" if options.polled else None
    if backend == AUTO:
        return f"no backend works here (libaio: {why_not(LIBAIO)}; io_uring: {why_not(IO_URING)})"
    if backend in known:
        return why_not(backend, options.polled) or None if options.polled else None
    try:
        why = f" ({why_not(backend)})"
    except ValueError:
        why = ""  # there is none of this name anywhere
    work = [AUTO, *known] if auto else known
    return f"backend {backend!r} does not work here{why}: choose one of {', '.join(work)}"
