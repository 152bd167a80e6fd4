"""Which core each workload thread runs on, and which NUMA node a core belongs to.

Rule: by default (0 threads) there is one thread per core, pinned. On a machine with four cores or more, core 0 and its
sibling are left to the slave itself, to sshd and to interrupts, which the kernel puts there. If cores were chosen,
threads are pinned to these and spread evenly over them, and all others are left free. A number of threads without a
choice of cores is not pinned: the kernel places them, so that several slaves on one machine do not all use its first
core.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..devices.block_devices import ROOT
from ..kernel_files import cpu_list, first_line, ranges

SPARE_FROM: Final = 4  # cores


@dataclass(frozen=True)
class CpuPlacement:
    threads: tuple[int, ...]  # the core of each workload thread; -1: not pinned
    spared: tuple[int, ...]  # cores that no workload thread runs on; empty: none is spared


def place_threads(threads: int, chosen: Sequence[int], cores: Sequence[int], siblings: Collection[int]) -> CpuPlacement:
    """Where `threads` (0: one per core) run on the `cores` that this process may use; only on `chosen`, if there are.

    `siblings`: core 0 and the logical cores that share its physical one.
    """
    if chosen:
        count = threads or len(chosen)
        pinned = tuple(chosen[i * len(chosen) // count] for i in range(count))
        return CpuPlacement(pinned, tuple(core for core in cores if core not in chosen))
    if threads:
        return CpuPlacement((-1,) * threads, ())
    spared = tuple(core for core in cores if core in siblings) if len(cores) >= SPARE_FROM else ()
    driving = tuple(core for core in cores if core not in spared)
    return CpuPlacement(driving, spared) if driving else CpuPlacement(tuple(cores), ())


def siblings_of_cores(cores: Sequence[int], root: Path = ROOT) -> dict[int, tuple[int, ...]]:
    """Core -> the logical cores that share its physical one."""
    return {
        core: cpu_list(first_line(root / f"sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list"))
        for core in cores
    }


def unusable_cores(chosen: Sequence[int], cores: Sequence[int]) -> str | None:
    """Why workload threads cannot run on the chosen cores, with the remedy; None if they can."""
    missing = [core for core in chosen if core not in cores]
    if not missing:
        return None
    which = f"core {ranges(missing)} is" if len(missing) == 1 else f"cores {ranges(missing)} are"
    usable = f"not for this process, which may use {ranges(cores)}"
    return f"{which} not there, or {usable}: correct `engine: cpus` in the plan"


def node_of_cores(root: Path = ROOT) -> dict[int, int]:
    """Core -> node; empty where the machine has less than two nodes with cores: there is nothing to choose then."""
    folders = (root / "sys/devices/system/node").glob("node[0-9]*")
    nodes = {int(folder.name.removeprefix("node")): cpu_list(first_line(folder / "cpulist")) for folder in folders}
    if sum(bool(cores) for cores in nodes.values()) < 2:
        return {}
    return {core: node for node, cores in nodes.items() for core in cores}
