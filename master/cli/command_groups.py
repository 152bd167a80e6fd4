"""The list of commands, in groups by when they are needed, and `ivypy help`: commands and topics."""

import io
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import click

from ..errors import PlanError
from ..text.suggestions import did_you_mean
from ..text.wrapping import wrapped

GROUPS: Final = {
    "Measure": ("quick", "run", "check", "devices", "import"),
    "While it runs": ("status", "attach", "edit", "pause", "unpause", "skip", "stop", "mark", "web"),
    "Afterwards": ("show", "list", "report", "compare", "query", "export", "percentiles", "steady"),
    "For experts": ("help", "clock", "columns", "connector", "schema"),
}
_INSTEAD: Final = {  # words that people try
    "resume": "unpause", "continue": "unpause", "fio": "quick", "vdbench": "import", "convert": "import",
    "elbencho": "import",
    "results": "show", "summary": "show", "ls": "list", "kill": "stop", "abort": "stop", "validate": "check",
    "lint": "check", "init": "quick", "diff": "compare", "html": "report", "sql": "query", "serve": "web",
}  # fmt: skip
_SAME_PAGE: Final = {
    "reasons": "verdicts", "notes": "verdicts", "partial": "verdicts", "failed": "verdicts",
    "topics": "index", "docs": "index", "jobs": "index", "ssd": "laptop-ssd", "ci": "nightly", "junit": "nightly",
    "fio": "coming-from-fio", "vdbench": "coming-from-vdbench", "ivy": "coming-from-ivy",
    "elbencho": "coming-from-elbencho", "exit": "exit-codes", "profile": "control",
    "exit-code": "exit-codes", "python": "analysis", "pandas": "analysis", "token": "never-written",
}  # fmt: skip
_OF_NAMES: Final = ("columns", "index")  # that have every word once
MOST_PAGES: Final = 4
_WIDEST: Final = 200  # of a line of help before it is wrapped
WIDEST_PAGE: Final = 100  # columns: a longer line is hard to read
_COMMENT: Final = re.compile(r"<!--.*?-->\n?", re.DOTALL)
_NAMED_PAGE: Final = re.compile(r"\[([\w-]+)\]\(\1\.md\)")  # a link whose words are the topic
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
        if name in self.commands or name.startswith("-") or ctx.resilient_parsing:  # the last: a shell completes
            return super().resolve_command(ctx, args)
        if name.endswith((".yaml", ".yml")):
            raise PlanError(f"{name}: a plan, by its name; run it with `ivypy run {name}`")
        raise PlanError(f"{name}: no command of ivypy{_instead(name, self.commands)}")


@click.command("help")
@click.argument("words", nargs=-1, metavar="[COMMAND | TOPIC]")
@click.pass_context
def help_command(ctx: click.Context, words: tuple[str, ...]) -> None:
    """Print the help of a command, or a page of the documentation."""
    group, above = cli_of(ctx)
    topic = words[0] if words else ""
    if not topic:
        click.echo(group.get_help(above))
        line = f"Topics of `ivypy help TOPIC` (`index` says what each is for): {', '.join(topics())}."
        click.echo("\n" + "\n".join(wrapped(line, above.make_formatter().width)))
    elif topic in group.commands:
        command, context = group.commands[topic], click.Context(group.commands[topic], info_name=topic, parent=above)
        for word in words[1:]:
            if not isinstance(command, click.Group) or word not in command.commands:
                raise PlanError(f"{word}: no command of `{context.command_path}`; `ivypy help {topic}` has its help")
            command = command.commands[word]
            context = click.Context(command, info_name=word, parent=context)
        click.echo(command.get_help(context))
        if topic in topics():
            click.echo(f"\nMore: ivypy help {topic}.md")
    elif not words[1:] and (page := _page_of(topic)):
        click.echo_via_pager(_rendered((DOCS / f"{page}.md").read_text(encoding="utf-8")))
    else:
        text = " ".join(words)
        advice = pages_with(text) or _instead(topic, [*group.commands, *topics()])
        raise PlanError(f"{text}: neither a command nor a topic{advice}")


def _instead(word: str, known: Iterable[str]) -> str:
    if word in _INSTEAD:
        return f"; what does it is `ivypy {_INSTEAD[word]}`"
    return did_you_mean(word, known) or "; `ivypy help` lists them"


def _page_of(word: str) -> str:
    """The page that a word names, also in the singular; "" where there is none."""
    page = _SAME_PAGE.get(word, word.removesuffix(".md"))
    return next((name for name in (page, f"{page}s") if name in topics()), "")


def pages_with(text: str) -> str:
    """The pages of the documentation that have these words most often; "" where none has."""
    words = re.compile(rf"\b{re.escape(text)}\b", re.IGNORECASE)
    pages = [path for path in DOCS.glob("*.md") if path.stem not in _OF_NAMES]
    counts = {path.stem: len(words.findall(path.read_text(encoding="utf-8"))) for path in pages}
    most = sorted((name for name in counts if counts[name]), key=lambda name: (-counts[name], name))[:MOST_PAGES]
    return f"; it stands in: {', '.join(most)}" if most else ""


def _rendered(markdown: str) -> str:
    """For the terminal's width, or that of a log."""
    from rich.console import Console
    from rich.markdown import Markdown

    from ..live.line_view import columns_of_output
    from ..summary.headline import NARROW

    width = min(columns_of_output() or NARROW, WIDEST_PAGE)
    console = Console(file=io.StringIO(), width=width, force_terminal=sys.stdout.isatty())
    console.print(Markdown(_NAMED_PAGE.sub(r"\1", _COMMENT.sub("", markdown)), hyperlinks=False))
    assert isinstance(console.file, io.StringIO)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines()) + "\n"


def cli_of(ctx: click.Context) -> tuple[CommandGroups, click.Context]:
    """The command `ivypy` itself."""
    above = ctx.find_root()
    assert isinstance(above.command, CommandGroups)
    return above.command, above


def topics() -> list[str]:
    """The pages of the documentation."""
    return sorted(path.stem for path in DOCS.glob("*.md"))
