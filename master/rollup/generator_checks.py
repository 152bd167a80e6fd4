"""Whether the generator itself, or a host that lacks CPU time, made the figures: late submissions, completions that
were found late, busy threads, CPU time that others took.

Rule: pure; one function for each check, for all rows at once (validity.py has the list).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from ...protocol.counters import Count
from ..verdicts import Finding, Reason, Severity
from . import thread_stats
from .arrays import Floats
from .host_cpu import Contention, contentions, lost_shares
from .parameters_in_force import Settings
from .validity_case import Case, Rows, each, rows_of_host
from .window import Measurement

LATENESS_NOTE: Final = 0.10  # of the response time; with think_time, of the time from I/O to I/O
LATENESS_INVALID: Final = 0.25
KEPT_INVALID: Final = 0.25  # of the time: at max the rate is lower, and the mean longer, by that part
BEYOND_P99: Final = 0.01  # of the I/Os
IDLE_WEIGHT: Final = 1e-9  # of an instance without I/O among others: what its thread lost counts where none has any
LEAST_PART_OF_DELAY: Final = 0.5  # that others had the time for: the delays are theirs
OWN_PASSES: Final = 2.0  # mean service times; at max those are passes of the thread, and a completion waits for no more
LEAST_REAP_DELAY_US: Final = 10.0  # a thread's own pass, or a submit call, may take so long; less is not checked
MOST_WAIT_PERCENT: Final = 5.0  # for a core: a thread that waits for more may look idle, and has no time left
WANTED_CORE_PERCENT: Final = 1.0  # of the time: a thread ran, or waited to run


def uncovered(case: Case) -> Rows:
    for host, count in case.measurement.uncovered.items():
        finding = Finding(Reason.OVERRUN, f"{host}: {count} times", Severity.INVALID)
        for row in rows_of_host(case.measurement, host):
            yield row, finding
    for host, count in case.measurement.covered.items():
        detail = f"{host}: {count} of {case.measurement.subintervals} subintervals are in the result of a later one"
        stalled_ms = case.measurement.taken[host].longest_stall_ns / 1e6
        if stalled_ms:
            detail += f", no thread of its slave ran for up to {stalled_ms:,.0f} ms"
        for row in rows_of_host(case.measurement, host):
            yield row, Finding(Reason.OVERRUN, detail, Severity.NOTE)


def late_submissions(case: Case) -> Rows:
    """How much of the response times is the generator's own lateness.

    The mean and the p99 can make a row invalid; higher percentiles and the maximum give a note.
    """
    response, lateness = case.figures.response("overall"), case.figures.lateness()
    shown = case.figures.has_response("overall")

    def part(of_lateness: Floats, of_response: Floats) -> Floats:
        known = shown & (of_response > 0) & ~np.isnan(of_lateness)
        return np.divide(of_lateness, of_response, out=np.zeros(len(shown)), where=known)

    def tail(name: str) -> Floats:
        share = 1 - case.figures.punctual(name) / response.percentile(name)
        return np.where(shown, np.nan_to_num(share), 0.0)

    checked = {"mean": part(lateness.mean, response.mean), "p99": tail("p99")}
    noted = {"p99.9": tail("p99_9"), "max": part(lateness.max, response.max)}
    limits = {**dict.fromkeys(checked, LATENESS_NOTE), **dict.fromkeys(noted, LATENESS_INVALID)}
    parts = {**checked, **noted}

    def detail(row: int) -> str:
        said = {name: float(found[row]) for name, found in parts.items() if found[row] > limits[name]}
        return ", ".join(f"{found:.0%} of the {name}" for name, found in said.items())

    invalid = np.maximum(*checked.values()) > LATENESS_INVALID
    worth_a_note = np.any([found > limits[name] for name, found in parts.items()], axis=0)
    yield from each(invalid, Reason.GENERATOR_LATE, detail, Severity.INVALID)
    yield from each(worth_a_note & ~invalid, Reason.GENERATOR_LATE, detail, Severity.NOTE)


def long_thoughts(case: Case) -> Rows:
    """How much longer tags waited than they were to think, of the mean time from an I/O of a tag to its next one.

    By Little's law that time is tags / rate, whatever else a tag waits for.
    """
    lateness, rate = case.figures.lateness().mean, case.figures.rate("overall", 0)
    share = np.nan_to_num(lateness * rate / (case.settings.thinking_tags * 1e6))

    def detail(row: int) -> str:
        return f"{share[row]:.0%} of the mean time from an I/O of a tag to its next one"

    yield from each(share > LATENESS_INVALID, Reason.THOUGHT_TOO_LONG, detail, Severity.INVALID)
    a_little = (share > LATENESS_NOTE) & (share <= LATENESS_INVALID)
    yield from each(a_little, Reason.THOUGHT_TOO_LONG, detail, Severity.NOTE)


def reap_delay(case: Case) -> Rows:
    """How much of the service times may be waits of completions for their thread.

    A thread with `iops: max` is always busy, unless its tags think, so completions wait for its own work: that is
    at most a note. What others did counts there too. I/Os are in flight all the time, so of all their time the part
    in which the thread was kept from running is the part of time that it was (Little's law): for the mean,
    cpu_contention says so. The p99 is theirs where that part is enough for the delay of a hundredth of the I/Os,
    and either a good part of all delay, or the delay longer than the thread's own work can make it.
    """
    figures, service = case.figures, case.figures.service("overall")

    def checked(share: Floats, of_us: Floats, limit: float) -> Floats:
        """The rows above the limit, and long enough to be checked."""
        share, of_us = np.nan_to_num(share), np.nan_to_num(of_us)
        return np.where((share > limit) & (share * of_us >= LEAST_REAP_DELAY_US), share, 0.0)

    def tail(name: str, limit: float) -> Floats:
        found = service.percentile(name)
        return checked(1 - figures.undelayed(name) / found, found, limit)

    none = np.zeros_like(service.mean)
    mean = np.divide(figures.reap_delay_ns(), service.total_ns, out=none, where=service.count > 0)
    parts = {
        "mean": checked(mean, service.mean, LATENESS_NOTE),
        "p99": tail("p99", LATENESS_NOTE),
        "p99.9": tail("p99_9", LATENESS_INVALID),
    }

    def detail(row: int) -> str:
        return ", ".join(f"{found[row]:.0%} of the {name}" for name, found in parts.items() if found[row] > 0)

    paced = ~np.array(case.settings.some_max, bool) | ~np.isnan(case.settings.thinking_tags)
    kept = kept_shares(case.measurement, case.settings)
    delayed = np.nan_to_num(service.percentile("p99") - figures.undelayed("p99"))
    mean_us = np.nan_to_num(service.mean)
    enough = (kept > 0) & (kept * mean_us >= BEYOND_P99 * delayed)
    by_others = enough & ((kept >= LEAST_PART_OF_DELAY * np.nan_to_num(mean)) | (delayed > OWN_PASSES * mean_us))
    invalid = paced & (parts["mean"] > LATENESS_INVALID) | (paced | by_others) & (parts["p99"] > LATENESS_INVALID)
    worth_a_note = np.any([found > 0 for found in parts.values()], axis=0)
    calls = {row: _long_submit_calls(of_host) for row, of_host in _workers(case)}
    for row in np.flatnonzero(worth_a_note).tolist():
        severity = Severity.INVALID if invalid[row] else Severity.NOTE
        yield row, Finding(Reason.REAP_DELAY, detail(row), severity, cause=calls.get(row, ""))


def _long_submit_calls(of_host: Mapping[str, thread_stats.ThreadSummary]) -> str:
    """The sentence, about the host with the longest; "" where they are short."""
    host = max(of_host, key=lambda name: of_host[name].submit_us)
    if (us := of_host[host].submit_us) < LEAST_REAP_DELAY_US:
        return ""
    return f"{host}: a submit call takes {us:.0f} us on average, and the thread finds no completions meanwhile"


def busy_threads(case: Case) -> Rows:
    """By the busy share of workload threads' cores, which includes other programs; where a thread busy-waits, by the
    thread's own work. Where a host's other threads had time left, that is the remedy. A core that is busy with others
    alone does not limit threads that hardly want it."""
    of_row = _busiest_cores(case)
    waits = _longest_waits(case)
    calm = {host for host, taken in case.measurement.taken.items() if taken.wait <= MOST_WAIT_PERCENT}
    for row, of_host in _workers(case):
        core = of_row.get(row, 0.0)
        thread = max(one.busy_percent for one in of_host.values())
        wanted = thread + waits.get(row, 0.0) >= WANTED_CORE_PERCENT
        spins = any(one.spins for one in of_host.values())
        if uneven := [host for host, one in of_host.items() if one.busy and one.idle and host in calm]:
            yield row, Finding(Reason.HOST_LIMIT, _idle_beside_busy(of_host, uneven))
        elif core >= thread_stats.BUSY_PERCENT and wanted and not spins:
            yield row, Finding(Reason.HOST_LIMIT, f"busiest core {core:.0f} %")
        elif thread >= thread_stats.BUSY_PERCENT:
            yield row, Finding(Reason.HOST_LIMIT, f"busiest workload thread {thread:.0f} %")


def _idle_beside_busy(of_host: Mapping[str, thread_stats.ThreadSummary], uneven: Sequence[str]) -> str:
    """The host with the busiest thread stands for all that are `uneven`; the others are counted."""
    host = max(uneven, key=lambda name: of_host[name].busy_percent)
    summary = of_host[host]
    threads = "one thread" if summary.busy == 1 else f"{summary.busy} threads"
    busy = f"{threads} of {summary.threads} {'was' if summary.busy == 1 else 'were'} busy, {summary.idle} had time left"
    others = len(uneven) - 1
    more = f", and {others} more host{'s' * (others > 1)}" if others else ""
    return (
        f"{busy} ({host}, thread {summary.busiest} {summary.busy_percent:.0f} %{more}): use more of them with `spread`"
    )


def slowed_rows(measurement: Measurement, settings: Settings) -> dict[int, float]:
    """The rows with a load at max on a host whose threads were kept from running, with the share of the time, of the
    host that was kept longest: at max, rates are lower for it, and times longer."""
    rows, shares = measurement.layout.pairs[0], _ratio(_lost_by_host(measurement, settings))
    slowed: dict[int, float] = {}
    for row, share in zip(rows.tolist(), shares.tolist(), strict=True):
        if share > 0:
            slowed[row] = max(slowed.get(row, 0.0), share)
    return slowed


def kept_shares(measurement: Measurement, settings: Settings) -> Floats:
    """(R,) the share of the time for which the threads of each row's instances at max were kept from running; the mean
    over those whose hosts are in, 0 where none is."""
    of_rows = np.zeros((len(measurement.merged.counts), 2))
    np.add.at(of_rows, measurement.layout.pairs[0], _lost_by_host(measurement, settings))
    return _ratio(of_rows)


def _lost_by_host(measurement: Measurement, settings: Settings) -> Floats:
    """(P, 2) of the instances at max of each pair of a row and a host, in the order of the layout's `pairs`: the shares
    of the time for which their threads were kept from running, weighted and added, and the weights; 0 where the host
    is not in."""
    layout, account = measurement.layout, measurement.account
    weights = np.where((account.due > 0) | (account.in_flight > 0), 1.0, IDLE_WEIGHT)
    weights *= layout.of_instances(settings.at_max)
    sums = np.zeros((len(weights), 2))
    for host, taken in measurement.taken.items():
        place, length_ns = layout.instances[host], int(measurement.length_ns[layout.position[host]])
        shares = lost_shares(taken, length_ns, *measurement.lost[place].T)
        sums[place] = np.stack([shares * weights[place], weights[place]], axis=1)
    classes = np.zeros((len(layout.class_host), 2))
    layout.to_classes.into(classes, sums)
    of_pairs = np.zeros((len(layout.pairs[0]), 2))
    np.add.at(of_pairs, layout.class_pairs.T, classes)
    return of_pairs


def _ratio(sums: Floats) -> Floats:
    """Means, of (n, 2) weighted sums and weights."""
    lost, weights = sums.T
    means: Floats = np.divide(lost, weights, out=np.zeros(len(sums)), where=weights > 0)
    return means


def _contentions(measurement: Measurement) -> dict[str, list[Contention]]:
    """The causes that kept the threads of each host from running."""
    position = measurement.layout.position
    return {
        host: contentions(taken, int(measurement.length_ns[position[host]]))
        for host, taken in measurement.taken.items()
    }


def cpu_contention(case: Case) -> Rows:
    """The host that lost the most to one cause stands for all; the others are counted. A row without I/O, as of a
    paused instance, has no figures that they could have changed; one at `iops: max` may have none for that reason.

    At max the rate is what the threads had time for, so that time discredits it; a paced load's own checks say whether
    it was held, and with what delay.
    """
    measurement = case.measurement
    outstanding = case.count(Count.BACKLOG) + case.count(Count.IN_FLIGHT)
    had_io = case.count(Count.DUE) + case.count(Count.COMPLETED) + outstanding > 0
    some_max = np.array(case.settings.some_max, bool)
    concerned = had_io | some_max
    invalid = kept_shares(measurement, case.settings) >= KEPT_INVALID
    layout = measurement.layout
    contentions = _contentions(measurement)
    of_row: dict[int, list[str]] = {}
    for row, host in zip(*(part.tolist() for part in layout.pairs), strict=True):
        if concerned[row] and contentions.get(layout.hosts[host]):
            of_row.setdefault(row, []).append(layout.hosts[host])
    for row, hosts in of_row.items():
        worst = max(hosts, key=lambda host: max(one.percent for one in contentions[host]))
        others = len(hosts) - 1
        more = f" (and {others} more host{'s' * (others > 1)})" if others else ""
        detail = ", ".join(one.detail for one in contentions[worst])
        most = max(contentions[worst], key=lambda one: one.percent)
        where = f"{worst}: " if len(layout.hosts) > 1 else ""
        yield (
            row,
            Finding(
                Reason.CPU_CONTENTION,
                f"{worst}: {detail}{more}",
                Severity.INVALID if invalid[row] else Severity.NOTE,
                cause=f"{where}{most.sentence}{more}",
                share=most.percent / 100,
            ),
        )


def _busiest_cores(case: Case) -> dict[int, float]:
    """Busy percent of the busiest core of each row's hosts, of those that workload threads may run on."""
    taken = case.measurement.taken
    return _highest(
        case,
        {host: min(max(cores), taken[host].busiest_beside) for host, cores in case.measurement.cores.items() if cores},
    )


def _longest_waits(case: Case) -> dict[int, float]:
    """Percent of the time that a workload thread of each row's hosts waited for its core."""
    return _highest(case, {host: taken.wait for host, taken in case.measurement.taken.items()})


def _highest(case: Case, of_host: Mapping[str, float]) -> dict[int, float]:
    """Of each row's hosts."""
    layout = case.measurement.layout
    of_row: dict[int, float] = {}
    for row, host in zip(*(part.tolist() for part in layout.pairs), strict=True):
        of_row[row] = max(of_row.get(row, 0.0), of_host.get(layout.hosts[host], 0.0))
    return of_row


def _workers(case: Case) -> Iterator[tuple[int, dict[str, thread_stats.ThreadSummary]]]:
    """Each row, with the workload threads of its hosts that are in."""
    layout, workers = case.measurement.layout, case.measurement.workers
    of_row: dict[int, dict[str, thread_stats.ThreadSummary]] = {}
    for row, host in zip(*(part.tolist() for part in layout.pairs), strict=True):
        name = layout.hosts[host]
        if (seen := workers.get(name)) is not None:
            of_row.setdefault(row, {})[name] = seen
    yield from of_row.items()
