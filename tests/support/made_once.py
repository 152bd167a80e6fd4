"""What costs seconds to make, made once in a session of tests: by the worker that needs it first, for all of them."""

import fcntl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


class NotMade(AssertionError):
    """The worker that made it has failed, and has said why."""


@dataclass(frozen=True)
class Store:
    """A folder that all workers of a session have in common. What is in it is read, and never changed."""

    root: Path

    def made(self, name: str, make: Callable[[Path], object]) -> Path:
        """The folder that `make` filled: now, or when another worker needed it. It is never made twice.

        Raises NotMade where it failed there.
        """
        folder = self.root / name
        with (self.root / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            made = self.root / f"{name}.made"
            if not made.exists():
                try:
                    folder.mkdir()
                except FileExistsError:
                    raise NotMade(f"{name} could not be made: see the test that failed first") from None
                make(folder)
                made.touch()
        return folder

    def run(self, make: Callable[[Path], object]) -> Path:
        """The folder of the only run that `make` made in the folder that it was given."""
        (folder,) = self.made(make.__name__, make).iterdir()
        return folder
