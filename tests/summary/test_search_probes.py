"""The result of a search, from all of its probes."""

import pytest

from ivypy.master.summary.measured import MeasurementRow, StepEnds
from ivypy.master.summary.search_probes import (
    disturbed_probes,
    probe_lines,
    probe_table,
    search_headline,
    search_result,
)
from ivypy.master.verdicts import Finding, Reason, Severity, Verdict

# Load in k, answer, and "r" where the probe was repeated; then the bracket after the last one.
Probes = tuple[tuple[float, str, str], ...]


def rows(probes: Probes, passed: float | None = None, failed: float | None = None) -> list[dict[str, str]]:
    made = [
        {
            "probe": str(number),
            "metric": "overall_response_us_p99",
            "total_iops": str(1000 * load),
            "answer": answer,
            "repeated": "true" if mark else "false",
        }
        for number, (load, answer, mark) in enumerate(probes, 1)
    ]
    ends = {"highest_pass_iops": passed, "lowest_fail_iops": failed}
    made[-1] |= {name: "" if load is None else str(1000 * load) for name, load in ends.items()}
    return made


CASES: list[tuple[Probes, float | None, float | None, str]] = [
    (
        ((23.1, "unclear", "r"), (23.1, "unclear", ""), (11.5, "pass", "")),
        11.5,
        None,
        "at least 11.5 k IOPS meet it; 23.1 k is unclear",
    ),
    (
        ((11.5, "pass", ""), (30, "unclear", ""), (20, "unclear", "")),
        11.5,
        None,
        "at least 11.5 k IOPS meet it; 20.0 k is unclear",
    ),
    (((20, "unclear", ""), (20, "pass", "")), 20, None, "at least 20.0 k IOPS meet it"),
    (
        ((23.1, "unclear", "r"), (23.1, "unclear", ""), (11.5, "pass", "r")),
        None,
        None,
        "a probe at 11.5 k IOPS met it, but does not count; 23.1 k is unclear",
    ),
    (
        ((11.5, "pass", "r"), (20, "fail", "")),
        None,
        20,
        "a probe at 11.5 k IOPS met it, but does not count; 20.0 k do not meet it",
    ),
    (
        ((20, "pass", ""), (10, "fail", "")),
        None,
        10,
        "no rate that meets it was found; the lowest that was tried is 10.0 k IOPS",
    ),
    (
        ((20, "fail", ""), (10, "unclear", "")),
        None,
        20,
        "no rate that meets it was found; 20.0 k IOPS miss it; 10.0 k is unclear",
    ),
    (
        ((20, "unclear", ""), (10, "pass", "r"), (10, "unclear", "")),
        None,
        None,
        "a probe at 10.0 k IOPS met it, but does not count; 20.0 k is unclear",
    ),
    (((20, "fail", "r"),), None, None, "a probe at 20.0 k IOPS missed it, but does not count"),
    (((20, "unclear", ""), (10, "unclear", "")), None, None, "no answer at 10.0 to 20.0 k IOPS"),
    (((10, "unclear", ""),), None, None, "no answer at 10.0 k IOPS"),
]


@pytest.mark.parametrize(("probes", "passed", "failed", "words"), CASES)
def test_the_result_is_what_all_probes_prove(
    probes: Probes, passed: float | None, failed: float | None, words: str
) -> None:
    assert search_result(rows(probes, passed, failed), Verdict.VALID) == words


RATE = {"expected_iops": "1634.7", "low_iops": "1479", "high_iops": "1694", "interval_percent": "95"}


@pytest.mark.parametrize(
    ("verdict", "more", "words"),
    [
        (
            Verdict.VALID,
            RATE,
            "1.63 k IOPS (1.48 to 1.69 k, 95 %) is the highest rate with response p99 at most 20 ms.",
        ),
        (
            Verdict.PARTIAL,
            RATE | {"halving_s": "500"},
            "1.63 k IOPS (1.48 to 1.69 k, 95 %) is the highest rate with response p99 at most 20 ms.",
        ),
        (Verdict.VALID, RATE | {"low_iops": ""}, "Response p99 at most 20 ms: at least 11.5 k IOPS meet it."),
        (Verdict.INVALID, RATE, "Response p99 at most 20 ms: at least 11.5 k IOPS meet it."),
    ],
)
def test_the_headline_of_a_search_begins_with_the_rate(verdict: Verdict, more: dict[str, str], words: str) -> None:
    probe = rows(((11.5, "pass", ""),), 11.5)[0] | {"target": "20000"} | more
    row = MeasurementRow("p99", verdict, verdict, verdict, verdict, (), "", {})
    assert search_headline(StepEnds(0, "p99", verdict, (), (row,)), [probe]) == words


@pytest.mark.parametrize(
    ("finding", "shown"),
    [
        (Finding(Reason.SEARCH_UNBOUNDED, "too short"), "11.5 k"),
        (Finding(Reason.CPU_CONTENTION, "61 %", Severity.INVALID), "[11.5 k]"),
        (Finding(Reason.GENERATOR_LATE, "23 % of the mean", Severity.INVALID), "[11.5 k]"),
    ],
)
def test_a_load_that_met_the_target_is_proved_unless_more_than_the_search_is_invalid(
    finding: Finding, shown: str
) -> None:
    probes = rows(((11.5, "pass", ""),), 11.5)
    assert search_result(probes, Verdict.INVALID, [finding]) == f"at least {shown} IOPS meet it"


@pytest.mark.parametrize(
    ("details", "marks", "words"),
    [
        (("probe 1 at 9 IOPS, 3 of 10 subintervals: run-queue delay, repeated",), "r ",
         "1 of 2 probes does not count: other programs had the CPU"),
        (("probe 1 at 9 IOPS, 3 of 10 subintervals: run-queue delay, machine stall, repeated",), "rr ",
         "2 of 3 probes do not count: other programs had the CPU and the machine stalled"),
        ((), "r ", "1 of 2 probes does not count: the generator was disturbed"),
        ((), "  ", ""),
    ],
)  # fmt: skip
def test_why_probes_do_not_count(details: tuple[str, ...], marks: str, words: str) -> None:
    findings = [Finding(Reason.SET_ASIDE, one) for one in details]
    probes = rows(tuple((10, "unclear", mark.strip()) for mark in marks))
    assert disturbed_probes(probes, findings) == words


@pytest.mark.parametrize(
    ("width", "metric", "titles"),
    [
        (80, "overall_response_us_p99", "probe asked IOPS response p99 +- 99 % answer"),
        (60, "overall_response_us_p99", "probe asked IOPS response p99 +- 99 % answer"),
        (59, "overall_response_us_p99", "probe asked p99 +- 99 % answer"),
        (47, "overall_response_us_p99", "probe asked p99 +- 99 % answer"),
        (46, "overall_response_us_p99", "probe asked p99 answer"),
        (40, "read_service_us_mean", "probe asked mean answer"),
        (80, "array.port.busy_percent", "probe asked IOPS array.port.busy_percent +- 99 % answer"),
        (68, "array.port.busy_percent", "probe asked value +- 99 % answer"),
        (10, "array.port.busy_percent", "probe asked value answer"),
    ],
)
def test_lines_of_probes_fit_the_terminal(width: int, metric: str, titles: str) -> None:
    probe = rows(((10, "fail", ""),))[0] | {"metric": metric, "value": "5", "half_width": "2", "sustained": "false"}
    lines = probe_lines([probe | {"confidence_percent": "99", "achieved_iops": "9990"}], width)
    assert lines[0].split() == titles.split()
    assert lines[1].split()[:2] == ["1", "10.0"] and lines[1].endswith(" not sustained")
    assert max(map(len, lines)) <= max(width, 40)
    places = {word: lines[0].index(word) + len(word) for word in titles.split()[:2]}
    assert lines[1][: places["asked"]].endswith("10.0 k"), "below its title"


DELAY, BOTH = "run-queue delay", "steal, run-queue delay"


@pytest.mark.parametrize(
    ("probes", "words"),
    [
        ((("", DELAY), ("", "")), "1 of 2 probes was disturbed, but counts: other programs had the CPU"),
        ((("", DELAY), ("", "steal"), ("", "")),
         "2 of 3 probes were disturbed, but count: other programs had the CPU and the hypervisor had the CPU"),
        ((("true", DELAY), ("", BOTH), ("", DELAY)),
         "1 of 3 probes does not count, 2 were disturbed, but count: other programs had the CPU and the hypervisor had "
         "the CPU"),
        ((("true", "machine stall"), ("true", ""), ("", "machine stall")),
         "2 of 3 probes do not count, 1 was disturbed, but counts: the machine stalled"),
        ((("true", "steal"), ("", "")), "1 of 2 probes does not count: the hypervisor had the CPU"),
    ],
)  # fmt: skip
def test_probes_that_were_disturbed_and_count_are_named(probes: tuple[tuple[str, str], ...], words: str) -> None:
    cells = [{"repeated": repeated, "disturbed": causes} for repeated, causes in probes]
    assert disturbed_probes(cells, ()) == words


@pytest.mark.parametrize(
    ("metric", "title"),
    [
        ("overall_response_us_p99", "response p99"),
        ("read_service_us_p50", "read service p50"),
        ("array.port.busy_percent", "array.port.busy_percent"),
    ],
)
def test_a_table_of_probes_names_its_metric(metric: str, title: str) -> None:
    probe = rows(((10, "fail", ""),))[0] | {"metric": metric, "value": "5", "sustained": "false"}
    assert probe_table([probe]).titles == ("probe", "asked", "IOPS", title, "+-", "answer")
    assert probe_table([probe]).rows[0][-1] == "not sustained"
    assert probe_lines([probe])[0].split() == ["probe", "asked", "IOPS", *title.split(), "+-", "answer"]
