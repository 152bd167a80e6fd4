"""Which part of a load that is not always on the measured time has: of workloads that begin later, and of bursts.

Rule: told from the plan's times alone, so it holds whatever the rate is, whoever changed it, and whichever hosts were
lost.
"""

from typing import Final

import numpy as np

from ...protocol.parameters import Bursts
from ..verdicts import Reason
from .metrics import column
from .validity_case import Case, Rows, each
from .volumes import APART, LONG_AGO

MOST_CUT: Final = 0.05  # of a load in bursts: so much more or less of it may be measured


def started_late(case: Case) -> Rows:
    """Find rows of which instances began well after the measurement did. Where all of a row's did, its rate is over
    more than their time: the rate since then is in the detail."""
    measurement, layout, starts = case.measurement, case.measurement.layout, case.settings.starts
    if not starts:
        return
    began_ns = round(measurement.first * case.length_s * 1e9)
    after_ns = [round(starts.get((host, n), 0.0) * 1e9) for host in layout.hosts for n in layout.numbers[host]]
    late_ns = np.maximum(np.array(after_ns, np.int64) - began_ns, 0)
    driven = layout.of_instances(starts) | (measurement.account.due > 0)
    last_ns = layout.over_rows(np.where(driven, late_ns, 0), np.maximum)
    all_ns = layout.over_rows(np.where(driven, late_ns, LONG_AGO), np.minimum)
    length_s, iops = measurement.merged.presence.length_s, column(case.figures, "overall_iops")

    def detail(row: int) -> str:
        idle_s = float(all_ns[row]) / 1e9
        if idle_s <= APART * length_s[row]:
            return f"the last {last_ns[row] / 1e9:.3g} s after the measurement's start"
        driven_s = length_s[row] - idle_s
        since = f": {iops[row] * length_s[row] / driven_s:.4g} IOPS since then" if driven_s > 0 else ""
        return f"all {idle_s:.3g} s after the measurement's start{since}"

    yield from each(last_ns > APART * length_s * 1e9, Reason.STARTED_LATE, detail)


def bursts_cut(case: Case) -> Rows:
    """Find rows with instances of whose bursts the measured time has more, or less, than of their pauses. One whose
    end is by volume is left out: it has other times."""
    measurement, layout, settings = case.measurement, case.measurement.layout, case.settings
    begin_s, end_s = (number * case.length_s for number in (measurement.first, measurement.last + 1))
    if not settings.bursts or measurement.subintervals != measurement.last + 1 - measurement.first:
        return
    excess = {
        key: _on_s(bursts, start_s, begin_s, end_s) / (end_s - begin_s) / (bursts.on / (bursts.on + bursts.off)) - 1
        for key, (bursts, start_s) in settings.bursts.items()
        if key not in settings.until and start_s <= begin_s
    }
    parts = [round(excess.get((host, n), 0.0) * 1e6) for host in layout.hosts for n in layout.numbers[host]]
    most = layout.over_rows(np.array(parts, np.int64), np.maximum) / 1e6
    least = layout.over_rows(np.array(parts, np.int64), np.minimum) / 1e6

    def detail(row: int) -> str:
        worst = max(most[row], least[row], key=abs)
        return f"{abs(worst):.0%} {'more' if worst > 0 else 'less'} of the load than in whole periods"

    yield from each((most > MOST_CUT) | (least < -MOST_CUT), Reason.BURSTS_CUT, detail)


def _on_s(bursts: Bursts, start_s: float, begin_s: float, end_s: float) -> float:
    """For how long it is on between two times of a step, neither before its start."""

    def until(at_s: float) -> float:
        whole, part = divmod(at_s - start_s, bursts.on + bursts.off)
        return float(whole * bursts.on + min(part, bursts.on))

    return until(end_s) - until(begin_s)
