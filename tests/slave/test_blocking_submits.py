"""Instances whose submit calls may block: threads of their own where there are two, a notice where there is one."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivypy.protocol import messages as m
from ivypy.protocol.counters import ThreadCount
from ivypy.protocol.parameters import MAX, Parameters
from ivypy.protocol.payload import Notice, NoticeKind, WorkloadToCreate
from ivypy.slave.workloads.thread_assignment import InstanceToAssign, ThreadLoad, assign_threads, split_threads
from ivypy.slave.workloads.workloads import Workloads
from tests.support.devices import FaultFs
from tests.support.fake_engine import FakeEngine
from tests.support.slave_client import Client

BLOCKS, OTHER = InstanceToAssign(8, may_block=True), InstanceToAssign(8)
EMPTY = ThreadLoad()
THEIRS, OTHERS, BOTH = EMPTY.plus(8, True), EMPTY.plus(8), EMPTY.plus(8, True).plus(8)


@pytest.mark.parametrize(
    ("loads", "wanted", "for_blocking", "for_others"),
    [
        # one kind, or one thread: all threads are for everybody
        ([EMPTY] * 3, [OTHER] * 4, [0, 1, 2], [0, 1, 2]),
        ([EMPTY] * 3, [BLOCKS] * 4, [0, 1, 2], [0, 1, 2]),
        ([EMPTY], [BLOCKS, OTHER], [0], [0]),
        # their share, at least one, never all
        ([EMPTY] * 2, [BLOCKS, OTHER], [1], [0]),
        ([EMPTY] * 2, [BLOCKS] * 99 + [OTHER], [1], [0]),
        ([EMPTY] * 2, [BLOCKS] + [OTHER] * 99, [1], [0]),
        ([EMPTY] * 4, [BLOCKS, OTHER, OTHER, OTHER], [2], [0, 1, 3]),
        ([EMPTY] * 4, [BLOCKS, OTHER], [1, 3], [0, 2]),
        ([EMPTY] * 4, [BLOCKS] * 99 + [OTHER], [0, 2, 3], [1]),
        # threads keep the kind that they have
        ([THEIRS, EMPTY], [OTHER], [0], [1]),
        ([OTHERS, EMPTY], [BLOCKS], [1], [0]),
        ([THEIRS, THEIRS, EMPTY], [OTHER] * 99, [0, 1], [2]),
        ([OTHERS, OTHERS, EMPTY], [BLOCKS] * 99, [2], [0, 1]),
        ([BOTH, OTHERS], [BLOCKS], [0], [1]),
        ([BOTH, THEIRS], [OTHER], [1], [0]),
        # all threads have the same kind: one of them gets both
        ([OTHERS] * 3, [BLOCKS] * 99, [1], [0, 2]),
        ([THEIRS] * 3, [OTHER] * 99, [0, 2], [1]),
    ],
)
def test_threads_are_split_between_the_kinds(
    loads: list[ThreadLoad], wanted: list[InstanceToAssign], for_blocking: list[int], for_others: list[int]
) -> None:
    assert [list(threads) for threads in split_threads(loads, wanted)] == [for_blocking, for_others]


INSTANCES = st.lists(
    st.builds(
        InstanceToAssign,
        st.integers(1, 512),
        st.sampled_from([None, 0, 1]),
        st.integers(1, 8),
        may_block=st.booleans(),
    ),
    max_size=40,
)
NODES = st.lists(st.sampled_from([None, 0, 1]), min_size=1, max_size=8)


def loads_after(
    loads: Sequence[ThreadLoad], wanted: Sequence[InstanceToAssign], chosen: Sequence[tuple[int, ...]]
) -> list[ThreadLoad]:
    now = list(loads)
    for one, threads in zip(wanted, chosen, strict=True):
        for thread, tags in zip(threads, one.shares(len(threads)), strict=True):
            now[thread] = now[thread].plus(tags, one.may_block)
    return now


@given(NODES, INSTANCES)
def test_no_thread_drives_both_kinds_where_there_are_two(
    nodes: list[int | None], wanted: list[InstanceToAssign]
) -> None:
    empty = [ThreadLoad(node=node) for node in nodes]
    chosen = assign_threads(empty, wanted)
    assert chosen == assign_threads(empty, wanted)
    for one, threads in zip(wanted, chosen, strict=True):
        assert 1 <= len(threads) == len(set(threads)) <= min(one.spread, one.tags)
    if len(nodes) > 1:
        assert not any(load.blocking and load.others for load in loads_after(empty, wanted, chosen))


@given(NODES, INSTANCES, INSTANCES)
def test_what_is_created_later_mixes_no_more_than_one_thread(
    nodes: list[int | None], first: list[InstanceToAssign], later: list[InstanceToAssign]
) -> None:
    """And none at all, unless the first had taken all threads for one kind."""
    empty = [ThreadLoad(node=node) for node in nodes]
    before = loads_after(empty, first, assign_threads(empty, first))
    after = loads_after(before, later, assign_threads(before, later))
    mixed = sum(bool(load.blocking and load.others) for load in after)
    one_kind = all(load.others and not load.blocking for load in before) or all(
        load.blocking and not load.others for load in before
    )
    assert mixed <= (1 if one_kind or len(nodes) == 1 else 0)


@given(st.integers(2, 8), INSTANCES)
def test_tags_are_even_within_each_kind(threads: int, wanted: list[InstanceToAssign]) -> None:
    wanted = [InstanceToAssign(one.tags, spread=one.spread, may_block=one.may_block) for one in wanted]
    empty = [ThreadLoad()] * threads
    after = loads_after(empty, wanted, assign_threads(empty, wanted))
    for kind, own in zip((True, False), split_threads(empty, wanted), strict=True):
        of_kind = [one.tags for one in wanted if one.may_block is kind]
        sums = [after[thread].tags for thread in own]
        assert not of_kind or max(sums) - min(sums) <= max(of_kind)


def on(lun: object, number: int, **more: object) -> WorkloadToCreate:
    parameters = Parameters(maxtags=32, **more)  # type: ignore[arg-type]
    return WorkloadToCreate(number, f"h+{lun}", str(lun), None, parameters, 32, 4096)


@pytest.fixture
def luns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """(one that lacks RWF_NOWAIT, one that has it)"""
    blocking, fast = tmp_path / "blocking", tmp_path / "fast"
    for path in (blocking, fast):
        path.write_bytes(bytes(1 << 20))
    monkeypatch.setattr(
        "ivypy.slave.workloads.workloads.without_nowait", lambda paths: [p for p in paths if p == str(blocking)]
    )
    return blocking, fast


@pytest.mark.parametrize(
    ("backend", "threads", "spread", "created"),
    [
        ("libaio", 2, 1, ["0 by 1", "1 by 0"]),
        ("libaio", 2, "auto", ["0 by 1", "1 by 0"]),
        ("libaio", 2, 8, ["0 by 1", "1 by 0"]),
        ("libaio", 4, "auto", ["0 by 1", "131072 by 3", "1 by 0", "131073 by 2"]),
        ("libaio", 1, 1, ["0 by 0", "1 by 0"]),
        ("io_uring", 2, 2, ["0 by 0", "131072 by 1", "1 by 0", "131073 by 1"]),  # it never blocks: kernel threads do
    ],
)
def test_luns_without_nowait_have_threads_of_their_own(
    luns: tuple[Path, Path], backend: str, threads: int, spread: int | str, created: list[str]
) -> None:
    engine = FakeEngine()
    workloads = Workloads(engine, backend, [None] * threads)  # type: ignore[arg-type]
    assert workloads.create([on(luns[0], 0, spread=spread), on(luns[1], 1, spread=spread)]) == []
    words = [did.split() for did in engine.did if did.startswith("create")]
    assert [f"{word[1]} by {word[5]}" for word in words] == created


def test_who_may_delay_whom_is_reported(luns: tuple[Path, Path]) -> None:
    blocking, fast = luns
    workloads = Workloads(FakeEngine(), "libaio", [None])  # type: ignore[arg-type]
    first = [on(fast, 0), on(fast, 1)]
    assert workloads.create(first) == []
    assert workloads.describe_blocking(first) == ""
    later = [on(blocking, 2)]
    assert workloads.create(later) == []
    assert workloads.describe_blocking(later) == (
        f"submit calls on {blocking} may block (no RWF_NOWAIT), and delay the I/Os of h+{fast} on the same workload "
        "thread: use two threads or more, or use `engine: { backend: io_uring }`"
    )


def test_nothing_is_reported_of_threads_that_were_there_before(luns: tuple[Path, Path]) -> None:
    """Two threads: the first instances leave none, so one has both kinds; the next instance is on the other."""
    blocking, fast = luns
    workloads = Workloads(FakeEngine(), "libaio", [None, None])  # type: ignore[arg-type]
    assert workloads.create([on(fast, 0), on(fast, 1)]) == []
    later = [on(blocking, 2)]
    assert workloads.create(later) == []
    assert "create both in the same step" in workloads.describe_blocking(later)
    last = [on(fast, 3)]
    assert workloads.create(last) == []
    assert workloads.describe_blocking(last) == ""


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.slow
def test_a_real_file_whose_submit_calls_block(synchronous_lun: FaultFs, loop_lun: str, threads: int) -> None:
    """On a FUSE without asynchronous direct I/O, which does each I/O in the submit call, beside a loop device."""
    workloads = (on(synchronous_lun.image, 0, iops=100.0), on(loop_lun, 1, iops=MAX))
    with Client() as slave:
        slave.prepare("libaio", threads=threads)
        slave.do(m.CreateWorkloads, workloads=workloads)
        said = [one.text for one in slave.all if isinstance(one, Notice) and one.kind is NoticeKind.BLOCKING_SUBMITS]
        submitted = []
        for number in (0, 1):
            slave.go(number)
            (result,) = slave.results(1)
            rows = np.frombuffer(result.threads.data, "<i8").reshape(threads, len(ThreadCount))
            submitted.append(np.flatnonzero(rows[:, ThreadCount.SUBMITTED]).tolist())
            slave.do(m.Stop, last=result.subinterval + 1)
            slave.until(m.Stopped)
    assert submitted == ([[0], [0]] if threads == 1 else [[1], [0]])
    assert len(said) == (1 if threads == 1 else 0)
    assert all(text.startswith(f"submit calls on {synchronous_lun.image} may block") for text in said)


def test_instances_of_several_messages_are_dealt_together(synchronous_lun: FaultFs, loop_lun: str) -> None:
    """The first message alone would take both threads, and leave none to the LUN that may block."""
    with Client() as slave:
        slave.prepare("libaio", threads=2)
        slave.do(m.CreateWorkloads, workloads=(on(loop_lun, 0, iops=50.0), on(loop_lun, 1, iops=50.0)), more=True)
        slave.do(m.CreateWorkloads, workloads=(on(synchronous_lun.image, 2, iops=50.0),))
        said = [one.text for one in slave.all if isinstance(one, Notice) and one.kind is NoticeKind.BLOCKING_SUBMITS]
    assert not said
