"""How many files the controller may have open: the usual limit of 1,024 is for programs that use select()."""

import resource
from collections.abc import Sequence
from typing import Final

from ..errors import PlanError
from .host_spec import HostSpec, Launcher

PER_SSH_HOST: Final = 2  # the connection and the log
PER_PROCESS: Final = 5  # three pipes, the log, and the watch for its end
OTHERS: Final = 128  # the run's folder, sockets, libraries; and what is open for a moment


def allow(hosts: Sequence[HostSpec]) -> None:
    """Raise the limit to what this user may have. Raises PlanError where that is not enough for these hosts."""
    soft, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    needed = needed_by(hosts)
    if most != resource.RLIM_INFINITY and needed > most:
        raise PlanError(
            f"{len(hosts)} hosts need {needed} open files, and this user may have {most}; raise it in"
            " /etc/security/limits.conf (nofile, hard) or with LimitNOFILE= of the service, and log in again"
        )


def needed_by(hosts: Sequence[HostSpec]) -> int:
    """Files that the controller has open for these hosts, and for itself."""
    return OTHERS + sum(PER_SSH_HOST if host.launcher is Launcher.SSH else PER_PROCESS for host in hosts)
