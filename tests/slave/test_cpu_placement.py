"""Which cores threads run on, and which threads drive which LUN: tables of cores, nodes and LUNs handed in."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivypy.slave.host.cpu_placement import (
    CpuPlacement,
    node_of_cores,
    place_threads,
    unusable_cores,
)
from ivypy.slave.kernel_files import cpu_list, ranges
from ivypy.slave.workloads.thread_assignment import InstanceToAssign, ThreadLoad, assign_threads, even_shares


@pytest.mark.parametrize(
    ("threads", "chosen", "cores", "siblings", "placement"),
    [
        (0, (), [0], (0,), CpuPlacement((0,), ())),
        (0, (), [0, 1], (0, 1), CpuPlacement((0, 1), ())),
        (0, (), [0, 1, 2], (0,), CpuPlacement((0, 1, 2), ())),
        (0, (), [0, 1, 2, 3], (0,), CpuPlacement((1, 2, 3), (0,))),
        (0, (), [0, 1, 2, 3], (0, 2), CpuPlacement((1, 3), (0, 2))),
        (0, (), [0, 1, 2, 3, 4, 5, 6, 7], (0, 4), CpuPlacement((1, 2, 3, 5, 6, 7), (0, 4))),
        (0, (), [4, 5, 6, 7], (0, 2), CpuPlacement((4, 5, 6, 7), ())),
        (0, (), [0, 1, 2, 3], (0, 1, 2, 3), CpuPlacement((0, 1, 2, 3), ())),
        (3, (), [0, 1], (0,), CpuPlacement((-1, -1, -1), ())),
        # chosen cores: a thread on each, or so many, spread over them; the slave has the others
        (0, (0,), [0, 1], (0,), CpuPlacement((0,), (1,))),
        (0, (0, 1), [0, 1], (0,), CpuPlacement((0, 1), ())),
        (0, (3, 1), [0, 1, 2, 3], (0,), CpuPlacement((3, 1), (0, 2))),
        (2, (0, 1, 2, 3), [0, 1, 2, 3, 4], (0,), CpuPlacement((0, 2), (4,))),
        (4, (1, 2), [0, 1, 2], (0,), CpuPlacement((1, 1, 2, 2), (0,))),
        (3, (1,), [0, 1], (0,), CpuPlacement((1, 1, 1), (0,))),
    ],
)
def test_threads_are_placed(
    threads: int, chosen: tuple[int, ...], cores: list[int], siblings: tuple[int, ...], placement: CpuPlacement
) -> None:
    assert place_threads(threads, chosen, cores, siblings) == placement


@pytest.mark.parametrize(
    ("chosen", "cores", "says"),
    [
        ((), (0, 1), None),
        ((1,), (0, 1), None),
        (
            (1, 2),
            (0, 1),
            "core 2 is not there, or not for this process, which may use 0-1: correct `engine: cpus` in the plan",
        ),
        ((0, 2, 3, 9), (1, 4), "cores 0,2-3,9 are not there, or not for this process, which may use 1,4: correct"),
    ],
)
def test_missing_cores_are_refused(chosen: tuple[int, ...], cores: tuple[int, ...], says: str | None) -> None:
    said = unusable_cores(chosen, cores)
    assert said is says if says is None else said is not None and said.startswith(says)


@given(st.sets(st.integers(0, 300)))
def test_cores_are_written_as_the_kernel_does(cores: set[int]) -> None:
    assert set(cpu_list(ranges(sorted(cores)))) == cores


A, B = 0, 1  # nodes


@pytest.mark.parametrize(
    ("loads", "wanted", "threads"),
    [
        # without nodes: even shares of tags, then of instances
        ([ThreadLoad()], [InstanceToAssign(4), InstanceToAssign(4)], [(0,), (0,)]),
        ([ThreadLoad(), ThreadLoad()], [InstanceToAssign(1)] * 4, [(0,), (1,), (0,), (1,)]),
        (
            [ThreadLoad(), ThreadLoad()],
            [InstanceToAssign(1), InstanceToAssign(32), InstanceToAssign(1), InstanceToAssign(1)],
            [(1,), (0,), (1,), (1,)],
        ),
        ([ThreadLoad(64, 1), ThreadLoad()], [InstanceToAssign(8), InstanceToAssign(8)], [(1,), (1,)]),
        ([ThreadLoad(4, 4), ThreadLoad(4, 1)], [InstanceToAssign(1)], [(1,)]),
        ([ThreadLoad(), ThreadLoad(), ThreadLoad()], [], []),
        # one node, or unknown ones: the same
        ([ThreadLoad(node=A), ThreadLoad(node=A)], [InstanceToAssign(1, A)] * 3, [(0,), (1,), (0,)]),
        ([ThreadLoad(node=A), ThreadLoad(node=B)], [InstanceToAssign(1), InstanceToAssign(1)], [(0,), (1,)]),
        ([ThreadLoad(), ThreadLoad()], [InstanceToAssign(1, B), InstanceToAssign(1, A)], [(0,), (1,)]),
        ([ThreadLoad(node=A), ThreadLoad(node=A)], [InstanceToAssign(1, B), InstanceToAssign(1, B)], [(0,), (1,)]),
        # two nodes: near threads only, evenly among them
        (
            [ThreadLoad(node=A), ThreadLoad(node=B)],
            [InstanceToAssign(1, B), InstanceToAssign(1, A), InstanceToAssign(1, B)],
            [(1,), (0,), (1,)],
        ),
        (
            [ThreadLoad(node=A), ThreadLoad(node=B), ThreadLoad(node=B)],
            [InstanceToAssign(8, B)] * 3,
            [(1,), (2,), (1,)],
        ),
        ([ThreadLoad(node=A), ThreadLoad(99, 9, B)], [InstanceToAssign(1, B)], [(1,)]),
        (
            [ThreadLoad(node=A), ThreadLoad(node=B), ThreadLoad()],
            [InstanceToAssign(1, B), InstanceToAssign(1)],
            [(1,), (0,)],
        ),
        # spread: over so many threads, near ones first, never more than there are threads or tags
        ([ThreadLoad(), ThreadLoad()], [InstanceToAssign(8, spread=2)], [(0, 1)]),
        ([ThreadLoad(), ThreadLoad()], [InstanceToAssign(8, spread=9)], [(0, 1)]),
        ([ThreadLoad(), ThreadLoad(), ThreadLoad()], [InstanceToAssign(2, spread=3)], [(0, 1)]),
        (
            [ThreadLoad(), ThreadLoad(3, 1), ThreadLoad(1, 1)],
            [InstanceToAssign(8, spread=2), InstanceToAssign(1)],
            [(0, 2), (1,)],
        ),
        (
            [ThreadLoad(node=A), ThreadLoad(9, 1, B), ThreadLoad(node=A), ThreadLoad(node=B)],
            [InstanceToAssign(8, B, spread=3)],
            [(3, 1, 0)],
        ),
    ],
)
def test_instances_are_assigned_to_threads_evenly(
    loads: list[ThreadLoad], wanted: list[InstanceToAssign], threads: list[tuple[int, ...]]
) -> None:
    assert assign_threads(loads, wanted) == threads


def tied(tags: int, to: str) -> InstanceToAssign:
    return InstanceToAssign(tags, tied_to=to)


@pytest.mark.parametrize(
    ("wanted", "already", "threads"),
    [
        ([tied(1, "a"), tied(1, "a")], {}, [(0,), (0,)]),
        ([tied(1, "a"), tied(1, "b"), tied(1, "a")], {}, [(0,), (1,), (0,)]),
        ([tied(1, "a"), InstanceToAssign(1), tied(1, "a")], {"a": 1}, [(1,), (0,), (1,)]),
        ([tied(1, "a"), tied(9, "a"), tied(2, "b")], {}, [(0,), (0,), (1,)]),
    ],
)
def test_those_that_are_tied_to_each_other_have_one_thread(
    wanted: list[InstanceToAssign], already: dict[str, int], threads: list[tuple[int, ...]]
) -> None:
    assert assign_threads([ThreadLoad(), ThreadLoad()], wanted, already) == threads


@given(st.integers(1, 8), st.lists(st.tuples(st.integers(1, 8192), st.integers(1, 8)), max_size=60))
def test_no_thread_has_more_than_its_share_and_one_instance(threads: int, wanted: list[tuple[int, int]]) -> None:
    dealt = assign_threads([ThreadLoad()] * threads, [InstanceToAssign(tags, None, spread) for tags, spread in wanted])
    sums = [0] * threads
    for (tags, spread), where in zip(wanted, dealt, strict=True):
        assert len(where) == len(set(where)) == min(spread, tags, threads)
        for thread, share in zip(where, even_shares(tags, len(where)), strict=True):
            sums[thread] += share
    assert sum(sums) == sum(tags for tags, _ in wanted)
    assert max(sums) - min(sums) <= max((tags for tags, _ in wanted), default=0)


@given(st.integers(0, 10_000), st.integers(1, 300))
def test_shares_are_even_and_whole(total: int, parts: int) -> None:
    found = even_shares(total, parts)
    assert sum(found) == total and max(found) - min(found) <= 1 and found == sorted(found, reverse=True)


@pytest.mark.parametrize(
    ("nodes", "node_of"),
    [
        ({}, {}),
        ({0: "0-3"}, {}),
        ({0: "0-1", 1: "2-3"}, {0: 0, 1: 0, 2: 1, 3: 1}),
        ({0: "0-1", 1: ""}, {}),  # memory without cores
        ({0: "0", 3: "1", 7: ""}, {0: 0, 1: 3}),
    ],
)
def test_nodes_of_cores(tmp_path: Path, nodes: dict[int, str], node_of: dict[int, int]) -> None:
    for node, cores in nodes.items():
        folder = tmp_path / f"sys/devices/system/node/node{node}"
        folder.mkdir(parents=True)
        (folder / "cpulist").write_text(cores + "\n")
    assert node_of_cores(tmp_path) == node_of
