"""Lines are appended once and whole, whichever call fails, and however much of a failed one the disk has kept."""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

from hypothesis import given
from hypothesis import strategies as st

from ivypy.master.errors import OutputError
from ivypy.master.output.csv_text import append
from ivypy.master.output.full_disk import FullDisk, patient


@dataclass(frozen=True)
class Fault:
    """Of one call: the error that it raises, if any, and which share of what was written the disk keeps."""

    errno: int
    kept: float


OPEN, CLOSE = os.open, os.close
WRITES: dict[str, Callable[..., int]] = {"write": os.write, "pwrite": os.pwrite}


class Disk:
    """A real file, of which calls fail as they are listed; those that follow succeed."""

    def __init__(self, path: Path, faults: list[Fault | None]) -> None:
        self.path = path
        self.faults = iter(faults)
        self.size = 0  # when it was opened

    @contextmanager
    def faulty(self) -> Iterator[None]:
        with ExitStack() as patches:
            for name, call in {"open": self.open, "close": self.close}.items():
                patches.enter_context(mock.patch.object(os, name, call))
            for name, write in WRITES.items():
                patches.enter_context(mock.patch.object(os, name, self.writing(write)))
            patches.enter_context(mock.patch("time.sleep"))
            yield

    def open(self, path: Any, flags: int, mode: int = 0o777) -> int:
        self.fail(next(self.faults, None))
        file = OPEN(path, flags, mode)
        self.size = os.fstat(file).st_size
        return file

    def writing(self, write: Callable[..., int]) -> Callable[..., int]:
        def faulty(file: int, data: bytes, *place: int) -> int:
            fault = next(self.faults, None)
            if fault is not None and (few := int(len(data) * fault.kept)):
                return write(file, data[:few], *place)  # a short write: the next one says why
            self.fail(fault)
            return write(file, data, *place)

        return faulty

    def close(self, file: int) -> None:
        """As NFS does: what the server did not take is reported now."""
        CLOSE(file)
        if (fault := next(self.faults, None)) is not None:
            added = os.path.getsize(self.path) - self.size
            os.truncate(self.path, self.size + int(added * fault.kept))
        self.fail(fault)

    def fail(self, fault: Fault | None) -> None:
        if fault is not None:
            raise OSError(fault.errno, os.strerror(fault.errno))


FAULTS = st.builds(Fault, st.sampled_from([errno.ENOSPC, errno.EDQUOT, errno.EIO]), st.floats(0, 1))


@given(st.lists(st.text("ab\n", min_size=1, max_size=20), min_size=1, max_size=3), st.lists(st.none() | FAULTS))
def test_every_line_is_appended_once_and_whole_or_not_at_all(texts: list[str], faults: list[Fault | None]) -> None:
    with TemporaryDirectory() as folder:
        path, stands = Path(folder) / "x.csv", "header\n"
        path.write_text(stands)
        with Disk(path, faults).faulty(), patient(FullDisk(lambda _: None)):
            for text in texts:
                try:
                    append(path, text)
                except OutputError as error:
                    assert os.strerror(errno.EIO) in str(error)  # a full disk is waited for
                else:
                    stands += text
                assert path.read_text() == stands
