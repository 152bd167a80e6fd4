"""Charts as PNG: what is drawn are the run's figures, and a heat map shows the latencies, not the buckets."""

import csv
import shutil
import struct
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivypy.master.errors import OutputError, PlanError
from ivypy.master.pages.run_data import RunData
from ivypy.master.report.draw import latency_mark
from ivypy.master.report.over_time import LatencyCounts, distribution_points, log_densities
from ivypy.master.report.pictures import distributions, latency_counts, loads, over_time, write_pictures
from ivypy.protocol.histogram import lower_edges

EDGES_US = np.array(lower_edges(), np.float64) / 1000


def counts_of(*rows: np.ndarray[tuple[int], np.dtype[np.float64]], length_s: float = 1.0) -> LatencyCounts:
    begin = np.arange(float(len(rows))) * length_s
    return LatencyCounts(begin, begin + length_s, EDGES_US, np.array(rows))


def smooth() -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """I/Os evenly spread over the logarithm of latency, from 2 us to 2 s, as they fall into our buckets."""
    logs = np.log(np.maximum(EDGES_US, 1e-3))
    inside = np.clip(logs, np.log(2), np.log(2e6))
    return np.asarray(1e6 * np.diff(inside) / (np.log(2e6) - np.log(2)))


def test_a_smooth_distribution_has_no_bands_at_powers_of_two() -> None:
    """Buckets double in width there: counts of buckets jump by half, densities do not."""
    row = smooth()
    used = np.flatnonzero(row)[70:-70]
    assert np.abs(np.diff(row[used]) / row[used][1:]).max() > 0.4, "so it would look without densities"
    _, densities = log_densities(counts_of(row))
    inner = densities[0][2:-2]
    assert np.abs(inner[1:] / inner[:-1] - 1).max() < 0.02


def test_densities_are_of_a_second_and_a_decade() -> None:
    edges, densities = log_densities(counts_of(smooth(), length_s=5.0))
    assert densities[0][len(densities[0]) // 2] == pytest.approx(1e6 / 6 / 5, rel=0.01), "six decades, five seconds"
    assert edges[0] <= 2 and edges[-1] >= 2e6


@given(st.lists(st.tuples(st.integers(0, 2000), st.integers(1, 10**6)), min_size=1, max_size=20))
def test_no_io_is_lost_in_a_heat_map(filled: list[tuple[int, int]]) -> None:
    row = np.zeros(len(EDGES_US) - 1)
    for bucket, ios in filled:
        row[bucket] += ios
    edges, densities = log_densities(counts_of(row))
    found = np.nansum(densities * np.diff(np.log10(edges)))
    assert found == pytest.approx(row.sum())


def test_nothing_has_no_densities() -> None:
    edges, densities = log_densities(counts_of(np.zeros(len(EDGES_US) - 1)))
    assert len(edges) == 0 and densities.shape == (1, 0)


def test_a_distribution_ends_where_samples_are_insufficient() -> None:
    edges = np.array([1.0, 2.0, 4.0, 8.0])
    x, y = distribution_points(edges[:-1], edges[1:], np.array([90.0, 9.0, 1.0]), 10)
    assert [*y] == [1.5, 3.0] and [*x] == pytest.approx([0.0, 1.0])


def rows(folder: Path, pattern: str) -> list[dict[str, str]]:
    found = []
    for path in sorted(folder.glob(pattern)):
        with path.open(newline="") as file:
            found += [*csv.DictReader(file)]
    return found


def test_what_is_drawn_are_the_figures_of_the_rows(run_folder: Path) -> None:
    found, expected = over_time(RunData(run_folder)), rows(run_folder, "step*/all/all.csv")
    for name, values in (
        ("overall_iops", found.iops),
        ("overall_service_us_p99", found.latencies["service time"]["p99"]),
    ):
        cells = [float(row[name]) if row[name] else np.nan for row in expected]
        np.testing.assert_array_equal(values, cells)
    shaded = sum(high - low for low, high in found.not_measured)
    unmeasured = sum(float(row["length_s"]) for row in expected if row["phase"] != "run")
    assert shaded == pytest.approx(unmeasured, rel=1e-4)
    assert [name for _, name in found.steps] == ["0 climb", "1 most"] and found.steps[0][0] == 0.0
    counts = latency_counts(RunData(run_folder))
    assert counts is not None
    ios = sum(float(row["overall_service_count"]) for row in expected)
    assert counts.counts.sum() == ios
    np.testing.assert_allclose(counts.begin_s, found.begin_s)


def test_loads_are_the_levels(run_folder: Path) -> None:
    found = loads(RunData(run_folder).document())
    expected = [row for row in rows(run_folder, "summary.all.csv") if row["overall_response_us_p99"]]
    assert [one[:2] for one in found["climb"]] == [
        (float(row["overall_iops"]), float(row["overall_response_us_p99"])) for row in expected
    ]


def test_distributions_are_of_each_step(run_folder: Path) -> None:
    names = [name for name, _, _ in distributions(RunData(run_folder))]
    assert "1 most, service" in names and "1 most, response" not in names


@pytest.mark.parametrize(
    ("us", "text"), [(0.05, "50 ns"), (1, "1 us"), (200, "200 us"), (1e3, "1 ms"), (2e4, "20 ms"), (1e6, "1 s")]
)
def test_marks_have_their_unit(us: float, text: str) -> None:
    assert latency_mark(us) == text


@pytest.mark.slow
def test_every_picture_is_written_and_no_other_file_replaced(run_folder: Path, tmp_path: Path) -> None:
    into = tmp_path / "png"
    written = [*write_pictures([run_folder], into)]
    assert next(write_pictures([run_folder], into)) == written[0]  # in the place of the first
    assert [path.name for path in written] == ["latency.png", "iops.png", "heatmap.png", "distribution.png", "load.png"]
    for path in written:
        head = path.read_bytes()[:24]
        width, height = struct.unpack(">II", head[16:24])
        assert head.startswith(b"\x89PNG") and width == 1200 and 400 <= height <= 1200
    (into / "iops.png").write_bytes(b"mine")
    with pytest.raises(PlanError, match="name another"):
        list(write_pictures([run_folder], into))


def test_a_folder_that_cannot_be_made_is_named(run_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(OutputError, match="the folder cannot be made: Not a directory"):
        next(write_pictures([run_folder], tmp_path / "file" / "png"))


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["gone", "cut"])
def test_damaged_histograms_cost_the_heat_map_alone(run_folder: Path, tmp_path: Path, damage: str) -> None:
    folder = Path(shutil.copytree(run_folder, tmp_path / "run"))
    histograms = folder / "histograms.sqlite"
    data = histograms.read_bytes()
    histograms.unlink()
    if damage == "cut":
        histograms.write_bytes(data[:300])
    written = write_pictures([folder], tmp_path / "png")
    with pytest.raises(PlanError, match=r"^heatmap.png is not drawn: .*histograms.sqlite: not read"):
        list(written)
    names = {path.name for path in (tmp_path / "png").iterdir()}
    assert names == {"latency.png", "iops.png", "distribution.png", "load.png"}


def test_without_matplotlib_it_says_so_once(run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.delitem(sys.modules, "matplotlib", raising=False)
    with pytest.raises(PlanError, match=r"^pictures need matplotlib: pip install matplotlib; .html needs none$"):
        list(write_pictures([run_folder], tmp_path / "png"))
