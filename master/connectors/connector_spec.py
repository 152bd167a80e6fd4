"""A connector as the plan names it: what is started where, when it gathers, and which LUNs its elements are."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from ..hosts.host_spec import HostSpec

USUAL_DEADLINE: Final = 0.25  # of a subinterval, after its end
LATEST_DEADLINE: Final = 0.75  # of a subinterval
USUAL_JOIN: Final[Mapping[str, str]] = {"wwn": "wwn", "serial": "serial"}
HOST: Final = "host"  # the connector that every test host is: its readings come with its results
ELEMENTS: Final = "connectors"  # folder of the files of single elements, beside those of rollup types
OTHERS: Final = "non_participating"  # folder of what belongs to no workload's LUN


class GatherAt(StrEnum):
    """When the values of a subinterval are gathered."""

    JUST_IN_TIME = "just_in_time"  # so early that it ends with the subinterval
    END = "end"  # it begins with the end of the subinterval


@dataclass(frozen=True, slots=True)
class ConnectorSpec:
    """One connector."""

    name: str  # unique; its metrics' names begin with it
    host: HostSpec  # where it is started, and how
    program: tuple[str, ...]  # words of its command line; none: a test host, which is the connector itself
    attributes: tuple[str, ...] = ()  # of LUNs, that it gives to those that are its elements
    join: Mapping[str, str] = field(default_factory=lambda: USUAL_JOIN)  # LUN's attribute: the element's of equal value
    gather: GatherAt = GatherAt.JUST_IN_TIME
    deadline: float = USUAL_DEADLINE
    required: bool = True  # the run is refused if it cannot be started
    test_host: str = ""  # the plan's name of the host that it is; "" for any other connector

    @property
    def log_name(self) -> str:
        return f"connector.{self.name}"

    def qualified(self, instance: str) -> str:
        """An element's instance as the run names it: hosts have disks of the same names."""
        return f"{self.test_host}:{instance}" if self.test_host else instance
