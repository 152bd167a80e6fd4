"""Random faults on three hosts, the console, the results' disk and the controller: what a run may never do then.

A run ends within its bound; every row that it leaves has a verdict, and a reason where that is not `valid`; no valid
row is contradicted by what the test knows: the faults that it injected, and the I/Os that the devices counted. And
only a host that was hit is ever blamed.
"""

import random
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

import pytest

from tests.support.faults.bench import HOSTS, Bench
from tests.support.faults.devices import Counted
from tests.support.faults.kinds import Injected, Kind, drawn
from tests.support.real_runs import Finished

WITHIN_S = 11.0  # of the first step's beginning: both steps last so long
PER_RUN = 4
BLAME = {"lost", "late", "clock_stepped"}  # kinds of events that speak against a host


def test_a_step_of_the_machines_clock_is_none_of_the_truth(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run goes by the monotonic clock from its beginning on, and so does what it is compared with."""
    with Counted({}) as counted:
        before = counted.now()
        real = time.time
        monkeypatch.setattr(time, "time", lambda: real() + 3600)
        assert before <= counted.now() < before + 1800


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
def test_random_faults(faulty_hosts: Bench, seed: int) -> None:
    check(faulty_hosts, seed)


@pytest.mark.long
@pytest.mark.timeout(200)
@pytest.mark.parametrize("seed", range(2, 53))
def test_many_random_faults(faulty_hosts: Bench, seed: int) -> None:
    check(faulty_hosts, seed)


def check(hosts: Bench, seed: int) -> None:
    faults = drawn(random.Random(seed), list(HOSTS), PER_RUN, WITHIN_S)
    finished, counted = hosts.run(faults)
    assert finished is not None, f"the run did not end: {faults}"
    wrong = contradictions(finished, faults, counted)
    assert not wrong, "\n".join([*wrong, *map(str, faults), finished.out[-2000:], finished.err])


def contradictions(finished: Finished, faults: Sequence[Injected], counted: Counted) -> list[str]:
    """What the run says and the truth does not."""
    wrong = []
    if finished.code not in range(10) and finished.code != 130:
        wrong.append(f"exit code {finished.code}")
    if "Traceback" in finished.err + finished.out:
        wrong.append("a traceback")
    if finished.code in (1, 2, 3, 4):
        wrong.append(f"exit code {finished.code}, though the run could go on")
    for name in ("summary.all.csv", "summary.host.csv"):
        if (finished.folder / name).exists():
            for row in finished.rows(name):
                wrong += [
                    f"{name}, {row['name']} {row.get('host', '')}: {text}" for text in _of_row(row, faults, counted)
                ]
        else:
            wrong.append(f"there is no {name}")
    wrong += _blamed(finished, faults)
    return wrong


def _of_row(row: Mapping[str, str], faults: Sequence[Injected], counted: Counted) -> Iterator[str]:
    verdict, reasons = row["verdict"], row["reasons"]
    if verdict not in ("valid", "partial", "invalid", "failed"):
        yield f"its verdict is {verdict!r}"
    if verdict != "valid":
        if not reasons:
            yield f"{verdict} without a reason"
        return
    start, end = (datetime.fromisoformat(row[name]).timestamp() for name in ("start_utc", "end_utc"))
    members = [row["host"]] if row.get("host") else list(HOSTS)
    least = most = 0
    for host in members:
        least += counted.between(host, start + 0.02, end - 0.02)[0]
        most += counted.between(host, start - 0.02, end + 0.02)[1]
    done = int(row["overall_service_count"]) + int(row["errors"])
    if not least - 2 * len(members) <= done <= most + 2 * len(members):
        yield f"valid with {done} I/Os; the devices did {least} to {most}"
    for one in faults:
        inside_s = one.overlap_s(start, end)
        if one.host not in members:
            continue
        if one.kind in (Kind.KILL, Kind.GARBAGE) and start < one.began < end:
            yield f"valid, and its host went in it: {one}"
        if one.kind is Kind.FREEZE and inside_s > 0.2 and not reasons:
            yield f"valid without a note, and frozen for {inside_s:.2f} s: {one}"
        if one.kind is Kind.EIO and inside_s > 0.4:
            yield f"valid, with I/O errors for {inside_s:.2f} s: {one}"
        if one.kind is Kind.HANG and start < one.began and one.ended < end - 0.1:
            longest_s = float(row["overall_service_us_max"] or 0) / 1e6
            if longest_s < 0.9 * (one.ended - one.began) - 0.05:
                yield f"valid, longest {longest_s:.2f} s, and the device hung for {one.ended - one.began:.2f} s"


def _blamed(finished: Finished, faults: Sequence[Injected]) -> Iterator[str]:
    """Whatever one host does costs at most that one; what the terminal, the disk and the controller do costs none."""
    hit = {one.host for one in faults if one.began < float("inf")}
    if not (finished.folder / "events.csv").exists():
        return
    for event in finished.rows("events.csv"):
        if event["kind"] in BLAME and event["host"] and event["host"] not in hit:
            yield f"{event['host']} is blamed, and nothing was done to it: {event['kind']} {event['text']}"
