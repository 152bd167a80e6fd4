"""The page of `ivypy devices`: the hosts, the LUNs that a plan selects and what it does with them, and the token.

Rule: it shows the very lists that `ivypy run` acts on; nothing is worked out twice.
"""

from collections.abc import Callable, Mapping

from ...protocol.consent_check import identified_by
from ...protocol.messages import Hello
from ..connectors.lifecycle import launcher, opened
from ..exit_codes import ExitCode
from ..hosts.login_throttle import LoginThrottle
from ..plan.model import Plan
from ..run.setup.consent import counted, described, overwritten, token
from ..run.setup.discover_luns import PlacedPlan, discover, prepare
from ..run.setup.placement import PlacedLun
from .host_faults import fault_lines
from .host_list import host_lines, reachable
from .last_words import LastWords

LEAST_SHOWN = ("kind", "size", "vendor", "model", "serial", "wwn", "transport")  # in this order, then the others


async def devices_page(plan: Plan, show: Callable[[str], None]) -> ExitCode:
    """Connect and discover; `show` gets what was found, first about the hosts. One that cannot be used hides no other.

    Returns HOSTS where more hosts are missing than the plan allows, REFUSED where a LUN that it would write is refused.
    Raises HostsError, PlanFaults.
    """
    words, notices = LastWords(), list[str]()
    async with (
        reachable(plan) as fleet,
        opened(launcher(LoginThrottle()), words.log, lambda kind, text, host: notices.append(text)) as connectors,
    ):
        connected_ones = fleet.hellos()
        if connected_ones:
            await prepare(plan, fleet)
        show("\n".join(host_lines(connected_ones, fleet.missed.values(), plan.engine.backend)))
        if not fleet.alive:
            return ExitCode.HOSTS
        shown = set(fleet.missed)
        await connectors.start(plan.connectors, fleet.lag)
        show("\n".join(notices))
        try:
            placed = await discover(plan, fleet, connectors.attributes)
        finally:
            show("\n".join(fault_lines(fault for host, fault in fleet.missed.items() if host not in shown)))
        too_many = len(fleet.missed) > plan.may_miss
        show("\n".join([*_luns(fleet.hellos(), placed), "", *_overwritten(plan, placed, too_many)]))
        refused = any(target.lun.refusals for target in placed.targets)
        return ExitCode.HOSTS if too_many else ExitCode.REFUSED if refused else ExitCode.OK


def _luns(hellos: Mapping[str, Hello], placed: PlacedPlan) -> list[str]:
    """The LUNs of each host."""
    lines = []
    luns_of: dict[str, list[PlacedLun]] = {}
    for lun in placed.placement.luns:
        luns_of.setdefault(lun.host, []).append(lun)
    uses = _uses(placed)
    for name in hellos:
        luns = luns_of.get(name, [])
        lines.append(f"{name}: {counted(len(luns), 'LUN')} selected")
        for lun in luns:
            lines += _lun(lun, uses.get((lun.host, lun.lun.path), []))
            lines += [f"      the same LUN as {one.host}: {one.lun.path}" for one in placed.placement.others(lun)]
    return lines


def _overwritten(plan: Plan, placed: PlacedPlan, too_many: bool) -> list[str]:
    """The LUNs that the plan would overwrite, and how to agree to it; `too_many` hosts are missing, and their LUNs not
    known.
    """
    doomed = overwritten(placed.targets)
    if not doomed:
        return ["Nothing is overwritten" + (", except files that the plan creates." if placed.targets else ".")]
    lines = [f"{counted(len(doomed), 'LUN')} would be overwritten:"]
    lines += [f"  {target.host}: {target.lun.path} ({described(target.lun)})" for target in doomed]
    held = [f"  {t.host}: {t.lun.path}: {refusal}" for t in doomed for refusal in t.lun.refusals]
    if held:
        lines += ["which is refused, whatever the plan says:", *held]
        return lines
    if too_many:
        lines.append("There is no token for this list while hosts are missing: `ivypy run` would not begin.")
        return lines
    first = "" if plan.destroy else " add `destroy: true` to the plan, and"
    lines.append(f"To agree to exactly this list:{first}")
    lines.append(f"  ivypy run --destroy {token(placed.targets)} {plan.path or ''}")
    return lines


def _uses(placed: PlacedPlan) -> dict[tuple[str, str], list[str]]:
    """The workloads of each LUN and what they do with it, by host and path."""
    uses: dict[tuple[str, str], list[str]] = {}
    for instance in placed.placement.instances:
        writes = (instance.host, instance.number) in placed.limits.writers
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
    if lun.lun.holds:
        lines.append(f"      contents: {', '.join(lun.lun.holds)}")
    lines += [f"      never written: {refusal}" for refusal in lun.lun.refusals]
    return lines + [f"      {notice.text}" for notice in lun.lun.notices]
