"""JUnit's XML of a run: what CI shows as passed, as failure, and as error."""

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from ivypy.master.cli.commands import cli
from ivypy.master.cli.results import begin_junit, write_junit
from ivypy.master.errors import PlanError
from ivypy.master.exit_codes import ExitCode, code_of
from ivypy.master.results.checked_files import read_record
from ivypy.master.results.junit import ERROR, FAILURE, cases_of, junit_of
from ivypy.master.results.measured_rows import MeasuredSteps
from ivypy.master.results.run_entries import RunState, entry_of
from ivypy.master.run.session.run import Run
from ivypy.master.summary.measured import StepEnds
from ivypy.master.verdicts import Finding, Reason, Scope, Severity, Verdict
from tests.results.test_run_entries import START, a_run
from tests.support.real_runs import ivypy
from tests.support.simulated.runs import ONE_STEP, SimulatedRun, controlled, stage
from tests.support.simulated.slave import Faults, steady

FAST, SLOW = "p99 at most 1 ms", "p99 at most 5 ms"
MISSED = Finding(Reason.SLO_MISSED, f"{FAST}: 2.1 ms of all=all", Severity.FAILED)
BLANK = Finding(Reason.SLO_MISSED, f"{FAST}: blank", Severity.INVALID)
LATE = Finding(Reason.GENERATOR_LATE, "34% of the mean", Severity.INVALID)
NOTE = Finding(Reason.TOO_FEW_SUBINTERVALS, "3")
LOST = Finding(Reason.HOST_LOST, "h1")
NEVER_MET = Finding(Reason.SEARCH_NEVER_MET, "9 %")


@pytest.mark.parametrize(
    ("verdict", "findings", "kinds"),
    [  # of the step, of the threshold of 1 ms, of that of 5 ms
        (Verdict.VALID, (NOTE,), ["", "", ""]),
        (Verdict.VALID, (LATE,), ["", "", ""]),  # of figures that the step was not for
        (Verdict.FAILED, (MISSED,), ["", FAILURE, ""]),
        (Verdict.FAILED, (NEVER_MET,), [FAILURE, "", ""]),
        (Verdict.FAILED, (NEVER_MET, MISSED), [FAILURE, FAILURE, ""]),
        (Verdict.INVALID, (LATE, MISSED), [ERROR, ERROR, ERROR]),  # nothing is known of either threshold
        (Verdict.INVALID, (BLANK,), ["", ERROR, ERROR]),
        (Verdict.PARTIAL, (LOST,), [ERROR, "", ""]),
        (Verdict.FAILED, (LOST, MISSED), [ERROR, FAILURE, ""]),  # of the hosts that are left, and the storage's
        (Verdict.FAILED, (LOST, NEVER_MET), [ERROR, "", ""]),
    ],
)
def test_a_failure_is_the_storages_and_an_error_is_not(
    verdict: Verdict, findings: tuple[Finding, ...], kinds: list[str]
) -> None:
    cases = cases_of(StepEnds(0, "half", verdict, findings, ()), [FAST, SLOW])
    assert [case.name for case in cases] == ["half", f"half: {FAST}", f"half: {SLOW}"]
    assert [case.kind for case in cases] == kinds
    assert all(bool(case.message) == bool(case.kind) for case in cases)


DELAYED = Finding(Reason.REAP_DELAY, "60% of the p99", Severity.INVALID)
ALL_INVALID = Finding(Reason.CPU_CONTENTION, "97 %", Severity.INVALID)
RATE, SERVICE = "overall_iops at least 1000", "read_service_us_p99 at most 1 ms"


@pytest.mark.parametrize(
    ("findings", "kinds"),
    [  # of the step, of the threshold of a rate, of that of a service time
        ((DELAYED,), [ERROR, "", ERROR]),
        (
            (DELAYED, Finding(Reason.SLO_MISSED, f"{RATE}: 3 of all=all", Severity.FAILED, about=Scope.RATE)),
            [ERROR, FAILURE, ERROR],
        ),
        ((DELAYED, Finding(Reason.SLO_MISSED, f"{RATE}: blank", Severity.INVALID)), [ERROR, ERROR, ERROR]),
        ((ALL_INVALID,), [ERROR, ERROR, ERROR]),
        ((ALL_INVALID, DELAYED), [ERROR, ERROR, ERROR]),
        ((LATE,), [ERROR, "", ""]),
    ],
)
def test_a_threshold_of_a_figure_that_is_valid_is_judged_in_a_step_that_is_not(
    findings: tuple[Finding, ...], kinds: list[str]
) -> None:
    cases = cases_of(StepEnds(0, "half", Verdict.INVALID, findings, ()), [RATE, SERVICE])
    assert [case.kind for case in cases] == kinds
    assert (code_of([findings]) is ExitCode.SLO_MISSED) == (FAILURE in kinds), "a run exits as its file says"


def missed(detail: str) -> Finding:
    return Finding(Reason.SLO_MISSED, detail, Severity.FAILED)


@pytest.mark.parametrize("of", ["", "total_iops=500: "])
def test_each_threshold_has_the_misses_of_its_own(of: str) -> None:
    """The words of one may be within those of another."""
    read, longer = "read_service_us_p99 at most 1 ms", "random_read_service_us_p99 at most 1 ms"
    misses = tuple(missed(f"{of}{longer}: 2 ms of {host}") for host in ("a", "b"))
    of_step, of_read, of_longer = cases_of(StepEnds(0, "half", Verdict.FAILED, misses, ()), [read, longer])
    assert (of_step.kind, of_read.kind, of_longer.kind) == ("", "", FAILURE)
    assert of_longer.message.splitlines() == [one.detail for one in misses]


@pytest.mark.parametrize(
    ("threshold", "amount", "shown"),
    [
        ("overall_iops at least 5000", "99.9961", "99.9961 IOPS"),
        ("overall_iops at least 5e+06", "1e+06 of host=a", "1e+06 IOPS of host=a"),
        ("overall_iops at least 5000", "blank", "blank"),
        ("errors at most 0", "3 of host=a", "3 I/Os of host=a"),
        ("read_mib_per_s at least 10 MiB/s", "0.4 MiB/s", "0.4 MiB/s"),
        ("read_service_us_p99 at most 1 ms", "2 ms", "2 ms"),
    ],
)
def test_figures_have_their_unit(threshold: str, amount: str, shown: str) -> None:
    words = f"total_iops=500: {threshold}: "
    _, case = cases_of(StepEnds(0, "a: b", Verdict.FAILED, (missed(words + amount),), ()), [threshold])
    assert case.message == words + shown


def test_a_repeated_step_has_the_name_of_its_first_attempt() -> None:
    cases = cases_of(StepEnds(3, "half+attempt=2", Verdict.VALID, (), ()), [FAST])
    assert [case.name for case in cases] == ["half", f"half: {FAST}"]


def suite(file: Path) -> ElementTree.Element:
    (found,) = ElementTree.parse(file).getroot()
    return found


def test_a_miss_is_said_also_where_the_step_is_invalid() -> None:
    _, fast, slow = cases_of(StepEnds(0, "half", Verdict.INVALID, (LATE, MISSED), ()), [FAST, SLOW])
    assert fast.message.splitlines() == [MISSED.detail, str(LATE)] and slow.message == str(LATE)


def test_a_run_that_did_not_end_is_an_error(tmp_path: Path) -> None:
    """Though each step that did is valid."""
    folder = a_run(tmp_path, "r-20260101T120000Z", ended=False, verdicts="valid")
    ends = StepEnds(0, "s0", Verdict.VALID, (), ())
    for entry in (entry_of(folder, START), replace(entry_of(folder, START), state=RunState.ENDED)):
        text = junit_of(entry, MeasuredSteps("all", (ends,)), read_record(folder), "")
        (found,) = ElementTree.fromstring(text)
        assert (found.get("errors") == "1") == (entry.state is not RunState.ENDED)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (ExitCode.OK, ""),
        (ExitCode.INTERRUPTED, "Interrupted by Ctrl-C"),
        (ExitCode.PARTIAL, "cut short"),  # no host was left for the next step
        (ExitCode.INTERNAL, "ivypy itself failed"),
    ],
)
def test_a_run_that_ended_early_is_an_error_though_each_step_that_ended_is_valid(
    tmp_path: Path, code: ExitCode, said: str
) -> None:
    folder = a_run(tmp_path, "r-20260101T120000Z", verdicts="valid")
    entry = replace(entry_of(folder, START), exit_code=int(code))
    ends = StepEnds(0, "s0", Verdict.VALID, (), ())
    (found,) = ElementTree.fromstring(junit_of(entry, MeasuredSteps("all", (ends,)), read_record(folder), ""))
    messages = [error.get("message", "") for error in found.iter("error")]
    assert len(messages) == (code is not ExitCode.OK) and said in "".join(messages)
    lost = replace(ends, verdict=Verdict.PARTIAL, findings=(LOST,))
    (found,) = ElementTree.fromstring(junit_of(entry, MeasuredSteps("all", (lost,)), read_record(folder), ""))
    assert int(found.get("errors", "")) == 1 + (code not in (ExitCode.OK, ExitCode.PARTIAL)), "each once"


@pytest.mark.parametrize(
    ("planned", "skipped"),
    [
        (None, []),  # of an earlier version, or a program
        (["s0", "s1", "s2"], ["s1", "s2"]),
        (["s0"], []),
    ],
)
@pytest.mark.parametrize("state", RunState)
def test_planned_steps_that_never_began_are_skipped(
    tmp_path: Path, planned: list[str] | None, skipped: list[str], state: RunState
) -> None:
    folder = a_run(tmp_path, "r-20260101T120000Z", verdicts="valid")
    entry = replace(entry_of(folder, START), state=state, exit_code=int(ExitCode.INTERRUPTED))
    record = read_record(folder) | ({} if planned is None else {"planned_steps": planned})
    for steps in ((StepEnds(0, "s0", Verdict.VALID, (), ()),), ()):
        (found,) = ElementTree.fromstring(junit_of(entry, MeasuredSteps("all", steps), record, "why"))
        assert [case.get("name") for case in found if case.find("skipped") is not None] == skipped
        assert (found.get("errors"), found.get("skipped")) == ("1", str(len(skipped)))


def test_a_planned_step_that_was_repeated_began(tmp_path: Path) -> None:
    folder = a_run(tmp_path, "r-20260101T120000Z", verdicts="invalid,valid")
    record = read_record(folder)
    record["steps"][1]["name"] = "s0+attempt=2"
    ends = StepEnds(1, "s0+attempt=2", Verdict.VALID, (), ())
    text = junit_of(entry_of(folder, START), MeasuredSteps("all", (ends,)), record | {"planned_steps": ["s0"]}, "")
    assert ElementTree.fromstring(text)[0].get("tests") == "1"


@pytest.mark.parametrize(
    ("detail", "text"), [("", Reason.INTERRUPTED.short), ("total_iops=5", f"{Reason.INTERRUPTED.short} (total_iops=5)")]
)
def test_an_interrupted_step_has_the_sentence_of_the_console(detail: str, text: str) -> None:
    (case,) = cases_of(StepEnds(0, "half", Verdict.INVALID, (Finding(Reason.INTERRUPTED, detail),), ()), [])
    assert (case.kind, case.message) == (ERROR, text)


def test_a_run_in_which_no_step_ended_is_one_error(tmp_path: Path) -> None:
    folder = a_run(tmp_path, "first-20260101T120000Z")
    write_junit(tmp_path / "x.xml", folder)
    found = suite(tmp_path / "x.xml")
    assert (found.get("tests"), found.get("errors"), found.get("failures")) == ("1", "1", "0")
    assert (found.get("timestamp"), found.get("time")) == ("2026-01-01T12:00:00", "95.000")
    (error,) = found[0]
    assert (found[0].get("classname"), error.tag) == ("first", ERROR) and "without results" in error.get("message", "")


THRESHOLDS = ONE_STEP.replace(
    "go: one",
    "go: { name: slow, slo: [ { metric: overall_iops, at_most: 1 }, { metric: overall_iops, at_least: 1 } ] }, go: two",
)


async def nobody(run: Run, staged: SimulatedRun) -> None:
    """Nobody does anything while it runs."""


@pytest.mark.slow
def test_the_thresholds_of_a_run_are_cases(tmp_path: Path) -> None:
    staged = stage(tmp_path, nobody, THRESHOLDS)
    assert read_record(staged.folder)["planned_steps"] == ["slow", "two"]
    write_junit(tmp_path / "x.xml", staged.folder)
    found = suite(tmp_path / "x.xml")
    assert [(case.get("name"), [child.tag for child in case]) for case in found] == [
        ("slow", []),
        ("slow: overall_iops at most 1", [FAILURE]),
        ("slow: overall_iops at least 1", []),
        ("two", []),
    ]
    assert (found.get("tests"), found.get("failures"), found.get("errors")) == ("4", "1", "0")
    assert "overall_iops at most 1: " in found[1][0].get("message", "")


@pytest.mark.slow
@pytest.mark.parametrize("die_at", [3, 20])  # before the measurement, and in it
def test_the_share_of_a_lost_host_is_no_failure_of_the_storage(tmp_path: Path, die_at: int) -> None:
    """Three hosts have 500 IOPS each: two of them cannot reach 1400."""
    go = "subinterval: 1s, warmup: 5s, measure: 30s, slo: [ { metric: overall_iops, at_least: 1400 } ]"
    done = controlled(tmp_path, go, steady(), iops="500", hosts="a, b, c", faults={"b": Faults(die_at=die_at)})
    (row,) = done.rows("summary.all.csv")
    assert (row["overall_iops"], row["hosts_in"], row["rate_verdict"]) == ("1000", "2", "partial")
    assert (row["verdict"], done.code) == ("invalid", 8)
    write_junit(tmp_path / "x.xml", done.folder)
    step, threshold = suite(tmp_path / "x.xml")
    assert [one.tag for one in (*step, *threshold)] == [ERROR, ERROR]
    assert "2 of 3 hosts" in (step[0].text or "") and "host_lost" in (step[0].text or "")
    assert threshold[0].get("message") == "overall_iops at least 1400: 1000 IOPS, which is of 2 of 3 hosts"


PLAN_TEXT = "name: p\n"
PLAN_OF_NO_FOLDER = """\
hosts: [ local ]
luns: { create: { path: "FOLDER/x", size: 16MiB } }
workloads: { w: { iops: max } }
steps: [ go: a ]
"""


def refused_run(tmp_path: Path, junit: Path) -> str:
    """What a run says whose plan cannot be read."""
    (tmp_path / "p.yaml").write_text("name: [")
    done = CliRunner().invoke(cli, ["run", str(tmp_path / "p.yaml"), "--junit", str(junit)], standalone_mode=False)
    assert isinstance(done.exception, PlanError)
    return str(done.exception)


@pytest.mark.slow
def test_a_run_that_measured_nothing_says_what_the_console_said(tmp_path: Path) -> None:
    text = PLAN_OF_NO_FOLDER.replace("FOLDER", str(tmp_path / "none"))
    (tmp_path / "p.yaml").write_text(text)
    words = ["run", str(tmp_path / "p.yaml"), "-o", str(tmp_path / "runs"), "--junit", str(tmp_path / "x.xml")]
    done = ivypy(*words, "--ui", "none")
    (error,) = suite(tmp_path / "x.xml")[0]
    assert (error.tag, f"{error.text}\n") == (ERROR, done.stderr) and "there is no folder" in done.stderr


def test_a_run_that_is_refused_leaves_no_earlier_ones_result(tmp_path: Path) -> None:
    """Else CI would show last night's."""
    write_junit(tmp_path / "x.xml", a_run(tmp_path, "first-20260101T120000Z", verdicts="valid"))
    refused_run(tmp_path, tmp_path / "x.xml")
    found = suite(tmp_path / "x.xml")
    assert (found.get("name"), found.get("tests"), found.get("errors")) == ("p", "1", "1")
    assert "p.yaml:1:8: not YAML" in found[0][0].get("message", "")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("no/x.xml", "there is no folder .*; make it first"),
        ("other.yaml", "a file that is no JUnit XML; name another"),
        ("pom.xml", "a file that is no JUnit XML; name another"),
        ("short.xml", "a file that is no JUnit XML; name another"),
    ],
)
def test_a_file_that_is_not_its_own_is_refused_before_the_run(tmp_path: Path, name: str, said: str) -> None:
    texts = {
        "other.yaml": PLAN_TEXT,
        "pom.xml": '<?xml version="1.0"?>\n<project><!-- <testsuites> --></project>\n',
        "short.xml": "<?xml",
    }
    for file, text in texts.items():
        (tmp_path / file).write_text(text)
    with pytest.raises(PlanError, match=said):
        begin_junit(tmp_path / name, "p.yaml")
    assert {file: (tmp_path / file).read_text() for file in texts} == texts


def test_a_file_of_junits_xml_or_an_empty_one_is_replaced(tmp_path: Path) -> None:
    for text in ("", '<?xml version="1.0"?>\n\n<testsuites></testsuites>', "<testsuites/>"):
        (tmp_path / "x.xml").write_text(text)
        begin_junit(tmp_path / "x.xml", "p.yaml")
        assert suite(tmp_path / "x.xml").get("name") == "p", text
