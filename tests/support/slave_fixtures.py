"""What the slave's tests share as pytest fixtures."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def shm() -> Iterator[Path]:
    """A folder in memory, so that devices over files in it are fast and touch no disk."""
    folder = Path(tempfile.mkdtemp(prefix="ivypy-test-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)
