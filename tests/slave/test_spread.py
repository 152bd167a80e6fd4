"""One instance over several threads: what its parts are told, and that their sums are its own."""

import errno
import os
from array import array
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivypy.protocol import messages as m
from ivypy.protocol.counters import Count, ThreadCount
from ivypy.protocol.parameters import AUTO, MAX, Iops, Iosequencer, Parameters, Spread, Until, VolumeKind
from ivypy.protocol.payload import Refusal, Setting, WorkloadToCreate
from ivypy.slave.host.cpu_usage import LostTime
from ivypy.slave.workloads.spread import (
    FIRST_FURTHER,
    ONE_THREAD_IOPS,
    EngineOrder,
    InstancePart,
    busy_parts,
    driving_parts,
    split_parameters,
    threads_wanted,
    with_lost_time,
)
from ivypy.slave.workloads.thread_assignment import LEAST_TAGS, InstanceToAssign, even_shares
from ivypy.slave.workloads.workloads import Workloads
from tests.support.fake_engine import FakeEngine
from tests.support.slave_client import Client, u32

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("iops", "maxtags", "parts", "told"),
    [
        (900.0, 4, 1, [(4, 900.0)]),
        (900.0, 4, 2, [(2, 450.0), (2, 450.0)]),
        (900.0, 3, 2, [(2, 600.0), (1, 300.0)]),
        (MAX, 5, 3, [(2, MAX), (2, MAX), (1, MAX)]),
        (900.0, 1, 2, [(1, 900.0), (1, 0.0)]),  # a part without a tag is paused
        (MAX, 1, 2, [(1, MAX), (1, 0.0)]),
        (0.0, 4, 2, [(2, 0.0), (2, 0.0)]),
    ],
)
def test_tags_and_rate_are_shared(iops: float, maxtags: int, parts: int, told: list[tuple[int, float]]) -> None:
    made = split_parameters(Parameters(iops=iops, maxtags=maxtags, blocksize=8192, spread=parts), parts)
    assert [(one.maxtags, one.iops) for one in made] == told
    assert all(one.blocksize == 8192 for one in made)


@given(st.floats(0, 1e9), st.integers(1, 8192), st.integers(1, 256), st.sampled_from([AUTO, 1]))
def test_shares_of_a_rate_are_all_of_it(iops: float, maxtags: int, parts: int, spread: Spread) -> None:
    made = split_parameters(Parameters(iops=iops, maxtags=maxtags, spread=spread), parts)
    assert sum(float(one.iops) for one in made) == pytest.approx(iops)
    assert sum(one.maxtags for one in made if one.iops) == maxtags or iops < 1e-300


@given(st.integers(1, 8192), st.integers(1, 8192), st.integers(1, 16))
def test_tags_that_fit_an_instances_buffers_fit_those_of_each_part(one: int, other: int, parts: int) -> None:
    """So that an edit of a running instance, up to its ceiling, is never refused by the engine."""
    maxtags, ceiling = sorted((one, other))
    parts = min(parts, ceiling)  # as instances are dealt
    told = split_parameters(Parameters(maxtags=maxtags, spread=parts), parts)
    assert all(part.maxtags <= room for part, room in zip(told, even_shares(ceiling, parts), strict=True))


@given(st.integers(1, 8192), st.integers(1, 8192), st.integers(1, 256), st.sampled_from([MAX, 100.0, 1e6]))
def test_the_same_holds_where_the_host_decides(one: int, other: int, fair: int, iops: Iops) -> None:
    """And of its parts, those that drive it have so many tags that a thread's calls carry several I/Os."""
    maxtags, ceiling = sorted((one, other))
    parameters = Parameters(maxtags=maxtags, iops=iops)
    parts = threads_wanted(parameters, ceiling, fair)
    told = split_parameters(parameters, parts)
    shares = InstanceToAssign(ceiling, first_whole=True).shares(parts)
    assert all(part.maxtags <= room for part, room in zip(told, shares, strict=True))
    busy = [part.maxtags for part in told if part.iops]
    assert sum(busy) == maxtags
    assert len(busy) == 1 or min(busy) >= LEAST_TAGS


@pytest.mark.parametrize(
    ("parameters", "ceiling", "fair", "threads", "busy"),
    [
        (Parameters(spread=4), 64, 1, 4, 4),  # what a plan says
        (Parameters(maxtags=64), 64, 8, 8, 8),
        (Parameters(maxtags=64), 64, 1, 1, 1),  # there is an instance for each thread
        (Parameters(maxtags=64), 64, 3, 3, 3),
        (Parameters(maxtags=32), 32, 8, 4, 4),  # 8 tags each
        (Parameters(maxtags=15), 15, 8, 1, 1),
        (Parameters(maxtags=1), 64, 8, 8, 1),  # another step has a deeper queue
        (Parameters(maxtags=16), 64, 8, 8, 2),
        (Parameters(maxtags=64, iops=100_000.0), 64, 8, 8, 1),  # an edit may raise it
        (Parameters(maxtags=64, iops=100_001.0), 64, 8, 8, 8),
        (Parameters(maxtags=64, iops=0.0), 64, 8, 8, 1),
        # a sequential stream is one order of addresses
        (Parameters(maxtags=64, iosequencer=Iosequencer.SEQUENTIAL), 64, 8, 1, 1),
        (Parameters(spread=4, iosequencer=Iosequencer.SEQUENTIAL), 64, 8, 1, 1),
        (Parameters(maxtags=64, random_map=True), 64, 8, 1, 1),  # as is a random map,
        (Parameters(spread=4, until=Until(VolumeKind.IOS, 5)), 64, 8, 1, 1),  # and an end by volume is one count
    ],
)
def test_threads_of_an_instance(parameters: Parameters, ceiling: int, fair: int, threads: int, busy: int) -> None:
    assert threads_wanted(parameters, ceiling, fair) == threads
    assert busy_parts(parameters, threads) == busy


@given(st.integers(1, 8192), st.integers(1, 256), st.floats(0, ONE_THREAD_IOPS))
def test_a_rate_that_one_thread_sustains_is_paced_by_it_alone(maxtags: int, parts: int, iops: float) -> None:
    """As without any spread: the same even gaps, the same addresses."""
    parameters = Parameters(iops=iops, maxtags=maxtags)
    first, *others = split_parameters(parameters, parts)
    assert first == parameters
    assert {part.iops for part in others} <= {0.0}


@given(st.lists(st.integers(1, 4), min_size=1, max_size=8))
def test_parts_share_the_row_and_the_faults_of_their_instance(sizes: list[int]) -> None:
    numbers = [10 + n for n in range(len(sizes))]
    further = iter(range(FIRST_FURTHER, FIRST_FURTHER + 99))
    parts = {
        number: [InstancePart(number if k == 0 else next(further), k, 1) for k in range(size)]
        for number, size in zip(numbers, sizes, strict=True)
    }
    order = EngineOrder.of(numbers, parts)
    assert order.engine[: len(numbers)] == tuple(numbers)
    row_of = dict(zip(order.engine, array("I", order.rows()), strict=True))
    for place, number in enumerate(numbers):
        assert {row_of[part.number] for part in parts[number]} == {place}
    faults = [(number, errno.EIO, 1) for number in order.engine]
    assert order.faults(faults) == [(number, errno.EIO, size) for number, size in zip(numbers, sizes, strict=True)]


@pytest.mark.parametrize(
    ("parameters", "parts", "driving"),
    [
        (Parameters(maxtags=64, iops=MAX), 4, 4),
        (Parameters(maxtags=8, iops=MAX), 4, 1),  # `auto` puts eight tags on a thread
        (Parameters(maxtags=64, iops=100.0), 4, 1),
        (Parameters(maxtags=64, iops=100.0, spread=4), 4, 4),
        (Parameters(maxtags=3, iops=MAX, spread=4), 4, 3),
    ],
)
def test_the_parts_that_drive(parameters: Parameters, parts: int, driving: int) -> None:
    assert driving_parts(parameters, parts) == driving
    assert [one.iops != 0 for one in split_parameters(parameters, parts)] == [part < driving for part in range(parts)]


def test_an_instance_lost_the_mean_of_what_its_threads_lost() -> None:
    before = array("q", range(3 * len(Count)))
    lost = {0: LostTime(30.0, 6.0), 2: LostTime(60.0, 0.5), 3: LostTime()}  # nothing is known of the thread 1
    after = array("q", with_lost_time(before.tobytes(), [(2,), (0, 1, 2), (3,)], lost, 2 * 10**9))
    ms = 10**6
    assert after[Count.KEPT_NS :: len(Count)].tolist() == [1200 * ms, 600 * ms, 0]
    assert after[Count.STOLEN_NS :: len(Count)].tolist() == [10 * ms, round(6.5 / 3 * 20 * ms), 0]
    untouched = [i for i in range(len(before)) if i % len(Count) not in (Count.KEPT_NS, Count.STOLEN_NS)]
    assert [after[i] for i in untouched] == untouched


@pytest.fixture
def file(tmp_path: Path) -> str:
    (tmp_path / "lun").write_bytes(os.urandom(1 << 20))
    return str(tmp_path / "lun")


def on(lun: str, number: int, parameters: Parameters, ceiling: int = 4) -> WorkloadToCreate:
    return WorkloadToCreate(number, f"h+{lun}+w{number}", lun, None, parameters, ceiling, 4096)


def test_an_instance_is_created_edited_and_deleted_on_all_its_threads(file: str) -> None:
    engine = FakeEngine()
    workloads = Workloads(engine, "null", [None, None])  # type: ignore[arg-type]
    both = [on(file, 0, Parameters(spread=8, maxtags=4, iops=100.0)), on(file, 1, Parameters(), ceiling=1)]
    assert workloads.create(both) == []
    created = [word for word in engine.did if word.startswith("create")]
    assert created == ["create 0 on 0 by 0", f"create {FIRST_FURTHER} on 0 by 1", "create 1 on 0 by 0"]
    edit = m.EditWorkloads(1, 1, (Setting(0, Parameters(spread=8, maxtags=4, iops=50.0)),))
    assert workloads.check_edit(edit) == []
    assert [(number, told["iops"], told["maxtags"]) for number, told in workloads.settings_of(edit)] == [
        (0, 25.0, 2),
        (FIRST_FURTHER, 25.0, 2),
    ]
    order = workloads.order_of(m.Go(1, 0, 1, u32(1, 0), u32(0, 1)))
    assert (order.engine, order.owners) == ((1, 0, FIRST_FURTHER), (1,))
    assert array("I", order.classes([0, 1])).tolist() == [0, 1, 1]
    assert workloads.delete([0]) == []
    assert engine.did[-2:] == [f"delete {FIRST_FURTHER}", "delete 0"]
    assert workloads.create([on(file, 7, Parameters(spread=2, maxtags=2))]) == []
    assert engine.did[-1].startswith(f"create {FIRST_FURTHER} ")  # the number is used again


def test_idle_threads_are_used_at_most_as_fairly_as_instances_are_there(file: str) -> None:
    workloads = Workloads(FakeEngine(), "null", [None] * 4)  # type: ignore[arg-type]
    deep = Parameters(maxtags=64)
    assert workloads.create([on(file, 0, deep, 64), on(file, 1, deep, 64), on(file, 2, deep, 64)]) == []
    threads = [len(parts) for parts in (workloads._instances[n].parts for n in range(3))]
    assert threads == [2, 2, 2]
    assert workloads.create([on(file, 3, deep, 64)]) == []
    assert len(workloads._instances[3].parts) == 1


def test_what_was_decided_is_said(file: str) -> None:
    workloads = Workloads(FakeEngine(), "null", [None] * 4)  # type: ignore[arg-type]
    one, other, shallow = (
        on(file, 0, Parameters(maxtags=64), 64),
        on(file, 1, Parameters(spread=2)),
        on(file, 2, Parameters()),
    )
    assert workloads.create([one, other, shallow]) == []
    assert workloads.describe_spread([other, shallow]) == ""
    assert workloads.describe_spread([one, other, shallow]) == (
        f"spread auto is up to 2 of 4 threads for h+{file}+w0: while its iops is max or above 100,000, with 8 tags "
        "or more for each thread"
    )


def test_where_there_is_no_room_for_more_threads_one_has_all(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan that had room before is not refused for what only the host chose."""
    monkeypatch.setattr("ivypy.slave.workloads.workloads.aio_left", lambda: 70)
    workloads = Workloads(FakeEngine(), "libaio", [None] * 4)  # type: ignore[arg-type]
    assert workloads.create([on(file, 0, Parameters(maxtags=64), 64)]) == []
    assert len(workloads._instances[0].parts) == 1
    ((refusal),) = workloads.create([on(file, 1, Parameters(maxtags=64, spread=2), 64)])
    assert "fs.aio-max-nr leaves 70" in refusal.reason


def test_where_a_part_cannot_be_created_none_is_left(file: str) -> None:
    engine = FakeEngine(faults={f"create {FIRST_FURTHER}": OSError(errno.ENOMEM, "no memory")})
    workloads = Workloads(engine, "null", [None, None])  # type: ignore[arg-type]
    both = [on(file, 0, Parameters(), ceiling=1), on(file, 1, Parameters(spread=2, maxtags=4))]
    assert workloads.create(both) == [Refusal(f"h+{file}+w1", "the engine cannot drive it: no memory")]
    assert engine.did[-3:] == ["delete 0", "delete 1", "close_lun 0"]


def test_numbers_of_instances_end_where_those_of_parts_begin(file: str) -> None:
    workloads = Workloads(FakeEngine(), "null", [None])  # type: ignore[arg-type]
    ((_, why),) = [(one.what, one.reason) for one in workloads.create([on(file, FIRST_FURTHER, Parameters())])]
    assert why == f"its number is {FIRST_FURTHER}, and they end at {FIRST_FURTHER - 1}"


def test_a_real_slave_drives_one_instance_on_two_threads(tmp_path: Path) -> None:
    """It stays one instance: a row, a rate and an edit; each thread does its share."""
    before = Parameters(iops=4000.0, maxtags=8, spread=2)
    with Client() as slave:
        slave.prepare("null", threads=2)
        slave.make_file(tmp_path / "lun")
        slave.create(tmp_path / "lun", before, Parameters(iops=100.0))
        slave.go(0, 1)
        list(slave.results(1))
        slave.do(m.EditWorkloads, edit=5, settings=(Setting(0, replace(before, iops=2000.0)),))
        while counts(result := slave.until(m.Result))[0][Count.EDIT] != 5:
            pass
        (after,) = slave.results(1)
        slave.do(m.Stop, last=after.subinterval + 1)
        slave.until(m.Stopped)
        slave.do(m.DeleteWorkloads, numbers=(0, 1))
    assert len(counts(result)) == len(counts(after)) == 2
    whole, other = counts(after)
    assert whole[Count.DUE] == pytest.approx(2000 * after.length_ns / 1e9, abs=2)
    assert other[Count.DUE] == pytest.approx(100 * after.length_ns / 1e9, abs=1)
    threads = np.frombuffer(after.threads.data, "<i8").reshape(-1, len(ThreadCount))[:, ThreadCount.SUBMITTED]
    assert threads.sum() == whole[Count.SUBMITTED] + other[Count.SUBMITTED]
    assert threads.min() > 0.4 * whole[Count.SUBMITTED]


def counts(result: m.Result) -> list[list[int]]:
    rows = np.frombuffer(result.counts.data, "<i8").reshape(-1, len(Count))
    found: list[list[int]] = rows.tolist()
    return found


@pytest.mark.parametrize(
    ("parameters", "threads"),
    [
        (Parameters(maxtags=32), 2),
        (Parameters(maxtags=32, spread=1), 1),
        (Parameters(maxtags=8), 1),
        (Parameters(maxtags=32, iops=1000.0), 1),
    ],
)
def test_a_real_host_uses_its_idle_threads(tmp_path: Path, parameters: Parameters, threads: int) -> None:
    with Client() as slave:
        slave.prepare("null", threads=2)
        slave.make_file(tmp_path / "lun")
        slave.create(tmp_path / "lun", parameters)
        slave.go(0)
        submitted = np.zeros(2, np.int64)
        while np.count_nonzero(submitted) < threads:
            rows = np.frombuffer(slave.until(m.Result).threads.data, "<i8").reshape(2, len(ThreadCount))
            submitted += rows[:, ThreadCount.SUBMITTED]
    assert np.count_nonzero(submitted) == threads
