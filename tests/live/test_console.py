"""What a person sees of a run: the console's lines, the bar, and the table at the end."""

import asyncio
import io
import json
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from ivypy.master.causes import DISCREDITED, cause_of
from ivypy.master.control.decision import Decision
from ivypy.master.control.observation import Observation, Phase
from ivypy.master.errors import OutputError
from ivypy.master.exit_codes import ExitCode
from ivypy.master.live.change_lines import changed_lines
from ivypy.master.live.json_lines import JsonLines
from ivypy.master.live.line_view import TextLines
from ivypy.master.live.reports import EventLine, MeasuredSoFar, Report, RunEnds, StepBegins, Subinterval
from ivypy.master.live.socket_messages import Changed
from ivypy.master.live.step_lines import done_and_all
from ivypy.master.live.subinterval_lines import subinterval_lines
from ivypy.master.live.terminal_view import Terminal
from ivypy.master.run.session.run import Run
from ivypy.master.run.step.live_step import LiveStep
from ivypy.master.summary.headline import IOPS, MIDDLE, NARROWEST, OF_MEASUREMENT
from ivypy.master.summary.measured import MeasurementRow, StepEnds
from ivypy.master.summary.steps_table import (
    advice_lines,
    ending_of,
    reason_lines,
    run_sentence,
    steps_table,
    verdict_lines,
    why_of,
    words_of,
)
from ivypy.master.text.scaled import duration
from ivypy.master.verdicts import ALL, Finding, Reason, Severity, Verdict, by_weight
from ivypy.protocol.payload import NoticeKind
from tests.support.simulated.loop import SimulatedLoop
from tests.support.simulated.plants import queue
from tests.support.simulated.runs import ONE_STEP, SimulatedRun, hosts, stage
from tests.support.simulated.slave import SimulatedSlave

pytestmark = pytest.mark.slow

NOW = datetime(2026, 1, 1, 12, 0)


async def nobody(run: Run, staged: SimulatedRun) -> None:
    """Nobody does anything while it runs."""


def subintervals(staged: SimulatedRun) -> list[Subinterval]:
    return [report for report in staged.eyes.seen if isinstance(report, Subinterval)]


def seconds(utc: str) -> float:
    return datetime.fromisoformat(utc).timestamp()


def test_a_subinterval_that_was_cut_short_is_shown_with_its_own_end(tmp_path: Path) -> None:
    """Halted 2 s into 5 s: the line is not of a time that has not come."""

    async def visit(run: Run, staged: SimulatedRun) -> None:
        await asyncio.sleep(12.3)  # 0.3 s before the start, two whole subintervals, and 2 s
        run.api.stop("me")

    staged = stage(tmp_path, visit)
    *_, whole, cut = subintervals(staged)
    assert seconds(cut.utc) - seconds(whole.utc) == pytest.approx(2.0, abs=0.1)
    (halted,) = [row["utc"] for row in staged.rows("events.csv") if row["kind"] == "halt"]
    assert seconds(cut.utc) <= seconds(halted) + 0.01


@pytest.mark.parametrize(
    ("oltp", "scan", "target", "shown"),
    [("200", "max", "mixed", "mixed"), ("max", "max", "max", "max"), ("200", "100", 1800.0, "1.80 k")],
)
def test_the_target_is_a_number_max_or_mixed(
    tmp_path: Path, oltp: str, scan: str, target: float | str, shown: str
) -> None:
    text = ONE_STEP.replace("iops: 1000", f"iops: {oltp}").replace("iops: 100 }", f"iops: {scan} }}")
    for report in subintervals(stage(tmp_path, nobody, text)):
        assert report.target_iops == target
        line = subinterval_lines(report, MIDDLE)[0]
        assert line[26:33].strip() == shown


def test_a_failed_run_prints_its_folder_and_its_finished_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here in its second step, whose folder cannot be made."""
    shown: list[Report] = []

    async def visit(run: Run, staged: SimulatedRun) -> None:
        staged.eyes.seen = shown
        (run.folder / "step0001.two").write_text("in the way")

    with pytest.raises(BaseExceptionGroup) as failed:
        stage(tmp_path, visit, ONE_STEP.replace("[ go: one ]", "[ go: one, go: two ]"))
    assert isinstance(failed.value.exceptions[0], OutputError)
    last = shown[-1]
    (folder,) = tmp_path.iterdir()
    assert isinstance(last, RunEnds) and (last.folder, last.exit_code) == (str(folder), 1)
    assert [step.name for step in last.steps] == ["one"]


@pytest.mark.parametrize("after_s", [2.0, 8.0, 22.0, 33.0])
def test_an_edit_says_when_the_step_now_ends(tmp_path: Path, after_s: float) -> None:
    """Subintervals of 5 s, the first a warmup: an edit there moves nothing, a later one lets six follow it."""
    answers: list[Changed] = []

    async def visit(run: Run, staged: SimulatedRun) -> None:
        await asyncio.sleep(after_s)
        answers.append(await run.api.edit(["all=all", "iops=500"], False, "me"))

    staged = stage(tmp_path, visit, ONE_STEP.replace("go: one", "go: one, go: two"))
    shown = [report for report in subintervals(staged) if report.step == "one"]
    last = shown[-1].number
    (answer,) = answers
    acted = answer.took[0].subinterval
    assert answer.restarts == (acted > 0)
    if acted:
        assert answer.step_remaining_s == 5.0 * (last - acted + 1)
        assert changed_lines(answer, NOW)[-1] == f"the measurement begins again; the step is now done 12:00, {40}s"
    assert [report.step_remaining_s for report in shown[acted:]] == [5.0 * (last - n) for n in range(acted, last + 1)]
    assert all(report.run_remaining_s - report.step_remaining_s == 40.0 for report in shown)


@pytest.mark.parametrize(
    "control", ["", "staircase: { start: 1000, end: 2000, step: 1000 }"], ids=["fixed", "staircase"]
)
def test_a_pause_takes_nothing_off_the_time_that_remains(tmp_path: Path, control: str) -> None:
    """The end moves with every paused subinterval, and the views say that nothing goes on."""
    statuses: list[str] = []

    async def visit(run: Run, staged: SimulatedRun) -> None:
        await asyncio.sleep(22.0)
        await run.api.pause("me")
        await asyncio.sleep(50.0)
        statuses.extend(TextLines(lambda line: None, lambda: 80).lines(run.api.standing()))
        await run.api.unpause("me")

    staged = stage(tmp_path, visit, ONE_STEP.replace("go: one", f"go: {{ name: one, {control} }}"))
    shown = subintervals(staged)
    paused = [report for report in shown if report.paused]
    assert len(paused) >= 8 and len({report.step_remaining_s for report in paused}) == 1
    left_s = paused[0].step_remaining_s
    after = shown[shown.index(paused[-1]) + 1]
    assert left_s > 0 and 0 < after.step_remaining_s <= left_s and not after.paused
    left = duration(left_s)
    assert f"step paused, {left} left; run paused, {left} left" in statuses


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_step_has_the_same_number_in_the_bar_and_in_the_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    screen = Screen()
    terminal = Terminal(screen)
    terminal.show(StepBegins(1, "half", 3, 60.0, 180.0, 5.0))
    terminal.show(RunEnds("/f", (), 0, "words"))
    said = [
        line.rsplit("step ", 1)[1] for line in screen.getvalue().replace("\r", "\n").splitlines() if "step " in line
    ]
    assert len(said) >= 2, "a line, and the bar"
    assert all(line.startswith("1 (2 of 3): half") for line in said if not line.startswith("  "))


def closed(messages: tuple[str, ...] = (), paused: bool = False) -> Subinterval:
    figures = {"overall_iops": 5.0, "overall_mib_per_s": 1.0}
    return Subinterval(
        "2026-01-01T12:00:30.000Z", "half", Phase.RUN, 3, 5.0, figures, 1, 1, messages, 40.0, 40.0, paused=paused
    )


def test_a_long_message_of_control_is_shown_whole_below_the_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")
    screen = Screen()
    terminal = Terminal(screen)
    terminal.show(StepBegins(0, "half", 1, 60.0, 60.0, 5.0))
    said = " ".join(f"word{i}" for i in range(20))
    terminal.show(closed((said,)))
    terminal.close()
    assert all(word in screen.getvalue() for word in said.split())


@pytest.mark.parametrize(
    ("planned_s", "done_and_all_s"),
    [(60.0, (20.0, 60.0)), (30.0, (0.0, 30.0)), (0.0, (4 * 5.0, 4 * 5.0 + 40.0))],  # 0: as long as its volume
)
def test_how_much_of_a_step_is_done_follows_from_what_is_left(
    planned_s: float, done_and_all_s: tuple[float, float]
) -> None:
    assert done_and_all(StepBegins(0, "half", 1, planned_s, planned_s, 5.0), closed()) == done_and_all_s


def test_what_is_measured_so_far_is_shown_as_it_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not with the next subinterval: its row would be one behind."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    screen = Screen()
    terminal = Terminal(screen)
    terminal.show(StepBegins(0, "half", 1, 60.0, 60.0, 5.0))
    terminal.show(closed())
    terminal.show(MeasuredSoFar("half", replace(standing_for(()), figures={IOPS: 4_560.0})))
    shown = screen.getvalue()
    terminal.close()
    assert "4.56 k" in shown


def test_the_bar_of_a_paused_run_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    for paused, said in ((False, "done 12:01, 40s"), (True, "paused, 40s left")):
        screen = Screen()
        terminal = Terminal(screen, lambda: NOW.replace(second=30))
        terminal.show(StepBegins(0, "half", 1, 60.0, 60.0, 5.0))
        terminal.show(closed(paused=paused))
        assert said in screen.getvalue()
        terminal.close()


def test_a_slow_decision_is_reported_once_in_a_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deciding takes 2.6 s of 5 s in two subintervals: one event, one finding, and no lost subinterval."""

    decide = LiveStep.decide

    def slow(live: LiveStep, seen: Observation) -> Decision:
        if seen.number in (2, 3):
            loop = asyncio.get_running_loop()
            assert isinstance(loop, SimulatedLoop)
            loop.work(2.6)
        return decide(live, seen)

    monkeypatch.setattr(LiveStep, "decide", slow)
    staged = stage(tmp_path, nobody, slaves=hosts())
    took = "2.60 s from the last result to the decision, of 5 s in subinterval 2"
    said = f"the controller took {took}"
    assert [text for text in staged.eyes.event_lines() if "the controller" in text] == [said]
    assert staged.events("slow_controller") == [said]
    findings = [str(finding) for finding in staged.step.findings]
    assert findings == ["too_few_subintervals[note] (6)", f"slow_controller[note] ({took})"]
    assert staged.eyes.phases() == ["warmup", *["run"] * 6, "tail"]


CLIMB = ONE_STEP.replace(
    "go: one",
    "go: { name: climb_a_staircase_to_its_very_end, measure: 10s, staircase: { start: 100000, step: 125% } }",
)
CLIMBED = "climb_a_staircase_to_its_very_end"
FEW = "too_few_subintervals[note] (2)"


def test_every_level_has_its_line_with_its_own_reasons(tmp_path: Path) -> None:
    """225,000 is sustained and 506,250 is not by the six instances of scan, of 50,000 each."""
    staged = stage(tmp_path, nobody, CLIMB)
    names = [row["name"] for row in staged.rows("summary.all.csv")]
    assert names == [f"{CLIMBED}:total_iops={load}" for load in ("100000", "225000", "506250", "1.13906e+06")]
    ends = next(report for report in staged.eyes.seen if isinstance(report, RunEnds))
    said = TextLines(lambda line: None, lambda: MIDDLE).lines(ends)
    table = [line.split() for line in said if line.startswith("0 climb_a_")]
    assert [words[2] for words in table] == ["valid", "valid", "valid", "invalid"]
    assert [" ".join(words[3:5]) for words in table] == ["100 k", "225 k", "506 k", "[600 k]"], "discredited"
    assert [words[1].rsplit("=")[1] for words in table] == ["100000", "225000", "506250", "1.13906e+06"]
    below = said[said.index("") + 1 :]
    below = below[below.index("") + 1 :]
    why = f"step 0 {names[3]}: invalid: {Reason.LOAD_NOT_SUSTAINED.short}"
    counted = next(at for at, line in enumerate(below) if line.startswith("  ivypy show --reasons /")) - 1
    assert re.fullmatch(r"\d reasons? and \d notes?:", below[counted])
    said_of_it = " ".join(line.strip() for line in below[:counted])
    assert said_of_it.startswith(why) and said_of_it.endswith(Reason.LOAD_NOT_SUSTAINED.remedy)


def test_in_detail_every_reason_has_its_line_and_a_remedy_is_printed_once(tmp_path: Path) -> None:
    staged = stage(tmp_path, nobody, CLIMB)
    names = [row["name"] for row in staged.rows("summary.all.csv")]
    said = TextLines(lambda line: None, in_detail=True).lines(staged.step)
    assert said[:3] == ["all measurements", f"  {FEW}", f"    {Reason.TOO_FEW_SUBINTERVALS.remedy}"]
    assert said[3:6] == [f"step 0 {name}: valid" for name in names[:3]]
    assert said[6].startswith(f"step 0 {names[3]}: invalid") and said[7].startswith("  load_not_sustained[invalid] (")


def test_a_reason_of_a_step_names_its_level(tmp_path: Path) -> None:
    """One verdict, of the levels that count; a reason that all of them have stands once."""
    slow = CLIMB.replace("measure: 10s", "measure: 10s, slo: { metric: overall_iops, at_most: 300000 }")
    staged = stage(tmp_path, nobody, slow)
    missed = "slo_missed[failed] (total_iops=506250: overall_iops at most 300000"
    few, slo = map(str, staged.step.findings)
    assert few == FEW and slo.startswith(missed)
    (step,) = json.loads((staged.folder / "run.json").read_text())["steps"]
    assert (step["verdict"], step["reasons"]) == ("failed", [few, slo])
    lines: list[str] = []
    JsonLines(lines.append).show(staged.step)
    (report,) = map(json.loads, lines)
    assert [one["verdict"] for one in report["measured"]] == ["valid", "valid", "failed", "invalid"]
    assert [one["name"] for one in report["measured"]] == [row["name"] for row in staged.rows("summary.all.csv")]
    shown = TextLines(lambda line: None).lines(staged.step)
    assert shown[0] == f"step 0 {CLIMBED}: failed, 4 measurements"
    assert len([line for line in shown if line.startswith(f"  step 0 {CLIMBED}:")]) == 4


@pytest.mark.parametrize(
    "go", ["go: one", "go: { name: one, find: { metric: overall_response_us_mean, target: 10ms } }"]
)
def test_a_step_of_one_measurement_has_one_line(tmp_path: Path, go: str) -> None:
    staged = stage(tmp_path, nobody, ONE_STEP.replace("go: one", go))
    (name,) = [row["name"] for row in staged.rows("summary.all.csv")]
    begin = f"step 0 {name}: {staged.step.verdict}"
    (line,) = TextLines(lambda line: None).lines(staged.step)
    assert line.startswith(begin)
    first, *reasons = TextLines(lambda line: None, in_detail=True).lines(staged.step)
    assert first.startswith(begin) and reasons and all(line.startswith("  ") for line in reasons)
    assert isinstance(staged.step, StepEnds) and [one.name for one in staged.step.measured] == [name]


def written_by(lines: TextLines, reports: Iterable[Report]) -> list[str]:
    return [line for report in reports for line in lines.lines(report)]


def numbered(numbers: Iterable[int], news: Callable[[int], str] = lambda number: "") -> list[Report]:
    """Subintervals of a step of 5 s each."""
    told = {number: tuple(filter(None, (news(number),))) for number in numbers}
    return [StepBegins(0, "s", 1, 100.0, 100.0, 5.0), *(replace(closed(), number=n, news=told[n]) for n in told)]


@pytest.mark.parametrize(
    ("every_s", "shown"),
    [(0.0, [*range(12)]), (5.0, [*range(12)]), (10.0, [1, 3, 5, 7, 9, 11]), (21.0, [3, 7, 11]), (math.inf, [])],
)
def test_one_subinterval_of_several_has_a_line_and_it_is_said_which(every_s: float, shown: list[int]) -> None:
    lines = written_by(TextLines(lambda line: None, lambda: MIDDLE, every_s), numbered(range(12)))
    assert [int(line.split()[2]) for line in lines if " run " in line] == shown
    of = round(every_s / 5) if 5 < every_s < math.inf else 1
    assert lines[1] == "step 0: s, about 1m40s" + (f"; 1 subinterval of {of} is shown" if of > 1 else "")


def test_how_many_are_shown_is_said_once_and_only_where_the_step_has_so_many() -> None:
    lines = TextLines(lambda line: None, lambda: MIDDLE, 10.0)
    short, long = StepBegins(0, "s", 3, 9.0, 60.0, 5.0), StepBegins(1, "s", 3, 60.0, 60.0, 5.0)
    said = ["shown" in line for line in written_by(lines, [short, long, short, long]) if line]
    assert said == [False, True, False, False]
    endless = replace(long, planned_s=0.0)
    assert "shown" in written_by(TextLines(lambda line: None, every_s=10.0), [endless])[1]


def test_news_of_control_are_said_when_they_change() -> None:
    lines = written_by(TextLines(lambda line: None, lambda: MIDDLE), numbered(range(6), lambda n: f"level {n // 3}"))
    assert [line.strip() for line in lines if "level" in line] == ["level 0", "level 1"]


@pytest.mark.parametrize(("every_s", "told"), [(10.0, ["at 1", "at 2"]), (math.inf, ["at 2"])])
def test_the_last_news_of_a_step_are_said_at_its_end_if_no_line_had_them(every_s: float, told: list[str]) -> None:
    """On a terminal none had: they stood below the bars."""
    shown = TextLines(lambda line: None, lambda: MIDDLE, every_s)
    ends = StepEnds(0, "s", Verdict.VALID, (), (standing_for(()),))
    lines = written_by(shown, [*numbered(range(3), lambda n: f"at {n}"), ends])
    assert [line.strip() for line in lines if " at " in line] == told and "step 0 s: valid" in lines[-1]
    assert not any(" at " in line for line in written_by(shown, [ends])), "once"


@pytest.mark.parametrize("wrong", [{"hosts_in": 0}, {"figures": {"errors": 3.0}}])
def test_where_hosts_are_missing_or_ios_fail_a_line_says_so_at_once(wrong: dict[str, Any]) -> None:
    """And once for as long as it goes on."""
    begins, *reports = numbered(range(10))
    bad = [replace(one, **wrong) if number in (2, 3, 6) else one for number, one in enumerate(reports)]
    lines = written_by(TextLines(lambda line: None, lambda: MIDDLE, 25.0), [begins, *bad])
    assert [int(line.split()[2]) for line in lines if " run " in line] == [2, 4, 6, 9]


def test_how_a_step_was_set_up_is_said_in_detail_only() -> None:
    chosen = EventLine("2026-01-01T12:00:30.000Z", "h", "backend auto is libaio", NoticeKind.BACKEND_CHOSEN)
    lost = replace(chosen, text="lost", kind="lost")
    assert written_by(TextLines(lambda line: None), [chosen, lost]) == ["12:00:30  h: lost"]
    assert len(written_by(TextLines(lambda line: None, in_detail=True), [chosen, lost])) == 2


LATE = Finding(Reason.GENERATOR_LATE, "34% of the mean", Severity.INVALID)
BUSY = Finding(
    Reason.CPU_CONTENTION, "h1: and more", Severity.NOTE, cause="other processes used 61 % of this host's CPU"
)
FEWER = Finding(Reason.TOO_FEW_SUBINTERVALS, "6")
NOTES = (FEWER, BUSY, Finding(Reason.EDITED, "by me"), Finding(Reason.EAGAIN, "5"), LATE)


MEASURED = {
    "overall_iops": 450.0,
    "overall_iops_half_width": 0.45,
    "overall_mib_per_s": 2.0,
    **{
        f"overall_{time}_us_{name}": us
        for time, mean in (("service", 36.6), ("response", 50.5))
        for name, us in {"mean": mean, "p50": 32.0, "p99": 140.0, "p99_9": 1000.0, "max": 4043.0}.items()
    },
}


MISSED = Finding(Reason.SLO_MISSED, "overall_iops at most 1: 5", Severity.FAILED)
SAID_OF_MISSED = "a threshold was missed (overall_iops at most 1: 5)"
BRACKETS = f"{DISCREDITED}response times: other processes used 61 % of this host's CPU"


def standing_for(
    findings: tuple[Finding, ...], cause: str = "", figures: dict[str, float] | None = None
) -> MeasurementRow:
    """Of an invalid step, where there are findings."""
    verdict = Verdict.INVALID if findings else Verdict.VALID
    return MeasurementRow("s", verdict, Verdict.VALID, Verdict.VALID, Verdict.VALID, findings, cause, figures or {})


LOST = Finding(Reason.HOST_LOST, "b: gone")
UNSTEADY = Finding(Reason.STEADY_NOT_REACHED, "20 % of 5 %")
UNWRITTEN = Finding(Reason.UNWRITTEN_BLOCKS, "all", Severity.INVALID)


@pytest.mark.parametrize(
    ("findings", "cause", "why"),
    [
        ((UNWRITTEN, LOST), "", "blocks were read that had never been written (all); also a host was lost"),
        ((LATE, BUSY), BUSY.cause, BUSY.cause),
        ((LATE, LOST, BUSY), BUSY.cause, f"{BUSY.cause}; also a host was lost"),
        (
            (UNSTEADY, BUSY),
            BUSY.cause,
            f"no steady state was reached (20 % of 5 %), most likely because {BUSY.cause}",
        ),
        ((MISSED, LOST), f"a host was lost: {LOST.detail}", f"{SAID_OF_MISSED}; also a host was lost: {LOST.detail}"),
        ((), "", ""),
    ],
)
def test_what_has_a_remedy_of_its_own_is_named_too(findings: tuple[Finding, ...], cause: str, why: str) -> None:
    assert why_of(standing_for(findings, cause)) == why


def test_what_a_search_found_is_said_with_its_verdict() -> None:
    found = Finding(Reason.SEARCH_FOUND, "p99 <= 3 ms at 1.63 k IOPS (1.48 to 1.69 k, 95 %)")
    assert words_of(standing_for((found,))) == found.detail
    assert words_of(standing_for((LOST, found))) == f"{found.detail}; a host was lost ({LOST.detail})"
    assert words_of(standing_for((LOST,))) == why_of(standing_for((LOST,)))


def ended(name: str, *findings: Finding, cause: str = "") -> StepEnds:
    row = replace(standing_for(findings, cause), name=name)
    return StepEnds(0, name, row.verdict, findings, (row,))


@pytest.mark.parametrize(
    ("steps", "sentence"),
    [
        ((), ""),
        ((ended("a"),), "The step is valid."),
        ((ended("a"), ended("b")), "All steps are valid."),
        ((ended("a", LOST),), "a: a host was lost."),
        ((ended("a"), ended("b", LOST)), "1 of 2 steps is valid. b: a host was lost."),
        (
            (ended("a", LATE, BUSY, cause=BUSY.cause), ended("b", LATE, BUSY, cause=BUSY.cause), ended("c", LOST)),
            f"None of 3 steps are valid. a, b: {BUSY.cause}. c: a host was lost.",
        ),
        (
            (ended("a", UNWRITTEN, LATE, LOST),),
            f"a: {Reason.UNWRITTEN_BLOCKS.short} and 2 more reasons.",
        ),
        (
            (ended("a", UNWRITTEN), ended("b", UNWRITTEN, LOST)),
            f"None of 2 steps are valid. a, b: {Reason.UNWRITTEN_BLOCKS.short} and up to 1 more reason.",
        ),
        (tuple(ended(name, LOST) for name in "abcd"), "None of 4 steps are valid. a, b and 2 more: a host was lost."),
        ((replace(ended("a", BUSY, cause=BRACKETS), verdict=Verdict.VALID),), f"The step is valid. a: {BRACKETS}."),
    ],
)
def test_a_run_is_said_in_one_sentence(steps: tuple[StepEnds, ...], sentence: str) -> None:
    assert run_sentence(steps, is_whole=True) == sentence


def measured_in_part(name: str) -> StepEnds:
    row = replace(standing_for((Finding(Reason.SHORTENED),), figures={IOPS: 9.0}), name=name)
    return StepEnds(0, name, Verdict.PARTIAL, row.findings, (row,))


IN_PART = replace(ended("c", LOST), verdict=Verdict.PARTIAL)


@pytest.mark.parametrize(
    ("code", "steps", "sentence"),
    [
        (ExitCode.OK, (ended("a"),), "Every step is valid, no threshold was missed."),
        (
            ExitCode.OK,
            (ended("a"), replace(ended("b", cause=BRACKETS), verdict=Verdict.VALID)),
            "Every step is valid, no threshold was missed; do not use the figures in brackets.",
        ),
        (
            ExitCode.INVALID,
            (ended("a"), ended("b", UNWRITTEN), IN_PART),
            "Step 0 b is invalid. What now: ivypy help invalid",
        ),
        (
            ExitCode.INVALID,
            (ended("a", UNWRITTEN), ended("b", UNWRITTEN)),
            "Steps 0 a, 0 b are invalid. What now: ivypy help invalid",
        ),
        (
            ExitCode.PARTIAL,
            (ended("a"), IN_PART),
            "Step 0 c is partial: cut short, or a host or device was lost.",
        ),
        (ExitCode.PARTIAL, (ended("a"),), ExitCode.PARTIAL.sentence),
        (ExitCode.SLO_MISSED, (ended("a", UNWRITTEN),), ExitCode.SLO_MISSED.sentence),
        (ExitCode.INTERRUPTED, (measured_in_part("a"),), ExitCode.INTERRUPTED.sentence),
        *(
            (ExitCode.INTERRUPTED, steps, "Interrupted by Ctrl-C, a signal or `ivypy stop`; nothing was measured.")
            for steps in ((), (ended("a", Finding(Reason.INTERRUPTED)),))
        ),
    ],
)
def test_the_last_sentence_of_a_run_names_the_steps_that_it_is_about(
    code: ExitCode, steps: tuple[StepEnds, ...], sentence: str
) -> None:
    assert ending_of(code, steps) == sentence


@pytest.mark.parametrize(
    ("steps", "rest"),
    [((measured_in_part("a"),), "the results so far are written."), ((), "nothing was measured.")],
)
def test_the_last_sentence_names_what_interrupted_the_run(steps: tuple[StepEnds, ...], rest: str) -> None:
    assert ending_of(ExitCode.INTERRUPTED, steps, "SIGTERM") == f"Interrupted by SIGTERM; {rest}"
    assert ending_of(ExitCode.PARTIAL, steps, "SIGTERM") == ending_of(ExitCode.PARTIAL, steps)


def test_of_a_run_that_was_cut_off_only_the_steps_that_ended_are_valid() -> None:
    assert run_sentence((ended("a"),), is_whole=False) == "The step that ended is valid."
    assert run_sentence((ended("a"), ended("b")), is_whole=False) == "All steps that ended are valid."
    lost = run_sentence((ended("a"), ended("b", LOST)), is_whole=False)
    assert lost == "1 of 2 steps that ended is valid. b: a host was lost."


def test_only_figures_that_are_there_can_be_used() -> None:
    figures = {"overall_iops": 5.0, "overall_service_us_p99": 7.0}
    assert advice_lines(standing_for((UNWRITTEN,), "", figures), set())[0] == "its IOPS and service times can be used"
    assert advice_lines(standing_for((UNWRITTEN,)), set()) == [UNWRITTEN.reason.remedy]


@pytest.mark.parametrize(
    ("verdict", "findings", "why", "advice"),
    [
        (Verdict.VALID, (), "", []),
        (Verdict.VALID, (BUSY,), BRACKETS, []),
        (Verdict.FAILED, (MISSED,), SAID_OF_MISSED, [BRACKETS, MISSED.reason.remedy]),
    ],
)
def test_a_verdict_says_what_decides_it_and_then_which_figures_not_to_use(
    verdict: Verdict, findings: tuple[Finding, ...], why: str, advice: list[str]
) -> None:
    cause = BRACKETS if findings else ""
    row = MeasurementRow("s", verdict, Verdict.VALID, Verdict.VALID, Verdict.INVALID, findings, cause, MEASURED)
    assert (why_of(row), advice_lines(row, set())) == (why, advice)
    assert advice_lines(row, {remedy for remedy in advice}) == [line for line in advice if line == BRACKETS]


@pytest.mark.parametrize(
    ("of_each", "counted"),
    [([(LATE,)], []), ([(LATE,), (LATE,)], []), ([(LATE,), (LATE, BUSY)], ["1 reason and 1 note:"])],
)
def test_reasons_that_stand_there_whole_are_not_offered_again(
    of_each: list[tuple[Finding, ...]], counted: list[str]
) -> None:
    invalid = Verdict.INVALID
    rows = [MeasurementRow("half", invalid, invalid, invalid, invalid, some, "", MEASURED) for some in of_each]
    lines = steps_table([StepEnds(at, "half", invalid, row.findings, (row,)) for at, row in enumerate(rows)], MIDDLE)
    assert [line for line in lines if line.endswith(":")] == counted
    assert any(LATE.detail in line for line in lines)


@pytest.mark.parametrize("width", [*OF_MEASUREMENT])
def test_partial_figures_stand_in_parentheses_above_the_hosts_that_they_are_of(width: int) -> None:
    partial, valid = Verdict.PARTIAL, Verdict.VALID
    row = MeasurementRow("half", partial, partial, partial, partial, (), "", MEASURED, 1, 3)
    whole = replace(row, verdict=valid, rate_verdict=valid, service_verdict=valid, response_verdict=valid, hosts_in=3)
    lines = steps_table((StepEnds(1, "half", partial, (), (row,)), StepEnds(2, "all", valid, (), (whole,))), width)
    part, missing, figures = lines[1:4] if width == NARROWEST else lines[2:5]
    assert part.split()[2:4] == ["partial", "(450)"] and ("(140 us)" in part or width == NARROWEST)
    assert all(len(line) <= width for line in (part, missing)) and missing.split() == "of 1 of 3 hosts".split()
    assert figures.split()[2:4] == ["valid", "450"] and "(" not in figures


def test_the_cause_comes_first_and_then_what_to_do() -> None:
    verdicts = (Verdict.INVALID, Verdict.VALID, Verdict.VALID, Verdict.INVALID)
    rates = {"overall_iops": 30_604.0, "overall_iops_half_width": 153.0, "overall_mib_per_s": 119.5}
    row = MeasurementRow("half", *verdicts, by_weight(NOTES, ALL), cause_of(NOTES, ALL), {**MEASURED, **rates})
    ends = StepEnds(1, "half", Verdict.INVALID, NOTES, (row,))
    why = "step 1 half: invalid: other processes used 61 % of this host's CPU"
    figures = "30.6 k IOPS, service p99 140 us, response p99 [140 us]"
    assert verdict_lines(ends) == [why.replace("invalid", f"invalid, {figures}")]
    assert steps_table((ends,), MIDDLE, "runs/a b")[-6:] == [
        "",
        why,
        "  its IOPS and service times can be used",
        f"  {Reason.CPU_CONTENTION.remedy}",
        "1 reason and 4 notes:",
        "  ivypy show --reasons 'runs/a b'",
    ]
    assert reason_lines(ends)[:4] == [
        why,
        "  generator_late[invalid] (34% of the mean)",
        f"    {Reason.CPU_CONTENTION.remedy}",
        "  cpu_contention[note] (h1: and more)",
    ]
    again = reason_lines(ends, replace(ends, number=2))
    assert again[:2] == ["all measurements", "  cpu_contention[note] (h1: and more)"]
    assert [line for line in again if line.startswith("step")] == [why, why.replace("step 1", "step 2")]
    assert sorted(line for line in again if line.startswith("  ") and "[note]" in line) == sorted(
        f"  {finding}" for finding in NOTES if finding.severity is Severity.NOTE
    ), "each once"
    assert len({line for line in again if line.startswith("    ")}) == sum(line.startswith("    ") for line in again)
    assert steps_table((ends, replace(ends, number=2)), MIDDLE)[-2] == "1 reason and 4 notes:"
    by_width = {width: steps_table((ends,), width)[2].split() for width in OF_MEASUREMENT}
    by_width[NARROWEST] = steps_table((ends,), NARROWEST)[1].split()  # without times no head above the columns
    assert by_width == {
        40: "1 half invalid 30.6 k".split(),
        60: "1 half invalid 30.6 k | 140 us | [140 us]".split(),
        80: "1 half invalid 30.6 k 0.5% | 36.6 us 140 us | [140 us]".split(),
        120: "1 half invalid 30.6 k 0.5% 120 | 36.6 us 140 us 4.04 ms | [50.5 us] [140 us]".split(),
        160: (
            "1 half invalid 30.6 k 0.5% 120 | 36.6 us 32.0 us 140 us 1.00 ms 4.04 ms"
            " | [50.5 us] [140 us] [1.00 ms] [4.04 ms]"
        ).split(),
    }


SLO = "slo: { metric: overall_response_us_mean, at_most: 400us }"
PRESENT = "overall_response_us_mean at most 400 us: now 501 us"
PID = "control: { pid: { metric: overall_response_us_mean, target: 1ms, low_iops: 200, high_iops: 1900 } }"
SAYS: list[tuple[str, list[str]]] = [
    (SLO, ["measured 1 of 6 subintervals", PRESENT]),
    (f"measure: {{ metric: overall_iops }}, {SLO}", ["overall_iops: 1 of 12 subintervals", PRESENT]),
    (
        f"{PID}, {SLO}",
        ["overall_response_us_mean of all ", "measured ", "overall_response_us_mean at most 400 us: now "],
    ),
    (
        "measure: 10s, staircase: { start: 1000, end: 2000, step: 1000 }",
        ["level 0: total_iops=1000", "measured 1 of 2"],
    ),
]


@pytest.mark.parametrize(("go", "says"), SAYS, ids=["slo", "measure and slo", "pid and slo", "staircase"])
def test_each_check_of_a_metric_is_shown_in_line_json_and_status(tmp_path: Path, go: str, says: list[str]) -> None:
    """What steers, what judges, each threshold: in the line, in the JSON, and in `ivypy status`."""
    slaves = {name: SimulatedSlave(name, plant=queue(2000.0, 500_000)) for name in "abc"} if "pid" in go else hosts()
    statuses: list[list[str]] = []

    async def visit(run: Run, staged: SimulatedRun) -> None:
        while run.api.running is not None:
            await asyncio.sleep(5.0)
            statuses.append(TextLines(lambda line: None).lines(run.api.standing()))

    staged = stage(tmp_path, visit, ONE_STEP.replace("go: one", f"go: {{ name: one, {go} }}"), slaves)
    seen = subintervals(staged)
    found = [
        report
        for report in seen
        if len(report.messages) == len(says) and all(map(str.startswith, report.messages, says))
    ]
    assert found, [report.messages for report in seen]
    said = [f"{'':9}{words}" for words in found[0].messages]
    assert any(set(said) <= set(lines) for lines in statuses), statuses[:4]
    assert TextLines(lambda line: None, in_detail=True).lines(found[0])[-len(said) :] == said
    lines: list[str] = []
    JsonLines(lines.append).show(found[0])
    assert json.loads(lines[0])["messages"] == list(found[0].messages)
    if "pid" in go:
        assert " from its target of 1 ms, at " in found[0].messages[0]
