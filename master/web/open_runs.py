"""All runs that the server knows, and those of them that are open."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from ..pages.run_data import RunData
from .answers import WebAnswer, encoded
from .open_run import OpenRun
from .run_index import RunIndex, run_data

MOST_OPEN: Final = 16  # runs that nobody follows
THREADS: Final = 4
LISTED_S: Final = 1.0  # a list of runs that is not older is shared


class OpenRuns:
    """Holds the open runs, the one used last at the end."""

    def __init__(self, roots: Sequence[Path], opened: Callable[[Path], RunData], control: bool) -> None:
        self._index = RunIndex(roots)
        self._opened = opened
        self._control = control
        self._executor = ThreadPoolExecutor(THREADS, "ivypy-web")
        self._runs: OrderedDict[str, OpenRun] = OrderedDict()
        self._lock = asyncio.Lock()  # of the index and the list
        self._listed: tuple[float, WebAnswer] | None = None

    async def list(self) -> WebAnswer:
        """Of /api/runs."""
        async with self._lock:
            if self._listed is None or time.monotonic() - self._listed[0] > LISTED_S:
                answer = await asyncio.get_running_loop().run_in_executor(self._executor, self._list)
                self._listed = time.monotonic(), answer
            return self._listed[1]

    async def folder(self, run: str) -> Path:
        """Raises KeyError."""
        async with self._lock:
            return await asyncio.get_running_loop().run_in_executor(self._executor, self._index.folder, run)

    async def open(self, run: str) -> OpenRun:
        """Raises KeyError for what is no run, or one no more."""
        folder = await self.folder(run)
        if run not in self._runs:
            self._runs[run] = OpenRun(run, folder, self._opened, self._executor)
            idle = [one for one in self._runs.values() if not one.readers]
            for one in idle[:-MOST_OPEN]:
                del self._runs[one.id]
        self._runs.move_to_end(run)
        return self._runs[run]

    def close(self) -> None:
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _list(self) -> WebAnswer:
        entries = self._index.entries(datetime.now(UTC))
        runs = [run_data(run, entry) for run, entry in entries]
        data: dict[str, Any] = {"runs": runs, "not_read": sorted(self._index.faults), "control": self._control}
        return encoded(data)
