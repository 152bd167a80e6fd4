"""`ivypy compare` on run folders: what it reads, what it says, and its exit code."""

import csv
import json
import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import click
import pytest
from click.testing import CliRunner

from ivypy.master.cli.compare import compare as command
from ivypy.master.compare import write_page
from ivypy.master.compare.render_junit import DOUBTFUL
from ivypy.master.compare.samples import samples_of
from ivypy.master.errors import PlanError
from ivypy.master.exit_codes import ExitCode
from ivypy.master.output.histogram_db_reader import HistogramReader
from ivypy.master.results.finished_run import read_run
from ivypy.master.results.junit import SKIPPED
from ivypy.master.rollup.metrics import METRICS
from ivypy.master.stats.metric_sample import value_of
from tests.support.compared_runs import Made, runs, set_cells, sides
from tests.support.doc_pages import ROOT

ATTEMPT_2 = "max+attempt=2"
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("test_compare")]  # which make the same runs


def run_compare(before: list[Path], after: list[Path], *words: str) -> tuple[int, str]:
    """(exit code, output). Raises what the command raises."""
    args = [*map(str, before), "--vs", *map(str, after), *words]
    done = CliRunner().invoke(command, args, standalone_mode=False)
    if done.exception:
        raise done.exception
    return done.return_value, done.output


def as_json(before: list[Path], after: list[Path], *words: str) -> dict[str, Any]:
    code, text = run_compare(before, after, "--json", *words)
    found: dict[str, Any] = json.loads(text)
    assert found["exit_code"] == code
    return found


def outcomes(found: dict[str, Any]) -> dict[str, str]:
    return {row["metric"]: row["outcome"] for row in found["rows"]}


@pytest.fixture(scope="module")
def same(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Path], list[Path]]:
    return sides(tmp_path_factory.mktemp("same"), runs(3), runs(3, 1.0005, kernel="6.6", firmware="F2"))


@pytest.fixture(scope="module")
def slower(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Path], list[Path]]:
    return sides(tmp_path_factory.mktemp("slower"), runs(3, subintervals=24), runs(3, 1.1, subintervals=24))


def test_three_runs_of_the_same_show_no_regression(same: tuple[list[Path], list[Path]]) -> None:
    code, text = run_compare(*same)
    assert code == ExitCode.OK
    assert text.rstrip().endswith("No regression: no figure is worse by more than 3 %.")
    assert max(map(len, (line for line in text.splitlines() if "/compared-" not in line))) <= 80


def test_what_differs_comes_before_the_figures(same: tuple[list[Path], list[Path]]) -> None:
    _, text = run_compare(*same)
    assert "hosts: kernel: 6.1 -> 6.6 (h1 and h2)" in text
    assert "LUNs: firmware: F1 -> F2 (h1:/dev/sd0 and h2:/dev/sd0)" in text
    assert text.index("firmware") < text.index("95 % interval")


def test_three_runs_that_are_slower_show_a_regression(slower: tuple[list[Path], list[Path]]) -> None:
    found = as_json(*slower)
    assert found["exit_code"] == ExitCode.SLO_MISSED and found["basis"] == "between_runs"
    assert outcomes(found) == {
        "overall_iops": "equivalent",
        "overall_service_us_mean": "worse",
        "overall_service_us_p99": "worse",
    }
    for row in found["rows"][1:]:
        low, high = row["interval"]
        assert 0.05 < low < 0.1 < high < 0.15 and row["change"] == pytest.approx(0.1, abs=0.02)


@pytest.mark.slow
def test_the_other_way_round_they_are_better(slower: tuple[list[Path], list[Path]]) -> None:
    found = as_json(slower[1], slower[0], "--metric", "mean,p99")
    assert found["exit_code"] == ExitCode.OK and set(outcomes(found).values()) == {"better"}


def test_the_limit_decides_what_a_regression_is(slower: tuple[list[Path], list[Path]]) -> None:
    assert run_compare(*slower, "--max-regression", "30%")[0] == ExitCode.OK


@pytest.mark.parametrize("kind", ["all", "host", "port"])
def test_percentiles_and_means_are_those_of_the_summary(slower: tuple[list[Path], list[Path]], kind: str) -> None:
    """As the run's own report has them: a reader sees one p99."""
    names = ["iops", "mib_per_s", "mean", "read_p50", "p99", "read_mean"]
    found = as_json(slower[0][:1], slower[1][:1], "--metric", ",".join(names), "--by", kind)
    with (slower[0][0] / f"summary.{kind}.csv").open(newline="") as file:
        summary = {row["rollup_instance"]: row for row in csv.DictReader(file)}
    compared = [row for row in found["rows"] if row["rollup_type"] == kind]
    assert len(compared) == len(names) * len(summary)
    for row in compared:
        wanted = float(summary[row["rollup_instance"]][row["metric"]])
        assert row["a"] == pytest.approx(wanted, rel=1e-5), row["metric"]


@pytest.mark.parametrize("kind", ["all", "port"])
@pytest.mark.parametrize(
    "name", ["overall_iops", "overall_mib_per_s", "overall_service_us_mean", "read_service_us_p99"]
)
def test_samples_of_a_measurement_add_up_to_its_summary(
    slower: tuple[list[Path], list[Path]], kind: str, name: str
) -> None:
    metric = METRICS[name]
    run = read_run("A1", slower[0][0], [kind])
    with HistogramReader(run.folder / "histograms.sqlite") as reader:
        samples = samples_of(reader, 0, run.measured(0), [metric])
    for key, row in run.rows.items():
        assert value_of(samples[key, name], metric.fraction) == pytest.approx(row.figure(metric), rel=1e-6)


def test_one_run_a_side_decides_nothing_and_says_so(slower: tuple[list[Path], list[Path]]) -> None:
    code, text = run_compare(slower[0][:1], slower[1][:1])
    assert code == ExitCode.NOT_REACHED
    assert "the noise WITHIN the two runs alone" in text and "three runs or more a side" in text
    assert " worse" in text  # these two runs do differ


@pytest.mark.parametrize(("a", "b"), [(2, 2), (1, 3), (3, 2)])
def test_two_runs_need_a_third(slower: tuple[list[Path], list[Path]], a: int, b: int) -> None:
    code, text = run_compare(slower[0][:a], slower[1][:b])
    assert code == ExitCode.NOT_REACHED
    assert f"{a} and {b} runs, three a side are needed" in text and "+10" in text.replace("+9.", "+10")


def test_too_few_subintervals_have_no_interval(tmp_path: Path) -> None:
    before, after = sides(tmp_path, runs(1, subintervals=10), runs(1, subintervals=10))
    code, text = run_compare(before, after)
    assert code == ExitCode.NOT_REACHED and "A1: 10 subintervals; 20 are needed" in text


def test_subintervals_that_were_set_aside_are_in_no_figure(tmp_path: Path) -> None:
    aside = frozenset({5, 6, 13})
    before, after = sides(tmp_path, runs(1, subintervals=24), runs(1, subintervals=24, set_aside=aside))
    found = as_json(before, after, "--metric", "mean,p99")
    assert [abs(row["change"]) < 0.05 for row in found["rows"]] == [True, True]
    assert all(row["p"] is not None for row in found["rows"])


@pytest.mark.parametrize("count", [3, 4])
def test_a_figure_that_a_verdict_discredits_is_not_compared(tmp_path: Path, count: int) -> None:
    before, after = sides(tmp_path, runs(count), runs(count, 1.1))
    reasons = "reap_delay[invalid] (90% of the mean); reap_delay[invalid] (x); cpu_contention[note] (x)"
    set_cells(after[1], "max", service_verdict="invalid", reasons=reasons)
    found = as_json(before, after)
    whys = {row["metric"]: row["why_not_compared"] for row in found["rows"]}
    assert outcomes(found)["overall_iops"] == "equivalent" and whys["overall_iops"] == ""
    if count == 3:
        assert outcomes(found)["overall_service_us_p99"] == "not compared"
        assert found["exit_code"] == ExitCode.NOT_REACHED
        assert whys["overall_service_us_p99"] == ("3 and 2 runs, three a side are needed; B2: invalid: reap_delay")
    else:
        assert outcomes(found)["overall_service_us_p99"] == "worse"
        assert whys["overall_service_us_p99"] == "4 and 3 runs; B2: invalid: reap_delay"


def test_where_nothing_was_compared_nothing_follows(tmp_path: Path) -> None:
    before, after = sides(tmp_path, runs(1), runs(2, 1.1))
    set_cells(before[0], "max", service_verdict="invalid", reasons="reap_delay[invalid] (x)")
    for words in ((), ("--md",)):
        code, text = run_compare(before, after, *words)
        assert code == ExitCode.NOT_REACHED and "follow from" not in text
    (line,) = (line for line in text.splitlines() if "service_p99" in line)
    assert "| [" in line and as_json(before, after)["method"] == ""
    assert [bool(row["a_invalid"]) for row in as_json(before, after)["rows"]] == [False, True, True]


def test_rollup_instances_are_matched_by_key(slower: tuple[list[Path], list[Path]]) -> None:
    found = as_json(*slower, "--by", "host", "--by", "port", "--metric", "p99")
    keys = [(row["rollup_type"], row["rollup_instance"]) for row in found["rows"]]
    assert keys == [("all", "all"), ("host", "h1"), ("host", "h2"), ("port", "1:A"), ("port", "2:A")]
    assert set(row["outcome"] for row in found["rows"]) == {"worse"}


def test_steps_are_matched_by_name(tmp_path: Path) -> None:
    before, after = sides(tmp_path, runs(3, steps=("max", "half")), runs(3, steps=("half", "more")))
    found = as_json(before, after, "--metric", "mean")
    assert {row["step"]: row["outcome"] for row in found["rows"]} == {
        "max": "not compared", "half": "equivalent", "more": "not compared"
    }  # fmt: skip
    assert found["exit_code"] == ExitCode.NOT_REACHED
    assert "B1, B2, B3: no such step" in found["rows"][0]["why_not_compared"]
    assert as_json(before, after, "--metric", "mean", "--step", "half")["exit_code"] == ExitCode.OK


def test_what_searches_found_is_compared_though_each_found_another_load(tmp_path: Path) -> None:
    before, after = sides(tmp_path, runs(3), runs(3))
    for place, run in enumerate((*before, *after)):
        record = json.loads((run / "run.json").read_text())
        record["steps"] = [{"number": 0, "name": "max", "verdict": "valid"}]
        (run / "run.json").write_text(json.dumps(record))
        (run / "step0000.max" / "find.csv").write_text("probe\n")
        for kind in ("all", "host"):
            set_cells(run, "max", kind, name=f"max:total_iops={700 + place}", iops_setting=str(700 + place))
    found = as_json(before, after, "--metric", "iops,mean", "--by", "host")
    assert {(row["step"], row["outcome"]) for row in found["rows"]} == {("max", "equivalent")}
    assert found["exit_code"] == ExitCode.OK and found["differences"] == []


@pytest.mark.parametrize("steps", [("max", ATTEMPT_2), ("max+round=1", "max+round=2")], ids=["attempt", "round"])
def test_of_a_repeated_step_the_last_attempt_is_compared(steps: tuple[str, str], tmp_path: Path) -> None:
    """Whose name is that of its step, so that nights with and without a second attempt match; likewise of rounds."""
    before, after = sides(tmp_path, runs(3), [*runs(2), Made(steps=steps, seed=3)])
    set_cells(after[2], "max", service_verdict="invalid", reasons="reap_delay[invalid] (90% of the mean)")
    found = as_json(before, after)
    assert {row["step"] for row in found["rows"]} == {"max"}
    assert found["exit_code"] == ExitCode.OK and found["differences"] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cells", "why"),
    [
        ({"hosts_in": "2", "hosts_of": "3", "reasons": "host_lost[partial] (h3: gone)"}, "2 of 3 hosts"),
        # it was gone when the run began, which `may_miss` allows: the row knows of two; or it is in a part of the row
        ({"reasons": "host_lost[partial] (h3 is missing: refused)"}, "without a host: host_lost"),
        ({"reasons": "host_missing[partial] (h3: missing in 9 of 20 subintervals)"}, "without a host: host_missing"),
    ],
)
def test_a_part_of_the_hosts_is_not_compared_with_all_of_them(tmp_path: Path, cells: dict[str, str], why: str) -> None:
    """A third less is no regression of the storage."""
    before, after = sides(tmp_path, runs(3), runs(3, slower=1.5))
    for run in after:
        set_cells(run, "max", verdict="partial", **cells)
    found = as_json(before, after, "--metric", "iops,mean")
    assert found["exit_code"] == ExitCode.NOT_REACHED
    assert {row["why_not_compared"] for row in found["rows"]} == {f"B1, B2, B3: {why}"}


OTHER = "iops_setting: 200 -> 150"


@pytest.fixture(scope="module")
def two_steps(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Path], list[Path]]:
    """All slower in B, where the load of the paced step is another."""
    steps = ("max", "paced")
    before, after = sides(tmp_path_factory.mktemp("loads"), runs(3, steps=steps), runs(3, 1.1, steps=steps))
    for folders, rate in ((before, "200"), (after, "150")):
        for run in folders:
            for kind in ("all", "host"):
                set_cells(run, "paced", kind, iops_setting=rate)
    return before, after


@pytest.mark.parametrize(
    ("words", "code", "conclusion"),
    [
        (["--step", "paced"], ExitCode.NOT_REACHED, f"Not the same load: step paced: {OTHER}."),
        ([], ExitCode.SLO_MISSED, f". Not the same load: step paced: {OTHER}."),
        (
            ["--max-regression", "50%"],
            ExitCode.NOT_REACHED,
            f"Not the same load: step paced: {OTHER}. Of the other steps: No regression: no figure is worse by more "
            "than 50 %.",
        ),
    ],
)
def test_a_step_of_another_load_has_no_outcome(
    two_steps: tuple[list[Path], list[Path]], words: list[str], code: ExitCode, conclusion: str
) -> None:
    found = as_json(*two_steps, *words, "--by", "host", "--metric", "iops,mean")
    paced = [row for row in found["rows"] if row["step"] == "paced"]
    assert {(row["outcome"], row["why_not_compared"]) for row in paced} == {
        ("not compared", f"A1, A2, A3: not the same load: {OTHER}")
    }
    assert found["exit_code"] == code
    assert found["conclusion"].endswith(conclusion)


def test_steps_of_the_same_other_load_are_named_together(tmp_path: Path) -> None:
    steps = ("max", "paced", "mixed")
    before, after = sides(tmp_path, runs(3, steps=steps), runs(3, steps=steps))
    for run in before:
        for step in steps[1:]:
            set_cells(run, step, maxtags="8")
    assert as_json(before, after)["conclusion"].startswith("Not the same load: steps paced and mixed: maxtags: 8 -> 1.")


def test_one_run_a_side_of_another_load_is_not_compared_either(two_steps: tuple[list[Path], list[Path]]) -> None:
    code, text = run_compare(two_steps[0][:1], two_steps[1][:1], "--step", "paced")
    assert code == ExitCode.NOT_REACHED
    assert text.rstrip().endswith(f"Not the same load: step paced: {OTHER}.") and " worse" not in text


@pytest.mark.slow
def test_what_is_partial_for_the_same_reasons_is_said_once(tmp_path: Path) -> None:
    before, after = sides(tmp_path, runs(3, steps=("max", "half")), runs(3, steps=("max", "half")))
    for run in (*before, *after):
        reasons = "too_few_subintervals[note] (5); host_lost[partial] (h1); host_lost[partial] (h2)"
        for step in ("max", "half"):
            set_cells(run, step, verdict="partial", service_verdict="partial", reasons=reasons)
    assert as_json(before, after)["notes"] == ["A1, A2, A3, B1, B2, B3: max and half: partial: host_lost"]


FOREIGN = "foreign_io[note] (others 650 MiB, ivypy 100 MiB)"


def test_what_others_did_on_the_disk_is_named_and_compared(tmp_path: Path) -> None:
    before, after = sides(tmp_path, runs(3), runs(3))
    for run in after[:2]:
        set_cells(run, "max", reasons=f"too_few_subintervals[note] (5); {FOREIGN}; reap_delay[note] (11%)")
    xml = tmp_path / "compare.xml"
    found = as_json(before, after, "--junit", str(xml))
    doubt = "max: doubtful: others used the disk in B1 and B2: foreign_io (others 650 MiB, ivypy 100 MiB in B1)"
    assert found["notes"] == [doubt] and found["exit_code"] == ExitCode.OK
    skipped = {
        case.get("name"): case for case in ElementTree.parse(xml).iter("testcase") if case.find(SKIPPED) is not None
    }
    assert [*skipped] == [DOUBTFUL]
    assert doubt in ElementTree.tostring(skipped[DOUBTFUL], "unicode")
    assert doubt in " ".join(run_compare(before, after)[1].split())


@pytest.mark.slow
def test_plans_and_parameters_differ_only_where_the_sides_do(tmp_path: Path) -> None:
    plans = [f"# a comment {n}\nname: x\nseed: {n}\n" for n in range(6)]
    argv = [("ivypy", "run", "p.yaml", "-D", f"seed={n}") for n in (1, 2, 3)]
    before = [Made(seed=n, plan=plans[n], argv=argv[n]) for n in range(3)]
    after = [Made(seed=n + 5, plan=plans[n], argv=argv[n]) for n in range(3)]
    found = as_json(*sides(tmp_path / "same", before, after))
    assert found["plan_differences"] == [] and found["differences"] == []
    after = [Made(seed=n + 5, plan=plans[n].replace("x", "y"), argv=("ivypy", "-Dseed=9")) for n in range(3)]
    found = as_json(*sides(tmp_path / "other", before, after))
    assert found["plan_differences"] == ["-name: x", "+name: y"]
    assert [(one["fact"], one["a"], one["b"]) for one in found["differences"]] == [("parameter seed", "1 | 2 | 3", "9")]


def test_a_run_that_has_not_ended_is_compared_as_far_as_it_is(tmp_path: Path) -> None:
    before, after = sides(tmp_path, runs(3), [*runs(2), Made(exit_code=None)])
    _, text = run_compare(before, after)
    assert "note: B3: the run has not ended, or was killed" in text


def test_a_run_without_histograms_is_compared_by_its_means(tmp_path: Path) -> None:
    before, after = sides(tmp_path, runs(3), runs(3))
    (after[0] / "histograms.sqlite").unlink()
    found = as_json(before, after)
    assert outcomes(found)["overall_service_us_mean"] == "equivalent"
    assert outcomes(found)["overall_service_us_p99"] == "not compared"
    assert "histograms.sqlite: not read" in found["rows"][-1]["why_not_compared"]


def test_a_folder_of_runs_means_all_of_them(same: tuple[list[Path], list[Path]]) -> None:
    found = as_json([same[0][0].parent], [same[1][0].parent])
    assert [run["folder"] for run in found["a"]] == sorted(map(str, same[0]))


def test_runs_without_results_in_a_folder_of_runs_are_left_out_and_named(tmp_path: Path) -> None:
    before, after = sides(tmp_path, [*runs(3), Made(exit_code=4, steps=())], [*runs(3), Made(exit_code=None, steps=())])
    found = as_json([before[0].parent], [after[0].parent])
    assert (len(found["a"]), len(found["b"]), found["exit_code"]) == (3, 3, ExitCode.OK)
    assert found["notes"] == [
        f"{before[3]}: left out: the run ended without results, exit code 4: Nothing was started: this would write to "
        "a device in use, or without consent.",
        f"{after[3]}: left out: the run was cut off before it had measured anything",
    ]


def test_options_may_stand_anywhere(same: tuple[list[Path], list[Path]]) -> None:
    a, b = ([str(folder) for folder in side] for side in same)
    for args in (
        ["--metric", "p99", *a, "--vs", *b],
        ["--vs", *b, "--metric", "p99", *a],
        [*a, f"--vs={b[0]}", "--vs", *b[1:], "--metric=p99"],
    ):
        done = CliRunner().invoke(command, args, standalone_mode=False)
        assert done.return_value == ExitCode.OK, (done.exception, args)


FAULTS = {
    "a metric with a mistake": (["--metric", "p99.99.9"], "there is no such metric"),
    "a metric that is nearly right": (["--metric", "overall_iop"], "did you mean 'overall_iops'"),
    "a short name that is nearly right": (["--metric", "respnse_p99"], "did you mean 'response_p99'"),
    "a metric without a better direction": (["--metric", "cpu_busy_percent"], "only rates and latencies"),
    "a rollup type that is not there": (["--by", "serial"], "no rollup type serial; it has all, host+port, host, port"),
    "a step that is not there": (["--step", "mx"], "no run has a step of this name; did you mean 'max'?"),
    "a limit that is no percentage": (["--max-regression", "3"], "write 3% if percent is meant"),
    "a limit of everything": (["--max-regression", "100%"], "below 100%"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_the_question_is_named(same: tuple[list[Path], list[Path]], fault: str) -> None:
    words, text = FAULTS[fault]
    with pytest.raises(PlanError) as raised:
        run_compare(*same, *words)
    assert text in str(raised.value)


def test_what_is_no_run_is_named_with_what_it_is(same: tuple[list[Path], list[Path]], tmp_path: Path) -> None:
    (ours, *_), theirs = same
    refused = Made(exit_code=4, steps=()).write(tmp_path)
    cases = [
        (tmp_path / "nowhere", "is neither a run's folder nor an active run"),
        (ours / "step0000.max", f"a part of a run; name the run's folder: {ours}"),
        (ours / "summary.all.csv", f"a file; name the run's folder: {ours}"),
        (
            tmp_path,
            "none of its 1 runs has results; compared-20251121T111000Z: the run ended without results",
        ),
        (refused, "there are no results: the run ended without results, exit code 4"),
    ]
    for path, text in cases:
        with pytest.raises(PlanError) as raised:
            run_compare([path], theirs)
        assert text in str(raised.value)
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(PlanError, match="no folder of runs"):
        run_compare([empty], theirs)
    with pytest.raises(PlanError, match="named twice; a run counts once"):
        run_compare([ours, ours], theirs)
    with pytest.raises(PlanError, match="named twice"):
        run_compare([ours], [ours, *theirs])


def test_copies_of_a_run_are_no_further_runs(same: tuple[list[Path], list[Path]], tmp_path: Path) -> None:
    """Three copies would have no spread, and prove anything."""
    copy = Path(shutil.copytree(same[0][0], tmp_path / "copy"))
    for before, after in (([same[0][0], copy], same[1]), (same[0], [*same[1], copy])):
        with pytest.raises(PlanError, match="are copies of one run, which counts once"):
            run_compare(before, after)


def test_steps_that_do_not_match_at_all_are_listed(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="A has max, half; B has other"):
        run_compare(*sides(tmp_path, runs(1, steps=("max", "half")), runs(1, steps=("other",))))


class _Page(HTMLParser):
    """What a page fetches, and its text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.fetched: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.fetched += [str(value) for name, value in attrs if name in ("src", "href")]

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.slow
def test_the_page_needs_nothing_else_and_shows_names_as_they_are(tmp_path: Path) -> None:
    name = "<script>alert(1)</script>&"
    page = tmp_path / "page.html"
    before, after = sides(tmp_path, runs(3, steps=(name,)), runs(3, 1.1, steps=(name,), firmware="<b>F2"))
    code, _ = run_compare(before, after, "--html", str(page))
    read = _Page()
    read.feed(page.read_text())
    assert code == ExitCode.SLO_MISSED and "b" not in read.tags
    assert [one for one in read.fetched if not one.startswith(("#", "data:"))] == []
    assert read.tags.count("script") == 3, "the data, plotly, and the page's own"
    assert name in read.text and "<b>F2" in read.text and "worse" in read.text and "Regression" in read.text


@pytest.mark.slow
def test_without_plotly_the_page_has_the_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_page, "has_plotly", lambda: False)
    page = tmp_path / "page.html"
    for _ in range(2):  # the second time in the place of the first
        run_compare(*sides(tmp_path / "runs", runs(3), runs(3, 1.1)), "--html", str(page))
    read = _Page()
    read.feed(page.read_text())
    assert "script" not in read.tags and read.fetched == [] and "worse" in read.text


@pytest.mark.parametrize("plotly", [True, False], ids=["plotly", "no plotly"])
def test_the_page_takes_the_place_of_no_other_file(
    same: tuple[list[Path], list[Path]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plotly: bool
) -> None:
    monkeypatch.setattr(write_page, "has_plotly", lambda: plotly)
    page = tmp_path / "page.html"
    page.write_text("mine")
    with pytest.raises(PlanError, match="name another"):
        run_compare(*same, "--html", str(page))
    assert page.read_text() == "mine"


def test_markdown_is_a_table_whatever_the_names(tmp_path: Path) -> None:
    before, after = sides(tmp_path, runs(3, steps=("a|b`c",)), runs(3, steps=("a|b`c",)))
    _, text = run_compare(before, after, "--md")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 2 + 3
    assert {line.replace("\\|", "").count("|") for line in rows} == {9}


def test_the_example_in_the_docs_is_what_the_command_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = [Made(level, seed=n, firmware="5B2QGXA7") for n, level in enumerate((1.0, 0.994, 1.005))]
    after = [Made(level, seed=n + 3, firmware="6B2QGXA7") for n, level in enumerate((1.071, 1.081, 1.078))]
    sides(tmp_path, before, after)
    monkeypatch.chdir(tmp_path)
    code, text = run_compare([Path("before")], [Path("after")])
    assert code == ExitCode.SLO_MISSED
    assert f"$ ivypy compare before --vs after\n{text}```" in (ROOT / "docs" / "compare.md").read_text()


def test_json_and_markdown_at_once_are_refused(same: tuple[list[Path], list[Path]]) -> None:
    with pytest.raises(click.UsageError, match="choose one"):
        run_compare(*same, "--json", "--md")
    with pytest.raises(click.UsageError, match="--vs needs the runs"):
        run_compare(same[0], [], "--json")
