"""Whatever one host says costs at most that host: the run ends in order, and what the others measured is valid."""

import re
from pathlib import Path
from random import Random

import pytest

from ivypy.master.errors import HostsError, IvypyError
from ivypy.master.exit_codes import ExitCode
from ivypy.master.live.line_view import event_line
from ivypy.master.live.reports import EventLine
from ivypy.master.plan.load import read
from ivypy.master.run.session.run import Options, Run
from ivypy.master.run.session.signals import Interrupts
from ivypy.master.summary.measured import StepEnds
from ivypy.master.summary.steps_table import verdict_lines
from tests.support.real_runs import names_of
from tests.support.simulated.hostile import HostileSlave
from tests.support.simulated.loop import simulate
from tests.support.simulated.runs import Eyes, SimulatedHosts, SimulatedRun
from tests.support.simulated.slave import SimulatedSlave, lun_of, steady

pytestmark = pytest.mark.slow

PLAN = """\
name: sim
hosts: [good, bad]
engine: { backend: "null" }
luns:
  files: ["/x/*"]
workloads:
  oltp: { blocksize: 8KiB, fraction_read: 100%, maxtags: 4, iops: 500 }
rollups: [ host ]
defaults: { subinterval: 5s, warmup: 5s, measure: 45s }
steps:
  - go: { name: one }
  - edit: { rollup: all=all, set: { iops: 400 } }
  - go: { name: two, cooldown: 5s }
"""
SAID = ["hello", "ok", "luns", "end", "clock_reading", "ready", "ending", "result", "result", "stopped", "dying_words"]
# What losing a host says of the others: it begins to measure again, which is short; the lost one may drive on.
BESIDE_A_LOSS = {"hosts_changed", "lost_host_active", "too_few_subintervals"}
STEERS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def hostile(seed: int) -> HostileSlave:
    random = Random(seed)
    kind = SAID[seed % len(SAID)]
    nth = random.randrange({"result": 20, "clock_reading": 100, "ok": 22}.get(kind, 2))
    return HostileSlave("bad", kind, nth, random, luns=LUNS, plant=steady(1000.0), clock_offset_s=50.0)


LUNS = tuple(lun_of(f"/x/{i}", model="SSD") for i in range(2))


def shown(watching: Eyes) -> list[str]:
    """What stood on the console."""
    found: list[str] = []
    for report in watching.seen:
        match report:
            case EventLine():
                found.append(event_line(report))
            case StepEnds():
                found += verdict_lines(report)
    return found


def judge(tmp_path: Path, seed: int) -> str:
    """Run it, and see that the law holds; in a word, what it cost."""
    bad = hostile(seed)
    lab = SimulatedHosts(good=SimulatedSlave("good", luns=LUNS, plant=steady(1000.0)), bad=bad)
    watching = Eyes()

    async def main() -> ExitCode:
        options = Options(tmp_path, None, ("ivypy",))
        return await Run(read(PLAN, "sim.yaml", {}), options, watching, Interrupts(), lab.open).run()

    try:
        code = simulate(main())
    except HostsError as error:
        assert {fault.host for fault in error.faults} == {"bad"}
        assert not STEERS.search(str(error))
        return "before it began"
    except IvypyError as error:
        assert "bad" in str(error) and not STEERS.search(str(error))
        return "refused"
    (folder,) = tmp_path.iterdir()
    outcome = SimulatedRun(folder, watching, lab, code)
    for file in folder.rglob("*"):
        if file.is_file() and file.suffix in (".csv", ".log", ".json", ".yaml"):
            assert not STEERS.search(file.read_text()), file
    assert not STEERS.search("\n".join(shown(watching)))
    rows = {(row["name"], row["host"]): row for row in outcome.rows("summary.host.csv")}
    for step, iops in (("one", 1000.0), ("two", 800.0)):
        good = rows[step, "good"]
        assert good["verdict"] == "valid" or names_of(good["reasons"]) <= BESIDE_A_LOSS, good["reasons"]
        assert float(good["overall_iops"]) == pytest.approx(iops, rel=0.01)
    assert code is not ExitCode.INTERNAL
    return str(code)


@pytest.mark.parametrize("seed", range(-len(SAID), 0))
def test_garbled_messages_lose_at_most_their_host(tmp_path: Path, seed: int) -> None:
    judge(tmp_path, seed)


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [0, *(pytest.param(n, marks=pytest.mark.long) for n in range(1, 10))])
def test_garbled_messages_lose_at_most_their_host_in_many_cases(tmp_path: Path, seeds: int) -> None:
    for seed in range(seeds * 12, (seeds + 1) * 12):
        folder = tmp_path / str(seed)
        folder.mkdir()
        judge(folder, seed)
