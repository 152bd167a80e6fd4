"""`ivypy quick`: from a command line to a plan that the ordinary loader reads."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivypy.master.cli.quick_plan import (
    OBJECTIVES,
    QuickOptions,
    QuickTarget,
    Rw,
    TargetKind,
    quick_plan,
)
from ivypy.master.control.probe import FEWEST_READ
from ivypy.master.control.search import probes_within, search_length
from ivypy.master.control.until import UntilSpec
from ivypy.master.errors import PlanError
from ivypy.master.plan.load import read
from ivypy.master.plan.model import Plan
from ivypy.master.text.units import format_volume, parse_bytes
from ivypy.protocol.parameters import Zone

DEVICE = QuickTarget("/dev/sdb", TargetKind.DEVICE)
FILE = QuickTarget("/data/old.bin", TargetKind.FILE, size=4 << 30)
NEW = QuickTarget("/data/new.bin", TargetKind.NEW)
BASE = QuickOptions(targets=(DEVICE,))


def plan_of(**options: Any) -> Plan:
    return read(text_of(**options), "quick")


def text_of(**options: Any) -> str:
    return quick_plan(replace(BASE, **options), "ivypy quick ...").text


@pytest.mark.parametrize(
    ("rw", "workloads"),
    [
        ("read", [("sequential", 1.0)]),
        ("write", [("sequential", 0.0)]),
        ("randread", [("random_steady", 1.0)]),
        ("randwrite", [("random_steady", 0.0)]),
        ("randrw", [("random_steady", 0.7)]),
        ("RANDREAD", [("random_steady", 1.0)]),
        ("rw", [("sequential", 0.7)]),
        ("readwrite", [("sequential", 0.7)]),
        ("trim", [("sequential", 0.0)]),
        ("randtrim", [("random_steady", 0.0)]),
    ],
)
def test_each_kind_of_io_becomes_its_workloads(rw: str, workloads: list[tuple[str, float]]) -> None:
    mix = "70" if rw in ("rw", "readwrite", "randrw") else None
    plan = plan_of(rw=rw, rwmixread=mix)
    found = [(str(one.parameters.iosequencer), one.parameters.fraction_read) for one in plan.workloads]
    assert found == workloads
    assert plan.destroy == any(reads < 1 for _, reads in workloads)


def test_ios_are_counted_by_address_where_that_is_asked() -> None:
    assert plan_of(by_address=100).by_address == 100
    assert plan_of().by_address == 0 and "by_address" not in text_of()


@pytest.mark.parametrize(
    ("options", "step"),
    [
        ({"once": True}, {"once": True, "heading": "at max until each block once on each target"}),
        ({"io_size": "10G"}, {"until": "{ bytes: 10GiB }", "heading": "at max until 10GiB on each target"}),
        ({"io_size": "2x"}, {"until": "{ bytes: 2x }", "heading": "at max until 2x on each target"}),
        ({"io_size": "150%"}, {"until": "{ bytes: 1.5x }", "heading": "at max until 1.5x on each target"}),
        ({"number_ios": "1M"}, {"until": "{ ios: 1000000 }", "heading": "at max until 1,000,000 I/Os on each target"}),
        (
            {"number_ios": "20k", "time": "60", "ramp": "3s", "rate": "5k"},
            {"until": "{ ios: 20000 }", "heading": "5,000 IOPS until 20,000 I/Os on each target, at most 1m"},
        ),
    ],
)
def test_a_volume_ends_the_step(options: dict[str, Any], step: dict[str, Any]) -> None:
    made = quick_plan(replace(BASE, **options), "ivypy quick ...")
    one = read(made.text, "quick").steps[-1]
    volume = next(edit.changes["until"] for edit in one.edits if "until" in edit.changes)
    assert format_volume(volume) == step.get("until", "{ bytes: 1x }")  # type: ignore[arg-type]
    assert made.heading.endswith(step["heading"])
    spec = one.control.measurement
    assert isinstance(spec, UntilSpec)
    assert (spec.time, one.warmup_s) == ((60, 3.0) if "time" in options else (None, 0.0))


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"once": True, "io_size": "1G"}, "--io-size and --once both end the test; leave one of them out"),
        ({"io_size": "0"}, "--io-size 0: write a size above 0, like 10G, or 2x of each target"),
        ({"io_size": ""}, "--io-size '': write a size above 0"),  # an empty variable of a shell
        ({"number_ios": ""}, "--number-ios '': write a number of I/Os"),
        ({"io_size": "-1"}, "--io-size -1: write a size above 0"),
        ({"io_size": "0%"}, "--io-size 0%: write a size above 0"),
        ({"io_size": "ten"}, "--io-size: 'ten' is not a size"),
        ({"number_ios": "0"}, "--number-ios 0: write a number of I/Os, like 100000 or 1M"),
        ({"number_ios": "1.5"}, "--number-ios 1.5: write a number of I/Os"),
        ({"once": True, "objectives": (("p99", "5ms"),)}, "--p99: a search takes a time: leave the volume out"),
    ],
)
def test_a_volume_that_cannot_be_is_refused(options: dict[str, Any], fault: str) -> None:
    with pytest.raises(PlanError) as raised:
        plan_of(**options)
    assert fault in str(raised.value)


@pytest.mark.parametrize(
    ("options", "mix"),
    [
        ({"blocksize": "4k,64k", "rw": "randrw"}, {("read", 4096, 0.5), ("write", 65536, 0.5)}),
        ({"bssplit": "4k/60:64k/40"}, {("read", 4096, 0.6), ("read", 65536, 0.4)}),
        ({"bssplit": "4k/60:64k/40,8k/100", "rw": "randwrite"}, set()),  # one size of writes
        ({"rw": "randtrim", "blocksize": "4k,4k,1m"}, {("trim", 1 << 20, 1.0)}),
        ({"rw": "trim", "blocksize": "1m"}, {("trim", 1 << 20, 1.0)}),
    ],
)
def test_sizes_and_trims_are_a_mix(options: dict[str, Any], mix: set[tuple[str, int, float]]) -> None:
    parameters = plan_of(**options).workloads[0].parameters.absolute(1 << 30, "file", "max")
    assert {(str(one.operation), one.bytes, one.share) for one in parameters.operations} == mix


@pytest.mark.parametrize(
    ("law", "keys"),
    [
        ("random", {}),
        ("zipf:1.2", {"zipf": 1.2}),
        ("pareto:0.3", {"pareto": 0.3}),
        ("zoned:90/10:10/90", {"hot_zones": (Zone(0, 107372544, 0.9, 0.9), Zone(107372544, 1 << 30, 0.1, 0.1))}),
    ],
)
def test_random_ios_go_by_a_law_of_fio(law: str, keys: dict[str, Any]) -> None:
    found = plan_of(random_distribution=law).workloads[0].parameters.absolute(1 << 30, "file", "max")
    assert found == replace(plan_of().workloads[0].parameters.absolute(1 << 30, "file", "max"), **keys)


@pytest.mark.parametrize(("percent", "sequential"), [(30, 0.7), (0, 1.0), (100, 0.0)])
def test_a_part_of_the_ios_is_random(percent: int, sequential: float) -> None:
    (workload,) = plan_of(rw="randread", percentage_random=percent).workloads
    assert (workload.parameters.iosequencer, workload.parameters.sequential) == ("random_steady", sequential)


@pytest.mark.parametrize(
    ("options", "lines"),
    [
        ({"blocksize": "64k"}, ["blocksize: 64KiB"]),
        ({"blocksize": "1M"}, ["blocksize: 1MiB"]),
        ({"blocksize": "4096"}, ["blocksize: 4KiB"]),
        ({"blocksize": "8KiB"}, ["blocksize: 8KiB"]),
        ({"iodepth": 8, "numjobs": 4}, ["maxtags: 32"]),
        ({"time": "60"}, ["warmup: 2s, measure: 1m"]),
        ({"time": "5s"}, ["warmup: 1s, measure: 5s"]),
        ({"ramp": "30"}, ["warmup: 30s"]),
        ({"size": "10G"}, ["range: 0..10GiB"]),
        ({"rate": "20000"}, ["total_iops: 20000 }", "go: rate"]),
        ({"rate": "20k"}, ["total_iops: 20000 }"]),
        ({"rate": "200MiB/s"}, ["total_iops: 51200 }"]),
        ({"rate": "1000-5k"}, ["name: ramp", "profile: { ramp: [1000, 5000] }"]),
        ({"rate": "20MiB/s - 200MiB/s"}, ["profile: { ramp: [5120, 51200] }"]),
        ({"rate": "80%"}, ["name: max, measure: 10s", "total_iops: 80% of step max"]),
        ({"rate": "100", "rw": "rw", "rwmixread": "70"}, ["total_iops: 100 }", "cursors: by_operation"]),
        ({"rate": "80%", "rw": "rw"}, ["total_iops: 80% of step max"]),
        ({"rate": "60MiB/s", "blocksize": "4k,8k", "rw": "randrw"}, ["total_iops: 10240 }"]),
        ({"blockalign": "512"}, ["align: 512"]),
        ({"objectives": (("p99", "5ms"),)}, ["metric: overall_response_us_p99\n", "target: 5ms", "longest_probe: 30"]),
        ({"objectives": (("p99", "5ms"),)}, ["within: 3m"]),
        ({"objectives": (("p99", "5ms"),), "within": "90"}, ["within: 1m30s"]),
        ({"objectives": (("p99.9", "5ms"),)}, ["metric: overall_response_us_p99_9\n"]),
        ({"objectives": (("mean", "800us"),), "time": "2"}, ["overall_response_us_mean", "longest_probe: 10"]),
        ({"hosts": "lab[01-16]", "user": "perf"}, ['hosts: "lab[01-16]"', 'ssh: { user: "perf" }', "[ host ]"]),
        ({"select": ("vendor=HITACHI",), "targets": ()}, ["rollups: [ lun ]"]),
        ({"backend": "io_uring"}, ['engine: { backend: "io_uring" }']),
        ({"name": "nightly"}, ['name: "nightly"']),
        ({"targets": (FILE,)}, ['files: [ "/data/old.bin" ]']),
        ({"targets": (QuickTarget("/d/a[1].bin", TargetKind.FILE),)}, ['files: [ "/d/a[[]1].bin" ]']),
        ({"targets": (NEW,), "size": "10G"}, ['path: "/data/new.bin", size: 10GiB']),
        ({"targets": (NEW, DEVICE), "size": "10G"}, ["size: 10GiB", '[ "/dev/sdb" ]', "range: 0..10GiB"]),
        ({"targets": (), "select": ("vendor=HITACHI",)}, ['select: { vendor: "HITACHI" }']),
        ({"targets": (), "select": ("vendor=HITACHI,IBM,size>=1T",)},
         ['vendor: [ "HITACHI", "IBM" ]', f'size: ">= {1 << 40}"']),
        ({"targets": (), "select": ("transport!=usb", "kind=block")}, ['transport: "not usb"', 'kind: "block"']),
    ],
)  # fmt: skip
def test_each_option_appears_in_the_plan(options: dict[str, Any], lines: list[str]) -> None:
    text = text_of(**options)
    assert [line for line in lines if line not in text] == []
    read(text, "quick")


@pytest.mark.parametrize(
    ("options", "notes"),
    [
        ({"within": "40s"}, ("time for about 3 probes; --within 2m tells more",)),
        ({"within": "59"}, ("time for about 4 probes; --within 2m tells more",)),
        ({"within": "1m"}, ()),
        ({"within": "60s", "ramp": "5s"}, ("time for about 3 probes; --within 3m tells more",)),
        ({}, ()),
    ],
)
def test_a_search_with_time_for_few_probes_says_so(options: dict[str, Any], notes: tuple[str, ...]) -> None:
    assert quick_plan(replace(BASE, objectives=(("p99", "5ms"),), **options), "").notes == notes


@given(st.integers(0, 100), st.integers(1, 60))
def test_law_the_time_of_a_search_is_that_of_its_probes(probes: int, settle: int) -> None:
    """But the last probe, which may be shorter where no time is left."""
    assert probes_within(search_length(probes, settle), settle) == probes
    shortest = search_length(probes, settle) + settle + FEWEST_READ
    assert (probes_within(shortest - 1, settle), probes_within(shortest, settle)) == (probes, probes + 1)


def test_a_new_file_alone_needs_no_consent_to_writing() -> None:
    assert not plan_of(targets=(NEW,), rw="randwrite", size="1G").destroy
    assert plan_of(targets=(NEW, FILE), rw="randwrite", size="1G").destroy


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"within": "3m"}, "name what to search for"),
        ({"objectives": (("p99", "5ms"),), "within": "20s"}, "--within 20s: a run at max and two probes take 29s"),
        ({"objectives": (("p99", "5ms"),), "within": "soon"}, "--within: 'soon'"),
        ({"rw": "randraed"}, "did you mean 'randread'"),
        ({"rw": "trimwrite"}, "no block is written as soon as it was trimmed"),
        ({"rw": "xyzabc"}, "not a kind of I/O;\nthere are"),
        ({"rwmixread": "70"}, "write --rw randrw"),
        (
            {"random_distribution": "zapf"},
            "--random-distribution zapf: 'zapf' is not a distribution; fio has random, zipf",
        ),
        ({"random_distribution": "zipf", "rw": "read"}, "--rw read is not random; write --rw randread"),
        ({"random_distribution": "normal:5"}, "what comes nearest in a plan (--save FILE) is `normal: 8.33%`"),
        ({"random_distribution": "zipf", "once": True}, "each block comes once, or some come more often"),
        ({"rw": "read", "percentage_random": 30}, "fio ignores it there; write --rw randread"),
        ({"blocksize": ","}, "--bs ,: write a size like 4k, or those of reads and writes: 4k,64k"),
        ({"bssplit": "4k/60:bad"}, "--bssplit"),
        ({"rw": "randrw", "rwmixread": "170"}, "from 0 to 100"),
        ({"rw": "randrw", "rwmixread": "half"}, "from 0 to 100"),
        ({"rw": "read", "numjobs": 4}, "one sequential stream per target"),
        ({"numjobs": 0}, "at least 1"),
        ({"iodepth": 0}, "--iodepth: 0 is out of range; from 1 to 8192"),
        ({"iodepth": 4096, "numjobs": 4}, "--iodepth x --numjobs"),
        ({"blocksize": "2G"}, "--bs"),
        ({"blocksize": "4x"}, "is not a size"),
        ({"size": "1"}, "smaller than one I/O"),
        ({"targets": (FILE,), "size": "8G"}, "has only 4GiB"),
        ({"targets": (NEW,)}, "to create it, write its size: --size 1G"),
        ({"targets": (replace(NEW, path="/data/{}.bin"),), "size": "1G"}, "choose another"),
        ({"time": "0.5"}, "1s at least"),
        ({"time": "soon"}, "--time"),
        ({"time": "1h30"}, "--time"),
        ({"rate": "fast"}, "I/Os per second (20000, 20k), 200MiB/s, or 80%"),
        ({"rate": "0"}, "in I/Os per second, above 0"),
        ({"rate": "100M"}, "write 100MiB/s or 100000k"),
        ({"rate": "0%"}, "like 80%"),
        ({"rate": "1000-"}, "--rate 1000-: a ramp has two rates, like 1000-5000"),
        ({"rate": "1-2-3"}, "a ramp has two rates"),
        ({"rate": "-5"}, "I/Os per second (20000, 20k)"),
        ({"rate": "1k-50%"}, "--rate 1k-50%: write a share of the maximum"),
        ({"rate": "1k-2k", "io_size": "1G"}, "a rate that changes takes a time: leave the volume out"),
        ({"objectives": (("p99", "5"),)}, "with its unit, like 5ms"),
        ({"objectives": (("p99", "0s"),)}, "above 0"),
        ({"objectives": (("p99", "5ms"), ("mean", "1ms"))}, "only one of --p99, --mean"),
        ({"objectives": (("p99", "5ms"),), "rate": "100"}, "leave one of them out"),
        ({"user": "perf"}, "--user is for --hosts"),
        ({"targets": (), "select": ("HITACHI",)}, "ATTRIBUTE=VALUE"),
        ({"targets": (), "select": ("size>1T,size<2T",)}, "named twice"),
    ],
)
def test_a_wrong_option_is_named_with_a_remedy(options: dict[str, Any], said: str) -> None:
    with pytest.raises(PlanError) as error:
        text_of(**options)
    assert said in str(error.value)
    assert all(len(line) <= 120 for line in str(error.value).splitlines())


NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=20).map(
    lambda name: "".join(c for c in name if c not in "/{}[]*?")  # a plan's own patterns
)
PATHS = NAMES.filter(lambda name: name.strip(".")).map("/data/{}".format)
TARGETS = st.builds(QuickTarget, PATHS, st.sampled_from(TargetKind), st.none())
LOADS: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.just({}),
    st.fixed_dictionaries({"rate": st.integers(1, 5 * 10**7).map(str)}),
    st.fixed_dictionaries({"rate": st.integers(1, 1000).map("{}%".format)}),
    st.fixed_dictionaries({"rate": st.tuples(*[st.integers(1, 10**6)] * 2).map("{0[0]}-{0[1]}".format)}),
    st.fixed_dictionaries(
        {"objectives": st.tuples(st.tuples(st.sampled_from(list(OBJECTIVES)), st.sampled_from(["5ms", "1s", "80us"])))}
    ),
)


@given(
    st.lists(TARGETS, min_size=1, max_size=4, unique_by=lambda one: one.path),
    st.sampled_from(Rw),
    st.sampled_from(["512", "4k", "16k", "1M", "16M"]), st.integers(1, 8192), st.integers(1, 86_400), LOADS,
    st.sampled_from(["16M", "10G"]),
)  # fmt: skip
def test_every_plan_loads(
    found: list[QuickTarget], rw: Rw, blocksize: str, iodepth: int, time_s: int, load: dict[str, Any], size: str
) -> None:
    plan = plan_of(
        targets=tuple(found), rw=rw, blocksize=blocksize, iodepth=iodepth, time=str(time_s), size=size, **load
    )
    created = {file.path: file.size for file in plan.luns.create}
    new = [one.path for one in found if one.kind is TargetKind.NEW]
    assert created == dict.fromkeys(new, parse_bytes(size))
    (workload,) = plan.workloads
    assert workload.parameters.maxtags == iodepth


def test_the_command_is_the_first_line_whatever_is_in_it() -> None:
    text = quick_plan(BASE, "ivypy quick 'a\nb' ${x}").text
    assert text.splitlines()[0] == "# ivypy quick 'a?b' ${x}"
    read(text, "quick")
