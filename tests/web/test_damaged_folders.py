"""A run's folder that is damaged, or made to do harm, costs that run alone: the list and all other runs are shown."""

import json
import os
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ivypy.master.pages.run_data import RunData
from ivypy.master.results.checked_files import RUN_JSON
from ivypy.master.web.run_index import RunIndex
from tests.support.made_once import Store
from tests.support.small_run import write_run
from tests.support.web_page import page_of

pytestmark = pytest.mark.slow

ANSWERS = (
    "", "series", "histograms", "cpu", "instances?by=host", "distribution", "control", "elements",
    "element_lines?metric=array.mp_busy_percent",
)  # fmt: skip
ELEMENTS = "subinterval,end_utc,connector_host,element,participating,busy_percent\n"


def written(name: str, make: Callable[[Path], Any]) -> Callable[[Path], None]:
    """A file more in the first step's folder."""

    def damage(run: Path) -> None:
        (step,) = run.glob("step0000.*")
        (step / name).parent.mkdir(exist_ok=True)
        make(step / name)

    return damage


def record(**changed: Any) -> Callable[[Path], None]:
    def damage(run: Path) -> None:
        path = run / RUN_JSON
        path.write_text(json.dumps({**json.loads(path.read_text()), **changed}))

    return damage


def replaced(name: str, make: Callable[[Path], Any]) -> Callable[[Path], None]:
    def damage(run: Path) -> None:
        (path,) = run.glob(name)
        path.unlink()
        make(path)

    return damage


UNLISTED = {
    "a pipe": replaced(RUN_JSON, os.mkfifo),
    "no JSON": replaced(RUN_JSON, lambda path: path.write_text("{")),
    "before the first year": record(start_utc="0001-01-01T00:00:00+14:00"),
    "after the last year": record(end_utc="9999-12-31T23:59:59-14:00"),
}
SHOWN_IN_PARTS = {
    "events of a pipe": replaced("events.csv", os.mkfifo),
    "events at no time": replaced(
        "events.csv", lambda path: path.write_text("utc,step,subinterval,host,kind,text\nx,0,0,,mark,x\n")
    ),
    "rows of a pipe": replaced("step0000.*/all/all.csv", os.mkfifo),
    "a plan of a pipe": replaced("plan.yaml", os.mkfifo),
    "no text as a name": record(
        steps=[{"number": 0, "name": "\ud800", "verdict": "valid", "start_utc": "2026-01-01T00:00:00Z"}]
    ),
    "gathers of a pipe": written("gathers.csv", os.mkfifo),
    "gathers of another version": written("gathers.csv", lambda path: path.write_text("a,b\n1,2\n")),
    "gathers at no subinterval": written(
        "gathers.csv", lambda path: path.write_text("subinterval,connector,host,state,why\nx,array,,late,\n")
    ),
    "elements of a pipe": written("connectors/array.mp.csv", os.mkfifo),
    "elements of another version": written("connectors/array.mp.csv", lambda path: path.write_text("a,b\n1,2\n")),
    "elements at no subinterval": written(
        "connectors/array.mp.csv", lambda path: path.write_text(f"{ELEMENTS}x,t,,0,1,5\n")
    ),
    "elements before the first": written(
        "connectors/array.mp.csv", lambda path: path.write_text(f"{ELEMENTS}-5,t,,0,1,5\n")
    ),
    "elements long after the last": written(
        "connectors/array.mp.csv", lambda path: path.write_text(f"{ELEMENTS}{10**15},t,,0,1,5\n")
    ),
    "no number as a value": written("connectors/array.mp.csv", lambda path: path.write_text(f"{ELEMENTS}0,t,,0,1,x\n")),
    "no histograms": replaced("histograms.sqlite", lambda path: path.write_text("x")),
    "histograms of a pipe": replaced("histograms.sqlite", os.mkfifo),
}


@pytest.fixture
def good(tmp_path: Path, store: Store) -> Path:
    made = store.run(write_run)
    return Path(shutil.copytree(made, tmp_path / "runs" / made.name))


def damaged(good: Path, damage: Callable[[Path], None]) -> Path:
    bad = good.with_name("bad")
    shutil.copytree(good, bad)
    if not (bad / "plan.yaml").exists():
        (bad / "plan.yaml").write_text("x")
    damage(bad)
    return bad


@pytest.mark.parametrize("damage", UNLISTED.values(), ids=[*UNLISTED])
async def test_a_run_that_cannot_be_read_is_named_beside_the_others(good: Path, damage: Callable[[Path], None]) -> None:
    bad = damaged(good, damage)
    async with page_of(good.parent) as page, page.client.get(f"{page.address}/api/runs") as response:
        said = await response.json()
    assert [run["folder"] for run in said["runs"]] == [str(good)]
    (why,) = said["not_read"]
    assert why.startswith(f"{bad}/{RUN_JSON}: not read: ")


@pytest.mark.parametrize("damage", SHOWN_IN_PARTS.values(), ids=[*SHOWN_IN_PARTS])
async def test_every_answer_of_a_damaged_run_is_data_or_a_sentence(good: Path, damage: Callable[[Path], None]) -> None:
    bad = damaged(good, damage)
    async with page_of(good.parent) as page:
        for name in ANSWERS:
            address = f"{page.of(bad)}/steps/0/{name}" if name else page.of(bad)
            async with page.client.get(address) as response:
                assert response.status in (200, 404, 500)
                if response.status != 200:
                    assert "ivypy itself failed" not in await response.text(), name
        async with page.client.get(page.of(good)) as response:
            assert response.status == 200


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
FIELDS = ("steps", "hosts", "start_utc", "end_utc", "exit_code", "socket", "plan")
DATES = st.sampled_from(["", "x", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "2026-01-01"])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(field=st.sampled_from(FIELDS), value=JSON | DATES)
def test_whatever_one_run_says_of_itself_the_others_are_listed(tmp_path: Path, field: str, value: Any) -> None:
    for name, changed in (("good", {}), ("bad", {field: value})):
        (tmp_path / name).mkdir(exist_ok=True)
        said = {"start_utc": "2026-01-01T00:00:00Z", "end_utc": "2026-01-01T00:01:00Z", **changed}
        (tmp_path / name / RUN_JSON).write_text(json.dumps(said))
    index = RunIndex([tmp_path])
    folders = [entry.folder.name for _, entry in index.entries(datetime.now(UTC))]
    assert "good" in folders and len(folders) + len(index.faults) == 2


def test_a_table_that_names_files_elsewhere_leads_nowhere(good: Path) -> None:
    (index,) = good.glob("step0000.*/index.csv")
    index.write_text(
        f"rollup_type,rollup_instance,file\nall,all,all/all.csv\nport,up,../../events.csv\nport,root,{good}/events.csv\n"
    )
    data = RunData(good)
    for instance in ("up", "root"):
        assert data.series(0, "port", instance)["subinterval"] == []
