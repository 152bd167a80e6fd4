"""Fixed time: so many subintervals of warmup, so many of measurement, then done.

Rule: after an edit from outside the measurement starts again; after a change of the set of hosts it starts again with
the hosts that are left, since no window is summed over such a change.
"""

from dataclasses import dataclass, replace

from ..verdicts import Finding, Reason
from .decision import Decision, Measured, interrupted, shortened
from .focus import Focus
from .observation import Observation, Phase


@dataclass(frozen=True, slots=True)
class Fixed:
    """State of a step of fixed length; lengths in subintervals."""

    warmup: int
    measurement: int  # at least 1
    since: int = 0  # the subinterval with which the step, or the level, began
    begin: int | None = None  # the measurement's first subinterval, once an edit or a change of hosts has moved it
    changed: tuple[int, ...] = ()  # subintervals of the measurement in which the set of hosts changed
    before: tuple[int, int] | None = None  # the complete subintervals until an edit; they count if none follow it

    @property
    def first(self) -> int:
        return self.since + self.warmup if self.begin is None else self.begin

    @property
    def focuses(self) -> tuple[Focus, ...]:
        return ()

    @property
    def may_end(self) -> tuple[int, ...]:
        return () if self.before is None else (self.before[1],)

    def opening(self) -> Decision:
        return Decision(self._phase(0))

    def restarted(self, at: int) -> "Fixed":
        return replace(self, begin=max(at, self.first))

    def begun(self, since: int) -> "Fixed":
        return Fixed(self.warmup, self.measurement, since)

    def after(self, observation: Observation) -> "tuple[Fixed, Decision]":
        now = observation.number
        state = self
        if now >= self.first and observation.edited:
            before = (self.first, now - 1) if now > self.first else self.before
            state = replace(self, begin=now + 1, before=before)
        elif now == self.first and not observation.same_hosts:
            state = replace(self, begin=now)  # changed at the very start: the rest has one set of hosts
        elif now > self.first and not observation.same_hosts:
            state = replace(self, begin=now, changed=(*self.changed, now))
        if now + 1 >= state.first + state.measurement:
            return state, Decision(Phase.TAIL, measured=(Measured(state.first, now, findings=state._findings()),))
        return state, Decision(state._phase(now + 1), progress=state._progress(now))

    def cut_short(self, number: int) -> Measured:
        if number < self.first:
            return self._until_the_edit(number)
        so_far = Measured(self.first, number, findings=self._findings())
        return shortened(so_far, f"{number + 1 - self.first} of {self.measurement} subintervals")

    def _until_the_edit(self, number: int) -> Measured:
        if self.before is None:
            return interrupted(number)
        first, last = self.before
        until = Measured(first, last, findings=self._findings())
        return shortened(until, f"{last + 1 - first} of {self.measurement} subintervals, until an edit or a pause")

    def _findings(self) -> tuple[Finding, ...]:
        return tuple(
            Finding(Reason.HOSTS_CHANGED, f"in subinterval {now}, where the measurement started again")
            for now in self.changed
        )

    def _phase(self, number: int) -> Phase:
        return Phase.WARMUP if number < self.first else Phase.RUN

    def _progress(self, now: int) -> str:
        done = now + 1 - self.first
        return f"measured {done} of {self.measurement} subintervals" if done > 0 else ""
