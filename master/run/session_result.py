"""The result of a step as plain data, for programs and notebooks."""

import html
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Never, TypeVar

from ..text.scaled import scaled_count, scaled_time
from ..text.suggestions import suggestion

Value = TypeVar("Value")
_SHOWN: Final = {
    "IOPS": ("overall_iops", scaled_count),
    "MiB/s": ("overall_mib_per_s", scaled_count),
    "service mean": ("overall_service_us_mean", scaled_time),
    "service p99": ("overall_service_us_p99", scaled_time),
    "response p99": ("overall_response_us_p99", scaled_time),
}
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

    def __getitem__(self, instance: str) -> Mapping[str, float | None]:
        return self.figures[instance]

    def __repr__(self) -> str:
        figures = self.figures.get("all=all", {})
        said = [f"{title} {text(figures.get(metric))}" for title, (metric, text) in _SHOWN.items()]
        return f"<{self.name}: {self.verdict}, {', '.join(said)}>"

    def _repr_html_(self) -> str:
        """A table of a notebook: a row for each rollup instance."""
        head = "".join(f"<th>{title}</th>" for title in ("", *_SHOWN))
        rows = []
        for instance, figures in [*self.figures.items()][:MOST_ROWS]:
            cells = "".join(f"<td>{html.escape(text(figures.get(metric)))}</td>" for metric, text in _SHOWN.values())
            rows.append(f"<tr><th>{html.escape(instance)}</th>{cells}</tr>")
        more = f"<p>and {len(self.figures) - MOST_ROWS} more</p>" if len(self.figures) > MOST_ROWS else ""
        reasons = "".join(f"<li>{html.escape(one)}</li>" for one in self.reasons)
        title = f"<b>{html.escape(self.name)}</b>: {html.escape(self.verdict)}"
        return f"<p>{title}</p><table><tr>{head}</tr>{''.join(rows)}</table>{more}<ul>{reasons}</ul>"
