"""The runs below a folder, each as an entry of a list: name, state, verdict, start, length, hosts, steps, load, IOPS.

Rule: a run that did not end is running if its process holds the lock in its folder; else it was cut off, killed or by a
crash. Of another user's run nobody but root can tell, and where there are no locks and no socket, nobody.
"""

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from enum import StrEnum
from pathlib import Path, PurePath
from typing import Any, Final

from ..errors import PlanError
from ..output.run_files import may_follow
from ..text.row_texts import csv_of, markdown_table
from ..text.scaled import BLANK, WIDEST, duration
from ..text.table import ColumnGroup, TextColumn, header_lines, row_line
from ..verdicts import Severity, Verdict
from .checked_files import RUN_JSON, is_others, lives, snapshot, that_count
from .last_measured import LastMeasured, last_measured

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
    last: LastMeasured
    interrupted_by: str = ""  # what ended it early: a signal or command; "": nothing, or it is not known

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
    kept = snapshot(folder)
    record = kept.record
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
        last=last_measured(kept),
        interrupted_by=record["interrupted_by"],
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


@dataclass(frozen=True, slots=True)
class _EntryColumn:
    """A column of the lines: wide tables have all, narrow ones those with a `narrow` width."""

    title: str
    wide: int  # negative: to the left
    narrow: int | None
    text: Callable[[RunEntry, tzinfo | None], str]
    short: Callable[[RunEntry, tzinfo | None], str] | None = None  # in a narrow table


def _verdict(entry: RunEntry) -> str:
    return str(entry.verdict or (f"exit {entry.exit_code}" if entry.exit_code else BLANK))


_LOAD: Final = "load"
_LEAST_LOAD: Final = 12  # columns; where there are fewer, it is left out
_COLUMNS: Final = (
    _EntryColumn(
        "started", -16, -11, lambda entry, zone: f"{entry.start.astimezone(zone):%Y-%m-%d %H:%M}",
        lambda entry, zone: f"{entry.start.astimezone(zone):%m-%d %H:%M}",
    ),
    _EntryColumn("state", -7, None, lambda entry, _: str(entry.state)),
    _EntryColumn(
        "verdict", -7, -7, lambda entry, _: _verdict(entry),
        lambda entry, _: _verdict(entry) if entry.state is RunState.ENDED else str(entry.state),
    ),
    _EntryColumn("length", 6, None, lambda entry, _: BLANK if entry.length_s is None else duration(entry.length_s)),
    _EntryColumn("hosts", 5, None, lambda entry, _: str(len(entry.hosts))),
    _EntryColumn("steps", 5, None, lambda entry, _: str(len(entry.steps))),
    _EntryColumn("IOPS", WIDEST + 2, WIDEST + 2, lambda entry, _: entry.last.rate),
    _EntryColumn(_LOAD, -1, -1, lambda entry, _: entry.last.load or BLANK),
    _EntryColumn("run", 0, 0, lambda entry, _: str(entry.folder)),
)  # fmt: skip


def entry_lines(entries: Sequence[RunEntry], now: datetime, width: int | None = None) -> list[str]:
    """A line each, with the title first; times in the zone of `now`. The folder is last, whole, to be copied.

    Within `width` columns, if given, the load is cut; where it is narrow, columns are left out, and of a run that did
    not end its state stands in place of the verdict.
    """
    longest = max((len(entry.last.load) for entry in entries), default=0)
    whole = max(longest, len(_LOAD))
    least = min(whole, _LEAST_LOAD)
    path = max((len(str(entry.folder)) for entry in entries), default=0)
    room = {is_narrow: width - _fixed(is_narrow) - path if width else whole for is_narrow in (False, True)}
    is_narrow = room[False] < least
    for_load = min(whole, room[is_narrow])
    shown = [column for column in _shown(is_narrow) if column.title != _LOAD or for_load >= least]
    group = ColumnGroup("", tuple(_text_column(column, is_narrow, for_load) for column in shown))
    lines = [[_cell(column, entry, now, is_narrow, for_load) for column in shown] for entry in entries]
    return [*header_lines([group]), *(row_line([group], cells) for cells in lines)]


def _shown(is_narrow: bool) -> list[_EntryColumn]:
    return [column for column in _COLUMNS if not is_narrow or column.narrow is not None]


def _fixed(is_narrow: bool) -> int:
    """The columns of a terminal that all but the load and the folder take, with the blanks between them."""
    shown = _shown(is_narrow)
    widths = [(column.narrow or 0) if is_narrow else column.wide for column in shown if column.title != _LOAD]
    return sum(map(abs, widths)) + len(shown) - 1


def _text_column(column: _EntryColumn, is_narrow: bool, for_load: int) -> TextColumn:
    width = (column.narrow or 0) if is_narrow else column.wide
    return TextColumn(column.title, -for_load if column.title == _LOAD else width)


def _cell(column: _EntryColumn, entry: RunEntry, now: datetime, is_narrow: bool, for_load: int) -> str:
    text = (column.short if is_narrow and column.short else column.text)(entry, now.tzinfo)
    return f"{text[: for_load - 1].rstrip(' ,')}~" if column.title == _LOAD and len(text) > for_load else text


def entry_csv(entries: Iterable[RunEntry]) -> str:
    """Return what `entry_data` has as CSV; several hosts or steps with blanks between them."""
    rows = [entry_data(entry) for entry in entries]
    cells = [[" ".join(one) if isinstance(one, list) else one for one in row.values()] for row in rows]
    return csv_of(_DATA, cells)


def entry_markdown(entries: Iterable[RunEntry], now: datetime) -> str:
    """The lines' table as Markdown."""
    rows = ([column.text(entry, now.tzinfo) for column in _COLUMNS] for entry in entries)
    return markdown_table([column.title for column in _COLUMNS], rows)


_DATA: Final = (
    "run", "folder", "state", "verdict", "exit_code", "plan", "version", "start_utc", "length_s", "hosts", "steps",
    "load", "overall_iops", "rate_verdict",
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
        "load": entry.last.load or None,
        "overall_iops": entry.last.iops,
        "rate_verdict": entry.last.verdict and str(entry.last.verdict),
    }
