"""What the engine may do to a slave: threads that die, that are late, that the kernel holds; and bugs of our own."""

import asyncio
import errno
import os
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from ivypy.master.run.setup.connect import GOODBYE_S
from ivypy.protocol import messages as m
from ivypy.protocol.lines import LineReader, decode_line, encode_line
from ivypy.protocol.parameters import Parameters
from ivypy.protocol.payload import Consent, EngineOptions, Refusal, Setting, WorkloadToCreate
from ivypy.protocol.refusals import RefusalReason
from ivypy.slave.engine._engine import Ended, now_ns
from ivypy.slave.gate import file_changes
from ivypy.slave.gate.file_changes import note
from ivypy.slave.link.command_server import CLEAN_UP_S, CommandServer, Exit
from ivypy.slave.luns.created_files import CreatedFiles
from tests.support.fake_engine import FakeEngine, collected
from tests.support.loop_devices import agreed
from tests.support.slave_client import u32
from tests.support.waits import wait_until_async
from tests.support.workloads import WRITE

pytestmark = pytest.mark.slow


class Conversation:
    """A slave in this process, over real pipes, with an engine whose every word the test decides."""

    def __init__(self, engine: FakeEngine) -> None:
        self.engine = engine
        self._from_us, self._to_slave = os.pipe()
        self._from_slave, self._to_us = os.pipe()
        self._reader, self._ids = LineReader(), 0
        self._received: asyncio.Queue[m.Message] = asyncio.Queue()
        self.slave = CommandServer(self._from_us, self._to_us, lambda backend, cpus: engine)  # type: ignore[arg-type,return-value]
        self.code = asyncio.create_task(self.slave.serve())
        os.set_blocking(self._from_slave, False)
        asyncio.get_running_loop().add_reader(self._from_slave, self._read)

    def _read(self) -> None:
        for found in self._reader.feed(os.read(self._from_slave, 1 << 20)):
            self._received.put_nowait(decode_line(found))

    async def close(self) -> None:
        self.slave.end(Exit.COMMANDED, "")
        await self.code
        asyncio.get_running_loop().remove_reader(self._from_slave)
        for fd in (self._from_us, self._to_slave, self._from_slave, self._to_us):
            os.close(fd)

    def send(self, kind: type[m.Command], **fields: Any) -> int:
        self._ids += 1
        os.write(self._to_slave, encode_line(kind(id=self._ids, **fields)))
        return self._ids

    async def hear(self) -> m.Message:
        return await asyncio.wait_for(self._received.get(), 20)

    async def ask(self, kind: type[m.Command], **fields: Any) -> m.Message:
        self.send(kind, **fields)
        return await self.hear()

    async def run(self, file: Path, consent: Consent | None = None) -> None:
        """Up to a step whose only instance is on `file`."""
        assert isinstance(await self.hear(), m.Hello)
        assert isinstance(await self.ask(m.Prepare, engine=EngineOptions("null", 1), lease_ns=10**11), m.Ok)
        parameters = WRITE if consent else Parameters()
        workload = WorkloadToCreate(0, "h+f+w", str(file), consent, parameters, 8, 4096)
        assert isinstance(await self.ask(m.CreateWorkloads, workloads=(workload,)), m.Ok)
        start = now_ns() + 500_000_000  # a machine stalls for tens of milliseconds now and then
        go = await self.ask(m.Go, start_ns=start, length_ns=10_000_000, order=u32(0), classes=u32(0))
        assert isinstance(go, m.Ready), go


@pytest.fixture
async def talk() -> AsyncIterator[Conversation]:
    talk = Conversation(FakeEngine())
    yield talk
    await talk.close()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "f").write_bytes(b"x" * 8192)
    return tmp_path / "f"


@pytest.fixture
def over() -> Iterator[threading.Event]:
    """What hangs until it is set hangs for the whole test, and not beyond it."""
    event = threading.Event()
    yield event
    event.set()


def ended(reason: str) -> Ended:
    return Ended(reason, 1, 2, 3, 4, 5, 6)


async def test_a_thread_that_dies_in_a_step_leaves_dying_words_and_ends_the_step(
    talk: Conversation, file: Path
) -> None:
    await talk.run(file)
    talk.engine.words.append((0, "io_submit: EBADF"))
    talk.engine.finished.append(collected(0, last=True))
    talk.engine.ends.append(ended("died"))
    talk.engine.spoke()
    assert await talk.hear() == m.DyingWords(0, 0, "io_submit: EBADF")
    assert isinstance(await talk.hear(), m.Result)
    assert await talk.hear() == m.Stopped(m.StopReason.DIED, 1, 2, 3, 4, 5, 6)
    refused = await talk.ask(m.DeleteWorkloads, numbers=(0,))
    assert isinstance(refused, m.Refused)
    assert refused.refusals == (
        Refusal(
            "delete_workloads",
            "workload thread 0 could not go on: io_submit: EBADF: restart this host's slave",
        ),
    )
    words = "workload thread 0 could not go on: io_submit: EBADF"
    assert await talk.ask(m.Die) == m.DyingWords(5, -1, words)
    assert await talk.code == Exit.COMMANDED


async def test_a_thread_that_dies_between_steps_ends_the_slave(talk: Conversation) -> None:
    await talk.hear()
    await talk.ask(m.Prepare, engine=EngineOptions("null", 1), lease_ns=10**11)
    talk.engine.words += [(0, "stack overflow"), (1, "as well")]
    talk.engine.spoke()
    words = await talk.hear()
    assert isinstance(words, m.DyingWords)
    assert words.words == "; ".join(
        f"workload thread {n} could not go on: {why}" for n, why in ((0, "stack overflow"), (1, "as well"))
    )
    assert await talk.code == Exit.FAILED


async def test_an_edit_that_a_dead_thread_never_takes_is_refused(talk: Conversation, file: Path) -> None:
    await talk.run(file)
    talk.send(m.EditWorkloads, edit=1, settings=(Setting(0, Parameters(iops=5.0)),))
    second = talk.send(m.EditWorkloads, edit=2, settings=(Setting(0, Parameters(iops=6.0)),))
    while "edit 1" not in talk.engine.did:
        assert isinstance(await talk.ask(m.ClockProbe), m.ClockReading), "probes are answered meanwhile"
    assert isinstance(await talk.ask(m.Continue, subinterval=3, boundary_ns=1), m.Ok), "and steering is obeyed"
    talk.engine.words.append((0, "gone"))
    talk.engine.spoke()
    assert await talk.hear() == m.DyingWords(0, 0, "gone")
    first, other = await talk.hear(), await talk.hear()
    assert isinstance(first, m.Refused)
    assert first.refusals == (
        Refusal("edit_workloads", "not every thread applied it: workload thread 0 could not go on: gone"),
    )
    assert isinstance(other, m.Refused)
    assert other.re == second
    assert "edit 2" not in talk.engine.did


async def test_an_edit_that_the_engine_does_not_take_is_refused(talk: Conversation, file: Path) -> None:
    await talk.run(file)
    talk.engine.faults["edit"] = BlockingIOError(errno.EAGAIN, "an earlier edit was not taken yet")
    refused = await talk.ask(m.EditWorkloads, edit=1, settings=(Setting(0, Parameters(iops=5.0)),))
    assert isinstance(refused, m.Refused)
    assert refused.refusals == (Refusal("edit_workloads", "the engine rejects it: an earlier edit was not taken yet"),)


async def test_edits_wait_for_each_other_and_answer_in_order(talk: Conversation, file: Path) -> None:
    await talk.run(file)
    ids = [talk.send(m.EditWorkloads, edit=n, settings=(Setting(0, Parameters(iops=5.0 * n)),)) for n in (1, 2)]
    while "edit 1" not in talk.engine.did:
        await talk.ask(m.ClockProbe)
    assert "edit 2" not in talk.engine.did
    talk.engine.taken.append((1, 111, 0))
    talk.engine.spoke()
    assert await talk.hear() == m.Ok(ids[0], 111)
    while "edit 2" not in talk.engine.did:
        await talk.ask(m.ClockProbe)
    talk.engine.taken.append((2, 222, 0))
    talk.engine.spoke()
    assert await talk.hear() == m.Ok(ids[1], 222)


async def test_a_late_thread_is_named_and_its_numbers_come_later(talk: Conversation, file: Path) -> None:
    await talk.run(file)
    talk.engine.unfinished.append(collected(0, missing=[3]))
    result = await talk.hear()  # half a second after the boundary, without a word from the engine
    assert isinstance(result, m.Result)
    assert result.missing == (3,)
    talk.engine.finished.append(collected(1, faults=[(0, errno.EIO, 7), (0, 0, 2)]))
    talk.engine.spoke()
    result = await talk.hear()
    assert isinstance(result, m.Result)
    assert (result.missing, result.faults) == ((), (m.IoFault(0, errno.EIO, 7), m.IoFault(0, 0, 2)))


async def test_results_wait_in_the_engine_while_two_wait_in_the_pipe(talk: Conversation, file: Path) -> None:
    await talk.run(file)
    loop = asyncio.get_running_loop()
    loop.remove_reader(talk._from_slave)  # the controller does not read
    talk.engine.finished += [collected(k, buckets=os.urandom(8 << 16)) for k in range(6)]
    talk.engine.ends.append(ended("commanded"))
    talk.engine.spoke()
    await wait_until_async(lambda: len(talk.engine.finished) <= 4, "the pipe is full")
    for _ in range(10):  # turns of the loop, in any of which it could take more
        await asyncio.sleep(0)
    assert len(talk.engine.finished) == 4
    loop.add_reader(talk._from_slave, talk._read)
    heard = [await talk.hear() for _ in range(7)]
    assert [r.subinterval for r in heard if isinstance(r, m.Result)] == list(range(6))
    assert isinstance(heard[-1], m.Stopped)


async def test_a_collection_that_takes_long_delays_no_command_and_keeps_its_result(
    talk: Conversation, file: Path
) -> None:
    await talk.run(file)
    talk.engine.hangs["collect"] = threading.Event()
    talk.engine.finished.append(collected(0))
    talk.engine.spoke()
    assert isinstance(await talk.ask(m.ClockProbe), m.ClockReading)
    assert isinstance(await talk.ask(m.Halt), m.Ending)
    assert isinstance(await talk.ask(m.ClockProbe), m.ClockReading)
    talk.engine.finished.append(collected(1, last=True))
    talk.engine.ends.append(Ended("commanded", 0, 0, 0, 0, 0, 0))
    talk.engine.hangs["collect"].set()
    results = [await talk.hear() for _ in range(3)]
    assert [type(one) for one in results] == [m.Result, m.Result, m.Stopped]
    assert [one.subinterval for one in results[:2]] == [0, 1]  # type: ignore[union-attr]


async def test_a_thread_that_the_kernel_holds_is_named_and_does_not_keep_the_process(talk: Conversation) -> None:
    await talk.hear()
    await talk.ask(m.Prepare, engine=EngineOptions("null", 2), lease_ns=10**11)
    talk.engine.held.append(1)
    assert await talk.ask(m.Die) == m.DyingWords(2, -1, "goodbye; the kernel holds workload thread 1")
    assert await talk.code == Exit.COMMANDED


async def test_a_delete_that_hangs_blocks_no_other_command(
    talk: Conversation, file: Path, over: threading.Event
) -> None:
    await talk.run(file)
    talk.engine.ends.append(ended("commanded"))
    talk.engine.spoke()
    assert isinstance(await talk.hear(), m.Stopped)
    talk.engine.hangs["delete"] = over
    deleting = talk.send(m.DeleteWorkloads, numbers=(0,))
    while "delete 0" not in talk.engine.did:
        assert isinstance(await talk.ask(m.ClockProbe), m.ClockReading)
    assert isinstance(await talk.ask(m.ClockProbe), m.ClockReading)
    over.set()
    answer = await talk.hear()
    assert isinstance(answer, m.Ok)
    assert answer.re == deleting


@pytest.mark.parametrize(
    ("what", "reached", "words"),
    [
        ("open_lun", "open_lun", "; its last command is still running"),
        ("delete", "delete", "; its last command is still running"),
        ("close", "close_lun", "; its LUNs are still being closed"),
    ],
)
async def test_the_slave_ends_whatever_hangs(
    what: str, reached: str, words: str, talk: Conversation, file: Path, over: threading.Event
) -> None:
    talk.engine.hangs[what] = over
    await talk.hear()
    await talk.ask(m.Prepare, engine=EngineOptions("null", 1), lease_ns=10**11)
    workload = WorkloadToCreate(0, "h+f+w", str(file), None, Parameters(), 1, 4096)
    talk.send(m.CreateWorkloads, workloads=(workload,))
    talk.send(m.DeleteWorkloads, numbers=(0,))
    while not any(word.split()[0] == reached for word in talk.engine.did):
        await talk.ask(m.ClockProbe)
    talk.slave.end(Exit.SIGNAL, "ended by SIGTERM")
    while not isinstance(said := await talk.hear(), m.DyingWords):
        pass
    assert said.words == "ended by SIGTERM" + words
    assert await talk.code == Exit.SIGNAL


@pytest.mark.parametrize(
    ("fault", "error", "what", "reason"),
    [
        (
            "open_lun",
            OSError(errno.EINVAL, "O_DIRECT is refused"),
            "{file}",
            RefusalReason.NO_O_DIRECT.sentence(filesystem="{filesystem}", point="{mount}"),
        ),
        (
            "open_lun",
            PermissionError(errno.EACCES, "Permission denied"),
            "{file}",
            RefusalReason.OPENING_FORBIDDEN.sentence(error="Permission denied", path="{file}")
            if os.geteuid() == 0
            else RefusalReason.OPENING_DENIED.sentence(error="Permission denied"),
        ),
        (
            "create 1",
            OSError(errno.ENOMEM, "Cannot allocate memory"),
            "h+f+w1",
            "the engine cannot drive it: Cannot allocate memory",
        ),
    ],
)
async def test_what_the_engine_cannot_create_leaves_nothing(
    fault: str, error: OSError, what: str, reason: str, talk: Conversation, file: Path
) -> None:
    await talk.hear()
    await talk.ask(m.Prepare, engine=EngineOptions("null", 1), lease_ns=10**11)
    talk.send(m.ListLuns, blocks=False, globs=(str(file),))
    luns = await talk.hear()
    assert isinstance(luns, m.Luns)
    await talk.hear()
    talk.engine.faults[fault] = error
    workloads = tuple(WorkloadToCreate(i, f"h+f+w{i}", str(file), None, Parameters(), 1, 4096) for i in range(3))
    refused = await talk.ask(m.CreateWorkloads, workloads=workloads)
    assert isinstance(refused, m.Refused)
    places = {"file": str(file), **luns.luns[0].attributes}
    assert refused.refusals == (Refusal(what.format_map(places), reason.format_map(places)),)
    created = [word for word in talk.engine.did if word.startswith("create")][: -1 if fault == "create 1" else None]
    assert len([word for word in talk.engine.did if word.startswith("delete")]) == len(created)
    opened = len([w for w in talk.engine.did if w.startswith("open_lun")]) - (fault == "open_lun")
    assert len([w for w in talk.engine.did if w.startswith("close_lun")]) == opened
    talk.engine.faults.clear()
    assert isinstance(await talk.ask(m.CreateWorkloads, workloads=workloads), m.Ok)


async def test_an_engine_that_does_not_start_is_reported(talk: Conversation, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_engine(backend: str, cpus: list[int]) -> Any:
        raise OSError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(talk.slave, "_new_engine", no_engine)
    await talk.hear()
    assert await talk.ask(m.Prepare, engine=EngineOptions("null", 1), lease_ns=10**11) == m.Refused(
        1, (Refusal("prepare", "the engine does not start: Resource temporarily unavailable"),)
    )


async def test_a_step_that_does_not_start_is_reported_and_may_be_tried_again(talk: Conversation, file: Path) -> None:
    talk.engine.faults["go"] = OSError(errno.EAGAIN, "workload thread 0 needs 9 asynchronous I/Os")
    with pytest.raises(AssertionError, match="the engine cannot start: workload thread 0 needs 9"):
        await talk.run(file)
    talk.engine.faults.clear()
    start = now_ns() + 500_000_000
    assert isinstance(await talk.ask(m.Go, start_ns=start, length_ns=10_000_000, order=u32(0), classes=u32(0)), m.Ready)


@pytest.mark.parametrize("where", ["edit", "continue"])
async def test_an_exception_becomes_dying_words(
    where: str, talk: Conversation, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await talk.run(file)
    talk.engine.faults = {"edit": RuntimeError("staged"), "place_boundary": RuntimeError("staged")}  # type: ignore[dict-item]
    if where == "edit":
        words = await talk.ask(m.EditWorkloads, edit=1, settings=(Setting(0, Parameters(iops=5.0)),))
    else:
        words = await talk.ask(m.Continue, subinterval=1, boundary_ns=1)
    assert isinstance(words, m.DyingWords)
    assert words.words.startswith("the slave failed: RuntimeError: staged (fake_engine.py:")
    assert await talk.code == Exit.FAILED
    assert "Traceback" in capsys.readouterr().err


async def test_a_lease_that_ran_out_in_a_step_is_not_renewed_and_one_between_steps_is(
    talk: Conversation, file: Path
) -> None:
    await talk.run(file)
    driving = talk.slave._engine_commands
    assert driving is not None
    driving._lease_until_ns = talk.engine.lease_ns = now_ns() - 1
    before = talk.engine.lease_ns
    await talk.ask(m.ClockProbe, newest_stamp_ns=now_ns())
    assert talk.engine.lease_ns == before
    talk.engine.ends.append(ended("lease"))
    talk.engine.spoke()
    assert isinstance(await talk.hear(), m.Stopped)
    heard = now_ns()
    assert isinstance(await talk.ask(m.ClockProbe, newest_stamp_ns=heard), m.ClockReading)
    assert talk.engine.lease_ns == heard + 10**11


async def test_the_lease_runs_from_what_a_probe_proves_and_never_backwards(talk: Conversation, file: Path) -> None:
    await talk.run(file)
    begun = talk.engine.lease_ns
    for heard, proves in ((0, 0), (begun - 10**11 - 1, 0), (1 << 62, 0), (begun - 10**11 + 5, 5)):
        before = now_ns()
        command = m.Continue if proves else m.ClockProbe
        more = {"subinterval": 2, "boundary_ns": before + 10**9} if proves else {}
        await talk.ask(command, newest_stamp_ns=heard, **more)
        if heard == 1 << 62:  # a stamp of the future proves no more than now
            assert before + 10**11 <= talk.engine.lease_ns <= now_ns() + 10**11
            talk.slave._engine_commands._lease_until_ns = talk.engine.lease_ns = begun  # type: ignore[union-attr]
        else:
            assert talk.engine.lease_ns == begun + proves


def has_attributes(file: Path) -> bool:
    with open(file, "rb") as there:
        return note(there.fileno(), "user.ivypy.test", b"x")


def as_the_engine_does(file: Path) -> None:
    file.write_bytes(b"y" * 8192)


async def test_notes_of_files_are_set_and_reported_whatever_happens_to_the_others(
    talk: Conversation, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_attributes(file):
        pytest.skip("its filesystem has no user attributes")

    def fails(self: CreatedFiles, written: object) -> list[str]:
        raise RuntimeError("it changed")

    monkeypatch.setattr(CreatedFiles, "settle", fails)
    consent = agreed(str(file))
    await talk.run(file, consent)
    as_the_engine_does(file)
    talk.slave.end(Exit.COMMANDED, "goodbye", 9, clean=True)
    words = await talk.hear()
    assert isinstance(words, m.DyingWords) and not words.clean
    assert words.words == "goodbye; the notes on files that it wrote failed: RuntimeError: it changed"
    assert agreed(str(file)) == consent


async def test_files_that_could_not_be_noted_are_named(
    talk: Conversation, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_changes, "put", lambda fd, name, value: False)
    await talk.run(file, agreed(str(file)))
    as_the_engine_does(file)
    talk.slave.end(Exit.COMMANDED, "goodbye", 9, clean=True)
    words = await talk.hear()
    assert isinstance(words, m.DyingWords) and not words.clean
    assert f"it could not be noted that only ivypy wrote {file}" in words.words


def test_the_controller_waits_longer_than_a_slave_cleans_up() -> None:
    assert CLEAN_UP_S < GOODBYE_S
