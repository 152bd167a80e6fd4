"""--json, --csv and --md: the same words, with the same meaning, for every command that prints a table."""

import csv
import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from ivypy.master.cli.commands import cli
from tests.support.compared_runs import Made

pytestmark = pytest.mark.slow

COMMANDS = {
    "list": ["list", "."],
    "show": ["show", "A"],
    "query": ["query", "A", "SELECT run, step FROM summary"],
    "compare": ["compare", "A", "--vs", "B"],
    "percentiles": ["percentiles", "A"],
}
FORMS = ("--json", "--csv", "--md")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("runs")
    for number, name in enumerate("AB"):
        Made(seed=number, began_s=60 * number).write(root).rename(root / name)
    return root


def printed(root: Path, monkeypatch: pytest.MonkeyPatch, *words: str) -> str:
    monkeypatch.chdir(root)
    done = CliRunner().invoke(cli, words, standalone_mode=False)
    assert done.exception is None, done.exception
    return str(done.stdout)


@pytest.mark.parametrize("command", COMMANDS)
def test_each_form_is_what_it_says(command: str, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if command == "query":
        pytest.importorskip("duckdb")
    text = {form: printed(root, monkeypatch, *COMMANDS[command], form) for form in FORMS}
    assert json.loads(text["--json"])
    header, *rows = csv.reader(io.StringIO(text["--csv"]))
    assert rows and {len(row) for row in rows} == {len(header)}
    table = [line.replace("\\|", "") for line in text["--md"].splitlines() if line.startswith("|")]
    assert len(table) > 2 and set(table[1]) <= set("|-: ")
    assert {line.count("|") for line in table} == {table[0].count("|")}


@pytest.mark.parametrize("command", COMMANDS)
def test_two_forms_at_once_are_refused(command: str, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    done = CliRunner().invoke(cli, [*COMMANDS[command], "--json", "--md"])
    assert done.exit_code == 2 and "choose one" in done.output
