"""`ivypy devices` and `ivypy run` on block devices: nothing is overwritten but what was agreed to, list by list."""

import contextlib
import mmap
import os
import threading
from collections.abc import Iterator
from math import sqrt
from pathlib import Path

import pytest

from ivypy.protocol.refusals import RefusalReason
from tests.support.devices import FaultFs, losetup
from tests.support.fork_server import Command
from tests.support.loop_devices import loop_device, mounted, need
from tests.support.loop_devices import run as sh
from tests.support.real_runs import Finished, answered, digest, ivypy, names_of, only_late, run, start, token, written

pytestmark = pytest.mark.slow
VOLATILE = "volatile_cache"
SIZE = 8 << 20  # bytes of a device: all of them are written, and summed up time and again

PLAN = """\
name: disks
engine: {{ threads: 1 }}
connectors: {{ host: off }}
lease: 5s
{destroy}
luns: {{ select: {{ path: [ {paths} ] }} }}
workloads: {{ w: {{ iosequencer: random_steady, iops: 400, maxtags: 8, fraction_read: {reads}, blocksize: 4KiB }} }}
rollups: [ lun ]
defaults: {{ subinterval: 0.25s, warmup: 0.25s, measure: 1s }}
steps: [ go: one ]
"""


def a_plan(tmp_path: Path, *paths: str, reads: str = "50%", destroy: bool = True) -> Path:
    said = "destroy: true" if destroy else ""
    name = "-".join(Path(path).name for path in paths) + f"{destroy}.yaml"
    return written(tmp_path, PLAN.format(paths=", ".join(paths), reads=reads, destroy=said), name)


def test_a_loop_device_is_overwritten_only_with_its_token(tmp_path: Path, shm: Path) -> None:
    need("losetup")
    with loop_device(shm, SIZE) as device, loop_device(shm, SIZE) as other:
        fill(device)
        plan = a_plan(tmp_path, device)
        before = digest(device)
        assert run(plan, tmp_path / "no token").code == 4
        assert run(plan, tmp_path / "wrong", "--destroy", token(a_plan(tmp_path, other))).code == 4
        assert run(a_plan(tmp_path, device, destroy=False), tmp_path / "unsaid").code == 2
        assert digest(device) == before, "nothing was written without consent"
        untouched = digest(other)
        done = run(plan, tmp_path / "agreed", "--destroy", token(plan))
        assert unexcused(done) == [] and digest(device) != before and digest(other) == untouched
        first_block = Path(device).read_bytes()[:4096]
        assert first_block == bytes(4096), "block 0 is never touched"


def fill(device: str) -> None:
    """Write every byte, as reads of what was never written are no measurement; block 0 with zeros."""
    with open(device, "r+b") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(4096)
        file.write(os.urandom(size - 4096))


def unexcused(done: Finished, writes: bool = True) -> list[str]:
    assert done.code in (0, 8), done.out + done.err
    cached = {row["path"] for row in done.rows("luns.csv") if writes and row["write_cache"] == "write back"}
    rows = done.rows("summary.lun.csv")
    assert {row["rollup_instance"].split(":", 1)[1] for row in rows if VOLATILE in names_of(row["reasons"])} == cached
    return [row["reasons"] for row in rows if not only_late(without(VOLATILE, row["reasons"]))]


def without(name: str, reasons: str) -> str:
    return "; ".join(reason for reason in reasons.split("; ") if not reason.startswith(f"{name}["))


def test_what_is_read_needs_no_token_and_is_not_changed(tmp_path: Path, shm: Path) -> None:
    need("losetup")
    with loop_device(shm, SIZE) as one, loop_device(shm, 2 * SIZE) as two:
        plan = a_plan(tmp_path, one, two, reads="100%", destroy=False)
        # Only one of 64 reads is looked at.
        many = written(tmp_path, plan.read_text().replace("iops: 400", "iops: max"), "sparse.yaml")
        done = run(many, tmp_path / "sparse")
        assert done.code == 8
        assert all("unwritten_blocks[invalid] (100% of" in row["reasons"] for row in done.rows("summary.lun.csv"))
        fill(one)
        fill(two)
        page = answered("devices", str(plan)).stdout
        assert "Nothing is overwritten." in page and one in page and two in page
        before = digest(one), digest(two)
        done = run(plan, tmp_path / "runs")
        assert unexcused(done, writes=False) == [] and (digest(one), digest(two)) == before
        luns = done.rows("summary.lun.csv")
        assert sorted(row["lun"].split(":")[1] for row in luns) == sorted([one, two])
        assert all(float(row["due"]) / float(row["length_s"]) == pytest.approx(400, rel=0.02) for row in luns)
        assert all(float(row["overall_service_count"]) > float(row["due"]) / 4 for row in luns), (
            "on a busy machine, too"
        )


@contextlib.contextmanager
def reading(device: str) -> Iterator[None]:
    """Somebody else, who reads a block of the device some 500 times a second."""
    end = threading.Event()

    def read() -> None:
        fd = os.open(device, os.O_RDONLY | os.O_DIRECT)
        with mmap.mmap(-1, 4096) as page:
            while not end.wait(0.002):
                os.preadv(fd, [page], 4096)
        os.close(fd)

    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()


def test_another_reader_of_the_device_is_noticed(tmp_path: Path, shm: Path) -> None:
    need("losetup")
    with loop_device(shm, SIZE) as one, loop_device(shm, SIZE) as other:
        fill(one)
        fill(other)
        with reading(one):
            done = run(a_plan(tmp_path, one, other, reads="100%", destroy=False), tmp_path / "runs")
        reasons = {row["rollup_instance"].split(":", 1)[1]: row["reasons"] for row in done.rows("summary.lun.csv")}
        assert "foreign_io" in names_of(reasons[one]) and "foreign_io" not in names_of(reasons[other])


def test_a_mounted_or_signed_device_is_refused_whatever_the_plan_says(tmp_path: Path, shm: Path) -> None:
    need("losetup", "mkfs.ext4")
    with loop_device(shm, SIZE) as device:
        sh("mkfs.ext4", "-q", device)
        before = digest(device)
        plan = a_plan(tmp_path, device)
        page = ivypy("devices", str(plan))
        assert "refused, whatever the plan says" in page.stdout and "ext4" in page.stdout and page.returncode == 4
        here = answered("devices", str(plan))
        assert (here.returncode, here.stdout, here.stderr) == (4, page.stdout, page.stderr), "started or not"
        done = run(plan, tmp_path / "runs", "--destroy", "0123456789ab")
        assert done.code == 4 and "ext4" in done.err and digest(device) == before


def test_a_device_below_a_mounted_loop_device_is_refused_whatever_the_plan_says(tmp_path: Path, shm: Path) -> None:
    need("losetup", "mkfs.ext4")
    with loop_device(shm, SIZE) as device:
        upper = losetup("-f", "--show", "-o", str(1 << 20), device)
        try:
            sh("mkfs.ext4", "-q", upper)
            with mounted(upper, shm / "point", "-o", "ro"):
                before = digest(device)
                plan = a_plan(tmp_path, device)
                said = RefusalReason.BELOW_LOOP.sentence(subject="it", device=upper)
                page = answered("devices", str(plan)).stdout
                assert said in " ".join(page.split()) and "--destroy" not in page
                done = run(plan, tmp_path / "runs", "--destroy", "0123456789ab")
                assert done.code == 4 and said in " ".join(done.err.split()) and digest(device) == before
        finally:
            losetup("-d", upper)


def ended_of(process: Command) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=100)
    return process.returncode, out, err


def test_of_two_runs_on_one_device_only_one_writes(tmp_path: Path, shm: Path) -> None:
    need("losetup")
    with loop_device(shm, SIZE) as device:
        plan = a_plan(tmp_path, device, reads="0%")
        agreed_to = token(plan)
        runs = [start(plan, tmp_path / name, "--destroy", agreed_to) for name in ("one", "two")]
        ended = [Finished(*ended_of(one), tmp_path) for one in runs]
        said = f"{device} is not written", RefusalReason.MUST_NOT_BE_WRITTEN.sentence(lun=device, reason="").rstrip()
        barred = [any(words in one.err for words in said) for one in ended]
        assert sorted(barred) == [False, True], ended
        assert [one.code in (0, 8) for one in ended] == [not one for one in barred], ended


def test_zram_is_driven(tmp_path: Path, zram_lun: str) -> None:
    plan = a_plan(tmp_path, zram_lun)
    assert unexcused(run(plan, tmp_path / "runs", "--destroy", token(plan))) == []


def test_a_device_that_hangs_in_the_last_subinterval_is_reported(tmp_path: Path, faulty_lun: FaultFs) -> None:
    """The device hangs while the last measured subinterval runs: nothing late completes, and the step says so."""
    plan = a_plan(tmp_path, faulty_lun.device, reads="100%", destroy=False)
    plan.write_text(plan.read_text().replace("0.25s, warmup: 0.25s, measure: 1s", "2s, warmup: 2s, measure: 4s"))
    process = start(plan, tmp_path / "runs")
    lines = []
    for line in process.stdout:
        lines.append(line)
        if "measured 1 of 2" in line:  # the second and last is running, for up to 2 s
            break
    faulty_lun.hang()
    try:
        out, err = process.communicate(timeout=60)
    finally:
        faulty_lun.resume()
    said = "".join(lines) + out + err
    assert process.returncode == 8, said
    (row,) = Finished(process.returncode, out, err, tmp_path / "runs").rows("summary.all.csv")
    assert "stall_at_end" in names_of(row["reasons"]), row["reasons"] + said


def test_errors_of_a_device_are_counted_and_in_no_latency(tmp_path: Path, faulty_lun: FaultFs) -> None:
    share = 0.5
    faulty_lun.tell(read_ppm=round(share * 1e6))
    done = run(a_plan(tmp_path, faulty_lun.device, reads="100%", destroy=False), tmp_path / "runs")
    (row,) = done.rows("summary.all.csv")
    assert done.code == 8 and "io_errors" in row["reasons"] and "EIO" in row["reasons"], row["reasons"]
    done_and_failed = int(row["overall_service_count"]) + int(row["errors"])
    chance = sqrt(done_and_failed * share * (1 - share))  # the standard deviation of their number
    assert int(row["errors"]) == pytest.approx(done_and_failed * share, abs=5 * chance)
