"""The options that say what a run shows while it runs: of `run`, `quick` and `attach`."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from ..errors import PlanError
from ..live.choose_view import EVERY_S, Ui, View
from ..text.units import parse_duration

Command = TypeVar("Command", bound=Callable[..., Any])

UI = click.option(
    "--ui", type=click.Choice([str(ui) for ui in Ui]), default=str(Ui.AUTO), show_default=True,
    help="What to show during the run; auto is refreshed in place on a terminal, lines elsewhere.",
)  # fmt: skip
EVERY = click.option(
    "--every",
    default=f"{EVERY_S:g}s",
    show_default=True,
    metavar="TIME",
    help="The time from one such line to the next.",
)
VERBOSE = click.option(
    "--verbose", "-v", is_flag=True, help="Lines of every subinterval, reads and writes apart, and all reasons."
)


def view_options(command: Command) -> Command:
    """Give a command the three options; `view_of` reads their values."""
    return UI(EVERY(VERBOSE(command)))


def view_of(ui: str, every: str, verbose: bool) -> View:
    """Raises PlanError."""
    try:
        every_s = parse_duration(every)
    except ValueError as error:
        raise PlanError(f"--every {error}") from None
    return View(Ui(ui), every_s, verbose)
