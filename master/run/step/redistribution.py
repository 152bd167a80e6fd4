"""`on_loss: redistribute`: what a host that a step has lost was to drive, the others drive.

Rule: not before the lost host's lease has ended: until then it may still drive, and the storage would have its load
twice. It is an edit from outside: the subinterval in which it acts is in no measurement, and the rows say so.
"""

import asyncio
from collections.abc import Collection

from ....protocol.parameters import Parameters
from ...rollup.instances import InstanceKey
from ...text.scaled import scaled_count
from ..edits.edit_types import EditRefused
from ..edits.live_changes import LiveChanges
from ..setup.resolve_settings import shared_anew
from .step_context import StepContext
from .step_hosts import StepHosts


class Redistribution:
    """Keeps whose load the others of a step drive, or will."""

    def __init__(self, context: StepContext, hosts: StepHosts, changes: LiveChanges) -> None:
        """Those that do not take part were shared over the others before the step."""
        self._context, self._hosts, self._changes = context, hosts, changes
        self._lost: set[str] = set()
        self._load: dict[InstanceKey, Parameters] = {}  # what they were to drive
        self._shared: set[str] = set()
        self._sending: asyncio.Task[None] | None = None

    def follow(self) -> None:
        """Begin to share the load of hosts that were lost by now. Call it once a subinterval."""
        if not self._context.redistributes:
            return
        if new := self._hosts.lost - self._lost:
            wanted = self._changes.wanted()  # now: what is lost while paused has no rate afterwards
            self._load |= {key: one for key, one in wanted.items() if key[0] in new}
            self._lost |= new
        ready = self._lost - self._shared - self._context.fleet.may_drive().keys()
        if ready and (self._sending is None or self._sending.done()):
            self._sending = asyncio.create_task(self._share(ready))

    def end(self) -> None:
        if self._sending is not None:
            self._sending.cancel()

    async def _share(self, lost: Collection[str]) -> None:
        """While the run is paused it is refused, and tried again after the next subinterval."""
        try:
            async with self._changes.changing() as present:
                parameters = {**present.parameters, **self._load}
                # What control sets is of the hosts that are left already.
                own = {key: one for key, one in parameters.items() if key not in present.steered}
                shared = shared_anew(own, self._context.rollups, lost, self._hosts.taking_part)
                more = {key: float(one.iops) - float(present.parameters[key].iops) for key, one in shared.items()}
                names = ", ".join(sorted(lost))
                await self._changes.send(shared, f"the others drive the load of {names}, by on_loss")
        except EditRefused:
            return
        self._shared.update(lost)
        if shared:
            words = f"the others drive its {scaled_count(sum(more.values()))} IOPS"
            self._context.recorder.event(names, "redistributed", words)
