"""The files of a run's folder, read and checked: run.json, and the CSV files.

Rule: whatever is wrong with a file, damaged or of another version, is a PlanError that names the file and the place; so
whoever reads on may trust the types.
"""

import csv
import os
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from ..errors import PlanError
from ..exit_codes import ExitCode
from ..live.socket_paths import answers
from ..output.csv_text import unguarded, whole_lines
from ..output.file_names import SO_FAR
from ..output.run_files import open_run_file, read_run_file
from ..output.run_lock import holds
from ..plan.attempts import attempts_that_count
from ..rollup.metrics import METRICS, of_nothing
from ..text.foreign_json import json_of
from ..verdicts import Verdict

T = TypeVar("T")

RUN_JSON: Final = "run.json"
_TEXTS: Final = ("name", "rollup_type", "rollup_instance", "reasons")  # columns that every summary has, as the next
_NUMBERS: Final[Mapping[str, Callable[[str], float]]] = {
    **dict.fromkeys(("step", "first_subinterval", "last_subinterval"), int),
    **dict.fromkeys([*METRICS, *(f"{name}_half_width" for name in METRICS)], float),
}
_VERDICTS: Final = {"verdict": True, "rate_verdict": False, "service_verdict": False, "response_verdict": False}


class _Entry(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)


class _Window(_Entry):
    first: int
    last: int
    set_aside: list[int] = []


class _Step(_Entry):
    number: int
    name: str
    verdict: Literal["", "valid", "partial", "failed", "invalid"]  # "": the step has not ended
    reasons: list[str] = []
    thresholds: list[str] = []
    measured: list[dict[str, Any]] = []
    windows: list[_Window] | None = None
    start_utc: str = ""
    end_utc: str | None = None


class _Record(_Entry):
    version: str = ""
    plan: str = ""
    argv: list[str] = []
    hosts: dict[str, Any] = {}
    backends: dict[str, str] = {}
    steps: list[_Step] = []
    planned_steps: list[str] = []  # of the plan's steps, the names; none where a program gives the steps
    exit_code: int | None = None
    interrupted_by: str = ""
    start_utc: str | None = None
    end_utc: str | None = None
    socket: str | None = None
    uid: int | None = None  # who ran it, where it was run


@dataclass(frozen=True)
class Snapshot:
    """A run's folder as it was at one moment; of a run that was cut off, with what the step that ran had measured."""

    folder: Path
    record: dict[str, Any]  # run.json, with every key that _Record has
    results: Path  # the folder of the summaries that count: the run's, or one of what it had measured so far

    @property
    def is_there(self) -> bool:
        """Whether the results still are: a run.json is the first file that is removed."""
        return (self.results / RUN_JSON).is_file()


def snapshot(folder: Path) -> Snapshot:
    """Raises PlanError."""
    record = _read(folder)
    if runs(folder, record):
        return Snapshot(folder, record, folder)
    if not record["end_utc"] and _read(folder) != record:
        return snapshot(folder)  # it ended meanwhile
    kept = _so_far(folder, record)
    if kept is None:
        return Snapshot(folder, record, folder)
    return Snapshot(folder, record | {"steps": kept[1]}, kept[0])


def read_whole(folder: Path, read: Callable[[Snapshot], T]) -> T:
    """Return what `read` returns, all of one snapshot: anew where its results were replaced meanwhile.

    Raises PlanError, and what `read` does.
    """
    while True:
        kept = snapshot(folder)
        try:
            result = read(kept)
        except (PlanError, OSError):
            if kept.is_there:
                raise
        else:
            if kept.is_there:
                return result


def read_record(folder: Path) -> dict[str, Any]:
    """Of the present snapshot. Raises PlanError."""
    return snapshot(folder).record


def is_quick(folder: Path) -> bool:
    """Whether `ivypy quick` made the run. Raises PlanError."""
    return bool(read_record(folder)["argv"][1:2] == ["quick"])


def results_of(folder: Path) -> Path:
    """The same: where its summaries are."""
    return snapshot(folder).results


@dataclass(frozen=True, slots=True)
class Counted:
    """The subintervals that a step's measurements include, where its rows do not have that yet: it was cut off."""

    windows: tuple[tuple[int, int, frozenset[int]], ...]  # first, last, set aside; in order

    def __contains__(self, number: int) -> bool:
        place = bisect_right(self.windows, number, key=lambda window: window[0]) - 1
        if place < 0:
            return False
        _, last, aside = self.windows[place]
        return number <= last and number not in aside


def counted_in(record: Mapping[str, Any], step: int) -> Counted | None:
    """Of a step, by its number; None where its rows have it."""
    windows = next((one["windows"] for one in record["steps"] if one["number"] == step), None)
    if windows is None:
        return None
    return Counted(tuple(sorted((one["first"], one["last"], frozenset(one["set_aside"])) for one in windows)))


def runs(folder: Path, record: Mapping[str, Any]) -> bool:
    """Whether a process may still write the run: it lives, or nobody can tell, as of another user's run only root
    can."""
    return not record["end_utc"] and (is_others(folder, record) or lives(folder, record) is not False)


def lives(folder: Path, record: Mapping[str, Any]) -> bool | None:
    """Whether the process of a run lives; None where that cannot be known.

    By the lock that it holds, since its socket goes with its user's login; where there is no lock, by the socket. Of
    versions before the lock there is only that.
    """
    if record["end_utc"]:
        return False
    try:
        held = holds(folder)
    except FileNotFoundError:
        return _listens(folder, record)
    return held if held is not None else _listens(folder, record) or None


def is_others(folder: Path, record: Mapping[str, Any]) -> bool:
    """Whether a run is another user's, for anybody but root: neither is the file this user's, whom NFS may call another
    or nobody, nor does the run itself say so. A run that lies there is taken for dead, and harms itself."""
    return os.geteuid() not in (0, (folder / RUN_JSON).stat().st_uid, record["uid"])


def _listens(folder: Path, record: Mapping[str, Any]) -> bool:
    """Whether somebody listens at the socket that a run names; in another user's folder than the run, it is not its."""
    path = Path(record["socket"] or "")
    try:
        owners = (folder.stat().st_uid, record["uid"])
        return bool(record["socket"]) and path.parent.stat().st_uid in owners and _may_ask(path) and answers(path)
    except OSError:
        return False


def _may_ask(socket: Path) -> bool:
    """Whether a socket is in a folder of this user's, as those of runs are; others' are theirs."""
    return os.geteuid() in (0, socket.parent.stat().st_uid)


def _so_far(folder: Path, record: Mapping[str, Any]) -> tuple[Path, list[dict[str, Any]]] | None:
    """Read what the step that ran when a run was cut off had measured, if that was written: its folder, and all
    steps.
    """
    if not record["steps"] or record["steps"][-1]["verdict"]:
        return None
    try:
        names = [entry.name for entry in os.scandir(folder / SO_FAR) if entry.name.isdecimal()]
    except OSError:
        return None
    kept = [folder / SO_FAR / name for name in sorted(names, key=int, reverse=True)]
    for step_folder in kept:
        if (step_folder / RUN_JSON).is_file():
            try:
                steps = _read(step_folder)["steps"]
            except PlanError:
                if (step_folder / RUN_JSON).is_file():
                    raise
                return _so_far(folder, record)  # it was replaced
            return (step_folder, steps) if _places(steps) == _places(record["steps"]) else None  # of the step before
    return None


def _places(steps: Sequence[Mapping[str, Any]]) -> list[tuple[int, str]]:
    return [(one["number"], one["name"]) for one in steps]


def _read(folder: Path) -> dict[str, Any]:
    path = folder / RUN_JSON
    try:
        record = _Record.model_validate(json_of(read_run_file(path).decode("utf-8", "surrogateescape"))).model_dump()
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise PlanError(f"{path}: not read: {place + ': ' if place else ''}{first['msg']}") from None
    except (OSError, ValueError) as error:
        raise PlanError(f"{path}: not read: {error}") from None
    code = record["exit_code"]
    if code is not None and code not in [*ExitCode]:
        raise PlanError(f"{path}: not read: exit_code: {code} is none of ivypy's")
    return record


def that_count(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The steps of run.json, of a repeated one the last attempt."""
    counting = attempts_that_count([step["name"] for step in record["steps"]])
    return [step for step in record["steps"] if step["name"] in counting]


def read_table(path: Path) -> list[dict[str, str]]:
    """A CSV's whole rows; none where there is no such file. Raises PlanError."""
    return [row for _, row in numbered_rows(path)]


def numbered_rows(path: Path) -> list[tuple[int, dict[str, str]]]:
    """The same, each with the number of its last line. Raises PlanError."""
    return _rows(path)[1] if path.is_file() else []


def read_summary(path: Path) -> list[dict[str, str]]:
    """The whole rows of a summary.<rollup type>.csv, checked, with the columns that it left out. Raises PlanError."""
    names, rows = _rows(path)
    if missing := [name for name in (*_TEXTS, "verdict", "step") if name not in names]:
        raise PlanError(f"{path}: not read: it is no summary of ivypy: it has no column {missing[0]}")
    for line, row in rows:
        _check(f"{path}:{line}", row)
    return [{**of_nothing(row.get("overall_iops", "")), **row} for _, row in rows]


def _rows(path: Path) -> tuple[list[str], list[tuple[int, dict[str, str]]]]:
    """The columns, and each row with the number of its last line."""
    try:
        with TextIOWrapper(open_run_file(path), newline="", encoding="utf-8", errors="surrogateescape") as file:
            reader = csv.DictReader(whole_lines(file))
            reader.fieldnames = [*map(unguarded, reader.fieldnames or ())]
            rows = [
                (reader.line_num, {name: unguarded(cell) for name, cell in row.items()})
                for row in reader
                if None not in row.values() and None not in row
            ]
            return [*reader.fieldnames], rows
    except (OSError, csv.Error) as error:
        raise PlanError(f"{path}: not read: {error}") from None


def each_row(path: Path) -> Iterator[dict[str, str]]:
    """A CSV's whole rows, one at a time; none where there is no such file. Raises PlanError."""
    if not path.is_file():
        return
    try:
        with TextIOWrapper(open_run_file(path), newline="", encoding="utf-8", errors="surrogateescape") as file:
            reader = csv.DictReader(whole_lines(file))
            for row in reader:
                if None not in row.values() and None not in row:
                    yield {name: unguarded(cell) for name, cell in row.items()}
    except (OSError, csv.Error) as error:
        raise PlanError(f"{path}: not read: {error}") from None


def read_rows(path: Path) -> list[list[str]]:
    """A CSV's whole lines as rows, with its header. Raises PlanError."""
    try:
        with TextIOWrapper(open_run_file(path), newline="", encoding="utf-8", errors="surrogateescape") as file:
            return [[*map(unguarded, row)] for row in csv.reader(whole_lines(file))]
    except (OSError, csv.Error) as error:
        raise PlanError(f"{path}: not read: {error}") from None


def _check(place: str, row: Mapping[str, str]) -> None:
    for name, number in _NUMBERS.items():
        text = row.get(name, "")
        try:
            if text or name == "step":
                number(text)
        except ValueError:
            raise PlanError(f"{place}: {name}: {text!r} is no number") from None
    for name, needed in _VERDICTS.items():
        if (text := row.get(name, "")) not in [*Verdict] and (text or needed):
            raise PlanError(f"{place}: {name}: {text!r} is no verdict")
