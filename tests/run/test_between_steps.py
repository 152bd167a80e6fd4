"""LUNs stay open from one step to the next: whatever comes into use meanwhile is not written any more."""

import asyncio
import contextlib
import csv
import hashlib
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import ivypy
from ivypy.protocol import messages as m
from ivypy.protocol.parameters import Parameters
from ivypy.protocol.refusals import RefusalReason
from ivypy.slave.engine._engine import now_ns
from ivypy.slave.gate.file_changes import LATEST_NS
from tests.support.devices import losetup
from tests.support.loop_devices import loop_device, mounted, need, needs_loops, run
from tests.support.real_runs import presence
from tests.support.refusals import refusals_in
from tests.support.slave_client import Client, u32
from tests.support.waits import wait_until

pytestmark = [pytest.mark.slow, needs_loops]

MiB = 1 << 20
WRITE = Parameters(fraction_read=0.0, maxtags=4)


@pytest.fixture
def slave() -> Iterator[Client]:
    with Client() as client:
        client.prepare("libaio")
        yield client


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "lun"
    path.write_bytes(os.urandom(8 * MiB))
    return path


@contextlib.contextmanager
def loop_over(path: str | Path) -> Iterator[str]:
    loop = losetup("-f", "--show", str(path))
    try:
        yield loop
    finally:
        losetup("-d", loop)


def step(slave: Client) -> None:
    slave.ask(m.ClockProbe)
    slave.go(0, length_s=0.1)
    slave.send(m.Stop, last=0)
    slave.until(m.Stopped)


def use(kind: str, lun: str, folder: Path, undo: contextlib.ExitStack) -> str:
    """Have a LUN that another process has open be used in some way; what is to be said of it."""
    if kind == "open for writing":
        undo.enter_context(open(lun, "r+b"))
        program = Path("/proc/self/comm").read_text().rstrip("\n")
        return RefusalReason.OPEN_FOR_WRITING.sentence(subject="it", pid=os.getpid(), program=program)
    if kind == "partitions":
        run("addpart", lun, "1", "2048", "2048")
        undo.callback(run, "delpart", lun, "1")
        return RefusalReason.PARTITIONED.sentence(names=f"{Path(lun).name}p1", path=lun)
    loop = undo.enter_context(loop_over(lun))
    if kind == "a file system is mounted":
        run("mkfs.ext4", "-q", "-F", loop)
        undo.enter_context(mounted(loop, folder / "point"))
    elif kind == "swap":
        run("mkswap", "-q", loop)
        run("swapon", loop)
        undo.callback(run, "swapoff", loop)
    return RefusalReason.BELOW_LOOP.sentence(subject="it", device=loop)


@pytest.mark.parametrize("lun", ["file", "block"])
@pytest.mark.parametrize(
    "kind", ["a file system is mounted", "swap", "a loop device", "open for writing", "partitions"]
)
def test_what_comes_into_use_is_refused_before_the_next_step(
    kind: str, lun: str, slave: Client, file: Path, shm: Path
) -> None:
    need("mkfs.ext4", "mkswap", "swapon", "addpart", "delpart")
    if (kind, lun) == ("partitions", "file"):
        pytest.skip("a file has none")
    with contextlib.ExitStack() as outer:
        path = str(file) if lun == "file" else outer.enter_context(loop_device(shm, 8 * MiB))
        slave.create(path, WRITE, consent=True)
        slave.do(m.ReinspectLuns)
        step(slave)
        slave.do(m.ReinspectLuns)  # what we wrote ourselves is no reason
        with contextlib.ExitStack() as undo:
            said = use(kind, path, shm, undo)
            refused = slave.refused(m.ReinspectLuns)
        assert [what for what, _ in refused] == [path] * len(refused)
        assert (path, RefusalReason.NO_LONGER_TO_BE_WRITTEN.sentence(reason=said)) in refused
        if kind in ("a loop device", "open for writing"):
            slave.do(m.ReinspectLuns)  # it is free again


@pytest.mark.parametrize(
    ("change", "reason", "words"),
    [
        ("signed", RefusalReason.SIGNED, " swap: "),
        ("grew", RefusalReason.ANOTHER_LUN, "(that had 8 MiB; this has 9 MiB)"),
        ("emptied", RefusalReason.EMPTY_FILE, ""),
        ("another name", RefusalReason.SEVERAL_NAMES, " 2 names"),
    ],
)
def test_what_is_changed_by_others_is_refused_before_the_next_step(
    change: str, reason: RefusalReason, words: str, slave: Client, file: Path
) -> None:
    need("mkswap")
    slave.create(file, WRITE, consent=True)
    step(slave)
    match change:
        case "signed":
            run("mkswap", "-q", str(file))
        case "grew":
            os.truncate(file, 9 * MiB)
        case "emptied":
            os.truncate(file, 0)
        case _:
            os.link(file, file.with_name("other"))
    refused = slave.refused(m.ReinspectLuns)
    assert any(refusals_in(said) == {reason} and words in said for _, said in refused), refused


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_what_somebody_changed_before_a_step_is_not_written_by_it(steps: int, slave: Client, file: Path) -> None:
    slave.create(file, WRITE, consent=True)
    for _ in range(steps):
        step(slave)
        slave.do(m.ReinspectLuns)
    wait_until(lambda: time.time_ns() > file.stat().st_ctime_ns + LATEST_NS, "another tick")
    with open(file, "r+b") as other:
        other.write(b"precious")
    ((_, said),) = slave.refused(m.ReinspectLuns)
    assert refusals_in(said) >= {RefusalReason.CONTENTS_CHANGED}
    slave.ask(m.ClockProbe)
    start_ns, numbers = now_ns() + 5 * 10**9, u32(0)
    ((_, said),) = slave.refused(m.Go, start_ns=start_ns, length_ns=10**8, order=numbers, classes=numbers)
    assert refusals_in(said) >= {RefusalReason.CONTENTS_CHANGED}
    assert file.read_bytes().startswith(b"precious")


def test_luns_that_are_only_read_are_not_inspected_again(slave: Client, file: Path) -> None:
    slave.create(file, Parameters(fraction_read=1.0))
    with loop_over(file):
        slave.do(m.ReinspectLuns)


PLAN = """\
name: between
engine: { threads: 1 }
hosts: [ { name: a, launcher: local }, { name: b, launcher: local } ]
luns: { create: { path: "PATH/{host}-{}", size: 16MiB, count: 2, keep: true } }
workloads: { w: { iops: 100, maxtags: 4, fraction_read: 0% } }
rollups: [ host ]
defaults: { subinterval: 0.25s, warmup: 0.25s, measure: 0.5s }
"""


def test_a_file_system_that_was_made_on_a_lun_between_steps_is_not_written(tmp_path: Path, shm: Path) -> None:
    """The host is lost by it, and named; the other goes on."""
    need("mkfs.ext4")
    lun = tmp_path / "a-1"

    async def main() -> tuple[ivypy.OpenSession, str]:
        async with ivypy.Session(PLAN.replace("PATH", str(tmp_path)), root=tmp_path / "runs") as session:
            await session.go("one")
            await session.go("two")
            with contextlib.ExitStack() as undo:
                loop = undo.enter_context(loop_over(lun))
                run("mkfs.ext4", "-q", "-F", loop)
                point = undo.enter_context(mounted(loop, shm / "point"))
                (point / "thesis").write_bytes(b"years" * 10_000)
                run("sync", "-f", str(point))
                before = hashlib.sha256(lun.read_bytes()).hexdigest()
                await session.go("three")
                assert hashlib.sha256(lun.read_bytes()).hexdigest() == before
            return session, loop

    session, loop = asyncio.run(main())

    def rows(name: str) -> list[dict[str, str]]:
        with open(session.folder / name, newline="") as found:
            return list(csv.DictReader(found))

    (lost,) = [row for row in rows("events.csv") if row["kind"] == "lost"]
    assert (lost["host"], lost["step"]) == ("a", "2")
    below = RefusalReason.BELOW_LOOP.sentence(subject="it", device=loop)
    assert f"{lun}: {RefusalReason.NO_LONGER_TO_BE_WRITTEN.sentence(reason=below)}" in lost["text"]
    summary = [(row["name"], row["host"], presence(row)) for row in rows("summary.host.csv")]
    assert [row for row in summary if row[0] != "three"] == [
        (name, host, "1/1") for name in ("one", "two") for host in "ab"
    ], "a run of several steps is not disturbed"
    assert ("three", "b", "1/1") in summary and ("three", "a", "1/1") not in summary
    assert json.loads((session.folder / "run.json").read_text())["exit_code"] != 0
