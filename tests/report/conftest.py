"""Runs to report on."""

from pathlib import Path

import pytest

from ivypy.master.run.session.run import Run
from tests.support.made_once import Store
from tests.support.simulated.runs import ONE_STEP, SimulatedRun, stage

CLIMB = ONE_STEP.replace(
    "go: one",
    "go: { name: climb, measure: 10s, slo: { metric: overall_iops, at_most: 300000 },"
    " staircase: { start: 100000, step: 125% } }, edit: { rollup: all=all, set: { iops: max } }, go: most",
)


async def marked(run: Run, staged: SimulatedRun) -> None:
    run.api.mark("</script><script>alert(1)</script>", "me")


def climb(root: Path) -> SimulatedRun:
    return stage(root, marked, CLIMB)


@pytest.fixture(scope="session")
def run_folder(store: Store) -> Path:
    """A staircase that saturates, and a step at max: three hosts, two rollup types; a mark with markup."""
    return store.run(climb)
