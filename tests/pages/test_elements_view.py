"""The view of elements in a real browser: the lines of the data, with their gaps, on the time axis of the overview."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ivypy.master.pages.run_data import RunData
from tests.support.browser import IN_A_BROWSER, PHONE, WIDE, Seen
from tests.support.made_once import Store
from tests.support.shown_runs import DECLINED, MARKUP, gathered
from tests.support.simulated.runs import ONE_STEP, run

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytest.importorskip("plotly", reason="plotly is not installed")

pytestmark = IN_A_BROWSER
CHARTS = ("times", "busy", "elements")
DRAWN = """() => ['times', 'busy', 'elements'].every(
    (name) => document.querySelector(`.chart.${name}`)?.querySelector('.main-svg'))"""
LINES = """(chart) => document.querySelector(`.chart.${chart}`).data.map(
    (one) => ({ name: one.name, y: [...one.y] }))"""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory, store: Store) -> dict[str, Path]:
    """A run with an array, of which an element and a reason have names that must stay text; and a run without one."""
    root = tmp_path_factory.mktemp("runs")
    whole = store.run(gathered)
    shown = Path(shutil.copytree(whole, root / "array" / whole.name))
    for path, old in (("connectors/array.pg.csv", "1-3"), ("gathers.csv", "its management port is busy")):
        file = shown / "step0000.hold" / path
        file.write_text(file.read_text().replace(old, MARKUP))
    return {"array": shown, "none": run(root / "none", ONE_STEP).folder}


@pytest.fixture(scope="module")
def shared(browser: Any, seen: Seen) -> Iterator[Any]:
    """One page for all tests: its process has parsed plotly.js, which takes longer than a test."""
    context = browser.new_context(viewport=WIDE, color_scheme="dark", timezone_id="UTC")
    seen.watch(context)
    yield context.new_page()
    context.close()


@pytest.fixture
def page(shared: Any, seen: Seen) -> Iterator[Any]:
    shared.goto("about:blank")  # which ends the document of the test before
    yield shared
    assert seen.complaints() == []


def show(page: Any, address: str, route: str) -> None:
    page.goto(f"{address}/#/run/{route}")
    page.wait_for_function(DRAWN)


def lines(page: Any, chart: str) -> dict[str, list[float | None]]:
    return {one["name"]: one["y"] for one in page.evaluate(LINES, chart)}


def test_lines_are_those_of_the_data_with_their_gaps(page: Any, address: str, folders: dict[str, Path]) -> None:
    show(page, address, "array/step/0/elements")
    data = RunData(folders["array"])
    said, series = data.elements(0), data.series(0)
    times, busy = lines(page, "times"), lines(page, "busy")
    assert times["LUNs, mean"] == series["metrics"]["overall_service_us_mean"]
    assert times["array.pg_service_us"] == said["times"][0]["values"]
    assert busy["array mp 0"] == said["busiest"][0]["values"]
    assert [place for place, one in enumerate(busy["array mp 0"]) if one is None] == [one - 1 for one in DECLINED]


def test_a_chosen_metric_is_drawn_element_by_element(page: Any, address: str, folders: dict[str, Path]) -> None:
    show(page, address, "array/step/1/elements")
    page.get_by_label("metric", exact=True).select_option("array.pg_ios_per_s")
    page.wait_for_function("() => document.querySelector('.chart.elements').data.some((one) => one.name === '1-1')")
    expected = RunData(folders["array"]).element_lines(1, "array.pg_ios_per_s")["lines"]
    assert lines(page, "elements") == {one["element"]: one["values"] for one in expected}
    assert page.evaluate("document.querySelector('.chart.elements').layout.yaxis.title.text") == "1/s"
    groups = page.locator("optgroup").evaluate_all("(all) => all.map((one) => one.label)")
    assert groups == ["array: cache (1)", "array: mp (2)", "array: pg (3)"]


def test_the_first_element_that_saturates_and_the_correlations(page: Any, address: str) -> None:
    show(page, address, "array/step/1/elements")
    assert page.get_by_text("First to saturate: array.mp_busy_percent of 0").count() == 1
    rows = page.locator("table.correlations tbody tr")
    assert rows.count() == 12
    first = rows.first.locator("td, th").all_inner_texts()
    assert first[0].startswith("array.") and float(first[2]) > 0.5 and int(first[3]) > 50
    (cache,) = [text for text in rows.all_inner_texts() if text.startswith("array.cache")]
    assert cache.split()[2] == "-"


def test_failed_gathers_are_listed_and_names_stay_text(page: Any, address: str) -> None:
    show(page, address, "array/step/0/elements")
    assert page.get_by_text("21 gathered, 3 declined").count() == 1
    assert page.get_by_text(MARKUP, exact=True).count() >= len(DECLINED) and page.locator("img").count() == 0


def test_a_rollup_instance_is_chosen_for_every_chart(page: Any, address: str, folders: dict[str, Path]) -> None:
    show(page, address, "array/step/0/elements")
    page.get_by_label("rollup").select_option("pg")
    page.get_by_label("instance").select_option("1-2")
    expected = RunData(folders["array"]).elements(0, "pg", "1-2")["times"][0]["values"]
    same = "(one) => one.name === 'array.pg_service_us' && JSON.stringify(one.y) === JSON.stringify(wanted)"
    page.wait_for_function(f"(wanted) => document.querySelector('.chart.times').data.some({same})", arg=expected)


def test_the_zoom_is_that_of_the_overview(page: Any, address: str) -> None:
    show(page, address, "array/step/0/elements")
    ranges = f"{list(CHARTS)}.map((name) => String(document.querySelector(`.chart.${{name}}`).layout.xaxis.range))"
    (whole,) = set(page.evaluate(ranges))
    area = page.locator(".chart.times .nsewdrag").first
    area.scroll_into_view_if_needed()
    box = area.bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 0.3, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, middle, steps=4)
    page.mouse.up()
    page.wait_for_function(f"(whole) => new Set({ranges}).size === 1 && {ranges}[0] !== whole", arg=whole)
    (zoomed,) = set(page.evaluate(ranges))
    page.get_by_role("tab", name="Over time").click()
    shown = "String(document.querySelector('.chart.rate')?.layout?.xaxis.range)"
    page.wait_for_function(f"(zoomed) => {shown} === zoomed", arg=zoomed)
    page.get_by_role("tab", name="Array and hosts").click()
    page.wait_for_function(DRAWN)
    assert set(page.evaluate(ranges)) == {zoomed}
    page.locator("nav.steps button").nth(2).click()
    page.wait_for_function(f"(zoomed) => {ranges}[0] !== zoomed", arg=zoomed)


def test_a_run_without_connectors_says_so(page: Any, address: str) -> None:
    page.goto(f"{address}/#/run/none/step/0/elements")
    page.wait_for_selector("text=No connector took part in this step.")


def test_it_fits_a_phone(page: Any, address: str) -> None:
    page.set_viewport_size(PHONE)
    show(page, address, "array/step/1/elements")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    page.set_viewport_size(WIDE)
