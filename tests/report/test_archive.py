"""What a report carries: the answers of RunData, as many as the limits allow, and what is left out is said."""

import base64
import gzip
import json
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest

from ivypy.master.errors import PlanError
from ivypy.master.pages.run_data import RunData
from ivypy.master.report.archive import ArchiveLimits, archive_of
from tests.support.compared_runs import Made

NOTHING = ArchiveLimits(most_bytes=0)


def plain(answer: dict[str, Any]) -> bytes:
    """The bytes of a recorded answer."""
    if "gzip" in answer:
        return gzip.decompress(base64.b64decode(answer["gzip"]))
    return json.dumps(answer, separators=(",", ":")).encode()


def parsed(answer: dict[str, Any]) -> Any:
    return json.loads(plain(answer))


def asked(data: RunData, address: str) -> bytes:
    """What RunData answers to an address of a step."""
    parts = urlsplit(address)
    _, _, _, _, _, step, name = parts.path.split("/")
    query = dict(parse_qsl(parts.query))
    chosen = {key: query[key] for key in ("by", "instance") if key in query}
    answer = getattr(data, name)(int(step), **chosen)
    return answer if isinstance(answer, bytes) else json.dumps(answer, separators=(",", ":")).encode()


@pytest.mark.slow
def test_every_answer_is_that_of_the_runs_data(run_folder: Path) -> None:
    archive, data = archive_of([run_folder], ArchiveLimits()), RunData(run_folder)
    of_steps = [one for one in archive.answers if "/steps/" in one]
    for address in of_steps:
        assert plain(archive.answers[address]) == asked(data, address), address
    assert archive.left_out == []
    document = parsed(archive.answers[f"/api/runs/{run_folder.name}"])
    assert document["run"].pop("id") == run_folder.name
    assert document == data.document()
    assert parsed(archive.answers["/api/runs"]) == {
        "runs": [document["run"] | {"id": run_folder.name}], "control": False,
    }  # fmt: skip
    for step in document["steps"]:
        for by, instances in step["rollups"].items():
            for instance in instances:
                for name in ("series", "histograms", "distribution"):
                    found = [one for one in of_steps if f"/{step['number']}/{name}?by={by}&instance={instance}" in one]
                    assert len(found) == 1, (by, instance)


def test_addresses_are_those_of_the_page(tmp_path: Path) -> None:
    """encodeURIComponent leaves !'()*-._~ as they are, and makes %XX of all else."""
    folder = Made().write(tmp_path)
    odd = folder.rename(tmp_path / "a b+c&d (1)~é")
    assert "/api/runs/a%20b%2Bc%26d%20(1)~%C3%A9" in archive_of([odd], NOTHING).answers


@pytest.mark.slow
def test_instances_are_left_out_where_the_report_is_large_enough(run_folder: Path) -> None:
    archive = archive_of([run_folder], NOTHING)
    assert not [one for one in archive.answers if "by=host&instance" in one]
    assert [one for one in archive.answers if "instances?by=host" in one], "their table is there"
    assert [line.partition(";")[0] for line in archive.left_out] == [
        f"{run_folder.name}: charts of 2 of 2 instances of workload",
        f"{run_folder.name}: charts of 3 of 3 instances of host",
    ]
    document = parsed(archive.answers[f"/api/runs/{run_folder.name}"])
    offered = {"all": ["all"], "host": [], "workload": []}
    assert [one["rollups"] for one in (document, *document["steps"])] == [offered] * 3


def test_small_types_come_first_until_it_is_late(run_folder: Path) -> None:
    answers = iter([False] * 3 + [True] * 9)
    archive = archive_of([run_folder], ArchiveLimits(is_late=lambda: next(answers)))
    assert parsed(archive.answers[f"/api/runs/{run_folder.name}"])["rollups"] == {
        "all": ["all"], "host": ["a"], "workload": ["oltp", "scan"],
    }  # fmt: skip
    assert archive.left_out[0].startswith(f"{run_folder.name}: charts of 2 of 3 instances of host")


def test_outliers_come_first(tmp_path: Path, run_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = RunData.instances

    def with_outlier(self: RunData, step: int, by: str) -> dict[str, Any]:
        found = tables(self, step, by)
        for one in found["instances"]:
            one["z_iops"], one["outlier"] = {"a": (3.0, False), "b": (4.0, True), "c": (-5.0, False)}.get(
                one["instance"], (0.0, False)
            )
        return found

    monkeypatch.setattr(RunData, "instances", with_outlier)
    answers = iter([False] * 3 + [True] * 9)
    archive = archive_of([run_folder], ArchiveLimits(is_late=lambda: next(answers)))
    assert parsed(archive.answers[f"/api/runs/{run_folder.name}"])["rollups"]["host"] == ["b"]


def test_runs_of_one_name_are_kept_apart_and_a_run_is_there_once(run_folder: Path, tmp_path: Path) -> None:
    one, two = run_folder, tmp_path / run_folder.name
    shutil.copytree(one, two)
    (row,) = two.glob("step0000.*/all/all.csv")
    row.write_text("\n".join(row.read_text().splitlines()[:3]) + "\n")
    archive = archive_of([one, two, one], NOTHING)
    runs = parsed(archive.answers["/api/runs"])["runs"]
    assert [run["id"] for run in runs] == [f"{one.name}-2", one.name]
    for run, folder in zip(runs, (two, one), strict=True):
        address = f"/api/runs/{run['id']}/steps/0/series?by=all&instance=all&from=0"
        assert parsed(archive.answers[address]) == RunData(folder).series(0)


def test_the_runs_are_listed_the_newest_first(run_folder: Path, tmp_path: Path) -> None:
    """As the page says, whatever the order of the arguments."""
    starts = {"b": "2026-03-01T12:00:00Z", "c": "2026-03-01T12:00:00.5Z", "a": "2026-01-01T12:00:00Z"}
    for name, start in starts.items():
        record = json.loads((shutil.copytree(run_folder, tmp_path / name) / "run.json").read_text())
        (tmp_path / name / "run.json").write_text(json.dumps({**record, "start_utc": start}))
    runs = parsed(archive_of([tmp_path / name for name in "bac"], NOTHING).answers["/api/runs"])["runs"]
    assert [run["id"] for run in runs] == ["c", "b", "a"]


DAMAGED = ("histograms.sqlite", "step0000.climb/all/all.csv", "step0000.climb/all/all.histogram.csv")


@pytest.mark.slow
@pytest.mark.parametrize("name", DAMAGED)
@pytest.mark.parametrize("damage", ["gone", "bytes", "cut off"])
def test_of_a_damaged_run_there_is_what_can_be_read(run_folder: Path, tmp_path: Path, name: str, damage: str) -> None:
    copy = tmp_path / run_folder.name
    shutil.copytree(run_folder, copy)
    path = copy / name
    whole = path.read_bytes()
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(b"\0\xff" * 99 if damage == "bytes" else whole[: len(whole) // 2])
    archive = archive_of([copy], ArchiveLimits())
    address = f"/api/runs/{copy.name}/steps/0/"
    for what in ("series", "histograms", "distribution"):
        assert f"{address}{what}?by=all&instance=all" + ("&from=0" if what != "distribution" else "") in archive.answers
    if (name, damage) == ("histograms.sqlite", "bytes"):
        assert archive.left_out[0].startswith(f"{copy.name}: histograms of step 0 climb: ")


def test_a_run_that_has_no_step_yet_is_a_report(tmp_path: Path) -> None:
    folder = Made(steps=(), exit_code=None).write(tmp_path)
    archive = archive_of([folder], ArchiveLimits())
    assert {unquote(one) for one in archive.answers} == {"/api/runs", f"/api/runs/{folder.name}"}


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PlanError):
        archive_of([tmp_path], ArchiveLimits())
