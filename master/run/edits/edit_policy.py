"""Whether an edit is allowed: by the plan's limits, the consent, the LUNs, and the step that runs.

Rule: pure. The whole edit is checked before any of it is sent. Every violation is one line, with the instances that it
concerns.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from ....protocol.geometry import extent, geometry_faults, within
from ....protocol.parameters import Parameters, VolumeKind, faults, largest_transfer
from ...rollup.instances import InstanceKey
from ...text.mixes import COUNTED, bytes_per_io
from ...text.suggestions import listed
from ...text.units import format_bytes
from ..setup.discover_luns import PlacedPlan
from .edit_types import EditRefused, InForce

_COUNTED_WORDS: Final = {VolumeKind.READ: "read", VolumeKind.WRITTEN: "written", VolumeKind.BYTES: "read and written"}
MOST_SAID: Final = 5  # instances that are spelled out


def check(after: Mapping[InstanceKey, Parameters], present: InForce, discovered: PlacedPlan, force: bool) -> None:
    """Whether the change may be made: limits, consent, and control's own instances. Raises EditRefused."""
    reasons = _lines(after, discovered, lambda key, one: _limits(key, one, discovered) or _now(key, one, present))
    reasons = reasons or _lines(after, discovered, lambda key, one: _misfits(key, one, discovered))
    before = present.parameters
    held = [key for key, one in after.items() if key in present.steered and one.iops != before[key].iops and not force]
    if held:
        reasons.append(
            f"{_names(held, discovered)}: the step's control sets its iops, and would set them again;"
            " use --force to edit it anyway"
        )
    if reasons:
        raise EditRefused(reasons)


def violations(wanted: Mapping[InstanceKey, Parameters], discovered: PlacedPlan) -> list[str]:
    """The rules that these parameters violate in this run: one line for each reason."""
    reasons = _lines(wanted, discovered, lambda key, one: _limits(key, one, discovered))
    return reasons or _lines(wanted, discovered, lambda key, one: _misfits(key, one, discovered))


def _lines(
    wanted: Mapping[InstanceKey, Parameters],
    discovered: PlacedPlan,
    against: Callable[[InstanceKey, Parameters], Iterable[str]],
) -> list[str]:
    """The violations that `against` finds for each instance: one line for each reason, with its instances."""
    reasons: dict[str, list[InstanceKey]] = {}
    for key, one in wanted.items():
        for reason in against(key, one):
            reasons.setdefault(reason, []).append(key)
    return [f"{_names(keys, discovered)}: {reason}" for reason, keys in reasons.items()]


def _limits(key: InstanceKey, parameters: Parameters, discovered: PlacedPlan) -> list[str]:
    limits = discovered.limits
    violated = faults(parameters)
    if parameters.maxtags > limits.tags[key]:
        violated.append(
            f"maxtags is {parameters.maxtags}, and the buffers are made for {limits.tags[key]};"
            f" `live: {{ maxtags: {parameters.maxtags} }}` in the plan would allow it"
        )
    what = parameters.until.what
    if what in COUNTED and not bytes_per_io(what, parameters):
        violated.append(f"until counts what is {_COUNTED_WORDS[what]}, and nothing would be: leave some of it")
    if parameters.fraction_read < 1.0 and key not in limits.writers:
        violated.append(
            "no step of the plan writes to this LUN, so it is outside the consent;"
            " a step with a lower fraction_read in the plan would include it"
        )
    elif parameters.fraction_read < 1.0:
        start, end = extent(parameters.range, discovered.placement.lun_of[key].lun.size)
        if not within((start, end), limits.written[key]):
            agreed = ", ".join(f"{first:,} to {behind:,}" for first, behind in limits.written[key])
            violated.append(
                f"it would write from byte {start:,} to {end:,}, but the agreed part is {agreed};"
                " `live: { range: ... }` in the plan would allow more"
            )
    return violated


def _now(key: InstanceKey, parameters: Parameters, present: InForce) -> list[str]:
    """The reasons against them in the step that runs."""
    most, wanted = present.blocksizes[key], largest_transfer(parameters)
    if wanted <= most:
        return []
    return [
        f"blocksize is {format_bytes(wanted)}, and the buffers hold {format_bytes(most)};"
        f" `live: {{ blocksize: {format_bytes(wanted)} }}` in the plan would allow it"
    ]


def _misfits(key: InstanceKey, parameters: Parameters, discovered: PlacedPlan) -> list[str]:
    lun = discovered.placement.lun_of[key].lun
    return [one.text for one in geometry_faults(parameters, lun.path, lun.kind, lun.size, lun.block)]


def _names(keys: Sequence[InstanceKey], discovered: PlacedPlan) -> str:
    ids = {(i.host, i.number): i.id for i in discovered.placement.instances}
    return listed([ids[key] for key in keys], MOST_SAID)
