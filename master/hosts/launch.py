"""From a host's specification to a pipe on which its slave is about to send hello.

Rule: all launchers take the same way: a command line that gives a pipe, then the first contact over it.
"""

import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from ..errors import HostFault, IvypyError
from . import bootstrap_client, subprocess_pipe
from .bootstrap_client import Damaged
from .bundle import Bundle
from .errors import HostUnusable
from .host_spec import HostSpec, Launcher
from .login_throttle import LoginThrottle
from .pipe import Pipe

TRANSFERS: Final = 2  # a damaged one is tried again, once


async def open_pipe(
    host: HostSpec, bundles: Sequence[Bundle], throttle: LoginThrottle, log: Callable[[str], None]
) -> Pipe:
    """Launch, push the bundle if the host lacks it, start the slave. Raises HostUnusable; leaves nothing behind then.

    Whatever a host does, or makes a library do, comes to that alone.
    `host.connect_timeout_s` is the patience for the login, and again for every answer of the bootstrap. `log` gets a
    line for each message (`->`, `<-`) and for each line of the far stderr (`!!`), also after this returns.
    """
    try:
        return await _open(host, bundles, throttle, log)
    except (IvypyError, HostUnusable):
        raise
    except Exception as error:  # a bug, ours or asyncssh's, that something which the host sent brings out
        for text in "".join(traceback.format_exception(error)).splitlines():
            log(f"   {text}")
        what = f"the connection failed: {type(error).__name__}: {error}"
        place = traceback.extract_tb(error.__traceback__)[-1]
        what += f" ({Path(place.filename).name}, line {place.lineno})"
        raise HostUnusable(HostFault(host.name, what, "report this as a bug of ivypy")) from None


async def _open(host: HostSpec, bundles: Sequence[Bundle], throttle: LoginThrottle, log: Callable[[str], None]) -> Pipe:
    for _ in range(TRANSFERS):
        pipe = await _launch(host, bundles, throttle, log)
        try:
            await bootstrap_client.make(pipe, host, bundles, log)
            return pipe
        except Damaged:
            await pipe.close()
        except BaseException:
            await pipe.close()
            raise
    what = f"the bundle arrived damaged, {TRANSFERS} times"
    remedy = "its pipe changes bytes: give it no terminal (docker exec -i, not -it); its login scripts may read nothing"
    raise HostUnusable(HostFault(host.name, what, remedy))


async def _launch(
    host: HostSpec, bundles: Sequence[Bundle], throttle: LoginThrottle, log: Callable[[str], None]
) -> Pipe:
    words = bootstrap_client.words(host, _python(host), bundles)
    log(f"-> {bootstrap_client.shown([*host.command, *words])}")
    match host.launcher:
        case Launcher.SSH:
            from . import ssh_pipe  # a fifth of a second, for ssh alone

            return await ssh_pipe.start(host, words, throttle, log)
        case Launcher.LOCAL:
            return await subprocess_pipe.start(host.name, words, log)
        case Launcher.COMMAND:
            return await subprocess_pipe.start(host.name, [*host.command, *words], log)


def _python(host: HostSpec) -> tuple[str, ...]:
    """The words that start Python. On this machine `python3` is the one that runs the controller."""
    if host.launcher is not Launcher.LOCAL:
        return host.python
    return tuple(sys.executable if word == "python3" else word for word in host.python)
