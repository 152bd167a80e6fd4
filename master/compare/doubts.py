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
    reason.word: reason
    for reason in (
        Reason.FOREIGN_IO, Reason.CPU_CONTENTION, Reason.HOST_LIMIT, Reason.UNWRITTEN_BLOCKS, Reason.EDITED,
    )
}  # fmt: skip
_MOST_NAMED: Final = 4  # runs


def doubts(runs: Sequence[FinishedRun], keys: Collection[Key]) -> Iterator[str]:
    """A sentence for each step and reason, with what the first of the runs has as its detail."""
    for key in keys:
        details: dict[str, dict[str, str]] = {}  # by reason and run
        for run in runs if key.rollup_type == ALL else ():
            for word, detail in _notes_of(run, key):
                details.setdefault(word, {})[run.name] = detail
        for word, by_run in details.items():
            detail = next(iter(by_run.values()))
            yield (
                f"{key}: doubtful: {_DOUBTFUL[word].short} in {listed([*by_run], _MOST_NAMED)}: {word}"
                f"{f' ({detail})' if detail else ''}"
            )


def _notes_of(run: FinishedRun, key: Key) -> Iterator[tuple[str, str]]:
    """(reason, detail)"""
    row = run.rows.get(key)
    for text in row.cells["reasons"].split("; ") if row else ():
        word, _, rest = text.partition("[")
        severity, _, detail = rest.partition("]")
        if word in _DOUBTFUL and severity == Severity.NOTE:
            yield word, detail.strip().removeprefix("(").removesuffix(")")
