"""An ssh connection to a host, and an error message for each way it fails.

Rule: all of asyncssh's ways to fail to log in are distinguished here, in `_fault`, and nowhere else; among them a
TimeoutError without a text. A login that is reset before sshd has let anyone in is tried again for as long as
`connect_timeout` allows: sshd resets at random what it has no room for. Jump hosts are logged in to by the same code,
so that their keys are verified, and their faults reported, like any other's.
"""

import asyncio
import errno
import random
import shlex
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

import asyncssh

from ..errors import HostFault
from . import host_keys
from .errors import HostUnusable
from .host_spec import HostSpec, Launcher
from .login_throttle import Leave, Login, LoginThrottle, nothing
from .name_lookup import Address, NotLookedUp, connected, look_up

ANY_KIND: Final = "ssh-ed25519,ecdsa-sha2-nistp*,rsa-sha2-*"
ASK_SSHD: Final = "see the host's sshd log (MaxStartups, AllowUsers, a full disk)"


Connection = asyncssh.SSHClientConnection

FIRST_CIPHER: Final = "^aes128-gcm@openssh.com"  # a third of the processor time of asyncssh's own first choice
JUMP_KEEPALIVE_S: Final = 5.0  # hosts have our own probes; the connection to a jump host has none
PAUSE_S: Final = 0.2  # before a login that was reset is tried again; twice as long each time
LONGEST_PAUSE_S: Final = 2.0


class JumpHostUnusable(HostUnusable):
    """A jump host that cannot be logged in to; the fault names it."""


@asynccontextmanager
async def logged_in(
    host: HostSpec, throttle: LoginThrottle, log: Callable[[str], None], before: str = ""
) -> AsyncIterator[Login]:
    """An open connection, its host key verified; it outlives the block unless that raises. Raises HostUnusable.

    `before`: jump hosts to go through; else those that ssh's configuration names.

    While the block goes on, the others at the same sshd wait: only a session that has begun proves that sshd has
    crossed the login off its list of those under way.
    """
    options = await _options(host, _given(host))
    sshd = _Sshd(host, options.host, options.port, options.username)
    tunnel, leave = await _through(host, before or options.tunnel, throttle, log)
    login: Login | None = None
    try:
        async with throttle.to(_throttled_by(sshd, options)):
            login = Login(await _log_in(sshd, options, tunnel, log), leave)
            yield login
    except BaseException:
        await (login.close() if login else leave())
        raise


async def _through(
    host: HostSpec, jump: object, throttle: LoginThrottle, log: Callable[[str], None]
) -> tuple[Connection | None, Leave]:
    """The connection to a jump host, as ssh's configuration names it: `user@first:port,second`. And how to leave it."""
    if not isinstance(jump, str):
        return None, nothing
    return await throttle.through(jump, lambda: _to_jump_host(host, jump, throttle, log))


async def _to_jump_host(host: HostSpec, jump: str, throttle: LoginThrottle, log: Callable[[str], None]) -> Login:
    before, _, last = jump.rpartition(",")
    user, _, place = last.rpartition("@")
    address, colon, port = place.rpartition(":")
    try:
        spec = HostSpec(
            host.name, Launcher.SSH, address if colon else place, int(port) if colon else None, user or None,
            connect_timeout_s=host.connect_timeout_s,
        )  # fmt: skip
        async with logged_in(spec, throttle, log, before) as login:
            login.connection.set_keepalive(JUMP_KEEPALIVE_S)
            return login
    except JumpHostUnusable:
        raise  # of one before this one
    except HostUnusable as error:
        raise JumpHostUnusable(replace(error.fault, what=f"jump host {last}: {error.fault.what}")) from None


def _throttled_by(sshd: "_Sshd", options: asyncssh.SSHClientConnectionOptions) -> str:
    """Where the first connection of a login really goes: to the host, or through a command to some proxy."""
    if options.tunnel or not options.proxy_command:
        return str(sshd)
    return " ".join(word for word in options.proxy_command if sshd.address not in word)


async def _log_in(
    sshd: "_Sshd",
    options: asyncssh.SSHClientConnectionOptions,
    tunnel: Connection | None,
    log: Callable[[str], None],
) -> Connection:
    """Raises HostUnusable."""
    host = sshd.host
    # The configuration's files are a list, or None where it would switch verification off: then ssh's own count.
    listed = options.known_hosts if isinstance(options.known_hosts, list) else []
    known = host_keys.load(host.name, host.known_hosts, [name for name in listed if isinstance(name, str)])
    verifier = host_keys.Verifier(known, log)
    log(f"-> login: {sshd.by_hand}")
    more = {**_given(host), **_kinds(options), "known_hosts": known, "client_factory": lambda: verifier}
    try:
        addresses = await _addresses(sshd, options) if tunnel is None else None
        return await _insist(sshd, addresses, {**more, "tunnel": tunnel or ()}, log)
    except asyncssh.HostKeyNotVerifiable as error:
        raise HostUnusable(verifier.fault(host, sshd.by_hand, sshd.entry, error.reason)) from None
    except UnicodeError:
        what = f'the name "{sshd.address}" is not a valid host name'
        raise HostUnusable(HostFault(host.name, what, "correct it, or use an address")) from None
    except (OSError, asyncssh.Error, NotLookedUp) as error:
        what, remedy = _fault(sshd, error)
        raise HostUnusable(HostFault(host.name, what, remedy)) from None


async def _addresses(sshd: "_Sshd", options: asyncssh.SSHClientConnectionOptions) -> list[Address] | None:
    """Where to connect; None where asyncssh finds that out by itself. Raises NotLookedUp, OSError, UnicodeError."""
    config = options.config
    if options.proxy_command or options.local_addr or config.has_match_final() or options.canonicalize_hostname:
        return None
    return await look_up(sshd.address, sshd.port, options.family, sshd.host.connect_timeout_s)


async def _insist(
    sshd: "_Sshd", addresses: list[Address] | None, given: dict[str, Any], log: Callable[[str], None]
) -> Connection:
    """Log in; while logins are reset, again and again within `connect_timeout`. Raises what asyncssh raises.

    Where the time is up during a later attempt, the reset of the one before is what is known of this sshd.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + sshd.host.connect_timeout_s
    pause_s = PAUSE_S
    reset: Exception | None = None
    while True:
        try:
            async with asyncio.timeout_at(deadline):
                sock = await connected(addresses) if addresses is not None else None
                try:
                    return await asyncssh.connect(**given, sock=sock)
                except BaseException:
                    if sock is not None:
                        sock.close()
                    raise
        except TimeoutError as error:
            raise (reset or error) from None
        except (ConnectionResetError, asyncssh.ConnectionLost) as error:
            reset = error
            wait_s = pause_s * random.uniform(0.5, 1.5)
            if loop.time() + wait_s >= deadline:
                raise
            log(f"<- (reset during the login: {error}; retry in {wait_s:.1f} s)")
        await asyncio.sleep(wait_s)
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


@dataclass(frozen=True, slots=True)
class _Sshd:
    """Where a login really goes, after ssh's configuration was applied."""

    host: HostSpec
    address: str
    port: int
    user: str

    def __str__(self) -> str:
        return f"{self.address} port {self.port}"

    @property
    def entry(self) -> str:
        """The host as known_hosts names it."""
        return self.address if self.port == host_keys.SSH_PORT else f"[{self.address}]:{self.port}"

    @property
    def by_hand(self) -> str:
        """The command line with which a person logs in the same way."""
        words = ["ssh"]
        if self.port != host_keys.SSH_PORT:
            words += ["-p", str(self.port)]
        if self.host.identity:
            words += ["-i", self.host.identity]
        if self.host.known_hosts:
            words += ["-o", f"UserKnownHostsFile={self.host.known_hosts}"]
        return shlex.join([*words, f"{self.user}@{self.address}"])


def _given(host: HostSpec) -> dict[str, Any]:
    """The plan's settings; asyncssh takes the rest from ssh's configuration, and then its defaults."""
    given = {"port": host.port, "username": host.user, "client_keys": [host.identity] if host.identity else None}
    return {
        "host": host.address,
        "connect_timeout": None,  # ours, and without the time that a name's lookup takes
        "keepalive_interval": 0,  # our own probes detect whether a host is alive
        "agent_forwarding": False,
        "config": () if host.ssh_config else None,  # (): the user's own
        **{key: value for key, value in given.items() if value is not None},
    }


def _kinds(options: asyncssh.SSHClientConnectionOptions) -> dict[str, Any]:
    """The kinds to request where ssh's configuration names none.

    Host keys: those known for the host first, then any, as ssh(1) does. asyncssh would request the known kinds alone;
    sshd hangs up when it has none, and the changed key is never seen. Ciphers: the cheapest first.
    """
    kinds = {} if options.config.get("HostKeyAlgorithms") else {"server_host_key_algs": f"+{ANY_KIND}"}
    return kinds | ({} if options.config.get("Ciphers") else {"encryption_algs": FIRST_CIPHER})


async def _options(host: HostSpec, given: dict[str, Any]) -> asyncssh.SSHClientConnectionOptions:
    """Plan and ssh configuration put together; reads the user's keys. Raises HostUnusable."""

    def construct() -> asyncssh.SSHClientConnectionOptions:
        return asyncssh.SSHClientConnectionOptions(**given)

    try:
        return await asyncio.get_running_loop().run_in_executor(None, construct)
    except OSError as error:
        what, remedy = f"{error.filename} cannot be used ({error.strerror})", "correct identity:, or ~/.ssh/config"
    except asyncssh.KeyImportError as error:
        key = f"the key {host.identity}" if host.identity else "a key that ssh's configuration names"
        what, remedy = f"{key} cannot be used ({error})", "correct identity:, or ~/.ssh/config"
        if "assphrase" in str(error):
            what, remedy = f"{key} has a passphrase", "load it into an agent with ssh-add and leave identity: out"
    except (asyncssh.ConfigParseError, ValueError) as error:
        what, remedy = f"ssh's configuration cannot be used ({error})", "correct ~/.ssh/config, or the plan's ssh:"
    raise HostUnusable(HostFault(host.name, what, remedy))


def _fault(sshd: _Sshd, error: OSError | asyncssh.Error | NotLookedUp) -> tuple[str, str]:
    """The fault of a login, and the remedy."""
    match error:
        case TimeoutError():
            return (
                f"{sshd} does not answer within {sshd.host.connect_timeout_s:g} s",
                "check that it is up and that no firewall drops the packets, or raise connect_timeout:",
            )
        case NotLookedUp():
            return (
                f'the name "{sshd.address}" was not resolved within {sshd.host.connect_timeout_s:g} s',
                "find out why the name service is slow, or use an address",
            )
        case socket.gaierror():
            return f'the name "{sshd.address}" is not known ({error.strerror})', "correct it, or use an address"
        case ConnectionResetError() | asyncssh.ConnectionLost():
            return f"{sshd} closed the connection during the login", ASK_SSHD
        case OSError() if f"Errno {errno.ECONNREFUSED}" in str(error):
            return f"{sshd} refuses the connection", "start sshd there, or name its port with port:"
        case OSError():
            return (
                f"{sshd} cannot be reached ({error.strerror or error})",
                "check that it is up and that a route leads to it",
            )
        case asyncssh.ChannelOpenError():
            return (
                f"{sshd} cannot be reached from its jump host ({error.reason})",
                "check that it is up and that a route leads to it from there",
            )
        case asyncssh.PermissionDenied():
            keys = f"the key {sshd.host.identity}" if sshd.host.identity else "any available key"
            return (
                f'{sshd} rejects user "{sshd.user}" with {keys}',
                f'make "{sshd.by_hand} true" work first: user:, identity:, ssh-add, authorized_keys there',
            )
        case _:
            return f"{sshd} ended the login ({error.reason})", ASK_SSHD
