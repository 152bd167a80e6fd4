"""A running test over three real sshds, edited, watched, paused and stopped from other processes."""

import json
import os
import pty
import random
import signal
import subprocess
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

import pytest

from ivypy.master.errors import PlanError
from ivypy.master.live.socket_client import Client, connected
from ivypy.master.live.socket_messages import Changed, EditRequest
from tests.support.fork_server import COMMAND, Command
from tests.support.lab import Lab
from tests.support.real_runs import (
    answered,
    by_a_user,
    folder_of,
    hosts_yaml,
    ivypy,
    rows,
    start,
    wait_for_line,
    written,
)
from tests.support.waits import wait_until

pytestmark = pytest.mark.slow

PLAN = """\
name: live
engine: {{ threads: 1 }}
hosts:
{hosts}
luns: {{ create: {{ path: "{path}-{{}}", size: 8MiB, count: 2 }} }}
workloads:
  w: {{ iosequencer: random_steady, iops: 200, maxtags: 4, fraction_read: 75% }}
  r: {{ iosequencer: random_steady, iops: 50, maxtags: 4 }}
connectors: {{ host: off }}
rollups: [ host, workload ]
defaults: {{ subinterval: 1s, warmup: 1s, measure: {measure}, disturbed: keep }}
steps: [ go: one ]
live: {{ blocksize: 16KiB }}
"""


@pytest.fixture
def plan(request: pytest.FixtureRequest, tmp_path: Path, lab: Lab) -> Path:
    """Its measurement takes 5 s, or what the test says."""
    hosts = hosts_yaml([host.spec() for host in lab.hosts])
    return written(
        tmp_path, PLAN.format(hosts=hosts, path=tmp_path / "{host}", measure=getattr(request, "param", "5s"))
    )


@contextmanager
def under_way(plan: Path, root: Path) -> Iterator[Command]:
    """A run whose measurement has begun."""
    process = start(plan, root)
    try:
        wait_for_line(process)
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.realtime
def test_an_edit_is_in_force_on_all_hosts_at_once(plan: Path, tmp_path: Path, lab: Lab) -> None:
    root = tmp_path / "runs"
    with under_way(plan, root) as process:
        done = ivypy(
            "edit", "workload=w", "total_iops=3000", "blocksize=16KiB", "maxtags=2", "range=0%..50%", started=by_a_user
        )
        assert done.returncode == 0, done.stderr
        out, err = process.communicate(timeout=60)
    assert process.returncode in (0, 8), out + err
    first, *rest = done.stdout.splitlines()
    assert rest[-1].startswith("the measurement begins again; the step is now done ")
    took = [line for line in rest[:-1] if not line.endswith("overdue I/Os were discarded")]
    assert first == (
        "blocksize 4KiB -> 16KiB (6 instances), iops 200 -> 500 (6 instances), maxtags 4 -> 2 (6 instances),"
        " range all -> 0..4MiB (6 instances)"
    )
    assert [line.split(":")[0].strip() for line in took] == [host.name for host in lab.hosts]
    since = [datetime.fromisoformat(line.split(" since ")[1].split(",")[0]) for line in took]
    assert (max(since) - min(since)).total_seconds() < 0.5
    acted = sorted({int(line.rsplit(" ", 1)[1]) for line in took})
    number = acted[-1]
    assert acted in ([number], [number - 1, number]), "a boundary may lie between"
    whole = rows(folder_of(root), "step0000.one/all/all.csv")
    transient = [i for i, row in enumerate(whole) if row["phase"] == "transient"]
    assert transient == acted
    (event,) = [row for row in rows(folder_of(root), "events.csv") if row["kind"] == "edit"]
    assert event["text"].startswith("workload=w total_iops=3000 blocksize=16KiB maxtags=2 range=0%..50%: blocksize")
    for host in lab.hosts:
        after = rows(folder_of(root), f"step0000.one/host/{host.name}.csv")[number + 1]
        assert float(after["due"]) / float(after["length_s"]) == pytest.approx(2 * 500 + 2 * 50, rel=0.01)
        assert after["iops_setting"] == "1100" and after["blocksize"] == "16384(2/4) 4096(2/4)"
        assert float(after["overall_mib_per_s"]) == pytest.approx((1000 * 16 + 100 * 4) / 1024, rel=0.02)
    (window,) = rows(folder_of(root), "step0000.one/windows.csv")
    assert int(window["first_subinterval"]) == number + 1
    skews = [abs(float(row["boundary_skew_us"])) for row in rows(folder_of(root), "step0000.one/clock.csv")]
    assert max(skews) < 20_000, "boundaries are in step within the clocks' bounds"


ACKNOWLEDGED_S = 0.1


@pytest.mark.realtime
@pytest.mark.long
def test_an_edit_is_acknowledged_at_once_also_in_a_long_subinterval(
    plan: Path, tmp_path: Path, lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a subinterval of 60 s. Most are printed, and half of them judged: a busy machine takes as long as it takes."""
    text = plan.read_text().replace("subinterval: 1s, warmup: 1s, measure: 5s", "subinterval: 60s, measure: 60s")
    process = start(written(tmp_path, text, "long.yaml"), tmp_path / "runs")
    try:
        waited = []
        with running() as client:
            for i in range(20):
                time.sleep(0.13)
                began = time.perf_counter()
                answer = client.request(EditRequest(("host", f"total_iops={3000 + i}"), False))
                waited.append(time.perf_counter() - began)
                assert isinstance(answer, Changed) and [took.subinterval for took in answer.took] == [0, 0, 0]
                assert all(not took.failed for took in answer.took)
    finally:
        process.kill()
        process.communicate()
    waited.sort()
    middle, most = waited[10], waited[-1]
    with capsys.disabled():
        print(f"\nedit to last acknowledgement, 3 hosts: median {middle * 1e3:.1f} ms, most {most * 1e3:.1f} ms")
    assert middle < ACKNOWLEDGED_S


@contextmanager
def running() -> Iterator[Client]:
    """A connection to the one run that is under way, once its first step runs."""
    deadline = time.monotonic() + 60
    while True:
        try:
            with connected(None) as client:
                standing = client.standing()
                while not standing.running:
                    time.sleep(0.05)
                    standing = client.standing()
                yield client
            return
        except PlanError:
            assert time.monotonic() < deadline, "no run is under way"
            time.sleep(0.05)


@pytest.mark.long
def test_200_edits_at_random_instants_lose_none(plan: Path, tmp_path: Path, lab: Lab) -> None:
    dice = random.Random(11)
    root = tmp_path / "runs"
    acted: set[int] = set()
    added = dict.fromkeys((host.name for host in lab.hosts), 0)
    with under_way(plan, root) as process:
        with connected(None) as client:
            for _ in range(200):
                time.sleep(dice.expovariate(1 / 0.04))
                host = dice.choice(list(added))
                added[host] += 1
                answer = client.request(EditRequest((f"host={host}", "iops=+1"), False))
                assert isinstance(answer, Changed) and [took.failed for took in answer.took] == [""]
                acted.add(answer.took[0].subinterval)
        out, err = process.communicate(timeout=90)
    assert process.returncode in (0, 8), out + err
    assert len([row for row in rows(folder_of(root), "events.csv") if row["kind"] == "edit"]) == 200
    whole = rows(folder_of(root), "step0000.one/all/all.csv")
    assert {i for i, row in enumerate(whole) if row["phase"] == "transient"} == acted
    for host, count in added.items():
        after = rows(folder_of(root), f"step0000.one/host/{host}.csv")[max(acted) + 1]
        assert after["iops_setting"] == str(500 + 4 * count), "each of its four instances got each of its edits"
        assert float(after["due"]) / float(after["length_s"]) == pytest.approx(500 + 4 * count, rel=0.01)


def is_connected(process: Command) -> bool:
    """Whether a process has a Unix socket that is connected."""
    try:
        links = [os.readlink(fd) for fd in Path(f"/proc/{process.pid}/fd").iterdir()]
    except OSError:
        return False  # one was just closed
    inodes = {link[len("socket:[") : -1] for link in links if link.startswith("socket:[")}
    sockets = [line.split() for line in Path("/proc/net/unix").read_text().splitlines()[1:]]
    return any(words[6] in inodes and words[5] == "03" for words in sockets)


def by_host(folder: Path) -> str:
    done = answered("status", str(folder), "--by", "host")
    assert done.returncode == 0, done.stderr
    return done.stdout


def by_host_on_a_terminal(folder: Path) -> int:
    """`attach --by host` on a terminal of its own: sorted by another figure, then left by a key. Its exit code."""
    ours, its = pty.openpty()
    termios.tcsetwinsize(its, (24, 80))
    process = subprocess.Popen(
        [COMMAND, "attach", str(folder), "--by", "host"], stdin=its, stdout=its, stderr=its, start_new_session=True,
        env={**os.environ, "TERM": "xterm"},
    )  # fmt: skip
    os.close(its)
    for shown, key in ((b"resp p99", b"i"), (b"  iops", b"q")):
        seen = b""
        while shown not in seen:
            seen += os.read(ours, 4096)
        os.write(ours, key)
    with suppress(OSError):  # EIO: it has left
        while os.read(ours, 4096):
            pass
    os.close(ours)
    return process.wait(60)


def paused_and_unpaused(folder: Path) -> None:
    """The run submits nothing meanwhile; afterwards it measures again."""

    def whole() -> list[dict[str, str]]:
        return rows(folder, "step0000.one/all/all.csv")

    assert answered("pause").returncode == 0
    assert ", paused" in answered("status").stdout
    refused = answered("edit", "all=all", "iops=5")
    assert (refused.returncode, refused.stderr) == (2, "the run is paused; unpause it first\n")
    wait_until(lambda: "0" in [row["due"] for row in whole()], "a subinterval without load")
    assert answered("unpause").returncode == 0
    wait_until(lambda: whole()[-1]["phase"] == "run", "a measured subinterval")


def check_paused(folder: Path, before_stop: int) -> None:
    """Subintervals of a pause are transient. So many of them there were before the run was told to stop."""
    whole = rows(folder, "step0000.one/all/all.csv")
    silent = [i for i, row in enumerate(whole[:before_stop]) if row["due"] == "0"]
    assert silent and {whole[i]["phase"] for i in silent} == {"transient"}
    (window,) = rows(folder, "step0000.one/windows.csv")
    assert int(window["first_subinterval"]) > silent[-1]
    (paused, unpaused) = [row for row in rows(folder, "events.csv") if row["kind"] in ("pause", "unpause")]
    assert datetime.fromisoformat(unpaused["utc"]) > datetime.fromisoformat(paused["utc"])


@pytest.mark.parametrize("plan", ["10m"], indirect=True)
def test_status_attach_mark_pause_and_stop_from_outside(plan: Path, tmp_path: Path, lab: Lab) -> None:
    root = tmp_path / "runs"
    with under_way(plan, root) as process:
        (folder,) = root.iterdir()
        watching = [
            Command("attach", *words) for words in ([], [str(folder), "--ui", "json"], [folder.name, "--ui", "none"])
        ]
        standing = json.loads(answered("status", "--json").stdout)
        assert standing["step"]["name"] == "one" and standing["hosts"] == {host.name: "" for host in lab.hosts}
        assert "step 0: one" in answered("status", str(folder)).stdout
        wait_until(lambda: "resp p99" in by_host(folder), "a subinterval with figures by host")
        table = by_host(folder).split("resp p99")[1].splitlines()[1:4]
        assert sorted(line.split()[0] for line in table) == [host.name for host in lab.hosts]
        unknown = answered("status", "--by", "hots")
        assert unknown.returncode == 2 and "did you mean 'host'" in unknown.stderr
        assert ivypy("mark", "fan pulled").stdout == "marked in events.csv\n"
        os.kill(process.pid, signal.SIGUSR1)
        shown = wait_for_line(process, "3 of 3 hosts taking part")
        assert by_host_on_a_terminal(folder) == 0 and process.poll() is None
        leaving = Command("attach", folder.name)
        assert any("step 0" in leaving.stdout.readline() for _ in range(4))
        leaving.send_signal(signal.SIGINT)
        leaving.communicate(timeout=60)
        assert leaving.returncode == 130 and process.poll() is None, "who leaves leaves alone"
        for one in watching:
            wait_until(lambda one=one: is_connected(one), "attach is connected to the run")  # type: ignore[misc]
        paused_and_unpaused(folder)
        # Which halts: if right at a boundary, nothing falls due in the last subinterval either.
        before_stop = len(rows(folder, "step0000.one/all/all.csv"))
        assert ivypy("stop", str(folder)).returncode == 0
        out, err = process.communicate(timeout=60)
        assert process.returncode == 130, out + err
        seen = [one.communicate(timeout=60)[0] for one in watching]
    assert [one.returncode for one in watching] == [130] * 3
    assert seen[0].splitlines()[-1] == str(folder) and "mark: fan pulled; by" in shown + out + seen[0]
    reports = [json.loads(line) for line in seen[1].splitlines()]
    assert reports[-1]["report"] == "run_ends" and reports[-1]["exit_code"] == 130
    by_stop = "Interrupted by `ivypy stop`; the results so far are written."
    assert seen[2].splitlines() == [by_stop, str(folder)], "--ui none"
    check_paused(folder, before_stop)
    again = answered("edit", str(folder), "all=all", "iops=5")
    assert again.returncode == 2 and "the run has ended" in again.stderr
