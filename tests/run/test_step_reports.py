"""What watchers are shown of a subinterval: the rollup instance that was slowest."""

import pytest

from ivypy.master.live.reports import WorstInstance
from ivypy.master.rollup.parameters_in_force import Settings
from ivypy.master.run.record.step_reports import worst_instance
from ivypy.protocol.counters import RESPONSES, SERVICES, Count, Kind
from ivypy.protocol.parameters import Parameters
from tests.support.rollup import instance, merged, merger_of, rollups_by
from tests.support.rollup_results import HostData

MS = 10**6
MANY = 2000  # I/Os: their p99 is known
PORTS = {"h1": "1A", "h2": "1A", "h3": "2A"}


def worst_of(times: dict[str, tuple[int, int]], *by: str, paced: bool = False, stuck: str = "") -> WorstInstance | None:
    """`times`: by host, how many I/Os took so many ns. `stuck`: a host with I/Os that do not complete."""
    instances = [instance(0, host, port=PORTS[host]) for host in times]
    rollups = rollups_by(instances, *by)
    samples = {host: {(0, SERVICES[Kind.RANDOM_READ]): [ns] * ios} for host, (ios, ns) in times.items()}
    for host, (ios, ns) in times.items():
        samples[host][0, RESPONSES[Kind.RANDOM_READ]] = [2 * ns] * ios
    closed = merged(
        merger_of(rollups),
        {host: HostData(1, 1, some, {(0, Count.IN_FLIGHT): 4 * (host == stuck)}) for host, some in samples.items()},
    )
    iops = {(one.host, one.number): Parameters(iops=1000.0 if paced else "max") for one in instances}
    shown = closed.figures.shown(Settings.of(rollups, iops).response_rows())
    return worst_instance(shown, rollups.types)


@pytest.mark.parametrize(
    ("times", "by", "paced", "name", "figure", "median", "of"),
    [
        ({"h1": (MANY, MS), "h2": (MANY, 9 * MS), "h3": (MANY, 3 * MS)}, ["host"], False, "host=h2", 9e3, 3e3, 3),
        ({"h1": (MANY, MS), "h2": (MANY, 9 * MS)}, ["host"], True, "host=h2", 18e3, 10e3, 2),
        # The finer type has the higher p99: 9 ms are less than 1 % of the port's I/Os. Of equal ones the first type's.
        ({"h1": (MANY * 200, MS), "h2": (MANY, 9 * MS), "h3": (MANY, 3 * MS)}, ["port", "host"], False, "host=h2",
         9e3, 3e3, 3),
        ({"h1": (MANY, MS), "h3": (MANY, 3 * MS)}, ["port", "host"], False, "port=2A", 3e3, 2e3, 2),
    ],
)  # fmt: skip
def test_the_worst_instance_has_the_highest_p99(
    times: dict[str, tuple[int, int]], by: list[str], paced: bool, name: str, figure: float, median: float, of: int
) -> None:
    worst = worst_of(times, *by, paced=paced)
    assert worst is not None and (worst.name, worst.compared) == (name, of)
    assert [worst.figure, worst.median] == pytest.approx([figure, median], rel=0.01)
    assert worst.metric == f"overall_{'response' if paced else 'service'}_us_p99"


def test_who_did_too_few_ios_for_a_p99_is_not_left_out() -> None:
    """So it is with a disk that dies: all are compared by their means."""
    worst = worst_of({"h1": (MANY, MS), "h2": (900, 800 * MS), "h3": (MANY, 3 * MS)}, "host")
    assert worst is not None and (worst.name, worst.compared) == ("host=h2", 3)
    assert (worst.metric, worst.figure, worst.median) == ("overall_service_us_mean", 800e3, 3e3)


def test_who_completed_nothing_of_what_it_has_is_the_worst() -> None:
    times = {"h1": (MANY, MS), "h2": (0, MS), "h3": (MANY, 3 * MS)}
    worst = worst_of(times, "host", stuck="h2")
    assert worst == WorstInstance("host=h2", "", 0.0, 0.0, 3)
    assert (idle := worst_of(times, "host")) is not None and idle.name == "host=h3", "it has nothing to do"


@pytest.mark.parametrize(
    "times", [{"h1": (MANY, MS)}, {"h1": (MANY, MS), "h2": (MANY, MS)}], ids=["alone", "all are equal"]
)
def test_none_is_worse_than_itself_or_its_equals(times: dict[str, tuple[int, int]]) -> None:
    assert worst_of(times, "host") is None
