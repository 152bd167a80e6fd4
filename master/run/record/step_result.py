"""The result of a step: the records of its summary rows, and what later steps and the table at the end need."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ....protocol.parameters import Parameters
from ....protocol.payload import Attribute, NoticeKind
from ...control.focus import Focus
from ...exit_codes import ExitCode, code_of
from ...output.record_types import SummaryRecord
from ...plan.model import Step
from ...rollup.instances import InstanceKey, RollupInstance, Rollups
from ...rollup.metrics import column
from ...rollup.parameters_in_force import Settings
from ...rollup.validity import ScopedFinding, Validity, check_validity, once
from ...summary.measured import StepEnds
from ...text.suggestions import listed
from ...verdicts import Finding, Reason, Scope, Severity, Verdict, counting_for, speaking, standing, verdict_of
from ..setup.baseline_step import Reference
from ..setup.discover_luns import PlacedPlan
from ..setup.resolve_settings import NotMeasured
from ..step.step_types import ALL_ROW, ClosedMeasurement, EmptyMeasurement, StepOutcome
from .step_reports import measurement_report

MOST_NAMED = 3  # LUNs that are spelled out
NOT_THE_STORAGE = {
    Reason.HOST_LOST, Reason.HOST_LATE, Reason.HOST_MISSING, Reason.HOSTS_CHANGED, Reason.EDIT_NOT_APPLIED,
    Reason.HOST_NOT_AWAITED, Reason.CLOCK_STEPPED, Reason.OVERRUN, Reason.CPU_CONTENTION, Reason.GENERATOR_LATE,
    Reason.THOUGHT_TOO_LONG, Reason.REAP_DELAY,
}  # fmt: skip
VOLATILE = "write back"  # the kernel's words for a cache that it has to flush


@dataclass(frozen=True, slots=True, eq=False)
class StepResult:
    """One step; sequences are by row (rollup instance)."""

    records: tuple[SummaryRecord, ...]  # one per measurement
    iops: Sequence[float]
    ends: StepEnds
    standing: SummaryRecord  # the one that the step stands for: later steps refer to it
    was_run: bool = True
    was_skipped: bool = False  # somebody ended it with what it had

    def reference(self, instance: RollupInstance) -> Reference:
        """The rate of a rollup instance, to which later steps may refer. Raises NotMeasured where it is invalid.

        A rate at max of what others left of the host is a load that the storage takes, but not the most.
        """
        verdict = Verdict.PARTIAL
        against: dict[Severity, list[str]] = {Severity.INVALID: [], Severity.PARTIAL: [], Severity.NOTE: []}
        for finding in speaking(self.standing.validity.findings[instance.row], {Scope.RATE}):
            if finding.reason is Reason.CPU_CONTENTION and finding.severity is Severity.INVALID:
                verdict = Verdict.INVALID
                against[Severity.PARTIAL].append(finding.cause or str(finding))
            else:
                against[finding.severity].append(str(finding))
        if why := "; ".join(against[Severity.INVALID]):
            raise NotMeasured(f"the rate of step {self.ends.name} is invalid for {instance}: {why}")
        measurement = self.standing.measurement
        hosts = measurement.hosts if measurement else frozenset()
        partial, note = "; ".join(against[Severity.PARTIAL]), self._beyond(instance)
        return Reference(self.iops[instance.row], hosts, partial, verdict, note)

    @property
    def is_invalid_by_itself(self) -> bool:
        """It would be so without what the rounds say of which it is one."""
        weighty = (one for one in self.ends.findings if one.reason is not Reason.ROUNDS_NOT_STEADY)
        return self.ends.verdict is Verdict.INVALID and any(one.severity is Severity.INVALID for one in weighty)

    def figure(self, focus: Focus) -> float | None:
        """A metric of everything, as the step stands; None where it is blank, or not valid: one that was cut short, or
        is of some hosts, is not one of a series."""
        figures = self.standing.figures
        if figures is None or self.standing.validity.scope_verdict(ALL_ROW, focus.scope) is not Verdict.VALID:
            return None
        value = float(column(figures, focus.metric)[ALL_ROW])
        return value if math.isfinite(value) else None

    def _beyond(self, instance: RollupInstance) -> str:
        """In words, the last measurement after the one that the step stands for whose rate is not invalid."""
        place = next(number for number, one in enumerate(self.records) if one is self.standing)
        for record in reversed(self.records[place + 1 :]):
            if (
                record.measurement is not None
                and record.validity.scope_verdict(instance.row, Scope.RATE) is not Verdict.INVALID
            ):
                of, beyond = (self.ends.name + one.suffix for one in (self.standing, record))
                return f"the share is of {of}, since {beyond} is invalid, though not its rate"
        return ""


def result_of(
    step: Step,
    begun_utc_ns: int,
    ended: StepOutcome,
    discovered: PlacedPlan,
    tolerance: float,
    parameters: Mapping[InstanceKey, Parameters],
    utc_ns: Callable[[int], int],
) -> StepResult:
    """Check a step's measurements, a summary row each. `utc_ns`: an instant of the controller's clock as UTC.

    The level at which a staircase saturated is invalid, as it should be: for the step's verdict it counts only where
    its hosts, not the storage, may be why it was.
    """
    taken, outside = ended.measurements, [*ended.findings, *_found_on_luns(discovered, parameters)]
    settings = Settings.of(discovered.rollups, parameters)
    checked = [_validity(one, tolerance, step, outside, discovered) for one in taken]
    if all(isinstance(one, EmptyMeasurement) for one in taken):
        findings = [o.finding for o in once(outside)] + [f for one in taken for f in one.measured.findings]
        return _blank(step, begun_utc_ns, discovered, settings, findings or [Finding(Reason.NO_SAMPLES)])
    pairs = list(zip(taken, checked, strict=True))
    records = tuple(_record(begun_utc_ns, one, validity, settings, utc_ns) for one, validity in pairs)
    saturated = [_saturated(one) for one in taken]
    counting = [record for record, is_end in zip(records, saturated, strict=True) if not is_end] or [*records]
    ends = [record for record in records if all(record is not one for one in counting)]
    of_measurements, of_ends = (
        [(record.suffix, _all_findings(record.validity, discovered.rollups)) for record in some]
        for some in (counting, ends)
    )
    of_step = _of_several(of_measurements, [(suffix, _of_the_hosts(end)) for suffix, end in of_ends])
    return _result(step, discovered.rollups, records, of_step)


def without_measurement(step: Step, begun_utc_ns: int, discovered: PlacedPlan, why: Finding) -> StepResult:
    """A step that was not run."""
    settings = Settings.of(discovered.rollups, {})
    return replace(_blank(step, begun_utc_ns, discovered, settings, [why]), was_run=False)


def _validity(
    closed: ClosedMeasurement,
    tolerance: float,
    step: Step,
    outside: Sequence[ScopedFinding],
    discovered: PlacedPlan,
) -> Validity:
    own, purpose, tail = closed.measured.findings, step.control.purpose, step.control.tail
    if isinstance(closed, EmptyMeasurement):
        each = dict.fromkeys([*(o.finding for o in once(outside)), *own])
        return Validity.unmeasured(discovered.rollups, each, purpose)
    scoped = [*outside, *map(ScopedFinding, own)]
    found = check_validity(closed.measurement, closed.settings, tolerance, step.subinterval_s, scoped, purpose, tail)
    return _naming_queues(found, discovered)


def _saturated(one: ClosedMeasurement) -> bool:
    """Whether control itself found that the load was not sustained: the end of a staircase."""
    return any(finding.reason is Reason.LOAD_NOT_SUSTAINED for finding in one.measured.findings)


def _of_the_hosts(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings that a load may be short for, whatever the storage does."""
    found = (one for one in findings if one.severity is not Severity.NOTE)
    return tuple(one for one in found if one.reason in NOT_THE_STORAGE)


def _record(
    begun_utc_ns: int, closed: ClosedMeasurement, validity: Validity, settings: Settings, utc_ns: Callable[[int], int]
) -> SummaryRecord:
    if isinstance(closed, EmptyMeasurement):
        return SummaryRecord(begun_utc_ns, None, None, None, validity, settings, closed.measured.suffix)
    start_utc_ns, end_utc_ns = utc_ns(closed.start_ns), utc_ns(closed.end_ns)
    return SummaryRecord(
        begun_utc_ns, start_utc_ns, end_utc_ns, closed.measurement, validity, closed.settings, closed.measured.suffix
    )


def _result(
    step: Step,
    rollups: Rollups,
    records: tuple[SummaryRecord, ...],
    findings: tuple[Finding, ...],
) -> StepResult:
    """`findings`: of the step itself."""
    verdict = verdict_of(counting_for(findings, step.control.purpose))
    shown = [
        measurement_report(step.name + record.suffix, record, _all_findings(record.validity, rollups))
        for record in records
    ]
    has_figures = [record.measurement is not None for record in records]
    place = standing([*zip([row.verdict for row in shown], has_figures, strict=True)])
    shown[place] = replace(shown[place], stands=True)
    ends = StepEnds(step.number, step.name, verdict, findings, tuple(shown))
    figures = records[place].figures
    iops = [0.0] * len(rollups.rows) if figures is None else column(figures, "overall_iops").tolist()
    return StepResult(records, iops, ends, records[place])


_Found = Sequence[tuple[str, tuple[Finding, ...]]]  # of measurements, each with its suffix


def _of_several(of_measurements: _Found, of_ends: _Found) -> tuple[Finding, ...]:
    """The findings of measurements: those of all once, others with whose they are; also those `of_ends`."""
    everywhere = set.intersection(*(set(findings) for _, findings in of_measurements))
    common = [finding for finding in of_measurements[0][1] if finding in everywhere]
    own = [
        replace(finding, detail=": ".join(filter(None, (suffix.lstrip(":"), finding.detail))))
        for suffix, findings in (*of_measurements, *of_ends)
        for finding in findings
        if finding not in everywhere
    ]
    return (*common, *own)


def exit_code_of(results: Iterable[StepResult]) -> ExitCode:
    """The exit code of a run, all of whose steps have run."""
    return code_of(counting_for(result.ends.findings, result.standing.validity.purpose) for result in results)


def _blank(
    step: Step, begun_utc_ns: int, discovered: PlacedPlan, settings: Settings, findings: Sequence[Finding]
) -> StepResult:
    validity = Validity.unmeasured(discovered.rollups, dict.fromkeys(findings), step.control.purpose)
    record = SummaryRecord(begun_utc_ns, None, None, None, validity, settings)
    return _result(step, discovered.rollups, (record,), _all_findings(validity, discovered.rollups))


def _all_findings(validity: Validity, rollups: Rollups) -> tuple[Finding, ...]:
    """Of `all=all`; then those that only other rows have, each reason and severity once, with its first row."""
    findings = list(validity.findings[ALL_ROW])
    known = {(finding.reason, finding.severity) for finding in findings}
    elsewhere: dict[tuple[Reason, Severity], list[tuple[RollupInstance, Finding]]] = {}
    for instance, row in zip(rollups.rows, validity.findings, strict=True):
        for finding in row:
            if (key := (finding.reason, finding.severity)) not in known:
                elsewhere.setdefault(key, []).append((instance, finding))
    for where in elsewhere.values():
        instance, first = where[0]
        more = f", and {len(where) - 1} more" if len(where) > 1 else ""
        findings.append(
            replace(first, detail=f"{instance}: {first.detail}{more}" if first.detail else f"{instance}{more}")
        )
    return tuple(findings)


def _naming_queues(validity: Validity, discovered: PlacedPlan) -> Validity:
    """With the size of the queue that was full as the cause."""

    def named(finding: Finding, row: RollupInstance) -> Finding:
        if finding.reason is not Reason.QUEUE_DEPTH_LIMITED:
            return finding
        luns = discovered.placement.lun_of
        return replace(finding, cause=_shortest_queue(luns[one.host, one.number].attributes for one in row.members))

    rows = zip(validity.findings, discovered.rollups.rows, strict=True)
    return replace(validity, findings=tuple(tuple(named(one, row) for one in findings) for findings, row in rows))


def _shortest_queue(luns: Iterable[Mapping[str, Attribute]]) -> str:
    """In words, of LUNs with these attributes."""
    queues = [(size, one.get("hw_queues")) for one in luns if isinstance(size := one.get("nr_requests"), int)]
    if not queues:
        return "a hardware queue of the device was full"
    size, number = min(queues, key=lambda queue: queue[0])
    return f"{'the device' if number == 1 else 'a hardware queue of the device'} accepts {size} at once"


def _shared(discovered: PlacedPlan) -> Iterator[ScopedFinding]:
    """LUNs that are driven by several ways at once, on the workload instances that use them."""
    placement = discovered.placement
    for (host, instance), lun in placement.lun_of.items():
        if lun.shared:
            others = listed([f"{one.host}: {one.lun.path}" for one in placement.others(lun)], MOST_NAMED)
            yield ScopedFinding(Finding(Reason.SHARED_LUN, f"{host}: {lun.lun.path} is also {others}"), host, instance)


def _found_on_luns(discovered: PlacedPlan, parameters: Mapping[InstanceKey, Parameters]) -> list[ScopedFinding]:
    """The findings of discovery on the LUNs of the step that limit what its figures mean."""
    return [*_unwritten(discovered), *_shared(discovered), *_volatile(discovered, parameters)]


def _volatile(discovered: PlacedPlan, parameters: Mapping[InstanceKey, Parameters]) -> list[ScopedFinding]:
    """Volatile write caches, on the workload instances that write."""
    written = [
        (key, lun)
        for key, lun in discovered.placement.lun_of.items()
        if key in parameters and parameters[key].fraction_read < 1 and lun.attributes.get("write_cache") == VOLATILE
    ]
    if not written:
        return []
    luns = list(dict.fromkeys(f"{lun.host}: {lun.lun.path}" for _, lun in written))
    finding = Finding(Reason.VOLATILE_CACHE, listed(luns, MOST_NAMED))
    return [ScopedFinding(finding, host, number) for (host, number), _ in written]


def _unwritten(discovered: PlacedPlan) -> list[ScopedFinding]:
    """Files whose reads do not touch the disk, on the workload instances that use them."""
    unwritten = []
    for (host, key), lun in discovered.placement.lun_of.items():
        for notice in lun.lun.notices:
            if notice.kind is NoticeKind.UNWRITTEN_EXTENTS:
                finding = Finding(Reason.UNWRITTEN_EXTENTS, f"{host}: {notice.text}")
                unwritten.append(ScopedFinding(finding, host, key))
    return unwritten
