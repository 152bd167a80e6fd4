"""The options of a run that export metrics for Prometheus."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import PlanError
from ..text.suggestions import suggestion

if TYPE_CHECKING:
    from ..live.reports import Watcher
    from ..plan.model import Plan

METRICS = click.option(
    "--metrics", default="", metavar="[HOST]:PORT", help="Serve metrics for Prometheus there; `:9101` is loopback."
)
METRICS_FILE = click.option(
    "--metrics-file",
    type=click.Path(path_type=Path),
    metavar="FILE.prom",
    help="Write metrics after each subinterval, for node_exporter's textfile collector.",
)
METRICS_BY = click.option(
    "--metrics-by", default="", metavar="TYPE,...", help="Metrics of the instances of these rollup types only."
)


def exported(watching: "Watcher", plan: "Plan", address: str, file: Path | None, by: str) -> "Watcher":
    """The watcher, with the export of metrics that the options ask for. Raises PlanError."""
    types = tuple(filter(None, by.split(",")))
    known = [spec.name for spec in plan.rollups]
    for name in types:
        if name not in (*known, "all"):
            raise PlanError(f"--metrics-by {by}: the plan has no rollup type {name!r}{suggestion(name, known)}")
    if not address and file is None:
        if types:
            raise PlanError("--metrics-by needs --metrics or --metrics-file")
        return watching
    from ..openmetrics.export import MetricsBesideRun

    return MetricsBesideRun(watching, address, file, types)
