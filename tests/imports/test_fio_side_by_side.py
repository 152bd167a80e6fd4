"""fio and the plan imported from its job file do the same I/O on the same disk: kinds, sizes, rates, addresses."""

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.real_runs import ROOT, folder_of, ivypy, rows, token

EXAMPLES = ROOT / ".venv" / "fio-examples"  # of Debian's package, unpacked by scripts/setup
MIB = 1 << 20

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(shutil.which("fio") is None, reason="this machine lacks fio"),
]


@dataclass(frozen=True)
class Done:
    """What one tool did in the jobs of one group, together."""

    reads: float
    writes: float
    bytes: float
    iops: float


def by_fio(source: Path) -> list[Done]:
    report = subprocess.run(
        ["fio", "--output-format=json", source],
        cwd=source.parent,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout
    jobs = json.loads(report[report.index("{") :])["jobs"]
    return [
        Done(
            sum(job["read"]["total_ios"] for job in group),
            sum(job["write"]["total_ios"] for job in group),
            sum(job[kind]["io_bytes"] for job in group for kind in ("read", "write")),
            sum(job[kind]["iops"] for job in group for kind in ("read", "write")),
        )
        for number in sorted({job["groupid"] for job in jobs})
        if (group := [job for job in jobs if job["groupid"] == number])
    ]


def by_ivypy(source: Path, *words: str) -> list[Done]:
    plan, root = source.with_name("plan.yaml"), source.with_name("runs")
    imported = ivypy("import", str(source), "-o", str(plan))
    assert imported.returncode in (0, 6), imported.stderr
    done = ivypy("run", "-o", str(root), "--ui", "none", *words, str(plan))
    assert done.returncode in (0, 8), done.stderr

    def figure(row: dict[str, str], name: str) -> float:
        return float(row.get(name) or 0)  # of what it did not do at all, a summary has no column

    return [
        Done(
            figure(row, "read_iops"),
            figure(row, "write_iops"),
            figure(row, "overall_mib_per_s") * MIB,
            figure(row, "overall_iops"),
        )
        for row in rows(folder_of(root), "summary.all.csv")
    ]


def compare(of_fio: list[Done], of_ivypy: list[Done], paced: bool) -> None:
    assert len(of_fio) == len(of_ivypy)
    for theirs, ours in zip(of_fio, of_ivypy, strict=True):
        # Which I/O is a write is drawn at random: of 1,000, a standard deviation of 1.6 %.
        share = theirs.reads / (theirs.reads + theirs.writes)
        assert ours.reads / (ours.reads + ours.writes) == pytest.approx(share, abs=0.08)
        assert ours.bytes / ours.iops == pytest.approx(theirs.bytes / (theirs.reads + theirs.writes), rel=0.01)
        if paced:
            # Random gaps: five standard deviations of the difference of two such counts.
            seconds = (theirs.reads + theirs.writes) / theirs.iops
            assert ours.iops == pytest.approx(theirs.iops, rel=0.1, abs=5 * (2 * theirs.iops / seconds) ** 0.5)


COMMON = "direct=1\nioengine=libaio\niodepth=8\nsize=16m\ntime_based\nruntime=4\n"


@pytest.mark.parametrize(
    "options",
    ["rw=randrw\nrate_iops=1500,500\nbs=8k", "rw=randread\nrate_iops=200", "rw=write\nrate=1m\nbs=16k"],
)
def test_paced_jobs(options: str, tmp_path: Path) -> None:
    source = tmp_path / "job.fio"
    source.write_text(f"[job]\ndirectory={tmp_path}\nfilename=data\n{COMMON}{options}\n")
    ours = by_ivypy(source)
    compare(by_fio(source), ours, paced=True)


def shrunk(text: str, folder: Path) -> str:
    """The same jobs on files of 16 MiB in `folder`, for 2 s each, past the page cache."""
    for pattern, instead in (
        (r"^;.*|\t;.*", ""),
        (r"^(size|filesize) *= *\S+", r"\1=16m"),
        (r"^io_submit_mode\b.*", ""),  # with `offload`, fio 3.33 does not always end
        (r"^(runtime|timeout|ramp_time|startdelay|directory|direct|buffered|time_based|ratemin)\b.*", ""),
        (r"^filename *= *(\S*/)?(\S+)", rf"filename={folder}/\2.data"),
    ):
        text = re.sub(pattern, instead, text, flags=re.MULTILINE)
    common = f"[global]\nsize=16m\ndirect=1\ntime_based\nruntime=2\ndirectory={folder}\n"
    return common.replace(f"directory={folder}\n", "") + text if "filename=" in text else common + text


@pytest.mark.skipif(not EXAMPLES.exists(), reason="fio's examples are not here: scripts/setup test")
@pytest.mark.parametrize(
    ("name", "paced"),
    [
        ("aio-read.fio", False), ("fio-rand-RW.fio", False), ("fio-rand-read.fio", False),
        ("fio-rand-write.fio", False), ("fio-seq-RW.fio", False), ("fio-seq-read.fio", False),
        ("fio-seq-write.fio", False), ("fixed-rate-submission.fio", True),
        ("poisson-rate-submission.fio", True), ("ssd-steadystate.fio", False), ("ssd-test.fio", False),
        ("tiobench-example.fio", False),
    ],
)  # fmt: skip
def test_the_examples_of_fio(name: str, paced: bool, tmp_path: Path) -> None:
    source = tmp_path / name
    source.write_text(shrunk((EXAMPLES / name).read_text(), tmp_path))
    ours = by_ivypy(source)
    compare(by_fio(source), ours, paced)


def changed(path: Path) -> set[int]:
    """The blocks of 4 KiB that are no longer zeros."""
    data = path.read_bytes()
    return {at // 4096 for at in range(0, len(data), 4096) if any(data[at : at + 4096])}


@pytest.mark.parametrize("rw", ["randwrite", "write"])
def test_addresses(rw: str, tmp_path: Path) -> None:
    """Both write the blocks between `offset` and `offset` + `size`, all of them sooner or later, and no other."""
    source, data = tmp_path / "job.fio", tmp_path / "data"
    source.write_text(f"[job]\nfilename={data}\n{COMMON}rw={rw}\nbs=4k\noffset=4m\n".replace("size=16m", "size=2m"))
    span = set(range(4 * MIB // 4096, 6 * MIB // 4096))
    data.write_bytes(bytes(8 * MIB))
    by_fio(source)
    assert changed(data) == span
    data.write_bytes(bytes(8 * MIB))
    plan = tmp_path / "agreed.yaml"
    assert ivypy("import", str(source), "-o", str(plan)).returncode == 0
    plan.write_text(plan.read_text().replace("# destroy: true", "destroy: true"))
    done = ivypy("run", "-o", str(tmp_path / "runs"), "--ui", "none", "--destroy", token(plan), str(plan))
    assert done.returncode in (0, 8), done.stderr
    assert changed(data) == span
