"""Which host keys are trusted, and the fault for one that is not.

Rule: verification cannot be turned off, neither by a plan nor by ~/.ssh/config (`UserKnownHostsFile none` switches it
off in asyncssh without a word). A key becomes known only where the user compared it, never here.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import asyncssh

from ..errors import HostFault
from .errors import HostUnusable
from .host_spec import HostSpec

USER_FILES: Final = ("~/.ssh/known_hosts", "~/.ssh/known_hosts2")  # as ssh(1) has them
SYSTEM_FILES: Final = ("/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2")
SSH_PORT: Final = 22


def load(host: str, named: str | None, configured: Sequence[str]) -> asyncssh.SSHKnownHosts:
    """The keys of the plan's file, or of the files that ssh's configuration names, or of ssh's default ones.

    A file that the plan names must be there; of the others, those count that are. Raises HostUnusable.
    """
    known = asyncssh.SSHKnownHosts()
    for name in (named,) if named else configured or USER_FILES + SYSTEM_FILES:
        path = Path(name).expanduser()
        try:
            known.load(path.read_text())
        except (OSError, ValueError) as error:
            if isinstance(error, FileNotFoundError) and not named:
                continue
            reason = error.strerror if isinstance(error, OSError) else error
            what = f"the known_hosts file {path} cannot be used ({reason})"
            raise HostUnusable(HostFault(host, what, "correct it, or name another with known_hosts:")) from None
    return known


class Verifier(asyncssh.SSHClient):
    """Accepts the keys in `known` and no other; keeps the one that it rejected."""

    def __init__(self, known: asyncssh.SSHKnownHosts, log: Callable[[str], None]) -> None:
        self._known = known
        self._log = log
        self._offered: asyncssh.SSHKey | None = None
        self._expected: list[asyncssh.SSHKey] = []  # what is known for that host instead

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        """Asked by asyncssh about a key that is not in `known` for this host."""
        self._offered = key
        self._expected = list(self._known.match(host, addr, port if port != SSH_PORT else None)[0])
        return False

    def auth_banner_received(self, msg: str, lang: str) -> None:
        for text in msg.splitlines():
            self._log(f"<- (banner) {text}")

    def fault(self, host: HostSpec, by_hand: str, entry: str, error: str) -> HostFault:
        """The fault after asyncssh rejected the host key; `by_hand`: the command by which a person would log in."""
        if self._offered is None:
            return HostFault(host.name, f"its host key is not accepted ({error})", "correct the known_hosts file")
        offered = fingerprint(self._offered)
        if not self._expected:
            return HostFault(
                host.name,
                f"its host key is not known; it offers {offered}",
                f'run "{by_hand}" once and compare the fingerprint, or name a file that has the key with known_hosts:',
            )
        known = ", ".join(sorted({fingerprint(key) for key in self._expected}))
        file = f" -f {host.known_hosts}" if host.known_hosts else ""
        return HostFault(
            host.name,
            f"its host key has changed: it offers {offered}, known is {known}",
            "find out why: this may be an attack. If the host was reinstalled: "
            f'"ssh-keygen{file} -R \'{entry}\'", then "{by_hand}" and compare the fingerprint',
        )


def fingerprint(key: asyncssh.SSHKey) -> str:
    return f"{key.get_algorithm()} {key.get_fingerprint()}"
