"""How a session opens hosts: with one bundle, and a gate for the logins to each address."""

from collections.abc import Callable

from ..hosts.bundle import Bundle
from ..hosts.launch import open_pipe
from ..hosts.login_throttle import LoginGate
from ..hosts.pipe import Pipe
from ..hosts.spec import HostSpec
from .fleet import Opener


def opener(bundle: Bundle, gate: LoginGate) -> Opener:
    async def opening(host: HostSpec, log: Callable[[str], None]) -> Pipe:
        return await open_pipe(host, bundle, gate, log)

    return opening
