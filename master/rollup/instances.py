"""Rollup types and instances: slicings of the workload instances by combinations of attributes.

Rule: every workload instance is in exactly one rollup instance of every type, an absent attribute being `none`;
`all=all` always exists and comes first. All rollup instances of all types stand in one list, so that one number,
the *row*, names a rollup instance, and everything that is merged is an array with that many rows.

Workload instances of a host that share their rollup instance in *every* type are one *merge class*: nothing here
ever needs them apart, so the host merges them before it sends.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ...protocol.payload import Attribute

InstanceKey = tuple[str, int]  # a workload instance: its host, and its number there

ABSENT: Final = "none"
ALL: Final = "all"


@dataclass(frozen=True, slots=True)
class RollupSpec:
    """A rollup type in a plan."""

    by: tuple[str, ...]  # attribute names
    quantity: int | None  # required number of instances
    max_droop: float | None  # 1 - slowest/fastest instance's IOPS must stay below this
    csv: bool  # its instances have files in every step's folder

    @property
    def name(self) -> str:
        return "+".join(self.by)


EVERYTHING: Final = RollupSpec((ALL,), None, None, csv=True)  # the type that always exists, unless a plan says more


@dataclass(frozen=True, slots=True)
class WorkloadInstance:
    """One workload on one LUN of one host."""

    number: int  # the controller's, unique on its host; `go` and results name it
    host: str  # as the plan names it
    lun: str  # path
    workload: str
    attributes: Mapping[str, Attribute] = field(default_factory=dict)  # the LUN's
    first: tuple[str, str] | None = None  # the first host and path that lead to the same LUN, where several do

    @property
    def distinct_lun(self) -> tuple[str, str]:
        """Host and path: one pair for each LUN, however many paths lead to it."""
        return self.first or (self.host, self.lun)

    @property
    def id(self) -> str:
        return f"{self.host}+{self.lun}+{self.workload}"

    def attribute(self, name: str) -> str:
        """The value of an attribute as text. `lun` is host-qualified, since two hosts may call two disks /dev/sdb."""
        match name:
            case "all":
                return ALL
            case "host":
                return self.host
            case "lun":
                return f"{self.host}:{self.lun}"
            case "workload":
                return self.workload
        value = self.attributes.get(name)
        return ABSENT if value is None or value == "" else str(value)


@dataclass(frozen=True, slots=True)
class RollupInstance:
    """One slice: the workload instances that share the values of a type's attributes."""

    row: int  # its place in Rollups.rows and in every merged array
    type: str
    name: str  # the values joined by "+"
    values: tuple[str, ...]
    members: tuple[WorkloadInstance, ...]

    def __str__(self) -> str:
        return f"{self.type}={self.name}"


@dataclass(frozen=True, slots=True)
class RollupType:
    """One way of slicing."""

    name: str
    by: tuple[str, ...]
    quantity: int | None  # how many instances there must be
    max_droop: float | None  # how far, as a fraction, the slowest may be below the fastest
    csv: bool  # whether its instances get files in every step's folder
    instances: tuple[RollupInstance, ...]
    _by_name: Mapping[str, RollupInstance] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_name", {instance.name: instance for instance in reversed(self.instances)})

    def instance(self, name: str) -> RollupInstance:
        """Raises KeyError for a name that no instance has."""
        return self._by_name[name]


@dataclass(frozen=True, slots=True)
class Classes:
    """The merge classes of one host, for one order of its workload instances."""

    order: tuple[int, ...]  # workload numbers, as `go` lists them
    class_of: tuple[int, ...]  # the merge class of each, 0, 1, 2 ... in order of appearance
    rows: tuple[tuple[int, ...], ...]  # per class: its row in every rollup type


@dataclass(frozen=True, slots=True)
class Rollups:
    """All rollup types over one set of workload instances."""

    instances: tuple[WorkloadInstance, ...]
    types: tuple[RollupType, ...]
    rows: tuple[RollupInstance, ...]  # every instance of every type, types one after the other
    _rows_of: Mapping[InstanceKey, tuple[int, ...]]  # (host, number) -> row in every type
    _numbers: Mapping[str, tuple[int, ...]]  # host -> numbers of its instances
    sections: int = 0  # of each LUN, by which I/Os are counted; 0: they are not

    @classmethod
    def build(cls, instances: Sequence[WorkloadInstance], specs: Iterable[RollupSpec], sections: int = 0) -> "Rollups":
        """Slice `instances` by each of `specs`, and by `all`. Rollup instances keep the order of first appearance."""
        given = list(specs)
        first = [spec for spec in given if spec.name == ALL][:1] or [EVERYTHING]
        types: list[RollupType] = []
        rows: list[RollupInstance] = []
        rows_of: dict[InstanceKey, list[int]] = {(i.host, i.number): [] for i in instances}
        if len(rows_of) < len(instances):
            raise ValueError("two workload instances of one host have one number")
        for spec in [*first, *(spec for spec in given if spec.name != ALL)]:
            made = _slice(spec, instances, len(rows))
            types.append(RollupType(spec.name, tuple(spec.by), spec.quantity, spec.max_droop, spec.csv, made))
            rows.extend(made)
            for rollup in made:
                for member in rollup.members:
                    rows_of[member.host, member.number].append(rollup.row)
        numbers: dict[str, list[int]] = {}
        for instance in instances:
            numbers.setdefault(instance.host, []).append(instance.number)
        return cls(
            instances=tuple(instances),
            types=tuple(types),
            rows=tuple(rows),
            _rows_of={key: tuple(of_one) for key, of_one in rows_of.items()},
            _numbers={host: tuple(of_host) for host, of_host in numbers.items()},
            sections=sections,
        )

    def type(self, name: str) -> RollupType:
        """Raises KeyError for a name that no type has."""
        for rollup_type in self.types:
            if rollup_type.name == name:
                return rollup_type
        raise KeyError(name)

    def hosts(self) -> tuple[str, ...]:
        """The hosts that have workload instances, in order of first appearance."""
        return tuple(self._numbers)

    def order(self, host: str) -> tuple[int, ...]:
        """The numbers of a host's workload instances, in the order in which they were given."""
        return self._numbers.get(host, ())

    def rows_of(self, host: str, number: int) -> tuple[int, ...]:
        """The rows of one workload instance, one per type. Raises KeyError if there is no such instance."""
        return self._rows_of[host, number]

    def classes(self, host: str, order: Sequence[int] | None = None) -> Classes:
        """The merge classes of `host`, for `order` (default: all its instances)."""
        numbers = self.order(host) if order is None else tuple(order)
        found: dict[tuple[int, ...], int] = {}
        of = tuple(found.setdefault(self._rows_of[host, number], len(found)) for number in numbers)
        return Classes(numbers, of, tuple(found))


def _slice(spec: RollupSpec, instances: Sequence[WorkloadInstance], first: int) -> tuple[RollupInstance, ...]:
    slices: dict[tuple[str, ...], list[WorkloadInstance]] = {}
    for instance in instances:
        slices.setdefault(tuple(instance.attribute(name) for name in spec.by), []).append(instance)
    return tuple(
        RollupInstance(first + i, spec.name, joined(values), values, tuple(members))
        for i, (values, members) in enumerate(slices.items())
    )


def joined(values: Sequence[str]) -> str:
    """Values as one name. Where there are several, "+" and "%" in one become %2B and %25: no two names are equal."""
    if len(values) == 1:
        return values[0]
    return "+".join(value.replace("%", "%25").replace("+", "%2B") for value in values)
