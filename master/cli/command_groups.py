"""The list of commands, in groups by when they are needed, and `ivypy help`: commands and topics."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import click

from ..errors import PlanError
from ..text.suggestions import did_you_mean

GROUPS: Final = {
    "Measure": ("quick", "run", "check", "devices", "import"),
    "While it runs": ("status", "attach", "edit", "pause", "unpause", "skip", "stop", "mark", "web"),
    "Afterwards": ("show", "list", "report", "compare", "query", "export", "percentiles", "steady"),
    "For experts": ("help", "clock", "columns", "connector", "schema"),
}
_INSTEAD: Final = {  # words that people try
    "resume": "unpause", "continue": "unpause", "fio": "quick", "vdbench": "import", "convert": "import",
    "results": "show", "summary": "show", "ls": "list", "kill": "stop", "abort": "stop", "validate": "check",
    "lint": "check", "init": "quick", "diff": "compare", "html": "report", "sql": "query", "serve": "web",
}  # fmt: skip
_WIDEST: Final = 200  # of a line of help before it is wrapped
DOCS: Final = Path(__file__).parents[2] / "docs"


class CommandGroups(click.Group):
    """All commands; a word that is none is answered with the one that was most likely meant."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, names in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name, self.commands[name].get_short_help_str(_WIDEST)) for name in names])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name in self.commands or name.startswith("-"):
            return super().resolve_command(ctx, args)
        if name in _INSTEAD:
            raise PlanError(f"{name}: no command of ivypy; what does it is `ivypy {_INSTEAD[name]}`")
        if name.endswith((".yaml", ".yml")):
            raise PlanError(f"{name}: a plan, by its name; run it with `ivypy run {name}`")
        raise PlanError(f"{name}: no command of ivypy{_near(name, self.commands)}")


@click.command("help")
@click.argument("topic", required=False, metavar="[COMMAND | TOPIC]")
@click.pass_context
def help_command(ctx: click.Context, topic: str | None) -> None:
    """Print the help of a command, or a page of the documentation."""
    group, above = cli_of(ctx)
    if topic is None:
        click.echo(group.get_help(above))
        click.echo(f"\nTopics of `ivypy help TOPIC`: {', '.join(topics())}.")
    elif topic in group.commands:
        command = group.commands[topic]
        click.echo(command.get_help(click.Context(command, info_name=topic, parent=above)))
    elif topic in topics():
        click.echo_via_pager((DOCS / f"{topic}.md").read_text(encoding="utf-8"))
    else:
        raise PlanError(f"{topic}: neither a command nor a topic{_near(topic, [*group.commands, *topics()])}")


def _near(word: str, known: Iterable[str]) -> str:
    return did_you_mean(word, known) or "; `ivypy help` lists them"


def cli_of(ctx: click.Context) -> tuple[CommandGroups, click.Context]:
    """The command `ivypy` itself."""
    above = ctx.find_root()
    assert isinstance(above.command, CommandGroups)
    return above.command, above


def topics() -> list[str]:
    """The pages of the documentation."""
    return sorted(path.stem for path in DOCS.glob("*.md"))
