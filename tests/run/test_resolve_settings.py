"""Edits, totals and percentages of other steps become absolute numbers per workload instance."""

from contextlib import nullcontext
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivypy.master.control.choices import OnDisturbance
from ivypy.master.control.control_spec import ControlSpec
from ivypy.master.control.fixed import FixedSpec
from ivypy.master.control.until import UntilSpec
from ivypy.master.errors import HostsError
from ivypy.master.hosts.host_spec import HostSpec, Launcher
from ivypy.master.plan.model import Edit, Live, LunSelection, OnIoError, OnLoss, Plan, Step, Workload
from ivypy.master.plan.read.yaml_positions import Place, PlanFaults
from ivypy.master.rollup.instances import RollupInstance, Rollups
from ivypy.master.run.setup.baseline_step import Measured, Reference, References
from ivypy.master.run.setup.limits import check_sections, limits_of, union
from ivypy.master.run.setup.placement import Placement, place
from ivypy.master.run.setup.resolve_settings import NotMeasured, resolve
from ivypy.master.text.mixes import Sizes
from ivypy.master.text.places import Position
from ivypy.master.text.plan_parameters import OfStep, PlanParameters, Volume
from ivypy.protocol.geometry import within
from ivypy.protocol.parameters import MAX, Operation, VolumeKind
from ivypy.protocol.payload import Attribute, EngineOptions, Identity, Lun
from tests.support.control_specs import TOLERANCE
from tests.support.rollup import instance, rollup_spec

HERE = Place("p.yaml", 3, 1)
SIZE = 1 << 30


def lun(path: str, **attributes: Attribute) -> Lun:
    return Lun(path, "file", SIZE, 512, attributes, (), ())


def host(name: str) -> HostSpec:
    return HostSpec(name, Launcher.LOCAL, name)


def edit(rollup: str = "all", *instances: str, **changes: object) -> Edit:
    return Edit(rollup, instances, changes, HERE)  # type: ignore[arg-type]


def a_step(*edits: Edit, name: str = "s") -> Step:
    control = ControlSpec(5.0, 1, FixedSpec(12), None, (), TOLERANCE, OnDisturbance.KEEP, rounds=None, is_watched=False)
    return Step(0, name, edits, 5.0, 5.0, 60.0, 0.0, {}, HERE, control)


def plan(*steps: Step, workloads: tuple[Workload, ...] | None = None) -> Plan:
    one = Workload("w", None, PlanParameters(maxtags=4), HERE)
    return Plan(
        name="p", text="name: p\nsteps:\n  - edit\n", path=None, hosts=(host("h1"), host("h2")),
        luns=LunSelection(None, ("/x/*",), (), (), HERE), attributes=(), workloads=workloads or (one,),
        rollups=(rollup_spec("all"), rollup_spec("host"), rollup_spec("port")), steps=steps or (a_step(),),
        destroy=False, lease_s=10.0, engine=EngineOptions("null", 1), subinterval_s=5.0,
        achieved_iops_tolerance=TOLERANCE, on_io_error=OnIoError.COUNT, on_loss=OnLoss.KEEP, live=Live(0, 0, None),
        by_address=0, may_miss=0, report=True, prepare_timeout_s=60.0,
        start_timeout_s=10.0, parameters={}, connectors=(), host_connector=None,
    )  # fmt: skip


FOUND = {"h1": [lun("/x/a", port="1A"), lun("/x/b", port="2A")], "h2": [lun("/x/a", port="1A")]}


def placed(a_plan: Plan) -> tuple[Placement, Rollups]:
    placement = place(a_plan, FOUND, {"h1": "one", "h2": "two"})
    return placement, Rollups.build(placement.instances, a_plan.rollups)


def nothing(step: str, instance: RollupInstance) -> Reference:
    raise NotMeasured(f"step {step} is invalid")


def reached(**iops: float) -> Measured:
    hosts = frozenset({"h1", "h2"})
    return lambda step, instance: Reference(iops[instance.name], hosts)


def iops_of(
    *edits: Edit, measured: Measured = nothing, workloads: tuple[Workload, ...] | None = None
) -> dict[str, object]:
    a_plan = plan(a_step(*edits), workloads=workloads)
    placement, rollups = placed(a_plan)
    found = resolve(a_plan, a_plan.steps[0], placement, rollups, measured)
    return {
        f"{i.host}{i.lun}" + (f"+{i.workload}" if workloads else ""): found[i.host, i.number].iops
        for i in placement.instances
    }


def test_a_total_is_shared_equally_over_the_luns_selected() -> None:
    assert iops_of(edit(total_iops=900.0)) == {"h1/x/a": 300.0, "h1/x/b": 300.0, "h2/x/a": 300.0}
    assert iops_of(edit("host", "h1", total_iops=900.0)) == {"h1/x/a": 450.0, "h1/x/b": 450.0, "h2/x/a": MAX}
    assert iops_of(edit("host", total_iops=900.0)) == {"h1/x/a": 300.0, "h1/x/b": 300.0, "h2/x/a": 300.0}


WWN = ("wwn", "0x5000c5")
FILE = (("file", "8:1:77"), ("born", "3.5"))
ENDS = (("fingerprint", "ab12"),)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (Identity("m1", SIZE, (WWN, ("serial", "A"))), Identity("m2", SIZE, (WWN, ("serial", "A "))), True),
        (Identity("m1", SIZE, (WWN,)), Identity("m1", SIZE, (WWN,)), True),
        (Identity("m1", SIZE, (WWN, ("start", "2048"))), Identity("m2", SIZE, (WWN, ("start", "4096"))), False),
        (Identity("m1", SIZE, (WWN,)), Identity("m2", SIZE, (("wwn", "0x5000c6"),)), False),
        (Identity("m1", SIZE, FILE), Identity("m1", SIZE, FILE), True),
        (Identity("m1", SIZE, FILE), Identity("m2", SIZE, FILE), False),
        (Identity("m1", SIZE, ENDS), Identity("m1", SIZE, ENDS), False),
        (Identity("m1", SIZE, ()), Identity("m1", SIZE, ()), False),
        (None, None, False),
    ],
)
def test_a_lun_that_two_hosts_reach_is_one_lun(one: Identity | None, other: Identity | None, same: bool) -> None:
    """By a world-wide name whatever the machine, else by what is its own on one machine; never by what it holds."""
    a_plan = plan(a_step(edit(total_iops=900.0)))
    found = {
        "h1": [replace(lun("/x/a"), identity=one), lun("/x/b")],
        "h2": [replace(lun("/x/c"), identity=other)],
    }
    placement = place(a_plan, found, {})
    rollups = Rollups.build(placement.instances, a_plan.rollups)
    asked = resolve(a_plan, a_plan.steps[0], placement, rollups, nothing)
    iops = {one.id: asked[one.host, one.number].iops for one in placement.instances}
    shared = {one.lun.path: (one.attributes.get("shared"), len(placement.others(one))) for one in placement.luns}
    if same:
        assert iops == {"h1+/x/a+w": 225.0, "h2+/x/c+w": 225.0, "h1+/x/b+w": 450.0}
        assert shared == {"/x/a": (2, 1), "/x/b": (None, 0), "/x/c": (2, 1)}
    else:
        assert set(iops.values()) == {300.0} and set(shared.values()) == {(None, 0)}


def test_a_luns_share_is_shared_again_over_its_workloads() -> None:
    two = tuple(Workload(name, None, PlanParameters(), HERE) for name in ("v", "w"))
    assert set(iops_of(edit(total_iops=600.0), workloads=two).values()) == {100.0}


@pytest.mark.parametrize(
    ("skews", "asked"),
    [({}, (50.0, 50.0)), ({"v": 3.0, "w": 1.0}, (75.0, 25.0)), ({"v": 0.9, "w": 0.1}, (90.0, 10.0)),
     ({"v": 4.0}, (80.0, 20.0))],
)  # fmt: skip
def test_within_a_lun_the_workloads_share_by_their_skews(skews: dict[str, float], asked: tuple[float, float]) -> None:
    """One that has none counts as 1."""
    two = tuple(Workload(name, None, PlanParameters(skew=skews.get(name, 0.0)), HERE) for name in ("v", "w"))
    found = iops_of(edit(total_iops=300.0), workloads=two)
    assert (found["h1/x/a+v"], found["h1/x/a+w"]) == pytest.approx(asked)
    assert sum(one for one in found.values() if isinstance(one, float)) == pytest.approx(300)


def test_a_share_of_a_step_is_of_the_same_rollup_instance() -> None:
    half = OfStep(0.5, "max")
    assert iops_of(edit(total_iops=half), measured=reached(all=3000.0)) == dict.fromkeys(
        ("h1/x/a", "h1/x/b", "h2/x/a"), 500.0
    )
    by_host = reached(h1=4000.0, h2=1000.0)
    assert iops_of(edit("host", total_iops=half), measured=by_host) == {
        "h1/x/a": 1000.0, "h1/x/b": 1000.0, "h2/x/a": 500.0,
    }  # fmt: skip
    assert iops_of(edit("host", iops=half), measured=by_host) == {"h1/x/a": 1000.0, "h1/x/b": 1000.0, "h2/x/a": 500.0}


@given(st.data())
def test_a_share_of_a_step_is_offered_by_those_that_took_part_in_it_and_by_nobody_else(data: st.DataObject) -> None:
    """Whoever was missing from that step and is back has no load, rather than one that others measured."""
    names = [f"h{n}" for n in range(data.draw(st.integers(1, 5)))]
    found = {name: [lun(f"/x/{n}") for n in range(data.draw(st.integers(1, 3)))] for name in names}
    workloads = tuple(Workload(f"w{n}", None, PlanParameters(), HERE) for n in range(data.draw(st.integers(1, 2))))
    kind, what = data.draw(st.sampled_from(["all", "host", "lun", "workload"])), data.draw(st.sampled_from(WHAT))
    a_plan = replace(
        plan(a_step(edit(kind, **{what: OfStep(0.5, "max")})), workloads=workloads),
        hosts=tuple(map(host, names)),
        rollups=tuple(rollup_spec(name) for name in ("all", "host", "lun", "workload")),
    )  # fmt: skip
    placement = place(a_plan, found, {})
    rollups = Rollups.build(placement.instances, a_plan.rollups)
    there = frozenset(data.draw(st.sets(st.sampled_from(names))))
    did = {(one.host, one.number): data.draw(st.integers(1, 9)) * 100.0 for one in placement.instances}

    def measured(step: str, rollup: RollupInstance) -> Reference:
        return Reference(sum(did[m.host, m.number] for m in rollup.members if m.host in there), there)

    references = References(measured)
    asked = resolve(a_plan, a_plan.steps[0], placement, rollups, references)
    lacking = {(one.host, one.number) for one in references.findings()}
    for rollup in rollups.type(kind).instances:
        keys = {(member.host, member.number) for member in rollup.members}
        present = {key for key in keys if key[0] in there}
        assert all(asked[key].iops == 0.0 for key in keys - present)
        total = sum(float(asked[key].iops) for key in present)
        assert total == pytest.approx(0.5 * sum(did[key] for key in present))
        assert keys <= lacking if present != keys else not keys & lacking


WHAT = ["iops", "total_iops"]


def test_the_latest_edit_wins() -> None:
    edits = (edit(iops=100.0), edit("port", "1A", iops=MAX), edit("host", "h2", iops=7.0))
    assert iops_of(*edits) == {"h1/x/a": MAX, "h1/x/b": 100.0, "h2/x/a": 7.0}


def test_a_share_of_an_invalid_step_is_refused() -> None:
    with pytest.raises(NotMeasured, match="step max is invalid"):
        iops_of(edit(total_iops=OfStep(0.5, "max")))


def test_an_edit_of_what_is_not_there_names_what_is() -> None:
    with pytest.raises(PlanFaults) as error:
        iops_of(edit("port", "1a", "9Z", iops=1.0))
    assert str(error.value).splitlines()[0] == "p.yaml:3:1: rollup port has no instance '1a'; did you mean '1A'?"
    assert "rollup port has no instance '9Z'; there are '1A' and '2A'" in str(error.value)


def test_a_range_is_in_whole_blocks_of_its_lun() -> None:
    half = (Position(fraction=0.0), Position(fraction=0.5))
    a_plan = plan(a_step(edit(range=half, blocksize=3 * 4096)))
    placement, rollups = placed(a_plan)
    parameters = resolve(a_plan, a_plan.steps[0], placement, rollups, nothing)["h1", 0]
    blocks = SIZE // (3 * 4096)
    assert parameters.range == (0, blocks // 2 * 3 * 4096)


def test_ceilings_are_the_largest_of_all_steps() -> None:
    a_plan = plan(
        a_step(edit(maxtags=2)), a_step(edit("host", "h1", maxtags=64, total_iops=OfStep(0.5, "s"))),
        a_step(edit("port", "2A", fraction_read=0.9)),
    )  # fmt: skip
    limits = limits_of(a_plan, *placed(a_plan))
    assert limits.tags == {("h1", 0): 64, ("h1", 1): 64, ("h2", 0): 4}
    assert limits.writers == {("h1", 1)} and limits.written == {("h1", 1): ((0, SIZE),)}
    assert limits.blocksize_beginning_with(PlanParameters().absolute(SIZE, "file", MAX)) == 4096


@pytest.mark.parametrize(
    ("instances", "fault"),
    [
        (0, nullcontext()),
        (200, nullcontext()),
        (201, pytest.raises(PlanFaults, match="500 sections for each of 201 workload instances of h1; the most is 4")),
    ],
)
def test_counts_by_address_are_bounded(instances: int, fault: Any) -> None:
    rollups = Rollups.build([instance(n, "h1") for n in range(instances)], [], 500)
    with fault:
        check_sections(replace(plan(), by_address=500), rollups)


def test_rows_by_address_are_bounded() -> None:
    """Of rollup types that have files: here the whole, and a LUN of each of 1,001 hosts."""
    instances = [instance(0, f"h{n}") for n in range(1001)]
    for csv in (True, False):
        rollups = Rollups.build(instances, [rollup_spec("host", csv=csv)], 1000)
        too_many = pytest.raises(PlanFaults, match="for each of 1,002 rollup instances with files; the most is 998")
        with too_many if csv else nullcontext():
            check_sections(replace(plan(), by_address=1000), rollups)


def ending(timeout_s: float, *edits: Edit) -> Step:
    """A step that ends by volume."""
    step = a_step(*edits)
    return replace(step, control=replace(step.control, measurement=UntilSpec(None, timeout_s), warmup=0))


@pytest.mark.parametrize(
    ("changes", "ios"),
    [
        ({"until": Volume(VolumeKind.IOS, 1000)}, 1000),
        ({"until": Volume(VolumeKind.BYTES, 4_096_000)}, 1000),
        ({"until": Volume(VolumeKind.READ, 4_096_000), "fraction_read": 0.25}, 4000),
        ({"until": Volume(VolumeKind.WRITTEN, 4_096_000), "fraction_read": 0.25}, 1334),
        ({"until": Volume(VolumeKind.BYTES, times=0.5), "blocksize": 65536}, SIZE // 65536 // 2),
        (
            {
                "until": Volume(VolumeKind.WRITTEN, 4_096_000), "blocksize": Sizes(((4096, 0.5), (12288, 0.5))),
                "operations": ((Operation.WRITE, 0.5), (Operation.TRIM, 0.5)),
            },
            1000,
        ),
    ],
)  # fmt: skip
def test_a_volume_that_its_rate_cannot_reach_in_time_is_refused(changes: dict[str, Any], ios: int) -> None:
    def limits(rate: float) -> None:
        a_plan = plan(ending(10.0, edit(iops=rate, **changes)))
        limits_of(a_plan, *placed(a_plan))

    limits(ios / 10.0)
    with pytest.raises(HostsError) as error:
        limits(ios / 10.0 - 0.5)
    assert f"in step s, its volume is out of reach: {ios:,} I/Os at" in str(error.value)
    assert "and the timeout is 10s: raise iops, or until's timeout" in str(error.value)


def test_a_time_is_reached_at_any_rate() -> None:
    a_plan = plan(ending(10.0, edit(iops=1.0, until=Volume(VolumeKind.TIME, 5 * 10**9))))
    limits_of(a_plan, *placed(a_plan))


@pytest.mark.parametrize(
    "changes",
    [
        {"iops": 0.0, "until": Volume(VolumeKind.IOS, 5)},  # paused
        {"until": Volume(VolumeKind.WRITTEN, 5)},  # they read
        {},
    ],
)
def test_a_step_in_which_nothing_ends_by_volume_is_refused(changes: dict[str, Any]) -> None:
    a_plan = plan(ending(10.0, edit(**changes)))
    with pytest.raises(PlanFaults) as error:
        limits_of(a_plan, *placed(a_plan))
    assert "step 's': no workload of this step ends by volume" in str(error.value)


def test_a_share_of_a_step_is_not_known_to_be_too_slow() -> None:
    a_plan = plan(a_step(), ending(10.0, edit(iops=OfStep(0.5, "s"), until=Volume(VolumeKind.IOS, 10**9))))
    limits_of(a_plan, *placed(a_plan))


def test_a_step_that_needs_the_faster_backend_is_known_with_its_tags() -> None:
    slow = edit(maxtags=32, iops=99_999.0)
    a_plan = plan(
        a_step(slow),
        a_step(slow, edit("port", "2A", maxtags=16, iops=MAX)),
        a_step(slow, edit("host", "h2", maxtags=8, iops=100_000.0)),
    )
    assert limits_of(a_plan, *placed(a_plan)).fast_tags == {("h1", 1): 16, ("h2", 0): 8}


def test_what_the_plan_declares_for_live_edits_is_added() -> None:
    quarter = (Position(fraction=0.0), Position(fraction=0.25))
    a_plan = plan(a_step(edit(range=quarter, fraction_read=0.0)), a_step(edit(fraction_read=1.0)))
    half = (Position(fraction=0.5), Position(fraction=1.0))
    a_plan = replace(a_plan, live=Live(maxtags=16, blocksize=65536, range=half))
    limits = limits_of(a_plan, *placed(a_plan))
    assert set(limits.tags.values()) == {16}
    assert set(limits.written.values()) == {((0, SIZE // 4), (SIZE // 2, SIZE))}
    assert limits.blocksize_beginning_with(PlanParameters(blocksize=4096).absolute(SIZE, "file", MAX)) == 65536


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 10)).map(lambda one: (one[0], one[0] + one[1]))))
def test_a_union_holds_the_same_bytes_in_few_extents(extents: list[tuple[int, int]]) -> None:
    joined = union(extents)
    assert {n for a, b in joined for n in range(a, b)} == {n for a, b in extents for n in range(a, b)}
    assert all(before[1] < after[0] for before, after in pairwise(joined))
    assert all(within(one, joined) for one in extents)


def test_what_selects_nothing_is_a_fault_of_the_plan() -> None:
    from ivypy.master.plan.select.conditions import condition
    from ivypy.master.plan.select.selection import Select

    nowhere = Workload("v", Select(({"port": (condition("port", "9Z"),)},)), PlanParameters(), Place("p.yaml", 2, 1))
    with pytest.raises(PlanFaults, match="workload v selects none of the 3 LUNs of the plan"):
        place(plan(workloads=(nowhere,)), FOUND, {})
    with pytest.raises(HostsError, match=r"^h2: no LUN is selected: .*; correct `luns:`"):
        place(plan(), {"h1": FOUND["h1"], "h2": []}, {})
    with pytest.raises(HostsError, match=r"h1: no LUN is selected.*\nh2: no LUN is selected"):
        place(plan(), {"h1": [], "h2": []}, {})


def test_a_workload_that_begins_with_a_share_of_a_step_is_a_fault_of_the_plan() -> None:
    """A plan's reader refuses it; so does the session, if somebody makes a plan without the reader."""
    before = Workload("w", None, PlanParameters(iops=OfStep(0.5, "s")), Place("p.yaml", 2, 1))
    with pytest.raises(PlanFaults, match=r"p\.yaml:2:1: iops: no step has run when a workload begins"):
        iops_of(workloads=(before,))
