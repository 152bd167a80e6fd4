"""A run that is removed while a client follows it: the client learns that it is gone."""

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from ivypy.master.results.checked_files import RUN_JSON
from tests.support.small_run import write_run
from tests.support.web_page import page_of

pytestmark = pytest.mark.slow

FAR_S = 60


def not_ended(runs: Path) -> Path:
    run = write_run(runs)
    path = run / RUN_JSON
    path.write_text(json.dumps({**json.loads(path.read_text()), "end_utc": None, "exit_code": None}))
    return run


async def test_a_websocket_is_closed_and_the_run_is_no_more(tmp_path: Path) -> None:
    run = not_ended(tmp_path / "runs")
    async with asyncio.timeout(FAR_S), page_of(run.parent) as page:
        async with page.client.ws_connect(f"{page.of(run)}/live") as socket:
            assert not json.loads((await socket.receive()).data)["ended"]
            shutil.rmtree(run)
            async for _ in socket:
                pass
            assert socket.closed
        async with page.client.get(page.of(run)) as response:
            assert response.status == 404


async def test_events_end(tmp_path: Path) -> None:
    run = not_ended(tmp_path / "runs")
    async with asyncio.timeout(FAR_S), page_of(run.parent) as page:
        async with page.client.get(f"{page.of(run)}/events") as response:
            await response.content.readline()
            shutil.rmtree(run)
            await response.content.read()


async def test_a_run_that_is_there_again_is_followed_again(tmp_path: Path) -> None:
    run = not_ended(tmp_path / "runs")
    aside = tmp_path / "aside"
    async with asyncio.timeout(FAR_S), page_of(run.parent) as page:
        for _ in range(2):
            async with page.client.ws_connect(f"{page.of(run)}/live") as socket:
                assert json.loads((await socket.receive()).data)["doc"]
                run.rename(aside)
                async for _ in socket:
                    pass
            aside.rename(run)
