"""fio's options for `ivypy quick`: those that it always does, and where the others lead.

Rule: pure. What fio calls otherwise but means the same is a second name of quick's own option (quick.py); here are only
options that quick does not have.
"""

from collections.abc import Sequence
from typing import Final

from ..errors import PlanError

# fio's flags that ask for what ivypy always does: dropped, with their values.
ALWAYS: Final = frozenset(
    {
        "group_reporting", "time_based", "thread", "norandommap", "randrepeat", "refill_buffers",
        "exitall", "clat_percentiles", "lat_percentiles", "fallocate", "create_on_open", "overwrite", "unlink",
    }
)  # fmt: skip

# Of these, what to do instead where a user asks for the opposite; of the others, both come to the same.
OPPOSITE: Final = {
    "unlink": "a file that quick created is removed: save the plan with --save FILE, and set `keep: true`",
    "time_based": "use --once, or --io-size 10G: until so much is done",
    "norandommap": "use --once: each block once",
}

# fio's switches that quick has under another name, or that ask for the usual: switch and value -> option.
_SWITCHES: Final = {
    "direct": {"0": "--buffered"},
    "buffered": {"1": "--buffered"},
    "invalidate": {"0": "--keep-cache"},
    "end_fsync": {"1": "--end-fsync"},
    "fsync_on_close": {"1": "--end-fsync"},
}

_VOLUMES: Final = frozenset({"io_size", "number_ios"})  # what fio ignores with time_based

# Options that have no counterpart -> what comes nearest.
NEAREST: Final = {
    "bsrange": "write the sizes and their percentages: --bssplit 4k/50:64k/50",
    "fill_device": "use --rw write --once: each block once",
    "iodepth_batch": "ivypy submits each I/O when it falls due; leave it out",
    "latency_target": "use --p99 5ms: the highest rate that meets it",
    "loops": "use --io-size 2x: so often the size of each target",
    "offset": "save the plan with --save FILE, and edit its `range`",
    "output_format": "use --ui json; the folder has CSV files, too",
    "rate_process": "save the plan with --save FILE, and edit its `iosequencer`",
    "stonewall": "quick runs one test; a plan has steps, one after the other (docs/plan.md)",
    "steadystate": "save the plan with --save FILE, and add `steady` (docs/control.md)",
    "thinktime": "save the plan with --save FILE, and add `think_time: 1ms` to its workload",
    "verify": "ivypy does not verify what it reads",
    "zonemode": "zoned devices cannot be driven",
    "readonly": "nothing that exists is written, unless it needs a token and you give it; leave it out",
    "rwmixwrite": "use --rwmixread: 100 minus this",
    "percentile_list": "`ivypy percentiles` prints any percentile of the run folder",
    "eta": "use --ui lines or --ui none",
    "client": "use --hosts lab[01-16]; no server is needed there",
    "showcmd": "use --dry-run, which prints the plan",
    "write_lat_log": "the run folder has the latencies of every second",
    "write_bw_log": "the run folder has the rates of every second",
    "write_iops_log": "the run folder has the rates of every second",
}


def without_fio_flags(words: Sequence[str]) -> list[str]:
    """The command line without the flags of fio that ask for what ivypy always does, and with quick's own options for
    its switches.

    Raises PlanError for one that asks for the opposite, as `--unlink=0` does.
    """
    rest: list[str] = []
    remaining = list(words)
    while remaining:
        word = remaining.pop(0)
        if word == "--":
            return [*rest, word, *remaining]
        name, equals, value = word.removeprefix("--").partition("=")
        name = name.replace("-", "_").lower()
        if not word.startswith("--") or name not in {*ALWAYS, *_SWITCHES}:
            rest.append(word)
            continue
        if not equals and remaining and remaining[0] in ("0", "1"):
            value = remaining.pop(0)
        if option := _SWITCHES.get(name, {}).get(value or "1"):
            rest.append(option)
        if value == "0" and name in OPPOSITE:
            raise PlanError(f"{word}: {OPPOSITE[name]}")
        if name == "time_based" and (volume := next(filter(_is_volume, words), None)):
            raise PlanError(f"{word} with {volume.partition('=')[0]}: fio obeys the time alone; leave one of them out")
    return rest


def _is_volume(word: str) -> bool:
    return word.startswith("--") and word[2:].partition("=")[0].replace("-", "_").lower() in _VOLUMES


def nearest_to(option: str) -> str:
    """The advice what to do instead of an option of fio; "" for one that fio does not have either."""
    return NEAREST.get(option.removeprefix("--").replace("-", "_").lower(), "")
