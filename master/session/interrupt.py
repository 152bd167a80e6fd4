"""Ctrl-C, three times: the first halts the run politely, the second gives up on the hosts, the third leaves.

Rule: the signal handler only sets things in motion in the loop; what a halt means is the session's. SIGTERM and
SIGHUP are a first press: nothing that ends the controller leaves I/O running. SIGHUP never is another one, since a
terminal that is closed sends it more than once; one that is ignored (nohup) stays so. SIGUSR1 asks how the run stands.
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

    def __init__(self, task: "asyncio.Task[Any] | None" = None) -> None:
        """`task` is cancelled by a press while there is nothing to halt."""
        self.count = 0
        self.status: Callable[[], None] | None = None  # shows how the run stands; None: there is none yet
        self._halt: Callable[[], None] | None = None  # None: there is nothing to halt yet
        self._task = task

    def halts(self, halt: Callable[[], None]) -> None:
        """From now on the first press does this instead; a press that came already does it now."""
        self._halt = halt
        if self.count:
            halt()

    def press(self) -> None:
        self.count += 1
        if self.count >= 3:
            os._exit(ExitCode.INTERRUPTED)
        if self.count == 1 and self._halt is not None:
            self._halt()
        elif self._task is not None:
            self._task.cancel()

    def hang_up(self) -> None:
        """The terminal is gone."""
        if not self.count:
            self.press()

    def ask(self) -> None:
        if self.status is not None:
            self.status()

    async def watch(self, main: Coroutine[Any, Any, Outcome]) -> Outcome:
        """Run `main` with the signals leading here. Raises click.Abort when a press ended it."""
        loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        signals = {
            signal.SIGINT: self.press,
            signal.SIGTERM: self.press,
            signal.SIGUSR1: self.ask,
        }
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            signals[signal.SIGHUP] = self.hang_up
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
