"""`ivypy.run`: a plan's run as one call, also where a loop runs already, and also when it is interrupted."""

import ast
import asyncio
import csv
import json
import re
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

import ivypy
from ivypy.master.analysis.blocking_run import result_in
from ivypy.master.errors import PlanError
from ivypy.master.exit_codes import ExitCode
from ivypy.master.run.session.run import Run
from ivypy.master.verdicts import Scope
from tests.support.simulated.runs import ONE_STEP, SimulatedRun, stage
from tests.support.waits import wait_until

pytestmark = pytest.mark.slow
NOTEBOOK = Path(__file__).parents[2] / "docs/examples/analysis.ipynb"


def plan(path: Path, measure: str = "1s", subinterval: str = "500ms") -> dict[str, Any]:
    return {
        "name": "called",
        "hosts": ["local"],
        "engine": {"backend": "null"},
        "luns": {"create": {"path": str(path / "lun"), "size": "1MiB", "count": 1}},
        "workloads": {"w": {"blocksize": "4KiB", "maxtags": 2, "iops": 1000}},
        "rollups": ["host"],
        "defaults": {"subinterval": subinterval, "warmup": subinterval, "measure": measure, "disturbed": "keep"},
        "steps": [{"go": "one"}],
    }


def test_a_plan_as_a_dict_runs_where_a_loop_runs_already(tmp_path: Path) -> None:
    async def within() -> ivypy.RunResult:
        return ivypy.run(plan(tmp_path), root=tmp_path / "runs", progress=False)

    result = asyncio.run(within())
    figures = result["one"]["all=all"]
    assert is_of_csv(figures["overall_iops"], result.folder)
    assert result["one"]["host=local"].keys() == figures.keys()
    assert len(result.load("lists").summary) == 2
    assert result["one"].verdicts == of_csv(result.folder)
    assert repr(result).startswith(f"<{result.folder.name}: exit code {result.exit_code}, <one: ")
    assert "<th>all=all</th>" in result._repr_html_()
    with pytest.raises(KeyError, match="did you mean 'overall_iops'"):
        result["one"]["all=all"]["overal_iops"]
    with pytest.raises(KeyError, match="did you mean 'host=local'"):
        result["one"]["host=locl"]


def of_csv(folder: Path) -> dict[str, dict[str, str]]:
    """The verdicts of each scope, by rollup instance."""
    with (folder / "summary.csv").open(newline="") as file:
        return {
            f"{row['rollup_type']}={row['rollup_instance']}": {scope: row[f"{scope}_verdict"] for scope in Scope}
            for row in csv.DictReader(file)
        }


def is_of_csv(iops: float | None, folder: Path) -> bool:
    """Whether these are the IOPS of `all=all` in the CSV; both are blank where the machine was too busy."""
    with (folder / "summary.all.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    digits = 1e-6  # seven are printed
    return bool(
        row["overall_iops"] == "" if iops is None else float(row["overall_iops"]) == pytest.approx(iops, digits)
    )


async def nobody(run: Run, staged: SimulatedRun) -> None:
    """Nobody does anything while it runs."""


@pytest.mark.parametrize(("scope", "titles"), [
    ("rate", ("IOPS", "MiB/s")), ("service", ("service mean", "service p99")), ("response", ("response p99",)),
])  # fmt: skip
def test_what_a_verdict_discredits_stands_in_brackets(tmp_path: Path, scope: str, titles: tuple[str, ...]) -> None:
    folder = stage(tmp_path, nobody, ONE_STEP).folder
    for name in ("summary.all.csv", "summary.csv"):
        with (folder / name).open(newline="") as file:
            rows = [*csv.DictReader(file)]
        for row in rows:
            row |= {f"{one}_verdict": "invalid" if one == scope else "valid" for one in Scope}
        with (folder / name).open("w", newline="") as file:
            writer = csv.DictWriter(file, [*rows[0]], lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    result = result_in(folder, ExitCode.OK)
    said = dict(re.findall(r"(IOPS|MiB/s|service mean|service p99|response p99) (\[.*?\]|[^,>]*)", repr(result)))
    assert len(said) == 5 and {title for title, text in said.items() if text.startswith("[")} == {*titles}
    cells = re.findall(r"<td>(.*?)</td>", result._repr_html_())[:5]
    assert [cell.startswith("[") for cell in cells] == [title in titles for title in said]
    of_load = re.findall(r"<td>(.*?)</td>", result.load("lists")._repr_html_())[3:8]
    assert [cell.startswith("[") for cell in of_load] == [title in titles for title in said]


def test_faults_of_a_dict_are_those_of_a_plan(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="unknown key 'workload'"):
        ivypy.run(plan(tmp_path) | {"workload": {}}, root=tmp_path)
    with pytest.raises(PlanError, match="a dict that is no YAML"):
        ivypy.run({"name": object()}, root=tmp_path)


def test_an_interrupted_call_returns_what_was_measured(tmp_path: Path) -> None:
    endless = plan(tmp_path, "1h", "1s")
    (tmp_path / "plan.json").write_text(json.dumps(endless))
    program = textwrap.dedent("""
        import json, sys, ivypy
        result = ivypy.run(json.load(open(sys.argv[1] + "/plan.json")), root=sys.argv[1] + "/runs")
        print(result.exit_code, result["one"].verdict, *result["one"].reasons)
    """)
    process = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    try:
        wait_until(lambda: _measured(tmp_path) > 1, "two subintervals of the measurement")
        process.send_signal(2)
        out, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert re.match("130 (partial|invalid) ", out) and " shortened" in out  # invalid: of a busy machine


def _measured(folder: Path) -> int:
    return sum(path.read_text().count(",run,all,all,") for path in folder.glob("runs/*/step*/all/all.csv"))


async def test_a_session_is_opened_and_closed_without_a_block(tmp_path: Path) -> None:
    session = await ivypy.Session(plan(tmp_path), root=tmp_path / "runs").open()
    result = await session.go("one", measure="1s")
    await session.close()
    (folder,) = (tmp_path / "runs").iterdir()
    assert result.verdicts == of_csv(folder)
    assert repr(result).startswith("<one: ") and is_of_csv(result["all=all"]["overall_iops"], folder)


def test_the_notebook_of_the_docs_runs(tmp_path: Path) -> None:
    notebook: Any = nbformat.reads(NOTEBOOK.read_text(), as_version=4)  # type: ignore[no-untyped-call]
    place = {"metadata": {"path": str(tmp_path)}}
    client = NotebookClient(notebook, timeout=100, kernel_name="python3", resources=place)
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the notebook's own machinery
        patch.setenv("HOME", str(tmp_path))
        client.execute()
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    text = cells[-1].outputs[0]["data"]["text/plain"]
    taken, of_csv = ast.literal_eval(text.replace("np.float64", ""))
    assert taken == pytest.approx(of_csv, rel=1e-8)
    assert "<table>" in "".join(output["data"].get("text/html", "") for output in cells[1].outputs if "data" in output)
