"""Errors: all that can be wrong with a host before it sends hello, and with this installation before it can connect to
one.

Rule: foreign exceptions are translated where they enter; above the launchers there is only HostUnusable. The session
gathers those of all hosts into one HostsError.
"""

from ..errors import HostFault, IvypyError


class HostUnusable(Exception):
    """A host that cannot be used: one fault, with its remedy."""

    def __init__(self, fault: HostFault) -> None:
        super().__init__(str(fault))
        self.fault = fault


class BundleError(IvypyError):
    """This installation of ivypy cannot put together what a test host needs."""
