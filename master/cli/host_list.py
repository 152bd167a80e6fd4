"""Lists what each host is and what it lacks: the first part of `ivypy devices`, and `ivypy check --connect`.

Rule: hosts that are alike are described once, by their names; those that cannot be used come last, where a terminal
shows them, each fault once.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Final

from ...protocol.messages import Hello
from ..errors import HostFault
from ..hosts.bundle import slave_bundles
from ..hosts.login_throttle import LoginThrottle
from ..plan.model import Plan
from ..plan.read.schema import RARE
from ..run.setup.connect import connected, opener
from ..run.setup.consent import counted
from ..run.setup.differences import host_differences
from ..run.setup.fleet import Fleet
from ..version import VERSION
from .host_faults import fault_lines
from .last_words import LastWords

INDENT: Final = "    "
_SETTINGS: Final = {  # of what makes latency, that which a person sets: by name, in words
    "clock_source": "clock", "governor": "governor", "turbo": "turbo", "smt": "hyper-threading",
}  # fmt: skip


@asynccontextmanager
async def reachable(plan: Plan) -> AsyncIterator[Fleet]:
    """All hosts that can be used, connected at once; the others are in `missed`, however many."""
    loop = asyncio.get_running_loop()
    opening = opener(slave_bundles(), LoginThrottle())
    now_ns, most, words = (lambda: int(loop.time() * 1e9)), len(plan.hosts), LastWords()
    async with connected(plan.hosts, opening, words.log, VERSION, now_ns, most, pointer=words.quoted) as (fleet, _):
        yield fleet


async def hosts_page(plan: Plan) -> tuple[str, bool]:
    """Connect all hosts at once; what was found, and whether more of them are missing than the plan allows."""
    async with reachable(plan) as fleet:
        lines = host_lines(fleet.hellos(), fleet.missed.values(), plan.engine.backend)
        return "\n".join(lines), len(fleet.missed) > plan.may_miss


def host_lines(hellos: Mapping[str, Hello], faults: Iterable[HostFault], backend: str = "") -> list[str]:
    """The page, each of its lines as long as it is.

    `backend`: the plan's, if there is one; that a host lacks one of the RARE matters only to who wants it.
    """
    faults = list(faults)
    alike: dict[tuple[str, ...], list[str]] = {}
    for name, hello in hellos.items():
        alike.setdefault(_description(hello, backend), []).append(_called(name, hello))
    lines = []
    for description, names in alike.items():
        lines += [", ".join(names), *(f"{INDENT}{one}" for one in description)]
    if settings := _common_settings(hellos.values()):
        lines.append(f"{INDENT}{settings}" if len(alike) == 1 else f"all hosts: {settings}")
    parts = [
        ("The hosts differ in what makes latency:", host_differences(hellos)),
        (f"{counted(len(faults), 'host')} cannot be used:", fault_lines(faults)),
    ]
    for title, said in parts:
        if said:
            lines += [*([""] if lines else []), title, *(f"{INDENT}{one}" for one in said)]
    return lines


def _common_settings(hellos: Iterable[Hello]) -> str:
    """Those that are alike on all hosts: "clock tsc, governor performance". Those that differ have lines of their
    own."""
    each = [{"clock_source": hello.clock_source, **hello.facts} for hello in hellos]
    values = {name: {str(one.get(name, "")) for one in each} for name in _SETTINGS}
    return ", ".join(
        f"{words} {value}"
        for name, words in _SETTINGS.items()
        for value in values[name]
        if value and len(values[name]) == 1
    )


def _called(name: str, hello: Hello) -> str:
    """With the machine's own name where that is another."""
    return name if hello.hostname.partition(".")[0] == name.partition(".")[0] else f"{name} ({hello.hostname})"


def _description(hello: Hello, backend: str) -> tuple[str, ...]:
    """A line about each aspect; those of hosts that are alike are equal."""
    facts = hello.facts
    system = [facts.get("distribution"), f"Linux {hello.kernel}", hello.machine, hello.libc, f"Python {hello.python}"]
    cpu = f"{counted(int(facts.get('cpus', len(hello.cores))), 'CPU')}"
    if facts.get("cpus", len(hello.cores)) != len(hello.cores):
        cpu += f" ({len(hello.cores)} for ivypy)"
    nodes, memory = int(facts.get("numa_nodes", 1)), int(facts.get("memory", 0))
    hardware = [
        facts.get("hardware"),
        f"{cpu}, {facts['cpu_model']}" if "cpu_model" in facts else cpu,
        counted(nodes, "NUMA node") if nodes > 1 else "",
        f"{memory / 2**30:.4g} GiB of memory" if memory else "",
    ]
    uring = f" ({', '.join(hello.io_uring)})" if hello.io_uring else ""
    works = ", ".join(one + (uring if one == "io_uring" else "") for one in hello.backends)
    missing = [one for one in str(facts.get("lacks", "")).split("; ") if one]
    lacks = [f"lacks {one}" for one in missing if one.partition(":")[0] not in RARE - {backend}]
    if facts.get("user", "root") != "root":
        lacks.append(f"runs as {facts['user']}: block devices and some facts may need root (`python: sudo -n python3`)")
    return tuple(filter(None, (_joined(system), _joined(hardware), f"backends: {works}", *lacks)))


def _joined(parts: Iterable[object]) -> str:
    return ", ".join(str(part) for part in parts if part)
