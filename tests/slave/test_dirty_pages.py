"""What is dirty at a boundary: never more than is, and counted as often as its cost allows."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivypy.slave.gate.dirty_pages import COST, DirtyPages, LunWrites

S = 1_000_000_000
LUN, OTHER = 5, 6


@dataclass
class Kernel:
    """What it would count, and how long it takes for that."""

    dirty: dict[int, int | None] = field(default_factory=dict)
    cost_ns: int = 0
    now_ns: int = 0
    calls: list[int] = field(default_factory=list)

    def count(self, lun: int) -> int | None:
        self.calls.append(lun)
        self.now_ns += self.cost_ns
        return self.dirty[lun]

    def clock_ns(self) -> int:
        return self.now_ns


Boundary = tuple[int, int, int, int, int]  # written, by the disk, uncertain; the kernel's; the answer


@pytest.mark.parametrize(
    ("name", "boundaries"),
    [
        ("all of it", [(50, 0, 0, 50, 50), (20, 0, 0, 70, 70)]),
        ("overwritten in the cache", [(50, 0, 0, 50, 50), (150, 0, 0, 50, 50)]),
        ("flushed, while others wrote", [(150, 300, 0, 0, 0)]),
        ("dirty, while others wrote", [(50, 300, 0, 50, 50), (0, 900, 0, 50, 50)]),
        ("pages that were dirty in part", [(3, 0, 0, 50, 3)]),
        ("written since the boundary", [(50, 0, 8, 58, 50), (50, 0, 8, 60, 52)]),
        ("nothing was written", [(0, 10, 0, 7, 0)]),
    ],
)
def test_what_is_dirty(name: str, boundaries: list[Boundary]) -> None:
    kernel = Kernel()
    pages = DirtyPages([LUN], kernel.count, kernel.clock_ns)
    for written, by_disk, uncertain, there, answer in boundaries:
        kernel.dirty[LUN] = there
        assert pages.add({LUN: LunWrites(written, by_disk, uncertain)}, S, True, False) == {LUN: answer}, name


def test_what_is_not_written_is_not_looked_at() -> None:
    kernel = Kernel({LUN: 0, OTHER: 9})
    pages = DirtyPages([LUN, OTHER], kernel.count, kernel.clock_ns)
    for written, looked_at in ((0, []), (9, [OTHER]), (0, [OTHER])):
        kernel.calls.clear()
        pages.add({LUN: LunWrites(0, 0), OTHER: LunWrites(written, 0)}, S, True, False)
        assert kernel.calls == looked_at
    kernel.dirty[OTHER] = 0
    for looked_at in ([OTHER], []):
        kernel.calls.clear()
        pages.add({LUN: LunWrites(0, 0), OTHER: LunWrites(0, 0)}, S, True, True)
        assert kernel.calls == looked_at, "clean, and nothing was written since"


def test_between_calls_all_that_the_disk_writes_was_dirty_and_the_last_boundary_is_looked_at() -> None:
    kernel = Kernel({LUN: 100}, cost_ns=S)
    pages = DirtyPages([LUN], kernel.count, kernel.clock_ns)
    answers = [pages.add({LUN: LunWrites(100, 30)}, S, True, last)[LUN] for last in (False, False, False, True)]
    assert answers == [100, 70, 40, 100] and len(kernel.calls) == 2


def test_a_late_thread_or_a_disk_that_begins_anew_leaves_only_what_is_certain() -> None:
    kernel = Kernel({LUN: 100})
    pages = DirtyPages([LUN], kernel.count, kernel.clock_ns)
    assert pages.add({LUN: LunWrites(50, 0)}, S, False, False) == {LUN: 0}
    assert pages.add({LUN: LunWrites(50, 0)}, S, True, False) == {LUN: 100}
    assert pages.add({}, S, True, False) == {}
    assert pages.add({LUN: LunWrites(0, 0)}, S, False, False) == {LUN: 0}
    assert pages.add({LUN: LunWrites(0, 0)}, S, True, False) == {LUN: 100}


def test_a_kernel_that_does_not_tell_is_called_once() -> None:
    kernel = Kernel({LUN: None})
    pages = DirtyPages([LUN], kernel.count, kernel.clock_ns)
    assert [pages.add({LUN: LunWrites(5, 0)}, S, True, True)[LUN] for _ in range(3)] == [None] * 3
    assert kernel.calls == [LUN]


@given(st.lists(st.integers(0, S // 5), min_size=1, max_size=50))
def test_calls_take_no_more_than_their_part_of_the_time(costs_ns: list[int]) -> None:
    """But for the first one, of which nobody knows how long it takes, and as far as the next is like the last."""
    kernel = Kernel({LUN: 1})
    pages = DirtyPages([LUN], kernel.count, kernel.clock_ns)
    for done, cost_ns in enumerate(costs_ns):
        before = kernel.now_ns
        kernel.cost_ns = cost_ns
        pages.add({LUN: LunWrites(1, 0)}, S, True, False)
        if kernel.now_ns > before:
            assert before <= COST * S * (done + 1), "a call begins only after the time for all before it"


def disk_of(parts: list[tuple[int, int, bool]]) -> Iterator[tuple[LunWrites, int, bool]]:
    """What was written, and is dirty then, where some is written back and nothing overwritten."""
    dirty = 0
    for written, by_disk, complete in parts:
        dirty += written
        by_disk = min(by_disk, dirty)
        dirty -= by_disk
        yield LunWrites(written, by_disk), dirty, complete


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99), st.booleans()), min_size=1), st.integers(0, S))
def test_never_more_than_is_dirty_and_all_of_it_at_the_end(parts: list[tuple[int, int, bool]], cost_ns: int) -> None:
    kernel = Kernel(cost_ns=cost_ns)
    pages = DirtyPages([LUN], kernel.count, kernel.clock_ns)
    for number, (writes, dirty, complete) in enumerate(disk_of(parts), 1):
        kernel.dirty[LUN] = dirty
        answer = pages.add({LUN: writes}, S, complete, number == len(parts))[LUN]
        assert answer is not None and 0 <= answer <= dirty
        assert number < len(parts) or answer == dirty
