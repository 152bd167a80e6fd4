"""Sends a step's commands to its hosts once they run (step_start.py starts them): at barrier 2 of each subinterval the
edits of control and `continue`, in the end `stop` or `halt`.

Rule: a command to all hosts goes out at once, and its answers are awaited until the next subinterval ends, no longer.
"""

import asyncio
from collections.abc import Container, Iterable, Sequence
from typing import Final

from ....protocol.messages import Continue, Cooldown, Halt, Stop
from ....protocol.states import State as HostState
from ...control.decision import Decision, LoadEdit
from ...hosts.controller_lag import ControllerLag, Deadline
from ...hosts.driver import DRIVING, Driver, barrier
from ..edits.live_changes import LiveChanges
from ..setup.resolve_settings import steered
from .boundaries import Boundaries
from .step_context import StepContext
from .step_hosts import StepHosts
from .step_states import NEVER, PATIENCE

HALTING_S: Final = 1.0  # for answers to `halt`
SHORTEST_ANSWER_S: Final = 0.1  # beyond two round trips, for answers in barrier 2 when the decision is late


class StepCommands:
    """Sends one step's commands: `follow` after each decision, and `halt` at any time."""

    def __init__(self, context: StepContext, hosts: StepHosts, boundaries: Boundaries, changes: LiveChanges) -> None:
        self._fleet, self._rollups, self._recorder = context.fleet, context.rollups, context.recorder
        self._progress, self._length_ns, self._cooldown = context.progress, context.length_ns, context.cooldown
        self._hosts = hosts
        self._boundaries = boundaries
        self._changes = changes
        self._unanswered: dict[Driver, int] = {}  # decisions that were not acknowledged, up to the last one
        self.last_loaded = NEVER  # the last subinterval under load, once `stop` names it

    async def follow(self, k: int, late: int, start_ns: int, decision: Decision, left_s: float) -> dict[Driver, int]:
        """Barrier 2: send what follows from the decision on subinterval `k`. Returns when each host acknowledged it.

        `late`: how many subintervals have ended since; `left_s`: until the next one ends; negative after a stall of the
        controller.
        """
        shortest_s = SHORTEST_ANSWER_S + 2 * farthest_s(self._hosts.part)
        deadline = self._fleet.lag.deadline(max(left_s, shortest_s), PATIENCE * self._length_ns / 1e9)
        async with asyncio.TaskGroup() as both:  # on its way to a host the edit is first, and holds up nothing
            both.create_task(self._steer(decision.edits, deadline))
            commanding = both.create_task(self._command(k, late, start_ns, decision.done, deadline))
        return commanding.result()

    async def halt(self) -> int:
        """Halt every host of the step that drives, all at once. Returns when that was."""
        return await self.halt_those(self._hosts.commanded)

    async def halt_those(self, drivers: Container[Driver]) -> int:
        """Halt these hosts, as far as they drive."""
        halted_ns = self._fleet.now_ns()
        self._progress.halt(halted_ns)
        self._changes.close("the run is being halted")
        self._recorder.event("", "halt", "no more I/O is submitted; waiting for I/Os in flight")
        for driver, reason in (await send_halt(self._hosts.in_order(drivers), self._fleet.lag)).items():
            self._hosts.lose(driver, f"not halted: {reason}", self._progress.running)
        return halted_ns

    async def _command(self, k: int, late: int, start_ns: int, done: bool, deadline: Deadline) -> dict[Driver, int]:
        async def command(driver: Driver) -> int:
            if done and self._cooldown:
                await driver.request(Cooldown, subinterval=self.last_loaded + 1)
            if done:
                await driver.request(Stop, last=self._progress.last)
            elif self._boundaries.has(driver):
                end_ns = driver.clock.to_local(start_ns + (k + 3) * self._length_ns)  # by the newest offset
                boundary_ns = self._boundaries.place(driver, k + 2, end_ns)
                await driver.request(Continue, subinterval=k + 2, boundary_ns=boundary_ns)
            return self._fleet.now_ns()

        if done:
            self.last_loaded = k + 1 + late
            self._progress.end_with(self.last_loaded + self._cooldown)
            self._changes.close("the step is ending; it runs without a measurement")
        hosts = self._hosts
        drivers = hosts.in_order(hosts.commanded)
        running = [driver for driver in drivers if driver.lost is None and driver.state is HostState.RUNNING]
        answers, failed = await barrier(running, command, deadline)
        for driver, reason in failed.items():
            if driver not in self._unanswered:
                why = f"no acknowledgement of the decision after subinterval {k}: {reason}"
                self._recorder.event(driver.name, "unanswered", why)
            self._unanswered[driver] = self._unanswered.get(driver, 0) + 1
        for driver in hosts.in_order(self._unanswered.keys() & answers.keys()):
            if (count := self._unanswered.pop(driver)) > 1:
                why = f"it acknowledged the decision after subinterval {k}; {count} before it were not"
                self._recorder.event(driver.name, "answered", why)
        return answers

    async def _steer(self, edits: Sequence[LoadEdit], deadline: Deadline) -> None:
        """Send control's edits to all hosts that drive."""
        if not edits:
            return
        measured, aside = self._hosts.taking_part, {driver.name for driver in self._hosts.aside}
        async with self._changes.steering() as parameters:
            changed = steered(edits, self._rollups, parameters, measured, aside)
            failed = await self._changes.steer(changed, deadline)
        for host, reason in failed.items():
            self._recorder.event(host, "edit", f"control's edit failed: {reason}")


def farthest_s(drivers: Iterable[Driver]) -> float:
    """The longest round trip."""
    return max((driver.round_trip_s for driver in drivers), default=0.0)


async def send_halt(hosts: Iterable[Driver], lag: ControllerLag) -> dict[Driver, str]:
    """Halt those that drive, all at once. Returns who has not answered in time, and why."""
    driving = [driver for driver in hosts if driver.state in DRIVING]
    _, failed = await barrier(driving, lambda driver: driver.request(Halt), lag.deadline(HALTING_S))
    return failed
