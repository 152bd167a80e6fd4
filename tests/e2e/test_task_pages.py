"""The pages for tasks: their commands are run, in order, on a file instead of a device, and for a shorter time."""

import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

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
    workflow = yaml.safe_load((ROOT / "docs/examples/nightly-workflow.yml").read_text())
    (measure,) = (one["run"] for one in workflow["jobs"]["nightly"]["steps"] if one.get("name") == "Measure")
    summary = tmp_path / "summary.md"
    done = run(f"export GITHUB_STEP_SUMMARY={summary}; set -eo pipefail\n{measure}", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(
        r"^\| \d+ oltp(\+attempt=\d)? \|", summary.read_text(), re.MULTILINE
    )  # repeated where it is invalid
    assert (tmp_path / "nightly.xml").read_text().count("<testcase") == 3


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
