"""The result of a step as plain data, for programs and notebooks.

Rule: a figure that a verdict discredits is shown in brackets, as in every table.
"""

import html
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Never, TypeVar

from ...summary.headline import IN_NOTEBOOKS, figure_text, grouped, marked, scope_of, title_of
from ...text.suggestions import suggestion
from ...verdicts import Verdict

Value = TypeVar("Value")
_TITLES: Final = [f"{time} {title_of(metric)}".strip() for time, some in grouped(IN_NOTEBOOKS) for metric in some]
MOST_ROWS: Final = 100  # rollup instances in a table


class Known(dict[str, Value]):
    """Figures, or steps, by name; a name that there is not is a KeyError that names the nearest."""

    def __missing__(self, name: str) -> Never:
        raise KeyError(f"there is no {name!r}{suggestion(name, self) or f'; there are {_some(self)}'}")


def _some(names: Iterable[str]) -> str:
    first = [*names]
    return ", ".join(first[:8]) + (f" and {len(first) - 8} more" if len(first) > 8 else "")


@dataclass(frozen=True, slots=True, repr=False)
class SessionResult:
    """The result of a step. `result["host=h1"]["overall_iops"]` is a figure of a rollup instance."""

    name: str
    verdict: str  # valid, partial, failed or invalid
    reasons: tuple[str, ...]  # each a reason's word, with what was seen
    figures: Mapping[str, Mapping[str, float | None]]  # by rollup instance, then by metric; None: blank in the CSV too
    measured: "tuple[SessionResult, ...]" = ()  # each measurement by itself, named as its summary row; these have none
    verdicts: Mapping[str, Mapping[str, str]] = field(
        default_factory=dict
    )  # by rollup instance, then by scope: rate ...

    def __getitem__(self, instance: str) -> Mapping[str, float | None]:
        return self.figures[instance]

    def __repr__(self) -> str:
        said = [f"{title} {cell}" for title, cell in zip(_TITLES, self._cells("all=all"), strict=True)]
        return f"<{self.name}: {self.verdict}, {', '.join(said)}>"

    def _cells(self, instance: str) -> list[str]:
        figures, verdicts = self.figures.get(instance, {}), self.verdicts.get(instance, {})
        return [
            marked(figure_text(metric, figures.get(metric)), Verdict(verdicts.get(scope_of(metric), Verdict.VALID)))
            for metric in IN_NOTEBOOKS
        ]

    def _repr_html_(self) -> str:
        """A table of a notebook: a row for each rollup instance."""
        head = "".join(f"<th>{title}</th>" for title in ("", *_TITLES))
        rows = []
        for instance in [*self.figures][:MOST_ROWS]:
            cells = "".join(f"<td>{html.escape(cell)}</td>" for cell in self._cells(instance))
            rows.append(f"<tr><th>{html.escape(instance)}</th>{cells}</tr>")
        more = f"<p>and {len(self.figures) - MOST_ROWS} more</p>" if len(self.figures) > MOST_ROWS else ""
        reasons = "".join(f"<li>{html.escape(one)}</li>" for one in self.reasons)
        title = f"<b>{html.escape(self.name)}</b>: {html.escape(self.verdict)}"
        return f"<p>{title}</p><table><tr>{head}</tr>{''.join(rows)}</table>{more}<ul>{reasons}</ul>"
