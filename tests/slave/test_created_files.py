"""Files that ivypy makes: whole, incompressible, removed; and nothing that is somebody else's touched."""

import errno
import os
import shutil
import subprocess
import threading
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ivypy.protocol.payload import FileToCreate, Notice, NoticeKind, Refusal
from ivypy.protocol.refusals import RefusalReason
from ivypy.slave.devices import extents
from ivypy.slave.devices.storage_exports import lun_key
from ivypy.slave.gate import write_gate
from ivypy.slave.gate.file_changes import note, raw
from ivypy.slave.gate.holds import lock
from ivypy.slave.luns import created_files, existing_files
from ivypy.slave.luns.created_files import PIECE, Cancelled, CreatedFiles, random_pieces
from ivypy.slave.luns.existing_files import MADE, MARK, CannotCreate, Existing, PlannedFile, existing_at, planned_files
from ivypy.slave.workloads.workloads import Workloads
from tests.support.fake_engine import FakeEngine
from tests.support.loop_devices import loop_device, mounted, need, needs_loops, run
from tests.support.refusals import found_in
from tests.support.workloads import WRITE, workloads_on

MIB = 1 << 20


def quiet(notice: Notice) -> None:
    """Whom nobody listens to."""


def reasons(raised: pytest.ExceptionInfo[CannotCreate]) -> list[RefusalReason]:
    return found_in([refusal.reason for refusal in raised.value.refusals])


def ended(made: CreatedFiles) -> None:
    """What the end of its process does."""
    made.remove()
    for fd in made._locks.values():
        os.close(fd)


@pytest.fixture
def marked(shm: Path) -> Path:
    """A folder whose filesystem has user attributes."""
    try:
        os.setxattr(shm, existing_files.MARK, b"x")
    except OSError as error:
        if error.errno != errno.ENOTSUP:
            raise
        pytest.skip("the filesystem of /dev/shm has no user attributes")
    return shm


def test_the_content_has_its_size_and_no_block_twice() -> None:
    data = b"".join(random_pieces(8 * PIECE + 12345))
    assert len(data) == 8 * PIECE + 12345
    blocks = [data[i : i + 512] for i in range(0, len(data), 512)]
    assert len(set(blocks)) == len(blocks)
    assert len(zlib.compress(data, 9)) > len(data)
    if shutil.which("zstd"):  # which looks for repetitions in all of it
        done = subprocess.run(["zstd", "-q", "-c", "--long=27"], input=data, capture_output=True, check=True)
        assert len(done.stdout) > len(data)


def test_two_files_have_nothing_in_common() -> None:
    one, two = (b"".join(random_pieces(PIECE)) for _ in range(2))
    assert {one[i : i + 512] for i in range(0, PIECE, 512)}.isdisjoint(two[i : i + 512] for i in range(0, PIECE, 512))


def test_a_file_is_made_whole_and_removed(marked: Path) -> None:
    noticed: list[Notice] = []
    made = CreatedFiles()
    made.create([PlannedFile(f"{marked}/a", 3 * MIB + 5, False), PlannedFile(f"{marked}/b", 100, True)], noticed.append)
    assert (marked / "a").stat().st_size == 3 * MIB + 5
    assert (marked / "a").stat().st_mode & 0o777 == 0o600
    assert raw(f"{marked}/a", MARK).startswith(MADE)
    assert [one.kind for one in noticed] == [NoticeKind.FILES_CREATED]
    assert noticed[0].text.startswith("created 2 files, 3,145,833 bytes, in ")
    made.remove()
    assert sorted(p.name for p in marked.iterdir()) == ["b"]


def test_a_kept_file_is_used_again_unchanged(marked: Path) -> None:
    first = CreatedFiles()
    first.create([PlannedFile(f"{marked}/a", MIB, True)], quiet)
    ended(first)
    before = (marked / "a").read_bytes()
    noticed: list[Notice] = []
    again = CreatedFiles()
    again.create([PlannedFile(f"{marked}/a", MIB, False)], noticed.append)
    assert (marked / "a").read_bytes() == before
    text = f"{marked}/a is used as it is: ivypy made it before, with exactly 1 MiB"
    assert noticed == [Notice(NoticeKind.FILE_REUSED, text)]
    ended(again)
    assert (marked / "a").exists(), "only who made a file removes it"


@pytest.mark.parametrize("keep", [False, True])
def test_a_file_in_use_is_nobody_elses_until_its_run_has_ended(keep: bool, marked: Path) -> None:
    def want(files: CreatedFiles) -> None:
        files.create([PlannedFile(f"{marked}/b", MIB, False), PlannedFile(f"{marked}/a", MIB, False)], quiet)

    first, second, third = CreatedFiles(), CreatedFiles(), CreatedFiles()
    first.create([PlannedFile(f"{marked}/a", MIB, keep)], quiet)
    for other in (second, third):
        with pytest.raises(CannotCreate) as raised:
            want(other)
        assert raised.value.refusals == (Refusal(f"{marked}/a", RefusalReason.IN_USE.sentence()),)
        assert not (marked / "b").exists(), "nothing else was made either"
        other.remove()
        assert (marked / "a").exists(), "it is not theirs"
    ended(first)
    assert (marked / "a").exists() is keep
    want(second)  # what was kept is used as it is, and that is a use as well
    with pytest.raises(CannotCreate):
        want(third)
    second.create([PlannedFile(f"{marked}/a", MIB, False)], quiet)  # its own
    ended(second)


def test_blkid_is_started_for_all_but_the_files_that_this_process_wrote(
    marked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes a process for each, and what is in these is known. All other checks are made."""
    program = marked / "blkid"
    program.write_text("#!/bin/sh\necho TYPE=sysv\n")
    program.chmod(0o755)
    new, signed, reused = (PlannedFile(f"{marked}/{name}", MIB, name == "reused") for name in ("new", "sign", "reused"))
    first, second = CreatedFiles(), CreatedFiles()
    first.create([reused], quiet)
    ended(first)
    try:
        second.create([new, signed, reused], quiet)
        with open(signed.path, "r+b") as there:
            there.write(b"XFSB")
        asked = [
            one
            for first_number, file in enumerate((new, signed, reused))
            for one in workloads_on(file.path, WRITE, consent=True, first=first_number)
        ]
        monkeypatch.setattr(write_gate, "find_blkid", lambda: str(program))
        workloads = Workloads(FakeEngine(), "null", [None], locked=second.locked, known=second.written)  # type: ignore[arg-type]
        assert [refusal.reason for refusal in workloads.create(asked)] == [
            RefusalReason.MUST_NOT_BE_WRITTEN.sentence(
                lun=file.path, reason=RefusalReason.SIGNED.sentence(format=name, path=file.path)
            )
            for file, name in ((signed, "xfs"), (reused, "sysv"))
        ]
    finally:
        ended(second)
    assert second.written() == frozenset()


def test_a_file_removed_while_it_was_locked_is_not_used(marked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run that made it ended between the two looks."""
    first = CreatedFiles()
    first.create([PlannedFile(f"{marked}/a", MIB, False)], quiet)
    opened = existing_files.open_to_lock

    def late(path: str) -> int:
        fd = opened(path)
        ended(first)
        return fd

    monkeypatch.setattr(created_files, "open_to_lock", late)
    with pytest.raises(CannotCreate) as raised:
        CreatedFiles().create([PlannedFile(f"{marked}/a", MIB, False)], quiet)
    assert reasons(raised) == [RefusalReason.IN_USE]


def test_where_there_are_no_locks_a_file_is_used_without(marked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unlockable(fd: int, operation: int) -> None:
        raise OSError(errno.ENOTSUP, "Operation not supported")

    monkeypatch.setattr("fcntl.flock", unlockable)
    first = CreatedFiles()
    first.create([PlannedFile(f"{marked}/a", MIB, True)], quiet)
    CreatedFiles().create([PlannedFile(f"{marked}/a", MIB, True)], quiet)
    first.remove()
    assert (marked / "a").exists()


def somebodys(path: Path) -> None:
    path.write_bytes(b"thesis")


def somebodys_of_that_size(path: Path) -> None:
    path.write_bytes(bytes(MIB))


def unfinished(path: Path) -> None:
    path.write_bytes(b"half")
    os.setxattr(path, existing_files.MARK, existing_files.MAKING)


def of_another_size(path: Path) -> None:
    path.write_bytes(b"half")
    os.setxattr(path, existing_files.MARK, existing_files.MADE)


def link_to_somebodys(path: Path) -> None:
    (path.parent / "thesis").write_bytes(bytes(MIB))
    path.symlink_to("thesis")


NOT_OURS = RefusalReason.NOT_OURS.sentence()


@pytest.mark.parametrize(
    ("there", "reason"),
    [
        (somebodys, NOT_OURS),
        (somebodys_of_that_size, NOT_OURS),
        (link_to_somebodys, NOT_OURS),
        (unfinished, RefusalReason.HALF_MADE.sentence()),
        (of_another_size, RefusalReason.MADE_LARGER_OR_SMALLER.sentence(present="4 bytes", asked="1 MiB")),
    ],
)
def test_what_is_there_is_never_overwritten(there: Callable[[Path], None], reason: str, marked: Path) -> None:
    there(marked / "a")
    before = {p.name: p.read_bytes() for p in marked.iterdir()}
    made = CreatedFiles()
    with pytest.raises(CannotCreate) as raised:
        made.create([PlannedFile(f"{marked}/b", MIB, False), PlannedFile(f"{marked}/a", MIB, False)], quiet)
    made.remove()
    assert raised.value.refusals == (Refusal(f"{marked}/a", reason),)
    assert {p.name: p.read_bytes() for p in marked.iterdir()} == before, "nothing else was made either"


@pytest.mark.parametrize("there", [unfinished, of_another_size])
def test_a_file_that_another_run_uses_is_not_said_to_be_removed(there: Callable[[Path], None], marked: Path) -> None:
    there(marked / "a")
    with (marked / "a").open("r+b") as other:
        assert lock(other.fileno())
        with pytest.raises(CannotCreate) as raised:
            CreatedFiles().create([PlannedFile(f"{marked}/a", MIB, False)], quiet)
    assert raised.value.refusals == (Refusal(f"{marked}/a", RefusalReason.IN_USE.sentence()),)


def test_everything_against_it_is_reported_at_once(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"thesis")
    huge = 1 << 60
    with pytest.raises(CannotCreate) as raised:
        CreatedFiles().create(
            [PlannedFile(f"{tmp_path}/a", MIB, False), PlannedFile(f"{tmp_path}/no/b", MIB, False)], quiet
        )
    assert raised.value.refusals == (
        Refusal(f"{tmp_path}/a", NOT_OURS),
        Refusal(f"{tmp_path}/no/b", RefusalReason.NO_FOLDER.sentence(folder=tmp_path / "no")),
    )
    with pytest.raises(CannotCreate, match="1 file, 1 EiB, is to be created") as raised:
        CreatedFiles().create([PlannedFile(f"{tmp_path}/b", huge, False)], quiet)
    assert reasons(raised) == [RefusalReason.NO_SPACE]
    with pytest.raises(CannotCreate) as raised:
        CreatedFiles().create([PlannedFile(f"{tmp_path}/b", 1, False), PlannedFile(f"{tmp_path}/b", 1, False)], quiet)
    assert reasons(raised) == [RefusalReason.CREATED_TWICE]


@needs_loops
def test_a_disk_that_fills_up_leaves_nothing(shm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("mkfs.ext4")
    monkeypatch.setattr(created_files, "_short_of_space", lambda wanted: ())  # as if another filled it meanwhile
    with loop_device(shm, 16 << 20) as loop:
        run("mkfs.ext4", "-q", loop)
        with mounted(loop, shm / "p") as point:
            made = CreatedFiles()
            with pytest.raises(CannotCreate) as raised:
                made.create([PlannedFile(f"{point}/a", MIB, True), PlannedFile(f"{point}/b", 64 * MIB, True)], quiet)
            reason = RefusalReason.NOT_WRITTEN.sentence(error="No space left on device")
            assert raised.value.refusals == (Refusal(f"{point}/b", reason),)
            assert {p.name for p in point.iterdir()} == {"lost+found"}


def test_an_end_in_the_middle_leaves_nothing_even_to_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = CreatedFiles()

    def interrupted(size: int) -> Iterator[bytes]:
        yield bytes(MIB)
        made.cancel()
        yield bytes(MIB)

    monkeypatch.setattr(created_files, "random_pieces", interrupted)
    with pytest.raises(Cancelled):
        made.create([PlannedFile(f"{tmp_path}/a", 2 * MIB, True)], quiet)
    assert list(tmp_path.iterdir()) == []


def test_another_file_in_a_created_files_place_is_not_removed(tmp_path: Path) -> None:
    made = CreatedFiles()
    made.create([PlannedFile(f"{tmp_path}/a", 100, False)], quiet)
    (tmp_path / "thesis").write_bytes(b"thesis")
    (tmp_path / "thesis").rename(tmp_path / "a")
    made.remove()
    assert (tmp_path / "a").read_bytes() == b"thesis"


@needs_loops
def test_a_file_with_the_removed_ones_inode_number_is_not_removed(shm: Path) -> None:
    """As ext4 does at once, unless the old one is still open."""
    need("mkfs.ext4")
    with loop_device(shm) as loop:
        run("mkfs.ext4", "-q", loop)
        with mounted(loop, shm / "p") as point:
            made = CreatedFiles()
            made.create([PlannedFile(f"{point}/a", 100, False)], quiet)
            (point / "a").unlink()
            (point / "a").write_bytes(b"thesis")
            made.remove()
            assert (point / "a").read_bytes() == b"thesis"


@pytest.mark.parametrize(
    ("asked", "paths"),
    [
        (FileToCreate("/d/f", 1, 1, False), ["/d/f"]),
        (FileToCreate("/d/f{}", 1, 1, False), ["/d/f0"]),
        (FileToCreate("/d/f{}.dat", 1, 3, False), ["/d/f0.dat", "/d/f1.dat", "/d/f2.dat"]),
    ],
)
def test_several_files_are_numbered(asked: FileToCreate, paths: list[str]) -> None:
    assert [file.path for file in planned_files(asked)] == paths


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (FileToCreate("/d/f", 1, 3, False), RefusalReason.FILES_UNNUMBERED.sentence(count=3)),
        (FileToCreate("/d/f", 0, 1, False), RefusalReason.FILES_OF_NOTHING.sentence(count=1, size=0)),
        (FileToCreate("/d/f", 1, 0, False), RefusalReason.FILES_OF_NOTHING.sentence(count=0, size=1)),
    ],
)
def test_files_that_cannot_be_numbered_or_hold_nothing(asked: FileToCreate, reason: str) -> None:
    with pytest.raises(CannotCreate) as raised:
        planned_files(asked)
    assert raised.value.refusals == (Refusal("/d/f", reason),)


@pytest.fixture
def extent_folder(tmp_path: Path) -> Path:
    """A folder whose filesystem tells its extents."""
    probe = tmp_path / "probe"
    with open(probe, "wb") as file:
        file.truncate(4096)
    if extents.unwritten_bytes(str(probe)) == 0:
        pytest.skip("the filesystem of the temporary folder does not tell its extents")
    return tmp_path


class TestExtents:
    def test_a_file_written_whole_has_no_notice(self, extent_folder: Path) -> None:
        CreatedFiles().create([PlannedFile(f"{extent_folder}/a", 5 * MIB + 1, True)], quiet)
        assert extents.notice(f"{extent_folder}/a") is None

    def test_what_was_only_allocated_is_noticed(self, extent_folder: Path) -> None:
        path = extent_folder / "a"
        subprocess.run(["fallocate", "-l", "8M", str(path)], check=True)
        assert extents.unwritten_bytes(str(path)) == 8 * MIB
        with open(path, "r+b") as file:
            file.seek(2 * MIB)
            file.write(b"x" * MIB)
        assert extents.notice(str(path)) == Notice(
            NoticeKind.UNWRITTEN_EXTENTS,
            f"7,340,032 of 8,388,608 bytes of {path} were never written, so reads of them do not reach the disk: write"
            " the file whole once, or let the plan `create` it",
        )

    def test_holes_count_and_many_extents_are_asked_for_in_batches(self, extent_folder: Path) -> None:
        path = extent_folder / "a"
        count = extents.BATCH + 100
        with open(path, "wb") as file:
            for i in range(count):
                file.seek(i * 8192)
                file.write(b"x" * 4096)
            file.truncate(count * 8192)
        assert extents.unwritten_bytes(str(path)) == count * 4096

    def test_a_filesystem_that_does_not_say_is_believed(self, shm: Path) -> None:
        if not str(shm).startswith("/dev/shm"):
            pytest.skip("there is no tmpfs here")
        with open(shm / "a", "wb") as file:
            file.truncate(MIB)
        assert extents.notice(str(shm / "a")) is None


def test_a_read_only_filesystem_is_called_that(shm: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may mount")
    need("mount")
    run("mount", "-t", "tmpfs", "-o", "ro", "ivypy-test", str(shm))
    try:
        with pytest.raises(CannotCreate) as refused:
            CreatedFiles().create([PlannedFile(f"{shm}/a", MIB, False)], quiet)
    finally:
        run("umount", str(shm))
    assert refused.value.refusals == (Refusal(f"{shm}/a", RefusalReason.FOLDER_READ_ONLY.sentence(folder=shm)),)


def test_marks_are_set_while_files_are_still_being_removed(marked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = CreatedFiles()
    planned = [PlannedFile(f"{marked}/{i}", 100, keep=i % 2 == 0) for i in range(8)]
    files.create(planned, quiet)
    written = dict.fromkeys(files.locked(), "")
    for file in planned:
        with open(file.path, "r+b") as there:
            there.write(b"a step")
    removing, go_on = threading.Event(), threading.Event()
    unlink = os.unlink

    def slowly(path: str) -> None:
        unlink(path)
        removing.set()
        go_on.wait()

    def meanwhile(fd: int, name: str, value: bytes) -> bool:
        """While the first is marked, the others are removed."""
        go_on.set()
        remover.join()
        return note(fd, name, value)

    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", slowly)
        patch.setattr(created_files, "note", meanwhile)
        remover = threading.Thread(target=files.remove)
        remover.start()
        assert removing.wait(60)
        try:
            assert files.settle(written) == []
        finally:
            go_on.set()
            remover.join()
    assert files.locked() == {lun_key(os.stat(file.path)) for file in planned if file.keep}
    assert {existing_at(file) for file in planned if file.keep} == {Existing.OURS}
    ended(files)
