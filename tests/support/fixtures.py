"""Fixtures of several rooms: devices, memory, a lab. Each is undone; a test skips where the machine lacks one."""

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest

from tests.support import devices
from tests.support.faults.bench import Bench, bench
from tests.support.lab import Lab, unchanged_addresses
from tests.support.made_once import Store

T = TypeVar("T")


def _or_skip(make: Callable[[], contextlib.AbstractContextManager[T]]) -> Iterator[T]:
    with contextlib.ExitStack() as undo:
        try:
            made = undo.enter_context(make())
        except devices.Missing as missing:
            pytest.skip(f"this machine lacks {missing}")
        yield made


@pytest.fixture
def same_addresses() -> Iterator[None]:
    """This machine's network addresses stay as they are."""
    with unchanged_addresses():
        yield


@pytest.fixture
def shm() -> Iterator[Path]:
    """A folder in memory, so that devices over files in it are fast and touch no disk."""
    with devices.memory_folder("test-") as folder:
        yield folder


@pytest.fixture(scope="module")
def faulty_hosts() -> Iterator[Bench]:
    """Three hosts that faults are injected into."""
    yield from _or_skip(bench)


@pytest.fixture
def loop_lun() -> Iterator[str]:
    yield from _or_skip(devices.loop)


@pytest.fixture
def zram_lun() -> Iterator[str]:
    yield from _or_skip(devices.zram)


@pytest.fixture
def faulty_lun() -> Iterator[devices.FaultFs]:
    yield from _or_skip(devices.faultfs)


@pytest.fixture
def synchronous_lun() -> Iterator[devices.FaultFs]:
    """One whose image blocks in the submit call."""
    yield from _or_skip(partial(devices.faultfs, synchronous=True))


@pytest.fixture
def queue_lun() -> Iterator[devices.FaultFs]:
    """A faulty one that does four I/Os at once, and the others after them."""
    yield from _or_skip(partial(devices.faultfs, threads=4))


@pytest.fixture
def throttled_lun(loop_lun: str) -> Iterator[devices.Throttle]:
    """A loop device, and a cgroup that may do 1,000 I/Os per second on it; who joins leaves it at the end."""
    yield from _or_skip(partial(devices.throttle, loop_lun, 1000))


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Three hosts with an sshd each."""
    yield from _or_skip(partial(Lab, tmp_path_factory.mktemp("lab"), 3))


@pytest.fixture
def namespaces(lab: Lab) -> Lab:
    """The lab, if its hosts are network namespaces."""
    if not lab.namespaces:
        pytest.skip("network namespaces are not allowed here (root, iproute2 and unshare are needed)")
    return lab


@pytest.fixture(scope="session")
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Store:
    """What the workers of this session make for each other."""
    own = tmp_path_factory.getbasetemp()
    root = (own.parent if hasattr(request.config, "workerinput") else own) / "made_once"
    root.mkdir(exist_ok=True)
    return Store(root)
