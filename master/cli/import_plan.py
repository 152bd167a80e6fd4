"""`ivypy import`: a test of another tool as a plan, and what of it has no counterpart."""

import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import PlanError
from ..exit_codes import ExitCode

if TYPE_CHECKING:
    from ..imports.description import Description, Dropped


class _Importing(click.Command):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Leave a command that starts another tool as it is, also without a -- before it."""
        if _tool_started(args) and "--" not in args:
            place = _first_word(args)
            args = [*args[:place], "--", *args[place:]]
        return super().parse_args(ctx, args)


def _first_word(args: Sequence[str]) -> int:
    """The place of the first that is neither an option of `ivypy import` nor its value."""
    place = 0
    while args[place].startswith("-"):
        place += 2 if args[place] in ("-o", "--output") else 1
    return place


def _tool_started(words: Sequence[str]) -> str:
    """The tool that these words of a shell start: fio, elbencho, or ""."""
    from ..imports.elbencho_command import ELBENCHO, is_elbencho_command
    from ..imports.fio_command import FIO, is_fio_command

    return FIO if is_fio_command(words) else ELBENCHO if is_elbencho_command(words) else ""


@click.command("import", cls=_Importing)
@click.argument("words", nargs=-1, required=True, metavar="FILE | fio OPTION... | elbencho OPTION...")
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Where to write the plan.")
@click.option("--strict", is_flag=True, help="Refuse a file that has something without a counterpart that matters.")
def import_plan(words: tuple[str, ...], output: Path | None, strict: bool) -> ExitCode:
    """Make a plan of FILE, a job file of fio or a parameter file of vdbench, or of a command of fio or elbencho.

    Prints the plan, and to standard error what of the test is not in it: where, what, why, and what comes nearest.
    Exits with 6 where the plan's load differs from the test's. Starts no load and writes nothing but the plan.
    """
    from ..imports.to_plan import to_plan
    from ..output.named_files import write_new
    from ..plan.load import read

    if len(words) == 1 and not os.path.exists(words[0]):  # which a name that is too long does not
        words = _in_quotes(words[0])
    source = _tool_started(words) or words[0]
    description = _description(words)
    differences = [*_said(description.dropped)]
    if differences and output is None and not strict and sys.stdout.isatty():
        differences = ["what differs is in the plan's first comments"]  # which come next, on the same terminal
    for line in (*(f"note: {note}" for note in description.notes), *differences):
        click.echo(line, err=True)
    matters = sum(dropped.matters for dropped in description.dropped)
    if strict and matters:
        have = "option has" if matters == 1 else "options have"
        raise PlanError(f"{source}: {matters} {have} no counterpart (above), and --strict is given; no plan is written")
    plan = to_plan(description, f"ivypy import {shlex.join(words)}")
    try:
        read(plan.replace("\n# destroy: true", "\ndestroy: true"), "the plan")  # to overwrite is for the user to agree
    except PlanError as faults:
        raise PlanError(f"{source}: what it asks for makes no plan\n{faults}") from None
    if output is None:
        click.echo(plan, nl=False)
    else:
        write_new(output, plan)
        click.echo(f"{output}: written; next: ivypy check {shlex.quote(str(output))}", err=True)
    return ExitCode.NOT_REACHED if matters else ExitCode.OK


def _in_quotes(text: str) -> tuple[str, ...]:
    """The words of a command that starts a tool, else the text alone. Raises PlanError where its quotes do not end."""
    try:
        words = shlex.split(text.replace("\\\n", ""))  # as a shell goes on in the next line
    except ValueError as error:
        if _tool_started(text.split()):
            raise PlanError(f"{text}: {str(error).lower()}") from None
        return (text,)
    return tuple(words) if _tool_started(words) else (text,)


def _description(words: Sequence[str]) -> "Description":
    """Of the test in a file, or of a command. Raises PlanError."""
    from ..imports.description import ImportContext
    from ..imports.elbencho import read_elbencho_command
    from ..imports.elbencho_command import ELBENCHO
    from ..imports.fio import read_fio_command
    from ..imports.formats import READERS, tool_of
    from ..plan.load import bytes_of

    file = Path(words[0])

    def included(name: str) -> str:
        beside = file.parent / name
        return (beside if beside.exists() else Path(name)).read_text("utf-8-sig")

    around = ImportContext(os.getcwd(), os.environ, included, os.path.isfile)
    if tool := _tool_started(words):
        return (read_elbencho_command if tool == ELBENCHO else read_fio_command)(words, around)
    if words[1:]:
        raise PlanError(f"{shlex.join(words)}: name one file, or write the command that starts fio: fio --name=...")
    try:
        text = bytes_of(file, "a test to import").decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise PlanError(f"{file}: {getattr(error, 'strerror', None) or 'not UTF-8 text'}") from None
    return READERS[tool_of(text, str(file))](text, str(file), around)


def _said(dropped: "Sequence[Dropped]") -> Iterator[str]:
    """A line for each that differs: of an option, or of jobs, in many places, the first of them."""
    alike: dict[tuple[object, ...], list[Dropped]] = {}
    for one in dropped:
        option = "" if one.what.startswith("[") else one.what.partition("=")[0]
        alike.setdefault((option, one.why, one.nearest, one.matters), []).append(one)
    for first, *others in alike.values():
        more = f" (and in {len(others)} more place{'s' * (len(others) > 1)})" if others else ""
        yield f"{'' if first.matters else 'note: '}{first}{more}"
