"""`GET /api/compare`: the comparison of runs that a client names."""

from pathlib import Path

import pytest

from ivypy.master.web.compared import compared
from ivypy.master.web.run_index import run_id
from tests.support.compared_runs import nights
from tests.support.web_page import page_of

pytestmark = pytest.mark.slow


async def test_runs_are_compared_by_their_ids_and_faults_are_sentences(tmp_path: Path) -> None:
    runs = nights(tmp_path / "runs", [1.0, 1.001, 0.999, 1.1, 1.101, 1.099])
    nights(tmp_path / "runs", [1.0], steps=("other",), name="other")
    *ids, other = [run_id(one.resolve()) for one in sorted((tmp_path / "runs").iterdir())]
    a, b = ",".join(ids[:3]), ",".join(ids[3:])
    cases = [
        (f"a={a}&b={b}", 200, "Regression: worse by more than 3 %"),
        (f"a={a}&b={b}&metric=p50", 200, "service_us_p50"),
        (f"a={a}&b={b}&max_regression=15%25", 200, "No regression: no figure is worse by more than 15 %"),
        (f"a={a}&b={b}&max_regression=15", 422, "write 15% if percent is meant"),
        (f"a={a}&b={b}&max_regression=100%25", 422, "from 0% to below 100%"),
        (f"a={a}", 400, "name the ids of the runs of each side"),
        (f"a={a}&b=no", 404, "There is no no"),
        (f"a={a}&b={other}", 422, "no step has the same name on both sides"),
        (f"a={a}&b={b}&metric=p5", 422, "there is no such metric"),
        (f"a={a}&b={b},{','.join(['x'] * 200)}", 400, "At most 200 runs"),
    ]
    async with page_of(tmp_path / "runs") as page:
        for query, status, text in cases:
            async with page.client.get(f"{page.address}/api/compare?{query}") as answer:
                assert (answer.status, text in await answer.text()) == (status, True), query
    assert len(runs) == len(ids)


def test_added_figures_are_shown_and_take_no_part_in_what_is_decided(tmp_path: Path) -> None:
    """Else each look at another figure would change the outcomes of the others."""
    runs = nights(tmp_path, [1.0, 1.001, 0.999, 1.1, 1.101, 1.099])
    before, after = ({run: run.name for run in side} for side in (runs[:3], runs[3:]))
    alone, more = compared(before, after, ()), compared(before, after, ("p50", "p99", "p90"), "5%")
    usual = compared(before, after, (), "5%")
    tested = [row for row in more["rows"] if not row["is_added"]]
    added = [row for row in more["rows"] if row["is_added"]]
    assert tested == usual["rows"] and [row["p"] for row in tested] == [row["p"] for row in alone["rows"]]
    same = ("conclusion", "exit_code", "method")
    assert [more[key] for key in same] == [usual[key] for key in same]
    assert [(row["title"], row["outcome"], row["p"]) for row in added] == [
        ("service_p50", "not tested", None), ("service_p90", "not tested", None),
    ]  # fmt: skip
    assert all(row["interval"][0] < row["change"] < row["interval"][1] for row in added)
