"""`GET /api/compare`: the comparison of runs that a client names."""

from pathlib import Path

import pytest

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
