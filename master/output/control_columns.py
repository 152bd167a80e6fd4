"""The columns of the tables in which control explains its decisions: a row per decision.

Rule: control makes the cells; a test compares their names with these.
"""

from typing import Final

from .column import Column

_SUBINTERVAL: Final = Column("subinterval", "", "the subinterval that closed before the decision")
_METRIC: Final = Column("metric", "", "the metric that is controlled or checked")
_WORST: Final = Column("worst_instance", "", "the rollup instance that is furthest from passing")
_FIRST: Final = Column("first_subinterval", "", "the row's first subinterval")
_LAST: Final = Column("last_subinterval", "", "the row's last subinterval")
_ACHIEVED: Final = Column("achieved_iops", "1/s", "I/Os completed per second")
_CONFIDENCE: Final = Column("confidence_percent", "%", "confidence of that interval")
_LOAD: Final = Column("total_iops", "1/s", "load of `all=all`; blank at max")

MEASURE: Final = (
    _SUBINTERVAL,
    _FIRST,
    _LAST,
    Column("dropped_for_trend", "", "subintervals at the beginning that were dropped because of a trend"),
    _METRIC,
    _WORST,
    Column("value", "of the metric", "over the window, of the worst instance"),
    Column("half_width_percent", "%", "half-width of its confidence interval"),
    Column("accuracy_percent", "%", "the half-width that is required"),
    _CONFIDENCE,
    Column("effective_samples", "", "independent subintervals that say as much as those of the window"),
    Column("passing_instances", "", "rollup instances that are accurate"),
    Column("instances", "", "rollup instances of that type"),
    Column("remaining_s", "s", "estimated time until the worst instance passes"),
    Column("passed", "", "true ends the measurement"),
)
STEADY: Final = (
    _SUBINTERVAL,
    Column("end_s", "s", "planned end of the subinterval, since the start of the step"),
    Column("stage", "", "seeking, attained, holding or lost"),
    Column("criterion", "", "deviation, slope, snia or t"),
    _METRIC,
    Column("limit", "limit_unit", "what the value may not exceed"),
    Column("limit_unit", "", "percent of the mean, or absolute: the metric's unit"),
    _WORST,
    Column("value", "limit_unit", "what the criterion compares with the limit"),
    Column("mean", "of the metric", "over the window"),
    Column("max_deviation", "of the metric", "largest distance from the mean"),
    Column("slope_per_s", "of the metric/s", "of the line through the window"),
    Column("drift_bound", "of the metric", "bound of the drift, with `no_drift`"),
    Column("attained", "", "whether the steady state is attained"),
    Column("complete_subintervals", "", "subintervals since the window last restarted"),
    Column("times_left", "", "how often the steady state was left"),
)
PID: Final = (
    _SUBINTERVAL,
    Column("instance", "", "the rollup instance whose load is steered"),
    _METRIC,
    Column("target", "of the metric", "value that is steered for"),
    Column("value", "of the metric", "of recent subintervals together, of which later ones weigh more"),
    Column("error_ln", "", "ln(value / target), bounded"),
    Column("proportional_ln", "", "part of the move in ln(IOPS); 0, for the controller is integral only"),
    Column("integral_ln", "", "part of the move in ln(IOPS)"),
    Column("derivative_ln", "", "part of the move in ln(IOPS); 0"),
    Column("gain", "", "of this move"),
    Column("gain_next", "", "of the next move"),
    Column("iops", "1/s", "load in this subinterval"),
    Column("iops_next", "1/s", "load from now on"),
    _ACHIEVED,
    Column("backlog", "I/Os", "due and not submitted at the end of the subinterval"),
    Column("monotone", "", "moves in the same direction so far"),
    Column("event", "", "gain up, gain down, clamped, draining, blank or finding range"),
)
FIND: Final = (
    Column("probe", "", "its number, from 1"),
    _LOAD,
    _ACHIEVED,
    _METRIC,
    Column("target", "of the metric", "what is searched for"),
    Column("value", "of the metric", "over the probe, of the worst instance"),
    Column("half_width", "of the metric", "half-width of its confidence interval"),
    _CONFIDENCE,
    _WORST,
    Column("sustained", "", "whether the load was sustained"),
    Column("answer", "", "pass, fail or unclear"),
    _FIRST,
    _LAST,
    Column("highest_pass_iops", "1/s", "highest load that passed so far, of the answers that stand"),
    Column("lowest_fail_iops", "1/s", "lowest load that failed so far"),
    Column("expected_iops", "1/s", "the load that meets the target, from all probes so far"),
    Column("low_iops", "1/s", "its interval: the lower end"),
    Column("high_iops", "1/s", "its interval: the upper end"),
    Column("interval_percent", "%", "confidence of that interval"),
    Column("halving_s", "s", "about how much longer would halve it; blank: narrow enough"),
    Column("repeated", "", "true: it was disturbed, and is repeated"),
    Column("disturbed", "", "what disturbed more than a fifth of it"),
)
STAIRCASE: Final = (
    Column("level", "", "its number, from 0"),
    _LOAD,
    _ACHIEVED,
    _FIRST,
    _LAST,
    Column("sustained", "", "whether the load was sustained"),
)
PROFILE: Final = (
    _SUBINTERVAL,
    Column("total_iops", "1/s", "the profile's mean over this subinterval"),
    Column("due_iops", "1/s", "I/Os that fell due per second"),
    _ACHIEVED,
    Column("backlog", "I/Os", "due and not submitted at the end of the subinterval"),
)
SLO: Final = (
    _SUBINTERVAL,
    Column("metric", "", "of the threshold"),
    Column("rollup", "", "rollup type of the threshold"),
    Column("at_most", "of the metric", "the threshold, if an upper one"),
    Column("at_least", "of the metric", "the threshold, if a lower one"),
    _WORST,
    Column("value", "of the metric", "of that instance in this subinterval"),
    Column("breached", "", "whether this subinterval breaches the threshold"),
)
ROUNDS: Final = (
    Column("step", "", "the step of the plan"),
    Column("round", "", "from 1; the summaries have it, too"),
    Column("pass", "", "of the step's passes one that must be steady"),
    _METRIC,
    Column("value", "of the metric", "of the round; blank where it cannot be used"),
    Column("mean", "of the metric", "over the last five rounds"),
    Column("excursion_percent", "%", "of them, the largest less the smallest, of the mean"),
    Column("slope_percent", "%", "rise of the line through them, of the mean"),
    Column("steady", "", "true for all ends the rounds"),
)
