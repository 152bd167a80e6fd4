"""Fixed time: so many subintervals of warmup, so many of measurement, then done.

Rule: after an edit from outside the measurement starts again; after a change of the set of hosts it starts again with
the hosts that are left, since no window is summed over such a change.

Subintervals in which the generator was disturbed are set aside: the measurement goes on until it has its time in
others. At most MOST_SET_ASIDE of all, and at most MOST_LONGER than planned; after that they count.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from math import floor
from typing import ClassVar, Final

from ..rollup.disturbance import Disturbance, causes, set_aside_finding
from ..verdicts import Finding, Reason
from .choices import OnDisturbance
from .control_state import Keys, StepConditions
from .decision import Decision, Measured, interrupted, shortened
from .focus import Focus
from .observation import Observation, Phase

MOST_SET_ASIDE: Final = Fraction(1, 5)  # of the subintervals that are measured or set aside
MOST_LONGER: Final = Fraction(1, 2)  # of the planned measurement


def most_aside(measurement: int) -> int:
    """How many subintervals a measurement of so many may set aside."""
    return floor(measurement * min(MOST_LONGER, MOST_SET_ASIDE / (1 - MOST_SET_ASIDE)))


@dataclass(frozen=True, slots=True)
class FixedSpec:
    """`measure: 60s`: a measurement of fixed length."""

    keys: ClassVar[Keys] = ("measure",)

    subintervals: int  # at least 1

    @property
    def focus(self) -> Focus | None:
        return None

    @property
    def in_words(self) -> str:
        return ""

    def faults(self, step: StepConditions, usable: bool) -> Iterator[tuple[str, str]]:
        yield from ()

    def longest_s(self, step: StepConditions) -> float:
        return self.subintervals * step.subinterval_s

    def state(self, step: StepConditions) -> "Fixed":
        sets_aside = step.fixed and step.disturbed is OnDisturbance.SET_ASIDE
        return Fixed(step.warmup, self.subintervals, most_aside(self.subintervals) if sets_aside else 0)


@dataclass(frozen=True, slots=True)
class Fixed:
    """State of a step of fixed length; lengths in subintervals."""

    warmup: int
    measurement: int  # at least 1
    most_aside: int = 0  # disturbed ones that may be set aside
    since: int = 0  # the subinterval with which the step, or the level, began
    begin: int | None = None  # the measurement's first subinterval, once an edit or a change of hosts has moved it
    changed: tuple[int, ...] = ()  # subintervals of the measurement in which the set of hosts changed
    before: Measured | None = None  # of the complete subintervals until an edit; it counts if none follow
    newest: int = -1  # subinterval that was decided on: there is none in a pause
    aside: tuple[tuple[int, Disturbance], ...] = ()  # since the measurement's beginning, with their numbers

    @property
    def first(self) -> int:
        return self.since + self.warmup if self.begin is None else self.begin

    @property
    def focuses(self) -> tuple[Focus, ...]:
        return ()

    @property
    def may_end(self) -> tuple[int, ...]:
        return () if self.before is None else (self.before.last,)

    def opening(self) -> Decision:
        return Decision(self._phase(0))

    def restarted(self, at: int) -> "Fixed":
        return replace(self, begin=max(at, self.first), aside=())

    def begun(self, since: int) -> "Fixed":
        return Fixed(self.warmup, self.measurement, self.most_aside, since)

    def after(self, observation: Observation) -> "tuple[Fixed, Decision]":
        now = observation.number
        state = replace(self._restarted_by(observation), newest=now)
        # A result that covers several subintervals counts: those before are in the measurement already.
        disturbed = observation.disturbance if now >= state.first and not observation.covers else None
        set_aside = disturbed is not None and len(state.aside) < state.most_aside
        if disturbed is not None and set_aside:
            state = replace(state, aside=(*state.aside, (now, disturbed)))
        if state._counted(now) >= state.measurement:
            return state, Decision(Phase.TAIL, measured=(state.measured_until(now),))
        counted, remaining = state._progress(now), state._remaining(now)
        return state, Decision(state._phase(now + 1), counted=counted, remaining=remaining, set_aside=set_aside)

    def remaining_if_edited(self, number: int) -> int | None:
        """Subintervals after `number` until the tail, if an edit acts in it; None: it is before the measurement."""
        return self.measurement if number >= self.first else None

    def cut_short(self, number: int) -> Measured:
        if self._counted(number) > 0:
            return shortened(self.measured_until(number), f"{self._counted(number)} of {self.measurement} subintervals")
        if self.before is None:
            return interrupted(number)
        until = f"{self.before.subintervals} of {self.measurement} subintervals, until an edit or a pause"
        return shortened(self.before, until)

    def _restarted_by(self, observation: Observation) -> "Fixed":
        """With the measurement's new beginning, where this subinterval moves it."""
        now = observation.number
        if observation.began < self.first <= now:  # it has figures of before
            return replace(self, begin=now + 1, aside=())
        if now >= self.first and observation.edited:
            before = self.measured_until(self.newest) if self._counted(self.newest) > 0 else self.before
            return replace(self, begin=now + 1, before=before, aside=())
        if now == self.first and not observation.same_hosts:
            return replace(self, begin=now, aside=())  # changed at the very start: the rest has one set of hosts
        if now > self.first and not observation.same_hosts:
            return replace(self, begin=now, changed=(*self.changed, now), aside=())
        return self

    def _counted(self, number: int) -> int:
        """How many subintervals are measured until `number`, the last closed one; 0 or less: none."""
        return number + 1 - self.first - len(self.aside)

    def _remaining(self, now: int) -> int:
        return max(self.first - 1 - now, 0) + self.measurement - max(self._counted(now), 0)

    def measured_until(self, number: int) -> Measured:
        """The measurement until subinterval `number`, from the first to the last one that counts: at least one."""
        aside = {one for one, _ in self.aside}
        first = next(one for one in range(self.first, number + 1) if one not in aside)
        last = next(one for one in range(number, first - 1, -1) if one not in aside)
        within = tuple(one for one, _ in self.aside if first < one < last)
        return Measured(first, last, findings=self._findings(self._counted(number)), set_aside=within)

    def _findings(self, counted: int) -> tuple[Finding, ...]:
        changed = (
            Finding(Reason.HOSTS_CHANGED, f"in subinterval {now}, where the measurement started again")
            for now in self.changed
        )
        return (*changed, *set_aside_finding([one for _, one in self.aside], counted))

    def _phase(self, number: int) -> Phase:
        return Phase.WARMUP if number < self.first else Phase.RUN

    def _progress(self, now: int) -> str:
        done = max(self._counted(now), 0)
        if not done and not self.aside:
            return ""
        aside = ""
        if self.aside:
            more = f"{len(self.aside)} more do{'es' * (len(self.aside) == 1)} not count"
            aside = f"; {more} ({causes(one for _, one in self.aside)})"
        return f"measured {done} of {self.measurement} subintervals{aside}"
