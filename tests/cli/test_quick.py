"""`ivypy quick` as a user of fio types it: what it drives, what it refuses, and real runs on small files."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import click
import pytest
from click.testing import CliRunner

from ivypy.master.cli.commands import cli
from ivypy.master.cli.quick import not_a_plan, repeatable, targets
from ivypy.master.cli.quick_fio import ALWAYS, NEAREST, without_fio_flags
from ivypy.master.cli.quick_plan import TargetKind
from ivypy.master.errors import OutputError, PlanError
from ivypy.master.exit_codes import ExitCode
from ivypy.master.plan.load import read
from tests.support.loop_devices import loop_device, need
from tests.support.real_runs import ROOT, answered, by_a_user, digest, folder_of, ivypy, rows

ENDED = (0, 8)  # a busy machine may be late, and then says so
NEW = "./new.bin"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    yield tmp_path


def dry_run(*words: str) -> str:
    """The plan. Raises what the command raises."""
    done = CliRunner().invoke(cli, ["quick", "--dry-run", *words], standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    read(done.stdout, "quick")
    return str(done.stdout)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("--rw=randread --bs=8k --iodepth=16 --runtime=20", "blocksize: 8KiB"),
        ("--readwrite randrw --blocksize 1M", "blocksize: 1MiB"),
        ("--rw=randread --ioengine=libaio", 'engine: { backend: "libaio" }'),
        ("--rw=randread --direct=1 --group_reporting --time_based --name=job1", 'name: "job1"'),
        ("--group-reporting --thread=1 --norandommap --ramp_time=5", "warmup: 5s"),
        ("--direct 1 --rate_iops=500", "total_iops: 500"),
        ("--p999 5ms", "overall_response_us_p99_9"),
        ("--p99.9=5ms", "overall_response_us_p99_9"),
        ("--p99.99 5ms", "overall_response_us_p99_99"),
        ("--p50 5ms", "overall_response_us_p50"),
        ("--mean 5ms", "overall_response_us_mean"),
        ("--p99 5ms", "overall_response_us_p99\n"),
        ("--rate 80%", "total_iops: 80% of step max"),
        ("--slo p99<=5ms", '- { metric: overall_service_us_p99, at_most: "5ms" }'),
        ("--rate 80% --slo response_p99<=5ms,iops>=20k", '- { metric: overall_iops, at_least: "20k" }'),
        ("--slo cpu_steal_percent<=0%", '- { metric: cpu_steal_percent, at_most: "0%" }'),
        ("--rate 5k --slo read_p99.9<=1ms", '- { metric: read_response_us_p99_9, at_most: "1ms" }'),
        ("--rate 5k --slo service_p99<=1ms", '- { metric: overall_service_us_p99, at_most: "1ms" }'),
        ("--rate 5k --slo overall_service_us_p99<=1ms", '- { metric: overall_service_us_p99, at_most: "1ms" }'),
        ("--rate 5k --slo mean<=1ms", '- { metric: overall_response_us_mean, at_most: "1ms" }'),
        ("--numjobs 4 --iodepth 8", "maxtags: 32"),
        ("--size 64M", "size: 64MiB"),
        ("--filesize=64M", "size: 64MiB"),
        ("--direct=0", "    direct: false               # through the page cache"),
        ("--buffered --bs 8000", "    blocksize: 8000"),
        ("--buffered=1 --invalidate=0", "    drop_cache: false"),
        ("--rw write --fsync=32", "    flush: { every: 32 }"),
        ("--rw randrw --fdatasync 1", "    flush: { every: 1, with: fdatasync }"),
        ("--rw write --end_fsync=1 --runtime=60", "until: { time: 1m }"),
        ("--rw write --end_fsync=1 --runtime=60 --ramp_time=5", "until: { time: 1m5s }"),
        ("--rw write --end-fsync --once", "    end_fsync: true"),
        ("--rw write --sync=1", "    sync: sync"),
        ("--rw write --sync=dsync", "    sync: dsync"),
    ],
)
def test_a_line_as_fio_takes_it(words: str, line: str) -> None:
    assert line in dry_run(NEW, "--size=1G", *words.split())


def test_the_readmes_command_makes_a_plan() -> None:
    """As it is typed there: in a folder where the file is not."""
    (command,) = re.findall(r"^ivypy quick (.*)$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert f"{os.getcwd()}/new.bin" in dry_run(*command.split())


def test_filename_is_a_target_and_a_colon_divides_several() -> None:
    text = dry_run("--filename=./a:./b", "--size=64M")
    assert f"{os.getcwd()}/a" in text and f"{os.getcwd()}/b" in text


@pytest.mark.parametrize("flag", sorted(ALWAYS))
def test_flags_for_what_ivypy_always_does_are_dropped(flag: str) -> None:
    assert without_fio_flags([f"--{flag}", "p", f"--{flag}=1", "--x"]) == ["p", "--x"]


@pytest.mark.parametrize("option", sorted(NEAREST))
def test_each_other_option_of_fio_has_a_pointer(option: str) -> None:
    with pytest.raises(PlanError, match=re.escape(NEAREST[option])):
        dry_run(NEW, "--size=1G", f"--{option}=1")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("./new.bin --size=1G --keep-cache", "--keep-cache: direct I/O goes past the page cache; write --buffered"),
        ("./new.bin --size=1G --invalidate=0", "--keep-cache: direct I/O"),
        ("./new.bin --size=1G --fsync=4", "--fsync: --rw randread writes nothing"),
        ("./new.bin --size=1G --rw write --fsync=4 --fdatasync=2", "--fsync and --fdatasync: a workload has one"),
        ("./new.bin --size=1G --rw write --sync=always", "--sync always: write dsync"),
        ("./new.bin --size=1G --rw randwrite --p99 5ms --end_fsync", "a search takes a time: leave --end-fsync out"),
        ("./new.bin --size=1G --buffered --ioengine=libaio", "through the page cache; write --ioengine io_uring"),
        ("./new.bin --size=1G --ioengine=sync", "--iodepth 1"),
        ("./new.bin --size=1G --ioengine=libaoi", "did you mean 'libaio'"),
        ("randread", "write --rw randread"),
        ("./new.bin -rw=read", "write two dashes, --rw=read"),
        ("--rw=read", "name what to measure"),
        ("sdzz", "to create a file here, write ./sdzz --size 1G\n"),
        ("sdzz --size=1M", "to create a file here, write ./sdzz\n"),
        ("/dev/sdzz", "no such device"),
        ("/nowhere/at/all", "there is no folder /nowhere/at"),
        (".", "a folder; name a new file in it: ./ivypy-quick.data --size 1G\n"),
        (". --size=1M", "a folder; name a new file in it: ./ivypy-quick.data\n"),
        ("/dev/null", "neither a block device nor a file"),
        ("plan.yaml", "ivypy run plan.yaml"),
        ("job.fio", "ivypy import job.fio"),
        ("./new.bin --size=1G --bs 4000", "--bs 4000: not a multiple of 512 bytes"),
        ("./new.bin --size=1G --bs 4k,8k,1m,2m", "write a size like 4k, or those of reads and writes"),
        ("./new.bin --size=1G --bssplit 4k/x", "is not a size and its share, like 64k/50"),
        ("./new.bin --size 10%", "a part of a device is the `range` of a plan"),
        ("./new.bin --size=1G --rate 1M", "1MiB/s or 1000k"),
        ("./new.bin --size=1G --slo p99=5ms", "write METRIC<=VALUE or METRIC>=VALUE"),
        ("./new.bin --size=1G --slo p9<=5ms", "there is no such metric"),
        ("./new.bin --size=1G --slo p99<=5", "--slo p99<=5: "),
        ("./new.bin --size=1G --p99 5ms --slo p50<=5ms", "the search has its own threshold"),
        (
            "./new.bin --size=1G --slo response_p99<=5ms",
            "p99<=5ms: there is no response time at max; give a --rate",
        ),
        ("./new.bin --size=1G --slo iops>=1k,read_response_p99<=5ms", "give a --rate, or write read_service_p99<=5ms"),
        ("./new.bin --size=1G --slo iops>=20,000", "--slo iops>=20,000: write no comma within a number"),
        ("./new.bin --size=1G --slo iops>=1,000,000", "--slo iops>=1,000,000: write no comma within a number"),
        ("./new.bin --size=1G --slo p50<=1ms,p99<=1,5ms", "--slo p99<=1,5ms: write no comma within a number"),
        ("./new.bin --size=1G --slo p99<=5ms,", "--slo p99<=5ms,: a comma without a threshold; leave it out"),
        (
            "./new.bin --size=1G --slo p99<=5ms,,iops>=20k",
            "--slo p99<=5ms,,iops>=20k: a comma without a threshold; leave it out",
        ),
        ("./new.bin --size=1G --slo=", "--slo '': write METRIC<=VALUE"),
        ("./new.bin --size=1G --slo p99<=0", "--slo p99<=0: write a value above 0"),
        ("./new.bin --size=1G --slo iops>=0", "--slo iops>=0: write a value above 0"),
        ("./new.bin --size=1G --slo iops>=-5", "--slo iops>=-5: write a value above 0"),
        ("./new.bin --size=1G --slo cpu_steal_percent<=-1%", "--slo cpu_steal_percent<=-1%: write 0 or more"),
        ("./new.bin --size=1G --unlink=0", "set `keep: true`"),
        ("./new.bin --size=1G --time_based=0", "use --once, or --io-size 10G"),
        ("./new.bin --size=1G --time_based --io_size=1G", "--time_based with --io_size: fio obeys the time alone"),
        ("./new.bin --size=1G --number-ios 9 --time-based=1", "--time-based=1 with --number-ios: fio"),
        ("./new.bin --size=1G --readonly", "needs a token"),
        ("./none-*.bin", "nothing matches"),
        ("./nwe.bin", "./nwe.bin: there is no such file; to create it for this test, write its size: --size 1G"),
        ("./odl.bin", "write its size: --size 1G; did you mean 'old.bin'?"),
        ("--hosts lab01 sdb", "write the whole path"),
        ("--hosts lab01 /dev/sd[b-e]", "one path after the other"),
    ],
)
def test_what_cannot_be_driven_is_refused_with_a_remedy(words: str, said: str) -> None:
    Path("old.bin").touch()
    with pytest.raises(PlanError) as error:
        dry_run(*words.split())
    assert said in f"{error.value}\n"


def test_a_misspelt_option_gets_a_suggestion() -> None:
    with pytest.raises(click.NoSuchOption) as error:
        dry_run(NEW, "--size=1G", "--iodpeth=4")
    assert "--iodepth" in (error.value.possibilities or [])


def test_targets_are_what_is_there() -> None:
    Path("a1").write_bytes(b"x" * 4096)
    Path("a2").write_bytes(b"x" * 4096)
    found = targets(["./a[12]", "./new", "./a1"], on_this_machine=True, sized=True)
    assert [(Path(one.path).name, one.kind) for one in found] == [
        ("a1", TargetKind.FILE),
        ("a2", TargetKind.FILE),
        ("new", TargetKind.NEW),
    ]
    remote = targets(["/dev/sdb", "/data/f", "/dev/shm/f"], on_this_machine=False, sized=False)
    assert [one.kind for one in remote] == [TargetKind.DEVICE, TargetKind.FILE, TargetKind.FILE]
    assert targets(["/data/f"], on_this_machine=False, sized=True)[0].kind is TargetKind.NEW


def test_the_command_to_repeat_lacks_what_is_given_anew() -> None:
    words = ["quick", "/dev/x y", "--destroy", "abc", "--rw=write", "--save=p.yaml", "--destroy=abc"]
    assert repeatable(words) == "ivypy quick '/dev/x y' --rw=write"


def test_save_writes_the_plan_and_never_over_another() -> None:
    text = dry_run(NEW, "--size=1G", "--save", "saved.yaml")
    assert Path("saved.yaml").read_text() == text
    with pytest.raises(PlanError, match="the file exists"):
        dry_run(NEW, "--size=1G", "--save", "saved.yaml")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "--filename=/dev/sdb", "--rw=randread"], "ivypy quick --filename=/dev/sdb --rw=randread"),
        (["run", "--direct=1"], "ivypy quick"),
        (["check", "--bs=4k", "x"], "ivypy quick"),
        (["run", "job.fio"], "ivypy quick"),
    ],
)
@pytest.mark.slow
def test_what_fio_takes_leads_from_run_to_quick(words: list[str], said: str) -> None:
    done = answered(*words)
    assert done.returncode == ExitCode.PLAN and said in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("text", "is_job"),
    [
        ("[global]\nrw=read\n", True),
        ("; a job\n\n# of fio\n[random-read 1]\nsize=1g\n", True),
        ("* of vdbench\nsd=sd1,lun=/dev/sdb\n", True),
        ("name: x\nsteps:\n  - go: one\n", False),
        ("[a, b]\n", False),
        ("", False),
    ],
)
def test_a_job_file_is_known_by_its_first_section(text: str, is_job: bool) -> None:
    Path("job").write_text(text)
    assert ("job file" in not_a_plan(Path("job"))) is is_job


@pytest.mark.slow
def test_a_huge_file_is_no_plan_and_is_not_read() -> None:
    with open("huge.yaml", "wb") as file:
        file.truncate(1 << 40)
    done = answered("run", "huge.yaml")
    assert done.returncode == ExitCode.PLAN and "too much for a plan" in done.stderr


def test_a_plan_that_cannot_be_saved_is_named() -> None:
    with pytest.raises(OutputError, match=r"/nowhere/plan\.yaml: cannot be written: No such file"):
        dry_run(NEW, "--size=1G", "--save", "/nowhere/plan.yaml")


@pytest.mark.slow
def test_a_new_file_is_measured_and_removed() -> None:
    done = ivypy(
        "quick", NEW, "--size=16M", "--time=1", "--ui=none", "--save=again.yaml", "-o", "runs", started=by_a_user
    )
    assert done.returncode in ENDED, done.stderr
    lines = done.stdout.splitlines()
    assert "randread 4KiB, iodepth 32, at max for 1s" in done.stdout and "new.bin" in done.stdout
    at_most = 13 if done.returncode == 0 else 20  # what a busy machine did to it is said
    assert any(line.startswith("read ") for line in lines) and len(lines) <= at_most
    assert all(len(line) <= 80 for line in lines if "/" not in line)
    assert Path(lines[-1]) == folder_of(Path("runs")).relative_to(".") and not Path(NEW).exists()
    assert (folder_of(Path("runs")) / "plan.yaml").read_text().startswith(Path("again.yaml").read_text())


@pytest.mark.long
def test_a_share_of_the_maximum_is_measured_after_it() -> None:
    done = ivypy("quick", NEW, "--size=16M", "--time=3", "--rate=50%", "--rw=randrw", "--ui=json", "-o", "runs")
    assert done.returncode in (*ENDED, 5, 6, 7), done.stderr
    ends = json.loads(done.stdout.splitlines()[-1])
    assert ends["report"] == "run_ends" and [step["name"] for step in ends["steps"]] == ["max", "rate"]
    peak, half = (float(row["overall_iops"]) for row in rows(folder_of(Path("runs")), "summary.all.csv"))
    assert 0 < half < peak


@pytest.mark.slow
def test_an_existing_file_is_written_only_with_the_token_that_the_refusal_shows() -> None:
    old = Path("old.bin")
    old.write_bytes(os.urandom(16 << 20))
    before = digest(old)
    refused = ivypy("quick", "./old.bin", "--rw=randwrite", "--time=1", "--ui=none", "-o", "refused")
    assert refused.returncode == ExitCode.REFUSED and digest(old) == before
    (again,) = re.findall(r"^  ivypy (quick .* --destroy [0-9a-f]{12})$", refused.stderr, re.MULTILINE)
    assert "old.bin (16.0 MiB, owner " in refused.stderr
    done = ivypy(*again.split())
    assert done.returncode in ENDED, done.stderr
    assert digest(old) != before


@pytest.mark.slow
def test_a_device_is_read_without_consent_and_leads_from_run_to_quick(shm: Path) -> None:
    need("losetup")
    with loop_device(shm) as device:
        before = digest(device)
        pointed = answered("run", device)
        assert pointed.returncode == ExitCode.PLAN and f"ivypy quick {device}" in pointed.stderr
        done = ivypy("quick", device, "--rw=read", "--bs=64k", "--time=1", "--ui=none")
        assert done.returncode in ENDED, done.stderr
        assert digest(device) == before


def test_outputs_are_those_of_run() -> None:
    done = CliRunner().invoke(cli, ["quick", NEW, "--size=1M", "--rw=randread", "--junit=/nowhere/x.xml"])
    assert isinstance(done.exception, PlanError) and "there is no folder /nowhere" in str(done.exception)
    assert not Path("runs").exists()


def test_a_refused_command_leaves_no_result_of_an_earlier_one() -> None:
    done = CliRunner().invoke(cli, ["quick", NEW, "--size=1G", "--rw=sideways", "--junit=ci.xml"])
    assert isinstance(done.exception, PlanError) and "--rw sideways" in str(done.exception)
    (error,) = ElementTree.parse("ci.xml").iter("error")
    assert error.get("message") == str(done.exception).splitlines()[0]
