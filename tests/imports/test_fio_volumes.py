"""fio and the plan imported from its job file end after the same I/Os: each job its own, in number and in bytes."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.real_runs import folder_of, ivypy, rows

JOBS = {
    "write": "rw=write\nbs=64k",
    "each_block_once": "rw=randwrite\nbs=4k",
    "io_size": "rw=randread\nnorandommap\nio_size=1m\nbs=8k",
    "more_than_size": "rw=read\nbs=64k\nio_size=10m",
    "loops": "rw=read\nloops=3\nbs=128k",
    "number_ios": "rw=randread\nnumber_ios=100",
    "number_ios_of_loops": "rw=randread\nnumber_ios=100\nloops=3",
    "smaller_files": "rw=write\nfilesize=1m\nbs=64k",
    "part_of_files": "rw=randread\nfilesize=8m\nfilename=larger",
    "clones_to_the_end": "rw=randread\nfilename=other\nfilesize=4m\nnumjobs=3\noffset_increment=1m\nsize=3m",
    "mix": "rw=randrw\nrwmixread=70\nsize=2m",
    "sequential_mix": "rw=rw\nrwmixread=50\nbs=16k\niodepth=2",
    "clones": "rw=randread\nnumjobs=2\nbs=8k",
    "clones_apart": "rw=write\nnumjobs=2\nbs=64k\noffset_increment=1m\nsize=1m",
    "paced": "rw=randread\nrate_iops=2000\nnumber_ios=1000",
    "within_its_time": "rw=write\nbs=64k\nruntime=60",
    "part": "rw=read\noffset=1m\nsize=2m",
}  # fmt: skip

IN_PERCENT = {
    "from_bytes": "rw=read\noffset=1m\nsize=50%",
    "bytes": "rw=randread\noffset=50%\nsize=3m",
    "apart": "rw=read\nsize=50%\nnumjobs=4\noffset_increment=25%",  # the last to the end
    "bytes_apart": "rw=randread\noffset=1m\nsize=2m\nnumjobs=3\noffset_increment=25%",
    "percent_apart_by_bytes": "rw=read\nsize=25%\nnumjobs=3\noffset_increment=1m",
}

OF_CLONES = {
    "own": "rw=randread\nnumjobs=3",
    "shared": "rw=randread\nnumjobs=3\nfilename_format=x",  # one clone has it
    "shared_by_number": "rw=read\nnumjobs=2\nnrfiles=2\nfilename_format=$jobname$clientuid.{$filenum}",
    "many": "rw=read\nnumjobs=10\nfilename_format=$jobnum-of-$all",
    "apart": "rw=read\nnumjobs=3\noffset_increment=1m",
}

FLUSHING = {
    "each": "fsync=1",
    "some": "fsync=4\nsize=3m",
    "direct": "fsync=16\ndirect=1\nioengine=libaio\niodepth=4",
    "random": "fsync=5\nrw=randwrite\nioengine=io_uring",
    "never": "fsync=0",
}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("fio") is None, reason="this machine lacks fio"),
]


def groups_of_fio(source: Path) -> list[list[dict[str, Any]]]:
    """Its jobs, as its report has them."""
    report = subprocess.run(
        ["fio", "--output-format=json", source], cwd=source.parent, capture_output=True, text=True, check=True,
        timeout=120,
    ).stdout  # fmt: skip
    jobs = json.loads(report[report.index("{") :])["jobs"]
    return [[job for job in jobs if job["groupid"] == number] for number in sorted({job["groupid"] for job in jobs})]


def counts_of_fio(source: Path) -> list[tuple[int, int]]:
    """I/Os and KiB of each group."""
    return [
        (
            sum(job[kind]["total_ios"] for job in group for kind in ("read", "write")),
            sum(job[kind]["io_bytes"] for job in group for kind in ("read", "write")) // 1024,
        )
        for group in groups_of_fio(source)
    ]


def steps_of_ivypy(source: Path) -> list[dict[str, str]]:
    """The row of each step of the imported plan."""
    plan, root = source.with_name("plan.yaml"), source.with_name("runs")
    imported = ivypy("import", str(source), "-o", str(plan))
    assert imported.returncode in (0, 6), imported.stderr
    plan.write_text(plan.read_text() + "defaults: { subinterval: 250ms }\n")
    done = ivypy("run", "-o", str(root), "--ui", "none", str(plan))
    assert done.returncode in (0, 8), done.stderr + done.stdout
    return rows(folder_of(root), "summary.all.csv")


def counts_of_ivypy(source: Path) -> list[tuple[int, int]]:
    """I/Os and KiB of each step: its rates, over the time in which it was driven."""
    return [(count(row, "overall_iops"), count(row, "overall_mib_per_s", 1024)) for row in steps_of_ivypy(source)]


def count(row: dict[str, str], rate: str, unit: int = 1) -> int:
    return round(float(row[rate]) * unit * float(row["length_s"]))


def compare(source: Path, common: str, jobs: dict[str, str]) -> None:
    options = f"[global]\n{common}direct=1\nioengine=libaio\niodepth=8\nstonewall\n"
    source.write_text(options + "".join(f"[{name}]\n{text}\n" for name, text in jobs.items()))
    ours = counts_of_ivypy(source)
    assert dict(zip(jobs, ours, strict=True)) == dict(zip(jobs, counts_of_fio(source), strict=True))


def test_every_job_ends_after_as_many_ios(tmp_path: Path) -> None:
    compare(tmp_path / "jobs.fio", f"filename={tmp_path}/data\nsize=4m\n", JOBS)


def test_parts_in_percent_are_as_large(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(bytes(8 << 20))
    compare(tmp_path / "jobs.fio", f"filename={tmp_path}/data\n", IN_PERCENT)


def test_files_are_those_of_the_same_clones(tmp_path: Path) -> None:
    compare(tmp_path / "jobs.fio", f"directory={tmp_path}\nsize=2m\n", OF_CLONES)


def test_every_job_flushes_as_often(tmp_path: Path) -> None:
    """fio counts those of fsync, and not those of fdatasync."""
    source = tmp_path / "jobs.fio"
    common = f"[global]\nfilename={tmp_path}/data\nsize=4m\nbs=64k\nrw=write\nstonewall\n"
    source.write_text(common + "".join(f"[{name}]\n{options}\n" for name, options in FLUSHING.items()))
    ours = [(count(row, "overall_iops"), count(row, "flush_iops")) for row in steps_of_ivypy(source)]
    theirs = [(job["write"]["total_ios"], job["sync"]["total_ios"]) for (job,) in groups_of_fio(source)]
    assert dict(zip(FLUSHING, ours, strict=True)) == dict(zip(FLUSHING, theirs, strict=True))
