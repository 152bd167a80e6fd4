"""The command `ivypy compare`: runs before and after, and whether they differ.

Rule: this module only parses words; heavy modules are imported when the command runs, so that --help is quick.
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..exit_codes import ExitCode
from .results import save_junit
from .table_options import TableForm, form_of, table_options

if TYPE_CHECKING:
    from ..compare.sides import Sides

LIMIT = "3%"
FEWEST = 3  # runs of a side
MOST = 1000


class _WithVersus(click.Command):
    """Takes several words after --vs, until the next option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        rewritten: list[str] = []
        after = False
        for place, word in enumerate(args):
            if word == "--vs":
                after = True
                if place + 1 == len(args) or (args[place + 1].startswith("-") and len(args[place + 1]) > 1):
                    raise click.UsageError("--vs needs the runs to compare with: --vs B...", ctx)
            elif after and not word.startswith("-"):
                rewritten += ["--vs", word]
            else:
                after = False
                rewritten.append(word)
        return super().parse_args(ctx, rewritten)


@click.command(cls=_WithVersus)
@click.argument("a", nargs=-1, required=True, metavar="A... {--vs B... | --newest N}")
@click.option("--vs", "b", multiple=True, metavar="B...", help="The runs to compare with: after the change.")
@click.option(
    "--newest",
    type=click.IntRange(FEWEST, MOST),
    metavar="N",
    help="Instead of --vs: compare the newest N runs in the folder A with those before them, 3 for example.",
)
@click.option("--vs-previous", "previous", type=click.IntRange(FEWEST, MOST), metavar="M",
              help="With --newest: the most runs before them.  [default: 21]")  # fmt: skip
@click.option("--name", "run_name", metavar="NAME",
              help="With --newest: the runs of this plan or `run --name`.  [default: the newest run's]")  # fmt: skip
@click.option("--metric", "metrics", multiple=True, metavar="NAME",
              help="A metric, like p99, iops, response_p99_9, read_mean. May be repeated. "
              "[default: iops, and mean and p99 of service and response times]")  # fmt: skip
@click.option("--step", "steps", multiple=True, metavar="NAME", help="Only this step. May be repeated.")
@click.option("--by", "rollup_types", multiple=True, metavar="TYPE",
              help="Also each rollup instance of this type: host, port ... May be repeated.")  # fmt: skip
@click.option("--max-regression", "limit", default=LIMIT, show_default=True, metavar="PERCENT",
              help="The change for the worse that is accepted; a smaller one is equivalent.")  # fmt: skip
@click.option("--connectors", is_flag=True, help="Also compare what connectors said.")
@table_options
@click.option("--html", "page", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Also write a page that needs no network.")  # fmt: skip
@click.option("--junit", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Also write JUnit's XML for CI: a test case for each step and figure.")  # fmt: skip
def compare(
    a: tuple[str, ...], b: tuple[str, ...], newest: int | None, previous: int | None, run_name: str | None,
    metrics: tuple[str, ...], steps: tuple[str, ...], rollup_types: tuple[str, ...], limit: str, connectors: bool,
    page: Path | None, junit: Path | None, **words: Any,
) -> ExitCode:  # fmt: skip
    """Compare the runs A with the runs B: better, worse, equivalent, or not distinguishable.

    A and B are runs' folders, folders of runs, or ids of active runs. Steps are matched by name. With three runs or
    more on each side the spread of the runs decides. One run a side shows only the noise within them. Exits with 0
    where no figure is worse by more than the limit, with 5 where one is, with 6 where the runs cannot tell.

    \b
    ivypy compare before --vs after
    ivypy compare results --newest 3 --vs-previous 21     (of a nightly)
    """
    form = form_of(words)
    from ..compare.compare import Question
    from ..compare.compare import compare as compare_runs
    from ..compare.limit import parse_limit
    from ..compare.newest import NoCompleteRun
    from ..compare.render_data import csv_text, json_of
    from ..compare.render_junit import junit_of, junit_of_none
    from ..compare.render_text import markdown_of, text_of

    names = tuple(name.strip() for given in metrics for name in given.split(","))
    question = Question(names, steps, rollup_types, parse_limit(limit), connectors)
    now = datetime.now(UTC)
    if junit is not None:
        save_junit(junit, junit_of_none(now))
    try:
        sides = _sides(a, b, newest, previous, run_name, now)
    except NoCompleteRun as error:
        if junit is not None:
            save_junit(junit, junit_of_none(now, str(error)))
        raise
    comparison = compare_runs(sides, question)
    if page is not None:
        from ..compare.write_page import write_page

        if said := write_page(page, comparison):
            click.echo(said, err=True)
    if junit is not None:
        save_junit(junit, junit_of(comparison, now))
    render = {
        TableForm.JSON: json_of, TableForm.CSV: csv_text, TableForm.MARKDOWN: markdown_of, TableForm.TEXT: text_of,
    }  # fmt: skip
    click.echo(render[form](comparison).removesuffix("\n"))
    return ExitCode(comparison.exit_code)


def _sides(
    a: tuple[str, ...], b: tuple[str, ...], newest: int | None, previous: int | None, name: str | None, now: datetime
) -> "Sides":
    """Raises PlanError, NoCompleteRun."""
    from ..compare.newest import NEWEST, PREVIOUS, History, sides_of_history
    from ..compare.sides import sides_of

    if newest is None and previous is None and name is None:
        if not b:
            raise click.UsageError(
                "name the runs to compare with: --vs B..., or of a folder of nightly runs --newest 3"
            )
        return sides_of(a, b)
    if b:
        raise click.UsageError("--vs names the runs; --newest, --vs-previous and --name choose them: give one of both.")
    if len(a) != 1:
        raise click.UsageError("--newest takes one folder, in which all the runs are.")
    return sides_of_history(Path(a[0]), History(newest or NEWEST, previous or PREVIOUS, name), now)
