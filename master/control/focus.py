"""A focus: the metric, and the rollup type, that control observes."""

from dataclasses import dataclass
from typing import Final

from ..rollup.instances import ALL
from ..rollup.metrics import METRICS, Quantity, connector_of, metric_of, unit_of
from ..stats.metric_sample import MetricSample, ios
from ..stats.percentiles import FEWEST_BEYOND, fewest_ios
from ..text.metric_amounts import MetricUnit, amount_in_words
from ..verdicts import Scope

NO_VALUE: Final = "its connector gave no value"


@dataclass(frozen=True, slots=True)
class Focus:
    """A column's name and a rollup type's; `fraction` says that the metric is a percentile (0.999 for p99.9)."""

    metric: str
    rollup: str = ALL
    fraction: float | None = None

    def __str__(self) -> str:
        return f"{self.metric} per {self.rollup}"

    @property
    def in_words(self) -> str:
        """The same for people, without the rollup of everything."""
        return self.metric if self.rollup == ALL else str(self)

    @property
    def unit(self) -> MetricUnit:
        """Of the metric's values."""
        return unit_of(self.metric)

    @property
    def connector(self) -> str:
        """The connector that the metric is of; "" where it is the hosts' own."""
        return connector_of(self.metric)

    @property
    def needs_pacing(self) -> bool:
        """Only a paced load has the metric."""
        return self.metric in METRICS and METRICS[self.metric].needs_pacing

    @property
    def scope(self) -> Scope:
        """The figures that the metric is one of."""
        return METRICS[self.metric].scope if self.metric in METRICS else Scope.RATE

    @property
    def of_service(self) -> str:
        """The metric of service times that corresponds to one of response times. Raises KeyError."""
        own = METRICS[self.metric]
        return metric_of(own.category, Quantity.SERVICE, own.statistic).name


def blank_window(focus: Focus, instance: str) -> str:
    """Why a window has no value, as a message."""
    if focus.connector:
        return f"{focus.metric} of {instance} is blank: {NO_VALUE} in the window"
    why = "none was seen" if focus.fraction is None else f"fewer than {FEWEST_BEYOND} I/Os beyond it"
    return f"{focus.metric} of {instance} is blank: {why} in the window"


def blank_subinterval(focus: Focus, instance: str, sample: MetricSample) -> str:
    """Why a subinterval has no value, as a message."""
    if focus.connector:
        return f"{focus.metric} of {instance} is blank: {NO_VALUE} in a subinterval; gathers.csv says why"
    blank, seen = f"{focus.metric} of {instance} is blank", ios(sample)
    if focus.fraction is None or not seen:
        return f"{blank}: no I/O in a subinterval"
    return (
        f"{blank}: fewer than {FEWEST_BEYOND} I/Os beyond it in a subinterval, "
        f"{seen} of the {fewest_ios(focus.fraction)} that it needs; lengthen subinterval"
    )


def not_above_0(key: str, focus: Focus, value: float) -> str:
    """The sentence for an amount of the metric that has to be above 0 and is not."""
    return f"{key} is {amount_in_words(focus.unit, value)}; it must be above 0"
