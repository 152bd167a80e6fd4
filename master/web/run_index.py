"""The runs that the page shows, by their ids.

Rule: an id is looked up, never made into a path. It follows from the folder, so it is the same after a restart.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..errors import PlanError
from ..results.checked_files import RUN_JSON
from ..results.run_entries import RunEntry, RunState, entry_data, entry_of, run_folders


@dataclass(frozen=True, slots=True)
class _SeenRun:
    """A run that has ended, and its run.json by which that is known."""

    stamp: tuple[int, int, int]
    entry: RunEntry


class RunIndex:
    """The runs in some folders, read anew each time, but for those that ended. Not for several threads."""

    def __init__(self, roots: Sequence[Path]) -> None:
        """`roots`: folders of runs, or runs; a folder may come into being later."""
        self._roots = roots
        self._ended: dict[Path, _SeenRun] = {}
        self._folders: dict[str, Path] = {}  # by id
        self.faults: list[str] = []  # why runs could not be read, the last time

    def entries(self, now: datetime) -> list[tuple[str, RunEntry]]:
        """Id and entry, the newest first; without those that cannot be read, which are `faults`."""
        entries: dict[Path, RunEntry] = {}
        self.faults = []
        for folder in self._below():
            entry = self._entry(folder, now)
            if entry is not None:
                entries[folder] = entry
        self._ended = {folder: seen for folder, seen in self._ended.items() if folder in entries}
        self._folders = {run_id(folder): folder for folder in entries}
        order = sorted(entries.items(), key=lambda one: (one[1].start, one[0].name), reverse=True)
        return [(run_id(folder), entry) for folder, entry in order]

    def active(self, now: datetime) -> list[Path]:
        """The folders of runs that have not ended, as far as that can be known."""
        return [entry.folder for _, entry in self.entries(now) if entry.state in (RunState.RUNNING, RunState.NOT_ENDED)]

    def folder(self, run: str) -> Path:
        """Raises KeyError."""
        known = self._folders.get(run)
        if known is None or not (known / RUN_JSON).is_file():
            self.entries(datetime.now(UTC))
        return self._folders[run]

    def _below(self) -> list[Path]:
        folders = [folder for root in self._roots for folder in run_folders(root.resolve())]
        return list(dict.fromkeys(folders))

    def _entry(self, folder: Path, now: datetime) -> RunEntry | None:
        try:
            status = (folder / RUN_JSON).stat()
            stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
            seen = self._ended.get(folder)
            if seen is not None and seen.stamp == stamp:
                return seen.entry
            entry = entry_of(folder, now)
        except FileNotFoundError:
            return None  # it vanished
        except (OSError, PlanError) as error:
            self.faults.append(str(error))
            return None
        if entry.state is RunState.ENDED:
            self._ended[folder] = _SeenRun(stamp, entry)
        return entry


def run_id(folder: Path) -> str:
    """Of a run's whole path: its name, to be read, and what sets it apart from others of that name."""
    digest = hashlib.sha256(bytes(folder)).hexdigest()[:10]
    return f"{re.sub(r'[^A-Za-z0-9._-]', '_', folder.name)}-{digest}"


def run_data(run: str, entry: RunEntry) -> dict[str, Any]:
    """As the page has it."""
    return {"id": run, **entry_data(entry)}
