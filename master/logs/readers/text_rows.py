"""The common part of the three readers of text: chunks to rows, bad lines to faults.

Rule: a bad line is left out and named; a file with more than a few of them is no log, and its rest is left out.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from ..faults import Fault
from .bad_lines import explain, line_at
from .line_chunks import StreamError, chunks, open_log
from .source import Source

_MOST_BAD_LINES: Final = 10

Parsed = tuple[int, int, int, int, bool]  # as _rows.pyi has it


@dataclass(slots=True)
class Reading:
    """One log while it is read: where in it we are, and what was wrong so far."""

    source: Source
    faults: list[Fault] = field(default_factory=list)
    line: int = 1  # the number of the first line of what was parsed last
    rows: int = 0
    blank_lines: int = 0
    has_open_end: bool = False  # the last line was read, but has no newline
    late_rows: int = 0  # fio histograms: rows that came after a stall
    repeated_jobs: int = 0  # fio: jobs of a shared log whose first I/Os are those of an earlier one
    catch_up_rows: int = 0  # fio histograms: rows with the stamp of the one before

    def fault(self, what: str, remedy: str = "", line: int | None = None, left_out: str = "the line") -> None:
        self.faults.append(Fault(self.source.name, what, remedy, line, left_out))

    def notes(self) -> Iterator[str]:
        """Notes: what is no fault, but should be known."""
        if self.has_open_end:
            yield f"{self.source.name}: the last line has no newline: its last number may be cut off"
        if self.blank_lines:
            lines = "a blank line is" if self.blank_lines == 1 else f"{self.blank_lines:,} blank lines are"
            yield f"{self.source.name}: {lines} left out"
        if self.repeated_jobs:
            yield (
                f"{self.source.name}: {self.repeated_jobs} of its jobs begins as an earlier one does: is the log in it "
                "twice? Then its I/Os count twice"
            )
        if self.rows == 1:
            yield f"{self.source.name}: holds one row only"

    def parse(self, parser: Callable[[memoryview], Parsed]) -> Iterator[tuple[memoryview, Parsed]]:
        """Run `parser` over the log; yield what it read, with the text that it was read from."""
        bad_lines = 0
        try:
            with open_log(self.source.content or self.source.path) as stream:
                for text, cut in chunks(stream):
                    while len(text):
                        parsed = parser(text)
                        rows, _, lines, used, bad = parsed
                        if rows:
                            yield text[:used], parsed
                        self.line += lines
                        self.rows += rows
                        self.blank_lines += lines - rows
                        text = text[used:]
                        self.has_open_end = cut and not bad and not len(text)
                        if not bad:
                            continue
                        bad_lines += 1
                        wrong = line_at(text, 0)
                        rest = text[len(bytes(text).split(b"\n", 1)[0]) + 1 :]
                        self.fault(explain(wrong, self.source, cut and not len(rest)), line=self.line)
                        if bad_lines > _MOST_BAD_LINES:
                            self.fault("has more bad lines than a log has", line=self.line, left_out="the rest")
                            return
                        self.line += 1
                        text = rest
        except StreamError as error:
            self.fault(str(error), line=self.line, left_out="the rest")
