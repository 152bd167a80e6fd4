"""What a wrong plan is told: the exact sentence, place, line and caret of every fault."""

import pytest

from ivypy.master.errors import PlanError
from ivypy.master.plan.load import read
from ivypy.master.plan.read.yaml_positions import PlanFaults
from tests.support.plan import completed
from tests.support.plan_fault_table import FAULTS


@pytest.mark.parametrize("fragment, fault", FAULTS, ids=[fragment[:60] for fragment, _ in FAULTS])
def test_a_fault_is_reported_with_its_place_its_line_and_a_caret(fragment: str, fault: str) -> None:
    text = completed(fragment)
    with pytest.raises(PlanFaults) as caught:
        read(text, "p.yaml")
    line, column = (int(part) for part in fault.split(":")[:2])
    source = "".join(c if c.isprintable() else " " for c in text.split("\n")[line - 1])
    if len(source) <= 76:
        assert str(caught.value) == f"p.yaml:{fault}\n    {source}\n    {' ' * (column - 1)}^"
    else:
        assert str(caught.value).startswith(f"p.yaml:{fault}\n")
        *_, shown, caret = str(caught.value).split("\n")
        assert source[column - 1 : column + 3].startswith(shown[len(caret) - 1 :][:4]) and len(shown) <= 80


def test_all_that_an_empty_plan_lacks_is_reported() -> None:
    with pytest.raises(PlanFaults) as caught:
        read("name: nothing\n", "p.yaml")
    assert str(caught.value).split("\n")[::3] == [
        "p.yaml:1:1: the plan has no 'luns', so there is nothing to drive; "
        "write luns: { create: { path: ..., size: 1GiB } }, or select block devices",
        "p.yaml:1:1: the plan has no 'steps', so nothing would run; write steps: [ go: { name: NAME } ]",
        "p.yaml:1:1: the plan has no 'workloads', so there is no I/O; write workloads: { NAME: { blocksize: 8KiB } }",
    ]


@pytest.mark.parametrize("key", ["step", "Steps", "stpes"])
def test_a_section_that_is_misspelt_is_not_missing_as_well(key: str) -> None:
    text = f"luns: {{ files: [ /f ] }}\nworkloads: {{ w: {{ blocksize: 8KiB }} }}\n{key}: [ go: {{ name: one }} ]\n"
    with pytest.raises(PlanFaults) as caught:
        read(text, "p.yaml")
    (fault,) = str(caught.value).split("\n")[::3]
    assert fault.startswith(f"p.yaml:3:1: unknown key {key!r} in the plan; ") and "'steps'" in fault


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n"])
def test_an_empty_plan_is_reported_as_empty(text: str) -> None:
    with pytest.raises(PlanFaults, match=r"^p\.yaml:1:1: the plan is empty"):
        read(text, "p.yaml")


def test_a_list_is_not_a_plan() -> None:
    with pytest.raises(PlanFaults, match="the plan is not a mapping of keys"):
        read("- go: one\n", "p.yaml")


def test_every_fault_is_reported_at_once_in_the_order_of_the_file() -> None:
    text = """\
hosts: [ "lab[1-2]", lab2 ]
destroy: yes
luns:
  selct: { vendor: HITACHI }
  create: { path: f, size: "${sise}" }
workloads:
  oltp: { bs: 8KiB, maxtags: 0, iops: 50% }
rollups: [ hosts ]
steps:
  - go: { name: one, runtime: 60 }
  - edit: { rollup: disk=a, set: { iops: 50% of step onr } }
  - go: { name: one }
"""
    expected = """\
p.yaml:1:22: duplicate host 'lab2' (first in line 1)
    hosts: [ "lab[1-2]", lab2 ]
                         ^
p.yaml:2:10: destroy: 'yes' is neither true nor false; write true
    destroy: yes
             ^
p.yaml:4:3: unknown key 'selct' in luns; did you mean 'select'?
      selct: { vendor: HITACHI }
      ^
p.yaml:5:19: path: 'f' is not an absolute path; hosts have no common folder to start from
      create: { path: f, size: "${sise}" }
                      ^
p.yaml:5:29: ${sise}: the plan has no parameter 'sise'; declare it: parameters: { NAME: DEFAULT }
      create: { path: f, size: "${sise}" }
                                ^
p.yaml:7:11: unknown key 'bs' in workload 'oltp'; here it is called 'blocksize'
      oltp: { bs: 8KiB, maxtags: 0, iops: 50% }
              ^
p.yaml:7:30: maxtags: '0' is too little; the least is 1
      oltp: { bs: 8KiB, maxtags: 0, iops: 50% }
                                 ^
p.yaml:7:39: iops: '50%' needs a step; write 50% of step NAME
      oltp: { bs: 8KiB, maxtags: 0, iops: 50% }
                                          ^
p.yaml:8:12: LUNs have no attribute 'hosts'; did you mean 'host'?
    rollups: [ hosts ]
               ^
p.yaml:10:22: unknown key 'runtime' in go; here it is called 'measure'
      - go: { name: one, runtime: 60 }
                         ^
p.yaml:11:42: the plan has no step 'onr'; did you mean 'one'?
      - edit: { rollup: disk=a, set: { iops: 50% of step onr } }
                                             ^
p.yaml:12:17: duplicate step name 'one' (first in line 10)
      - go: { name: one }
                    ^"""
    with pytest.raises(PlanFaults) as caught:
        read(text, "p.yaml")
    assert str(caught.value) == expected


@pytest.mark.parametrize(
    "text",
    [
        # The faulty thing, and something that refers to it.
        "hosts: [ { nme: db1 } ]\nrollups: [ host ]\n"
        "steps: [ { edit: { rollup: host=db1, set: { iops: 5 } } }, { go: x } ]",
        "workloads: { a: 5 }\nrollups: [ workload ]\n"
        "steps: [ { edit: { rollup: workload=a, set: { iops: 5 } } }, { go: x } ]",
        "steps: [ { go: { nam: max } }, { edit: { rollup: all=all, set: { iops: 50% of step max } } }, { go: a } ]",
        "rollups: [ { bye: host } ]\nsteps: [ { edit: { rollup: host, set: { iops: 5 } } }, { go: a } ]",
    ],
)
def test_what_refers_to_a_faulty_thing_is_not_faulty_for_that(text: str) -> None:
    with pytest.raises(PlanFaults) as caught:
        read(completed(text), "p.yaml")
    assert "the plan has no" not in str(caught.value)


def test_a_fault_of_the_command_line_names_the_option() -> None:
    text = completed("name: x\nparameters: { size: 1MiB }")
    with pytest.raises(PlanFaults) as caught:
        read(text, "p.yaml", {"sise": "2MiB"})
    assert (
        str(caught.value).split("\n")[0]
        == "p.yaml:2:1: -D sise: the plan has no parameter 'sise'; did you mean 'size'?"
    )


def test_a_long_line_is_cut_around_the_caret() -> None:
    text = completed(f"description: {'x' * 300}\nhosts: [ {', '.join(f'h{i}' for i in range(80))}, h79 ]")
    with pytest.raises(PlanFaults) as caught:
        read(text, "p.yaml")
    head, line, caret = str(caught.value).split("\n")
    assert head.endswith("duplicate host 'h79' (first in line 2)")
    assert len(line) <= 114
    assert line[caret.index("^") :].startswith("h79 ]")


def test_a_fault_found_later_is_reported_like_any_other() -> None:
    line = "attributes: [ { match: { host: a }, set: { x: 1 } } ]"
    plan = read(completed(line), "p.yaml")
    error = plan.fault(plan.attributes[0].place, "there is no host with LUNs")
    assert isinstance(error, PlanError)
    assert str(error) == f"p.yaml:1:15: there is no host with LUNs\n    {line}\n    {' ' * 14}^"
    both = plan.faults([(plan.workloads[0].place, "b"), (None, "a")])
    assert [str(fault.place) for fault in both.faults] == ["p.yaml:1:1", "p.yaml:3:14"]


@pytest.mark.slow
def test_deep_and_wide_texts_end_in_a_fault_and_not_in_a_crash() -> None:
    billion_laughs = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{name}: &{name} [{','.join(['*' + before] * 10)}]\n"
        for before, name in zip("abcdefgh", "bcdefghi", strict=True)
    )
    with pytest.raises(PlanFaults, match="holds more than 500,000 values"):
        read(billion_laughs, "p.yaml")
    with pytest.raises(PlanFaults, match="more than 100 values inside"):
        read("[" * 20_000, "p.yaml")
    with pytest.raises(PlanFaults, match="longer than 16 MiB"):
        read("#" * (17 << 20), "p.yaml")
    with pytest.raises(PlanFaults, match="a character that text cannot have: #x0007; remove it"):
        read("name: a\x07\n", "p.yaml")


def test_a_number_beyond_reason_is_refused_before_it_is_worked_out() -> None:
    with pytest.raises(PlanFaults, match="beyond all sizes that ivypy can handle"):
        read(completed("may_miss: 1e999999999"), "p.yaml")


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("-1s", "'-1s' is not a duration"),
        ("0", "'0' is too little; the least is 1ms"),
        ("0s", "'0s' is too little; the least is 1ms"),
        ("1", "'1' has no unit; write 1s for seconds"),
        ("2d", "'2d' is too much; the most is 24h"),
        ("max", "'max' is not a duration"),
        ("[1s]", "drop_after is a list; it needs a time like 1s, or never"),
    ],
)
def test_how_long_an_io_may_wait_is_a_time_with_a_unit(value: str, says: str) -> None:
    text = f"luns: {{}}\nworkloads: {{ w: {{ iops: 5, drop_after: {value} }} }}\nsteps: [ go: one ]\n"
    with pytest.raises(PlanFaults) as caught:
        read(text, "p.yaml")
    (line,) = [one for one in str(caught.value).splitlines() if one.startswith("p.yaml:2:")]
    assert says in line


@pytest.mark.parametrize(
    "text",
    [
        "workloads: { a: { think_time: 1ms } }",
        "workloads: { a: { think_time: 1ms, iops: 0 } }",  # who watches the run may set max
        "workloads: { a: { think_time: 0s, iops: 300 } }",
        "workloads: { a: { think_time: 1ms, iops: 300 } }\nlive: { maxtags: 2 }",  # who edits the run may set max
        "workloads: { a: { think_time: 1ms } }\nsteps: [ go: { name: s, staircase: { start: 1, end: 9, steps: 2 } } ]",
        "workloads: { a: { think_time: 1ms, iops: 300 } }\nsteps: [ go: { name: s, loop: { iops: [300, max] } } ]",
        "workloads: { a: { think_time: 1ms, iops: 9 } }\n"
        "steps: [ edit: { rollup: all, set: { total_iops: max } }, go: s ]",
    ],
)
def test_a_workload_may_think_where_it_can_be_a_closed_loop(text: str) -> None:
    assert read(completed(text), "p.yaml").workloads[0].name == "a"


@pytest.mark.parametrize(
    ("go", "texts"),
    [
        (
            "steady: { criterion: snia, metric: nonsense, timeout: 1s }",
            ["no metric nonsense", "cannot be steady"],
        ),
        (
            "control: { pid: { metric: nonsense, target: 1ms, low_iops: 2000, high_iops: 100 } }",
            ["no metric nonsense", "below high"],
        ),
    ],
)
def test_what_is_wrong_whatever_the_metric_is_reported_with_it(go: str, texts: list[str]) -> None:
    with pytest.raises(PlanFaults) as caught:
        read(completed(f"steps: [ go: {{ name: s, {go} }} ]"), "p.yaml")
    assert all(any(text in fault.text for fault in caught.value.faults) for text in texts)
