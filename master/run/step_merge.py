"""Merges a step's results where they arrive: in the controller, or in the driver process that holds the host.

Rule: the interval is the same wherever its hosts are added up. The sum of a driver process is fetched when barrier 1
closes, for exactly the hosts whose results the controller took.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from ...protocol.messages import Result
from ..drivers.controller_side import DriverProcess, ProcessGone, RemoteDriver
from ..hosts.driver import Driver
from ..rollup.instances import Rollups
from ..rollup.merge import MergedSubinterval, Merger


class StepMerge:
    """`open` a subinterval, `add` each host's result, `close` it."""

    def __init__(self, rollups: Rollups, order: Mapping[str, Sequence[int]], drivers: Iterable[Driver]) -> None:
        """`order`: per host the workload instances that take part in the step. `drivers`: of these hosts."""
        self._merger = Merger(rollups, order)
        self._remote: dict[DriverProcess, set[str]] = {}  # whose results of the open subinterval each process has
        self._hosts: dict[DriverProcess, list[str]] = {}
        for driver in drivers:
            if isinstance(driver, RemoteDriver):
                self._hosts.setdefault(driver.process, []).append(driver.name)
        self.begin()

    def begin(self) -> None:
        """Have driver processes expect the step's first subinterval."""
        for process, names in self._hosts.items():
            process.begin_step(self._merger.layout.places(names))

    def open(self, subinterval: int) -> None:
        """Begin with nothing merged."""
        self._remote = {}
        self._merger.open(subinterval)

    def add(self, driver: Driver, result: Result) -> None:
        """Merge one host's result. Raises ProtocolError, and changes nothing, if it does not fit or is out of turn."""
        if not isinstance(driver, RemoteDriver):
            self._merger.add(driver.name, result)
            return
        driver.check(result)
        self._merger.note(driver.name, result)
        self._remote.setdefault(driver.process, set()).add(driver.name)

    def check(self, driver: Driver, result: Result) -> None:
        """Raises ProtocolError if one host's result does not fit, whichever subinterval it is of."""
        if isinstance(driver, RemoteDriver):
            driver.check(result)
        else:
            self._merger.check(driver.name, result)

    async def close(self, part: Callable[[], Collection[str]]) -> tuple[MergedSubinterval, frozenset[str]]:
        """The subinterval; and the hosts whose results were lost with their driver process.

        `part`: the hosts that take part in it, asked when all is merged.
        """
        subinterval, asked = self._merger.subinterval, list(self._remote.items())
        answers = await asyncio.gather(
            *(process.sum(subinterval, frozenset(hosts)) for process, hosts in asked), return_exceptions=True
        )
        missing: set[str] = set()
        for (_, hosts), total in zip(asked, answers, strict=True):
            if isinstance(total, ProcessGone):
                missing |= hosts
                continue
            if isinstance(total, BaseException):
                raise total
            self._merger.put(total)
        for host in missing:
            self._merger.forget(host)
        return self._merger.close(frozenset(part()) - missing), frozenset(missing)
