"""Whether runs had the same load: what was asked of the storage is a load, where and how is what is compared."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from ivypy.master.compare.load import other_loads
from ivypy.master.results.finished_run import FinishedRun, Key, StepRow

KEY = Key("paced", "all", "all")
CELLS = {
    "step": "1", "name": "paced", "verdict": "valid", "reasons": "",
    "iops_setting": "200", "blocksize": "4096", "iosequencer": "random_steady",
    "fraction_read": "1", "maxtags": "8", "range": "all", "spread": "auto", "think_time": "0", "drop_after": "never",
    "seed": "1", "random_map": "false", "until": "never",
}  # fmt: skip
PLAN = """\
name: p
parameters: {{ share: "50%" }}
luns: {{ create: {{ path: /var/tmp/p, size: 64MiB }} }}
workloads: {{ w: {{ maxtags: 8 }} }}
defaults: {{ measure: 5s }}
steps:
  - go: max
  - edit: {{ rollup: all=all, set: {edit} }}
  - go: {go}
"""


def plan(edit: str, go: str = "paced") -> str:
    return PLAN.format(edit=edit, go=go)


GIVEN = plan("{ total_iops: 200 }")
HALF, MORE = plan("{ total_iops: 50% of step max }"), plan("{ total_iops: 70% of step max }")
BY_PARAMETER = plan('{ total_iops: "${share} of step max" }')
FIRST_HALF = plan('{ range: ["0%", "50%"] }')
FIRST_BYTES = plan("{ range: [0, 32MiB] }")
SEARCH = "{{ name: paced, find: {{ metric: p99, target: {} }} }}"


def run(cells: Mapping[str, str], text: str = GIVEN, *argv: str) -> FinishedRun:
    made = FinishedRun("A1", Path("run"), {"argv": argv}, {KEY: StepRow(CELLS | dict(cells))})
    made.__dict__["plan"] = text  # as if it had been read
    return made


def differs(one: FinishedRun, other: FinishedRun) -> str:
    return other_loads(one, [other]).get(KEY.step, "")


@pytest.mark.parametrize(
    ("cells", "text"),
    [
        ({"iops_setting": "150"}, "iops_setting: 200 -> 150"),
        ({"iops_setting": "max"}, "iops_setting: 200 -> max"),
        ({"blocksize": "8192"}, "blocksize: 4096 -> 8192"),
        ({"blocksize": "4096(2/3) 8192(1/3)"}, "blocksize: 4096 -> 4096(2/3) 8192(1/3)"),
        ({"fraction_read": "0.7"}, "fraction_read: 1 -> 0.7"),
        ({"maxtags": "16"}, "maxtags: 8 -> 16"),
        ({"iosequencer": "sequential"}, "iosequencer: random_steady -> sequential"),
        ({"range": "0-1048576"}, "range: all -> 0-1048576"),
        ({"think_time": "0.001"}, "think_time: 0 -> 0.001"),
        ({"random_map": "true"}, "random_map: false -> true"),
        ({"until": "ios=5"}, "until: never -> ios=5"),
        ({"drop_after": "1"}, "drop_after: never -> 1"),
        ({"maxtags": "16", "blocksize": "8192"}, "blocksize: 4096 -> 8192; maxtags: 8 -> 16"),
        ({"spread": "4"}, ""),
        ({"seed": "2"}, ""),
        ({}, ""),
    ],
)
def test_what_is_asked_of_the_storage_is_the_load(cells: Mapping[str, str], text: str) -> None:
    assert differs(run({}), run(cells)) == text


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        ((HALF,), (HALF,), ""),
        ((HALF,), (MORE,), "iops_setting: 50% of step max -> 70% of step max"),
        ((HALF,), (GIVEN,), "iops_setting: 50% of step max -> 150"),
        ((BY_PARAMETER,), (HALF,), ""),
        ((BY_PARAMETER, "-D", "share=70%"), (MORE,), ""),
        ((BY_PARAMETER,), (BY_PARAMETER, "-D", "share=70%"), "iops_setting: 50% of step max -> 70% of step max"),
        (("not a plan",), ("not a plan",), "iops_setting: 200 -> 150"),
    ],
)
def test_a_rate_that_an_earlier_step_gives_is_compared_as_the_plan_has_it(
    before: tuple[str, ...], after: tuple[str, ...], text: str
) -> None:
    """Half of what was reached is another number in every run, and the same load."""
    assert differs(run({}, *before), run({"iops_setting": "150"}, *after)) == text


@pytest.mark.parametrize(
    ("limits", "text"), [(("1ms", "1ms"), ""), (("1ms", "2ms"), "p99 at most 1ms -> find: most total_iops with")]
)
def test_what_a_search_found_is_no_difference_but_what_it_looked_for(limits: tuple[str, str], text: str) -> None:
    one, other = (plan("{ maxtags: 8 }", SEARCH.format(limit)) for limit in limits)
    assert bool(text) == bool(differs(run({}, one), run({"iops_setting": "150"}, other)))
    assert text in differs(run({}, one), run({"iops_setting": "150"}, other))


UP, DOWN = (f"{{ name: paced, profile: {{ ramp: [{rates}] }} }}" for rates in ("100, 300", "300, 100"))
LONG = (f"{{ name: paced, profile: {{ ramp: [1, 2, 3, {rate}, 5, 6] }} }}" for rate in (4, 9))


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (UP, UP, ""),
        (UP, DOWN, "iops_setting: profile 100 at 0s, 300 at 5s -> profile 300 at 0s, 100 at 5s"),
        (*LONG, "iops_setting: profile 1 at 0s, 2 at 1s, 3 at 2s, 4 at 3s, 5 at 4s, 6 at 5s -> profile 1 at 0s, "
         "2 at 1s, 3 at 2s, 9 at 3s, 5 at 4s, 6 at 5s"),
    ],
)  # fmt: skip
def test_profiles_with_the_same_mean_are_the_same_load_where_all_points_are(before: str, after: str, text: str) -> None:
    cells = {"iops": "profile"}
    one, other = (run(cells, plan("{ maxtags: 8 }", go)) for go in (before, after))
    assert differs(one, other) == text


def test_a_profile_is_another_load_than_its_mean() -> None:
    one = run({"iops": "profile"}, plan("{ maxtags: 8 }", UP))
    assert differs(one, run({})) == "iops_setting: profile 100 at 0s, 300 at 5s -> 200"


@pytest.mark.parametrize(("text", "is_same"), [(FIRST_HALF, True), (FIRST_BYTES, False)])
def test_half_of_a_larger_device_is_the_same_load(text: str, is_same: bool) -> None:
    one, other = run({"range": "0-100"}, text), run({"range": "0-200"}, text)
    assert (differs(one, other) == "") is is_same


def two(a: str, b: str) -> str:
    return plan("{ maxtags: 8 }").replace("w: { maxtags: 8 }", f"a: {a}, b: {b}")


@pytest.mark.parametrize(
    ("before", "after", "is_same"),
    [
        (plan("{ working_set: 10% }"), plan("{ working_set: 10% }"), True),
        (plan("{ working_set: 10% }"), plan("{ working_set: 20% }"), False),
        (two("{ working_set: 10% }", "{ maxtags: 2 }"), two("{ working_set: 10% }", "{ working_set: 10% }"), False),
        (two("{ working_set: 10% }", "{ maxtags: 2 }"), two("{ maxtags: 2 }", "{ working_set: 10% }"), False),
        (two("{ working_set: 10% }", "{ maxtags: 2 }"), two("{ working_set: 10% }", "{ maxtags: 2 }"), True),
    ],
)
def test_a_part_of_the_range_is_compared_as_the_plan_has_it_for_each_workload(
    before: str, after: str, is_same: bool
) -> None:
    one, other = run({"working_set": "100(1/2) 0(1/2)"}, before), run({"working_set": "200(1/2) 0(1/2)"}, after)
    assert (differs(one, other) == "") is is_same


def test_a_law_that_an_older_version_did_not_have_is_another_load() -> None:
    """Its runs were even."""
    older = run({})
    cells = {name: cell for name, cell in CELLS.items() if name != "zipf"}
    before = FinishedRun("A1", older.folder, {}, {KEY: StepRow(cells)})
    assert differs(before, run({"zipf": "1.1"})) == "zipf: 0 -> 1.1"
    assert differs(before, run({"zipf": "0"})) == ""


@pytest.mark.parametrize("setting", ["think_time", "iops_setting"])
def test_a_setting_that_an_older_version_did_not_write_is_no_difference(setting: str) -> None:
    older = run({})
    cells = {name: cell for name, cell in CELLS.items() if name != setting} | {"iops": "100"}
    assert differs(FinishedRun("A1", older.folder, {}, {KEY: StepRow(cells)}), run({setting: "1"})) == ""


@pytest.mark.parametrize(
    "cells",
    [
        {"hosts_in": "1", "hosts_of": "2"},
        {"reasons": "host_lost[partial] (lab2)"},
        {"reasons": "edited[note] (at 3 s)"},
        {"rate_verdict": "invalid", "service_verdict": "invalid", "response_verdict": "invalid"},
    ],
)
def test_a_run_that_does_not_count_does_not_say_which_load_is_compared(cells: Mapping[str, str]) -> None:
    """Else one edit by hand in the newest run would leave out all others, and hide a regression of theirs."""
    before, whole, newest = run({}), run({}), run({"iops_setting": "150", **cells})
    assert other_loads(before, [whole, newest]) == other_loads(whole, [whole, newest]) == {}
    assert other_loads(newest, [whole, newest]) == {"paced": "iops_setting: 150 -> 200"}
    assert other_loads(before, [newest]) == {"paced": "iops_setting: 200 -> 150"}, "there is no other"


def test_a_repeated_step_has_the_rate_of_its_plan() -> None:
    """The name of its row is not that of the step, as that of a search is not."""
    assert differs(run({"name": "paced+attempt=2"}), run({"iops_setting": "150"})) == "iops_setting: 200 -> 150"


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        ("4096(2/3) 8192(1/3)", "8192(2/3) 4096(1/3)", "4096(2/3) 8192(1/3) -> 8192(2/3) 4096(1/3)"),
        ("4096(2/3) 8192(1/3)", "4096(4/6) 8192(2/6)", ""),
        ("4096(1/2) 8192(1/2)", "8192(2/4) 4096(2/4)", ""),
        ("1(1/9) 2(1/9) and 7 other values", "2(1/9) 1(1/9) and 7 other values", ""),
        ("1(1/9) 2(1/9) and 7 other values", "1(1/9) 2(1/9)", "1(1/9) 2(1/9) and 7 other values -> 1(1/9) 2(1/9)"),
    ],
)
def test_a_load_of_several_is_the_share_of_each_in_any_order(before: str, after: str, text: str) -> None:
    """Twice the hosts, or the workloads in another order, are the same."""
    assert differs(run({"blocksize": before}), run({"blocksize": after})) == (f"blocksize: {text}" if text else "")


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        ("200(1/2) max(1/2)", "max(1/2) 200(1/2)", ""),
        ("200(1/2) max(1/2)", "400(1/2) max(1/2)", "iops_setting: 200(1/2) max(1/2) -> 400(1/2) max(1/2)"),
    ],
)
def test_the_rates_of_instances_are_the_load_where_some_are_at_max(before: str, after: str, text: str) -> None:
    """There is no total then."""
    some, others = ({"iops_setting": "", "iops": rates} for rates in (before, after))
    assert differs(run(some), run(others)) == text


ELSEWHERE = "hosts: slurm\nrollups: [ host ]\n" + HALF.replace("all=all", "host=node7")


def test_the_plan_of_a_slurm_job_is_read_outside_of_it(tmp_path: Path) -> None:
    (tmp_path / "hosts.csv").write_text("host\nnode7\nnode8\n")
    one, other = (replace(run({"iops_setting": rate}, ELSEWHERE), folder=tmp_path) for rate in ("200", "150"))
    for made in (one, other):
        made.__dict__["plan"] = ELSEWHERE
    assert differs(one, other) == ""


TWO = HALF.replace("w: { maxtags: 8 }", "w: { maxtags: 8 }, slow: { SLOW }").replace("all=all", "workload=w")
BESIDE = TWO.replace("luns:", "rollups: [ workload ]\nluns:")


@pytest.mark.parametrize(
    ("text", "before", "after", "differing"),
    [
        (BESIDE, "iops: 100", "iops: 100", False),
        (BESIDE, "iops: 100", "iops: 150", True),
        (BESIDE.replace("total_iops: 50% of step max", 'range: ["0%", "50%"]'), "iops: 100", "iops: 150", True),
    ],
)
def test_a_workload_beside_a_relative_one_has_a_load_of_its_own(
    text: str, before: str, after: str, differing: bool
) -> None:
    one, other = (text.replace("SLOW", setting) for setting in (before, after))
    assert bool(differs(run({}, one), run({"iops_setting": "150"}, other))) is differing


PART = BESIDE.replace("total_iops: 50% of step max", "range: [0, 32MiB]")


@pytest.mark.parametrize(("until", "is_same"), [("{ written: 2x }", True), ("{ written: 64MiB }", False)])
def test_an_end_in_multiples_of_the_range_is_the_same_on_disks_of_any_size(until: str, is_same: bool) -> None:
    text = plan(f"{{ fraction_read: 0%, until: {until} }}")
    one, other = run({"until": "written=100"}, text), run({"until": "written=200"}, text)
    assert differs(one, other) == ("" if is_same else "until: written=100 -> written=200")


def test_a_relative_range_of_a_workload_counts_beside_an_edited_one() -> None:
    text = PART.replace("SLOW", 'range: ["0%", "50%"]')
    cells = "0-33554432(1/2) 0-{}(1/2)"
    assert differs(run({"range": cells.format(100)}, text), run({"range": cells.format(200)}, text)) == ""


@pytest.mark.parametrize(
    ("before", "after", "is_same"),
    [
        ("100(1/2) 300(1/2)", "200", False),
        ("100(1/2) 300(1/2)", "150(2/4) 50(2/4)", True),
        ("200", "100", True),
        ("100(1/2) 300(1/2)", "100(1/4) 300(3/4)", False),
        ("0", "0", True),
    ],
)
def test_the_same_total_is_another_load_where_instances_have_other_parts_of_it(
    before: str, after: str, is_same: bool
) -> None:
    """Twice the LUNs, each with half the rate, are the same."""
    assert (differs(run({"iops": before}), run({"iops": after})) == "") is is_same


def test_a_damaged_cell_is_compared_as_it_is() -> None:
    assert differs(run({"blocksize": "4096(1/0)"}), run({})) == "blocksize: 4096(1/0) -> 4096"
