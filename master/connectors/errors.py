"""How a connector fails: by its own fault, which costs it alone."""

from enum import StrEnum


class FaultKind(StrEnum):
    """The kind of fault that ended a connector."""

    ENDED = "ended"  # its process, or the way to it
    UNREADABLE = "unreadable"  # what it sent is no message, or not one that could be due
    UNASKED = "unasked"  # it sent what nobody asked for, or too much
    OTHER = "other"  # it was not ended, or not by what it sent


class ConnectorFault(Exception):
    """A fault of a connector, and what to do about it."""

    def __init__(self, what: str, remedy: str = "", kind: FaultKind = FaultKind.OTHER) -> None:
        super().__init__(f"{what}; {remedy}" if remedy else what)
        self.what = what
        self.remedy = remedy
        self.kind = kind
