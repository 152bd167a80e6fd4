"""A result as one HTML page that needs no network: a percentile slider, and time x percentile x latency as a surface.

Rule: the page gets histograms, not percentiles, so that it can answer for every percentile. To stay small they are
coarsened: at most _MOST_TIMES stretches of time and 32 buckets per power of two; the page states it.
"""

import base64
import json
from importlib.resources import files
from pathlib import Path
from typing import Final

import numpy as np

from ..readers.bucket_layouts import PER_GROUP
from ..readers.records import NS_PER_S
from ..result.series import Series
from ..result.table import LogResult

_MOST_TIMES: Final = 1200
_PLACE: Final = "/*DATA*/"


def draw(result: LogResult, series: Series, path: Path) -> None:
    page = files("ivypy.master.logs.render").joinpath("page.html").read_text(encoding="utf-8")
    # "</" would end the script element, wherever it stood.
    data = json.dumps(page_data(result, series), allow_nan=False).replace("</", "<\\/")
    path.write_text(page.replace(_PLACE, data), encoding="utf-8")


def page_data(result: LogResult, series: Series) -> dict[str, object]:
    """What the page draws: edges in us, and counts as base64 of little-endian float32, times x buckets."""
    assert series.histograms is not None
    histograms = series.histograms
    merged = -(-len(result.span) // _MOST_TIMES)
    times = -(-len(result.span) // merged)
    base = histograms.base & ~1  # pairs of buckets from an even one on share a 32nd of a power of two
    wide = histograms.cells.shape[1] + histograms.base - base
    cells = np.zeros((times, -(-wide // 2)))
    columns = (np.arange(histograms.cells.shape[1]) + histograms.base - base) // 2
    rows = (histograms.quanta - result.span.start) // merged
    np.add.at(cells, (rows[:, None], columns[None, :]), histograms.cells)
    edges = histograms.layout.edges[np.minimum(base + 2 * np.arange(cells.shape[1] + 1), histograms.layout.buckets)]
    length_s = result.length_ns / NS_PER_S
    layout = histograms.layout
    return {
        "title": f"{series.instance.quantity_name} latency, {series.instance} ({series.instance.format} logs)",
        "notes": [*result.notes, *(f"left out: {what}" for what in result.left_out)],
        "merged": merged,
        "bucket_width": 2 ** (histograms.layout.coarseness + 1) / PER_GROUP,
        "start_s": (result.span.start * result.length_ns - result.origin_ns) / NS_PER_S,
        "length_s": length_s * merged,
        "edges_us": (edges / 1000).tolist(),
        "open_us": float(layout.edges[(layout.buckets - 1) & ~1]) / 1000 if layout.open_ended else None,
        "times": times,
        "cells": base64.b64encode(cells.astype("<f4").tobytes()).decode("ascii"),
    }
