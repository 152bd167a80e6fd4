"""`ivypy list`: which runs there are below a folder, and how each stands."""

import json
import os
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from ivypy.master.cli.results import list_runs
from ivypy.master.errors import PlanError
from ivypy.master.exit_codes import ExitCode
from ivypy.master.results.find_runs import newest_of
from ivypy.master.results.run_entries import RunState, entries_below, entry_lines, entry_of, run_folders
from ivypy.master.verdicts import Verdict
from ivypy.master.web.run_index import RunIndex

OTHER_USER = 65534
START = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


def a_run(root: Path, name: str, minutes: int = 0, ended: bool = True, verdicts: str = "", path: str = "") -> Path:
    """A folder that has only run.json. `verdicts`: of its steps, a blank for one that runs."""
    folder = root / name
    folder.mkdir(parents=True)
    start = START + timedelta(minutes=minutes)
    steps: list[dict[str, object]] = [
        {"number": n, "name": f"s{n}", "verdict": one.strip()} for n, one in enumerate(verdicts.split(","))
    ]
    record: dict[str, object] = {
        "version": "0.1.0", "plan": "p.yaml", "hosts": {"h1": {}, "h2": {}}, "steps": steps if verdicts else [],
        "start_utc": start.isoformat(), "end_utc": (start + timedelta(seconds=95)).isoformat() if ended else None,
        "exit_code": 0 if ended else None, "socket": path,
    }  # fmt: skip
    (folder / "run.json").write_text(json.dumps(record))
    return folder


def listed(*words: str) -> tuple[int, list[str], str]:
    """Exit code, lines of the output, and the errors."""
    done = CliRunner().invoke(list_runs, words, standalone_mode=False)
    if isinstance(done.exception, PlanError | click.ClickException):
        return ExitCode.PLAN, [], str(done.exception)
    assert done.exception is None, done.exception
    return done.return_value, done.stdout.splitlines(), done.stderr


@pytest.mark.parametrize(
    ("verdicts", "worst"),
    [
        ("", None),
        (" ", None),  # the first step is running
        ("valid", "valid"),
        ("valid,partial,", "partial"),
        ("failed,valid,partial", "failed"),
        ("failed,invalid,valid", "invalid"),
    ],
)
def test_the_verdict_is_the_worst_of_the_steps_that_ended(tmp_path: Path, verdicts: str, worst: str | None) -> None:
    entry = entry_of(a_run(tmp_path, "r", verdicts=verdicts), START)
    assert entry.verdict == (worst and Verdict(worst))


def test_of_a_repeated_step_the_last_attempt_counts(tmp_path: Path) -> None:
    folder = a_run(tmp_path, "r", verdicts="valid,invalid,valid")
    text = (folder / "run.json").read_text()
    (folder / "run.json").write_text(text.replace('"s2"', '"s1+attempt=2"'))
    assert entry_of(folder, START).verdict == Verdict.VALID


def test_bytes_that_are_no_utf_8_are_read(tmp_path: Path) -> None:
    """As in the path of a plan."""
    folder = a_run(tmp_path, "r")
    (folder / "run.json").write_bytes((folder / "run.json").read_bytes().replace(b"p.yaml", b"p\xff.yaml"))
    assert entry_of(folder, START).plan == "p\udcff.yaml"


def test_the_newest_run_is_found_beside_one_that_cannot_be_read(tmp_path: Path) -> None:
    for minutes, name in ((1, "old"), (2, "new")):
        a_run(tmp_path, name, minutes)
    (tmp_path / "zzz").mkdir()
    (tmp_path / "zzz" / "run.json").write_text("{")
    assert newest_of(str(tmp_path)).name == "new"


def test_a_run_without_an_end_is_running_if_its_socket_listens(tmp_path: Path) -> None:
    path = tmp_path / "s"
    folder = a_run(tmp_path, "r", ended=False, path=str(path))
    now = START + timedelta(seconds=30)
    assert entry_of(folder, now).state is RunState.CUT_OFF and entry_of(folder, now).length_s is None
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        assert entry_of(folder, now).state is RunState.CUT_OFF, "bound by a run that was killed"
        listening.listen()
        assert entry_of(folder, now).state is RunState.RUNNING and entry_of(folder, now).length_s == 30
    assert entry_of(a_run(tmp_path, "e"), now).state is RunState.ENDED


def test_the_newest_is_first_and_a_folder_can_be_copied(tmp_path: Path) -> None:
    for minutes, name in ((5, "b-with-a-name-that-is-longer-than-a-terminal-of-eighty-columns"), (9, "a"), (1, "c")):
        a_run(tmp_path, name, minutes, verdicts="valid,invalid")
    code, lines, errors = listed(str(tmp_path))
    assert (code, errors) == (ExitCode.OK, "")
    assert lines[0].split() == ["started", "state", "verdict", "length", "hosts", "steps", "IOPS", "load", "run"]
    assert [Path(line.split()[-1]).name[0] for line in lines[1:]] == ["a", "b", "c"]
    assert all(Path(line.split()[-1]).is_dir() for line in lines[1:])
    assert lines[1].split()[2:-1] == ["ended", "invalid", "1m35s", "2", "2", "-", "-"]
    assert lines[1].startswith(f"{(START + timedelta(minutes=9)).astimezone():%Y-%m-%d %H:%M} ")


def test_what_cannot_be_read_is_named_and_the_others_are_listed(tmp_path: Path) -> None:
    a_run(tmp_path, "good")
    for name, text in (("empty", ""), ("list", "[]"), ("other", '{"start_utc": "yesterday", "steps": []}')):
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").write_text(text)
    code, lines, errors = listed(str(tmp_path))
    assert code == ExitCode.PLAN and len(lines) == 2
    assert [line.split("/run.json: not read: ")[0] for line in errors.splitlines()] == [
        str(tmp_path / name) for name in ("empty", "list", "other")
    ]


def test_a_folder_may_be_a_run_empty_or_missing(tmp_path: Path) -> None:
    run = a_run(tmp_path / "runs", "one")
    assert len(listed(str(run))[1]) == 2
    assert listed(str(run / "log"))[0] == ExitCode.PLAN and "no such folder" in listed(str(run / "log"))[2]
    assert "a file" in listed(str(run / "run.json"))[2]
    (tmp_path / "empty").mkdir()
    assert listed(str(tmp_path / "empty")) == (ExitCode.OK, [], f"{tmp_path}/empty: there are no runs\n")


def test_json_has_every_entry(tmp_path: Path) -> None:
    a_run(tmp_path, "a", verdicts="valid")
    code, lines, _ = listed(str(tmp_path), "--json")
    (entry,) = json.loads("\n".join(lines))
    assert code == ExitCode.OK
    assert entry == {
        "run": "a", "folder": str(tmp_path / "a"), "state": "ended", "verdict": "valid", "exit_code": 0,
        "plan": "p.yaml", "version": "0.1.0", "start_utc": "2026-01-01T12:00:00Z", "length_s": 95.0,
        "hosts": ["h1", "h2"], "steps": ["s0"], "load": None, "overall_iops": None, "rate_verdict": None,
    }  # fmt: skip


LOAD, SHORT_LOAD = "4KiB random reads, depth 32, at max", "4KiB random reads, de~"
PARAMETERS = {
    "blocksize": "4096", "iosequencer": "random_steady", "fraction_read": "1.0", "maxtags": "32", "range": "all",
    "think_time": "0", "drop_after": "never", "iops_setting": "max",
}  # fmt: skip


def summarized(folder: Path, *rows: tuple[int, str, str, str], **parameters: str) -> Path:
    """With a summary.all.csv. `rows`: step, name, IOPS, verdict of the rate."""
    cells = PARAMETERS | parameters
    lines = [",".join(("step", "name", "verdict", "overall_iops", "rate_verdict", *cells))]
    lines += [",".join((str(step), name, rate, iops, rate, *cells.values())) for step, name, iops, rate in rows]
    (folder / "summary.all.csv").write_text("\n".join(lines) + "\n")
    return folder


@pytest.mark.parametrize(
    ("verdicts", "rows", "load", "rate"),
    [
        ("", (), "", "-"),
        ("valid", ((0, "s0", "", "invalid"),), LOAD, "-"),  # no subinterval was measured
        ("valid", ((0, "s0", "42100", "valid"),), LOAD, "42.1 k"),
        ("invalid", ((0, "s0", "42100", "invalid"),), LOAD, "[42.1 k]"),
        ("valid,valid", ((0, "s0", "42100", "valid"), (1, "s1", "21050", "partial")), LOAD, "(21.1 k)"),
        ("valid,invalid", ((0, "s0", "42100", "valid"), (1, "s1", "", "invalid")), LOAD, "42.1 k"),  # interrupted
        ("valid,valid", ((0, "s0", "42100", "valid"),), LOAD, "42.1 k"),  # the last step measured nothing
        ("valid, ", ((0, "s0", "42100", "valid"), (1, "s1", "7", "valid")), LOAD, "42.1 k"),  # the last one runs
        ("valid", ((0, "s0", "42100", "no verdict"),), "", "-"),
        ("valid", ((0, "s0", "many", "valid"),), "", "-"),
        ("valid", ((0, "s0", "nan", "valid"),), "", "-"),  # JSON has no such number
        ("valid", ((0, "s0", "inf", "valid"),), "", "-"),
    ],
)
def test_an_entry_has_the_load_and_the_rate_of_its_last_measurement(
    tmp_path: Path, verdicts: str, rows: tuple[tuple[int, str, str, str], ...], load: str, rate: str
) -> None:
    entry = entry_of(summarized(a_run(tmp_path, "r", verdicts=verdicts), *rows), START)
    assert (entry.last.load, entry.last.rate) == (load, rate)


def test_a_damaged_summary_leaves_the_run_in_the_list(tmp_path: Path) -> None:
    folder = a_run(tmp_path, "r", verdicts="valid")
    for text in (b"", b"\n\n", b"step,na", b"name\nx\n", b"step,name\n0,s0\n", b"\xff\x00"):
        (folder / "summary.all.csv").write_bytes(text)
        assert entry_of(folder, START).last.rate == "-", text


def shown_at(width: int | None, root: Path) -> list[str]:
    return entry_lines(entries_below(root, START)[0], START, width)


@pytest.mark.parametrize(
    ("width", "titles", "load"),
    [
        (None, "started state verdict length hosts steps IOPS load run", LOAD),
        (130, "started state verdict length hosts steps IOPS load run", LOAD),
        (93, "started verdict IOPS load run", LOAD),
        (80, "started verdict IOPS load run", SHORT_LOAD),
        (60, "started verdict IOPS run", ""),
    ],
)
def test_lines_fit_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, width: int | None, titles: str, load: str
) -> None:
    monkeypatch.chdir(tmp_path)
    name = "quick-20260301T120000Z"
    summarized(a_run(Path("runs"), name, verdicts="valid"), (0, "s0", "42100", "invalid"))
    head, line = shown_at(width, Path("runs"))
    assert head.split() == titles.split() and line.endswith(f"{load} runs/{name}") and "[42.1 k]" in line
    assert width is None or len(line) <= width
    assert (load or "4KiB") in line or not load


def test_a_narrow_table_has_the_state_of_a_run_that_did_not_end(tmp_path: Path) -> None:
    a_run(tmp_path, "r", ended=False, verdicts="valid")
    assert shown_at(80, tmp_path)[1].split()[2:4] == ["cut", "off"]


def test_csv_and_markdown_have_the_load(tmp_path: Path) -> None:
    summarized(a_run(tmp_path, "r", verdicts="valid"), (0, "s0", "42100", "invalid"))
    head, row = listed(str(tmp_path), "--csv")[1]
    assert head.endswith(",load,overall_iops,rate_verdict") and row.endswith(f',"{LOAD}",42100.0,invalid')
    assert f" | \\[42.1 k\\] | {LOAD} | " in listed(str(tmp_path), "--md")[1][-1]


def test_runs_that_began_in_the_same_second_have_an_order(tmp_path: Path) -> None:
    for name in ("r", "r-2", "r-3"):
        a_run(tmp_path, name)
    found, faults = entries_below(tmp_path, START)
    assert [one.folder.name for one in found] == ["r-3", "r-2", "r"] and not faults


def test_a_link_to_a_run_is_no_other_run(tmp_path: Path) -> None:
    root, elsewhere = tmp_path / "runs", tmp_path / "elsewhere"
    one, far = a_run(root, "one"), a_run(elsewhere, "far")
    (root / "again").symlink_to(one)
    (root / "a").symlink_to("one")
    (root / "far").symlink_to(far)
    (root / "farther").symlink_to(far)
    (root / "nowhere").symlink_to(tmp_path / "nowhere")
    assert sorted(run_folders(root)) == sorted([one, far.resolve()])
    found, faults = entries_below(root, START)
    assert sorted(str(entry.folder) for entry in found) == sorted([str(one), str(far.resolve())]) and not faults
    index = RunIndex([root, elsewhere, root / "again"])
    assert [entry.folder.name for _, entry in index.entries(START)] == ["one", "far"] and not index.faults


@pytest.mark.skipif(os.geteuid() != 0, reason="takes root, to give a link away")
def test_another_users_link_leads_to_their_runs_only(tmp_path: Path) -> None:
    root = tmp_path / "runs"
    root.mkdir()
    mine, theirs = a_run(tmp_path, "mine"), a_run(tmp_path, "theirs")
    os.chown(theirs, OTHER_USER, -1)
    for name, run in (("a", mine), ("b", theirs)):
        (root / name).symlink_to(run)
        os.chown(root / name, OTHER_USER, -1, follow_symlinks=False)
    assert run_folders(root) == [theirs.resolve()]
    assert [entry.folder.name for entry in entries_below(root, START)[0]] == ["theirs"]
