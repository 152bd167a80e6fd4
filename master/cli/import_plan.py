"""`ivypy import`: a test of another tool as a plan, and what of it has no counterpart."""

import os
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import PlanError
from ..exit_codes import ExitCode

if TYPE_CHECKING:
    from ..imports.description import Dropped


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Where to write the plan.")
@click.option("--strict", is_flag=True, help="Refuse a file that has something without a counterpart that matters.")
def import_plan(file: Path, output: Path | None, strict: bool) -> ExitCode:
    """Make a plan of FILE: a job file of fio, or a parameter file of vdbench.

    Prints the plan, and to standard error what of the file is not in it: where, what, why, and what comes nearest.
    Exits with 6 where the plan's load differs from the file's. Starts no load and writes nothing but the plan.
    """
    from ..imports.description import ImportContext
    from ..imports.formats import READERS, tool_of
    from ..imports.to_plan import to_plan
    from ..output.named_files import write_new
    from ..plan.load import bytes_of, read

    def included(name: str) -> str:
        beside = file.parent / name
        return (beside if beside.exists() else Path(name)).read_text("utf-8-sig")

    try:
        text = bytes_of(file, "a test to import").decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise PlanError(f"{file}: {getattr(error, 'strerror', None) or 'not UTF-8 text'}") from None
    around = ImportContext(os.getcwd(), os.environ, included, os.path.isfile)
    description = READERS[tool_of(text, str(file))](text, str(file), around)
    for note in description.notes:
        click.echo(f"note: {note}", err=True)
    for line in _said(description.dropped):
        click.echo(line, err=True)
    matters = sum(dropped.matters for dropped in description.dropped)
    if strict and matters:
        have = "option has" if matters == 1 else "options have"
        raise PlanError(f"{file}: {matters} {have} no counterpart (above), and --strict is given; no plan is written")
    plan = to_plan(description, f"ivypy import {shlex.quote(str(file))}")
    try:
        read(plan.replace("\n# destroy: true", "\ndestroy: true"), "the plan")  # to overwrite is for the user to agree
    except PlanError as faults:
        raise PlanError(f"{file}: what it asks for makes no plan\n{faults}") from None
    if output is None:
        click.echo(plan, nl=False)
    else:
        write_new(output, plan)
    return ExitCode.NOT_REACHED if matters else ExitCode.OK


def _said(dropped: "Sequence[Dropped]") -> Iterator[str]:
    """A line for each that differs: of an option, or of jobs, in many places, the first of them."""
    alike: dict[tuple[object, ...], list[Dropped]] = {}
    for one in dropped:
        option = "" if one.what.startswith("[") else one.what.partition("=")[0]
        alike.setdefault((option, one.why, one.nearest, one.matters), []).append(one)
    for first, *others in alike.values():
        more = f" (and in {len(others)} more place{'s' * (len(others) > 1)})" if others else ""
        yield f"{'' if first.matters else 'note: '}{first}{more}"
