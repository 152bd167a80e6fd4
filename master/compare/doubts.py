"""Notes of a verdict that leave figures valid, and a comparison of them doubtful: somebody or something else took part.

Rule: pure. Invalid figures are left out by name; these count, and the reader decides.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from ..results.finished_run import FinishedRun, Key
from ..rollup.instances import ALL
from ..text.suggestions import listed
from ..verdicts import Reason, Severity

_DOUBTFUL: Final = {
    reason.word: reason for reason in (Reason.FOREIGN_IO, Reason.CPU_CONTENTION, Reason.UNWRITTEN_BLOCKS, Reason.EDITED)
}
_BRIEF: Final = Reason.FOREIGN_IO.word, Reason.UNWRITTEN_BLOCKS.word  # their details are short
_MOST_NAMED: Final = 4  # runs, or steps


def doubts(runs: Sequence[FinishedRun], keys: Collection[Key]) -> Iterator[str]:
    """A sentence for each reason: the steps and the runs, with a detail of the first."""
    noted: dict[str, list[tuple[str, str, str]]] = {}  # by reason: step, run, detail
    for key in keys:
        for run in runs if key.rollup_type == ALL else ():
            for word, detail in _notes_of(run, key):
                noted.setdefault(word, []).append((key.step, run.name, detail))
    for word, places in noted.items():
        steps, names = (list(dict.fromkeys(place[part] for place in places)) for part in (0, 1))
        detail = f" ({places[0][2]} in {places[0][1]})" if word in _BRIEF else ""
        yield (
            f"{listed(steps, _MOST_NAMED)}: doubtful: {_DOUBTFUL[word].short} in "
            f"{listed(sorted(names), _MOST_NAMED)}: {word}{detail}"
        )


def _notes_of(run: FinishedRun, key: Key) -> Iterator[tuple[str, str]]:
    """(reason, detail)"""
    row = run.rows.get(key)
    for text in row.cells["reasons"].split("; ") if row else ():
        word, _, rest = text.partition("[")
        severity, _, detail = rest.partition("]")
        if word in _DOUBTFUL and severity == Severity.NOTE:
            yield word, detail.strip().removeprefix("(").removesuffix(")")
