"""Hiccups of real hosts, beside what their devices counted: they cost nothing that was measured."""

import contextlib
from collections.abc import Iterator
from datetime import datetime

import pytest

from tests.support import devices
from tests.support.faults.bench import HOSTS, PLAN, Bench, bench
from tests.support.faults.kinds import Injected, Kind
from tests.support.real_runs import only_late, presence

MEASURE = 14
TEXT = (
    PLAN.replace("lease: 5s", "lease: 10s")
    .replace("subinterval: 0.5s, warmup: 1s, measure: 4s", f"subinterval: 1s, warmup: 1s, measure: {MEASURE}s")
    .replace("steps: [ go: one, go: two ]", "steps: [ go: one ]")
)


@pytest.fixture(scope="module")
def hosts() -> Iterator[Bench]:
    with contextlib.ExitStack() as undo:
        try:
            made = undo.enter_context(bench())
        except devices.Missing as missing:
            pytest.skip(f"this machine lacks {missing}")
        yield made


@pytest.mark.slow
def test_a_frozen_slave_and_a_link_that_is_cut_for_seconds_cost_nothing(hosts: Bench) -> None:
    """At subintervals of 1 s; the third host has neither."""
    frozen, cut, untouched = HOSTS
    faults = [Injected(Kind.FREEZE, frozen, 3.3, 2.2), Injected(Kind.CUT, cut, 8.0, 3.0)]
    finished, counted = hosts.run(faults, TEXT)
    assert finished is not None
    said = finished.out + finished.err
    events = {row["host"] for row in finished.rows("events.csv") if row["kind"] in ("late", "lost", "ended")}
    assert not events, said
    rows = {row["host"]: row for row in finished.rows("summary.host.csv")}
    for host, row in rows.items():
        assert presence(row) == "1/1" and "host_" not in row["reasons"], said
        assert int(row["last_subinterval"]) - int(row["first_subinterval"]) + 1 == MEASURE, said
        start, end = (datetime.fromisoformat(row[name]).timestamp() for name in ("start_utc", "end_utc"))
        least, most = (
            counted.between(host, start - 0.02, end - 0.02)[0],
            counted.between(host, start - 0.02, end + 0.02)[1],
        )
        done = int(row["overall_service_count"]) + int(row["errors"])
        assert least - 2 <= done <= most + 2, (host, least, most, done, said)
    assert only_late(rows[untouched]["reasons"]), said
