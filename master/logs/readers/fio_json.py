"""fio's JSON output: its jobs, and the steady state that each was asked for.

Rule: a client's JSON names its jobs `client_stats` and adds a sum of them, "All clients", which is no job. What fio
prints before and after the JSON is skipped. With --status-interval it prints one after the other, each from the begin
of the jobs: the last one counts.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ...text.foreign_json import json_of
from ...text.units import parse_duration
from .source import DIRECTIONS

_SUM: Final = "All clients"
_BEGIN: Final = re.compile(r"^[^\S\n]*\{", re.MULTILINE)
_SETTING: Final = re.compile(r"(?P<criterion>\w+):(?P<limit>[\d.]+)(?P<percent>%?)")
_CRITERIA: Final = {"iops": "iops", "bw": "bw", "lat": "latency"}
_INTERVAL_OPTIONS: Final = ("ss_interval", "steadystate_check_interval")
_LIMIT_UNITS: Final = {"iops": 1.0, "bw": 2.0**-20, "lat": 1.0}  # of fio's limit in ours: I/Os, MiB/s, us


@dataclass(frozen=True, slots=True)
class SteadySettings:
    """The steady state that a job was asked for: criterion as in plans; the limit in our unit, a slope's per second."""

    criterion: str
    limit: float
    relative: bool
    window_s: float
    sample_s: float  # between two values of its data


def jobs_of(text: str) -> list[Mapping[str, Any]]:
    """The jobs of all clients. Raises ValueError, KeyError or TypeError for what is not fio's."""
    document = _last_document(text)
    jobs = document["jobs"] if "jobs" in document else document["client_stats"]
    shared = document.get("global options") or {}  # a client writes [] for none
    return [
        {**job, "job options": {**shared, **(job.get("job options") or {})}}
        for job in jobs
        if len(jobs) == 1 or job["jobname"] != _SUM
    ]


def _last_document(text: str) -> Any:
    begin = _BEGIN.search(text)
    if begin is None:
        return json_of(text)
    try:
        while begin is not None:
            document, end = json.JSONDecoder().raw_decode(text, begin.end() - 1)
            begin = _BEGIN.search(text, end)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    return document


def name_of(job: Mapping[str, Any]) -> str:
    """The job's name, with its host where there is one."""
    return " ".join([str(job["jobname"]), *([str(job["hostname"])] if "hostname" in job else [])])


def runtime_s(job: Mapping[str, Any]) -> float | None:
    """How long it ran, without ramp_time; its window ended then. None where that is not in the JSON."""
    runtimes_ms = [job[name]["runtime"] for name in DIRECTIONS if "runtime" in job.get(name, {})]
    return max(runtimes_ms) / 1000 if any(runtimes_ms) else None


def filled(kept: Mapping[str, Any], values: Sequence[float | None]) -> Sequence[float | None]:
    """The values that a job measured, of those that it kept: fio writes 0 for the slots that it never came to.

    It did not come to all of them if it never checked its criterion. Then the criterion is 0, which would have attained
    any limit.
    """
    has_checked = kept.get("attained") or float(str(kept.get("criterion", math.nan)).rstrip("%"))
    if has_checked or not values or values[-1]:
        return values
    measured = [place for place, value in enumerate(values, 1) if value]
    return values[: measured[-1]] if measured else ()


def steady_settings(job: Mapping[str, Any]) -> SteadySettings | None:
    """None where a job was asked for none, or for one that is not known here."""
    kept = job.get("steadystate", {})
    match = _SETTING.fullmatch(str(kept.get("ss", "")))
    window_s = float(kept.get("duration", 0))
    if match is None or not window_s:
        return None
    metric, _, slope = match["criterion"].partition("_")
    if metric not in _CRITERIA or slope not in ("", "slope"):
        return None
    sample_s = _sample_s(job, window_s)
    relative = bool(match["percent"])
    limit = float(match["limit"]) * (1.0 if relative else _LIMIT_UNITS[metric])
    return SteadySettings(
        _CRITERIA[metric] + ("_slope" if slope else ""),
        limit / sample_s if slope else limit,  # fio's slope is per sample
        relative,
        window_s,
        sample_s,
    )


def _sample_s(job: Mapping[str, Any], window_s: float) -> float:
    """ss_interval: as the job had it, or the window by the number of values in it; a second by default."""
    options = job["job options"]
    given = next((str(options[name]) for name in _INTERVAL_OPTIONS if name in options), None)
    if given is not None:
        return float(given) if given.isdigit() else parse_duration(given)
    values = len(job["steadystate"].get("data", {}).get("iops", ()))
    return window_s / values if values else 1.0
