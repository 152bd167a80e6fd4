"""Status, edits, pause, mark and stop of a running test, for the socket, a signal and a program.

Rule: a request does the same whoever sends it, and writes a row of events.csv with the sender. A rejected request
changes nothing and writes nothing.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from ...control.observation import Phase
from ...hosts.driver import Driver
from ...live.reports import RunStatus
from ...live.socket_messages import (
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
    ViaRequest,
)
from ...live.socket_server import unknown_type
from ...output.csv_text import utc
from ...rollup.instances import Rollups
from ..edits.edit_parser import apply_edit, describe_change, parse_edit
from ..edits.edit_policy import check
from ..edits.edit_types import EditRefused
from ..edits.live_changes import ChangeResult
from ..edits.target_edit import names_target
from ..record.run_recorder import RunRecorder
from ..setup.baseline_step import Measured, References
from ..setup.discover_luns import PlacedPlan
from ..step.live_step import LiveStep
from .signals import STOP, Interrupts

MEASURING: Final = (Phase.RUN, Phase.TRANSIENT, Phase.DISTURBED)
NO_STEP = "no step is running; an edit changes a running step, and the next step starts with the plan's settings"


@dataclass(frozen=True, slots=True)
class RunningStep:
    """The step that runs, and what is needed to edit it."""

    number: int
    subinterval_s: float
    live: LiveStep
    discovered: PlacedPlan
    measured: Measured


class ControlApi:
    """Holds the step that runs."""

    def __init__(self, plan: str, recorder: RunRecorder, presses: Interrupts) -> None:
        self.running: RunningStep | None = None  # None: no step is
        self._drivers: Mapping[str, Driver] = {}  # of the hosts that take part, by name
        self._plan = plan
        self._recorder = recorder
        self._hub = recorder.hub
        self._presses = presses

    def shows(self, drivers: Mapping[str, Driver]) -> None:
        """Use these drivers for the status: those of the hosts that take part, by name, now and later."""
        self._drivers = drivers

    @contextmanager
    def editing(self, running: RunningStep) -> Iterator[None]:
        """Let this step be changed while the block runs."""
        self.running = running
        try:
            yield
        finally:
            self.running = None

    async def answer(self, request: Request, who: str) -> Answer:
        """Answer a client of the socket."""
        try:
            match request:
                case StatusRequest(by) | FollowRequest(by):
                    return unknown_type(by, self._hub.rollup_types) or self.standing(by)
                case EditRequest(words, force):
                    return await self.edit(words, force, who)
                case PauseRequest():
                    return await self.pause(who)
                case UnpauseRequest():
                    return await self.unpause(who)
                case MarkRequest(text):
                    return self.mark(text, who)
                case StopRequest():
                    return self.stop(who)
                case SkipRequest():
                    return self.skip(who)
                case ViaRequest():
                    return Done("noted")
        except EditRefused as refused:
            return Rejection(refused.reasons)

    def standing(self, by: str = "") -> RunStatus:
        """`by`: a rollup type whose instances are wanted too."""
        hub = self._hub
        return RunStatus(
            folder=str(self._recorder.path.absolute()),  # clients are in other folders
            plan=self._plan,
            pid=os.getpid(),
            step=hub.step,
            running=self.running is not None,
            paused=self.running is not None and self.running.live.changes.paused,
            last=hub.last,
            ended=tuple(hub.ended),
            hosts={name: driver.lost or "" for name, driver in self._drivers.items()},
            instances=hub.instances(by),
            so_far=hub.so_far,
        )

    async def edit(self, words: Sequence[str], force: bool, who: str) -> Changed:
        """Raises EditRefused."""
        running = self._running()
        discovered = running.discovered
        if names_target(words, discovered.rollups):
            return self._retarget(words, running, discovered.rollups, who)
        edit = parse_edit(words, discovered.rollups)
        references = References(running.measured)
        async with running.live.changes.changing() as present:
            after = apply_edit(edit, present.parameters, references, discovered.placement)
            check(after, present, discovered, force)
            result = await running.live.changes.send(after, f"{edit.words}; by {who}")
        running.live.note(references.findings(result.first))
        return self._changed(running, result, "edit", f"{edit.words}: ", who)

    def _retarget(self, words: Sequence[str], running: RunningStep, rollups: Rollups, who: str) -> Changed:
        what = running.live.retarget(words, rollups, who)
        if what:
            self._event("edit", f"{' '.join(words)}: {what}; by {who}", running)
        return Changed(what, ())

    async def pause(self, who: str) -> Changed:
        """Raises EditRefused."""
        running = self._running()
        return self._changed(running, await running.live.changes.pause(), "pause", "", who)

    async def unpause(self, who: str) -> Changed:
        """Raises EditRefused."""
        running = self._running()
        return self._changed(running, await running.live.changes.unpause(), "unpause", "", who)

    def mark(self, text: str, who: str) -> Done:
        """A row of events.csv. Raises EditRefused."""
        line = " ".join(text.split())
        if not line:
            raise EditRefused(["the mark is empty; give the text for events.csv"])
        self._event("mark", f"{line}; by {who}")
        return Done("marked in events.csv")

    def stop(self, who: str) -> Done:
        """As the first Ctrl-C. Raises EditRefused."""
        if self._presses.count:
            raise EditRefused(["the run is being stopped already"])
        self._event("stop", f"by {who}")
        self._presses.press(STOP)
        return Done("the I/O is halted; the run writes the results so far and ends")

    def skip(self, who: str) -> Done:
        """End the running step with what it has measured. Raises EditRefused."""
        running = self._running()
        running.live.skip(who)
        self._event("skip", f"by {who}", running)
        return Done("the step ends with its running subinterval, with what it has measured; the run goes on")

    def _running(self) -> RunningStep:
        if self.running is None:
            raise EditRefused([NO_STEP])
        return self.running

    def _changed(self, running: RunningStep, result: ChangeResult, kind: str, prefix: str, who: str) -> Changed:
        what = describe_change(result.before, result.after)
        took = []
        for host in sorted(result.effective.keys() | result.failed.keys()):
            if host in result.failed:
                took.append(HostAnswer(host, "", 0, result.failed[host]))
                continue
            subinterval, at_ns = result.effective[host]
            took.append(HostAnswer(host, utc(self._recorder.clock.utc_ns(at_ns)), subinterval, ""))
        discarded = f"; {result.discarded:,} overdue I/Os were discarded" if result.discarded else ""
        if what:
            self._event(kind, f"{prefix}{what}{discarded}; by {who}", running, result)
        for one in took:
            if one.failed:
                self._event(kind, f"not applied: {one.failed}", running, host=one.host)
        acts = bool(what) and kind != "pause"  # after a pause nobody knows when the step goes on
        remaining = running.live.remaining_if_edited(result.first) if acts else None
        remaining_s = None if remaining is None else (remaining + 1) * running.subinterval_s  # with the running one
        last = self._hub.last
        restarts = acts and (remaining is not None or (last is not None and last.phase in MEASURING))
        return Changed(what, tuple(took), result.discarded, restarts, remaining_s)

    def _event(
        self,
        kind: str,
        text: str,
        running: RunningStep | None = None,
        result: ChangeResult | None = None,
        host: str = "",
    ) -> None:
        """A row of events.csv and a line for whoever watches; of a change, at the instant when all hosts had it."""
        at_ns: int | None = None
        subinterval: int | None = self._hub.subinterval
        if result is not None and result.effective:
            subinterval = result.first
            at_ns = max(effective for _, effective in result.effective.values())
        running = running or self.running
        step, subinterval = (running.number, subinterval) if running else (None, None)
        self._recorder.event(kind, text, host, step, subinterval, at_ns, shown=f"{kind}: {text}")
