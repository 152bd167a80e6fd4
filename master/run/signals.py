"""Ctrl-C: the first press halts the run, the second gives up the hosts, the third exits at once.

Rule: a thread of its own reads the signals, so the third press works whatever the event loop does; the first two only
start something in the loop. SIGTERM and SIGHUP count as a first press: nothing that ends the controller leaves I/O
running. SIGHUP never counts as a second press, because a closing terminal sends it more than once; an ignored SIGHUP
(nohup) stays ignored. SIGUSR1 prints the run's status.

Once the run has its exit code, a press only ends the wait for a console that nobody reads.
"""

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final, TypeVar

import click

from ..errors import IvypyError
from ..verdicts import ExitCode

LEAVES: Final = 3  # presses

Outcome = TypeVar("Outcome")


class Interrupts:
    """State: how often the user pressed, and what the first press does at the moment."""

    def __init__(self, task: "asyncio.Task[Any] | None" = None) -> None:
        """`task` is cancelled by a press while there is nothing to halt."""
        self.count = 0
        self._earned: ExitCode | None = None  # the command's exit code, once all but the console is done
        self._status: Callable[[], None] = lambda: None
        self._halt: Callable[[], None] | None = None  # None: there is nothing to halt yet
        self._task = task
        self._loop: asyncio.AbstractEventLoop | None = None

    def shows(self, status: Callable[[], None]) -> None:
        """From now on SIGUSR1 calls this."""
        self._status = status

    def earn(self, code: ExitCode) -> None:
        """All but the console is done: from now on a press ends the process, with this code."""
        self._earned = code

    def halts(self, halt: Callable[[], None]) -> None:
        """From now on the first press does this instead; a press that came already does it now."""
        self._halt = halt
        if self.count:
            halt()

    def press(self) -> None:
        """In the loop."""
        self._count()
        self._act(self.count)

    def heard(self, number: int) -> None:
        """A signal came; in any thread."""
        if number == signal.SIGUSR1:
            self._in_loop(self._status)
        elif number != signal.SIGHUP or not (self.count or self._earned is not None):
            self._count()
            self._in_loop(self._act, self.count)

    async def watch(self, main: Coroutine[Any, Any, Outcome]) -> Outcome:
        """Run `main` with the presses leading here. Raises click.Abort when a press ended it."""
        self._task = asyncio.current_task()
        self._loop = asyncio.get_running_loop()
        if self.count:
            self._act(self.count)  # it came before there was a loop
        try:
            return await main
        except asyncio.CancelledError:
            if self.count:
                raise click.Abort() from None
            raise

    def _count(self) -> None:
        self.count += 1
        if self._earned is not None:
            os._exit(self._earned)
        if self.count >= LEAVES:
            os._exit(ExitCode.INTERRUPTED)

    def _act(self, count: int) -> None:
        if count == 1 and self._halt is not None:
            self._halt()
        elif self._task is not None:
            self._task.cancel()

    def _in_loop(self, act: Callable[..., None], *about: int) -> None:
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(act, *about)


def run_until_pressed(main: Callable[[Interrupts], Coroutine[Any, Any, Outcome]]) -> Outcome:
    """Run a coroutine to its end, or to the user's. From then on signals lead here until the process ends."""
    presses = Interrupts()
    _listen(presses.heard)
    earned = ExitCode.INTERNAL
    try:
        outcome = asyncio.run(presses.watch(main(presses)))
        earned = outcome if isinstance(outcome, ExitCode) else ExitCode.INTERRUPTED  # a page may still be left unread
        return outcome
    except IvypyError as error:
        earned = error.exit_code
        raise
    except click.Abort:
        earned = ExitCode.INTERRUPTED
        raise
    finally:
        presses.earn(earned)


def _listen(heard: Callable[[int], None]) -> None:
    """Pass each signal to `heard`, in a thread, from now on."""
    numbers = [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    reading, writing = os.pipe()
    os.set_blocking(writing, False)

    def listen() -> None:
        while True:
            for number in os.read(reading, 64):
                if number in numbers:
                    heard(number)

    threading.Thread(target=listen, name="ivypy-signals", daemon=True).start()
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)  # the interpreter writes the numbers, whatever it is at
    for number in numbers:
        signal.signal(number, lambda *_: None)
