"""Backends: why one does not work, and what to do; which one `auto` is; what the kernel refuses, before any I/O."""

import errno
import os
import platform
import resource
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivypy.protocol import messages as m
from ivypy.protocol.parameters import MAX, Iosequencer, Parameters, Until, VolumeKind
from ivypy.protocol.payload import EngineOptions, Notice, NoticeKind, WorkloadToCreate
from ivypy.protocol.refusals import RefusalReason
from ivypy.slave.devices.nowait import without_nowait
from ivypy.slave.engine._engine import Engine
from ivypy.slave.engine._engine import backends as working
from ivypy.slave.workloads import backend_choice
from ivypy.slave.workloads.backend_choice import Choice, Trial, choose, why_not
from tests.support.refusals import found_in
from tests.support.slave_client import Client
from tests.support.workloads import workloads_on

pytestmark = pytest.mark.slow

needs_io_uring = pytest.mark.skipif("io_uring" not in working(), reason="io_uring does not work on this kernel")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="gives up rights that only root has")

# io_uring_setup fails with EPERM, as in a container; all else is allowed. x86-64's number of it.
FILTERED = """
import ctypes, struct
instructions = [(0x20, 0, 0, 0), (0x15, 0, 1, 425), (0x06, 0, 0, 0x50001), (0x06, 0, 0, 0x7FFF0000)]
program = b"".join(struct.pack("HBBI", *i) for i in instructions)
buffer = ctypes.create_string_buffer(program)
filter = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(instructions), ctypes.addressof(buffer)))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, filter, 0, 0) == 0
import ivypy.slave.__main__ as s
s.main()
"""
LOCKED = """
import email.parser, importlib.metadata, os, resource  # the first two: a user without rights may be unable to read them
import ivypy.slave.__main__ as s
resource.setrlimit(resource.RLIMIT_MEMLOCK, (65536, 65536))
own = 100_000 + os.getpid()  # the kernel counts locked memory by user: nobody else's
os.setgroups([]), os.setgid(own), os.setuid(own)
s.main()
"""


@pytest.mark.parametrize(
    ("backend", "number", "disabled", "words"),
    [
        ("io_uring", 0, 0, ""),
        ("io_uring", errno.EPERM, 2, "kernel.io_uring_disabled is 2: set it to 0"),
        ("io_uring", errno.EPERM, 1, "or run the slave as root or in the group kernel.io_uring_group"),
        ("io_uring", errno.EPERM, 0, "a seccomp filter forbids it"),
        ("io_uring", errno.ENOSYS, 0, "this kernel has no io_uring"),
        ("io_uring", errno.ENOMEM, 0, "ulimit -l"),
        ("libaio", errno.ENOSYS, 0, "no asynchronous I/O"),
        ("libaio", errno.EAGAIN, 0, "fs.aio-max-nr"),
        ("libaio", errno.EIO, 0, "Input/output error"),
    ],
)
def test_why_a_backend_does_not_work(
    backend: str, number: int, disabled: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend_choice, "probe", lambda name, *options: number)
    monkeypatch.setattr(backend_choice, "number_in", lambda path: disabled)
    assert words in why_not(backend)
    assert bool(why_not(backend)) == bool(words)


@pytest.mark.parametrize(
    ("backend", "number", "words"),
    [
        ("io_uring", 0, ""),
        ("io_uring", errno.EINVAL, "does not know polled: leave it out"),
        ("libaio", errno.EINVAL, "polled: an option of io_uring, but the backend is libaio"),
    ],
)
def test_why_polled_does_not_work(backend: str, number: int, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend_choice, "probe", lambda name, polled: number if polled else 0)
    assert words in why_not(backend, polled=True)
    assert bool(why_not(backend, polled=True)) == bool(words)


def on(*luns: str, fast_tags: int = 8) -> list[WorkloadToCreate]:
    return [
        WorkloadToCreate(n, f"h+{lun}+w", lun, None, Parameters(), 32, 4096, fast_tags) for n, lun in enumerate(luns)
    ]


def always(*turns: float) -> Trial:
    """Thousands of reads per second; libaio has 100 in each turn."""
    return Trial([100e3] * len(turns), [1e3 * turn for turn in turns])


@pytest.mark.parametrize(
    ("trials", "backend"),
    [
        ([always(150.0, 140.0)], "io_uring"),
        ([always(150.0, 104.0)], "libaio"),  # one turn is within what turns differ by
        ([Trial([100e3, 140e3], [150e3, 146e3])], "libaio"),
        ([always(90.0, 90.0)], "libaio"),
        ([Trial([0.0, 0.0], [0.0, 0.0])], "libaio"),  # no read was answered
        ([Trial([22.0, 22.0], [44.0, 44.0])], "libaio"),  # one read in a turn, and two
        ([always(150.0), always(90.0)], "libaio"),  # on one LUN of several
        ([], "libaio"),
    ],
)
def test_auto_is_io_uring_where_every_turn_is_faster(
    trials: list[Trial], backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend_choice, "why_not", lambda name: "")
    monkeypatch.setattr(backend_choice, "try_both", lambda lun, parameters: trials[int(lun)])
    assert choose(on(*map(str, range(len(trials))))).backend == backend


@pytest.mark.parametrize(
    ("trial", "outcome"),
    [
        (
            Trial([100e3, 110e3], [116e3, 120e3]),
            "io_uring is faster: 100,000 to 110,000 reads/s with libaio, 116,000",
        ),
        (Trial([100e3, 110e3], [80e3, 99e3]), "libaio is faster: 100,000 to 110,000 reads/s with libaio, 80,000 to"),
        (Trial([100e3, 110e3], [80e3, 100e3]), "the default, since io_uring is not clearly faster: 100,000 to"),
        (Trial([33e3, 59e3], [33e3, 60e3]), "the default, since io_uring is not clearly faster: 33,000 to 59,000"),
        (Trial([100e3, 110e3], [112e3, 130e3]), "the default, since io_uring is not clearly faster"),
        (Trial([22.0, 22.0], [44.0, 44.0]), "the default, since io_uring is not clearly faster"),
    ],
)
def test_the_reason_says_what_the_trial_decided(trial: Trial, outcome: str) -> None:
    assert str(trial).startswith(outcome)


@given(st.lists(st.tuples(st.floats(1.0, 1.049), st.floats(1.0, 1.049)), min_size=1, max_size=8), st.floats(1, 1e7))
def test_noise_below_5_percent_never_decides(noise: list[tuple[float, float]], rate: float) -> None:
    """Hosts that are alike choose alike."""
    assert not Trial([rate * a for a, _ in noise], [rate * b for _, b in noise]).io_uring_is_faster


def test_without_a_fast_step_there_is_no_trial_and_nothing_to_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend_choice, "why_not", lambda name: "")
    monkeypatch.setattr(backend_choice, "try_both", lambda lun, parameters: pytest.fail("a trial"))
    assert choose(on("a", fast_tags=0)) == Choice("libaio")


def test_a_trial_has_the_tags_of_the_fast_step(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []
    monkeypatch.setattr(backend_choice, "why_not", lambda name: "")

    def try_both(lun: str, parameters: Parameters) -> Trial:
        tried.append(parameters.maxtags)
        return always(150.0)

    monkeypatch.setattr(backend_choice, "try_both", try_both)
    choose([*on("a", fast_tags=0), *on("b", fast_tags=24), *on("b", fast_tags=1)])
    assert tried == [24], "of two on a LUN, those of the deeper"


def buffered(*luns: str) -> list[WorkloadToCreate]:
    return [replace(one, parameters=replace(one.parameters, direct=False)) for one in on(*luns)]


def test_auto_is_io_uring_untried_where_one_instance_is_buffered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend_choice, "try_both", lambda lun, parameters: pytest.fail("a trial"))
    assert choose([*on("a"), *buffered("b")]) == Choice("io_uring", "direct: false needs it")


@pytest.mark.parametrize(
    ("backend", "polled", "missing", "reason"),
    [
        ("auto", False, "", None),
        ("auto", False, "kernel.io_uring_disabled is 2", RefusalReason.NO_IO_URING),
        ("io_uring", False, "", None),
        ("io_uring", True, "", RefusalReason.CANNOT_BE_POLLED),
        ("null", False, "", None),
        ("libaio", False, "", RefusalReason.BACKEND_UNABLE),
        ("nvme", False, "", RefusalReason.BACKEND_UNABLE),
    ],
)
def test_buffered_instances_alone_are_refused_with_another_backend(
    backend: str, polled: bool, missing: str, reason: RefusalReason | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend_choice, "why_not", lambda name: missing)
    refused = backend_choice.against_backend([*on("a"), *buffered("b")], backend, polled)
    assert [one.what for one in refused] == (["h+b+w"] if reason else [])
    assert found_in([one.reason for one in refused]) == ([reason] if reason else [])
    assert all(missing in one.reason and "`direct: true`" in one.reason for one in refused)
    assert backend_choice.against_backend(on("a"), backend, polled) == []


def test_a_driver_without_nowait_support_is_detected(zram_lun: str, loop_lun: str) -> None:
    """zram does not take RWF_NOWAIT: io_uring has threads of the kernel do each I/O, whose CPU time nobody counts."""
    assert without_nowait([loop_lun, zram_lun, "/nonexistent", zram_lun]) == [zram_lun]


@needs_io_uring
def test_auto_is_libaio_where_io_uring_would_be_threads_of_the_kernel(zram_lun: str) -> None:
    assert choose(on(zram_lun)).backend == "libaio"
    assert "kernel threads" in choose(on(zram_lun)).reason
    with Client() as slave:
        slave.prepare("io_uring")
        slave.create(Path(zram_lun), Parameters(iops=MAX))
        said = [one.text for one in slave.all if isinstance(one, Notice) and one.kind is NoticeKind.KERNEL_THREADS]
        assert any(f"io_uring uses kernel threads for each I/O on {zram_lun}" in text for text in said)


@needs_io_uring
@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (EngineOptions("libaio", 1, polled=True), "polled: an option of io_uring, but the backend is libaio"),
        (EngineOptions("auto", 1, polled=True), "choose it as the backend"),
    ],
)
def test_polled_needs_io_uring(asked: EngineOptions, words: str) -> None:
    with Client() as slave:
        ((_, why),) = slave.refused(m.Prepare, engine=asked, lease_ns=10**10)
        assert words in why


@needs_io_uring
def test_polled_completions_are_refused_where_no_queue_has_them(tmp_path: Path) -> None:
    with Client() as slave:
        slave.do(m.Prepare, engine=EngineOptions("io_uring", 1, polled=True), lease_ns=10**10)
        slave.make_file(tmp_path / "lun", 4 << 20)
        asked = WorkloadToCreate(0, "h+lun+w", str(tmp_path / "lun"), None, Parameters(iops=MAX), 32, 4096)
        ((what, why),) = slave.refused(m.CreateWorkloads, workloads=(asked,))
        assert what == "h+lun+w"
        assert "its queue/io_poll is 0" in why and "leave `engine: polled` out" in why


def test_auto_without_io_uring_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend_choice, "why_not", lambda name: "it is off" if name == "io_uring" else "")
    assert choose(on("a")) == Choice("libaio", "io_uring does not work here: it is off")


def test_of_many_luns_a_few_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []
    monkeypatch.setattr(backend_choice, "why_not", lambda name: "")

    def try_both(lun: str, parameters: Parameters) -> Trial:
        tried.append(lun)
        return always(200.0)

    monkeypatch.setattr(backend_choice, "try_both", try_both)
    choose(on(*map(str, range(1000))))
    assert tried == ["0", "250", "500", "750"]


@needs_io_uring
@pytest.mark.parametrize("backend", ["auto", "io_uring"])
def test_a_step_with_a_backend_of_ones_choice(backend: str, tmp_path: Path) -> None:
    with Client() as slave:
        slave.prepare(backend)
        slave.make_file(tmp_path / "lun", 4 << 20)
        slave.create(tmp_path / "lun", Parameters(iops=MAX))
        chosen = [one.text for one in slave.all if isinstance(one, Notice) and one.kind is NoticeKind.BACKEND_CHOSEN]
        assert len(chosen) == (backend == "auto")
        assert all("reads/s with libaio" in text for text in chosen)
        slave.go(0)
        slave.do(m.Stop, last=1)
        assert slave.until(m.Stopped).uncaught == 0


@needs_io_uring
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the filter names a system call by its number on x86-64")
def test_a_seccomp_filter_is_named_before_any_io() -> None:
    with Client("-c", FILTERED) as slave:
        hello = slave.hear()
        assert isinstance(hello, m.Hello)
        assert "io_uring" not in hello.backends
        ((what, why),) = slave.refused(m.Prepare, engine=EngineOptions("io_uring", 1), lease_ns=10**9)
        assert what == "prepare"
        assert "a seccomp filter forbids it" in why
        slave.do(m.Prepare, engine=EngineOptions("auto", 1), lease_ns=10**10)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """That a user without rights may enter."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        yield Path(folder)


@needs_io_uring
@needs_root
def test_a_limit_of_locked_memory_is_named_before_any_io(open_folder: Path) -> None:
    with Client("-c", LOCKED) as slave:
        slave.prepare("io_uring")
        slave.make_file(open_folder / "lun", 4 << 20)
        large = Parameters(iops=MAX, blocksize=65536, maxtags=16)
        ((what, why),) = slave.refused(
            m.CreateWorkloads, workloads=tuple(workloads_on(str(open_folder / "lun"), large, ceiling=16))
        )
        assert what.endswith("+w0")
        assert "raise the limit of locked memory (ulimit -l" in why


class Observed:
    """An engine that keeps the parameters of what it creates."""

    created: ClassVar[list[dict[str, Any]]] = []

    def __init__(self, *words: Any) -> None:
        self._engine = Engine(*words)

    def create(self, *words: Any) -> None:
        self.created.extend(word for word in words if isinstance(word, dict))
        self._engine.create(*words)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)


@needs_io_uring
@pytest.mark.parametrize("how", Iosequencer)
def test_a_trial_has_addresses_of_its_own(how: Iosequencer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not those of the first step, and each backend other ones: nobody finds in a cache what another one read."""
    lun = tmp_path / "lun"
    lun.write_bytes(bytes(1 << 20))
    monkeypatch.setattr(backend_choice, "Engine", Observed)
    monkeypatch.setattr(Observed, "created", [])
    backend_choice.try_both(str(lun), Parameters(iosequencer=how, seed=1))
    backend_choice.try_both(str(lun), Parameters(iosequencer=how, seed=1))
    assert {one["iosequencer"] for one in Observed.created} == {"random_steady"}
    assert len({1, *(one["seed"] for one in Observed.created)}) == 5


@needs_io_uring
@pytest.mark.parametrize("until", [Until(VolumeKind.WRITTEN, 1 << 20), Until(VolumeKind.IOS, 1)])
def test_a_trial_does_not_end_as_its_workload_does(until: Until, tmp_path: Path) -> None:
    """It reads, whatever is to be written, and for as long as it takes."""
    lun = tmp_path / "lun"
    lun.write_bytes(os.urandom(1 << 20))
    trial = backend_choice.try_both(str(lun), Parameters(fraction_read=0.0, until=until, random_map=True))
    assert min(sum(trial.libaio), sum(trial.io_uring)) > 10 / backend_choice.TURN_NS * 1e9


@needs_io_uring
def test_backends_are_tried_where_many_files_are_open(tmp_path: Path) -> None:
    """A thousand LUNs are open by then: descriptors are beyond what select() takes."""
    lun = tmp_path / "lun"
    lun.write_bytes(os.urandom(1 << 20))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2048:
        pytest.skip("this user may not open so many files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (2048, hard))
    held = [os.open(lun, os.O_RDONLY) for _ in range(1100)]
    try:
        trial = backend_choice.try_both(str(lun), Parameters())
        assert max(trial.libaio) > 0 and max(trial.io_uring) > 0
    finally:
        for fd in held:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
