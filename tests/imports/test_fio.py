"""A job file of fio becomes a plan that does the same, or says what differs."""

import gzip
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from ivypy.master.cli.commands import cli
from ivypy.master.errors import PlanError
from ivypy.master.imports.description import Description, ImportContext, ImportedRun
from ivypy.master.imports.fio import read_fio
from ivypy.master.imports.fio_options import ALWAYS, MAPPED, REFUSED, SYNONYMS, UNMAPPED
from ivypy.master.imports.fio_text import seconds_of, size_of
from ivypy.master.imports.to_plan import to_plan
from ivypy.master.plan.load import read
from ivypy.master.plan.model import Plan
from ivypy.master.text.units import format_volume
from ivypy.protocol.parameters import MAX, Iosequencer
from tests.support.real_runs import ROOT

EXAMPLES = ROOT / ".venv" / "fio-examples"  # of Debian's package, unpacked by scripts/setup
DEVICE = "filename=/dev/sdb\ndirect=1\nioengine=libaio\ntime_based\nruntime=9\n"


needs_fio = pytest.mark.skipif(shutil.which("fio") is None, reason="this machine lacks fio")


def description(
    text: str,
    environment: Mapping[str, str] | None = None,
    files: Mapping[str, str] | None = None,
    exists: bool = False,
) -> Description:
    def included(name: str) -> str:
        if name not in (files or {}):
            raise FileNotFoundError(2, "No such file or directory")
        return (files or {})[name]

    return read_fio(text, "job.fio", ImportContext("/data", environment or {}, included, lambda path: exists))


def plan_of(one: Description) -> Plan:
    """Read as the user would have it run, who agrees to overwrite."""
    return read(to_plan(one, "ivypy import job.fio").replace("# destroy: true", "destroy: true"), "job.yaml")


def job(options: str) -> Plan:
    return plan_of(description(f"[job]\n{DEVICE}{options}"))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("bs=8k", {"blocksize": 8192}),
        ("rw=randwrite\nbssplit=,16k/100", {"blocksize": 16384}),
        ("rw=randread\nbs=8k\nbssplit=,16k/100", {"blocksize": 8192}),
        ("rw=randwrite\nbssplit=4k/50:64k/50,16k/100", {"blocksize": 16384}),
        ("bs=1m\nbssplit=8k", {"blocksize": 8192}),
        ("bs=4kb", {"blocksize": 4096}),
        ("kb_base=1000\nbs=4KiB", {"blocksize": 4096}),
        ("rw=write\nbs=4k,64k", {"blocksize": 65536, "fraction_read": 0.0}),
        ("rw=randread", {"iosequencer": Iosequencer.RANDOM_STEADY, "fraction_read": 1.0}),
        ("rw=read", {"iosequencer": Iosequencer.SEQUENTIAL, "fraction_read": 1.0}),
        ("rw=randrw\nrwmixread=70", {"fraction_read": 0.7}),
        ("rw=randrw\nrwmixwrite=20", {"fraction_read": 0.8}),
        ("rw=randrw\nrwmixread=70\nrwmixwrite=20", {"fraction_read": 0.8}),
        ("rw=randrw\nrwmixwrite=20\nrwmixread=70", {"fraction_read": 0.7}),
        ("rw=randrw\nrwmixread=1\nrwmixwrite=20\nrwmixread=70", {"fraction_read": 0.7}),
        ("rw=randread\niodepth=32", {"maxtags": 32, "iops": MAX}),
        ("rw=randread\niodepth=8\nnumjobs=4\nrate_iops=100", {"maxtags": 32, "iops": 400.0}),
        ("ioengine=psync\niodepth=32", {"maxtags": 1}),
        ("rw=randread\nbs=4k\nrate=4m", {"iops": 1024.0}),
        ("rw=randrw\nrate_iops=300,100", {"iops": 400.0, "fraction_read": 0.75}),
        ("rw=randread\nrate_iops=9\nrate_process=poisson", {"iosequencer": Iosequencer.RANDOM_INDEPENDENT}),
        ("randseed=7", {"seed": 7}),
    ],
)
def test_an_option_becomes_a_parameter(options: str, expected: dict[str, object]) -> None:
    (workload,) = job(options).workloads
    assert {name: getattr(workload.parameters, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ("size=1g", "range: 0..1GiB"),
        ("offset=1g\nsize=2g", "range: 1GiB..3GiB"),
        ("offset=1m", "range: 1MiB..100%"),
        ("filesize=1m\nsize=4m", "range: 0..1MiB"),  # the file ends there
        ("filesize=8m\nsize=4m\nrw=randread", "range: 0..8MiB"),  # and `size` is how much of it
        ("filesize=8m\noffset=1m", "range: 1MiB..8MiB"),
        ("size=20%", "range: 0%..20%"),
        ("offset=10%\nsize=20%", "range: 10%..30%"),
        ("offset=1g\nsize=50%", "range: 1GiB..50%+1GiB"),
        ("offset=50%\nsize=4m", "range: 50%..50%+4MiB"),
        ("offset=80%\nsize=50%", "range: 80%..100%"),
        ("offset=1m\nsize=100%", "range: 1MiB..100%"),
        ("filesize=8m\nsize=50%", "range: 0..4MiB"),
        ("filesize=8m\nsize=50%\noffset=6m", "range: 6MiB..8MiB"),
        ("filesize=10m\nsize=33%\noffset=33%", "range: 3380KiB..6756KiB"),  # begins at the next block, as in fio
        ("ramp_time=5", "warmup: 5s, measure: 9s"),
        ("runtime=2m", "measure: 2m"),
        (
            "ss=iops_slope:0.3%\nss_dur=20",
            "steady: { criterion: iops_slope, limit: 0.3%, window: 20s, timeout: 1m20s }",
        ),
        ("runtime=60\nss=iops:2%\nss_dur=15", "window: 15s, timeout: 1m }"),
        ("ss=iops:2%", "warmup: 0s, measure: 9s"),  # ss_dur is 0: fio looks for none
        ("ioengine=io_uring", 'engine: { backend: "io_uring" }'),
    ],
)
def test_an_option_becomes_a_line(options: str, line: str) -> None:
    one = description(f"[job]\n{DEVICE}{options}")
    assert line in to_plan(one, "ivypy import") and plan_of(one)


@pytest.mark.parametrize(
    ("rates", "share"),
    [("200,100", "66.6667%"), ("1,2", "33.3333%"), ("1,9", "10%"), ("9999999,1", "99.99999%")],
)
def test_a_share_has_the_digits_that_matter(rates: str, share: str) -> None:
    text = to_plan(description(f"[job]\n{DEVICE}rw=randrw\nrate_iops={rates}"), "ivypy import")
    assert f"fraction_read: {share}\n" in text, re.findall("fraction_read.*", text)


def test_jobs_up_to_a_stonewall_are_a_step() -> None:
    text = f"[global]\n{DEVICE}rw=randread\n[a]\n[b]\nrate_iops=5\n[c]\nstonewall\nfilename=/dev/sdc"
    plan = plan_of(description(text))
    assert [step.name for step in plan.steps] == ["a", "c"]
    assert [one.name for one in plan.workloads] == ["a", "b", "c"]
    assert [one.parameters.iops for one in plan.workloads] == [MAX, 5.0, 0.0]


def test_sequential_clones_are_streams_of_their_own() -> None:
    one = description(f"[job]\n{DEVICE}rw=write\nnumjobs=2\nsize=1g\noffset_increment=1g")
    assert [stream.span for stream in one.streams] == [("0", "1GiB"), ("1GiB", "2GiB")]
    assert [workload.name for workload in plan_of(one).workloads] == ["job-0", "job-1"]


@pytest.mark.parametrize(
    ("options", "spans"),
    [
        ("offset_increment=20%", [None, ("20%", "100%"), ("40%", "100%")]),
        ("offset_increment=20%\nsize=20%", [("0%", "20%"), ("20%", "40%"), ("40%", "60%")]),
        ("offset_increment=20%\nsize=20%\nrw=randread", [("0%", "20%"), ("20%", "40%"), ("40%", "60%")]),
        ("offset_increment=20%\nsize=50%\noffset=40%", [("40%", "90%"), ("60%", "100%"), ("80%", "100%")]),
        ("offset_increment=20%\nsize=2m", [("0", "2MiB"), ("20%", "20%+2MiB"), ("40%", "40%+2MiB")]),
        (
            "offset_increment=20%\nsize=2m\noffset=1m",
            [("1MiB", "3MiB"), ("20%+1MiB", "20%+3MiB"), ("40%+1MiB", "40%+3MiB")],
        ),
        ("offset_increment=1m\nsize=50%", [("0%", "50%"), ("1MiB", "50%+1MiB"), ("2MiB", "50%+2MiB")]),
        ("offset_increment=1m\noffset=60%\nsize=50%", [("60%", "100%"), ("60%+1MiB", "100%"), ("60%+2MiB", "100%")]),
        ("offset_increment=25%\nfilesize=8m\nsize=25%", [("0", "2MiB"), ("2MiB", "4MiB"), ("4MiB", "6MiB")]),
    ],
)
def test_clones_are_apart_in_bytes_and_in_percent(options: str, spans: list[tuple[str, str] | None]) -> None:
    one = description(f"[job]\n{DEVICE}numjobs=3\n{options}")
    assert [stream.span for stream in one.streams] == spans and plan_of(one) and not one.dropped


def test_clones_with_files_of_their_own_begin_apart_too() -> None:
    one = description("[job]\nsize=4m\noffset_increment=1m\nnumjobs=3\nrw=write\n")
    assert [(stream.paths, stream.span) for stream in one.streams] == [
        (("/data/job.0.0",), ("0", "4MiB")),
        (("/data/job.1.0",), ("1MiB", "5MiB")),
        (("/data/job.2.0",), ("2MiB", "6MiB")),
    ]


@pytest.mark.parametrize("exists", [True, False])
def test_a_percentage_of_a_file_that_is_not_there_yet_is_named(exists: bool) -> None:
    one = description("[job]\nfilename=x\ndirect=1\nfilesize=8m\noffset=50%\n", exists=exists)
    assert one.streams[0].span == ("4MiB", "8MiB")
    assert [(drop.what, drop.matters) for drop in one.dropped] == ([] if exists else [("offset=50%", True)])


def test_clones_end_where_their_file_of_a_given_size_does() -> None:
    one = description("[job]\nfilename=x\nfilesize=4m\nsize=3m\noffset_increment=1m\nnumjobs=3\nrw=write\n")
    assert [stream.span for stream in one.streams] == [("0", "4MiB"), ("1MiB", "4MiB"), ("2MiB", "4MiB")]
    assert [stream.until for stream in one.streams] == ["{ bytes: 3MiB }", "{ bytes: 1x }", "{ bytes: 1x }"]
    assert [target.size for target in one.targets] == [4 << 20]


def test_a_part_of_a_file_that_another_job_makes_larger_stays_that_part() -> None:
    text = "[global]\nfilename=x\nsize=32m\n[late]\noffset=16m\n[early]\n"
    text = to_plan(description(text), "ivypy import")
    assert "size: 48MiB" in text and "range: 16MiB..48MiB" in text and "range: 0..32MiB" in text


def test_global_sections_includes_and_the_environment_apply() -> None:
    text = "[global]\ninclude common.fio\n[a] # a comment\nrw=${RW}\n[global]\nbs=8k\n[b]\n"
    one = description(text, {"RW": "randread"}, {"common.fio": f"; shared\n{DEVICE}bs=16k"})
    assert [(s.blocksize, s.sequential) for s in one.streams] == [(16384, False), (8192, True)]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[job]\nfoo=1\n", "job.fio:2: foo=1: not an option of fio that ivypy knows"),
        ("[job]\niodepht=1\n", "did you mean 'iodepth'"),
        ("[job]\nioengine=http\n", "job.fio:2: ioengine=http: no engine for blocks or files"),
        ("[job]\nzonemode=zbd\n", "job.fio:2: zonemode=zbd: zones cannot be driven"),
        (
            "[job]\nfilename=x\nsize=1m\nrw=randtrim\n",
            "job.fio:4: rw=randtrim: fio trims block devices",
        ),
        (
            "[job]\nfilename=/dev/sdb\nrw=trimwrite\n",
            "job.fio:3: rw=trimwrite: fio trims each block",
        ),
        ("[job]\nfilename=/dev/sdb\nbsrange=8k\n", "job.fio:3: bsrange=8k: '8k' is not a range of sizes"),
        (
            "[job]\nfilename=/dev/sdb\nbs=2g\n",
            "job.fio:3: bs=2g: 2147483648 bytes: an I/O is a multiple",
        ),
        ("[job]\nfilename=/dev/sdb\nbssplit=4k/60:8k/41:16k:32k\n", "adds up to 101%, which leaves nothing"),
        ("[job]\nfilename=/dev/sdb\nbssplit=4k-8k/50\n", "job.fio:3: bssplit=4k-8k/50: '4k-8k' is not a size"),
        ("[job]\nfilename=/dev/sdb\nbssplit=4k/50: 8k\n", "' 8k' is not a size and its share, like 64k/50"),
        ("[job]\nfilename=/dev/sdb\nbssplit=4k/x\n", "'4k/x' is not a size and its share, like 64k/50"),
        ("[job]\nrw=${NONE}\n", "job.fio:2: rw=${NONE}: the environment has no NONE"),
        ("[job]\ninclude gone.fio\n", "job.fio:2: include gone.fio: No such file"),
        ("[job]\nfilename=/dev/sdb\nbs=100\n", "job.fio:3: bs=100: 100 bytes: an I/O is a multiple of 512"),
        ("[job]\nfilename=/dev/sdb\niodepth=many\n", "job.fio:3: iodepth=many"),
        ("[job]\nfilename=x\n", "/data/x: no such file; give its `size`"),
        ("[job]\nfilename=/dev/zero\n", "job.fio:2: filename=/dev/zero: /dev/zero: not a block device"),
        ("[job]\nsize=64k\nbs=1m\n", "job.fio:2: size=64k: 65536 bytes of a file hold no I/O"),
        ("[job]\nsize=1m\nbs=1m\noffset=4k\n", "job.fio:4: offset=4k: 1048576 bytes of a file hold no I/O"),
        ("[job]\nsize=1m\ncreate_only=1\n", "job.fio:3: create_only=1: does no I/O"),
        ("[job]\nsize=1m\nverify_only\n", "job.fio:3: verify_only: does no I/O but verifying"),
        ("[job]\nopendir=/srv\n", "job.fio:2: opendir=/srv: files of a folder"),
        ("[job]\nsize=1m\nnrfiles=2\nfilename_format=x.$jobnum\n", "job.fio:4: filename_format=x.$jobnum: files of a"),
        ("[job]\nsize=1m\nfilename_format=$clientuid\n", "job.fio:3: filename_format=$clientuid: no name of a file"),
        (
            "[job]\nsize=1m\nfilename_format={}\n",
            "job.fio:3: filename_format={}: /data/{}: names of targets cannot have",
        ),
        ("[job]\nsize=1m\nfilename={host}\n", "job.fio:3: filename={host}: /data/{host}: names of targets cannot have"),
        ("[job]\nsize=1m\nnumjobs=2000\n", "job.fio:1: [job]: more than 1024 files"),
        ("[job]\nsize=1m\nnumjobs=999999999\nnrfiles=99999999\n", "job.fio:1: [job]: more than 1024 files"),
        ("[job]\nsize=1m\nfilename=x\nnumjobs=999999999\n", "job.fio:4: numjobs=999999999: more than 1024 streams"),
        ("[job]\nsize=1m\nfilename=x\ndirectory=a:b\n", "job.fio:4: directory=a:b: several directories"),
        ("[global]\nsize=1m\n[a]\nioengine=null\n[b]\n", "job.fio:4: ioengine=null: a plan has one backend"),
        ("[job]\nbs=$pagesize\n", "job.fio:2: bs=$pagesize: fio's keywords are not read"),
        ("[job]\nfilename=/dev/sdb\nsize=0%\n", "job.fio:3: size=0%: nothing of the device is left"),
        ("[job]\nfilename=/dev/sdb\noffset=100%\n", "job.fio:3: offset=100%: nothing of the device is left"),
        (
            "[job]\nfilename=/dev/sdb\noffset_increment=50%\nnumjobs=3\n",
            "job.fio:3: offset_increment=50%: nothing of the device is left",
        ),
        (
            "[job]\nfilename=/dev/sdb\nrw=randread\nba=1m\nbs=64k\noffset=156k\nsize=356k\n",
            "364544 bytes of a file hold no I/O of 64KiB at a multiple of 1MiB",
        ),
        ("[job]\nfilename=/dev/sdb\nsize=12.5%\n", "job.fio:3: size=12.5%: '12.5' is not a whole number"),
        ("bs=4k\n", "job.fio:1: bs=4k: an option before the first [section]"),
        ("", "job.fio: no job"),
    ],
)
def test_a_file_is_refused_with_the_line(text: str, fault: str) -> None:
    with pytest.raises(PlanError) as raised:
        description(text)
    assert fault in str(raised.value)


@pytest.mark.parametrize(
    ("options", "until"),
    [
        ("", "{ bytes: 1x }"),
        ("loops=3", "{ bytes: 3x }"),
        ("io_size=3m", "{ bytes: 3MiB }"),
        ("io_size=3m\nloops=2", "{ bytes: 6MiB }"),
        ("io_size=150%", "{ bytes: 1.5x }"),
        ("number_ios=5", "{ ios: 5 }"),
        ("number_ios=5000\nio_size=1m", "{ bytes: 1MiB }"),  # whichever comes first
        ("number_ios=5\nsize=8k", "{ bytes: 1x }"),
        ("number_ios=5\nsize=8k\nloops=3", "{ bytes: 3x }"),  # of each loop
        ("number_ios=5\nsize=1m\nloops=3", "{ ios: 15 }"),
        ("io_size=5k\nloops=3", "{ bytes: 24KiB }"),
        ("filesize=8m\nsize=4m", "{ bytes: 4MiB }"),
        ("filesize=1m\nsize=4m", "{ bytes: 1x }"),
        ("filesize=8m\nsize=4m\nfilename=/dev/b\nloops=2", "{ bytes: 4MiB }"),
        ("number_ios=6\nfilename=/dev/b", "{ ios: 3 }"),  # over both
        ("io_size=3m\nfilename=/dev/b", "{ bytes: 1536KiB }"),
        ("filename=/dev/b", "{ bytes: 1x }"),
        ("numjobs=4\nrw=randread", "{ bytes: 4x }"),  # all clones, as one workload
        ("numjobs=4\nrw=read", "{ bytes: 1x }"),  # a workload each
        ("runtime=9", "{ bytes: 1x }"),
        ("runtime=9\ntime_based", "never"),
        ("time_based", "{ bytes: 1x }"),
        ("rw=rw\nrwmixread=75\niodepth=4", "{ bytes: 1x }"),
        ("rw=rw\nrate_iops=700,300", "{ bytes: 0.7x }"),  # fio holds the rates, not the mix
    ],
)
def test_a_job_ends_with_its_volume(options: str, until: str) -> None:
    """fio.1: size, io_size, loops, number_ios; of a mix, reads and writes together."""
    text = f"[job]\nfilename=/dev/sdb\ndirect=1\nioengine=libaio\niodepth=4\n{options}"
    parameters = plan_of(description(text)).workloads[0].parameters
    assert format_volume(parameters.until) == until


@pytest.mark.parametrize(
    ("options", "random_map"),
    [
        ("rw=randread", True),
        ("rw=randread\nnorandommap=0", True),
        ("rw=randread\nnorandommap", False),
        ("rw=read", False),
        ("rw=randwrite\nruntime=9\ntime_based", True),
    ],
)
def test_random_addresses_are_drawn_as_fio_draws_them(options: str, random_map: bool) -> None:
    assert plan_of(description(f"[job]\nfilename=/dev/sdb\n{options}")).workloads[0].parameters.random_map is random_map


@pytest.mark.parametrize(
    ("jobs", "keys"),
    [
        ("[a]\n[b]\n", {"warmup": "0s"}),
        ("[a]\nruntime=5\n[b]\nruntime=5\n", {"warmup": "0s", "measure": "5s"}),
        ("[a]\nramp_time=2\n", {"warmup": "2s"}),
        ("[a]\n[b]\nruntime=5\ntime_based\n", {"warmup": "0s", "measure": "5s"}),  # b never ends by itself
    ],
)
def test_a_step_has_the_time_of_its_jobs_if_they_have_any(jobs: str, keys: Mapping[str, str]) -> None:
    (step,) = description(f"[global]\nfilename=/dev/sdb\ndirect=1\n{jobs}").actions
    assert isinstance(step, ImportedRun) and dict(step.keys) == keys


@pytest.mark.parametrize("option", [name for name, (_, _, matters) in UNMAPPED.items() if matters])
def test_what_matters_and_has_no_counterpart_is_named_with_its_line(option: str) -> None:
    value = {"iodepth_batch_complete_min": "8"}.get(option, "1")
    base = {"pre_read": "direct=0\n", "uncached": "direct=0\n", "blocksize_unaligned": "norandommap\nbsrange=4k-8k\n"}
    before = f"[job]\n{DEVICE}rw=randread\n{base.get(option, '')}"
    one = description(f"{before}{option}={value}")
    line = before.count("\n") + 1
    assert [(d.where, d.what) for d in one.dropped if d.matters] == [(f"job.fio:{line}", f"{option}={value}")]
    assert plan_of(one)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ("ioengine=psync\nfilename=/dev/b", ["filename=/dev/sdb:/dev/b"]),
        ("iodepth=7\nfilename=/dev/b", ["filename=/dev/sdb:/dev/b"]),
        ("iodepth=8\nfilename=/dev/b", ["filename=/dev/sdb:/dev/b"]),
        ("iodepth=8\nfilename=/dev/b\nrate_iops=100", []),
        ("iodepth=8\nfilename=/dev/b\nioengine=null", []),
        ("rw=rw\nrwmixread=90\niodepth=10", []),
        ("rw=rw\nrwmixread=90\niodepth=10\nrate_iops=90,10", []),
        ("rw=rw\nrwmixread=90\niodepth=10\nrate_iops=90", []),
        ("rw=rw\nrwmixread=90\niodepth=10\nrate_iops=90,", ["rate_iops=90,"]),
        ("rw=randread\npercentage_random=0", []),
        ("rw=randread\npercentage_random=100,0", []),
        ("rw=randread\npercentage_random=30\nnorandommap", []),
        ("rw=randread\npercentage_random=30", ["percentage_random=30"]),  # of a map
        ("rw=randrw\nnorandommap\npercentage_random=30,60", ["percentage_random=30,60"]),
        ("rw=randwrite\nnorandommap\npercentage_random=30,60", []),
        ("rw=read\npercentage_random=30", []),  # fio ignores it
        ("rw=randread\nbs=16k\nba=4k", []),
        ("rw=randread\nbs=4k\nba=64k\nnorandommap\npercentage_random=50", ["percentage_random=50"]),
        ("rw=randrw\nba=4k,8k\nbs=16k", ["ba=4k,8k"]),
        ("rw=randrw\nblockalign=4k,8k\nblocksize=16k", ["blockalign=4k,8k (ba)"]),
        ("rw=randwrite\nba=4k,8k\nbs=16k", []),
        ("rw=read\nbs=16k\nba=1m", []),  # of random I/Os
        ("rw=randread\nbs=16k\nba=4k\noffset=10k", ["offset=10k"]),  # from which fio counts
        ("rw=randread\nbsrange=4k-64k\nnorandommap", []),
        ("rw=randread\nbsrange=4k-64k", ["bsrange=4k-64k"]),
        ("rw=read\nbsrange=4k-1m", ["bsrange=4k-1m"]),  # 256 sizes
        ("rw=rw\nbsrange=4k-256k", ["bsrange=4k-256k"]),  # 64 of reads, 64 of writes
        ("rw=read\nbsrange=4k-64k\nbs_unaligned", ["bs_unaligned (blocksize_unaligned)"]),
        ("rw=read\nbs=4k\nbs_unaligned", []),
        ("rw=randrw\nbs=4k,8k\nnorandommap", []),
        ("rw=randrw\nbs=4k,8k", ["bs=4k,8k"]),
        ("rw=randread\nbs=4k,8k", []),
        ("rw=read\nrate=1m\nbssplit=4k/50:8k", ["rate=1m"]),  # gaps
        ("rw=randtrim\niodepth=8", ["iodepth=8"]),
        ("rw=randread\npercentage_random=100\nloops=1", []),
        ("rw=randread", []),
        ("rw=randread\nnorandommap", []),
        ("rw=read\npercentage_random=0", []),
        ("rw=randread\nnorandommap\nbuffer_pattern=0", ["buffer_pattern=0"]),
        ("file_service_type=random", ["file_service_type=random"]),
        ("file_service_type=roundrobin\nunique_filename=1\nexitall=0", []),
        ("exitall", ["exitall"]),
        ("file_append=1", ["file_append=1"]),
        ("filesize=1m-2m", ["filesize=1m-2m"]),
        ("filesize=1m-1m", []),
        ("time_based=0\nnumber_ios=11\nfilename=/dev/b", ["number_ios=11", "filename=/dev/sdb:/dev/b"]),
        ("time_based=0\nio_size=12k\nfilename=/dev/b\niodepth=2", ["io_size=12k", "filename=/dev/sdb:/dev/b"]),
        ("rw=randread\ntime_based=0\nnumjobs=4\nio_size=1g", ["numjobs=4"]),  # fio may visit a block four times
        ("rw=randread\ntime_based=0\nnumjobs=4\nio_size=1g\nnorandommap", []),
        ("rw=randread\ntime_based=0\nnumjobs=4\nsize=1g", []),  # all of it, by each
        ("rw=read\ntime_based=0\nnumjobs=4\nio_size=1g", []),
        ("time_based=0\nloops=1\nio_size=1g\nnumber_ios=5", []),
        ("time_based=0\nloops=3\nfilesize=4g\nsize=1g", ["loops=3"]),  # each begins at the same place
        ("time_based=0\nloops=3\nfilesize=4g\nsize=4g", []),
        ("time_based=0\nloops=3\nio_size=1g\nsize=4g", []),  # each goes on
        ("time_based=0\nloops=3\nsize=4g", []),
        ("time_based=0\nss=iops:5%\nss_dur=1", ["[job]"]),
        ("rate_min=1m", ["rate_min=1m"]),
        ("offset=50\nsize=50%", ["offset=50"]),
        ("offset=50\noffset_increment=20\nnumjobs=2", ["offset=50", "offset_increment=20"]),
        ("offset=50%\nsize=1m", []),
        ("offset=50%\nsize=5000", ["size=5000"]),
        ("rw=randwrite\nbs=64k\nbssplit=,16k/100", []),  # of writes, one size
        ("rw=randread\nbssplit=4k/50:8k,16k/100", ["bssplit=4k/50:8k,16k/100"]),
        ("rw=randwrite\nbssplit=4k/50:8k,16k/100", []),
        ("bs=64k\nbssplit=8k/100:16k/0", []),
        ("rw=randrw\nbssplit=,16k/100", ["bssplit=,16k/100"]),  # reads have another
        ("pre_read=1\nuncached=1", []),  # of direct I/O
    ],
)
def test_what_fio_would_do_otherwise_is_named_and_defaults_are_not(options: str, named: list[str]) -> None:
    assert [dropped.what for dropped in description(f"[job]\n{DEVICE}{options}").dropped] == named


@pytest.mark.parametrize(
    ("options", "files"),
    [
        ("numjobs=2", {"job.0.0": 8, "job.1.0": 8}),
        ("nrfiles=2", {"job.0.0": 4, "job.0.1": 4}),
        ("numjobs=2\nnrfiles=2", {"job.0.0": 4, "job.0.1": 4, "job.1.0": 4, "job.1.1": 4}),
        ("numjobs=2\ndirectory=a:b", {"a/job.0.0": 8, "b/job.1.0": 8}),
        ("numjobs=2\nfilename_format=x-$jobnum", {"x-0": 8, "x-1": 8}),
        ("filename=a:b", {"a": 4, "b": 4}),
        ("filename_format=$clientuid-$jobname-$new-{$jobnum}", {"-job-$new-{0}": 8}),
        ("filename_format=x\nnumjobs=3", {"x": 8}),
        ("filename_format=x.$filenum\nnrfiles=2\nnumjobs=3", {"x.0": 4, "x.1": 4}),
        ("filename_format=x\nnumjobs=3\ndirectory=a:b", {"a/x": 8, "b/x": 8}),
    ],
)
def test_the_files_of_a_job_have_fios_names_and_sizes(options: str, files: dict[str, int]) -> None:
    found = description(f"[job]\nsize=8m\nrw=write\n{options}").targets
    assert {one.path: one.size for one in found} == {f"/data/{name}": mib << 20 for name, mib in files.items()}


@pytest.mark.parametrize("options", ["rw=randread", "rw=read", "rw=read\noffset_increment=1m"])
def test_a_file_that_clones_share_by_its_format_is_left_to_the_first(options: str) -> None:
    one = description(f"[job]\nfilename_format=x\nnumjobs=3\nsize=1m\ndirect=1\n{options}\n")
    (stream,) = one.streams
    assert (stream.depth, stream.until) == (1, "{ bytes: 1x }") and plan_of(one)
    (named,) = one.dropped
    assert "1 of 3 clones do I/O" in named.why and not named.matters


@pytest.mark.parametrize(
    ("options", "files"),
    [
        ("numjobs=100", {"/data/job.{}.0": 100}),
        ("nrfiles=100", {"/data/job.0.{}": 100}),
        ("numjobs=20\nnrfiles=2", {"/data/job.{}.0": 20, "/data/job.{}.1": 20}),
        ("numjobs=100\nfilename_format=a$jobnum", {"/data/a{}": 100}),
        ("numjobs=9\nfilename_format=a0$jobnum", {f"/data/a0{number}": 1 for number in range(9)}),
        ("numjobs=8", {f"/data/job.{number}.0": 1 for number in range(8)}),
    ],
)
def test_many_files_are_one_line(options: str, files: dict[str, int]) -> None:
    plan = plan_of(description(f"[job]\nsize=128m\nrw=write\n{options}\n"))
    assert {file.path: file.count for file in plan.luns.create} == files


def test_many_sequential_clones_are_workloads() -> None:
    plan = job("rw=write\nnumjobs=200\nsize=1g\noffset_increment=1g")
    assert len({workload.parameters.range for workload in plan.workloads}) == 200


@pytest.mark.parametrize(
    ("options", "depth", "matters"),
    [
        ("filename=a:b\niodepth=32", 16, [False]),  # one file system has all 32
        ("filename=a:b\niodepth=32\nnumjobs=2", 32, [False]),
        ("nrfiles=4\niodepth=32\nnumjobs=2", 8, [False]),
        ("nrfiles=4\niodepth=4", 1, [False]),
        ("nrfiles=4\niodepth=4\nrate_iops=100", 1, []),
        ("nrfiles=4\niodepth=6", 2, [True]),
        ("nrfiles=4\niodepth=1", 1, [True]),
        ("filename=a/x:b/x\niodepth=32", 16, [True]),  # two, perhaps: the slower holds back the other
        ("filename=/dev/sdb:/dev/sdc\niodepth=32", 16, [True]),
        ("filename=/dev/sdb:/dev/sdc\niodepth=32\nrate_iops=100", 16, []),
    ],
)
def test_a_depth_that_files_share(options: str, depth: int, matters: list[bool]) -> None:
    text = f"[job]\nioengine=libaio\ndirect=1\nrw=randread\nsize=64m\nruntime=9\ntime_based\n{options}\n"
    one = description(text)
    assert [stream.depth for stream in one.streams] == [depth]
    assert [dropped.matters for dropped in one.dropped] == matters


def test_an_include_is_beside_the_file_that_includes_it() -> None:
    files = {"sub/one.fio": f"include two.fio\n{DEVICE}", "sub/two.fio": "bs=8k\n"}
    (stream,) = description("[job]\ninclude sub/one.fio\n", files=files).streams
    assert stream.blocksize == 8192


def test_a_file_that_includes_itself_many_times_is_refused() -> None:
    with pytest.raises(PlanError, match="more than 100 includes"):
        description("[job]\ninclude x\n", files={"x": "include x\n" * 8})


@pytest.mark.parametrize("character", ["\f", "\x85", "\u2028", "\v"])
def test_only_a_newline_ends_a_comment(character: str) -> None:
    assert description(f"[job]\r\n{DEVICE}; note{character}bs=8k\r\n").streams[0].blocksize == 4096


def test_engines_that_differ_are_named() -> None:
    one = description(f"[global]\n{DEVICE}[a]\n[b]\nioengine=io_uring\n")
    assert one.backend == "auto" and [(d.where, d.what) for d in one.dropped] == [("job.fio:9", "ioengine=io_uring")]


def test_each_option_has_one_fate() -> None:
    fates = [*MAPPED, *UNMAPPED, *REFUSED, *ALWAYS]
    assert len(set(fates)) == len(fates)


@pytest.mark.parametrize(
    ("text", "size"), [("4k", 4096), ("4kb", 4096), ("4KiB", 4000), ("1m", 1 << 20), ("0x10", 16), ("5", 5)]
)
def test_sizes_are_read_as_fio_reads_them(text: str, size: int) -> None:
    assert size_of(text) == size


@pytest.mark.parametrize(("text", "seconds"), [("10", 10), ("10s", 10), ("5m", 300), ("1h", 3600), ("500ms", 0.5)])
def test_times_are_read_as_fio_reads_them(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize(("rw", "exists"), [("write", True), ("randrw", True), ("write", False), ("read", True)])
def test_no_imported_plan_has_consent(rw: str, exists: bool) -> None:
    text = to_plan(description(f"[job]\nfilename=x\nsize=1m\nrw={rw}", exists=exists), "ivypy import")
    assert "\ndestroy:" not in text
    assert ("# destroy: true" in text) == (exists and rw != "read")


names = st.text(st.characters(codec="utf-8", exclude_characters="[]\r\n;#=", exclude_categories=["C", "Z"]), max_size=9)
OPTIONS = {
    "rw": ["read", "write", "randread", "randwrite", "rw", "randrw", "read:8k", "trim", "randtrim"],
    "bs": ["4k", "8k,64k", "1m", ",512"],
    "iodepth": ["1", "7", "64"],
    "numjobs": ["1", "3"],
    "rate_iops": ["1", "100", "100,50", ",9"],
    "rate": ["1m", "512"],
    "size": ["1m", "3g", "50%"],
    "offset": ["1m", "30%", "4k"],
    "offset_increment": ["1m", "20%"],
    "runtime": ["1", "90s", "0"],
    "ramp_time": ["3", "500ms"],
    "filename": ["/dev/sdb", "/dev/sdb:/dev/sdc", "data", "a b:c"],
    "nrfiles": ["1", "4"],
    "stonewall": ["1"],
    "ioengine": ["libaio", "io_uring", "psync", "null"],
    "rwmixread": ["0", "35", "100"],
    "ss": ["iops:1%", "bw_slope:0.1%", "lat:5"],
    "bssplit": ["4k/20:64k/80", "4k:8k:16k/", ",8k", "4k/20:64k,", "6k/50:9k/20:16k", "8k/100:512/0"],
    "bsrange": ["4k-64k", "512-1m", "6k-20k,4k-4k", "64k-4k"],
    "bs_unaligned": ["1"],
    "ba": ["4k", "512,4k", "1m"],
    "percentage_random": ["0", "30", "30,60", "100"],
    "norandommap": ["1"],
    "rate_process": ["poisson"],
    "filename_format": ["x", "$jobname{$jobnum}$filenum", "$clientuid"],
}
jobs = st.tuples(names, st.fixed_dictionaries({}, optional={k: st.sampled_from(v) for k, v in OPTIONS.items()}))


@given(st.lists(jobs, min_size=1, max_size=4))
def test_every_plan_that_is_printed_loads(drawn: list[tuple[str, dict[str, str]]]) -> None:
    sections = [f"[{name}]\n" + "".join(f"{k}={v}\n" for k, v in options.items()) for name, options in drawn]
    try:
        one = description("[global]\nsize=8m\n" + "".join(sections))
    except PlanError:
        return
    assert len(plan_of(one).steps) == sum(isinstance(action, ImportedRun) for action in one.actions)


def test_differences_are_named_in_the_order_of_the_file() -> None:
    jobs = "[a]\nioengine=libaio\nverify=crc32c\n[b]\nstonewall\nioengine=io_uring\nverify=md5\n"
    lines = [int(dropped.where.rpartition(":")[2]) for dropped in description(f"[global]\n{DEVICE}{jobs}").dropped]
    assert lines == sorted(lines) and len(lines) == 3


def test_the_command_prints_the_plan_and_exits_by_what_it_drops(tmp_path: Path) -> None:
    source, output = tmp_path / "job.fio", tmp_path / "plan.yaml"
    source.write_text(f"[job]\n{DEVICE}verify=crc32c\n")
    done = CliRunner().invoke(cli, ["import", str(source), "-o", str(output)], standalone_mode=False)
    assert done.return_value == 6 and ":7: verify=crc32c: ivypy does not verify" in done.stderr
    assert done.stderr.endswith(f"{output}: written; next: ivypy check {output}\n") and not done.stdout
    assert read(output.read_text(), "plan.yaml").workloads[0].name == "job"
    output.unlink()
    done = CliRunner().invoke(cli, ["import", "--strict", str(source), "-o", str(output)], standalone_mode=False)
    assert isinstance(done.exception, PlanError) and not output.exists()


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ("rw=write\nsize=1g\ndirect=1\nruntime=9\ntime_based", 0),
        ("rw=write\nsize=1g\ndirect=1", 0),  # once through
        ("rw=write\nsize=1g\ndirect=1\nfill_device=1", 6),
        ("rw=write\ndirect=1\nfill_device=1", 0),
        ("rw=randwrite\ndirect=1\nfill_device=1", 6),
        ("rw=read\nsize=1g\ndirect=1\nss=iops:9%\nss_dur=2\nruntime=9", 6),  # fio may end before
        ("rw=write\nsize=1g\nruntime=9\ntime_based", 0),  # through the page cache
        ("rw=write\nsize=1g\nruntime=9\ntime_based\nsync_file_range=write:8", 6),
        ("rw=write\nsize=1g\nfsync=1\nfdatasync=3", 6),
        ("rw=write\nsize=1g\nend_fsync=1\nruntime=9", 6),  # fio flushes after whichever comes first
        ("rw=write\nsize=1g\nbs=1k", 6),  # of a device, the cache has 4 KiB
        ("rw=read\nzonesize=1m\nzoneskip=1m\ndirect=1\nruntime=9\ntime_based", 6),
        ("rw=read\niodepth_batch_complete=16\ndirect=1\nruntime=9\ntime_based", 6),
        ("rw=read\niodepth_batch_complete=1\ndirect=1\nruntime=9\ntime_based", 0),
        ("rw=read\nlockfile=exclusive\nnumjobs=4\nsize=1g\ndirect=1\nruntime=9\ntime_based", 6),
        ("rw=read\nlockfile=none\ndirect=1\nruntime=9\ntime_based", 0),
    ],
)
def test_a_default_that_makes_it_another_load_counts(tmp_path: Path, options: str, code: int) -> None:
    source = tmp_path / "job.fio"
    source.write_text(f"[job]\nfilename=/dev/sdb\n{options}\n")
    done = CliRunner().invoke(cli, ["import", str(source)], standalone_mode=False)
    assert done.return_value == code, done.stderr


def test_who_submits_is_named_and_makes_no_other_load(tmp_path: Path) -> None:
    source = tmp_path / "job.fio"
    source.write_text(f"[job]\n{DEVICE}rw=read\nioengine=io_uring\nsqthread_poll=1\nsqthread_poll_cpu=3\n")
    done = CliRunner().invoke(cli, ["import", str(source)], standalone_mode=False)
    (said,) = done.stderr.splitlines()
    assert done.return_value == 0 and ":9: sqthread_poll=1: workload threads submit I/Os themselves" in said
    assert "sqpoll" not in done.stdout


def test_what_stands_in_many_places_is_said_once(tmp_path: Path) -> None:
    source = tmp_path / "job.fio"
    jobs = "".join(f"[job{n}]\n{DEVICE}prio=3\nprioclass=2\nnice=5\n" for n in range(3))
    source.write_text(jobs)
    done = CliRunner().invoke(cli, ["import", str(source)], standalone_mode=False)
    assert done.stderr.count(" (and in 2 more places)") == 3 == len(done.stderr.splitlines()), done.stderr


def test_the_page_shows_what_the_import_makes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "coming-from-fio.md").read_text()
    (source,), (plan,) = (re.findall(rf"```{kind}\n(.*?)```", page, re.DOTALL) for kind in ("ini", "yaml"))
    dropped = re.findall(r"^# not in the plan: (.*)$", plan, re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    Path("job.fio").write_text(source)
    done = CliRunner().invoke(cli, ["import", "job.fio"], standalone_mode=False)
    assert (done.stdout, done.stderr.splitlines()) == (plan, dropped)
    assert [step.name for step in read(plan, "plan.yaml").steps] == ["mix", "scan"]


def examples() -> list[Path]:
    return sorted(path for path in EXAMPLES.glob("*.fio*") if not path.name.endswith(".png"))


@pytest.mark.skipif(not examples(), reason="fio's examples are not here: scripts/setup test")
@pytest.mark.parametrize("path", examples(), ids=lambda path: path.name)
def test_each_of_fios_examples_is_imported_or_refused_with_a_line(path: Path) -> None:
    text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()
    try:
        one = description(text, {"FIO_RW": "randread", "FIO_BS": "4k", "FIO_IODEPTH": "4", "FIO_DIR": "/data"})
    except PlanError as refused:
        assert all(line.startswith("job.fio:") for line in str(refused).splitlines())
    else:
        assert plan_of(one).steps


def fate(name: str) -> str:
    """The option that decides what becomes of it; "": it has no part in the load."""
    option = SYNONYMS.get(name, name)
    return "" if option in ALWAYS else option


def described_by_fio(option: str) -> str:
    return subprocess.run(["fio", f"--cmdhelp={option}"], capture_output=True, text=True).stdout


def options_of_fio() -> list[str]:
    names = re.findall(r"^ *([a-z]\S*?) *:", described_by_fio("all"), re.MULTILINE)  # a child is indented
    assert len(names) > 200
    return names


KNOWN = {*MAPPED, *ALWAYS, *UNMAPPED, *REFUSED, *SYNONYMS, "zonemode"}


@needs_fio
def test_every_option_that_fio_itself_lists_is_known() -> None:
    assert [name for name in options_of_fio() if name not in KNOWN] == []


@needs_fio
@pytest.mark.long  # fio is started once per option: it tells of one only
def test_other_names_of_fios_options_have_their_fate() -> None:
    aliases = [
        (name, alias)
        for name in options_of_fio()
        for alias in re.findall(r"^ *alias: (\S+)", described_by_fio(name), re.MULTILINE)
    ]
    assert len(aliases) > 10
    assert [alias for _, alias in aliases if alias not in KNOWN] == []
    assert [(name, alias) for name, alias in aliases if fate(name) != fate(alias)] == []
