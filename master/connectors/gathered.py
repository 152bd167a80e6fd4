"""The result of one gather of a connector: its state, its times, and the metrics of its elements.

Rule: a gather that did not come in time has no values; it is labelled, and nothing stands for it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from .catalog import Ignored
from .connector_spec import ConnectorSpec
from .counter_rates import Rates


class GatherState(StrEnum):
    """How a gather ended."""

    GATHERED = "gathered"
    LATE = "late"  # answered after its deadline: only the next counters are counted from it
    NO_ANSWER = "no_answer"  # by its deadline
    BUSY = "busy"  # it was not asked: it had not answered an earlier request
    DECLINED = "declined"  # by the connector, with its reason
    LOST = "lost"  # there is no connector any more


class StampFault(StrEnum):
    """Why the connector's own stamps were not used for rates."""

    NONE = ""
    ABSENT = "absent"  # it sends none
    BACKWARDS = "backwards"  # the end is before the start, or before the gather before it
    AHEAD = "ahead"  # an element type's stamp is after the end
    TOO_LONG = "too_long"  # from start to end is longer than from request to answer
    JUMPED = "jumped"  # its clock was stepped since the gather before it


@dataclass(frozen=True, slots=True)
class GatherTimesOf:
    """When one gather was, on the controller's clock; None: it was not."""

    requested_ns: int | None = None
    answered_ns: int | None = None
    start_ns: int | None = None  # by the connector's stamps, else of the request
    end_ns: int | None = None

    def skew_ns(self, boundary_ns: int) -> int | None:
        """How long after the end of its subinterval it ended."""
        return None if self.end_ns is None else self.end_ns - boundary_ns

    @property
    def duration_ns(self) -> int | None:
        """How long it took, by the connector's own account."""
        return None if self.start_ns is None or self.end_ns is None else self.end_ns - self.start_ns


@dataclass(frozen=True, slots=True)
class ReadingCounts:
    """Of one gather."""

    elements: int = 0  # of all types, that gave a value
    resets: int = 0  # counters that fell: their increase is not known
    wraps: int = 0  # counters that wrapped: their increase is known

    @classmethod
    def of(cls, rates: Rates) -> "ReadingCounts":
        elements = sum(int((ratios.pers > 0).any(axis=1).sum()) for ratios in rates.tables.values())
        return cls(elements, len(rates.resets), len(rates.wraps))


@dataclass(frozen=True, slots=True, eq=False)
class Gathered:
    """One gather; `subinterval` is -1 for the one before the step's first."""

    spec: ConnectorSpec
    subinterval: int
    boundary_ns: int  # the end of the subinterval
    state: GatherState
    times: GatherTimesOf = field(default_factory=GatherTimesOf)
    why: str = ""
    seconds: float = 0.0  # since the gather of the subinterval before, for counters; 0: there is none
    stamps: StampFault = StampFault.NONE
    rates: Rates = field(default_factory=lambda: Rates({}))
    counted: ReadingCounts = ReadingCounts()
    ignored: Ignored = field(default_factory=Ignored)

    @property
    def has_values(self) -> bool:
        return self.state is GatherState.GATHERED

    @property
    def gathers(self) -> "tuple[Gathered, ...]":
        return (self,)

    def present(self, element: str, rows: int) -> NDArray[np.bool_]:
        """(rows,): whether each of the first elements of a type gave values."""
        return np.full(rows, self.has_values)


@dataclass(frozen=True, slots=True, eq=False)
class HostsGathered:
    """The readings of all hosts in one subinterval."""

    boundary_ns: int
    gathers: tuple[Gathered, ...]  # of each host, without its rates
    rates: Rates
    rows: Mapping[str, NDArray[np.bool_]]  # by element type, (instances,): whether its host gave values

    @property
    def has_values(self) -> bool:
        return True

    def present(self, element: str, rows: int) -> NDArray[np.bool_]:
        """(rows,): whether the host of each of the first elements of a type gave values."""
        known = self.rows[element][:rows]
        return np.append(known, np.zeros(rows - len(known), bool))  # elements may have come since
