"""The steps of an ivyscript: [Go!] with its measurement, control, loops and curves. Rule: as in ivyscript.py."""

import re
from collections.abc import Mapping
from typing import Final

from ..rollup.metrics import unit_of
from ..text.metric_amounts import MetricUnit
from ..text.units import format_duration, format_fraction, format_number
from .course import unique_name
from .description import Edit, Loop, Rollup, Run
from .ivyscript_options import OF_STEPS, OF_WORKLOADS, SILENT
from .ivyscript_reader import EDITABLE, PARAMETERS_OF_WORKLOADS, RANGES, ScriptReader, of_streams
from .ivyscript_text import (
    Statement,
    fraction_of,
    number_of,
    seconds_of,
    values,
    whole_of,
)

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


class StepReader(ScriptReader):
    """Reads [Go!]."""

    def _go(self, one: Statement) -> None:
        given = self._given(one, one.value, (*_OF_GO, "totaliops", *PARAMETERS_OF_WORKLOADS, *OF_STEPS, *SILENT))
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
            if name not in EDITABLE:
                if name in PARAMETERS_OF_WORKLOADS and name not in RANGES:
                    why, nearest, matters = OF_WORKLOADS[name]
                    self._drop(one, self._as_written(name, text), why, nearest, matters=matters)
                elif name in RANGES:
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
            self._do(one, Edit(of_streams(tuple(self.alive)), (("total_iops", load),)))

    def _after_loops(self, one: Statement, given: Mapping[str, str]) -> None:
        """In ivy the last value of a loop stays in force."""
        last = {
            name: values(text)[-1]
            for name, text in given.items()
            if name in EDITABLE and text.startswith("(") and values(text)
        }
        if settings := self._settings(one, last):
            self._do(one, Edit(of_streams(tuple(self.alive)), settings))


def _flow(parts: Mapping[str, str]) -> str:
    return f"{{ {', '.join(f'{key}: {value}' for key, value in parts.items())} }}"
