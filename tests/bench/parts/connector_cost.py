"""What a connector with many elements costs the controller: whole runs over sockets, without and with it, in turns.

The connector is a process of its own, of which nothing is counted: the figure is the CPU time of the controller's
process, all its threads, in each subinterval.
"""

import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from tests.bench.parts import cheap_connector
from tests.bench.parts.transport import Meter, Shape, decided_ms, far_side, run

BEGINNING: Final = 2  # subintervals more that are not counted


def measure(shape: Shape, lines: Sequence[bytes], pairs: int, elements: int, attributes: int) -> None:
    """Print a line for each run and the difference of the pairs."""
    shape = replace(shape, subintervals=BEGINNING + shape.subintervals)
    program = f"{sys.executable} {cheap_connector.__file__} {elements} {attributes}"
    section = f"connectors: {{ host: off, array: {{ program: {program} }} }}"
    cost: dict[bool, list[float]] = {False: [], True: []}
    with tempfile.TemporaryDirectory(prefix="ivypy-bench-") as made, ExitStack() as far:
        root = Path(made)
        named, opening = far.enter_context(far_side(shape, lines, root))
        for pair in range(pairs):
            for gathers in (False, True) if pair % 2 == 0 else (True, False):
                meter = Meter()
                runs = root / f"runs{pair}{gathers}"
                folder = run(shape, named, opening, runs, lambda plan: meter, section if gathers else "")  # noqa: B023
                spent = meter.seconds()["controller"][BEGINNING:]
                cost[gathers].append(float(np.median(spent)))
                ms = [one for _, one in sorted(decided_ms(folder).items())]
                written = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / len(ms)
                print(
                    f"{'with' if gathers else 'without':8} {cost[gathers][-1] * 1e3:6.1f} ms of CPU a subinterval"
                    f" ({min(spent) * 1e3:.1f} to {max(spent) * 1e3:.1f}), decided in {np.median(ms):.1f} ms,"
                    f" {written / 1e3:.0f} kB written",
                    flush=True,
                )
    more = np.array(cost[True]) - np.array(cost[False])
    print(
        f"{elements} elements x {attributes} attributes, {shape.hosts} hosts, {shape.length_s:g} s subintervals:"
        f" {np.median(more) * 1e3:+.1f} ms of CPU a subinterval ({more.min() * 1e3:+.1f} to {more.max() * 1e3:+.1f}),"
        f" {np.median(more) / shape.length_s * 100:+.2f} % of a core"
    )
