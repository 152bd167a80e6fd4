"""Counts by address: in so many sections of each LUN, the I/Os that began there, and their service times.

Rule: exact sums and maxima, in any order, of workload instances; those of a row are made when somebody asks for them.
The sections of a LUN have one size: the n-th of a row is the n-th of every LUN in it, be they of different sizes.
"""

from typing import Final

import numpy as np

from ...protocol.counters import LONGEST, SectionCount
from .arrays import Words
from .merge_layout import MergeLayout

ADDED: Final = [column for column in SectionCount if column not in LONGEST]


def sum_of_sections(sections: Words, more: Words) -> Words:
    """Of two subintervals, or two sums of them: (I, sections, SectionCount)."""
    total = sections + more
    total[..., LONGEST] = np.maximum(sections[..., LONGEST], more[..., LONGEST])
    return total


def sections_of_rows(layout: MergeLayout, sections: Words) -> Words:
    """Of instances (I, sections, SectionCount) as those of rows (R, sections, SectionCount)."""
    shape = sections.shape[1:]
    classes = np.zeros((len(layout.class_host), *shape), np.uint64)
    rows = np.zeros((len(layout.rollups.rows), *shape), np.uint64)
    for columns, combine in ((ADDED, np.add), (list(LONGEST), np.maximum)):
        of_classes, of_rows = classes[..., columns], rows[..., columns]
        layout.to_classes.into(of_classes, sections[..., columns], combine)
        for reduction in layout.to_rows:
            reduction.into(of_rows, of_classes, combine)
        rows[..., columns] = of_rows
    return rows
