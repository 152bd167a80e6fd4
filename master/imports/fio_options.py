"""fio's options: those that become part of a plan, those that ivypy needs not, and those without a counterpart.

The table in docs/coming-from-fio.md is printed from here.
"""

from typing import Final

# Other names of the same option.
SYNONYMS: Final = {
    "readwrite": "rw", "blocksize": "bs", "blocksize_range": "bsrange", "blockalign": "ba", "timeout": "runtime",
    "wait_for_previous": "stonewall", "start_delay": "startdelay", "io_limit": "io_size", "iodepth_batch_submit":
    "iodepth_batch", "nr_files": "nrfiles", "ratemin": "rate_min", "file_size": "filesize", "steadystate": "ss",
    "steadystate_duration": "ss_dur", "steadystate_ramp_time": "ss_ramp", "iomem": "mem",
    "bs_unaligned": "blocksize_unaligned", "fill_fs": "fill_device",
    "cpumask": "cpus_allowed", "random_seed": "randseed", "fileoffset": "offset", "threads": "thread",
    "iodepth_batch_complete": "iodepth_batch_complete_min", "ratecycle": "rate_cycle",
}  # fmt: skip

# Option -> what of the plan it becomes.
MAPPED: Final = {
    "filename": "`luns`, and `select` of the workload", "directory": "`luns`: part of the path",
    "nrfiles": "`luns: create`, a file each", "filesize": "`luns: create: size`",
    "size": "`range`, `until`, and the size of files",
    "offset": "`range`", "offset_increment": "`range` of each clone", "rw": "`iosequencer`, `fraction_read`",
    "rwmixread": "`fraction_read`", "rwmixwrite": "`fraction_read`", "bs": "`blocksize`", "iodepth": "`maxtags`",
    "bsrange": "`blocksize`", "bssplit": "`blocksize`", "ba": "`align`", "percentage_random": "`sequential`",
    "numjobs": "`maxtags` (random), or a workload each (sequential)", "ioengine": "`engine: backend`", "rate": "`iops`",
    "rate_iops": "`iops`", "rate_process": "`iosequencer`", "runtime": "`measure`", "ramp_time": "`warmup`",
    "stonewall": "the next step", "randseed": "`seed`", "ss": "`steady`", "ss_dur": "`steady: window`",
    "ss_ramp": "`warmup`", "filename_format": "`luns: create: path`",
    "kb_base": "bytes (how sizes are read)", "direct": "`direct`", "buffered": "`direct: false`",
    "invalidate": "`drop_cache`", "fsync": "`flush: { every: ... }`",
    "fdatasync": "`flush: { every: ..., with: fdatasync }`", "sync": "`sync`", "end_fsync": "`end_fsync`",
    "fsync_on_close": "`end_fsync`", "time_based": "`measure` alone, with `runtime`",
    "io_size": "`until`", "number_ios": "`until`", "loops": "`until`", "norandommap": "`random_map`",
    "startdelay": "`start_after`", "thinktime": "`think_time`, at depth 1",
    "thinktime_blocks": "`think_time`, after each I/O",
    "random_distribution": "`zipf`, `pareto`, `normal`, `hot_zones`",
}  # fmt: skip

# What ivypy always does, or what has no part in the load: left out without a word.
ALWAYS: Final = frozenset(
    """
    exit_what name description group_reporting new_group thread randrepeat allrandrepeat random_generator
    softrandommap refill_buffers scramble_buffers fallocate create_on_open create_serialize create_fsync
    overwrite unlink unlink_each_loop allow_file_create allow_mounted_write openfiles lat_percentiles
    clat_percentiles slat_percentiles percentile_list significant_figures disable_lat disable_clat disable_slat
    disable_bw_measurement disable_bw gtod_reduce gtod_cpu clocksource stats disk_util unit_base
    unified_rw_reporting write_bw_log write_lat_log write_iops_log write_hist_log log_avg_msec log_hist_msec
    log_hist_coarseness log_max_value log_offset log_prio log_compression log_compression_cpus log_store_compressed
    log_unix_epoch log_alternate_epoch log_alternate_epoch_clock_id log_entries per_job_logs bwavgtime iopsavgtime
    block_error_percentiles exitall_on_error continue_on_error ignore_error error_dump verify_fatal verify_dump
    verify_async verify_async_cpus verify_backlog verify_backlog_batch verify_pattern verify_interval verify_offset
    verify_state_load verify_state_save do_verify experimental_verify mem iomem_align hugepage-size lockmem
    fadvise_hint unique_filename registerfiles fixedbufs nonvectored
    cpus_allowed_policy numa_cpu_nodes numa_mem_policy userspace_reap
    iodepth_batch_complete_max trim_verify_zero trim_backlog trim_backlog_batch
    rate_cycle dedupe_mode dedupe_working_set_percentage dedupe_global buffer_compress_chunk latency_window
    latency_percentile latency_run read_beyond_wp max_open_zones
    job_max_open_zones ignore_zone_limits flow_id flow_sleep cgroup_nodelete cgroup_weight sqthread_poll_cpu
    busy_poll merge_blktrace_file merge_blktrace_iters merge_blktrace_scalars zone_reset_frequency
    zone_reset_threshold thinktime_blocks_type rate_ignore_thinktime read_iolog_chunked
    replay_no_stall replay_redirect replay_scale replay_align replay_time_scale replay_skip
    """.split()
)

_NO_VERIFY: Final = "ivypy does not verify what it reads"
_NO_CONTENT: Final = "ivypy writes data that neither compresses nor repeats"
_NO_ZONES: Final = "a workload has one range of addresses"
_NO_THRESHOLD: Final = "a threshold is part of a step"
_NO_ORDER: Final = "streams of a step begin together"

# Option -> why it has no counterpart, what comes nearest, and whether the load differs without it.
UNMAPPED: Final[dict[str, tuple[str, str, bool]]] = {
    "blocksize_unaligned": ("sizes of a range are multiples of its smallest", "", True),
    "offset_align": ("an offset in percent is rounded to blocks", "", True),
    "rw_sequencer": ("a workload is random or sequential", "", True),
    "thinktime_iotime": ("a tag thinks after each I/O", "use `think_time`", True),
    "thinktime_spin": ("a tag that thinks takes no CPU", "", False),
    "fill_device": ("a step does not end when a disk is full", "use `until: { written: 1x }`", True),
    "verify": (_NO_VERIFY, "", True),
    "zero_buffers": (_NO_CONTENT, "", True),
    "buffer_pattern": (_NO_CONTENT, "", True),
    "buffer_compress_percentage": (_NO_CONTENT, "", True),
    "dedupe_percentage": (_NO_CONTENT, "", True),
    "zonesize": (_NO_ZONES, "one workload for each `range`", True),
    "zonerange": (_NO_ZONES, "one workload for each `range`", True),
    "zoneskip": (_NO_ZONES, "one workload for each `range`", True),
    "zonecapacity": (_NO_ZONES, "", True),
    "sync_file_range": ("a flush is of all that was written", "use `flush: { every: ... }`", True),
    "write_barrier": ("a flush is of all that was written", "use `flush: { every: ... }`", True),
    "atomic": ("ivypy does not support atomic writes", "", True),
    "uncached": ("what is read stays in the page cache", "", True),
    "wait_for": (_NO_ORDER, "write a step of its own", True),
    "flow": (_NO_ORDER, "give each workload its share as `iops`", True),
    "latency_target": ("a search is part of a step", "use `find` (docs/control.md)", True),
    "max_latency": (_NO_THRESHOLD, "use `slo`", False),
    "rate_min": (_NO_THRESHOLD, "use `slo: { metric: iops, at_least: ... }`", False),
    "rate_iops_min": (_NO_THRESHOLD, "use `slo: { metric: iops, at_least: ... }`", False),
    "exitall": ("all streams of a step end together, after its time", "", True),
    "file_append": ("ivypy does not write after the end of a file", "", True),
    "file_service_type": ("each file has its own I/Os in flight", "", True),
    "lockfile": ("I/Os of a file wait for no lock", "", True),
    "pre_read": (
        "ivypy does not read files into the page cache",
        "read them in a step before, with `direct: false`",
        True,
    ),
    "trim_percentage": ("ivypy does not trim what it verified", "use `operations`", True),
    "prio": ("I/Os have no priority", "", True),
    "prioclass": ("I/Os have no priority", "", True),
    "cmdprio": ("I/Os have no priority", "", True),
    "cmdprio_class": ("I/Os have no priority", "", True),
    "cmdprio_percentage": ("I/Os have no priority", "", True),
    "cmdprio_bssplit": ("I/Os have no priority", "", True),
    "write_hint": ("ivypy does not support write hints", "", True),
    "nice": ("workload threads have the usual priority", "", False),
    "cpus_allowed": ("cores are chosen for a whole plan", "use `engine: cpus`", False),
    "iodepth_batch": ("each I/O is submitted when it falls due", "", False),
    "iodepth_batch_complete_min": ("completions are taken as they come", "", True),
    "iodepth_low": ("each I/O is submitted when a tag is free", "", True),
    "serialize_overlap": ("I/Os may overlap", "", True),
    "io_submit_mode": ("response time counts from the due time in any case", "", False),
    "sqthread_poll": ("workload threads submit I/Os themselves", "", False),
    "hipri": ("polling is chosen for a whole plan", "use `engine: { polled: true }`", False),
    "exec_prerun": ("a plan starts no commands", "run it before", True),
    "exec_postrun": ("a plan starts no commands", "run it after", False),
    "ioscheduler": ("ivypy does not change the device's settings", "write it to /sys before", True),
    "cgroup": ("ivypy does not change its control group", "start it with systemd-run", True),
    "uid": ("ivypy does not change its user", "", False),
    "gid": ("ivypy does not change its group", "", False),
    "profile": ("ivypy does not have fio's named sets of options", "write the options themselves", True),
    "read_iolog": ("ivypy does not replay", "", True),
    "write_iolog": ("ivypy does not record I/Os", "", False),
}

# Option -> why a job with it is refused.
REFUSED: Final = {
    "create_only": "does no I/O; ivypy creates the files of a plan when it runs",
    "verify_only": "does no I/O but verifying; ivypy does not verify what it reads",
    "opendir": "files of a folder are not looked up; name each in `filename`",
}

# Values that ask for nothing, and those of options of which 0 asks for something or another value is fio's default.
OFF: Final = frozenset({"0", "none", "false"})
OFF_OF: Final[dict[str, frozenset[str]]] = {
    "random_distribution": frozenset({"random"}),
    "file_service_type": frozenset({"roundrobin"}),
    "rw_sequencer": frozenset({"sequential"}),
    "io_submit_mode": frozenset({"inline"}),
    "iodepth_batch_complete_min": OFF | {"1"},
    "buffer_pattern": frozenset(),
    "cpus_allowed": frozenset(),
    "uid": frozenset(),
    "gid": frozenset(),
}

SYNC_ENGINES: Final = frozenset({"sync", "psync", "vsync", "pvsync", "pvsync2"})  # depth 1, whatever iodepth says
BACKENDS: Final = {"libaio": "libaio", "io_uring": "io_uring", "null": "null", "posixaio": "auto"}
DEFAULT_ENGINE: Final = "psync"


def option_table() -> str:
    """A list of every option that has no counterpart, in Markdown; those with the same fate in one line."""
    rows = [(name, f"refused: {why}") for name, why in REFUSED.items()]
    rows += [(name, f"{why}" + (f"; {near}" if near else "")) for name, (why, near, _) in UNMAPPED.items()]
    options: dict[str, list[str]] = {}
    for name, text in sorted(rows):
        options.setdefault(text, []).append(f"`{name}`")
    return "".join(f"- {', '.join(names)}: {text}\n" for text, names in options.items())
