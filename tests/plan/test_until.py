"""Ends by volume in a plan: which steps have one, what it is on a LUN, and what it excludes."""

from typing import Any

import pytest

from ivypy.master.control.fixed import FixedSpec
from ivypy.master.control.until import USUAL_TIMEOUT_S, UntilSpec
from ivypy.master.plan.describe import describe
from ivypy.master.plan.load import read
from ivypy.master.plan.model import Plan
from ivypy.master.plan.read.yaml_positions import PlanFaults
from ivypy.master.text.places import Position
from ivypy.master.text.plan_parameters import NO_END, ONE_PASS, PlanParameters, Volume
from ivypy.master.text.units import format_volume, parse_volume
from ivypy.protocol.parameters import ENDLESS, Until, VolumeKind
from tests.support.plan import completed

MIB = 1 << 20
ENDS = "{ a: { fraction_read: 0%, until: { written: 1x } } }"


def plan(fragment: str) -> Plan:
    return read(completed(fragment), "p.yaml")


@pytest.mark.parametrize(
    ("what", "text", "volume"),
    [
        (VolumeKind.WRITTEN, "2x", Volume(VolumeKind.WRITTEN, times=2.0)),
        (VolumeKind.BYTES, "0.5x", Volume(VolumeKind.BYTES, times=0.5)),
        (VolumeKind.READ, "100GiB", Volume(VolumeKind.READ, 100 << 30)),
        (VolumeKind.IOS, "1M", Volume(VolumeKind.IOS, 1_000_000)),
        (VolumeKind.IOS, "3x", Volume(VolumeKind.IOS, times=3.0)),
    ],
)
def test_an_amount_is_read_and_written(what: VolumeKind, text: str, volume: Volume) -> None:
    assert parse_volume(what, text) == volume
    shown = format_volume(volume)
    assert (
        shown.startswith(f"{{ {what}: ") and parse_volume(what, shown.removesuffix(" }").partition(": ")[2]) == volume
    )


@pytest.mark.parametrize(
    ("volume", "settings", "kind", "until"),
    [
        (ONE_PASS, {}, "file", (VolumeKind.BYTES, 4 * MIB)),
        (ONE_PASS, {}, "block", (VolumeKind.BYTES, 4 * MIB - 4096)),  # block 0 is never driven
        (ONE_PASS, {"blocksize": 3072}, "file", (VolumeKind.BYTES, 4 * MIB // 3072 * 3072)),  # whole blocks
        (Volume(VolumeKind.IOS, times=2.0), {"blocksize": MIB}, "file", (VolumeKind.IOS, 8)),
        (Volume(VolumeKind.IOS, times=0.3), {"blocksize": MIB}, "file", (VolumeKind.IOS, 2)),  # rounded up
        (Volume(VolumeKind.BYTES, times=0.1), {"blocksize": 4096}, "file", (VolumeKind.BYTES, 103 * 4096)),
        (ONE_PASS, {"range": (Position(bytes=MIB), Position(bytes=3 * MIB))}, "block", (VolumeKind.BYTES, 2 * MIB)),
        (Volume(VolumeKind.READ, 77), {}, "file", (VolumeKind.READ, 77)),
        (Volume(VolumeKind.WRITTEN, 77), {"fraction_read": 0.9}, "file", (VolumeKind.WRITTEN, 77)),
    ],
)
def test_a_volume_on_a_lun_is_a_number(
    volume: Volume, settings: dict[str, Any], kind: str, until: tuple[VolumeKind, int]
) -> None:
    parameters = PlanParameters(**settings, until=volume).absolute(4 * MIB, kind, "max")
    assert parameters.until == Until(*until)


@pytest.mark.parametrize(
    ("what", "fraction_read"), [(VolumeKind.WRITTEN, 1.0), (VolumeKind.READ, 0.0), (VolumeKind.NEVER, 0.5)]
)
def test_one_without_such_io_has_no_end(what: VolumeKind, fraction_read: float) -> None:
    parameters = PlanParameters(fraction_read=fraction_read, until=Volume(what, 77)).absolute(MIB, "file", "max")
    assert parameters.until == ENDLESS


@pytest.mark.parametrize(
    ("workloads", "steps", "by_volume"),
    [
        ("{ a: {} }", "[ go: one ]", [False]),
        (ENDS, "[ go: one ]", [True]),
        ("{ a: { once: true } }", "[ go: one ]", [True]),
        ("{ a: {} }", "[ go: { name: one, until: { ios: 5 } }, go: two ]", [True, False]),
        ("{ a: {} }", "[ go: { name: one, once: true } ]", [True]),
        ("{ a: {} }", "[ go: { name: one, loop: { until: [ { ios: 5 }, never ] } } ]", [True, False]),
        (ENDS, "[ edit: { rollup: all=all, set: { iops: 0 } }, go: one ]", [False]),
        (ENDS, "[ edit: { rollup: workload=a, set: { iops: 0 } }, go: one ]", [False]),
        (ENDS, "[ edit: { rollup: workload=a, set: { until: never } }, go: one ]", [False]),
        (ENDS, "[ edit: { rollup: host=local, set: { iops: 0 } }, go: one ]", [True]),  # others may go on
        ("{ a: {} }", "[ edit: { rollup: host=local, set: { until: { ios: 5 } } }, go: one ]", [True]),
        ("{ a: { once: true, iops: 0 }, b: {} }", "[ go: one ]", [False]),
    ],
)
def test_a_step_ends_by_volume_where_a_driven_workload_does(workloads: str, steps: str, by_volume: list[bool]) -> None:
    made = plan(f"workloads: {workloads}\nrollups: [ workload, host ]\nsteps: {steps}")
    assert [isinstance(step.control.measurement, UntilSpec) for step in made.steps] == by_volume
    assert [isinstance(step.control.measurement, FixedSpec) for step in made.steps] == [not one for one in by_volume]


def test_its_times_are_its_own_and_not_the_defaults() -> None:
    made = plan(
        "workloads: { a: {} }\ndefaults: { warmup: 20s, measure: 90s }\n"
        "steps: [ { go: { name: a, once: true } }, { go: { name: b, warmup: 3s, measure: 7s, until: { ios: 5 } } },"
        " { go: { name: c, until: { ios: 5, timeout: 1h } } } ]"
    )
    specs = [step.control.measurement for step in made.steps]
    assert specs == [UntilSpec(None, USUAL_TIMEOUT_S), UntilSpec(7, USUAL_TIMEOUT_S), UntilSpec(None, 3600.0)]
    assert [step.warmup_s for step in made.steps] == [0.0, 3.0, 0.0]
    assert [step.planned_s for step in made.steps] == [0.0, 3 + 7 + 1, 0.0]
    assert "3 steps, at most 11s in all, and 2 of them take as long as the volume\n" in describe(made)


def test_what_a_step_sets_holds_for_it_alone() -> None:
    one, two = plan("workloads: { a: {} }\nsteps: [ { go: { name: a, once: true } }, { go: b } ]").steps
    (edit,) = one.edits
    assert edit.changes == {"until": ONE_PASS, "random_map": True}
    assert two.edits == ()


@pytest.mark.parametrize(
    ("fragment", "fault"),
    [
        ("workloads: { a: { until: { written: 1x } } }", "until: 'a' writes nothing, so it would never end"),
        ("workloads: { a: { fraction_read: 0%, until: { read: 1x } } }", "until: 'a' reads nothing"),
        ("workloads: { a: { once: true, until: { ios: 5 } } }", "once and until both set the end; remove one"),
        ("workloads: { a: { once: true, spread: 4 } }", "spread: until counts I/Os on one thread; leave spread out"),
        ("workloads: { a: { random_map: true, spread: 4 } }", "spread: random_map counts I/Os on one thread"),
        ("workloads: { a: { once: true, drop_after: 1s, iops: 9 } }", "discards I/Os that until counts"),
        (
            "workloads: { a: { drop_after: 1s, iops: 9 } }\nsteps: [ { go: { name: s, once: true } } ]",
            "discards I/Os that until counts",
        ),
        ("workloads: { a: { until: 5 } }", "until is '5'; it needs what counts and how much, like { written: 2x }"),
        ("workloads: { a: { until: { writen: 5 } } }", "'writen' is not known here; did you mean 'written'?"),
        ("workloads: { a: { until: { ios: [5] } } }", "until has ios: a list; it needs an amount"),
        ("steps: [ { go: { name: s, until: {} } } ]", "until is empty; it needs an amount, like written: 2x"),
        ("steps: [ { go: { name: s, until: { ios: 5, read: 3 } } } ]", "until has ios and read; it needs one of them"),
        ("steps: [ { go: { name: s, until: { ios: 5 }, once: true } } ]", "once and until both set the end"),
        (
            "steps: [ { go: { name: s, once: true, steady: { criterion: iops } } } ]",
            "steady and once both set how long",
        ),
        (
            "steps: [ { go: { name: s, once: true, measure: { metric: iops } } } ]",
            "measure: once ends the step, so only a time may stand here",
        ),
        (
            "steps: [ { go: { name: s, loop: { until: [ { ios: 5 } ] }, once: true } } ]",
            "the loop's until and once both set the end; remove one",
        ),
        (
            "steps: [ { go: { name: s, loop: { random_map: [ false ] }, once: true } } ]",
            "the loop's random_map and once both set whether each block comes once; remove one",
        ),
        (
            "steps: [ { go: { name: s, loop: { until: [ { ios: 5 } ] }, until: { read: 5 } } } ]",
            "the loop's until and read both set the end; remove one",
        ),
        (
            "steps: [ { go: { name: s, until: { timeout: 5s } } } ]",
            "until has no amount, and no workload that is driven",
        ),
        (
            "workloads: { a: { iops: 0 } }\nsteps: [ { go: { name: s, once: true } } ]",
            "once: no workload that is driven ends by volume; set iops",
        ),
        ("steps: [ { go: { name: s, until: { ios: 5, timeout: 100ms } } } ]", "no measurement can end before 1 s"),
        (
            "workloads: { a: { once: true } }\nsteps: [ { go: { name: s, find: { metric: p99, target: 1ms } } } ]",
            "find sets the load, but a workload of step 's' ends by volume (until); make it two steps",
        ),
        (
            "defaults: { control: { pid: { metric: p99, target: 1ms, auto: true } } }\n"
            "steps: [ { go: { name: s, once: true } } ]",
            "p.yaml:1:13: control sets the load, but a workload of step 's' ends by volume",
        ),
    ],
)
def test_what_cannot_be_is_refused_at_its_place(fragment: str, fault: str) -> None:
    with pytest.raises(PlanFaults) as raised:
        plan(fragment)
    assert fault in str(raised.value)


def test_never_is_an_end_as_any_other() -> None:
    assert plan("workloads: { a: { until: never } }").workloads[0].parameters.until == NO_END
