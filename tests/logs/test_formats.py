"""Which logs are read: every layout of fio's, compressed or not, in pieces of any size."""

import gzip
import io
import lzma
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ivypy.master.logs.faults import Fault
from ivypy.master.logs.readers.bucket_layouts import FIO_2, FIO_3, Layout, LayoutHints, lead_and_layout
from ivypy.master.logs.readers.detect_format import Hints, detect
from ivypy.master.logs.readers.line_chunks import chunks
from ivypy.master.logs.readers.source import Format, Source, named
from tests.support.log_table import table, whole
from tests.support.logs import log, row, run

# fio's own test vectors: value in its unit, index, lower and upper edge
VECTORS = [
    (127, 127, 127, 128), (128, 128, 128, 130), (129, 128, 128, 130), (130, 129, 130, 132), (255, 191, 254, 256),
    (256, 192, 256, 260), (1000, 317, 1000, 1008), (4096, 448, 4096, 4160), (100_000, 737, 99_328, 100_352),
    (1_000_000, 954, 999_424, 1_007_616), (10**9, 1591, 998_244_352, 1_006_632_960),
    (10**10, 1802, 9_932_111_872, 10_066_329_600),
]  # fmt: skip


@pytest.mark.parametrize(("value", "index", "low", "high"), VECTORS)
def test_bucket_edges_are_those_of_fio(value: int, index: int, low: int, high: int) -> None:
    assert FIO_3.edges[index : index + 2].tolist() == [low, high]
    assert low <= value < high
    if index < FIO_2.buckets:
        assert FIO_2.edges[index : index + 2].tolist() == [low * 1000, high * 1000]


def test_the_published_tools_ranges() -> None:
    """Its unit tests: 1,856 ranges to 17179869.184 us, 1,216 to 16777216 us."""
    assert (FIO_3.buckets, FIO_3.edges[-1]) == (1856, 17_179_869_184)
    assert (FIO_2.buckets, FIO_2.edges[-1]) == (1216, 16_777_216_000)


@pytest.mark.parametrize("groups", [19, 20, 23, 26, 29])
@pytest.mark.parametrize("coarseness", range(7))
@pytest.mark.parametrize("lead", [2, 3])
def test_the_layout_follows_from_the_columns(groups: int, coarseness: int, lead: int) -> None:
    """With and without a block size; a coarse recompiled fio may need --groups, fio's own never."""
    columns = (groups * 64 >> coarseness) + lead
    hints = LayoutHints() if groups in (19, 29) else LayoutHints(groups=groups, coarseness=coarseness)
    found = lead_and_layout(columns, hints)
    assert found is not None
    lead_found, layout = found
    unit = 1 if groups == 29 else 1000
    assert (lead_found, layout) == (lead, Layout(unit, groups, coarseness))


@pytest.mark.parametrize("columns", [12, 100, 1855, 2000])
def test_other_columns_are_no_layout(columns: int) -> None:
    assert lead_and_layout(columns, LayoutHints()) is None


@pytest.mark.parametrize("coarseness", range(7))
def test_coarse_logs_hold_the_same(tmp_path: Path, coarseness: int) -> None:
    """log_hist_coarseness: 2^C neighbours are one; merged with a fine log, the fine one is made coarse."""
    fine = log(tmp_path / "a_clat_hist.1.log", [row(1000, 0, {700: 5, 900: 5})])
    columns = 1856 >> coarseness
    coarse = log(tmp_path / "b_clat_hist.1.log", [row(1000, 0, {700 >> coarseness: 5, 900 >> coarseness: 5}, columns)])
    alone, both = whole(run(coarse, "--percentiles", "90")), whole(run(coarse, fine, "--percentiles", "90"))
    layout = Layout(1, 29, coarseness)
    low, high = layout.edges[(900 >> coarseness) : (900 >> coarseness) + 2] / 1000
    assert low <= float(alone["latency_us_p90"]) <= high
    assert float(alone["latency_us_p90_width"]) == pytest.approx(high - low)
    assert {k: v for k, v in both.items() if k.startswith("latency") and not k.endswith("stdev")} == {
        k: v for k, v in alone.items() if k.startswith("latency") and not k.endswith("stdev")
    }
    assert both["count"] == "20"


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "plain": lambda data: data,
    "gzip": gzip.compress,
    "xz": lzma.compress,
    "zstd": lambda data: subprocess.run(["zstd", "-qc"], input=data, stdout=subprocess.PIPE, check=True).stdout,
}


@pytest.mark.parametrize("packer", PACKERS)
def test_compressed_logs_are_read_as_they_are(tmp_path: Path, packer: str) -> None:
    """HostSettings from the content: the name does not say it."""
    if packer == "zstd" and shutil.which("zstd") is None:
        pytest.skip("no zstd program")
    data = "".join(row(1000 * n, 0, {n: n}) for n in range(1, 300)).encode()
    path = tmp_path / "a_clat_hist.1.log"
    path.write_bytes(PACKERS[packer](data))
    assert whole(run(path))["count"] == str(sum(range(1, 300)))


@pytest.mark.parametrize("size", [1, 2, 3, 7, 10, 11, 64, 1000])
@pytest.mark.parametrize(
    "text", [b"", b"a\n", b"a", b"one\ntwo\nthree\n", b"one\n\n\ntwo", b"a line longer than some\nx\n"]
)
def test_chunks_are_whole_lines(size: int, text: bytes) -> None:
    found = [(bytes(chunk), cut) for chunk, cut in chunks(io.BytesIO(text), size)]
    whole_text = text if text.endswith(b"\n") or not text else text + b"\n"
    assert b"".join(chunk for chunk, _ in found) == whole_text
    assert all(chunk.endswith(b"\n") for chunk, _ in found)
    assert [cut for _, cut in found][-1:] == ([not text.endswith(b"\n")] if text else [])


NAMES = [
    ("null4_clat_hist.1.log.gz", ("", "null4", "clat", True)),
    ("clat_hist.12.log", ("", "", "clat", True)),
    ("a_b_clat_hist.log", ("", "a_b", "clat", True)),
    ("job_lat.3.log.10.0.0.7", ("10.0.0.7", "job", "lat", False)),
    ("job_slat.3.log.host-1.lab.xz", ("host-1.lab", "job", "slat", False)),
    ("flat_clat.1.log", ("", "flat", "clat", False)),
    ("rsptimes_01_host-21.foo.com_op-name_1700000000.00.csv", ("host-21.foo.com", "op-name", "response_time", False)),
    ("whatever.txt", ("", "", "", False)),
]


@pytest.mark.parametrize(("name", "expected"), NAMES)
def test_host_job_and_quantity_are_read_from_the_file_name(name: str, expected: tuple[str, str, str, bool]) -> None:
    found = named(Path("x") / name)
    assert (found.host, found.job, found.quantity, found.is_histogram) == expected


LATENCY_LOGS = [
    ("fio 2", "5, 12, 0, 4096\n", ["--unit", "us"], 12.0),
    ("fio 3", "5, 12000, 0, 4096\n", [], 12.0),
    ("since 3.18", "5, 12000, 1, 4096, 0\n", [], 12.0),
    ("log_offset", "5, 12000, 1, 4096, 8192, 0x0000\n", [], 12.0),
    ("log_issue_time", "5, 12000, 1, 4096, 8192, 0x0000, 4999\n", [], 12.0),
]


@pytest.mark.parametrize(("name", "line", "options", "us"), LATENCY_LOGS)
def test_latency_logs_of_all_versions(tmp_path: Path, name: str, line: str, options: list[str], us: float) -> None:
    found = whole(run(log(tmp_path / "a_clat.1.log", [line] * 30), "--exact", *options))
    assert (float(found["latency_us_p50"]), found["count"]) == (us, "30")


def test_the_format_may_be_named(tmp_path: Path) -> None:
    path = log(tmp_path / "x", ["7,1.0,2.0\n"])
    assert isinstance(detect(path, Hints()), Fault)
    found = detect(path, Hints(Format.SMALLFILE))
    assert isinstance(found, Source) and found.format is Format.SMALLFILE


def test_a_folder_stands_for_its_histograms(tmp_path: Path) -> None:
    """Not for its latency logs as well: they may be the same I/Os."""
    log(tmp_path / "a_clat_hist.1.log", [row(1000, 0, {5: 1})])
    log(tmp_path / "a_clat.1.log", ["5, 12000, 0, 4096, 0\n"])
    log(tmp_path / "notes.txt", ["hello\n"])
    assert {found["format"] for found in table(run(tmp_path))} == {"fio-histogram"}


def test_a_thousand_samples_a_row_keep_their_numbers(tmp_path: Path) -> None:
    """Counts beyond 32 bits."""
    path = log(tmp_path / "a_clat_hist.1.log", [row(1000, 0, {5: 5_000_000_000})])
    assert whole(run(path))["count"] == "5000000000"


NO_LATENCIES = [
    ("a_clat.1.log", "1, 2, 7, 4096, 0\n", "has no column that is a direction"),
    ("a_bw.1.log", "1, 2, 0, 4096, 0\n", "is a bandwidth or IOPS log"),
    ("a_iops.1.log", "1, 2, 0, 4096, 0\n", "is a bandwidth or IOPS log"),
]


@pytest.mark.parametrize(("name", "line", "says"), NO_LATENCIES)
def test_logs_without_latencies_are_refused(tmp_path: Path, name: str, line: str, says: str) -> None:
    assert says in run(log(tmp_path / name, [line])).err
