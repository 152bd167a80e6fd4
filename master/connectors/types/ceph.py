"""The type `ceph`: what a Ceph cluster says of its OSDs and pools, by its own command.

Rule: reads and writes of a pool are taken as the counters that its placement groups report, not as the rates that the
manager makes of them: the sums over a measurement are exact so. OSDs report every 5 s (`mgr_stats_period`), so shorter
subintervals have nothing new in most of them.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ....protocol.connector import OPTIONAL, Cannot, Combine, ElementMetric, ReadingKind, Readings, Unit
from ....protocol.payload import Fact
from ...text.foreign_json import json_of
from .found_facts import FoundFacts, finite
from .options import read_options, timeout_seconds
from .run_command import run_commands

OSD, POOL = "osd", "pool"
NS_PER_MS: Final = 1e6
KIB_PER_MIB: Final = 1024


def _of_pool(attribute: str, unit: Unit, meaning: str, scale: float = 1.0) -> ElementMetric:
    return ElementMetric(POOL, attribute, unit, ReadingKind.COUNTER, Combine.SUM, scale, meaning=meaning)


METRICS: Final = (
    ElementMetric(OSD, "commit_latency_ms", Unit.MS, meaning="until a write is durable; mean of the OSD's last report"),
    ElementMetric(OSD, "apply_latency_ms", Unit.MS, meaning="until a write can be read; mean of the OSD's last report"),
    ElementMetric(OSD, "used_percent", Unit.PERCENT),
    _of_pool("reads_per_s", Unit.PER_S, "reads of clients"),
    _of_pool("writes_per_s", Unit.PER_S, "writes of clients"),
    _of_pool("read_mib_per_s", Unit.MIB_PER_S, "read by clients", 1 / KIB_PER_MIB),
    _of_pool("write_mib_per_s", Unit.MIB_PER_S, "written by clients, before replication", 1 / KIB_PER_MIB),
    ElementMetric(POOL, "used_percent", Unit.PERCENT),
)
COUNTERS: Final = {
    "reads_per_s": "num_read",
    "writes_per_s": "num_write",
    "read_mib_per_s": "num_read_kb",
    "write_mib_per_s": "num_write_kb",
}  # attribute of a pool: its name in `pg dump`


@dataclass(frozen=True, kw_only=True)
class CephOptions:
    command: tuple[str, ...] = field(default=("ceph",), metadata=OPTIONAL)  # to run ceph, with options
    timeout: str = field(default="2s", metadata=OPTIONAL)


class Ceph:
    """A connector."""

    def __init__(self, **options: Any) -> None:
        self._options = read_options(CephOptions, options)
        self._timeout_s = timeout_seconds(self._options.timeout)
        if not self._options.command:
            raise ValueError("options.command is empty; leave it out, or write for example [ceph, --id, reader]")

    def config(self, luns: Sequence[str]) -> tuple[tuple[ElementMetric, ...], list[Fact]]:
        (tree,) = self._ask("osd tree")
        return METRICS, list(_facts_of_tree(tree))

    def gather(self) -> Readings:
        start_ns = time.monotonic_ns()
        dump, usage = self._ask("pg dump osds pools", "df")
        end_ns = time.monotonic_ns()
        return Readings(0, _readings(dump, usage).facts(), start_ns, end_ns)

    def _ask(self, *requests: str) -> list[Any]:
        """Ask the cluster, and return its answer, decoded. Raises Cannot."""
        commands = [[*self._options.command, *request.split(), "--format", "json"] for request in requests]
        answers = []
        for request, output in zip(requests, run_commands(commands, self._timeout_s), strict=True):
            try:
                answers.append(json_of(output))
            except ValueError as error:
                shown = output[:60].decode("utf-8", "replace")
                raise Cannot(f"ceph {request}: its output is not JSON ({error}); it begins {shown!r}") from None
        return answers


def _facts_of_tree(tree: Any) -> Iterator[Fact]:
    """Attributes of OSDs: the host, rack and so on that they are in, and their class. Raises Cannot."""
    try:
        nodes = {node["id"]: node for node in tree["nodes"]}
        above = {child: node for node in nodes.values() for child in node.get("children", ())}
        for number, node in nodes.items():
            if node["type"] != OSD:
                continue
            if node.get("device_class"):
                yield Fact(OSD, str(number), "device_class", str(node["device_class"]))
            bucket = above.pop(number, None)
            while bucket is not None:
                yield Fact(OSD, str(number), str(bucket["type"]), str(bucket["name"]))
                bucket = above.get(bucket["id"])
    except (KeyError, TypeError, AttributeError) as error:
        raise _unlike("osd tree", error) from None


def _readings(dump: Any, usage: Any) -> FoundFacts:
    """Raises Cannot where the answers are not like those of Ceph 14 to 19."""
    collected = FoundFacts("this is not an answer of Ceph's")
    try:
        for osd in dump["osd_stats"]:
            name, perf = str(osd["osd"]), osd["perf_stat"]
            values = {
                "commit_latency_ms": perf["commit_latency_ns"] / NS_PER_MS,
                "apply_latency_ms": perf["apply_latency_ns"] / NS_PER_MS,
            }
            if osd["kb"] > 0:  # else it has not reported yet
                _add(collected, OSD, name, values | {"used_percent": 100 * osd["kb_used"] / osd["kb"]})
        names = {pool["id"]: str(pool["name"]) for pool in usage["pools"]}
        for pool in usage["pools"]:
            _add(collected, POOL, names[pool["id"]], {"used_percent": 100 * pool["stats"]["percent_used"]})
        for pool in dump["pool_stats"]:
            if pool["poolid"] in names:  # else it was created or deleted between the two answers
                sums = {attribute: pool["stat_sum"][name] for attribute, name in COUNTERS.items()}
                _add(collected, POOL, names[pool["poolid"]], sums)
    except (KeyError, TypeError, AttributeError) as error:
        raise _unlike("pg dump, or ceph df", error) from None
    return collected


def _add(collected: FoundFacts, element: str, instance: str, values: dict[str, float]) -> None:
    for attribute, value in values.items():
        if (number := finite(value)) is not None:
            collected.add(Fact(element, instance, attribute, number), f"{element} {instance}")


def _unlike(request: str, error: Exception) -> Cannot:
    return Cannot(f"ceph {request}: the answer is not as expected ({type(error).__name__}: {error}); "
                  "this type was tested with Ceph 16")  # fmt: skip
