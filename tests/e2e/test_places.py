"""Where the I/Os of real devices went: by the blocks that the file behind a loop device has then."""

import csv
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.devices import Missing, loop
from tests.support.real_runs import ENDED, ROOT, run, token, written

pytestmark = pytest.mark.slow

MIB = 1 << 20
BLOCK = 4096
BLOCKS = 16 * MIB // BLOCK
# A device each. Those that end do so within the step; that of two threads cannot.
DRIVEN = {
    "set": "working_set: 10%, until: { ios: 20000 }",
    "zipf": "working_set: 10%, zipf: 0.1, until: { ios: 20000 }",
    "spread": "working_set: 10%, spread: 2",
    "first": "working_set: 10%, scattered: false, until: { ios: 20000 }",
    "zone": "hot_zones: { range: [50%, 60%], share: 100% }, until: { ios: 20000 }",
    "stream": "iosequencer: sequential, start: 75%, until: { ios: 100 }",
}
PLAN = """
luns: {{ paths: [ {paths} ] }}
rollups: [ workload ]
by_address: 20
destroy: true
engine: {{ threads: 2 }}
workloads:
{workloads}
defaults: {{ subinterval: 250ms }}
steps: [ {{ go: {{ name: one, warmup: 0s, measure: 3s }} }} ]
"""


@dataclass(frozen=True)
class Driven:
    """By workload: the blocks of its device that the step wrote (none had any before, and data is random, so no block
    is zeros), and how many I/Os by_address.csv has in each section."""

    visited: dict[str, set[int]]
    counted: dict[str, list[int]]


@pytest.fixture(scope="module")
def driven(tmp_path_factory: pytest.TempPathFactory) -> Driven:
    folder = tmp_path_factory.mktemp("places")
    try:
        with ExitStack() as stack:
            devices = {name: stack.enter_context(loop(16 * MIB)) for name in DRIVEN}
            workloads = "\n".join(
                f"  {name}: {{ fraction_read: 0%, maxtags: 16, select: {{ path: {devices[name]} }}, {settings} }}"
                for name, settings in DRIVEN.items()
            )
            plan = written(folder, PLAN.format(paths=", ".join(devices.values()), workloads=workloads))
            ended = run(plan, folder / "runs", "--destroy", token(plan))
            assert ended.code in ENDED, ended.out + ended.err
            (table,) = (folder / "runs").glob("*/step*/by_address.csv")
            rows = list(csv.DictReader(table.read_text().splitlines()))
            return Driven(
                {name: blocks_with_data(backing_file(device)) for name, device in devices.items()},
                {name: [int(row["changes"]) for row in rows if row["rollup_instance"] == name] for name in devices},
            )
    except Missing as missing:
        pytest.skip(f"this machine lacks {missing}")


@pytest.fixture
def visited(driven: Driven) -> dict[str, set[int]]:
    return driven.visited


@pytest.mark.parametrize("name", DRIVEN)
def test_ios_are_counted_in_the_sections_where_the_device_has_their_blocks(name: str, driven: Driven) -> None:
    of_blocks = {block * 20 // BLOCKS for block in driven.visited[name]}
    assert {section for section, count in enumerate(driven.counted[name]) if count} == of_blocks


def backing_file(device: str) -> Path:
    return Path(Path("/sys/block", Path(device).name, "loop/backing_file").read_text().strip())


def blocks_with_data(path: Path) -> set[int]:
    data = path.read_bytes()
    return {n for n in range(len(data) // BLOCK) if any(data[n * BLOCK : n * BLOCK + 64])}


@pytest.mark.parametrize("name", ["set", "zipf", "spread"])
def test_a_working_set_is_so_many_blocks_all_over_the_range(name: str, visited: dict[str, set[int]]) -> None:
    """20,000 writes visit each of 409 blocks; two threads that drive it have the same."""
    by_eighth = [sum(n * 8 // BLOCKS == k for n in visited[name]) for k in range(8)]
    assert len(visited[name]) == BLOCKS // 10
    assert min(by_eighth) > 25 and 0 not in visited[name]  # block 0 holds the label


def test_workloads_have_sets_of_their_own(visited: dict[str, set[int]]) -> None:
    assert len(visited["set"] & visited["zipf"]) < BLOCKS // 40


def test_a_set_that_is_not_scattered_is_the_first_blocks(visited: dict[str, set[int]]) -> None:
    assert visited["first"] == set(range(1, BLOCKS // 10 + 1))


def test_no_io_leaves_a_zone_that_has_them_all(visited: dict[str, set[int]]) -> None:
    assert visited["zone"] == set(range(BLOCKS // 2, BLOCKS * 6 // 10))


def test_a_stream_begins_where_it_says(visited: dict[str, set[int]]) -> None:
    assert visited["stream"] == set(range(BLOCKS * 3 // 4, BLOCKS * 3 // 4 + 100))


def test_the_example_runs_and_holds_its_shares(tmp_path: Path) -> None:
    small = {"path": str(tmp_path / "data"), "size": "32MiB", "subinterval": "250ms", "warmup": "0s", "measure": "1s"}
    words = [word for name, value in small.items() for word in ("-D", f"{name}={value}")]
    ended = run(ROOT / "configs" / "hot-spots.yaml", tmp_path / "runs", *words)
    assert ended.code in ENDED, ended.out + ended.err
    found = {(row["name"], row["rollup_instance"]): row for row in ended.rows("summary.workload.csv")}
    iops = [float(found["beside", name]["overall_iops"]) for name in ("users", "scan")]
    assert iops[0] == pytest.approx(3 * iops[1], rel=0.01)
    assert found["rows", "rows"]["hot_zones"] == "0-3354624=0.8;3354624-10063872=0.15;10063872-33554432=0.05"
    assert float(found["keys", "keys"]["zipf"]) == 0.99
    of_rows = [row for row in ended.rows("step0001.rows/by_address.csv") if row["rollup_instance"] == "rows"]
    counts = [int(row["reads"]) + int(row["changes"]) for row in of_rows]
    assert [sum(counts[:10]), sum(counts[10:30])] == pytest.approx([0.8 * sum(counts), 0.15 * sum(counts)], rel=0.1)
