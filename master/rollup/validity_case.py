"""The input of every check of a measurement, and its answer."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...protocol.counters import Count
from ..verdicts import Finding, Reason, Severity
from .figures import Figures
from .parameters_in_force import Settings
from .window import Measurement

Rows = Iterator[tuple[int, Finding]]  # (row, what was found)


@dataclass(frozen=True, slots=True)
class Case:
    """The input of every check."""

    measurement: Measurement
    settings: Settings
    unsustained: Mapping[int, str]  # the rows whose load was not sustained, and what fell behind in them
    ahead: Mapping[int, str]  # the rows that did more than fell due, and what did so in them
    earlier: Mapping[int, str]  # the rows whose response times are partly of I/Os that fell due before, and how many
    tail: float  # the highest percentile that counts, as a fraction
    figures: Figures  # with response times of every paced row, reached or not
    length_s: float  # of a subinterval, as planned

    def count(self, which: Count) -> NDArray[np.int64]:
        found: NDArray[np.int64] = self.measurement.merged.counts[:, which]
        return found


def each(
    rows: NDArray[np.bool_], reason: Reason, detail: Callable[[int], str], severity: Severity | None = None
) -> Rows:
    """A finding for each of the rows, (R,); `detail`: of a row, by its number."""
    for row in np.flatnonzero(rows).tolist():
        yield row, Finding(reason, detail(row), severity)


def rows_of_host(measurement: Measurement, host: str) -> list[int]:
    """The numbers of the rows that a host is in; none for a host that was gone before the step began."""
    layout = measurement.layout
    rows, hosts = layout.pairs
    found: list[int] = rows[hosts == layout.position.get(host, -1)].tolist()
    return found
