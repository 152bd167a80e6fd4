"""The one error that both ends can make: saying what the protocol does not allow."""


class ProtocolError(Exception):
    """The peer said something unknown, malformed, too long or out of turn. It costs that host, not the run."""
