"""A file's contents are part of what a user agreed to lose: whoever changes them, but ivypy, ends the consent."""

import contextlib
import mmap
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ivypy.protocol.messages import EditWorkloads
from ivypy.protocol.parameters import Parameters
from ivypy.protocol.payload import Consent, FileToCreate, Refusal, Setting, WorkloadToCreate
from ivypy.protocol.refusals import RefusalReason
from ivypy.slave.gate import file_changes, write_gate
from ivypy.slave.gate.file_changes import LATEST_NS, note, noted
from ivypy.slave.gate.open_for_writing import scan_processes
from ivypy.slave.luns import open_luns
from ivypy.slave.luns.created_files import CreatedFiles
from ivypy.slave.luns.existing_files import MARK, Existing, PlannedFile, existing_at, planned_files
from ivypy.slave.luns.lun_identity import WRITTEN
from ivypy.slave.workloads.workloads import Workloads
from tests.support.fake_engine import FakeEngine
from tests.support.loop_devices import agreed, need, run
from tests.support.refusals import refusals_in
from tests.support.waits import wait_until
from tests.support.workloads import WRITE

SIZE = 256 << 10
Change = Callable[[Path], None]


def write(path: Path) -> None:
    path.write_bytes(os.urandom(SIZE))


def write_in_the_middle(path: Path) -> None:
    fd = os.open(path, os.O_RDWR)
    os.pwrite(fd, b"somebody's", 100_000)
    os.close(fd)


def write_the_same(path: Path) -> None:
    """As a restore does."""
    fd = os.open(path, os.O_RDWR)
    os.pwrite(fd, os.pread(fd, SIZE, 0), 0)
    os.close(fd)


def write_mapped(path: Path) -> None:
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), SIZE) as there:
        there[100_000:100_010] = b"somebody's"


def truncate_and_extend(path: Path) -> None:
    os.truncate(path, SIZE - 1)
    os.truncate(path, SIZE)


def rename_over(path: Path) -> None:
    new = path.with_name("new")
    new.write_bytes(os.urandom(SIZE))
    new.rename(path)


def punch_a_hole(path: Path) -> None:
    run("fallocate", "--punch-hole", "-o", "65536", "-l", "65536", str(path))


def dd(path: Path) -> None:
    run("dd", "if=/dev/urandom", f"of={path}", "bs=4096", "seek=3", "count=1", "conv=notrunc", "status=none")


CHANGES: tuple[Change, ...] = (
    write, write_in_the_middle, write_the_same, write_mapped, truncate_and_extend, rename_over, punch_a_hole, dd,
)  # fmt: skip


def with_its_times(change: Change, path: Path) -> None:
    """Change it as what keeps times does: `touch -r`, rsync, a restore in place."""
    before = path.stat()
    change(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@dataclass
class WritingEngine(FakeEngine):
    """It writes when a test says that a step runs, and closes as the real one does."""

    open: dict[int, int] = field(default_factory=dict)  # descriptors by handle
    writable: set[int] = field(default_factory=set)

    def open_lun(self, path: str, writable: bool, name: str | None = None, direct: bool = True) -> int:
        handle = super().open_lun(path, writable, name, direct)
        self.open[handle] = os.open(path, os.O_RDWR if writable else os.O_RDONLY)
        if writable:
            self.writable.add(handle)
        return handle

    def write(self) -> None:
        for lun in self.writable & self.open.keys():
            os.pwrite(self.open[lun], os.urandom(4096), 8192)

    def close_lun(self, lun: int) -> None:
        super().close_lun(lun)
        os.close(self.open.pop(lun))


def begin(workloads: Workloads, *numbers: int) -> None:
    """A step that writes."""
    assert workloads.start(numbers) == []
    engine = workloads._engine
    assert isinstance(engine, WritingEngine)
    engine.write()


def step(workloads: Workloads, *numbers: int) -> None:
    begin(workloads, *numbers)
    workloads.note_ended()


def drive(path: Path, consent: Consent | None, end: str) -> list[str]:
    """A run of ivypy on a file; why it was refused."""
    engine = WritingEngine()
    workloads = Workloads(engine, "null", [None])  # type: ignore[arg-type]
    parameters = WRITE if consent else Parameters(fraction_read=1.0)
    refusals = workloads.create([WorkloadToCreate(0, "h+f+w", str(path), consent, parameters, 8, 4096)])
    if refusals:
        return [refusal.reason for refusal in refusals]
    begin(workloads, 0)
    if end == "deleted":
        workloads.note_ended()
        assert workloads.delete([0]) == []
    else:
        for fd in engine.open.values():
            os.close(fd)  # as the engine's end and that of a killed process do
        if end == "ended":
            workloads.settle()
        for lun in workloads._luns._luns.values():
            if lun.held >= 0:
                os.close(lun.held)
    return []


def after_the_note(path: Path) -> None:
    """Past what a note's own change may take: a change before that, with restored times, would not be noticed."""
    wait_until(
        lambda: time.clock_gettime_ns(file_changes.CLOCK_REALTIME_COARSE) > path.stat().st_ctime_ns + LATEST_NS,
        "the clock goes on",
    )


@pytest.fixture(params=["disk", "memory"])
def file(request: pytest.FixtureRequest, tmp_path: Path, shm: Path) -> Path:
    path = (tmp_path if request.param == "disk" else shm) / "lun"
    path.write_bytes(os.urandom(SIZE))
    return path


def has_attributes(path: Path) -> bool:
    """Whether its filesystem has user attributes: of another file, since a note would change this one."""
    with open(path.with_name("tried"), "wb") as there:
        return note(there.fileno(), "user.ivypy.test", b"x")


@pytest.mark.slow
@pytest.mark.parametrize("restored", [False, True], ids=["", "restored"])
@pytest.mark.parametrize("driven", [False, True], ids=["", "driven"])
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_whoever_changes_a_file_ends_the_consent(change: Change, driven: bool, restored: bool, file: Path) -> None:
    need("fallocate", "dd")
    consent = agreed(str(file))
    if driven:
        assert drive(file, consent, "deleted") == []
        after_the_note(file)
    with_its_times(change, file) if restored else change(file)
    before = file.read_bytes()
    refused = drive(file, consent, "deleted")
    assert len(refused) == 1
    reasons = {RefusalReason.ANOTHER_LUN if change is rename_over else RefusalReason.CONTENTS_CHANGED}
    assert refusals_in(refused[0]) & reasons
    assert file.read_bytes() == before
    assert drive(file, agreed(str(file)), "deleted") == [], "the user may agree again"


@pytest.mark.parametrize("restored", [False, True], ids=["", "restored"])
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_kept_file_that_somebody_changed_is_not_ours(change: Change, restored: bool, file: Path) -> None:
    need("fallocate", "dd")
    if not has_attributes(file):
        pytest.skip("its filesystem has no user attributes")
    with open(file, "rb") as there:
        assert note(there.fileno(), "user.ivypy", b"made")
    kept = PlannedFile(str(file), SIZE, True)
    assert existing_at(kept) is Existing.OURS
    after_the_note(file)
    with_its_times(change, file) if restored else change(file)
    expected = RefusalReason.NOT_OURS.sentence() if change is rename_over else Existing.CHANGED
    assert existing_at(kept) == expected


ENDS = ("deleted", "ended", "killed", "read only")
others = st.sampled_from([write, write_in_the_middle, write_mapped, truncate_and_extend])
acts = st.lists(st.one_of(st.sampled_from(ENDS), st.tuples(others, st.booleans())), max_size=6)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(acts)
def test_a_token_holds_over_ivypys_own_runs_and_over_nothing_else(done: list[str | tuple[Change, bool]]) -> None:
    """Whatever comes after what: a run that was killed counts as somebody."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "lun"
        write(path)
        if not has_attributes(path):
            pytest.skip("its filesystem has no user attributes")
        consent, holds = agreed(str(path)), True
        for act in done:
            if act == "read only":
                assert drive(path, None, "ended") == []
            elif isinstance(act, str):
                refused = drive(path, consent, act)
                assert (refused == []) is holds, refused
                holds = holds and act != "killed"
            else:
                after_the_note(path)
                change, restored = act
                with_its_times(change, path) if restored else change(path)
                holds = False
            assert (agreed(str(path)) == consent) is holds


def test_without_attributes_a_run_goes_on_and_the_next_one_asks_again(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_changes, "put", lambda fd, name, value: False)
    consent = agreed(str(file))
    workloads = Workloads(WritingEngine(), "null", [None])  # type: ignore[arg-type]
    for number in range(2):  # the same slave has written it itself
        asked = WorkloadToCreate(number, "h+f+w", str(file), consent, WRITE, 8, 4096)
        assert workloads.create([asked]) == []
        step(workloads, number)
        assert workloads.delete([number]) == []
    (refused,) = drive(file, consent, "ended")
    assert refusals_in(refused) & {RefusalReason.CONTENTS_CHANGED}


def test_what_another_program_still_writes_is_not_noted_as_ivypys(file: Path) -> None:
    consent = agreed(str(file))
    workloads = Workloads(WritingEngine(), "null", [None])  # type: ignore[arg-type]
    assert workloads.create([WorkloadToCreate(0, "h+f+w", str(file), consent, WRITE, 8, 4096)]) == []
    step(workloads, 0)
    with open(file, "r+b") as other:
        other.write(b"somebody's")
        assert workloads.delete([0]) == []
    assert agreed(str(file)) != consent


def test_a_note_is_the_files_own(tmp_path: Path) -> None:
    """A copy with its attributes and times is another file, and anything else in the attribute is no note."""
    path, copy = tmp_path / "a", tmp_path / "b"
    write(path)
    with open(path, "rb") as there:
        if not note(there.fileno(), WRITTEN, b"a b"):
            pytest.skip("its filesystem has no user attributes")
    assert noted(str(path), WRITTEN) == b"a b"
    need("cp")
    run("cp", "-a", str(path), str(copy))
    assert os.getxattr(copy, WRITTEN) == os.getxattr(path, WRITTEN) and noted(str(copy), WRITTEN) is None
    for text in (b"", b"x", b"a b c d", b"1 2 3", os.urandom(20)):
        os.setxattr(path, WRITTEN, text)
        assert noted(str(path), WRITTEN) is None


def test_changes_in_one_tick_have_one_time_so_it_is_waited_for(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the kernel takes files' times from a clock that ticks, or the filesystem keeps whole seconds."""
    slept: list[float] = []
    now_ns = 1_700_000_000 * 10**9 + 400_000_000
    monkeypatch.setattr(time, "clock_gettime_ns", lambda clock: now_ns)
    monkeypatch.setattr(time, "sleep", slept.append)
    for changed_ns in (now_ns, now_ns - 4_000_000, now_ns - 10_000_000, now_ns - 400_000_000, now_ns - 2_400_000_000):
        file_changes._wait_past(changed_ns)
    assert slept == [0.01, 0.006, 1.6]


def test_a_created_file_is_written_in_every_step(tmp_path: Path) -> None:
    """Its slave has it open for writing all the time."""
    files = CreatedFiles()
    (planned,) = planned_files(FileToCreate(str(tmp_path / "lun"), SIZE, 1, False))
    files.create([planned], lambda notice: None)
    try:
        consent = agreed(planned.path)
        workloads = Workloads(WritingEngine(), "null", [None], locked=files.locked)  # type: ignore[arg-type]
        for number in range(2):
            asked = WorkloadToCreate(number, "h+f+w", planned.path, consent, WRITE, 8, 4096)
            assert workloads.create([asked]) == []
            step(workloads, number)
            assert workloads.delete([number]) == []
    finally:
        files.remove()


def test_what_changed_before_any_step_ran_is_not_noted_as_ivypys(file: Path) -> None:
    consent = agreed(str(file))
    workloads = Workloads(FakeEngine(), "null", [None])  # type: ignore[arg-type]
    assert workloads.create([WorkloadToCreate(0, "h+f+w", str(file), consent, WRITE, 8, 4096)]) == []
    write_in_the_middle(file)
    assert workloads.delete([0]) == []
    assert agreed(str(file)) != consent
    assert workloads.create([WorkloadToCreate(0, "h+f+w", str(file), consent, WRITE, 8, 4096)]) != []


def test_a_signature_that_was_found_between_steps_is_not_noted_as_ivypys(file: Path) -> None:
    consent = agreed(str(file))
    workloads = Workloads(WritingEngine(), "null", [None])  # type: ignore[arg-type]
    assert workloads.create([WorkloadToCreate(0, "h+f+w", str(file), consent, WRITE, 8, 4096)]) == []
    step(workloads, 0)
    assert workloads.reinspect() == ([], [])
    with open(file, "r+b") as other:
        other.write(b"XFSB")
    refusals, _ = workloads.reinspect()
    assert refusals_in(" ".join(one.reason for one in refusals)) >= {RefusalReason.SIGNED}
    workloads.settle()
    assert agreed(str(file)) != consent


@pytest.mark.parametrize("when", ["never", "between steps", "afterwards"])
def test_a_kept_file_that_somebody_changed_while_a_run_had_it_closed_is_not_ours(when: str, file: Path) -> None:
    if not has_attributes(file):
        pytest.skip("its filesystem has no user attributes")
    file.unlink()
    planned = PlannedFile(str(file), SIZE, True)
    files = CreatedFiles()
    files.create([planned], lambda notice: None)
    workloads = Workloads(WritingEngine(), "null", [None], locked=files.locked)  # type: ignore[arg-type]
    consent = agreed(str(file))
    for number in range(2):
        asked = WorkloadToCreate(number, "h+f+w", str(file), consent, WRITE, 8, 4096)
        refused = workloads.create([asked])
        assert (refused == []) is (number == 0 or when != "between steps")
        if not refused:
            step(workloads, number)
            assert workloads.delete([number]) == []
        if when == ("between steps", "afterwards")[number]:
            after_the_note(file)
            write_in_the_middle(file)
    files.settle(workloads.written)
    for fd in files._locks.values():
        os.close(fd)
    assert existing_at(planned) is (Existing.OURS if when == "never" else Existing.CHANGED)


def on_files(*paths: Path, parameters: Parameters = WRITE) -> tuple[Workloads, list[Consent]]:
    """An instance on each, prepared."""
    workloads = Workloads(WritingEngine(), "null", [None])  # type: ignore[arg-type]
    consents = [agreed(str(path)) for path in paths]
    asked = [
        WorkloadToCreate(i, f"h+{path.name}+w", str(path), consent, parameters, 8, 4096)
        for i, (path, consent) in enumerate(zip(paths, consents, strict=True))
    ]
    assert workloads.create(asked) == [] and workloads.prepare(asked) == []
    return workloads, consents


def refused_as_changed(refusals: list[Refusal]) -> bool:
    return [refusals_in(one.reason) & {RefusalReason.CONTENTS_CHANGED} for one in refusals] == [
        {RefusalReason.CONTENTS_CHANGED}
    ]


def changed_by_somebody(path: Path) -> bytes:
    after_the_note(path)
    write_in_the_middle(path)
    return path.read_bytes()


@pytest.mark.parametrize("then", ["inspected", "deleted", "driven"])
def test_what_changed_after_it_was_prepared_is_somebodys(then: str, file: Path) -> None:
    workloads, (consent,) = on_files(file)
    theirs = changed_by_somebody(file)
    if then == "inspected":
        assert refused_as_changed(workloads.reinspect()[0])
    elif then == "driven":
        assert refused_as_changed(workloads.start([0]))
    assert workloads.delete([0]) == []
    assert agreed(str(file)) != consent and file.read_bytes() == theirs


@pytest.mark.parametrize("then", ["inspected", "deleted", "driven", "ended"])
def test_what_changed_between_two_steps_is_somebodys(then: str, file: Path) -> None:
    workloads, (consent,) = on_files(file)
    step(workloads, 0)
    assert workloads.reinspect() == ([], [])
    step(workloads, 0)
    theirs = changed_by_somebody(file)
    if then == "inspected":
        assert refused_as_changed(workloads.reinspect()[0])
    elif then == "driven":
        assert refused_as_changed(workloads.start([0]))
    workloads.settle() if then == "ended" else workloads.delete([0])
    assert agreed(str(file)) != consent and file.read_bytes() == theirs


@pytest.mark.parametrize("idle", [Parameters(fraction_read=1.0), Parameters(fraction_read=0.5, iops=0)])
def test_what_changed_while_a_step_did_not_write_it_is_somebodys(idle: Parameters, file: Path) -> None:
    workloads, (consent,) = on_files(file, parameters=idle)
    assert workloads.start([0]) == []
    changed_by_somebody(file)
    workloads.note_ended()
    assert refused_as_changed(workloads.reinspect()[0])
    assert workloads.delete([0]) == []
    assert agreed(str(file)) != consent


def test_what_changed_while_a_step_drove_another_file_is_somebodys(file: Path) -> None:
    other = file.with_name("other")
    write(other)
    workloads, (consent, of_other) = on_files(file, other)
    begin(workloads, 0)
    theirs = changed_by_somebody(other)
    workloads.note_ended()
    assert refused_as_changed(workloads.reinspect()[0])
    assert workloads.delete([0, 1]) == []
    assert agreed(str(other)) != of_other and other.read_bytes()[100_000:] == theirs[100_000:]
    if has_attributes(other):
        assert agreed(str(file)) == consent


@pytest.mark.parametrize("somebody", [False, True])
def test_an_edit_that_begins_to_write_is_a_step_that_writes(somebody: bool, file: Path) -> None:
    workloads, (consent,) = on_files(file, parameters=replace(WRITE, iops=0))
    edit = EditWorkloads(1, 1, (Setting(0, WRITE),))
    assert workloads.start([0]) == []
    if somebody:
        changed_by_somebody(file)
        assert refused_as_changed(workloads.start_edited(edit))
        return
    assert workloads.start_edited(edit) == []
    workloads.note_edited(edit)
    step(workloads, 0)
    assert workloads.reinspect() == ([], []) and workloads.delete([0]) == []
    if has_attributes(file):
        assert agreed(str(file)) == consent


@pytest.mark.parametrize("who", ["nobody", "somebody", "perhaps"])
def test_where_no_lease_shows_who_writes_a_file_its_processes_do(
    who: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_attributes(file):
        pytest.skip("its filesystem has no user attributes")
    workloads, (consent,) = on_files(file)
    step(workloads, 0)
    monkeypatch.setattr(open_luns, "is_written", lambda path: None)
    seen = replace(scan_processes(Path("/")), denied=int(who == "perhaps"), hidden="")
    monkeypatch.setattr(write_gate, "scan_processes", lambda root: replace(seen, writing=scan_processes(root).writing))
    with contextlib.ExitStack() as undo:
        if who == "somebody":
            writer = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=undo.enter_context(open(file, "r+b")))
            undo.callback(writer.communicate)
        assert workloads.delete([0]) == []
    assert (agreed(str(file)) == consent) is (who == "nobody")
    assert workloads.unnoted == ({str(file)} if who == "perhaps" else set())


def test_two_plans_that_use_one_file_in_turn_keep_each_others_notes(file: Path) -> None:
    """One has it under `files`, with a token, the other under `create`, kept."""
    file.unlink()
    planned = PlannedFile(str(file), SIZE, True)
    tokens: list[Consent] = []
    for turn in range(3):
        files = CreatedFiles()
        files.create([planned], lambda notice: None)
        if turn == 0 and noted(str(file), MARK) is None:
            pytest.skip("its filesystem has no user attributes")
        for fd in files._locks.values():
            os.pwrite(fd, b"a step", 0)
        files.settle(dict.fromkeys(files.locked(), ""))
        for fd in files._locks.values():
            os.close(fd)
        tokens.append(agreed(str(file)))
        assert tokens[0] == tokens[-1] and existing_at(planned) is Existing.OURS
        assert drive(file, tokens[0], ("deleted", "ended")[turn % 2]) == []
        assert agreed(str(file)) == tokens[0] and existing_at(planned) is Existing.OURS
        after_the_note(file)


@pytest.mark.parametrize("when", ["while it is asked who writes", "just before the note"])
def test_what_somebody_changes_while_it_is_closed_is_not_adopted(
    when: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workloads, (consent,) = on_files(file)
    step(workloads, 0)
    name = "is_written" if when.startswith("while") else "note_all"
    real = getattr(open_luns, name)
    done: list[Path] = []

    def meanwhile(*given: object) -> object:
        if not done:
            done.append(file)
            changed_by_somebody(file)
        return real(*given)

    monkeypatch.setattr(open_luns, name, meanwhile)
    assert workloads.delete([0]) == []
    monkeypatch.undo()
    assert done and agreed(str(file)) != consent
    asked = WorkloadToCreate(1, "h+f+w", str(file), consent, WRITE, 8, 4096)
    assert workloads.create([asked]) != []
