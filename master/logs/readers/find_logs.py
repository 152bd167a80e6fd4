"""From the command line's paths to the logs that can be merged.

Rule: a folder stands for the logs in it, of one format (histograms before single I/Os, which may be the same I/Os);
everything that cannot be used is a fault, and logs of one kind get one layout.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from ..faults import Fault
from .bucket_layouts import Layout
from .detect_format import Hints, detect
from .ivypy_run import left_out, sources_of
from .logging_period import with_periods
from .records import NS_PER_MS
from .source import Format, Kind, Source, named, with_hosts

RUN_FILE: Final = "histograms.sqlite"
PACKED: Final = {".gz", ".xz", ".zst"}  # ends of the names that packers give


@dataclass(frozen=True, slots=True)
class Found:
    sources: tuple[Source, ...]
    faults: tuple[Fault, ...]
    layouts: dict[Kind, Layout]  # the layout that each kind is merged in
    notes: tuple[str, ...] = ()


def find(
    paths: Sequence[Path],
    hints: Hints,
    latencies: Sequence[str] = (),
    all_phases: bool = True,
    copies: Mapping[Path, Path] | None = None,
) -> Found:
    """`all_phases`: of runs, also what no measurement counts. `copies`: files that hold what came through pipes."""
    sources: list[Source] = []
    faults: list[Fault] = []
    notes: list[str] = []
    seen: dict[tuple[int, int], Path] = {}
    unpacked: dict[Path, Path] = {}  # each file by the name that it has unpacked
    empty_slats: list[Fault] = []
    copies = copies or {}
    for path in paths:
        if not path.is_dir():
            files = [path]
        elif (path / RUN_FILE).exists():
            files = [path / RUN_FILE]
        else:
            files = _logs_in(path)
            if not files:
                faults.append(Fault(str(path), "is a folder without logs of fio, smallfile or ivypy in it"))
            else:
                notes.append(f"{path}: logs in it: {len(files)}, from {files[0].name}")
        for file in files:
            if (first := _seen_before(file, seen)) is not None:
                notes.append(f"{file}: is the same file as {first}; read once")
                continue
            other = unpacked.setdefault(file.with_suffix("") if file.suffix in PACKED else file, file)
            if other is not file:
                notes.append(f"{file}: is by its name a copy of {other}; read once")
                continue
            source = detect(file, hints, copies.get(file))
            if isinstance(source, Source) and source.format is Format.IVYPY:
                run = sources_of(file, latencies, all_phases)
                source = run if isinstance(run, Fault) else source
                sources += [] if isinstance(run, Fault) else run
                if not isinstance(run, Fault) and (phases := left_out(file, run[0].other_phases)):
                    words = ", ".join(phases)
                    notes.append(f"{file.parent}: subintervals left out by phase: {words}; --phases all has them")
            elif isinstance(source, Source):
                sources.append(source)
            if isinstance(source, Fault):
                (empty_slats if _is_empty_slat(file) else faults).append(source)
    if empty_slats and not sources:
        faults += empty_slats
    elif empty_slats:
        notes.append(
            f"empty slat logs, as synchronous engines leave them, left out: {len(empty_slats)}, "
            f"from {empty_slats[0].path}"
        )
    given_ns = round(hints.period_ms * NS_PER_MS) if hints.period_ms is not None else None
    sources = _named_runs(sources)
    sources, assumptions = with_periods(with_hosts(sources), given_ns)
    notes += assumptions
    layouts, misfits = _layouts(sources)
    faults.extend(misfits)
    bad = {fault.path for fault in misfits}
    return Found(tuple(s for s in sources if s.name not in bad), tuple(faults), layouts, tuple(notes))


def _is_empty_slat(file: Path) -> bool:
    """fio makes a slat log for every job; an engine that completes I/Os at once has nothing to write there."""
    return named(file).quantity == "slat" and file.is_file() and not file.stat().st_size


def _seen_before(file: Path, seen: dict[tuple[int, int], Path]) -> Path | None:
    """The path under which a file was given before, whatever links lead to it; None the first time."""
    try:
        status = file.stat()
        place = status.st_dev, status.st_ino
    except OSError:  # standard input, or a fault that detect reports
        place = -1, hash(file)
    first = seen.setdefault(place, file)
    return first if first is not file else None


def _named_runs(sources: Sequence[Source]) -> list[Source]:
    """Runs by their folders' names, or by their paths where two have one name."""
    names = {source.run: Path(source.run).name for source in sources if source.format is Format.IVYPY}
    if len(set(names.values())) < len(names) or not all(names.values()):
        return list(sources)
    return [replace(source, run=names.get(source.run, source.run)) for source in sources]


def _logs_in(folder: Path) -> list[Path]:
    """The logs of a folder by their names: histograms if there are any, else smallfile's, else single latencies."""
    files = sorted(path for path in folder.iterdir() if path.is_file())
    names = {path: named(path) for path in files}
    return (
        [path for path in files if names[path].is_histogram]
        or [path for path in files if names[path].quantity == "response_time"]
        or [path for path in files if names[path].quantity]
    )


def _layouts(sources: Sequence[Source]) -> tuple[dict[Kind, Layout], list[Fault]]:
    """One layout for the histograms of each kind: the finest that all of the commonest unit can be turned into."""
    layouts: dict[Kind, Layout] = {}
    faults: list[Fault] = []
    for kind in {source.kind for source in sources}:
        own = [source for source in sources if source.kind == kind]
        if own[0].format is not Format.FIO_HISTOGRAM:
            continue
        commonest = Counter(source.layout for source in own).most_common(1)[0][0]
        layout = commonest
        for source in own:
            if source.layout.merges_with(commonest):
                layout = layout.merged(source.layout)
            else:
                faults.append(
                    Fault(
                        source.name,
                        f"has {source.layout}: expected {commonest}, as most of the logs have",
                        "logs of fio 2 and fio 3 cannot be merged; analyse them apart",
                        line=1,
                    )
                )
        layouts[kind] = layout
    return layouts, faults
