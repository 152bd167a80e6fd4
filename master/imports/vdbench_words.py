"""vdbench's keywords: what each becomes in a plan, or why it has no counterpart.

Rule: the order of each table is vdbench's own, since an abbreviation means the first keyword that begins with it.
The table in docs/coming-from-vdbench.md is printed from here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ..text.suggestions import did_you_mean

SHORTEST: Final = 2  # letters of an abbreviation


@dataclass(frozen=True, slots=True)
class Becomes:
    """It is in the plan."""

    what: str


@dataclass(frozen=True, slots=True)
class Needless:
    """ivypy always does it, or it has no part in the load."""


@dataclass(frozen=True, slots=True)
class Without:
    """It has no counterpart."""

    why: str
    nearest: str = ""
    matters: bool = True
    off: frozenset[str] = frozenset({"0", "no", "n", "off", "none"})  # values that ask for nothing


@dataclass(frozen=True, slots=True)
class RefusedFile:
    """The whole file cannot be a plan."""

    why: str
    off: frozenset[str] = frozenset({"no", "n"})


Fate = Becomes | Needless | Without | RefusedFile

_CONTENT: Final = Without(
    "ivypy writes data that neither compresses nor repeats", off=frozenset({"0", "1", "100%", "no", "none"})
)
_VERIFY: Final = Without("ivypy does not verify what it reads")
_CACHE: Final = Without(
    "addresses are evenly distributed; ivypy does not aim at a cache", "use a workload with a small `range`"
)
_BEFORE: Final = Without("a plan starts no commands", "run it before")
_AFTER: Final = Without("a plan starts no commands", "run it after", matters=False)
_END: Final = Without("of all LUNs together; `until` is of each", "the plan runs for all of `elapsed`; use `until`")
_FLAGS: Final = Becomes("`direct`, `sync`")
_SPOT: Final = Without(
    "the plan's addresses are evenly distributed", "use `hot_zones`, or workloads with a `range` each"
)
_DEDUP: Final[dict[str, Fate]] = {
    name: _CONTENT for name in ("dedupratio", "dedupunit", "dedupsets", "deduphotsets", "dedupflipflop", "dedup")
}

GENERAL: Final[Mapping[str, Fate]] = {
    "compression": _CONTENT, "compratio": _CONTENT, "compressionseed": Needless(), **_DEDUP, "port": Needless(),
    "pattern": _CONTENT,
    "data_errors": Without("an I/O error is counted", "use `on_io_error: stop`", matters=False),
    "dataerrors": Without("an I/O error is counted", "use `on_io_error: stop`", matters=False),
    "swat": Needless(), "validate": _VERIFY, "journal": _VERIFY, "startcmd": _BEFORE, "start_cmd": _BEFORE,
    "endcmd": _AFTER, "end_cmd": _AFTER, "heartbeat_error": Needless(), "debug": Needless(),
    "unix2windows": Needless(), "formatxfersize": Needless(), "create_anchors": Needless(),
    "formatsds": Needless(), "report": Needless(), "report_run_totals": Needless(), "histogram": Needless(),
    "psrset": Without("cores are chosen for a whole plan", "use `engine: cpus`", matters=False),
    "auxreport": Needless(), "monitor": Needless(),
    "concatenatesds": RefusedFile("addresses across several LUNs; write them without, and the threads of each sd"),
    "messagescan": Needless(), "abort_failed_skew": Needless(), "misc": Needless(), "pattern_buffer": Needless(),
    "showlba": Needless(), "loop": Without("a plan runs once", "call `ivypy run` again"),
}  # fmt: skip

HD: Final[Mapping[str, Fate]] = {
    "system": Becomes("`hosts: address`"), "vdbench": Needless(), "shell": Needless(),
    "user": Becomes("`ssh: user`, or the host's"),
    "jvms": Without("a process drives a host with a thread per core", "", matters=False),
    "clients": Without("a process drives a host with a thread per core", "the plan has the host once", matters=False),
    "mount": Without("ivypy mounts nothing", "mount it before"),
}  # fmt: skip

SD: Final[Mapping[str, Fate]] = {
    "host": Becomes("`select` by host"), "hd": Becomes("`select` by host"), "lun": Becomes("`luns`"),
    "count": Becomes("a LUN for each number"), "size": Becomes("`range`, or the size of a file to create"),
    "threads": Becomes("`maxtags`, divided by hosts and workloads"), "hitarea": Needless(),
    "offset": Without("addresses are multiples of the block size", "a `range` that begins there"),
    "align": Becomes("`align`"), "kstat": Needless(), "instance": Needless(),
    "replay": RefusedFile("ivypy does not replay"), "journal": _VERIFY,
    "resetlun": Without("ivypy resets no LUN"), "resetbus": Without("ivypy resets no bus"), "openflags": _FLAGS,
    "range": Becomes("`range`"), **_DEDUP,
    "streams": RefusedFile("vdbench has it as a parameter of a wd"),
}  # fmt: skip

WD: Final[Mapping[str, Fate]] = {
    "sd": Becomes("`select` of the workload"),
    "skew": Becomes("`skew`, or each workload's `iops`"), "xfersize": Becomes("`blocksize`"),
    "readpct": Becomes("`fraction_read`"), "rdpct": Becomes("`fraction_read`"), "writepct": Becomes("`fraction_read`"),
    "wrpct": Becomes("`fraction_read`"), "range": Becomes("`range`"), "hotband": _SPOT,
    "seekpct": Becomes("`iosequencer`, `sequential`"), "stride": _SPOT,
    "priority": Without("workloads have no priority", "each has its own rate", matters=False),
    "iorate": Becomes("`total_iops`"), "rhpct": _CACHE, "whpct": _CACHE, "host": Becomes("`select` by host"),
    "hd": Becomes("`select` by host"), "openflags": _FLAGS,
    "user": RefusedFile("a class of Java makes the I/Os"),
    "threads": Without("`threads` of a wd is for concatenated LUNs"),
    "streams": Becomes("`streams`"),
}  # fmt: skip

_LOOPS: Final[dict[str, Fate]] = {
    "xfersize": Becomes("`blocksize`"), "threads": Becomes("`maxtags`"), "rdpct": Becomes("`fraction_read`"),
    "rhpct": _CACHE, "whpct": _CACHE, "seekpct": Becomes("`iosequencer`"), "hitarea": Needless(),
    "compratio": _CONTENT, "compression": _CONTENT, "dedupratio": _CONTENT,
}  # fmt: skip

RD: Final[Mapping[str, Fate]] = {
    "wd": Becomes("the workloads of a step"), "sd": Becomes("`select` of the workload"),
    "iorate": Becomes("`total_iops`, or `iops: max`"), "maxdata": _END, "maxdataread": _END, "maxdatawritten": _END,
    "curve": Becomes("`iops_curve`"),
    "stopcurve": Without("a curve has all of its points", "use `find` (docs/control.md) for the highest rate"),
    "elapsed": Becomes("`measure`"), "interval": Becomes("`subinterval`"), "warmup": Becomes("`warmup`"),
    "replay": RefusedFile("ivypy does not replay"), "pause": Becomes("`cooldown`"),
    **{f"for{name}": fate for name, fate in _LOOPS.items()}, **_LOOPS,
    "distribution": Becomes("`iosequencer`"), "startcmd": _BEFORE, "start_cmd": _BEFORE, "endcmd": _AFTER,
    "end_cmd": _AFTER, "openflags": _FLAGS, "mount": Without("ivypy mounts nothing", "mount it before"),
}  # fmt: skip

LOOPS: Final = frozenset(_LOOPS)
TABLES: Final[Mapping[str, Mapping[str, Fate]]] = {"general": GENERAL, "hd": HD, "sd": SD, "wd": WD, "rd": RD}
FILE_SYSTEM: Final = frozenset({"fsd", "fwd"})


def keyword_of(typed: str, kind: str) -> str | None:
    """The keyword that `typed` is or abbreviates; `forthreads` and `threads` of an rd are one. None: there is none."""
    table = TABLES[kind]
    if typed in table:
        keyword: str | None = typed
    else:
        keyword = next((name for name in table if len(typed) >= SHORTEST and name.startswith(typed)), None)
    if kind == "rd" and keyword is not None and keyword.removeprefix("for") in LOOPS:
        return keyword.removeprefix("for")
    return keyword


def unknown(typed: str, kind: str) -> str:
    """Why `typed` is no keyword there."""
    others = [other for other, table in TABLES.items() if typed in table and other != kind]
    kind_name = "a general parameter" if kind == "general" else f"a parameter of {kind}"
    hint = f"; it is one of {' and '.join(others)}" if others else did_you_mean(typed, [*TABLES[kind], *TABLES])
    order = "; definitions stand in the order hd, sd, wd, rd" if others else ""
    return f"not {kind_name} that ivypy knows{hint}{order}"


def keyword_table() -> str:
    """A list of every keyword that has no counterpart, in Markdown; those with the same fate in one line."""
    keywords: dict[str, dict[str, list[str]]] = {}
    for kind, table in TABLES.items():
        for name, fate in table.items():
            if not isinstance(fate, Needless | Becomes) and not (kind == "rd" and name in LOOPS):
                by_kind = keywords.setdefault(_in_words(fate), {})
                by_kind.setdefault("" if kind == "general" else f"{kind}: ", []).append(f"`{name}`")
    return "".join(
        f"- {'; '.join(kind + ', '.join(names) for kind, names in by_kind.items())}: {text}\n"
        for text, by_kind in keywords.items()
    )


def _in_words(fate: Fate) -> str:
    match fate:
        case Without(why, nearest):
            return f"{why}; {nearest}" if nearest else why
        case RefusedFile(why):
            return f"refused: {why}"
        case _:
            return ""
