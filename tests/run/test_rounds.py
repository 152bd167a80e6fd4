"""Steps in rounds: run until they are steady, named and written as rounds, on simulated hosts."""

import json
from collections import Counter
from pathlib import Path

import pytest

from ivypy.master.exit_codes import ExitCode
from ivypy.master.live.reports import StepBegins
from ivypy.master.plan.attempts import step_of_plan
from ivypy.master.summary.steps_table import steps_table
from tests.support.real_runs import ROOT
from tests.support.simulated.plants import over_time
from tests.support.simulated.runs import SimulatedHosts, SimulatedRun, run
from tests.support.simulated.slave import SimulatedSlave, steady

pytestmark = pytest.mark.slow

PLAN = """\
name: sim
hosts: [a]
engine: {{ backend: "null" }}
luns: {{ create: {{ path: /x/0, size: 1GiB }} }}
workloads: {{ mix: {{ iosequencer: random_steady, maxtags: 4, iops: max }} }}
defaults: {{ subinterval: 5s, warmup: 0s, measure: 30s }}
steps:
  - go:
      name: mix
      loop: {{ fraction_read: [50%, 0%] }}
      rounds: {{ watch: {{ fraction_read: 0% }}, most: {most} }}
  - edit: {{ rollup: all=all, set: {{ total_iops: 50% of step mix+fraction_read=0% }} }}
  - go: half
"""


def settling(rounds: list[float]) -> SimulatedHosts:
    """A host whose LUN does so many IOPS in each round, of two steps of 7 subintervals."""
    plant = over_time(lambda asked: steady(rounds[min(asked // 14, len(rounds) - 1)]))
    return SimulatedHosts(a=SimulatedSlave("a", plant=plant))


def names(outcome: SimulatedRun) -> list[str]:
    return [row["name"] for row in outcome.rows("summary.all.csv")]


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> SimulatedRun:
    return run(tmp_path_factory.mktemp("rounds"), PLAN.format(most=25), settling([1600, 800, 400, 200]))


def test_they_end_when_the_passes_that_are_named_are_steady(outcome: SimulatedRun) -> None:
    """From the fourth round on: the eighth is the last."""
    passes = [f"mix+fraction_read={share}%+round={n}" for n in range(1, 9) for share in (50, 0)]
    assert names(outcome) == [*passes, "half"] and outcome.code is ExitCode.OK
    folders = sorted(path.name for path in outcome.folder.glob("step*"))
    assert folders[1] == "step0001.mix+fraction_read=0%25+round=1" and folders[-1] == "step0016.half"


def test_the_last_one_says_that_they_are_steady(outcome: SimulatedRun) -> None:
    *_, read, written, half = outcome.rows("summary.all.csv")
    assert "steady_rounds[note] (rounds 4 to 8 steady: overall_iops of mix+fraction_read=0%" in written["reasons"]
    assert "steady_rounds" not in read["reasons"] and written["verdict"] == "valid"
    assert float(half["overall_iops"]) == pytest.approx(float(written["overall_iops"]) / 2, rel=1e-3), "of the last"
    assert outcome.events("round")[0] == "mix: round 1 of at most 25"
    assert outcome.events("round")[-1].startswith("mix: rounds 4 to 8 steady: ")


def test_rounds_csv_has_how_it_converged(outcome: SimulatedRun) -> None:
    rows = outcome.rows("rounds.csv")
    assert [int(row["round"]) for row in rows] == [*range(1, 9)]
    assert {row["pass"] for row in rows} == {"mix+fraction_read=0%"}
    assert [float(row["value"]) for row in rows] == pytest.approx([1600, 800, 400, *[200] * 5], rel=1e-2)
    assert [row["mean"] != "" for row in rows] == [False] * 4 + [True] * 4
    assert [row["steady"] for row in rows] == ["false"] * 7 + ["true"]


def test_a_table_program_finds_the_round_in_a_column(outcome: SimulatedRun) -> None:
    rounds = [row["round"] for row in outcome.rows("summary.csv") if row["rollup_type"] == "all"]
    assert rounds == [str(n) for n in range(1, 9) for _ in range(2)] + [""]


def test_rounds_that_never_are_steady_are_not_reached(tmp_path: Path) -> None:
    outcome = run(tmp_path, PLAN.format(most=5), settling([200, 400, 800, 1600, 3200]))
    last = outcome.rows("summary.all.csv")[-2]
    assert last["name"] == "mix+fraction_read=0%+round=5" and last["verdict"] == "invalid"
    assert "rounds_not_steady[invalid] (in 5 rounds, rounds 1 to 5 not steady: " in last["reasons"]
    assert outcome.code is ExitCode.NOT_REACHED
    record = json.loads((outcome.folder / "run.json").read_text())
    assert record["planned_steps"] == ["mix+fraction_read=50%", "mix+fraction_read=0%", "half"]


@pytest.mark.parametrize("on_invalid", ["repeat 2", "stop"])
def test_rounds_that_are_not_steady_are_no_reason_to_repeat_a_pass_or_to_stop(on_invalid: str, tmp_path: Path) -> None:
    """The pass that is watched is the first: the other is run all the same."""
    text = PLAN.format(most=5).replace("watch: { fraction_read: 0%", "watch: { fraction_read: 50%")
    text = text.replace("measure: 30s }", f"measure: 30s, on_invalid: {on_invalid} }}")
    outcome = run(tmp_path, text, settling([200, 400, 800, 1600, 3200]))
    passes = [f"mix+fraction_read={share}%+round={n}" for n in range(1, 6) for share in (50, 0)]
    assert names(outcome) == [*passes, "half"] and len(outcome.rows("rounds.csv")) == 5


def test_rounds_before_the_last_five_do_not_decide_the_exit_code(tmp_path: Path) -> None:
    """In the first round more is asked for than the storage can do."""
    text = PLAN.format(most=25).replace("iops: max", "iops: 300")
    outcome = run(tmp_path, text, settling([200, 1000]))
    assert outcome.rows("summary.all.csv")[0]["verdict"] == "invalid"
    assert outcome.code is ExitCode.OK and len(outcome.rows("rounds.csv")) == 6


def test_the_table_at_the_end_has_the_means_of_the_last_rounds(outcome: SimulatedRun) -> None:
    lines = steps_table([*outcome.eyes.steps().values()], 100)
    assert [line.split()[:3] for line in lines if " valid  " in line] == [["16", "half", "valid"]]
    caption, _, read, written = lines[lines.index("") + 1 :][:4]
    assert caption.startswith("mix: the mean of rounds 4 to 8, steady: overall_iops of ")
    assert read.split()[:4] == ["fraction_read=50%", "200", "200", "200"]
    assert written.split()[:4] == ["fraction_read=0%", "200", "200", "200"]


def test_watchers_see_how_long_it_may_take(outcome: SimulatedRun) -> None:
    """At most 25 rounds of two steps of 35 s, and another."""
    begins = [one for one in outcome.eyes.seen if isinstance(one, StepBegins)]
    assert begins[0].run_planned_s == 25 * 2 * 35 + 35
    assert [one.of_steps for one in begins] == [0] * 16 + [17]


def test_a_round_that_was_cut_short_does_not_count(tmp_path: Path) -> None:
    """Ctrl-C in the second round, in the middle of the pass that is watched: each takes 35 s."""
    outcome = run(tmp_path, PLAN.format(most=25), settling([200]), press_after=3 * 35 + 20)
    assert outcome.code is ExitCode.INTERRUPTED
    assert [row["value"] != "" for row in outcome.rows("rounds.csv")] == [True, False]


SNIA = ROOT / "configs" / "snia"
PASSES = {
    "latency": {"latency": 9},
    "throughput": {"throughput-128k": 2, "throughput-1m": 2},
    "iops": {"iops": 56},
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == "throughput" else [pytest.mark.long]) for name in PASSES]
)
def test_snias_plans_end_after_five_rounds_on_steady_storage(name: str, tmp_path: Path) -> None:
    """With a fixed time in the place of the volume, which simulated hosts do not have: tests/e2e/test_snia.py does."""
    text = (SNIA / f"{name}.yaml").read_text()
    for old, new in (
        ('paths: "${device}"', "create: { path: /x/0, size: 64MiB }"),
        ("destroy: true", "report: false"),
        ("measure: 1m", "measure: 2s"),
        ('until: { written: "${capacity}" }', "measure: 1s"),
    ):
        assert old in text
        text = text.replace(old, new)
    lab = SimulatedHosts(a=SimulatedSlave("a", plant=steady(5000.0)))
    outcome = run(tmp_path, f"hosts: [a]\n{text}", lab)
    assert outcome.code is ExitCode.OK
    steps = Counter(step_of_plan(row["name"]).partition("+")[0] for row in outcome.rows("summary.all.csv"))
    in_rounds = {step: count for step, count in steps.items() if "precondition" not in step}
    assert in_rounds == {step: 5 * passes for step, passes in PASSES[name].items()}
