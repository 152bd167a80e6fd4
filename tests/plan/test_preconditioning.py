"""`precondition`: the steps that the recipe is short for, and the plans that it does not fit."""

from dataclasses import replace

import pytest

from ivypy.master.control.choices import Rule
from ivypy.master.control.steady import SteadySpec
from ivypy.master.control.until import UntilSpec
from ivypy.master.plan.load import read
from ivypy.master.plan.model import Plan, Step
from ivypy.master.plan.read.yaml_positions import PlanFaults
from ivypy.master.text.plan_parameters import PlanParameters, Volume
from ivypy.protocol.parameters import MAX, Iosequencer, VolumeKind
from tests.support.plan import completed

ODD = """\
workloads:
  oltp:
    { iosequencer: random_independent, blocksize: 4KiB, fraction_read: 70%, maxtags: 8, iops: 500,
      zipf: 1.1, flush: { every: 4 }, drop_after: 1s, sync: dsync, range: 0%..50%, seed: 7 }
steps:
  - edit: { rollup: all=all, set: { total_iops: 900, think_time: 0s, streams: 1, working_set: 10% } }
  - precondition: @
  - go: test
"""


def plan(recipe: str = "snia") -> Plan:
    return read(completed(ODD.replace("@", recipe)), "p.yaml", {})


def parameters(of: Plan, step: Step) -> PlanParameters:
    """Of the workload in a step."""
    made = of.workloads[0].parameters
    for edit in step.edits:
        made = made.edited({name: value for name, value in edit.changes.items() if name != "total_iops"})
    return made


def test_it_is_a_fill_and_a_steady_state_before_the_steps_that_follow() -> None:
    made = plan()
    fill, steady, test = made.steps
    assert [step.name for step in made.steps] == ["precondition", "precondition-steady", "test"]
    assert [step.number for step in made.steps] == [0, 1, 2]
    assert isinstance(fill.control.measurement, UntilSpec) and fill.control.measurement.timeout_s == 24 * 3600
    spec = steady.control.measurement
    assert isinstance(spec, SteadySpec) and spec.criterion.rule is Rule.SNIA
    assert (spec.criterion.window, spec.timeout_s) == (300, 24 * 3600), "subintervals of 1 s"
    settings = parameters(made, steady)
    assert settings == replace(parameters(made, test), iops=MAX), "of the fill nothing is left"
    assert all("total_iops" not in edit.changes for edit in steady.edits), "a given rate is steady on any storage"


def test_the_fill_is_sequential_whatever_the_workload_is() -> None:
    """But for where it is driven, and by what seed."""
    made = plan()
    settings = parameters(made, made.steps[0])
    expected = PlanParameters(
        iosequencer=Iosequencer.SEQUENTIAL, blocksize=128 << 10, fraction_read=0.0, maxtags=32, iops=MAX,
        range=made.workloads[0].parameters.range, seed=7, until=Volume(VolumeKind.WRITTEN, times=2.0),
    )  # fmt: skip
    assert settings == expected
    assert all("total_iops" not in edit.changes for edit in made.steps[0].edits)


def test_a_workload_that_drives_each_block_once_is_no_random_fill() -> None:
    text = """\
workloads: { a: { once: true } }
steps: [ edit: { rollup: all=all, set: { until: never } }, precondition: snia, go: x ]
"""
    made = read(completed(text), "p.yaml", {})
    assert [parameters(made, step).random_map for step in made.steps] == [False, True, True]


@pytest.mark.parametrize("workload", ["{ once: true }", "{ until: { written: 1x }, fraction_read: 0% }"])
def test_a_workload_that_ends_by_volume_goes_on_until_steady(workload: str) -> None:
    text = f"workloads: {{ a: {workload} }}\nsteps: [ precondition: snia, go: x ]"
    made = read(completed(text), "p.yaml", {})
    assert isinstance(made.steps[1].control.measurement, SteadySpec)
    assert isinstance(made.steps[2].control.measurement, UntilSpec), "as the plan has it"


def test_what_defaults_ask_of_steps_is_not_asked_of_the_recipe() -> None:
    defaults = "defaults: { slo: { metric: response_p99, at_most: 1ms }, on_invalid: repeat 2, subinterval: 5s }"
    text = f"workloads: {{ a: {{ iops: 100 }} }}\n{defaults}\nsteps: [ precondition: snia, go: x ]"
    made = read(completed(text), "p.yaml", {})
    assert [len(step.control.slo) for step in made.steps] == [0, 0, 1]
    assert [step.on_invalid.repeats for step in made.steps] == [0, 0, 2]
    assert {step.subinterval_s for step in made.steps} == {5.0}


def test_its_keys_are_those_of_the_steps() -> None:
    made = plan("{ recipe: snia, name: wear, written: 0.5x, window: 10s, timeout: 1h }")
    fill, steady, _ = made.steps
    assert [fill.name, steady.name] == ["wear", "wear-steady"]
    assert parameters(made, fill).until == Volume(VolumeKind.WRITTEN, times=0.5)
    assert isinstance(steady.control.measurement, SteadySpec) and steady.control.measurement.criterion.window == 10


@pytest.mark.parametrize(
    ("fragment", "fault"),
    [
        (
            "workloads: { a: {}, b: {} }\nsteps: [ precondition: snia ]",
            "2:24: precondition drives every LUN by the plan's workload, but it has 2; write its steps: see "
            "`ivypy help fill`",
        ),
        ("steps: [ precondition: sina ]", "1:24: precondition: 'sina' is not known here; did you mean 'snia'?"),
        ("steps: [ { precondition: snia, go: x } ]", "1:10: a step has both 'go' and 'precondition'; make it two"),
        ("steps: [ precondition: snia, go: precondition ]", "1:34: duplicate step name 'precondition'"),
        ("steps: [ precondition: { window: 11s } ]", "1:34: window is 11 subintervals; snia has five rounds"),
    ],
)
def test_a_recipe_that_does_not_fit(fragment: str, fault: str) -> None:
    with pytest.raises(PlanFaults) as caught:
        read(completed(fragment), "p.yaml", {})
    (found,) = caught.value.faults
    assert f"{found.place.line}:{found.place.column}: {found.text}".startswith(fault)
