"""The page of `ivypy devices`: the LUNs that a plan selects, which would be read or overwritten, and the token.

Rule: it shows the very lists that `ivypy run` acts on; nothing is worked out twice.
"""

import asyncio

from ... import __version__
from ...protocol.consent_check import identified_by
from ..hosts.bundle import slave_bundles
from ..hosts.login_throttle import LoginThrottle
from ..plan.model import Plan
from ..run.connect import connected, opener
from ..run.consent import counted, overwritten, token
from ..run.discover_luns import PlacedPlan, discover, prepare
from ..run.fleet import Fleet
from ..run.placement import PlacedLun

LEAST_SHOWN = ("kind", "size", "vendor", "model", "serial", "wwn", "transport")  # in this order, then the others


async def devices_page(plan: Plan) -> str:
    """Connect, discover, and say what was found. Raises HostsError, PlanFaults."""
    loop = asyncio.get_running_loop()
    opening = opener(slave_bundles(), LoginThrottle())
    async with connected(
        plan.hosts, opening, lambda name: lambda text: None, __version__, lambda: int(loop.time() * 1e9), plan.may_miss
    ) as (fleet, _):
        await prepare(plan, fleet)
        found = await discover(plan, fleet)
        missed = [f"{fault.host} is missing: {fault.what}" for fault in fleet.missed.values()]
        return "\n".join([*missed, *page(plan, fleet, found)])


def page(plan: Plan, fleet: Fleet, found: PlacedPlan) -> list[str]:
    """The page, a line each."""
    lines = []
    luns_of: dict[str, list[PlacedLun]] = {}
    for lun in found.placement.luns:
        luns_of.setdefault(lun.host, []).append(lun)
    uses = _uses(found)
    for name, hello in fleet.hellos().items():
        luns = luns_of.get(name, [])
        lines.append(
            f"{name} ({hello.hostname}, {len(hello.cores)} cores, {hello.kernel}): {counted(len(luns), 'LUN')} selected"
        )
        lines.append(f"  io_uring: {', '.join(hello.io_uring) or 'none'}")
        for lun in luns:
            lines += _lun(lun, uses.get((lun.host, lun.lun.path), []))
            lines += [f"      the same LUN as {one.host}: {one.lun.path}" for one in found.placement.others(lun)]
    doomed = overwritten(found.targets)
    lines.append("")
    if not doomed:
        lines.append("Nothing is overwritten" + (", except files that the plan creates." if found.targets else "."))
        return lines
    lines.append(f"{counted(len(doomed), 'LUN')} would be overwritten:")
    lines += [f"  {target.host}: {target.lun.path} ({target.lun.size / 2**30:.4g} GiB)" for target in doomed]
    held = [f"  {t.host}: {t.lun.path}: {refusal}" for t in doomed for refusal in t.lun.refusals]
    if held:
        lines += ["which is refused, whatever the plan says:", *held]
        return lines
    said = "" if plan.destroy else "add `destroy: true` to the plan, and "
    lines.append(f"To agree to exactly this list: {said}ivypy run --destroy {token(found.targets)} {plan.path or ''}")
    return lines


def _uses(found: PlacedPlan) -> dict[tuple[str, str], list[str]]:
    """What each workload does with each LUN, by host and path."""
    uses: dict[tuple[str, str], list[str]] = {}
    for instance in found.placement.instances:
        writes = (instance.host, instance.number) in found.limits.writers
        does = f"{instance.workload} ({'reads and writes' if writes else 'reads'})"
        uses.setdefault((instance.host, instance.lun), []).append(does)
    return uses


def _lun(lun: PlacedLun, uses: list[str]) -> list[str]:
    shown = [name for name in LEAST_SHOWN if name in lun.attributes]
    shown += sorted(set(lun.attributes) - set(shown) - {"path", "host", "hostname"})
    size = f"{lun.lun.size / 2**30:.4g} GiB"
    attributes = ", ".join(f"{name}={size if name == 'size' else lun.attributes[name]}" for name in shown)
    still = "to be created; " if lun.created and lun.lun.identity is None else ""
    lines = [f"  {lun.lun.path}  {still}used by: {', '.join(uses) or 'no workload'}"]
    lines.append(f"      {attributes}")
    if lun.lun.identity is not None:
        lines.append(f"      known by {identified_by(lun.lun.identity)}")
    lines += [f"      never written: {refusal}" for refusal in lun.lun.refusals]
    return lines + [f"      {notice.text}" for notice in lun.lun.notices]
