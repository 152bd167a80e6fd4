"""The context that all parts of a step share, which changes by its own methods alone."""

from dataclasses import dataclass
from typing import Final

from ...hosts.heartbeat import USUAL_LEASE_NS, USUAL_START_S
from ...rollup.instances import Rollups
from ..setup.fleet import Fleet
from .step_states import StepProgress
from .step_types import Recorder

NS_PER_S: Final = 1e9


@dataclass(frozen=True, slots=True)
class StepContext:
    """One running step."""

    fleet: Fleet
    rollups: Rollups
    recorder: Recorder
    progress: StepProgress
    length_s: float  # of a subinterval
    cooldown: int  # subintervals without load, after the last one under load
    redistributes: bool = False  # the others drive what a lost host was to drive
    stop_on_error: bool = False  # the first I/O error halts the run
    lease_ns: int = USUAL_LEASE_NS
    start_timeout_s: float = USUAL_START_S  # the longest lead, and the longest wait for hosts that are not ready

    @property
    def length_ns(self) -> int:
        return round(self.length_s * NS_PER_S)
