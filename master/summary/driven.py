"""The load of each measurement of a run, and the LUNs that it drove, in words.

Rule: a load is told from the parameters of its row in summary.all.csv, which are those while it was measured. One that
differs between workload instances has several values there: `4096(2/3) 8192(1/3)`.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ...protocol.parameters import MAX, NEVER, SCATTERED, Cursors, Iosequencer, Operation, Sync, VolumeKind
from ..rollup.parameters_in_force import NO_ZONES, PLAIN, PROFILE
from ..text.scaled import scaled_count, scaled_size
from ..text.units import format_bytes, format_duration, format_fraction

Row = Mapping[str, str]
_ORDERS: Final[dict[str, str]] = {
    Iosequencer.SEQUENTIAL: "sequential",
    Iosequencer.RANDOM_STEADY: "random",
    Iosequencer.RANDOM_INDEPENDENT: "random",
}
_OPERATIONS: Final[dict[str, str]] = {
    Operation.READ: "reads",
    Operation.WRITE: "writes",
    Operation.TRIM: "trims",
    Operation.WRITE_ZEROES: "writes of zeroes",
}
_WHOLE: Final = "all"  # as a range
_MOST_NAMED: Final = 3  # hosts, or paths


def load_parts(row: Row) -> dict[str, str]:
    """The words of a measurement's load, by what they are of: "4KiB random reads", "depth 8", "at max"."""
    parts = {
        "access": _access(row),
        "part": _each("{} of them sequential", row, "sequential", lambda cell: format_fraction(float(cell)), "0"),
        "streams": _each("{} streams", row, "streams", str, "1"),
        "cursors": _some("reads and writes each in sequence", row, "cursors", Cursors.SHARED),
        "align": _each("aligned to {}", row, "align", lambda cell: format_bytes(int(cell)), "0"),
        "depth": _each("depth {}", row, "maxtags", str),
        "range": _range(row),
        "pause": _each("think time {}", row, "think_time", lambda cell: format_duration(float(cell)), "0"),
        "drop": _each("dropped after {}", row, "drop_after", lambda cell: format_duration(float(cell)), NEVER),
        "zipf": _each("zipf {}", row, "zipf", str, "0"),
        "pareto": _each("pareto {}", row, "pareto", _percent_of, "0"),
        "normal": _each("normal {}", row, "normal", _percent_of, "0"),
        "zones": _some("{}", row, "hot_zones", NO_ZONES, _zones),
        "set": _each("working set {}", row, "working_set", lambda cell: scaled_size(int(cell)), "0"),
        "first": _some("not scattered", row, "scattered", "true") if _is_scattered(row) else "",
        "start": _each("from {} on", row, "start", lambda cell: scaled_size(int(cell)), "0"),
        "skew": _each("skew {}", row, "skew", str, "0"),
        "bursts": _each("in bursts ({} s on/off)", row, "bursty", str, NEVER),
        "start_after": _each("starting after {}", row, "start_after", lambda cell: format_duration(float(cell)), "0"),
        "map": _some("each block once a pass", row, "random_map", "false"),
        "cache": _some("through the page cache", row, "direct", "true"),
        "kept": _some("which is kept", row, "drop_cache", "true"),
        "sync": _some("each write durable ({})", row, "sync", Sync.NONE),
        "flush": _some("{}", row, "flush", NEVER, _flush),
        "until": _each("until {}", row, "until", _volume, VolumeKind.NEVER),
        "end": _some("fsync at the end", row, "end_fsync", "false"),
        "rate": _rate(row.get("iops_setting", ""), row.get("iops", "")),
    }
    return {name: words for name, words in parts.items() if words}


def _range(row: Row) -> str:
    """Which part of each LUN: "on 128 MiB to 256 MiB"; "" where it is all."""
    values = values_of(row, "range")
    return f"on {' and '.join(map(_span, values))}" if any(one != _WHOLE for one in values) else ""


def _span(cell: str) -> str:
    if cell == _WHOLE:
        return "the whole LUN"
    start, end = (int(byte) for byte in cell.split("-"))
    return f"{scaled_size(start) if start else 0} to {scaled_size(end)}"


def shared_parts(loads: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Those that all these loads have alike."""
    first, *others = loads or ({},)
    return {name: words for name, words in first.items() if all(one.get(name) == words for one in others)}


def driven(loads: Sequence[Mapping[str, str]], luns: Sequence[Row], instances: Sequence[Row]) -> list[str]:
    """The words that all these loads have alike, and the LUNs: a run's load. `luns`, `instances`: as below."""
    return [*shared_parts(loads).values(), *filter(None, [luns_in_words(luns, instances)])]


def luns_in_words(luns: Sequence[Row], instances: Sequence[Row]) -> str:
    """The LUNs that have workload instances: "2 files of 1.00 GiB on 4 hosts". `luns`, `instances`: the rows of
    luns.csv and of workloads.csv."""
    used = {(row["host"], row["lun"]) for row in instances}
    driven = [row for row in luns if (row["host"], row["path"]) in used]
    hosts = sorted({row["host"] for row in driven})
    if not driven:
        return ""
    on = ", ".join(hosts) if len(hosts) <= _MOST_NAMED else f"{len(hosts)} hosts"
    return f"{_named(driven)} on {on}"


def _named(luns: Sequence[Row]) -> str:
    kinds = {row["kind"] for row in luns}
    noun = {"file": "file", "block": "block device"}.get(kinds.pop(), "LUN") if len(kinds) == 1 else "LUN"
    paths = sorted({row["path"] for row in luns})
    each = paths[0] if len(luns) == 1 else f"{len(luns)} {noun}s"
    sizes = sorted({int(row["size"]) for row in luns if row["size"]})
    about = [scaled_size(size) for size in dict.fromkeys(sizes[:1] + sizes[-1:])]
    makers = {" ".join(filter(None, (row.get("vendor", ""), row.get("model", "")))) for row in luns}
    known = [one for one in makers if one] if len(makers) == 1 else []
    size = " to ".join(about)
    if len(luns) > 1 and size:
        each, size = f"{each} of {size}", ""
    more = ", ".join(filter(None, [*known, size]))
    return f"{each} ({more})" if more else each


def _access(row: Row) -> str:
    mixes = values_of(row, "operations")
    if any(one != PLAIN for one in mixes):
        orders = dict.fromkeys(_ORDERS.get(one, one) for one in values_of(row, "iosequencer"))
        return f"{_mixed(mixes[0]) if len(mixes) == 1 else 'several mixes'}, {' and '.join(orders)}"
    sizes = _each("{}", row, "blocksize", lambda cell: format_bytes(int(cell)))
    orders = dict.fromkeys(_ORDERS.get(one, one) for one in values_of(row, "iosequencer"))
    mix = _mix([float(one) for one in values_of(row, "fraction_read")])
    joint = " " if mix in ("", "reads", "writes") and len(orders) == 1 else ", "
    return f"{sizes} {' and '.join(orders)}{joint}{mix}".strip(" ,")


def _mixed(cell: str) -> str:
    """A mix in words: "70% reads of 4KiB, 30% trims of 1MiB"; of several sizes, with the share of each."""
    sizes: dict[str, dict[int, float]] = {}
    for part in cell.split(";"):
        operation, size, share = re.split("[:=]", part)
        sizes.setdefault(operation, {})[int(size)] = float(share)
    words = []
    for operation, of_sizes in sizes.items():
        total = sum(of_sizes.values())
        each = [
            format_bytes(size) + (f" ({_percent(share / total)})" if len(of_sizes) > 1 else "")
            for size, share in of_sizes.items()
        ]
        words.append(f"{_percent(total)} {_OPERATIONS[operation]} of {', '.join(each)}")
    return "; ".join(words)


def _percent(share: float) -> str:
    return f"{share * 100:.4g}%"


def _mix(shares: Sequence[float]) -> str:
    match shares:
        case []:
            return ""
        case [share]:
            return {0.0: "writes", 1.0: "reads"}.get(share, f"{format_fraction(share)} reads")
        case _:
            return "reads and writes" if {*shares} == {0.0, 1.0} else "several mixes of reads and writes"


def _each(words: str, row: Row, name: str, text: Callable[[str], str], unsaid: str = "") -> str:
    """A parameter's values in words; "" where all are `unsaid`."""
    values = values_of(row, name)
    said = [text(one) if one != unsaid else one for one in values]
    return words.format(" and ".join(said)) if any(one != unsaid for one in values) else ""


def _some(words: str, row: Row, name: str, unsaid: str, text: Callable[[str], str] = str) -> str:
    """A parameter's values in words but for those that are `unsaid`, and whether only some have others."""
    values = values_of(row, name)
    said = [text(one) for one in values if one != unsaid]
    some = "some " if len(said) < len(values) else ""
    return some + words.format(" and ".join(said)) if said else ""


def values_of(row: Row, name: str) -> list[str]:
    """Those of a cell, of many the most frequent."""
    cell = row.get(name, "").partition(" and ")[0]
    return [one.partition("(")[0] for one in cell.split()]


def _is_scattered(row: Row) -> bool:
    """Whether it has places that could be."""
    return any(one != "0" for name in SCATTERED for one in values_of(row, name))


def _percent_of(cell: str) -> str:
    return format_fraction(float(cell))


def _zones(cell: str) -> str:
    """Hot zones in words: "90% of I/Os on 0 to 1.00 MiB, 10% on 1.00 MiB to 10.0 MiB"."""
    parts = [zone.split("=") for zone in cell.split(";")]
    words = [
        (_sizes(place), " and ".join(_percent(float(share)) for share in shares.split("/"))) for place, shares in parts
    ]
    first, *others = [f"{share} {{}}on {place}" for place, share in words]
    return ", ".join([first.format("of I/Os "), *(one.format("") for one in others)])


def _sizes(extent: str) -> str:
    start, end = (int(edge) for edge in extent.split("-"))
    return f"{scaled_size(start) if start else 0} to {scaled_size(end)}"


def _volume(cell: str) -> str:
    what, _, amount = cell.partition("=")
    match what:
        case VolumeKind.IOS:
            return f"{scaled_count(float(amount))} I/Os"
        case VolumeKind.TIME:
            return f"{format_duration(int(amount) / 1e9)} have passed"
        case VolumeKind.BYTES:
            return f"{scaled_size(int(amount))} on each LUN"
        case _:
            return f"{scaled_size(int(amount))} {what} on each LUN"


def _flush(cell: str) -> str:
    how, _, every = cell.partition("=")
    return f"{how} after each write" if every == "1" else f"{how} after {every} writes"


def _rate(setting: str, each: str) -> str:
    """`setting`: the total; `each`: of the workload instances."""
    if each == PROFILE:
        return f"at a rate that changes, {scaled_count(float(setting))} IOPS in the mean"
    if setting == MAX:
        return "at max"
    return f"at {scaled_count(float(setting))} IOPS" if setting else ""
