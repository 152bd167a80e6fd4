"""The comparison in a real browser: live and as a file it shows what `ivypy compare` decides."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ivypy.master.cli.compare import compare as command
from ivypy.master.compare.compare import Question
from ivypy.master.compare.compare import compare as compare_runs
from ivypy.master.compare.render_text import conclusion
from ivypy.master.compare.sides import Sides
from ivypy.master.rollup.metrics import full_name
from tests.pages.test_page import AXE, accessible
from tests.support.browser import IN_A_BROWSER, PHONE, WIDE, Seen
from tests.support.compared_runs import nights, runs, set_cells, sides

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytest.importorskip("plotly", reason="plotly is not installed")

pytestmark = IN_A_BROWSER

MARKUP = "<b>step</b>"
LEVELS = [1.0, 1.004, 0.997, 1.002, 0.999, 1.003, 1.001, 0.998, 1.083, 1.081, 1.08]
AFTER = 3
DRAWN = """() => ['trend', 'overlay', 'distribution'].every((name) =>
    document.querySelector(`.chart.${name}`)?.data?.length)"""
TREND = "document.querySelector('.chart.trend').data.map((one) => [one.name, one.x.length, one.text ?? []])"


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    runs = nights(tmp_path_factory.mktemp("nights"), LEVELS, name="nightly", subintervals=10, steps=("max", MARKUP))
    set_cells(runs[2], "max", service_verdict="invalid", reasons="reap_delay[invalid] (90% of the mean)")
    return {run.name: run for run in runs}


@pytest.fixture(scope="module")
def file(folders: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("page") / "compare.html"
    root = next(iter(folders.values())).parent
    done = CliRunner().invoke(command, [str(root), "--newest", "3", "--html", str(path)], standalone_mode=False)
    assert done.exception is None, done.output
    return path.as_uri()


@pytest.fixture(scope="module")
def wide(browser: Any, seen: Seen, address: str) -> Iterator[Any]:
    """A page of the server for many tests: to load one takes two seconds of CPU, another view of it a tenth."""
    context = browser.new_context(viewport=WIDE, color_scheme="light", timezone_id="UTC")
    seen.watch(context)
    page = context.new_page()
    page.goto(f"{address}/#/")
    yield page
    context.close()


@pytest.fixture(scope="module")
def wide_file(browser: Any, file: str) -> Iterator[Any]:
    """A page of the file."""
    context = browser.new_context(viewport=WIDE, color_scheme="light", timezone_id="UTC")
    page = context.new_page()
    page.goto(file)
    page.wait_for_function(DRAWN)
    yield page
    context.close()


@pytest.fixture
def live(wide: Any, seen: Seen, folders: dict[str, Path]) -> Iterator[Any]:
    """The comparison, drawn anew by the server's page."""
    wide.goto(f"{seen.address}/#/")
    wide.wait_for_selector("table.runs")
    wide.get_by_role("button", name="Select all").click()
    wide.get_by_role("button", name=f"Compare {len(folders)} runs").click()
    wide.wait_for_function(DRAWN)
    yield wide
    assert seen.complaints() == []


@pytest.fixture(params=["live", "file"])
def page(request: pytest.FixtureRequest) -> Any:
    """The comparison, drawn: for tests that leave it as it is."""
    return request.getfixturevalue("live" if request.param == "live" else "wide_file")


@pytest.fixture(params=["live", "file"])
def own_page(request: pytest.FixtureRequest, browser: Any, seen: Seen, file: str) -> Iterator[Any]:
    """The comparison, drawn: for tests that do something to it."""
    if request.param == "live":
        yield request.getfixturevalue("live")
        return
    context = browser.new_context(viewport=WIDE, color_scheme="light", timezone_id="UTC")
    page = context.new_page()
    page.goto(file)
    page.wait_for_function(DRAWN)
    yield page
    context.close()


def shown_rows(page: Any) -> list[list[str]]:
    texts = "(rows) => rows.map((row) => [...row.cells].map((one) => one.innerText))"
    rows: list[list[str]] = page.locator("table.compared tbody tr").evaluate_all(texts)
    return rows


def test_it_has_the_outcomes_and_intervals_of_the_command(page: Any, folders: dict[str, Path]) -> None:
    runs = [*folders.values()]
    comparison = compare_runs(Sides(tuple(runs[:-AFTER]), tuple(runs[-AFTER:])), Question())
    assert page.locator("p.outcome").inner_text() == conclusion(comparison)
    rows = shown_rows(page)
    assert [row[0] for row in rows] == ["iops", "service_mean", "service_p99"] * 2
    assert [row[1] for row in rows] == ["max"] * 3 + [MARKUP] * 3
    for row, judged in zip(rows, comparison.rows, strict=True):
        assert row[3].removeprefix("▼ ") == judged.outcome
        low, high = judged.interval or (0.0, 0.0)
        assert [float(one.replace("%", "")) for one in row[4].split(" to ")] == pytest.approx(
            [100 * low, 100 * high], abs=0.051
        )
        assert row[7] == judged.compared.why
    assert "7 and 3 runs; A3: invalid: reap_delay" in rows[1][7]


def test_the_chosen_row_is_drawn_over_the_runs(own_page: Any) -> None:
    """It begins with what is worse. A run that is left out is there, in grey, with why."""
    page = own_page
    pressed = page.locator("table.compared button[aria-pressed=true]")
    assert pressed.inner_text() == "service_mean"
    traces = {name: (points, text) for name, points, text in page.evaluate(TREND)}
    assert (traces["A"][0], traces["B"][0], traces["left out"][0]) == (7, 3, 1)
    assert traces["left out"][1][0].endswith("invalid: reap_delay") and "A3" in traces["left out"][1][0]
    assert {"95 % of A", "limit, 3 %", "mean of A", "mean of B"} <= traces.keys()
    page.get_by_role("button", name=f"draw iops of {MARKUP}").click()
    page.wait_for_function("() => document.querySelector('.chart.trend').data.every((one) => one.name !== 'left out')")
    assert page.evaluate("document.activeElement.getAttribute('aria-pressed')") == "true", "the focus stays"
    assert page.get_by_role("heading", name=f"Over the runs: iops of {MARKUP}").count() == 1
    assert page.locator("main b").count() == 0


def test_the_last_runs_of_each_side_are_drawn_over_each_other(page: Any) -> None:
    names = page.evaluate("document.querySelector('.chart.overlay').data.map((one) => one.name)")
    assert names == [*(f"A{n}" for n in range(4, 9)), "B1", "B2", "B3"]
    colours = page.evaluate("document.querySelector('.chart.overlay').data.map((one) => one.line.color)")
    assert len({*colours[:5]}) == len({*colours[5:]}) == 1 and colours[0] != colours[5]


def test_the_top_says_what_was_tested_of_which_folders_and_which_is_faster(page: Any, folders: dict[str, Path]) -> None:
    text = page.locator("main").inner_text()
    above = text[: text.index("A and B have the same")]
    assert "8KiB random reads" in above
    root = next(iter(folders.values())).parent.name
    assert f"A, before: 8 runs in {root}: " in above and f"B, after: 3 runs in {root}: " in above
    assert re.search(r"B is 8\.\d+ % slower at .*\(service_", above)


def test_each_run_has_its_figure_in_a_table(page: Any) -> None:
    page.locator("summary", has_text="Each run").click()
    rows = page.locator("details[open] tbody tr").all_inner_texts()
    assert len(rows) == len(LEVELS) and "invalid: reap_delay" in rows[2] and "[" in rows[2]
    page.locator("summary", has_text="Each run").click()


def test_it_is_accessible_in_both_themes(own_page: Any) -> None:
    page = own_page
    page.locator("summary", has_text="Each run").click()
    accessible(page)
    page.locator("#theme").click()
    page.wait_for_function(DRAWN)
    accessible(page)
    page.locator("#theme").click()


def test_axe_finds_nothing(browser: Any, address: str, folders: dict[str, Path]) -> None:
    axe = Path(pytest.importorskip("axe_playwright_python").__file__).with_name("axe.min.js").read_text()
    context = browser.new_context(viewport=WIDE, bypass_csp=True)
    page = context.new_page()
    page.goto(f"{address}/#/compare/{','.join(folders)}")
    page.wait_for_function(DRAWN)
    page.locator("summary", has_text="Each run").click()
    page.evaluate(f"{axe}; 0")
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        page.wait_for_function("(theme) => document.documentElement.dataset.theme === theme", arg=theme)
        page.wait_for_function(DRAWN)
        _, violations = page.evaluate(AXE, {})
        assert violations == [], theme
    context.close()


@pytest.fixture(scope="module")
def doubtful(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A file of runs without a change, of which one does not count."""
    root = tmp_path_factory.mktemp("doubtful")
    before, _ = sides(root, runs(3, subintervals=10), runs(3, subintervals=10))
    verdicts = {f"{scope}_verdict": "invalid" for scope in ("rate", "service")}
    set_cells(before[2], "max", **verdicts, reasons="cpu_contention[invalid] (50 %)")
    words = [str(root / "before"), "--vs", str(root / "after"), "--html", str(root / "compare.html")]
    assert CliRunner().invoke(command, words, standalone_mode=False).exception is None
    return (root / "compare.html").as_uri()


def test_a_run_that_is_left_out_is_drawn_unlike_the_others_in_all_charts(browser: Any, doubtful: str) -> None:
    context = browser.new_context(viewport=WIDE)
    page = context.new_page()
    page.goto(doubtful)
    page.wait_for_function(DRAWN)
    for chart in ("overlay", "distribution"):
        lines = page.evaluate(f"document.querySelector('.chart.{chart}').data.map((one) => [one.name, one.line.color])")
        colours = dict(lines)
        assert [*colours] == ["A1", "A2", "A3, left out", "B1", "B2", "B3"], chart
        assert colours["A3, left out"] not in {colours["A1"], colours["B1"]}
    assert "left out" in {one[0] for one in page.evaluate(TREND)}
    context.close()


@pytest.mark.parametrize(
    ("rows", "drawn"),
    [
        (["max iops", "max service_p99", "paced iops", "paced service_p99", "paced response_p99"], 0),
        (["paced iops", "paced service_p99", "paced response_p99", "max iops"], 1),
        (["max service_p99", "max iops"], 1),
        (["paced iops", "paced service_p99", "paced response_mean"], 1),
        (["paced iops", "paced response_p99", "max iops worse"], 2),
        (["max iops blank", "max service_p99"], 1),
        (["max iops blank"], 0),
    ],
)
def test_it_begins_with_a_figure_that_can_differ(wide: Any, rows: list[str], drawn: int) -> None:
    """The rate of a paced step is what was asked for, on both sides."""
    texts = [(*row.split(), "")[:3] for row in rows]
    data = [
        {"key": key, "metric": full_name(title), "is_rate": title == "iops", "set": title.partition("_")[0],
         "outcome": more, "regression": False, "a": None if more == "blank" else 1, "b": 1}
        for key, title, more in texts
    ]  # fmt: skip
    script = "async (rows) => (await import('/static/compare_view.js')).firstRow(rows)"
    assert wide.evaluate(script, data) == drawn


def test_a_phone_shows_it_without_scrolling_to_the_side(browser: Any, address: str, folders: dict[str, Path]) -> None:
    context = browser.new_context(viewport=PHONE)
    page = context.new_page()
    page.goto(f"{address}/#/compare/{','.join(folders)}")
    page.wait_for_function(DRAWN)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    cells = page.locator("table.compared tbody tr").first.locator("td")
    boxes = [cells.nth(place).bounding_box() for place in range(6)]  # step, change, outcome, interval, A, B
    assert all(0 <= box["x"] and box["x"] + box["width"] <= PHONE["width"] for box in boxes)
    step, change, outcome, interval, a, b = (box["y"] for box in boxes)
    assert step < change == outcome < interval == a == b
    assert all(one.evaluate("(node) => node.scrollWidth <= node.clientWidth") for one in cells.all()), "nothing is cut"
    labels = page.evaluate("""() => [...document.querySelectorAll('table.compared tbody tr:first-child td')].map(
        (one) => getComputedStyle(one, '::before').content)""")
    assert labels[3:6] == ['"95 % "', '"A "', '"B "'] and labels[0] == "none"
    context.close()


def test_live_another_figure_and_another_side_can_be_chosen(live: Any, folders: dict[str, Path]) -> None:
    page = live
    page.get_by_label("another figure").select_option("p50")
    page.wait_for_selector("table.compared button[aria-pressed=true] >> text=p50")
    assert [row[0].split()[0] for row in shown_rows(page)].count("service_p50") == 2
    newest = [*folders][-1]
    page.locator("summary", has_text="Each run").click()
    page.get_by_label(f"side of {newest}").select_option("")
    page.wait_for_function("() => document.querySelector('h1')?.textContent === 'Comparison of 10 runs'")
    assert newest not in page.evaluate("location.hash")
    assert "two" not in page.locator("p.outcome").inner_text()
    assert page.locator("p.outcome").inner_text().startswith("Cannot tell"), "of two runs after"


def test_live_the_limit_is_chosen_and_stays_in_the_address(live: Any, seen: Seen, folders: dict[str, Path]) -> None:
    page = live
    runs = [*folders.values()]
    sides = Sides(tuple(runs[:-AFTER]), tuple(runs[-AFTER:]))
    outcome, field = page.locator("p.outcome"), page.get_by_label("max regression in percent")
    assert (field.input_value(), "3 %" in outcome.inner_text()) == ("3", True)
    for typed in ("12", "12 %"):
        before = field.element_handle()
        field.fill(typed)
        field.press("Enter")
        page.wait_for_function("(field) => !field.isConnected", arg=before)  # the answer redraws it
        page.wait_for_function("() => document.querySelector('p.outcome').textContent.includes('12 %')")
        assert outcome.inner_text() == conclusion(compare_runs(sides, Question(limit=0.12)))
        assert page.evaluate("location.hash").endswith("/12")
    field.fill("200")
    field.press("Enter")
    assert "from 0% to below 100%" in page.get_by_role("alert").inner_text()
    assert "12 %" in outcome.inner_text() and page.evaluate("location.hash").endswith("/12")
    assert all("status of 422" in one for one in seen.complaints())
    page.reload()
    page.wait_for_function(DRAWN)
    assert field.input_value() == "12"


def test_live_an_added_figure_decides_nothing_and_can_be_taken_away(live: Any) -> None:
    page = live
    before, outcome = shown_rows(page), page.locator("p.outcome").inner_text()
    page.get_by_label("another figure").select_option("p50")
    page.wait_for_selector("table.compared button[aria-pressed=true] >> text=service_p50")
    added = [row for row in shown_rows(page) if "service_p50" in row[0]]
    assert [row[3] for row in added] == ["not tested"] * 2 and all("to" in row[4] for row in added)
    assert page.get_by_text("Not tested: a figure that was added here").is_visible()
    assert [row for row in shown_rows(page) if row not in added] == before
    assert page.locator("p.outcome").inner_text() == outcome
    page.get_by_label("remove service_p50 of max").click()
    page.wait_for_function(f"() => document.querySelectorAll('table.compared tbody tr').length === {len(before)}")
    assert shown_rows(page) == before
    assert page.get_by_label("another figure").locator("option", has_text="p50").count() > 0


def test_without_scripts_the_file_has_its_tables(browser: Any, file: str) -> None:
    """As in a CI system that lets no page run any."""
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(file)
    assert page.get_by_role("heading", name="Comparison of runs").is_visible()
    assert page.get_by_role("cell", name="service_p99").first.is_visible()
    context.close()
