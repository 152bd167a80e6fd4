"""Ends by volume or time (`until`), in simulated time, where figures are exact."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ivypy.protocol.counters import SERVICES, Count, Kind
from tests.support import devices
from tests.support.engine import MS, REAL, Drive, Result, conserved, drive, fields

pytestmark = pytest.mark.slow

SIZE = 16 << 20
KIB = 1024


@pytest.fixture
def image(tmp_path: Path) -> Path:
    return devices.image(tmp_path, SIZE)


@pytest.fixture
def simulated() -> Iterator[Drive]:
    yield from drive("simulated")


def start(step: Drive, image: Path, *instances: dict[str, Any], length_ns: int = 10 * MS) -> None:
    lun = step.lun(image, writable=True)
    for number, changes in enumerate(instances):
        step.create(number, lun, **changes)
    step.go(range(len(instances)), length_ns)


def finish(step: Drive, last: int) -> None:
    step.engine.stop(last)
    step.finish()
    check(step)


def check(step: Drive) -> None:
    """Of what has ended, nothing is left."""
    for result in conserved(step):
        counts = result.counts
        ended = counts[:, Count.ENDED_NS] > 0
        assert not counts[ended][:, [Count.LEFT, Count.BACKLOG, Count.IN_FLIGHT]].any()


def ended_ns(result: Result, number: int = 0) -> int:
    """When it ended, or 0."""
    age_ns = int(result.counts[number, Count.ENDED_NS])
    return result.raw.start_ns + result.raw.length_ns - age_ns if age_ns else 0


def at(step: Drive, column: Count, number: int = 0) -> list[int]:
    return [int(result.counts[number, column]) for result in step.results]


LOADS: dict[str, dict[str, Any]] = {
    "closed loop": {"iops": -1.0, "maxtags": 1},
    "closed loop, deep": {"iops": -1.0, "maxtags": 32},
    "even": {"iops": 5000.0, "maxtags": 4},
    "exponential": {"iops": 5000.0, "maxtags": 4, "iosequencer": "random_independent"},
    "overload": {"iops": 1e6, "maxtags": 1},
    "exponential overload": {"iops": 1e6, "maxtags": 2, "iosequencer": "random_independent"},
    "think time": {"iops": -1.0, "maxtags": 8, "think_time": 0.001},
    "sequential": {"iops": -1.0, "maxtags": 8, "iosequencer": "sequential"},
    "random map": {"iops": -1.0, "maxtags": 8, "random_map": True},
}


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize(
    ("until", "changes", "ios"),
    [
        (("ios", 1), {}, 1),
        (("ios", 137), {"fraction_read": 0.0}, 137),
        (("bytes", 64 * KIB), {}, 16),
        (("bytes", 64 * KIB + 1), {}, 17),  # the last one exceeds it
        (("bytes", 1), {"fraction_read": 0.0}, 1),
        (("read", 100 * KIB), {"blocksize": 8 * KIB}, 13),
        (("written", 100 * KIB), {"fraction_read": 0.0}, 25),
    ],
)
def test_exactly_so_many_ios_fall_due_and_are_done(
    simulated: Drive, image: Path, load: str, until: tuple[str, int], changes: dict[str, Any], ios: int
) -> None:
    start(simulated, image, LOADS[load] | changes | {"until": until})
    finish(simulated, 5)
    assert (simulated.total(Count.DUE), simulated.total(Count.COMPLETED)) == (ios, ios)
    assert simulated.total(Count.DROPPED) == 0
    assert at(simulated, Count.LEFT)[-1] == 0
    ends = {ended_ns(result) for result in simulated.results} - {0}
    assert len(ends) == 1, "it says the same in each result"


def test_what_is_left_is_what_was_not_submitted(simulated: Drive, image: Path) -> None:
    """Read between two I/Os of a rate, so that it is exact."""
    start(simulated, image, {"iops": 1000.0, "maxtags": 1, "until": ("ios", 17)})
    finish(simulated, 3)
    assert at(simulated, Count.DUE) == [10, 7, 0, 0]
    assert at(simulated, Count.LEFT) == [7, 0, 0, 0]
    assert [age > 0 for age in at(simulated, Count.ENDED_NS)] == [False, True, True, True]


def test_an_instance_has_ended_as_its_last_io_completes(simulated: Drive, image: Path) -> None:
    """To the nanosecond: one tag serves one I/O after the other."""
    start(simulated, image, {"iops": -1.0, "maxtags": 1, "until": ("ios", 3)})
    finish(simulated, 0)
    (result,) = simulated.results
    assert result.series(SERVICES[0]) == 3
    each_ns = 11_000  # to submit a batch, and to poll
    assert ended_ns(result) - simulated.start_ns == 3 * each_ns


@pytest.mark.parametrize("iops", [-1.0, 1e6])
def test_a_mix_ends_by_its_writes_alone(simulated: Drive, image: Path, iops: float) -> None:
    """And drops what of its backlog is then left."""
    start(simulated, image, {"iops": iops, "maxtags": 4, "fraction_read": 0.5, "until": ("written", 160 * KIB)})
    finish(simulated, 5)
    (writes, reads) = (
        sum(int(result.series(SERVICES[kind])) for result in simulated.results)
        for kind in (Kind.RANDOM_WRITE, Kind.RANDOM_READ)
    )
    assert writes == 40
    assert abs(reads - 40) < 40
    assert (simulated.total(Count.DROPPED) > 0) is (iops > 0)
    assert at(simulated, Count.ENDED_NS)[-1] > 0


def test_ended_the_others_go_on(simulated: Drive, image: Path) -> None:
    start(
        simulated,
        image,
        {"iops": -1.0, "maxtags": 8, "until": ("ios", 100)},
        {"iops": 1000.0, "maxtags": 1},
        {"iops": 1000.0, "maxtags": 1, "until": ("ios", 1000)},
    )
    finish(simulated, 4)
    assert at(simulated, Count.DUE, 0) == [100, 0, 0, 0, 0]
    assert at(simulated, Count.DUE, 1) == at(simulated, Count.DUE, 2) == [10] * 5
    assert at(simulated, Count.ENDED_NS, 1) == at(simulated, Count.LEFT, 1) == [0] * 5
    assert at(simulated, Count.ENDED_NS, 2) == [0] * 5, "the step ended before"
    assert at(simulated, Count.LEFT, 2) == [990, 980, 970, 960, 950]


@pytest.mark.parametrize("load", ["closed loop", "even", "think time"])
@pytest.mark.parametrize("rates", [[-1.0], [0.0, -1.0], [0.0, 5000.0], [7000.0, 0.0, 100.0], [-1.0, 1e6]])
def test_no_edit_revives_what_has_ended(simulated: Drive, image: Path, load: str, rates: list[float]) -> None:
    common = LOADS[load] | {"until": ("ios", 20)}
    start(simulated, image, common)
    simulated.until(2)
    for number, iops in enumerate(rates, 1):
        simulated.edit(number, [(0, fields(**common | {"iops": iops}))])
        simulated.until(len(simulated.results) + 2)
    finish(simulated, len(simulated.results))
    assert simulated.total(Count.DUE) == simulated.total(Count.COMPLETED) == 20
    assert at(simulated, Count.EDIT)[-1] == len(rates)


@pytest.mark.parametrize(("iops", "again"), [(-1.0, -1.0), (1000.0, 1000.0), (1e6, -1.0), (-1.0, 1e6)])
def test_a_pause_before_the_end_takes_nothing_from_it(simulated: Drive, image: Path, iops: float, again: float) -> None:
    common: dict[str, Any] = {"maxtags": 4, "until": ("ios", 4000)}
    start(simulated, image, common | {"iops": iops}, length_ns=MS)
    simulated.until(1)
    simulated.edit(1, [(0, fields(**common | {"iops": 0.0}))])
    simulated.until(len(simulated.results) + 3)
    done = simulated.total(Count.SUBMITTED)
    assert 0 < done < 4000 and at(simulated, Count.LEFT)[-1] == 4000 - done
    assert not any(at(simulated, Count.ENDED_NS))
    simulated.edit(2, [(0, fields(**common | {"iops": again}))])
    while not at(simulated, Count.ENDED_NS)[-1]:
        simulated.until(len(simulated.results) + 1)
    finish(simulated, len(simulated.results))
    assert simulated.total(Count.COMPLETED) == 4000


@pytest.mark.parametrize(("before", "after"), [(4 * KIB, 16 * KIB), (16 * KIB, 4 * KIB)])
@pytest.mark.parametrize("iops", [1e6, -1.0])
def test_bytes_are_counted_by_each_ios_own_size(
    simulated: Drive, image: Path, before: int, after: int, iops: float
) -> None:
    """With a larger block size less of the backlog is wanted, with a smaller one more falls due."""
    common: dict[str, Any] = {"maxtags": 1, "iops": iops, "until": ("bytes", 8 << 20)}
    lun = simulated.lun(image)
    simulated.create(0, lun, ceilings=(1, 16 * KIB), **common, blocksize=before)
    simulated.go([0], MS)
    simulated.until(2)
    simulated.edit(1, [(0, fields(**common, blocksize=after))])
    while not at(simulated, Count.ENDED_NS)[-1]:
        simulated.until(len(simulated.results) + 1)
    finish(simulated, len(simulated.results))
    assert 8 << 20 <= simulated.total(Count.BYTES) < (8 << 20) + 16 * KIB


@pytest.mark.parametrize("sequencer", ["random_steady", "random_independent"])
def test_more_falls_due_where_an_edit_has_fewer_ios_count(simulated: Drive, image: Path, sequencer: str) -> None:
    """All that was to be read was due; now each second I/O writes."""
    common: dict[str, Any] = {"iops": 1e6, "iosequencer": sequencer, "until": ("read", 8 << 20)}
    start(simulated, image, common | {"fraction_read": 1.0}, length_ns=MS)
    simulated.until(4)
    assert simulated.total(Count.DUE) == 2048
    simulated.edit(1, [(0, fields(**common, maxtags=1, fraction_read=0.5))])
    while not at(simulated, Count.ENDED_NS)[-1]:
        simulated.until(len(simulated.results) + 1)
    finish(simulated, len(simulated.results))
    reads = sum(int(result.series(SERVICES[Kind.RANDOM_READ])) for result in simulated.results)
    assert reads == 2048 < simulated.total(Count.COMPLETED)


SETTING = st.fixed_dictionaries(
    {
        "iops": st.sampled_from([-1.0, 0.0, 700.0, 50_000.0, 1e6]),
        "maxtags": st.integers(1, 32),
        "blocksize": st.sampled_from([4 * KIB, 8 * KIB, 32 * KIB]),
        "fraction_read": st.sampled_from([0.2, 0.5, 0.9]),
    }
)


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(["ios", "bytes", "read", "written"]),
    st.integers(1, 2000),
    st.sampled_from(["random_steady", "random_independent"]),
    st.sampled_from([0.0, 0.0003]),
    st.lists(SETTING, min_size=1, max_size=6),
)
def test_an_end_adds_up_whatever_is_edited(
    what: str, blocks: int, sequencer: str, think: float, edits: list[dict[str, Any]]
) -> None:
    """An amount is reached and not exceeded but by the last I/O, whatever the load was meanwhile."""
    amount = blocks if what == "ios" else blocks * 4 * KIB
    common = {"until": (what, amount), "iosequencer": sequencer, "think_time": think}
    for step in drive("simulated"):
        with open(f"/dev/shm/ivypy-volume-{id(step)}", "wb") as file:
            file.truncate(SIZE)
        path = Path(file.name)
        try:
            step.create(0, step.lun(path, writable=True), ceilings=(32, 32 * KIB), **edits[0] | common)
            step.go([0], MS)
            for number, setting in enumerate([*edits[1:], edits[0] | {"iops": -1.0}], 1):
                step.until(len(step.results) + 2)
                step.edit(number, [(0, fields(**setting | common))])
            while not step.results or not at(step, Count.ENDED_NS)[-1]:
                step.until(len(step.results) + 1)
            finish(step, len(step.results))
        finally:
            path.unlink()
        moved = {
            "ios": step.total(Count.COMPLETED),
            "bytes": step.total(Count.BYTES),
            "read": sum(int(r.moments[:, SERVICES[Kind.RANDOM_READ], 1].sum()) for r in step.results),
            "written": sum(int(r.moments[:, SERVICES[Kind.RANDOM_WRITE], 1].sum()) for r in step.results),
        }[what]
        assert amount <= moved < amount + (1 if what == "ios" else 32 * KIB)


@pytest.mark.parametrize("backend", REAL)
@pytest.mark.parametrize("passes", [1, 3])
@pytest.mark.parametrize("mix", [(), (("write", 4096, 0.7), ("write", 4096, 0.3))])
def test_a_random_map_writes_each_block_once_in_a_pass(
    backend: str, passes: int, mix: tuple[tuple[str, int, float], ...], image: Path
) -> None:
    for step in drive(backend):
        until = ("bytes", passes * SIZE)
        changes: dict[str, Any] = {"iops": -1.0, "maxtags": 16, "fraction_read": 0.0, "random_map": True}
        changes["operations"] = mix
        start(step, image, changes | {"until": until}, length_ns=100 * MS)
        while not step.results or not at(step, Count.ENDED_NS)[-1]:
            step.until(len(step.results) + 1)
        finish(step, len(step.results))
        assert step.total(Count.COMPLETED) == passes * SIZE // 4096
    blocks = np.frombuffer(image.read_bytes(), "u8").reshape(-1, 512)
    assert blocks.any(axis=1).all(), "as many writes as blocks, and none is missing"


def test_parts_that_share_a_row_have_ended_once_all_have(simulated: Drive, image: Path) -> None:
    lun = simulated.lun(image)
    for number, (rate, ios) in enumerate([(1000.0, 5), (1000.0, 15), (1000.0, 25)]):
        simulated.create(number, lun, iops=rate, maxtags=1, until=("ios", ios))
    simulated.go(range(3), 10 * MS, rows=[0, 1, 0])
    finish(simulated, 3)
    assert at(simulated, Count.LEFT, 0) == [15, 5, 0, 0]
    assert [age > 0 for age in at(simulated, Count.ENDED_NS, 0)] == [False, False, True, True]
    assert at(simulated, Count.ENDED_NS, 0)[2] < 6 * MS, "the age of the younger end"


def test_it_counts_anew_from_each_steps_start(simulated: Drive, image: Path) -> None:
    start(simulated, image, {"iops": -1.0, "maxtags": 4, "until": ("ios", 50)})
    finish(simulated, 2)
    simulated.go([0], 10 * MS)
    finish(simulated, 2)
    assert simulated.total(Count.COMPLETED) == 50


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"until": ("ios", 5), "drop_after": 0.1}, "drop_after and until exclude each other"),
        ({"until": ("time", MS), "drop_after": 0.1}, "drop_after and until exclude each other"),
        ({"until": ("read", 4096), "fraction_read": 0.0}, "counts what is read"),
        ({"until": ("written", 4096), "fraction_read": 1.0}, "counts what is written"),
        ({"until": ("ios", 0)}, "no amount"),
        ({"until": ("never", 1)}, "no amount, or counts nothing"),
    ],
)
def test_ends_that_never_come_are_refused(simulated: Drive, image: Path, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(OSError, match=words):
        simulated.create(0, simulated.lun(image, writable=True), **changes)


@pytest.mark.parametrize("fraction_read", [0.0, 1.0])
def test_an_edit_may_not_make_its_end_one_that_never_comes(simulated: Drive, image: Path, fraction_read: float) -> None:
    until = ("written" if fraction_read else "read", 1 << 20)
    start(simulated, image, {"fraction_read": 0.5, "until": until})
    with pytest.raises(OSError, match="until counts what is"):
        simulated.engine.edit(1, [(0, fields(fraction_read=fraction_read, until=until))])
    finish(simulated, 0)


TIMED = ("time", 25 * MS)


def run_timed(step: Drive, image: Path, last: int = 4, **changes: Any) -> None:
    start(step, image, {"iops": -1.0, "until": TIMED} | changes)
    finish(step, last)


def test_a_closed_loop_ends_by_time(simulated: Drive, image: Path) -> None:
    """Batches go each 11 us, the last before the 25 ms are over; what is in flight then is the end."""
    run_timed(simulated, image, maxtags=1)
    ios = 25 * MS // 11_000 + 1
    assert simulated.total(Count.DUE) == simulated.total(Count.COMPLETED) == ios
    assert at(simulated, Count.LEFT) == [15 * MS, 5 * MS, 0, 0, 0]
    assert [ended_ns(result) and ended_ns(result) - simulated.start_ns for result in simulated.results] == [
        *[0] * 2,
        *[ios * 11_000] * 3,
    ]


@pytest.mark.parametrize("sequencer", ["random_steady", "random_independent"])
@pytest.mark.parametrize("iops", [1000.0, 50_000.0, 1e6])
def test_paced_exactly_what_falls_due_before_is_due(simulated: Drive, image: Path, sequencer: str, iops: float) -> None:
    """As in a step without an end that has a boundary there; the backlog is then dropped."""
    load: dict[str, Any] = {"iops": iops, "maxtags": 2, "iosequencer": sequencer}
    lun = simulated.lun(image)
    simulated.create(0, lun, **load)
    simulated.go([0], 25 * MS)
    finish(simulated, 1)
    due, submitted = at(simulated, Count.DUE)[0], at(simulated, Count.SUBMITTED)[0]
    for step in drive("simulated"):
        run_timed(step, image, **load)
        assert step.total(Count.DUE) == due
        assert abs(step.total(Count.COMPLETED) - submitted) <= 2
        assert step.total(Count.DROPPED) == due - step.total(Count.COMPLETED)
        assert (step.total(Count.DROPPED) > 0) is (iops == 1e6)


def test_users_stop_at_the_end_of_time(simulated: Drive, image: Path) -> None:
    run_timed(simulated, image, maxtags=8, think_time=0.001)
    assert 180 < simulated.total(Count.COMPLETED) < 210
    assert 0 < ended_ns(simulated.results[-1]) - simulated.start_ns <= 25 * MS + 11_000


@pytest.mark.parametrize("length_ns", [5 * MS, 25 * MS, 4 * MS])
def test_with_nothing_in_flight_it_ends_as_its_time_is_over(simulated: Drive, image: Path, length_ns: int) -> None:
    """Also where a boundary lies there: in the subinterval before that, a nanosecond early."""
    start(simulated, image, {"iops": 100.0, "maxtags": 1, "until": TIMED}, length_ns=length_ns)
    finish(simulated, 7)
    before = 25 * MS // length_ns - (25 * MS % length_ns == 0)
    assert [age > 0 for age in at(simulated, Count.ENDED_NS)] == [False] * before + [True] * (8 - before)
    assert ended_ns(simulated.results[-1]) - simulated.start_ns == 25 * MS - 1


@pytest.mark.parametrize("iops", [-1.0, 5000.0, 0.0])
def test_a_pause_does_not_move_the_end_of_time_and_no_edit_undoes_it(
    simulated: Drive, image: Path, iops: float
) -> None:
    common: dict[str, Any] = {"maxtags": 4, "until": TIMED}
    start(simulated, image, common | {"iops": -1.0})
    simulated.until(1)
    simulated.edit(1, [(0, fields(**common | {"iops": 0.0}))])
    simulated.until(4)
    done = simulated.total(Count.COMPLETED)
    assert ended_ns(simulated.results[-1]) - simulated.start_ns == 25 * MS - 1
    simulated.edit(2, [(0, fields(**common | {"iops": iops}))])
    simulated.until(6)
    finish(simulated, 6)
    assert simulated.total(Count.COMPLETED) == simulated.total(Count.DUE) == done


@pytest.mark.parametrize("flush", [("fsync", 3), ("fsync", 0)])
def test_an_end_of_time_may_be_a_flush(simulated: Drive, image: Path, flush: tuple[str, int]) -> None:
    run_timed(simulated, image, maxtags=1, fraction_read=0.0, flush=flush, end_fsync=True)
    batches = 25 * MS // 11_000 + 2  # the last two: in flight at that instant, and the flush
    assert simulated.total(Count.COMPLETED) == batches
    assert ended_ns(simulated.results[-1]) - simulated.start_ns == batches * 11_000


def test_in_a_cooldown_time_goes_on(simulated: Drive, image: Path) -> None:
    start(simulated, image, {"iops": 1000.0, "until": TIMED})
    simulated.engine.cooldown(1)
    finish(simulated, 4)
    assert at(simulated, Count.LEFT) == [15 * MS, 5 * MS, 0, 0, 0]
