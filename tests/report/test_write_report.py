"""The report as a file: it takes the place of no other file, holds no markup of others, and needs nothing else."""

import json
import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from ivypy.master.cli.commands import cli
from ivypy.master.errors import PlanError
from ivypy.master.exit_codes import ExitCode
from ivypy.master.report.archive import Archive, ArchiveLimits
from ivypy.master.report.one_file import page_of
from ivypy.master.report.write_report import write_report
from ivypy.master.results.measured_rows import read_measured

SMALL = ArchiveLimits(most_bytes=0)


@pytest.fixture
def folder(run_folder: Path, tmp_path: Path) -> Path:
    """A copy, to be written into."""
    return Path(shutil.copytree(run_folder, tmp_path / run_folder.name))


def said(*words: object) -> tuple[int, str, str]:
    ran = CliRunner().invoke(cli, ["report", *map(str, words)], standalone_mode=False)
    if isinstance(ran.exception, PlanError):
        return ran.exception.exit_code, ran.output, str(ran.exception)
    assert ran.exception is None, ran.exception
    return ran.return_value, ran.stdout, ran.stderr


def test_the_command_writes_into_the_runs_folder_and_says_the_size(folder: Path) -> None:
    code, out, _ = said(folder)
    size = (folder / "report.html").stat().st_size
    assert (code, out) == (ExitCode.OK, f"{folder}/report.html: {size / 1e6:.1f} MB\n")
    assert size < 2.6e6, "most of it is Plotly"


def test_several_runs_are_one_file_in_the_current_folder(
    folder: Path, run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert said(folder, run_folder)[1].startswith("report.html: ")
    answers = archive_in(tmp_path / "here" / "report.html")["answers"]
    name = run_folder.name
    assert {one for one in answers if "/steps/" not in one} == {
        "/api/runs", f"/api/runs/{name}", f"/api/runs/{name}-2",
    }  # fmt: skip


def archive_in(path: Path) -> dict[str, dict[str, object]]:
    (data,) = re.findall(r'<script type="application/json" id="archive">(.*?)</script>', path.read_text())
    return json.loads(data)  # type: ignore[no-any-return]


OTHERS = {
    "another page": "<!doctype html><html></html>",
    "a plan": "name: x\n",
    "a text that speaks of reports": "see ivypy report\n",
}


@pytest.mark.parametrize("text", OTHERS.values(), ids=[*OTHERS])
def test_no_other_file_is_overwritten(run_folder: Path, tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.html"
    path.write_text(text)
    with pytest.raises(PlanError, match="not written; name another"):
        write_report(path, [run_folder], SMALL)
    assert path.read_text() == text


def test_an_earlier_report_and_an_empty_file_are_replaced(run_folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "x.html"
    path.touch()
    write_report(path, [run_folder], SMALL)
    first = path.read_text()
    path.write_text(first[: len(first) // 2])  # of a disk that was full
    write_report(path, [run_folder], SMALL)
    assert path.read_text() == first


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["-o", "{tmp}/plan.yaml"], "must end in .html"),
        (["-o", "{tmp}/nowhere/x.html"], "there is no folder"),
    ],
)
def test_a_wrong_place_is_refused(folder: Path, tmp_path: Path, words: list[str], says: str) -> None:
    code, _, err = said(folder, *(word.format(tmp=tmp_path) for word in words))
    assert code == ExitCode.PLAN and says in err


def test_markdown_has_the_table_and_what_the_verdicts_mean(run_folder: Path) -> None:
    code, out, err = said(run_folder, "--md")
    assert (code, err) == (ExitCode.OK, "") and not (run_folder / "report.html").exists()
    measured = read_measured(run_folder, "all", ())
    assert all(f"| {step.number} " in out for step in measured.steps)
    assert "- **failed**: " in out and "- **invalid**: " in out and "- **valid**" not in out
    assert "- `load_not_sustained`: Outstanding I/O of" in out


def test_only_the_two_scripts_of_the_page_may_run(run_folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "x.html"
    write_report(path, [run_folder], SMALL)
    text = path.read_text()
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="(.*?)"', text)
    assert "default-src 'none'" in policy and "unsafe-eval" not in policy
    assert re.search(r"script-src 'sha256-[\w+/=]+' 'sha256-[\w+/=]+';", policy)
    assert not re.search(r'(src|href)="(?!#|data:)', text), "it needs no other file"
    assert "alert(1)" not in re.sub(r'id="archive">.*?</script>', "", text)


def test_names_cannot_end_a_script_or_a_title() -> None:
    archive = Archive()
    archive.add("/api/runs", {"runs": ["</script><!--<script>"]})
    page = page_of(archive.content(), "</title><script>alert(1)</script>")
    assert "</title><script>alert" not in page and "&lt;/title&gt;" in page
    (data,) = re.findall(r'id="archive">(.*?)</script>', page)
    assert json.loads(data)["answers"]["/api/runs"] == {"runs": ["</script><!--<script>"]}
