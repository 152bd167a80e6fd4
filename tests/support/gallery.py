"""The gallery: plans of docs/gallery, each run on simulated hosts, with the view of its run that shows most."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import exp
from pathlib import Path
from typing import Final

from ivypy.master.plan.load import read
from ivypy.master.run.session.run import Run
from ivypy.protocol.parameters import Parameters
from tests.support.shown_runs import ScatteringSlave, begun
from tests.support.simulated.array import SimulatedArray
from tests.support.simulated.plants import noisy, over_time
from tests.support.simulated.runs import SimulatedRun, stage
from tests.support.simulated.slave import Service

GALLERY: Final = Path(__file__).parents[2] / "docs" / "gallery"
PAGE: Final = GALLERY / "README.md"
_INTRO: Final = """\
# Twelve plans, and what each shows

Copy one, name your hosts and LUNs, and `ivypy check` it. The pictures are of runs on simulated hosts and LUNs, as
`ivypy web` and `ivypy report` show them. Each key: [plan](../plan.md); each job in words: [the index](../index.md).
"""
OUTAGE: Final = range(30, 36)  # subintervals of the plan `failover`: 3 s
LUNS: Final = 2  # of a host, asked in turn


def lun(capacity: float, service_ns: int) -> Service:
    """As long as it is not saturated, a queue; at max, as many I/Os in flight as `maxtags` says."""

    def plant(offered: float, parameters: Parameters) -> tuple[float, int]:
        tags = parameters.maxtags
        most = tags / (service_ns / 1e9 + tags / capacity)
        if offered >= most:
            return most, round(1e9 * tags / most)
        return offered, round(service_ns / (1 - offered / capacity))

    return plant


def scattered(plant: Service, seed: int) -> Service:
    noise = noisy(plant, 0.02, seed)

    def never_more(offered: float, parameters: Parameters) -> tuple[float, int]:
        done, ns = noise(offered, parameters)
        return min(done, offered), ns

    return never_more


def worn(asked: int) -> Service:
    """A new SSD, whose writes become slow within minutes."""
    return lun(4000.0 * (1 + 3 * exp(-asked / 40)), 200_000)


def failing(asked: int) -> Service:
    """No I/O completes while the path is gone; each LUN is asked once in a subinterval."""
    normal = lun(4000.0, 300_000)
    if asked // LUNS not in OUTAGE:
        return normal
    return lambda offered, parameters: (offered / 50, 1_500_000_000)


def slow_port(asked: int) -> Service:
    """Every second LUN is behind a slow port."""
    return lun(4000.0, 300_000 if asked % LUNS == 0 else 900_000)


def beside_a_scan() -> Callable[[int], Service]:
    """The more I/Os of 64 KiB and more there are, the less is left for small ones."""
    scanned = 0.0

    def plant(offered: float, parameters: Parameters) -> tuple[float, int]:
        nonlocal scanned
        if parameters.blocksize >= 64 << 10:
            scanned = offered
            return lun(400.0, 2_000_000)(offered, parameters)
        return lun(4000.0 / (1 + scanned / 100), 300_000)(offered, parameters)

    return lambda asked: plant


def even(asked: int) -> Service:
    return lun(4000.0, 300_000)


@dataclass(frozen=True, slots=True)
class Exhibit:
    """A plan, and the view of its run."""

    name: str  # of its file
    route: str = ""  # after the run's own
    plants: Callable[[int], Service] = even  # of a host's LUNs, by how often they were asked
    marks: Mapping[float, str] = field(default_factory=dict)  # by seconds after the first step has begun

    @property
    def plan(self) -> Path:
        return GALLERY / f"{self.name}.yaml"

    @property
    def picture(self) -> Path:
        return GALLERY / f"{self.name}.png"

    def run(self, root: Path) -> SimulatedRun:
        text = self.plan.read_text()
        plan = read(text, self.plan.name, {})
        hosts = {
            spec.name: ScatteringSlave(
                spec.name, seed=place, stalled=(), plant=scattered(over_time(self.plants), seed=place)
            )
            for place, spec in enumerate(plan.hosts)
        }

        async def visit(run: Run, staged: SimulatedRun) -> None:
            await begun(staged, plan.steps[0].name)
            passed_s = 0.0
            for at_s, words in self.marks.items():
                await asyncio.sleep(at_s - passed_s)
                passed_s = at_s
                run.api.mark(words, "me")

        launch = SimulatedArray(hosts, 5000.0, folder="/data").launch if plan.connectors else None
        return stage(root, visit, text, hosts, launch)


EXHIBITS: Final = (
    Exhibit("01-depth"),
    Exhibit("02-curve"),
    Exhibit("03-knee", "/step/0"),
    Exhibit("04-stairs"),
    Exhibit("05-held", "/step/0"),
    Exhibit("06-exact", "/step/0"),
    Exhibit("07-steady", "/step/0", worn),
    Exhibit("08-mixed", plants=beside_a_scan()),
    Exhibit("09-ports", "/step/0/instances", slow_port),
    Exhibit("10-failover", "/step/0", failing, {14.5: "path A pulled", 26.0: "path A back"}),
    Exhibit("11-array", "/step/0/elements"),
    Exhibit("12-nightly"),
)


def page() -> str:
    """The gallery's page: each plan below its title, its sentence and its picture."""
    parts = [_INTRO]
    for exhibit in EXHIBITS:
        title, words, plan = exhibit.plan.read_text().split("\n", 2)
        title, words = title.removeprefix("# "), words.removeprefix("# ")
        parts.append(f"## {title}\n\n{words}\n\n![{title}]({exhibit.picture.name})\n\n```yaml\n{plan}```\n")
    return "\n".join(parts)
