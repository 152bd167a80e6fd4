"""What the slave's tests share as pytest fixtures."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import devices


@pytest.fixture
def shm() -> Iterator[Path]:
    """A folder in memory, so that devices over files in it are fast and touch no disk."""
    with devices.memory_folder("test-") as folder:
        yield folder
