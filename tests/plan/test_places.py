"""Where a random workload's I/Os go: how a plan says it, what it comes to on a LUN, and what cannot be."""

import math
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivypy.master.plan.describe import describe
from ivypy.master.plan.load import read
from ivypy.master.plan.model import Plan
from ivypy.master.plan.read.field_types import PARAMETER_FIELDS, written
from ivypy.master.plan.read.yaml_positions import PlanFaults
from ivypy.master.text.places import HotZone, HotZones, Position, zones_on
from ivypy.protocol.geometry import geometry_faults
from ivypy.protocol.parameters import MAX, Parameters, faults
from tests.support.plan import completed

KIB, MIB = 1 << 10, 1 << 20


def plan(settings: str) -> Plan:
    text = f"workloads: {{ w: {{ {settings} }} }}\nluns: {{ create: {{ path: /data/f, size: 1GiB }} }}"
    return read(completed(text), "p.yaml")


def of_plan(settings: str, size: int = 100 * MIB) -> Parameters:
    return plan(settings).workloads[0].parameters.absolute(size, "file", MAX)


def zones(settings: str) -> list[tuple[float, float, float, float]]:
    """In MiB and percent."""
    found = of_plan(settings)
    assert faults(found) == []
    return [
        (one.start / MIB, one.end / MIB, round(one.reads * 100, 6), round(one.others * 100, 6))
        for one in found.hot_zones
    ]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("hot_zones: [ { range: 10%, share: 90% } ]", [(0, 10, 90, 90), (10, 100, 10, 10)]),
        ("hot_zones: { range: 10%, share: 90% }", [(0, 10, 90, 90), (10, 100, 10, 10)]),
        (
            "hot_zones: [ { range: 10%, share: 50% }, { range: 20%, share: 30% } ]",
            [(0, 10, 50, 50), (10, 30, 30, 30), (30, 100, 20, 20)],
        ),
        (
            "hot_zones: [ { range: [40%, 50%], share: 60% } ]",
            [(0, 40, 17.777778, 17.777778), (40, 50, 60, 60), (50, 100, 22.222222, 22.222222)],
        ),
        (
            "hot_zones: [ { range: 10MiB, share: 90% }, { range: 5%, share: 5% } ]",
            [(0, 10, 90, 90), (10, 15, 5, 5), (15, 100, 5, 5)],
        ),
        (
            "hot_zones: [ { range: 50%, read_share: 80%, write_share: 20% } ]",
            [(0, 50, 80, 20), (50, 100, 20, 80)],
        ),
        (
            "hot_zones: [ { range: 50%, share: 70%, write_share: 20% } ]",
            [(0, 50, 70, 20), (50, 100, 30, 80)],
        ),
        ("hot_zones: [ { range: 50%, share: 90% }, { range: 50%, share: 10% } ]", [(0, 50, 90, 90), (50, 100, 10, 10)]),
        ("hot_zones: [ { range: 10%, share: 100% } ]", [(0, 10, 100, 100)]),  # the rest is never driven
        ("hot_zones: [ { range: 10%, share: 90% } ], range: 50%..100%", [(50, 55, 90, 90), (55, 100, 10, 10)]),
        (
            "hot_zones: [ { range: [50%, 60%], share: 80% }, { range: [0%, 10%], share: 10% } ]",
            [(0, 10, 10, 10), (10, 50, 5, 5), (50, 60, 80, 80), (60, 100, 5, 5)],
        ),
    ],
)  # fmt: skip
def test_hot_zones_and_what_lies_between_them(settings: str, expected: list[tuple[float, ...]]) -> None:
    assert zones(settings) == expected


@pytest.mark.parametrize(
    ("settings", "name", "value"),
    [
        ("working_set: 10%", "working_set", 10 * MIB),
        ("working_set: 10%, range: 0%..50%", "working_set", 5 * MIB),
        ("working_set: 3MiB", "working_set", 3 * MIB),
        ("blocksize: 64KiB, working_set: 33%", "working_set", 528 * 64 * KIB),
        ("iosequencer: sequential, start: 50%", "start", 50 * MIB),
        ("iosequencer: sequential, start: 50%, range: 50%..100%", "start", 75 * MIB),
        ("iosequencer: sequential, start: 1MiB, range: 50%..100%", "start", 51 * MIB),
        ("iosequencer: sequential, start: 0%, range: 50%..100%", "start", 50 * MIB),
        ("zipf: 1.1", "zipf", 1.1),
        ("zipf: 1", "zipf", 1.0),
        ("pareto: 20%", "pareto", 0.2),
        ("normal: 0.1", "normal", 0.1),
        ("normal: 150%", "normal", 1.5),
        ("skew: 30%", "skew", 0.3),
        ("skew: 3", "skew", 3.0),
        ("scattered: false", "scattered", False),
        ("scatter_seed: 7", "scatter_seed", 7),
    ],
)
def test_what_a_plan_says_in_the_parameters_of_a_lun(settings: str, name: str, value: object) -> None:
    found = of_plan(settings)
    assert getattr(found, name) == value
    assert faults(found) == [] and geometry_faults(found, "/f", "file", 100 * MIB, 512) == []


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ("zipf: -1", "the least is 0"),
        ("zipf: 17", "the most is 16"),
        ("zipf: hot", "'hot' is not a number; write for example 1.1"),
        ("zipf: 1.1 GiB", "is not a number; write for example 1.1"),
        ("pareto: 100%", "the most is 99%"),
        ("zipf: 1.1, pareto: 20%", "pareto: zipf says where its I/Os go already; leave one of both out"),
        ("normal: 10%, working_set: 10%", "working_set: goes with zipf and pareto, not with normal"),
        ("random_map: true, zipf: 1.1", "random_map: visits each block once, and zipf some more often"),
        ("random_map: true, working_set: 10%", "random_map: visits each block once, and working_set some more often"),
        ("iosequencer: sequential, zipf: 1.1", "zipf: the places of a random workload, and this one is sequential"),
        ("iosequencer: sequential, working_set: 10%", "working_set: the places of a random workload"),
        ("start: 10%", "start: the first place of a sequential workload; leave it out, or set"),
        ("iosequencer: sequential, start: 10%, streams: 2", "start: several streams begin in their parts of the range"),
        ("start: 110%, iosequencer: sequential", "'110%' is not in the LUN"),
        ("spread: 4, skew: 2", "spread: skew counts I/Os on one thread; leave spread out"),
        ("hot_zones: 10%", "it needs zones, like [{ range: 10%, share: 90% }]"),
        ("hot_zones: [ { share: 90% } ]", "has a zone without range"),
        ("hot_zones: [ { range: 10% } ]", "has a zone without share"),
        ("hot_zones: [ { range: 10%, read_share: 90% } ]", "has a zone without write_share"),
        ("working_set: 10%, sequential: 20%", "working_set: sequential I/Os would leave it"),
        ("working_set: 10%, align: 512", "working_set: needs I/Os of one size, aligned to it"),
        ("working_set: 10%, blocksize: { 4KiB: 50%, 8KiB: 50% }", "working_set: needs I/Os of one size, aligned to it"),
        ("hot_zones: [ { range: 0%, share: 90% } ]", "'0%' is an empty zone"),
        ("hot_zones: [ { range: 10%, shares: 90% } ]", "'shares' is not known here; did you mean 'share'"),
        ("hot_zones: [ { range: 10%, share: 90% }, { range: 10%, share: 20% } ]", "add up to 110%; the most is 100%"),
        ("hot_zones: [ { range: [0%, 20%], share: 9% }, { range: [10%, 30%], share: 9% } ]", "has zones that overlap"),
        (
            "hot_zones: [ { range: 100%, share: 90% } ]",
            "they cover the whole range of 'w', and 10% of",
        ),
        (f"hot_zones: [ {', '.join(['{ range: 1%, share: 1% }'] * 32)} ]", "has 32 zones; the most is 31"),
        ("working_set: 10", "working_set is 10 bytes, less than a block; choose more, like 10%"),
        ("hotband: 10%", "use 'hot_zones: [{ range: 10%, share: 90% }]'"),
        ("random_distribution: zipf", "use 'zipf: 1.2', 'pareto: 20%', 'normal: 10%' or 'hot_zones'"),
    ],
)
def test_what_cannot_be_is_refused_with_the_place(settings: str, text: str) -> None:
    with pytest.raises(PlanFaults) as refused:
        plan(settings)
    assert text in str(refused.value), refused.value
    assert re.search(r"p.yaml:1:\d+: ", str(refused.value))


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ("hot_zones: [ { range: 200MiB, share: 90% } ]", "a hot zone is 0 to 209,715,200, and the range on /f 0 to"),
        (
            "hot_zones: [ { range: 0.001%, share: 90% } ], blocksize: 8KiB",
            "which holds no whole block of 8 KiB",
        ),
        ("working_set: 200MiB", "working_set is 200 MiB, and the range on /f 100 MiB: choose a part of it"),
        ("iosequencer: sequential, start: 200MiB", "start is 209,715,200, and the range on /f 0 to 104,857,600"),
        ("iosequencer: sequential, start: 104857000", "choose a place with room for a block within it"),
    ],
)
def test_what_a_lun_has_no_room_for(parameters: str, text: str) -> None:
    texts = [one.text for one in geometry_faults(of_plan(parameters), "/f", "file", 100 * MIB, 512)]
    assert len(texts) == 1 and text in texts[0], texts


def test_each_workload_scatters_by_its_own_name_and_the_run_s_seed() -> None:
    plan = read(completed("workloads: { a: { zipf: 1 }, b: { zipf: 1 }, c: { scatter_seed: 5, seed: 6 } }"), "p.yaml")
    first, again, other = (
        {one.name: one.parameters.scatter_seed for one in plan.seeded(seed).workloads} for seed in (1, 1, 2)
    )
    assert first == again
    assert first["a"] != first["b"] and first["a"] != other["a"]
    assert first["c"] == other["c"] == 5
    assert {one.parameters.seed for one in plan.seeded(1).workloads} == {1, 6}


FRACTIONS = st.integers(1, 30).map(lambda percent: Position(fraction=percent / 100))


@st.composite
def hot_zones(draw: st.DrawFn) -> HotZones:
    count = draw(st.integers(1, 5))
    shares = draw(st.lists(st.integers(1, 20), min_size=2 * count, max_size=2 * count))
    return tuple(
        HotZone(draw(FRACTIONS), reads / 100, others / 100)
        for reads, others in zip(shares[::2], shares[1::2], strict=True)
    )


@given(hot_zones())
def test_what_is_written_is_read_again(of: HotZones) -> None:
    total = sum(one.place.fraction or 0 for one in of if isinstance(one.place, Position))
    document = [
        {
            "range": f"{one.place.fraction * 100:g}%" if isinstance(one.place, Position) and one.place.fraction else "",
            "read_share": f"{one.reads * 100:g}%",
            "write_share": f"{one.others * 100:g}%",
        }
        for one in of
    ]
    if total <= 1:
        assert PARAMETER_FIELDS["hot_zones"].read(document) == of
    text = written("hot_zones", of)
    assert text.count("range:") == len(of) and text.startswith("[{ ") and text.endswith(" }]")


@given(hot_zones(), st.integers(1 << 20, 1 << 40), st.integers(0, 1 << 30), st.sampled_from([512, 4096, 65536]))
def test_zones_are_ascending_and_apart_and_have_all_ios(of: HotZones, size: int, first: int, align: int) -> None:
    """Where they leave anything of the range."""
    total = math.fsum(one.place.fraction or 0 for one in of if isinstance(one.place, Position))
    if total > 0.9 or size < 100 * align:
        return
    found = zones_on(of, (first, first + size), align, align)
    assert math.isclose(sum(one.reads for one in found), 1) and math.isclose(sum(one.others for one in found), 1)
    assert all(one.end <= two.start for one, two in pairwise(found))
    assert found[0].start == first and found[-1].end <= first + size


@pytest.mark.parametrize(
    ("settings", "note"),
    [
        ("bursty: { on: 1s, off: 3s }", "note: subintervals of 5s hold parts of the bursts of w, every 4s"),
        ("bursty: { on: 1s, off: 1500ms }", ""),
        ("bursty: { on: 10s, off: 10s }", "note: subintervals of 5s hold parts of the bursts of w, every 20s"),
        ("start_after: 20s", "note: w starts 20s after the step: a warmup as long measures all of it"),
        ("start_after: 5s", ""),
    ],
)
def test_times_that_make_a_poor_test_are_noted(settings: str, note: str) -> None:
    text = f"workloads: {{ w: {{ {settings} }} }}\ndefaults: {{ subinterval: 5s, warmup: 10s, measure: 200s }}"
    described = describe(read(completed(text), "p.yaml"))
    assert (note in described) if note else ("note:" not in described)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ("bursty: 1s", "it needs both times, like { on: 1s, off: 3s }, or never"),
        ("bursty: { on: 1s }", "has no off; it needs both times"),
        ("bursty: { on: 1s, of: 3s }", "'of' is not known here; did you mean 'off'?"),
        ("bursty: { on: 0s, off: 3s }", "'0s' is too little; the least is 100us"),
        ("start_after: 10", "'10' has no unit; write 10s for seconds"),
    ],
)
def test_times_that_cannot_be(settings: str, text: str) -> None:
    with pytest.raises(PlanFaults) as refused:
        plan(settings)
    assert text in str(refused.value)


@pytest.mark.parametrize(
    ("more", "disturbed"),
    [
        ("workloads: { w: { bursty: { on: 1s, off: 3s } } }", "keep"),
        ("workloads: { w: { maxtags: 2 } }", "set_aside"),
        ("steps: [ edit: { rollup: all=all, set: { bursty: { on: 1s, off: 1s } } }, go: s ]", "keep"),
    ],
)
def test_of_load_in_bursts_no_subinterval_is_set_aside(more: str, disturbed: str) -> None:
    assert [step.control.disturbed for step in read(completed(more), "p.yaml").steps] == [disturbed]
