"""The man page ivypy(1), printed from the commands themselves.

scripts/docs writes docs/ivypy.1; a test compares it.
"""

import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator
from typing import Final

import click

from ..exit_codes import ExitCode
from .command_groups import GROUPS, topics

_SUMMARY: Final = "distributed storage load generation, with a verdict on every number"
_DESCRIPTION: Final = """\
A controller runs a plan (YAML) on many Linux hosts over SSH. An engine in C drives block devices and files. Latency
histograms are merged in each subinterval, and every figure has a verdict that says whether it may be used.

Start with `ivypy quick`, which lists what can be measured. Every command has --help.

Test hosts need sshd and Python 3.9 or later, and nothing installed. Nothing is written to a block device or an existing
file without consent: `destroy: true` in the plan, and --destroy TOKEN.
"""
_EXAMPLES: Final = """\
\b
ivypy quick new.bin --size 1G --rw randread --iodepth 8 --time 20s
ivypy check oltp.yaml
ivypy devices oltp.yaml
ivypy run --destroy TOKEN oltp.yaml
ivypy show --by host
"""
_FILES: Final = {
    "runs/NAME-TIME/": (
        "A run: summary.csv, result.json, report.html, events.csv, run.json, histograms.sqlite, log/, and a folder for "
        "each step."
    ),
    "$XDG_RUNTIME_DIR/ivypy/": "The control sockets of your active runs.",
    "$XDG_CACHE_HOME/ivypy/": "On a test host, by default ~/.cache/ivypy/: what the controller sent, for the next run.",
}
_SEE_ALSO: Final = (
    "`ivypy help TOPIC` prints a page of the documentation; `ivypy help index` says what each is for. Topics:"
)
_WIDEST: Final = 72  # of a line before what is escaped
_VERBATIM: Final = "\b\n"  # click's mark of a paragraph whose lines stay as they are
_ESCAPES: Final = {"\\": r"\e", "-": r"\-", "^": r"\(ha", "~": r"\(ti", "`": r"\(ga", "'": r"\(aq"}


def man_page(cli: click.Group, version: str, date: str) -> str:
    """The page of `ivypy`, in the macros of man(7)."""
    return "\n".join(_lines(cli, version, date)) + "\n"


def _lines(cli: click.Group, version: str, date: str) -> Iterator[str]:
    yield r".\" Printed by scripts/docs from the commands: do not edit."
    yield f'.TH IVYPY 1 "{date}" "ivypy {version}" "User Commands"'
    yield from (".nh", ".ad l")  # names are not hyphenated, gaps not filled
    yield from (".SH NAME", f"ivypy \\- {_escaped(_SUMMARY)}")
    yield from (".SH SYNOPSIS", rf"{_bold('ivypy')} {_italic('COMMAND')} [{_italic('ARGS')}]...")
    yield from (".SH DESCRIPTION", *_paragraphs(_DESCRIPTION))
    root = click.Context(cli, info_name=cli.name)
    yield from _options(cli, root)
    yield ".SH COMMANDS"
    for title, names in GROUPS.items():
        yield f".SS {_escaped(title)}"
        for name in names:
            yield from _command(cli.commands[name], f"ivypy {name}", root)
    yield ".SH EXIT STATUS"
    for code in ExitCode:
        yield from _entry(_bold(str(int(code))), code.sentence)
    yield ".SH FILES"
    for path, meaning in _FILES.items():
        yield from _entry(_italic(path), meaning)
    yield from (".SH EXAMPLES", *_paragraphs(_EXAMPLES))
    yield from (
        ".SH SEE ALSO",
        *_paragraphs(f"{_SEE_ALSO} {', '.join(topics())}."),
        ".PP",
        r"\fBfio\fR(1), \fBssh\fR(1)",
    )


def _command(command: click.Command, name: str, above: click.Context) -> Iterator[str]:
    context = click.Context(command, info_name=name, parent=above)
    usage = " ".join(command.collect_usage_pieces(context))
    summary, _, more = inspect.cleandoc(command.help or "").partition("\n\n")
    yield from (".TP", f"{_bold(name)} {_italic(usage)}", *_paragraphs(summary))
    indented = [*([".PP", *_paragraphs(more)] if more else ()), *_options(command, context)]
    yield from (".RS", *indented, ".RE") if indented else ()
    if isinstance(command, click.Group):
        for below in command.commands.values():
            yield from _command(below, f"{name} {below.name}", context)


def _options(command: click.Command, context: click.Context) -> Iterator[str]:
    """Those of the command, without --help, which each has."""
    for parameter in command.params:
        names, meaning = parameter.get_help_record(context) or ("", "")
        if meaning:
            yield from _entry(re.sub(r"-[\w-]+|[^-\s,]\S*", _of_option, names), meaning)


def _of_option(word: re.Match[str]) -> str:
    return _bold(word[0]) if word[0].startswith("-") else _italic(word[0])


def _entry(term: str, meaning: str) -> Iterable[str]:
    return ".TP", term, *_paragraphs(meaning)


def _paragraphs(text: str) -> Iterator[str]:
    """Lines of roff. Those of a paragraph are filled, but where click leaves them, too."""
    for number, paragraph in enumerate(inspect.cleandoc(text).split("\n\n")):
        if number:
            yield ".PP"
        if paragraph.startswith(_VERBATIM):
            yield from (".nf", *map(_escaped, paragraph.removeprefix(_VERBATIM).splitlines()), ".fi")
        else:
            lines = textwrap.wrap(_safe(paragraph), _WIDEST, break_long_words=False, break_on_hyphens=False)
            yield from map(_no_request, lines)


def _bold(text: str) -> str:
    return rf"\fB{_escaped(text)}\fR"


def _italic(text: str) -> str:
    return rf"\fI{_escaped(text)}\fR"


def _escaped(text: str) -> str:
    """A line that roff prints as it is."""
    return _no_request(_safe(text))


def _safe(text: str) -> str:
    """In ASCII, as long as it is in the page: its lines have a limit there."""
    return "".join(_ESCAPES.get(sign, sign if sign.isascii() else f"\\[u{ord(sign):04X}]") for sign in text)


def _no_request(line: str) -> str:
    return rf"\&{line}" if line.startswith(".") else line
