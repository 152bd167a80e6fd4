"""The page of a running test in a real browser, beside the commands that users start."""

import errno
import http.server
import os
import re
import signal
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.browser import IN_A_BROWSER, WIDE, Seen, chromium
from tests.support.fork_server import Command
from tests.support.real_runs import ENDED, folder_of, paced_plan, rows, start, wait_until_measuring
from tests.support.waits import wait_until
from tests.support.web_page import by_address, command

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

BROWSERS = 2
WAIT_MS = 100_000
CLOSED = "() => document.querySelector('.chart.rate')?.data?.[0].x.length ?? 0"
DRAWN = "(least) => (document.querySelector('.chart.rate')?.data?.[0].x.length ?? 0) >= least"
TARGET = """(iops) => document.querySelector('.chart.rate')?.data?.some(
    (one) => one.name === 'target' && one.y.at(-1) === iops)"""
STATE = ".run-head .facts .badge"
PANEL = "Control this run"

pytestmark = IN_A_BROWSER


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as browser:
        yield browser


@contextmanager
def running(folder: Path, measure: str) -> Iterator[Command]:
    """A paced run in `folder`/runs, from its second subinterval on; Ctrl-C ends it with the block."""
    process = start(paced_plan(folder, measure), folder / "runs", "--ui", "none")
    try:
        wait_until_measuring(folder / "runs")
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Of a run that goes on, for tests that only look at it."""
    root = tmp_path_factory.mktemp("live")
    with running(root, "60m"):
        yield folder_of(root / "runs")


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    with command(str(folder.parent), "--listen", "127.0.0.1:0") as (_, address):
        yield address


@contextmanager
def shown(browser: Any, address: str, route: str = "") -> Iterator[tuple[Any, Seen]]:
    """A page of the printed address, in which the only run is chosen."""
    context = browser.new_context(viewport=WIDE)
    seen = Seen(address.split("/#")[0])
    seen.watch(context)
    page = context.new_page()
    page.set_default_timeout(WAIT_MS)
    page.goto(address)
    page.locator("table.runs a").first.click()
    page.wait_for_function(DRAWN, arg=1)
    yield page, seen
    context.close()


def subintervals(folder: Path) -> int:
    return len(rows(folder, "step0000.one/all/all.csv"))


def test_a_run_is_followed_to_its_end_and_shows_what_the_csv_says(tmp_path: Path, browser: Any) -> None:
    words = (str(tmp_path / "runs"), "--listen", "127.0.0.1:0")
    with running(tmp_path, "10m") as process, command(*words) as (_, address):
        folder = folder_of(tmp_path / "runs")
        with shown(browser, address) as (page, seen):
            assert "token" not in page.url
            assert page.locator(STATE).first.inner_text() == "running"
            assert page.get_by_text(PANEL).count() == 0
            page.wait_for_function(DRAWN, arg=page.evaluate(CLOSED) + 3)
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 130
            page.wait_for_function(f"() => document.querySelector('{STATE}').textContent === 'ended'")
            page.wait_for_function(DRAWN, arg=subintervals(folder))
            drawn = page.evaluate("() => document.querySelector('.chart.rate').data[0].y")
            said = [float(row["overall_iops"]) for row in rows(folder, "step0000.one/all/all.csv")]
            assert drawn == pytest.approx(said)
            (summary,) = rows(folder, "summary.all.csv")
            assert page.locator(".steps .badge").inner_text() == summary["verdict"]
            assert not seen.errors and not seen.elsewhere


def test_a_run_is_edited_and_ended_where_the_server_may(tmp_path: Path, browser: Any) -> None:
    words = (str(tmp_path / "runs"), "--allow-control", "--listen", "127.0.0.1:0")
    with running(tmp_path, "10m") as process, command(*words) as (server, address):
        folder = folder_of(tmp_path / "runs")
        with shown(browser, address) as (page, seen):

            def ask(action: str, text: str) -> str:
                """Its answer."""
                page.get_by_label(re.compile(f"^{action}, for example")).fill(text)
                page.get_by_label(re.compile(f"^{action}, for example")).press("Enter")
                page.wait_for_function("() => !['', '...'].includes(document.querySelector('.answer').textContent)")
                return str(page.locator(".answer").inner_text())

            assert (
                "unknown parameter" in ask("edit", "all=all iopss=5") or "iops" in page.locator(".answer").inner_text()
            )
            assert page.locator(".answer.refused").count() == 1
            assert "iops" in ask("edit", "all=all iops=300")
            assert page.locator(".answer.refused").count() == 0
            page.wait_for_function(TARGET, arg=300)
            ask("mark", "<b>fan pulled</b>")
            page.get_by_role("button", name="The run").click()
            page.get_by_role("tab", name="Events").click()
            page.get_by_text("<b>fan pulled</b>").first.wait_for()
            changes = {row["kind"]: row["text"] for row in rows(folder, "events.csv")}
            for kind in ("edit", "mark"):
                assert (
                    f"(pid {server.pid}) via ivypy web from ::1" in changes[kind] or "from 127.0.0.1" in changes[kind]
                )
            page.on("dialog", lambda one: one.accept())
            page.get_by_role("button", name="stop").click()
            assert process.wait(60) == 130
            page.wait_for_function(f"() => document.querySelector('{STATE}').textContent === 'ended'")
            page.get_by_text(PANEL).wait_for(state="hidden")
            assert not seen.errors and not seen.elsewhere


def test_a_page_finds_its_server_again(folder: Path, browser: Any) -> None:
    root = str(folder.parent)
    with (
        command(root, "--listen", "127.0.0.1:0") as (server, address),
        shown(browser, by_address(address)) as (page, seen),
    ):
        port = re.search(r":(\d+)/", address)
        assert port is not None
        os.kill(server.pid, signal.SIGINT)
        page.get_by_text("Not connected since").wait_for()
        missed = subintervals(folder) + 2
        wait_until(lambda: subintervals(folder) > missed, "the run goes on")
        with command(root, "--listen", f"127.0.0.1:{port[1]}") as (_, address):
            page.get_by_text("Open the address that").wait_for()
            page.context.new_page().goto(by_address(address))
            page.get_by_text("Not connected since").wait_for(state="hidden")
            page.wait_for_function(DRAWN, arg=missed)
            times = page.evaluate("() => document.querySelector('.chart.rate').data[0].x")
            assert len(set(times)) == len(times)
        expected = ("ERR_CONNECTION_REFUSED", "WebSocket", "403")
        refused = [one for one in seen.errors if not any(words in one for words in expected)]
        assert not refused and not seen.elsewhere


@contextmanager
def eavesdropper(port: int = 0, page: str = "") -> Iterator[tuple[str, list[dict[str, str]]]]:
    """Another user's server: its address, and the headers of each request that it gets."""
    heard: list[dict[str, str]] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heard.append(dict(self.headers))
            if not page:
                return self.send_error(404)
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Cache-Control", "max-age=31536000")
            self.end_headers()
            self.wfile.write(page.encode())

        def log_message(self, *_: object) -> None: ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/", heard
        server.shutdown()


def is_let_in(address: str, headers: dict[str, str]) -> bool:
    kept = {name: text for name, text in headers.items() if name in ("Authorization", "Cookie")}
    spoken = headers.get("Sec-WebSocket-Protocol", "").split(", ")
    for one in (kept, *(kept | {"Authorization": f"Bearer {secret}"} for secret in spoken)):
        try:
            urllib.request.urlopen(urllib.request.Request(f"{address}api/runs", headers=one), timeout=60).close()
        except urllib.error.HTTPError as refused:
            assert refused.code == 403
        else:
            return True
    return False


def test_who_listens_at_another_port_or_afterwards_gets_nothing_that_works(folder: Path, browser: Any) -> None:
    words = (str(folder.parent), "--allow-control", "--listen")
    with command(*words, "127.0.0.1:0") as (server, printed), shown(browser, printed) as (page, _):
        address = by_address(printed).partition("#")[0]
        assert is_let_in(address, {"Authorization": f"Bearer {printed.partition('token=')[2]}"})
        with eavesdropper() as (elsewhere, heard):
            page.context.new_page().goto(elsewhere)
            assert heard and not any(is_let_in(address, one) for one in heard)
        page.bring_to_front()  # browsers give others little time
        os.kill(server.pid, signal.SIGINT)
        assert server.wait(60) == 130
        port = address.rstrip("/").rsplit(":", 1)[1]
        with eavesdropper(int(port)) as (_, heard):
            wait_until(lambda: any("Upgrade" in one for one in heard), "the open page tries again")
        with command(*words, f"127.0.0.1:{port}"):
            assert not any(is_let_in(address, one) for one in heard)


LURE = """<script>
    localStorage.setItem("left", "here");
    caches.open("left").then((cache) => cache.put("/", new Response("theirs")));
</script>theirs"""


def test_what_another_users_page_left_under_the_port_is_not_read_after_the_next_start(
    folder: Path, browser: Any
) -> None:
    """A page that browsers may keep for a year, with all that it can store."""
    context = browser.new_context()
    page = context.new_page()
    with command(str(folder.parent), "--listen", "127.0.0.1:0") as (_, printed):
        page.goto(printed)
        page.locator("table.runs a").first.wait_for()
        port = int(printed.split("/#")[0].rsplit(":", 1)[1])
    with eavesdropper(port, LURE):
        page.goto(printed)
        page.get_by_text("theirs").wait_for()
        page.wait_for_function("async () => localStorage.getItem('left') && await caches.has('left')")
    with command(str(folder.parent), "--listen", f"127.0.0.1:{port}") as (_, next_one):
        assert next_one.split("/#")[0] != printed.split("/#")[0]
        page.goto(next_one)
        page.locator("table.runs a").first.wait_for()
        assert page.evaluate("async () => [localStorage.getItem('left'), await caches.has('left')]") == [None, False]
    context.close()


def test_the_printed_address_lets_an_open_page_in(address: str, browser: Any) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(address.partition("#")[0])
    page.get_by_text("Open the address that").wait_for()
    page.goto(address)  # which loads nothing by itself: only what follows # differs
    page.locator("table.runs a").first.wait_for()
    assert "token" not in page.url
    page.goto(f"{address}x")  # an old one, of a browser that is let in
    page.wait_for_function("() => !location.hash.includes('token')")
    page.locator("table.runs a").first.wait_for()
    context.close()


HIDDEN = """(isHidden) => {
    Object.defineProperty(document, 'hidden', { value: isHidden, configurable: true });
    document.dispatchEvent(new Event('visibilitychange'));
}"""


def test_a_page_that_nobody_looks_at_rests(folder: Path, address: str, browser: Any) -> None:
    with shown(browser, address) as (page, seen):
        page.evaluate(HIDDEN, True)
        page.wait_for_timeout(500)  # for what was under way
        before, rows_before = page.evaluate(CLOSED), subintervals(folder)
        wait_until(lambda: subintervals(folder) > rows_before + 3, "the run goes on")
        assert page.evaluate(CLOSED) == before
        page.evaluate(HIDDEN, False)
        page.wait_for_function(DRAWN, arg=rows_before + 3)
        assert not seen.errors and not seen.elsewhere


def test_answers_that_fail_are_reported_and_asked_for_again(tmp_path: Path, browser: Any) -> None:
    """Also for the last state of a run, after which no other comes."""
    with running(tmp_path, "60m") as process:
        folder = folder_of(tmp_path / "runs")
        with (
            command(str(folder.parent), "--listen", "127.0.0.1:0") as (_, address),
            shown(browser, address) as (page, _),
        ):
            page.route("**/api/runs/**", lambda route: route.abort())
            page.get_by_text("Not connected since").wait_for()
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 130
            page.evaluate(HIDDEN, True)
            page.evaluate(HIDDEN, False)
            page.unroute("**/api/runs/**")
            page.wait_for_function(f"() => document.querySelector('{STATE}').textContent === 'ended'")
            page.get_by_text("Not connected since").wait_for(state="hidden")


def test_several_browsers_see_the_same(folder: Path, address: str, browser: Any) -> None:
    with ExitStack() as stack:
        opened = [stack.enter_context(shown(browser, address)) for _ in range(BROWSERS)]
        least = subintervals(folder) + 1
        for page, _ in opened:
            page.wait_for_function(DRAWN, arg=least)
        lines = [page.evaluate("() => document.querySelector('.chart.rate').data[0].y") for page, _ in opened]
        said = [float(row["overall_iops"]) for row in rows(folder, "step0000.one/all/all.csv")]
        for line in lines:
            assert line == pytest.approx(said[: len(line)])
        assert not any(seen.errors or seen.elsewhere for _, seen in opened)


def is_refused(port: int) -> bool:
    """Whether nobody listens there."""
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == errno.ECONNREFUSED


def test_a_page_beside_a_run_stays_for_those_who_look(tmp_path: Path, browser: Any) -> None:
    plan = paced_plan(tmp_path, "3s")
    words = ["run", "--web", "--no-report", "--ui", "none", "-o", str(tmp_path / "runs"), str(plan)]
    process = Command(*words)
    line = process.stderr.readline()
    address = line.removeprefix("page: ").strip()
    assert re.match(r"http://ivypy-[0-9a-f]{16}\.localhost:\d+/#token=", address), line
    wait_until_measuring(tmp_path / "runs")
    with shown(browser, address) as (page, seen):
        assert process.wait(60) in ENDED
        process.communicate()
        page.wait_for_function(f"() => document.querySelector('{STATE}').textContent === 'ended'")
        page.reload()
        page.wait_for_function(DRAWN, arg=subintervals(folder_of(tmp_path / "runs")))
        assert not seen.errors and not seen.elsewhere
        context = page.context
    assert context is not None
    port = re.search(r":(\d+)/", address)
    assert port is not None
    wait_until(lambda: is_refused(int(port[1])), "it ended")
