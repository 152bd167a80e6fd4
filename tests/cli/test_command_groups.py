"""The list of commands, `ivypy help`, and what a word gets that is no command."""

import pytest
from click.testing import CliRunner, Result

from ivypy.master.cli.command_groups import _INSTEAD, DOCS, GROUPS, topics
from ivypy.master.cli.commands import cli
from ivypy.master.errors import PlanError


def said(*words: str) -> Result:
    return CliRunner().invoke(cli, words, prog_name="ivypy", terminal_width=80)


def test_each_command_stands_in_one_group() -> None:
    assert sorted(name for names in GROUPS.values() for name in names) == sorted(cli.commands)


def test_the_list_fits_80_columns_and_no_line_is_cut() -> None:
    lines = said("--help").output.splitlines()
    assert max(map(len, lines)) <= 80 and not any("..." in line for line in lines[8:])
    assert [line for line in lines if line.endswith(":") and line[:-1] in GROUPS] == [f"{title}:" for title in GROUPS]


@pytest.mark.parametrize("words", [["--help"], ["help"]])
def test_help_alone_is_the_list_of_commands(words: list[str]) -> None:
    assert said("--help").output.strip() in said(*words).output


def test_help_knows_commands_and_topics() -> None:
    assert said("help", "run").output.startswith("Usage: ivypy run [OPTIONS] PLAN.yaml")
    page = said("help", "invalid").output
    assert page.strip().startswith("My run is invalid: what now?") and max(map(len, page.splitlines())) <= 80
    assert said("help", "notes").output == said("help", "verdicts").output
    assert said("help", "compare").output.endswith("More: ivypy help compare.md\n")
    assert said("help", "compare.md").output.strip().startswith("Compare runs")
    assert {"index", "invalid", "plan"} <= {*topics()} and all(name in said("help").output for name in topics())


def test_no_line_of_the_list_with_its_topics_is_too_long() -> None:
    lines = said("help").output.splitlines()
    assert max(map(len, lines)) <= 80 and sum(line.rstrip().endswith("coming-") for line in lines) == 0


@pytest.mark.parametrize(
    ("word", "answer"),
    [
        ("quik", "quik: no command of ivypy; did you mean 'quick'?"),
        ("resume", "resume: no command of ivypy; what does it is `ivypy unpause`"),
        ("t.yaml", "t.yaml: a plan, by its name; run it with `ivypy run t.yaml`"),
        ("xyzzy", "xyzzy: no command of ivypy; `ivypy help` lists them"),
    ],
)
def test_a_word_that_is_no_command_is_answered_with_the_one_that_was_meant(word: str, answer: str) -> None:
    error = said(word).exception
    assert isinstance(error, PlanError) and str(error) == answer


def test_a_topic_that_is_none_is_answered_likewise() -> None:
    assert str(said("help", "verdcts").exception) == (
        "verdcts: neither a command nor a topic; did you mean 'verdicts'?"
    )
    assert "`ivypy unpause`" in str(said("help", "resume").exception) + str(said("resume").exception)
    assert str(said("help", "invalid", "run").exception).startswith("invalid run: neither a command nor a topic")


@pytest.mark.parametrize("word", ["zipf", "queue depth", "Lateness", "bssplit"])
def test_a_word_that_is_no_topic_leads_to_the_pages_that_have_it(word: str) -> None:
    _, _, pages = str(said("help", *word.split()).exception).partition("neither a command nor a topic; it stands in: ")
    named = pages.split(", ")
    assert 1 <= len(named) <= 4
    assert all(word.lower() in (DOCS / f"{name}.md").read_text().lower() for name in named)


def test_the_names_of_other_tools_lead_to_their_pages() -> None:
    for word, page in (
        ("verdict", "verdicts"),
        ("fio", "coming-from-fio"),
        ("vdbench", "coming-from-vdbench"),
        ("elbencho", "coming-from-elbencho"),
        ("exit", "exit-codes"),
    ):
        assert said("help", word).output == said("help", page).output


def test_help_knows_commands_of_commands() -> None:
    assert said("help", "connector", "check").output == said("connector", "check", "--help").output
    error = said("help", "connector", "chek").exception
    assert str(error).startswith("chek: no command of `") and "`ivypy help connector` has its help" in str(error)
    assert "connector check" not in str(said("help", "run", "it").exception)


def test_a_shell_that_completes_is_not_told_of_errors() -> None:
    context = cli.make_context("ivypy", ["xyzzy"], resilient_parsing=True)
    assert cli.resolve_command(context, ["xyzzy"]) == (None, None, [])


def test_what_people_try_leads_to_a_command() -> None:
    assert {*_INSTEAD.values()} <= cli.commands.keys() and _INSTEAD.keys().isdisjoint(cli.commands)
