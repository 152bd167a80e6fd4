"""The measurements of a step, as everybody shows them."""

from dataclasses import dataclass

from ..verdicts import Finding, Scope, Verdict
from .headline import marked, scope_of, text_of


@dataclass(frozen=True, slots=True)
class MeasurementRow:
    """One measurement of a step, a row of the table at the end: its row of summary.all.csv."""

    name: str  # the step's; where the load is control's, with the load: "climb:total_iops=500"
    verdict: Verdict  # of what the step was for, over all rollup instances
    rate_verdict: Verdict  # of the figures of `all=all`
    service_verdict: Verdict
    response_verdict: Verdict
    findings: tuple[Finding, ...]  # of `all=all`, and what stands on other rollup instances only; by weight
    cause: str  # of these findings, in one sentence; "" where none explains others
    figures: dict[str, float]  # of what tables show, in the CSV's units; those that are blank there are not in it
    hosts_in: int = 0  # whose results its figures include
    hosts_of: int = 0  # of so many; 0: not known
    stands: bool = False  # whether the step stands for this one of its measurements

    @property
    def missing(self) -> str:
        """The hosts that it is of, where that is not all: "1 of 3 hosts"; else ""."""
        return f"{self.hosts_in} of {self.hosts_of} hosts" if self.hosts_in < self.hosts_of else ""

    def verdict_of(self, scope: Scope) -> Verdict:
        """Of the figures of this scope."""
        match scope:
            case Scope.RATE:
                return self.rate_verdict
            case Scope.SERVICE:
                return self.service_verdict
            case Scope.RESPONSE:
                return self.response_verdict

    def shown(self, metric: str) -> str:
        """A figure's text, marked where it is discredited or partial."""
        return marked(text_of(metric, self.figures), self.verdict_of(scope_of(metric)))


@dataclass(frozen=True, slots=True)
class StepEnds:
    """How a step ended."""

    number: int
    name: str
    verdict: Verdict  # of all measurements that count: not of the level with which a staircase showed saturation
    findings: tuple[Finding, ...]  # of the same; where there are several, each says of which
    measured: tuple[MeasurementRow, ...]  # at least one

    @property
    def standing(self) -> MeasurementRow:
        """The measurement that the step stands for."""
        return next((row for row in self.measured if row.stands), self.measured[-1])
