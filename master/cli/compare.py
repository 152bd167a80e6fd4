"""The command `ivypy compare`: runs before and after, and whether they differ.

Rule: this module only parses words; heavy modules are imported when the command runs, so that --help is quick.
"""

from pathlib import Path
from typing import Any

import click

from ..errors import PlanError
from ..exit_codes import ExitCode

LIMIT = "3%"


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
@click.argument("a", nargs=-1, required=True, metavar="A... --vs B...")
@click.option(
    "--vs", "b", multiple=True, required=True, metavar="B...", help="The runs to compare with: after the change."
)
@click.option("--metric", "metrics", multiple=True, metavar="NAME",
              help="A metric, like p99, iops, response_p99_9, read_mean. May be repeated. "
              "[default: iops, and mean and p99 of service and response times]")  # fmt: skip
@click.option("--step", "steps", multiple=True, metavar="NAME", help="Only this step. May be repeated.")
@click.option("--by", "rollup_types", multiple=True, metavar="TYPE",
              help="Also each rollup instance of this type: host, port ... May be repeated.")  # fmt: skip
@click.option("--max-regression", "limit", default=LIMIT, show_default=True, metavar="PERCENT",
              help="The change for the worse that is accepted; a smaller one is equivalent.")  # fmt: skip
@click.option("--connectors", is_flag=True, help="Also compare what connectors said.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--md", "as_markdown", is_flag=True, help="Print Markdown.")
@click.option("--html", "page", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Also write a page that needs no network.")  # fmt: skip
def compare(
    a: tuple[str, ...], b: tuple[str, ...], metrics: tuple[str, ...], steps: tuple[str, ...],
    rollup_types: tuple[str, ...], limit: str, connectors: bool, as_json: bool, as_markdown: bool, page: Path | None,
) -> ExitCode:  # fmt: skip
    """Compare the runs A with the runs B: better, worse, equivalent, or not distinguishable.

    A and B are runs' folders, folders of runs, or ids of active runs. Steps are matched by name. With three runs or
    more on each side the spread of the runs decides. One run a side shows only the noise within them. Exits with 0
    where no figure is worse by more than the limit, with 5 where one is, with 6 where the runs cannot tell.
    """
    if as_json and as_markdown:
        raise click.UsageError("--json and --md: choose one.")
    from ..compare.compare import Question
    from ..compare.compare import compare as compare_runs
    from ..compare.render_data import json_of
    from ..compare.render_text import markdown_of, text_of
    from ..compare.sides import sides_of

    names = tuple(name.strip() for given in metrics for name in given.split(","))
    question = Question(names, steps, rollup_types, _fraction(limit), connectors)
    comparison = compare_runs(sides_of(a, b), question)
    if page is not None:
        from ..compare.render_data import write_page

        if said := write_page(page, comparison):
            click.echo(said, err=True)
    render: Any = json_of if as_json else markdown_of if as_markdown else text_of
    click.echo(render(comparison))
    return ExitCode(comparison.exit_code)


def _fraction(text: str) -> float:
    """Raises PlanError."""
    from ..text.units import parse_fraction

    try:
        limit = parse_fraction(text)
    except ValueError as error:
        raise PlanError(f"--max-regression: {error}") from None
    if not 0 <= limit < 1:
        raise PlanError(f"--max-regression {text}: write a percentage from 0% to below 100%, for example {LIMIT}")
    return limit
