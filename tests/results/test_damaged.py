"""A run's folder that is damaged: every command that reads it says which file, and none ends in a traceback."""

import json
import shutil
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ivypy.master.cli.compare import compare
from ivypy.master.cli.results import list_runs, show
from ivypy.master.errors import PlanError
from ivypy.master.results.checked_files import RUN_JSON
from ivypy.master.results.result_document import ResultDocument, result_of, write_result
from ivypy.master.run.session.run import Run
from tests.support.simulated.runs import ONE_STEP, SimulatedRun, stage

pytestmark = pytest.mark.slow

SUMMARY = "summary.all.csv"
FORMS = ["--json", "--csv", "--md", "--by=all", "--step=0"]


async def nobody(run: Run, staged: SimulatedRun) -> None:
    """Nobody does anything while it runs."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a run with a threshold."""
    plan = ONE_STEP.replace("go: one", "go: { name: one, slo: [ { metric: overall_iops, at_least: 1 } ] }")
    return stage(tmp_path_factory.mktemp("run"), nobody, plan).folder


def all_ways(folder: Path) -> list[BaseException | None]:
    """What each command raised."""
    words = [[str(folder), form] for form in FORMS] + [[str(folder)], [str(folder), f"--junit={folder}/x.xml"]]
    runner = CliRunner()
    done = [runner.invoke(show, one, standalone_mode=False) for one in words]
    done.append(runner.invoke(list_runs, [str(folder.parent)], standalone_mode=False))
    done.append(runner.invoke(compare, [str(folder), "--vs", str(folder.parent / "whole")], standalone_mode=False))
    return [one.exception for one in done]


def harmless(error: BaseException | None) -> bool:
    """None, or one that names what is wrong. A console of these tests can show no bytes that are no UTF-8."""
    return error is None or isinstance(error, PlanError | click.ClickException | UnicodeEncodeError)


@st.composite
def changed_values(draw: st.DrawFn, value: Any) -> Any:
    """JSON in which one value, at any depth, is another or is gone."""
    if isinstance(value, dict | list) and value and draw(st.integers(0, 3)):
        copy = value.copy()
        key = draw(st.sampled_from([*value] if isinstance(value, dict) else range(len(value))))
        if draw(st.integers(0, 3)):
            copy[key] = draw(changed_values(value[key]))
        else:
            del copy[key]
        return copy
    return draw(st.sampled_from([None, 0, -1.5, True, "", "x", [], {}, ["x"], {"x": 1}, 10**30]))


@st.composite
def changed_bytes(draw: st.DrawFn, data: bytes) -> bytes:
    place = draw(st.integers(0, len(data)))
    if draw(st.booleans()):
        return data[:place]
    return data[:place] + draw(st.binary(max_size=3)) + data[place + draw(st.integers(0, 3)) :]


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(data=st.data(), name=st.sampled_from([RUN_JSON, "values", SUMMARY]))
def test_whatever_is_damaged_is_named(folder: Path, data: st.DataObject, name: str) -> None:
    root = folder.parent / "damaged"
    shutil.rmtree(root, ignore_errors=True)
    for copy in ("whole", "run"):
        (root / copy).mkdir(parents=True)
        for one in (RUN_JSON, SUMMARY):
            shutil.copy(folder / one, root / copy / one)
    if name == "values":
        text = json.dumps(data.draw(changed_values(json.loads((folder / RUN_JSON).read_text()))))
        (root / "run" / RUN_JSON).write_text(text)
    else:
        (root / "run" / name).write_bytes(data.draw(changed_bytes((folder / name).read_bytes())))
    assert all(harmless(error) for error in all_ways(root / "run")), all_ways(root / "run")


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        (SUMMARY, ",valid,", ",velid,", f"{SUMMARY}:2: verdict: 'velid' is no verdict"),
        (SUMMARY, "overall_iops,", "x,", ""),  # a column less: that figure is blank
        (SUMMARY, "step,", "stop,", "it is no summary of ivypy: it has no column step"),
        (RUN_JSON, '"number": 0', '"number": "0"', "steps.0.number: Input should be a valid integer"),
        (RUN_JSON, '"exit_code": 0', '"exit_code": 77', "exit_code: 77 is none of ivypy's"),
    ],
)
def test_the_place_is_named(folder: Path, tmp_path: Path, name: str, old: str, new: str, said: str) -> None:
    copy = shutil.copytree(folder, tmp_path / "run")
    (copy / name).write_text((copy / name).read_text().replace(old, new, 1))
    error = all_ways(copy)[0]
    assert said in str(error or "") and harmless(error)


def test_a_name_that_is_no_utf_8_is_in_the_result_by_its_bytes(folder: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(folder, tmp_path / "run")
    data = (copy / SUMMARY).read_bytes()
    (copy / SUMMARY).write_bytes(data.replace(b",all,all,", b",all,\xffx,", 1))
    write_result(copy)
    record = (copy / RUN_JSON).read_bytes()
    (copy / RUN_JSON).write_bytes(record.replace(b'"end_utc": "', b'"end_utc": "\x80', 1))  # of the step
    write_result(copy)
    result = ResultDocument.model_validate_json((copy / "result.json").read_bytes())
    assert (result.steps[0].end_utc or "").startswith("\\udc80")
    assert result.steps[0].measurements[0].rollup_instance == "\\udcffx"
    assert result_of(folder, ()).steps[0].measurements[0].rollup_instance == "all"
