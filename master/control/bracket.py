"""The answers of a search that stand, and the bracket that they make: highest pass, lowest fail.

Rule: a later answer replaces earlier ones that contradict it, and a later probe those of the same load that differ from
it, so storage that was slow for a while does not decide the search. For the same reason no probe is above the target
alone: another has to show it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot, inf
from typing import Final

from ..stats.confidence import t_quantile
from ..stats.crossing import TargetReading
from .probe import Probe, ProbeAnswer

_DIFFER: Final = 0.95  # confidence at which two probes of one load differ: a wrong word costs one more probe


@dataclass(frozen=True, slots=True)
class Bracket:
    """The highest pass and the lowest fail; no answer between them contradicts them."""

    passed: Probe | None
    failed: Probe | None


def standing(probes: Sequence[Probe]) -> list[Probe]:
    """Probes without the earlier answers that a later one contradicts or does not repeat; unclear ones stand."""
    stand: list[Probe] = []
    for probe in probes:
        if probe.answer is ProbeAnswer.UNCLEAR:  # an answer whose side does not come again at the same load was chance
            stand = [
                one
                for one in stand
                if one.answer is ProbeAnswer.UNCLEAR or one.iops != probe.iops or one.above is probe.above
            ]
        else:
            stand = [one for one in stand if not _contradict(one, probe)]
        stand = [one for one in stand if not _differ(one, probe)]
        stand.append(probe)
    return stand


def unconfirmed(stand: Sequence[Probe]) -> float | None:
    """IOPS of the only probe that shows that the target is exceeded, which may have been slow by chance.

    One whose error is beyond all excesses shows nothing: it would stand beside any of them.
    """
    above = [one for one in stand if one.above]
    furthest = max((_excess(one) for one in above), default=0.0)
    shows = [one for one in above if _error(one) < furthest] or above
    alone = len(shows) == 1 and sum(one.iops == shows[0].iops for one in above) == 1
    return shows[0].iops if alone else None


def _excess(probe: Probe) -> float:
    reading = _worst(probe)
    return reading.excess if reading else inf  # not sustained


def _error(probe: Probe) -> float:
    reading = _worst(probe)
    return reading.error if reading else 0.0


def _worst(probe: Probe) -> TargetReading | None:
    return probe.readings.get(probe.instance)


def bracket(probes: Sequence[Probe]) -> Bracket:
    """That of the answers that stand."""
    stand = standing(probes)
    passes = [one for one in stand if one.answer is ProbeAnswer.PASS]
    fails = [one for one in stand if one.answer is ProbeAnswer.FAIL]
    return Bracket(
        max(passes, key=lambda one: one.iops, default=None), min(fails, key=lambda one: one.iops, default=None)
    )


def _contradict(earlier: Probe, later: Probe) -> bool:
    if {earlier.answer, later.answer} != {ProbeAnswer.PASS, ProbeAnswer.FAIL}:
        return False
    passed, failed = (earlier, later) if earlier.answer is ProbeAnswer.PASS else (later, earlier)
    return passed.iops >= failed.iops


def _differ(earlier: Probe, later: Probe) -> bool:
    """The load was the same, and the metric was not: something else decided."""
    if earlier.iops != later.iops:
        return False
    name = max(earlier, later, key=_excess).instance
    first, second = earlier.readings.get(name), later.readings.get(name)
    if first is None or second is None:
        return False
    margin = t_quantile((1 + _DIFFER) / 2, min(first.freedom, second.freedom)) * hypot(first.error, second.error)
    return abs(first.excess - second.excess) > margin
