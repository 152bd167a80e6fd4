"""The options of every command that prints a table: --json, --csv, --md, alike for all of them.

Rule: this module only parses words; heavy modules are imported when the command runs, so that --help is quick.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Any

import click


class TableForm(StrEnum):
    """How the table is printed; `TEXT` where no option says it."""

    TEXT = "text"
    JSON = "json"
    CSV = "csv"
    MARKDOWN = "md"


def table_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options, whose values `form_of` takes."""
    for option in (
        click.option("--md", "as_markdown", is_flag=True, help="Print Markdown, for a ticket or a CI's summary."),
        click.option("--csv", "as_csv", is_flag=True, help="Print CSV."),
        click.option("--json", "as_json", is_flag=True, help="Print JSON."),
    ):
        function = option(function)
    return function


def form_of(words: dict[str, Any], **others: bool) -> TableForm:
    """Takes the options out of a command's `words`. `others`: options that exclude them, by name.

    Raises click.UsageError where more than one is given.
    """
    given = [form for form, name in _NAMES.items() if words.pop(name)]
    if len(given) + sum(others.values()) > 1:
        names = ["--json", "--csv", "--md", *(f"--{name.replace('_', '-')}" for name in others)]
        raise click.UsageError(f"{', '.join(names[:-1])} and {names[-1]}: choose one.")
    return given[0] if given else TableForm.TEXT


_NAMES = {TableForm.JSON: "as_json", TableForm.CSV: "as_csv", TableForm.MARKDOWN: "as_markdown"}
