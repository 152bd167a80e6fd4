"""Merges a step's results where they arrive: in the controller, or in the driver process that holds the host.

Rule: the interval is the same wherever its hosts are added up. The sum of a driver process is fetched when barrier 1
closes, for exactly the hosts whose results the controller took. If the process has ended, the controller adds them up:
it has their compressed streams.
"""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence

from ....protocol.messages import Result
from ...drivers.controller_side import DriverProcess, ProcessGone, RemoteDriver
from ...hosts.driver import Driver
from ...rollup.decode_result import whole
from ...rollup.instances import Rollups
from ...rollup.merge import MergedSubinterval, Merger


class StepMerge:
    """`open` a subinterval, `add` each host's result, `close` it."""

    def __init__(self, rollups: Rollups, order: Mapping[str, Sequence[int]], drivers: Iterable[Driver]) -> None:
        """`order`: per host the workload instances that take part in the step. `drivers`: of these hosts."""
        self._merger = Merger(rollups, order)
        self._remote: dict[DriverProcess, dict[str, Result]] = {}  # what each process has of the open subinterval
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
        self._remote.setdefault(driver.process, {})[driver.name] = result

    def check(self, driver: Driver, result: Result) -> None:
        """Raises ProtocolError if one host's result does not fit, whichever subinterval it is of."""
        if isinstance(driver, RemoteDriver):
            driver.check(result)
        else:
            self._merger.check(driver.name, result)

    async def close(self, part: Collection[str]) -> MergedSubinterval:
        """The subinterval. `part`: the hosts that take part in it."""
        subinterval, asked = self._merger.subinterval, list(self._remote.items())
        answers = await asyncio.gather(
            *(process.sum(subinterval, frozenset(hosts)) for process, hosts in asked), return_exceptions=True
        )
        for (_, results), total in zip(asked, answers, strict=True):
            if isinstance(total, ProcessGone):
                for host, result in results.items():
                    self._merger.add_noted(host, whole(result))
            elif isinstance(total, BaseException):
                raise total
            else:
                self._merger.put(total)
        return self._merger.close(part)
