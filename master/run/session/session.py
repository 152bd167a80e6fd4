"""`ivypy.Session`: a run whose steps a Python program decides, one after the other.

Rule: a thin layer over Run, in two forms: `Session` is what to run, `OpenSession` is the run on its hosts. A program's
steps are read, checked and recorded like a plan's own, and its edits act like `ivypy edit`. Results are plain data.
"""

import asyncio
import math
import os
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Never

from ...connectors.lifecycle import launcher
from ...errors import PlanError, StoppedError
from ...hosts.bundle import slave_bundles
from ...hosts.login_throttle import LoginThrottle
from ...live.reports import Nobody, RunStatus, Watcher
from ...live.socket_messages import Changed
from ...live.socket_server import process
from ...output.record_types import SummaryRecord
from ...plan.model import Plan
from ...rollup.instances import Rollups
from ...rollup.metrics import METRICS, column
from ...verdicts import Scope
from ..edits.edit_parser import is_relative
from ..record.step_result import StepResult
from ..setup.connect import Opener, opener
from ..setup.resolve_settings import NotMeasured
from .program_steps import PROBE, Script, open_script
from .run import Options, Run
from .session_result import Known, SessionResult
from .signals import Interrupts
from .step_runner import StepRunner


class Session:
    """A run whose steps a program decides: `async with ivypy.Session(plan) as session` gives an OpenSession.

    `plan` is a path, the text of a plan, or the same as a dict; what its `steps:` could do is the most that the program
    may do, and they are not run. `root` holds the run's folder, `destroy` is the token of `ivypy devices`, `defines`
    are as from -D.
    Raises PlanError for a plan that cannot be run; opening raises IvypyError.
    """

    def __init__(
        self,
        plan: Plan | Path | str | Mapping[str, Any],
        *,
        root: Path | str = "runs",
        destroy: str | None = None,
        defines: Mapping[str, str] | None = None,
        watcher: Watcher | None = None,
        opening: Opener | None = None,
    ) -> None:
        """`watcher` gets the reports; `opening` opens the pipes to hosts, by default as the plan says."""
        self._plan, self._script = open_script(plan, defines or {})
        self._options = Options(Path(root), destroy, tuple(sys.argv))
        self._watcher = watcher or Nobody()
        self._opening = opening
        self._until = AsyncExitStack()

    async def open(self) -> "OpenSession":
        """Open it without `async with`, as in a notebook; its `close` ends the run."""
        return await self.__aenter__()

    async def __aenter__(self) -> "OpenSession":
        bundles, throttle = slave_bundles(), LoginThrottle()
        opening = self._opening or opener(bundles, throttle)
        launch = launcher(throttle) if self._opening is None else None
        task = asyncio.current_task()
        assert task is not None  # a coroutine runs in a task
        presses = Interrupts(task.cancel)
        run = Run(self._plan, self._options, self._watcher, presses, opening, launch)
        try:
            steps = await self._until.enter_async_context(run.opened())
        except asyncio.CancelledError:
            if not presses.count or task.uncancel():
                raise  # somebody else's, who wants the program's task to end
            raise StoppedError(f"the run was stopped while it was opening; see {run.folder}") from None
        return OpenSession(self._script, run, steps, self._until)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._until.__aexit__(kind, error, trace)

    def __getattr__(self, name: str) -> Never:
        raise AttributeError(f"no {name!r}: the session is not open; use `async with ivypy.Session(...) as session`")


class OpenSession:
    """A run on its hosts, to the end of the `async with`.

    Every method that fails raises IvypyError and changes nothing. Afterwards only `folder` and `status` are of use.
    """

    def __init__(self, script: Script, run: Run, steps: StepRunner, until: AsyncExitStack) -> None:
        self._script = script
        self._run = run
        self._steps = steps
        self._until = until
        self._me = process(os.getpid(), os.geteuid())

    @property
    def folder(self) -> Path:
        """The run folder."""
        return self._run.folder

    @property
    def status(self) -> RunStatus:
        """The run's status, as `ivypy status` prints it."""
        return self._run.api.standing()

    async def go(self, name: str, **how: Any) -> SessionResult:
        """Run one step. `how` are the keys of a plan's `go`: warmup="10s", measure="1m", control={...}."""
        if self._run.api.running is not None:
            raise PlanError(f"step {name!r}: another step is running; wait for its result first")
        entry = {"go": {"name": name, **how}}
        plan, step = self._script.read(entry)
        if step.loop:
            raise PlanError(f"step {name!r}: a program makes its own loops; leave 'loop' out")
        if step.control.rounds is not None:
            raise PlanError(f"step {name!r}: a program makes its own rounds; leave 'rounds' out")
        await self._steps.rejoin()
        if not self._steps.goes_on():
            raise PlanError(f"step {name!r}: the run was stopped, or no host is left")
        self._steps.replan(plan)
        with suppress(NotMeasured):  # a step that cannot be run is a result, which says why
            self._steps.parameters_of(step)
        self._script.entries.append(entry)
        await self._steps.program(self._script.entries)
        return result_of(await self._steps.step(step), self._steps.rollups)

    async def edit(self, clause: str, *, force: bool = False, **settings: Any) -> Changed | None:
        """Change settings of the rollup instances that `clause` names ("all=all", "host={h1,h2}").

        While a step runs, this does the same as `ivypy edit`: the change lasts until the end of the step, and is
        returned. Between steps it is an edit as in plans, valid for all following steps; returns None.
        """
        if self._run.api.running is not None:
            words = [clause, *(f"{name}={value}" for name, value in settings.items())]
            return await self._run.api.edit(words, force, self._me)
        relative = [name for name, value in settings.items() if is_relative(str(value))]
        if relative:
            raise PlanError(f"{relative[0]}: {settings[relative[0]]!r} is relative, and needs a running step")
        entry = {"edit": {"rollup": clause, "set": settings}}
        plan, step = self._script.read(entry, {"go": {"name": PROBE}})
        self._steps.replan(plan)
        try:
            self._steps.parameters_of(step)
        except NotMeasured as error:
            raise PlanError(f"{clause}: {error}") from None
        self._script.entries.append(entry)
        return None

    async def pause(self) -> Changed:
        """Stop all I/O of the running step until `unpause`."""
        return await self._run.api.pause(self._me)

    async def unpause(self) -> Changed:
        return await self._run.api.unpause(self._me)

    def mark(self, text: str) -> None:
        """Write `text` into events.csv."""
        self._run.api.mark(text, self._me)

    def skip(self) -> None:
        """End the running step with what it has measured."""
        self._run.api.skip(self._me)

    async def close(self) -> None:
        """End the run, as the end of the `async with` does."""
        await self._until.aclose()

    def stop(self) -> None:
        """Halt the running step, and begin no other. The result is of its complete subintervals."""
        self._run.api.stop(self._me)


def result_of(result: StepResult, rollups: Rollups) -> SessionResult:
    """A step's result as plain data."""
    ends = result.ends
    figures = [_figures(record, rollups) for record in result.records]
    verdicts = [_verdicts(record, rollups) for record in result.records]
    measured = tuple(
        SessionResult(one.name, str(one.verdict), tuple(map(str, one.findings)), own, verdicts=against)
        for one, own, against in zip(ends.measured, figures, verdicts, strict=True)
    )
    standing = result.records.index(result.standing)
    return SessionResult(
        ends.name, str(ends.verdict), tuple(map(str, ends.findings)), figures[standing], measured, verdicts[standing]
    )


def _verdicts(record: SummaryRecord, rollups: Rollups) -> Mapping[str, Mapping[str, str]]:
    scoped = record.validity.scope_verdict
    return Known(
        {str(one): Known({str(scope): str(scoped(one.row, scope)) for scope in Scope}) for one in rollups.rows}
    )


def _figures(record: SummaryRecord, rollups: Rollups) -> Mapping[str, Mapping[str, float | None]]:
    figures = record.figures
    columns = {name: column(figures, name).tolist() for name in METRICS} if figures else {}
    return Known({str(one): Known({name: _known(columns, name, one.row) for name in METRICS}) for one in rollups.rows})


def _known(columns: Mapping[str, list[float]], name: str, row: int) -> float | None:
    value = columns[name][row] if columns else math.nan
    return None if math.isnan(value) else float(value)
