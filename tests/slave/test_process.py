"""The slave as a process at the end of a pipe: from hello to the last words, on every backend."""

import os
import re
import resource
import signal
import socket
import subprocess
import sys
import time
from array import array
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ivypy import __version__
from ivypy.protocol import messages as m
from ivypy.protocol.counters import SERIES, Count, Moment, ThreadCount
from ivypy.protocol.lines import encode_line
from ivypy.protocol.parameters import MAX, Parameters
from ivypy.protocol.payload import Array, ArrayType, EngineOptions, FileToCreate, Notice, NoticeKind, Setting
from ivypy.protocol.refusals import RefusalReason
from ivypy.protocol.states import State
from ivypy.slave.engine._engine import now_ns
from ivypy.slave.gate.file_changes import put, raw
from ivypy.slave.luns.existing_files import MADE, MARK
from tests.support.slave_client import Client, u32

pytestmark = pytest.mark.slow

PACED = Parameters(iops=1000.0)


def counts(result: m.Result) -> list[dict[Count, int]]:
    """One row per instance, by column."""
    values = array("q", result.counts.data)
    rows = [values[i : i + len(Count)] for i in range(0, len(values), len(Count))]
    return [dict(zip(Count, row, strict=True)) for row in rows]


def test_it_sends_hello_first() -> None:
    with Client() as slave:
        hello = slave.hear()
        assert isinstance(hello, m.Hello)
        assert (hello.role, hello.protocol, hello.version) == (m.Role.SLAVE, m.PROTOCOL_VERSION, __version__)
        assert (hello.hostname, hello.pid) == (os.uname().nodename, slave.process.pid)
        assert (hello.kernel, hello.machine) == (os.uname().release, os.uname().machine)
        assert hello.python == ".".join(map(str, sys.version_info[:3]))
        assert hello.cores == tuple(sorted(os.sched_getaffinity(0)))
        assert hello.bundle == ""
        assert "null" in hello.backends
        assert hello.aio_left > 0


def test_a_stray_print_does_not_reach_the_link() -> None:
    script = "import os, ivypy.slave.link.command_server as o, ivypy.slave.__main__ as s; old = o.make_hello\n"
    script += "o.make_hello = lambda: (print('noise'), os.system('echo more'), old())[2]\ns.main()"
    with Client("-c", script) as slave:
        assert isinstance(slave.hear(), m.Hello)
        slave.do(m.Prepare, engine=EngineOptions("null", 1), lease_ns=10**9)
        assert "noise" in slave.errors
        assert "more" in slave.errors


def test_results_carry_what_the_host_read_at_their_ends(tmp_path: Path) -> None:
    with Client() as slave:
        slave.prepare("null")
        slave.make_file(tmp_path / "lun", 1 << 20)
        slave.create(tmp_path / "lun", PACED)
        found = slave.ask(m.FindElements, luns=(str(tmp_path / "lun"),))
        assert isinstance(found, m.ElementsFound) and found.instances["memory"] == ("host",)
        cells = sum(len(found.instances[metric.element]) for metric in found.metrics)
        start, length = now_ns() + 300_000_000, 250_000_000
        slave.do(m.Go, start_ns=start, length_ns=length, order=u32(0), classes=u32(0))
        read: list[int] = []
        for k in range(4):
            result = slave.until(m.Result)
            for readings in result.readings:
                boundary_ns = start + (readings.subinterval + 1) * length
                assert boundary_ns <= readings.start_ns <= readings.end_ns
                assert readings.subinterval <= k and len(readings.values) == cells
            read += [readings.subinterval for readings in result.readings]
            slave.do(m.Continue, subinterval=k + 2, boundary_ns=start + (k + 3) * length)
        assert read == sorted(read) and len(read) >= 2
        slave.do(m.Halt)


def test_elements_that_cannot_be_found_cost_nothing_but_them() -> None:
    script = "import ivypy.slave.host_connector.connector as c, ivypy.slave.__main__ as s\n"
    script += "def config(self, luns): raise ValueError('a bad line')\nc.HostConnector.config = config\ns.main()"
    with Client("-c", script) as slave:
        slave.prepare("null")
        refused = slave.ask(m.FindElements, luns=())
        assert isinstance(refused, m.Refused)
        assert [one.reason for one in refused.refusals] == ["ValueError: a bad line"]
        assert isinstance(slave.ask(m.ClockProbe), m.ClockReading)


def test_elements_that_are_found_late_are_read_from_the_next_step_on(tmp_path: Path) -> None:
    """The command is answered while a step runs, whose results carry nothing of them."""
    gate = tmp_path / "gate"
    script = "import os, time, ivypy.slave.host_connector.connector as c, ivypy.slave.__main__ as s\n"
    script += f"config = c.HostConnector.config\ndef late(*asked):\n while not os.path.exists({str(gate)!r}):"
    script += "\n  time.sleep(0.01)\n return config(*asked)\nc.HostConnector.config = late\ns.main()"
    with Client("-c", script) as slave:
        slave.prepare("null")
        slave.make_file(tmp_path / "lun", 1 << 20)
        slave.create(tmp_path / "lun", PACED)
        command = slave.send(m.FindElements, luns=())
        begin(slave)
        gate.touch()
        assert isinstance(slave.answer(command), m.ElementsFound) and slave.state is State.RUNNING
        assert not any(slave.until(m.Result).readings for _ in range(2))
        slave.do(m.Halt)
        slave.until(m.Stopped)
        begin(slave)
        assert any(slave.until(m.Result).readings for _ in range(5))
        slave.do(m.Halt)


def begin(slave: Client) -> None:
    """A step of one instance."""
    start_ns = now_ns() + 300_000_000
    slave.do(m.Go, start_ns=start_ns, length_ns=250_000_000, order=u32(0), classes=u32(0))


def test_elements_that_do_not_fit_a_line_are_refused() -> None:
    script = "import ivypy.slave.host_connector.connector as c, ivypy.slave.__main__ as s\n"
    script += "from ivypy.protocol.payload import Fact\nconfig = c.HostConnector.config\n"
    script += "def long(*asked):\n metrics, facts = config(*asked)\n"
    script += " return metrics, (*facts, *(Fact('disk', 'a', 'path', 'x' * 4000) for _ in range(5000)))\n"
    script += "c.HostConnector.config = long\ns.main()"
    with Client("-c", script) as slave:
        slave.prepare("null")
        refused = slave.ask(m.FindElements, luns=())
        assert isinstance(refused, m.Refused) and "longer than a line" in refused.refusals[0].reason
        assert isinstance(slave.ask(m.ClockProbe), m.ClockReading)


@pytest.mark.parametrize("backend", ["null", "libaio", "io_uring"])
def test_a_step_from_go_to_stopped(backend: str, tmp_path: Path) -> None:
    with Client() as slave:
        if backend not in slave.prepare(backend).backends:
            pytest.skip(f"{backend} does not work on this kernel")
        slave.make_file(tmp_path / "lun", 4 << 20)
        slave.create(tmp_path / "lun", PACED, Parameters(iops=500.0, fraction_read=0.0), consent=True)
        start = now_ns() + 500_000_000
        answer = slave.do(m.Go, start_ns=start, length_ns=250_000_000, order=u32(1, 0), classes=u32(0, 1))
        assert isinstance(answer, m.Ready)
        assert slave.state == "running"
        first, second = slave.results(2)
        assert [first.subinterval, second.subinterval] == [0, 1]
        assert (first.start_ns, first.length_ns, second.start_ns) == (start, 250_000_000, start + 250_000_000)
        assert 0 <= first.collected_ns - (start + 250_000_000)
        assert len(first.cpu) == len(os.sched_getaffinity(0))
        for result in (first, second):
            writes, reads = counts(result)
            assert (writes[Count.DUE], reads[Count.DUE]) == (125, 250)
            assert writes[Count.BYTES] == writes[Count.COMPLETED] * 4096
            moments = array("Q", result.moments.data)
            assert len(moments) == 2 * SERIES * len(Moment)
            assert len(result.spans) == 2 * SERIES * 2
            assert int(np.frombuffer(result.buckets.data, f"<{result.buckets.type}").sum()) == sum(
                moments[Moment.COUNT :: len(Moment)]
            )
            assert len(result.threads) == len(ThreadCount)
            assert not result.last
            assert result.missing == ()
        assert isinstance(slave.do(m.Stop, last=first.subinterval + 3), m.Ending)
        stopped = slave.until(m.Stopped)
        assert (stopped.reason, stopped.uncaught) == (m.StopReason.COMMANDED, 0)
        results = [said for said in slave.all if isinstance(said, m.Result)]
        assert [r.last for r in results] == [False] * (len(results) - 1) + [True]
        assert [r.subinterval for r in results] == list(range(len(results)))
        assert slave.state == "idle"
        assert isinstance(words := slave.ask(m.Die), m.DyingWords) and words.clean
        assert slave.gone() == 0
        assert not (tmp_path / "lun").exists()


@pytest.mark.slow
def test_two_steps_with_other_workloads(tmp_path: Path) -> None:
    with Client() as slave:
        slave.prepare()
        slave.make_file(tmp_path / "lun")
        for parameters in (PACED, Parameters(iops=MAX, maxtags=8)):
            slave.create(tmp_path / "lun", parameters)
            slave.go(0)
            (result,) = slave.results(1)
            assert counts(result)[0][Count.COMPLETED] > 0
            slave.do(m.Stop, last=result.subinterval + 1)
            slave.until(m.Stopped)
            slave.do(m.DeleteWorkloads, numbers=(0,))


def test_tags_range_and_block_size_of_a_running_instance(tmp_path: Path) -> None:
    """Through the real slave and engine; what its buffers do not hold is refused, and the step goes on."""
    with Client() as slave:
        slave.prepare()
        slave.make_file(tmp_path / "lun")
        slave.create(tmp_path / "lun", replace(PACED, blocksize=65536), ceiling=8)
        slave.do(m.EditWorkloads, edit=1, settings=(Setting(0, PACED),))  # between steps
        slave.go(0)
        slave.until(m.Result)
        now = replace(PACED, blocksize=16384, maxtags=8, range=(65536, 131072))
        slave.do(m.EditWorkloads, edit=2, settings=(Setting(0, now),))
        while counts_of(slave.until(m.Result))[Count.EDIT] < 2:
            pass
        slave.until(m.Result)  # with what was in flight at the edit
        result = counts_of(slave.until(m.Result))
        assert result[Count.EDIT] == 2 and result[Count.BYTES] == 16384 * result[Count.COMPLETED] > 0
        for wrong, reason in (
            ({"maxtags": 9}, "maxtags is 9, and its buffers were made for 8: create it again"),
            ({"blocksize": 131072}, "blocksize is 131072, and its buffers were made for 65536: create it again"),
            ({"range": (0, 2 << 20)}, f"range ends at 2,097,152, and {tmp_path}/lun at 1,048,576:"
                                      " choose an end within it"),
            ({"fraction_read": 0.5}, RefusalReason.EDITED_TO_WRITE.sentence()),
        ):  # fmt: skip
            ((_, said),) = slave.refused(
                m.EditWorkloads,
                edit=3,
                settings=(Setting(0, replace(now, **wrong)),),
            )
            assert said == reason
        assert counts_of(slave.until(m.Result))[Count.EDIT] == 2


def counts_of(result: m.Result) -> list[int]:
    """Of the only instance, by Count."""
    counts = array("q", result.counts.data).tolist()
    assert len(counts) == len(Count)
    return counts


def test_an_edit_is_acknowledged_with_the_time_at_which_all_threads_had_it(tmp_path: Path) -> None:
    with Client() as slave:
        slave.prepare(threads=2)
        slave.make_file(tmp_path / "lun")
        slave.create(tmp_path / "lun", PACED, PACED)
        before = now_ns()
        idle = slave.do(m.EditWorkloads, edit=1, settings=(Setting(0, Parameters(iops=100.0)),))
        assert isinstance(idle, m.Ok)
        assert before <= idle.effective_ns <= now_ns()
        slave.go(0, 1)
        edits = [
            slave.send(m.EditWorkloads, edit=n, settings=(Setting(0, Parameters(iops=n * 1000.0)),))
            for n in range(2, 7)
        ]
        taken = [slave.answer(edit) for edit in edits]
        assert all(isinstance(ok, m.Ok) for ok in taken)
        times = [ok.effective_ns for ok in taken if isinstance(ok, m.Ok)]
        assert times == sorted(times)
        while counts(result := slave.until(m.Result))[0][Count.EDIT] != 6:
            pass
        (after,) = slave.results(1)
        assert counts(after)[0][Count.DUE] == pytest.approx(6000 * after.length_ns / 1e9, abs=1)
        assert result.subinterval < after.subinterval
        slave.do(m.Halt)
        slave.until(m.Stopped)


def test_commands_are_answered_in_every_state_that_allows_them(tmp_path: Path) -> None:
    with Client() as slave:
        slave.prepare()
        slave.make_file(tmp_path / "lun")
        slave.create(tmp_path / "lun", PACED)
        slave.go(0)
        (first,) = slave.results(1)
        moved = first.start_ns + first.length_ns + 500_200_000
        assert isinstance(slave.do(m.Continue, subinterval=2, boundary_ns=moved), m.Ok)
        while (result := slave.until(m.Result)).subinterval < 2:
            pass
        assert result.start_ns + result.length_ns == moved
        assert isinstance(slave.do(m.Cooldown, subinterval=result.subinterval + 2), m.Ok)
        while (cooled := slave.until(m.Result)).subinterval < result.subinterval + 2:
            pass
        assert counts(cooled)[0][Count.DUE] == 0
        assert isinstance(slave.do(m.Halt), m.Ending)
        stopped = slave.until(m.Stopped)
        assert stopped.reason is m.StopReason.COMMANDED
        last = [said for said in slave.all if isinstance(said, m.Result)][-1]
        assert last.last
        assert last.length_ns < 250_000_000


def test_a_halt_before_the_start_and_right_behind_the_go(tmp_path: Path) -> None:
    with Client() as slave:
        slave.prepare()
        slave.make_file(tmp_path / "lun")
        slave.create(tmp_path / "lun", PACED)
        start = now_ns() + 20 * 10**9
        go = slave.send(m.Go, start_ns=start, length_ns=10**9, order=u32(0), classes=u32(0))
        halt = slave.send(m.Halt)
        assert isinstance(slave.answer(go), m.Ready)
        assert isinstance(slave.answer(halt), m.Ending)
        assert slave.until(m.Stopped).reason is m.StopReason.COMMANDED
        assert now_ns() < start
        assert sum(counts(said)[0][Count.SUBMITTED] for said in slave.all if isinstance(said, m.Result)) == 0
        slave.go(0)


def test_a_command_out_of_turn_is_refused_and_nothing_else_happens(tmp_path: Path) -> None:
    with Client() as slave:
        hello = slave.hear()
        assert isinstance(hello, m.Hello)
        assert slave.refused(m.Go, start_ns=1, length_ns=1, order=u32(), classes=u32()) == [
            ("go", "there is no engine yet: `prepare` comes first")
        ]
        assert slave.refused(m.Stop, last=1) == [("stop", "it came too late: this host is idle")]
        slave.do(m.Prepare, engine=EngineOptions("null", 1), lease_ns=10**10)
        assert slave.refused(m.Prepare, engine=EngineOptions("null", 1), lease_ns=10**10) == [
            ("prepare", "it was prepared before: restart its slave to change backend or threads")
        ]
        slave.make_file(tmp_path / "lun")
        slave.create(tmp_path / "lun", PACED)
        slave.go(0)
        assert slave.refused(m.Die) == [("die", "it came too late: this host is running")]
        slave.do(m.Stop, last=0)
        assert isinstance(slave.ask(m.ClockProbe), m.ClockReading)


def test_it_may_open_as_many_files_as_its_user(tmp_path: Path) -> None:
    """So that a thousand LUNs work where the shell's limit is the usual one; the trial of backends, too."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    few = max(map(int, os.listdir("/proc/self/fd"))) + 64  # as many as this process needs
    resource.setrlimit(resource.RLIMIT_NOFILE, (few, hard))
    try:
        slave = Client()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    with slave:
        slave.hear()
        assert resource.prlimit(slave.process.pid, resource.RLIMIT_NOFILE) == (hard, hard)


@pytest.mark.parametrize(
    ("options", "lease_ns", "reason"),
    [
        (EngineOptions("floppy"), 10**9, "backend 'floppy' does not work here: choose one of "),
        (EngineOptions("null", threads=1000), 10**9, "1000 threads were requested: choose 0 (one per core) to 256"),
        (
            EngineOptions("null", cpus=(0, 4090)),
            10**9,
            "core 4090 is not there, or not for this process, which may use ",
        ),
        (EngineOptions("null"), 0, "a lease of 0 ns has run out before it began: choose a longer one"),
    ],
)
def test_invalid_prepare_is_refused(options: EngineOptions, lease_ns: int, reason: str) -> None:
    with Client() as slave:
        slave.hear()
        ((what, why),) = slave.refused(m.Prepare, engine=options, lease_ns=lease_ns)
        assert what == "prepare"
        assert why.startswith(reason)


def test_a_go_that_cannot_be_is_refused(tmp_path: Path) -> None:
    with Client() as slave:
        slave.prepare()
        slave.make_file(tmp_path / "lun")
        slave.create(tmp_path / "lun", PACED)
        far = now_ns() + 10**9
        good = {"start_ns": far, "length_ns": 10**9, "order": u32(0), "classes": u32(0)}
        table: list[tuple[dict[str, object], str]] = [
            ({"order": u32(5)}, "there are no instances 5: create them first"),
            ({"length_ns": 0}, "a subinterval of 0 ns has no length: choose a longer one"),
            ({"order": Array(ArrayType.U64, bytes(8))}, "its order and classes are not arrays of u32"),
        ]
        for change, reason in table:
            assert slave.refused(m.Go, **good | change) == [("go", reason)]
        ((_, late),) = slave.refused(m.Go, **good | {"start_ns": now_ns() - 50 * 10**9})
        late_ms = re.fullmatch(r"its start is (\d+)\S* ms in the past: name a later one", late)
        assert late_ms and 50_000 <= int(late_ms[1]) < 110_000, late
        slave.go(0)


def test_the_end_of_input_halts_removes_and_exits(tmp_path: Path) -> None:
    with Client() as slave:
        slave.prepare()
        slave.make_file(tmp_path / "lun")
        slave.create(tmp_path / "lun", PACED)
        slave.go(0)
        slave.until(m.Result)
        slave.end_input()
        assert slave.gone() == 0
        assert not (tmp_path / "lun").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_halts_removes_files_reports_and_exits(number: signal.Signals, tmp_path: Path) -> None:
    with Client() as slave:
        slave.prepare()
        slave.make_file(tmp_path / "lun")
        slave.create(tmp_path / "lun", PACED)
        slave.go(0)
        slave.process.send_signal(signal.SIGINT)  # the controller's to judge
        slave.until(m.Result)
        slave.process.send_signal(number)
        assert slave.gone() == 128 + number
        assert slave.all[-1] == m.DyingWords(0, -1, f"ended by {number.name}")
        assert not (tmp_path / "lun").exists()


def test_a_file_to_keep_stays(tmp_path: Path) -> None:
    with Client() as slave:
        slave.prepare()
        kept = FileToCreate(str(tmp_path / "kept{}"), 8192, 2, True)
        slave.do(m.CreateFiles, files=(kept,), used=(), tags=0)
        (luns,) = [said.luns for said in slave.all if isinstance(said, m.Luns)]
        assert [lun.path for lun in luns] == [f"{tmp_path}/kept0", f"{tmp_path}/kept1"]
        assert next(one.kind for one in slave.all if isinstance(one, Notice)) is NoticeKind.FILES_CREATED
        slave.ask(m.Die)
        assert slave.gone() == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept0", "kept1"]


def _end_by_command(slave: Client) -> None:
    slave.ask(m.Die)


def _end_by_a_signal(slave: Client) -> None:
    slave.process.terminate()


def _end_by_garbage(slave: Client) -> None:
    slave.tell(b"garbage\n")


@pytest.mark.parametrize("end", [Client.end_input, _end_by_command, _end_by_a_signal, _end_by_garbage, None])
def test_a_file_that_it_wrote_is_as_agreed_to_however_it_ends_but_by_being_killed(
    tmp_path: Path, end: Callable[[Client], None] | None
) -> None:
    """In the middle of a step. Who is killed cannot say that nobody else wrote since."""
    path = tmp_path / "lun"
    path.write_bytes(os.urandom(1 << 20))
    with open(path, "rb") as file:
        if not put(file.fileno(), "user.ivypy.test", b"x"):
            pytest.skip("its filesystem has no user attributes")
    with Client() as slave:
        slave.prepare("libaio")
        consent = slave.agreed(path)
        slave.create(path, replace(PACED, fraction_read=0.0), consent=True)
        slave.go(0)
        while not counts(slave.until(m.Result))[0][Count.COMPLETED]:
            pass
        if end is None:
            slave.process.kill()
            slave.process.wait()
        else:
            end(slave)
            slave.gone()
    with Client() as following:
        following.prepare("libaio")
        assert (following.agreed(path) == consent) is (end is not None)


def test_a_created_file_is_its_slaves_alone_and_the_end_of_the_process_frees_it(shm: Path) -> None:
    path = shm / "lun"

    def refused(slave: Client) -> str:
        made = (FileToCreate(str(path), 1 << 20, 1, False),)
        ((what, reason),) = slave.refused(m.CreateFiles, files=made, used=(), tags=0)
        assert what == str(path)
        return reason

    with Client() as second:
        second.hear()
        with Client() as first:
            first.prepare()
            first.make_file(path)
            if not raw(str(path), MARK).startswith(MADE):
                pytest.skip("the filesystem of /dev/shm has no user attributes")
            first.create(path, PACED, PACED)  # two workloads of its own may share it
            assert refused(second) == RefusalReason.IN_USE.sentence()
            first.process.kill()
            first.process.wait()
        second.make_file(path)
        second.ask(m.Die)
        assert second.gone() == 0
    assert path.exists(), "the killed one made it, so nobody removes it"


@pytest.mark.parametrize("fate", ["as it was", "driven", "kept", "not this run's", "another file"])
def test_what_a_killed_slave_made_its_successor_removes(shm: Path, fate: str) -> None:
    path = shm / "lun"
    file = FileToCreate(str(path), 1 << 20, 1, fate == "kept")
    with Client() as first:
        first.prepare()
        first.do(m.CreateFiles, files=(file,), used=(), tags=0)
        if not raw(str(path), MARK).startswith(MADE):
            pytest.skip("the filesystem of /dev/shm has no user attributes")
        (lun,) = next(said.luns for said in first.all if isinstance(said, m.Luns))
        assert lun.made and lun.identity is not None
        first.process.kill()
        first.process.wait()
    if fate == "driven":
        path.write_bytes(bytes(1 << 20))
    elif fate == "another file":
        path.unlink()
        with Client() as other:
            other.prepare()
            other.do(m.CreateFiles, files=(replace(file, keep=True),), used=(), tags=0)
            other.ask(m.Die)
            other.gone()
    with Client() as second:
        second.prepare()
        mine = () if fate == "not this run's" else (str(path),)
        second.do(m.CreateFiles, files=(file,), used=((str(path), lun.identity),), tags=0, made=mine)
        (again,) = next(said.luns for said in second.all if isinstance(said, m.Luns))
        assert again.made == (fate in ("as it was", "driven", "kept"))
        second.ask(m.Die)
        assert second.gone() == 0
    assert path.exists() == (fate not in ("as it was", "driven"))


def test_no_file_is_made_where_the_system_has_no_room_for_the_tags(tmp_path: Path) -> None:
    with Client() as slave:
        slave.prepare("libaio")
        made = (FileToCreate(str(tmp_path / "lun"), 1 << 20, 1, True),)
        ((what, reason),) = slave.refused(m.CreateFiles, files=made, used=(), tags=10**9)
        assert what == "the plan's workloads" and "raise it (sysctl -w fs.aio-max-nr=1048576)" in reason
        assert list(tmp_path.iterdir()) == []
        slave.do(m.CreateFiles, files=made, used=(), tags=10)
        assert (tmp_path / "lun").exists()


def test_dying_while_files_are_made_leaves_none(tmp_path: Path) -> None:
    with Client() as slave:
        slave.hear()
        command = slave.send(
            m.CreateFiles, files=(FileToCreate(str(tmp_path / "huge"), 1 << 30, 1, True),), used=(), tags=0
        )
        while not (tmp_path / "huge").exists():
            assert isinstance(slave.ask(m.ClockProbe), m.ClockReading), "it listens while it works"
        assert isinstance(slave.ask(m.Die), m.DyingWords)
        assert slave.gone() == 0
        assert not any(getattr(said, "re", 0) == command.id for said in slave.all)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_more_luns_than_a_message_holds_come_in_several(tmp_path: Path) -> None:
    for i in range(m.MOST_IN_A_LIST + 1):
        (tmp_path / f"f{i:03}").write_bytes(b"x" * 512)
    with Client() as slave:
        slave.hear()
        slave.do(m.ListLuns, blocks=False, globs=(f"{tmp_path}/f*",))
        assert [len(said.luns) for said in slave.all if isinstance(said, m.Luns)] == [m.MOST_IN_A_LIST, 1]


@pytest.mark.parametrize(
    ("rubbish", "said"),
    [
        (b"hello?\n", "a line is not JSON"),
        (encode_line(m.Ok(1, 2)), "'ok' is no command"),
        (b'{"type":"go","id":1}\n', "missing"),
    ],
)
def test_rubbish_ends_it_with_the_reason(rubbish: bytes, said: str, tmp_path: Path) -> None:
    with Client() as slave:
        slave.prepare()
        slave.make_file(tmp_path / "lun")
        slave.tell(rubbish)
        assert slave.gone() == 3
        assert "the controller broke the protocol" in slave.errors
        assert said in slave.errors
        assert isinstance(slave.all[-1], m.DyingWords)
        assert not (tmp_path / "lun").exists()


def test_a_slave_that_was_frozen_beyond_its_lease_submits_nothing_more(tmp_path: Path) -> None:
    with Client(lease_s=1.0) as slave:
        slave.prepare()
        slave.make_file(tmp_path / "lun")
        slave.create(tmp_path / "lun", PACED)
        slave.ask(m.ClockProbe)
        slave.go(0)
        slave.until(m.Result)
        heard = slave.ask(m.ClockProbe)
        assert isinstance(heard, m.ClockReading)
        os.kill(slave.process.pid, signal.SIGSTOP)
        probe = slave.send(m.ClockProbe)  # waits in its input, and must not renew the lease after the thaw
        while now_ns() < heard.received_ns + 1_300_000_000:
            time.sleep(0.05)
        os.kill(slave.process.pid, signal.SIGCONT)
        assert isinstance(slave.answer(probe), m.ClockReading)
        stopped = slave.until(m.Stopped)
        assert stopped.reason is m.StopReason.LEASE
        results = [said for said in slave.all if isinstance(said, m.Result)]
        assert results[-1].last
        assert results[-1].start_ns + results[-1].length_ns <= heard.received_ns + 1_000_000_000
        slave.ask(m.ClockProbe)  # heard again, and idle: the next step may begin
        slave.go(0)


@pytest.mark.slow
def test_a_silent_controller_ends_the_step_but_not_the_slave(tmp_path: Path) -> None:
    with Client(lease_s=1.5) as slave:
        slave.prepare()
        slave.make_file(tmp_path / "lun")
        slave.create(tmp_path / "lun", PACED)
        slave.ask(m.ClockProbe)
        slave.go(0)
        assert slave.until(m.Stopped).reason is m.StopReason.LEASE
        assert (tmp_path / "lun").exists()
        far = now_ns() + 10**9
        assert slave.refused(m.Go, start_ns=far, length_ns=10**9, order=u32(0), classes=u32(0)) == [
            ("go", "its lease has run out, since no clock_probe arrived in time: probe it first")
        ]
        assert slave.process.poll() is None


@pytest.mark.slow
def test_a_controller_that_does_not_read_gets_overruns_and_loses_nothing(tmp_path: Path) -> None:
    """Many classes make results larger than a pipe, so that only a few fit on the way."""
    with Client(lease_s=60.0) as slave:
        slave.prepare()
        slave.make_file(tmp_path / "lun")
        many = range(60)
        slave.create(tmp_path / "lun", *(Parameters(iops=200.0) for _ in many), ceiling=1)
        start = now_ns() + 500_000_000
        slave.do(m.Go, start_ns=start, length_ns=50_000_000, order=u32(*many), classes=u32(*many))
        while now_ns() < start + 1_200_000_000:
            time.sleep(0.1)
        slave.send(m.Halt)
        slave.until(m.Stopped)
        results = [said for said in slave.all if isinstance(said, m.Result)]
        overruns = [array("q", r.threads.data)[ThreadCount.OVERRUNS] for r in results]
        assert sum(overruns) > 0, f"{len(results)} results, {sum(len(encode_line(r)) for r in results)} bytes"
        ends = [r.start_ns + r.length_ns for r in results]
        assert [r.start_ns for r in results] == [start, *ends[:-1]], "every instant is in one result"
        due = sum(row[Count.DUE] for r in results for row in counts(r))
        assert due == pytest.approx(60 * 200 * (ends[-1] - start) / 1e9, abs=60)


def test_it_ends_even_if_stderr_is_closed() -> None:
    complaints, its = os.pipe()
    command = [sys.executable, "-m", "ivypy.slave"]
    slave = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=its)
    os.close(its)
    os.close(complaints)
    out, _ = slave.communicate(b"rubbish\n", timeout=30)
    assert slave.returncode == 3
    assert b"the controller broke the protocol" in out


@pytest.mark.parametrize("stream", ["stdin", "stdout"])
def test_what_is_no_pipe_is_refused_with_a_sentence(stream: str) -> None:
    stdin, stdout = (subprocess.DEVNULL if stream == name else subprocess.PIPE for name in ("stdin", "stdout"))
    command = [sys.executable, "-m", "ivypy.slave"]
    done = subprocess.run(command, stdin=stdin, stdout=stdout, stderr=subprocess.PIPE, timeout=30, check=False)
    name = {"stdin": "standard input", "stdout": "standard output"}[stream]
    assert done.returncode == 2
    assert done.stderr.decode().startswith(f"ivypy: {name} is a device, not a pipe: a slave is started by a controller")


def test_it_also_works_over_a_socket_pair() -> None:
    ours, its = socket.socketpair()
    with ours, its:
        process = subprocess.Popen([sys.executable, "-m", "ivypy.slave"], stdin=its.fileno(), stdout=its.fileno())
        its.close()
        with ours.makefile("rb") as lines:
            assert b'"type":"hello"' in lines.readline()
            ours.shutdown(socket.SHUT_WR)
            assert process.wait(30) == 0


def test_a_reader_that_goes_away_ends_it(tmp_path: Path) -> None:
    with Client() as slave:
        slave.prepare()
        slave.make_file(tmp_path / "lun")
        assert slave.process.stdout is not None
        slave.process.stdout.close()
        slave.send(m.ClockProbe)
        assert slave.process.wait(30) == 0
        assert not (tmp_path / "lun").exists()


@pytest.mark.parametrize("prepared", [True, False])
def test_a_slave_that_receives_nothing_for_three_leases_ends_and_removes_its_files(
    tmp_path: Path, prepared: bool
) -> None:
    """A controller that is gone with its network closes no pipe."""
    script = "import ivypy.slave.link.command_server as o, ivypy.slave.__main__ as s; o.SILENT_S = 1.0; s.main()"
    with Client("-c", script, lease_s=0.5) as slave:
        if prepared:
            slave.prepare()
        slave.make_file(tmp_path / "lun")
        assert (tmp_path / "lun").exists()
        assert slave.gone() == 0
        last = slave.all[-1]
        assert isinstance(last, m.DyingWords) and last.words.startswith("no command from the controller for 1")
        assert not (tmp_path / "lun").exists()


def test_clock_readings_report_the_progress_of_commands(tmp_path: Path) -> None:
    def done(slave: Client) -> int:
        reading = slave.ask(m.ClockProbe)
        assert isinstance(reading, m.ClockReading)
        return reading.done

    with Client() as slave:
        slave.prepare()
        before = done(slave)
        assert done(slave) == before
        slave.make_file(tmp_path / "lun")
        made = done(slave)
        assert made > before
        slave.do(m.InspectLuns, paths=(str(tmp_path / "lun"),), create=())
        assert done(slave) > made
