"""Reads a parameter file of vdbench. Each rd becomes a step, or as many as its lists have combinations.

Rule: pure; what lies outside of the file comes through Surroundings. A parameter that is known and has no counterpart
is dropped, with its reason; one that is unknown, or a file system test, refuses the whole file.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Final

from ..errors import PlanError
from ..text.units import format_fraction
from .course import Course, UniqueNames, Wanted
from .description import Description, Dropped, ImportContext, ImportedEdit, ImportedRun, Loop, Stream, in_file_order
from .vdbench_definitions import Rd, Reader, Wd
from .vdbench_luns import LOCAL, VdbenchLun, VdbenchLuns, hosts_of
from .vdbench_records import Record, records
from .vdbench_runs import MOST_STEPS, Load, RunReader, Runs
from .vdbench_text import Parameter, parameters

MANY_STEPS: Final = 50  # so many are worth a word
_HOST: Final = re.compile(r"[$!]host|#host(?!s)")
Dimensions = Sequence[tuple[str, int]]  # settings and how many values each takes; the first changes slowest


def read_vdbench(text: str, name: str, around: ImportContext) -> Description:
    """Return what the parameter file does. Raises PlanError with every reason why it cannot be read, a line each."""
    faults: list[str] = []
    dropped: list[Dropped] = []
    read = parameters(text, name, around, faults, dropped)
    _refuse(faults)  # what follows from a line that cannot be read helps nobody
    read_records, default_wd = records(read, faults, dropped)
    readers = {
        kind: [Reader(record, faults, dropped) for record in read_records if record.kind == kind]
        for kind in ("hd", "sd", "wd", "rd")
    }
    if not readers["rd"] and not faults:
        faults.append(f"{name}: no rd: nothing is run")
    hosts = hosts_of([reader.hd() for reader in readers["hd"]], faults, dropped)
    luns = VdbenchLuns(hosts, around, faults, dropped)
    labels = [reader.record.name for reader in readers["hd"]] or ["localhost"]
    for reader in readers["sd"]:
        for record in _for_each_host(reader.record, labels):
            for sd in Reader(record, faults, dropped).sds():
                luns.add(sd)
    wds = [
        replace(reader, record=record).wd()
        for reader in readers["wd"]
        for record in _for_each_host(reader.record, labels)
    ]
    for kind, names in (("wd", [wd.name for wd in wds]), ("rd", [reader.record.name for reader in readers["rd"]])):
        faults += [
            f"{name}: there are several {kind}={label}" for label in dict.fromkeys(names) if names.count(label) > 1
        ]
    runs, used = _runs([reader.rd() for reader in readers["rd"]], wds, default_wd, luns)
    targets = luns.targets(used)
    steps = sum(run.steps for run in runs)
    if steps > MOST_STEPS:
        faults.append(f"{name}: its lists make {steps:,} steps; a plan has at most {MOST_STEPS:,}")
    _refuse(faults)
    streams, actions = _course(runs)
    return Description(
        source=name, targets=targets, streams=streams, actions=actions,
        dropped=in_file_order(dropped),
        hosts=() if hosts.names == (LOCAL,) else hosts.names, host_keys=hosts.keys, user=hosts.user,
        notes=(f"{steps:,} steps; `ivypy check` says how long they take",) if steps > MANY_STEPS else (),
    )  # fmt: skip


def _refuse(faults: Sequence[str]) -> None:
    if faults:
        raise PlanError("\n".join(dict.fromkeys(faults)))


def _for_each_host(record: Record, labels: Sequence[str]) -> Iterator[Record]:
    """A definition with $host or #host in it stands for one of each host."""
    own = [*record.parameters.values(), *record.places]
    count = {"#hosts": str(len(labels))}
    if not any(_HOST.search(value) for one in own for value in (*one.values, record.name)):
        yield _replaced(record, count)
        return
    for place, label in enumerate(labels):
        yield _replaced(record, {**count, "$host": label, "!host": label, "#host": str(place)})


def _replaced(record: Record, words: Mapping[str, str]) -> Record:
    def replaced(text: str) -> str:
        for word, value in words.items():
            text = text.replace(word, value)
        return text

    def each(one: Parameter) -> Parameter:
        return replace(one, values=tuple(map(replaced, one.values)))

    return replace(
        record, name=replaced(record.name), parameters={name: each(one) for name, one in record.parameters.items()},
        places=tuple(map(each, record.places)),
    )  # fmt: skip


def _runs(
    rds: Sequence[Rd], wds: Sequence[Wd], default_wd: Mapping[str, Parameter], luns: VdbenchLuns
) -> tuple[list[Runs], list[VdbenchLun]]:
    """Each rd written out, and the LUNs that they drive."""
    all_runs: list[Runs] = []
    used: dict[str, VdbenchLun] = {}
    for rd in (one for written in rds for one in _for_each_set(written, luns)):
        known = list(wds)
        if rd.sds and not rd.wds:  # vdbench takes wd=default then
            record = Record("wd", rd.name, rd.record.where, rd.record.text, default_wd)
            known = [Reader(record, luns.faults, luns.dropped).wd()]
            rd = replace(rd, wds=(rd.name,))
        reader = RunReader(rd, known, luns, luns.faults, luns.dropped)
        run = reader.read()
        all_runs += [run] if run else []
        for lun in (lun for of_one in reader.of_wd.values() for lun in of_one):
            other = used.get(lun.name)
            used[lun.name] = VdbenchLun(lun.sd, {**other.paths, **lun.paths} if other else lun.paths)
    return all_runs, list(used.values())


def _for_each_set(rd: Rd, luns: VdbenchLuns) -> list[Rd]:
    """`sd=single` is an rd for each sd, `sd=range` one for the first, the first two and so on."""
    names = [lun.name for lun in luns.all]
    match rd.sds:
        case ("single",) | ("setsof1",):
            return [replace(rd, name=f"{rd.name}_{name}", sds=(name,)) for name in names]
        case ("range",):
            ends = range(1, len(names) + 1)
            return [replace(rd, name=f"{rd.name}_{names[0]}-{names[end - 1]}", sds=tuple(names[:end])) for end in ends]
        case (one,) if re.fullmatch(r"setsof\d+", one):
            luns.faults.append(f"{rd.record.where}: {rd.record.text}: sets that vdbench draws by chance; name the sds")
            return []
    return [rd]


def _course(runs: Sequence[Runs]) -> tuple[tuple[Stream, ...], tuple[ImportedEdit | ImportedRun, ...]]:
    """The workloads of the plan, and its steps and edits."""
    names, streams = _streams(runs)
    course = Course({stream.name: {**load.fixed, "iops": stream.iops} for stream, load in streams})
    taken = UniqueNames()
    for run in runs:
        passes = [{names[load.identity]: load.settings for load in pass_.loads} for pass_ in run.passes]
        whole = _as_one_step(run, passes, {stream.name for stream, _ in streams})
        if whole is not None:
            common, loop = whole
            points = ", ".join(map(format_fraction, run.curve))
            keys = (("iops_curve", f"[ {points} ]"), *run.keys) if run.curve else run.keys
            course.run(taken.of(run.name), common, keys, loop)
            continue
        for one, wanted in zip(run.passes, passes, strict=True):
            name = taken.of("-".join(filter(None, [run.name, one.label, "max" if run.curve else ""])))
            course.run(name, wanted, run.keys)
            for share in run.curve:
                rate = {"total_iops": f'"{format_fraction(share)} of step {name}"'}
                point = {stream: _paced(settings, rate) for stream, settings in wanted.items()}
                of_max = format_fraction(share).replace("%", "pct")
                course.run(taken.of(f"{name.removesuffix('-max')}-{of_max}"), point, run.keys)
    return tuple(stream for stream, _ in streams), tuple(course.actions)


def _as_one_step(
    run: Runs, passes: Sequence[Wanted], streams: set[str]
) -> tuple[Wanted, tuple[tuple[str, tuple[str, ...]], ...]] | None:
    """The run as a step with a `loop`, or with an `iops_curve`: both apply to all streams of the plan alike."""
    rated = run.curve or any(key == "total_iops" for key, _ in run.dimensions)
    if (rated and len(streams) > 1) or set(passes[0]) != streams or max(run.curve, default=0.0) > 1:
        return None
    return None if len(set(run.curve)) < len(run.curve) else folded(passes, run.dimensions)


def _paced(settings: Mapping[str, str], rate: Mapping[str, str]) -> dict[str, str]:
    """A stream that was at its maximum, at a rate; others keep theirs."""
    if "total_iops" in settings:
        return dict(settings)
    return {**{key: value for key, value in settings.items() if key != "iops"}, **rate}


def _streams(runs: Sequence[Runs]) -> tuple[dict[object, str], list[tuple[Stream, Load]]]:
    """Names by identity; the workloads as they are created, with their first loads."""
    names: dict[object, str] = {}
    streams: list[tuple[Stream, Load]] = []
    taken = UniqueNames()
    for place, load in enumerate(load for run in runs for one in run.passes for load in one.loads):
        if load.identity in names:
            continue
        names[load.identity] = taken.of(load.stream.name)
        at_once = place < len(runs[0].passes[0].loads) and load.rate is None
        streams.append((replace(load.stream, name=names[load.identity], iops="max" if at_once else "0"), load))
    return names, streams


def folded(steps: Sequence[Wanted], dimensions: Dimensions) -> tuple[Wanted, Loop] | None:
    """Return what all of the steps have in common, and the loop; None where a loop would not do the same.

    `steps`: one for every combination of the dimensions, in their order.
    """
    first = steps[0]
    if any(step.keys() != first.keys() for step in steps):
        return None
    looped = {key for key, _ in dimensions}
    loop: list[tuple[str, tuple[str, ...]]] = []
    stride = len(steps)
    for key, count in dimensions:
        stride //= count
        values = [{settings.get(key, "") for settings in steps[place * stride].values()} for place in range(count)]
        texts = tuple(next(iter(value)) for value in values)
        if any(len(value) > 1 for value in values) or "" in texts or len(set(texts)) < count:
            return None
        loop.append((key, texts))
    common = {name: _without(settings, looped) for name, settings in first.items()}
    for step, values_of in zip(steps, product(*(texts for _, texts in loop)), strict=True):
        combination = dict(zip((key for key, _ in loop), values_of, strict=True))
        if any(dict(settings) != {**common[name], **combination} for name, settings in step.items()):
            return None
    return common, tuple(loop)


def _without(settings: Mapping[str, str], looped: set[str]) -> dict[str, str]:
    return {key: value for key, value in settings.items() if key not in looped}
