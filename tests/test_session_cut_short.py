"""Whole runs that are halted: what was measured until then stands in the folder, with what it lacks."""

import asyncio
from pathlib import Path

import pytest

from ivypy.master.session.run import Run
from ivypy.master.verdicts import ExitCode
from tests.live import PLAN, Staged, stage

pytestmark = pytest.mark.slow


def halted(tmp_path: Path, after_s: float, go: str = "measure: 60s", more: str = "") -> Staged:
    """One step, stopped so many seconds after it began; its subintervals are of 5 s, the first a warmup."""

    async def visit(run: Run, staged: Staged) -> None:
        await asyncio.sleep(after_s)
        run.desk.stop("me")

    staged = stage(tmp_path, visit, PLAN.replace("go: one", f"{more}go: {{ name: one, {go} }}"))
    assert staged.code is ExitCode.INTERRUPTED
    return staged


def rows(staged: Staged) -> list[tuple[str, str, str]]:
    """(name, verdict, subintervals) of the summary; "" where nothing was measured."""
    return [
        (row["name"], row["verdict"], f"{float(row['length_s']) / 5:.0f}" if row["length_s"] else "")
        for row in staged.rows("summary.all.csv")
    ]


STAIRS = "measure: 20s, staircase: { start: 1000, end: 3000, step: 1000 }"


@pytest.mark.parametrize(
    ("after_s", "expected"),
    [
        (4.0, [("one", "invalid", "")]),
        (12.0, [("one:total_iops=1000", "partial", "1")]),
        (32.0, [("one:total_iops=1000", "valid", "4"), ("one:total_iops=2000", "invalid", "")]),
        (42.0, [("one:total_iops=1000", "valid", "4"), ("one:total_iops=2000", "partial", "1")]),
    ],
)
def test_a_staircase_keeps_the_treads_that_are_complete(
    tmp_path: Path, after_s: float, expected: list[tuple[str, str, str]]
) -> None:
    staged = halted(tmp_path, after_s, STAIRS)
    assert rows(staged) == expected
    assert str(staged.step.verdict) == expected[-1][1]


def test_a_measurement_that_is_not_yet_accurate_has_its_numbers_and_is_invalid(tmp_path: Path) -> None:
    staged = halted(tmp_path, 33.0, "measure: { metric: overall_iops, accuracy: 1% }")
    (row,) = staged.rows("summary.all.csv")
    assert row["verdict"] == "invalid" and float(row["overall_iops"]) > 0
    assert "accuracy_not_reached (overall_iops: 5 of 12 subintervals for a window); shortened" in row["reasons"]


@pytest.mark.parametrize("unpaused", [False, True])
def test_what_was_measured_before_a_pause_is_not_a_measurement(tmp_path: Path, unpaused: bool) -> None:
    """A pause begins the measurement again, as an edit does."""

    async def visit(run: Run, staged: Staged) -> None:
        await asyncio.sleep(22.0)
        await run.desk.pause("me")
        await asyncio.sleep(10.0)
        if unpaused:
            await run.desk.unpause("me")
            await asyncio.sleep(15.0)
        run.desk.stop("me")

    staged = stage(tmp_path, visit)
    expected = ("one", "partial", "2") if unpaused else ("one", "invalid", "")
    assert rows(staged) == [expected]
    assert ("shortened (2 of 6 subintervals)" if unpaused else "interrupted") in map(str, staged.step.findings)
