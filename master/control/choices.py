"""The words that a plan may choose from: criteria, and what follows when a steady state is left or the
generator is disturbed.

Rule: nothing heavy is imported, so that `ivypy steady --help` prints them at once.
"""

from enum import StrEnum
from typing import Final


class Rule(StrEnum):
    """How a window of values is compared with a criterion's limit."""

    DEVIATION = "deviation"
    SLOPE = "slope"
    SNIA = "snia"  # five rounds, excursion and slope
    T = "t"  # measure's rule: known to an accuracy, with no trend


# fio's six criteria: the rule, and the metric; of a latency, `latency` may name another statistic than the mean.
FIO: Final = {
    "iops": (Rule.DEVIATION, "overall_iops"),
    "iops_slope": (Rule.SLOPE, "overall_iops"),
    "bw": (Rule.DEVIATION, "overall_mib_per_s"),
    "bw_slope": (Rule.SLOPE, "overall_mib_per_s"),
    "latency": (Rule.DEVIATION, "overall_service_us_mean"),
    "latency_slope": (Rule.SLOPE, "overall_service_us_mean"),
}
CRITERIA: Final = (*FIO, Rule.SNIA.value, Rule.T.value)
LATENCIES: Final = ("mean", "p50", "p90", "p95", "p99", "p99_9", "p99_99")  # of the latency criteria
LIMIT_PERCENT: Final = 2.0
WINDOW_S: Final = 30.0
USUAL_METRIC: Final = "overall_iops"  # what snia and t look at
SNIA_ROUNDS: Final = 5  # of a window
USUAL_MOST: Final = 25  # rounds, as SNIA's PTS has it


class Side(StrEnum):
    """On which side of its threshold a metric has to be."""

    AT_MOST = "at_most"
    AT_LEAST = "at_least"

    @property
    def in_words(self) -> str:
        return self.value.replace("_", " ")


class OnDisturbance(StrEnum):
    """Says what follows when the generator was disturbed in a subinterval."""

    SET_ASIDE = "set_aside"  # it does not count, and the measurement goes on for longer
    KEEP = "keep"


class OnLeave(StrEnum):
    """Says what follows when a steady state is left while it is held."""

    NOTE = "note"
    RESTART = "restart"
    STOP = "stop"
