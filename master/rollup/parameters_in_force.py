"""The workload parameters in force, as rows show them.

Rule: one value stands plain; several as `value(k/n) value(m/n)`, the most frequent first, each with how many of the
row's workload instances have it.
"""

import math
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ...protocol.parameters import (
    MAX,
    NEVER,
    NO_BURSTS,
    NO_FLUSH,
    PARAMETERS,
    Bursts,
    Flush,
    MixPart,
    Parameters,
    Until,
    VolumeKind,
    Zone,
)
from .arrays import Floats
from .instances import InstanceKey, Rollups

NO_PARAMETERS: Final[Mapping[InstanceKey, Parameters]] = MappingProxyType({})
PLAIN: Final = "plain"  # reads and writes of one size
NO_ZONES: Final = "none"
NOTHING: Final = "0"  # the total target where iops is 0
PROFILE: Final = "profile"  # in the place of rates that changed within a measurement
MOST_NAMED: Final = 8  # different values that are spelled out


@dataclass(frozen=True, slots=True, eq=False)
class Settings:
    """Parameters in force, for all R rows. Made anew at each edit."""

    columns: Mapping[str, tuple[str, ...]]  # parameter: a text per row
    paced: NDArray[np.bool_]  # (R,) every instance has a number for iops: response time has a meaning
    some_max: NDArray[np.bool_]  # (R,) an instance has iops: max
    thinking_tags: Floats  # (R,) of all instances that are not paused, where those have iops: max and a think_time; NaN
    at_max: frozenset[InstanceKey]  # (host, number) of those instances
    until: Mapping[InstanceKey, Until]  # of those that end by volume, and are not paused
    starts: Mapping[InstanceKey, float]  # seconds from a step's start, of those that begin later
    bursts: Mapping[InstanceKey, tuple[Bursts, float]]  # of those that drive in such: and their starts
    endless: bool  # an instance that is not paused has no such end
    iops: tuple[str, ...]  # total target, of hosts that are gone too: a number, `max`; blank where only some are paced

    @classmethod
    def of(
        cls,
        rollups: Rollups,
        parameters: Mapping[InstanceKey, Parameters],
        gone: Mapping[InstanceKey, Parameters] = NO_PARAMETERS,
    ) -> "Settings":
        """`parameters`: of the instances that take part; `gone`: of those that were asked for IOPS, and do not."""
        members, asked = _members(rollups, parameters), _members(rollups, gone)
        paced = np.array([bool(row) and all(p.iops != MAX for p in row) for row in members], bool)
        some_max = np.array([any(p.iops == MAX for p in row) for row in members], bool)
        columns = {name: tuple(_summary([getattr(p, name) for p in row]) for row in members) for name in PARAMETERS}
        columns["hot_zones"] = tuple(cell.replace(PLAIN, NO_ZONES) for cell in columns["hot_zones"])
        at_max = frozenset(key for key, one in parameters.items() if one.iops == MAX)
        thinking_tags = np.array([_thinking_tags(row) for row in members], np.float64)
        totals = tuple(_total([*row, *more]) for row, more in zip(members, asked, strict=True))
        running = {key: one.until for key, one in parameters.items() if one.iops != 0}
        until = {key: end for key, end in running.items() if end.what is not VolumeKind.NEVER}
        starts = {key: one.start_after for key, one in parameters.items() if one.start_after and one.iops != 0}
        endless = len(until) < len(running)
        bursts = {
            key: (one.bursty, one.start_after)
            for key, one in parameters.items()
            if one.bursty != NO_BURSTS and one.iops != 0
        }
        return cls(columns, paced, some_max, thinking_tags, at_max, until, starts, bursts, endless, totals)

    def with_changing_rate(self, mean: float) -> "Settings":
        """Of a measurement over which the total rate changed: `mean` is that of all rows together, which share it in
        the same parts throughout. Blank where the present rate does not tell the parts."""
        total = float(self.iops[0] or 0)  # all=all is the first row
        others = tuple(f"{float(text) / total * mean:.10g}" if text and total else "" for text in self.iops)
        columns = {**self.columns, "iops": tuple(text and PROFILE for text in self.columns["iops"])}
        return replace(self, columns=columns, iops=(f"{mean:.10g}", *others[1:]))

    def response_rows(self, reached: NDArray[np.bool_] | None = None) -> NDArray[np.bool_]:
        """(R,) The rows whose response times are shown: those that are paced, and in a summary, whose `reached` says
        so, only those whose load was sustained. Control is given more: see control/observe.py.
        """
        return self.paced if reached is None else self.paced & reached


def is_other_load(before: Settings | None, now: Settings) -> bool:
    """Whether the parameters of some row differ, beside its rate."""
    if before is None or before is now:
        return False
    return any(cells != before.columns[name] for name, cells in now.columns.items() if name != "iops")


class SettingsInForce:
    """Keeps the newest settings, which are computed again only when the parameters or the hosts change."""

    def __init__(self, rollups: Rollups) -> None:
        self._rollups = rollups
        self._of: tuple[Mapping[InstanceKey, Parameters], ...] = ({}, {})
        self._settings = Settings.of(rollups, {})

    def of(self, parameters: Mapping[InstanceKey, Parameters], hosts: Collection[str], as_planned: bool) -> Settings:
        """Of the instances of `hosts` alone: rows do not include the load of the others. The total target does, or a
        part of the load would look like all of it; but only while it is `as_planned`: what control or somebody sets, is
        set for those that are there.
        """
        present = {key: one for key, one in parameters.items() if key[0] in hosts}
        gone = {key: one for key, one in parameters.items() if as_planned and key[0] not in hosts}
        if (present, gone) != self._of:
            self._of, self._settings = (present, gone), Settings.of(self._rollups, present, gone)
        return self._settings


def _thinking_tags(row: list[Parameters]) -> float:
    running = [p for p in row if p.iops != 0]
    thinks = bool(running) and all(p.iops == MAX and p.think_time > 0 for p in running)
    return float(sum(p.maxtags for p in running)) if thinks else math.nan


def _members(rollups: Rollups, parameters: Mapping[InstanceKey, Parameters]) -> list[list[Parameters]]:
    """Those of each row."""
    members: list[list[Parameters]] = [[] for _ in rollups.rows]
    for key, one in parameters.items():
        for row in rollups.rows_of(*key):
            members[row].append(one)
    return members


def _total(row: list[Parameters]) -> str:
    numbers = [p.iops for p in row if p.iops != MAX]
    if len(numbers) < len(row):
        return "" if numbers else MAX
    return f"{sum(map(float, numbers)):.10g}" if row else ""


def _summary(values: list[Any]) -> str:
    if not values:
        return ""
    if values.count(values[0]) == len(values):  # as almost always, for each parameter of each row
        return text(values[0])
    counted = Counter(values)
    frequent = counted.most_common(MOST_NAMED)
    said = " ".join(f"{text(value)}({count}/{len(values)})" for value, count in frequent)
    rest = len(counted) - len(frequent)
    return f"{said} and {rest} other values" if rest else said


def text(value: Any) -> str:
    """A parameter's value in a cell, one word: numbers short, a range as `first-end` in bytes or `all`, an end by
    volume as `written=bytes`, flushes as `fsync=32`, bursts as `1/3` (seconds on and off), a mix as
    `read:4096=0.6;write:4096=0.4`, hot zones as `0-1048576=0.9;1048576-4194304=0.1`, where reads and others differ
    with both shares: `=0.9/0.5`."""
    if isinstance(value, Until):
        return str(value.what) if value.what is VolumeKind.NEVER else f"{value.what}={value.amount}"
    if isinstance(value, Bursts):
        return NEVER if value == NO_BURSTS else f"{value.on:.10g}/{value.off:.10g}"
    if isinstance(value, Flush):
        return NEVER if value == NO_FLUSH else f"{value.how}={value.every}"
    if isinstance(value, bool):
        return str(value).lower()
    if value == ():
        return PLAIN
    if isinstance(value, tuple) and isinstance(value[0], Zone):
        return ";".join(f"{zone.start}-{zone.end}={_shares_of(zone)}" for zone in value)
    if isinstance(value, tuple) and isinstance(value[0], MixPart):
        return ";".join(f"{part.operation}:{part.bytes}={part.share:.6g}" for part in value)
    if isinstance(value, tuple):
        return "all" if value == (0, 0) else f"{value[0]}-{value[1]}"
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def _shares_of(zone: Zone) -> str:
    shares = dict.fromkeys(f"{share:.6g}" for share in (zone.reads, zone.others))
    return "/".join(shares)
