"""A test host as the plan names it: everything a launcher needs to reach it."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

DEFAULT_PYTHON: Final = ("python3",)


class Launcher(StrEnum):
    """How the slave is started, and what its pipe runs through."""

    SSH = "ssh"
    LOCAL = "local"  # a subprocess on this machine
    COMMAND = "command"  # any command line that gives a pipe: kubectl exec -i, srun, ip netns exec ...


@dataclass(frozen=True, slots=True)
class HostSpec:
    """One test host. None: ssh's own default (its configuration files, agent, known hosts)."""

    name: str  # the plan's, unique; the attribute `host` of everything on it
    launcher: Launcher
    address: str  # the address for ssh; for the others the same as `name`
    port: int | None = None
    user: str | None = None
    identity: str | None = None  # path of a private key; None: agent and default keys
    known_hosts: str | None = None  # path; None: the user's own
    connect_timeout_s: float = 10.0
    python: tuple[str, ...] = DEFAULT_PYTHON  # shell words: ("sudo", "-n", "python3.11")
    cache_dir: str | None = None  # where bundles are kept on the host; None: the user's cache directory there
    command: tuple[str, ...] = ()  # Launcher.COMMAND: the words before `python`
    ssh_config: bool = True  # honour the user's ~/.ssh/config
