"""The page of `ivypy devices`: what there is, what would be read, what overwritten, and the token.

Rule: it shows the very lists that `ivypy run` acts on; nothing is worked out twice.
"""

import asyncio

from ... import __version__
from ..hosts.bundle import slave_bundle
from ..hosts.gate import LoginGate
from ..plan.model import Plan
from .consent import counted, overwritten, token
from .discover import Discovered, discover, prepare
from .fleet import Fleet, connected
from .open import opener
from .placement import PlacedLun

LEAST_SHOWN = ("kind", "size", "vendor", "model", "serial", "wwn", "transport")  # in this order, then the others


async def devices_page(plan: Plan) -> str:
    """Connect, discover, and say what was found. Raises HostsError, PlanFaults."""
    loop = asyncio.get_running_loop()
    opening = opener(slave_bundle(), LoginGate())
    async with connected(
        plan.hosts, opening, lambda name: lambda text: None, lambda: int(loop.time() * 1e9), __version__
    ) as fleet:
        await prepare(plan, fleet)
        return "\n".join(page(plan, fleet, await discover(plan, fleet)))


def page(plan: Plan, fleet: Fleet, found: Discovered) -> list[str]:
    """The page, a line each."""
    lines = []
    for name, hello in fleet.hellos().items():
        luns = [lun for lun in found.placement.luns if lun.host == name]
        lines.append(
            f"{name} ({hello.hostname}, {len(hello.cores)} cores, {hello.kernel}): {counted(len(luns), 'LUN')} selected"
        )
        lines.append(f"  io_uring: {', '.join(hello.io_uring) or 'none'}")
        for lun in luns:
            lines += _lun(lun, found)
    doomed = overwritten(found.targets)
    lines.append("")
    if not doomed:
        lines.append("Nothing is overwritten" + (", but for files that the plan creates." if found.targets else "."))
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


def _lun(lun: PlacedLun, found: Discovered) -> list[str]:
    writers = found.limits.writers
    uses = [
        f"{instance.workload} ({'reads and writes' if (instance.host, instance.number) in writers else 'reads'})"
        for instance in found.placement.instances
        if (instance.host, instance.lun) == (lun.host, lun.lun.path)
    ]
    shown = [name for name in LEAST_SHOWN if name in lun.attributes]
    shown += sorted(set(lun.attributes) - set(shown) - {"path", "host", "hostname"})
    size = f"{lun.lun.size / 2**30:.4g} GiB"
    attributes = ", ".join(f"{name}={size if name == 'size' else lun.attributes[name]}" for name in shown)
    lines = [f"  {lun.lun.path}  {'to be created; ' if lun.created else ''}used by: {', '.join(uses) or 'no workload'}"]
    lines.append(f"      {attributes}")
    lines += [f"      not to be written: {refusal}" for refusal in lun.lun.refusals]
    return lines + [f"      {remark}" for remark in lun.lun.remarks]
