"""Hiccups of real hosts, beside what their devices counted: they cost nothing that was measured."""

import random
from datetime import datetime

import pytest

from tests.support.faults.bench import HOSTS, PLAN, Bench
from tests.support.faults.kinds import Injected, Kind
from tests.support.real_runs import Finished, names_of, only_late, presence

MEASURE = 14
ABSENT = {"host_late", "host_lost", "host_missing"}
TEXT = (
    PLAN.replace("lease: 5s", "lease: 10s")
    .replace("subinterval: 0.5s, warmup: 1s, measure: 4s", f"subinterval: 1s, warmup: 1s, measure: {MEASURE}s")
    .replace("steps: [ go: one, go: two ]", "steps: [ go: one ]")
)


@pytest.mark.slow
def test_a_frozen_slave_and_a_link_that_is_cut_for_seconds_cost_nothing(faulty_hosts: Bench) -> None:
    """At subintervals of 1 s; the third host has neither."""
    frozen, cut, untouched = HOSTS
    finished = check(faulty_hosts, [Injected(Kind.FREEZE, frozen, 3.3, 2.2), Injected(Kind.CUT, cut, 8.0, 3.0)])
    reasons = {row["host"]: row["reasons"] for row in finished.rows("summary.host.csv")}
    assert only_late(reasons[untouched]), reasons
    assert "overrun[note]" in reasons[frozen] and "no thread of its slave ran for up to 2," in reasons[frozen], reasons


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20))
def test_random_hiccups_cost_nothing(faulty_hosts: Bench, seed: int) -> None:
    """Three in a run, of 0.5 to 4.5 s each, on any host; they may overlap."""
    draw = random.Random(seed)
    kinds = (Kind.FREEZE, Kind.CUT, Kind.DELAY)
    check(
        faulty_hosts,
        sorted(
            (
                Injected(kind, draw.choice(HOSTS), draw.uniform(0.0, MEASURE - 5.0), draw.uniform(0.5, 4.5))
                for kind in draw.sample(kinds, 3)
            ),
            key=lambda one: one.at_s,
        ),
    )


def check(hosts: Bench, faults: list[Injected]) -> Finished:
    """Run with these; every host is in, from the first subinterval to the last, with what its device counted."""
    finished, counted = hosts.run(faults, TEXT)
    assert finished is not None
    said = f"{faults}\n{finished.out}{finished.err}"
    blamed = {row["host"] for row in finished.rows("events.csv") if row["kind"] in ("late", "lost", "ended", "absent")}
    assert not blamed, said
    rows = finished.rows("summary.host.csv")
    assert [row["host"] for row in rows] == [*HOSTS]
    for row in rows:
        host = row["host"]
        assert presence(row) == "1/1" and not ABSENT & names_of(row["reasons"]), said
        assert int(row["last_subinterval"]) - int(row["first_subinterval"]) + 1 >= MEASURE, said
        start, end = (datetime.fromisoformat(row[name]).timestamp() for name in ("start_utc", "end_utc"))
        least, most = (
            counted.between(host, start + 0.02, end - 0.02)[0],
            counted.between(host, start - 0.02, end + 0.02)[1],
        )
        done = int(row["overall_service_count"]) + int(row["errors"])
        assert least - 2 <= done <= most + 2, (host, least, most, done, said)
    return finished
