"""`ivypy run`'s own options: what stands in place of the plan's, and a look without a run."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from ivypy.master.cli.commands import cli
from ivypy.master.errors import PlanError
from ivypy.master.plan.load import Instead, load

PLAN = """\
name: mine
hosts: [lab01]
ssh: { user: anna, ports: [22] }
luns: { create: { path: /x, size: 1MiB } }
workloads: { w: { blocksize: 4KiB } }
steps: [ { go: { name: s, measure: 10s } } ]
"""


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "plan.yaml"
    path.write_text(PLAN.replace(", ports: [22]", ""))
    return path


def test_what_the_command_line_has_stands_in_place_of_the_plans(plan: Path) -> None:
    assert [(host.name, host.user) for host in load(plan).hosts] == [("lab01", "anna")]
    instead = load(plan, {}, Instead(hosts="a,b", user="root", name="night"))
    assert [(host.name, host.user) for host in instead.hosts] == [("a", "root"), ("b", "root")]
    assert (load(plan).name, instead.name) == ("mine", "night")


def test_a_section_that_is_wrong_has_its_own_fault(tmp_path: Path) -> None:
    (path := tmp_path / "plan.yaml").write_text(PLAN.replace("{ user: anna, ports: [22] }", "[ anna ]"))
    with pytest.raises(PlanError, match="ssh"):
        load(path, {}, Instead(user="root"))


@pytest.mark.parametrize(
    ("instead", "said"),
    [
        (Instead(name=" "), "--name ' ': the run's folder cannot"),
        (Instead(name="../../x"), "--name '../../x': the run's folder cannot"),
        (Instead(name="a\nb"), "--name 'a\\nb': the run's folder cannot"),
        (Instead(user=""), "--user '': not a user's name"),
        (Instead(user="-oProxyCommand=x"), "--user '-oProxyCommand=x': not a user's name"),
        (Instead(hosts="a,a"), "--hosts a,a: it names a twice"),
    ],
)
def test_what_is_wrong_on_the_command_line_is_said_of_it(plan: Path, instead: Instead, said: str) -> None:
    with pytest.raises(PlanError) as error:
        load(plan, {}, instead)
    assert str(error.value).startswith(said)


@pytest.mark.parametrize("command", [["run"], ["quick", "--size=16M"]], ids=["run", "quick"])
@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--junit", "x.xml"], "--junit: leave it out"),
        (["--web"], "--web: leave it out"),
        (["--web", "--junit", "x.xml", "--metrics-file", "x.prom"], "--junit, --web and --metrics-file: leave all out"),
    ],
)
def test_a_dry_run_refuses_what_only_a_run_would_write(
    plan: Path, command: list[str], words: list[str], named: str
) -> None:
    """Else a pipeline would look for a file that nobody writes."""
    what = plan if command == ["run"] else plan.parent / "new.bin"
    done = CliRunner().invoke(cli, [*command, str(what), "--dry-run", *words], standalone_mode=False)
    assert isinstance(done.exception, PlanError)
    assert f"--dry-run runs nothing, so there is nothing for {named}" == str(done.exception)
    assert not Path("x.xml").exists()


def test_a_dry_run_prints_what_check_prints_and_runs_nothing(plan: Path) -> None:
    words = [str(plan), "--hosts", "lab[07-08]"]
    dry, checked = (CliRunner().invoke(cli, [*command, *words]) for command in (["run", "--dry-run"], ["check"]))
    assert dry.output == checked.output and "lab07" in dry.output
    assert (dry.exit_code, checked.exit_code) == (0, 0)
    assert not (plan.parent / "runs").exists() and not Path("runs").exists()
