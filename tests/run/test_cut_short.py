"""Whole runs that are halted: what was measured until then stands in the folder, with what it lacks."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from ivypy.master.cli.results import show
from ivypy.master.errors import OutputError
from ivypy.master.exit_codes import ExitCode
from ivypy.master.hosts.host_spec import HostSpec
from ivypy.master.live.reports import RunEnds
from ivypy.master.plan.load import read
from ivypy.master.report.ticket import ticket_of
from ivypy.master.run.edits.edit_types import EditRefused
from ivypy.master.run.session.run import Options, Run
from ivypy.master.run.session.signals import Interrupts
from tests.support.simulated.loop import simulate
from tests.support.simulated.runs import ONE_STEP, Eyes, SimulatedHosts, SimulatedRun, hosts, stage
from tests.support.simulated.slave import Faults, MemoryPipe

pytestmark = pytest.mark.slow


def halted(tmp_path: Path, after_s: float, go: str = "measure: 60s", more: str = "") -> SimulatedRun:
    """One step, stopped so many seconds after it began; its subintervals are of 5 s, the first a warmup."""

    async def visit(run: Run, staged: SimulatedRun) -> None:
        await asyncio.sleep(after_s)
        run.api.stop("me")

    staged = stage(tmp_path, visit, ONE_STEP.replace("go: one", f"{more}go: {{ name: one, {go} }}"))
    assert staged.code is ExitCode.INTERRUPTED
    return staged


def rows(staged: SimulatedRun) -> list[tuple[str, str, str]]:
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
def test_a_staircase_keeps_the_levels_that_are_complete(
    tmp_path: Path, after_s: float, expected: list[tuple[str, str, str]]
) -> None:
    staged = halted(tmp_path, after_s, STAIRS)
    assert rows(staged) == expected
    assert str(staged.step.verdict) == expected[-1][1]


def test_a_measurement_that_is_not_yet_accurate_has_its_numbers_and_is_invalid(tmp_path: Path) -> None:
    staged = halted(tmp_path, 33.0, "measure: { metric: overall_iops, accuracy: 1% }")
    (row,) = staged.rows("summary.all.csv")
    assert row["verdict"] == "invalid" and float(row["overall_iops"]) > 0
    assert (
        "accuracy_not_reached[invalid] (overall_iops: 5 of 12 subintervals for a window); shortened" in row["reasons"]
    )


@pytest.mark.parametrize("unpaused_s", [0.0, 4.0, 15.0])
def test_a_pause_restarts_the_measurement_and_the_earlier_one_is_kept_if_none_follows(
    tmp_path: Path, unpaused_s: float
) -> None:
    """As an edit does. Paused subintervals are part of neither, though nothing follows the pause."""

    async def visit(run: Run, staged: SimulatedRun) -> None:
        await asyncio.sleep(22.0)
        await run.api.pause("me")
        await asyncio.sleep(10.0)
        if unpaused_s:
            await run.api.unpause("me")
            await asyncio.sleep(unpaused_s)
        run.api.stop("me")

    staged = stage(tmp_path, visit)
    assert rows(staged) == [("one", "partial", "2" if unpaused_s > 5.0 else "3")]
    said = (
        "shortened[partial] (2 of 6 subintervals)"
        if unpaused_s > 5.0
        else "shortened[partial] (3 of 6 subintervals, until an edit or a pause)"
    )
    assert said in map(str, staged.step.findings)
    (row,) = staged.rows("summary.all.csv")
    assert float(row["overall_iops"]) == pytest.approx(float(row["iops_setting"]), rel=1e-3)
    assert not any("edited" in str(finding) for finding in staged.step.findings)


@pytest.mark.parametrize(
    ("go", "after_s", "paused", "expected"),
    [
        ("measure: 30s", 2.0, False, ("invalid", "", "interrupted[invalid]")),
        ("measure: 30s", 21.0, False, ("partial", "4", "shortened[partial]")),
        ("measure: 30s", 21.0, True, ("partial", "3", "shortened[partial]")),
        (
            "measure: { metric: overall_iops, accuracy: 1% }",
            21.0,
            False,
            ("invalid", "4", "accuracy_not_reached[invalid]"),
        ),
    ],
)
def test_a_step_that_is_skipped_has_what_it_measured_and_the_next_one_runs(
    tmp_path: Path, go: str, after_s: float, paused: bool, expected: tuple[str, str, str]
) -> None:
    """The decision on the subinterval in which it is skipped ends the step."""
    refused: list[str] = []

    async def visit(run: Run, staged: SimulatedRun) -> None:
        await asyncio.sleep(after_s)
        if paused:
            await run.api.pause("me")
        run.api.skip("me")
        try:
            run.api.skip("me")
        except EditRefused as error:
            refused.append(str(error))

    staged = stage(tmp_path, visit, ONE_STEP.replace("go: one", f"go: {{ name: one, {go} }}, go: two"))
    assert refused == ["the step is ending already"]
    (one, two), (row, _) = rows(staged), staged.rows("summary.all.csv")
    verdict, measured, reason = expected
    assert one == ("one", verdict, measured) and two == ("two", "valid", "6")
    assert reason in row["reasons"] and "ivypy skip, by me" in row["reasons"]
    assert staged.events("skip") == ["by me"]
    assert staged.eyes.phases()[-1] == "tail"


@pytest.mark.parametrize(
    ("by", "words", "event"),
    [("SIGTERM", "Interrupted by SIGTERM;", "by SIGTERM"), ("Ctrl-C", "Interrupted by Ctrl-C;", "by Ctrl-C"),
     ("", "Interrupted by `ivypy stop`;", "by me")],
)  # fmt: skip
def test_what_interrupted_a_run_is_named_at_its_end_and_when_it_is_shown(
    tmp_path: Path, by: str, words: str, event: str
) -> None:
    async def visit(run: Run, staged: SimulatedRun) -> None:
        await asyncio.sleep(12.0)
        if by:
            run._presses.press(by)
        else:
            run.api.stop("me")

    staged = stage(tmp_path, visit, ONE_STEP.replace("go: one", "go: { name: one, measure: 60s }"))
    (ends,) = [report for report in staged.eyes.seen if isinstance(report, RunEnds)]
    assert ends.words == f"{words} the results so far are written." and staged.events("stop") == [event]
    shown = CliRunner().invoke(show, [str(staged.folder)], standalone_mode=False).output
    assert ends.words in " ".join(shown.split()) and ends.words in ticket_of(staged.folder)


@pytest.mark.parametrize(("pressed_s", "measured"), [(12.0, "1"), (33.0, "5")])
def test_giving_hosts_up_keeps_what_was_measured(tmp_path: Path, pressed_s: float, measured: str) -> None:
    """A device hangs, and the user presses again a little later."""
    slaves = hosts()
    slaves["b"].faults = Faults(catch_s=1000.0)
    lab = SimulatedHosts(**slaves)

    async def visit(run: Run, staged: SimulatedRun) -> None:
        await asyncio.sleep(pressed_s)
        run._presses.press()
        await asyncio.sleep(0.5)
        staged.notes["pressed"] = asyncio.get_running_loop().time()
        run._presses.press()

    async def main() -> SimulatedRun:
        loop, eyes = asyncio.get_running_loop(), Eyes()
        text = ONE_STEP.replace("go: one", "go: { name: one, measure: 60s }")
        presses = Interrupts(lambda: running.cancel())
        run = Run(read(text, "sim.yaml", {}), Options(tmp_path, None, ("ivypy",)), eyes, presses, lab.open)
        staged = SimulatedRun(run.folder, eyes, lab)
        running = loop.create_task(run.run())
        await eyes.begun.wait()
        await visit(run, staged)
        with pytest.raises(asyncio.CancelledError):
            await running
        staged.seconds, staged.code = loop.time() - float(str(staged.notes["pressed"])), run.code
        return staged

    staged = simulate(main())
    assert staged.code is ExitCode.INTERRUPTED and staged.seconds < 4.0
    assert rows(staged) == [("one", "partial", measured)]
    (ends,) = [report for report in staged.eyes.seen if isinstance(report, RunEnds)]
    assert [step.name for step in ends.steps] == ["one"] and ends.words == ExitCode.INTERRUPTED.sentence


def test_a_press_halts_the_hosts_though_nothing_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def visit(run: Run, staged: SimulatedRun) -> None:
        def full(*_: object, **__: object) -> None:
            raise OutputError("no space left")

        await asyncio.sleep(12.0)
        with monkeypatch.context() as patch:
            patch.setattr(run.recorder, "event", full)
            patch.setattr(run.recorder, "noted", full)
            run._presses.press("SIGTERM")

    staged = stage(tmp_path, visit, ONE_STEP.replace("go: one", "go: { name: one, measure: 60s }"))
    assert staged.code is ExitCode.INTERRUPTED and rows(staged) == [("one", "partial", "1")]


def test_what_interrupts_a_run_before_its_first_step_is_named_when_it_is_shown(tmp_path: Path) -> None:
    class Unreachable(SimulatedHosts):
        async def open(self, spec: HostSpec, log: Callable[[str], None]) -> MemoryPipe:
            await asyncio.sleep(1000.0)
            raise AssertionError

    async def main() -> Path:
        presses = Interrupts(lambda: running.cancel())
        run = Run(read(ONE_STEP, "sim.yaml", {}), Options(tmp_path, None, ()), Eyes(), presses, Unreachable().open)
        running = asyncio.get_running_loop().create_task(run.run())
        await asyncio.sleep(1.0)
        presses.press("SIGTERM")
        with pytest.raises(asyncio.CancelledError):
            await running
        return run.folder

    assert json.loads((simulate(main()) / "run.json").read_text())["interrupted_by"] == "SIGTERM"
