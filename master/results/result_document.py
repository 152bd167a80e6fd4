"""A run's results as one JSON document, result.json and `ivypy show --json`, and the schema of it.

Rule: the numbers are those of the summaries, under the same names and in the same units; what is blank there is left
out. `ivypy schema --result` prints the schema. Keys may be added to it; where one changes or goes, `format` changes.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from ...protocol.parameters import PARAMETERS
from ..errors import PlanError
from ..output.csv_text import replace_file
from ..output.file_names import stem
from ..rollup.instances import ALL
from ..rollup.metrics import METRICS
from ..verdicts import Scope
from .checked_files import Snapshot, read_whole
from .finished_run import FinishedRun, Key, StepRow, run_in, types_in, why_no_results
from .measured_rows import chosen_steps, finding_of, standing_of
from .run_entries import RunEntry, entry_data, entry_of
from .search_steps import read_probes

FILE: Final = "result.json"
MOST_BYTES: Final = 4 << 20  # of all its summaries; more would delay the end of a run, and fill the controller's memory
_PARAMETERS: Final = ("iops_setting", *PARAMETERS)
_FLAGS: Final = ("sustained", "repeated")  # of a probe


# Bytes of a name that are no UTF-8 are shown by their numbers: JSON cannot have them.
Text = Annotated[str, AfterValidator(lambda text: text.encode("utf-8", "backslashreplace").decode())]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


Verdicts = Literal["valid", "partial", "failed", "invalid"]


class RunDocument(_Model):
    """The run."""

    run: Text = Field(description="the name of its folder")
    folder: Text
    state: Literal["running", "ended", "cut off", "open"]
    verdict: Verdicts | None = Field(description="the worst of the steps; null: none has ended")
    exit_code: int | None = Field(description="null: the run has not ended")
    plan: Text = Field(description="path of the plan")
    version: Text = Field(description="of ivypy")
    start_utc: Text = Field(description="ISO 8601")
    length_s: float | None
    hosts: list[Text]
    steps: list[Text] = Field(description="names of the steps that began")


class ReasonDocument(_Model):
    """Something that speaks for or against figures."""

    reason: str = Field(description="one of docs/verdicts.md")
    severity: Literal["note", "partial", "failed", "invalid"]
    detail: Text
    remedy: str


class MeasurementDocument(_Model):
    """One measurement of a step, of one rollup instance: a row of a summary."""

    name: Text = Field(description="the step's; where the load is control's, with the load")
    rollup_type: Text
    rollup_instance: Text
    verdict: Verdicts = Field(description="of the figures that the step was for")
    rate_verdict: Verdicts
    service_verdict: Verdicts
    response_verdict: Verdicts
    hosts_in: int = Field(description="whose results the figures include")
    hosts_of: int = Field(description="that it should be of")
    stands: bool = Field(
        description="the step stands for it: the last that is not invalid for any rollup instance, else the last"
    )
    reasons: list[ReasonDocument]
    parameters: dict[str, int | float | Text] = Field(
        description="in force; bytes, seconds, shares of 1; text where they differ"
    )
    metrics: dict[str, float] = Field(
        description="by name, in the unit of docs/columns.md; without those that are blank"
    )


class StepDocument(_Model):
    """One step that has ended."""

    number: int
    name: Text
    verdict: Verdicts = Field(description="of all measurements that count")
    reasons: list[ReasonDocument]
    thresholds: list[Text] = Field(description="in words; those that were missed are in `reasons`, as slo_missed")
    probes: list[dict[str, int | float | bool | Text]] | None = Field(
        default=[], description="of a search: the rows of its find.csv, without what is blank; null: that is damaged"
    )
    start_utc: Text
    end_utc: Text | None
    measurements: list[MeasurementDocument]


class ResultDocument(_Model):
    """The results of a run."""

    format: Literal[1]
    run: RunDocument
    left_out: list[Text] = Field(description="rollup types of so many measurements that only their CSV has them")
    steps: list[StepDocument]


def result_of(folder: Path, types: Sequence[str], wanted: Sequence[str] = ()) -> ResultDocument:
    """Of a run's folder; `types`: rollup types, all where there are none; `wanted`: steps, by name or number, likewise.

    Raises PlanError where the run has no results, no such rollup type or no such step, or is of another version.
    """
    return read_whole(folder, lambda kept: _document(kept, wanted, types))


def _document(kept: Snapshot, wanted: Sequence[str], types: Sequence[str]) -> ResultDocument:
    shown_types = types or _that_fit(kept)
    run = run_in(kept.folder.name, kept, [*dict.fromkeys([ALL, *shown_types])])
    steps = [_step(one, run, {*shown_types}) for one in chosen_steps(run, wanted)]
    entry = entry_of(kept.folder, datetime.now(UTC))
    left_out = [] if types else sorted({*types_in(kept)} - {*shown_types})
    return ResultDocument(format=1, run=_run(entry), left_out=left_out, steps=steps)


def _that_fit(kept: Snapshot) -> list[str]:
    """The whole, and as many rollup types as there is room for, those with the fewest measurements first."""
    sizes = {kind: (kept.results / f"summary.{stem(kind)}.csv").stat().st_size for kind in types_in(kept)}
    fitting, room = [ALL], MOST_BYTES - sizes.pop(ALL, 0)
    for kind in sorted(sizes, key=lambda one: (sizes[one], one)):
        room -= sizes[kind]
        if room < 0:
            break
        fitting.append(kind)
    return fitting


def write_result(folder: Path) -> None:
    """result.json, of a run that has ended; none where no step has. Raises PlanError, OutputError."""
    if not why_no_results(folder):
        replace_file(folder, FILE, result_of(folder, ()).model_dump_json(indent=1) + "\n")


def schema() -> dict[str, Any]:
    """The JSON schema of the document."""
    return ResultDocument.model_json_schema()


def _run(entry: RunEntry) -> RunDocument:
    known = entry_data(entry)
    return RunDocument.model_validate({name: known[name] for name in RunDocument.model_fields})


def _step(step: Mapping[str, Any], run: FinishedRun, types: Collection[str]) -> StepDocument:
    rows = run.rows_of(step["number"])
    standing = standing_of(step, [row.cells for key, row in rows if key.rollup_type == ALL])
    return StepDocument(
        **{name: step[name] for name in ("number", "name", "verdict", "thresholds", "start_utc", "end_utc")},
        reasons=_reasons(step["reasons"], run.folder),
        probes=_probes(run.folder, step["number"], step["name"]),
        measurements=[
            _measurement(key, row, key.step == standing, run.folder) for key, row in rows if key.rollup_type in types
        ],
    )


def _probes(folder: Path, number: int, name: str) -> list[dict[str, int | float | bool | str]] | None:
    try:
        probes = read_probes(folder, number, name)
    except PlanError:  # what the step measured does not depend on it
        return None
    return [{column: _cell(column, text) for column, text in probe.items() if text} for probe in probes]


def _cell(column: str, text: str) -> int | float | bool | str:
    return text == "true" if column in _FLAGS else _number(text)


def _measurement(key: Key, row: StepRow, stands: bool, folder: Path) -> MeasurementDocument:
    parameters = {name: row.cells[name] for name in _PARAMETERS if row.cells.get(name)}
    figures = {name: row.figure(metric) for name, metric in METRICS.items()}
    return MeasurementDocument.model_validate({
        "name": key.step, "rollup_type": key.rollup_type, "rollup_instance": key.instance,
        "verdict": row.cells["verdict"], **{f"{scope}_verdict": str(row.verdict(scope)) for scope in Scope},
        "hosts_in": row.hosts_in, "hosts_of": row.hosts_of, "stands": stands,
        "reasons": _reasons(filter(None, row.cells["reasons"].split("; ")), folder),
        "parameters": {name: _number(text) for name, text in parameters.items()},
        "metrics": {name: value for name, value in figures.items() if value is not None},
    })  # fmt: skip


def _reasons(texts: Iterable[str], folder: Path) -> list[ReasonDocument]:
    findings = [finding_of(text, folder) for text in texts]
    return [
        ReasonDocument(reason=one.reason.word, severity=one.severity.value, detail=one.detail, remedy=one.reason.remedy)
        for one in findings
    ]


def _number(text: str) -> int | float | str:
    try:
        value = float(text)
    except ValueError:
        return text
    if not isfinite(value):
        return text
    return int(text) if text.isdecimal() else value
