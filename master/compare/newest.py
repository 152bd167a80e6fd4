"""Chooses both sides from a folder in which runs gather, night after night: the newest runs, and those before them.

Rule: a run counts where it has ended with results, was not interrupted, and has the name that is given, or else that of
the newest that counts; copies count once. Where too few have it, the output counts the runs of other names, which were
not compared.
Invalid runs count: their figures are left out one by one, since a load that the storage no longer sustains is what a
regression looks like.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from shlex import quote
from typing import ClassVar, Final

from ..errors import IvypyError, PlanError
from ..exit_codes import ExitCode
from ..output.file_names import stem
from ..results.checked_files import Snapshot, read_whole
from ..results.finished_run import why_no_results
from ..results.run_entries import RunEntry, RunState, entries_below
from ..rollup.instances import ALL
from ..text.suggestions import listed, suggestion
from .outcomes import FEWEST_RUNS
from .sides import Sides

NEWEST: Final = 3
PREVIOUS: Final = 21
_MOST_NAMED: Final = 3  # other plans


class NoCompleteRun(IvypyError):
    """A folder of runs of which none counts, so far."""

    exit_code: ClassVar[ExitCode] = ExitCode.NOT_REACHED


@dataclass(frozen=True, slots=True)
class History:
    """How many runs stand on each side, at most, and of which name."""

    newest: int = NEWEST
    previous: int = PREVIOUS
    name: str | None = None  # of the plan, or of `run --name`; None: that of the newest


def sides_of_history(root: Path, history: History, now: datetime) -> Sides:
    """A: the runs before the newest; B: the newest. Each in the order of time; A may be empty.

    Raises PlanError where `root` is no folder of runs, or has none of the name; NoCompleteRun where no run counts.
    """
    entries, faults = entries_below(root, now)
    if not entries and not faults:
        raise PlanError(f"{root}: there are no runs; name the folder that `ivypy run -o` made")
    if any(entry.folder == root for entry in entries):
        raise PlanError(f"{root}: one run; --newest takes the folder in which the runs are: {root.resolve().parent}")
    if history.name is not None:
        entries = _of_name(entries, history.name, root)
    whys = {entry.folder: _why_not(entry) for entry in entries}
    complete = [entry for entry in entries if not whys[entry.folder]]
    if not complete:
        first = next(((folder, why) for folder, why in whys.items()), None)
        example = f"; {first[0].name}: {first[1]}" if first else f"; {faults[0]}"
        of_name = f" of {history.name}" if history.name is not None else ""
        raise NoCompleteRun(f"Cannot tell: {root} has no complete run{of_name} yet{example}")
    copies = _copies(complete)
    entries, complete = ([entry for entry in some if entry.folder not in copies] for some in (entries, complete))
    name = complete[0].name
    chosen = [entry for entry in complete if entry.name == name][: history.newest + history.previous]
    newest, before = chosen[: history.newest], chosen[history.newest :]
    since = [entry for entry in entries if entry.start >= chosen[-1].start]
    as_new = [entry for entry in since if entry.start >= newest[-1].start]
    newest_left_out = (*_left_out(as_new, whys, name), *faults)  # what cannot be read may be the newest
    left_out = [*faults, *_left_out(since, whys, name)]
    left_out += [
        f"{copy}: left out: a copy of {entry.folder.name}" for copy, entry in copies.items() if entry in chosen
    ]
    if min(len(before), len(newest)) < FEWEST_RUNS:
        left_out += _not_looked_at(complete, name)
    else:
        left_out += _of_other_names(since, name)
    return Sides(
        _in_order(before), _in_order(newest), tuple(left_out), is_history=True, newest_left_out=newest_left_out
    )


def _in_order(entries: Sequence[RunEntry]) -> tuple[Path, ...]:
    return tuple(entry.folder for entry in reversed(entries))


def _copies(complete: Sequence[RunEntry]) -> dict[Path, RunEntry]:
    """The folders that have what another one has, and the entry of that one: whose name ivypy gave, or the shortest."""
    copies: dict[Path, RunEntry] = {}
    by_start = attrgetter("start")
    for _, same_start in groupby(sorted(complete, key=by_start), by_start):
        originals: list[tuple[RunEntry, bytes]] = []
        candidates = sorted(same_start, key=lambda one: (one.is_renamed, len(one.folder.name), one.folder.name))
        for entry in candidates if len(candidates) > 1 else ():
            summary = _summary(entry.folder)
            original = next((first for first, same in originals if same == summary), None)
            if original:
                copies[entry.folder] = original
            else:
                originals.append((entry, summary))
    return copies


def _summary(folder: Path) -> bytes:
    """Of a complete run. Raises PlanError."""

    def read(kept: Snapshot) -> bytes:
        return kept.results.joinpath(f"summary.{ALL}.csv").read_bytes()

    try:
        return read_whole(folder, read)
    except OSError as error:
        raise PlanError(f"{error.filename}: {error.strerror}") from error


def _left_out(entries: Sequence[RunEntry], whys: dict[Path, str], name: str) -> Iterator[str]:
    """In words: runs that are not complete."""
    for entry in entries:
        if whys[entry.folder] and entry.name == name:
            yield f"{entry.folder}: left out: {whys[entry.folder]}"


def _of_other_names(entries: Sequence[RunEntry], name: str) -> Iterator[str]:
    """In words."""
    others = [entry.name for entry in entries if entry.name != name]
    if others:
        names = listed(list(dict.fromkeys(others)), _MOST_NAMED)
        yield f"left out: {len(others)} run{'s' if len(others) > 1 else ''} of another name than {name}: {names}"


def _not_looked_at(complete: Sequence[RunEntry], name: str) -> Iterator[str]:
    """The runs of other names, however old, and how they are chosen: they may be the ones that are meant."""
    others = Counter(entry.name for entry in complete if entry.name != name).most_common()
    if others:
        counts = listed([f"{count} run{'s' if count > 1 else ''} of {other}" for other, count in others], _MOST_NAMED)
        verb = "are" if others[0][1] > 1 or len(others) > 1 else "is"
        yield f"{counts} {verb} not compared: --name {quote(others[0][0])}"


def _of_name(entries: Sequence[RunEntry], name: str, root: Path) -> list[RunEntry]:
    """Raises PlanError where there are none. Folders have the name without the characters that a file cannot have."""
    chosen = [entry for entry in entries if entry.name in (name, stem(name))]
    if not chosen:
        names = {entry.name for entry in entries}
        raise PlanError(f"--name {name}: no run in {root} has this name{suggestion(name, names)}")
    return chosen


def _why_not(entry: RunEntry) -> str:
    """Why the run does not count; "" where it does."""
    if entry.state is not RunState.ENDED:
        return "it has not ended, or was cut off"
    if entry.exit_code == ExitCode.INTERRUPTED:
        return "it was interrupted"
    return why_no_results(entry.folder)
