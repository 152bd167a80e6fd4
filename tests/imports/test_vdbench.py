"""A parameter file of vdbench becomes a plan that does the same, or says what differs."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from ivypy.master.cli.commands import cli
from ivypy.master.errors import PlanError
from ivypy.master.imports.description import Description, ImportContext
from ivypy.master.imports.to_plan import to_plan
from ivypy.master.imports.vdbench import read_vdbench
from ivypy.master.imports.vdbench_words import TABLES, Without
from ivypy.master.plan.load import read
from ivypy.master.plan.model import Plan
from ivypy.protocol.parameters import MAX, Cursors, Iosequencer
from tests.support.real_runs import ROOT

SD = "sd=sd1,lun=/dev/sdb,openflags=o_direct\n"
WD = "wd=wd1,sd=sd1\n"
RD = "rd=rd1,wd=wd1,iorate=max,elapsed=60\n"


def description(text: str, environment: Mapping[str, str] | None = None, exists: bool = False) -> Description:
    def included(name: str) -> str:
        raise FileNotFoundError(2, "No such file or directory")

    return read_vdbench(text, "x.parm", ImportContext("/data", environment or {}, included, lambda path: exists))


def plan_of(text: str) -> Plan:
    """Read as the user would have it run, who agrees to overwrite."""
    plan = to_plan(description(text), "ivypy import x.parm")
    return read(plan.replace("# destroy: true", "destroy: true"), "x.yaml")


def text_of(text: str) -> str:
    return to_plan(description(text), "ivypy import x.parm")


def named(text: str) -> list[tuple[str, bool]]:
    """What is dropped, and whether it matters."""
    return [(one.what, one.matters) for one in description(text).dropped]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", {"blocksize": 4096, "fraction_read": 1.0, "iosequencer": Iosequencer.RANDOM_INDEPENDENT, "maxtags": 8}),
        ("xfersize=8k", {"blocksize": 8192}),
        ("xf=1m", {"blocksize": 1 << 20}),
        ("xfersize=(4k,0,16k,100)", {"blocksize": 16384}),
        ("rdpct=70", {"fraction_read": 0.7}),
        ("readpct=0", {"fraction_read": 0.0}),
        ("wrpct=20", {"fraction_read": 0.8}),
        ("seekpct=100", {"iosequencer": Iosequencer.RANDOM_INDEPENDENT}),
        ("seekpct=random", {"iosequencer": Iosequencer.RANDOM_INDEPENDENT}),
        ("seekpct=0", {"iosequencer": Iosequencer.SEQUENTIAL}),
        ("seekpct=seq", {"iosequencer": Iosequencer.SEQUENTIAL}),
        ("seekpct=seqnz", {"iosequencer": Iosequencer.SEQUENTIAL}),
    ],
)
def test_a_parameter_of_a_workload(options: str, expected: dict[str, object]) -> None:
    text = SD + WD.strip() + f",{options}\n" * bool(options) + "\n" + RD
    (workload,) = plan_of(text).workloads
    assert {name: getattr(workload.parameters, name) for name in expected} == expected
    assert workload.parameters.iops == MAX and named(text) == []


@pytest.mark.parametrize(
    ("sd", "line"),
    [
        ("lun=/dev/sdb,threads=32", "maxtags: 32"),
        ("lun=/dev/sdb,threads=(32,4)", "maxtags: 8 "),
        ("lun=/dev/sdb,size=10g", "range: 0..10GiB"),
        ("lun=/dev/sdb,range=(10,20)", "range: 10%..20%"),
        ("lun=/dev/sdb,range=(1g,2g)", "range: 1GiB..2GiB"),
        ("lun=/dev/sdb,range=(0,1g)", "range: 0%..1GiB"),
        ("lun=/dev/sdb,size=10g,range=(10,50)", "range: 1GiB..5GiB"),
        ("lun=/dev/sdb", 'paths: [ "/dev/sdb" ]'),
        ("lun=/dev/sd*,count=(1,3)", 'paths: [ "/dev/sd1", "/dev/sd2", "/dev/sd3" ]'),
        ("lun=/dev/nvme%02dn1,count=(7,2)", 'paths: [ "/dev/nvme07n1", "/dev/nvme08n1" ]'),
        ("lun=file,size=1g", '{ path: "/data/file", size: 1GiB }'),
        ("lun=/dev/shm/file,size=64m", '{ path: "/dev/shm/file", size: 64MiB }'),
    ],
)
def test_a_parameter_of_storage(sd: str, line: str) -> None:
    text = f"sd=sd1,{sd},openflags=directio\nwd=wd1,sd=sd*\n{RD}"
    assert line in text_of(text) and plan_of(text)


def test_a_range_of_a_workload_counts_before_that_of_storage() -> None:
    assert "range: 30%..40%" in text_of("sd=sd1,lun=/dev/sdb,range=(1,2)\nwd=wd1,sd=sd1,range=(30,40)\n" + RD)


@pytest.mark.parametrize(
    ("rd", "keys"),
    [
        ("iorate=max", ["warmup: 1s, measure: 29s"]),  # elapsed=30, without the first interval
        ("iorate=max,elapsed=60,warmup=10", ["warmup: 10s, measure: 1m"]),
        ("iorate=max,el=5m,in=5", ["subinterval: 5s, warmup: 5s, measure: 4m55s"]),
        ("iorate=max,el=1h,int=10,wa=2m,pa=30", ["subinterval: 10s, warmup: 2m, measure: 1h, cooldown: 30s"]),
        ("iorate=curve", ["iops_curve: [ 10%, 50%, 70%, 80%, 90%, 100% ]"]),
        ("iorate=curve,curve=(10-100,45)", ["iops_curve: [ 10%, 55%, 100% ]"]),
        ("iorate=5k", ["total_iops: 5120 }"]),
        ("iorate=(100,200)", ["loop: { total_iops: [ 100, 200 ] }"]),
        ("iorate=max,forthreads=(1-4,d)", ["loop: { maxtags: [ 1, 2, 4 ] }"]),
        ("iorate=max,threads=(2,3)", ["loop: { maxtags: [ 2, 3 ] }"]),
        ("iorate=max,forxfersize=(4k,1m)", ["loop: { blocksize: [ 4KiB, 1MiB ] }"]),
        ("iorate=max,forrdpct=(100,0)", ["loop: { fraction_read: [ 100%, 0% ] }", "# destroy: true"]),
        ("iorate=max,forseekpct=(0,100)", ["loop: { iosequencer: [ sequential, random_independent ] }"]),
        ("iorate=max,forx=(4k,8k),forth=(1,2)", ["loop: { blocksize: [ 4KiB, 8KiB ], maxtags: [ 1, 2 ] }"]),
        ("iorate=(5,6),forth=(1,2)", ["loop: { maxtags: [ 1, 2 ], total_iops: [ 5, 6 ] }"]),  # rates are innermost
        ("iorate=curve,curve=(50),forth=(1,2)", ["iops_curve: [ 50% ]", "loop: { maxtags: [ 1, 2 ] }"]),
        ("iorate=max,threads=16", ["maxtags: 16 "]),
        ("iorate=9,distribution=deterministic", ["iosequencer: random_steady"]),
        ("iorate=9,distribution=d", ["iosequencer: random_steady"]),
        ("iorate=9,distribution=exponential", ["iosequencer: random_independent"]),
    ],
)
def test_a_parameter_of_a_run(rd: str, keys: list[str]) -> None:
    text = f"{SD}{WD}rd=rd1,wd=wd1,{rd}\n"
    for key in keys:
        assert key in text_of(text)
    assert plan_of(text).steps


def test_defaults_apply_to_later_definitions_and_a_list_that_is_given_again_becomes_the_innermost() -> None:
    text = (
        "hd=default,user=root\nhd=a\nhd=b\nsd=default,threads=6,openflags=o_direct\nsd=sd1,lun=/dev/sdb\n"
        "wd=default,sd=sd1,rdpct=0\nwd=wd1,xfersize=8k\nrd=default,iorate=max,forthreads=(2,4),forrdpct=(0,100)\n"
        "rd=rd1,wd=wd1\nrd=rd2,wd=wd1,forthreads=(8,16)\n"
    )
    assert 'ssh: { user: "root" }' in text_of(text)
    assert [step.name for step in plan_of(text).steps] == [
        "rd1+maxtags=1+fraction_read=0%", "rd1+maxtags=1+fraction_read=100%",
        "rd1+maxtags=2+fraction_read=0%", "rd1+maxtags=2+fraction_read=100%",
        "rd2+fraction_read=0%+maxtags=4", "rd2+fraction_read=0%+maxtags=8",
        "rd2+fraction_read=100%+maxtags=4", "rd2+fraction_read=100%+maxtags=8",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("hds", "line"),
    [
        ("hd=localhost\n", None),
        ("hd=one,system=localhost\nhd=two,system=localhost\n", None),
        ("hd=localhost,clients=4\n", None),
        ("hd=lab01\nhd=lab02\n", 'hosts: [ "lab01", "lab02" ]'),
        ("hd=a,system=10.0.0.1\nhd=localhost\n", 'hosts: [ { name: "a", address: "10.0.0.1" }, "local" ]'),
        ("hd=default,user=root\nhd=a\nhd=b\n", 'ssh: { user: "root" }'),
        ("hd=a,user=x\nhd=b,user=y\n", 'hosts: [ { name: "a", user: "x" }, { name: "b", user: "y" } ]'),
        ("hd=a,system=x,clients=2,jvms=4,shell=vdbench,vdbench=/opt\n", 'hosts: [ { name: "a", address: "x" } ]'),
        ("host=(10.0.0.1,a)\n", 'hosts: [ { name: "a", address: "10.0.0.1" } ]'),
    ],
)
def test_hosts(hds: str, line: str | None) -> None:
    text = text_of(hds + SD + WD + RD)
    assert "hosts:" not in text if line is None else line in text
    assert plan_of(hds + SD + WD + RD)


def test_threads_are_those_of_all_hosts_together() -> None:
    plan = plan_of("hd=a\nhd=b\nsd=sd1,lun=/dev/sdb,threads=32\n" + WD + RD)
    assert plan.workloads[0].parameters.maxtags == 16


def test_threads_that_hosts_and_workloads_cannot_divide_are_named() -> None:
    text = "hd=a\nhd=b\nsd=sd1,lun=/dev/sdb,threads=5\n" + WD + RD
    (one,) = description(text).dropped
    assert (one.what, one.matters) == ("threads=5", True)
    assert "has 5 I/Os in flight on sd1" in one.why and "the plan has 4" in one.nearest


def test_threads_of_workloads_on_hosts_of_their_own_are_those_of_one_host_each() -> None:
    text = (
        "hd=a\nhd=b\nsd=sd1,lun=/dev/sdb,threads=32\nwd=w1,sd=sd1,host=a\nwd=w2,sd=sd1,host=b\nrd=r,wd=*,iorate=max\n"
    )
    assert [one.parameters.maxtags for one in plan_of(text).workloads] == [16, 16] and named(text) == []


def test_two_sds_of_one_lun_are_two_workloads_with_the_threads_of_each() -> None:
    text = "sd=sd1,lun=/dev/sdb,threads=4\nsd=sd2,lun=/dev/sdb,threads=4\nwd=w,sd=*\nrd=r,wd=w,iorate=60\n"
    assert [one.parameters.maxtags for one in plan_of(text).workloads] == [4, 4] and named(text) == []
    assert text_of(text).count("total_iops: 30 }") == 2


def test_each_host_drives_the_luns_that_it_has() -> None:
    text = (
        "hd=a\nhd=b\nsd=sd1,host=a,lun=/dev/sdb,host=b,lun=/dev/sdc\nsd=sd2,host=b,lun=/dev/sdd\n"
        "wd=wd1,sd=sd1\nwd=wd2,sd=sd*,host=b\nrd=r1,wd=wd1,iorate=max\nrd=r2,wd=wd2,iorate=max\n"
    )
    lines = text_of(text).splitlines()
    b = '{ host: "b", path: "/dev/sdc" }, { host: "b", path: "/dev/sdd" }'
    assert f'  select: [ {{ host: "a", path: "/dev/sdb" }}, {b} ]' in lines
    assert '    select: [ { host: "a", path: [ "/dev/sdb" ] }, { host: "b", path: [ "/dev/sdc" ] } ]' in lines
    assert '    select: [ { host: "b", path: [ "/dev/sdc", "/dev/sdd" ] } ]' in lines
    assert plan_of(text)


def test_a_definition_with_host_in_it_stands_for_one_of_each_host() -> None:
    text = "hd=a\nhd=b\nsd=sd_$host,host=$host,lun=/dev/sd#host\nwd=wd1,sd=sd_*\n" + RD
    assert '{ host: "a", path: "/dev/sd0" }, { host: "b", path: "/dev/sd1" }' in text_of(text)


def test_the_rate_of_an_rd_is_divided_over_its_workloads_by_their_skew() -> None:
    text = (
        "sd=sd1,lun=/dev/sdb\nsd=sd2,lun=/dev/sdc\nsd=sd3,lun=/dev/sdd\nwd=wd1,sd=sd1,skew=60\nwd=wd2,sd=sd2\n"
        "wd=wd3,sd=sd3\nrd=rd1,wd=wd*,iorate=1000\n"
    )
    edits = [line for line in text_of(text).splitlines() if "edit:" in line]
    assert [re.findall(r"{(wd\d)}.*total_iops: (\d+)", edit) for edit in edits] == [
        [("wd1", "600")], [("wd2", "200")], [("wd3", "200")],
    ]  # fmt: skip


def test_a_rate_of_a_workload_is_its_own_and_the_others_have_the_rest() -> None:
    text = (
        "sd=sd1,lun=/dev/sdb\nwd=wd1,sd=sd1,iorate=100,priority=1\nwd=wd2,sd=sd1,priority=2\nrd=r,wd=wd*,iorate=500\n"
        "rd=m,wd=wd*,iorate=max\n"
    )
    found = text_of(text)
    assert 'workload={wd1}", set: { total_iops: 100 }' in found and 'workload={wd2}", set: { total_iops: 400 }' in found
    assert 'workload={wd2}", set: { iops: max }' in found and plan_of(text)


def test_a_curve_of_several_workloads_takes_each_ones_share_of_its_own_maximum() -> None:
    text = (
        "sd=sd1,lun=/dev/sdb\nsd=sd2,lun=/dev/sdc\nwd=wd1,sd=sd1\nwd=wd2,sd=sd2,xfersize=8k\n"
        "rd=rd1,wd=(wd1,wd2),iorate=curve,curve=(50,90)\n"
    )
    assert text_of(text).split("steps:\n")[1] == (
        '  - go: { name: "rd1-max", warmup: 1s, measure: 29s }\n'
        '  - edit: { rollup: "workload={wd1}", set: { total_iops: "50% of step rd1-max" } }\n'
        '  - edit: { rollup: "workload={wd2}", set: { total_iops: "50% of step rd1-max" } }\n'
        '  - go: { name: "rd1-50pct", warmup: 1s, measure: 29s }\n'
        '  - edit: { rollup: "workload={wd1}", set: { total_iops: "90% of step rd1-max" } }\n'
        '  - edit: { rollup: "workload={wd2}", set: { total_iops: "90% of step rd1-max" } }\n'
        '  - go: { name: "rd1-90pct", warmup: 1s, measure: 29s }\n'
    )
    assert len(plan_of(text).steps) == 3


def test_sequential_reads_and_writes_follow_each_other_in_one_workload() -> None:
    text = f"{SD}wd=wd1,sd=sd1,rdpct=75,seekpct=seq\nrd=rd1,wd=wd1,iorate=400,threads=16\n"
    assert [
        (one.name, one.parameters.fraction_read, one.parameters.maxtags, one.parameters.cursors)
        for one in plan_of(text).workloads
    ] == [("wd1", 0.75, 16, Cursors.SHARED)]
    assert [matters for _, matters in named(text)] == [False]  # exponential gaps
    assert named(f"{SD}wd=wd1,sd=sd1,rdpct=75,seekpct=seq\nrd=rd1,wd=wd1,iorate=max\n") == []


@pytest.mark.parametrize(
    ("sd", "wd", "lines", "dropped"),
    [
        ("", "seekpct=30", ["iosequencer: random_independent", "sequential: 70%"], []),
        ("", "seekpct=30,rdpct=50,xfersize=64k", ["sequential: 70%", "fraction_read: 50%"], []),
        ("", "seekpct=0,xfersize=(4k,60,64k,40)", ["blocksize: { 4KiB: 60%, 64KiB: 40% }"], []),
        ("", "seekpct=0,xfersize=(4k,60,6k,40)", ["{ 4KiB: 60%, 6KiB: 40% }", "align: 2KiB"], []),
        ("", "xfersize=(4k,60,64k,40)", ["{ 4KiB: 60%, 64KiB: 40% }"], ["xfersize=(4k,60,64k,40)"]),
        ("align=4k", "xfersize=(4k,60,64k,40)", ["{ 4KiB: 60%, 64KiB: 40% }"], []),
        ("align=512", "xfersize=(4k,60,64k,40)", ["align: 512"], []),
        ("align=4k", "xfersize=64k", ["blocksize: 64KiB", "align: 4KiB"], []),
        ("align=4k", "xfersize=64k,seekpct=20", ["align: 4KiB", "sequential: 80%"], []),
        ("align=1m", "xfersize=64k,seekpct=20", ["align: 1MiB", "sequential: 80%"], ["align=1m"]),
        ("align=4k", "", ["blocksize: 4KiB", "align: 4KiB"], []),
        ("align=1m", "seekpct=seq", ["iosequencer: sequential"], []),
        ("align=4k", "xfersize=(8k,16k,4k)", ["{ 8KiB: 33.3333333%, 12KiB: 33.3333333%, 16KiB: 33.3333334% }"], []),
        ("align=4k", "xfersize=(4k,1m,4k)", ["align: 4KiB"], ["xfersize=(4k,1m,4k)"]),  # 256 sizes
        ("", "seekpct=seq,streams=(4,1m)", ["iosequencer: sequential", "streams: 4"], ["streams=(4,1m)"]),
        ("", "streams=1", [], []),
    ],
)
def test_sizes_and_places(sd: str, wd: str, lines: list[str], dropped: list[str]) -> None:
    text = f"sd=sd1,lun=/dev/sdb,openflags=o_direct,{sd}\nwd=wd1,sd=sd1,{wd}\n{RD}"
    assert [line for line in lines if line not in text_of(text)] == [], text_of(text)
    assert named(text) == [(what, True) for what in dropped]
    assert plan_of(text)


@pytest.mark.parametrize(
    ("sds", "steps"), [("single", ["r_sd1", "r_sd2"]), ("range", ["r_sd1-sd1", "r_sd1-sd2"]), ("sd2", ["r"])]
)
def test_an_rd_may_name_its_storage(sds: str, steps: list[str]) -> None:
    text = f"sd=sd1,lun=/dev/sdb\nsd=sd2,lun=/dev/sdc\nwd=wd1,sd=sd1\nrd=r,wd=wd1,sd={sds},iorate=max\n"
    assert [step.name for step in plan_of(text).steps] == steps


def test_an_rd_without_a_wd_has_the_default() -> None:
    text = f"{SD}wd=default,xfersize=64k\nrd=r,sd=sd1,iorate=max\n"
    assert [one.parameters.blocksize for one in plan_of(text).workloads] == [65536]


@pytest.mark.parametrize(
    ("kind", "keyword"),
    [
        (kind, name)
        for kind, table in TABLES.items()
        for name, fate in table.items()
        if isinstance(fate, Without) and fate.matters and name not in ("hotband", "priority")
    ],
)
def test_what_matters_and_has_no_counterpart_is_named_with_its_line(kind: str, keyword: str) -> None:
    lines = {"general": "", "hd": "hd=localhost", "sd": SD.strip(), "wd": WD.strip(), "rd": RD.strip()}
    lines[kind] = f"{lines[kind]},{keyword}=3".removeprefix(",")
    text = "\n".join(lines.values())
    where = f"x.parm:{list(lines).index(kind) + 1}"
    assert [(d.where, d.what, d.matters) for d in description(text).dropped] == [(where, f"{keyword}=3", True)]
    assert plan_of(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (SD + "wd=wd1,sd=sd1,xfersize=(4k,50,8k,50)\n" + RD, [("xfersize=(4k,50,8k,50)", True)]),
        (SD + "wd=wd1,sd=sd1,xfersize=(4k,12k,4k)\n" + RD, [("xfersize=(4k,12k,4k)", True)]),
        (SD + "wd=wd1,sd=sd1,xfersize=(4k,50,8k,50)\nrd=r,wd=wd1,iorate=max,xfersize=4k\n", []),
        (SD + "wd=wd1,sd=sd1,seekpct=50\nrd=r,wd=wd1,iorate=max,forseekpct=(0,100)\n", []),
        (SD + WD + "rd=r,wd=wd1,iorate=max,forseekpct=(0,30,100)\n", []),
        (SD + "wd=wd1,sd=sd1,seekpct=eof\n" + RD, [("seekpct=eof", True)]),
        (SD + "wd=wd1,sd=sd1,seekpct=(poisson,3)\n" + RD, [("seekpct=(poisson,3)", True)]),
        (SD + "wd=wd1,sd=sd1,rhpct=0,whpct=0\n" + RD, []),
        (SD + "wd=wd1,sd=sd1,range=(50,120)\n" + RD, [("range=(50,120)", True)]),
        (SD + "wd=a,sd=sd1,skew=70\nwd=b,sd=sd1\nrd=r,wd=*,iorate=max\n", [("wd=*", True)]),
        (
            SD + "sd=sd2,lun=/dev/sdc\nwd=a,sd=sd1,skew=70\nwd=b,sd=sd2\nrd=r,wd=*,iorate=max\n",
            [("skew=70", True)],
        ),
        (SD + "wd=a,sd=sd1,skew=70\nwd=b,sd=sd1\nrd=r,wd=*,iorate=9\n", [("wd=*", False)]),
        (SD + "wd=a,sd=sd1,seekpct=seq\nrd=r,wd=a,iorate=9\n", [("rd=r", False)]),
        (SD + "wd=a,sd=sd1,seekpct=seq\nrd=r,wd=a,iorate=9,distribution=e\n", [("distribution=e", True)]),
        (SD + "wd=a,sd=sd1,seekpct=seq\nrd=r,wd=a,iorate=9,distribution=d\n", []),
        (SD + WD + "rd=r,wd=wd1,iorate=9,distribution=uniform\n", [("distribution=uniform", True)]),
        (SD + WD + "rd=r,wd=wd1,iorate=max,forcompratio=(1,2)\n", [("forcompratio=(1,2)", True)]),
        ("validate=yes\ncompratio=1\n" + SD + WD + RD, [("validate=yes", True)]),
        ("sd=sd1,lun=/dev/sdb,openflags=(o_direct,o_sync)\n" + WD + RD, []),
        ("sd=sd1,lun=/dev/sdb,openflags=(o_direct,fsync)\n" + WD + RD, [("openflags=(o_direct,fsync)", True)]),
        ("sd=sd1,lun=f,size=1g\n" + WD + RD, []),
        ("sd=sd1,lun=f,size=1g\nwd=wd1,sd=sd1,openflags=directio\n" + RD, []),
        ("sd=sd1,lun=f,size=1g\n" + WD + "rd=r,wd=wd1,iorate=max,openflags=o_direct\n", []),
        (SD + "wd=wd1,sd=sd1,xfersize=(4096,100)\n" + RD, []),
        (SD + "wd=wd1,sd=sd1,xfersize=(4k,0,8k,100)\n" + RD, []),
        ("hd=a\nhd=b\nsd=sd1,lun=/f,size=1g,openflags=o_direct\n" + WD + RD, [("sd=sd1", True)]),
        ("hd=a,clients=2,jvms=8\n" + SD + WD + RD, [("clients=2", False), ("jvms=8", False)]),
        ("hd=a,system=x\nhd=b,system=x\n" + SD + WD + RD, [("hd=b", False)]),
    ],
)
def test_what_differs_is_named_and_defaults_are_not(text: str, expected: list[tuple[str, bool]]) -> None:
    assert sorted(named(text)) == sorted(expected)
    assert plan_of(text).steps


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "x.parm: no rd: nothing is run"),
        (SD + WD, "no rd"),
        (SD + RD, "x.parm:2: rd=rd1: no wd wd1"),
        (SD + WD + "rd=r,iorate=max", "x.parm:3: rd=r: no `wd`"),
        (SD + WD + "rd=r,wd=wd1", "x.parm:3: rd=r: no `iorate`"),
        (SD + WD + "rd=r,wd=wd2,iorate=max", "rd=r: no wd wd2; did you mean 'wd1'?"),
        (SD + "wd=wd1,sd=ds1\n" + RD, "x.parm:2: wd=wd1: no sd ds1; did you mean 'sd1'?"),
        (SD + "wd=wd1\n" + RD, "x.parm:2: wd=wd1: no `sd`"),
        ("sd=sd1\n" + WD + RD, "x.parm:1: sd=sd1: no `lun`"),
        ("sd=sd1,lun=x\n" + WD + RD, "/data/x: no such file; give its `size`"),
        ("sd=sd1,lun=/dev/sdb,host=a\n" + WD + RD, "x.parm:1: sd=sd1: no host a"),
        ("hd=a\nsd=sd1,lun=/dev/b,host=a,lun=/dev/c\n" + WD + RD, "`host` and `lun` stand in pairs"),
        (SD + SD + WD + RD, "x.parm:2: sd=sd1: there is an sd sd1 already"),
        (SD + WD + WD + RD, "there are several wd=wd1"),
        (SD + "wd=wd1,sd=sd1,xfresize=4k\n" + RD, "not a parameter of wd that ivypy knows; did you mean 'xfersize'?"),
        (SD + WD + "rd=r,wd=wd1,iorate=max,elasped=3", "a parameter of rd that ivypy knows; did you mean 'elapsed'?"),
        (WD + SD + RD, "lun=/dev/sdb: not a parameter of wd that ivypy knows; it is one of sd; definitions"),
        ("validaet=yes\n" + SD + WD + RD, "not a general parameter that ivypy knows; did you mean 'validate'?"),
        ("fsd=fsd1,anchor=/x\nfwd=f,fsd=fsd1\nrd=r,fwd=f\n", "x.parm:1: fsd=fsd1: a file system test"),
        (SD + WD + "fwd=f\n" + RD, "x.parm:3: fwd=f: a file system test"),
        ("concatenatesds=yes\n" + SD + WD + RD, "concatenatesds=yes: addresses across several LUNs"),
        ("sd=sd1,lun=/dev/sdb,replay=(1,2)\n" + WD + RD, "ivypy does not replay"),
        (SD + "wd=wd1,sd=sd1,user=Foo\n" + RD, "a class of Java"),
        (SD + WD + "rd=r,wd=wd1,iorate=50%", "a percentage of the run before; use iorate=curve"),
        (SD + WD + "rd=r,wd=wd1,iorate=(1,2),distribution=(d,variable)", "rates that change during a run"),
        (SD + WD + "rd=r,wd=wd1,iorate=max,elapsed=5,interval=5", "5 s are not two intervals of 5 s"),
        (SD + WD + "rd=r,wd=wd1,iorate=max,forth=(1-99,1),forx=(512-512k,512)", "make 101,376 steps; a plan"),
        (SD + WD + "rd=r,wd=wd1,iorate=max,threads=9999", "9999 I/Os in flight are too many"),
        (SD + WD + "rd=r,wd=wd1,iorate=max,xfersize=100", "xfersize 100: an I/O is a multiple of 512"),
        (SD + WD + "rd=r,wd=wd1,sd=setsof2,iorate=max", "sets that vdbench draws by chance"),
        (SD + "wd=a,sd=sd1,skew=70\nwd=b,sd=sd1,skew=70\nrd=r,wd=*,iorate=9\n", "skew of its workloads is 140"),
        (SD + "wd=wd1,sd=sd1,rdpct=101\n" + RD, "not a percentage"),
        (SD + "wd=wd1,sd=sd1,xfersize=(4k,50,8k,40)\n" + RD, "pairs of a size and a percentage that add up to 100"),
        ("sd=sd1,lun=/dev/[x]\n" + WD + RD, "/dev/[x]: no path on Linux"),
        ("sd=sd1,lun=x,size=(0,0)\n" + WD + RD, "size=(0,0): not above 0"),
        (SD + WD + "rd=r,wd=wd1,iorate=0\n", "iorate=0: a rate is above 0"),
        (SD + WD + "rd=r,wd=wd1,iorate=max,pause=-1\n", "pause=-1: a time is not below 0"),
        ("hd=a_b!\n" + SD + WD + RD, "'a_b!' cannot be a host's name"),
    ],
)  # fmt: skip
def test_a_file_is_refused_with_the_line(text: str, fault: str) -> None:
    with pytest.raises(PlanError) as raised:
        description(text)
    assert fault in str(raised.value)


def test_a_name_that_is_wrong_is_one_fault() -> None:
    with pytest.raises(PlanError) as raised:
        description(SD + "wd=wd1,sd=ds1\n" + RD)
    assert len(str(raised.value).splitlines()) == 1


@pytest.mark.parametrize(("rdpct", "exists"), [("0", True), ("70", True), ("0", False), ("100", True)])
def test_no_imported_plan_has_consent(rdpct: str, exists: bool) -> None:
    text = f"sd=sd1,lun=x,size=1m\nwd=wd1,sd=sd1,rdpct={rdpct}\n{RD}"
    text = to_plan(description(text, exists=exists), "ivypy import")
    assert "\ndestroy:" not in text
    assert ("# destroy: true" in text) == (exists and rdpct != "100")


def test_the_command_prints_the_plan_and_exits_by_what_it_drops(tmp_path: Path) -> None:
    source, output = tmp_path / "x.parm", tmp_path / "plan.yaml"
    source.write_text("data_errors=1\nvalidate=yes\n" + SD + WD + RD)
    done = CliRunner().invoke(cli, ["import", str(source), "-o", str(output)], standalone_mode=False)
    assert done.return_value == 6 and ":2: validate=yes: ivypy does not verify" in done.stderr
    assert done.stderr.startswith("note: ") and read(output.read_text(), "plan.yaml").workloads[0].name == "wd1"
    output.unlink()
    done = CliRunner().invoke(cli, ["import", "--strict", str(source), "-o", str(output)], standalone_mode=False)
    assert isinstance(done.exception, PlanError) and not output.exists()
    source.write_text(SD + WD + RD)
    done = CliRunner().invoke(cli, ["import", "--strict", str(source), "-o", str(output)], standalone_mode=False)
    assert done.return_value == 0 and output.exists()


def test_the_page_shows_what_the_import_makes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "coming-from-vdbench.md").read_text()
    (source,), (plan,) = (re.findall(rf"```{kind}\n(.*?)```", page, re.DOTALL) for kind in ("properties", "yaml"))
    dropped = re.findall(r"^# not in the plan: (.*)$", plan, re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    Path("san.parm").write_text(source)
    done = CliRunner().invoke(cli, ["import", "san.parm"], standalone_mode=False)
    assert (done.stdout, done.return_value) == (plan, 6)
    assert [line.removeprefix("note: ") for line in done.stderr.splitlines()] == dropped
    assert len(read(plan.replace("# destroy: true", "destroy: true"), "plan.yaml").steps) > 1


VALUES = """1 0 -1 4k max curve (1,2) (1-4,d) (4k,50,8k,50) () sd* sd1 x 100 50% 9t 1.5 (0,0) seq * h1 (h1,sd1) "a b"
    /dev/sdb $host (10,0) no 99999999999999999999 (1,-1) (poisson,x) (d,variable)""".split()
parameter = st.tuples(
    st.sampled_from(sorted({name for table in TABLES.values() for name in table})), st.sampled_from(VALUES)
)


@given(st.lists(st.tuples(st.sampled_from(["hd", "sd", "wd", "rd", ""]), st.lists(parameter, max_size=3)), max_size=6))
def test_every_file_is_a_plan_or_is_refused_with_lines(drawn: list[tuple[str, list[tuple[str, str]]]]) -> None:
    lines = [
        ",".join([*([f"{kind}={kind}1"] if kind else []), *(f"{name}={value}" for name, value in more)])
        for kind, more in drawn
    ]
    base = ["sd=sd1,lun=/dev/sdb", "wd=wd1,sd=sd*", "rd=rd1,wd=*,iorate=max"]
    order = {"": 0, "hd": 1, "sd": 2, "wd": 3, "rd": 4}
    text = "\n".join(sorted([*lines, *base], key=lambda line: order.get(line[:2] if line[2:3] == "=" else "", 0)))
    try:
        plan = plan_of(text)
    except PlanError as refused:
        assert all(re.match(r"x\.parm(:\d+)?: ", line) for line in str(refused).splitlines()), text
    else:
        assert plan.steps


def test_times_that_many_steps_have_in_common_are_defaults() -> None:
    few = (
        SD + WD + "rd=default,wd=wd1,elapsed=60,warmup=5,iorate=max\n" + "".join(f"rd=r{i},th={i}\n" for i in (1, 2, 3))
    )
    assert "defaults:" not in text_of(few)
    many = few + "rd=r4,th=4,pause=9\n"
    text = text_of(many)
    assert "defaults: { warmup: 5s, measure: 1m }" in text and '  - go: { name: "r4", cooldown: 9s }' in text
    assert [(step.warmup_s, step.measure_s) for step in plan_of(many).steps] == [(5, 60)] * 4


@pytest.mark.parametrize(
    ("sd", "wd", "rd", "settings"),
    [
        ("lun=f,size=1g", "", "", {"direct": False, "drop_cache": False}),
        ("lun=f,size=1g,openflags=o_direct", "", "", {"direct": True}),
        ("lun=f,size=1g", "openflags=directio", "", {"direct": True}),
        ("lun=f,size=1g", "", "openflags=o_direct", {"direct": True}),
        ("lun=/dev/sdb", "", "", {"direct": True}),  # which vdbench opens so itself
        ("lun=f,size=1g", "rdpct=0", "openflags=o_sync", {"direct": False, "sync": "sync"}),
        ("lun=/dev/sdb,openflags=o_dsync", "rdpct=70", "", {"sync": "dsync"}),
        ("lun=/dev/sdb,openflags=o_dsync", "rdpct=100", "", {"sync": "none"}),
    ],
)
def test_flags_of_open_are_settings(sd: str, wd: str, rd: str, settings: dict[str, object]) -> None:
    (workload,) = plan_of(f"sd=sd1,{sd}\nwd=wd1,sd=sd1,{wd}\nrd=r,wd=wd1,iorate=max,{rd}\n").workloads
    assert {name: getattr(workload.parameters, name) for name in settings} == settings


def test_runs_that_open_otherwise_are_two_workloads() -> None:
    plan = plan_of(
        "sd=sd1,lun=f,size=1g\n" + WD + "rd=a,wd=wd1,iorate=max,openflags=o_direct\nrd=b,wd=wd1,iorate=max\n"
    )
    assert sorted(one.parameters.direct for one in plan.workloads) == [False, True]
