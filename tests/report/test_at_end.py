"""The report at a run's end: in its folder, soon, and never in the way of the run."""

import re
import shutil
import sys
from pathlib import Path
from threading import Event

import pytest

from ivypy.master.report import one_file, write_report
from ivypy.master.report.archive import Archive
from ivypy.master.report.write_report import WHY_NOT, line_at_end
from tests.support.made_once import Store
from tests.support.real_runs import ivypy, once, the_first_plan, written

PLAN = """
hosts: [ local ]
engine: { backend: "null" }
luns: { files: [ %s ] }
workloads: { w: { iops: 200 } }
defaults: { subinterval: 250ms, warmup: 250ms, measure: 500ms, cooldown: 0s }
%s
steps: [ go: one ]
"""


@pytest.fixture
def folder(run_folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(run_folder, tmp_path / run_folder.name))


def test_it_is_in_the_runs_folder(folder: Path) -> None:
    size = re.fullmatch(r"report: \S+/report\.html: (\d\.\d) MB", line_at_end(folder))
    assert size and float(size[1]) < 2.6


def test_whatever_happens_is_a_line(folder: Path) -> None:
    assert line_at_end(folder / "nowhere").startswith(WHY_NOT)
    (folder / "report.html").write_text("mine")
    assert line_at_end(folder).endswith("a file that ivypy has not written; name another")


def test_a_bug_is_a_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Archive, "content", lambda self: 1 / 0)
    assert line_at_end(folder) == f"{WHY_NOT}ZeroDivisionError: division by zero"


def test_a_disk_that_takes_nothing_is_not_waited_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stuck = Event()
    monkeypatch.setattr(write_report, "write_report", lambda *_: stuck.wait())
    line = line_at_end(folder, patience_s=0.01)
    stuck.set()
    assert line == f"{WHY_NOT}it took longer than 0.01 s; `ivypy report {folder}` writes it"


def test_what_takes_long_is_left_out(folder: Path) -> None:
    line_at_end(folder, recording_s=0.0)
    assert "charts of 3 of 3 instances of host" in (folder / "report.html").read_text()


def test_a_missing_plotly_is_one_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line_at_end(folder)  # what it imports is there
    one_file._plotly.cache_clear()
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.delitem(sys.modules, "plotly", raising=False)
    assert line_at_end(folder) == f"{WHY_NOT}a report needs plotly: pip install plotly"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "expected"),
    [("", True), ("report: false", False)],
)
def test_a_run_writes_it_unless_it_is_not_wanted(tmp_path: Path, key: str, expected: bool) -> None:
    data = tmp_path / "data"
    data.write_bytes(bytes(1 << 20))
    plan = written(tmp_path, PLAN % (data, key))
    ran = ivypy("run", "-o", str(tmp_path / "runs"), "--ui", "lines", str(plan))
    (made,) = (tmp_path / "runs").iterdir()
    assert (made / "report.html").is_file() is expected, ran
    assert "report" not in ran.stdout, "a log has its folder as its last line"
    assert re.fullmatch(r"report: \S+/report\.html: \d\.\d MB\n" if expected else "", ran.stderr)


@pytest.mark.slow
def test_a_run_with_no_report_writes_none(store: Store) -> None:
    ran = once(store, the_first_plan)
    assert (ran.folder / "run.json").is_file() and not (ran.folder / "report.html").exists()
    assert ran.err == "" and "report" not in ran.out
