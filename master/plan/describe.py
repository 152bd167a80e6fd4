"""A plan in words, for `ivypy check`: what would be reached, driven, sliced and run, and how long it takes.

Rule: what is open until the hosts are known is shown as the plan has it.
"""

import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from math import ceil
from typing import Any, Final

from ...protocol.parameters import NO_BURSTS
from ..connectors.connector_spec import ConnectorSpec
from ..control.choices import OnDisturbance
from ..control.control_spec import ControlSpec
from ..control.fixed import FixedSpec
from ..control.threshold import SloSpec
from ..hosts.host_spec import HostSpec, Launcher
from ..rollup.instances import ALL, RollupSpec
from ..stats.confidence import FEWEST_STATED
from ..stats.percentiles import fewest_ios
from ..text.metric_amounts import format_amount
from ..text.plan_parameters import PlanParameters
from ..text.units import format_bytes, format_duration, format_fraction
from .attempts import OnInvalid
from .connectors import SERVE
from .model import TOTAL_IOPS, Edit, Live, LunSelection, Plan, Step, Workload
from .read.field_types import written

_ALWAYS: Final = ("iosequencer", "blocksize", "fraction_read", "maxtags", "iops")  # of a workload's parameters
_OF_P99: Final = fewest_ios(0.99)  # I/Os
MOST_HOSTS = 8  # lines for hosts; of more, the middle is left out


def describe(plan: Plan) -> str:
    """Plain lines: a title per section, its content indented by two."""
    sections = [
        ("hosts", _hosts(plan.hosts)),
        ("luns", _luns(plan.luns, plan.destroy)),
        ("attributes", [f"{_pairs(rule.attributes)} where {rule.match}" for rule in plan.attributes]),
        ("connectors", list(_connectors(plan))),
        ("workloads", [line for workload in plan.workloads for line in _workload(workload)]),
        ("rollups", [_rollup(rollup) for rollup in plan.rollups]),
        ("parameters", [_pairs(plan.parameters)] if plan.parameters else []),
        ("live edits may ask for", _live(plan.live)),
        ("steps", [line for step in plan.steps for line in _step(step, plan)]),
    ]
    body = [f"{title}\n" + "".join(f"  {line}\n" for line in lines) for title, lines in sections if lines]
    return f"plan {plan.name}\n" + "".join(body) + _total(plan)


def _hosts(hosts: tuple[HostSpec, ...]) -> list[str]:
    lines = [_host(host) for host in hosts]
    if len(lines) > MOST_HOSTS:
        lines[MOST_HOSTS - 2 : -1] = [f"... {len(lines) - MOST_HOSTS + 1} more ..."]
    return lines


def _host(host: HostSpec) -> str:
    match host.launcher:
        case Launcher.LOCAL:
            return f"{host.name}: this machine"
        case Launcher.COMMAND:
            return f"{host.name}: through {' '.join(host.command)}"
        case Launcher.SSH:
            address = "" if host.address == host.name else f" at {host.address}"
            user = f" as {host.user}" if host.user else ""
            return f"{host.name}: ssh{address}{user}{f' port {host.port}' if host.port else ''}"


def _luns(luns: LunSelection, destroy: bool) -> list[str]:
    lines = []
    if luns.select is not None:
        agreed = "may be overwritten, given the token" if destroy else "never written"
        lines.append(f"block devices with {luns.select} ({agreed})")
    lines += [f"files {pattern}" for pattern in luns.files]
    for file in luns.create:
        count = f"{file.count} files" if file.count > 1 else "a file"
        after = "kept" if file.keep else "removed at the end"
        lines.append(f"{count} made at {file.path}, {format_bytes(file.size)} each, {after}")
    return lines


def _connectors(plan: Plan) -> Iterator[str]:
    for connector in plan.connectors:
        gives = (
            f", gives LUNs {', '.join(connector.attributes)} by {', '.join(connector.join)}"
            if connector.attributes
            else ""
        )
        where = "" if connector.host.launcher is Launcher.LOCAL else f", {_host(connector.host)}"
        needed = "" if connector.required else ", not required"
        yield f"{connector.name}: {_program(connector)}{where}{gives}{needed}"
    if plan.host_connector is not None and plan.connectors:
        yield f"{plan.host_connector.name}: on every test host"


def _program(connector: ConnectorSpec) -> str:
    """Its type, or its command line; options may be long, and hold names that are nobody's business."""
    if connector.program[: len(SERVE)] == SERVE:
        return f"type {connector.program[len(SERVE)]}"
    return shlex.join(connector.program)


def _workload(workload: Workload) -> list[str]:
    where = f"on LUNs with {workload.select}" if workload.select is not None else "on every LUN"
    return [f"{workload.name}: {where}", f"    {_parameters(workload.parameters)}"]


def _parameters(parameters: PlanParameters) -> str:
    """Those that every load has, and others that are not as usual."""
    usual = PlanParameters()
    values = {f.name: getattr(parameters, f.name) for f in fields(parameters)}
    if parameters.operations:
        del values["fraction_read"]
    return _settings({key: value for key, value in values.items() if key in _ALWAYS or value != getattr(usual, key)})


def _settings(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {written(name, value)}" for name, value in values.items())


def _live(live: Live) -> list[str]:
    values = {f.name: value for f in fields(live) if (value := getattr(live, f.name))}
    return [_settings(values)] if values else []


def _rollup(rollup: RollupSpec) -> str:
    demands = []
    if rollup.quantity is not None:
        demands.append(f"{rollup.quantity} instances required")
    if rollup.max_droop is not None:
        demands.append(f"droop at most {format_fraction(rollup.max_droop)}")
    if not rollup.csv:
        demands.append("no files in the steps' folders")
    return f"{rollup.name}: {', '.join(demands)}" if demands else rollup.name


def _step(step: Step, plan: Plan) -> list[str]:
    measure = "measure" if step.control.has_known_length else "measure at most"
    measured_s = 0.0 if step.is_open else step.measuring_s
    times = [("warmup", step.warmup_s), (measure, measured_s), ("cooldown", step.cooldown_s)]
    shown = [f"{name} {format_duration(seconds)}" for name, seconds in times if seconds]
    shown.append(f"subintervals of {format_duration(step.subinterval_s)}")
    lines = [f"{step.number:04d} {step.name}: {', '.join(shown)}"]
    lines += [f"    {_edit(edit)}" for edit in step.edits]
    lines += [f"    {line}" for line in _control(step.control)]
    lines += [f"    on_invalid: {step.on_invalid}"] if step.on_invalid != OnInvalid() else []
    lines += [f"    note: {note}" for note in (*step.notes, *_poor(step, plan))]
    return lines


def _poor(step: Step, plan: Plan) -> Iterator[str]:
    """Sentences that say what makes a poor test of the step."""
    measured = step.control.measurement
    if isinstance(measured, FixedSpec) and measured.subintervals < FEWEST_STATED:
        yield (
            f"{measured.subintervals} subintervals are too few for half-widths, which need {FEWEST_STATED}:"
            " a longer `measure`, or shorter subintervals"
        )
    for workload in plan.workloads:
        bursts, start_s = workload.parameters.bursty, workload.parameters.start_after
        period = bursts.on + bursts.off
        if bursts != NO_BURSTS and not _divides(period, step.subinterval_s):
            yield (
                f"subintervals of {format_duration(step.subinterval_s)} hold parts of the bursts of {workload.name},"
                f" every {format_duration(period)}: a multiple of that is steadier"
            )
        if isinstance(measured, FixedSpec) and start_s > step.control.warmup * step.subinterval_s:
            start = format_duration(start_s)
            yield f"{workload.name} starts {start} after the step: a warmup as long measures all of it"
    rate = _total_rate(step, plan)
    if rate is not None and 0 < rate * step.subinterval_s < _OF_P99:
        yield (
            f"the p99 of a subinterval will be blank: it needs {_OF_P99:,} I/Os, and {rate:g} IOPS give"
            f" {rate * step.subinterval_s:.0f}; `subinterval: {format_duration(ceil(_OF_P99 / rate))}` has enough"
        )


def _divides(part_s: float, whole_s: float) -> bool:
    parts = whole_s / part_s
    return round(parts) >= 1 and abs(parts - round(parts)) < 1e-6


def _total_rate(step: Step, plan: Plan) -> float | None:
    """I/Os per second of all workload instances together, where the plan alone says it."""
    if step.control.load is not None:
        return None
    for edit in reversed(step.edits):
        if edit.rollup == ALL and isinstance(total := edit.changes.get(TOTAL_IOPS), int | float):
            return float(total)
        if {TOTAL_IOPS, "iops"} & edit.changes.keys():
            return None
    rates = [workload.parameters.iops for workload in plan.workloads]
    on_all = all(workload.select is None for workload in plan.workloads)
    if plan.luns.select is not None or plan.luns.files or not on_all:
        return None  # the hosts decide how many LUNs there are
    luns = len(plan.hosts) * sum(file.count for file in plan.luns.create)
    known = [float(rate) for rate in rates if isinstance(rate, int | float)]
    return luns * sum(known) if len(known) == len(rates) else None


def _control(spec: ControlSpec) -> Iterator[str]:
    """A step's control, a line for each key."""
    yield from filter(None, (part.in_words for part in (spec.load, spec.measurement) if part is not None))
    yield from map(_slo, spec.slo)
    if spec.disturbed is OnDisturbance.KEEP:
        yield "disturbed: keep"
    if spec.rounds is not None:
        yield spec.rounds.in_words if spec.is_watched else f"in the rounds of {spec.rounds.step}"


def _slo(slo: SloSpec) -> str:
    ends = ", aborted early" if slo.abort_early else ""
    runs = f", runs {slo.command[0]}" if slo.command else ""
    return f"slo: {slo.focus.in_words} {slo.side.in_words} {format_amount(slo.focus.unit, slo.limit)}{ends}{runs}"


def _edit(edit: Edit) -> str:
    if edit.rollup == ALL:
        where = "all"
    elif len(edit.instances) == 1:
        where = f"{edit.rollup}={edit.instances[0]}"
    else:
        where = f"{edit.rollup}={{{','.join(edit.instances)}}}" if edit.instances else f"every {edit.rollup}"
    return f"{where}: {_settings(edit.changes)}"


def _total(plan: Plan) -> str:
    steps = len(plan.steps)
    timed = [step for step in plan.steps if not step.is_open]
    known = all(step.control.has_known_length and step.control.rounds is None for step in timed)
    about = "about" if known else "at most"
    times = [f"{about} {format_duration(planned_s(timed))} in all"] if timed else []
    if count := steps - len(timed):
        which = "it takes" if steps == 1 else "1 of them takes" if count == 1 else f"{count} of them take"
        times.append(f"{which} as long as the volume")
    return f"{steps} step{'' if steps == 1 else 's'}, {', and '.join(times)}\n"


def planned_s(steps: Iterable[Step]) -> float:
    """How long steps run, in seconds, at most."""
    return round(sum(step.planned_s * step.most_runs for step in steps), 6)


def _pairs(values: Mapping[str, object]) -> str:
    return ", ".join(f"{name}: {value}" for name, value in values.items())
