"""The arrays into which rows of a histogram log are parsed: as large as any batch of text can fill.

Rule: every parse overwrites the previous one; a caller copies what it keeps.
"""

import numpy as np

from ..native._rows import parse_histograms
from .line_chunks import CHUNK
from .source import Source
from .text_rows import Parsed


class HistogramRows:
    """`first[n]` is where row n's entries begin among `buckets` and `counts`; its last element ends the last row."""

    def __init__(self, source: Source) -> None:
        self._lead = source.lead
        self._columns = source.layout.buckets
        # A row has a cell of at least two characters for each column, and a cell is an entry at most.
        most_rows, most_entries = CHUNK // (2 * self._columns) + 1, CHUNK // 2 + self._columns
        self.stamps, self.sizes = np.empty(most_rows, np.int64), np.empty(most_rows, np.int64)
        self.directions, self.first = np.empty(most_rows, np.uint8), np.empty(most_rows + 1, np.int64)
        self.buckets, self.counts = np.empty(most_entries, np.uint16), np.empty(most_entries, np.uint64)

    def parse(self, text: memoryview) -> Parsed:
        """(rows, entries, ...) of the text."""
        return parse_histograms(
            text, self._lead, self._columns, self.stamps, self.directions, self.sizes, self.first, self.buckets,
            self.counts,
        )  # fmt: skip
