"""Whoever drives which hosts, a run's folder is the same; and a driver process that dies costs its own hosts alone."""

import asyncio
import csv
import pickle
import sqlite3
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ivypy.master.drivers.controller_side import DriverProcess
from ivypy.master.drivers.driver_messages import SignOfLife
from ivypy.master.drivers.process_side import ResultSums
from ivypy.master.drivers.split import even_shares, processes_for
from ivypy.master.exit_codes import ExitCode
from ivypy.master.hosts.controller_lag import ControllerLag
from ivypy.master.plan.load import read
from ivypy.master.rollup.decode_result import light, whole
from ivypy.master.rollup.partial_merge import PartialMerger
from ivypy.master.run.session import run as session_run
from ivypy.master.run.session.run import Options, Run
from ivypy.master.run.session.signals import Interrupts
from ivypy.protocol.counters import Count
from ivypy.protocol.errors import ProtocolError
from ivypy.protocol.payload import CpuTaken
from tests.support.real_runs import presence
from tests.support.rollup import instance, merger_of, rollups_by
from tests.support.rollup_results import HostData
from tests.support.rollup_results import result as sent
from tests.support.simulated.driver_processes import NEVER, staged
from tests.support.simulated.loop import simulate
from tests.support.simulated.plants import noisy
from tests.support.simulated.runs import Eyes, SimulatedHosts
from tests.support.simulated.slave import Faults, SimulatedSlave, steady

HOSTS = "abcde"
PLAN = """\
name: sim
hosts: [a, b, c, d, e]
engine: { backend: "null" }
luns:
  create: { path: "/x/{}", size: 1GiB, count: 3 }
attributes:
  - { match: { path: /x/0 }, set: { port: 1A } }
workloads:
  oltp: { blocksize: 8KiB, fraction_read: 75%, maxtags: 4, iops: max }
  scan: { blocksize: 64KiB, iosequencer: sequential, maxtags: 2, iops: 100 }
rollups: [ host, port, workload ]
by_address: 4
defaults: { subinterval: 5s, warmup: 5s, measure: 30s }
steps:
  - go: { name: max }
  - edit: { rollup: all=all, set: { total_iops: 5000 } }
  - go: { name: paced, cooldown: 5s }
"""
FAULTS = st.one_of(
    st.just(Faults()),
    st.integers(0, 7).map(lambda k: Faults(die_at=k)),
    st.integers(0, 7).map(lambda k: Faults(garbage_at=k)),
    st.integers(0, 7).map(lambda k: Faults(half_line_at=k)),
    st.integers(0, 7).map(lambda k: Faults(errors_at=k)),
    st.integers(0, 7).map(lambda k: Faults(taken={k: CpuTaken(steal_beside=20.0)})),
    st.integers(0, 7).map(lambda k: Faults(silent_from=k)),
    st.tuples(st.integers(0, 7), st.floats(0.1, 6)).map(lambda late: Faults(late={late[0]: late[1]})),
    st.tuples(st.integers(0, 7), st.floats(0.1, 6)).map(lambda stall: Faults(stall={stall[0]: stall[1]})),
    st.floats(0.1, 2).map(lambda s: Faults(ready_late_s=s)),
)


@dataclass(frozen=True)
class Folder:
    """What a run left, but for what names its process and its place."""

    code: ExitCode
    texts: Mapping[str, str]
    stored: list[tuple[Any, ...]]

    def rows(self, name: str) -> list[dict[str, str]]:
        return list(csv.DictReader(self.texts[name].splitlines()))


def run(
    faults: Mapping[str, Faults],
    process_of: Mapping[str, int],
    die: Mapping[int, float],
    press_s: float | None = None,
    deaf: Mapping[int, float] = NEVER,
) -> Folder:
    slaves = {
        name: SimulatedSlave(
            name, plant=noisy(steady(1000.0 * (i + 1)), 0.1, i), clock_offset_s=100.0 * i, drift_ppm=9.0 * i,
            delay_s=0.0002 * (i + 1), faults=faults.get(name),
        )
        for i, name in enumerate(HOSTS)
    }  # fmt: skip
    opening = SimulatedHosts(**slaves).open

    async def main(root: Path) -> ExitCode:
        presses = Interrupts()
        going = Run(read(PLAN, "sim.yaml", {}), Options(root, None, ("ivypy",)), Eyes(), presses, opening)
        if press_s is not None:
            asyncio.get_running_loop().call_later(press_s, presses.press)
        return await going.run()

    with TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr("time.time_ns", lambda: 1_700_000_000_000_000_000)
        patch.setattr(ControllerLag.__init__, "__defaults__", (lambda: 0,))  # the CPU time that the controller used
        patch.setattr(session_run, "driver_processes", staged(opening, process_of, die, deaf))
        code = simulate(main(Path(name)))
        (folder,) = Path(name).iterdir()
        files = sorted(path for path in folder.rglob("*") if path.suffix in (".csv", ".jsonl"))
        texts = {str(path.relative_to(folder)): path.read_text() for path in files if path.parent.name != "log"}
        with sqlite3.connect(folder / "histograms.sqlite") as base:
            stored = base.execute("SELECT * FROM result ORDER BY step, subinterval, host").fetchall()
        base.close()
        return Folder(code, texts, stored)


def at_each_instant(name: str, text: str) -> list[str]:
    """A file's lines; events of one instant (two hosts lost at once) may be in any order, and are sorted by text."""
    lines = text.splitlines(keepends=True)
    return sorted(lines, key=lambda line: (line.split(",", 1)[0], line)) if name == "events.csv" else lines


@pytest.mark.slow
@settings(max_examples=5)
@given(
    st.dictionaries(st.sampled_from(HOSTS), FAULTS, max_size=3),
    st.lists(st.integers(0, 3), min_size=5, max_size=5),
    st.one_of(st.none(), st.floats(3, 60)),
)
@example({"e": Faults(die_at=2)}, [0, 0, 0, 0, 1], 11.0)  # it answers `halt`, and then it is gone
@example(  # d and a are lost at the same instant
    {"d": Faults(late={6: 0.465}), "a": Faults(silent_from=0), "b": Faults(stall={0: 5.8215})},
    [3, 2, 0, 0, 0],
    5.821530863049111,
)
def test_one_process_or_many_write_the_same_folder(
    faults: dict[str, Faults], process: list[int], press_s: float | None
) -> None:
    """Every row, figure, verdict, event and stored byte. 0: the controller drives the host itself."""
    alone = run(deepcopy(faults), {}, {}, press_s)
    several = run(deepcopy(faults), {host: n for host, n in zip(HOSTS, process, strict=True) if n}, {}, press_s)
    assert alone.code == several.code
    assert alone.texts.keys() == several.texts.keys()
    for name, text in alone.texts.items():
        assert at_each_instant(name, text) == at_each_instant(name, several.texts[name]), name
    assert alone.stored == several.stored


@pytest.mark.slow
def test_a_driver_process_that_dies_loses_only_its_hosts() -> None:
    """In the middle of the first step: 5 s subintervals, and the lead."""
    left = run({}, {"a": 1, "b": 1, "c": 2}, {1: 23.0})
    assert left.code is ExitCode.PARTIAL
    lost = [(row["host"], row["text"]) for row in left.rows("events.csv") if row["kind"] == "lost"]
    assert lost == [(host, "its driver process ended: it was killed by SIGKILL") for host in "ab"]
    assert [presence(row) for row in left.rows("step0000.max/all/all.csv")] == ["5/5"] * 4 + ["3/5"] * 7
    assert {presence(row) for row in left.rows("step0001.paced/all/all.csv")} == {"3/5"}
    verdicts = [(row["name"], row["verdict"]) for row in left.rows("summary.all.csv")]
    assert verdicts == [("max", "partial"), ("paced", "partial")]
    paced = {row["host"]: row["verdict"] for row in left.rows("summary.host.csv") if row["name"] == "paced"}
    assert paced == {"a": "partial", "b": "partial", "c": "valid", "d": "valid", "e": "valid"}


def test_a_late_result_that_comes_while_a_driver_process_dies_ends_nothing() -> None:
    """The process is asked for the sum of subinterval 2 and dies; meanwhile the result of it comes that all went on
    without."""
    left = run({"c": Faults(late={2: 7.0})}, {"a": 1}, {1: 25.0}, deaf={1: 19.0})
    events = [(row["host"], row["kind"], row["subinterval"]) for row in left.rows("events.csv")]
    assert ("c", "late", "2") in events and ("a", "lost", "3") in events
    assert not any("/late/" in name for name in left.texts)
    assert {row[2] for row in left.stored if row[:2] == (0, 2)} == {*HOSTS}
    assert left.code is ExitCode.PARTIAL and left.rows("summary.all.csv")[0]["hosts_in"] == "4"


@pytest.mark.slow
@pytest.mark.parametrize("deaf_s", [17.0, 22.0])
def test_results_that_a_driver_process_passed_on_before_it_died_are_in(deaf_s: float) -> None:
    """It makes no sum of them any more."""
    alone, left = run({}, {}, {}), run({}, {"a": 1, "b": 1}, {1: 27.5}, deaf={1: deaf_s})
    figures = []
    for one in (alone, left):
        rows = one.rows("step0000.max/all/all.csv")[:5]
        assert [presence(row) for row in rows] == ["5/5"] * 5
        figures.append([[row[name] for name in row if name.startswith("overall_")] for row in rows])
    assert figures[0] == figures[1]
    stored = [[row for row in one.stored if row[:2] < (0, 5)] for one in (alone, left)]
    assert stored[0] == stored[1]


ROLLUPS = rollups_by([instance(n, h, port=n % 2) for h in HOSTS for n in range(2)], "host", "port")
ARRIVALS = st.lists(st.tuples(st.integers(0, 3), st.sampled_from(HOSTS)), unique=True, max_size=16)


def told(host: str, k: int) -> HostData:
    """What a host measured in a subinterval: different for each."""
    return HostData(2, 2, {(0, 0): [10**6 * (k + 1), 10**5 * ord(host)], (1, 4): [10**4]}, {(0, Count.DUE): k})


@given(ARRIVALS, st.lists(st.tuples(st.integers(0, 16), st.frozensets(st.sampled_from(HOSTS))), max_size=4))
def test_a_partial_sum_contains_exactly_the_requested_hosts(
    arrivals: list[tuple[int, str]], asked: list[tuple[int, frozenset[str]]]
) -> None:
    """Results come in any order, early and late; subinterval k is asked for after so many more of them."""
    places = merger_of(ROLLUPS).layout.places(list(HOSTS))
    sums, came = ResultSums(places), set[tuple[int, str]]()
    waiting = iter(arrivals)
    for k, (more, hosts) in enumerate(asked):
        for number, host in islice(waiting, more):
            result = sent(told(host, number), number)
            short = light(result)
            sums.take(host, result, short)
            assert whole(short) == result and not short.buckets.data
            came |= {(number, host)} if number >= k else set()
        named = frozenset(host for host in hosts if (k, host) in came)
        by_hand = PartialMerger(places)
        by_hand.open(k)
        for host in named:
            result = sent(told(host, k), k)
            by_hand.add(host, result, by_hand.check(host, result))
        found, wanted = sums.sum(k, named), by_hand.close()
        assert found.hosts == named and found.subinterval == k
        for array in ("counts", "moments", "length_ns", "cpu"):
            assert getattr(found, array).tobytes() == getattr(wanted, array).tobytes()
        assert [pickle.dumps(one) for one in found.buckets] == [pickle.dumps(one) for one in wanted.buckets]


def test_a_late_result_is_checked_as_any_other() -> None:
    """The controller stores it unseen."""
    sums = ResultSums(merger_of(ROLLUPS).layout.places(list(HOSTS)))
    sums.sum(0, frozenset())
    wrong = sent(HostData(3, 2, {}, {}), 0)
    with pytest.raises(ProtocolError):
        sums.take(HOSTS[0], wrong, light(wrong))


def test_a_process_may_take_longer_to_start_than_to_answer() -> None:
    process = DriverProcess(lambda message: None)

    def is_stalled(at_s: float) -> bool:
        return process.silent_s(at_s) >= process.patience_s(silence_s=10.0)

    for now_s in range(30):
        process.live(now_s)
    assert not is_stalled(59.0) and is_stalled(60.0)
    process.receive(SignOfLife())
    for now_s in range(30, 33):
        process.live(now_s)
    assert not is_stalled(34.9) and is_stalled(35.0)


def test_few_hosts_and_a_single_core_need_no_process() -> None:
    assert [processes_for(hosts, 16) for hosts in (1, 300, 301, 900, 1000, 10_000)] == [0, 0, 2, 3, 4, 16]
    assert processes_for(10_000, 1) == 0 and processes_for(1000, 2) == 2


@given(st.integers(1, 50), st.integers(1, 60))
def test_every_host_is_in_one_share_and_no_share_is_much_larger(processes: int, hosts: int) -> None:
    found = even_shares(range(hosts), processes)
    assert [host for share in found for host in share] == list(range(hosts))
    sizes = [len(share) for share in found]
    assert len(found) == processes and max(sizes) - min(sizes) <= 1
