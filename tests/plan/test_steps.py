"""From `steps:` to what runs: every step with its complete settings, its times and its name."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivypy.master.plan import steps
from ivypy.master.plan.checks.io_mix import Mix, after, created
from ivypy.master.plan.describe import describe, planned_s
from ivypy.master.plan.load import read
from ivypy.master.plan.model import TOTAL_IOPS, Edit, Live, Plan, Step
from ivypy.master.plan.read.yaml_positions import Place
from ivypy.master.plan.steps import EditsInForce, clause, with_edit
from ivypy.master.rollup.instances import ALL
from ivypy.master.text.places import Position
from ivypy.master.text.plan_parameters import OfStep, PlanParameters
from ivypy.protocol.parameters import Iosequencer, Parameters
from tests.support.plan import completed

ELSEWHERE = Place("p.yaml", 1, 1)


def plan(fragment: str) -> Plan:
    return read(completed(fragment), "p.yaml")


def edits(step: Step) -> list[tuple[str, tuple[str, ...], Mapping[str, Any]]]:
    return [(edit.rollup, edit.instances, edit.changes) for edit in step.edits]


def test_a_step_carries_every_edit_that_is_in_force() -> None:
    made = plan("""\
rollups: [ host, workload ]
hosts: [ h1, h2 ]
steps:
  - go: max
  - edit: { rollup: all=all, set: { total_iops: 50% of step max, maxtags: 8 } }
  - go: half
  - edit: { rollup: "host={h1,h2}", set: { fraction_read: 70% } }
  - edit: { rollup: host=h1, set: { blocksize: 8KiB } }
  - go: mixed
  - edit: { rollup: all=all, set: { iops: 100 } }
  - edit: { rollup: host, set: { fraction_read: 100% } }
  - go: last
""")
    assert [(step.number, step.name) for step in made.steps] == [(0, "max"), (1, "half"), (2, "mixed"), (3, "last")]
    half = ("all", ("all",), {"maxtags": 8, "total_iops": OfStep(0.5, "max")})
    assert [edits(step) for step in made.steps] == [
        [],
        [half],
        [half, ("host", ("h1", "h2"), {"fraction_read": 0.7}), ("host", ("h1",), {"blocksize": 8192})],
        [
            ("all", ("all",), {"maxtags": 8}),  # its load is overridden by iops
            ("host", ("h1",), {"blocksize": 8192}),
            ("all", ("all",), {"iops": 100.0}),
            ("host", (), {"fraction_read": 1.0}),
        ],
    ]
    assert str(made.steps[1].edits[0].place) == "p.yaml:5:5"
    assert str(made.steps[1].place) == "p.yaml:6:5"


CHANGES = st.dictionaries(
    st.sampled_from(["iops", TOTAL_IOPS, "maxtags", "blocksize"]), st.integers(1, 9), min_size=1, max_size=3
).filter(lambda changes: len(changes.keys() & {"iops", TOTAL_IOPS}) < 2)
SELECTIONS = st.sampled_from([(ALL, (ALL,)), (ALL, ()), ("host", ()), ("host", ("a",)), ("host", ("a", "b"))])
EDITS = st.builds(lambda where, changes: Edit(where[0], where[1], changes, ELSEWHERE), SELECTIONS, CHANGES)


def applied(sequence: tuple[Edit, ...]) -> dict[str, dict[str, object]]:
    """The settings of three hosts after edits; a load is whichever of iops and total_iops was set last, and by whom."""
    hosts: dict[str, dict[str, object]] = {host: {} for host in "abc"}
    for edit in sequence:
        for host, settings in hosts.items():
            if edit.rollup == ALL or not edit.instances or host in edit.instances:
                for name, value in edit.changes.items():
                    settings["load" if name in ("iops", TOTAL_IOPS) else name] = (name, value)
    return hosts


@given(st.lists(EDITS, max_size=8))
def test_leaving_out_overridden_edits_changes_nothing(sequence: list[Edit]) -> None:
    in_force: tuple[Edit, ...] = ()
    for edit in sequence:
        in_force = with_edit(in_force, edit)
    assert applied(in_force) == applied(tuple(sequence))
    assert all(edit.changes for edit in in_force)


@given(st.lists(EDITS, max_size=12))
def test_edits_in_force_are_kept_as_if_each_were_compared_with_all(sequence: list[Edit]) -> None:
    kept, in_force = EditsInForce(), tuple[Edit, ...]()
    for edit in sequence:
        kept.add(edit)
        in_force = with_edit(in_force, edit)
        assert kept.edits() == in_force


def test_an_edit_looks_at_those_that_it_may_override(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a thousand instances, each is edited twice."""
    looks: list[object] = []
    covers = steps._covers

    def counting(new: Edit, old: Edit) -> bool:
        looks.append(new)
        return covers(new, old)

    monkeypatch.setattr(steps, "_covers", counting)
    kept = EditsInForce()
    for iops in (1, 2):
        for n in range(1000):
            kept.add(Edit("workload", (f"w{n}",), {"iops": iops}, ELSEWHERE))
    assert len(looks) == len(kept.edits()) == 1000


def test_a_loop_is_a_step_for_every_combination_the_first_key_outermost() -> None:
    made = plan("""\
steps:
  - go:
      name: sizes
      warmup: 5s
      loop:
        maxtags: [1, 32]
        blocksize: [4KiB, 8KiB, 1MiB]
  - go: after
""")
    names = [step.name for step in made.steps]
    assert names == [
        *(f"sizes+maxtags={tags}+blocksize={size}" for tags in (1, 32) for size in ("4KiB", "8KiB", "1MiB")),
        "after",
    ]
    assert [step.number for step in made.steps] == list(range(7))
    assert edits(made.steps[4]) == [("all", ("all",), {"maxtags": 32, "blocksize": 8192})]
    assert made.steps[4].loop == {"maxtags": 32, "blocksize": 8192}
    assert made.steps[4].warmup_s == 5.0
    assert edits(made.steps[6]) == []  # what a loop sets ends with it
    assert made.steps[6].loop == {}


def test_a_loop_overrides_the_edits_before_it_and_may_itself_refer_to_a_pass() -> None:
    made = plan("""\
steps:
  - edit: { rollup: all=all, set: { iops: 7, maxtags: 3 } }
  - go: { name: load, loop: { total_iops: [100, max] } }
  - go: { name: part, loop: { total_iops: [10% of step load+total_iops=max] } }
""")
    assert edits(made.steps[0]) == [("all", ("all",), {"maxtags": 3}), ("all", ("all",), {"total_iops": 100.0})]
    assert edits(made.steps[1])[1] == ("all", ("all",), {"total_iops": "max"})
    assert made.steps[2].loop == {"total_iops": OfStep(0.1, "load+total_iops=max")}
    assert made.steps[2].name == "part+total_iops=10% of step load+total_iops=max"


def test_every_kind_of_parameter_can_be_looped() -> None:
    made = plan("""\
steps:
  - go:
      name: l
      loop:
        iosequencer: [random_steady, random_independent, sequential]
        fraction_read: [0%, 100%]
        iops: [0, 2.5, 1k]
        range: [0%..50%, 1MiB..2MiB]
        seed: [1, 2]
""")
    assert len(made.steps) == 3 * 2 * 3 * 2 * 2
    assert made.steps[0].name == "l+iosequencer=random_steady+fraction_read=0%+iops=0+range=0%..50%+seed=1"
    assert made.steps[-1].loop == {
        "iosequencer": Iosequencer.SEQUENTIAL,
        "fraction_read": 1.0,
        "iops": 1000.0,
        "range": (Position(bytes=1 << 20), Position(bytes=2 << 20)),
        "seed": 2,
    }


def test_times_come_from_the_step_or_the_defaults_or_the_program() -> None:
    made = plan("""\
defaults: { subinterval: 2s, measure: 30s }
steps:
  - go: { name: a, warmup: 4s, cooldown: 2s }
  - go: { name: b, measure: 10s, subinterval: 500ms }
""")
    times = [(s.subinterval_s, s.warmup_s, s.measure_s, s.cooldown_s) for s in made.steps]
    assert times == [(2.0, 4.0, 30.0, 2.0), (0.5, 10.0, 10.0, 0.0)]
    assert made.subinterval_s == 2.0
    first = plan("name: x").steps[0]
    assert (first.subinterval_s, first.warmup_s, first.measure_s, first.cooldown_s) == (1.0, 10.0, 60.0, 0.0)


@pytest.mark.parametrize(
    "subinterval, asked, whole, count, note",
    [
        ("5s", "12s", 15.0, 3, "warmup 12s becomes 15s: whole subintervals of 5s"),
        ("5s", "15s", 15.0, 3, None),
        ("5s", "0", 0.0, 0, None),
        ("5s", "1ns", 5.0, 1, "warmup 0.000000001s becomes 5s: whole subintervals of 5s"),
        ("0.3s", "0.9s", 0.9, 3, None),  # binary fractions would make four of it
        ("0.7s", "2s", 2.1, 3, "warmup 2s becomes 2.1s: whole subintervals of 700ms"),
    ],
)
def test_times_are_whole_subintervals(subinterval: str, asked: str, whole: float, count: int, note: str | None) -> None:
    step = plan(f"steps: [ {{ go: {{ name: a, subinterval: {subinterval}, warmup: {asked} }} }} ]").steps[0]
    assert step.warmup_s == whole
    assert step.control.warmup == count
    notes = [n for n in step.notes if n.startswith("warmup")]
    assert notes == ([note] if note else [])


@pytest.mark.parametrize(
    "text, meaning",
    [
        ("all=all", ("all", ("all",))),
        ("host", ("host", ())),
        ("host=h1", ("host", ("h1",))),
        ("host={h1,h2}", ("host", ("h1", "h2"))),
        (" host = { h1 , h2 } ", ("host", ("h1", "h2"))),
        ("serial+port=410116+1A", ("serial+port", ("410116+1A",))),
        ("by_id=a=b", ("by_id", ("a=b",))),
    ],
)
def test_rollup_clauses_are_read(text: str, meaning: tuple[str, tuple[str, ...]]) -> None:
    assert clause(text) == meaning


@pytest.mark.parametrize("text", ["", "=", "=h1", "host=", "host={", "host={a", "host={a,}", "host={}"])
def test_malformed_rollup_clauses_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="write for example all=all, host=h1 or host"):
        clause(text)


MIXES = [
    # A plan that begins so, and the step in which an instance is sequential, and reads and writes.
    ("workloads: { a: { iosequencer: sequential } }", None),
    ("workloads: { a: { iosequencer: sequential, fraction_read: 0% } }", None),
    ("steps: [ { edit: { rollup: all, set: { iosequencer: sequential, fraction_read: 0% } } }, { go: x } ]", None),
    ("steps: [ { edit: { rollup: all, set: { iosequencer: sequential, fraction_read: 5% } } }, { go: x } ]", "x"),
    # Only what a step would run counts, not what edits pass through on the way.
    (
        "workloads: { a: { fraction_read: 70% } }\nsteps:\n"
        "- edit: { rollup: all, set: { iosequencer: sequential } }\n"
        "- edit: { rollup: all, set: { fraction_read: 0% } }\n- go: x",
        None,
    ),
    # Two hosts, one sequential, one mixed.
    (
        "hosts: [ h1, h2 ]\nrollups: [ host ]\nsteps:\n"
        "- edit: { rollup: host=h1, set: { iosequencer: sequential } }\n"
        "- edit: { rollup: host=h2, set: { fraction_read: 50% } }\n- go: x",
        None,
    ),
    (
        "hosts: [ h1, h2 ]\nrollups: [ host ]\nsteps:\n"
        "- edit: { rollup: host=h1, set: { iosequencer: sequential } }\n"
        '- edit: { rollup: "host={h1,h2}", set: { fraction_read: 50% } }\n- go: x',
        "x",
    ),
    # Both hosts were made to write before all was made sequential: none is left that reads and writes.
    (
        "hosts: [ h1, h2 ]\nrollups: [ host ]\nworkloads: { a: { fraction_read: 70% } }\nsteps:\n"
        "- edit: { rollup: host=h1, set: { fraction_read: 0% } }\n"
        "- edit: { rollup: host=h2, set: { fraction_read: 100% } }\n"
        "- edit: { rollup: all, set: { iosequencer: sequential } }\n- go: x",
        None,
    ),
    (
        "hosts: [ h1, h2, h3 ]\nrollups: [ host ]\nworkloads: { a: { fraction_read: 70% } }\nsteps:\n"
        "- edit: { rollup: host=h1, set: { fraction_read: 0% } }\n"
        "- edit: { rollup: host=h2, set: { fraction_read: 100% } }\n"
        "- edit: { rollup: all, set: { iosequencer: sequential } }\n- go: x",
        "x",
    ),
    # Workloads are told apart, alone and within a combination.
    (
        "rollups: [ workload ]\nworkloads: { a: {}, b: { fraction_read: 70% } }\nsteps:\n"
        "- edit: { rollup: workload=a, set: { iosequencer: sequential } }\n- go: x",
        None,
    ),
    (
        "rollups: [ host+workload ]\nworkloads: { a: {}, b: { fraction_read: 70% } }\nsteps:\n"
        "- edit: { rollup: host+workload=local+a, set: { iosequencer: sequential } }\n- go: x",
        None,
    ),
    (
        "rollups: [ host+workload ]\nworkloads: { a: {}, b: { fraction_read: 70% } }\nsteps:\n"
        "- edit: { rollup: host+workload=local+b, set: { iosequencer: sequential } }\n- go: x",
        "x",
    ),
    # A later step, a loop's second pass.
    (
        "steps:\n- go: x\n- edit: { rollup: all, set: { iosequencer: sequential } }\n"
        "- go: { name: y, loop: { fraction_read: [100%, 50%] } }",
        "y+fraction_read=50%",
    ),
]


def mixes_in(made: Plan, step: Step) -> list[Mix]:
    """Those that any instance may have."""
    hosts = [host.name for host in made.hosts]
    found = []
    for workload in made.workloads:
        mixes = created(workload)
        for edit in step.edits:
            mixes = after(mixes, edit, workload.name, hosts)
        found += mixes
    return found


@pytest.mark.parametrize("fragment, step", MIXES)
def test_edits_of_some_instances_meet_in_those_alone(fragment: str, step: str | None) -> None:
    made = plan(fragment)
    both = [
        one.name
        for one in made.steps
        if any(mix.iosequencer == "sequential" and 0 < mix.fraction_read < 1 for mix in mixes_in(made, one))
    ]
    assert both == ([step] if step else [])


def test_an_edit_of_operations_says_how_much_is_read() -> None:
    made = plan(
        "workloads: { a: { operations: { read: 10%, trim: 90% } } }\nsteps:\n- go: x\n"
        "- edit: { rollup: all, set: { fraction_read: 30% } }\n- go: y\n"
        "- edit: { rollup: all, set: { operations: { write_zeroes: 100% } } }\n- go: z"
    )
    found = [[mix.shares for mix in mixes_in(made, step)] for step in made.steps]
    assert found == [[{"read": 0.1, "trim": 0.9}], [{"read": 0.3, "trim": pytest.approx(0.7)}], [{"write_zeroes": 1.0}]]


def test_many_hosts_with_settings_of_their_own_are_not_confused() -> None:
    each = "".join(f"  - edit: {{ rollup: host=h{i}, set: {{ fraction_read: {i % 2 * 100}% }} }}\n" for i in range(300))
    made = plan(
        f"hosts: 'h[0-299]'\nrollups: [ host ]\nworkloads: {{ a: {{ fraction_read: 70% }} }}\nsteps:\n{each}"
        "  - edit: { rollup: all, set: { iosequencer: sequential } }\n  - go: x\n"
    )
    assert len(made.steps[0].edits) == 301


DESTROYS = [
    ("luns: { select: { kind: block } }\nworkloads: { a: {} }", False),
    ("luns: { select: { kind: block } }\nworkloads: { a: { fraction_read: 99% } }", True),
    ("luns: { files: /data/* }\nworkloads: { a: { fraction_read: 0% } }", True),
    ("luns: { create: { path: /f, size: 1MiB } }\nworkloads: { a: { fraction_read: 0% } }", False),
    (
        "luns: { select: { kind: block }, create: { path: /f, size: 1MiB } }\n"
        "workloads: { a: { fraction_read: 0%, select: { kind: file } }, b: { select: { kind: block } } }",
        False,
    ),
    (
        "luns: { select: { kind: block }, create: { path: /f, size: 1MiB } }\n"
        "workloads: { a: { fraction_read: 0%, select: { kind: not file } } }",
        True,
    ),
    # Where only the hosts can tell, the check is left to the run.
    (
        "luns: { select: { kind: block }, create: { path: /f, size: 1MiB } }\n"
        "workloads: { a: { fraction_read: 0%, select: { path: /f } } }",
        False,
    ),
    ("luns: { select: { kind: block } }\nsteps: [ { go: { name: x, loop: { fraction_read: [100%, 0%] } } } ]", True),
]


@pytest.mark.parametrize("fragment, refused", DESTROYS)
def test_what_is_certain_to_overwrite_needs_destroy(fragment: str, refused: bool) -> None:
    if refused:
        with pytest.raises(Exception, match="destroy: true"):
            plan(fragment)
    else:
        plan(fragment)
    plan(f"destroy: true\n{fragment}")


def test_parameters_become_absolute_on_a_lun() -> None:
    half = PlanParameters(blocksize=8192, maxtags=4, range=(Position(fraction=0.0), Position(fraction=0.5)))
    assert half.absolute(1_000_000, "file", 250.0) == Parameters(
        blocksize=8192,
        maxtags=4,
        iops=250.0,
        range=(0, 61 * 8192),  # of 122 whole blocks
    )
    assert PlanParameters().absolute(1_000_000, "file", "max").range == (0, 0)
    mixed = PlanParameters(range=(Position(bytes=4096), Position(fraction=1.0)))
    assert mixed.absolute(1_000_000, "file", 0.0).range == (4096, 244 * 4096)
    after = PlanParameters(range=(Position(fraction=0.5), Position(0.5, 8192)))
    assert after.absolute(1_000_000, "file", 0.0).range == (122 * 4096, 124 * 4096)
    past = PlanParameters(range=(Position(bytes=4096), Position(0.5, 1 << 20)))
    assert past.absolute(1_000_000, "file", 0.0).range == (4096, 1_000_000)


def test_the_plans_parameters_are_those_of_the_table() -> None:
    from dataclasses import fields

    assert [f.name for f in fields(PlanParameters)] == [f.name for f in fields(Parameters)]
    assert PlanParameters().absolute(1 << 30, "file", "max") == Parameters()


@pytest.mark.slow
def test_a_plan_of_ten_thousand_lines_is_whole() -> None:
    text = "rollups: [ host, workload ]\nsteps:\n" + "".join(
        f"- go: {{ name: s{i}, warmup: 30s }}\n- edit:\n    rollup: all=all\n    set:\n      total_iops: {i}\n"
        for i in range(2000)
    )
    made = plan(text + "- go: last\n")
    assert len(made.steps) == 2001
    assert edits(made.steps[-1]) == [("all", ("all",), {"total_iops": 1999.0})]
    assert made.steps[-1].place.line == 10_003


def test_limits_of_live_edits_hold_for_the_whole_plan() -> None:
    made = plan("live: { maxtags: 64, blocksize: 1MiB, range: 50%..100% }\nsteps: [ go: one ]\n")
    assert made.live == Live(64, 1 << 20, (Position(fraction=0.5), Position(fraction=1.0)))
    assert "live edits may ask for\n  maxtags 64, blocksize 1MiB, range 50%..100%\n" in describe(made)
    plain = plan("steps: [ go: one ]\n")
    assert plain.live == Live(0, 0, None) and "live edits" not in describe(plain)


ROUNDS = "steps: [ go: { name: mix, loop: { fraction_read: [50%%, 0%%], blocksize: [4KiB, 8KiB] }, rounds: %s } ]"


@pytest.mark.parametrize(
    ("rounds", "watched"),
    [
        ("{}", [True] * 4),
        ("{ watch: { fraction_read: 0% } }", [False, False, True, True]),
        ("{ watch: { blocksize: 8KiB, fraction_read: 0% } }", [False, False, False, True]),
    ],
)
def test_rounds_look_at_the_passes_that_have_these_values(rounds: str, watched: list[bool]) -> None:
    made = plan(ROUNDS % rounds)
    assert [step.control.is_watched for step in made.steps] == watched
    (spec,) = {step.control.rounds for step in made.steps}
    assert spec is not None and (spec.step, spec.focus.metric, spec.most) == ("mix", "overall_iops", 25)
    assert planned_s(made.steps) == 25 * sum(step.planned_s for step in made.steps)
