"""Devices as pytest fixtures: made for one test, undone after it; a machine that cannot have one skips."""

import contextlib
from collections.abc import Iterator
from typing import TypeVar

import pytest

from tests.support import devices

T = TypeVar("T")


def _or_skip(context: contextlib.AbstractContextManager[T]) -> Iterator[T]:
    with contextlib.ExitStack() as undo:
        try:
            device = undo.enter_context(context)
        except devices.Missing as missing:
            pytest.skip(f"this machine lacks {missing}")
        yield device


@pytest.fixture
def loop_lun() -> Iterator[str]:
    yield from _or_skip(devices.loop())


@pytest.fixture
def zram_lun() -> Iterator[str]:
    yield from _or_skip(devices.zram())


@pytest.fixture
def faulty_lun() -> Iterator[devices.FaultFs]:
    yield from _or_skip(devices.faultfs())


@pytest.fixture
def queue_lun() -> Iterator[devices.FaultFs]:
    """A faulty one that does four I/Os at once, and the others after them."""
    yield from _or_skip(devices.faultfs(threads=4))


@pytest.fixture
def throttled_lun(loop_lun: str) -> Iterator[devices.Throttle]:
    """A loop device, and a cgroup that may do 1,000 I/Os per second on it; who joins leaves it at the end."""
    yield from _or_skip(devices.throttle(loop_lun, 1000))
