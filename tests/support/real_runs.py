"""Running ivypy as a user does, and reading the folder that it leaves."""

import asyncio
import contextlib
import csv
import hashlib
import io
import json
import re
import subprocess
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

from ivypy.master.cli import commands
from ivypy.master.exit_codes import ExitCode
from ivypy.master.hosts.host_spec import HostSpec
from ivypy.master.run.session import signals
from tests.support.fork_server import COMMAND, Command
from tests.support.made_once import Store
from tests.support.waits import wait_until

T = TypeVar("T")

ROOT = Path(__file__).parents[2]
_ENDED = "ended.json"  # of a run that tests share


@dataclass(frozen=True)
class Finished:
    """A run that ended, and its folder."""

    code: int
    out: str
    err: str
    root: Path

    @property
    def folder(self) -> Path:
        return folder_of(self.root)

    def rows(self, name: str) -> list[dict[str, str]]:
        return rows(self.folder, name)


def presence(row: Mapping[str, str]) -> str:
    """How many hosts a row is of, and of how many it should be: "3/4"."""
    return f"{row['hosts_in']}/{row['hosts_of']}"


def names_of(reasons: str) -> set[str]:
    """The names in a cell of `reasons`: "overrun[invalid] (h1: 2 times); edited[note]" has overrun and edited."""
    return {reason.split("[")[0] for reason in reasons.split("; ") if reason}


def only_late(reasons: str) -> bool:
    """Whether nothing but a busy test machine, which stalls, speaks against a row: for that it may have every reason
    that a stall of the generator, of the disk or of the controller can cause, unless it needs a host to be lost."""
    return names_of(reasons) <= {
        "generator_late", "reap_delay", "host_limit", "cpu_contention", "too_few_subintervals", "clock_uncertain",
        "slow_controller", "late_decision", "foreign_io", "set_aside", "unsteady", "load_not_sustained",
        "earlier_backlog", "earlier_ios", "stall_at_end", "overrun", "queue_depth_limited", "eagain",
    }  # fmt: skip


def ivypy(
    *words: str, timeout_s: float = 100.0, started: "Callable[..., Command | subprocess.Popen[str]]" = Command
) -> subprocess.CompletedProcess[str]:
    with started(*words) as process:
        try:
            out, err = process.communicate(timeout=timeout_s)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def by_a_user(*words: str) -> "subprocess.Popen[str]":
    """A command in a Python of its own, which imports what it needs."""
    pipe = subprocess.PIPE
    return subprocess.Popen([COMMAND, *words], stdout=pipe, stderr=pipe, text=True, start_new_session=True)


def answered(*words: str) -> subprocess.CompletedProcess[str]:
    """What a command that starts no run answers: all of it but a process, its console and its signals.

    That a command is started, and how it ends, is what `ivypy` is for.
    """
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.redirect_stdout(out), contextlib.redirect_stderr(err),
        mock.patch.object(sys, "argv", [COMMAND, *words]), mock.patch.object(signals, "run_until_pressed", _unpressed),
    ):  # fmt: skip
        code = commands._code()
    if code == ExitCode.INTERRUPTED:  # which is for pytest, not for the command
        raise KeyboardInterrupt
    return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())


def _unpressed(main: Callable[[signals.Interrupts], Coroutine[Any, Any, T]]) -> T:
    return asyncio.run(main(signals.Interrupts()))


def start(plan: Path, root: Path, *words: str) -> Command:
    """A run under way."""
    return Command(*_run(plan, root, *words))


def run(plan: Path, root: Path, *words: str, **how: Any) -> Finished:
    """`how`: as `ivypy` takes it."""
    done = ivypy(*_run(plan, root, *words), **how)
    return Finished(done.returncode, done.stdout, done.stderr, root)


def _run(plan: Path, root: Path, *words: str) -> list[str]:
    return ["run", "-o", str(root), "--no-report", "--ui", "lines", "--verbose", *words, str(plan)]


def once(store: Store, make: Callable[[Path], Finished]) -> Finished:
    """The run that `make` made in a folder: once in a session of tests, which read it and change nothing."""

    def kept(folder: Path) -> None:
        done = make(folder)
        (folder / _ENDED).write_text(json.dumps([done.code, done.out, done.err, str(done.root)]))

    code, out, err, root = json.loads((store.made(make.__name__, kept) / _ENDED).read_text())
    return Finished(code, out, err, Path(root))


def written(folder: Path, text: str, name: str = "plan.yaml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


FIRST = ("-D", "size=16MiB", "-D", "subinterval=0.25s", "-D", "warmup=0.25s", "-D", "measure=1s")


def the_first_plan(folder: Path) -> Finished:
    """The first plan of the docs, for `once`."""
    words = ("-D", f"path={folder / 'data'}", "--junit", str(folder / "first.xml"))
    return run(ROOT / "configs" / "first.yaml", folder / "runs", *FIRST, *words, started=by_a_user)


PACED = """\
name: paced
engine: {{ threads: 1 }}
connectors: {{ {connectors} }}
luns: {{ create: {{ path: {path}, size: 16MiB }} }}
workloads: {{ w: {{ iosequencer: random_independent, iops: {iops}, maxtags: 8, fraction_read: 50% }} }}
defaults: {{ subinterval: 0.5s, warmup: 0.5s, measure: {measure}, disturbed: keep }}
steps: [ go: one ]
"""
ENDED = (0, 8)  # a busy machine may be late, and then says so


def paced_plan(folder: Path, measure: str, iops: int = 100, connectors: str = "host: off") -> Path:
    """One step of a paced workload on a new file, in subintervals of half a second."""
    return written(folder, PACED.format(path=folder / "data", measure=measure, iops=iops, connectors=connectors))


def folder_of(root: Path) -> Path:
    """The folder of the only run in `root`."""
    (folder,) = root.iterdir()
    return folder


def rows(folder: Path, name: str) -> list[dict[str, str]]:
    with open(folder / name, newline="") as file:
        return list(csv.DictReader(file))


def wait_until_measuring(root: Path) -> Path:
    """Until the second subinterval's row is written: the run's folder."""
    tables = "*/step0000.one/all/all.csv"
    wait_until(lambda: any(path.read_text().count("\n") > 2 for path in root.glob(tables)), "the step measures")
    return folder_of(root)


def wait_for_event(root: Path, kind: str, times: int = 1) -> None:
    """Until events.csv of the run in `root` has so many of a kind."""
    wait_until(
        lambda: sum(row["kind"] == kind for row in rows(folder_of(root), "events.csv")) >= times,
        f"{times} events of kind {kind}",
    )


def wait_for_line(process: "Command | subprocess.Popen[str]", text: str = " run ", times: int = 1) -> str:
    """Read what the run prints until so many lines hold `text`; a measured subinterval's line holds " run "."""
    assert process.stdout is not None
    read = []
    for line in process.stdout:
        read.append(line)
        times -= text in line
        if not times:
            return "".join(read)
    err = process.stderr.read() if process.stderr else ""
    raise AssertionError(f"the run ended before it printed {text!r}: {''.join(read)}{err}")


def check_interrupted(folder: Path, code: int) -> None:
    assert code == 130 and json.loads((folder / "run.json").read_text())["exit_code"] == 130
    (summary,) = rows(folder, "summary.all.csv")
    assert "shortened" in summary["reasons"] or "interrupted" in summary["reasons"]  # as far as it had come


def token(plan: Path, *words: str) -> str:
    """The token that `ivypy devices` prints for what the plan would overwrite."""
    done = answered("devices", *words, str(plan))
    found = re.search(r"--destroy ([0-9a-f]{12})", done.stdout)
    assert done.returncode == 0 and found, done.stdout + done.stderr
    return found[1]


def digest(path: str | Path) -> str:
    """Of all that a file or a device holds."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def hosts_yaml(specs: Sequence[HostSpec]) -> str:
    """Hosts of the lab as a plan has them."""
    lines = []
    for spec in specs:
        if spec.command:
            command = " ".join(spec.command)
            lines.append(f'  - {{ name: {spec.name}, command: "{command}", cache_dir: {spec.cache_dir} }}')
            continue
        lines.append(
            f"  - {{ name: {spec.name}, launcher: {spec.launcher}, address: {spec.address}, port: {spec.port or 22},"
            f" user: {spec.user}, identity: {spec.identity}, known_hosts: {spec.known_hosts},"
            f" cache_dir: {spec.cache_dir}, connect_timeout: {spec.connect_timeout_s:g}s, ssh_config: false }}"
        )
    return "\n".join(lines)
