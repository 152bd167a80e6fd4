"""The result of `ivypy quick`: a few lines that fit a terminal of 80 columns."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivypy.master.cli.quick_result import STATISTICS, driven, result_lines
from ivypy.master.live.reports import RunEnds
from ivypy.master.summary.headline import NARROW, NARROWEST, SLIM
from ivypy.master.summary.measured import MeasurementRow, StepEnds
from ivypy.master.verdicts import Finding, Reason, Severity, Verdict

NOTHING = {"name": "rate"}  # of a row without figures
LUN = {"host": "local", "path": "/dev/sdb", "size": str(1 << 40)}


def measurement(
    verdict: Verdict = Verdict.VALID, name: str = "rate", findings: tuple[Finding, ...] = ()
) -> MeasurementRow:
    figures = {"overall_iops": 42_100.0, "overall_service_us_mean": 130.0}
    return MeasurementRow(name, verdict, verdict, verdict, verdict, findings, "", figures)


def ends(*measured: MeasurementRow) -> RunEnds:
    steps = tuple(StepEnds(n, one.name, one.verdict, one.findings, (one,)) for n, one in enumerate(measured))
    return RunEnds("runs/quick-20260101T000000Z", steps, 0, "Every step is valid, no threshold was missed.")


def row(kinds: tuple[str, ...], iops: float, us: float, response: bool) -> dict[str, str]:
    found = {"name": "rate"}
    for kind in kinds:
        found |= {f"{kind}_iops": str(iops), f"{kind}_mib_per_s": str(iops / 256)}
        for times in ("service", "response") if response else ("service",):
            found |= {f"{kind}_{times}_us_{one}": str(us) for one in STATISTICS[NARROW]}
    return found


def test_reads_of_one_device() -> None:
    lines = result_lines("randread 4KiB", ends(measurement()), [row(("read",), 61_234.0, 129.5, False)], [LUN])
    assert lines == [
        "randread 4KiB, on /dev/sdb (1.00 TiB)",
        "",
        "             IOPS         rate      mean       p50       p99     p99.9       max",
        "read       61.2 k    239 MiB/s    130 us    130 us    130 us    130 us    130 us",
        "",
        "valid",
        "runs/quick-20260101T000000Z",
    ]


def test_the_step_before_is_one_line_and_discredited_figures_are_marked() -> None:
    late = Finding(Reason.GENERATOR_LATE, "89% of the mean", Severity.INVALID)
    lines = result_lines(
        "h", ends(measurement(name="max"), measurement(Verdict.INVALID, findings=(late,))),
        [{"name": "max"}, row(("read", "write"), 9000.0, 4470.0, True)], [LUN],
    )  # fmt: skip
    text = "\n".join(lines)
    assert "max: 42.1 k IOPS, mean 130 us (valid)" in lines
    assert "[9.00 k]" in text and text.count("[4.47 ms]") == 20
    at = lines.index("invalid: I/Os were issued late by the test host (89% of the mean)")
    assert lines[at + 1].startswith("  Give the workload threads their own cores") and "note" not in "".join(lines[at:])


def test_of_several_measurements_the_one_that_the_step_stands_for_is_shown() -> None:
    below, above = replace(measurement(name="rate"), stands=True), measurement(Verdict.INVALID, name="too high")
    climbed = RunEnds("runs/quick", (StepEnds(0, "climb", Verdict.INVALID, (), (below, above)),), 0, "")
    rows = [row(("read",), 61_234.0, 129.5, False), {"name": "too high", "read_iops": "99999"}]
    lines = result_lines("h", climbed, rows, [LUN])
    assert any(line.startswith("read       61.2 k") for line in lines) and "valid" in lines


@pytest.mark.parametrize("rows", [[NOTHING, row(("read",), 61_234.0, 129.5, False)], []])
def test_of_a_repeated_step_the_last_attempt_is_shown(rows: list[dict[str, str]]) -> None:
    """And a row that is not there is no figure."""
    lines = result_lines("h", ends(measurement(), measurement()), [*rows, {"name": "other"}], [LUN])
    assert any(line.startswith("read       61.2 k") for line in lines) is bool(rows)


def test_a_long_path_has_a_line_of_its_own() -> None:
    path = "/a/long/path" * 8
    lines = result_lines("randread 4KiB", ends(measurement()), [NOTHING], [LUN | {"path": path}])
    assert lines[:2] == ["randread 4KiB", f"on {path} (1.00 TiB)"]


def test_an_interrupted_run_says_so() -> None:
    stopped = replace(ends(measurement()), exit_code=130, words="Interrupted by Ctrl-C")
    assert "Interrupted by Ctrl-C" in result_lines("h", stopped, [row(("read",), 1.0, 1.0, False)], [LUN])


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (
            {"expected_iops": "1634.7", "low_iops": "1479", "high_iops": "1694", "halving_s": "540"},
            "the highest rate that meets it: 1.63 k IOPS (1.48 to 1.69 k, 95 %); about 9m00s more (--within) would",
        ),
        (
            {"expected_iops": "990", "low_iops": "940", "high_iops": "1020", "halving_s": "60"},
            "the highest rate that meets it: 990 IOPS (940 to 1.02 k, 95 %)",
        ),
        ({"highest_pass_iops": "41200", "answer": "pass"}, "at least 41.2 k IOPS meet it "),
        ({"highest_pass_iops": "41200", "lowest_fail_iops": "52100"}, "41.2 k IOPS meet it, 52.1 k do not"),
        (
            {"lowest_fail_iops": "4705.8", "answer": "fail"},
            "no rate that meets it was found; the lowest that was tried is 4.71 k IOPS",
        ),
        ({}, "no answer at 4.71 k IOPS "),
    ],
)
def test_a_search_says_its_result(columns: dict[str, str], said: str) -> None:
    probe = {"total_iops": "4705.8", "interval_percent": "95", **columns}
    probe = {"metric": "overall_service_us_p99", "probe": "1", "sustained": "true", "answer": "unclear"} | probe
    lines = " ".join(result_lines("h", ends(measurement()), [NOTHING], [LUN], [probe]))
    assert said in " ".join(lines.split())


def test_a_search_without_a_measurement_shows_its_newest_probes() -> None:
    asked = {"metric": "overall_response_us_p99", "achieved_iops": "6572", "value": "30801.9", "sustained": "true"}
    asked |= {"half_width": "1204", "confidence_percent": "99"}
    probes = [
        asked | {"probe": str(number), "total_iops": str(1000 * number), "answer": "unclear"} for number in range(1, 7)
    ]
    probes += [asked | {"probe": "7", "total_iops": "7000", "answer": "pass", "repeated": "true"}]
    probes += [asked | {"probe": "8", "total_iops": "900", "answer": "fail"}]
    probes += [asked | {"probe": "9", "total_iops": "20000", "answer": "fail", "sustained": "false"}]
    probes += [asked | {"probe": "10", "total_iops": "800", "answer": "pass", "value": "", "half_width": ""}]
    missed = Finding(Reason.SEARCH_UNBOUNDED, "too high")
    lines = result_lines("h", ends(measurement(Verdict.INVALID, findings=(missed,))), [NOTHING], [LUN], probes)
    at = lines.index("probe   asked    IOPS   response p99 +- 99 % answer")
    assert lines[at + 1 :][:9] == [
        *(f"    {number}  {number}.00 k  6.57 k        30.8 ms 1.20 ms unclear" for number in range(3, 7)),
        "    7  7.00 k  6.57 k        30.8 ms 1.20 ms [meets it]",
        "    8     900  6.57 k        30.8 ms 1.20 ms misses it",
        "    9  20.0 k  6.57 k        30.8 ms 1.20 ms not sustained",
        "   10     800  6.57 k              -       - meets it",
        "",
    ]


def test_a_remedy_has_no_keys_that_only_a_plan_has() -> None:
    busy = Finding(Reason.CPU_CONTENTION, "61 %", Severity.INVALID)
    lines = result_lines("h", ends(measurement(Verdict.INVALID, findings=(busy,))), [NOTHING], [LUN])
    assert any("Stop what else runs on the host, or get the host more CPU." in line for line in lines)


LATE = Finding(Reason.GENERATOR_LATE, "89% of the mean", Severity.INVALID)
NO_RATE = Finding(Reason.SEARCH_UNBOUNDED, "overall_response_us_p99 <= 2 ms fails from 6879.78 IOPS up")


@pytest.mark.parametrize("width", [NARROW, SLIM])
@pytest.mark.parametrize(
    ("findings", "counted"),
    [
        ((), []),
        ((LATE,), []),
        ((NO_RATE,), []),
        ((Finding(Reason.SEARCH_FOUND, "up to 1.63 k IOPS"),), []),
        ((LATE, Finding(Reason.SEARCH_FOUND, "up to 1.63 k IOPS")), []),
        ((LATE, Finding(Reason.SET_ASIDE, "1 of 9")), ["1 reason and 1 note:"]),
        ((Finding(Reason.SET_ASIDE, "1 of 9"),), ["1 note:"]),
        ((LATE, NO_RATE), ["2 reasons:"]),
        ((Finding(Reason.SEARCH_UNBOUNDED, "for long " * 60),), ["1 reason:"]),  # it is cut
        ((Finding(Reason.SEARCH_UNBOUNDED, "long" * 30),), ["1 reason:"]),
    ],
)  # fmt: skip
def test_a_reason_that_stands_there_whole_is_not_offered_again(
    findings: tuple[Finding, ...], counted: list[str], width: int
) -> None:
    lines = result_lines("h", ends(measurement(Verdict.INVALID, findings=findings)), [NOTHING], [LUN], width=width)
    assert [line for line in lines if re.match(r"\d reason|\d note", line)] == counted
    assert any("show --reasons" in line for line in lines) is bool(counted)


def test_a_remedy_is_in_options_of_the_command() -> None:
    unbounded = Finding(Reason.SEARCH_UNBOUNDED, "too short")
    lines = result_lines("h", ends(measurement(Verdict.INVALID, findings=(unbounded,))), [NOTHING], [LUN])
    assert any("Give the search more time (--within)" in line for line in lines)


def test_without_figures_the_result_says_why_there_are_none() -> None:
    unbounded, idle = Finding(Reason.SEARCH_UNBOUNDED, "too high"), Finding(Reason.NO_SAMPLES)
    lines = result_lines("h", ends(measurement(Verdict.INVALID, findings=(unbounded,))), [NOTHING], [LUN])
    assert "there is no measurement to show" in lines
    assert "invalid: the search cannot say which load meets the target (too high)" in lines
    lines = result_lines("h", ends(measurement(Verdict.INVALID, findings=(idle,))), [NOTHING], [LUN])
    assert "no I/O was completed" in lines


def test_a_reason_that_is_cut_says_so_and_ends_with_a_whole_word() -> None:
    words = " ".join(f"word{number:03}" for number in range(60))
    late = Finding(Reason.OVERRUN, words, Severity.INVALID)
    lines = result_lines("h", ends(measurement(Verdict.INVALID, findings=(late,))), [NOTHING], [LUN])
    (last,) = [line for line in lines if line.endswith(" ...)")]
    assert last.split()[-2] in words.split() and len(last) <= NARROW
    uncut = result_lines(
        "h", ends(measurement(findings=(Finding(Reason.OVERRUN, "short", Severity.INVALID),))), [NOTHING], [LUN]
    )
    assert not any("..." in line for line in uncut)


def test_a_reason_that_is_cut_leaves_no_parenthesis_open() -> None:
    words = "step max is invalid (local: " + " ".join(f"word{number:03}" for number in range(60)) + ")"
    doubt = Finding(Reason.BASELINE_STEP, words, Severity.INVALID)
    text = "\n".join(result_lines("h", ends(measurement(Verdict.INVALID, findings=(doubt,))), [NOTHING], [LUN]))
    assert " ...))\n" in text and text.count("(") == text.count(")")


def test_nothing_measured_says_so() -> None:
    assert "nothing was measured" in result_lines("h", ends(), [], [LUN])


@pytest.mark.parametrize(
    ("luns", "said"),
    [
        ([], "no LUN"),
        ([LUN], "/dev/sdb (1.00 TiB)"),
        ([LUN, LUN | {"path": "/dev/sdc"}], "/dev/sdb and 1 more (2.00 TiB)"),
        ([LUN | {"host": "lab01"}], "lab01:/dev/sdb (1.00 TiB)"),
    ],
)
def test_what_was_driven(luns: list[dict[str, str]], said: str) -> None:
    assert driven(luns) == said


@given(
    st.sampled_from([("read",), ("write",), ("read", "write")]), st.floats(0.1, 1e9), st.floats(0.1, 1e9),
    st.booleans(), st.sampled_from(Verdict), st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=300),
    st.sampled_from([NARROWEST, SLIM, 70, NARROW, 200]),
)  # fmt: skip
def test_every_result_fits(
    kinds: tuple[str, ...], iops: float, us: float, response: bool, verdict: Verdict, words: str, width: int
) -> None:
    findings = tuple(Finding(reason, words) for reason in [r for r in Reason if len(r.severities) == 1][:5])
    steps = ends(measurement(name="max"), measurement(verdict, findings=findings))
    probe = {"total_iops": "1", "answer": "pass", "highest_pass_iops": str(iops), "lowest_fail_iops": str(2 * iops)}
    lines = result_lines(words, steps, [row(kinds, iops, us, response)], [LUN, LUN], [probe], width=width)
    prose = [line for line in lines if not line.startswith(("  ivypy show", "runs/"))]  # to copy: never cut
    assert len(lines) <= 30 and all(len(line) <= min(width, NARROW) for line in prose)
    assert all(len(line) <= SLIM for line in lines if line not in prose)


def test_a_threshold_that_was_missed_is_said_with_its_figure() -> None:
    """Also where something worse decides the verdict."""
    busy = Finding(Reason.CPU_CONTENTION, "others used 74 %", Severity.INVALID)
    detail = "overall_service_us_p99 at most 10 us: 212 us, at max, where threads were kept from running"
    missed = Finding(Reason.SLO_MISSED, detail, Severity.INVALID)
    lines = result_lines(
        "h", ends(measurement(Verdict.INVALID, findings=(busy, missed))), [row(("read",), 9.0, 4.0, True)], [LUN]
    )
    text = " ".join(" ".join(lines).split())
    assert "a threshold was missed (overall_service_us_p99 at most 10 us: 212 us)" in text and "at max" not in text
