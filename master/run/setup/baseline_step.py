"""`50% of step max`: what a rollup instance measured in an earlier step, and what it is shared over.

Rule: a share of a step is a share of what was measured, over those that took part in it. A workload instance whose
host was not in that measurement has nothing to refer to, so it is asked for nothing; and a step that refers to one
that is partial is partial, with its reasons.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...rollup.instances import InstanceKey, RollupInstance, WorkloadInstance
from ...rollup.validity import ScopedFinding
from ...text.plan_parameters import OfStep
from ...verdicts import Finding, Reason, Severity, Verdict


@dataclass(frozen=True, slots=True)
class Reference:
    """The figures that one rollup instance measured in a step."""

    iops: float
    hosts: frozenset[str]  # that took part
    partial: str = ""  # why it is of less than was asked for
    verdict: Verdict = Verdict.PARTIAL  # of the rate, where it is
    note: str = ""  # what its reader should know besides


Share = Callable[[Sequence[WorkloadInstance]], dict[InstanceKey, float]]
Measured = Callable[[str, RollupInstance], Reference]  # step name, rollup instance; raises NotMeasured


def shares(members: Sequence[WorkloadInstance], skews: Mapping[InstanceKey, float]) -> dict[InstanceKey, float]:
    """Each workload instance's share of a total: equal over the distinct LUNs, then within a LUN by their skews; one
    that has none counts as 1."""
    on_lun: dict[tuple[str, str], dict[InstanceKey, float]] = {}
    for member in members:
        key = (member.host, member.number)
        on_lun.setdefault(member.distinct_lun, {})[key] = skews[key] or 1.0
    return {
        key: weight / sum(weights.values()) / len(on_lun)
        for weights in on_lun.values()
        for key, weight in weights.items()
    }


def equal(members: Sequence[WorkloadInstance]) -> dict[InstanceKey, float]:
    """Each workload instance's share of what is not shared by LUN."""
    return {(member.host, member.number): 1 / len(members) for member in members}


def of_step(
    value: OfStep,
    rollup: RollupInstance,
    measured: Measured,
    share: Share,
) -> dict[InstanceKey, float]:
    """The IOPS of each member of a rollup instance that is set to a share of a step. Raises NotMeasured."""
    reference = measured(value.step, rollup)
    took_part = [member for member in rollup.members if member.host in reference.hosts]
    nothing = {(member.host, member.number): 0.0 for member in rollup.members}
    total = value.fraction * reference.iops
    return nothing | {key: total * part for key, part in share(took_part).items()}


class References:
    """Looks up earlier measurements, and records which were used."""

    def __init__(self, measured: Measured) -> None:
        self._measured = measured
        self._used: dict[tuple[str, Any], tuple[RollupInstance, Reference]] = {}

    def __call__(self, step: str, rollup: RollupInstance) -> Reference:
        reference = self._measured(step, rollup)
        self._used[step, rollup.row] = rollup, reference
        return reference

    def findings(self, since: int = 0) -> Iterator[ScopedFinding]:
        """Findings of what they lack, on every workload instance whose load depends on it; from subinterval `since`
        on.
        """
        for (step, _), (rollup, reference) in self._used.items():
            absent = sorted({member.host for member in rollup.members} - reference.hosts)
            words_of = {}
            if reference.partial or absent:
                why = reference.partial or "not every host took part"
                words = f"step {step} is {reference.verdict} for {rollup}: {why}"
                if absent:
                    words += f"; {', '.join(absent)} took no part in it, and so no load"
                words_of[Severity.PARTIAL] = words
            if reference.note:
                words_of[Severity.NOTE] = reference.note
            for severity, words in words_of.items():
                finding = Finding(Reason.BASELINE_STEP, words, severity)
                yield from (ScopedFinding(finding, member.host, member.number, since) for member in rollup.members)
