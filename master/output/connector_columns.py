"""The columns of the files that hold what connectors said.

Rule: a file is of one element type, and its metrics are the connector's own: each is a column, named by its attribute.
"""

from typing import Final

from .column import Column

_SUBINTERVAL: Final = Column("subinterval", "", "its number in the step, from 0")
_END: Final = Column("end_utc", "UTC", "its end, by the controller's clock")

GATHERS: Final = (
    Column("subinterval", "", "its number in the step; -1: before the first, where counters start"),
    Column("connector", "", "its name in the plan"),
    Column("host", "", "of the connector `host`, which test host; else blank"),
    Column(
        "state", "", "gathered, late, no_answer, busy (not asked, since it had not answered before), declined or lost"
    ),
    Column("why", "", "why it declined, was lost, or (a test host) gave nothing"),
    _END,
    Column(
        "request_ms",
        "ms",
        "the request, after the subinterval's end; negative: before it; blank for test hosts",
    ),
    Column("answer_ms", "ms", "the answer's arrival (a test host's result), after the subinterval's end"),
    Column("skew_ms", "ms", "the gather's end, by the connector's stamps, after the subinterval's end"),
    Column("duration_ms", "ms", "of the gather, by the connector's stamps"),
    Column("stamps", "", "why its stamps were not used for rates: absent, backwards, ahead, too_long or jumped"),
    Column(
        "span_s",
        "s",
        "since the previous subinterval's gather; blank where there was none: counters have no rates",
    ),
    Column("elements", "", "elements of all types that gave a value"),
    Column("resets", "", "counters that fell: their increase is not known"),
    Column("wraps", "", "counters that wrapped: their increase is known"),
    Column("ignored", "", "facts that were not used"),
    Column("ignored_because", "", "the first of them, and why"),
)
ELEMENT_ROW: Final = (
    _SUBINTERVAL,
    _END,
    Column("connector_host", "", "the test host that it is on; blank for connectors of the whole run"),
    Column("element", "", "the instance"),
    Column("participating", "", "1 if it belongs to a LUN of a workload, else 0"),
)
COMBINED_ROW: Final = (
    _SUBINTERVAL,
    _END,
    Column("elements", "", "elements of this type that belong to the rollup instance"),
    Column("missing", "", "of these, elements without a value"),
)
CONNECTOR_SUMMARY: Final = (
    Column("step", "", "its number in the run, from 0"),
    Column("name", "", "the step's name"),
    Column("rollup_type", "", "by which attributes the workload instances are grouped; `non_participating`"),
    Column("rollup_instance", "", "which group of that type; blank for elements that do not participate"),
    Column("metric", "", "its full name: connector.element_attribute"),
    Column("unit", "", "of the metric"),
    Column("value", "unit", "over the measurement: a ratio of sums for rates and mean times, else the mean over time"),
    Column("min", "unit", "of any subinterval"),
    Column("max", "unit", "of any subinterval"),
    Column("subintervals", "", "of the measurement, with a value"),
    Column("missing", "", "subintervals of the measurement without one"),
    Column("elements", "", "elements that belong to the rollup instance, at the end"),
)
EXTREMES: Final = ("_min", "_max")  # of any element: columns beside each metric's
