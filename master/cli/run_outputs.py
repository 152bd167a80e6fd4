"""How a run is shown beside its console and what it leaves besides its folder, alike for `ivypy run` and `ivypy quick`:
a page in the browser, metrics for Prometheus, JUnit's XML for CI, the report.

Rule: this module only parses words; heavy modules are imported when the command runs, so that --help is quick.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import IvypyError, PlanError
from ..exit_codes import ExitCode
from ..live.choose_view import View, close_view, watcher
from ..text.suggestions import listed
from .metrics import METRICS, METRICS_BY, METRICS_FILE, exported
from .report import NO_REPORT, report_at_end
from .results import begin_junit, write_junit
from .web import need_web, page_of_run

if TYPE_CHECKING:
    from ..live.reports import RunEnds
    from ..plan.model import Plan
    from ..run.session.run import Options


@dataclass(frozen=True, slots=True)
class RunOutputs:
    """The options, by their names."""

    junit: Path | None
    with_page: bool
    no_report: bool
    metrics: str
    metrics_file: Path | None
    metrics_by: str

    def refuse_in_dry_run(self) -> None:
        """Raises PlanError for what only a run would write or show."""
        options = {
            "--junit": self.junit, "--web": self.with_page, "--metrics": self.metrics,
            "--metrics-file": self.metrics_file,
        }  # fmt: skip
        if given := [option for option, value in options.items() if value]:
            remedy = "leave it out" if len(given) == 1 else "leave all out"
            raise PlanError(f"--dry-run runs nothing, so there is nothing for {listed(given)}: {remedy}")

    @contextmanager
    def begun(self, run: str) -> Iterator[None]:
        """While the plan is read: CI is told why it was refused. `run`: its name, for CI. Raises PlanError,
        OutputError."""
        if self.with_page:
            need_web()
        if self.junit is None:
            yield
            return
        begin_junit(self.junit, run)
        try:
            yield
        except IvypyError as error:
            begin_junit(self.junit, run, str(error))
            raise


def output_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options that RunOutputs has."""
    options = [
        click.option("--junit", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
                     help="At the end, write JUnit's XML for CI: a test case for each step and threshold."),
        click.option("--web", "with_page", is_flag=True,
                     help="Show the run in the browser: prints the address of its page."),
        NO_REPORT, METRICS, METRICS_FILE, METRICS_BY,
    ]  # fmt: skip
    for option in reversed(options):
        function = option(function)
    return function


def outputs_of(words: dict[str, Any]) -> RunOutputs:
    """Takes the options out of a command's `words`."""
    return RunOutputs(**{field.name: words.pop(field.name) for field in fields(RunOutputs)})


def run_and_show(
    plan: "Plan",
    options: "Options",
    view: View,
    outputs: RunOutputs,
    result: "Callable[[RunEnds], Sequence[str]] | None" = None,
) -> ExitCode:
    """Run a plan to its end. `result`: the lines that stand in place of the table of steps."""
    from ..live.view_decorators import KeepsTheEnd
    from ..run.session.run import run_plan
    from ..run.session.signals import run_until_pressed

    watching = exported(watcher(view, result), plan, outputs.metrics, outputs.metrics_file, outputs.metrics_by)
    end = KeepsTheEnd(watching)
    page, code, why_not = None, ExitCode.INTERRUPTED, ""
    try:
        page = page_of_run(options.root) if outputs.with_page else None
        code = run_until_pressed(lambda presses: run_plan(plan, options, end, presses))
        return code
    except IvypyError as error:
        why_not = str(error)
        raise
    finally:
        close_view(watching)
        if page is not None:
            page.end(stay=code is not ExitCode.INTERRUPTED)
        if outputs.junit is not None and end.folder:
            write_junit(outputs.junit, Path(end.folder), why_not)
        if plan.report and not outputs.no_report:
            report_at_end(end, view.ui)
