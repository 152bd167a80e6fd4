"""The result of a search, from the rows of its find.csv: a sentence, and the table of its probes.

Rule: only answers that stand prove something: of probes that were repeated, the answer is in [brackets] and does not
count.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ..control.probe import ProbeAnswer
from ..control.search import FindSpec
from ..rollup.disturbance import Cause
from ..rollup.figures import OVERALL
from ..rollup.metrics import METRICS, unit_of
from ..text.metric_amounts import LIMIT_DIGITS, amount_in_words
from ..text.scaled import BLANK, duration, scaled_count, scaled_range
from ..text.table import ColumnGroup, TextColumn, header_lines, row_line
from ..verdicts import Finding, Reason, Verdict, counting_for, verdict_of
from .headline import NARROW, figure_text, full_title, marked
from .measured import StepEnds

CAUSES: Final = {
    Cause.RUN_QUEUE_DELAY: "other programs had the CPU",
    Cause.STEAL: "the hypervisor had the CPU",
    Cause.MACHINE_STALL: "the machine stalled",
}

ANSWERS: Final = {ProbeAnswer.PASS: "meets it", ProbeAnswer.FAIL: "misses it", ProbeAnswer.UNCLEAR: "unclear"}
_OF_SEARCH: Final = (Reason.SEARCH_UNBOUNDED, Reason.SEARCH_DISTURBED)
_WIDTHS: Final = (5, 7, 7, 14, 7, -15)  # of the table's columns, 60 with the gaps
_NARROWER: Final = ((0, 1, 3, 4, 5), (0, 1, 3, 5))  # the columns of a terminal with no room for all
_SHORT: Final = 9  # the value's there, whose title is the statistic alone

ProbeRow = Mapping[str, str]  # of find.csv, by column


@dataclass(frozen=True, slots=True)
class ProbeTable:
    """The probes of a search as texts: a title for each column, and a row for each probe."""

    titles: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def probe_table(probes: Sequence[ProbeRow]) -> ProbeTable:
    """The table of at least one probe: its number, the load, the value with its half-width, the answer."""
    last = probes[-1]
    percent = number_in(last, "confidence_percent")
    half = "+-" if percent is None else f"+- {percent:g} %"
    titles = ("probe", "asked", "IOPS", metric_title(last["metric"]), half, "answer")
    return ProbeTable(titles, tuple(_cells(one) for one in probes))


def probe_lines(probes: Sequence[ProbeRow], width: int = NARROW) -> list[str]:
    """The same as lines for a terminal of this width: as many columns as it has room for."""
    table = probe_table(probes)
    forms = [_columns(table.titles, _WIDTHS, range(len(_WIDTHS)))]
    metric = probes[-1]["metric"]
    titles = (*table.titles[:3], table.titles[3].split()[-1] if metric in METRICS else "value", *table.titles[4:])
    forms += [_columns(titles, (*_WIDTHS[:3], _SHORT, *_WIDTHS[4:]), places) for places in _NARROWER]
    columns = next((form for form in forms if _group(form).width <= width), forms[-1])
    groups = [_group(columns)]
    return [*header_lines(groups), *(row_line(groups, [row[place] for place in columns]) for row in table.rows)]


def _columns(titles: Sequence[str], widths: Sequence[int], places: Sequence[int]) -> dict[int, TextColumn]:
    """Those at these places, by place."""
    wide = {place: widths[place] if widths[place] < 0 else max(widths[place], len(titles[place])) for place in places}
    return {place: TextColumn(titles[place], width) for place, width in wide.items()}


def _group(columns: Mapping[int, TextColumn]) -> ColumnGroup:
    return ColumnGroup("", tuple(columns.values()))


def _cells(probe: ProbeRow) -> tuple[str, ...]:
    metric, answer = probe["metric"], ProbeAnswer(probe["answer"])
    asked, iops = (scaled_count(number_in(probe, name)) for name in ("total_iops", "achieved_iops"))
    value, half = (_amount(metric, number_in(probe, name)) for name in ("value", "half_width"))
    words = ANSWERS[answer] if probe["sustained"] == "true" else "not sustained"
    return probe["probe"], asked, iops, value, half, f"[{words}]" if is_repeated(probe) else words


def metric_title(metric: str) -> str:
    """The metric of a search in words: `response p99`, `read service p50`; that of a connector as it is."""
    if metric not in METRICS:
        return metric
    category = METRICS[metric].category
    return full_title(metric) if category == OVERALL else f"{category} {full_title(metric)}"


def _amount(metric: str, value: float | None) -> str:
    if metric in METRICS or value is None:
        return BLANK if value is None else figure_text(metric, value)
    return amount_in_words(unit_of(metric), value, 3)


def search_headline(step: StepEnds, probes: Sequence[ProbeRow]) -> str:
    """The result of a step's search in a sentence that stands alone: `1.63 k IOPS (1.48 to 1.69 k, 95 %) is the highest
    rate with response p99 at most 20 ms.`"""
    wanted, rate = _wanted(probes[-1]), _highest_rate(probes[-1], step.standing.verdict)
    if rate:
        return f"{rate} is the highest rate with {wanted}."
    result = search_result(probes, step.standing.verdict, step.standing.findings)
    return f"{wanted[0].upper()}{wanted[1:]}: {result}."


def _wanted(last: ProbeRow) -> str:
    """The target in words: `response p99 at most 20 ms`. `last`: the last probe."""
    target = amount_in_words(unit_of(last["metric"]), float(last["target"]), LIMIT_DIGITS)
    return f"{metric_title(last['metric'])} at most {target}"


def search_caption(step: StepEnds, probes: Sequence[ProbeRow]) -> str:
    """The target of a step's search, and its result where the step's own line does not have it: `response p99 at most
    20 ms: at least 11.5 k IOPS meet it; 23.1 k is unclear`."""
    wanted = _wanted(probes[-1])
    if any(one.reason is Reason.SEARCH_FOUND for one in step.standing.findings):
        return wanted
    return f"{wanted}: {search_result(probes, step.standing.verdict, step.standing.findings)}"


def search_lines(step: StepEnds, probes: Sequence[ProbeRow], width: int = NARROW) -> list[str]:
    """The lines below the table of steps for one that searched: the caption, its probes, and how many were
    disturbed."""
    caption = f"probes of step {step.number} {step.name}, {search_caption(step, probes)}"
    note = disturbed_probes(probes, step.standing.findings)
    return [caption, *probe_lines(probes, width), *([note] if note else [])]


def search_result(probes: Sequence[ProbeRow], verdict: Verdict, findings: Sequence[Finding] = ()) -> str:
    """Say what all probes prove; at least one. `the highest rate that meets it: 1.63 k IOPS (1.48 to 1.69 k, 95 %)`,
    and how much longer would halve that; `at least 11.5 k IOPS meet it; 23.1 k is unclear`.

    `verdict`, `findings`: of the step. A probe that passed proves its load, unless its rate or its metric is
    invalid: the search alone may be.
    """
    last = probes[-1]
    if rate := _highest_rate(last, verdict):
        halving_s = number_in(last, "halving_s")
        more = "" if halving_s is None else f"; about {duration(halving_s)} more (`within`) would halve that"
        return f"the highest rate that meets it: {rate}{more}"
    passes, fails = number_in(last, "highest_pass_iops"), number_in(last, "lowest_fail_iops")
    if passes is None:
        return _without_pass(probes, fails)
    if fails is not None:
        return f"{scaled_count(passes)} IOPS meet it, {scaled_count(fails)} do not"
    unclear = min((one for one in _loads(probes, ProbeAnswer.UNCLEAR) if one > passes), default=None)
    others = [one for one in findings if one.reason not in _OF_SEARCH]
    purpose = {*FindSpec.purpose, *(METRICS[name].scope for name in [last.get("metric", "")] if name in METRICS)}
    doubt = verdict_of(counting_for(others, purpose))
    return f"at least {marked(scaled_count(passes), doubt)} IOPS meet it{_unclear(unclear)}"


def _highest_rate(last: ProbeRow, verdict: Verdict) -> str:
    """The rate that was found, with its interval: `1.63 k IOPS (1.48 to 1.69 k, 95 %)`; "" where none was. `last`: the
    last probe; `verdict`: of the step."""
    load, low, high = (number_in(last, column) for column in ("expected_iops", "low_iops", "high_iops"))
    if load is None or low is None or high is None or verdict is Verdict.INVALID:
        return ""
    value, ends = scaled_range(load, low, high)
    return f"{value} IOPS ({ends}, {number_in(last, 'interval_percent'):g} %)"


def _without_pass(probes: Sequence[ProbeRow], fails: float | None) -> str:
    """Say what is known where no answer that stands is a pass."""
    unclear = _loads(probes, ProbeAnswer.UNCLEAR)
    below = [one for one in unclear if fails is None or one < fails]
    met, missed = (
        [float(one["total_iops"]) for one in probes if one["answer"] == answer]
        for answer in (ProbeAnswer.PASS, ProbeAnswer.FAIL)
    )
    met = [one for one in met if fails is None or one < fails]
    if met:
        above = min((one for one in below if one > max(met)), default=None)
        rest = _unclear(above) if fails is None or above is not None else f"; {scaled_count(fails)} do not meet it"
        return f"a probe at {scaled_count(max(met))} IOPS met it, but does not count{rest}"
    if fails is not None and below:
        return f"no rate that meets it was found; {scaled_count(fails)} IOPS miss it{_unclear(max(below))}"
    if fails is not None:
        return f"no rate that meets it was found; the lowest that was tried is {scaled_count(fails)} IOPS"
    if missed:
        rest = _unclear(max((one for one in below if one < min(missed)), default=None))
        return f"a probe at {scaled_count(min(missed))} IOPS missed it, but does not count{rest}"
    first, last = min(unclear), max(unclear)
    return f"no answer at {scaled_count(first) if first == last else scaled_range(first, first, last)[1]} IOPS"


def disturbed_probes(probes: Sequence[ProbeRow], findings: Sequence[Finding]) -> str:
    """Say how many probes were disturbed, which of them count all the same, and why: `1 of 4 probes does not count, 2
    were disturbed, but count: other programs had the CPU`; "" where none was. `findings`: of the step."""
    repeated = sum(is_repeated(one) for one in probes)
    counting = sum(bool(one.get("disturbed")) and not is_repeated(one) for one in probes)
    parts = [f"{repeated} {'does' if repeated == 1 else 'do'} not count"] if repeated else []
    counts = "was disturbed, but counts" if counting == 1 else "were disturbed, but count"
    parts += [f"{counting} {counts}"] if counting else []
    if not parts:
        return ""
    number, words = parts[0].split(" ", 1)
    parts[0] = f"{number} of {len(probes)} probes {words}"
    # Probes of an earlier version have no causes: there the step's notes name them.
    texts = [one.get("disturbed", "") for one in probes]
    texts += [one.detail for one in findings if one.reason is Reason.SET_ASIDE]
    known = [words for cause, words in CAUSES.items() if any(cause in text for text in texts)]
    return f"{', '.join(parts)}: {' and '.join(known) or 'the generator was disturbed'}"


def is_repeated(probe: ProbeRow) -> bool:
    """Whether its answer does not count; no such column is of an earlier version."""
    return probe.get("repeated") == "true"


def number_in(row: ProbeRow, column: str) -> float | None:
    """A cell's number; None where it is blank."""
    text = row.get(column, "")
    return float(text) if text else None


def _loads(probes: Sequence[ProbeRow], answer: ProbeAnswer) -> list[float]:
    """The loads whose newest probe has this answer."""
    newest = {float(one["total_iops"]): one["answer"] for one in probes}
    return [load for load, text in newest.items() if text == answer]


def _unclear(load: float | None) -> str:
    return "" if load is None else f"; {scaled_count(load)} is unclear"
