"""A step's control as its plan defines it: how its load is set, when a measurement is complete, and its thresholds.

Rule: amounts are in the metric's own unit, times in seconds or whole subintervals. Nothing here has a default: what a
plan leaves out, its documents fill in (plan/read/schema_control.py). A spec may hold what cannot work, since a plan is
read to its end: `faults` reports it, and states are made only from specs without faults. A fault is the keys from the
step's `go` down to the value, and a sentence. An amount that could not be read is not a number here; its own fault has
been reported, and no other follows from it.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

from ..rollup.metrics import HOW_SHORT, METRICS, connector_of
from ..text.suggestions import OLD_NAMES, did_you_mean
from ..verdicts import USUAL_PURPOSE, Scope
from .choices import OnDisturbance
from .control_state import ControlState, Keys, LoadSpec, MeasurementSpec
from .fixed import Fixed, FixedSpec
from .focus import Focus
from .load_level import RunFacts
from .observe import FOCUS_METRICS
from .rounds import RoundsSpec
from .slo import Watched
from .steer import Steered
from .threshold import SloSpec

Fault = tuple[Keys, str]  # where, and what is wrong

_NO_FOCUS: Final = "cannot be a focus metric: only rates, means, percentiles and CPU can"


@dataclass(frozen=True, slots=True)
class ControlSpec:
    """The control of one step."""

    subinterval_s: float
    warmup: int  # subintervals
    measurement: MeasurementSpec
    load: LoadSpec | None
    slo: tuple[SloSpec, ...]
    tolerance: float  # achieved_iops_tolerance
    disturbed: OnDisturbance  # only for a fixed measurement without `load`, and for find
    rounds: RoundsSpec | None  # of which the step is a pass
    is_watched: bool  # its figure is one that decides when the rounds end

    @property
    def fixed(self) -> bool:
        """The step's length is known beforehand, unless a threshold gives it up."""
        return isinstance(self.measurement, FixedSpec) and self.load is None

    @property
    def has_known_length(self) -> bool:
        """Measuring takes as long as the plan says, unless it has to begin anew."""
        measured_s = self.measurement.longest_s(self)
        return isinstance(self.measurement, FixedSpec) and self.longest_s == measured_s and not self.settles

    @property
    def settles(self) -> bool:
        """A measurement begins when control has settled the load, and not after the warmup."""
        return self.load is not None and self.load.settles

    @property
    def longest_s(self) -> float:
        """How long measuring may take in all."""
        measured_s = self.measurement.longest_s(self)
        return measured_s if self.load is None else self.load.longest_s(self, measured_s)

    @property
    def tail(self) -> float:
        """The highest percentile that it looks at, as a fraction; 0 where it looks at none."""
        return max((focus.fraction or 0.0 for _, focus in (*self.checked(), *self.steered())), default=0.0)

    @property
    def purpose(self) -> frozenset[Scope]:
        """The figures that the step is for: those that it looks at; the result of a search is a rate as well."""
        looked_at = {focus.scope for _, focus in (*self.checked(), *self.steered())}
        return frozenset(looked_at | (self.load.purpose if self.load else set())) or USUAL_PURPOSE

    def checked(self) -> Iterator[tuple[Keys, Focus]]:
        """The keys and the focus of each rule that completes a measurement or fails it."""
        if self.measurement.focus is not None:
            yield self.measurement.keys, self.measurement.focus
        for i, threshold in enumerate(self.slo):
            yield ("slo", i), threshold.focus
        if self.rounds is not None and self.is_watched:
            yield self.rounds.keys, self.rounds.focus

    def steered(self) -> Iterator[tuple[Keys, Focus]]:
        """The keys and the focus of the rule that sets the load; none where the plan sets it."""
        if self.load is not None and self.load.focus is not None:
            yield self.load.keys, self.load.focus

    def faults(self, rollups: Collection[str] | None, connectors: Collection[str] | None = ()) -> Iterator[Fault]:
        """Everything wrong with it, as far as the plan alone shows it. `rollups`: the plan's types; `connectors`: the
        names of its connectors; None where some of them are not known."""
        steered = {keys for keys, _ in self.steered()}
        for keys, focus in (*self.checked(), *self.steered()):
            if text := metric_fault(focus.metric, keys in steered, connectors):
                yield (*keys, "metric"), text
            if text := "" if rollups is None else rollup_fault(focus.rollup, rollups):
                yield (*keys, "rollup"), text
        for part in (self.measurement, self.load):
            if part is not None:
                found = part.faults(self, _is_usable(part.focus))
                yield from (((*part.keys, key), text) for key, text in found)

    def state(self, known: RunFacts) -> ControlState:
        """The state that a step begins with. Raises what `known.reached` raises, and ValueError for loads that do not
        fit each other now that they are known."""
        measurement = self.measurement.state(self)
        state = measurement if self.load is None else self.load.state(self, measurement, known)
        return Watched(state, self.slo) if self.slo else state


def fixed_time(state: ControlState) -> Fixed | None:
    """The measurement of this state that takes a fixed time, at whose end the step ends; None: there is none."""
    match state:
        case Watched():
            return fixed_time(state.state)
        case Steered():
            return state.measurement if isinstance(state.measurement, Fixed) else None
    return state if isinstance(state, Fixed) else None


def _is_usable(focus: Focus | None) -> bool:
    """No focus, or one that there can be: else its amounts mean nothing."""
    return focus is None or bool(focus.connector) or focus.metric in FOCUS_METRICS


def metric_fault(metric: str, steered: bool = False, connectors: Collection[str] | None = ()) -> str:
    """Why control cannot use a metric; "" where it can. `steered`: IOPS are to hold it at a target. `connectors`: those
    that there are; which metrics they have shows only when they have been started."""
    if connector := connector_of(metric):
        if connectors is None or connector in connectors:
            return ""
        near = did_you_mean(connector, connectors) or "; name it in `connectors`"
        return f"metric {metric}: there is no connector {connector}{near}"
    if (now := OLD_NAMES.get(metric)) is not None:
        more = "" if now in FOCUS_METRICS else f", and {_NO_FOCUS}"
        return f"metric {metric} is called {now} since 0.2{more}"
    if metric in METRICS and metric not in FOCUS_METRICS:
        return f"metric {metric} {_NO_FOCUS}"
    if metric not in FOCUS_METRICS:
        return f"there is no metric {metric}{did_you_mean(metric, FOCUS_METRICS) or f'; {HOW_SHORT}'}"
    if steered and METRICS[metric].is_rate:
        return f"metric {metric} is what control sets; use a latency or CPU"
    return ""


def rollup_fault(rollup: str, rollups: Collection[str]) -> str:
    """Why control cannot use a rollup type; "" where it can."""
    if rollup in rollups:
        return ""
    return f"there is no rollup type {rollup} with instances{did_you_mean(rollup, rollups)}"
