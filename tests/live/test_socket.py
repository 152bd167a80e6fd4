"""The control socket: who may use it, what it survives, and what a follower sees."""

import asyncio
import json
import os
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ivypy.master.control.observation import Phase
from ivypy.master.errors import OutputError, PlanError
from ivypy.master.exit_codes import ExitCode
from ivypy.master.live import socket_client, socket_paths, socket_server
from ivypy.master.live.line_view import standing_lines
from ivypy.master.live.reports import (
    EventLine,
    InstanceRow,
    Instances,
    MeasuredSoFar,
    Report,
    RunBegins,
    RunEnds,
    RunStatus,
    Steadiness,
    StepBegins,
    Subinterval,
    WorstInstance,
)
from ivypy.master.live.socket_client import Client, connected, exit_code_of, socket_of
from ivypy.master.live.socket_messages import (
    ANSWERS,
    REQUESTS,
    Answer,
    Changed,
    Done,
    EditRequest,
    FollowRequest,
    HostAnswer,
    MarkRequest,
    PauseRequest,
    Rejection,
    Request,
    SkipRequest,
    StatusRequest,
    StopRequest,
    UnpauseRequest,
)
from ivypy.master.run.session.run import Run
from ivypy.master.summary.measured import MeasurementRow, StepEnds
from ivypy.master.verdicts import Finding, Reason, Verdict
from ivypy.protocol.lines import decode, encode_line
from tests.support.real_runs import ivypy
from tests.support.simulated.runs import SimulatedRun, stage

pytestmark = pytest.mark.slow


@pytest.fixture
def runtime(runtime_folder: Path) -> Path:
    """Where sockets are made."""
    return runtime_folder / "ivypy"


FIGURES = {"overall_iops": 10.0, "overall_service_us_p99": 1.5}
BEGINS = StepBegins(0, "one", 2, 60.0, 130.0, 5.0)
CLOSED = Subinterval(
    "2026-01-01T00:00:05.000Z",
    "one",
    Phase.RUN,
    3,
    "mixed",
    FIGURES,
    2,
    3,
    ("so", "and so"),
    5,
    9,
    Steadiness("overall_iops:2.000000%", "holding", "all=all", 30.0, 1, "0.5%", 1.5, -0.25),
    worst=WorstInstance("host=a", "overall_service_us_p99", 1.5, 1.0, 2),
)
FOUND = (Finding(Reason.HOST_LOST, "b: gone"), Finding(Reason.NO_SAMPLES))
VERDICTS = (Verdict.PARTIAL, Verdict.INVALID, Verdict.INVALID, Verdict.PARTIAL)
MEASURED = MeasurementRow("one:total_iops=5", *VERDICTS, FOUND, "gone", FIGURES)
ENDS = StepEnds(0, "one", Verdict.PARTIAL, FOUND, (MEASURED,))
OF_HOST = InstanceRow("a", FIGURES)
REPORTS: list[Report] = [
    RunBegins("/f", "p.yaml", 3), BEGINS, CLOSED, replace(CLOSED, figures={}),
    Instances("host", "one", 3, (OF_HOST,)), MeasuredSoFar("one", MEASURED), ENDS,
    EventLine("u", "", "text"), RunEnds("/f", (ENDS,), 7, "words"),
]  # fmt: skip
MESSAGES: list[Request | Answer | Report] = [
    StatusRequest(), StatusRequest("host"), FollowRequest("host"), EditRequest(("all=all", "iops=5"), True),
    StopRequest(), SkipRequest(), PauseRequest(), UnpauseRequest(), MarkRequest("x"),
    Changed("what", (HostAnswer("a", "utc", 3, ""),)), Done("text"), Rejection(("one", "two")),
    RunStatus("/f", "p", 1, BEGINS, True, False, CLOSED, (ENDS,), {"a": "", "b": "lost"}),
    RunStatus("/f", "p", 1, BEGINS, True, False, CLOSED, (), {}, None, MeasuredSoFar("one", MEASURED)),
    replace(CLOSED, steady=Steadiness("overall_iops_t:2.000000%", "seeking", "all=all", 30.0, 0, None, None, 0.0)),
    RunStatus("/f", "p", 1, None, False, False, None, (), {}), *REPORTS,
]  # fmt: skip


@pytest.mark.parametrize("said", MESSAGES, ids=lambda said: type(said).__name__)
def test_every_message_is_read_back_as_it_was(said: Request | Answer | Report) -> None:
    table = {**REQUESTS, **ANSWERS}
    assert decode(encode_line(said), table) == said


def ask(run: Run, request: Request) -> object:
    with connected(str(run.folder)) as client:
        return client.request(request)


async def asks(run: Run, *requests: Request) -> list[object]:
    """Several requests in one breath, on simulated time."""
    reader, writer = await asyncio.open_unix_connection(where(run))
    writer.write(b"".join(encode_line(request) for request in requests))
    answers = [decode(await reader.readline(), ANSWERS) for _ in requests]
    writer.close()
    return list(answers)


def where(run: Run) -> str:
    return str(json.loads((run.folder / "run.json").read_text())["socket"])


def test_a_socket_is_its_users_and_goes_with_the_run(tmp_path: Path, runtime: Path) -> None:
    async def visit(run: Run, staged: SimulatedRun) -> None:
        assert where(run) == str(runtime / f"{run.folder.name}.sock")
        mode, place = os.lstat(where(run)).st_mode, os.lstat(runtime).st_mode
        assert stat.S_ISSOCK(mode) and stat.S_IMODE(mode) == 0o600 and stat.S_IMODE(place) == 0o700
        await asyncio.sleep(12.0)
        standing = await asyncio.to_thread(ask, run, StatusRequest())
        assert isinstance(standing, RunStatus)
        assert (standing.folder, standing.pid, standing.running) == (str(run.folder), os.getpid(), True)
        assert standing.last is not None and (standing.last.number, standing.last.step) == (1, "one")
        assert standing.hosts == {"a": "", "b": "", "c": ""}

    staged = stage(tmp_path, visit)
    assert list(runtime.iterdir()) == []
    with pytest.raises(PlanError, match=r"the run has ended, at .*; what it measured: ivypy show "):
        ask_folder(staged.folder)


def ask_folder(folder: Path) -> object:
    with connected(str(folder)) as client:
        return client.request(StatusRequest())


def test_a_folder_that_names_another_runs_socket_leads_to_no_run(tmp_path: Path) -> None:
    """As another user makes it for root, who would change a run of his own."""

    async def visit(run: Run, staged: SimulatedRun) -> None:
        await asyncio.sleep(12.0)
        forged = tmp_path / "forged"
        forged.mkdir()
        (forged / "run.json").write_bytes((run.folder / "run.json").read_bytes())
        with pytest.raises(PlanError, match=r"at the socket that its run\.json names is another run, of /"):
            await asyncio.to_thread(ask_folder, forged)
        assert isinstance(await asyncio.to_thread(ask_folder, run.folder), RunStatus)

    assert stage(tmp_path, visit).step.verdict is Verdict.VALID


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_socket_in_a_folder_of_another_user_than_the_run_is_not_its(tmp_path: Path) -> None:
    sockets, folder = tmp_path / "s", tmp_path / "run"
    for made in (sockets, folder):
        made.mkdir()
    (folder / "run.json").write_text(json.dumps({"end_utc": None, "uid": 12345, "socket": str(sockets / "a")}))
    os.chown(folder / "run.json", 12345, 12345)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(str(sockets / "a"))
        server.listen()
        with pytest.raises(PlanError, match="the run did not end properly"):
            socket_of(str(folder))
        os.chown(sockets, 12345, 12345)
        assert socket_of(str(folder)) == sockets / "a"


def test_an_edit_through_the_socket_names_its_sender(tmp_path: Path) -> None:
    async def visit(run: Run, staged: SimulatedRun) -> None:
        await asyncio.sleep(12.0)
        changed, refused = await asks(
            run, EditRequest(("all=all", "iops=5"), False), EditRequest(("host=x", "iops=5"), False)
        )
        assert isinstance(changed, Changed) and [took.host for took in changed.took] == ["a", "b", "c"]
        assert isinstance(refused, Rejection) and refused.reasons[0].startswith("rollup host has no instance 'x'")
        staged.notes["me"] = socket_server.process(os.getpid(), os.getuid())

    staged = stage(tmp_path, visit)
    (event,) = staged.events("edit")
    assert event.endswith(f"; by {staged.notes['me']}") and f"(pid {os.getpid()})" in event


RUBBISH = [
    (b"hello\n", "invalid request: a line is not JSON"),
    (b"\xff\xfe\n", "invalid request: a line is not JSON"),
    (b'{"type":"go"}\n', "invalid request: unknown message 'go'"),
    (b'{"type":"edit_request","words":"iops=5","force":false}\n', "invalid request: edit_request.words: not a list"),
    (b'{"type":"mark","text":"x","text":"y"}\n', "invalid request: a line is not JSON (duplicate key)"),
    (b'{"type":"via_request","via":"x; by anna@pts/0 (pid 1)"}\n', "invalid request: via: not a program's name"),
    (b"x" * 70_000, "invalid request: a line is longer than 65536 bytes"),
]


@pytest.mark.slow
def test_malformed_requests_affect_only_their_sender(tmp_path: Path) -> None:
    def send(path: str, data: bytes) -> bytes:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(path)
            connection.sendall(data)
            return connection.makefile("rb").read()

    async def visit(run: Run, staged: SimulatedRun) -> None:
        path = where(run)
        await asyncio.sleep(12.0)
        for data, says in RUBBISH:
            answer = await asyncio.to_thread(send, path, data)
            refused = decode(answer.strip(), ANSWERS)
            assert isinstance(refused, Rejection) and refused.reasons[0].startswith(says), data
        with socket.socket(socket.AF_UNIX) as half:
            half.connect(path)
            half.sendall(b'{"type":"sta')
        assert isinstance(await asyncio.to_thread(ask, run, StatusRequest()), RunStatus)

    assert stage(tmp_path, visit).step.verdict is Verdict.VALID


def test_a_later_follower_begins_with_the_state_of_the_run(tmp_path: Path) -> None:
    async def follow(run: Run) -> list[Report]:
        reader, writer = await asyncio.open_unix_connection(where(run))
        writer.write(encode_line(FollowRequest()))
        said = [decode(found, ANSWERS) async for found in reader]
        writer.close()
        assert said[0] == Done("following")
        return said[1:]  # type: ignore[return-value]

    async def visit(run: Run, staged: SimulatedRun) -> None:
        first = asyncio.create_task(follow(run))
        await asyncio.sleep(17.0)
        second = asyncio.create_task(follow(run))
        staged.notes["first"], staged.notes["second"] = first, second

    staged = stage(tmp_path, visit)

    first, second = (staged.notes[name].result() for name in ("first", "second"))  # type: ignore[attr-defined]
    begins, _, _, *seen = staged.eyes.seen  # the others: files were created, and what was found
    assert first == [begins, *seen]
    assert second[:3] == [begins, seen[0], seen[3]], "where the run stands, then what follows"
    assert second[3:] == seen[4:] and isinstance(second[-1], RunEnds)


def test_a_follower_who_does_not_read_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket_server, "MOST_WAITING", 10_000)

    async def visit(run: Run, staged: SimulatedRun) -> None:
        sleeper = socket.socket(socket.AF_UNIX)
        sleeper.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sleeper.connect(where(run))
        sleeper.sendall(encode_line(FollowRequest()))
        staged.notes["sleeper"] = sleeper
        await asyncio.sleep(7.0)
        for _ in range(300):
            run.api.mark("x" * 1000, "me")
        await asyncio.sleep(1.0)

    staged = stage(tmp_path, visit)
    sleeper = staged.notes["sleeper"]
    assert isinstance(sleeper, socket.socket) and staged.code is ExitCode.OK
    received = 0
    with sleeper:
        try:
            while data := sleeper.recv(1 << 16):
                received += len(data)
        except ConnectionResetError:
            pass
    assert received < 300_000 and len(staged.events("mark")) == 300


def test_followers_may_leave_while_the_last_reports_are_read(tmp_path: Path) -> None:
    """One does not read, two go meanwhile: the run ends as it would have, and waits once for all of them."""

    async def visit(run: Run, staged: SimulatedRun) -> None:
        followers = []
        for _ in range(4):
            one = socket.socket(socket.AF_UNIX)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            one.connect(where(run))
            one.sendall(encode_line(FollowRequest()))
            followers.append(one)
        staged.notes["followers"] = followers
        await asyncio.sleep(7.0)
        for _ in range(300):
            run.api.mark("x" * 1000, "me")
        loop, show = asyncio.get_running_loop(), run.recorder.hub.show

        def shown(report: Report) -> None:
            show(report)
            if isinstance(report, RunEnds):
                staged.notes["ended"] = loop.time()
                for one in followers[1:3]:
                    loop.call_later(0.5, one.close)

        run.recorder.hub.show = shown  # type: ignore[method-assign]

    staged = stage(tmp_path, visit)
    followers, ended = staged.notes["followers"], staged.notes["ended"]
    assert isinstance(followers, list) and isinstance(ended, float)
    for one in followers:
        one.close()
    assert staged.code is ExitCode.OK and staged.seconds - ended <= 1.5 * socket_server.FLUSH_S


def test_clients_beyond_the_limit_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket_server, "MOST_CLIENTS", 2)

    async def visit(run: Run, staged: SimulatedRun) -> None:
        path = where(run)
        await asyncio.sleep(7.0)
        with socket.socket(socket.AF_UNIX) as one, socket.socket(socket.AF_UNIX) as two:
            one.connect(path)
            two.connect(path)
            await asyncio.sleep(0.1)
            with pytest.raises(PlanError, match="2 clients are connected to the run already"):
                await asyncio.to_thread(ask, run, StatusRequest())
        await asyncio.sleep(0.1)
        assert isinstance(await asyncio.to_thread(ask, run, StatusRequest()), RunStatus)

    stage(tmp_path, visit)


def test_a_rejection_that_came_before_the_request_was_sent_is_read() -> None:
    ours, theirs = socket.socketpair()
    with ours:
        theirs.sendall(encode_line(Rejection(("2 clients are connected to the run already",))))
        theirs.close()
        with pytest.raises(PlanError, match="2 clients are connected to the run already"):
            Client(ours, Path("run")).request(StatusRequest())


HUGE = "9" * 400


def test_a_bad_request_is_refused_and_frees_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More bad edits than there are places, of values that no number holds, and of a fault of ours."""
    values = [f"{setting}={sign}{HUGE}" for setting in ("maxtags", "iops", "total_iops") for sign in ("", "+", "*")]
    values += ["iops=1e999", "maxtags=*1e999", f"blocksize={HUGE}GiB", f"fraction_read=*{HUGE}", f"range=0..{HUGE}"]

    async def visit(run: Run, staged: SimulatedRun) -> None:
        await asyncio.sleep(7.0)
        for value in [*values, *["maxtags=*" + HUGE] * 70]:
            (refused,) = await asks(run, EditRequest(("all=all", value), False))
            assert isinstance(refused, Rejection) and "internal" not in refused.reasons[0], (value, refused)
        monkeypatch.setattr(run.api, "mark", lambda text, who: 1 // 0)
        for _ in range(70):
            (refused,) = await asks(run, MarkRequest("x"))
            assert refused == Rejection(("internal: ZeroDivisionError: integer division or modulo by zero",))
        (standing,) = await asks(run, StatusRequest())
        assert isinstance(standing, RunStatus)

    staged = stage(tmp_path, visit)
    assert staged.step.verdict is Verdict.VALID and staged.events("edit") == []


def test_a_run_without_a_socket_stays_valid(tmp_path: Path, runtime: Path) -> None:
    runtime.write_text("somebody's file")

    async def visit(run: Run, staged: SimulatedRun) -> None:
        await asyncio.sleep(1.0)
        with pytest.raises(PlanError, match=r"the run has no control socket; its events\.csv says why"):
            ask_folder(run.folder)

    staged = stage(tmp_path, visit)
    assert staged.step.verdict is Verdict.VALID
    assert "is not a folder that only you may enter (mode 0700)" in staged.events("no_socket")[0]


def test_a_report_that_cannot_be_encoded_disconnects_the_follower_alone(tmp_path: Path) -> None:
    async def visit(run: Run, staged: SimulatedRun) -> None:
        reader, writer = await asyncio.open_unix_connection(where(run))
        writer.write(encode_line(FollowRequest()))
        await reader.readline()
        run.recorder.hub.show(replace(CLOSED, step="other", figures={"overall_iops": float("nan")}))
        await asyncio.sleep(1.0)
        assert b"other" not in await reader.read()
        writer.close()

    staged = stage(tmp_path, visit)
    assert staged.step.verdict is Verdict.VALID
    assert any(isinstance(report, Subinterval) and report.step == "other" for report in staged.eyes.seen)


def test_another_user_is_turned_away_even_where_files_would_let_them() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    with socket.socket(socket.AF_UNIX) as listening, socket.socket(socket.AF_UNIX) as own:
        listening.bind("")  # the kernel chooses an abstract name, which has no mode
        listening.listen()
        own.connect(listening.getsockname())
        accepted, _ = listening.accept()
        with accepted:
            assert socket_server.peer(accepted) == socket_server.process(os.getpid(), 0)
        child = os.fork()
        if child == 0:
            os.setuid(12345)
            socket.socket(socket.AF_UNIX).connect(listening.getsockname())
            os._exit(0)
        accepted, _ = listening.accept()
        with accepted:
            assert socket_server.peer(accepted) is None
        os.waitpid(child, 0)


# Paths.


@pytest.fixture
def listening() -> Iterator[list[socket.socket]]:
    opened: list[socket.socket] = []
    yield opened
    for one in opened:
        one.close()


def test_two_runs_of_one_name_have_two_sockets(runtime: Path, listening: list[socket.socket]) -> None:
    for name in ("r.sock", "r-2.sock"):
        one, path = socket_paths.bound("r")
        listening.append(one)
        one.listen()
        assert path == runtime / name


def test_a_long_run_name_is_cut_to_fit_a_socket_path(listening: list[socket.socket]) -> None:
    one, path = socket_paths.bound("plan-" * 60)
    listening.append(one)
    assert len(os.fsencode(path)) <= socket_paths.LONGEST_PATH and path.exists()


def test_a_flood_of_connections_is_waited_for_and_hides_no_run(runtime: Path, listening: list[socket.socket]) -> None:
    """Its socket was removed by the next run that began."""
    one, path = socket_paths.bound("flooded")
    listening.append(one)
    one.listen(1)
    with ExitStack() as flood:
        for _ in range(100):
            more = flood.enter_context(socket.socket(socket.AF_UNIX))
            more.setblocking(False)
            try:
                more.connect(str(path))
            except BlockingIOError:
                break
        else:
            raise AssertionError("the queue has no end")
        assert socket_paths.answers(path)
        waiting = flood.enter_context(socket.socket(socket.AF_UNIX))
        getter = threading.Thread(target=socket_paths.connect, args=(waiting, path, 60))
        getter.start()
        one.settimeout(60)
        while getter.is_alive() or not _is_connected(waiting):
            flood.enter_context(one.accept()[0])
            getter.join(0.01)


def _is_connected(one: socket.socket) -> bool:
    try:
        one.getpeername()
    except OSError:
        return False
    return True


def test_sockets_of_runs_that_are_over_are_removed(runtime: Path, listening: list[socket.socket]) -> None:
    dead, path = socket_paths.bound("dead")
    dead.close()
    young, young_path = socket_paths.bound("young")
    young.close()
    os.utime(path, (0, 0))
    alive, alive_path = socket_paths.bound("alive")
    listening.append(alive)
    alive.listen()
    os.utime(alive_path, (0, 0))
    socket_paths.remove_stale(runtime)
    assert sorted(runtime.iterdir()) == [alive_path, young_path]
    assert socket_paths.running() == [alive_path]


def test_the_newest_run_comes_first(listening: list[socket.socket]) -> None:
    found = []
    for i, name in enumerate("abc"):
        one, path = socket_paths.bound(name)
        listening.append(one)
        one.listen()
        os.utime(path, (i, i))
        found.append(path)
    assert socket_paths.running() == found[::-1]
    assert socket_of(None) == found[-1]
    with pytest.raises(PlanError, match="several runs are active; name one of them: c, b, a"):
        socket_of(None, only=True)
    assert socket_of("b", only=True) == found[1]


LISTENS = """
import socket, sys
from ivypy.master.live.socket_paths import bound
one, _ = bound("theirs")
one.listen()
print("listens", flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root is several persons")
def test_a_run_that_another_person_began_as_root_is_changed_by_its_name_alone(
    runtime: Path, listening: list[socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = socket_client.real_user
    monkeypatch.setattr(socket_client, "real_user", lambda pid: 1000 if pid == os.getpid() else asked(pid))
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(runtime.parent), "SUDO_UID": "12345"}
    with subprocess.Popen(
        [sys.executable, "-c", LISTENS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    ) as other:
        assert other.stdout is not None and other.stdin is not None
        assert other.stdout.readline() == b"listens\n"
        with pytest.raises(PlanError, match=r"no active run is yours; .* name it: theirs \(begun by 12345\)"):
            socket_of(None, only=True)
        assert socket_of(None).stem == socket_of("theirs", only=True).stem == "theirs"
        one, path = socket_paths.bound("mine")
        listening.append(one)
        one.listen()
        assert socket_of(None, only=True) == path
        other.stdin.close()


def test_an_id_may_be_shortened_where_it_is_clear(listening: list[socket.socket]) -> None:
    paths = {}
    for name in ("oltp-2026", "oltp-2027", "scan-2026", "scan-2026-2"):
        one, paths[name] = socket_paths.bound(name)
        listening.append(one)
        one.listen()
    assert socket_of("oltp-2027") == socket_of("oltp-2027", only=True) == paths["oltp-2027"]
    assert socket_of("scan-2026") == paths["scan-2026"], "a whole id is no beginning"
    with pytest.raises(PlanError, match=r"oltp: several active runs begin so: oltp-202\d, oltp-202\d"):
        socket_of("oltp")
    listening.pop(1).close()
    assert socket_of("olt") == paths["oltp-2026"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
@pytest.mark.parametrize(("owner", "allowed"), [(1, "daemon, or root,"), (0, "root")])
def test_anothers_run_is_not_yours_and_not_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: int, allowed: str
) -> None:
    said = {"end_utc": None, "socket": "/run/user/1/ivypy/r.sock"}
    (tmp_path / "run.json").write_text(json.dumps(said))
    os.chown(tmp_path / "run.json", owner, owner)
    monkeypatch.setattr(os, "geteuid", lambda: 65534)
    with pytest.raises(PlanError, match=f"the run is not yours: only {allowed} may follow or change it"):
        socket_of(str(tmp_path))


def test_without_a_runtime_folder_there_is_one_of_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert socket_paths.folder(make=False) is None and socket_paths.running() == []
    place = socket_paths.folder(make=True)
    assert place == tmp_path / f"ivypy-{os.geteuid()}" and stat.S_IMODE(place.stat().st_mode) == 0o700


def test_a_runtime_folder_of_another_user_is_not_used(
    runtime: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As sudo leaves it."""
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    os.chown(runtime.parent, 12345, 12345)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert socket_paths.folder(make=True) == tmp_path / "ivypy-0"


def open_to_others(place: Path) -> None:
    place.mkdir()
    place.chmod(0o755)


def a_link(place: Path) -> None:
    (place.parent / "elsewhere").mkdir(mode=0o700)
    place.symlink_to(place.parent / "elsewhere")


def anothers(place: Path) -> None:
    place.mkdir(mode=0o700)
    os.chown(place, 12345, 12345)


@pytest.mark.parametrize("wrong", [open_to_others, a_link, anothers])
def test_a_folder_that_others_might_enter_is_not_used(runtime: Path, wrong: Callable[[Path], None]) -> None:
    if wrong is anothers and os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    wrong(runtime)
    for use in (lambda: socket_paths.bound("r"), socket_paths.running):
        with pytest.raises(OutputError, match="is not a folder that only you may enter"):
            use()


# Finding a run.


@pytest.mark.parametrize(
    "run, says",
    [
        (None, "you have no active run on this machine; `ivypy run PLAN.yaml` starts one"),
        ("", "RUN is empty; name a run, or leave it out"),
        ("nosuch", "nosuch: is neither a run's folder nor an active run; active: none"),
    ],
)
def test_an_unknown_run_is_an_error_that_names_the_runs_under_way(run: str | None, says: str) -> None:
    with pytest.raises(PlanError) as error, connected(run):
        pass
    assert str(error.value) == says


def test_a_run_that_was_cut_off_says_so(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps({"end_utc": None, "socket": str(tmp_path / "x.sock")}))
    with pytest.raises(PlanError, match="the run did not end properly"):
        ask_folder(tmp_path)
    assert exit_code_of(str(tmp_path)) == ExitCode.INTERNAL
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(PlanError, match=r"run\.json: cannot be read"):
        ask_folder(tmp_path)


def test_status_as_text() -> None:
    now = datetime(2026, 1, 1, 23, 59, 53, tzinfo=UTC)
    standing = RunStatus("/f", "p.yaml", 7, BEGINS, True, False, CLOSED, (), {"a": "", "b": "it is gone"})
    lines = standing_lines(standing, 80, now)
    assert lines[:2] == ["p.yaml (pid 7), /f", "step 0 (1 of 2): one"]
    assert lines[4].startswith("00:00:05 run")
    assert [line.strip() for line in lines[5:8]] == ["2 of 3 hosts", "so", "and so"]
    ends = "step done 23:59, 5s; run done Fri 00:00, 9s"
    assert lines[8] == "         worst: host=a, service p99 1.50 us (median of 2: 1.00 us)"
    assert lines[9:] == [ends, "1 of 2 hosts taking part", "  b: it is gone"]
    paused = standing_lines(replace(standing, paused=True), 80, now)
    assert paused[1] == "step 0 (1 of 2): one, paused"
    assert paused[9:11] == [
        "step paused, 5s left; run paused, 9s left",
        "the measurement starts again when the run goes on: ivypy unpause",
    ]


def test_edit_with_a_bare_word_explains_how_a_clause_is_written() -> None:
    done = ivypy("edit", "all", "iops=5")
    assert done.returncode == 2
    assert done.stderr == (
        "all: is neither a run's folder nor an active run; active: none;"
        " for a clause, write all=..., like all=all or host=h1\n"
    )


@pytest.mark.parametrize(
    ("by", "known", "said"),
    [
        ("host", ["all"], "; there is 'all'; `rollups: [ host ]` in the plan adds it to the next run"),
        (
            "host",
            ["all", "lun"],
            "; there are 'all' and 'lun'; `rollups: [ lun, host ]` in the plan adds it to the next run",
        ),
        ("hots", ["all", "host"], "; did you mean 'host'?"),
    ],
)
def test_a_rollup_type_that_the_plan_lacks_is_named_with_what_adds_it(by: str, known: list[str], said: str) -> None:
    answer = socket_server.unknown_type(by, known)
    assert answer == Rejection((f"--by {by}: the plan has no such rollup type{said}",))
