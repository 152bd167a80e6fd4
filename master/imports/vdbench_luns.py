"""The hosts and LUNs of a parameter file of vdbench, and which host has which."""

import os.path
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ..text.suggestions import suggestion
from ..text.units import format_bytes, format_fraction
from .description import Dropped, ImportContext, ImportedTarget, Settings, is_device
from .vdbench_definitions import Hd, Range, Sd

LOCAL = "local"
_HOST_NAME = re.compile(r"[A-Za-z0-9._:-]+")


@dataclass(frozen=True, slots=True)
class Hosts:
    """The hosts of the test."""

    labels: Mapping[str, str]  # vdbench's names and addresses -> the plan's names
    keys: tuple[tuple[str, Settings], ...]  # address and user, where they are not the plan's
    user: str

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.labels.values()))

    def matching(self, patterns: Iterable[str]) -> set[str]:
        return {name for label, name in self.labels.items() if any(matches(one, label) for one in patterns)}


@dataclass(frozen=True, slots=True)
class VdbenchLun:
    """An sd with its paths by the plan's host names."""

    sd: Sd
    paths: Mapping[str, str]

    @property
    def name(self) -> str:
        return self.sd.name


def matches(pattern: str, name: str) -> bool:
    """As vdbench does: a * stands at the end."""
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern


def hosts_of(hds: Sequence[Hd], faults: list[str], dropped: list[Dropped]) -> Hosts:
    """This machine where the file names none; two names of one machine are one host."""
    labels: dict[str, str] = {}
    by_address: dict[str, str] = {}
    users: dict[str, str] = {}
    for hd in hds:
        local = hd.address.split(".")[0] == "localhost" or hd.address.startswith("127.")
        address = LOCAL if local else hd.address
        name = by_address.setdefault(address, LOCAL if local else hd.label)
        if not _HOST_NAME.fullmatch(name):
            faults.append(f"{hd.record.where}: {hd.record.text}: {name!r} cannot be a host's name")
        elif name not in (hd.label, LOCAL):
            why = f"{hd.address} is host {name} already"
            dropped.append(Dropped(hd.record.where, hd.record.text, why, "the plan has it once", matters=False))
        for label in (hd.label, hd.address, *(f"{hd.label}_cl{count}" for count in range(hd.clients))):
            labels.setdefault(label, name)
        users.setdefault(name, hd.user)
    remote = [name for name in by_address.values() if name != LOCAL]
    shared = {users[name] for name in remote}
    user = shared.pop() if len(shared) == 1 else ""
    keys = []
    for address, name in by_address.items():
        own = [("address", f'"{address}"')] if address not in (name, LOCAL) else []
        own += [("user", f'"{users[name]}"')] if name != LOCAL and users[name] != user else []
        keys += [(name, tuple(own))] if own else []
    return Hosts(labels or {"localhost": LOCAL}, tuple(keys), user)


@dataclass
class VdbenchLuns:
    """Every sd of the file."""

    hosts: Hosts
    around: ImportContext
    faults: list[str]
    dropped: list[Dropped]
    all: list[VdbenchLun] = field(default_factory=list)

    def add(self, sd: Sd) -> None:
        paths: dict[str, str] = {}
        for path, patterns in sd.luns:
            hosts = self.hosts.matching(patterns)
            if not hosts:
                unknown = f"no host {', '.join(patterns)}{suggestion(patterns[0], self.hosts.labels)}"
                self.faults.append(f"{sd.record.where}: {sd.record.text}: {unknown}")
            if re.search(r"[*?\[\]{}$\n\"\\]", path):
                self.faults.append(f"{sd.record.where}: {path}: no path on Linux that a plan can name")
            paths |= dict.fromkeys(
                (name for name in self.hosts.names if name in hosts), os.path.join(self.around.folder, path)
            )
        if any(sd.name == other.name for other in self.all):
            self.faults.append(f"{sd.record.where}: {sd.record.text}: there is an sd {sd.name} already")
        self.all.append(VdbenchLun(sd, paths))

    def matching(self, patterns: Sequence[str], where: str, text: str) -> list[VdbenchLun]:
        """In the order of the patterns, each once."""
        luns: dict[str, VdbenchLun] = {}
        for pattern in patterns:
            of_one = [lun for lun in self.all if matches(pattern, lun.name)]
            if not of_one:
                near = suggestion(pattern, [lun.name for lun in self.all])
                self.faults.append(f"{where}: {text}: no sd {pattern}{near}")
            luns |= {lun.name: lun for lun in of_one}
        return list(luns.values())

    def targets(self, used: Iterable[VdbenchLun]) -> tuple[ImportedTarget, ...]:
        """The targets that the plan drives."""
        used = list(used)
        alike = all(set(lun.paths) == set(self.hosts.names) and len(set(lun.paths.values())) == 1 for lun in used)
        targets: dict[tuple[str, str], ImportedTarget] = {}
        for lun in used:
            for host, path in lun.paths.items():
                target = self._target(lun.sd, path, "" if alike else host)
                known = targets.get((target.host, path))
                if known is None or (target.size or 0) > (known.size or 0):
                    targets[(target.host, path)] = target
        return tuple(targets.values())

    def is_created(self, sd: Sd, path: str) -> bool:
        """Whether it is a file that does not exist yet; those of other machines exist if the sd has no size."""
        alone = self.hosts.names == (LOCAL,)
        return not is_device(path) and not (self.around.is_file(path) if alone else sd.size is None)

    def _target(self, sd: Sd, path: str, host: str) -> ImportedTarget:
        where, text = sd.record.where, sd.record.text
        if is_device(path):
            return ImportedTarget(path, True, False, None, host)
        exists = not self.is_created(sd, path)
        if not exists and sd.size is None:
            self.faults.append(f"{where}: {text}: {path}: no such file; give its `size`")
        if host:
            self.faults.append(f"{where}: {text}: {path}: a file that only some of the hosts have; make a plan of each")
        elif not exists and self.hosts.names != (LOCAL,):
            why = "the plan creates the file on every host"
            self.dropped.append(
                Dropped(where, text, why, "one that the hosts share needs a host of its own", matters=True)
            )
        return ImportedTarget(path, False, exists, sd.size, host)


def span_of(sd: Sd, of_wd: Range | None, created: bool) -> tuple[str, str] | None:
    """The part that is driven, as a plan writes positions; None: all of it. A wd's range counts before an sd's.

    What the plan does not create ends for vdbench at its `size`, and percentages are of that.
    """
    low, high = of_wd or sd.range or (0.0, 100.0)
    size = None if created else sd.size
    ends = [_position(low, 100.0, size), _position(min(high, 100.0) if high <= 200 else high, 200.0, size)]
    return None if ends == ["0%", "100%"] else (ends[0], ends[1])


def _position(end: float, most_percent: float, size: int | None) -> str:
    if end > most_percent:
        return format_bytes(int(end) // 512 * 512)
    if size is None:
        return format_fraction(end / 100)
    return format_bytes(int(size * end / 100) // 512 * 512)
