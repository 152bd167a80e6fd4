"""NUMA nodes: which one a core belongs to.

Rule: read once, at the start. A machine with one node has nothing to choose, so there it is as if no node were known.
"""

from pathlib import Path

from .block_devices import ROOT
from .kernel_files import cpu_list, first_line


def node_of_cores(root: Path = ROOT) -> dict[int, int]:
    """Core -> node; empty where the machine has less than two nodes with cores."""
    folders = (root / "sys/devices/system/node").glob("node[0-9]*")
    nodes = {int(folder.name.removeprefix("node")): cpu_list(first_line(folder / "cpulist")) for folder in folders}
    if sum(bool(cores) for cores in nodes.values()) < 2:
        return {}
    return {core: node for node, cores in nodes.items() for core in cores}
