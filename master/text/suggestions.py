"""Did you mean: the nearest word that is known here, also from the words of fio, vdbench, ivy and ivypy 0.1.

Rule: a suggestion is made only where it is likely; a foreign word is answered with what does its work here.
"""

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Final

_NUMBERS: Final = re.compile(r"\d+(-\d+)?")

# Keys of other tools' job files -> the key that does the same.
SAME: Final[Mapping[str, str]] = {
    "bs": "blocksize", "blocksize_range": "blocksize", "bsrange": "blocksize", "xfersize": "blocksize",
    "iosize": "blocksize",
    "iodepth": "maxtags", "qd": "maxtags", "queue_depth": "maxtags", "threads": "maxtags", "tags": "maxtags",
    "rwmixread": "fraction_read", "rdpct": "fraction_read", "read_percent": "fraction_read",
    "rate_iops": "iops", "iorate": "iops", "rate": "iops", "fwdrate": "iops",
    "ramp_time": "warmup", "ramp": "warmup", "warmup_seconds": "warmup", "warmup_time": "warmup",
    "runtime": "measure", "elapsed": "measure", "duration": "measure", "measure_seconds": "measure",
    "run_time": "measure",
    "cooldown_seconds": "cooldown", "cooldown_time": "cooldown",
    "interval": "subinterval", "subinterval_seconds": "subinterval", "status_interval": "subinterval",
    "log_avg_msec": "subinterval",
    "offset": "range", "seekrange": "range", "randseed": "seed", "rand_seed": "seed",
    "cpus_allowed": "cpus", "cores": "cpus",
    "hipri": "polled", "iopoll": "polled",
    "hd": "hosts", "host": "hosts", "clients": "hosts", "servers": "hosts",
    "sd": "luns", "devices": "luns", "devs": "luns", "disks": "luns",
    "wd": "workloads", "workload": "workloads", "jobs": "workloads",
    "invalidate": "drop_cache", "fsync_on_close": "end_fsync",
    "io_size": "until", "number_ios": "until", "maxdata": "until", "io_limit": "until",
    "rd": "steps", "runs": "steps", "rollup": "rollups",
    "forxfersize": "loop", "forrdpct": "loop", "forthreads": "loop", "foreach": "loop",
    "filename": "files", "path": "files", "filesize": "size", "nrfiles": "count", "numfiles": "count",
    "hostname": "address", "ip": "address", "username": "user", "login": "user", "key": "identity",
    "identity_file": "identity", "timeout": "connect_timeout",
    "attributes": "by",
}  # fmt: skip

# Keys that nothing here is called after, or nothing any more -> what to do instead; with a section's name, only there.
INSTEAD: Final[Mapping[str, str]] = {
    "rw": "use 'iosequencer' and 'fraction_read'",
    "readwrite": "use 'iosequencer' and 'fraction_read'",
    "seekpct": "use 'iosequencer': random_steady, random_independent or sequential",
    "rwmixwrite": "use 'fraction_read': 100% minus this",
    "openflags": "use 'direct: false' for the page cache, 'sync: dsync' or 'sync: sync' for durable writes",
    "buffered": "use 'direct: false'",
    "fsync": "use 'flush: { every: 32 }'",
    "fdatasync": "use 'flush: { every: 32, with: fdatasync }'",
    "numjobs": "leave it out: a thread per core drives everything; more I/O in flight is 'maxtags'",
    "thread": "leave it out: the workload threads are always threads",
    "group_reporting": "leave it out: everything is merged; 'rollups' sets how results are grouped",
    "time_based": "leave it out: 'measure' is a time, 'until' a volume",
    "filename": "name files in 'luns: { files: [...] }', block devices in 'luns: { paths: [...] }'",
    "size": "use 'range' for the driven part of a LUN; the size of a new file is in 'luns: { create: ... }'",
    "norandommap": "leave it out; the opposite is 'random_map: true'",
    "stonewall": "leave it out: steps always run one after the other",
    "distribution": "use 'iosequencer': random_independent has exponential gaps",
    "random_distribution": "use 'zipf: 1.2', 'pareto: 20%', 'normal: 10%' or 'hot_zones'",
    "hotband": "use 'hot_zones: [{ range: 10%, share: 90% }]'",
    "theta": "use 'zipf: 1.2'",
    "rate_process": "use 'iosequencer': random_independent has exponential gaps",
    "loops": "use 'until: { bytes: 2x }', twice the range",
    "thinktime": "use 'think_time: 1ms', after each I/O of a tag",
    "nocsv": "use 'csv: false'",
    "lun": "use 'paths' for block devices, 'files' for files",
    "sqpoll": "it is gone, since its kernel thread could submit I/Os after the lease had ended: leave it out, or use "
    "'engine: { spin: on }', which keeps workload threads awake",
    "ioengine": "use 'engine: { backend: ... }'",
    "measure.window": "it is gone, since the shortest window that passes was wrong more often than its confidence "
    "allows: leave it out; the window is the longest since the warmup",
    "sqthread_poll": "workload threads submit I/Os themselves: leave it out, or use 'engine: { spin: on }', which "
    "keeps workload threads awake",
}

# Values of other tools' settings -> the value that does the same.
VALUES: Final[Mapping[str, str]] = {
    "random": "random_steady", "rand": "random_steady", "randrw": "random_steady", "randread": "random_steady",
    "randwrite": "random_steady", "poisson": "random_independent", "exponential": "random_independent",
    "seq": "sequential", "read": "sequential", "write": "sequential", "rw": "sequential",
    "aio": "libaio", "linuxaio": "libaio", "uring": "io_uring",
    "continue": "count", "ignore": "count", "abort": "stop", "fail": "stop",
    "localhost": "local", "openssh": "ssh",
}  # fmt: skip

# Columns of 0.1.0, whose run folders are still read, and their present names.
OLD_NAMES: Final[Mapping[str, str]] = {
    "unfinished": "outstanding",
    "oldest_unfinished_ms": "oldest_outstanding_ms",
    "submissions_returned": "eagain",
    "left_ms": "slack_ms",
    "stood_still_ms": "controller_stall_ms",
    "harvest_gap_us_p99_max": "poll_gap_us_p99_max",
    "harvest_gap_us_max": "poll_gap_us_max",
    "harvest_gap_us_p99": "poll_gap_us_p99",
    "ios_per_harvest": "ios_per_reap",
    "harvests": "reaps",
    "waits": "sleeps",
    "anchor_correction_us": "clock_adjustment_us",
    "spun_us": "busy_wait_us",
    "harvest_late_sum_us": "reap_delay_us_sum",
    "harvest_late_us_p99": "reap_delay_us_p99",
    "remarks": "notices",
    "tread": "level",
    "kept_up": "sustained",
    "broken": "breached",
}


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that `word` was probably meant to be; None if none is near."""
    choices = {k.lower(): k for k in known}
    plain = word.lower().replace("-", "_").replace(" ", "_")
    if plain in choices:
        return choices[plain]
    found = difflib.get_close_matches(plain, choices, n=1, cutoff=0.65)
    return choices[found[0]] if found else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """ "; did you mean 'x'?"; "" where no known word is near, nor does what another tool's word does."""
    choices = sorted(known)
    near = nearest(word, choices)
    if near is None and (same := VALUES.get(word.lower())) in choices:
        near = same
    return "" if near is None else f"; did you mean {near!r}?"


def suggestion(word: str, known: Iterable[str]) -> str:
    """ "; did you mean 'x'?", or else what there is to choose from."""
    choices = sorted(known)
    if asked := did_you_mean(word, choices):
        return asked
    if not choices:
        return ""
    return f"; there {'is' if len(choices) == 1 else 'are'} {listed([repr(choice) for choice in choices])}"


def listed(words: list[str], most: int = 12) -> str:
    """`a, b and c`; what is too much to read is counted."""
    if len(words) > most:
        return f"{', '.join(words[:most])} and {len(words) - most} more"
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def unknown_key(word: str, section: str, known: Iterable[str], elsewhere: Mapping[str, str]) -> str:
    """Return the words that follow "unknown key 'word'" in a section.

    `known` are the keys that are allowed there; `elsewhere` names, for keys of other sections, where they belong.
    """
    choices = sorted(known)
    if _NUMBERS.fullmatch(word):
        return "; a comma ends a value: write a list of numbers in quotes, '0-3,8'"
    if (written := _written(word, choices)) is not None:
        return f"; it is written {written!r}"
    plain = (_written(word, elsewhere) or word).lower().replace("-", "_")
    if (instead := INSTEAD.get(f"{section}.{plain}")) is not None:
        return f"; {instead}"
    same = SAME.get(plain, plain)
    if same != plain and same in choices:
        return f"; here it is called {same!r}"
    if counted := {f"{plain}s", plain.removesuffix("s")} & {*choices}:
        return f"; did you mean {counted.pop()!r}?"
    near = nearest(word, choices)
    if near is not None and plain not in INSTEAD and plain not in elsewhere:
        return f"; did you mean {near!r}?"
    if plain in INSTEAD:
        return f"; {INSTEAD[plain]}"
    if plain in elsewhere:
        return f"; it belongs in {elsewhere[plain]}"
    if same in elsewhere:
        return f"; here it is called {same!r} and belongs in {elsewhere[same]}"
    return f"; there {'is' if len(choices) == 1 else 'are'} {listed(choices, len(choices))}"


def _written(word: str, known: Iterable[str]) -> str | None:
    """The known word that differs from `word` only in case, hyphens and underscores, or in the order of its parts:
    maxTags, IOPS, block-size, iops_total."""
    bare, parts = _bare(word), _parts(word)
    return next((one for one in known if _bare(one) == bare or _parts(one) == parts), None)


def _parts(word: str) -> list[str]:
    return sorted(word.lower().replace("-", "_").split("_"))


def _bare(word: str) -> str:
    return word.lower().replace("-", "").replace("_", "").replace(" ", "")
