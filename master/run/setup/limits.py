"""The most that any step, loop or edit of a plan, or an edit of a running step, may set on a workload instance.

Rule: pure. Limits are fixed before anything is created, because I/O buffers are sized by them and consent is given to
them. An edit may write only where some step of the plan writes, or where the plan's `live:` section allows it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import ceil
from typing import Final

from ....protocol.geometry import Extent, extent, geometry_faults
from ....protocol.parameters import MAX, Parameters, VolumeKind, largest_transfer, order_faults
from ...control.until import UntilSpec
from ...errors import HostFault, HostsError
from ...plan.model import Plan, Step
from ...rollup.instances import InstanceKey, RollupInstance, Rollups
from ...text.mixes import bytes_per_io
from ...text.places import in_bytes
from ...text.plan_parameters import OfStep
from ...text.units import format_duration
from .baseline_step import Reference
from .placement import Placement
from .resolve_settings import resolve

FAST_IOPS: Final = 100_000.0  # of an instance: from there on, and at max, the faster backend is worth a trial


MOST_SECTIONS_OF_HOST: Final = 100_000  # over its workload instances: a few MB in each of its results
MOST_SECTION_ROWS: Final = 1_000_000  # of by_address.csv


@dataclass(frozen=True, slots=True)
class Limits:
    tags: Mapping[InstanceKey, int]
    writers: frozenset[InstanceKey]  # the instances that any step could make write
    written: Mapping[InstanceKey, tuple[Extent, ...]]  # of these: where; ascending, apart from each other
    blocksize: int  # that any step's live edits may ask for; 0: none is declared
    tags_on: Mapping[str, int]  # by host: the most I/Os that it may have in flight
    fast_tags: Mapping[
        InstanceKey, int
    ]  # the most tags in a step at FAST_IOPS or more; an instance without such is not in it

    def blocksize_beginning_with(self, parameters: Parameters) -> int:
        """The largest I/O, in bytes, that an instance's buffers hold in a step that begins with these parameters."""
        return max(self.blocksize, largest_transfer(parameters))


def check_sections(plan: Plan, rollups: Rollups) -> None:
    """Raises PlanFaults where `by_address` asks for more than a result, or by_address.csv, is to hold."""
    host = max(rollups.hosts(), key=lambda name: len(rollups.order(name)), default="")
    shown = sum(len(kind.instances) for kind in rollups.types if kind.csv)
    for count, most, what in (
        (len(rollups.order(host)), MOST_SECTIONS_OF_HOST, f"workload instances of {host}"),
        (shown, MOST_SECTION_ROWS, "rollup instances with files"),
    ):
        if count * plan.by_address > most:
            text = f"by_address: {plan.by_address} sections for each of {count:,} {what}; the most is {most // count}"
            raise plan.fault(None, text)


def limits_of(plan: Plan, placement: Placement, rollups: Rollups) -> Limits:
    """Raises HostsError, all hosts together, where the blocks or range of any step do not fit a LUN, or its volume is
    more than its rate and its timeout allow; PlanFaults where nothing in a step ends by volume that has to.
    """
    tags: dict[InstanceKey, int] = {}
    fast: dict[InstanceKey, int] = {}
    written: dict[InstanceKey, list[Extent]] = {}
    unfit: dict[tuple[InstanceKey, str], str] = {}  # instance and reason -> the first step with it
    for step in plan.steps:
        resolved = resolve(plan, step, placement, rollups, _whatever)
        for key, text in _out_of_reach(plan, step, resolved):
            unfit.setdefault((key, text), step.name)
        for key, parameters in resolved.items():
            lun = placement.lun_of[key].lun
            size = lun.size
            misfits = [one.text for one in geometry_faults(parameters, lun.path, lun.kind, size, lun.block)]
            for text in (*misfits, *(text for _, text in order_faults(parameters))):
                unfit.setdefault((key, text), step.name)
            tags[key] = max(tags.get(key, plan.live.maxtags), parameters.maxtags)
            if parameters.iops == MAX or parameters.iops >= FAST_IOPS or step.control.load is not None:
                fast[key] = max(fast.get(key, 0), parameters.maxtags)
            if parameters.fraction_read < 1.0:
                declared = [in_bytes(plan.live.range, size, parameters.blocksize)] if plan.live.range else []
                extents = [extent(one, size) for one in (parameters.range, *declared)]
                written.setdefault(key, []).extend(extents)
    if unfit:
        raise HostsError(
            [
                HostFault(key[0], f"{placement.names[key]}: in step {step}, {reason}", "")
                for (key, reason), step in unfit.items()
            ]
        )
    merged = {key: union(extents) for key, extents in written.items()}
    tags_on = dict.fromkeys(rollups.hosts(), 0)
    for (host, _), most in tags.items():
        tags_on[host] += most
    return Limits(tags, frozenset(written), merged, plan.live.blocksize, tags_on, fast)


def _out_of_reach(
    plan: Plan, step: Step, parameters: Mapping[InstanceKey, Parameters]
) -> Iterator[tuple[InstanceKey, str]]:
    """Of a step that ends by volume, the instances whose rate is too low for their volume, each with a sentence."""
    spec = step.control.measurement
    if not isinstance(spec, UntilSpec):
        return
    ending = {key: one for key, one in parameters.items() if one.until.what is not VolumeKind.NEVER and one.iops != 0}
    if not ending and parameters:
        text = "no workload of this step ends by volume: those with `until` are paused, or do no such I/O"
        raise plan.fault(step.place, f"step {step.name!r}: {text}; leave `until` out, or set fraction_read or iops")
    if any(isinstance(value, OfStep) for edit in step.edits for value in edit.changes.values()):
        return  # the rate is not known yet
    for key, settings in ending.items():
        if settings.until.what is VolumeKind.TIME:
            continue
        if settings.iops != MAX and (needed_s := _ios(settings) / float(settings.iops)) > spec.timeout_s:
            rate = f"{_ios(settings):,} I/Os at {settings.iops:g} IOPS take {format_duration(float(ceil(needed_s)))}"
            remedy = "raise iops, or until's timeout"
            yield (
                key,
                f"its volume is out of reach: {rate}, and the timeout is {format_duration(spec.timeout_s)}: {remedy}",
            )


def _ios(parameters: Parameters) -> int:
    """How many I/Os it takes to the end by volume."""
    what, amount = parameters.until.what, parameters.until.amount
    if what is VolumeKind.IOS:
        return amount
    return ceil(amount / bytes_per_io(what, parameters))


def _whatever(step: str, rollup: RollupInstance) -> Reference:
    """Limits do not depend on what a step will measure."""
    return Reference(1.0, frozenset(member.host for member in rollup.members))


def union(extents: Iterable[Extent]) -> tuple[Extent, ...]:
    """The same bytes, ascending, in as few extents as they are."""
    joined: list[Extent] = []
    for start, end in sorted(extents):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return tuple(joined)
