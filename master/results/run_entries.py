"""The runs below a folder, each as an entry of a list: name, state, verdict, start, length, hosts, steps.

Rule: a run that did not end is running if its process holds the lock in its folder; else it was cut off, killed or by a
crash. Of another user's run nobody but root can tell, and where there are no locks and no socket, nobody.
"""

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path, PurePath
from typing import Any, Final

from ..errors import PlanError
from ..output.run_files import may_follow
from ..text.row_texts import csv_of, markdown_table
from ..text.scaled import BLANK, duration
from ..text.table import ColumnGroup, TextColumn, header_lines, row_line
from ..verdicts import Severity, Verdict
from .checked_files import RUN_JSON, is_others, lives, read_record, that_count

_FOLDER: Final = re.compile(r"(.+)-\d{8}T\d{6}Z(?:-\d+)?", re.DOTALL)  # name, stamp, and a brother's number


class RunState(StrEnum):
    RUNNING = "running"
    ENDED = "ended"
    CUT_OFF = "cut off"
    NOT_ENDED = "open"  # running or cut off: of another user, or where nobody can tell


@dataclass(frozen=True, slots=True)
class RunEntry:
    """One run."""

    folder: Path
    state: RunState
    verdict: Verdict | None  # the worst of the steps that ended, of a repeated one the last attempt's; None: none did
    exit_code: int | None  # of a run that ended
    plan: str
    version: str  # of ivypy
    start: datetime  # UTC
    length_s: float | None  # until now where it is running; None where it is not known
    hosts: tuple[str, ...]
    steps: tuple[str, ...]  # that began

    @property
    def name(self) -> str:
        """Of the plan, or of `--name`, as the folder's name begins; of a folder with another name its plan file's."""
        found = _FOLDER.fullmatch(self.folder.name)
        return found[1] if found else PurePath(self.plan).stem

    @property
    def is_renamed(self) -> bool:
        """Whether its folder's name is none that ivypy gives."""
        return _FOLDER.fullmatch(self.folder.name) is None


def entries_below(root: Path, now: datetime) -> tuple[list[RunEntry], list[str]]:
    """The runs in a folder, or the run that the folder is; the newest first. And what could not be read, with why.

    Raises PlanError where there is no such folder.
    """
    if not root.is_dir():
        raise PlanError(
            f"{root}: {'a file' if root.exists() else 'there is no such folder'}; name a folder in which "
            "`ivypy run -o` or `ivypy quick -o` made runs"
        )
    entries, faults = [], []
    for folder in run_folders(root):
        try:
            entries.append(entry_of(folder, now))
        except PlanError as error:
            faults.append(str(error))
    return sorted(entries, key=lambda one: (one.start, one.folder.name), reverse=True), sorted(faults)


def run_folders(root: Path) -> list[Path]:
    """A root that is a run, else the runs in it, each once: a symbolic link among them is the run that it leads to.

    Another user's link counts only where it leads to a folder of that user.
    """
    if (root / RUN_JSON).is_file():
        return [root]
    folders: dict[Path, Path] = {}  # by where they are
    for path in sorted((one.parent for one in root.glob(f"*/{RUN_JSON}")), key=lambda one: (one.is_symlink(), one)):
        if not path.is_symlink():
            folders[path.resolve()] = path
        elif _may_enter(path):
            folders.setdefault(path.resolve(), path.resolve())
    return [*folders.values()]


def _may_enter(link: Path) -> bool:
    try:
        return may_follow(link.lstat().st_uid, link.stat().st_uid, os.geteuid())
    except OSError:
        return False  # it vanished


def entry_of(folder: Path, now: datetime) -> RunEntry:
    """A run's entry; `now` in UTC. Raises PlanError where its run.json cannot be read."""
    record = read_record(folder)
    try:
        start = _time(record["start_utc"] or "")
        end = _time(record["end_utc"]) if record["end_utc"] else None
    except ValueError as error:
        raise PlanError(f"{folder}/{RUN_JSON}: not read: {error}") from None
    state = _state(folder, record)
    until = end or (now if state is RunState.RUNNING else None)
    return RunEntry(
        folder=folder,
        state=state,
        verdict=worst(Verdict(step["verdict"]) for step in that_count(record) if step["verdict"]),
        exit_code=record["exit_code"],
        plan=record["plan"],
        version=record["version"],
        start=start,
        length_s=None if until is None else (until - start).total_seconds(),
        hosts=tuple(record["hosts"]),
        steps=tuple(step["name"] for step in record["steps"]),
    )


def worst(verdicts: Iterable[Verdict]) -> Verdict | None:
    """None of none."""
    order = [Verdict.VALID, *(Verdict(one) for one in Severity if one is not Severity.NOTE)]
    return max(verdicts, key=order.index, default=None)


def _time(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except OverflowError as error:
        raise ValueError(str(error)) from None


def _state(folder: Path, record: dict[str, Any]) -> RunState:
    if record["end_utc"]:
        return RunState.ENDED
    alive = None if is_others(folder, record) else lives(folder, record)
    return {True: RunState.RUNNING, False: RunState.CUT_OFF, None: RunState.NOT_ENDED}[alive]


_COLUMNS: Final = ColumnGroup(
    "",
    (
        TextColumn("started", -16), TextColumn("state", -7), TextColumn("verdict", -7), TextColumn("length", 6),
        TextColumn("hosts", 5), TextColumn("steps", 5), TextColumn("run", 0),
    ),
)  # fmt: skip


def entry_lines(entries: Iterable[RunEntry], now: datetime) -> list[str]:
    """A line each, with the title first; times in the zone of `now`. The folder is last, whole, to be copied."""
    return [*header_lines([_COLUMNS]), *(row_line([_COLUMNS], _cells(entry, now)) for entry in entries)]


def entry_csv(entries: Iterable[RunEntry]) -> str:
    """Return what `entry_data` has as CSV; several hosts or steps with blanks between them."""
    rows = [entry_data(entry) for entry in entries]
    cells = [[" ".join(one) if isinstance(one, list) else one for one in row.values()] for row in rows]
    return csv_of(_DATA, cells)


def entry_markdown(entries: Iterable[RunEntry], now: datetime) -> str:
    """The lines' table as Markdown."""
    return markdown_table([column.title for column in _COLUMNS.columns], (_cells(entry, now) for entry in entries))


def _cells(entry: RunEntry, now: datetime) -> tuple[str, ...]:
    return (
        f"{entry.start.astimezone(now.tzinfo):%Y-%m-%d %H:%M}",
        str(entry.state),
        str(entry.verdict or (f"exit {entry.exit_code}" if entry.exit_code else BLANK)),
        BLANK if entry.length_s is None else duration(entry.length_s),
        str(len(entry.hosts)),
        str(len(entry.steps)),
        str(entry.folder),
    )


_DATA: Final = (
    "run", "folder", "state", "verdict", "exit_code", "plan", "version", "start_utc", "length_s", "hosts", "steps",
)  # fmt: skip


def entry_data(entry: RunEntry) -> dict[str, Any]:
    """As JSON has it; times in UTC, ISO 8601."""
    return {
        "run": entry.folder.name,
        "folder": str(entry.folder),
        "state": str(entry.state),
        "verdict": entry.verdict and str(entry.verdict),
        "exit_code": entry.exit_code,
        "plan": entry.plan,
        "version": entry.version,
        "start_utc": entry.start.isoformat().replace("+00:00", "Z"),
        "length_s": entry.length_s,
        "hosts": list(entry.hosts),
        "steps": list(entry.steps),
    }
