"""What must hold for any logs: merging is adding, time only shifts, idle hosts say nothing."""

import itertools
import random
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ivypy.master.logs.readers.bucket_layouts import FIO_3, IVYPY, Layout
from ivypy.master.logs.readers.fio_histogram import Aligner
from ivypy.master.logs.timeline.resample import Accumulator, Weighting
from ivypy.protocol.histogram import bucket_of
from tests.support.log_table import Row, table
from tests.support.logs import Ran, log, row, run

pytestmark = pytest.mark.slow

PERIOD = 500  # ms; intervals of a second are whole periods, so that where a row is cut depends on nothing
Io = tuple[int, int]  # completion in ms, bucket

ios = st.lists(st.tuples(st.integers(1, 6 * PERIOD), st.integers(0, 1700)), min_size=1, max_size=60)
LAW = settings(max_examples=20, deadline=None)


def histogram_log(path: Path, samples: list[Io], shift_ms: int = 0, twice: bool = False) -> Path:
    """The rows that fio would write, a period each; `twice` splits every row in two of one stamp."""
    rows = []
    for end in range(PERIOD, 7 * PERIOD, PERIOD):
        own = [bucket for at, bucket in samples if end - PERIOD < at <= end]
        for part in (own[::2], own[1::2]) if twice else (own,):
            rows.append(row(end + shift_ms, 0, {bucket: part.count(bucket) for bucket in part}))
    return log(path, rows)


def numbers(ran: Ran) -> list[Row]:
    """The rows of `all`, without what tells how many logs there were."""
    assert ran.code == 0, ran.err
    return [{k: v for k, v in found.items() if k != "logs"} for found in table(ran) if found["rollup_type"] == "all"]


@given(ios, st.integers(1, 5), st.randoms(use_true_random=False))
@LAW
def test_any_partition_into_threads_and_hosts_merges_to_the_same(
    samples: list[Io], parts: int, rng: random.Random
) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        one = histogram_log(folder / "one" / "a_clat_hist.1.log", samples)
        dealt: list[list[Io]] = [[] for _ in range(parts)]
        for sample in samples:
            rng.choice(dealt).append(sample)
        many = [histogram_log(folder / f"h{n % 2}" / f"a_clat_hist.{n}.log", part) for n, part in enumerate(dealt)]
        assert numbers(run(one)) == numbers(run(*many)) == numbers(run(*reversed(many), "--by", "all,host,file"))


@given(ios)
@LAW
def test_rows_of_one_stamp_are_added_not_dropped(samples: list[Io]) -> None:
    """As after a stall. With intervals of whole periods it makes no difference where within one they lie."""
    with TemporaryDirectory() as name:
        once = histogram_log(Path(name) / "a_clat_hist.1.log", samples)
        twice = histogram_log(Path(name) / "b_clat_hist.1.log", samples, twice=True)
        assert numbers(run(once)) == numbers(run(twice))


@given(ios, st.integers(1, 1000))
@LAW
def test_shifting_all_stamps_shifts_the_result(samples: list[Io], seconds: int) -> None:
    """In time from 1970: a first row of its own period, whatever the hour."""
    base = 1_700_000_000_000
    with TemporaryDirectory() as name:
        early = numbers(run(histogram_log(Path(name) / "a_clat_hist.1.log", samples, base)))
        late = numbers(run(histogram_log(Path(name) / "b_clat_hist.1.log", samples, base + 1000 * seconds)))
        for one, other in zip(early, late, strict=True):
            assert {k: v for k, v in one.items() if k != "start_utc"} == {
                k: v for k, v in other.items() if k != "start_utc"
            }


@given(ios, st.sampled_from(["uniform", "in-flight", "in-flight-to-row-end"]))
@LAW
def test_an_idle_host_changes_nothing(samples: list[Io], weighting: str) -> None:
    with TemporaryDirectory() as name:
        busy = histogram_log(Path(name) / "h1" / "a_clat_hist.1.log", samples)
        idle = histogram_log(Path(name) / "h2" / "a_clat_hist.1.log", [])
        assert numbers(run(busy, "--weighting", weighting)) == numbers(run(busy, idle, "--weighting", weighting))


@given(ios)
@LAW
def test_latency_logs_and_histogram_logs_of_the_same_ios_agree(samples: list[Io]) -> None:
    with TemporaryDirectory() as name:
        edges = FIO_3.edges
        rows = [f"{at}, {edges[bucket]}, 0, 4096, 0\n" for at, bucket in sorted(samples)]
        single = table(
            run(log(Path(name) / "a_clat.1.log", rows), "--percentiles", "50", "--interpolation", "midpoint")
        )
        merged = table(run(histogram_log(Path(name) / "a_clat_hist.1.log", samples), "--percentiles", "50"))
        by_start = {found["start_s"]: found for found in merged if found["interval"] != "whole"}
        for found in single:
            if found["interval"] != "whole":
                assert found["count"] == by_start[found["start_s"]]["count"]


@given(st.lists(st.integers(0, 10**10), min_size=1, max_size=50), st.integers(0, 6))
def test_coarser_layouts_hold_what_finer_ones_hold(values: list[int], coarseness: int) -> None:
    layout = Layout(1, 40, coarseness)
    for value in values:
        bucket = bucket_of(value) >> coarseness
        assert layout.edges[bucket] <= value < layout.edges[bucket + 1]
        assert IVYPY.merged(layout) == Layout(1, 40, coarseness)


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(0, 2)), min_size=1, max_size=40), st.data())
def test_rows_align_the_same_in_any_batches(steps: list[tuple[int, int]], data: st.DataObject) -> None:
    """Per direction (start, end] chains without gap or overlap, wherever the text was cut."""
    import numpy as np

    stamps = np.cumsum([step for step, _ in steps]).astype(np.int64)
    directions = np.array([direction for _, direction in steps], np.uint8)
    cut = data.draw(st.integers(0, len(steps)))
    whole, bad = Aligner(100, epoch=False).starts(stamps, directions)
    assert bad is None
    aligner = Aligner(100, epoch=False)
    parts = [
        aligner.starts(s, d)[0]
        for s, d in ((stamps[:cut], directions[:cut]), (stamps[cut:], directions[cut:]))
        if len(s)
    ]
    assert np.concatenate(parts).tolist() == whole.tolist()
    for direction in range(3):
        own = directions == direction
        for end, begin in itertools.pairwise(zip(whole[own], stamps[own], strict=True)):
            assert end[1] == begin[0]


def test_memory_is_taken_only_where_something_is_added() -> None:
    """Stamps from 1970 do not make an array from 1970 on."""
    import numpy as np

    from ivypy.master.logs.readers.records import Samples

    accumulator = Accumulator(IVYPY, 10**9, Weighting.UNIFORM, True)
    for second in (1_700_000_000, 1_700_003_600):
        accumulator.add_samples(Samples(np.array([second * 10**9]), np.array([5]), np.zeros(1, np.uint8)))
    assert len(accumulator.blocks) == 2
