"""The one error that either end can make: it sends what the protocol does not allow."""


class ProtocolError(Exception):
    """The peer sent something unknown, malformed, too long or out of turn. It costs that host, not the run."""
