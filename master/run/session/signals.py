"""Ctrl-C: the first press halts the run, the second gives up the hosts, the third exits at once.

Rule: a thread of its own reads the signals, so the third press works whatever the event loop does; the first two only
start something in the loop. What comes before there is a loop waits in a pipe, and counts. SIGTERM and SIGHUP count as
a first press: nothing that ends the controller leaves I/O running. SIGHUP never counts as a second press, because a
closing terminal sends it more than once; an ignored SIGHUP (nohup) stays ignored. SIGUSR1 prints the run's status.

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

from ...errors import IvypyError
from ...exit_codes import ExitCode

LEAVES: Final = 3  # presses
PRESSES: Final = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM", signal.SIGHUP: "SIGHUP"}
STOP: Final = "`ivypy stop`"

Outcome = TypeVar("Outcome")


class Interrupts:
    """State: how often the user pressed, by what at first, and what a press does at the moment."""

    def __init__(self, give_up: Callable[[], object] = lambda: None) -> None:
        """`give_up` ends the run at once: what the second press does, and the first while there is nothing to halt."""
        self.count = 0
        self.by = ""  # the first: in words, where that is known
        self._give_up = give_up
        self._halt = give_up
        self._show: Callable[[], object] = lambda: None
        self._earned: ExitCode | None = None  # the command's exit code, once all but the console is done

    @property
    def is_over(self) -> bool:
        """Whether the run is to end, or has ended."""
        return self.count > 0 or self._earned is not None

    def shows(self, status: Callable[[], object]) -> None:
        """From now on SIGUSR1 calls this."""
        self._show = status

    def earn(self, code: ExitCode) -> None:
        """All but the console is done: from now on a press ends the process, with this code."""
        self._earned = code

    def halts(self, halt: Callable[[], object]) -> None:
        """From now on the first press does this instead; a press that came already does it now."""
        self._halt = halt
        if self.count:
            halt()

    def press(self, by: str = "") -> None:
        """In the loop. `by`: in words, what presses."""
        self.act(self.add(by))

    def add(self, by: str = "") -> int:
        """One press more; in any thread. Returns how many there were; ends the process where it is done or given up."""
        self.by = self.by if self.count else by
        self.count += 1
        if self._earned is not None:
            os._exit(self._earned)
        if self.count >= LEAVES:
            os._exit(ExitCode.INTERRUPTED)
        return self.count

    def act(self, count: int) -> None:
        """Do what press number `count` does; in the loop."""
        (self._halt if count == 1 else self._give_up)()

    def show(self) -> None:
        """Print the run's status; in the loop."""
        self._show()


def run_until_pressed(main: Callable[[Interrupts], Coroutine[Any, Any, Outcome]]) -> Outcome:
    """Run a coroutine to its end, or to the user's. From then on signals lead here until the process ends.

    Raises click.Abort when a press ended it.
    """
    return asyncio.run(_watched(main, _catch()))


async def _watched(main: Callable[[Interrupts], Coroutine[Any, Any, Outcome]], caught: int) -> Outcome:
    """Run `main` with the signals leading to it, those that were caught already too."""
    task = asyncio.current_task()
    assert task is not None  # a coroutine runs in a task
    presses = Interrupts(task.cancel)
    _listen(caught, presses)
    earned = ExitCode.INTERNAL
    try:
        outcome = await main(presses)
        earned = outcome if isinstance(outcome, ExitCode) else ExitCode.INTERRUPTED  # a page may still be left unread
        return outcome
    except IvypyError as error:
        earned = error.exit_code
        raise
    except asyncio.CancelledError:
        if not presses.count:
            raise
        earned = ExitCode.INTERRUPTED
        raise click.Abort(presses.by) from None
    finally:
        presses.earn(earned)


def _catch() -> int:
    """Write the numbers of all signals that come from now on to a pipe; returns its reading end."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)  # the interpreter writes the numbers, whatever it is at
    for number in (*PRESSES, signal.SIGUSR1):
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
    return reading


def _listen(caught: int, presses: Interrupts) -> None:
    """Pass each signal that is caught on to `presses`, in a thread, until the process ends."""
    loop = asyncio.get_running_loop()

    def soon(act: Callable[..., object], *about: int) -> None:
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(act, *about)

    def listen() -> None:
        while True:
            for number in os.read(caught, 64):
                if number == signal.SIGUSR1:
                    soon(presses.show)
                elif number in PRESSES and not (number == signal.SIGHUP and presses.is_over):
                    soon(presses.act, presses.add(PRESSES[signal.Signals(number)]))

    threading.Thread(target=listen, name="ivypy-signals", daemon=True).start()
