"""Steady state: run until every instance of a rollup meets a criterion; with `hold`, measure one more window then.

Rule: a window holds only complete subintervals with one set of hosts and no edit, else it starts again. Without
`hold` the window that met the criterion is the measurement, as in fio; such a window was picked for being calm. With
`hold` the next one is the measurement, and the criterion is checked in every subinterval of it: `on_leave` says what
follows when it is not met any more.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from math import inf
from typing import ClassVar

import numpy as np

from ..stats.metric_sample import ios, value_of
from ..text.metric_amounts import amount_in_words, format_amount
from ..verdicts import Finding, Reason, Severity
from .choices import OnLeave, Rule
from .control_state import Keys, StepConditions, warmup_of
from .criteria import Criterion, Score, fio_block, score
from .decision import Cell, ControlRow, Decision, Measured, interrupted, shortened
from .focus import Focus, blank_subinterval, blank_window
from .measure import WindowCheck, WindowPart, check_window, lacking, no_window, rule_t
from .observation import Observation, Phase


class SteadyStage(StrEnum):
    SEEKING = "seeking"
    HOLDING = "holding"
    ATTAINED = "attained"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class CriterionState:
    """A criterion over all instances: the score of the worst."""

    instance: str
    score: Score | None  # None: its metric is blank, or no window is complete
    attained: bool
    lacks: str = ""  # for people: why there is no score, or what it lacks beside the limit


@dataclass(frozen=True, slots=True)
class SteadySpec:
    """`steady`: until every instance meets the criterion."""

    keys: ClassVar[Keys] = ("steady",)

    criterion: Criterion
    ramp: int  # subintervals that are not looked at; 0: the step's warmup
    hold: int  # subintervals to hold after attaining; 0: the attained window is the measurement
    on_leave: OnLeave
    confidence: float  # of the rule t
    timeout_s: float  # since the step, or the level, began

    @property
    def focus(self) -> Focus:
        return self.criterion.focus

    @property
    def in_words(self) -> str:
        used = self.criterion
        limit = "" if used.rule is Rule.SNIA else f" within {self._limit}"
        held = ", then held for one more" if self.hold else ""
        return f"steady: {used.name} of {self.focus.in_words}{limit} over {used.window} subintervals{held}"

    @property
    def _limit(self) -> str:
        used = self.criterion
        size = f"{used.limit:g}%" if used.relative else format_amount(used.focus.unit, used.limit)
        return f"{size} per second" if used.rule is Rule.SLOPE else size

    def faults(self, step: StepConditions, usable: bool) -> Iterator[tuple[str, str]]:
        """Of the criterion; and a timeout that leaves no room for a window."""
        if usable:
            yield from self.criterion.faults()
        ramp_s = 0.0 if step.settles else self.ramp * step.subinterval_s
        windows_s = (self.criterion.window + self.hold) * step.subinterval_s
        least_s = (ramp_s or warmup_of(step)) + windows_s
        if self.timeout_s < least_s:
            yield "timeout", f"timeout is {self.timeout_s:g} s; it cannot be steady before {least_s:g} s"

    def longest_s(self, step: StepConditions) -> float:
        return max(self.timeout_s - warmup_of(step), 0.0)

    def state(self, step: StepConditions) -> "Steady":
        return Steady(self, self.ramp or step.warmup)


@dataclass(frozen=True, slots=True)
class Steady:
    """State of a step that waits for a steady state."""

    spec: SteadySpec
    warmup: int  # subintervals
    since: int = 0
    began_s: float | None = None
    begin: int | None = None  # the first subinterval that may be used, once something has moved it
    parts: tuple[WindowPart, ...] = ()
    values: tuple[Mapping[str, float | None], ...] = ()  # of each part, by instance
    complete: int = 0  # subintervals in the window; of them only what a score looks at is kept, but for the rule t
    attained: int | None = None  # the subinterval with which the criterion was met; None while seeking
    left: tuple[int, ...] = ()  # subintervals in which a steady state was left

    @property
    def criterion(self) -> Criterion:
        return self.spec.criterion

    @property
    def first(self) -> int:
        return self.since + self.warmup if self.begin is None else self.begin

    @property
    def focuses(self) -> tuple[Focus, ...]:
        return (self.criterion.focus,)

    @property
    def may_end(self) -> tuple[int, ...]:
        return ()

    def opening(self) -> Decision:
        return Decision(Phase.WARMUP if self.warmup else Phase.RUN)

    def restarted(self, at: int) -> "Steady":
        """The same, without anything before subinterval `at`; the timeout runs on."""
        return replace(self, begin=max(at, self.first), parts=(), values=(), complete=0, attained=None)

    def begun(self, since: int) -> "Steady":
        return replace(
            self, since=since, began_s=None, begin=None, parts=(), values=(), complete=0, attained=None, left=()
        )

    def after(self, observation: Observation) -> "tuple[Steady, Decision]":
        state = self if self.began_s is not None else replace(self, began_s=observation.start_s)
        if observation.number >= state.first:
            state = state._with(observation)
        standing = state.standing()
        if observation.absent:  # the window is that of before
            stage = SteadyStage.SEEKING if state.attained is None else SteadyStage.HOLDING
            measured: tuple[Measured, ...] = ()
        else:
            stage, state, measured = state._stage(observation.number, standing)
        late = observation.end_s - (state.began_s or 0.0) >= self.spec.timeout_s
        if not measured and late:
            measured = (state._timed_out(observation.number, standing),)
        row = ControlRow("steady.csv", state._cells(observation, stage, standing))
        phase = Phase.TAIL if measured else Phase.WARMUP if observation.number + 1 < state.first else Phase.RUN
        block, progress = state._block(stage, standing), state._progress(stage, standing)
        return state, Decision(phase, rows=(row,), measured=measured, steady=block, progress=progress)

    def cut_short(self, number: int) -> Measured:
        return shortened(self._timed_out(number, self.standing())) if self.parts else interrupted(number)

    def standing(self) -> CriterionState:
        """The criterion's present value, of the instance that is furthest from it."""
        if self.criterion.rule is Rule.T:
            return self._standing_by_t()
        if len(self.parts) < self.criterion.window:
            return CriterionState(
                "", None, False, f"{len(self.parts)} of {self.criterion.window} subintervals for a window"
            )
        worst = CriterionState("", None, True)
        for instance in self.parts[-1].samples:
            got = self._score(instance)
            if got is None:
                return CriterionState(instance, None, False, self._blank(instance))
            attained = worst.attained and got.attained
            if worst.score is None or _distance(got, self.criterion) > _distance(worst.score, self.criterion):
                worst = CriterionState(instance, got, attained, self._drifts(got))
            else:
                worst = replace(worst, attained=attained)
        return worst

    def _score(self, instance: str) -> Score | None:
        parts = self.parts[-self.criterion.lookback :]
        values = [value[instance] for value in self.values[-self.criterion.lookback :]]
        if None in values:
            return None
        lengths = np.array([part.length_s for part in parts])
        ends = np.array([part.end_s for part in parts])
        # While it holds, the criterion alone decides; the drift is checked before, and once more at the end.
        held = 0 if self.attained is None else self.parts[-1].number - self.attained
        criterion = replace(self.criterion, no_drift=False) if 0 < held < self.spec.hold else self.criterion
        return score(criterion, ends - lengths / 2, lengths, np.array(values, dtype=np.float64))

    def _blank(self, instance: str) -> str:
        """Why the window has no score: its subinterval with the fewest I/Os."""
        samples = [part.samples[instance] for part in self.parts[-self.criterion.lookback :]]
        return blank_subinterval(self.criterion.focus, instance, min(samples, key=ios))

    def _drifts(self, got: Score) -> str:
        """Why a window within the limit is not steady: its drift."""
        if got.drift is None or got.attained:
            return ""
        if got.drift == inf:
            return f"{self.complete} of {self.criterion.lookback} subintervals to see a drift"
        return f"it may drift by {amount_in_words(self.criterion.focus.unit, got.drift, 4)} in a window"

    def _standing_by_t(self) -> CriterionState:
        spec = rule_t(self.criterion, self.spec.confidence)
        check = check_window(spec, self.parts)
        if check is None:
            return CriterionState("", None, False, no_window(self.parts))
        if check.estimate is None:
            return CriterionState(check.worst, None, False, blank_window(spec.focus, check.worst))
        return CriterionState(check.worst, _score_by_t(check), check.passed, ", ".join(lacking(check, spec)))

    def _with(self, observation: Observation) -> "Steady":
        if observation.edited or observation.began < self.first:  # it has two loads, or figures of before
            return self.restarted(observation.number + 1)
        state = self if observation.same_figures else self.restarted(observation.number)
        if observation.absent:
            return state
        focus = self.criterion.focus
        part = WindowPart(
            observation.number, observation.end_s, observation.length_s, observation.samples[focus], observation.covers
        )
        values = {name: value_of([sample], focus.fraction) for name, sample in part.samples.items()}
        kept = 0 if self.criterion.rule is Rule.T else 1 - self.criterion.lookback
        parts, earlier = state.parts[kept:], state.values[kept:]
        return replace(state, parts=(*parts, part), values=(*earlier, values), complete=state.complete + 1)

    def _stage(self, now: int, standing: CriterionState) -> "tuple[SteadyStage, Steady, tuple[Measured, ...]]":
        if self.attained is None:
            if not standing.attained:
                return SteadyStage.SEEKING, self, ()
            state = replace(self, attained=now)
            return (
                SteadyStage.ATTAINED,
                state,
                () if self.spec.hold else (state._measurement(self._window_first(), now),),
            )
        if not standing.attained:
            return self._lost(now)
        if now - self.attained >= self.spec.hold:
            return SteadyStage.HOLDING, self, (self._measurement(self.attained + 1, now),)
        return SteadyStage.HOLDING, self, ()

    def _lost(self, now: int) -> "tuple[SteadyStage, Steady, tuple[Measured, ...]]":
        assert self.attained is not None
        state = replace(self, left=(*self.left, now))
        if self.spec.on_leave is OnLeave.RESTART:
            return SteadyStage.LOST, state.restarted(now + 1), ()
        stopping = self.spec.on_leave is OnLeave.STOP
        if stopping or now - self.attained >= self.spec.hold:
            return SteadyStage.LOST, state, (state._measurement(self.attained + 1, now),)
        return SteadyStage.LOST, state, ()

    @property
    def _window_size(self) -> int:
        return len(self.parts) if self.criterion.rule is Rule.T else self.criterion.window

    def _window_first(self) -> int:
        return self.parts[-self._window_size].first

    def _measurement(self, first: int, last: int) -> Measured:
        if not self.left:
            return Measured(first, last)
        reason, severity = {
            OnLeave.NOTE: (Reason.STEADY_LOST, Severity.NOTE),
            OnLeave.RESTART: (Reason.STEADY_RESTARTED, None),
            OnLeave.STOP: (Reason.STEADY_LOST, Severity.INVALID),
        }[self.spec.on_leave]
        detail = f"{self.criterion}, left in subinterval {', '.join(map(str, self.left))}"
        return Measured(first, last, findings=(Finding(reason, detail, severity),))

    def _timed_out(self, now: int, standing: CriterionState) -> Measured:
        first = self.parts[-min(len(self.parts), self.criterion.window)].first if self.parts else now + 1
        if self.attained is not None:
            why = (
                f"attained in subinterval {self.attained}, held {now - self.attained} of {self.spec.hold} subintervals"
            )
        elif standing.score is None:
            why = standing.lacks
        else:
            value = self.criterion.in_words(standing.score.value, 4)
            why = f"{self.criterion}; {standing.instance} is at {value}{_and(standing.lacks)}"
        return Measured(first, now, findings=(Finding(Reason.STEADY_NOT_REACHED, why),))

    def _cells(self, observation: Observation, stage: SteadyStage, standing: CriterionState) -> dict[str, Cell]:
        got = standing.score
        value = got.value if got and abs(got.value) < inf else None
        return {
            "subinterval": observation.number,
            "end_s": observation.end_s,
            "stage": stage.value,
            "criterion": self.criterion.rule.value,
            "metric": self.criterion.focus.metric,
            "limit": self.criterion.limit,
            "limit_unit": "percent" if self.criterion.relative else "absolute",
            "worst_instance": standing.instance,
            "value": value,
            "mean": got.mean if got else None,
            "max_deviation": got.deviation if got and got.deviation < inf else None,
            "slope_per_s": got.slope if got else None,
            "drift_bound": got.drift if got and got.drift is not None and got.drift < inf else None,
            "attained": standing.attained,
            "complete_subintervals": self.complete,
            "times_left": len(self.left),
        }

    def _block(self, stage: SteadyStage, standing: CriterionState) -> Mapping[str, object] | None:
        """The window as fio's JSON has it, of the instance that is furthest from the criterion."""
        if standing.score is None:
            return None
        parts = self.parts[-self._window_size :]
        values = [value[standing.instance] for value in self.values[-self._window_size :]]
        shown = {self.criterion.focus.metric: [value for value in values if value is not None]}
        block = fio_block(self.criterion, standing.score, sum(part.length_s for part in parts), shown)
        instance = f"{self.criterion.focus.rollup}={standing.instance}"
        return {"stage": stage.value, "instance": instance, **block, "attained": int(standing.attained)}

    def _progress(self, stage: SteadyStage, standing: CriterionState) -> str:
        if standing.score is None:
            return f"{stage}: {standing.lacks}"
        now = self.criterion.in_words(standing.score.value, 4)
        return f"{stage}: {self.criterion}; now {now} ({standing.instance}){_and(standing.lacks)}"


def _and(text: str) -> str:
    return f", {text}" if text else ""


def _distance(got: Score, criterion: Criterion) -> float:
    """How far from attaining; an instance that attained is nearer than any that did not."""
    return abs(got.value) if got.attained else abs(got.value) + criterion.limit + 1e-300


def _score_by_t(check: WindowCheck) -> Score:
    assert check.estimate is not None
    got = check.estimate
    return Score(100 * got.relative, check.passed, got.value, got.half_width, 0.0)
