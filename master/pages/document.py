"""A run's document: the run, its steps with their measurements of everything, its hosts, LUNs, plan and events.

Times are unix seconds, units those of docs/columns.md, a blank is None.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from ...protocol.parameters import PARAMETERS
from ..causes import remedy_of
from ..errors import PlanError
from ..exit_codes import ORDER, ExitCode
from ..output.column import names
from ..output.columns import HOST_FACTS
from ..plan.attempts import last_of_each
from ..results.checked_files import read_table, that_count
from ..results.finished_run import plan_text
from ..results.measured_rows import finding_of, read_measured, standing_of
from ..results.run_entries import RunEntry, RunState, entry_data, entry_of
from ..results.search_steps import read_probes
from ..rollup.instances import ALL
from ..rollup.metrics import METRICS
from ..summary.driven import driven, load_parts
from ..summary.headline import ON_PAGE, OVER_LOAD, full_title, scope_of
from ..summary.measured import MeasurementRow, StepEnds
from ..summary.rounds_table import rounds_tables
from ..summary.search_probes import ProbeRow, disturbed_probes, probe_table, search_caption, search_headline
from ..summary.steps_table import advice_lines, ending_of, run_sentence, words_of
from ..text.metric_amounts import MetricUnit
from ..verdicts import Finding
from .growing_table import GrowingTable, number, number_or_text, unix_time
from .kept_run import KeptRun

FORMAT: Final = 1
_MOST_EVENTS: Final = 5000  # the newest
_MOST_SEARCHES: Final = 3  # whose results stand at the top; the others' are below the table
_VERDICTS: Final = ("verdict", "rate_verdict", "service_verdict", "response_verdict")
_OF_ONE_LUN: Final = frozenset(("host", "hostname", "path"))


def document_of(run: KeptRun) -> dict[str, Any]:
    """All that a page knows of a run before it asks for a step's figures."""
    entry = entry_of(run.folder, datetime.now(UTC))
    record = run.record
    rows = run.summary(ALL)
    known = _measured(run, record) if rows else {}
    known_remedies: set[str] = set()  # remedies: each is said once
    last = last_of_each([one["name"] for one in record["steps"]])
    steps = [
        {**_step(run, one, entry.state, rows, known, known_remedies), "counts": one["name"] in last}
        for one in record["steps"]
    ]
    hosts, luns = read_table(run.folder / "hosts.csv"), read_table(run.folder / "luns.csv")
    loads = [one["load"] for step in steps for one in step["measurements"]]
    code = record["exit_code"]
    return {
        "format": FORMAT,
        "run": entry_data(entry),
        # Verdicts are in the outcome.
        "sentence": "" if code is None or code in ORDER else _ending(ExitCode(code), rows, known, entry),
        "outcome": _outcome(run.folder, _that_count(record, known), is_whole=code in ORDER),
        "driven": driven(loads, luns, read_table(run.folder / "workloads.csv")),
        "plan_text": plan_text(run.folder),
        **headlines(),
        "hosts": hosts,
        "hosts_differ": _differing(hosts, names(HOST_FACTS)),
        "luns": luns,
        "luns_differ": _differing(luns, [name for name in (luns[0] if luns else ()) if name not in _OF_ONE_LUN]),
        "rollups": _united([one["rollups"] for one in steps]),
        "steps": steps,
        "rounds": {
            "tables": [asdict(table) for table in rounds_tables([*known.values()])],
            "values": _rounds(run.folder),
        },
        "has_elements": any(run.elements(one["number"]).element_types() for one in record["steps"]),
        "events": _events(run),
    }


def _outcome(folder: Path, steps: Sequence[StepEnds], is_whole: bool) -> str:
    """Say what the run came to: first what its searches found."""
    searched = [(step, probes) for step in steps if (probes := _probes(folder, step))]
    results = [(step, search_headline(step, probes)) for step, probes in searched[:_MOST_SEARCHES]]
    named = [sentence if len(steps) == 1 else f"{step.name}: {sentence}" for step, sentence in results]
    return " ".join(filter(None, [*named, run_sentence(steps, is_whole)]))


def _ending(code: ExitCode, rows: Sequence[object], known: Mapping[int, StepEnds], entry: RunEntry) -> str:
    """`known`: none of a run of another version, whose summary has `rows` all the same."""
    return code.sentence if rows and not known else ending_of(code, [*known.values()], entry.interrupted_by)


def headlines() -> dict[str, list[dict[str, Any]]]:
    """The metrics that a page shows, as a document has them: those of tables, and the times that go over the load."""
    return {"headline": [_headline(name) for name in ON_PAGE], "over_load": [_headline(name) for name in OVER_LOAD]}


def _headline(name: str) -> dict[str, Any]:
    """`verdict`: the key of a measurement that says whether to believe it."""
    is_time = METRICS[name].unit is MetricUnit.US
    return {"name": name, "title": full_title(name), "is_time": is_time, "verdict": f"{scope_of(name)}_verdict"}


def _reasons(texts: Iterable[str], folder: Path, explained: bool = False) -> list[dict[str, Any]]:
    """The reasons of a verdict, as a summary has them, with what they mean and what to do; `explained`: one of them is
    known to be the cause of others."""
    findings = [finding_of(text, folder) for text in texts]
    return [_reason(one, findings if explained else ()) for one in findings]


def _measured(run: KeptRun, record: Mapping[str, Any]) -> dict[int, StepEnds]:
    """The steps that ended, as a console shows them, by their numbers."""
    try:
        steps = read_measured(run.folder, ALL, [step["name"] for step in record["steps"] if step["verdict"]]).steps
    except PlanError:  # of a version whose rows were not kept so
        return {}
    return {step.number: step for step in steps}


def _that_count(record: Mapping[str, Any], known: Mapping[int, StepEnds]) -> list[StepEnds]:
    """Of a repeated step the last attempt."""
    return [known[step["number"]] for step in that_count(record) if step["number"] in known]


def _step(
    run: KeptRun,
    step: Mapping[str, Any],
    state: RunState,
    summary: Sequence[Mapping[str, str]],
    known: Mapping[int, StepEnds],
    known_remedies: set[str],
) -> dict[str, Any]:
    place = step["number"]
    rows = [row for row in summary if int(row["step"]) == place]
    standing = standing_of(step, rows)
    closed = run.rows(place)
    shown = {one.name: one for one in known[place].measured} if place in known else {}
    goes_on = "running" if state in (RunState.RUNNING, RunState.NOT_ENDED) else "cut off"
    return {
        "number": place,
        "name": step["name"],
        "state": "ended" if step["verdict"] else goes_on,
        "verdict": step["verdict"],
        "start": unix_time(step["start_utc"]) if step["start_utc"] else None,
        "end": unix_time(step["end_utc"]) if step["end_utc"] else None,
        "thresholds": step["thresholds"],
        "reasons": _reasons(step["reasons"], run.folder),
        "rollups": {kind: [*instances] for kind, instances in run.files(place).items()},
        "search": _search(run.folder, known[place]) if place in known else None,
        "by_address": (run.step_folder(place) / "by_address.csv").is_file(),
        "closed": len(closed),
        "until": _end_of(closed),
        "measurements": [
            _measurement(run.folder, row, step["name"], shown.get(row["name"]), row["name"] == standing, known_remedies)
            for row in rows
        ],
    }


def _search(folder: Path, step: StepEnds) -> dict[str, Any] | None:
    """The probes of a step that searched, as texts; None of any other, or where they are damaged."""
    probes = _probes(folder, step)
    if not probes:
        return None
    table = probe_table(probes)
    return {
        "caption": search_caption(step, probes),
        "titles": table.titles,
        "rows": table.rows,
        "note": disturbed_probes(probes, step.standing.findings),
    }


def _probes(folder: Path, step: StepEnds) -> list[ProbeRow]:
    """Of a step that searched and has a measurement to show; none of any other, or where they are damaged."""
    try:
        probes = read_probes(folder, step.number, step.name)
    except PlanError:  # the answer of control names the file
        return []
    return probes if step.measured else []


def _rounds(folder: Path) -> list[dict[str, Any]]:
    """How steps in rounds converged: rows of rounds.csv, without what a chart does not show."""
    return [
        {
            "step": row["step"],
            "pass": row["pass"],
            "metric": row["metric"],
            "round": int(row["round"]),
            "value": number(row["value"]),
        }
        for row in read_table(folder / "rounds.csv")
    ]


def _measurement(
    folder: Path,
    row: Mapping[str, str],
    step: str,
    shown: MeasurementRow | None,
    stands: bool,
    known_remedies: set[str],
) -> dict[str, Any]:
    """`shown`: as a console shows it, where that is known; `known_remedies`: those that were said."""
    own, explained = row["name"], bool(shown and shown.cause)
    halves = {name: number(row.get(f"{name}_half_width", "")) for name in METRICS}
    figures = {name: number(row.get(name, "")) for name in METRICS}
    return {
        "name": own,
        "level": own.removeprefix(f"{step}:") if own != step else "",
        "stands": stands,
        **{name: row.get(name) or row["verdict"] for name in _VERDICTS},
        "why": words_of(shown) if shown else "",
        "advice": advice_lines(shown, known_remedies) if shown else [],
        "load": load_parts(row),
        "hosts_in": int(row.get("hosts_in") or 0),
        "hosts_of": int(row.get("hosts_of") or 0),
        "reasons": _reasons(filter(None, row["reasons"].split("; ")), folder, explained),
        "first": int(row["first_subinterval"]) if row.get("first_subinterval") else None,
        "last": int(row["last_subinterval"]) if row.get("last_subinterval") else None,
        "start": unix_time(row["start_utc"]) if row.get("start_utc") else None,
        "end": unix_time(row["end_utc"]) if row.get("end_utc") else None,
        "iops_setting": number_or_text(row.get("iops_setting", "")),
        "parameters": {name: number_or_text(row[name]) for name in PARAMETERS if row.get(name)},
        "metrics": {name: value for name, value in figures.items() if value is not None},
        "half_widths": {name: value for name, value in halves.items() if value is not None},
    }


def _events(run: KeptRun) -> list[dict[str, Any]]:
    newest = {name: column[-_MOST_EVENTS:] for name, column in run.events().columns.items()}
    return [
        {
            "utc": unix_time(utc),
            "step": int(step) if step else None,
            "subinterval": int(subinterval) if subinterval else None,
            "host": host,
            "kind": kind,
            "text": text,
        }
        for utc, step, subinterval, host, kind, text in zip(*newest.values(), strict=True)
    ]


def _reason(finding: Finding, beside: Sequence[Finding]) -> dict[str, Any]:
    reason = finding.reason
    return {
        "reason": reason.word,
        "severity": str(finding.severity),
        "detail": finding.detail,
        "scopes": [str(scope) for scope in reason.scope],
        "meaning": reason.sentence,
        "remedy": remedy_of(finding, beside),
    }


def _differing(rows: Sequence[Mapping[str, str]], columns: Sequence[str]) -> list[str]:
    return [name for name in columns if len({row.get(name, "") for row in rows}) > 1]


def _united(rollups: Sequence[Mapping[str, Sequence[str]]]) -> dict[str, list[str]]:
    instances_of: dict[str, dict[str, None]] = {}
    for one in rollups:
        for kind, instances in one.items():
            instances_of.setdefault(kind, {}).update(dict.fromkeys(instances))
    return {kind: [*instances] for kind, instances in instances_of.items()}


def _end_of(rows: GrowingTable) -> float | None:
    """Of the last subinterval; None before there is one."""
    starts = rows.columns["start_utc"]
    return unix_time(starts[-1]) + (rows.numbers("length_s", len(rows) - 1)[0] or 0.0) if starts else None
