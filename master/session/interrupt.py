"""Ctrl-C, three times: the first halts the run politely, the second gives up on the hosts, the third leaves.

Rule: the signal handler only sets things in motion in the loop; what a halt means is the session's. SIGTERM and
SIGHUP are a first press: nothing that ends the controller leaves I/O running. SIGUSR1 asks how the run stands.
"""

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import click

from ..verdicts import ExitCode

Outcome = TypeVar("Outcome")


class Presses:
    """Remembers how often the user pressed, and what the first press does at the moment."""

    def __init__(self) -> None:
        self.count = 0
        self.first: Callable[[], None] | None = None  # None: there is nothing to halt yet; the first press cancels
        self.status: Callable[[], None] | None = None  # shows how the run stands; None: there is none yet
        self._task: asyncio.Task[Any] | None = None

    def press(self) -> None:
        self.count += 1
        if self.count >= 3:
            os._exit(ExitCode.INTERRUPTED)
        if self.count == 1 and self.first is not None:
            self.first()
        elif self._task is not None:
            self._task.cancel()

    def ask(self) -> None:
        if self.status is not None:
            self.status()

    async def watch(self, main: Coroutine[Any, Any, Outcome]) -> Outcome:
        """Run `main` with the signals leading here. Raises click.Abort when a press ended it."""
        loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        signals = dict.fromkeys((signal.SIGINT, signal.SIGTERM, signal.SIGHUP), self.press)
        signals[signal.SIGUSR1] = self.ask
        for number, handler in signals.items():
            loop.add_signal_handler(number, handler)
        try:
            return await main
        except asyncio.CancelledError:
            if self.count:
                raise click.Abort() from None
            raise
        finally:
            for number in signals:
                loop.remove_signal_handler(number)


def run_until_pressed(main: Callable[[Presses], Coroutine[Any, Any, Outcome]]) -> Outcome:
    """Run a coroutine to its end, or to the user's."""
    presses = Presses()
    return asyncio.run(presses.watch(main(presses)))
