"""Reads a job file of fio, or a command that starts it. A group of jobs (up to the next `stonewall`) becomes a group of
streams.

Rule: pure; what lies outside of the file comes through Surroundings. An option that is known and has no counterpart is
dropped, with its reason; one that is unknown, or a job that is no block or file I/O, refuses the whole file.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ..errors import PlanError
from ..text.units import format_duration
from .course import Course, UniqueNames
from .description import (
    Description,
    Dropped,
    ImportContext,
    ImportedEdit,
    ImportedRun,
    ImportedTarget,
    Settings,
    Stream,
    in_file_order,
)
from .fio_command import FIO, command_lines, parted
from .fio_job import Job, ReadJob
from .fio_text import file_lines, sections

_END = ("end_fsync", "true")


def read_fio(text: str, name: str, around: ImportContext) -> Description:
    """Return what the job file does. Raises PlanError with every reason why it cannot be read, a line each."""
    faults: list[str] = []
    return _read(file_lines(text, name, around, faults, []), name, "a section is [name]", around, faults)


def read_fio_command(words: Sequence[str], around: ImportContext) -> Description:
    """Return what fio does, started with these words of a shell. Raises PlanError, as for a file."""
    faults: list[str] = []
    before, options = parted(words)
    read = _read(command_lines(options, faults), FIO, "it begins with --name", around, faults)
    notes = [f"what stands before {FIO} is left out: {' '.join(before)}"] if before else []
    return replace(read, source=read.streams[0].name, notes=(*notes, *read.notes))


def _read(
    lines: Iterable[tuple[str, str]], name: str, way_out: str, around: ImportContext, faults: list[str]
) -> Description:
    jobs = [Job(section, around, faults) for section in sections(lines, around, faults)]
    if not jobs and not faults:
        faults.append(f"{name}: no job; {way_out}")
    read = [job.read() for job in jobs]
    engines = {one.backend for one in read}
    if "null" in engines and len(engines) > 1:
        faults += [_not_alone(one) for one in read if one.backend == "null"]
    if faults:
        raise PlanError("\n".join(dict.fromkeys(faults)))
    streams, actions, uneven = _in_groups(read)
    uneven += [_other_engine(one) for one in read if one.backend not in ("auto", read[0].backend)]
    return Description(
        source=name,
        backend=engines.pop() if len(engines) == 1 else "auto",
        targets=_merged([target for one in read for target in one.targets]),
        streams=streams,
        actions=actions,
        dropped=in_file_order([*(dropped for job in jobs for dropped in job.dropped), *uneven]),
    )


def _not_alone(job: ReadJob) -> str:
    where = job.section.options["ioengine"].where
    return f"{where}: ioengine=null: a plan has one backend, and other jobs do real I/O; move [{job.section.name}] away"


def _other_engine(job: ReadJob) -> Dropped:
    option = job.section.options["ioengine"]
    what = f"ioengine={option.value}"
    return Dropped(
        option.where, what, "a plan has one backend, jobs have several", "the plan has `auto`", matters=False
    )


def _merged(targets: list[ImportedTarget]) -> tuple[ImportedTarget, ...]:
    """Each path once, with the largest size that a job needs."""
    by_path: dict[str, ImportedTarget] = {}
    for target in targets:
        other = by_path.get(target.path)
        if other is None or (target.size or 0) > (other.size or 0):
            by_path[target.path] = target
    return tuple(by_path.values())


def _in_groups(jobs: list[ReadJob]) -> tuple[tuple[Stream, ...], tuple[ImportedEdit | ImportedRun, ...], list[Dropped]]:
    """The streams, the steps of the groups, and the jobs whose times differ from those of their group."""
    parted: list[list[ReadJob]] = []
    for job in jobs:
        if job.begins_group or not parted:
            parted.append([])
        parted[-1].append(job)
    uneven = [_shortened(job) for members in parted if _ends_apart(members) for job in members if job.has_both_ends]
    parted = [[job.ends_itself for job in members] if _ends_apart(members) else members for members in parted]
    parted = [[job.starting(min(one.start_s for one in members)) for job in members] for members in parted]
    names = UniqueNames()
    groups = [
        [replace(stream, name=names.of(stream.name)) for job in members for stream in job.streams] for members in parted
    ]
    streams = [
        stream if members is groups[0] else replace(stream, iops="0") for members in groups for stream in members
    ]
    course = Course({stream.name: {"iops": stream.iops} for stream in streams})
    steps = UniqueNames()
    for members, of_group in zip(parted, groups, strict=True):
        uneven += [_uneven(job, members[0]) for job in members if job.times != members[0].times]
        wanted = {stream.name: {"iops": stream.iops} for stream in of_group}
        course.run(steps.of(members[0].section.name), wanted, _keys(members))
    return tuple(streams), tuple(course.actions), uneven


def _ends_apart(members: list[ReadJob]) -> bool:
    """Whether the jobs of a group end at different times, or with a flush after their time."""
    timed = {(job.start_s, job.measure_s) for job in members if job.measure_s is not None}
    return len(timed) > 1 or any(_END in stream.more and not stream.until for job in members for stream in job.streams)


def _shortened(job: ReadJob) -> Dropped:
    why = "fio ends it after its time, where that is over before its volume is done"
    return Dropped(job.section.where, f"[{job.section.name}]", why, "the plan does its volume", matters=True)


def _keys(members: list[ReadJob]) -> Settings:
    """Of the step of a group."""
    warmup = ("warmup", format_duration(max(job.warmup_s for job in members)))
    steady = next((job.steady for job in members if job.steady), None)
    if steady is None:
        times = [job.measure_s for job in members]
        endless = any(not stream.until for job in members for stream in job.streams)
        given = [one for one in times if one is not None]
        if not given or (len(given) < len(times) and not endless):
            return (warmup,)
        return warmup, ("measure", format_duration(max(given)))
    window, timeout = format_duration(steady.window_s), format_duration(steady.timeout_s)
    said = f"{{ criterion: {steady.criterion}, limit: {steady.limit}, window: {window}, timeout: {timeout} }}"
    return warmup, ("steady", said)


def _uneven(job: ReadJob, first: ReadJob) -> Dropped:
    why = f"its times differ from those of [{first.section.name}], which runs with it"
    nearest = "streams of a step have one time: the longest"
    return Dropped(job.section.where, f"[{job.section.name}]", why, nearest, matters=True)
