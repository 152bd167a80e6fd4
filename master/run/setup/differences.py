"""Finds what differs between the hosts of a run, and between LUNs whose results are merged: a few lines at its start.

Rule: pure. Only what makes latency counts. A line per fact, not per host: the value of most, then who has another.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ....protocol.messages import Hello
from ....protocol.payload import Attribute
from ...rollup.instances import ALL, Rollups
from ...text.suggestions import listed
from .consent import counted
from .placement import Placement

MOST_LINES: Final = 8  # of each kind
MOST_VALUES: Final = 3  # that are named, per line
MOST_NAMED: Final = 2  # hosts or LUNs, per value

HOST_FACTS: Final = (
    "kernel", "machine", "clock_source", "hardware", "cpu_model", "cpus", "numa_nodes", "smt", "idle_driver",
    "idle_governor", "idle_states", "frequency_driver", "governor", "turbo", "mitigations", "isolated_cores",
    "irqbalance", "transparent_huge_pages",
)  # fmt: skip
LUN_FACTS: Final = (
    "model", "firmware", "transport", "rotational", "logical_block_size", "scheduler", "nr_requests", "hw_queues",
    "write_cache", "fua", "max_sectors_kb", "zoned", "nomerges", "rq_affinity", "io_poll",
)  # fmt: skip
UNKNOWN: Final = "not known"


def host_differences(hellos: Mapping[str, Hello]) -> list[str]:
    """Such as "governor: performance on 15 hosts, powersave on h07"."""
    facts = {name: _facts(hello) for name, hello in hellos.items()}

    def values(fact: str) -> dict[str, Attribute]:
        return {name: of_host.get(fact, UNKNOWN) for name, of_host in facts.items()}

    return _most([_line(fact, values(fact), "host") for fact in HOST_FACTS], "hosts.csv")


def backend_difference(backends: Mapping[str, str]) -> str:
    """Where `backend: auto` is not the same on all hosts; "" where it is."""
    return _line("backend", backends, "host")


def lun_differences(placement: Placement, rollups: Rollups) -> list[str]:
    """Between the LUNs of one rollup instance, of the plan's own types if it has any: LUNs that it groups apart may
    differ."""
    return _most([next(_mixed(placement, rollups, fact), "") for fact in LUN_FACTS], "luns.csv")


def _facts(hello: Hello) -> dict[str, Attribute]:
    return {"kernel": hello.kernel, "machine": hello.machine, "clock_source": hello.clock_source, **hello.facts}


def _mixed(placement: Placement, rollups: Rollups, fact: str) -> Iterator[str]:
    """A line for each rollup instance whose LUNs differ in a fact."""
    for kind in [kind for kind in rollups.types if kind.name != ALL] or rollups.types:
        for instance in kind.instances:
            luns = [placement.lun_of[member.host, member.number] for member in instance.members]
            blocks = [lun for lun in luns if lun.lun.kind == "block"]
            values = {f"{lun.host}:{lun.lun.path}": lun.attributes.get(fact, UNKNOWN) for lun in blocks}
            if line := _line(fact, values, "LUN"):
                yield line if kind.name == ALL else f"{instance}: {line}"


def _line(fact: str, values: Mapping[str, Attribute], noun: str) -> str:
    """ "" where all are the same."""
    by_value: dict[str, list[str]] = {}
    for name, value in values.items():
        by_value.setdefault(str(value), []).append(name)
    if len(by_value) < 2:
        return ""
    groups = sorted(by_value.items(), key=lambda group: -len(group[1]))
    named = [f"{value} on {_who(names, noun)}" for value, names in groups[:MOST_VALUES]]
    rest = len(groups) - MOST_VALUES
    return f"{fact}: {', '.join(named)}" + (f", and {counted(rest, 'other value')}" if rest > 0 else "")


def _who(names: Sequence[str], noun: str) -> str:
    return listed(list(names), MOST_NAMED) if len(names) <= MOST_NAMED else counted(len(names), noun)


def _most(lines: Sequence[str], file: str) -> list[str]:
    found = [line for line in lines if line]
    more = len(found) - MOST_LINES
    return [*found[:MOST_LINES], *([f"and {counted(more, 'other difference')}: see {file}"] if more > 0 else [])]
