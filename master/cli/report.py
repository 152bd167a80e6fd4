"""The command `ivypy report`: runs as one file for a browser, as pictures, or as Markdown.

Rule: this module only parses words; heavy modules are imported when the command runs, so that --help is quick.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import PlanError
from ..exit_codes import ExitCode
from ..live import stdio
from ..live.choose_view import Ui
from .results import ROOT

if TYPE_CHECKING:
    from ..live.view_decorators import KeepsTheEnd

NO_REPORT = click.option("--no-report", is_flag=True, help="Write no report.html at the end.")


@click.command()
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.html",
              help="The report.  [default: RUN/report.html; of several runs ./report.html]")  # fmt: skip
@click.option("--png", "pictures", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
              help="Draw charts as PNG into this folder.")  # fmt: skip
@click.option("--md", "as_markdown", is_flag=True, help="Print Markdown for a ticket: table, verdicts, reasons.")
@click.option("--open", "opens", is_flag=True, help="Open the report in a browser.")
def report(
    runs: tuple[str, ...], output: Path | None, pictures: Path | None, as_markdown: bool, opens: bool
) -> ExitCode:
    """Write runs as one file of HTML that opens from disk, without network.

    RUN is a run's folder, or the id of an active run; of a folder of runs it is the newest, by default that of ./runs.
    With --png or --md alone, only these. The file takes the place of an earlier report, never of another file.
    """
    from ..report.write_report import NAME, write_report
    from ..results.find_runs import newest_of

    if output is not None and output.suffix.lower() not in (".html", ".htm"):
        raise PlanError(f"-o {output}: the name must end in .html")
    folders = list(dict.fromkeys(newest_of(run) for run in runs or (str(ROOT),)))
    if as_markdown:
        from ..report.ticket import ticket_of

        click.echo("\n".join(ticket_of(folder) for folder in folders), nl=False)
    if pictures is not None:
        from ..report.pictures import write_pictures

        for path in write_pictures(folders, pictures):
            click.echo(path, err=True)
    if output is None and (as_markdown or pictures is not None) and not opens:
        return ExitCode.OK
    path = output or (folders[0] / NAME if len(folders) == 1 else Path(NAME))
    click.echo(write_report(path, folders), err=as_markdown)
    if opens:
        click.launch(str(path))
    return ExitCode.OK


def report_at_end(end: "KeepsTheEnd", ui: Ui) -> None:
    """Write the report of a run that has just ended, if any step did; a line says where, and what goes wrong."""
    if not (end.folder and end.has_steps):
        return
    from ..report.write_report import WHY_NOT, line_at_end

    line = line_at_end(Path(end.folder))
    if line.startswith(WHY_NOT) or ui in (Ui.AUTO, Ui.LINES):
        stdio.complain(line)
