"""Workload instances: created whole or not at all, every refusal said at once, LUNs opened once and never unagreed."""

import errno
import os
import re
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ivypy.protocol import messages as m
from ivypy.protocol.parameters import MAX, Iosequencer, Parameters, Until, VolumeKind, engine_fields
from ivypy.protocol.payload import Consent, Identity, Notice, NoticeKind, Refusal, Setting
from ivypy.protocol.refusals import RefusalReason
from ivypy.slave.devices.block_devices import ROOT
from ivypy.slave.engine import _engine
from ivypy.slave.gate.write_gate import Surroundings
from ivypy.slave.luns import open_luns, validation
from ivypy.slave.luns.lun_identity import identity_of
from ivypy.slave.luns.lun_target import LunTarget, find_target
from ivypy.slave.workloads import workloads as workloads_module
from ivypy.slave.workloads.workloads import Workloads
from tests.support.devices import loops_alone, losetup
from tests.support.fake_engine import FakeEngine
from tests.support.loop_devices import agreed, attach, detach, is_over, loop_device, mounted, need, needs_loops, run
from tests.support.refusals import found_in, refusals_in
from tests.support.slave_client import u32
from tests.support.workloads import WRITE, workloads_on


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


@pytest.fixture
def workloads(engine: FakeEngine) -> Workloads:
    return Workloads(engine, "null", [None, None])  # type: ignore[arg-type]


@pytest.fixture
def file(tmp_path: Path) -> str:
    (tmp_path / "lun").write_bytes(os.urandom(1 << 20))
    return str(tmp_path / "lun")


@pytest.fixture
def loop(shm: Path) -> Iterator[str]:
    with loop_device(shm) as path:
        yield path


def test_a_lun_is_opened_once_per_consent_and_closed_with_its_last_instance(
    engine: FakeEngine, workloads: Workloads, file: str, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to("lun")
    reads, writes = workloads_on(file, Parameters(), Parameters()), workloads_on(file, WRITE, consent=True, first=5)
    assert workloads.create(reads) == []
    assert workloads.create(writes) == []
    assert workloads.create(workloads_on(str(tmp_path / "link"), Parameters(), first=9)) == []
    assert [word for word in engine.did if word.startswith("open")] == [f"open_lun {file} ro", f"open_lun {file} rw"]
    assert workloads.delete([0, 1]) == []
    assert "close_lun 0" not in engine.did
    assert workloads.delete([9, 5]) == []
    assert engine.did[-2:] == ["close_lun 0", "close_lun 1"]


def test_a_lun_is_opened_once_more_through_the_page_cache_with_one_hold(
    engine: FakeEngine, workloads: Workloads, file: str
) -> None:
    through_cache = replace(WRITE, direct=False)
    assert workloads.create(workloads_on(file, WRITE, through_cache, through_cache, consent=True)) == []
    assert workloads.create(workloads_on(file, Parameters(direct=False), first=5)) == []
    assert [word for word in engine.did if word.startswith(("open", "create"))] == [
        f"open_lun {file} rw",
        f"open_lun {file} rw buffered",
        "create 0 on 0 by 0",
        "create 1 on 1 by 1",
        "create 2 on 1 by 0",
        f"open_lun {file} ro buffered",
        "create 5 on 2 by 1",
    ]
    assert workloads.delete([5, 1, 2]) == [] and engine.did[-1] == "close_lun 2"
    assert workloads.delete([0]) == [] and engine.did[-2:] == ["close_lun 0", "close_lun 1"]


def test_a_lun_that_a_step_wrote_is_opened_through_the_page_cache_without_new_consent(
    workloads: Workloads, file: str
) -> None:
    assert workloads.create(workloads_on(file, WRITE, consent=True)) == []
    (buffered,) = workloads_on(file, replace(WRITE, direct=False), consent=True, first=1)
    assert workloads.start([0]) == []
    Path(file).write_bytes(os.urandom(1 << 20))  # as the step does
    workloads.note_ended()
    assert workloads.create([buffered]) == []
    assert workloads.reinspect()[0] == []


@pytest.mark.parametrize(
    ("kind", "block", "direct", "size", "fits"),
    [
        ("file", 512, True, 1000, False),
        ("file", 4096, True, 512, False),
        ("file", 4096, False, 1000, True),
        ("block", 512, True, 512, True),
        ("block", 512, False, 512, False),
        ("block", 512, False, 4096, True),
        ("block", 16384, False, 4096, False),
    ],
)
def test_what_a_blocksize_is_a_multiple_of(kind: str, block: int, direct: bool, size: int, fits: bool) -> None:
    lun = LunTarget("/lun", kind, 1 << 20, block, "", "", None, ("file", 0, 0))
    (one,) = workloads_on("/lun", Parameters(blocksize=size, direct=direct))
    assert (validation.workload_faults(one, lun) == []) is fits


def test_instances_are_assigned_evenly_to_threads_over_several_messages(
    engine: FakeEngine, workloads: Workloads, file: str
) -> None:
    workloads.create(workloads_on(file, Parameters(), Parameters(), Parameters()))
    workloads.create(workloads_on(file, Parameters(), first=3))
    assert [word for word in engine.did if word.startswith("create")] == [
        "create 0 on 0 by 0",
        "create 1 on 0 by 1",
        "create 2 on 0 by 0",
        "create 3 on 0 by 1",
    ]


def test_every_refusal_is_reported_at_once_and_nothing_is_created(
    engine: FakeEngine, workloads: Workloads, file: str, tmp_path: Path
) -> None:
    workloads.create(workloads_on(file, Parameters()))
    before = list(engine.did)
    missing, folder = str(tmp_path / "missing"), str(tmp_path)
    refused = workloads.create(
        [
            *workloads_on(file, Parameters()),
            *workloads_on(missing, Parameters(), first=1),
            *workloads_on(folder, Parameters(), first=2),
            *workloads_on("/dev/null", Parameters(), first=3),
            *workloads_on(file, replace(WRITE, maxtags=9), first=4),
            *workloads_on(file, Parameters(blocksize=1000), first=5),
            *workloads_on(file, Parameters(blocksize=2 << 20), first=6),
            *workloads_on(file, Parameters(range=(0, 1 << 30)), first=7),
            *workloads_on(file, Parameters(), first=8),
            *workloads_on(file, Parameters(), first=8),
        ]
    )
    eight = Refusal(f"h+{file}+w8", "its number 8 is another instance's: choose another number")
    block = find_target(file, Surroundings.read()).block
    assert refused == [
        Refusal(f"h+{file}+w0", "its number 0 is another instance's: choose another number"),
        Refusal(
            f"h+{missing}+w1",
            f"{missing}: " + RefusalReason.NOTHING_THERE.sentence(error="No such file or directory"),
        ),
        Refusal(f"h+{folder}+w2", f"{folder}: {RefusalReason.FOLDER.sentence()}"),
        Refusal("h+/dev/null+w3", f"/dev/null: {RefusalReason.NO_DEVICE_OR_FILE.sentence()}"),
        Refusal(f"h+{file}+w4", "its ceiling of 8 tags is not within maxtags (9) and 8192"),
        Refusal(f"h+{file}+w4", RefusalReason.WRITES_UNAGREED.sentence()),
        Refusal(
            f"h+{file}+w5",
            f"blocksize is 1,000, and {file} takes multiples of {block:,} bytes: choose one of these",
        ),
        Refusal(
            f"h+{file}+w6",
            f"{file} has 1 MiB, no block of 2 MiB: choose a smaller blocksize or a larger LUN",
        ),
        Refusal(
            f"h+{file}+w7",
            f"range ends at 1,073,741,824, and {file} at 1,048,576: choose an end within it",
        ),
        eight,
        eight,
    ]
    assert engine.did == before


def test_more_tags_than_the_kernel_has_room_for_are_refused(
    file: str, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited = Workloads(engine, "libaio", [None, None])  # type: ignore[arg-type]
    left = 100
    monkeypatch.setattr(workloads_module, "aio_left", lambda: left)
    assert limited.create(workloads_on(file, *[Parameters()] * 13)) == [
        Refusal(
            "13 workload instances",
            "they need room for 106 more I/Os in flight, and fs.aio-max-nr leaves 100:"
            " raise it (sysctl -w fs.aio-max-nr=1048576), or lower maxtags",
        )
    ]
    assert limited.create(workloads_on(file, *[Parameters()] * 12)) == []  # 96, and one for each thread
    assert limited.prepare([]) == []  # now the kernel holds room for these
    left = 8
    assert limited.create(workloads_on(file, Parameters(), first=20)) == []
    assert len(limited.create(workloads_on(file, Parameters(), first=21))) == 1
    assert limited.delete([20]) == []
    assert limited.create(workloads_on(file, Parameters(), first=21)) == []


def test_tags_are_counted_before_there_is_anything_to_drive(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workloads_module, "aio_left", lambda: 100)
    limited = Workloads(engine, "libaio", [None, None])  # type: ignore[arg-type]
    assert limited.against_tags(0) == limited.against_tags(98) == []
    (refusal,) = limited.against_tags(99)
    assert refusal.what == "the plan's workloads"
    assert refusal.reason.startswith("they need room for 101 more I/Os in flight, and fs.aio-max-nr leaves 100:")
    assert Workloads(engine, "io_uring", [None]).against_tags(99) == []  # type: ignore[arg-type]


def test_another_backend_is_not_limited(file: str, workloads: Workloads, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workloads_module, "aio_left", lambda: 0)
    assert workloads.create(workloads_on(file, Parameters())) == []


def edit(number: int, parameters: Parameters) -> m.EditWorkloads:
    return m.EditWorkloads(1, 1, (Setting(number, parameters),))


def test_an_edit_is_checked_against_what_is_in_force(workloads: Workloads, file: str) -> None:
    workloads.create(workloads_on(file, Parameters(iops=10.0)))
    faster = edit(0, Parameters(iops=20.0))
    assert workloads.check_edit(faster) == []
    workloads.note_edited(faster)
    assert workloads.check_edit(edit(0, WRITE)) == [Refusal(f"h+{file}+w0", RefusalReason.EDITED_TO_WRITE.sentence())]
    assert workloads.check_edit(edit(7, Parameters())) == [
        Refusal("workload instance number 7", "there is no such instance")
    ]
    assert workloads.check_edit(m.EditWorkloads(1, 1, (Setting(0, Parameters()),) * 2)) == [
        Refusal(f"h+{file}+w0", "it is edited twice at once: send one setting for each")
    ]


def test_what_does_not_exist_or_is_held_is_not_deleted(engine: FakeEngine, workloads: Workloads, file: str) -> None:
    workloads.create(workloads_on(file, Parameters(), Parameters()))
    assert workloads.delete([0, 5]) == [Refusal("workload instance number 5", "there is no such instance")]
    engine.faults["delete 0"] = OSError(errno.EBUSY, "3 I/Os of the instance have not come back")
    assert workloads.delete([0, 1]) == [
        Refusal(f"h+{file}+w0", "it cannot be deleted: 3 I/Os of the instance have not come back")
    ]
    assert workloads.check_go(m.Go(1, 0, 1, u32(0), u32(0))) is None
    assert workloads.check_go(m.Go(1, 0, 1, u32(1), u32(0))) == "there are no instances 1: create them first"


def test_too_many_open_files_are_reported_once(engine: FakeEngine, workloads: Workloads, tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).write_bytes(bytes(1 << 20))
    engine.faults[f"open_lun {tmp_path}/b"] = OSError(errno.EMFILE, "Too many open files")
    wanted = [one for n, name in enumerate("abc") for one in workloads_on(str(tmp_path / name), Parameters(), first=n)]
    ((what, why),) = [(refusal.what, refusal.reason) for refusal in workloads.create(wanted)]
    assert what == "3 LUNs"
    assert found_in([why]) == [RefusalReason.TOO_MANY_OPEN]
    assert engine.did[-1] == "close_lun 0"


def test_parameters_as_the_engine_takes_them() -> None:
    assert engine_fields(Parameters(iosequencer=Iosequencer.SEQUENTIAL, iops=MAX, range=(4096, 8192))) == {
        "iosequencer": "sequential",
        "blocksize": 4096,
        "fraction_read": 1.0,
        "operations": (),
        "align": 0,
        "sequential": 0.0,
        "streams": 1,
        "cursors": "shared",
        "maxtags": 1,
        "iops": -1.0,
        "range": (4096, 8192),
        "seed": 1,
        "drop_after": 0.0,
        "think_time": 0.0,
        "zipf": 0.0,
        "pareto": 0.0,
        "normal": 0.0,
        "hot_zones": (),
        "working_set": 0,
        "scattered": True,
        "scatter_seed": 0,
        "start": 0,
        "skew": 0.0,
        "start_after": 0.0,
        "bursty": (0, 0),
        "random_map": False,
        "until": ("never", 0),
        "sync": "none",
        "flush": ("fsync", 0),
        "end_fsync": False,
    }
    assert engine_fields(Parameters(iops=5))["iops"] == 5.0
    assert engine_fields(Parameters(until=Until(VolumeKind.READ, 8192)))["until"] == ("read", 8192)
    assert engine_fields(Parameters(random_map=True))["random_map"] is True
    assert engine_fields(Parameters(drop_after=0.25))["drop_after"] == 0.25


def not_to_be_written(lun: str, reason: str) -> str:
    return RefusalReason.MUST_NOT_BE_WRITTEN.sentence(lun=lun, reason=reason)


def opened(path: str) -> list[int]:
    """How this process has it open: the access modes, and whether O_DIRECT."""
    found = []
    for fd in os.listdir("/proc/self/fd"):
        if os.path.exists(f"/proc/self/fd/{fd}") and os.readlink(f"/proc/self/fd/{fd}") == path:
            flags = re.search(r"^flags:\s*(\d+)", Path(f"/proc/self/fdinfo/{fd}").read_text(), re.MULTILINE)
            assert flags is not None
            found.append(int(flags[1], 8) & (os.O_ACCMODE | os.O_DIRECT))
    return sorted(found)


HELD, WRITTEN = os.O_RDONLY, os.O_RDWR | os.O_DIRECT  # what a LUN that may be written is opened for


@pytest.fixture
def real() -> Iterator[Workloads]:
    engine = _engine.Engine("null", [-1])
    yield Workloads(engine, "null", [None])
    assert engine.close(5.0) == []


def between(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Have it done once the LUNs were judged, and before they are opened."""

    def left() -> int:
        act()
        return 1 << 20

    monkeypatch.setattr(workloads_module, "aio_left", left)


def before_the_look(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Have it done when the machine is about to be looked at."""
    read = Surroundings.read

    def acted(root: Path = ROOT, openers: bool = True, blkid: bool = False) -> Surroundings:
        act()
        return read(root, openers, blkid)

    monkeypatch.setattr(Surroundings, "read", acted)


class TestWhatIsWrittenIsWhatWasJudged:
    """Whatever others do between the look and the opening, with the real engine."""

    @pytest.fixture
    def another(self, tmp_path: Path) -> str:
        (tmp_path / "another").write_bytes(os.urandom(1 << 20))
        return str(tmp_path / "another")

    def test_a_file_whose_path_becomes_anothers(
        self, real: Workloads, file: str, another: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        link, new = f"{file}.link", f"{file}.new"
        os.symlink(file, link)
        os.symlink(another, new)
        between(monkeypatch, lambda: os.replace(new, link))
        assert real.create(workloads_on(link, WRITE, consent=True)) == []
        assert opened(another) == []
        assert opened(file) == [HELD, WRITTEN]
        assert real.delete([0]) == []
        assert opened(file) == []

    def test_a_file_that_is_written_after_the_check(
        self, real: Workloads, file: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def write() -> None:
            with open(file, "r+b") as there:
                there.seek(5000)
                there.write(b"somebody's records")

        between(monkeypatch, write)
        asked = workloads_on(file, WRITE, consent=True)
        (refusal,) = real.create(asked)
        assert RefusalReason.CONTENTS_CHANGED in refusals_in(refusal.reason)
        assert opened(file) == []
        assert agreed(file) != asked[0].consent, "what somebody wrote is not taken for ivypy's"
        monkeypatch.undo()
        (refusal,) = real.create(asked)
        assert RefusalReason.CONTENTS_CHANGED in refusals_in(refusal.reason)

    def test_a_file_whose_path_becomes_anothers_before_it_is_checked(
        self, real: Workloads, file: str, another: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked = workloads_on(file, WRITE, consent=True)
        before_the_look(monkeypatch, lambda: os.replace(another, file))
        assert real.create(asked) == [
            Refusal(f"h+{file}+w0", not_to_be_written(file, RefusalReason.PATH_CHANGED.sentence()))
        ]
        assert opened(file) == []

    def test_a_file_that_is_signed_after_the_check(
        self, real: Workloads, file: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def sign() -> None:
            with open(file, "r+b") as there:
                there.write(b"XFSB")

        between(monkeypatch, sign)
        ((what, why),) = [
            (refusal.what, refusal.reason) for refusal in real.create(workloads_on(file, WRITE, consent=True))
        ]
        assert what == file
        assert why == not_to_be_written(file, RefusalReason.SIGNED.sentence(format="xfs", path=file))
        assert opened(file) == []

    @pytest.mark.parametrize("kind", ["file", "block"])
    def test_a_file_that_another_program_opens_after_the_check(
        self, kind: str, real: Workloads, file: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        lun = file if kind == "file" else request.getfixturevalue("loop")
        words = ["bash", "-c", 'read -r _; exec 3<>"$1"; echo done; read -r _', "bash", lun]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as opener:
            to, by = opener.stdin, opener.stdout
            assert to is not None and by is not None
            between(monkeypatch, lambda: (to.write(b"\n"), by.readline()))
            ((what, why),) = [
                (refusal.what, refusal.reason) for refusal in real.create(workloads_on(lun, WRITE, consent=True))
            ]
        assert what == lun
        opened_by = RefusalReason.OPEN_FOR_WRITING.sentence(subject="it", pid=opener.pid, program="bash")
        assert why == not_to_be_written(lun, opened_by)
        assert opened(lun) == []

    @needs_loops
    def test_a_loop_device_that_is_made_after_the_check(
        self, real: Workloads, loop: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        made: list[str] = []
        between(monkeypatch, lambda: made.append(losetup("-f", "--show", "-o", "1048576", loop)))
        try:
            (refusal,) = real.create(workloads_on(loop, WRITE, consent=True))
            below = RefusalReason.BELOW_LOOP.sentence(subject="it", device=made[0])
            assert refusal.reason == not_to_be_written(loop, below)
            assert opened(loop) == []
        finally:
            losetup("-d", made[0])

    @needs_loops
    def test_nobody_makes_a_filesystem_on_a_device_after_the_check(
        self, real: Workloads, loop: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        need("mkfs.ext4")
        made = []
        make = ["mkfs.ext4", "-q", loop]
        between(monkeypatch, lambda: made.append(subprocess.run(make, capture_output=True, check=False).returncode))
        assert real.create(workloads_on(loop, WRITE, consent=True)) == []
        assert made
        assert made[0] != 0
        assert real.delete([0]) == []
        run(*make)
        assert len(real.create(workloads_on(loop, WRITE, consent=True))) == 1

    @needs_loops
    def test_a_link_that_becomes_another_devices(
        self, real: Workloads, loop: str, shm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        link, new = tmp_path / "link", tmp_path / "new"
        with loop_device(shm) as other:
            link.symlink_to(loop)
            new.symlink_to(other)
            between(monkeypatch, lambda: new.replace(link))
            assert real.create(workloads_on(str(link), WRITE, consent=True)) == []
            assert opened(other) == []
            assert opened(loop) == [HELD, WRITTEN]
            assert real.delete([0]) == [], "though its path is another's by now"
            assert opened(loop) == []

    @needs_loops
    def test_a_file_that_becomes_a_device_is_none(
        self, real: Workloads, file: str, loop: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        link, new = f"{file}.link", f"{file}.new"
        os.symlink(file, link)
        os.symlink(loop, new)
        between(monkeypatch, lambda: os.replace(new, link))
        assert real.create(workloads_on(link, WRITE, consent=True)) == []
        assert opened(loop) == []
        assert real.delete([0]) == []

    def test_what_is_no_lun_is_not_even_opened(self, real: Workloads, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")  # to open it for reading is to wait for a writer
        given = Consent(Identity("m", 1, ()), ())
        asked = [replace(one, consent=given) for one in workloads_on(str(tmp_path / "pipe"), WRITE)]
        assert real.create(asked) == [
            Refusal(f"h+{tmp_path}/pipe+w0", f"{tmp_path}/pipe: {RefusalReason.NO_DEVICE_OR_FILE.sentence()}")
        ]

    def test_the_engine_refuses_by_itself_what_was_not_agreed_to(
        self, real: Workloads, file: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Whatever Python overlooks: here, everything."""
        given = agreed(file, (0, 8192), (16384, 32768))
        monkeypatch.setattr(validation, "workload_faults", lambda workload, lun: [])
        monkeypatch.setattr(validation, "edit_faults", lambda before, after, workload, lun: [])
        outside, inside = (replace(WRITE, range=span) for span in ((0, 16384), (16384, 32768)))
        ((refusal,), done) = (
            real.create([replace(one, consent=given) for one in workloads_on(file, parameters)])
            for parameters in (outside, inside)
        )
        assert "the range does not lie within what was agreed to" in refusal.reason
        assert done == []
        edit = m.EditWorkloads(1, 1, (Setting(0, outside),))
        assert real.check_edit(edit) == []
        with pytest.raises(OSError, match="the range does not lie within what was agreed to"):
            real._engine.edit(1, real.settings_of(edit))
        assert real.delete([0]) == []

    def test_two_names_of_a_file_are_held_once(self, real: Workloads, file: str, tmp_path: Path) -> None:
        (tmp_path / "link").symlink_to("lun")
        both = [
            *workloads_on(file, WRITE, consent=True),
            *workloads_on(str(tmp_path / "link"), WRITE, consent=True, first=1),
        ]
        assert real.create(both) == []
        assert opened(file) == [HELD, WRITTEN]
        assert real.delete([0, 1]) == []


def test_a_lun_that_hangs_when_it_is_opened_for_writing_is_named_and_delays_no_other(
    tmp_path: Path, workloads: Workloads, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answered when it was looked at."""
    for name in ("fine", "hung"):
        (tmp_path / name).write_bytes(os.urandom(1 << 20))
    asked = [
        one
        for i, name in enumerate(("fine", "hung"))
        for one in workloads_on(f"{tmp_path}/{name}", WRITE, consent=True, first=i)
    ]
    answer = threading.Event()

    def of(lun: LunTarget, *more: Any) -> Identity:
        if lun.path.endswith("hung"):
            answer.wait(60)
        return identity_of(lun, *more)

    monkeypatch.setattr(open_luns, "identity_of", of)
    monkeypatch.setattr(open_luns, "ANSWER_S", 1.0)
    try:
        said = RefusalReason.NO_ANSWER.sentence(seconds=1)
        path = f"{tmp_path}/hung"
        assert workloads.create(asked) == [Refusal(f"h+{path}+w1", not_to_be_written(path, said))]
        assert not any(word.startswith("open") for word in engine.did)
    finally:
        answer.set()
    monkeypatch.undo()
    assert workloads.create(asked) == []


def not_inspected(text: str) -> Notice:
    return Notice(NoticeKind.NOT_INSPECTED, text)


def test_what_cannot_be_read_between_steps_goes_on_with_a_notice(
    workloads: Workloads, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was judged when it was opened, and is held since then."""
    assert workloads.create(workloads_on(file, WRITE, consent=True)) == []
    answer = threading.Event()
    monkeypatch.setattr(open_luns, "ANSWER_S", 0.5)
    try:
        monkeypatch.setattr(open_luns, "identity_of", lambda *_: answer.wait(60))
        said = RefusalReason.NO_ANSWER.sentence(seconds=0.5)
        assert workloads.reinspect() == ([], [not_inspected(f"{file} was not inspected before this step: {said}")])
    finally:
        answer.set()

    def fails(*_: Any) -> Identity:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(open_luns, "identity_of", fails)
    assert workloads.reinspect() == (
        [],
        [not_inspected(f"{file} was not inspected before this step: Input/output error")],
    )
    monkeypatch.undo()
    assert workloads.reinspect() == ([], [])


@needs_loops
class TestConsent:
    """On real devices, with the real engine."""

    def test_without_it_a_mounted_device_may_be_read_and_with_it_is_refused(
        self, real: Workloads, loop: str, shm: Path
    ) -> None:
        need("mkfs.ext4")
        run("mkfs.ext4", "-q", loop)
        with mounted(loop, shm / "p"):
            assert real.create(workloads_on(loop, Parameters())) == []
            refused = real.create(workloads_on(loop, WRITE, Parameters(), consent=True, first=1))
            reasons = [
                not_to_be_written(loop, RefusalReason.MOUNTED.sentence(subject="it", point=shm / "p")),
                not_to_be_written(loop, RefusalReason.SIGNED.sentence(format="ext2, ext3 or ext4", path=loop)),
            ]
            assert refused == [Refusal(f"h+{loop}+w{n}", reason) for n in (1, 2) for reason in reasons]
            assert real.delete([0]) == []

    def test_a_lun_that_is_written_is_claimed_until_its_last_instance_goes(
        self, real: Workloads, loop: str, shm: Path
    ) -> None:
        assert real.create(workloads_on(loop, WRITE, consent=True)) == []
        assert real.create(workloads_on(loop, WRITE, consent=True, first=1)) == []
        other = Workloads(FakeEngine(), "null", [None])  # type: ignore[arg-type]
        assert other.create(workloads_on(loop, WRITE, consent=True)) == [
            Refusal(f"h+{loop}+w0", not_to_be_written(loop, RefusalReason.CLAIMED.sentence(path=loop)))
        ]
        assert other.create(workloads_on(loop, Parameters())) == [], "reading takes no claim"
        assert real.delete([0]) == []
        assert len(other.create(workloads_on(loop, WRITE, consent=True, first=1))) == 1
        assert real.delete([1]) == []
        assert other.create(workloads_on(loop, WRITE, consent=True, first=1)) == []
        assert other.delete([0, 1]) == []

    def test_the_kernel_itself_keeps_a_lun_without_consent_from_being_written(self, real: Workloads, loop: str) -> None:
        assert real.create(workloads_on(loop, Parameters())) == []
        assert opened(loop) == [os.O_RDONLY | os.O_DIRECT]
        assert real.delete([0]) == []

    def test_a_device_that_is_another_by_now_is_not_written(self, real: Workloads, loop: str, shm: Path) -> None:
        wanted = workloads_on(loop, WRITE, consent=True)
        assert real.create(wanted) == []
        assert real.delete([0]) == []
        (shm / "another").write_bytes(bytes(48 << 20))
        with loops_alone():
            detach(loop)
            attach(loop, shm / "another")
        ((what, why),) = [(refusal.what, refusal.reason) for refusal in real.create(wanted)]
        assert what == f"h+{loop}+w0"
        assert found_in([why]) == [RefusalReason.ANOTHER_LUN] and "(that had 32 MiB, backing file " in why
        assert opened(loop) == []

    @pytest.mark.parametrize("how", ["another image", "an offset", "it grew", "another's node", "another's consent"])
    def test_what_is_not_exactly_what_was_agreed_to_is_refused(self, how: str, real: Workloads, shm: Path) -> None:
        images = [shm / "image", shm / "other"]
        for image in images:
            image.write_bytes(bytes(2 << 20))
        loops = [losetup("-f", "--show", str(image)) for image in images]
        node = shm / "node"
        node.symlink_to(loops[0])
        try:
            wanted = workloads_on(str(node), WRITE, consent=True)
            match how:
                case "another image" | "an offset":
                    for loop in loops:
                        detach(loop)
                    offset = how == "an offset"
                    attach(loops[0], images[not offset], *(("-o", "512") if offset else ()))
                    attach(loops[1], images[offset])
                case "it grew":
                    os.truncate(images[0], 3 << 20)
                    losetup("-c", loops[0])
                case "another's node":
                    node.unlink()
                    node.symlink_to(loops[1])
                case _:
                    wanted = [replace(one, lun=loops[1]) for one in wanted]
            before = [image.read_bytes() for image in images]
            (refusal,) = real.create(wanted)
            assert found_in([refusal.reason]) == [RefusalReason.ANOTHER_LUN]
            assert [opened(loop) for loop in loops] == [[], []]
            assert [image.read_bytes() for image in images] == before
        finally:
            for loop in filter(lambda loop: is_over(loop, shm), loops):
                losetup("-d", loop)

    def test_a_device_without_room_after_block_0(self, real: Workloads, shm: Path) -> None:
        with loop_device(shm, 1 << 20) as small:
            assert real.create(workloads_on(small, Parameters(blocksize=1 << 20))) == [
                Refusal(
                    f"h+{small}+w0",
                    f"{small} has 1 MiB, no block of 1 MiB after block 0, which is never driven:"
                    " choose a smaller blocksize or a larger LUN",
                )
            ]


def test_an_empty_order_is_valid() -> None:
    assert Workloads(FakeEngine(), "null", [None]).check_go(m.Go(1, 0, 1, u32(), u32())) is None  # type: ignore[arg-type]
