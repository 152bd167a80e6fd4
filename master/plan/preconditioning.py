"""`precondition`: the steps of a recipe that brings storage to a steady state, as if the plan had written them.

Rule: what the workload is, apart from its place and its rate, does not matter while capacity is written: sequential
writes of 128 KiB, as SNIA's PTS has them. What would shape them otherwise is set back. Then it runs at max. Of
`defaults` only times hold here.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ...protocol.parameters import MAX, Iosequencer
from ..rollup.instances import ALL
from ..text.plan_parameters import NO_END, PlanParameters
from .model import TOTAL_IOPS, Edit
from .read.schema import GoDoc, PlanDoc, PreconditionDoc
from .read.schema_control import SteadyDoc, UntilDoc
from .read.yaml_positions import Faults, Path

FILL: Final[Mapping[str, Any]] = {
    "iosequencer": Iosequencer.SEQUENTIAL,
    "blocksize": 128 << 10,
    "fraction_read": 0.0,
    "maxtags": 32,
    "iops": MAX,
}
_KEPT: Final = frozenset(  # of a workload, where and how it is driven
    (*FILL, "range", "seed", "scatter_seed", "direct", "drop_cache", "until", "once", "select", TOTAL_IOPS)
)


def steps_of_recipe(
    doc: PreconditionDoc, plan: PlanDoc, in_force: Sequence[Edit], path: Path, faults: Faults
) -> Iterator[tuple[GoDoc, tuple[Edit, ...]]]:
    """Each step as a `go`, and the edits beside those in force that hold in it alone."""
    if len(plan.workloads) != 1 and not faults.has_fault(("workloads",)):
        text = f"precondition drives every LUN by the plan's workload, but it has {len(plan.workloads)}"
        faults.add(path, f"{text}; write its steps: see `ivypy help fill`")
    place = faults.document.key_place(path)
    until = UntilDoc.model_construct(written=doc.written, timeout=doc.timeout)  # values: their texts have been read
    fill = GoDoc.model_construct(name=doc.name, until=until)
    yield fill, (Edit(ALL, (ALL,), _fill(plan, in_force), place),)
    steady = SteadyDoc.model_construct(criterion="snia", window=doc.window, timeout=doc.timeout)
    driven: Mapping[str, Any] = {"iops": MAX, "until": NO_END}  # a rate that is given is steady on any storage
    yield GoDoc.model_construct(name=f"{doc.name}-steady", steady=steady), (Edit(ALL, (ALL,), driven, place),)


def _fill(plan: PlanDoc, in_force: Sequence[Edit]) -> dict[str, Any]:
    """The settings of the fill: its own, and the usual ones of all that was set otherwise."""
    workloads: Mapping[str, Any] = plan.workloads
    names = {name for workload in workloads.values() for name in workload.model_fields_set}
    names |= {name for edit in in_force for name in edit.changes}
    names |= {"random_map"} if "once" in names else set()
    usual = PlanParameters()
    return {**FILL, **{name: getattr(usual, name) for name in sorted(names - _KEPT) if name != "operations"}}
