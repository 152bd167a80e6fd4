"""docs/ivypy.1 as man shows it: all commands and options, and no complaint of roff's."""

import re
import shutil
import subprocess
from collections.abc import Iterator

import click
import pytest

from ivypy.master.cli.commands import cli
from ivypy.master.cli.man_page import man_page
from tests.support.real_runs import ROOT

PAGE = ROOT / "docs" / "ivypy.1"


def mandoc(*words: object, text: str = "") -> str:
    """What it prints, without overstriking."""
    if shutil.which("mandoc") is None:
        pytest.skip("this machine lacks mandoc")
    done = subprocess.run(["mandoc", *map(str, words)], input=text, capture_output=True, text=True, check=True)
    return re.sub(".\b", "", done.stdout)


def commands(group: click.Group, name: str) -> Iterator[tuple[str, click.Command]]:
    for command in group.commands.values():
        yield f"{name} {command.name}", command
        if isinstance(command, click.Group):
            yield from commands(command, f"{name} {command.name}")


def test_each_command_and_each_option_is_on_the_page() -> None:
    shown = mandoc("-Tutf8", "-Owidth=200", PAGE)
    sections = re.split(r"^ +(ivypy [\w ]+?)(?= \[)", shown.partition("\nCOMMANDS\n")[2], flags=re.MULTILINE)
    texts = dict(zip(sections[1::2], sections[2::2], strict=True))
    assert texts.keys() == {name for name, _ in commands(cli, "ivypy")}
    for name, command in commands(cli, "ivypy"):
        options = [option for option in command.params if isinstance(option, click.Option) and not option.hidden]
        missing = [word for option in options for word in option.opts if f"{word}" not in texts[name]]
        assert missing == [], name


def test_no_formatter_complains() -> None:
    assert mandoc("-Tlint", "-Wstyle", PAGE) == ""
    if shutil.which("groff") is not None:
        done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z", PAGE], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "text",
    [
        ".TH is no request here.",
        "'br neither",
        r"A backslash: \fB\n\(em.",
        "--a-b ^ ~ ` ' \" @",
        "accuracy ±2 %, 5 µs, 東",
        " ".join(["...", "'"] * 60),  # some of which begin a line
    ],
)
def test_words_are_shown_as_they_are(text: str) -> None:
    named = {name: click.Command(name, help=text if name == "help" else None) for name in cli.commands}
    other = click.Group("other", commands=named)
    shown = mandoc("-Tutf8", text=man_page(other, "1", "2026-01-01"))
    assert " ".join(text.split()) in " ".join(shown.split())
