"""Whether a load was kept up with: by how much what is owed may grow before it was not.

Rule: what is owed is all that fell due and is not done, wherever it waits: in the backlog, or in flight in a deep
queue. By how much it grew is counted, not compared: due less done (completed, failed, dropped), over the very
subintervals and hosts that are judged. So nothing that was owed before, or by a host that has gone, has a part in it.
"""

from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from .merged import Floats

CHANCE: Final = 4.0  # standard deviations: one in thirty thousand steady loads is further off


def allowed(due: ArrayLike, tolerance: float, in_flight: ArrayLike, instances: ArrayLike) -> Floats:
    """The most by which what is owed may grow while `due` I/Os fall due: a share of them, and what chance may do.

    A steady number in flight varies like a Poisson number, whose variance is its mean, `in_flight`; its difference
    between two instants has twice that variance. A deficit that is itself in flight makes the mean grow, but the root
    of the mean stays far below it: with 2,000 in flight, 250 may be chance, and the 3,000 of a deficit are none. And
    each instance may have an I/O that is just about to be submitted.
    """
    chance = CHANCE * np.sqrt(2 * np.asarray(in_flight, np.float64))
    found: Floats = np.maximum(np.maximum(tolerance * np.asarray(due, np.float64), chance), instances)
    return found
