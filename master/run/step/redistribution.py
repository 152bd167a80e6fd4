"""`on_loss: redistribute`: what hosts that are lost were to drive, the others drive.

Rule: whatever rate a host without a part in the step is wanted to have, by the plan or by an edit, is shared over the
others, and then it is wanted to have none: so each is shared once, however it came to be. Not before its lease has
ended: until then it may still drive, and the storage would have its load twice. Not while the run is paused. It is an
edit from outside: the subinterval in which it acts is in no measurement, and rows say so.
"""

import asyncio
from collections.abc import Collection, Mapping

from ....protocol.parameters import Parameters
from ...rollup.instances import InstanceKey
from ...text.scaled import scaled_count
from ..edits.edit_types import EditRefused
from ..edits.live_changes import LiveChanges
from ..setup.resolve_settings import shared_anew
from .step_context import StepContext
from .step_hosts import StepHosts


class Redistribution:
    """Shares the load of hosts that a step lost, or began without."""

    def __init__(self, context: StepContext, hosts: StepHosts, changes: LiveChanges) -> None:
        self._context, self._hosts, self._changes = context, hosts, changes
        self._sending: asyncio.Task[None] | None = None

    def follow(self) -> None:
        """Begin to share what is there to share. Call it once a subinterval.

        Raises OutputError where what it did could not be written.
        """
        if self._sending is not None and self._sending.done():
            self._sending.result()
            self._sending = None
        if not self._context.redistributes or self._sending is not None:
            return
        if (lost := self._lost()) and self._to_share(lost):
            self._sending = asyncio.create_task(self._share())

    async def end(self) -> None:
        """Give up what is under way: the step is over."""
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.gather(self._sending, return_exceptions=True)

    def _lost(self) -> Collection[str]:
        """The hosts that drive nothing in this step, and will not."""
        commanded = {driver.name for driver in self._hosts.commanded}
        return {*self._context.rollups.hosts()} - commanded - self._context.fleet.may_drive().keys()

    def _to_share(self, lost: Collection[str]) -> Mapping[InstanceKey, Parameters]:
        """The changes of these hosts and of those that take part. The latter have all of what control sets already."""
        own = {key: one for key, one in self._changes.wanted.items() if key not in self._changes.steered}
        return shared_anew(own, self._context.rollups, lost, self._hosts.taking_part)

    async def _share(self) -> None:
        """While the run is paused it is refused, and begun again after the next subinterval."""
        try:
            async with self._changes.changing():
                lost = self._lost()
                shared, before = self._to_share(lost), dict(self._changes.wanted)
                gone = {key: one for key, one in shared.items() if key[0] in lost}
                names = ", ".join(sorted({host for host, _ in gone}))
                more = {key: one for key, one in shared.items() if key not in gone}
                await self._changes.send(more, f"the others drive the load of {names}, by on_loss")
                self._changes.release(gone)
        except EditRefused:
            return
        for host in sorted({host for host, _ in gone}):
            iops = sum(float(before[key].iops) for key in gone if key[0] == host)
            self._context.recorder.event(host, "redistributed", f"the others drive its {scaled_count(iops)} IOPS")
