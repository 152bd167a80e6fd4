"""What the engine refuses: an OSError with an errno, a sentence, and the path where there is one."""

import errno
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ivypy.master.plan.read.schema import BACKENDS as PLANNED
from ivypy.master.plan.read.schema import POLLED
from ivypy.protocol.counters import Count
from ivypy.protocol.parameters import EngineFields
from ivypy.slave.engine._engine import Engine, abilities, backends, now_ns, probe
from tests.support.engine import BACKENDS, MS, Drive, S, drive, fields, run, started


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "image"
    with open(path, "wb") as file:
        file.truncate(1 << 20)
    return path


@pytest.fixture
def null(image: Path) -> Iterator[Drive]:
    """An engine with LUN 0 (read-only), LUN 1 (writable) and instance 0."""
    for step in drive("null", threads=2):
        assert (step.lun(image), step.lun(image, writable=True)) == (0, 1)
        step.create(0, 0)
        yield step


def test_backends_are_those_that_work() -> None:
    assert set(backends()) <= {"libaio", "io_uring", "null"}
    assert backends()[-1] == "null"


@pytest.mark.parametrize(
    ("backend", "cpus", "error", "words"),
    [
        ("nonsense", [-1], ValueError, "no backend nonsense"),
        ("null", [], ValueError, "0 workload threads"),
        ("null", [-1] * 257, ValueError, "257 workload threads"),
        ("null", [-1, 1023], OSError, "core"),
        ("null", [-1, 5000], OSError, "core"),
    ],
)
def test_invalid_backend_or_cpus_make_no_engine(
    backend: str, cpus: list[int], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        Engine(backend, cpus)


@pytest.mark.parametrize(
    ("path", "number"),
    [("/nonexistent", errno.ENOENT), ("/dev", errno.ENOTBLK), ("/dev/null", errno.ENOTBLK)],
)
def test_undriveable_luns_are_refused(null: Drive, path: str, number: int) -> None:
    with pytest.raises(OSError) as error:
        null.lun(path)
    assert error.value.errno in (number, errno.EINVAL)  # O_DIRECT may be what is refused first
    assert error.value.filename == path


Extents = tuple[tuple[int, int], ...]

AGREED: Extents = ((4096, 65536), (131072, 262144))


def create(
    number: int = 1,
    lun: int = 1,
    thread: int = 0,
    ceiling: int = 8,
    largest: int = 4096,
    extents: Extents = (),
    **changes: object,
) -> Callable[[Engine], None]:
    return lambda engine: engine.create(number, lun, thread, ceiling, largest, fields(**changes), extents)


def go(order: bytes, classes: bytes, length_ns: int = 100 * MS) -> Callable[[Engine], None]:
    return lambda engine: engine.go(now_ns() + S, length_ns, order, classes, order)


ONE, TWO = bytes([0, 0, 0, 0]), bytes([0, 0, 0, 0, 1, 0, 0, 0])

REFUSED: list[tuple[Callable[[Engine], object], int, str]] = [
    (create(number=0), errno.EEXIST, "a workload instance 0 already"),
    (create(lun=7), errno.EBADF, "no LUN"),
    (create(thread=2), errno.EINVAL, "2 workload threads"),
    (create(blocksize=1000), errno.EINVAL, "logical block size"),
    (create(maxtags=9), errno.EINVAL, "ceiling"),
    (create(blocksize=8192), errno.EINVAL, "blocksize is above the ceiling"),
    (create(maxtags=0), errno.EINVAL, "maxtags"),
    (create(lun=0, fraction_read=0.99), errno.EROFS, "read-only, without consent"),
    (create(fraction_read=1.01, extents=AGREED), errno.EINVAL, "fraction_read"),
    (create(fraction_read=-0.01, extents=AGREED), errno.EINVAL, "fraction_read"),
    (create(fraction_read=float("nan"), extents=AGREED), errno.EINVAL, "fraction_read"),
    (create(fraction_read=0.99), errno.EPERM, "not lie within what was agreed to"),
    (create(fraction_read=0.0, range=(4096, 65536), extents=((65536, 4096),)), errno.EINVAL, "ascending"),
    (create(fraction_read=0.0, range=(4096, 65536), extents=(*AGREED, AGREED[0])), errno.EINVAL, "ascending"),
    (create(fraction_read=0.0, range=(4096, 65536), extents=(*AGREED, (262143, 1 << 20))), errno.EINVAL, "ascending"),
    (create(range=(0, 4095)), errno.EINVAL, "whole block"),
    (create(range=(4096, 1 << 21)), errno.EINVAL, "does not lie in the LUN"),
    (create(number=1 << 30), errno.ERANGE, "numbers end"),
    (lambda engine: engine.delete(5), errno.ENOENT, "no workload instance 5"),
    (lambda engine: engine.close_lun(9), errno.EBADF, "no LUN"),
    (lambda engine: engine.close_lun(0), errno.EBUSY, "1 workload instances use"),
    (lambda engine: engine.edit(1, [(5, fields())]), errno.ENOENT, "no workload instance 5"),
    (lambda engine: engine.edit(1, [(0, fields(seed=2))]), errno.EINVAL, "that is not live cannot be edited"),
    (lambda engine: engine.edit(1, [(0, fields(blocksize=8192))]), errno.EINVAL, "blocksize is above the ceiling"),
    (lambda engine: engine.edit(1, [(0, fields(blocksize=100))]), errno.EINVAL, "logical block size"),
    (lambda engine: engine.edit(1, [(0, fields(range=(4096, 1 << 21)))]), errno.EINVAL, "does not lie in the LUN"),
    (lambda engine: engine.edit(1, [(0, fields(range=(0, 4095)))]), errno.EINVAL, "no whole block"),
    (lambda engine: engine.edit(1, [(0, fields(maxtags=5))]), errno.EINVAL, "ceiling"),
    (lambda engine: engine.edit(1, [(0, fields(fraction_read=0.5))]), errno.EINVAL, "without consent"),
    (go(TWO, TWO), errno.ENOENT, "instance 1, which does not exist"),
    (go(ONE + ONE, ONE + ONE), errno.EINVAL, "instance 0 twice"),
    (go(ONE, bytes([1, 0, 0, 0])), errno.EINVAL, "merge class 1"),
    (go(ONE, ONE, length_ns=1000), errno.EINVAL, "at least 1 ms"),
]  # fmt: skip


@pytest.mark.parametrize(("command", "number", "words"), REFUSED)
def test_commands_that_are_refused(null: Drive, command: Callable[[Engine], object], number: int, words: str) -> None:
    with pytest.raises(OSError, match=words) as error:
        command(null.engine)
    assert error.value.errno == number
    null.go([0], 20 * MS)  # and nothing is the worse for it
    null.engine.stop(0)
    assert null.finish().reason == "commanded"


RANGES = [  # (a range, whether it lies in one of AGREED)
    ((4096, 65536), True),
    ((131072, 262144), True),
    ((135168, 139264), True),
    ((4095, 65536), False),
    ((4096, 65537), False),
    ((4096, 262144), False),  # from one to the other
    ((65536, 131072), False),  # between them
    ((0, 4096), False),
    ((262144, 1 << 20), False),
    ((0, 0), False),  # all of it
]


@pytest.mark.parametrize(("span", "within"), RANGES)
@pytest.mark.parametrize("fraction_read", [0.0, 0.5, 0.9999999])
def test_writing_instances_and_edits_stay_within_the_agreed_extents(
    null: Drive, span: tuple[int, int], within: bool, fraction_read: float
) -> None:
    """The engine asks for itself, of an instance as of an edit, whoever calls it; and reads may go anywhere."""
    writes = fields(fraction_read=fraction_read, range=span)
    null.engine.create(1, 1, 0, 8, 4096, fields(range=span), AGREED)
    if within:
        null.edit(1, [(1, writes)])
        null.engine.create(2, 1, 1, 8, 4096, writes, AGREED)
        return
    with pytest.raises(OSError, match="not lie within what was agreed to") as error:
        null.engine.edit(1, [(1, writes)])
    assert error.value.errno == errno.EINVAL
    with pytest.raises(PermissionError, match="not lie within what was agreed to"):
        null.engine.create(2, 1, 1, 8, 4096, writes, AGREED)


def test_an_edit_is_taken_whole_or_not_at_all(null: Drive) -> None:
    """One setting that leaves what was agreed to, and none is taken."""
    for number in (1, 2):
        null.engine.create(number, 1, 0, 8, 4096, fields(fraction_read=0.0, range=(4096, 65536)), AGREED)
    inside, outside = (fields(fraction_read=0.0, range=span) for span in ((4096, 8192), (4096, 69632)))
    with pytest.raises(OSError, match=r"workload instance 2: .* agreed to"):
        null.engine.edit(1, [(1, inside), (2, outside)])
    assert null.engine.edited() is None


@pytest.mark.parametrize(
    ("extents", "error"),
    [
        ([(0, 1)], TypeError),
        (((0, 1, 2),), TypeError),
        (([0, 1],), TypeError),
        (((0, "1"),), TypeError),
        (((-1, 4096),), OverflowError),
        (((0, 1 << 64),), OverflowError),
    ],
)
def test_invalid_extents_are_refused(null: Drive, extents: Extents, error: type[Exception]) -> None:
    with pytest.raises(error):
        null.engine.create(1, 1, 0, 8, 4096, fields(fraction_read=0.0, range=(0, 4096)), extents)


def test_a_refused_instance_names_its_lun(null: Drive, image: Path) -> None:
    with pytest.raises(OSError) as error:
        create(blocksize=1000)(null.engine)
    assert error.value.filename == str(image)


@pytest.mark.parametrize(
    ("parameters", "error", "words"),
    [
        ({"blocksize": 4096}, TypeError, "lack"),
        (fields() | {"surprise": 1}, TypeError, "does not know"),
        (fields(iosequencer="backwards"), ValueError, "no iosequencer 'backwards'"),
        (fields(blocksize=-4096), OverflowError, "negative"),
        (fields(maxtags=8193), ValueError, "maxtags"),
        (fields(range=[0, 1]), TypeError, "pair"),
        (fields(iops="max"), TypeError, "number"),
        (fields(random_map=1), TypeError, "random_map is neither True nor False"),
        (fields(until="never"), TypeError, "until is not a pair"),
        (fields(until=("never",)), TypeError, "until is not a pair"),
        (fields(until=("soon", 1)), ValueError, "no until 'soon'"),
        (fields(until=("ios", -1)), OverflowError, "negative"),
        (fields(until=("ios", 1 << 63)), ValueError, "until is out of range"),
        ([], TypeError, "dict"),
    ],
)
def test_invalid_parameters_are_refused(
    null: Drive, parameters: EngineFields, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        null.engine.create(1, 0, 0, 8, 4096, parameters)
    with pytest.raises(error, match=words):
        null.engine.edit(1, [(0, parameters)])


def test_create_delete_and_go_are_refused_during_a_step(null: Drive) -> None:
    null.go([0], 50 * MS)
    for command in (create(), go(ONE, ONE), lambda engine: engine.delete(0)):
        with pytest.raises(OSError, match="a step is running") as error:
            command(null.engine)
        assert error.value.errno == errno.EBUSY
    null.engine.stop(0)
    null.finish()
    create()(null.engine)


def test_backend_may_change_until_a_step_has_run(null: Drive) -> None:
    null.engine.use("libaio")
    with pytest.raises(ValueError, match="no backend nonsense"):
        null.engine.use("nonsense")
    null.go([0], 20 * MS)
    null.engine.stop(0)
    null.finish()
    with pytest.raises(OSError, match="a step has run with backend libaio") as error:
        null.engine.use("null")
    assert error.value.errno == errno.EBUSY


@pytest.mark.parametrize("backend", ["null", "libaio"])
def test_polled_needs_io_uring(null: Drive, backend: str) -> None:
    with pytest.raises(OSError, match="io_uring can") as error:
        null.engine.use(backend, polled=True)
    assert error.value.errno == errno.EINVAL


@pytest.mark.skipif("io_uring" not in BACKENDS, reason="io_uring does not work on this kernel")
def test_polled_completions_need_queues_that_have_them(image: Path) -> None:
    """No device of a test machine has; before any I/O."""
    for step in drive("io_uring+polled"):
        with pytest.raises(OSError, match="queue/io_poll is 0") as error:
            step.create(0, step.lun(image))
        assert error.value.errno == errno.EOPNOTSUPP
    for step in drive("null"):
        step.create(0, step.lun(image))
        with pytest.raises(OSError, match="queue/io_poll is 0"):
            step.engine.use("io_uring", polled=True)
        step.go([0], 20 * MS)  # and nothing is the worse for it
        step.engine.stop(0)
        step.finish()


def test_nvme_drives_nothing_but_whole_namespaces(image: Path) -> None:
    """An instance is refused in words, in either order: the backend first, or the LUN."""
    for step in drive("nvme"):
        with pytest.raises(OSError, match=f"cannot drive {image}: it drives whole NVMe namespaces .*io_uring") as error:
            step.create(0, step.lun(image))
        assert error.value.errno == errno.ENOTTY
    for step in drive("null"):
        step.create(0, step.lun(image))
        with pytest.raises(OSError, match="whole NVMe namespaces"):
            step.engine.use("nvme")


@pytest.mark.skipif(probe("nvme") not in {0, errno.ENODEV}, reason="this kernel's io_uring has no commands for drivers")
def test_the_kernel_refuses_an_nvme_command_to_a_file(image: Path) -> None:
    os.truncate(image, 16 << 20)
    run("nvme", "refused", image)


def test_a_plan_knows_the_backends_and_which_can_poll() -> None:
    assert PLANNED == ("auto", *abilities())
    assert POLLED == {backend for backend, able in abilities().items() if able.polled}


@pytest.mark.parametrize("backend", BACKENDS)
def test_instances_and_luns_come_and_go(backend: str, image: Path) -> None:
    for step in drive(backend, threads=2):
        come_and_go(step, image)


def come_and_go(step: Drive, image: Path) -> None:
    for round_ in range(3):
        lun = step.lun(image)
        for number in range(10, 60):
            step.create(number, lun, thread=number % 2)
        step.go(range(10, 60, 1 + round_), 20 * MS)
        step.engine.stop(1)
        step.finish()
        for number in range(10, 60):
            step.engine.delete(number)
        step.engine.close_lun(lun)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("end", ["delete", "close"])
def test_deleted_instances_and_closed_luns_release_their_files_at_once(backend: str, end: str, image: Path) -> None:
    """A lease is refused while anyone has the file open for writing."""
    engine = started(backend, [-1])
    step = Drive(engine)
    lun = step.lun(image, writable=True)
    step.create(0, lun, fraction_read=0.5)
    step.go([0], 20 * MS)
    engine.stop(0)
    step.finish()
    if end == "delete":
        engine.delete(0)
        engine.close_lun(lun)
    else:
        engine.close(5.0)
    with open(image, "rb") as file:
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    engine.close(5.0)


def test_a_second_edit_waits_until_all_threads_have_taken_the_first(image: Path) -> None:
    """Threads take an edit within 10 ms; one that comes sooner is refused, and nothing of it is kept."""
    for step in drive("null"):
        step.create(0, step.lun(image), iops=0.0)
        step.go([0], 500 * MS)
        refused = 0
        for number in range(1, 40):
            try:
                step.engine.edit(number, [(0, fields(iops=0.0))])
            except BlockingIOError:
                refused += 1
                while step.engine.edited() is None:
                    step.news(0.1)
        assert refused > 0
        step.engine.halt()
        step.finish()


@pytest.mark.slow
def test_more_tags_than_the_system_has_left_name_the_limit(image: Path) -> None:
    left = int(Path("/proc/sys/fs/aio-max-nr").read_text()) - int(Path("/proc/sys/fs/aio-nr").read_text())
    instances = left // 8192 + 1
    if instances > 16:
        pytest.skip("fs.aio-max-nr is too high to be reached")
    for step in drive("libaio"):
        lun = step.lun(image)
        for number in range(instances):
            step.create(number, lun, maxtags=8192)
        with pytest.raises(BlockingIOError, match=r"fs\.aio-max-nr") as error:
            step.go(range(instances), 100 * MS)
        assert error.value.errno == errno.EAGAIN
        step.engine.delete(0)
        for number in range(2, instances):
            step.engine.delete(number)
        step.go([1], 50 * MS)
        step.engine.stop(0)
        step.finish()
        assert step.total(Count.ERRORS) == 0


@pytest.mark.slow
@pytest.mark.skipif("io_uring" not in BACKENDS, reason="io_uring does not work on this kernel")
def test_more_tags_than_a_ring_holds_name_the_limit(image: Path) -> None:
    for step in drive("io_uring"):
        lun = step.lun(image)
        for number in range(9):
            step.create(number, lun, maxtags=8192)
        with pytest.raises(OSError, match=r"workload thread 0: an io_uring holds at most 65,535 I/Os") as error:
            step.go(range(9), 100 * MS)
        assert error.value.errno == errno.EOVERFLOW
        for number in range(3, 9):
            step.engine.delete(number)
        step.go([1], 50 * MS)  # and nothing is the worse for it
        step.engine.stop(0)
        step.finish()
        assert step.total(Count.ERRORS) == 0


def test_a_file_without_direct_io_is_refused_with_its_path() -> None:
    path = "/proc/self/status"
    for step in drive("null"):
        with pytest.raises(OSError) as error:
            step.lun(path)
        assert error.value.filename == path
    assert os.path.exists(path)
