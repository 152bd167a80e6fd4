"""`on_invalid`: steps that are run again, or end the run, where their verdict is invalid."""

import asyncio
import json
from pathlib import Path

import pytest

from ivypy.master.exit_codes import ExitCode
from ivypy.master.logs.readers.ivypy_run import sources_of
from ivypy.master.pages.run_data import RunData
from ivypy.master.run.session.run import Run
from tests.support.simulated.plants import over_time
from tests.support.simulated.runs import TWO_STEPS, SimulatedHosts, SimulatedRun, run, slaves, stage
from tests.support.simulated.slave import SimulatedSlave, steady

pytestmark = pytest.mark.slow

REPEATED = TWO_STEPS.replace("measure: 30s }", "measure: 30s, on_invalid: repeat 2 }")


def names(outcome: SimulatedRun) -> list[tuple[str, str]]:
    return [(row["name"], row["verdict"]) for row in outcome.rows("summary.all.csv")]


def test_a_step_is_repeated_until_it_is_valid_and_its_last_attempt_counts(tmp_path: Path) -> None:
    """Two LUNs are slow during the first attempt."""
    plant = over_time(lambda asked: steady(100.0 if asked < 12 else 1000.0))
    lab = SimulatedHosts(**{**slaves(), "a": SimulatedSlave("a", plant=plant)})
    outcome = run(tmp_path, REPEATED.replace("iops: max", "iops: 500"), lab)
    assert outcome.code is ExitCode.OK
    assert names(outcome) == [("max", "invalid"), ("max+attempt=2", "valid"), ("half", "valid")]
    folders = sorted(path.name for path in outcome.folder.glob("step*"))
    assert folders == ["step0000.max", "step0001.max+attempt=2", "step0002.half"]
    _, second, half = outcome.rows("summary.all.csv")
    assert float(half["overall_iops"]) == pytest.approx(float(second["overall_iops"]) / 2, rel=1e-3)
    assert outcome.events("repeated") == ["step max is invalid: it is run again, as max+attempt=2"]
    sources = sources_of(outcome.folder / "histograms.sqlite", ["service"], all_phases=False)
    assert isinstance(sources, list)
    assert {source.job for source in sources} == {"step0001.max+attempt=2", "step0002.half"}
    assert [step["counts"] for step in RunData(outcome.folder).document()["steps"]] == [False, True, True]


@pytest.mark.parametrize(("repeats", "attempts"), [(1, 2), (2, 3)])
def test_a_step_that_stays_invalid_is_repeated_so_often_and_no_more(
    tmp_path: Path, repeats: int, attempts: int
) -> None:
    """More is asked for than the hosts can do. A step that refers to it is not run, and not repeated either."""
    text = REPEATED.replace("repeat 2", f"repeat {repeats}").replace("iops: max", "iops: 100000")
    outcome = run(tmp_path, text)
    tried = [("max" + f"+attempt={n}" * (n > 1), "invalid") for n in range(1, attempts + 1)]
    assert names(outcome) == [*tried, ("half", "invalid")] and outcome.code is ExitCode.INVALID


@pytest.mark.parametrize("own", [True, False])
def test_a_run_stops_at_an_invalid_step(tmp_path: Path, own: bool) -> None:
    """By the step's own key, which replaces that of the defaults. More is asked for than the hosts can do."""
    text = TWO_STEPS.replace("iops: max", "iops: 100000")
    text = text.replace("{ name: max }", "{ name: max, on_invalid: stop }") if own else text
    default = "continue" if own else "stop"
    outcome = run(tmp_path, text.replace("measure: 30s }", f"measure: 30s, on_invalid: {default} }}"))
    assert names(outcome) == [("max", "invalid")] and outcome.code is ExitCode.INVALID
    assert outcome.events("stopped") == ["step max is invalid, and its on_invalid is stop"]
    assert json.loads((outcome.folder / "run.json").read_text())["exit_code"] == 8


@pytest.mark.parametrize("what", ["repeat 2", "stop"])
def test_a_step_that_is_skipped_is_neither_repeated_nor_the_end_of_the_run(tmp_path: Path, what: str) -> None:
    async def visit(run: Run, staged: SimulatedRun) -> None:
        await asyncio.sleep(2.0)  # of the simulated clock: within the warmup
        run.api.skip("me")

    staged = stage(tmp_path, visit, REPEATED.replace("repeat 2", what), SimulatedHosts(**slaves()).slaves)
    assert [name for name, _ in names(staged)][:2] == ["max", "half"]
    assert not any("step max" in text for text in (*staged.events("repeated"), *staged.events("stopped")))


def test_a_search_that_no_load_meets_does_not_stop_the_run(tmp_path: Path) -> None:
    """A search whose target no load meets is 6; it has failed, and is not invalid, so the run goes on."""
    find = "find: { metric: overall_service_us_mean, target: 1us }"
    text = TWO_STEPS.replace("{ name: max }", f"{{ name: max, {find}, on_invalid: stop }}")
    outcome = run(tmp_path, text)
    assert not outcome.events("stopped") and outcome.code is ExitCode.NOT_REACHED


def test_an_interrupted_step_is_not_repeated(tmp_path: Path) -> None:
    async def visit(run: Run, staged: SimulatedRun) -> None:
        run.api.stop("me")

    staged = stage(tmp_path, visit, REPEATED, SimulatedHosts(**slaves()).slaves)
    assert names(staged) == [("max", "invalid")] and staged.code is ExitCode.INTERRUPTED
