"""An ssh connection to a host, and a sentence for each way in which it does not come about.

Rule: all of asyncssh's ways to fail to log in are told apart here, in `_fault`, and nowhere else; among them a
TimeoutError without a text.
"""

import asyncio
import errno
import shlex
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import asyncssh

from ..errors import HostFault
from . import hostkeys
from .errors import HostUnusable
from .spec import HostSpec

ANY_KIND: Final = "ssh-ed25519,ecdsa-sha2-nistp*,rsa-sha2-*"
ASK_SSHD: Final = "the host's sshd log says why (MaxStartups, AllowUsers, a full disk)"


async def log_in(host: HostSpec, log: Callable[[str], None]) -> asyncssh.SSHClientConnection:
    """An open connection, its host key verified. Raises HostUnusable."""
    options = await _options(host, _given(host))
    # The configuration's files are a list, or None where it would switch verification off: then ssh's own count.
    listed = options.known_hosts if isinstance(options.known_hosts, list) else []
    known = hostkeys.load(host.name, host.known_hosts, [name for name in listed if isinstance(name, str)])
    door = _Door(host, options.host, options.port, options.username)
    verifier = hostkeys.Verifier(known, log)
    log(f"-> login: {door.by_hand}")
    try:
        return await asyncssh.connect(
            **_given(host), **_kinds(options), known_hosts=known, client_factory=lambda: verifier
        )
    except asyncssh.HostKeyNotVerifiable as error:
        raise HostUnusable(verifier.fault(host, door.by_hand, door.entry, error.reason)) from None
    except UnicodeError:
        what = f'the name "{door.address}" is none that a host can have'
        raise HostUnusable(HostFault(host.name, what, "mend it, or write an address")) from None
    except (OSError, asyncssh.Error) as error:
        what, remedy = _fault(door, error)
        raise HostUnusable(HostFault(host.name, what, remedy)) from None


@dataclass(frozen=True, slots=True)
class _Door:
    """Where a login really goes, once ssh's configuration has had its say."""

    host: HostSpec
    address: str
    port: int
    user: str

    def __str__(self) -> str:
        return f"{self.address} port {self.port}"

    @property
    def entry(self) -> str:
        """The host as known_hosts names it."""
        return self.address if self.port == hostkeys.SSH_PORT else f"[{self.address}]:{self.port}"

    @property
    def by_hand(self) -> str:
        """The command line with which a person logs in the same way."""
        words = ["ssh"]
        if self.port != hostkeys.SSH_PORT:
            words += ["-p", str(self.port)]
        if self.host.identity:
            words += ["-i", self.host.identity]
        if self.host.known_hosts:
            words += ["-o", f"UserKnownHostsFile={self.host.known_hosts}"]
        return shlex.join([*words, f"{self.user}@{self.address}"])


def _given(host: HostSpec) -> dict[str, Any]:
    """What the plan says; asyncssh takes the rest from ssh's configuration, and then its defaults."""
    said = {"port": host.port, "username": host.user, "client_keys": [host.identity] if host.identity else None}
    return {
        "host": host.address,
        "connect_timeout": host.connect_timeout_s,
        "keepalive_interval": host.keepalive_s,
        "keepalive_count_max": host.keepalive_count,
        "agent_forwarding": False,
        "config": () if host.ssh_config else None,  # (): the user's own
        **{key: value for key, value in said.items() if value is not None},
    }


def _kinds(options: asyncssh.SSHClientConnectionOptions) -> dict[str, Any]:
    """Which kinds of host key to ask for: those known for the host first, then any, as ssh(1) does.

    asyncssh would ask for the known kinds alone; sshd hangs up when it has none, and the changed key is never seen.
    """
    return {} if options.config.get("HostKeyAlgorithms") else {"server_host_key_algs": f"+{ANY_KIND}"}


async def _options(host: HostSpec, given: dict[str, Any]) -> asyncssh.SSHClientConnectionOptions:
    """Plan and ssh configuration put together; reads the user's keys. Raises HostUnusable."""

    def construct() -> asyncssh.SSHClientConnectionOptions:
        return asyncssh.SSHClientConnectionOptions(**given)

    try:
        return await asyncio.get_running_loop().run_in_executor(None, construct)
    except OSError as error:
        what, remedy = f"{error.filename} cannot be used ({error.strerror})", "mend identity:, or ~/.ssh/config"
    except asyncssh.KeyImportError as error:
        key = f"the key {host.identity}" if host.identity else "a key that ssh's configuration names"
        what, remedy = f"{key} cannot be used ({error})", "mend identity:, or ~/.ssh/config"
        if "assphrase" in str(error):
            what, remedy = f"{key} has a passphrase", "load it into an agent with ssh-add and leave identity: out"
    except (asyncssh.ConfigParseError, ValueError) as error:
        what, remedy = f"ssh's configuration cannot be used ({error})", "mend ~/.ssh/config, or the plan's ssh:"
    raise HostUnusable(HostFault(host.name, what, remedy))


def _fault(door: _Door, error: OSError | asyncssh.Error) -> tuple[str, str]:
    """What went wrong with a login, and the remedy."""
    match error:
        case TimeoutError():
            return (
                f"{door} does not answer within {door.host.connect_timeout_s:g} s",
                "see that it is up and no firewall drops the packets, or raise connect_timeout:",
            )
        case socket.gaierror():
            return f'the name "{door.address}" is not known ({error.strerror})', "mend it, or write an address"
        case ConnectionResetError() | asyncssh.ConnectionLost():
            return f"{door} closed the connection during the login", ASK_SSHD
        case OSError() if f"Errno {errno.ECONNREFUSED}" in str(error):
            return f"{door} refuses the connection", "start sshd there, or name its port with port:"
        case OSError():
            return f"{door} cannot be reached ({error.strerror or error})", "see that it is up and a route leads to it"
        case asyncssh.PermissionDenied():
            keys = f"the key {door.host.identity}" if door.host.identity else "any of the keys at hand"
            return (
                f'{door} does not let user "{door.user}" in with {keys}',
                f'make "{door.by_hand} true" work first: user:, identity:, ssh-add, authorized_keys there',
            )
        case _:
            return f"{door} ended the login ({error.reason})", ASK_SSHD
