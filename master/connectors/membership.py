"""Which elements of a connector belong to which rollup instance.

Rule: an element belongs to a rollup instance if it belongs to one of its LUNs: if the LUN has an attribute named like
the element type, with that instance as a value. Types that no attribute of any LUN could name (an array's only cache, a
host's memory) belong to all LUNs: of its host, where the connector runs on a test host. What belongs to the LUN of no
workload is not participating.
"""

import numpy as np
from numpy.typing import NDArray

from ..rollup.instances import Rollups
from .catalog import ElementTable
from .connector_spec import ConnectorSpec
from .joined_luns import JoinedLuns

Rows = NDArray[np.intp]


class Membership:
    """The elements of one connector, by rollup instance."""

    def __init__(self, spec: ConnectorSpec, joined: JoinedLuns, rollups: Rollups) -> None:
        self._related = joined.related
        self._everywhere: list[bool] = []  # by row: elements of types that are not related belong to it
        self._names: list[dict[str, frozenset[str]]] = []  # by row: element type -> instances
        of_instance = {(one.host, one.number): joined.of_lun(one.host, one.attributes) for one in rollups.instances}
        for rollup in rollups.rows:
            instances: dict[str, set[str]] = {}
            for member in rollup.members:
                for name, values in of_instance[member.host, member.number].items():
                    instances.setdefault(name, set()).update(values)
            self._names.append({name: frozenset(values) for name, values in instances.items()})
            hosts = {member.host for member in rollup.members}
            self._everywhere.append(not spec.test_host or spec.test_host in hosts)
        self.rollup_rows = [row for row, names in enumerate(self._names) if names or self._everywhere[row]]

    def rows(self, table: ElementTable, rollup_row: int) -> Rows:
        """The rows of an element type that belong to a rollup instance."""
        if table.name not in self._related:
            return np.arange(len(table.rows) if self._everywhere[rollup_row] else 0)
        names = self._names[rollup_row].get(table.name, frozenset())
        return np.array([row for instance, row in list(table.rows.items()) if instance in names], dtype=np.intp)

    def not_participating(self, table: ElementTable) -> Rows:
        """The rows of an element type that belong to no workload's LUN; `all=all` is the first rollup instance."""
        known = range(len(table.rows))  # before those that are taken are read: there may be more of them by then
        mine = set(self.rows(table, 0).tolist())
        return np.array([row for row in known if row not in mine], dtype=np.intp)
