"""A report opens from disk in a browser that has no network: every view is drawn, and nothing is complained of."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ivypy.master.cli.commands import cli
from ivypy.master.report.archive import ArchiveLimits
from ivypy.master.report.write_report import write_report
from tests.support.browser import IN_A_BROWSER, PHONE, WIDE, chromium
from tests.support.compared_runs import set_cells
from tests.support.logs import STALL, case_logs, run

pytestmark = IN_A_BROWSER
DRAWN = ".js-plotly-plot .main-svg"
WAIT_MS = 60_000


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as browser:
        yield browser


class Opened:
    """A page without network, and what went wrong in it."""

    def __init__(self, browser: Any, file: Path, **options: Any) -> None:
        self._file = file
        self.context = browser.new_context(**options)
        self.context.set_offline(True)
        self.page = self.context.new_page()
        self.page.set_default_timeout(WAIT_MS)
        self.wrong: list[str] = []
        self.page.on("console", lambda said: self.wrong.append(said.text) if said.type == "error" else None)
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("request", self._requested)

    def _requested(self, request: Any) -> None:
        if not request.url.startswith(("file:", "data:", "blob:")):
            self.wrong.append(request.url)

    def go(self, route: str = "") -> Any:
        self.page.goto("about:blank")
        self.page.goto(self._file.as_uri() + route)
        return self.page

    def __enter__(self) -> "Opened":
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()


@pytest.fixture(scope="module")
def report(browser: Any, run_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    """In one page for all tests of this file: its process has parsed plotly.js, which takes longer than a test."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(path, [run_folder])
    with Opened(browser, path, viewport=WIDE, color_scheme="light") as opened:
        yield opened


def test_every_view_is_drawn_without_network(report: Opened, run_folder: Path) -> None:
    page = report.go()
    page.wait_for_selector(DRAWN)
    assert page.inner_text("h1") == run_folder.name, "the only run is shown at once"
    tabs = page.locator("[role=tab]")
    for shown in ("The run", "most"):  # the first screen has no step
        page.locator("nav.steps").get_by_role("button", name=shown).click()
        for place in range(tabs.count()):
            tabs.nth(place).click()
            page.wait_for_function("() => document.querySelector('#view').innerText.length > 20")
    assert report.wrong == []


def test_the_first_screen_has_every_measurement_and_a_click_opens_its_step(report: Opened) -> None:
    page = report.go()
    page.wait_for_selector("table.summary tbody tr")
    assert "1 of 2 steps is valid" in page.inner_text(".outcome")
    assert "6 files of 1.00 GiB on a, b, c" in page.inner_text(".driven")
    names = page.locator("table.summary tbody th button").all_inner_texts()
    assert names[-1] == "most" and {name.partition(":")[0] for name in names[:-1]} == {"climb"}
    page.locator("table.summary").get_by_role("button", name="most", exact=True).click()
    page.wait_for_function("() => document.querySelector('.chart.rate')?.data?.length > 0")
    assert page.url.endswith("/step/1")
    assert report.wrong == []


def test_a_mark_with_markup_is_text(report: Opened) -> None:
    page = report.go()
    page.wait_for_selector(DRAWN)
    page.click("#tab-events")
    page.wait_for_selector("text=</script><script>alert(1)</script>; by me")
    assert report.wrong == []


def test_an_instance_is_drawn_from_the_file(report: Opened) -> None:
    page = report.go()
    page.wait_for_selector(DRAWN)
    page.locator("nav.steps").get_by_role("button", name="most").click()
    page.select_option("label:has-text('rollup') select", "host")
    page.wait_for_selector("label:has-text('instance') select")
    page.select_option("label:has-text('instance') select", "c")
    page.wait_for_function("() => document.querySelector('.chart.rate').data?.length > 0")
    assert report.wrong == []


@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_the_theme_is_that_of_the_reader(report: Opened, scheme: str) -> None:
    report.page.emulate_media(color_scheme=scheme)
    report.page.set_viewport_size(PHONE)
    page = report.go()
    page.wait_for_selector(DRAWN)
    assert page.get_attribute("html", "data-theme") == scheme
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], "no scrolling to the side"
    report.page.set_viewport_size(WIDE)
    assert report.wrong == []


def test_what_is_left_out_is_said(browser: Any, run_folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "small.html"
    write_report(path, [run_folder], ArchiveLimits(most_bytes=0))
    with Opened(browser, path) as opened:
        page = opened.go()
        page.wait_for_selector(DRAWN)
        assert "charts of 3 of 3 instances of host" in (page.text_content("#left-out") or "")
        page.locator("nav.steps").get_by_role("button", name="most").click()
        page.click("#tab-instances")
        page.wait_for_selector("#view th[scope=row]")
        assert opened.wrong == []


def test_several_runs_are_listed_and_compared(browser: Any, run_folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / run_folder.name
    shutil.copytree(run_folder, copy)
    path = tmp_path / "both.html"
    write_report(path, [run_folder, copy], ArchiveLimits(most_bytes=0))
    with Opened(browser, path) as opened:
        page = opened.go()
        page.wait_for_selector("table.runs")
        for box in page.locator("table.runs input[type=checkbox]").all():
            box.check()
        page.click("text=Compare 2 runs")
        page.wait_for_function("() => document.querySelector('.chart.distribution')?.data?.length === 2")
        assert page.inner_text("p.outcome").startswith("Values alone: this report has no test"), "it cannot"
        assert page.locator("table.compared tbody tr").count() > 1
        assert opened.wrong == []


def test_logs_of_other_tools_are_drawn(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "x.html"
    run(*case_logs(STALL, "stall*"), "--by", "all,direction", "--plot", path)
    with Opened(browser, path) as opened:
        page = opened.go()
        page.wait_for_selector(DRAWN)
        assert "service time stands for the logs' clat" in page.inner_text("#left-out")
        assert page.inner_text("p.what").startswith("measured"), "the figures of the whole, not of the last interval"
        page.wait_for_function(
            "() => document.querySelector('.chart.latency').data?.some((one) => one.y.some((us) => us > 0))"
        )
        assert opened.wrong == []


def test_a_comparison_is_the_page_of_its_runs(browser: Any, run_folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / run_folder.name
    second = tmp_path / f"{run_folder.name}-2"
    for one in (copy, second):
        shutil.copytree(run_folder, one)
        set_cells(one, "most", overall_iops=str(10000 + len(one.name)))  # else it would be the same run
    path = tmp_path / "compare.html"
    words = ["compare", str(run_folder), "--vs", str(copy), str(second), "--html", str(path)]
    assert CliRunner().invoke(cli, words, standalone_mode=False).exception is None
    with Opened(browser, path) as opened:
        page = opened.go()
        page.wait_for_function("() => document.querySelector('.chart.distribution')?.data?.length === 3")
        assert page.locator("h1").all_inner_texts() == ["Comparison of 3 runs"]
        assert page.inner_text("p.outcome").startswith("Cannot tell whether there is a regression")
        names = page.evaluate("document.querySelector('.chart.overlay').data.map((one) => one.name)")
        assert names == ["A1", "B1", "B2"]
        look = "(one) => [one.line.color, one.line.dash]"
        lines = page.evaluate(f"document.querySelector('.chart.overlay').data.map({look})")
        assert lines[0][0] != lines[1][0] == lines[2][0], "a colour for each side"
        assert lines[0][1] == lines[1][1] != lines[2][1], "and a dash for each run of it"
        assert opened.wrong == []
