"""Reads an ivyscript made of ivy's statements. Its steps become those of a plan.

Rule: pure. A parameter that is known and has no counterpart is dropped, with its reason; an unknown one refuses the
whole file, as do variables, conditions and loops of the language.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final

from ..errors import PlanError
from ..text.suggestions import did_you_mean
from ..text.units import format_bytes, format_fraction, format_number
from .course import unique_name
from .description import Description, Edit, Rollup, Run, Stream
from .ivyscript_options import OF_WORKLOADS
from .ivyscript_reader import EDITABLE, PARAMETERS_OF_WORKLOADS, RANGES, Done, of_streams
from .ivyscript_steps import StepReader
from .ivyscript_text import (
    Statement,
    fraction_of,
    size_of,
    statements,
    whole_of,
)

_SEQUENCERS: Final = {"randomsteady": False, "randomindependent": False, "sequential": True}
_DEFAULTS: Final = {"blocksize": "8KiB", "iops": "1", "maxtags": "1", "fractionread": "1.0"}  # ivy's own
# Keys of a step, and of its loop, that set the load of all workloads.
_LOADS: Final = ("iops_curve", "staircase", "control", "iops", "total_iops")


def read_ivyscript(text: str, name: str) -> Description:
    """What the script does. Raises PlanError with every reason why it cannot be read, a line each."""
    faults: list[str] = []
    script = _Script(statements(text, name, faults), faults)
    if not faults:
        script.read()
    if not faults and not any(isinstance(one.action, Run) for one in script.course):
        faults.append(f"{name}: no [Go!]: it starts no load")
    if faults:
        raise PlanError("\n".join(dict.fromkeys(faults)))
    actions = script.actions()
    return Description(
        source=name,
        targets=(),
        streams=tuple(script.streams),
        actions=tuple(actions),
        dropped=tuple(dict.fromkeys(script.dropped)),
        hosts=script.hosts,
        select=script.select,
        rollups=tuple(rollup for by, rollup in script.rollups.items() if by != "all"),
    )


class _Script(StepReader):
    """All statements."""

    def read(self) -> None:
        reads: Mapping[str, Callable[[Statement], None]] = {
            "hosts": self._hosts,
            "setiosequencertemplate": self._template,
            "createworkload": self._create,
            "deleteworkload": self._delete,
            "createrollup": self._rollup,
            "editrollup": self._edit,
            "deleterollup": self._delete_rollup,
            "go": self._go,
            "outputfolderroot": self._output,
        }
        for one in self.given:
            reads[one.word](one)
        if self.given and not self.hosts:
            self._fault(self.given[0], "[Hosts]: one statement with the names of the hosts is needed")

    def actions(self) -> list[Edit | Run]:
        """A plan has all its workloads all the time: those that do not exist in the script have no load."""
        found: list[Edit | Run] = []
        names = tuple(stream.name for stream in self.streams)
        for done in self.course:
            action, absent = done.action, tuple(name for name in names if name not in done.alive)
            if isinstance(action, Edit):
                found.append(Edit("all=all", action.settings) if action.rollup == of_streams(names) else action)
                rates = {key for key, _ in action.settings} & {"iops", "total_iops"}
                if absent and rates and not action.rollup.startswith("workload="):
                    found.append(Edit(of_streams(absent), (("iops", "0"),)))
                    if "total_iops" in rates:
                        self._absent(done, "total_IOPS", absent)
            else:
                found.append(action)
                if absent and any(key in _LOADS for key, _ in (*action.keys, *action.loop)):
                    self._absent(done, "a list of loads", absent)
        while found and isinstance(found[-1], Edit):  # in force for no step
            found.pop()
        return found

    def _absent(self, done: Done, what: str, absent: tuple[str, ...]) -> None:
        why = f"workloads that are deleted or created later have a share of it here: {', '.join(absent)}"
        self._drop(done.statement, what, why, "write the edits and steps by hand", matters=True)

    def _output(self, one: Statement) -> None:
        self._drop(one, "[OutputFolderRoot]", "a plan does not say where its results go", "ivypy run -o", matters=False)

    def _hosts(self, one: Statement) -> None:
        names = tuple(re.findall(r"[^\s,]+", one.value))
        if self.hosts or not names:
            self._fault(one, "[Hosts]: one statement with the names of the hosts is needed")
        self.hosts, self.select = names, self._selected(one)

    def _template(self, one: Statement) -> None:
        given = self._given(one, one.clauses.get("parameters", ""), PARAMETERS_OF_WORKLOADS)
        if kind := self._kind(one, one.value):
            self.templates.setdefault(kind, {}).update(given)

    def _kind(self, one: Statement, said: str) -> str:
        """A key of _SEQUENCERS; "" where it is none."""
        kind = re.sub(r"[_\s]", "", said).lower()
        if kind in _SEQUENCERS:
            return kind
        self._fault(one, f"[iosequencer] {said}: random_steady, random_independent, sequential")
        return ""

    def _create(self, one: Statement) -> None:
        kind = self._kind(one, one.clauses.get("iosequencer", "") or "random_steady")
        if not kind:
            return
        given = self._given(one, one.clauses.get("parameters", ""), PARAMETERS_OF_WORKLOADS)
        if "blocksize" not in {**self.templates.get(kind, {}), **given}:
            why = "no `blocksize`: ivy's default is 8 KiB, in its older documents 4 KiB"
            self._drop(one, "[CreateWorkload]", why, "the plan has 8 KiB", matters=False)
        told = {**_DEFAULTS, **self.templates.get(kind, {}), **given}
        self._drop_of(one, told, OF_WORKLOADS)
        settings = dict(self._settings(one, told))
        chosen = self._selected(one)
        if any(stream.select == chosen for stream in self.streams if stream.name in self.called.get(one.value, ())):
            self._fault(one, f"[CreateWorkload] {one.value}: its LUNs have a workload of this name")
        name = unique_name(one.value or "workload", self.taken)
        edited = self._edited_before_creation()
        later = bool(edited) or any(isinstance(done.action, Run) for done in self.course)
        self.streams.append(
            Stream(
                name=name,
                paths=(),
                sequential=_SEQUENCERS[kind],
                fraction_read=self._read(one, "fractionRead", told["fractionread"], fraction_of, 1.0),
                blocksize=self._read(one, "blocksize", told["blocksize"], size_of, 4096),
                depth=int(settings.get("maxtags", "1")),
                iops="0" if later else settings.get("iops", "1"),
                poisson=kind == "randomindependent",
                span=self._span(one, told),
                select=chosen,
            )
        )
        self.alive.append(name)
        self.called[one.value] = (*self.called.get(one.value, ()), name)
        if later:
            own = {"iops": settings.get("iops", "1"), **{key: settings[key] for key in edited if key in settings}}
            self._do(one, Edit(of_streams((name,)), tuple(own.items())))

    def _edited_before_creation(self) -> list[str]:
        """Settings that an edit so far changes in the plan for workloads, too, that the script creates after it."""
        edits = [done.action for done in self.course if isinstance(done.action, Edit)]
        broad = [edit for edit in edits if not edit.rollup.startswith("workload=")]
        return list(dict.fromkeys(key for edit in broad for key, _ in edit.settings))

    def _span(self, one: Statement, told: Mapping[str, str]) -> tuple[str, str] | None:
        def position(text: str) -> str:
            if re.fullmatch(r"[\d.]+%?", text):
                return format_number(round(fraction_of(text) * 100, 6)) + "%"
            return format_bytes(size_of(text))

        start, end = told.get("rangestart", "0%"), told.get("rangeend", "100%")
        span = (
            self._read(one, "RangeStart", start, position, "0%"),
            self._read(one, "RangeEnd", end, position, "100%"),
        )
        return None if span == ("0%", "100%") else span

    def _delete(self, one: Statement) -> None:
        if one.clauses.get("select"):
            what = "[DeleteWorkload] with [select]"
            self._drop(one, what, "workloads end on all their LUNs", "edit its rollup to `iops: 0`", matters=True)
            return
        name = one.value.strip()
        everything = name in ("", "*")
        if not everything and name not in self.called:
            self._fault(one, f"[DeleteWorkload] {name}: no such workload{did_you_mean(name, self.called)}")
            return
        ended = tuple(self.alive) if everything else self.called[name]
        if ended:
            self._do(one, Edit(of_streams(ended), (("iops", "0"),)))
        self.alive = [name for name in self.alive if name not in ended]
        self.called = {} if everything else {said: of for said, of in self.called.items() if said != name}

    def _rollup(self, one: Statement) -> None:
        by = self._rollup_type(one, one.value)
        quantity = one.clauses.get("quantity")
        droop = one.clauses.get("maxdroop")
        if "nocsv" in one.clauses:
            self._drop(one, "[nocsv]", "ivy does not obey it", "`csv: false` of the rollup does", matters=False)
        self.rollups[by] = Rollup(
            by,
            self._read(one, "quantity", quantity, whole_of, 0) if quantity else None,
            format_fraction(self._read(one, "MaxDroop", droop, fraction_of, 1.0)) if droop else None,
        )

    def _delete_rollup(self, one: Statement) -> None:
        what = f"[DeleteRollup] {one.value}".strip()
        self._drop(one, what, "a rollup of a plan lasts for the whole run", "", matters=False)

    def _edit(self, one: Statement) -> None:
        given = self._given(one, one.clauses.get("parameters", ""), ("totaliops", *PARAMETERS_OF_WORKLOADS))
        self._drop_of(one, given, OF_WORKLOADS)
        for name in given:
            if name in RANGES:
                why = "the range of a workload stays as it is created"
                self._drop(one, self._as_written(name, given[name]), why, "a workload of its own", matters=True)
        settings = self._settings(one, {name: text for name, text in given.items() if name in EDITABLE})
        rollup = self._edited(one)
        if {"iops", "total_iops"} & dict(settings).keys():
            self.load_left = None
        if settings and rollup:
            self._do(one, Edit(rollup, settings))

    def _edited(self, one: Statement) -> str:
        """The rollup as a plan writes it; "" where it cannot be meant."""
        match = re.fullmatch(r"\s*([^={}]*?)\s*=?\s*(?:\{([^{}]*)\}|([^{}=]*))\s*", one.value)
        if match is None:
            self._fault(one, f"[EditRollup] {one.value}: not TYPE = {{ INSTANCE, ... }}")
            return ""
        if not self.alive:
            self._fault(one, "[EditRollup]: there is no workload here")
            return ""
        by = self._rollup_type(one, match[1] or "all")
        instances = [part.strip().strip('"') for part in re.split(r",", match[2] or match[3] or "") if part.strip()]
        if by == "workload":
            for name in instances:
                if name not in self.called:
                    self._fault(one, f"[EditRollup] {name}: no such workload{did_you_mean(name, self.called)}")
            instances = [name for said in instances for name in self.called.get(said, ())]
        elif "workload" in by.split("+"):
            place = by.split("+").index("workload")
            instances = [one for said in instances for one in self._renamed(said, place)]
        if by in ("all", "workload") and (by == "all" or not instances):
            return of_streams(tuple(self.alive))
        self.rollups.setdefault(by, Rollup(by))
        return f"{by}={{{','.join(instances)}}}" if instances else by

    def _renamed(self, instance: str, place: int) -> list[str]:
        """`w+h1` with the names that the workload has in the plan."""
        parts = instance.split("+")
        if place >= len(parts):
            return [instance]
        names = self.called.get(parts[place], (parts[place],))
        return ["+".join([*parts[:place], name, *parts[place + 1 :]]) for name in names]
