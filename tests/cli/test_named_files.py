"""Files that a user names for output: no command writes to a device by its name, and a plan replaces nothing."""

import os
import subprocess
from pathlib import Path

import pytest

from ivypy.master.exit_codes import ExitCode
from tests.support.fork_server import COMMAND
from tests.support.loop_devices import loop_device, need, needs_loops
from tests.support.real_runs import answered

pytestmark = pytest.mark.slow  # each starts a program

JOB = "[a]\nfilename=/data/file\nsize=64m\nrw=randread\nruntime=5\n"
LOG = "".join(f"{ms}, 100000, 0, 4096, 0\n" for ms in range(2000))
IMPORT = ("import", "job.fio", "-o")
SAVE = ("quick", "./new.bin", "--size=16M", "--dry-run", "--save")
PERCENTILES = ("percentiles", "a_lat.1.log", "--format=csv", "-o")


@pytest.fixture(autouse=True)
def inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("job.fio").write_text(JOB)
    Path("a_lat.1.log").write_text(LOG)


@needs_loops
@pytest.mark.parametrize("command", [IMPORT, SAVE, PERCENTILES])
def test_no_output_goes_to_a_block_device(command: tuple[str, ...], shm: Path) -> None:
    need("losetup")
    with loop_device(shm) as device:
        done = answered(*command, device)
        assert done.returncode == ExitCode.PLAN, done.stderr
        assert device in done.stderr
        assert not any(Path(device).read_bytes())


@pytest.mark.parametrize("command", [IMPORT, SAVE])
def test_a_plan_never_replaces_a_file(command: tuple[str, ...]) -> None:
    Path("mine").write_text("precious")
    done = answered(*command, "mine")
    assert done.returncode == ExitCode.PLAN and "mine: the file exists; name another" in done.stderr
    assert Path("mine").read_text() == "precious"


def test_percentiles_replaces_what_it_wrote_and_nothing_else() -> None:
    """Nor through a symbolic link, nor a picture that somebody else drew."""
    for name in ("notes.csv", "picture.png"):
        Path(name).write_text("precious")
    Path("link").symlink_to("notes.csv")
    for words in ((*PERCENTILES, "notes.csv"), (*PERCENTILES, "link"), (*PERCENTILES[:2], "--plot", "picture.png")):
        done = answered(*words)
        assert done.returncode == ExitCode.PLAN, done.stderr
        assert f"{words[-1]}: the file is not one that this command wrote; name another, or remove it" in done.stderr
    assert Path("notes.csv").read_text() == Path("picture.png").read_text() == "precious"
    assert not [one.name for one in Path().iterdir() if one.name.startswith(".")]
    for more in ((), ("--percentiles", "10,20")):
        assert answered(*PERCENTILES, "mine.csv", *more).returncode == 0
    assert "p10" in Path("mine.csv").read_text().splitlines()[0]
    Path("empty.csv").touch()
    assert answered(*PERCENTILES, "empty.csv").returncode == 0


@pytest.mark.parametrize("command", ["import", "check"])
def test_what_has_no_end_is_not_read_to_its_end(command: str) -> None:
    done = answered(command, "/dev/zero")
    assert done.returncode == ExitCode.PLAN and "/dev/zero: more than 8.00 MiB are too much for a" in done.stderr


def test_at_a_terminal_what_a_plan_lacks_is_said_once() -> None:
    """By the plan's own comments, which come next; in a pipe, also to standard error."""
    Path("job.fio").write_text(JOB + "iodepth=8\n")
    why = "waits for each I/O"
    piped = answered("import", "job.fio")
    assert (piped.stdout.count(why), piped.stderr.count(why)) == (1, 1)
    shown, terminal = os.openpty()
    with open(shown, "rb", buffering=0) as reader, open(terminal, "wb") as screen:
        done = subprocess.run([COMMAND, "import", "job.fio"], stdout=screen, stderr=subprocess.PIPE, check=False)
        screen.close()
        text = reader.read(1 << 16)
    assert text.count(why.encode()) == 1 and done.stderr == b"what differs is in the plan's first comments\n"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("query",), "no query; for example: ivypy query 'SELECT"),
        (("quick", "./new.bin", "--size=16M", "--name", "a/b"), "--name 'a/b': the run's folder cannot be called so"),
    ],
)
def test_a_word_that_lacks_or_is_wrong_is_named_as_it_was_typed(words: tuple[str, ...], says: str) -> None:
    done = answered(*words)
    assert done.returncode == ExitCode.PLAN and done.stderr.startswith(says) and not done.stdout


def test_a_link_beside_the_output_leads_nowhere() -> None:
    """The name of the file that was written first could be told beforehand, and another user's link was followed."""
    Path("victim").write_text("precious")
    for name in (".out.new.csv", ".out.csv.new", ".out.csv"):
        Path(name).symlink_to("victim")
    assert answered(*PERCENTILES, "out.csv").returncode == 0
    assert Path("victim").read_text() == "precious" and not Path("out.csv").is_symlink()
