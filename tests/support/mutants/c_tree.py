"""A copy of the checkout, in which the engine is built with a change and tested."""

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.mutants.forked import Fate

LONGEST_S = 600.0  # of the tests of one mutant: a thread that never ends hangs them
APART = ("built", "extensions")  # of .venv: what the copy builds for itself


@dataclass(frozen=True)
class Tree:
    """A whole checkout, importable as ivypy."""

    root: Path

    def fate(self, path: str, text: str, files: Sequence[str], markers: str) -> Fate | None:
        """What becomes of the file at `path` with this text; None: no compiler takes it."""
        own = (self.root / path).read_text()
        try:
            (self.root / path).write_text(text)
            if not self._is_built():
                return None
            return self._tested(files, markers)
        finally:
            (self.root / path).write_text(own)

    def _is_built(self) -> bool:
        return all(
            subprocess.run(command, cwd=self.root, capture_output=True, check=False).returncode == 0
            for command in (["scripts/extensions"], ["make", "-s", "-C", "tests/engine", f"-j{os.cpu_count()}"])
        )

    def _tested(self, files: Sequence[str], markers: str) -> Fate:
        python = str(self.root / ".venv" / "bin" / "python")
        command = [python, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", markers, *files]
        environment = os.environ | {"PYTHONPATH": str(self.root.parent)}
        try:
            done = subprocess.run(
                command, cwd=self.root, env=environment, capture_output=True, check=False, timeout=LONGEST_S
            )
        except subprocess.TimeoutExpired:
            return Fate.TIMEOUT
        return Fate.SURVIVED if done.returncode == 0 else Fate.KILLED


@contextlib.contextmanager
def copied(checkout: Path) -> Iterator[Tree]:
    """With what was built, as old as it is, so that only the change is built again."""
    with tempfile.TemporaryDirectory(prefix="ivypy-mutants-") as folder:
        root = Path(folder) / "ivypy"
        shutil.copytree(checkout, root, symlinks=True, ignore=shutil.ignore_patterns(".git", ".venv", "__pycache__"))
        (root / ".venv").mkdir()
        for entry in (checkout / ".venv").iterdir():
            target = root / ".venv" / entry.name
            if entry.name not in APART:
                target.symlink_to(entry)
            elif entry.is_dir():
                shutil.copytree(entry, target, symlinks=True)
            else:
                shutil.copy2(entry, target)
        yield Tree(root)
