"""Law: a step stands for one of its measurements, and for the same one wherever it is asked: in a program, in a run
that was waited for, in the files, on the page, and where a later step refers to it."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivypy.master.analysis.blocking_run import result_in
from ivypy.master.errors import PlanError
from ivypy.master.exit_codes import ExitCode
from ivypy.master.pages.run_data import RunData
from ivypy.master.results.measured_rows import standing_of
from ivypy.master.results.result_document import write_result
from ivypy.master.run.session.session import Session
from ivypy.master.run.session.session_result import SessionResult
from ivypy.master.verdicts import Verdict, standing
from tests.support.simulated.loop import simulate
from tests.support.simulated.plants import noisy, queue
from tests.support.simulated.runs import TWO_STEPS, SimulatedHosts, run
from tests.support.simulated.slave import Faults, SimulatedSlave

PLAN = """\
name: kinds
hosts: [a, b]
engine: { backend: "null" }
luns: { create: { path: /x/0, size: 1GiB } }
workloads: { w: { maxtags: 8, iops: 200 } }
rollups: [ host ]
defaults: { subinterval: 1s, warmup: 1s, measure: 4s }
"""
MEAN = "overall_response_us_mean"
KINDS: dict[
    str, tuple[dict[str, Any], float | None]
] = {  # of a step, on two hosts of 500 IOPS each: its arguments, and its standing load; None: whatever it finds
    "fixed": ({}, 400),
    "unbounded": ({"staircase": {"start": 400, "step": "100%"}}, 800),
    "bounded": ({"staircase": {"start": 400, "end": 1600, "step": 400}}, 800),
    "too_high": ({"staircase": {"start": 2000, "end": 3000, "step": 1000}}, 1000),
    "find": ({"find": {"metric": MEAN, "target": "6ms", "resolution": "10%"}}, None),
    "steady": ({"steady": {"criterion": "iops", "limit": "5%", "window": "10s", "timeout": "5m"}}, 400),
    "measure": ({"measure": {"metric": "overall_iops", "accuracy": "5%", "min": "10s", "timeout": "5m"}}, 400),
}


@given(st.lists(st.tuples(st.sampled_from(Verdict), st.booleans()), min_size=1))
def test_the_last_that_may_be_believed(measured: list[tuple[Verdict, bool]]) -> None:
    place = standing(measured)
    verdict, has_figures = measured[place]
    assert has_figures or not any(figures for _, figures in measured)
    others = [verdict for verdict, figures in measured if figures == has_figures]
    assert verdict is not Verdict.INVALID or all(one is Verdict.INVALID for one in others)
    later = measured[place + 1 :]
    assert all(
        figures < has_figures or (one is Verdict.INVALID) > (verdict is Verdict.INVALID) for one, figures in later
    )


@pytest.mark.parametrize(
    ("kept", "found"),
    [({"a"}, "a"), ({"b"}, "b"), ({"torn"}, "b"), (set(), "b")],
)
def test_a_row_that_is_not_there_stands_for_nothing(kept: set[str], found: str) -> None:
    """Of an earlier version, whose run.json says nothing, and of a summary that was torn: by the verdicts."""
    rows = [
        {"name": name, "verdict": verdict, "overall_iops": "1"}
        for name, verdict in (("a", "valid"), ("b", "partial"), ("c", "invalid"))
    ]
    measured = [{"name": name, "stands": name in kept} for name in ("a", "b", "c", "torn")]
    assert standing_of({"measured": measured}, rows) == found
    assert standing_of({}, rows) == "b" and standing_of({"measured": measured}, []) == ""


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_place_says_the_same(tmp_path: Path, kind: str) -> None:
    go, load = KINDS[kind]
    plant = noisy(queue(500.0, 2_000_000), 0.001, seed=3)
    lab = SimulatedHosts(**{name: SimulatedSlave(name, plant=plant) for name in "ab"})
    found: dict[str, SessionResult] = {}

    async def main() -> Path:
        async with Session(PLAN, root=tmp_path, opening=lab.open) as session:
            found["it"] = await session.go("it", **go)
            if kind == "too_high":
                with pytest.raises(PlanError, match="the rate of step it is invalid"):
                    await session.edit("all=all", total_iops="50% of step it")
                return session.folder
            await session.edit("all=all", total_iops="50% of step it")
            found["half"] = await session.go("half")
        return session.folder

    folder = simulate(main())
    own = found["it"]["all=all"]["overall_iops"]
    assert own is not None and (load is None or own == pytest.approx(load, rel=0.02))

    with open(folder / "summary.all.csv") as file:
        rows = list(csv.DictReader(file))
    steps = json.loads((folder / "run.json").read_text())["steps"]
    write_result(folder)
    documents = json.loads((folder / "result.json").read_text())["steps"]
    page = RunData(folder).document()["steps"]
    for number, step in enumerate(steps):
        (name,) = [one["name"] for one in step["measured"] if one["stands"]]
        (row,) = [row for row in rows if row["name"] == name and int(row["step"]) == number]
        for shown in (documents[number], page[number]):
            assert {one["name"] for one in shown["measurements"] if one["stands"]} == {name}
        if step["name"] == "it":
            assert float(row["overall_iops"]) == pytest.approx(own)
    waited = result_in(folder, ExitCode.OK).steps["it"]
    assert waited.verdicts == found["it"].verdicts
    for instance, figures in found["it"].figures.items():
        assert waited[instance]["overall_iops"] == pytest.approx(figures["overall_iops"])
    if "half" in found:
        assert found["half"]["all=all"]["overall_iops"] == pytest.approx(own / 2, rel=0.02)


def test_a_share_of_a_lower_level_says_which_higher_rate_could_be_used(tmp_path: Path) -> None:
    """The upper level was sustained, but the generator was later than the storage took: its latency alone is invalid,
    so the step stands for the lower one."""
    lab = SimulatedHosts(
        **{
            name: SimulatedSlave(
                name,
                plant=lambda offered, _: (offered, 5_000_000 if offered <= 60 else 100_000),  # of six instances
                faults=Faults(lateness_ns=200_000),
            )
            for name in "abc"
        }
    )
    slo = "slo: { metric: overall_response_us_mean, at_most: 10ms }"
    go = f"go: {{ name: up, measure: 10s, {slo}, staircase: {{ start: 300, end: 600, step: 300 }} }}"
    half = "edit: { rollup: all=all, set: { total_iops: 50% of step up } }\n  - go: half"
    plan = f"{TWO_STEPS.partition('  - go')[0]}  - {go}\n  - {half}\n"
    outcome = run(tmp_path, plan, lab)
    lower, upper, later = outcome.rows("summary.all.csv")
    assert (lower["verdict"], upper["verdict"], upper["rate_verdict"]) == ("valid", "invalid", "valid")
    assert float(later["overall_iops"]) == pytest.approx(float(lower["overall_iops"]) / 2, rel=1e-3)
    said = f"the share is of {lower['name']}, since {upper['name']} is invalid, though not its rate"
    assert f"baseline_step[note] ({said})" in later["reasons"] and later["verdict"] == "valid"
    assert "baseline_step" not in upper["reasons"]
