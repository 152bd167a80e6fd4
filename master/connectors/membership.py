"""Which elements of a connector belong to which rollup instance.

Rule: an element belongs to a rollup instance if it belongs to one of its LUNs: if the LUN has an attribute named like
the element type, with that instance as a value. Types that no attribute of any LUN could name (an array's only cache, a
host's memory) belong to all LUNs: of its host, where a test host reads them. What belongs to the LUN of no
workload is not participating.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ..rollup.instances import Rollups
from .catalog import ElementTable
from .joined_luns import NOTHING, JoinedLuns

Rows = NDArray[np.intp]
ALL_HOSTS = ""  # in the place of a test host: a connector that is on none


class Membership:
    """The elements of one connector, by rollup instance."""

    def __init__(self, joined: Mapping[str, JoinedLuns], rollups: Rollups, host_of: Mapping[str, str]) -> None:
        """`joined`: by the test host that it is about, or ALL_HOSTS; `host_of`: the one that each element is on."""
        self._everywhere = (ALL_HOSTS,) if ALL_HOSTS in joined else ()
        self.host_of = host_of
        self._by_host: dict[str, tuple[int, dict[str, list[int]]]] = {}  # by element type: of how many rows, by host
        self._related = frozenset(name for one in joined.values() for name in one.related)
        self._names: list[dict[str, frozenset[str]]] = []  # by row: element type -> instances
        self._hosts: list[frozenset[str]] = []  # by row: elements of types that are not related belong to it
        of_instance = {
            (one.host, one.number): mine.of_lun(one.host, one.attributes)
            for one in rollups.instances
            if (mine := joined.get(one.host, joined.get(ALL_HOSTS))) is not None
        }
        for rollup in rollups.rows:
            instances: dict[str, set[str]] = {}
            for member in rollup.members:
                for name, values in of_instance.get((member.host, member.number), NOTHING).items():
                    instances.setdefault(name, set()).update(values)
            self._names.append({name: frozenset(values) for name, values in instances.items()})
            self._hosts.append(frozenset(member.host for member in rollup.members))
        everywhere = ALL_HOSTS in joined
        self.rollup_rows = [
            row
            for row, names in enumerate(self._names)
            if names or everywhere or not self._hosts[row].isdisjoint(joined)
        ]

    def rows(self, table: ElementTable, rollup_row: int) -> Rows:
        """The rows of an element type that belong to a rollup instance, ascending."""
        if table.name in self._related:
            names = self._names[rollup_row].get(table.name, ())
            rows = [row for name in names if (row := table.rows.get(name)) is not None]
        else:
            of_host = self._rows_by_host(table)
            rows = [row for host in (*self._everywhere, *self._hosts[rollup_row]) for row in of_host.get(host, ())]
        return np.array(sorted(rows), dtype=np.intp)

    def _rows_by_host(self, table: ElementTable) -> Mapping[str, list[int]]:
        """Worked out anew when there are new ones."""
        known = list(table.rows.items())
        count, by_host = self._by_host.get(table.name, (-1, {}))
        if count != len(known):
            by_host = {}
            for instance, row in known:
                by_host.setdefault(self.host_of.get(instance, ALL_HOSTS), []).append(row)
            self._by_host[table.name] = len(known), by_host
        return by_host

    def not_participating(self, table: ElementTable) -> Rows:
        """The rows of an element type that belong to no workload's LUN; `all=all` is the first rollup instance. Those
        that no host has any more are nobody's."""
        known = list(table.rows.items())  # before those that are taken are read: there may be more of them by then
        mine = set(self.rows(table, 0).tolist())
        others = [row for name, row in known if row not in mine and (self._everywhere or name in self.host_of)]
        return np.array(others, dtype=np.intp)
