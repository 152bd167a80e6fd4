"""A command that starts elbencho becomes a plan of the same load, or says what is not the same."""

import shlex
from collections.abc import Iterable
from pathlib import Path

import pytest
from click.testing import CliRunner

from ivypy.master.cli.commands import cli
from ivypy.master.errors import PlanError
from ivypy.master.imports.description import Description, ImportContext, ImportedRun, Stream
from ivypy.master.imports.elbencho import read_elbencho_command
from ivypy.master.imports.elbencho_command import command_of, is_elbencho_command
from ivypy.master.imports.to_plan import to_plan
from ivypy.master.plan.load import read

DEVICE = "/dev/sdb"
THERE = "/data/there"


def around(files: Iterable[str] = (THERE,)) -> ImportContext:
    texts = {"hosts": "lab1\nlab2:1611\n"}

    def included(name: str) -> str:
        if name not in texts:
            raise FileNotFoundError(2, "No such file or directory")
        return texts[name]

    return ImportContext("/data", {}, included, set(files).__contains__)


def of_command(options: str) -> Description:
    found = read_elbencho_command(shlex.split(f"elbencho {options}"), around())
    read(to_plan(found, "").replace("\n# destroy: true", "\ndestroy: true"), "the plan")  # a plan that ivypy takes
    return found


def stream_of(options: str) -> Stream:
    (stream,) = of_command(options).streams
    return stream


def dropped_of(options: str) -> list[tuple[str, bool]]:
    return [(one.what, one.matters) for one in of_command(options).dropped]


@pytest.mark.parametrize(
    "options",
    [
        "-r -b 4k -t 2 --iodepth 8 --direct --rand /dev/sdb",
        "/dev/sdb --rand --direct --iodepth=8 --threads=2 --block=4K --read",
        "-rb4KiB -t2 --iod 8 --direct --rand --lat --latpercent --csvfile x.csv --nolive /dev/sdb",
        "--path /dev/sdb -r --block 4k --threads 2 --iodepth 8 --direct --rand --randalign",
    ],
)
def test_words_are_read_as_elbencho_reads_them(options: str) -> None:
    assert stream_of(options) == stream_of("--read --block=4096 --threads=2 --iodepth=8 --direct --rand /dev/sdb")


STREAMS = [
    # options, and what a stream of the plan is
    (f"-r {DEVICE}", dict(name="read", fraction_read=1.0, sequential=True, depth=1, blocksize=1 << 20, span=None)),
    (f"-w -b 64k {DEVICE}", dict(name="write", fraction_read=0.0, blocksize=65536, until="{ bytes: 1x }")),
    (f"-w --rwmixpct 70 --rand {DEVICE}", dict(name="mix", fraction_read=0.7, sequential=False)),
    (f"-w --rwmixpct 0 {DEVICE}", dict(name="write", fraction_read=0.0)),
    (f"-r -t 4 --iodepth 8 {DEVICE}", dict(depth=32)),
    (f"-r -t 0 --iodepth 0 {DEVICE}", dict(depth=1)),
    (f"-r -s 10g {DEVICE}", dict(span=("0", "10GiB"))),
    (f"-r -s 10g {THERE}", dict(span=("0", "10GiB"))),
    (f"-r -s 10240 -b 4k --direct {DEVICE}", dict(span=("0", "8KiB"))),
    (f"-r -s 16k -b 1m {DEVICE}", dict(blocksize=16384)),
    (f"-r --rand --randamount 1g -b 4k {DEVICE}", dict(until="{ bytes: 1GiB }")),
    (f"-r --randamount 1g {DEVICE}", dict(until="{ bytes: 1x }")),  # not where it is sequential
    (f"-r --rand --randamount 1g -b 4k {DEVICE} /dev/sdc", dict(until="{ bytes: 512MiB }", depth=1)),
    (f"-r --rand --hosts a,b,a --randamount 1g {DEVICE}", dict(until="{ bytes: 512MiB }")),
    (f"-r --rand --hosts a,b --nosvcshare --randamount 1g {DEVICE}", dict(until="{ bytes: 1GiB }")),
    (f"-r --rand --hosts a,b {DEVICE}", dict(until="{ bytes: 0.5x }")),
    (f"-r --rand --infloop --timelimit 60 {DEVICE}", dict(until="")),
    (f"-r --limitread 4m -t 2 -b 4k {DEVICE}", dict(iops="2048")),
    (f"-r --limitwrite 4m {DEVICE}", dict(iops="max")),
    (f"-w --rand -b 4k {DEVICE}", dict(random_map=True)),  # full coverage, of one thread
    (f"-w --rand -b 4k -t 2 {DEVICE}", dict(random_map=False)),
    (f"-w --rand -b 4k --randalgo fast {DEVICE}", dict(random_map=False)),
    (f"-r --rand -b 4k {DEVICE}", dict(random_map=False)),
    (f"-r --direct -t 4 {DEVICE}", dict(more=(("streams", "4"),))),
    (f"-r --direct -t 4 {DEVICE} /dev/sdc", dict(more=(("streams", "2"),), depth=2)),
    (f"-r --direct -t 4 --rand {DEVICE}", dict(more=())),
    (f"-r {DEVICE}", dict(more=(("direct", "false"), ("drop_cache", "false")))),
    (f"-r --dropcache {DEVICE}", dict(more=(("direct", "false"),))),
]  # fmt: skip


@pytest.mark.parametrize(("options", "expected"), STREAMS, ids=lambda one: one if isinstance(one, str) else "")
def test_what_a_phase_drives(options: str, expected: dict[str, object]) -> None:
    stream = stream_of(options)
    assert {name: getattr(stream, name) for name in expected} == expected


def test_each_phase_is_a_step_and_iterations_repeat_them() -> None:
    found = of_command(f"-wr -i 2 --timelimit 90 {DEVICE}")
    steps = [action for action in found.actions if isinstance(action, ImportedRun)]
    assert [one.name for one in steps] == ["write", "read", "write-2", "read-2"]
    assert {one.keys for one in steps} == {(("warmup", "0s"), ("measure", "1m30s"))}
    assert [one.iops for one in found.streams] == ["max", "0"]


def test_targets_and_hosts() -> None:
    paths = f"new,{THERE},/dev/nvme[08-10,2]n1"
    found = of_command(f"-r -s 1g --hostsfile hosts --hosts lab0 --numhosts 2 --rand '{paths}'")
    assert [(one.path, one.device, one.exists, one.size) for one in found.targets] == [
        ("/data/new", False, False, 1 << 30),
        (THERE, False, True, 1 << 30),
        *((f"/dev/nvme{number}n1", True, False, 1 << 30) for number in ("08", "09", "10", "2")),
    ]
    assert found.hosts == ("lab0", "lab1")
    assert all(stream.paths == tuple(one.path for one in found.targets) for stream in found.streams)


SAME = [
    f"-r --direct -t 4 {DEVICE}",
    f"-r -t 4 --iodepth 2 --direct {DEVICE} /dev/sdc",
    f"-w -b 4k --rand --direct -s 1g {DEVICE}",
    f"-r -b 4k --rand --direct -t 8 --lathisto --allelapsed {DEVICE}",
    f"-w --blockvarpct 100 -F {DEVICE}",
]
OTHERS = [
    (f"-r --backward {DEVICE}", "--backward", True),
    (f"-r --mmap {DEVICE}", "--mmap", True),
    (f"-w --verify 1 {DEVICE}", "--verify=1", True),
    (f"-w --sync {DEVICE}", "--sync", False),
    (f"-w --rand -b 4k -t 2 {DEVICE}", "--rand", False),
    (f"-w --blockvarpct 10 {DEVICE}", "--blockvarpct=10", True),
    (f"-w -F {THERE}", "--delfiles", False),
    (f"-w --limitwrite 1m {DEVICE}", "--limitwrite=1m", True),
    (f"-r {DEVICE} /dev/sdc", f"{DEVICE} /dev/sdc", True),
    (f"-r -t 3 {DEVICE} /dev/sdc", "--threads=3", True),
    (f"-r -t 2 --iodepth 4 --rand {DEVICE} /dev/sdc", "--iodepth=4", True),
    ("-r -t 2 --rand -s 1m a b", "--threads=2", False),
    ("-r -t 3 --rand -s 1m a b", "--threads=3", True),
    (f"-r --hosts a,b {DEVICE}", "--hosts=a,b", True),
    (f"-r --hostsfile hosts {DEVICE}", "--hostsfile=hosts", True),
    ("-w -s 1m new", "--write", False),
]


@pytest.mark.parametrize("options", SAME)
def test_the_same_load_is_said_to_be(options: str) -> None:
    assert dropped_of(options) == []


@pytest.mark.parametrize(("options", "what", "matters"), OTHERS)
def test_what_is_not_the_same_is_named(options: str, what: str, matters: bool) -> None:
    assert dropped_of(options) == [(what, matters)]


REFUSED = [
    (f"{DEVICE}", "neither -w nor -r"),
    ("-r", "no path"),
    (f"-r --block 4q {DEVICE}", "--block=4q: not a size"),
    (f"-r --block 0 {DEVICE}", "--block=0: no size"),
    (f"-r -t x {DEVICE}", "--threads=x: not a whole number"),
    (f"-r --direkt {DEVICE}", "--direkt: no option of elbencho that ivypy knows; did you mean 'direct'?"),
    (f"-r --rand{'x'} {DEVICE}", "--randx: no option"),
    (
        f"-r --limit 1m {DEVICE}",
        "that ivypy knows; it may be --limitread or --limitwrite",
    ),
    (f"-r --direct=1 {DEVICE}", "--direct=1: takes no value"),
    (f"-r {DEVICE} --block", "--block: needs a value"),
    (f"-r {DEVICE} -b -w", "--block: needs a value"),
    (f"-rx {DEVICE}", "-x: no option"),
    (f"-r {DEVICE} -o plan.yaml", "-o: no option of elbencho; an option of ivypy stands before the word elbencho"),
    ("-w -d -n 4 -N 8 /mnt", "--mkdirs: files in directories"),
    ("-w --s3endpoints http://s /b", "--s3endpoints: object storage"),
    ("-r -c x.elbencho", "--configfile: write its options into the command"),
    ("-r new", "new: no such file; give its size with -s"),
    ("-r -s 1000 -b 300 new", "--size=1000: no multiple of the block size"),
    (f"-r --infloop {DEVICE}", "--infloop: it never ends; add --timelimit"),
    (f"-w --rwmixthr 2 {DEVICE}", "--rwmixthr=2: write two workloads"),
    (f"-r --rwmixthr 2 {DEVICE}", "--rwmixthr=2: is for a phase that writes: add -w"),
    (f"-r --rwmixpct 20 {DEVICE}", "--rwmixpct=20: is for a phase that writes: add -w"),
    (f"-w --rwmixpct 101 {DEVICE}", "--rwmixpct=101: more than 100"),
    (f"-r -i 101 {DEVICE}", "--iterations=101: more than 100"),
    (f"-r --rand --randamount 1k {DEVICE}", "--randamount=1k: less than a block of each path"),
    (f"-r --hostsfile nowhere {DEVICE}", "--hostsfile=nowhere: No such file or directory"),
    ("-r '/dev/nvme[a]n1'", "names of targets cannot have any of"),
    ("-r '/dev/nvme[0-]n1'", "not a list of numbers: [0-]"),
    ("-r '/dev/sd{b,c}'", "names of targets cannot have any of"),
]


@pytest.mark.parametrize(("options", "said"), REFUSED)
def test_what_cannot_be_read_is_refused(options: str, said: str) -> None:
    with pytest.raises(PlanError) as refusal:
        of_command(options)
    assert said in str(refusal.value)


def test_all_faults_are_said_at_once() -> None:
    with pytest.raises(PlanError) as refusal:
        of_command("-r -t x --infloop new")
    assert len(str(refusal.value).splitlines()) == 3


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("elbencho -r /dev/sdb", True),
        ("sudo /usr/bin/elbencho --read /dev/sdb", True),
        ("elbencho", False),
        ("elbencho -o plan.yaml", False),  # a file of that name
        ("elbencho --strict --output=plan.yaml", False),
        ("-o elbencho job.fio -r", False),
        ("job.fio -r", False),
    ],
)
def test_which_words_start_elbencho(words: str, expected: bool) -> None:
    assert is_elbencho_command(words.split()) is expected


def test_paths_are_not_expanded_where_that_is_not_wanted() -> None:
    faults: list[str] = []
    assert command_of(["elbencho", "--nopathexp", "-r", "f[1-2]"], faults).paths == ("f[1-2]",)
    assert faults == []


def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = "sudo elbencho -w -r -b 4k -t 2 --direct --rand -s 1m a"
    for args in (words.split(), [words], ["--", *words.split()]):
        result = CliRunner().invoke(cli, ["import", *args])
        assert result.exit_code == 0, result.output
        assert "what stands before elbencho is left out: sudo" in result.output
        assert '- go: { name: "read"' in result.output


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ("-r --rand /dev/sdx /dev/sdy", "/dev/sdx /dev/sdy"),
        ("-w --rwmixpct 30 --rand /dev/sdx /dev/sdy", "/dev/sdx /dev/sdy"),
        ("-r -t 3 --rand /dev/sdx /dev/sdy", "--threads=3"),
        ("-r -t 3 --iodepth 4 --rand /dev/sdx /dev/sdy", "--iodepth=4"),
    ],
)
def test_a_depth_that_paths_share_is_named_by_the_option_that_asks_for_it(options: str, what: str) -> None:
    (dropped,) = (one for one in of_command(options).dropped if "shared by" in one.why)
    assert dropped.what == what
