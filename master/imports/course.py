"""The course of a test: which edits lead from one step to the next, where steps run different streams or settings."""

import re
from collections.abc import Mapping

from .description import Edit, Loop, Run, Settings

Wanted = Mapping[str, Mapping[str, str]]  # by stream: settings as a plan writes them
_RATES = ("iops", "total_iops")  # two ways to say one thing


class Course:
    """Collects the actions; knows what is in force."""

    def __init__(self, initial: Wanted) -> None:
        """`initial`: the settings that the streams are created with, `iops` among them."""
        self.actions: list[Edit | Run] = []
        self._in_force = {name: dict(settings) for name, settings in initial.items()}

    def run(self, name: str, wanted: Wanted, keys: Settings, loop: Loop = ()) -> None:
        """A step with these streams as they are wanted, and no load by the others. A `loop` sets all streams alike."""
        idle = {stream: {"iops": "0"} for stream in self._in_force if stream not in wanted}
        changes = {stream: self._change(stream, settings) for stream, settings in {**idle, **wanted}.items()}
        for stream, change in changes.items():
            self._in_force[stream].update(change)
        alike: dict[Settings, list[str]] = {}
        for stream, change in changes.items():
            # A total of several streams would be another load than a total of each.
            alone = ((stream, ""),) if "total_iops" in change else ()
            if change:
                alike.setdefault((*change.items(), *alone), []).append(stream)
        for settings, streams in alike.items():
            told = tuple((key, value) for key, value in settings if value)
            self.actions.append(Edit("workload={" + ",".join(streams) + "}", told))
        self.actions.append(Run(name, keys, loop))

    def _change(self, stream: str, wanted: Mapping[str, str]) -> dict[str, str]:
        known = self._in_force[stream]
        change = {key: value for key, value in wanted.items() if known.get(key) != value}
        for rate, other in (_RATES, _RATES[::-1]):
            if rate in change:
                known.pop(other, None)
        return change


def unique_name(name: str, taken: set[str]) -> str:
    """A name that a plan allows for a workload or a step, unlike those that are taken; it is taken then."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "_", name).strip("._-") or "job"
    number, unique = 1, plain
    while unique.lower() in taken:
        number += 1
        unique = f"{plain}-{number}"
    taken.add(unique.lower())
    return unique
