"""The answers of a search that stand, and the bracket that they make: highest pass, lowest fail.

Rule: a later answer replaces earlier ones that contradict it, so storage that was slow for a while does not decide the
search.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from .probe import Probe, ProbeAnswer


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
        stand.append(probe)
    return stand


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
