"""The course of a test: which edits lead from one step to the next, where steps run different streams or settings."""

import re
from collections.abc import Mapping

from .description import ImportedEdit, ImportedRun, Loop, Settings

Wanted = Mapping[str, Mapping[str, str]]  # by stream: settings as a plan writes them
_RATES = ("iops", "total_iops")  # two ways to say one thing


class Course:
    """Collects the actions; knows what is in force."""

    def __init__(self, initial: Wanted) -> None:
        """`initial`: the settings that the streams are created with, `iops` among them."""
        self.actions: list[ImportedEdit | ImportedRun] = []
        self._in_force = {name: dict(settings) for name, settings in initial.items()}
        self._places = {name: place for place, name in enumerate(initial)}
        self._driving = {name for name, settings in self._in_force.items() if settings.get("iops") != "0"}

    def run(self, name: str, wanted: Wanted, keys: Settings, loop: Loop = ()) -> None:
        """A step with these streams as they are wanted, and no load by the others. A `loop` sets all streams alike."""
        idle = {
            stream: {"iops": "0"} for stream in sorted(self._driving.difference(wanted), key=self._places.__getitem__)
        }
        changes = {stream: self._change(stream, settings) for stream, settings in {**idle, **wanted}.items()}
        for stream, change in changes.items():
            self._in_force[stream].update(change)
            drives = self._in_force[stream].get("iops") != "0"
            (self._driving.add if drives else self._driving.discard)(stream)
        alike: dict[Settings, list[str]] = {}
        for stream, change in changes.items():
            # A total of several streams would be another load than a total of each.
            alone = ((stream, ""),) if "total_iops" in change else ()
            if change:
                alike.setdefault((*change.items(), *alone), []).append(stream)
        for settings, streams in alike.items():
            told = tuple((key, value) for key, value in settings if value)
            self.actions.append(ImportedEdit("workload={" + ",".join(streams) + "}", told))
        self.actions.append(ImportedRun(name, keys, loop))

    def _change(self, stream: str, wanted: Mapping[str, str]) -> dict[str, str]:
        known = self._in_force[stream]
        change = {key: value for key, value in wanted.items() if known.get(key) != value}
        for rate, other in (_RATES, _RATES[::-1]):
            if rate in change:
                known.pop(other, None)
        return change


class UniqueNames:
    """Names that a plan allows for workloads or steps, each unlike those before it."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._last: dict[str, int] = {}  # by name: the number of the newest of that name; those below are taken

    def of(self, name: str) -> str:
        """A name like `name`; it is taken then."""
        plain = re.sub(r"[^A-Za-z0-9._-]+", "_", name).strip("._-") or "job"
        number = self._last.get(plain.lower(), 0) + 1
        while (unique := plain if number == 1 else f"{plain}-{number}").lower() in self._taken:
            number += 1
        self._last[plain.lower()] = number
        self._taken.add(unique.lower())
        return unique
