"""The old tools' own options: one set for all; what a tool does not have, it ignores."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CompatOptions:
    interval_ms: int
    percentiles: tuple[float, ...] | None  # None: the tool's own
    log_hist_msec: int | None
    output_unit: str  # pctiles: nsec, usec, msec
    weighted: bool  # fiologparser_hist
    divisor: int
    decimals: int
    directions: str  # fiologparser_hist: any of r w t m; blank: no column
    show: str  # fiologparser: default, sum, average, full, all
