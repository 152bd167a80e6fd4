"""Reads an ivyscript made of ivy's statements. Its steps become those of a plan.

Rule: pure. A parameter that is known and has no counterpart is dropped, with its reason; an unknown one refuses the
whole file, as do variables, conditions and loops of the language.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

from ..errors import PlanError
from ..rollup.metrics import unit_of
from ..text.metric_amounts import MetricUnit
from ..text.suggestions import did_you_mean
from ..text.units import format_bytes, format_duration, format_fraction, format_number
from .course import unique_name
from .description import Description, Dropped, Edit, Loop, Rollup, Run, Select, Settings, Stream
from .ivyscript_options import IDLE, OF_STEPS, OF_WORKLOADS, SILENT
from .ivyscript_text import (
    Statement,
    fraction_of,
    number_of,
    parameters,
    rollup_type,
    seconds_of,
    select,
    size_of,
    statements,
    values,
    whole_of,
)

Value = TypeVar("Value")

_SEQUENCERS: Final = {"randomsteady": False, "randomindependent": False, "sequential": True}
_DEFAULTS: Final = {"blocksize": "8KiB", "iops": "1", "maxtags": "1", "fractionread": "1.0"}  # ivy's own
_EDITABLE: Final = ("iops", "totaliops", "blocksize", "maxtags", "fractionread")
_RANGES: Final = ("rangestart", "rangeend")
_ALIASES: Final = {"volumecoveragefractionstart": "rangestart", "volumecoveragefractionend": "rangeend"}
_OF_WORKLOADS: Final = ("blocksize", "iops", "maxtags", "fractionread", *_RANGES, *OF_WORKLOADS)
_OF_GO: Final = (
    "stepname", "subintervalseconds", "warmupseconds", "measureseconds", "cooldownseconds", "measure", "focusrollup",
    "category", "accumulatortype", "accessor", "accuracyplusminus", "confidence", "timeoutseconds", "dfc",
    "targetvalue", "lowiops", "lowtarget", "highiops", "hightarget", "startingiops", "endingiops", "step", "steps",
    "iopscurve",
)  # fmt: skip
_METRICS: Final = {  # measure=... -> accumulator type, accessor
    "iops": ("bytestransferred", "count"),
    "mbpersecond": ("bytestransferred", "sum"),
    "servicetimeseconds": ("servicetime", "avg"),
    "responsetimeseconds": ("responsetime", "avg"),
}
_CATEGORIES: Final = (
    "overall", "read", "write", "random", "sequential", "random_read", "random_write", "sequential_read",
    "sequential_write",
)  # fmt: skip
_OFF: Final = ("off", "false", "no")
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


@dataclass(frozen=True, slots=True)
class _Done:
    """An action of a statement, and the workloads that there were."""

    action: Edit | Run
    statement: Statement
    alive: tuple[str, ...]


@dataclass
class _Script:
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
    course: list[_Done] = field(default_factory=list)
    written: dict[str, str] = field(default_factory=dict)  # parameters by their plain names, as the script has them
    templates: dict[str, dict[str, str]] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    steps: set[str] = field(default_factory=set)
    load_left: Statement | None = None  # the last [Go!] whose own load would stay in force in ivy

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
                found.append(Edit("all=all", action.settings) if action.rollup == _of(names) else action)
                rates = {key for key, _ in action.settings} & {"iops", "total_iops"}
                if absent and rates and not action.rollup.startswith("workload="):
                    found.append(Edit(_of(absent), (("iops", "0"),)))
                    if "total_iops" in rates:
                        self._absent(done, "total_IOPS", absent)
            else:
                found.append(action)
                if absent and any(key in _LOADS for key, _ in (*action.keys, *action.loop)):
                    self._absent(done, "a list of loads", absent)
        while found and isinstance(found[-1], Edit):  # in force for no step
            found.pop()
        return found

    def _absent(self, done: _Done, what: str, absent: tuple[str, ...]) -> None:
        why = f"workloads that are deleted or created later have a share of it here: {', '.join(absent)}"
        self._drop(done.statement, what, why, "write the edits and steps by hand", matters=True)

    # Helpers

    def _do(self, one: Statement, action: Edit | Run) -> None:
        self.course.append(_Done(action, one, tuple(self.alive)))

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

    # Statements

    def _output(self, one: Statement) -> None:
        self._drop(one, "[OutputFolderRoot]", "a plan does not say where its results go", "ivypy run -o", matters=False)

    def _hosts(self, one: Statement) -> None:
        names = tuple(re.findall(r"[^\s,]+", one.value))
        if self.hosts or not names:
            self._fault(one, "[Hosts]: one statement with the names of the hosts is needed")
        self.hosts, self.select = names, self._selected(one)

    def _template(self, one: Statement) -> None:
        given = self._given(one, one.clauses.get("parameters", ""), _OF_WORKLOADS)
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
        given = self._given(one, one.clauses.get("parameters", ""), _OF_WORKLOADS)
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
            self._do(one, Edit(_of((name,)), tuple(own.items())))

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
            self._do(one, Edit(_of(ended), (("iops", "0"),)))
        self.alive = [name for name in self.alive if name not in ended]
        self.called = {} if everything else {said: of for said, of in self.called.items() if said != name}

    def _rollup_type(self, one: Statement, said: str) -> str:
        by = rollup_type(said)
        if "" in by.split("+"):
            self._fault(one, f"{said or 'rollup'}: an attribute is missing")
        return by

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
        given = self._given(one, one.clauses.get("parameters", ""), ("totaliops", *_OF_WORKLOADS))
        self._drop_of(one, given, OF_WORKLOADS)
        for name in given:
            if name in _RANGES:
                why = "the range of a workload stays as it is created"
                self._drop(one, self._as_written(name, given[name]), why, "a workload of its own", matters=True)
        settings = self._settings(one, {name: text for name, text in given.items() if name in _EDITABLE})
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
            return _of(tuple(self.alive))
        self.rollups.setdefault(by, Rollup(by))
        return f"{by}={{{','.join(instances)}}}" if instances else by

    def _renamed(self, instance: str, place: int) -> list[str]:
        """`w+h1` with the names that the workload has in the plan."""
        parts = instance.split("+")
        if place >= len(parts):
            return [instance]
        names = self.called.get(parts[place], (parts[place],))
        return ["+".join([*parts[:place], name, *parts[place + 1 :]]) for name in names]

    def _go(self, one: Statement) -> None:
        given = self._given(one, one.value, (*_OF_GO, "totaliops", *_OF_WORKLOADS, *OF_STEPS, *SILENT))
        if not self.alive:
            self._fault(one, "[Go!]: there is no workload here")
        self._drop_of(one, given, OF_STEPS)
        subinterval = self._read(one, "subinterval_seconds", given.get("subintervalseconds", "5"), seconds_of, 5.0)
        warmup = self._read(one, "warmup_seconds", given.get("warmupseconds", str(subinterval)), seconds_of, 5.0)
        measure = self._read(one, "measure_seconds", given.get("measureseconds", "60"), seconds_of, 60.0)
        keys = [("subinterval", format_duration(subinterval)), ("warmup", format_duration(warmup))]
        keys += self._measure(one, given, measure)
        if cooldown := self._read(one, "cooldown_seconds", given.get("cooldownseconds", "0"), seconds_of, 0.0):
            keys.append(("cooldown", format_duration(cooldown)))
        keys += self._control(one, given) + self._curve(one, given)
        default = f"step{len(self.steps):04d}"
        name = unique_name(given.get("stepname", default), self.steps)
        loop = self._loops(one, given)
        self._note_load_left_behind(given)
        self._do(one, Run(name, tuple(keys), loop))
        if "dfc" in given:
            self.load_left = one
        self._after_loops(one, given)
        self._after_curve(one, given, name, loop)

    def _note_load_left_behind(self, given: Mapping[str, str]) -> None:
        """In ivy the last load of feedback control or a staircase stays in force; a plan's step takes it with it."""
        if self.load_left is not None and not {"dfc", "iopscurve", "iops", "totaliops"} & given.keys():
            why = "its last load stays in force in ivy, and ends with its step here"
            self._drop(self.load_left, "dfc", why, "write an edit before the next step", matters=True)
        self.load_left = None

    def _metric(self, one: Statement, given: Mapping[str, str]) -> str:
        said = re.sub(r"_", "", given.get("measure", "")).lower()
        of, accessor = _METRICS.get(said, ("servicetime", "avg"))
        of = re.sub(r"_", "", given.get("accumulatortype", of)).lower()
        accessor = given.get("accessor", accessor).lower()
        category = given.get("category", "overall").lower()
        if category not in _CATEGORIES:
            self._fault(one, f"category={category}: {', '.join(_CATEGORIES)}")
        if of == "bytestransferred" and accessor in ("count", "sum"):
            return f"{category}_{'iops' if accessor == 'count' else 'mib_per_s'}"
        if of in ("servicetime", "responsetime") and accessor == "avg":
            return f"{category}_{of.removesuffix('time')}_us_mean"
        what = f"accumulator_type={of}, accessor={accessor}"
        self._drop(
            one, what, "nothing is measured or controlled by it", "the plan has the mean service time", matters=True
        )
        return f"{category}_service_us_mean"

    def _measure(self, one: Statement, given: Mapping[str, str], measure_s: float) -> list[tuple[str, str]]:
        said = re.sub(r"_", "", given.get("measure", "off")).lower()
        if said in _OFF:
            return [("measure", format_duration(measure_s))]
        if said not in ("on", "true", "yes", *_METRICS):
            self._drop(
                one, f"measure={said}", "ivypy does not ask the array", "the plan measures for a time", matters=True
            )
            return [("measure", format_duration(measure_s))]
        accuracy = self._read(one, "accuracy_plus_minus", given.get("accuracyplusminus", "5%"), fraction_of, 0.05)
        confidence = self._read(one, "confidence", given.get("confidence", "95%"), fraction_of, 0.95)
        timeout = self._read(one, "timeout_seconds", given.get("timeoutseconds", "900"), seconds_of, 900.0)
        parts = {
            "metric": self._metric(one, given),
            "rollup": self._focus(one, given),
            "accuracy": format_fraction(accuracy),
            "confidence": format_fraction(confidence),
            "min": format_duration(measure_s),
            "timeout": format_duration(timeout),
        }
        return [("measure", _flow(parts))]

    def _focus(self, one: Statement, given: Mapping[str, str]) -> str:
        by = self._rollup_type(one, given.get("focusrollup", "all"))
        if by != "all":
            self.rollups.setdefault(by, Rollup(by))
        return by

    def _control(self, one: Statement, given: Mapping[str, str]) -> list[tuple[str, str]]:
        kind = re.sub(r"_", "", given.get("dfc", "")).lower()
        if kind == "pid":
            return self._pid(one, given)
        if kind == "iopsstaircase":
            return self._staircase(one, given)
        if kind:
            self._fault(one, f"dfc={given['dfc']}: pid or IOPS_staircase")
        return []

    def _staircase(self, one: Statement, given: Mapping[str, str]) -> list[tuple[str, str]]:
        """Its start with two of end, step and steps, or with the step alone: it climbs then until saturation."""
        if "startingiops" not in given or not {"step", "steps"} & given.keys():
            self._fault(one, "dfc=IOPS_staircase: starting_IOPS, and step or steps are needed")
            return []
        start = self._read(one, "starting_IOPS", given["startingiops"], number_of, 1.0)
        said = {"start": format_number(start)}
        if "endingiops" in given:
            said["end"] = format_number(self._read(one, "ending_IOPS", given["endingiops"], number_of, start))
        steps = self._read(one, "steps", given.get("steps", "2"), whole_of, 2)
        if "step" not in given:
            return [("staircase", _flow({**said, "steps": str(steps)}))]
        # Only with a + it is a share: "10%" without is 0.1 IOPS to ivy.
        share = given["step"].startswith("+")
        step = self._read(one, "step", given["step"].removeprefix("+"), fraction_of, 0.1)
        if "steps" in given and "end" not in said:
            if share:
                self._fault(one, "dfc=IOPS_staircase: give it ending_IOPS instead of steps")
            said["end"] = format_number(start + step * (steps - 1))
        return [("staircase", _flow({**said, "step": format_fraction(step) if share else format_number(step)}))]

    def _pid(self, one: Statement, given: Mapping[str, str]) -> list[tuple[str, str]]:
        needed = ("targetvalue", "lowiops", "lowtarget", "highiops", "hightarget")
        if missing := [name for name in needed if name not in given]:
            self._fault(one, f"dfc=pid: {', '.join(missing)} missing")
            return []
        metric, by = self._metric(one, given), self._focus(one, given)
        if by != "all":
            why = f"low_IOPS and high_IOPS are of each {by} here, and of all together in ivy"
            self._drop(one, "dfc=pid", why, "divide them by the number of instances", matters=True)

        def load(name: str) -> str:
            return format_number(self._read(one, name, given[name], number_of, 0.0))

        def amount(name: str) -> str:
            said = self._read(one, name, given[name], number_of, 0.0)
            return format_duration(said) if unit_of(metric) is MetricUnit.US else format_number(said)

        parts = {
            "metric": metric, "target": amount("targetvalue"), "rollup": by, "low_iops": load("lowiops"),
            "low_target": amount("lowtarget"), "high_iops": load("highiops"), "high_target": amount("hightarget"),
        }  # fmt: skip
        return [("control", f"{{ pid: {_flow(parts)} }}")]

    def _loops(self, one: Statement, given: Mapping[str, str]) -> Loop:
        looped: dict[str, tuple[str, ...]] = {}
        for name, text in given.items():
            if name not in _EDITABLE:
                if name in _OF_WORKLOADS and name not in _RANGES:
                    why, nearest, matters = OF_WORKLOADS[name]
                    self._drop(one, self._as_written(name, text), why, nearest, matters=matters)
                elif name in _RANGES:
                    self._drop(
                        one, self._as_written(name, text), "a step of ivypy loops over no range", "", matters=True
                    )
                continue
            if not text.startswith("("):
                self._fault(one, f"{self._as_written(name, text)}: a loop of [Go!] needs parentheses")
                continue
            each = [self._settings(one, {name: value}) for value in values(text)]
            if not each:
                self._fault(one, f"{self._as_written(name, text)}: a loop of [Go!] needs values")
            elif all(each):
                looped[each[0][0][0]] = tuple(settings[0][1] for settings in each)
        return tuple(looped.items())

    def _curve(self, one: Statement, given: Mapping[str, str]) -> list[tuple[str, str]]:
        if "iopscurve" not in given:
            return []
        shares = self._shares(one, given)
        if not shares:
            self._fault(one, "IOPS_curve: it needs shares of the maximum, like (10%, 50%)")
        return [("iops_curve", f"[ {', '.join(map(format_fraction, shares))} ]")]

    def _shares(self, one: Statement, given: Mapping[str, str]) -> list[float]:
        return [self._read(one, "IOPS_curve", text, fraction_of, 1.0) for text in values(given["iopscurve"])]

    def _after_curve(self, one: Statement, given: Mapping[str, str], name: str, loop: Loop) -> None:
        """In ivy the last load of a curve stays in force."""
        shares = self._shares(one, given) if "iopscurve" in given else []
        if shares and loop:
            if not any(later.word == "go" for later in self.given[self.given.index(one) + 1 :]):
                return
            why = "in ivy its last load stays in force, here that from before the step"
            self._drop(one, "IOPS_curve in a loop", why, "edit the IOPS before the next step", matters=True)
        elif shares:
            load = f"{format_fraction(shares[-1])} of step {name}+total_iops=max"
            self._do(one, Edit(_of(tuple(self.alive)), (("total_iops", load),)))

    def _after_loops(self, one: Statement, given: Mapping[str, str]) -> None:
        """In ivy the last value of a loop stays in force."""
        last = {
            name: values(text)[-1]
            for name, text in given.items()
            if name in _EDITABLE and text.startswith("(") and values(text)
        }
        if settings := self._settings(one, last):
            self._do(one, Edit(_of(tuple(self.alive)), settings))


def _of(streams: tuple[str, ...]) -> str:
    return "workload={" + ",".join(streams) + "}"


def _flow(parts: Mapping[str, str]) -> str:
    return f"{{ {', '.join(f'{key}: {value}' for key, value in parts.items())} }}"
