"""What the statements of an ivyscript share: parameters, settings, what is dropped. Rule: as in ivyscript.py."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

from ..text.suggestions import did_you_mean
from ..text.units import format_bytes, format_fraction, format_number
from .description import Dropped, Edit, Rollup, Run, Select, Settings, Stream
from .ivyscript_options import IDLE, OF_WORKLOADS
from .ivyscript_text import (
    Statement,
    fraction_of,
    number_of,
    parameters,
    rollup_type,
    select,
    size_of,
    whole_of,
)

Value = TypeVar("Value")

EDITABLE: Final = ("iops", "totaliops", "blocksize", "maxtags", "fractionread")
RANGES: Final = ("rangestart", "rangeend")
PARAMETERS_OF_WORKLOADS: Final = ("blocksize", "iops", "maxtags", "fractionread", *RANGES, *OF_WORKLOADS)
_ALIASES: Final = {"volumecoveragefractionstart": "rangestart", "volumecoveragefractionend": "rangeend"}


@dataclass(frozen=True, slots=True)
class Done:
    """An action of a statement, and the workloads that there were."""

    action: Edit | Run
    statement: Statement
    alive: tuple[str, ...]


@dataclass
class ScriptReader:
    """A script on its way to a description."""

    given: list[Statement]
    faults: list[str]
    dropped: list[Dropped] = field(default_factory=list)
    hosts: tuple[str, ...] = ()
    select: Select = ()
    streams: list[Stream] = field(default_factory=list)
    alive: list[str] = field(default_factory=list)  # streams by their names in the plan
    called: dict[str, tuple[str, ...]] = field(default_factory=dict)  # ivy's names of those -> names in the plan
    rollups: dict[str, Rollup] = field(default_factory=lambda: {"workload": Rollup("workload")})
    course: list[Done] = field(default_factory=list)
    written: dict[str, str] = field(default_factory=dict)  # parameters by their plain names, as the script has them
    templates: dict[str, dict[str, str]] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    steps: set[str] = field(default_factory=set)
    load_left: Statement | None = None  # the last [Go!] whose own load would stay in force in ivy

    def _do(self, one: Statement, action: Edit | Run) -> None:
        self.course.append(Done(action, one, tuple(self.alive)))

    def _fault(self, one: Statement, what: str) -> None:
        self.faults.append(f"{one.where}: {what}")

    def _drop(self, one: Statement, what: str, why: str, nearest: str, *, matters: bool) -> None:
        self.dropped.append(Dropped(one.where, what, why, nearest, matters))

    def _given(self, one: Statement, text: str, known: tuple[str, ...]) -> dict[str, str]:
        """The parameters; those that are unknown are faults."""
        try:
            given, written = parameters(text)
        except ValueError as error:
            self._fault(one, str(error))
            return {}
        self.written.update(written)
        given = {_ALIASES.get(name, name): said for name, said in given.items()}
        self.written.update({_ALIASES[name]: said for name, said in written.items() if name in _ALIASES})
        for name in given:
            if name not in known:
                self._fault(one, f"{written[name]}: not a parameter of ivy here{did_you_mean(name, known)}")
        return given

    def _read(self, one: Statement, name: str, text: str, reads: Callable[[str], Value], default: Value) -> Value:
        try:
            return reads(text)
        except ValueError as error:
            self._fault(one, f"{self._as_written(name, text)}: {error}")
            return default

    def _as_written(self, name: str, text: str) -> str:
        return f"{self.written.get(re.sub('_', '', name).lower(), name)}={text}"

    def _drop_of(self, one: Statement, given: Mapping[str, str], table: Mapping[str, tuple[str, str, bool]]) -> None:
        for name, text in given.items():
            if name in table and text.lower() not in IDLE.get(name, ()):
                why, nearest, matters = table[name]
                self._drop(one, self._as_written(name, text), why, nearest, matters=matters)

    def _selected(self, one: Statement) -> Select:
        try:
            return select(one.clauses.get("select", ""))
        except ValueError as error:
            self._fault(one, str(error))
            return ()

    def _settings(self, one: Statement, given: Mapping[str, str]) -> Settings:
        """What a plan's edit can set; the rest is dropped elsewhere."""
        found = []
        for name, text in given.items():
            if name in ("iops", "totaliops"):
                rate = self._rate(one, name, text)
                found += [("iops" if name == "iops" else "total_iops", rate)] if rate else []
            elif name == "maxtags":
                found.append(("maxtags", str(self._read(one, "maxTags", text, whole_of, 1))))
            elif name == "blocksize":
                found.append(("blocksize", format_bytes(self._read(one, "blocksize", text, size_of, 4096))))
            elif name == "fractionread":
                share = self._read(one, "fractionRead", text, fraction_of, 1.0)
                found.append(("fraction_read", format_fraction(share)))
        return tuple(found)

    def _rate(self, one: Statement, name: str, text: str) -> str:
        if text.lower() == "max":
            return "max"
        if text.lower() == "pause":
            return "0"
        if re.match(r"[+*]", text) or text.lower() == "restore":
            self._drop(
                one, self._as_written(name, text), "an edit of a plan states the new value", "write it", matters=True
            )
            return ""
        return format_number(self._read(one, name, text, number_of, 0.0))

    def _rollup_type(self, one: Statement, said: str) -> str:
        by = rollup_type(said)
        if "" in by.split("+"):
            self._fault(one, f"{said or 'rollup'}: an attribute is missing")
        return by


def of_streams(streams: tuple[str, ...]) -> str:
    return "workload={" + ",".join(streams) + "}"
