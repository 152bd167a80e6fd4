"""A command that starts fio becomes the plan that its job file becomes."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from ivypy.master.cli.commands import cli
from ivypy.master.errors import PlanError
from ivypy.master.imports.description import Description, ImportContext
from ivypy.master.imports.fio import read_fio, read_fio_command
from ivypy.master.imports.fio_command import command_lines, is_fio_command
from ivypy.master.imports.to_plan import to_plan
from tests.support.real_runs import ROOT

EXAMPLES = ROOT / ".venv" / "fio-examples"  # of Debian's package, unpacked by scripts/setup
LOAD = "--filename=/dev/sdb --direct=1 --ioengine=libaio --time_based --runtime=9"

needs_fio = pytest.mark.skipif(shutil.which("fio") is None, reason="this machine lacks fio")


def around(folder: Path) -> ImportContext:
    return ImportContext("/data", {}, lambda name: (folder / name).read_text(), lambda path: False)


def of_command(command: str) -> Description:
    return read_fio_command(shlex.split(command), around(Path("/")))


def plan_lines(description: Description) -> list[str]:
    """Without what differs: the plan's name, and places."""
    lines = to_plan(description, "").splitlines()
    return [line for line in lines if not line.startswith("name: ") and "not in the plan" not in line]


@pytest.mark.parametrize(
    "command",
    [
        f"fio {LOAD} --rw=randread --bs=8k --iodepth=4 --name=a",
        f"fio {LOAD} --name=a --rw=randread --bs=8k --iodepth=4",
        f"/usr/bin/fio {LOAD} --name=a --rw randread --bs 8k --iodepth 4",
        f"fio {LOAD.replace('--', '-')} -thread -rw=randread -bs=8k -iodepth 4 -group_reporting -name=a",
        f"fio --name=global {LOAD} --rw=randread --bs=8k --iodepth=4 --name=a",
        f"fio --output=x.json --output-format json --eta always --minimal {LOAD} --rw=randread --bs=8k --iodepth=4"
        " --name=a --status-interval=1 --norandommap=0",
    ],
)
def test_a_command_is_read_as_fio_reads_it(command: str) -> None:
    text = "[a]\n" + "\n".join(word.removeprefix("--") for word in f"{LOAD} --rw=randread --bs=8k --iodepth=4".split())
    assert plan_lines(of_command(command)) == plan_lines(read_fio(text, "a.fio", around(Path("/"))))


@pytest.mark.parametrize(
    ("command", "paths"),
    [
        ("--filename=/dev/sdb --filename=/dev/sdc --name=a", ["/dev/sdb", "/dev/sdc"]),
        ("--filename=/dev/sdb --name=a --filename=/dev/sdc", ["/dev/sdb", "/dev/sdc"]),
        ("--filename=/dev/sdb --name=a --filename=/dev/sdb", ["/dev/sdb"]),
        ("--name=a --filename=/dev/sdb --name=b --filename=/dev/sdc:/dev/sdd", ["/dev/sdb", "/dev/sdc", "/dev/sdd"]),
    ],
)
def test_a_file_name_adds_to_those_before_it(command: str, paths: list[str]) -> None:
    assert [target.path for target in of_command(f"fio --rw=read {command}").targets] == paths


@pytest.mark.parametrize("name", ["global", "globals", "global write"])
def test_each_name_that_begins_so_is_global(name: str) -> None:
    (stream,) = of_command(f"fio --name='{name}' --rw=read --bs=8k --filename=/dev/sdb --name=a").streams
    assert (stream.name, stream.blocksize) == ("a", 8192)


@pytest.mark.parametrize(
    "flag",
    "--ioengine=io_uring --hipri|--ioengine=io_uring --fixedbufs|--ioengine=io_uring --registerfiles|"
    "--ioengine=io_uring --sqthread_poll|--userspace_reap|--bandwidth-log|--minimal|--append-terse".split("|"),
)
def test_a_flag_leaves_the_next_option_alone(flag: str) -> None:
    (stream,) = of_command(f"fio {LOAD} {flag} --iodepth=32 --rw=randread --name=a").streams
    assert stream.depth == 32


@needs_fio
@pytest.mark.slow
@pytest.mark.parametrize("engine", ["", "libaio", "io_uring", "pvsync2"])
def test_flags_are_those_of_fio(engine: str) -> None:
    """Those that its help calls empty or boolean."""
    ask = f"--enghelp={engine}" if engine else "--cmdhelp"

    def help_of(option: str) -> str:
        asked = f"{ask}{',' if engine else '='}{option}" if option else ask
        return subprocess.run(["fio", asked], capture_output=True, text=True).stdout

    names = [line.split()[0].rstrip(":") for line in help_of("").splitlines() if line.strip()]
    flags = {name for name in names if "empty or boolean" in help_of(name)}
    faults: list[str] = []
    for flag in flags:
        assert command_lines([f"--{flag}", "--iodepth=2"], faults)[-1][1] == "iodepth=2", flag
    assert not faults


def test_each_job_has_the_options_of_all_and_its_own() -> None:
    jobs = of_command(f"fio {LOAD} --rw=randread --bs=4k --name=a --bs=8k --name=b --stonewall --iodepth=2")
    assert [(stream.name, stream.blocksize, stream.depth) for stream in jobs.streams] == [
        ("a", 8192, 1),
        ("b", 4096, 2),
    ]
    assert len(jobs.actions) > 2 and jobs.source == "a", "b has a step of its own"


def test_what_stands_before_fio_is_said_to_be_left_out() -> None:
    (note,) = of_command(f"sudo taskset -c 0 fio {LOAD} --rw=read --name=a").notes
    assert note == "what stands before fio is left out: sudo taskset -c 0"
    assert not of_command(f"fio {LOAD} --rw=read --name=a").notes


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("fio --rw=read", "fio: no job; it begins with --name"),
        ("fio job.fio", "fio: job.fio: no option; a job file is imported as `ivypy import job.fio`"),
        ("fio --name=a --bs", "fio: --bs: needs a value"),
        (f"fio {LOAD} --rw=read --invalidate --iodepth=32 --name=a", "fio: --invalidate: needs a value"),
        (f"fio {LOAD} --rw=read --output --iodepth=32 --name=a", "fio: --output: needs a value"),
        ("fio --name=a --section=b", "fio: --section=b: fio does something else then"),
        ("fio --client=lab01 --name=a", "name the hosts in the plan"),
        ("fio --name=a --rw=read -o plan.yaml", "an option of ivypy stands before the word fio"),
        ("fio --name=a --filename=/dev/sdb --rw=raed", "fio: rw=raed: not a kind of I/O; did you mean 'read'?"),
        ("fio --name=a --filename=/dev/sdb --wr=read", "fio: wr=read: not an option of fio that ivypy knows"),
        ("fio --name=a --filename=x", "fio: filename=x: /data/x: no such file; give its `size`"),
        ("fio --name=a --filename=${HERE}/x", "the environment has no HERE"),
    ],
)
def test_what_cannot_be_read_is_said_with_its_option(command: str, said: str) -> None:
    with pytest.raises(PlanError) as refused:
        of_command(command)
    assert said in str(refused.value)


def test_a_value_may_hold_what_ends_a_line_in_a_file() -> None:
    faults: list[str] = []
    lines = command_lines(["--name=a;b", "--filename=/d/#1=x", "--description", "two\nlines"], faults)
    assert not faults
    assert [line for _, line in lines] == ["[global]", "[a;b]", "filename=/d/#1=x", "description=two\nlines"]


@pytest.mark.parametrize(
    ("words", "is_one"),
    [
        (["fio"], False),
        (["job.fio"], False),
        (["fio", "--name=a"], True),
        (["sudo", "/x/fio", "-name=a"], True),
        (["fio", "--output=x", "--name", "a"], True),
        (["fio", "-o", "plan.yaml"], False),
        (["-o", "fio", "a.fio"], False),
    ],
)
def test_a_command_is_told_from_a_file(words: list[str], is_one: bool) -> None:
    assert is_fio_command(words) is is_one


@pytest.mark.parametrize("dashes", [[], ["--"]])
@pytest.mark.parametrize("in_quotes", [False, True])
def test_the_command_follows_the_word_import(dashes: list[str], in_quotes: bool) -> None:
    words = ["fio", *LOAD.split(), "--rw=randread", "--norandommap", "--name=a b"]
    done = CliRunner().invoke(cli, ["import", *dashes, *([shlex.join(words)] if in_quotes else words)])
    assert done.stdout.startswith(f"# ivypy import {shlex.join(words)}\n") and 'name: "a_b"' in done.stdout, done.output


@pytest.mark.parametrize(
    "command",
    [
        ["env", "A=1", "numactl", "-N0", "fio", *LOAD.split(), "--rw=read", "--name=a"],
        [f"fio {LOAD} \\\n  --rw=read \\\n  --name=a"],
        [f"fio --description={'x' * 300} {LOAD} --rw=read --name=a"],
    ],
    ids=["options before fio", "several lines", "longer than a file's name"],
)
def test_a_command_may_be_written_as_in_a_script(command: list[str], tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["import", "-o", str(tmp_path / "plan.yaml"), *command])
    assert (tmp_path / "plan.yaml").exists() and done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("text", "fault"), [("it's.fio", "it's.fio: "), ("fio --name='a", "fio --name='a: no closing quotation")]
)
def test_a_quote_that_does_not_end_is_no_crash(text: str, fault: str) -> None:
    done = CliRunner().invoke(cli, ["import", text])
    assert isinstance(done.exception, PlanError) and str(done.exception).startswith(fault)


def test_a_file_that_is_called_fio_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "fio").write_text("[a]\nrw=read\nfilename=/dev/sdb\n")
    done = CliRunner().invoke(cli, ["import", str(tmp_path / "fio"), "-o", str(tmp_path / "plan.yaml")])
    assert (tmp_path / "plan.yaml").exists(), done.output
    done = CliRunner().invoke(cli, ["import", "-o", str(tmp_path / "out" / "fio"), str(tmp_path / "fio")])
    assert "out" in str(done.exception), "named, not read as a command"


@needs_fio
@pytest.mark.slow
def test_the_command_that_fio_makes_of_a_file_is_the_same_test() -> None:
    """fio's own --showcmd, for each of its examples that ivypy reads."""
    compared = 0
    for path in sorted(EXAMPLES.glob("*.fio")):
        try:
            of_file = read_fio(path.read_text(), path.name, around(EXAMPLES))
        except (PlanError, UnicodeDecodeError):
            continue
        shown = subprocess.run(["fio", "--showcmd", path.name], cwd=EXAMPLES, capture_output=True, text=True)
        if shown.returncode or re.search(r"^name\s*=", path.read_text(), re.MULTILINE):  # a name begins a job there
            continue
        assert plan_lines(of_command(shown.stdout)) == plan_lines(of_file), path.name
        compared += 1
    assert compared > 20
