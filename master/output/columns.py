"""The columns of every CSV file, each with unit and meaning.

Rule: every file takes its column names from this table, and docs/columns.md is printed from it. The metrics come from
rollup/metrics.py and the workload parameters from protocol/parameters.py, so no name stands twice.
"""

from collections.abc import Iterable
from typing import Final

from ...protocol.parameters import PARAMETERS, Notation
from ..rollup.half_widths import STATED_ROWS
from ..rollup.instances import ALL, RollupType
from ..rollup.metrics import HEADLINE_STATISTICS, METRICS, Metric
from .column import Column, Group, names
from .connector_columns import COMBINED_ROW, CONNECTOR_SUMMARY, ELEMENT_ROW, GATHERS
from .control_columns import FIND, MEASURE, PID, PROFILE, ROUNDS, SLO, STAIRCASE, STEADY

_PARAMETER_UNITS: Final = {
    Notation.BYTES: "bytes",
    Notation.SIZES: "bytes",
    Notation.DURATION: "s",
    Notation.TIMEOUT: "s",
    Notation.IOPS: "1/s",
    Notation.RANGE: "bytes",
    Notation.PART: "bytes",
}

INSTANCE: Final = (
    Column("rollup_type", "", "by which attributes the workload instances are grouped"),
    Column("rollup_instance", "", "which group of that type"),
)
PRESENCE: Final = (
    Column("hosts_in", "", "hosts whose results the row includes"),
    Column("hosts_of", "", "hosts that have workload instances in the group"),
    Column("workload_instances", "", "workload instances (workload x LUN) in the group"),
)
PARAMETER_COLUMNS: Final = (
    Column(
        "iops_setting",
        "1/s",
        "sum of the `iops` settings, also of hosts that are gone; `max`; blank where only some instances are paced",
    ),
    *(Column(name, _PARAMETER_UNITS.get(about.unit, ""), about.doc) for name, about in PARAMETERS.items()),
)


def metric_columns(metrics: Iterable[Metric]) -> tuple[Column, ...]:
    return tuple(Column(metric.name, metric.unit, metric.meaning) for metric in metrics)


METRIC_COLUMNS: Final = metric_columns(METRICS.values())

SUBINTERVAL: Final = (
    Column("subinterval", "", "its number in the step, from 0"),
    Column(
        "in_measurement",
        "",
        "1 if a measurement includes it, else 0; set once that is complete",
    ),
    Column("start_utc", "UTC", "its start, by the controller's clock"),
    Column("length_s", "s", "its real length, mean over the hosts"),
    Column("phase", "", "warmup, run, transient, disturbed, tail or cooldown, as known when the row was written"),
    *INSTANCE,
)
SUMMARY: Final = (
    Column("step", "", "its number in the run, from 0"),
    Column("name", "", "the step's name"),
    *INSTANCE,
)
VERDICT: Final = (
    Column(
        "verdict",
        "",
        "of the figures that the step was for: valid, partial, failed or invalid: docs/verdicts.md",
    ),
    Column("rate_verdict", "", "of IOPS and MiB/s"),
    Column("service_verdict", "", "of service times"),
    Column("response_verdict", "", "of response times"),
    Column("reasons", "", "reasons with severity and detail, joined with `; `"),
    Column("first_subinterval", "", "the measurement's first subinterval; blank: there is none"),
    Column("last_subinterval", "", "its last"),
    Column("step_start_utc", "UTC", "start of the step, by the controller's clock"),
    Column("start_utc", "UTC", "start of the measurement"),
    Column("end_utc", "UTC", "its end"),
    Column("length_s", "s", "its real length, mean over the hosts"),
)
_OF_FIRST: Final = f"only of the first {STATED_ROWS} rollup instances: `all`, then those of the plan's types in order"
HALF_WIDTHS: Final = (
    Column(
        "overall_iops_half_width",
        "1/s",
        "half-width of overall_iops at 95 % confidence; blank for fewer than 20 subintervals",
    ),
    Column("overall_service_us_mean_half_width", "us", "the same for overall_service_us_mean"),
    Column("overall_response_us_mean_half_width", "us", "the same for overall_response_us_mean"),
    Column("overall_service_us_p99_half_width", "us", f"the same for overall_service_us_p99; {_OF_FIRST}"),
    Column("overall_response_us_p99_half_width", "us", "the same for overall_response_us_p99, of the same instances"),
)

NARROW_METRICS: Final = tuple(
    METRICS[f"{category}_{what}"]
    for category in ("overall", "read", "write")
    for what in (
        "iops", "mib_per_s",
        *(f"{time}_us_{one}" for time in ("service", "response") for one in HEADLINE_STATISTICS),
    )
)  # fmt: skip
NARROW_KEYS: Final = (Column("run", "", "name of the run's folder"), *SUMMARY[:2])
NARROW: Final = (
    *INSTANCE,
    *VERDICT[:4],
    Column("iops_setting", "1/s", "sum of the `iops` settings, a `profile`'s mean; blank where instances are at max"),
    *metric_columns(NARROW_METRICS),
)

HOSTS: Final = (
    Column("host", "", "its name in the plan"),
    Column("hostname", "", "the machine's own name"),
    Column("launcher", "", "how the controller connected: ssh, local or command"),
    Column("address", "", "where it connected to"),
    Column("version", "", "ivypy's"),
    Column("bundle", "", "hash of the slave's files that were sent; blank: none were"),
    Column("python", "", "its version"),
    Column("kernel", "", "its release"),
    Column("libc", "", "name and version"),
    Column("machine", "", "processor architecture"),
    Column("cores", "", "how many the slave may use"),
    Column("clock_source", "", "the kernel's"),
    Column("backends", "", "I/O backends that work there"),
    Column("io_uring", "", "features that work there, found by trial"),
)
HOST_FACTS: Final = (
    Column("user", "", "the user that the slave runs as"),
    Column("lacks", "", "backends that do not work there, and why; nvme needs a namespace with a generic device"),
    Column("distribution", "", "of Linux"),
    Column("hardware", "", "the machine's vendor and model"),
    Column("cpu_model", "", "the CPU's own name"),
    Column("cpus", "", "cores online, hyper-threads included"),
    Column("memory", "bytes", "all of it"),
    Column("numa_nodes", "", "their number"),
    Column("smt", "", "hyper-threading: on or off"),
    Column("idle_driver", "", "what puts idle cores to sleep"),
    Column("idle_governor", "", "what chooses the idle state"),
    Column("idle_states", "", "the first core's idle states, with the time to leave each"),
    Column("frequency_driver", "", "what sets the cores' clock speed"),
    Column("governor", "", "of the frequency: performance, powersave ..."),
    Column("turbo", "", "on or off"),
    Column("mitigations", "", "the kernel's `mitigations=`, and the CPU vulnerabilities that it mitigates"),
    Column("isolated_cores", "", "cores that programs get only if they ask for them"),
    Column("irqbalance", "", "whether it was running: it moves interrupts between cores"),
    Column("oom_score_adj", "", "of the slave, 500 if it may: if memory runs out, the kernel ends it first"),
    Column("transparent_huge_pages", "", "always, madvise or never"),
)  # what is not known is blank
LUNS: Final = (
    Column("host", "", "the host that has the LUN"),
    Column("path", "", "its path on the host"),
    Column("kind", "", "block or file"),
    Column("size", "bytes", "size of the whole LUN"),
    Column("block", "bytes", "logical block size"),
    Column("refusals", "", "why ivypy refuses to write to it"),
    Column("notices", "", "the host's notices about it: what makes its numbers doubtful"),
)  # its attributes follow, a column each
WORKLOADS: Final = (
    Column("instance", "", "host+lun+workload"),
    Column("host", "", "its name in the plan"),
    Column("lun", "", "path of the LUN"),
    Column("workload", "", "name in the plan"),
    Column("number", "", "its number in the messages between controller and host"),
)  # parameters and the instance of each rollup type follow
EVENTS: Final = (
    Column("utc", "UTC", "time, by the controller's clock"),
    Column("step", "", "the step; blank between steps"),
    Column("subinterval", "", "the running one; blank between steps"),
    Column("host", "", "the host; blank: all or none"),
    Column("kind", "", "of the event, or of a host's notice: one word"),
    Column("text", "", "what happened, in a sentence"),
)
INDEX: Final = (
    *INSTANCE,
    Column("file", "", "the file with a row per subinterval; blank with `csv: false`"),
    Column("histogram_file", "", "the histogram's, written after the measurement"),
    *PRESENCE[2:],
)
HISTOGRAM: Final = (
    Column("category", "", "kind of I/O: overall, random, read, random_read ..."),
    Column("time", "", "which time: service, response or lateness"),
    Column("from_us", "us", "shortest latency that the bucket holds"),
    Column("below_us", "us", "shortest latency above the bucket"),
    Column("count", "I/Os", "I/Os of the measurement in the bucket"),
)
BY_ADDRESS: Final = (
    *INSTANCE,
    Column("section", "", "number of the section of each LUN, from 1; all have one size"),
    Column("from_percent", "%", "where it begins, of the LUN"),
    Column("reads", "I/Os", "reads of the measurement that began there, without those that failed"),
    Column("read_service_us_mean", "us", "their mean service time"),
    Column("read_service_us_max", "us", "their longest"),
    Column("changes", "I/Os", "writes, trims and zeroes that began there, likewise"),
    Column("change_service_us_mean", "us", "their mean service time"),
    Column("change_service_us_max", "us", "their longest"),
)
CPU: Final = (
    Column("subinterval", "", "its number in the step"),
    Column("host", "", "its name in the plan"),
    Column("cpu_busy_percent", "%", "busy time, mean over the cores"),
    Column("busiest_core", "", "number of the busiest core"),
    Column(
        "busiest_core_percent",
        "%",
        "its busy time; a core is also busy while its thread busy-waits (`engine: spin`)",
    ),
    Column(
        "cpu_others_percent",
        "%",
        "used by others than ivypy (processes, kernel threads, interrupts), mean over the cores",
    ),
    Column("others_beside_percent", "%", "the same of the worst core that workload threads may run on"),
    Column("cpu_steal_percent", "%", "taken by the hypervisor (steal), mean over the cores"),
    Column("steal_beside_percent", "%", "the same of the worst core that workload threads may run on"),
    Column("cpu_wait_percent", "%", "worst workload thread: share of the time for which it waited for a core"),
    Column("throttled_ms", "ms", "how long a cgroup's CPU quota held the slave back, summed over its cores"),
    Column("stalled_ms", "ms", "how long no thread of the slave ran though one was due to (machine stalls)"),
    Column("longest_stall_ms", "ms", "the longest"),
)  # a column core_<number> for each core of any host follows
INTERLOCK: Final = (
    Column("subinterval", "", "the subinterval whose results were merged"),
    Column("host", "", "its name in the plan"),
    Column("send_up_ms", "ms", "from its end to the arrival of the host's result"),
    Column("barrier_1_ms", "ms", "from its end until all results were merged or declared missing"),
    Column("processing_ms", "ms", "from the last result's arrival, or its deadline, to the decision"),
    Column("acknowledgement_ms", "ms", "from the decision to the host's acknowledgement"),
    Column("barrier_2_ms", "ms", "from the decision to the acknowledgement of all hosts"),
    Column(
        "slack_ms",
        "ms",
        "time left after barrier 2 until the end of the running subinterval; negative where it was over",
    ),
    Column(
        "controller_stall_ms",
        "ms",
        "how long the controller read no messages, busy or stopped, since the previous row",
    ),
    Column("controller_cpu_ms", "ms", "CPU time of all the controller's threads, since the previous row"),
    Column("collected_ms", "ms", "from its end until the host had assembled its result, by the host's clock"),
    Column("threads", "", "workload threads"),
    Column("not_swapped", "", "threads that had not handed over their buffer in time"),
    Column("overruns", "", "boundaries at which a thread found no free buffer"),
    Column("dispatch_us_max", "us", "worst thread: from the boundary until the thread noticed it (dispatch latency)"),
    Column(
        "switchover_us_max", "us", "worst thread: from then until it ran with the other buffer (switchover latency)"
    ),
    Column(
        "lateness_us_p50_max",
        "us",
        "worst thread: median generator lateness of paced I/O, and of I/O after a think time",
    ),
    Column("lateness_us_p99_max", "us", "worst thread: p99 generator lateness"),
    Column("lateness_us_max", "us", "largest generator lateness of any I/O"),
    Column("poll_gap_us_p99_max", "us", "worst thread: p99 time between two polls for completions"),
    Column("poll_gap_us_max", "us", "longest time between two polls"),
    Column("in_submit_percent_max", "%", "worst thread: share of time in submit calls"),
    Column("cpu_percent_max", "%", "busiest thread's CPU time"),
    Column("ios_per_submit", "I/Os", "I/Os per submit call, mean over all threads' calls"),
    Column("ios_per_reap", "I/Os", "completions per poll that found any, mean over all threads' polls"),
)
THREADS: Final = (
    Column("subinterval", "", "its number in the step"),
    Column("host", "", "its name in the plan"),
    Column("thread", "", "number of the workload thread on the host"),
    Column("core", "", "core that it is pinned to; -1 if none"),
    Column("swapped", "", "1, or 0 where it had not handed over its buffer in time"),
    Column("overruns", "", "boundaries at which it found no free buffer"),
    Column("dispatch_us", "us", "from the boundary until it noticed it"),
    Column("switchover_us", "us", "from then until it ran with the other buffer"),
    Column(
        "lateness_us_p50",
        "us",
        "generator lateness, from due (or tag free, if later) to submitted, of paced I/O and of I/O after a think "
        "time: median",
    ),
    Column("lateness_us_p99", "us", "generator lateness: p99"),
    Column("lateness_us_max", "us", "generator lateness: largest"),
    Column("poll_gap_us_p99", "us", "time between two polls for completions, while awake with I/O in flight: p99"),
    Column("poll_gap_us_max", "us", "the same: longest"),
    Column("in_submit_us", "us", "time spent in submit calls"),
    Column("submit_calls", "", "number of submit calls"),
    Column("reaps", "", "polls that found completions"),
    Column("sleeps", "", "how often it slept"),
    Column("submitted", "I/Os", "I/Os submitted to the kernel"),
    Column("completed", "I/Os", "I/Os completed, with and without errors"),
    Column("cpu_time_us", "us", "CPU time of the thread"),
    Column("clock_adjustment_us", "us", "how far its clock was adjusted at this boundary"),
    Column("busy_wait_us", "us", "time in which it polled instead of sleeping (`engine: spin`)"),
    Column(
        "reap_delay_us_sum",
        "us",
        "reap delay, summed over completions: how long they may have waited while the thread was preempted, busy, or "
        "in the submit call of other I/Os; below 1 us not counted",
    ),
    Column(
        "reap_delay_us_p99",
        "us",
        "reap delay: p99; below 1 us, or a 32nd of the service time, it counts as 0",
    ),
)
CLOCK: Final = (
    Column("subinterval", "", "its number in the step"),
    Column("host", "", "its name in the plan"),
    Column("offset_us", "us", "the host's clock minus the controller's"),
    Column("error_bound_us", "us", "bound of the error of offset_us"),
    Column("rate_ppm", "1e-6", "how fast the host's clock gains on the controller's"),
    Column("start_skew_us", "us", "its real start minus the planned one; in subinterval 0 this is the start spread"),
    Column("boundary_skew_us", "us", "its real end minus the planned one"),
    Column("step_us", "us", "step of its clock detected in this subinterval, beyond what 500 ppm explain; else 0"),
)
WINDOWS: Final = (
    Column("window", "", "kind of window: measurement"),
    Column("first_subinterval", "", "its first subinterval"),
    Column("last_subinterval", "", "its last subinterval"),
    Column("set_aside", "", "subintervals between them that do not count: phase `disturbed`"),
    Column("start_utc", "UTC", "its start, by the controller's clock"),
    Column("end_utc", "UTC", "its end"),
    Column("hosts", "", "hosts whose results it includes"),
    Column("why", "", "how its ends were chosen"),
)

_OF_METRICS: Final = (
    "three columns for each metric: its value for all these elements, and `_min`, `_max` of any of them"
)
FILES: Final[dict[str, tuple[Group, ...]]] = {
    "step*/<rollup type>/<instance>.csv": (
        SUBINTERVAL, "a column per attribute of the rollup type", PRESENCE, PARAMETER_COLUMNS, METRIC_COLUMNS,
    ),
    "summary.<rollup type>.csv": (
        SUMMARY, "a column per attribute of the rollup type", VERDICT, PRESENCE, PARAMETER_COLUMNS,
        METRIC_COLUMNS, HALF_WIDTHS,
    ),
    "summary.csv": (
        NARROW_KEYS,
        "a column per parameter that a step of the plan loops over, blank in other steps: bytes, seconds, shares of 1; "
        "inf: `max`, `never`; `iosequencer`, `range`, `spread` and `until` as in the plan; `round` where a step has "
        "rounds",
        NARROW,
    ),
    "step*/<rollup type>/<instance>.histogram.csv": (HISTOGRAM,),
    "step*/by_address.csv": (BY_ADDRESS,),
    "step*/index.csv": (INDEX,),
    "step*/cpu.csv": (CPU, "core_<number>, a column per core: its busy percent"),
    "step*/interlock.csv": (INTERLOCK,),
    "step*/threads.csv": (THREADS,),
    "step*/clock.csv": (CLOCK,),
    "step*/windows.csv": (WINDOWS,),
    "step*/measure.csv": (MEASURE,),
    "step*/steady.csv": (STEADY,),
    "step*/pid.csv": (PID,),
    "step*/find.csv": (FIND,),
    "step*/staircase.csv": (STAIRCASE,),
    "step*/profile.csv": (PROFILE,),
    "step*/slo.csv": (SLO,),
    "step*/gathers.csv": (GATHERS,),
    "step*/<rollup type>/<instance>.<connector>.<element type>.csv": (COMBINED_ROW, _OF_METRICS),
    "step*/non_participating/<connector>.<element type>.csv": (COMBINED_ROW, _OF_METRICS),
    "step*/connectors/<connector>.<element type>.csv": (ELEMENT_ROW, "a column for each metric of the element type"),
    "connectors.csv": (CONNECTOR_SUMMARY,),
    "hosts.csv": (HOSTS, HOST_FACTS),
    "luns.csv": (LUNS, "a column per attribute"),
    "workloads.csv": (WORKLOADS, "a column per parameter, and rollup.<type> per rollup type"),
    "events.csv": (EVENTS,),
    "rounds.csv": (ROUNDS,),
}  # fmt: skip

OF_THE_MACHINERY: Final = tuple(  # for those who look into ivypy itself
    f"step*/{name}.csv"
    for name in (
        "index", "interlock", "threads", "clock", "windows", "measure", "steady", "pid", "staircase", "profile", "slo",
        "gathers",
    )
)  # fmt: skip

OTHER_FILES: Final = {
    "plan.yaml": "the plan, and the seed with which to repeat the run's addresses",
    "run.json": "command line, version, times, exit code; the steps with their verdicts, parameters and hosts",
    "result.json": "the results as one document, written at the end; schema: `ivypy schema --result`",
    "report.html": "the [report](report.md), written at the end",
    "histograms.sqlite": "every host's histograms of every subinterval; schema: master/output/histogram_db.py",
    "connectors.sqlite": "sums of what connectors reported of each rollup instance in every subinterval; schema: "
    "master/output/connector_sums.py",
    "log/<host>.log": "all messages to and from a host",
    "step*/steady.json": "the newest window of a steady-state criterion: [control](control.md)",
    "step*/late/<host>.jsonl": "results in no sum, truncated or after the last subinterval, as sent",
}


_TAKEN: Final = frozenset(
    names(SUBINTERVAL, SUMMARY, VERDICT, PRESENCE, PARAMETER_COLUMNS, METRIC_COLUMNS, HALF_WIDTHS)
)


def attribute_columns(kind: RollupType) -> list[str]:
    """The header of a rollup type's attributes; `all` has none. A name that another column has gets an `attribute_`."""
    return [f"attribute_{name}" if name in _TAKEN else name for name in kind.by if name != ALL]
