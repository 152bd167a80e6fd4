"""A threshold of a step, and which measurements miss it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ..rollup.instances import ALL
from ..text.metric_amounts import LIMIT_DIGITS, amount_in_words
from ..verdicts import Finding, Reason, Scope, Severity
from .choices import Side
from .focus import Focus

SWITCHING: Final = 2.0  # CPU time that is taken costs no more than so much of it: caches grow cold


def of_instance(instance: str) -> str:
    """The words for the instance of a value, where it is not everything: " of host=lab01"."""
    return "" if instance == ALL else f" of {instance}"


@dataclass(frozen=True, slots=True)
class SloSpec:
    """One of `slo`: a threshold that every instance must meet."""

    focus: Focus
    side: Side
    limit: float
    abort_early: bool
    command: tuple[str, ...]  # run when it is breached; empty: none
    every_s: float  # between two alerts

    def __str__(self) -> str:
        limit = amount_in_words(self.focus.unit, self.limit, LIMIT_DIGITS)
        return f"{self.focus.in_words} {self.side.in_words} {limit}"

    def excess(self, value: float) -> float:
        """By how much a value misses the threshold; it meets it at 0 and below."""
        return value - self.limit if self.side is Side.AT_MOST else self.limit - value

    def in_words(self, value: float, digits: int = 6) -> str:
        """A value of its metric, with the unit; on its side of the threshold also in the digits that are shown."""
        return amount_in_words(self.focus.unit, value, digits, self.limit)

    def findings(
        self, values: Mapping[str, float | None], slowed: Mapping[str, float], lacking: Mapping[str, str]
    ) -> tuple[Finding, ...]:
        """One for each instance of a measurement that missed, or has no value. A miss of one that is `slowed` or
        `lacking` shows nothing about the storage, where the hosts alone may have caused it."""
        return tuple(
            self._missed(value, instance, slowed.get(instance, 0.0), lacking.get(instance, ""))
            for instance, value in values.items()
            if value is None or self.excess(value) > 0
        )

    def _missed(self, value: float | None, instance: str, slowed: float, hosts: str) -> Finding:
        if value is None:
            return Finding(Reason.SLO_MISSED, f"{self}: blank{of_instance(instance)}", Severity.INVALID)
        return self.missed(value, f"{self}: {self.in_words(value)}{of_instance(instance)}", slowed, hosts)

    def missed(self, value: float, detail: str, slowed: float, hosts: str) -> Finding:
        """That a value misses it. `slowed`: the instance's share, `hosts`: those it is of where it lacks some; see
        Check."""
        if hosts:
            detail = f"{detail}, which is of {hosts}"
            if self.side is Side.AT_LEAST and self.focus.scope is Scope.RATE:
                return Finding(Reason.SLO_MISSED, detail, Severity.INVALID)
        if slowed and self._met_but_for_the_host(value, slowed):
            why = f"at max, where threads were kept from running for {slowed:.0%} of the time"
            return Finding(Reason.SLO_MISSED, f"{detail}, {why}", Severity.INVALID)
        return Finding(Reason.SLO_MISSED, detail, Severity.FAILED, about=self.focus.scope)

    def _met_but_for_the_host(self, value: float, slowed: float) -> bool:
        """Whether that may be so: without the CPU time that it needs, a load at max has lower rates and longer times.
        A rate is lower by that share, and a mean time longer; by twice as much at most, with what switching costs. Of
        percentiles nothing is known: one stall may make a tail."""
        left = 1 - SWITCHING * slowed
        if self.side is Side.AT_LEAST:
            return self.focus.scope is Scope.RATE and value >= self.limit * left
        if self.focus.scope not in (Scope.SERVICE, Scope.RESPONSE):
            return False
        return self.focus.fraction is not None or value * left <= self.limit
