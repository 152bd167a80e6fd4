"""Run folders to compare: the small run's two hosts, with latencies, facts and steps as a test wants them."""

import csv
import functools
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from ivypy.master.output.folder import RunFolder
from ivypy.master.output.record_types import HostRecord, LunRecord, RunRecord, StepRecord, SummaryRecord, WindowRecord
from ivypy.master.rollup.instances import Rollups
from ivypy.master.rollup.merge import Merger
from ivypy.master.rollup.parameters_in_force import Settings
from ivypy.master.rollup.validity import check_validity
from ivypy.master.rollup.window import Window
from ivypy.protocol.counters import SERVICES, Count, Kind
from tests.support import small_run
from tests.support.rollup_results import HostData, result

PLAN = "name: compared\nsteps: [ go: max ]\n"
DAY_S = 86400
IOS = 60  # of a workload instance in a subinterval


@dataclass(frozen=True)
class Made:
    """One run. `slower`: factor of all latencies, in which runs differ; `noise`: of its subintervals, by `seed`."""

    slower: float = 1.0
    noise: float = 0.01
    seed: int = 1
    steps: Sequence[str] = ("max",)
    subintervals: int = 8
    set_aside: frozenset[int] = frozenset()  # subintervals, ten times slower
    kernel: str = "6.1"
    firmware: str = "F1"
    plan: str = PLAN
    argv: Sequence[str] = ("ivypy", "run", "p.yaml")
    exit_code: int | None = 0  # None: the run has not ended
    began_s: int = 0  # after others
    name: str = "compared"  # of the plan
    hosts: Sequence[str] = field(default=small_run.HOSTS)

    def write(self, root: Path) -> Path:
        """Its folder, a new one under `root`. What it measured is made once for runs of its name."""
        at = datetime(2025, 11, 21, 11, 10, tzinfo=UTC) + timedelta(days=self.began_s // DAY_S)
        run = RunFolder.create(root, self.name, at)
        end = None if self.exit_code is None else small_run.START + small_run.LENGTH
        start = small_run.START + self.began_s * 10**9
        ended = start + self.subintervals * small_run.LENGTH
        steps = tuple(StepRecord(n, name, start, ended, "valid") for n, name in enumerate(self.steps))
        run.run(RunRecord("0.1.0", tuple(self.argv), "p.yaml", start, 7, end and ended, self.exit_code, steps=steps))
        run.close()
        for name, content in _measured(replace(self, began_s=0, argv=(), exit_code=0), run.path.name).items():
            (run.path / name).parent.mkdir(parents=True, exist_ok=True)
            (run.path / name).write_bytes(content)
        return run.path

    def write_all_but_the_record(self, run: RunFolder) -> None:
        rollups = small_run.rollups()
        settings = Settings.of(rollups, small_run.PARAMETERS)
        run.plan(self.plan)
        hello = replace(small_run.HELLO, kernel=self.kernel)
        run.hosts([HostRecord(host, "ssh", "10.0.0.1", hello) for host in self.hosts])
        lun = replace(small_run.LUN, attributes={"firmware": self.firmware})
        run.luns([LunRecord(host, lun) for host in self.hosts])
        for number, name in enumerate(self.steps):
            self._write_step(run, number, name, rollups, settings)

    def _write_step(self, run: RunFolder, number: int, name: str, rollups: Rollups, settings: Settings) -> None:
        merger = Merger(rollups, {host: rollups.order(host) for host in small_run.HOSTS})
        step = run.step(number, name, merger.layout, small_run.CORES)
        window, random = Window(merger.layout), np.random.default_rng([self.seed, number])
        for k in range(self.subintervals):
            aside = k in self.set_aside
            factor = self.slower * (10 if aside else 1) * float(np.exp(self.noise * random.standard_normal()))
            merger.open(k)
            for host in small_run.HOSTS:
                merger.add(host, result(_data(factor, random), k, small_run.LENGTH))
            merged = merger.close()
            (window.set_aside if aside else window.add)(merged)
            step.subinterval(small_run.record(merged, settings, "disturbed" if aside else "run"))
        measurement = window.measurement()
        validity = check_validity(measurement, settings, 0.0025, small_run.LENGTH * 1e-9)
        begin, end = small_run.START, small_run.START + self.subintervals * small_run.LENGTH
        last = self.subintervals - 1
        step.window(WindowRecord("measurement", 0, last, len(self.set_aside), begin, end, 2, "fixed time"))
        step.measured({*range(self.subintervals)} - self.set_aside)
        summary = SummaryRecord(begin, begin, end, measurement, validity, settings)
        assert summary.figures is not None
        step.histograms(summary.figures)
        run.summary(number, name, summary, rollups)


@functools.cache
def _measured(made: Made, name: str) -> dict[Path, bytes]:
    """The files of a run of this name, but for run.json, by their names in its folder."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.mkdir()
        run = RunFolder(path)
        made.write_all_but_the_record(run)
        run.close()
        return {one.relative_to(path): one.read_bytes() for one in path.rglob("*") if one.is_file()}


def _data(factor: float, random: np.random.Generator) -> HostData:
    """Two instances and classes: reads around 200 us, no response times."""
    samples = {
        (klass, SERVICES[Kind.RANDOM_READ]): (2e5 * factor * random.lognormal(0, 0.05, IOS)).astype(int).tolist()
        for klass in (0, 1)
    }
    counts = {(n, column): IOS for n in (0, 1) for column in (Count.DUE, Count.SUBMITTED, Count.COMPLETED)}
    return HostData(2, 2, samples, counts, blocksize=8192)


def sides(root: Path, before: Sequence[Made], after: Sequence[Made]) -> tuple[list[Path], list[Path]]:
    """The folders of two sides, in root/before and root/after; no two runs began at the same time."""
    ones = [replace(one, began_s=place).write(root / "before") for place, one in enumerate(before)]
    others = [replace(one, began_s=len(ones) + place).write(root / "after") for place, one in enumerate(after)]
    return ones, others


def nights(root: Path, levels: Sequence[float], **same: object) -> list[Path]:
    """The folders of runs a day apart, each so much slower, in `root`."""
    return [
        Made(level, seed=n + 1, began_s=n * DAY_S, **same).write(root)  # type: ignore[arg-type]
        for n, level in enumerate(levels)
    ]


def runs(count: int, slower: float = 1.0, **same: object) -> list[Made]:
    """So many runs that differ a little, by 0.1 % each."""
    return [Made(slower=slower * (1 + 0.001 * n), seed=n + 1, **same) for n in range(count)]  # type: ignore[arg-type]


def set_cells(run: Path, step: str, kind: str = "all", **cells: str) -> None:
    """Change cells of a step's rows in a summary."""
    path = run / f"summary.{kind}.csv"
    with path.open(newline="") as file:
        reader = csv.DictReader(file)
        header, rows = list(reader.fieldnames or ()), [row | cells if row["name"] == step else row for row in reader]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, header)
        writer.writeheader()
        writer.writerows(rows)
