"""The commands `ivypy list` and `ivypy show`: which runs there are, and what one of them measured.

Rule: this module only parses words; heavy modules are imported when a command runs, so that --help is quick.
"""

import json
import re
from pathlib import Path
from typing import Any, Final

import click

from ..errors import PlanError
from ..exit_codes import ExitCode
from .table_options import TableForm, form_of, table_options

ROOT: Final = Path("runs")  # where `run` and `quick` make their folders, unless they are told otherwise
_HEAD: Final = 1024  # bytes of a file, which show what it is
_JUNIT: Final = re.compile(rb"\s*(<\?xml[^>]*\?>)?\s*<testsuites[\s/>]")


@click.command("list")
@click.argument("root", required=False, default=ROOT, type=click.Path(path_type=Path), metavar="[ROOT]")
@table_options
def list_runs(root: Path, **words: Any) -> ExitCode:
    """List the runs in the folder ROOT, by default ./runs, the newest first.

    For each: when it started, whether it is running, ended or was cut off, the worst verdict of its steps, how long it
    took, its hosts, the steps that began, the IOPS and load of its last step, and its folder. A narrow terminal has
    fewer columns; [IOPS] are invalid.
    """
    from ..live.line_view import columns_of_output
    from ..live.step_lines import local_now
    from ..results.run_entries import entries_below, entry_csv, entry_data, entry_lines, entry_markdown

    form, now = form_of(words), local_now()
    entries, faults = entries_below(root, now)
    for fault in faults:
        click.echo(fault, err=True)
    if form is TableForm.JSON:
        click.echo(json.dumps([entry_data(one) for one in entries], indent=2))
    elif form is TableForm.CSV:
        click.echo(entry_csv(entries), nl=False)
    elif form is TableForm.MARKDOWN:
        click.echo(entry_markdown(entries, now), nl=False)
    elif entries:
        click.echo("\n".join(entry_lines(entries, now, columns_of_output())))
    elif not faults:
        click.echo(f"{root}: there are no runs", err=True)
    return ExitCode.PLAN if faults else ExitCode.OK


def begin_junit(file: Path, plan: str, why_not: str = "") -> None:
    """Before a run: JUnit's XML that says that it has not ended, in the place of that of an earlier run. `why_not`: why
    it was refused.

    Raises PlanError, OutputError.
    """
    from datetime import UTC, datetime

    from ..results.junit import junit_of_no_run

    save_junit(file, junit_of_no_run(plan, datetime.now(UTC), why_not))


def save_junit(file: Path, text: str) -> None:
    """In the place of an earlier one, but of no other file: not of a plan that was named by mistake."""
    from ..output.named_files import save

    if not file.parent.is_dir():
        raise PlanError(f"--junit {file}: there is no folder {file.parent}; make it first")
    if file.is_file() and file.stat().st_size and not _is_junit(file):
        raise PlanError(f"--junit {file}: a file that is no JUnit XML; name another")
    save(file, lambda: file.write_text(text, encoding="utf-8", errors="replace"))


def _is_junit(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            return _JUNIT.match(opened.read(_HEAD)) is not None
    except OSError as error:
        raise PlanError(f"--junit {file}: not read: {error.strerror}") from None


def write_junit(file: Path, folder: Path, why_not: str = "") -> None:
    """The run in a folder as JUnit's XML. `why_not`: why it measured nothing, where that is known. Raises PlanError,
    OutputError."""
    from datetime import UTC, datetime

    from ..results.checked_files import read_record
    from ..results.finished_run import why_no_results
    from ..results.junit import junit_of
    from ..results.measured_rows import MeasuredSteps, read_measured
    from ..results.run_entries import entry_of

    entry, why = entry_of(folder, datetime.now(UTC)), why_no_results(folder)
    measured = MeasuredSteps("all", ()) if why else read_measured(folder, "all", ())
    save_junit(file, junit_of(entry, measured, read_record(folder), why_not or why))


@click.command()
@click.argument("run", required=False, metavar="[RUN]")
@click.option(
    "--step", "steps", multiple=True, metavar="NAME", help="Only this step; also by its number. May be repeated."
)
@click.option("--by", default="all", metavar="TYPE", help="Each rollup instance of this type: host, port ...")
@click.option(
    "--connectors",
    "of_connectors",
    is_flag=True,
    help="What connectors said over each measurement, instead; also --by non_participating.",
)
@click.option("--reasons", "all_reasons", is_flag=True, help="All reasons, each with what to do, instead of the table.")
@table_options
@click.option("--junit", "junit", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Also write JUnit's XML: a test case for each step and threshold.")  # fmt: skip
def show(
    run: str | None, steps: tuple[str, ...], by: str, of_connectors: bool, all_reasons: bool, junit: Path | None,
    **words: Any,
) -> ExitCode:  # fmt: skip
    """Show what a run measured: the table with which it ended.

    RUN is a run's folder, or the id of an active run: then its steps so far. Of a folder of runs it is the newest; by
    default that of ./runs.
    """
    form = form_of(words, reasons=all_reasons)
    from ..causes import in_options
    from ..live.line_view import columns_of_output, width_of_log
    from ..live.step_lines import local_now
    from ..results.checked_files import is_quick
    from ..results.find_runs import newest_of
    from ..results.measured_rows import read_measured, summary_text
    from ..results.render_measured import markdown_of, measured_lines, searched_lines, standing_line
    from ..results.result_document import result_of
    from ..results.run_entries import entry_of
    from ..summary.steps_table import ending_of, reason_lines
    from ..text.wrapping import wrapped

    now = local_now()
    folder = newest_of(run or str(ROOT))
    if junit is not None:
        write_junit(junit, folder)
    if of_connectors:
        click.echo(_said_by_connectors(folder, by, steps, form), nl=False)
        return ExitCode.OK
    measured, entry = read_measured(folder, by, steps), entry_of(folder, now)
    sentence = (
        "" if entry.exit_code is None else ending_of(ExitCode(entry.exit_code), measured.steps, entry.interrupted_by)
    )
    if form is TableForm.JSON:
        click.echo(result_of(folder, (by,), steps).model_dump_json(indent=1))
    elif form is TableForm.CSV:
        click.echo(summary_text(folder, measured), nl=False)
    elif form is TableForm.MARKDOWN:
        click.echo(markdown_of(entry, measured, sentence), nl=False)
    else:
        width = columns_of_output() or width_of_log()
        shown = (
            reason_lines(*measured.steps)
            if all_reasons
            else [*measured_lines(measured, str(folder), width), *searched_lines(measured, folder, width)]
        )
        lines = [str(folder), "", *(map(in_options, shown) if is_quick(folder) else shown)]
        lines += ["", standing_line(entry, sentence)]
        click.echo("\n".join(piece for line in lines for piece in wrapped(line, width)))
    return ExitCode.OK


def _said_by_connectors(folder: Path, by: str, steps: tuple[str, ...], form: TableForm) -> str:
    """Raises PlanError."""
    from ..results import connector_rows as render
    from ..results.connector_rows import required_rows

    rows = required_rows(folder, by, steps)
    if form is TableForm.JSON:
        return render.connector_json(folder, rows) + "\n"
    if form is TableForm.CSV:
        return render.connector_csv(rows)
    if form is TableForm.MARKDOWN:
        return render.connector_markdown(rows)
    return "\n".join([str(folder), "", *render.connector_lines(rows), ""])
