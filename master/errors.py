"""Every error a user can meet, by whose fault it is. Anything else that escapes is a bug of ours.

    IvypyError
        PlanError       the plan, or the command line: nothing was touched (exit 2)
        HostsError      test hosts that cannot be used, all of them together (exit 3)
        NoHostLeft      every test host was lost once steps had run; what they measured is kept (exit 7)
        RefusedError    a device that must not be written (exit 4)
        OutputError     the run folder cannot be written (exit 1)
        StoppedError    the run was stopped before it could begin (exit 130)

A peer that breaks the protocol raises protocol.errors.ProtocolError; the driver of that host turns it, like every
other expected fault of a host, into `host.lost = reason`.
"""

from dataclasses import dataclass
from typing import ClassVar

from ..protocol.text import printable
from .exit_codes import ExitCode


class IvypyError(Exception):
    """Something a user can correct. Its text is complete: what, where, remedy."""

    exit_code: ClassVar[ExitCode] = ExitCode.INTERNAL


class PlanError(IvypyError):
    """A plan, or a command's arguments, that cannot be used."""

    exit_code = ExitCode.PLAN


@dataclass(frozen=True, slots=True)
class HostFault:
    """One reason why a host cannot be used."""

    host: str
    what: str  # what went wrong, and with which thing
    remedy: str  # what the user can do

    def __post_init__(self) -> None:
        for name in ("what", "remedy"):  # they may quote what a host, or its sshd, wrote
            object.__setattr__(self, name, printable(getattr(self, name)))

    def __str__(self) -> str:
        return f"{self.host}: {self.what}; {self.remedy}" if self.remedy else f"{self.host}: {self.what}"


class HostsError(IvypyError):
    """Hosts that cannot be used; every fault of every host."""

    exit_code = ExitCode.HOSTS

    def __init__(self, faults: list[HostFault]) -> None:
        super().__init__("\n".join(str(fault) for fault in faults))
        self.faults = faults


class NoHostLeft(IvypyError):
    """Every host was lost between two steps."""

    exit_code = ExitCode.PARTIAL


class RefusedError(IvypyError):
    """A device would be overwritten that must not be, or that the user has not agreed to."""

    exit_code = ExitCode.REFUSED


class OutputError(IvypyError):
    """The run folder cannot be made or written."""


class StoppedError(IvypyError):
    """The run was stopped, by `ivypy stop` or from the program, before it could begin."""

    exit_code = ExitCode.INTERRUPTED
