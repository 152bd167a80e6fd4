"""Reads a job file of fio. A group of jobs (up to the next `stonewall`) becomes a group of streams.

Rule: pure; what lies outside of the file comes through Surroundings. An option that is known and has no counterpart is
dropped, with its reason; one that is unknown, or a job that is no block or file I/O, refuses the whole file.
"""

import re
from dataclasses import replace

from ..errors import PlanError
from .description import Description, Dropped, Group, Surroundings, Target
from .fio_job import Job, ReadJob
from .fio_text import sections


def read_fio(text: str, name: str, around: Surroundings) -> Description:
    """What the job file does. Raises PlanError with every reason why it cannot be read, a line each."""
    faults: list[str] = []
    jobs = [Job(section, around, faults) for section in sections(text, name, around, faults)]
    if not jobs and not faults:
        faults.append(f"{name}: no job; a section is [name]")
    read = [job.read() for job in jobs]
    engines = {one.backend for one in read}
    if "null" in engines and len(engines) > 1:
        faults += [_not_alone(one) for one in read if one.backend == "null"]
    if faults:
        raise PlanError("\n".join(dict.fromkeys(faults)))
    groups, uneven = _groups(read)
    uneven += [_other_engine(one) for one in read if one.backend not in ("auto", read[0].backend)]
    return Description(
        source=name,
        backend=engines.pop() if len(engines) == 1 else "auto",
        targets=_merged([target for one in read for target in one.targets]),
        groups=groups,
        dropped=tuple(dict.fromkeys([*(dropped for job in jobs for dropped in job.dropped), *uneven])),
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


def _merged(targets: list[Target]) -> tuple[Target, ...]:
    """Each path once, with the largest size that a job needs."""
    found: dict[str, Target] = {}
    for target in targets:
        other = found.get(target.path)
        if other is None or (target.size or 0) > (other.size or 0):
            found[target.path] = target
    return tuple(found.values())


def _groups(jobs: list[ReadJob]) -> tuple[tuple[Group, ...], list[Dropped]]:
    """The groups, and the jobs whose times differ from those of their group."""
    parted: list[list[ReadJob]] = []
    for job in jobs:
        if job.begins_group or not parted:
            parted.append([])
        parted[-1].append(job)
    names: set[str] = set()
    steps: set[str] = set()
    groups: list[Group] = []
    uneven: list[Dropped] = []
    for members in parted:
        streams = []
        for job in members:
            for stream in job.streams:
                unique = _unique(stream.name, names)
                streams.append(replace(stream, name=unique))
        steady = next((job.steady for job in members if job.steady), None)
        uneven += [_uneven(job, members[0]) for job in members if job.times != members[0].times]
        longest = max(job.measure_s for job in members)
        groups.append(
            Group(
                _unique(members[0].section.name, steps),
                tuple(streams),
                max(job.warmup_s for job in members),
                longest,
                steady,
            )
        )
    return tuple(groups), uneven


def _uneven(job: ReadJob, first: ReadJob) -> Dropped:
    why = f"its times differ from those of [{first.section.name}], which runs with it"
    nearest = "streams of a step have one time: the longest"
    return Dropped(job.section.where, f"[{job.section.name}]", why, nearest, matters=True)


def _unique(name: str, taken: set[str]) -> str:
    plain = re.sub(r"[^A-Za-z0-9._-]+", "_", name).strip("._-") or "job"
    number, unique = 1, plain
    while unique.lower() in taken:
        number += 1
        unique = f"{plain}-{number}"
    taken.add(unique.lower())
    return unique
