"""The columns of every CSV file, each with unit and meaning.

Rule: what is written is written by this table's names, and docs/columns.md is printed from it; the metrics come from
rollup/metrics.py, the workload parameters from protocol/parameters.py, so that nothing is named twice.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ...protocol.parameters import PARAMETERS, Unit
from ..rollup.instances import ALL, RollupType
from ..rollup.metrics import METRICS, Metric
from ..rollup.window import STATED_ROWS


@dataclass(frozen=True, slots=True)
class Column:
    """One column that is not a metric."""

    name: str
    unit: str
    meaning: str


_PARAMETER_UNITS: Final = {Unit.BYTES: "bytes", Unit.IOPS: "1/s", Unit.RANGE: "bytes"}

INSTANCE: Final = (
    Column("rollup_type", "", "how the workload instances are sliced"),
    Column("rollup_instance", "", "which slice"),
)
PRESENCE: Final = (
    Column("hosts_in", "", "hosts whose results are in"),
    Column("hosts_of", "", "hosts that have a part in the slice"),
    Column("workload_instances", "", "workloads x LUNs in the slice"),
)
PARAMETER_COLUMNS: Final = (
    Column("iops_setting", "1/s", "sum of the iops asked for; max; blank where some are paced and some max"),
    *(Column(name, _PARAMETER_UNITS.get(about.unit, ""), about.doc) for name, about in PARAMETERS.items()),
)


def metric_columns(metrics: Iterable[Metric]) -> tuple[Column, ...]:
    return tuple(Column(metric.name, metric.unit, metric.meaning) for metric in metrics)


METRIC_COLUMNS: Final = metric_columns(METRICS.values())

SUBINTERVAL: Final = (
    Column("subinterval", "", "its number in the step, from 0"),
    Column("start_utc", "UTC", "when it began, by the controller's clock"),
    Column("length_s", "s", "its real length, mean over the hosts"),
    Column("phase", "", "what was known when the row was written: warmup, run, transient, tail, cooldown"),
    *INSTANCE,
)
SUMMARY: Final = (
    Column("step", "", "its number in the run, from 0"),
    Column("name", "", "of the step"),
    *INSTANCE,
)
VERDICT: Final = (
    Column("verdict", "", "valid, partial or invalid; docs/verdicts.md"),
    Column("reasons", "", "what speaks against the numbers, and notes, with `; ` between them; docs/verdicts.md"),
    Column("first_subinterval", "", "of the measurement; blank where there is none"),
    Column("last_subinterval", "", "of the measurement"),
    Column("step_start_utc", "UTC", "when the step's first subinterval began, by the controller's clock"),
    Column("start_utc", "UTC", "when the measurement began"),
    Column("end_utc", "UTC", "when the measurement ended"),
    Column("length_s", "s", "the measurement's real length, mean over the hosts"),
)
_OF_FIRST: Final = f"of a run's first {STATED_ROWS} rollup instances: all, then those of the plan's types in turn"
HALF_WIDTHS: Final = (
    Column(
        "overall_iops_half_width", "1/s", "of overall_iops at 95 % confidence; blank for fewer than 20 subintervals"
    ),
    Column("overall_service_us_mean_half_width", "us", "of overall_service_us_mean at 95 % confidence, likewise"),
    Column("overall_response_us_mean_half_width", "us", "of overall_response_us_mean at 95 % confidence, likewise"),
    Column("overall_service_us_p99_half_width", "us", f"of overall_service_us_p99, likewise; {_OF_FIRST}"),
    Column("overall_response_us_p99_half_width", "us", f"of overall_response_us_p99, likewise; {_OF_FIRST}"),
)

HOSTS: Final = (
    Column("host", "", "as the plan names it"),
    Column("hostname", "", "as the machine names itself"),
    Column("launcher", "", "how it was reached: ssh, local, command"),
    Column("address", "", "where it was reached"),
    Column("version", "", "of ivypy there"),
    Column("bundle", "", "hash of what was pushed; blank where nothing was"),
    Column("python", "", "version"),
    Column("kernel", "", "release"),
    Column("libc", "", "name and version"),
    Column("machine", "", "processor architecture"),
    Column("cores", "", "how many the slave may use"),
    Column("clock_source", "", "the kernel's"),
    Column("backends", "", "ways of doing I/O that work there"),
    Column("io_uring", "", "what io_uring can do there beyond its beginnings, found by trying"),
)
LUNS: Final = (
    Column("host", "", "that has it"),
    Column("path", "", "there"),
    Column("kind", "", "block or file"),
    Column("size", "bytes", "of all of it"),
    Column("block", "bytes", "logical block size"),
    Column("refusals", "", "why it must not be written"),
    Column("remarks", "", "what makes numbers from it doubtful"),
)  # its attributes follow, a column each
WORKLOADS: Final = (
    Column("instance", "", "host+lun+workload"),
    Column("host", "", "as the plan names it"),
    Column("lun", "", "path"),
    Column("workload", "", "name in the plan"),
    Column("number", "", "in the link's messages"),
)  # parameters and the instance of each rollup type follow
EVENTS: Final = (
    Column("utc", "UTC", "by the controller's clock"),
    Column("step", "", "blank outside of one"),
    Column("subinterval", "", "the one that was running; blank outside of one"),
    Column("host", "", "blank where it is about all or none"),
    Column("kind", "", "one word"),
    Column("text", "", "for people"),
)
INDEX: Final = (
    *INSTANCE,
    Column("file", "", "one row per subinterval; blank where the type has `csv: false`"),
    Column("histogram_file", "", "written after the measurement"),
    *PRESENCE[2:],
)
HISTOGRAM: Final = (
    Column("category", "", "overall, random, read, random_read ..."),
    Column("time", "", "service, response or lateness"),
    Column("from_us", "us", "shortest latency that the bucket holds"),
    Column("below_us", "us", "first latency above the bucket"),
    Column("count", "I/Os", "in the bucket, over the measurement"),
)
CPU: Final = (
    Column("subinterval", "", "its number in the step"),
    Column("host", "", "as the plan names it"),
    Column("cpu_busy_percent", "%", "mean over the cores"),
    Column("busiest_core", "", "its number"),
    Column("busiest_core_percent", "%", "of that one; with `spin` a core is busy while its thread waits, too"),
)  # a column core_<number> for each core of any host follows
INTERLOCK: Final = (
    Column("subinterval", "", "whose results were merged"),
    Column("host", "", "as the plan names it"),
    Column("send_up_ms", "ms", "its end to the arrival of the host's result"),
    Column("barrier_1_ms", "ms", "its end to all results in and merged, or declared missing"),
    Column("processing_ms", "ms", "from the last result's arrival, or its deadline, to the decision"),
    Column("acknowledgement_ms", "ms", "from then on: the host's answer to what was decided"),
    Column("barrier_2_ms", "ms", "from the decision on: all hosts' answers"),
    Column("slack_ms", "ms", "what was left then of the subinterval that ran meanwhile"),
    Column(
        "controller_stall_ms",
        "ms",
        "for how long the controller, busy or stopped, heard nobody, since the line before",
    ),
    Column("controller_cpu_ms", "ms", "CPU time of all its threads, since the line before"),
    Column("collected_ms", "ms", "its end to the result being put together, by the host's clock"),
    Column("threads", "", "workload threads"),
    Column("not_swapped", "", "threads that had not handed over their buffer"),
    Column("overruns", "", "boundaries at which a thread found no free buffer"),
    Column("dispatch_us_max", "us", "worst thread: its end to the instant the thread noticed"),
    Column("switchover_us_max", "us", "worst thread: from then to running in the other buffer"),
    Column("lateness_us_p50_max", "us", "worst thread's median lateness of paced I/O"),
    Column("lateness_us_p99_max", "us", "worst thread's p99 lateness"),
    Column("lateness_us_max", "us", "largest lateness of any I/O"),
    Column("poll_gap_us_p99_max", "us", "worst thread's p99 time between two looks at the completions"),
    Column("poll_gap_us_max", "us", "the longest"),
    Column("in_submit_percent_max", "%", "worst thread's share of time spent in submit calls"),
    Column("cpu_percent_max", "%", "busiest thread's CPU time"),
    Column("ios_per_submit", "I/Os", "submitted by a submit call, mean over the threads' calls"),
    Column("ios_per_reap", "I/Os", "found by a look that found any, mean over the threads' looks"),
)
THREADS: Final = (
    Column("subinterval", "", "its number in the step"),
    Column("host", "", "as the plan names it"),
    Column("thread", "", "its number on the host"),
    Column("core", "", "it is pinned to; -1 if none"),
    Column("swapped", "", "0: had not handed over its buffer"),
    Column("overruns", "", "boundaries without a free buffer"),
    Column("dispatch_us", "us", "boundary to the instant it noticed"),
    Column("switchover_us", "us", "from then to running in the other buffer"),
    Column("lateness_us_p50", "us", "due, or tag free if later, to submitted; paced I/O"),
    Column("lateness_us_p99", "us", "likewise"),
    Column("lateness_us_max", "us", "likewise"),
    Column("poll_gap_us_p99", "us", "time between two looks at the completions, awake and with I/O in flight"),
    Column("poll_gap_us_max", "us", "likewise"),
    Column("in_submit_us", "us", "time spent in submit calls"),
    Column("submit_calls", "", "how many"),
    Column("reaps", "", "looks that found completions"),
    Column("sleeps", "", "times it slept"),
    Column("submitted", "I/Os", "to the kernel"),
    Column("completed", "I/Os", "errors included"),
    Column("cpu_time_us", "us", "CPU time of the thread"),
    Column("clock_adjustment_us", "us", "how far its clock was moved at this swap"),
    Column("busy_wait_us", "us", "time awake without need: waiting for a due time, or for anything with `spin`"),
    Column("reap_delay_us_sum", "us", "over all completions: time the thread was kept from looking for them"),
    Column("reap_delay_us_p99", "us", "of these: with other work, or without a core; not the submit call"),
)
CLOCK: Final = (
    Column("subinterval", "", "its number in the step"),
    Column("host", "", "as the plan names it"),
    Column("offset_us", "us", "the host's clock minus the controller's"),
    Column("error_bound_us", "us", "the true offset is no further away"),
    Column("rate_ppm", "1e-6", "how fast the host's clock gains on the controller's"),
    Column("start_skew_us", "us", "its real start minus the planned one; in subinterval 0 the start spread"),
    Column("boundary_skew_us", "us", "its real end minus the planned one"),
    Column(
        "step_us", "us", "a step of its clock that was noticed in this subinterval, beyond what 500 ppm explain; else 0"
    ),
)
WINDOWS: Final = (
    Column("window", "", "what it is: measurement, ..."),
    Column("first_subinterval", "", "its first"),
    Column("last_subinterval", "", "its last"),
    Column("start_utc", "UTC", "when it began, by the controller's clock"),
    Column("end_utc", "UTC", "when it ended"),
    Column("hosts", "", "whose results are in"),
    Column("why", "", "how its ends were chosen"),
)

Group = tuple[Column, ...] | str  # columns, or in words those that follow from plan and hosts

FILES: Final[dict[str, tuple[Group, ...]]] = {
    "step*/<rollup type>/<instance>.csv": (
        SUBINTERVAL, "a column per attribute of the rollup type", PRESENCE, PARAMETER_COLUMNS, METRIC_COLUMNS,
    ),
    "summary.<rollup type>.csv": (
        SUMMARY, "a column per attribute of the rollup type", VERDICT, PRESENCE, PARAMETER_COLUMNS,
        METRIC_COLUMNS, HALF_WIDTHS,
    ),
    "step*/<rollup type>/<instance>.histogram.csv": (HISTOGRAM,),
    "step*/index.csv": (INDEX,),
    "step*/cpu.csv": (CPU, "core_<number>, a column per core: its busy percent"),
    "step*/interlock.csv": (INTERLOCK,),
    "step*/threads.csv": (THREADS,),
    "step*/clock.csv": (CLOCK,),
    "step*/windows.csv": (WINDOWS,),
    "hosts.csv": (HOSTS,),
    "luns.csv": (LUNS, "a column per attribute"),
    "workloads.csv": (WORKLOADS, "a column per parameter, and rollup.<type> per rollup type"),
    "events.csv": (EVENTS,),
}  # fmt: skip


def names(*groups: tuple[Column, ...]) -> list[str]:
    """The header of some groups of columns."""
    return [column.name for group in groups for column in group]


_TAKEN: Final = frozenset(
    names(SUBINTERVAL, SUMMARY, VERDICT, PRESENCE, PARAMETER_COLUMNS, METRIC_COLUMNS, HALF_WIDTHS)
)


def attribute_columns(kind: RollupType) -> list[str]:
    """The header of a rollup type's attributes; `all` has none. A name that is taken gets `attribute_` before it."""
    return [f"attribute_{name}" if name in _TAKEN else name for name in kind.by if name != ALL]
