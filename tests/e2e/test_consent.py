"""Real runs on real LUNs: nothing that came to be after the user agreed is written; nothing else is even opened."""

import contextlib
import ctypes
import os
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ivypy.protocol.refusals import RefusalReason
from ivypy.slave.luns.discovery import inspect_luns, list_luns
from tests.support.devices import FaultFs, loops_alone
from tests.support.fork_server import Command
from tests.support.loop_devices import attach, detach, loop_device, need, needs_loops
from tests.support.real_runs import ENDED, Finished, answered, digest, run, start, token, wait_for_line, written
from tests.support.refusals import refusals_in

pytestmark = pytest.mark.slow

PLAN = """\
name: agreed
engine: {{ threads: 1 }}
destroy: true
luns: {{ {luns} }}
workloads: {{ w: {{ iosequencer: random_steady, iops: 400, maxtags: 8, fraction_read: 50%, blocksize: 4KiB }} }}
connectors: {{ host: off }}
rollups: [ lun ]
defaults: {{ subinterval: 250ms, warmup: 250ms, measure: 500ms }}
steps: [ go: one ]
"""


def a_plan(folder: Path, luns: str) -> Path:
    return written(folder, PLAN.format(luns=luns))


def ended(process: Command, root: Path) -> Finished:
    out, err = process.communicate(timeout=100)
    return Finished(process.returncode, out, err, root)


def driven(done: Finished) -> set[str]:
    """The LUNs that it drove."""
    assert done.code in ENDED, done.out + done.err
    return {row["lun"].partition(":")[2] for row in done.rows("summary.lun.csv")}


def test_a_file_that_appears_while_files_are_created_is_not_written(tmp_path: Path) -> None:
    folder = tmp_path / "t"
    folder.mkdir()
    (folder / "one.dat").write_bytes(os.urandom(1 << 20))
    plan = a_plan(
        tmp_path, f"files: {folder}/*.dat, create: {{ path: '{folder}/made-{{}}.dat', size: 64MiB, count: 4 }}"
    )
    process = start(plan, tmp_path / "runs", "--destroy", token(plan))
    wait_for_line(process, "creating")
    (folder / "precious.dat").write_bytes(os.urandom(1 << 20))
    before = digest(folder / "precious.dat")
    done = ended(process, tmp_path / "runs")
    made = {f"{folder}/made-{i}.dat" for i in range(4)}
    assert driven(done) == {f"{folder}/one.dat", *made}
    assert digest(folder / "precious.dat") == before
    assert {row["path"] for row in done.rows("luns.csv")} == {f"{folder}/one.dat", *made}


@needs_loops
def test_a_device_that_is_attached_while_files_are_created_is_not_written(tmp_path: Path, shm: Path) -> None:
    size = (33 << 20) + 4096 * (os.getpid() % 4096)  # nobody else's on this machine
    luns = f"select: {{ path: '/dev/loop*', size: {size} }}, create: {{ path: {shm}/made, size: 256MiB }}"
    with loop_device(shm, size) as known, contextlib.ExitStack() as undo:
        plan = a_plan(tmp_path, luns)
        process = start(plan, tmp_path / "runs", "--destroy", token(plan))
        wait_for_line(process, "creating")
        plugged = undo.enter_context(loop_device(shm, size))
        before = digest(plugged)
        assert driven(ended(process, tmp_path / "runs")) == {known, f"{shm}/made"}
        assert digest(plugged) == before


@needs_loops
def test_a_token_does_not_hold_for_another_image_of_the_same_size(tmp_path: Path, shm: Path) -> None:
    with loop_device(shm) as loop:
        plan = a_plan(tmp_path, f"paths: {loop}")
        given = token(plan)
        assert "known by backing file" in answered("devices", str(plan)).stdout
        assert loop in driven(run(plan, tmp_path / "first", "--destroy", given))
        assert loop in driven(run(plan, tmp_path / "second", "--destroy", given)), "and what we wrote is no difference"
        (shm / "another").write_bytes(os.urandom(32 << 20))
        before = digest(shm / "another")
        with loops_alone():
            detach(loop)
            attach(loop, shm / "another")
        done = run(plan, tmp_path / "third", "--destroy", given)
        assert done.code == 4 and "is not the token of the LUNs that would be overwritten now" in done.err
        assert digest(shm / "another") == before


def test_a_kept_file_needs_a_token_once_somebody_else_wrote_to_it(tmp_path: Path, shm: Path) -> None:
    place = shm / "kept"
    plan = a_plan(tmp_path, f"create: {{ path: {place}, size: 4MiB, keep: true }}")
    for which in ("made", "used again"):
        assert driven(run(plan, tmp_path / which)) == {str(place)}, "what ivypy wrote itself needs no token"
    with open(place, "r+b") as file:
        file.write(b"thesis")
    before = digest(place)
    done = run(plan, tmp_path / "theirs")
    assert done.code == 4 and "1 LUN would be overwritten, and no token was given" in done.err
    assert digest(place) == before
    assert driven(run(plan, tmp_path / "agreed", "--destroy", token(plan))) == {str(place)}
    assert digest(place) != before
    assert driven(run(plan, tmp_path / "ours again")) == {str(place)}


def test_a_token_ends_with_the_contents_that_it_was_given_for(tmp_path: Path, shm: Path) -> None:
    """What ivypy wrote itself is no difference, nor is a run that only reads; an old command finds the new contents."""
    place = shm / "example"
    place.write_bytes(os.urandom(4 << 20))
    plan = a_plan(tmp_path, f"files: {place}")
    given = token(plan)
    for which in ("first", "second"):
        before = digest(place)
        assert driven(run(plan, tmp_path / which, "--destroy", given)) == {str(place)}
        assert digest(place) != before
    with open(place, "r+b") as file:
        file.seek(1 << 20)
        file.write(b"thesis")
    before = digest(place)
    done = run(plan, tmp_path / "third", "--destroy", given)
    assert done.code == 4 and "is not the token of the LUNs that would be overwritten now" in done.err
    assert digest(place) == before


def test_a_device_that_hangs_before_the_run_is_named_at_once(tmp_path: Path, faulty_lun: FaultFs) -> None:
    plan = a_plan(tmp_path, f"paths: {faulty_lun.device}")
    plan.write_text(plan.read_text().replace("50%", "100%").replace("destroy: true\n", ""))
    faulty_lun.hang()
    try:
        done = run(plan, tmp_path / "runs", timeout_s=60)  # it was 77 s, and no LUN was named
    finally:
        faulty_lun.resume()
    assert done.code == 3
    _, named, said = done.err.partition(f"local: {faulty_lun.device}: ")
    assert named and refusals_in(said) == {RefusalReason.NO_ANSWER_ON_MOUNT} and " 10 s" in said, done.err


IN_ACCESS = 0x1
_opens: list[list[str]] = []  # what this process opens meanwhile, for each who wants to know


def _note(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and _opens and not int(str(arguments[2] or 0)) & os.O_PATH:
        for seen in _opens:
            seen.append(f"{arguments[0]} opened")


sys.addaudithook(_note)


@contextlib.contextmanager
def watched(*paths: str) -> Iterator[list[str]]:
    """Which of these this process opened meanwhile, and which anybody read: a look at a device may open all others."""
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    assert fd >= 0
    names = {libc.inotify_add_watch(fd, path.encode(), IN_ACCESS): path for path in paths}
    seen: list[str] = []
    opens: list[str] = []
    _opens.append(opens)
    try:
        yield seen
        seen += [one for one in opens if one.removesuffix(" opened") in paths]
        with contextlib.suppress(BlockingIOError):
            data = os.read(fd, 1 << 16)
            for at in range(0, len(data), 16):
                (number,) = struct.unpack_from("=i", data, at)
                seen.append(f"{names[number]} read")
    finally:
        _opens.remove(opens)
        os.close(fd)


@needs_loops
def test_list_luns_opens_nothing_and_inspect_luns_only_the_selected(shm: Path) -> None:
    """On devices that nobody else knows of, beside which others of this machine may come and go."""
    need("losetup")
    (shm / "file").write_bytes(b"x" * 4096)
    with loop_device(shm) as chosen, loop_device(shm) as other:
        with watched(chosen, other, str(shm / "file")) as touched:
            luns, _ = list_luns(True, [f"{shm}/file"], [chosen])
        assert {chosen, other, f"{shm}/file"} <= {lun.path for lun in luns} and touched == []
        assert all(lun.identity is None and lun.refusals == () for lun in luns)
        claim = os.open(other, os.O_RDONLY | os.O_EXCL)  # whoever claims it gets EBUSY, and would say so
        try:
            with watched(chosen, other, str(shm / "file")) as touched:
                (looked,), _ = inspect_luns([chosen])
        finally:
            os.close(claim)
        assert looked.identity is not None and looked.refusals == ()
        assert f"{chosen} read" in touched and f"{other} read" not in touched and f"{shm}/file" not in str(touched)
