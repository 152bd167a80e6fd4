"""Parameter files as storage engineers write them: each becomes the steps that vdbench would run."""

from dataclasses import dataclass

import pytest

from ivypy.master.imports.description import ImportContext
from ivypy.master.imports.to_plan import to_plan
from ivypy.master.imports.vdbench import read_vdbench
from ivypy.master.plan.load import read


@dataclass(frozen=True)
class Example:
    text: str
    steps: int
    workloads: tuple[str, ...]
    minutes: float  # under load, vdbench's `elapsed` and `warmup`
    dropped: tuple[str, ...]  # that matter


EXAMPLES = {
    "one disk at a fixed rate": Example(
        """
*
* SD:    Storage Definition
* WD:    Workload Definition
* RD:    Run Definition
*
sd=sd1,lun=/dev/sdb,openflags=o_direct
wd=wd1,sd=sd1,xfersize=4096,readpct=100
rd=run1,wd=wd1,iorate=100,elapsed=10,interval=1
""",
        1, ("wd1",), 10 / 60, (),
    ),
    "two kinds of load on two disks, all combinations": Example(
        """
sd=default,openflags=o_direct
sd=sd1,lun=/dev/disk/by-id/wwn-0x5000c500a1b2c3d4
sd=sd2,lun=/dev/disk/by-id/wwn-0x5000c500a1b2c3d5
wd=wd1,sd=sd1,xfersize=4k,rdpct=80
wd=wd2,sd=sd2,xfersize=8k,rdpct=0
rd=alone,wd=wd1,iorate=max,elapsed=60,interval=5,forthreads=(1,8,32)
rd=together,wd=wd*,iorate=(1000,2000),elapsed=60,interval=5,pause=30
""",
        5, ("wd1", "wd2"), 5, (),
    ),
    "four corners with a curve": Example(
        """
hd=default,vdbench=/root/vdbench50407,shell=ssh,user=root,jvms=4
hd=esx1,system=192.168.10.11
hd=esx2,system=192.168.10.12

sd=default,openflags=o_direct,threads=64
sd=sd1,lun=/dev/mapper/mpatha
sd=sd2,lun=/dev/mapper/mpathb
sd=sd3,lun=/dev/mapper/mpathc

wd=RndRead,sd=sd*,rdpct=100,seekpct=100,xfersize=4k
wd=RndWrite,sd=sd*,rdpct=0,seekpct=100,xfersize=4k
wd=SeqRead,sd=sd*,rdpct=100,seekpct=0,xfersize=64k
wd=SeqWrite,sd=sd*,rdpct=0,seekpct=0,xfersize=64k

rd=default,iorate=curve,curve=(10-100,10),warmup=60,elapsed=600,interval=10
rd=RndRead,wd=RndRead
rd=RndWrite,wd=RndWrite
rd=SeqRead,wd=SeqRead
rd=SeqWrite,wd=SeqWrite
""",
        44, ("RndRead", "RndWrite", "SeqRead", "SeqWrite"), 44 * 11, (),
    ),
    "fill the disks, then every block size, mix and depth": Example(
        """
sd=sd1,lun=/dev/nvme0n1,openflags=o_direct,threads=8
sd=sd2,lun=/dev/nvme1n1,openflags=o_direct,threads=8

wd=fill,sd=sd*,xfersize=1m,rdpct=0,seekpct=eof
wd=rand,sd=sd*,seekpct=100

rd=fill,wd=fill,iorate=max,elapsed=100h,interval=10,maxdata=1
rd=rand,wd=rand,iorate=max,elapsed=5m,interval=5,warmup=30,
   forxfersize=(4k-128k,d),forrdpct=(100,70,30,0),forthreads=(1-32,d)
""",
        1 + 6 * 4 * 6, ("fill", "rand"), 6000 + 144 * 5.5, ("seekpct=eof", "maxdata=1"),
    ),
    "a database: skewed streams on parts of the LUNs": Example(
        """
compratio=2
dedupratio=2
dedupunit=8k
sd=default,openflags=o_direct,threads=24
sd=data*,lun=/dev/mapper/data*,count=(1,4)
sd=log,lun=/dev/mapper/log,threads=4
wd=default,xfersize=8k
wd=hot,sd=data*,rdpct=70,range=(0,10),skew=50
wd=cold,sd=data*,rdpct=90,range=(10,100),skew=30
wd=log,sd=log,rdpct=0,seekpct=seq,xfersize=32k,skew=20
rd=db,wd=*,iorate=(5000-20000,5000),elapsed=10m,warmup=1m,interval=5
""",
        4, ("hot", "cold", "log"), 44, ("compratio=2", "dedupratio=2", "dedupunit=8k"),
    ),
    "each host its own LUNs": Example(
        """
hd=default,user=perf,shell=ssh
hd=lab01
hd=lab02
sd=sd1_$host,host=$host,lun=/dev/sdb,openflags=o_direct,threads=16
sd=sd2_$host,host=$host,lun=/dev/sdc,openflags=o_direct,threads=16
wd=all,sd=sd*,xfersize=(4k,60,64k,40),rdpct=65
rd=all,wd=all,iorate=max,elapsed=1800,interval=30,warmup=300
""",
        1, ("all",), 35, ("xfersize=(4k,60,64k,40)",),
    ),
    "as HCIBench writes it": Example(
        """
*Auto Generated VDBench Parameter File
*2 raw disk, 100% random, 70% read
*SD:    Storage Definition
debug=86
data_errors=10000
sd=sd1,lun=/dev/sda,openflags=o_direct,hitarea=0,range=(0,80),threads=4
sd=sd2,lun=/dev/sdb,openflags=o_direct,hitarea=0,range=(0,80),threads=4
wd=wd1,sd=(sd1,sd2),xfersize=(4096,100),rdpct=70,seekpct=100
rd=run1,wd=wd1,iorate=max,elapsed=3600,warmup=1800,interval=30
""",
        1, ("wd1",), 90, (),
    ),
    "validation of a file": Example(
        """
data_errors=1
validate=yes
sd=sd1,lun=/mnt/test/vdbench.bin,size=2g,openflags=o_direct
wd=wd1,sd=sd1,xfersize=(4k,16k,4k),rdpct=50,rhpct=20
rd=rd1,wd=wd1,iorate=1000,elapsed=2h,interval=60
""",
        1, ("wd1",), 120, ("validate=yes", "xfersize=(4k,16k,4k)", "rhpct=20"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_becomes_its_steps(name: str) -> None:
    example = EXAMPLES[name]
    around = ImportContext("/data", {}, lambda name: "", lambda path: False)
    one = read_vdbench(example.text, "x.parm", around)
    plan = read(to_plan(one, "ivypy import").replace("# destroy: true", "destroy: true"), "x.yaml")
    assert len(plan.steps) == example.steps
    assert tuple(workload.name for workload in plan.workloads) == example.workloads
    assert sum(step.warmup_s + step.measure_s for step in plan.steps) == pytest.approx(60 * example.minutes)
    assert {dropped.what for dropped in one.dropped if dropped.matters} == set(example.dropped)
    assert [note.partition(";")[0] for note in one.notes] == ([f"{example.steps} steps"] if example.steps > 50 else [])
