"""Until: run until every workload instance that ends by volume has ended.

Rule: the measurement is of all subintervals after the warmup, to the end of the last instance, whose subinterval is
shortened to it (rollup/volumes.py). An edit or a change of hosts begins it anew, as of a measurement by time. Where
others are driven beside them, these go on to the end of that subinterval.

The step's own time (`measure`) may end it before, and its timeout ends it in any case; so does the loss of all hosts
with such instances.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil
from typing import ClassVar, Final

from ..rollup.volumes import Volumes
from ..text.units import format_duration, format_fraction
from ..verdicts import Finding, Reason, Severity
from .control_state import Keys, StepConditions
from .decision import Decision, Measured, nothing_measured, shortened
from .fixed import Fixed
from .focus import Focus
from .observation import Observation, Phase

MOST_IDLE: Final = 0.01  # of the measured time, after the last end
USUAL_TIMEOUT_S: Final = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class UntilSpec:
    """`until`: a step that ends by the volume of its workloads."""

    keys: ClassVar[Keys] = ("until",)

    time: int | None  # subintervals after the warmup, by which the step ends at the latest; None: only by its timeout
    timeout_s: float  # since the step's start

    @property
    def focus(self) -> Focus | None:
        return None

    @property
    def in_words(self) -> str:
        return f"until its workloads have ended by volume, timeout {format_duration(self.timeout_s)}"

    def faults(self, step: StepConditions, usable: bool) -> Iterator[tuple[str, str]]:
        """The timeout runs in the warmup, too."""
        least_s = (step.warmup + 1) * step.subinterval_s
        if self.timeout_s < least_s:
            yield "timeout", f"timeout is {self.timeout_s:g} s; no measurement can end before {least_s:g} s"

    def longest_s(self, step: StepConditions) -> float:
        return self._longest(step) * step.subinterval_s

    def state(self, step: StepConditions) -> "UntilEnded":
        return UntilEnded(self, Fixed(step.warmup, self._longest(step)))

    def _longest(self, step: StepConditions) -> int:
        """In subintervals, after the warmup; at least 1."""
        longest = max(-int(-self.timeout_s // step.subinterval_s) - step.warmup, 1)
        return longest if self.time is None else min(self.time, longest)


@dataclass(frozen=True, slots=True)
class UntilEnded:
    """State of a step that ends by volume."""

    spec: UntilSpec
    time: Fixed  # of the longest measurement that may be
    seen: Volumes | None = None  # the newest

    @property
    def first(self) -> int:
        return self.time.first

    @property
    def focuses(self) -> tuple[Focus, ...]:
        return ()

    @property
    def may_end(self) -> tuple[int, ...]:
        return self.time.may_end

    def opening(self) -> Decision:
        return self.time.opening()

    def restarted(self, at: int) -> "UntilEnded":
        return replace(self, time=self.time.restarted(at))

    def begun(self, since: int) -> "UntilEnded":
        return replace(self, time=self.time.begun(since), seen=None)

    def after(self, observation: Observation) -> "tuple[UntilEnded, Decision]":
        time, decision = self.time.after(observation)
        state = replace(self, time=time, seen=observation.volumes or self.seen)
        volumes = observation.volumes
        if volumes is not None and volumes.all_ended:
            after = f"ended after {observation.end_s - volumes.since_ns / 1e9:.4g} s"
            return state, Decision(Phase.TAIL, measured=(state._ended(observation, volumes),), progress=after)
        all_lost = volumes is None and not observation.same_hosts
        # Where the measurement began anew meanwhile, its time is not over at the timeout.
        if not decision.done and (all_lost or observation.end_s >= self.spec.timeout_s):
            decision = Decision(Phase.TAIL, measured=(self._so_far(time, observation.number),))
        if decision.done:
            measured = replace(decision.measured[0], findings=(*decision.measured[0].findings, *state._left(all_lost)))
            return state, replace(decision, measured=(measured,))
        return state, replace(
            decision, counted="", remaining=state._remaining(observation, decision.remaining),
            progress=state._progress(observation),
        )  # fmt: skip

    def cut_short(self, number: int) -> Measured:
        cut = self.time.cut_short(number)
        left = f"{_percent(self.seen.most_left)} of its volume left" if self.seen else ""
        return replace(
            cut,
            findings=tuple(
                replace(one, detail=left) if one.reason is Reason.SHORTENED and left else one for one in cut.findings
            ),
        )

    @staticmethod
    def _so_far(time: Fixed, number: int) -> Measured:
        if number >= time.first:
            return time.measured_until(number)
        return nothing_measured(number, Finding(Reason.NO_SAMPLES, "the step was over in the warmup"))

    def _ended(self, observation: Observation, volumes: Volumes) -> Measured:
        now, end_s = observation.number, observation.end_s - volumes.since_ns / 1e9
        if now < self.time.first and self.time.before is not None:
            return shortened(self.time.before, "until an edit or a pause: all ended before more was measured")
        if now < self.time.first:
            edited = self.time.begin is not None
            why = f"all ended after {end_s:.3g} s, "
            why += "before the measurement that an edit began" if edited else "within the warmup: choose a shorter one"
            return nothing_measured(now, Finding(Reason.NO_SAMPLES, why))
        measured = self.time.measured_until(now)
        return replace(
            measured,
            findings=(
                *measured.findings,
                *self._begun_anew(observation),
                *self._idle(observation, volumes),
            ),
        )

    def _begun_anew(self, observation: Observation) -> Iterator[Finding]:
        """Find that what was done before an edit is not measured; of a change of hosts, `Fixed` says so itself."""
        begin = self.time.begin
        if begin is not None and begin > self.time.since + self.time.warmup and begin not in self.time.changed:
            start_s = observation.start_s - (observation.number - begin) * observation.length_s
            yield Finding(Reason.SHORTENED, f"an edit or a pause began it anew, {start_s:.3g} s after the step's start")

    def _idle(self, observation: Observation, volumes: Volumes) -> Iterator[Finding]:
        """Find that the measurement goes on after the last end: a result came so late that the end was not known."""
        if not volumes.ended_before:
            return
        idle_s = volumes.since_ns / 1e9
        share = idle_s / ((observation.number + 1 - self.time.first) * observation.length_s)
        severity = Severity.INVALID if share > MOST_IDLE else Severity.NOTE
        detail = f"the last {idle_s:.3g} s, {_percent(min(share, 1.0))} of the time, are after the last end"
        yield Finding(Reason.END_SEEN_LATE, detail, severity)

    def _left(self, all_lost: bool) -> Iterator[Finding]:
        """Find what the step's end leaves: by time, or since the hosts of those that had not ended were lost."""
        by_time = not all_lost and self.time.measurement == self.spec.time
        reason = Reason.VOLUME_LEFT if by_time else Reason.VOLUME_NOT_REACHED
        words = []
        if self.seen is not None:
            count, ended = len(self.seen.ended_ns), self.seen.ended
            left = self.seen.most_left
            words.append(
                f"{_percent(left)} was left" if left else "all was submitted, and the last, or its flush, open"
            )
            words += [f"{ended} of {count} workload instances had ended"] if count > 1 else []
        words += ["the hosts of all that were to end are lost"] if all_lost else []
        if words:
            yield Finding(reason, "; ".join(words))

    def _left_s(self, observation: Observation) -> float | None:
        """How long it takes at the pace so far; None where there is none."""
        if self.seen is None or self.seen.most_left >= 1:
            return None
        return observation.end_s * self.seen.most_left / (1 - self.seen.most_left)

    def _remaining(self, observation: Observation, until_time: int | None) -> int | None:
        """Subintervals until the tail."""
        left_s = self._left_s(observation)
        if left_s is None:
            return until_time if self.spec.time is not None else None
        left = ceil(left_s / observation.length_s)
        return left if until_time is None else min(left, until_time)

    def _progress(self, observation: Observation) -> str:
        if self.seen is None:
            return ""
        done, left_s = 1 - self.seen.most_left, self._left_s(observation)
        count, ended = len(self.seen.ended_ns), self.seen.ended
        more = f", {ended} of {count} workload instances ended" if ended else ""
        left = "" if left_s is None else f", about {format_duration(_rounded(left_s))} left"
        return f"{_percent(done)} of the volume{more}{left}"


def _percent(share: float) -> str:
    return format_fraction(round(share, 3))


def _rounded(seconds: float) -> float:
    """To what a reader needs of a remaining time."""
    unit = 1 if seconds < 60 else 10 if seconds < 600 else 60
    return float(max(round(seconds / unit), 1) * unit)
