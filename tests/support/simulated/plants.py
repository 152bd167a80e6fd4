"""Plants for simulated slaves: what a LUN answers to a load, queues and noise included.

Rule: as in slave.py, a plant is (IOPS offered, parameters) -> (IOPS done, service time in ns), asked once a
subinterval and instance. All randomness comes from the seed.
"""

from collections.abc import Callable
from math import exp

import numpy as np

from ivypy.protocol.parameters import Parameters
from tests.support.simulated.slave import Service


def queue(capacity: float, service_ns: int) -> Service:
    """A single server: its time in the queue grows as 1 / (1 - load); at capacity it is a hundredfold."""

    def plant(offered: float, parameters: Parameters) -> tuple[float, int]:
        done = min(offered, capacity)
        return done, round(service_ns / max(1 - done / capacity, 0.01))

    return plant


def noisy(plant: Service, sd: float, seed: int) -> Service:
    """`plant` with service times, and where it is at its limit also IOPS, that scatter by `sd` of themselves."""
    random = np.random.default_rng(seed)

    def scattered(offered: float, parameters: Parameters) -> tuple[float, int]:
        done, service_ns = plant(offered, parameters)
        factor = exp(sd * float(random.standard_normal()))
        return (done / factor if done < offered else done), round(service_ns * factor)

    return scattered


def over_time(plants: Callable[[int], Service]) -> Service:
    """Another plant each time that it is asked."""
    asked = iter(range(1 << 30))
    return lambda offered, parameters: plants(next(asked))(offered, parameters)
