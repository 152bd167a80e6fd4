"""Search: the highest total IOPS whose metric meets the target, with its interval, from all probes together.

Rule: first a short run at max, for the capacity; then probes, each at the load that `next_load` returns and each
beginning with an empty backlog: after a load that was not sustained, the load is 0 until no I/O is outstanding.
The search ends when the interval is narrow enough, or when its probes or its time are used up: what it knows then is
its result, however wide. It fails only where no load meets the target.
Where no load fails, or none passes, max is measured again: one unusual run must not decide the search.
Where other hosts take part, or an edit makes another load, all of it starts anew: its probes were of another.
A probe in which the generator was disturbed is repeated, once for each load. Three such probes in a row that are
unclear end the search: more would be, too.
Of the probes that met the target, the one next to the load that was found is the measurement; every probe is a row of
find.csv.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from math import inf, log
from typing import ClassVar, Final

from ..rollup.disturbance import Disturbance, causes, too_busy
from ..stats.metric_sample import value_of
from ..stats.percentiles import fewest_ios
from ..text.metric_amounts import LIMIT_DIGITS, amount_in_words, format_amount
from ..text.scaled import duration, scaled_range
from ..text.units import format_duration, format_fraction
from ..verdicts import Finding, Reason, Scope
from .bracket import bracket, standing, unconfirmed
from .choices import OnDisturbance
from .control_state import Keys, MeasurementState, StepConditions
from .decision import Cell, ControlRow, Decision, LoadEdit, Measured, interrupted, nothing_measured, shortened
from .fixed import MOST_SET_ASIDE
from .focus import Focus, not_above_0
from .load_estimate import HIGHEST, LoadEstimate, SearchBounds, load_estimate, next_load
from .load_level import RunFacts
from .observation import Observation, Phase, achieved_iops
from .probe import ANSWER, FEWEST, FEWEST_READ, Probe, ProbeAnswer, ProbeQuestion, is_overloaded, probe_of

FEWEST_PROBES: Final = 4  # max, and the probes that a curve takes
FEWEST_READINGS: Final = 3  # probes that a narrow interval rests on
LOOK: Final = 3  # subintervals at max that are used
SAME_MAX: Final = 0.02  # two runs at max that differ by no more confirm each other
LOOKS: Final = 5  # a probe's answer is looked at after every so many subintervals
MOST_DISTURBED: Final = 3  # unclear probes in a row in which the generator was disturbed


class SearchStage(StrEnum):
    MAX = "max"  # the capacity
    DRAIN = "drain"  # at 0 IOPS until no I/O is outstanding
    PROBE = "probe"


@dataclass(frozen=True, slots=True)
class FindSpec:
    """`find`: the highest load at which the metric of every instance is at most the target."""

    keys: ClassVar[Keys] = ("find",)
    settles: ClassVar[bool] = False
    purpose: ClassVar[frozenset[Scope]] = frozenset({Scope.RATE})  # its result is a rate

    focus: Focus
    target: float
    resolution: float  # width of the interval, as a share of the load, that ends the search
    confidence: float  # of the interval
    probes: int  # at most, the run at max included
    longest_probe: int  # subintervals after which a probe that is not clear is left
    within_s: float | None  # time after which the search ends with what it knows; None: no limit

    @property
    def question(self) -> ProbeQuestion:
        """The question that each probe has to answer."""
        return ProbeQuestion(self.focus, self.target, self.longest_probe)

    @property
    def in_words(self) -> str:
        target = format_amount(self.focus.unit, self.target)
        return (
            f"find: most total_iops with {self.focus.in_words} at most {target}, "
            f"to {format_fraction(self.resolution)}, {self.probes} probes"
            f"{'' if self.within_s is None else f', within {format_duration(self.within_s)}'}"
        )

    @property
    def goes_by_max(self) -> bool:
        return True

    @property
    def notes(self) -> tuple[str, ...]:
        return ()

    def faults(self, step: StepConditions, usable: bool) -> Iterator[tuple[str, str]]:
        if not usable or math.isnan(self.target):
            return
        if not self.target > 0:
            yield "target", not_above_0("target", self.focus, self.target)
        if not self.resolution > 0:
            yield "resolution", f"resolution is {format_fraction(self.resolution)}; it must be above 0"
        if self.probes < FEWEST_PROBES:
            least = f"a search takes at least {FEWEST_PROBES} (max, a pass, a fail, and one between them)"
            yield "probes", f"probes is {self.probes}; {least}"

        shortest_s = shortest_search(max(1, step.warmup)) * step.subinterval_s
        if self.within_s is not None and self.within_s < shortest_s:
            yield (
                "within",
                (
                    f"within is {format_duration(self.within_s)}; a run at max and two probes take "
                    f"{format_duration(shortest_s)}; allow more, or shorten subinterval"
                ),
            )

    def longest_s(self, step: StepConditions, measured_s: float) -> float:
        by_probes = self.probes * (self.longest_probe + 1) * step.subinterval_s
        return by_probes if self.within_s is None else min(by_probes, self.within_s + step.subinterval_s)

    def state(self, step: StepConditions, measurement: MeasurementState, known: RunFacts) -> "Find":
        repeats = step.disturbed is OnDisturbance.SET_ASIDE
        return Find(self, step.tolerance, settle=max(1, step.warmup), repeats=repeats)


def shortest_search(settle: int) -> int:
    """Subintervals of a search that can have a result: at max, and two probes. `settle`: of each, that are not used."""
    return search_length(2, settle)


def search_length(probes: int, settle: int) -> int:
    """Subintervals of a search with so many probes that are clear as soon as they can be."""
    return LOOK + settle + probes * (FEWEST + settle)


def probes_within(subintervals: int, settle: int) -> int:
    """How many probes there is time for; the last may be the shortest that says something."""
    rest = subintervals - search_length(0, settle) - settle - FEWEST_READ
    return max(0, rest // (FEWEST + settle) + 1)


@dataclass(frozen=True, slots=True)
class RepeatedProbe:
    """A probe whose answer does not count, since the generator was disturbed in too many of its subintervals."""

    iops: float
    finding: Finding


@dataclass(frozen=True, slots=True)
class Find:
    """State of a search. Loads are totals of the rollup type `all`; every instance of the focus rollup must pass."""

    spec: FindSpec
    tolerance: float  # achieved_iops_tolerance
    settle: int  # subintervals at a new load that are not used
    look: int = LOOK  # subintervals at max that are
    capacity: float | None = None  # None until it was measured; a plan may state it
    stage: SearchStage = SearchStage.MAX
    iops: float = 0.0  # of the present probe
    since: int = 0  # the subinterval with which the stage began
    seen: tuple[Observation, ...] = ()  # the stage's subintervals that are used
    probes: tuple[Probe, ...] = ()
    length_s: float = 0.0  # of a subinterval, once one was seen
    maxima: int = 1  # runs at max that were begun
    confirmed: bool = False  # the last of them saw what was known already
    repeats: bool = False  # disturbed probes are repeated
    repeated: tuple[RepeatedProbe, ...] = ()
    disturbed: int = 0  # unclear probes in which the generator was disturbed, the last in a row
    earlier: int = 0  # probes of before it started anew
    changed: int | None = None  # the subinterval that other hosts took part in, the last
    took_s: float = 0.0  # so far

    @property
    def focuses(self) -> tuple[Focus, ...]:
        return (self.spec.focus,)

    @property
    def may_end(self) -> tuple[int, ...]:
        return tuple(probe.last for probe in self.probes)

    def opening(self) -> Decision:
        return Decision(Phase.WARMUP, (LoadEdit("all", "all", None),))

    def after(self, observation: Observation) -> "tuple[Find, Decision]":
        state, decision = self._after(observation)
        return state, replace(decision, measured=tuple(map(state._with_repeated, decision.measured)))

    def _after(self, observation: Observation) -> "tuple[Find, Decision]":
        return replace(self, took_s=observation.end_s)._decided(observation)

    def _decided(self, observation: Observation) -> "tuple[Find, Decision]":
        if not observation.same_hosts:
            return replace(self, changed=observation.number)._anew(observation, "other hosts")
        if observation.other_load:
            return self._anew(observation, "another load")
        if observation.edited:  # the stage starts again, at its own load
            state = replace(self, since=observation.acts_in, seen=())
            edit = LoadEdit("all", "all", self._load)
            return state, Decision(Phase.TRANSIENT, (edit,), progress="search: an edit; the stage starts again")
        state = self if observation.same_figures else replace(self, seen=())
        if not observation.absent and observation.began >= state.since + state.settle:
            state = replace(state, seen=(*state.seen, observation))
        if state.stage is SearchStage.MAX:
            return state._at_max(observation)
        if state.stage is SearchStage.DRAIN:
            return state._draining(observation)
        return state._probing(observation)

    def _anew(self, observation: Observation, why: str) -> "tuple[Find, Decision]":
        state = replace(
            self, capacity=None, stage=SearchStage.MAX, since=observation.acts_in, seen=(), probes=(), maxima=1,
            confirmed=False, repeated=(), disturbed=0, earlier=self._probe_number - 1,
        )  # fmt: skip
        progress = f"search: {why}; it starts anew, at max"
        return state, Decision(Phase.TRANSIENT, (LoadEdit("all", "all", None),), progress=progress)

    @property
    def _load(self) -> float | None:
        """Total IOPS of the present stage; None is max."""
        return {SearchStage.MAX: None, SearchStage.DRAIN: 0.0, SearchStage.PROBE: self.iops}[self.stage]

    @property
    def _probe_number(self) -> int:
        """Of the present one, from 1."""
        return self.earlier + len(self.probes) + len(self.repeated) + 1

    def cut_short(self, number: int) -> Measured:
        """The highest pass so far, and what the bracket still lacks."""
        return self._with_repeated(self._cut_short(number))

    def _with_repeated(self, measured: Measured) -> Measured:
        """With a note for each probe that was repeated; all of the search has led to it."""
        findings = [*measured.findings, *(one.finding for one in self.repeated)]
        if self.changed is not None:
            findings.append(
                Finding(Reason.HOSTS_CHANGED, f"in subinterval {self.changed}, where the search started anew")
            )
        return replace(measured, findings=tuple(findings), rests_on=0)

    @property
    def _runs(self) -> int:
        """Runs that were finished or begun, of the most that the plan allows: at max, and probes."""
        return self.maxima + len(self.probes) + len(self.repeated)

    def _cut_short(self, number: int) -> Measured:
        ends = bracket(self.probes)
        if ends.passed is None:
            return interrupted(number)
        estimate = self.estimate()
        if ends.failed is None or estimate is None or not self._is_bounded(estimate):
            so_far = _window(ends.passed)
            why = Finding(Reason.SEARCH_UNBOUNDED, f"no load above {ends.passed.iops:.6g} IOPS was seen to fail")
            return shortened(replace(so_far, findings=(why,)))
        why = Finding(Reason.SEARCH_FOUND, self._in_words(estimate))
        return shortened(replace(self._window_of(estimate), findings=(why,)))

    @property
    def _is_over(self) -> bool:
        """The time of the search is."""
        return self.spec.within_s is not None and self.took_s >= self.spec.within_s * (1 - 1e-9)

    def _has_time(self, subintervals: int) -> bool:
        """For so many more."""
        if self.spec.within_s is None:
            return True
        return self.spec.within_s - self.took_s >= subintervals * self.length_s * (1 - 1e-9)

    def _at_max(self, observation: Observation) -> "tuple[Find, Decision]":
        if len(self.seen) < self.look:
            if self._is_over:
                return self._ended(observation, ())
            return self, Decision(Phase.WARMUP, progress="search: the load at max")
        capacity = achieved_iops(load for one in self.seen for load in one.loads["all"].values())
        if capacity <= 0:
            why = Finding(Reason.SEARCH_UNBOUNDED, "no I/O completed at max")
            return self, Decision(Phase.TAIL, measured=(nothing_measured(observation.number, why),))
        return replace(self, length_s=observation.length_s)._knowing(capacity)._next(observation, ())

    def _knowing(self, capacity: float) -> "Find":
        """The search with another run at max; of two that differ, the one that leaves more loads to probe."""
        known = self.capacity
        if known is None:
            return replace(self, capacity=capacity)
        wider = max(known, capacity) if bracket(self.probes).passed else min(known, capacity)
        return replace(self, capacity=wider, confirmed=abs(wider / known - 1) <= SAME_MAX)

    def _draining(self, observation: Observation) -> "tuple[Find, Decision]":
        outstanding = sum(load.outstanding for load in observation.loads["all"].values())
        if outstanding > 0 and observation.number - self.since >= self.spec.longest_probe:
            why = Finding(
                Reason.SEARCH_UNBOUNDED,
                f"{outstanding:,} I/Os are still outstanding after {self.spec.longest_probe} subintervals at 0 IOPS",
            )
            return self, Decision(
                Phase.TAIL, measured=(nothing_measured(observation.number, why),), progress=why.detail
            )
        if self._is_over:
            return self._ended(observation, ())
        if outstanding > 0 or observation.absent:
            return self, Decision(Phase.TRANSIENT, progress=f"search: {outstanding:,} I/Os outstanding")
        return self._start(observation, ())

    def _probing(self, observation: Observation) -> "tuple[Find, Decision]":
        probe = self._finished(observation)
        if probe is None and self._is_over:
            return self._ended(observation, ())
        if probe is None:
            progress = f"search: probe {self._probe_number} at {self.iops:.6g} IOPS{self._so_far()}"
            return self, Decision(Phase.RUN, progress=progress)
        disturbed = probe.answer is ProbeAnswer.UNCLEAR and bool(self._much_disturbed())
        state = replace(self, disturbed=self.disturbed + 1 if disturbed else 0)
        if (why := self._why_repeated()) is not None:
            state = replace(state, repeated=(*self.repeated, RepeatedProbe(self.iops, why)))
        else:
            state = replace(state, probes=(*self.probes, probe))
        rows = (ControlRow("find.csv", state._cells(probe, repeated=why is not None)),)
        if state.disturbed == MOST_DISTURBED:
            return state, state._too_disturbed(observation.number, rows)
        if why is not None:
            return state._to(self.iops, probe.sustained, observation, rows)
        return state._next(observation, rows)

    def _finished(self, observation: Observation) -> Probe | None:
        """The present probe, if nothing more is to come of it."""
        seen, question = self.seen, self.spec.question
        if len(seen) < (FEWEST_READ if self._is_over else FEWEST) and not is_overloaded(self.tolerance, seen):
            return None
        longest = len(seen) >= question.longest_probe
        overloaded = is_overloaded(self.tolerance, seen)
        if not (overloaded or longest or self._is_over or len(seen) % LOOKS == 0):
            return None  # who looks often enough sees by chance what he looks for
        probe = probe_of(question, self.tolerance, self.iops, seen)
        if not probe.sustained or self._is_over or longest:
            return probe
        if self._much_disturbed():  # it will not get clearer
            return probe
        if replace(self, probes=(*self.probes, probe)).is_narrow:
            return probe
        # Where no time is left for another probe, more of this one tells more than nothing.
        has_time = self._has_time(self.settle + 1 + FEWEST)
        return probe if probe.answer is not ProbeAnswer.UNCLEAR and has_time else None

    def _much_disturbed(self) -> list[Disturbance]:
        """Disturbances of the generator in the present probe, where they were more than a measurement sets aside."""
        disturbed = [one.disturbance for one in self.seen if one.disturbance is not None]
        return disturbed if len(disturbed) > MOST_SET_ASIDE * len(self.seen) else []

    def _too_disturbed(self, number: int, rows: tuple[ControlRow, ...]) -> Decision:
        """The end, with the highest pass, if there is one."""
        passed = bracket(self.probes).passed
        why = Finding(Reason.SEARCH_DISTURBED, too_busy(self._much_disturbed()))
        measured = replace(_window(passed), findings=(why,)) if passed else nothing_measured(number, why)
        return Decision(Phase.TAIL, rows=rows, measured=(measured,), progress=f"search: {why.detail}")

    def _why_repeated(self) -> Finding | None:
        """Why the probe that has just ended is repeated; None: it counts."""
        disturbed = self._much_disturbed()
        again = any(one.iops == self.iops for one in self.repeated)
        if not self.repeats or again or not disturbed or self._is_over:
            return None
        if self._runs + 1 >= self.spec.probes:
            return None
        share = f"{len(disturbed)} of {len(self.seen)} subintervals: {causes(disturbed)}"
        return Finding(Reason.SET_ASIDE, f"probe {self._probe_number} at {self.iops:.6g} IOPS, {share}, repeated")

    def _so_far(self) -> str:
        """The probe's present value, of the instance that is furthest from passing."""
        if not self.seen:
            return ""
        focus, target = self.spec.focus, self.spec.target
        values = {
            name: value_of([one.samples[focus][name] for one in self.seen], focus.fraction)
            for name in self.seen[-1].samples[focus]
        }
        blank = next((name for name, value in values.items() if value is None), None)
        if blank is not None:
            return f", {focus.metric} of {blank} blank so far"
        name, value = max(((name, value or 0.0) for name, value in values.items()), key=lambda one: one[1])
        shown, aim = amount_in_words(focus.unit, value, 4, target), amount_in_words(focus.unit, target, LIMIT_DIGITS)
        return f", {focus.metric} of {name} {shown} so far, target {aim}"

    def _next(self, observation: Observation, rows: tuple[ControlRow, ...]) -> "tuple[Find, Decision]":
        if self._runs >= self.spec.probes or not self._has_time(self.settle + FEWEST_READ):
            return self._ended(observation, rows)
        confirm = None
        if self.is_narrow and (confirm := unconfirmed(standing(self.probes))) is None:
            return self._ended(observation, rows)
        wanted = (
            confirm
            or self._load_to_show()
            or next_load(self.probes, self.spec.focus, self._bounds(), self.spec.confidence, self.spec.longest_probe)
        )
        if wanted is None and self._in_doubt():
            state = replace(
                self,
                stage=SearchStage.MAX,
                since=observation.acts_in,
                seen=(),
                maxima=self.maxima + 1,
                confirmed=False,
            )
            progress = "search: max again, to confirm it"
            return state, Decision(Phase.TRANSIENT, (LoadEdit("all", "all", None),), rows, progress=progress)
        if wanted is None:
            return self._ended(observation, rows)
        sustained = self.stage is not SearchStage.PROBE or self.probes[-1].sustained
        return self._to(wanted, sustained, observation, rows)

    def _ended(self, observation: Observation, rows: tuple[ControlRow, ...]) -> "tuple[Find, Decision]":
        measured, progress = self._result(observation.number)
        return self, Decision(Phase.TAIL, rows=rows, measured=(measured,), progress=progress)

    def _to(
        self, iops: float, sustained: bool, observation: Observation, rows: tuple[ControlRow, ...]
    ) -> "tuple[Find, Decision]":
        """On to a probe at `iops`; `sustained`: the load before was."""
        state = replace(self, iops=iops, seen=())
        if self.stage is SearchStage.PROBE and (_backlog(observation) > 0 or not sustained):
            state = replace(state, stage=SearchStage.DRAIN, since=observation.acts_in)
            return state, Decision(Phase.TRANSIENT, (LoadEdit("all", "all", 0.0),), rows)
        return state._start(observation, rows)

    def _start(self, observation: Observation, rows: tuple[ControlRow, ...]) -> "tuple[Find, Decision]":
        state = replace(self, stage=SearchStage.PROBE, since=observation.acts_in, seen=())
        return state, Decision(Phase.TRANSIENT, (LoadEdit("all", "all", self.iops),), rows)

    def _in_doubt(self) -> bool:
        """There is no bracket, and only one run at max shows that."""
        ends = bracket(self.probes)
        one_sided = (ends.passed is None) is not (ends.failed is None)
        return one_sided and not self.confirmed and self._runs < self.spec.probes

    def _bounds(self) -> SearchBounds:
        assert self.capacity is not None
        return SearchBounds(self.capacity, self._lowest())

    def _lowest(self) -> float:
        """IOPS that show a percentile within half of the longest probe; fewer would leave it blank."""
        fraction, time_s = self.spec.focus.fraction, self.spec.longest_probe * self.length_s / 2
        return 0.0 if fraction is None or time_s <= 0 else fewest_ios(fraction) / time_s

    def estimate(self) -> LoadEstimate | None:
        """The load that meets the target, from all probes; None where they do not show it yet."""
        if self.capacity is None:
            return None
        return load_estimate(self.probes, self._bounds(), self.spec.confidence)

    @property
    def is_narrow(self) -> bool:
        """The interval is as narrow as the plan asks, and rests on more than two probes."""
        if len(self.probes) < FEWEST_READINGS:
            return False
        highest = max(self.capacity or 0.0, *(probe.iops for probe in self.probes))
        if self._gap() > self.spec.resolution * highest:  # no estimate is higher, and to estimate takes milliseconds
            return False
        estimate = self.estimate()
        return (
            estimate is not None
            and self._is_bounded(estimate)
            and estimate.crossing.width <= self.spec.resolution
            and self._is_shown(estimate)
            and self._is_near(estimate)
        )

    def _is_near(self, estimate: LoadEstimate) -> bool:
        """Probes on both sides of the target are as near as the resolution: between them the curve may bend."""
        return self._gap() <= self.spec.resolution * estimate.crossing.load

    def _gap(self) -> float:
        """IOPS between the nearest probes on both sides of the target; infinite where none is above it."""
        stand = standing(self.probes)
        met = max((probe.iops for probe in stand if not probe.above), default=0.0)
        return min((probe.iops for probe in stand if probe.above), default=inf) - met

    def _is_shown(self, estimate: LoadEstimate) -> bool:
        """A probe met the target near the load that was found: the step's row is of it."""
        least = estimate.crossing.low / (1 + self.spec.resolution)
        return any(one.sustained and not one.above and one.iops >= least for one in standing(self.probes))

    def _load_to_show(self) -> float | None:
        """The load of a probe that is to meet the target near the load that was found, once that is known as well as it
        will be: the interval is narrow, or only one probe is left."""
        estimate = self.estimate()
        if estimate is None or not self._is_bounded(estimate) or self._is_shown(estimate):
            return None
        is_last = self._runs + 1 >= self.spec.probes or not self._has_time(2 * (self.settle + 1 + FEWEST))
        return estimate.crossing.low if is_last or estimate.crossing.width <= self.spec.resolution else None

    def _is_bounded(self, estimate: LoadEstimate) -> bool:
        """Probes were on both sides of the target, and the interval has both ends."""
        stand = standing(self.probes)
        return estimate.crossing.width < inf and {one.above for one in stand} == {True, False}

    def _result(self, number: int) -> tuple[Measured, str]:
        """The probe at the load that was found is the measurement; findings say what is wrong with the search."""
        estimate, ends = self.estimate(), bracket(self.probes)
        name = f"{self.spec.focus.metric} <= {amount_in_words(self.spec.focus.unit, self.spec.target, LIMIT_DIGITS)}"
        if estimate is not None and self._is_bounded(estimate):
            detail = f"{name} up to {self._in_words(estimate)}"
            return replace(self._window_of(estimate), findings=(Finding(Reason.SEARCH_FOUND, detail),)), detail
        if ends.passed is None:
            lowest = min((one.iops for one in self.probes), default=0.0)
            if ends.failed is not None and lowest <= self._bounds().bottom * (1 + 1e-9):
                detail = f"{name} fails already at the lowest load, {lowest:.6g} IOPS"
                return nothing_measured(number, Finding(Reason.SEARCH_NEVER_MET, detail)), detail
            tried = f"from {lowest:.6g} IOPS up" if self.probes else "at no load: the time was over"
            detail = f"{name} {'fails' if ends.failed else 'is unclear'} {tried}"
            return nothing_measured(number, Finding(Reason.SEARCH_UNBOUNDED, detail)), detail
        window = _window(ends.passed)
        if ends.failed is None and ends.passed.iops >= HIGHEST * (self.capacity or 0.0) * (1 - 1e-9):
            sure = "confirmed" if self.confirmed else "not confirmed: no probe was left"
            detail = f"{name} never fails up to {ends.passed.iops:.6g} of {self.capacity:.6g} IOPS at max, {sure}"
            return replace(window, findings=(Finding(Reason.SEARCH_ALWAYS_MET, detail),)), detail
        over = "time" if self._is_over else "probes"
        detail = f"{name} up to {ends.passed.iops:.6g} IOPS; above, the {over} were not enough to say".replace(
            "time were", "time was"
        )
        return replace(window, findings=(Finding(Reason.SEARCH_UNBOUNDED, detail),)), detail

    def _in_words(self, estimate: LoadEstimate) -> str:
        """`1.63 k IOPS (1.48 to 1.69 k, 95 %)`, and how much longer would halve the interval where it is too wide."""
        crossing = estimate.crossing
        load, ends = scaled_range(crossing.load, crossing.low, crossing.high)
        text = f"{load} IOPS ({ends}, {100 * self.spec.confidence:g} %)"
        if crossing.width <= self.spec.resolution:
            return text
        return f"{text}, about {duration(self.halving_s)} more would halve that"

    @property
    def halving_s(self) -> float:
        """How much longer halves the interval, about: its width falls with the root of the time."""
        return 3 * self.took_s

    def _window_of(self, estimate: LoadEstimate) -> Measured:
        """That of the probe next to the load that was found, of those that met the target."""
        met = [one for one in standing(self.probes) if one.sustained and not one.above]
        within = [one for one in met if one.iops <= estimate.crossing.high] or met
        return _window(min(within, key=lambda one: abs(log(one.iops / estimate.crossing.load))))

    def _cells(self, probe: Probe, repeated: bool) -> dict[str, Cell]:
        estimate, ends = self.estimate(), bracket(self.probes)
        load = estimate.crossing if estimate is not None and self._is_bounded(estimate) else None
        return {
            "probe": self._probe_number - 1,
            "total_iops": probe.iops,
            "achieved_iops": probe.achieved,
            "metric": self.spec.focus.metric,
            "target": self.spec.target,
            "value": probe.value,
            "half_width": probe.half_width,
            "confidence_percent": 100 * ANSWER,
            "worst_instance": probe.instance,
            "sustained": probe.sustained,
            "answer": probe.answer.value,
            "first_subinterval": probe.first,
            "last_subinterval": probe.last,
            "highest_pass_iops": ends.passed.iops if ends.passed else None,
            "lowest_fail_iops": ends.failed.iops if ends.failed else None,
            "expected_iops": load.load if load else None,
            "low_iops": load.low if load else None,
            "high_iops": load.high if load else None,
            "interval_percent": 100 * self.spec.confidence if load else None,
            "halving_s": self.halving_s if load and load.width > self.spec.resolution else None,
            "repeated": repeated,
            "disturbed": causes(self._much_disturbed()) or None,
        }


def _window(probe: Probe) -> Measured:
    return Measured(probe.first, probe.last, f":total_iops={probe.iops:.6g}")


def _backlog(observation: Observation) -> int:
    return sum(load.backlog for load in observation.loads["all"].values())
