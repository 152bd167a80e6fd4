"""The pages for tasks: their commands are run, in order, on a file instead of a device, and for a shorter time."""

import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.support.compared_runs import nights
from tests.support.fork_server import COMMAND
from tests.support.real_runs import ROOT

pytestmark = pytest.mark.slow

FINE = {0, 6, 8}  # a busy machine may be late, and a short search may not end: both are said
COMPARED = {0, 5, 6}  # and so short runs may differ
PAGES = ["ten-minutes", "nightly", "compare-firmwares", "max", "p99", "failover"]
SMALLER = {
    "1GiB": "16MiB",
    "2m }": "1s }",
    "60s": "1s",
    "10m }": "1s }",
    "warmup: 5s": "warmup: 1s",
    "iops: 500": "iops: 4000",
}
PLAN = re.compile(r"`(\w+\.yaml)`[^`]*```yaml\n(.*?)```", re.DOTALL)


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / "docs" / f"{page}.md").read_text(), re.DOTALL)


def quicker(text: str, folder: Path) -> str:
    text = text.replace("/dev/nvme1n1", f"{folder}/disk --size 16M").replace("--time 30s", "--time 2s")
    return re.sub(r"/var/tmp/ivypy-\w+-\$\{user\}", f"{folder}/file", text)


def made_smaller(text: str) -> str:
    """In 1 s, with enough I/Os for the page's percentiles: 1000 writes of 30 % of 4000."""
    for whole, part in SMALLER.items():
        text = text.replace(whole, part)
    return text


def with_plans(page: str, folder: Path) -> None:
    for name, plan in PLAN.findall((ROOT / "docs" / f"{page}.md").read_text()):
        (folder / name).write_text(made_smaller(quicker(plan, folder)))


def run(command: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    path = f"{Path(COMMAND).parent}:{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-c", command], cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True
    )


def run_step(name: str, folder: Path, results: Path) -> "subprocess.CompletedProcess[str]":
    """A shell step of the workflow for GitHub, as its runner starts it."""
    workflow = yaml.safe_load((ROOT / "docs/examples/nightly-workflow.yml").read_text())
    (script,) = (one["run"] for one in workflow["jobs"]["nightly"]["steps"] if one.get("name") == name)
    words = f"export GITHUB_STEP_SUMMARY={folder}/summary.md RESULTS={results}; set -eo pipefail\n{script}"
    return run(words, folder)


@pytest.mark.parametrize("page", PAGES)
def test_the_plans_of_a_page_are_without_fault(page: str, tmp_path: Path) -> None:
    with_plans(page, tmp_path)
    for plan in tmp_path.glob("*.yaml"):
        done = run(f"ivypy check {plan.name}", tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
    assert list(tmp_path.glob("*.yaml")) or page == "ten-minutes"


@pytest.mark.long
def test_the_workflow_for_ci_measures_and_summarises(tmp_path: Path) -> None:
    """Its own shell step, as the runner of the CI service starts it."""
    with_plans("nightly", tmp_path)
    for step in ("Measure", "Compare"):
        done = run_step(step, tmp_path, tmp_path / "results")
        assert done.returncode == 0, done.stdout + done.stderr
    assert "cannot tell (yet)" in done.stdout, "in the first night"
    summary = tmp_path / "summary.md"
    assert re.search(
        r"^\| \d+ oltp(\+attempt=\d)? \|", summary.read_text(), re.MULTILINE
    )  # repeated where it is invalid
    assert (tmp_path / "nightly.xml").read_text().count("<testcase") == 3
    compared = (tmp_path / "compare.xml").read_text()
    doubtful = compared.count('name="doubtful: ')  # of a machine that others keep busy
    assert compared.count("<skipped") == 5 + doubtful


@pytest.mark.long
def test_the_gitlab_job_warns_in_its_first_night(tmp_path: Path) -> None:
    with_plans("nightly", tmp_path)
    job = yaml.safe_load((ROOT / "docs/examples/nightly-gitlab.yml").read_text())["nightly"]
    done = run(f"export RESULTS={tmp_path}/results; set -eo pipefail\n{job['script'][0]}", tmp_path)
    assert done.returncode in job["allow_failure"]["exit_codes"], done.stdout + done.stderr
    for file in (*job["artifacts"]["paths"], *job["artifacts"]["reports"]["junit"]):
        assert (tmp_path / file).is_file()


@pytest.mark.parametrize(("factor", "code", "word"), [(1.0, 0, ""), (1.12, 5, "::error::Slower than in the nights")])
def test_the_comparing_step_fails_where_the_last_nights_were_slower(
    tmp_path: Path, factor: float, code: int, word: str
) -> None:
    levels = [1.0, 1.004, 0.997, 1.002, 0.999, 1.003, *(factor * one for one in (1.001, 0.998, 1.002))]
    nights(tmp_path / "results", levels, name="nightly", subintervals=12)
    done = run_step("Compare", tmp_path, tmp_path / "results")
    assert done.returncode == code and word in done.stdout, done.stdout + done.stderr
    assert "| `max` | service_p99 |" in (tmp_path / "summary.md").read_text()


@pytest.mark.long
@pytest.mark.timeout(900)  # a search takes its time
@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_do_what_it_says(page: str, tmp_path: Path) -> None:
    with_plans(page, tmp_path)
    for block in blocks(page, "sh"):
        for command in quicker(block, tmp_path).splitlines():
            done = run(command, tmp_path)
            fine = COMPARED if command.startswith("ivypy compare") else FINE
            assert done.returncode in fine, f"{command}\n{done.stdout}{done.stderr}"
