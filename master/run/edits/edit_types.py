"""The settings in force that a change of a running test is checked with, and the refusal of one."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ....protocol.parameters import Parameters
from ...errors import PlanError
from ...rollup.instances import InstanceKey


@dataclass(frozen=True, slots=True)
class InForce:
    """The settings in force, which a change from outside is checked with."""

    parameters: Mapping[InstanceKey, Parameters]  # in force
    blocksizes: Mapping[InstanceKey, int]  # the most for each instance: what its buffers hold
    steered: frozenset[InstanceKey]  # the instances whose IOPS control sets


class EditRefused(PlanError):
    """A change of a running test is refused, and nothing was sent. The text has a line for each reason."""

    def __init__(self, reasons: Iterable[str]) -> None:
        self.reasons = tuple(reasons)
        super().__init__("\n".join(self.reasons))
