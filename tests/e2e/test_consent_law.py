"""What is opened to be written is exactly what was agreed to, by identity, at that moment; all else is refused.

On real files, by the real discovery and the real opening on a host; the engine that opens notes what it was given.
"""

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ivypy.master.errors import RefusedError
from ivypy.master.run.setup.consent import Target, check_same
from ivypy.protocol.parameters import Parameters
from ivypy.protocol.payload import Consent, FileToCreate, Identity, Lun, Refusal, WorkloadToCreate
from ivypy.protocol.refusals import RefusalReason
from ivypy.slave.luns.created_files import CreatedFiles
from ivypy.slave.luns.discovery import inspect_created, inspect_luns, list_luns
from ivypy.slave.luns.existing_files import CannotCreate, all_planned_files
from ivypy.slave.workloads.workloads import Workloads
from tests.support.devices import losetup
from tests.support.fake_engine import FakeEngine
from tests.support.loop_devices import agreed, loop_device, needs_loops
from tests.support.refusals import refusals_in

WRITE = Parameters(fraction_read=0.0)
NAMES = "abcd"
SIZE = 8192


@dataclass
class NotingEngine(FakeEngine):
    """Which files it was told to open for writing, by inode: those that it really would."""

    writes: list[int] = field(default_factory=list)

    def open_lun(self, path: str, writable: bool, name: str | None = None, direct: bool = True) -> int:
        if writable:
            self.writes.append(os.stat(path).st_ino)
        return super().open_lun(path, writable, name, direct)


@dataclass
class GrowingEngine(FakeEngine):
    """A file, or what is behind a device, grows just before it is opened: its end is where the engine finds it."""

    grow: Callable[[], object] = lambda: None

    def open_lun(self, path: str, writable: bool, name: str | None = None, direct: bool = True) -> int:
        self.grow()
        return super().open_lun(path, writable, name, direct)


def refused_as_grown(lun: str, grow: Callable[[], object]) -> bool:
    """Whether a LUN that grows between the look and the opening is refused, and closed."""
    engine = GrowingEngine(grow=grow)
    workloads = Workloads(engine, "null", [None])  # type: ignore[arg-type]
    refusals = workloads.create([WorkloadToCreate(0, "h+w", lun, agreed(lun), WRITE, 8, WRITE.blocksize)])
    return (
        [one.what for one in refusals] == [lun]
        and refusals_in(refusals[0].reason) == {RefusalReason.ANOTHER_LUN}
        and "close_lun 0" in engine.did
    )


def test_a_file_that_grows_while_it_is_opened_is_not_written(tmp_path: Path) -> None:
    place = tmp_path / "lun"
    place.write_bytes(os.urandom(SIZE))

    def append() -> None:
        with place.open("ab") as file:
            file.write(b"somebody's records")

    assert refused_as_grown(str(place), append)


@needs_loops
def test_a_device_that_grows_while_it_is_opened_is_not_written(shm: Path) -> None:
    with loop_device(shm) as loop:
        (image,) = shm.glob("backing-*")

        def enlarge() -> None:
            os.truncate(image, 64 << 20)
            losetup("-c", loop)

        assert refused_as_grown(loop, enlarge)


@dataclass
class Folder:
    """Files a to d, and what somebody does to them. A removed one is kept open: its inode is not given away."""

    path: Path
    kept: list[int] = field(default_factory=list)

    def at(self, name: str) -> Path:
        return self.path / name

    def new(self, name: str) -> None:
        place = self.path / "new"
        place.write_bytes(os.urandom(SIZE))
        self.replace(place, self.at(name))

    def replace(self, source: Path, target: Path) -> None:
        self.keep(target)
        source.rename(target)

    def keep(self, place: Path) -> None:
        if place.exists():
            self.kept.append(os.open(place, os.O_RDONLY))

    def remove(self, name: str) -> None:
        self.keep(self.at(name))
        self.at(name).unlink(missing_ok=True)

    def swap(self, one: str, other: str) -> None:
        if one != other and self.at(one).is_file() and self.at(other).is_file():
            self.at(one).rename(self.path / "third")
            self.at(other).rename(self.at(one))
            (self.path / "third").rename(self.at(other))

    def link(self, name: str, to: str) -> None:
        if name != to:
            self.remove(name)
            self.at(name).symlink_to(self.at(to))

    def second_name(self, name: str) -> None:
        if self.at(name).is_file() and not (self.path / f"{name}2").exists():
            (self.path / f"{name}2").hardlink_to(self.at(name).resolve())

    def grow(self, name: str) -> None:
        if self.at(name).is_file():
            with open(self.at(name), "ab") as file:
                file.write(bytes(SIZE))

    def there(self, name: str) -> int:
        """The inode that its path leads to; 0 where it leads nowhere."""
        try:
            return self.at(name).stat().st_ino
        except OSError:
            return 0


Act = Callable[[Folder], None]
names = st.sampled_from(NAMES)
acts: st.SearchStrategy[Act] = st.one_of(
    names.map(lambda name: lambda folder: folder.new(name)),
    names.map(lambda name: lambda folder: folder.remove(name)),
    names.map(lambda name: lambda folder: folder.grow(name)),
    names.map(lambda name: lambda folder: folder.second_name(name)),
    st.tuples(names, names).map(lambda two: lambda folder: folder.swap(*two)),
    st.tuples(names, names).map(lambda two: lambda folder: folder.link(*two)),
)


def looked(folder: Path) -> list[Lun]:
    found, _ = list_luns(False, [f"{folder}/[{NAMES}]"])
    return inspect_luns([lun.path for lun in found])[0]


def asked(luns: Sequence[Lun]) -> list[WorkloadToCreate]:
    return [
        WorkloadToCreate(i, f"h+{lun.path}+w", lun.path, Consent(lun.identity, ((0, lun.size),)), WRITE, 1, 4096)
        for i, lun in enumerate(luns)
        if lun.identity is not None
    ]


@pytest.mark.slow
@settings(max_examples=50)  # each looks at all that processes have open
@given(st.sets(names, min_size=1), st.lists(acts, max_size=4), st.lists(acts, max_size=5), st.booleans())
def test_whatever_is_done_to_files_only_those_agreed_to_are_opened_for_writing(
    present: set[str], before: list[Act], between: list[Act], together: bool
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Folder(Path(name))
        for one in sorted(present):
            folder.new(one)
        for act in before:
            act(folder)
        luns = looked(folder.path)
        seen = {lun.path: folder.there(Path(lun.path).name) for lun in luns}
        for act in between:
            act(folder)
        engine = NotingEngine()
        workloads = Workloads(engine, "null", [None])  # type: ignore[arg-type]
        asking = asked(luns)
        refused: list[Refusal] = []
        for some in [asking] if together else [[one] for one in asking]:
            refused += workloads.create(some)
        same = {seen[w.lun] for w in asking if seen[w.lun] == folder.there(Path(w.lun).name)}
        assert set(engine.writes) <= same, "what is written is what was agreed to, where it still is"
        untouched = not between and all(not lun.refusals for lun in luns)
        assert not untouched or (refused == [] and set(engine.writes) == same), "and it is written"
        workloads.delete([w.number for w in asking if w.number in workloads._instances])
        for fd in folder.kept:
            os.close(fd)


@pytest.mark.slow
@settings(max_examples=50)
@given(st.lists(names, max_size=3), st.lists(acts, max_size=4), st.booleans())
def test_only_created_files_are_added_to_the_agreed_list(standing: list[str], between: list[Act], keep: bool) -> None:
    """Files that are there stay whose they are; one that took a created one's place is not written."""
    with tempfile.TemporaryDirectory() as name:
        folder = Folder(Path(name))
        for one in standing:
            folder.new(one)
        before = {one: folder.at(one).read_bytes() for one in standing}
        files = CreatedFiles()
        wanted = all_planned_files([FileToCreate(f"{name}/{one}", SIZE, 1, keep) for one in NAMES])
        try:
            files.create(wanted, lambda text: None)
        except CannotCreate:
            assert before and {one: folder.at(one).read_bytes() for one in before} == before
            assert {path.name for path in folder.path.iterdir()} == before.keys(), "nothing else is left"
            return
        luns, _ = inspect_created([(file.path, files.held(file.path)) for file in wanted])
        made = {lun.path: folder.there(Path(lun.path).name) for lun in luns}
        for act in between:
            act(folder)
        engine = NotingEngine()
        workloads = Workloads(engine, "null", [None], locked=files.locked)  # type: ignore[arg-type]
        workloads.create(asked(luns))
        assert set(engine.writes) <= set(made.values())
        assert between or set(engine.writes) == set(made.values())
        workloads.delete(list(workloads._instances))
        files.remove()
        for fd in [*folder.kept, *files._locks.values()]:
            os.close(fd)


def target(host: str, path: str, serial: str, created: bool) -> Target:
    identity = Identity("m", SIZE, (("serial", serial),))
    return Target(host, Lun(path, "block", SIZE, 512, {}, (), (), identity=identity), created)


targets = st.lists(
    st.builds(target, st.sampled_from(["h1", "h2"]), names, st.sampled_from(["s", "t"]), st.booleans()),
    unique_by=lambda one: (one.host, one.lun.path),
)


@given(targets, targets)
def test_a_run_uses_exactly_the_list_that_was_agreed_to(agreed: list[Target], now: list[Target]) -> None:
    """Whatever else may be written is what the plan created."""
    lists = [{(t.host, t.lun.path, t.lun.identity) for t in some if not t.created} for some in (agreed, now)]
    if lists[0] == lists[1]:
        check_same(agreed, now)
    else:
        with pytest.raises(RefusedError, match="is not written"):
            check_same(agreed, now)
