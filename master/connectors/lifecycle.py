"""Starts the connectors of a run, asks each what there is, and closes them at its end.

Rule: a connector that the plan names has to start, unless it is not `required`; the faults of all of them are raised
together. After that nothing that one does ends a run. One that is gone is started again before the next step.
"""

import asyncio
import shlex
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from ...protocol.connector import ConnectorConfig, ConnectorHello
from ...protocol.payload import Attribute
from ..errors import HostFault, HostsError
from ..hosts import subprocess_pipe
from ..hosts.controller_lag import ControllerLag
from ..hosts.driver import Driver
from ..hosts.errors import HostUnusable
from ..hosts.host_spec import Launcher
from ..hosts.login_throttle import LoginThrottle
from ..hosts.pipe import Pipe
from ..rollup.instances import Rollups
from .catalog import Catalog
from .connector_driver import ConnectorDriver
from .connector_spec import ConnectorSpec
from .element_figures import Connected, metric_name
from .errors import ConnectorFault
from .gatherer import Gatherer
from .gathering import Gathering
from .host_readings import HostElements
from .joined_luns import JoinedLuns, shown
from .membership import ALL_HOSTS, Membership

CONFIG_S: Final = 30.0  # from the start of its process to its config
OPTIONAL_S: Final = 10.0  # the same for one that is not required
FIND_S: Final = 10.0  # for a test host to find what its LUNs are on
HANGS_S: Final = 10.0  # without an answer, between two steps

Launch = Callable[[ConnectorSpec, Callable[[str], None]], Awaitable[Pipe]]  # a connector and its log -> its pipe
Event = Callable[[str, str, str], None]  # kind, text, host


def launcher(throttle: LoginThrottle) -> Launch:
    """Starts programs where the plan says."""

    async def launch(spec: ConnectorSpec, log: Callable[[str], None]) -> Pipe:
        words = [*spec.host.command, *spec.program]
        log(f"-> {shlex.join(words)}")
        if spec.host.launcher is Launcher.SSH:
            from ..hosts import ssh_pipe  # a fifth of a second, for ssh alone

            return await ssh_pipe.start(spec.host, words, throttle, log)
        return await subprocess_pipe.start(spec.name, words, log)

    return launch


@dataclass(slots=True)
class _RunningConnector:
    """A connector that was started; `driver` is another one once it was started again."""

    spec: ConnectorSpec
    driver: ConnectorDriver
    hello: ConnectorHello
    config: ConnectorConfig
    catalog: Catalog
    joined: JoinedLuns


class Connectors:
    """Those of a run; made by `opened`."""

    def __init__(self, launch: Launch | None, log: Callable[[str], Callable[[str], None]], event: Event) -> None:
        """`launch`: None where this run has none. `log`: of a connector, by its name."""
        self._launch = launch
        self._log = log
        self._event = event
        self._running: list[_RunningConnector] = []
        self._drivers: list[ConnectorDriver] = []  # all whose process may still be there
        self._gatherers: list[Gatherer] = []
        self._hosts: HostElements | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._lag: ControllerLag | None = None

    async def start(self, specs: Iterable[ConnectorSpec], lag: ControllerLag) -> None:
        """Start these, all at once. Raises HostsError."""
        self._lag = lag
        if self._launch is None:
            return
        wanted = list(specs)
        outcomes = await asyncio.gather(*(self._one(spec) for spec in wanted), return_exceptions=True)
        faults = []
        for spec, outcome in zip(wanted, outcomes, strict=True):
            if isinstance(outcome, _RunningConnector):
                self._running.append(outcome)
            elif isinstance(outcome, ConnectorFault):
                if spec.required:
                    remedy = outcome.remedy or f"see log/{spec.log_name}.log, or set `required: false`"
                    faults.append(HostFault(f"connector {spec.name}", outcome.what, remedy))
                else:
                    self._event("connector", f"the connector {spec.name} is not there: {outcome}", "")
            elif isinstance(outcome, BaseException):
                raise outcome
        if faults:
            raise HostsError(faults)

    async def begin_on_hosts(
        self, spec: ConnectorSpec, luns: Mapping[str, Sequence[str]], drivers: Collection[Driver]
    ) -> None:
        """Have the test hosts be the connector `spec`. `luns`: by test host, those that the run drives there."""
        self._hosts = HostElements(spec, luns, lambda text, host: self._event("connector", text, host))
        await self._find(drivers)

    async def find_on_new_hosts(self, drivers: Collection[Driver]) -> None:
        """Before a step on these hosts: ask those that were connected again what they have."""
        if self._hosts is not None:
            await self._find(drivers)

    async def _find(self, drivers: Collection[Driver]) -> None:
        assert self._hosts is not None and self._lag is not None
        await self._hosts.find(drivers, self._lag.deadline(FIND_S))

    async def restart(self, interrupted: asyncio.Event) -> None:
        """Before a step: start those again that are gone, or hang, unless the run is interrupted meanwhile."""
        for connector in self._running:
            if connector.driver.unanswered_s > HANGS_S:
                connector.driver.give_up(f"it has not answered for {connector.driver.unanswered_s:.0f} s")
        gone = [connector for connector in self._running if connector.driver.gone is not None]
        if not gone:
            return
        again = [asyncio.ensure_future(self._again(connector)) for connector in gone]
        interrupt = asyncio.ensure_future(interrupted.wait())
        everyone = asyncio.ensure_future(asyncio.wait(again))
        try:
            await asyncio.wait((everyone, interrupt), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (interrupt, everyone, *again):
                task.cancel()
            await asyncio.wait(again)
        for connector, task in zip(gone, again, strict=True):
            if not task.cancelled():
                self._event("connector", f"the connector {connector.spec.name} {task.result()}", "")

    def attributes(self, host: str, lun: Mapping[str, Attribute]) -> dict[str, Attribute]:
        """The attributes that connectors add to a LUN with these attributes; its own ones stay."""
        added: dict[str, Attribute] = {}
        for one in self._running:
            added |= {name: shown(values) for name, values in one.joined.of_lun(host, lun).items()}
        return {name: value for name, value in added.items() if name not in lun}

    @property
    def metrics(self) -> Mapping[str, Collection[str]]:
        """The full names of the metrics of each connector, by its name in the plan."""
        of_hosts = {} if self._hosts is None else {self._hosts.name: self._hosts.metrics}
        return of_hosts | {
            one.spec.name: frozenset(metric_name(one.spec.name, metric) for metric in one.config.metrics)
            for one in self._running
        }

    def described(self) -> dict[str, dict[str, Any]]:
        """Which programs these are, by title: for run.json."""
        of_hosts: dict[str, dict[str, Any]] = {}
        if self._hosts is not None:
            of_hosts[self._hosts.name] = {"elements": self._hosts.element_types}
        return of_hosts | {
            connector.spec.name: {
                "program": connector.hello.name,
                "version": connector.hello.version,
                "elements": sorted({metric.element for metric in connector.config.metrics}),
            }
            for connector in self._running
        }

    def gathering(self, rollups: Rollups) -> Gathering:
        """Return the gathering from them in a step of these rollups."""
        if self._lag is None:
            return Gathering((), ())
        connected = [
            Connected(one.spec.name, one.catalog, Membership({ALL_HOSTS: one.joined}, rollups, {}))
            for one in self._running
        ]
        if not self._gatherers:
            self._gatherers = [Gatherer(one.spec, one.driver, one.catalog, self._lag) for one in self._running]
        of_hosts = None if self._hosts is None else self._hosts.connected(rollups)
        return Gathering(self._gatherers, [*connected, *([of_hosts] if of_hosts is not None else [])], self._hosts)

    async def close(self) -> None:
        await asyncio.gather(*(driver.close() for driver in self._drivers))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _one(self, spec: ConnectorSpec) -> _RunningConnector:
        """Raises ConnectorFault."""
        driver = await self._driver(spec)
        try:
            hello, config = await self._config(spec, driver, CONFIG_S if spec.required else OPTIONAL_S)
            return _RunningConnector(
                spec, driver, hello, config, Catalog(config.metrics), JoinedLuns(spec, config.facts)
            )
        except BaseException:
            await self._close(driver)
            raise

    async def _again(self, connector: _RunningConnector) -> str:
        """How it went, for people."""
        await self._close(connector.driver)  # it may be gone for what it sent, and its process still there
        try:
            driver = await self._driver(connector.spec)
        except ConnectorFault as error:
            return f"is gone, and was not started again: {error}"
        try:
            _, config = await self._config(connector.spec, driver, OPTIONAL_S)
            if config.metrics != connector.config.metrics:
                raise ConnectorFault("it has other metrics now")
        except BaseException as error:
            await self._close(driver)
            if isinstance(error, ConnectorFault):
                return f"is gone, and was not started again: {error}"
            raise
        connector.driver = driver
        for gatherer in self._gatherers:
            if gatherer.spec is connector.spec:
                gatherer.driver = driver
        return "was started again"

    async def _driver(self, spec: ConnectorSpec) -> ConnectorDriver:
        assert self._launch is not None and self._lag is not None
        log = self._log(spec.log_name)
        try:
            pipe = await self._launch(spec, log)
        except HostUnusable as error:
            raise ConnectorFault(error.fault.what, error.fault.remedy) from None
        notice = lambda text: self._event("connector", f"{spec.name}: {text}", "")  # noqa: E731
        driver = ConnectorDriver(pipe, self._lag.now_ns, log, notice)
        self._drivers.append(driver)
        self._begin(driver.drive())
        return driver

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _close(self, driver: ConnectorDriver) -> None:
        await driver.close()
        if driver in self._drivers:
            self._drivers.remove(driver)

    async def _config(
        self, spec: ConnectorSpec, driver: ConnectorDriver, within_s: float
    ) -> tuple[ConnectorHello, ConnectorConfig]:
        try:
            async with asyncio.timeout(within_s):
                hello = await driver.hello()
                config = await driver.config(())
        except TimeoutError:
            raise ConnectorFault(f"it sent no config within {within_s:g} s") from None
        return hello, config


@asynccontextmanager
async def opened(
    launch: Launch | None, log: Callable[[str], Callable[[str], None]], event: Event
) -> AsyncIterator[Connectors]:
    """The connectors of a run, closed at the end."""
    async with AsyncExitStack() as stack:
        connectors = Connectors(launch, log, event)
        stack.push_async_callback(connectors.close)
        yield connectors
