"""The page in a real browser: every figure that it works out itself is Python's, and everybody can use it."""

import csv
import json
import re
import struct
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ivypy.master.pages.run_data import RunData
from ivypy.master.results.search_steps import read_probes
from ivypy.master.run.session.run import Run
from ivypy.master.stats.percentiles import percentile
from ivypy.master.summary.search_probes import probe_table
from ivypy.protocol.histogram import BUCKETS, lower_edge
from tests.support.browser import IN_A_BROWSER, PHONE, WIDE, Seen
from tests.support.made_once import Store
from tests.support.shown_runs import MARKUP, held, tour
from tests.support.simulated.runs import ONE_STEP, SimulatedRun, stage

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytest.importorskip("plotly", reason="plotly is not installed")

HOLD = "#/run/tour/step/1"
VIEWS = ("", "/instances", "/distribution", "/load", "/events", "/plan")
TIME_CHARTS = ".chart[data-time]:not([hidden])"
OVERVIEW_DRAWN = """() => ['track', 'rate', 'latency', 'heat', 'cpu', 'errors'].every((name) => {
    const chart = document.querySelector(`.chart.${name}`);
    return chart?.querySelector('.main-svg') || chart?.previousElementSibling?.matches('.instead');
})"""

pytestmark = IN_A_BROWSER


def alone(root: Path) -> SimulatedRun:
    async def visit(run: Run, staged: SimulatedRun) -> None:
        """Nobody does anything."""

    return stage(root, visit, ONE_STEP)


@pytest.fixture(scope="module")
def folders(store: Store) -> dict[str, Path]:
    return {"tour": store.run(tour), "held": store.run(held), "alone": store.run(alone)}


@pytest.fixture(scope="module")
def wide(browser: Any, seen: Seen) -> Iterator[Any]:
    """One page for many tests: a page takes a second to load, another view of it a tenth."""
    context = browser.new_context(viewport=WIDE, color_scheme="light", timezone_id="Asia/Kolkata")
    seen.watch(context)
    yield context.new_page()
    context.close()


@pytest.fixture
def page(wide: Any, seen: Seen) -> Iterator[Any]:
    wide.goto(f"{seen.address}/#/")
    yield wide
    assert seen.complaints() == []


def show(page: Any, seen: Seen, route: str) -> None:
    """Go to a view, and wait until it is drawn."""
    page.goto(f"{seen.address}/{route}")
    if route.startswith("#/run/") and route.count("/") == 4:  # of a step
        page.wait_for_function(OVERVIEW_DRAWN)
    elif route.startswith("#/run"):
        page.wait_for_selector("#view .panel, #view table, #view .empty")
    elif route == "#/":
        page.wait_for_selector("table.runs")


def decoded(answer: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray[Any, Any]]]:
    """The header, and each set's counts over all buckets."""
    (length,) = struct.unpack_from("<I", answer)
    header = json.loads(answer[4 : 4 + length])
    columns = len(header["first"])
    counts = {}
    for one in header["sets"]:
        width = one["high"] - one["low"]
        own = np.frombuffer(answer[4 + length :], "<u4", columns * width, one["offset"]).reshape(columns, width)
        counts[one["name"]] = np.zeros((columns, BUCKETS), np.int64)
        counts[one["name"]][:, one["low"] : one["high"]] = own
    return header, counts


def known(values: Sequence[float | None]) -> list[float]:
    """Blanks as nan."""
    return [np.nan if one is None else one for one in values]


def expected(folder: Path, kinds: Sequence[str], time: str, fraction: float) -> list[float]:
    """The percentile of each subinterval of step 1, by the arithmetic of every CSV; in us."""
    header, counts = decoded(RunData(folder).histograms(1))
    sets = {one["name"]: one for one in header["sets"]}
    names = [f"{kind}.{time}" for kind in kinds]
    found: list[float] = []
    for place in range(len(header["first"])):
        used = [name for name in names if sets[name]["count"][place]]
        if not used or not all(sets[name]["valid"][place] for name in used):
            found.append(np.nan)
            continue
        total = sum(counts[name][place] for name in used)
        least = min(sets[name]["min_us"][place] for name in used) * 1000
        most = max(sets[name]["max_us"][place] for name in used) * 1000
        found.append(percentile(total, 0, least, most, fraction) / 1000)
    return found


def line(page: Any, chart: str, name: str) -> list[float]:
    """The values of a line, once it is drawn."""
    found = "(chart, name) => document.querySelector(`.chart.${chart}`)?.data?.find((one) => one.name === name)"
    page.wait_for_function(f"([chart, name]) => ({found})(chart, name)", arg=[chart, name])
    return known(page.evaluate(f"([chart, name]) => [...({found})(chart, name).y]", [chart, name]))


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return [*csv.DictReader(file)]


CHOICES = [
    (0.9, "service time", "all I/O", ("read", "write"), "service"),
    (0.99, "response time", "reads", ("read",), "response"),
    (0.5, "service time", "writes", ("write",), "service"),
    (0.999, "response time", "all I/O", ("read", "write"), "response"),
]


def test_the_slider_draws_exactly_the_percentile_that_it_names(page: Any, seen: Seen, folders: dict[str, Path]) -> None:
    show(page, seen, HOLD)
    names = set()
    said, shown = (
        "document.getElementById('percentile').ariaValueText",
        "document.querySelector('.readout').textContent",
    )
    for fraction, time_text, io_text, kinds, time in CHOICES:
        page.get_by_label("time", exact=True).select_option(time_text)
        page.get_by_label("I/O", exact=True).select_option(io_text)
        slider = page.get_by_label("percentile", exact=True)
        page.get_by_role("button", name=f"p{fraction * 100:g}", exact=True).click()
        slider.focus()
        for key in ("", "ArrowLeft", "PageDown"):
            if key:
                page.keyboard.press(key)
            page.wait_for_function(f"() => {said}.split(',')[0] === {shown}.split(' ')[0]")
            text = page.locator(".readout").inner_text().split(" ")[0]
            names.add(text)
            wanted = expected(folders["tour"], kinds, time, float(text[1:]) / 100)
            assert line(page, "latency", text) == pytest.approx(wanted, rel=1e-12, nan_ok=True), (text, time, io_text)
    assert len(names) > len(CHOICES), "the arrow keys move it"


def test_percentiles_are_those_of_python(page: Any, seen: Seen) -> None:
    """Of random histograms: narrow and wide, of few I/Os and of billions."""
    random = np.random.default_rng(7)
    cases, wanted = [], []
    for size in (1, 10, 11, 99, 100, 1000, 1001, 123_457, 3_000_000_000):
        for width in (1, 2, 64, 700):
            low = int(random.integers(0, BUCKETS - width))
            counts = random.multinomial(size, random.dirichlet(np.full(width, 0.3)))
            used = low + np.flatnonzero(counts)
            least, most = lower_edge(int(used[0])), lower_edge(int(used[-1]) + 1) - 1
            fractions = [0.5, 0.9, 0.95, 0.99, 0.999, 0.9999, float(random.integers(5000, 9999)) / 10_000]
            of = {"low": low, "counts": counts.tolist(), "count": size, "min": least, "max": most, "valid": True}
            cases.append([of, fractions])
            wanted.append([percentile(counts, low, least, most, one) / 1000 for one in fractions])
    script = """async (cases) => {
        const { percentile } = await import('/static/histogram.js');
        return cases.map(([histogram, fractions]) => fractions.map((one) => percentile(histogram, one)));
    }"""
    for case, found, right in zip(cases, page.evaluate(script, cases), wanted, strict=True):
        assert known(found) == pytest.approx(right, rel=1e-12, nan_ok=True), case


def test_cells_of_the_heat_map_are_densities(page: Any, seen: Seen) -> None:
    """I/Os that are spread evenly over log latency have rows of the same height: no bands at powers of two."""
    script = """async () => {
        const { logRows, lowerEdge } = await import('/static/histogram.js');
        const low = 64 * 8, counts = [];
        for (let one = low; one < 64 * 12; one++) counts.push(1e6 * Math.log10(lowerEdge(one + 1) / lowerEdge(one)));
        const [from, to] = [Math.log10(lowerEdge(low)), Math.log10(lowerEdge(64 * 12))];
        const edges = Array.from({ length: 31 }, (_, row) => from + (to - from) * row / 30);
        return [...logRows({ low, counts }, edges)];
    }"""
    rows = page.evaluate(script)
    assert rows == pytest.approx([sum(rows) / 30] * 30, rel=1e-6) and sum(rows) > 1e6


# For plotly, which goes by `new Date().getTime()`: a minute ahead, where no click was yet.
TIME_STOPS = """() => {
    const now = Date.now() + 60000
    window.getTime = Date.prototype.getTime
    Date.prototype.getTime = () => now
}"""
TIME_GOES_ON = "() => { Date.prototype.getTime = window.getTime }"


def test_every_chart_over_time_zooms_with_the_others(page: Any, seen: Seen) -> None:
    show(page, seen, HOLD)
    area = page.locator(".chart.rate .nsewdrag").first
    area.scroll_into_view_if_needed()
    box = area.bounding_box()
    ranges = f"[...document.querySelectorAll('{TIME_CHARTS}')].map((one) => String(one.layout.xaxis.range))"
    (whole,) = set(page.evaluate(ranges))
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 0.3, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, middle, steps=4)
    page.mouse.up()
    page.wait_for_function(f"(whole) => new Set({ranges}).size === 1 && {ranges}[0] !== whole", arg=whole)
    assert len(page.evaluate(ranges)) == 5, "there were no errors"
    page.evaluate(TIME_STOPS)  # else the second click comes too late for a double one where the page is slow
    page.mouse.dblclick(box["x"] + box["width"] / 2, middle)
    page.evaluate(TIME_GOES_ON)
    page.wait_for_function(f"(whole) => {ranges}.every((one) => one === whole)", arg=whole)


def test_a_zoom_that_is_taken_back_at_once_is_taken_back_everywhere(page: Any, seen: Seen) -> None:
    show(page, seen, HOLD)
    ranges = f"[...document.querySelectorAll('{TIME_CHARTS}')].map((one) => String(one.layout.xaxis.range))"
    (whole,) = set(page.evaluate(ranges))
    first, _ = whole.split(",")
    page.evaluate(
        """([chart, first, last]) => {
            const node = document.querySelector(chart)
            node.emit("plotly_relayout", { "xaxis.range[0]": first, "xaxis.range[1]": last })
            node.emit("plotly_relayout", { "xaxis.autorange": true })
        }""",
        [TIME_CHARTS, first, first[:-2] + "59"],
    )
    page.wait_for_function(f"(whole) => {ranges}.every((one) => one === whole)", arg=whole)


def test_a_click_on_an_instance_filters_every_chart(page: Any, seen: Seen, folders: dict[str, Path]) -> None:
    show(page, seen, f"{HOLD}/instances")
    page.get_by_role("button", name="lab04", exact=True).click()
    page.get_by_role("tab", name="Over time").click()
    page.wait_for_function(OVERVIEW_DRAWN)
    (path,) = folders["tour"].glob("step0001.*/host/lab04.csv")
    with path.open(newline="") as file:
        rows = [*csv.DictReader(file)]
    assert line(page, "rate", "all") == [float(row["overall_iops"]) for row in rows]
    longest = known([float(row["overall_service_us_max"] or np.nan) for row in rows])
    assert line(page, "latency", "max") == pytest.approx(longest, nan_ok=True)
    page.get_by_role("button", name="show all").click()
    page.wait_for_function(
        f"() => document.querySelector('.chart.rate').data[0].y[5] > {2 * float(rows[5]['overall_iops'])}"
    )


def test_a_table_sorts_by_the_keyboard(page: Any, seen: Seen) -> None:
    show(page, seen, f"{HOLD}/instances")
    page.wait_for_selector("table.instances")
    page.locator("#tab-instances").focus()
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.dataset.sort") == "overall_service_us_p99":
            break
    cells = "[...document.querySelectorAll('table.instances tbody th button')].map((one) => one.textContent)"
    page.keyboard.press("Enter")
    assert page.locator("th[aria-sort=descending]").inner_text().startswith("service p99")
    assert page.evaluate(cells)[0] == "lab04"
    page.keyboard.press("Enter")
    assert page.locator("th[aria-sort=ascending]").inner_text().startswith("service p99"), "it kept the focus"
    assert [one for one in page.evaluate(cells) if one != "lab03"][-1] == "lab04"


def test_tabs_are_moved_through_with_arrow_keys(page: Any, seen: Seen) -> None:
    show(page, seen, "#/run/tour/events")
    page.locator("#tab-events").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_selector("#tab-plan[aria-selected=true]:focus")
    assert page.url.endswith("#/run/tour/plan")


def test_names_are_shown_as_text(page: Any, seen: Seen) -> None:
    """In the list of events, on the track of events, and as an instance."""
    dialogs: list[str] = []

    def dismiss(dialog: Any) -> None:
        dialogs.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", dismiss)
    show(page, seen, "#/run/tour/events")
    assert page.get_by_text(f"fan pulled {MARKUP}").count() == 1
    page.locator("nav.steps").get_by_role("button", name="hold").click()
    page.get_by_role("tab", name="Instances").click()
    page.get_by_label("rollup").select_option("port")
    page.get_by_role("button", name=MARKUP).click()
    page.get_by_role("tab", name="Over time").click()
    page.wait_for_function(OVERVIEW_DRAWN)
    point = page.locator(".chart.track .point").last.bounding_box()
    page.mouse.move(point["x"] + point["width"] / 2, point["y"] + point["height"] / 2)
    page.get_by_role("tab", name="Distribution").click()
    page.wait_for_selector("#view .panel")
    page.get_by_role("button", name="The run").click()
    for tab in ("Summary", "Plan and hosts"):
        page.get_by_role("tab", name=tab).click()
        page.wait_for_selector("#view .panel")
    assert page.locator("img").count() == 0 and not dialogs


def test_runs_are_found_and_chosen_for_a_comparison(page: Any, seen: Seen) -> None:
    page.get_by_label("search runs").fill("steady")
    page.wait_for_function("() => document.querySelectorAll('table.runs tbody tr').length === 1")
    load, rate = page.locator("table.runs tbody td").all_inner_texts()[1:3]
    assert "reads" in load and rate not in ("", "-")
    page.get_by_label("search runs").fill("none has this")
    page.wait_for_selector("text=No run has")
    page.get_by_label("search runs").fill("")
    for box in page.get_by_role("checkbox").all():
        box.check()
    compare = page.get_by_role("button", name="Compare 3 runs")
    assert {*compare.get_attribute("href").removeprefix("#/compare/").split(",")} == {"tour", "held", "alone"}
    page.get_by_role("button", name="Select all").click()
    assert page.get_by_role("checkbox", checked=True).count() == 0 and compare.count() == 0


def test_a_step_beside_another_is_overlaid(page: Any, seen: Seen) -> None:
    show(page, seen, f"{HOLD}/distribution")
    page.get_by_role("checkbox", name="0 max").check()
    page.wait_for_function(
        "() => ['hold, service time', 'hold, response time', 'max, service time'].every((name) =>"
        " document.querySelector('.chart.tall').data?.some((one) => one.name === name))"
    )


def test_latency_over_load_has_levels_thresholds_and_the_bracket(page: Any, seen: Seen) -> None:
    show(page, seen, "#/run/tour")
    page.get_by_label("latency", exact=True).select_option("service p99")
    lines = "document.querySelector('.chart.tall').data"
    page.wait_for_function(f"() => {lines}?.some((one) => one.name === 'threshold 5.00 ms')")
    levels = page.evaluate("document.querySelector('.chart.tall').data.find((one) => one.name === 'climb').x")
    assert len(levels) >= 4 and levels == sorted(levels)
    page.get_by_label("latency", exact=True).select_option("response p99")
    page.wait_for_function(f"() => {lines}.some((one) => one.name === 'target 3.00 ms')")
    said = page.evaluate("document.querySelector('.chart.tall').layout.annotations.map((one) => one.text)")
    assert any(re.fullmatch(r"[\d.]+( k)? \([\d.]+( k)? to [\d.]+( k)?, 95 %\)", text) for text in said), said


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_the_probes_of_a_search_stand_in_the_summary(
    page: Any, seen: Seen, folders: dict[str, Path], size: Any
) -> None:
    """As in `ivypy show`: the same cells, with the sign for plus and minus."""
    page.set_viewport_size(size)
    show(page, seen, "#/run/tour")
    page.wait_for_selector(".probes tbody tr")
    (path,) = folders["tour"].glob("*.knee/find.csv")
    assert "knee" in page.inner_text(".search p") and page.locator(".search").count() == 1
    assert page.locator(".probes th").all_inner_texts()[3:] == ["response p99", "± 99 %", "answer"]
    last = read_probes(folders["tour"], 3, "knee")[-1]
    assert page.inner_text("p.outcome").startswith("knee: ")
    assert (" is the highest rate with response p99 at most 3 ms. " in page.inner_text("p.outcome")) is bool(
        last["expected_iops"]
    )
    cells = [row.split("\t") for row in page.locator(".probes tbody tr").all_inner_texts()]
    assert cells == [[*row] for row in probe_table(rows_of(path)).rows]
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert page.locator(".search .scroll").evaluate("(one) => one.scrollWidth <= one.clientWidth"), "whole on a phone"
    page.set_viewport_size(WIDE)


def test_a_run_of_one_step_opens_with_its_figures_and_its_charts(page: Any, seen: Seen) -> None:
    show(page, seen, "#/run/alone")
    page.wait_for_function(OVERVIEW_DRAWN)
    assert page.get_by_role("tab", selected=True).inner_text() == "Summary"
    assert page.locator("table.summary tbody tr").count() >= 1
    page.get_by_label("rollup", exact=True).select_option("host")
    page.get_by_label("instance", exact=True).wait_for()


COUNT_LISTENERS = """(() => {
    window.listening = new Set();
    for (const [name, does] of [['addEventListener', 'add'], ['removeEventListener', 'delete']]) {
        const own = window[name].bind(window);
        window[name] = (type, listener, ...more) => {
            if (type === 'resize') window.listening[does](listener);
            return own(type, listener, ...more);
        };
    }
})()"""


@pytest.fixture(scope="module")
def counting(browser: Any) -> Iterator[Any]:
    """A page that counts who listens to its window."""
    context = browser.new_context(viewport=WIDE)
    context.add_init_script(COUNT_LISTENERS)
    yield context.new_page()
    context.close()


@pytest.mark.parametrize(("tab", "other"), [("Summary", "Events"), ("Over time", "Instances")])
def test_charts_that_are_left_listen_to_the_window_no_more(counting: Any, address: str, tab: str, other: str) -> None:
    page = counting
    page.goto(f"{address}/#/run/alone{'' if tab == 'Summary' else '/step/0'}")
    listening = []
    for _ in range(2):
        page.get_by_role("tab", name=tab).click()
        page.wait_for_function(OVERVIEW_DRAWN)
        page.get_by_role("tab", name=other).click()
        page.wait_for_function("!document.querySelector('.chart.rate')")
        listening.append(page.evaluate("window.listening.size"))
    assert listening[0] == listening[1]


# Answered after all that came before.
USED = "async () => { for (let each = 0; each < 3; each++) await (await fetch('/api/runs')).json(); }"


def test_an_answer_that_comes_after_its_view_was_left_is_not_shown(page: Any, seen: Seen) -> None:
    show(page, seen, HOLD)
    page.wait_for_function(OVERVIEW_DRAWN)
    held: list[Any] = []
    page.route("**/instances*", lambda route: held.append(route))
    with page.expect_request("**/instances*"):
        page.get_by_role("tab", name="Instances").click()
    page.get_by_role("tab", name="Over time").click()
    page.wait_for_function(OVERVIEW_DRAWN)
    (late,) = held
    with page.expect_response("**/instances*"):
        late.continue_()
    page.evaluate(USED)
    assert page.evaluate(OVERVIEW_DRAWN)
    page.unroute("**/instances*")


def test_latency_against_load_leaves_out_attempts_that_were_repeated(page: Any) -> None:
    left = page.evaluate("""async () => {
        const { LoadChart } = await import('/static/load_chart.js');
        const steps = [['a', false], ['a+attempt=2', true], ['b', true]].map(([name, counts]) => (
            { name, counts, measurements: [{ name }] }));
        return new LoadChart({ document: { steps } }).measurements().map((one) => one.name);
    }""")
    assert left == ["a+attempt=2", "b"]


OF_LOADS = """async (changes) => {
    const { curvesOf } = await import('/static/load_chart.js');
    const parameters = { blocksize: 4096, iops: 100, seed: 1, scatter_seed: 2 };
    const load = { access: 'reads', rate: 'at some' };
    const one = { load, hosts_in: 2, hosts_of: 2, step: { number: 0, name: 's' } };
    const measured = changes.map(({ parameters: own, ...more }, at) => (
        { ...one, at, iops_setting: at, parameters: { ...parameters, ...own }, ...more }));
    return curvesOf(measured).map(({ name, pass, points }) => [name, pass, points.map((point) => point.at)]);
}"""
READS = "reads"


@pytest.mark.parametrize(
    ("changes", "curves"),
    [
        ([{}, {"parameters": {"iops": 5, "seed": 7, "scatter_seed": 9}}], [[READS, 0, [0, 1]]]),
        ([{}, {"parameters": {"blocksize": 8192}}, {}], [[READS, 0, [0, 2]], [READS, 0, [1]]]),
        ([{}, {"parameters": {"iops": "profile"}}], [[READS, 0, [0]], ["reads, at a rate that changes", 0, [1]]]),
        ([{}, {"hosts_in": 1}], [[READS, 0, [0]], ["reads, 1 of 2 hosts", 0, [1]]]),
        ([{"iops_setting": "max"}] * 3, [[READS, 0, [0]], [READS, 1, [1]], [READS, 2, [2]]]),
        ([{}, {}, {"iops_setting": 0}, {"iops_setting": 1}], [[READS, 0, [0, 1]], [READS, 1, [2, 3]]]),
        (
            [{"iops_setting": None, "parameters": {"iops": rate}} for rate in (1, 2, 2)],
            [[READS, 0, [0, 1]], [READS, 1, [2]]],
        ),
        ([{"level": "a"}, {"level": "b"}, {}], [["s", 0, [0, 1]], [READS, 0, [2]]]),
        (
            [{"level": "a"}, {"level": "a", "step": {"number": 1, "name": "s"}}],
            [["s", 0, [0]], ["s", 0, [1]]],
        ),
    ],
    ids=["rate alone", "size", "profile", "lost host", "again", "second pass", "some paced", "levels", "of two steps"],
)
def test_a_line_joins_only_measurements_that_differ_by_the_rate_alone(
    page: Any, changes: list[dict[str, Any]], curves: list[list[Any]]
) -> None:
    assert page.evaluate(OF_LOADS, changes) == curves


def test_what_was_chosen_last_is_drawn_though_its_answer_came_first(page: Any) -> None:
    drawn = page.evaluate("""async () => {
        const { LoadChart } = await import('/static/load_chart.js');
        const metrics = { overall_iops: 100, overall_response_us_p99: 9, overall_service_us_p99: 5 };
        const one = { name: 'one', level: '1', load: {}, verdict: 'valid', metrics };
        const measurements = [{ ...one, iops_setting: 90 }, { ...one, iops_setting: 100 }];
        const step = { number: 0, name: 'one', thresholds: [], measurements };
        const over_load = ['response', 'service'].map((time) => (
            { name: `overall_${time}_us_p99`, title: `${time} p99`, is_time: true, verdict: `${time}_verdict` }));
        const asked = [];
        const source = { json: () => new Promise((answer) => asked.push(answer)) };
        const view = new LoadChart({ id: 'r', source, document: { steps: [step], over_load } });
        document.body.append(view.node);
        const first = view.show();
        view.metric = 'overall_service_us_p99';
        const last = view.drawPoints(view.measurements());
        asked[1]({});
        await last;
        asked[0]({});
        await first;
        const drawn = [view.chart.layout.yaxis.title.text, ...view.chart.data[0].y];
        view.close();
        view.node.remove();
        return drawn;
    }""")
    assert drawn == ["service p99", 5, 5]


@pytest.mark.parametrize(
    ("step", "chart"),
    [(0, "measure"), (1, "pid"), (2, "steady"), (3, "profile")],
    ids=["accuracy", "feedback", "steady state", "rate over time"],
)
def test_what_control_saw_is_drawn(page: Any, seen: Seen, step: int, chart: str) -> None:
    show(page, seen, f"#/run/held/step/{step}")
    drawn = f"document.querySelector('[data-table={chart}] .chart')?.data"
    page.wait_for_function(f"() => {drawn}?.some((one) => one.y.some((y) => y !== null))")


KNEES = [
    ("a queue", [[100, 1.0], [200, 1.1], [400, 1.3], [800, 2.0], [900, 8.0], [950, 40.0]], [800, 2.0]),
    ("three points", [[100, 1.0], [200, 1.1], [400, 9.0]], None),
    ("a straight line", [[100, 1.0], [200, 2.0], [400, 4.0], [800, 8.0]], None),
    ("a stall in the second", [[600, 1.7], [900, 14.6], [1350, 2.5], [2000, 4.3]], None),
]


@pytest.mark.parametrize(("points", "knee"), [one[1:] for one in KNEES], ids=[one[0] for one in KNEES])
def test_the_knee_is_where_latency_bends(page: Any, points: list[list[float]], knee: list[float] | None) -> None:
    script = "async (points) => (await import('/static/load_chart.js')).kneeOf(points)"
    assert page.evaluate(script, points) == knee


FOLLOWED = """async () => {
    const { RunModel } = await import('/static/run_model.js');
    const asked = [], released = [];
    let answered = 0, group = 1;
    const packed = (from) => {
        const places = group === 1 ? [0, 1, 2].filter((one) => one >= from) : [0];
        const header = { group, first: places, start: places, length_s: places.map(() => 1),
                         in_measurement: places.map(() => 1), bits: 6, sets: [] };
        const text = new TextEncoder().encode(JSON.stringify(header).padEnd(300));
        const bytes = new Uint8Array(4 + text.length);
        new DataView(bytes.buffer).setUint32(0, text.length, true);
        bytes.set(text, 4);
        return bytes.buffer;
    };
    const from = (address) => Number(new URL(address, location).searchParams.get('from'));
    const source = {
        isLive: true,
        json: async (address) => {
            asked.push(address.split('/').slice(4).join('/') || 'document');
            if (released.length) await released[0];
            if (!address.includes('series')) return { run: { state: 'running' }, steps: [{ number: 0, rollups: {} }] };
            const fresh = [0, 1, 2].filter((one) => one >= from(address) && one < answered);
            return { from: from(address), subinterval: fresh, metrics: { overall_iops: [...fresh] } };
        },
        binary: async (address) => (asked.push(address.split('/').slice(4).join('/')), packed(from(address))),
        follow: () => () => {},
    };
    const model = new RunModel(source, 'x');
    answered = 1;
    await model.open(null);
    const state = (closed, doc = 1) => ({ doc, step: 0, closed, status: { paused: false }, ended: false });
    await model.take(state(1));
    const before = asked.length;
    answered = 2;
    let release;
    released.push(new Promise((resolve) => (release = resolve)));
    const all = [2, 2, 2, 2, 3].map((closed) => model.take(state(closed)));
    answered = 3;
    release();
    await Promise.all(all);
    const added = asked.slice(before);
    const series = [...model.series.subinterval];
    group = 2;
    await model.take(state(4));
    return { added, series, columns: model.columns.length, group: model.group, asked };
}"""


def test_a_slow_browser_asks_once_for_the_newest_state(page: Any) -> None:
    """Five states arrive while one is worked on. And columns of another width replace those that there are."""
    found = page.evaluate(FOLLOWED)
    assert found["series"] == [0, 1, 2]
    assert 2 <= len(found["added"]) <= 4 and all("from=1" in one or "from=3" in one for one in found["added"])
    assert found["asked"][-1].endswith("from=0") and (found["group"], found["columns"]) == (2, 1)


DRAWN_FOR_LONG = """async (drawings) => {
    const { RunModel } = await import('/static/run_model.js');
    const source = { json: async () => ({ run: { state: 'running' }, steps: [] }) };
    const model = new RunModel(source, 'x');
    const drawn = [];
    await new Promise((ready) => {
        model.onchange(() => {
            const begun = performance.now();
            while (performance.now() < begun + 30);
            drawn.push([begun, performance.now()]);
            if (drawn.length === drawings) ready();
            else for (const doc of [drawn.length, 100 + drawn.length]) model.take({ doc });
        });
        model.take({ doc: 0 });
    });
    return drawn;
}"""


def test_a_live_page_leaves_most_of_a_core_to_others(page: Any) -> None:
    """However often states come, and however slowly it draws, three times as long passes before it draws again."""
    for (begun, ended), (again, _) in pairwise(page.evaluate(DRAWN_FOR_LONG, 4)):
        assert again - ended >= 3 * (ended - begun) - 1.5  # a millisecond is what timers are early by


RECONNECTED = """async () => {
    const { addresses, sourceOf } = await import('/static/source.js');
    const own = window.WebSocket, opened = [], seen = [];
    window.WebSocket = class { constructor(url) { this.url = url; opened.push(this); } close() {} };
    const source = await sourceOf();
    const end = source.follow('a b', (state) => seen.push(state.closed), (isLinked) => seen.push(isLinked));
    opened[0].onopen();
    opened[0].onmessage({ data: '{"closed": 7}' });
    opened[0].onclose();
    while (opened.length < 2) await new Promise((resolve) => setTimeout(resolve, 20));
    opened[1].onopen();
    opened[1].onmessage({ data: '{"closed": 9}' });
    end();
    opened[1].onclose();
    window.WebSocket = own;
    return { seen, path: new URL(opened[1].url).pathname };
}"""


def test_a_lost_connection_is_said_and_made_again(page: Any) -> None:
    found = page.evaluate(RECONNECTED)
    assert found == {"seen": [True, 7, False, True, 9], "path": "/api/runs/a%20b/live"}


def test_a_run_that_there_is_not_is_said(wide: Any, seen: Seen) -> None:
    wide.goto(f"{seen.address}/#/run/nothing")
    wide.wait_for_selector("[role=alert] >> text=There is no such run here.")
    assert [one for one in seen.errors if "404" not in one] == [] and not seen.elsewhere
    seen.errors.clear()


def test_times_are_local_with_utc_beside_them(page: Any) -> None:
    started = page.locator("table.runs time").first
    utc = started.get_attribute("title")
    assert utc.endswith(" UTC")
    minute = int(utc[14:16]) + 30
    assert f":{minute % 60:02}" in started.inner_text(), "half an hour beside it: the browser is in India"


def test_the_figure_beside_the_slider_is_the_measurements(page: Any, seen: Seen, folders: dict[str, Path]) -> None:
    """As the summary has it: without the warmup, and without what was before a host was lost."""
    show(page, seen, HOLD)
    (row,) = [one for one in rows_of(folders["tour"] / "summary.all.csv") if one["name"] == "hold"]
    texts = "(us) => import('/static/format.js').then((one) => one.latency(us))"
    for time in ("service", "response"):
        page.get_by_label("time", exact=True).select_option(f"{time} time")
        for button, column in (("p50", "p50"), ("p90", "p90"), ("p99", "p99")):
            page.get_by_role("button", name=button, exact=True).click()
            shown = page.evaluate(texts, float(row[f"overall_{time}_us_{column}"]))
            page.get_by_text(f"{button} {shown} over the measurement", exact=True).wait_for()


def test_lines_and_heat_map_stand_at_the_same_times(page: Any, seen: Seen) -> None:
    show(page, seen, HOLD)
    xs = "(chart, line) => [...document.querySelector(`.chart.${chart}`).data[line].x]"
    rate, heat = (page.evaluate(f"() => ({xs})('{chart}', 0)") for chart in ("rate", "heat"))
    assert rate == heat and len(rate) > 10
    for chart in ("latency", "cpu", "track"):
        assert page.evaluate(f"() => ({xs})('{chart}', 0)") == rate


def test_a_run_says_to_which_step_it_owes_its_verdict(page: Any, seen: Seen) -> None:
    show(page, seen, HOLD)
    assert (
        "1 of 4 steps is valid. hold: a threshold was missed and 1 more reason."
        in page.locator(".run-head").inner_text()
    )


def test_discredited_figures_stand_in_brackets_in_every_table(page: Any, seen: Seen) -> None:
    """In that of measurements and in that of instances, each by the verdict of its own scope."""

    def discredited(route: Any) -> None:
        said = route.fetch().json()
        rows = said.get("instances") or [one for step in said.get("steps", []) for one in step["measurements"]]
        for row in rows:
            row.update(rate_verdict="valid", service_verdict="invalid", response_verdict="valid")
        route.fulfill(json=said)

    addresses = ("**/api/runs/tour", "**/api/runs/tour/steps/1/instances*")
    for one in addresses:
        page.route(one, discredited)
    page.reload()
    for view, service, others in (
        ("#/run/tour", ("service p99", "service mean"), "IOPS"),
        (f"{HOLD}/instances", ("service p50", "service p99"), "IOPS"),
    ):
        show(page, seen, view)
        page.wait_for_selector("#view table tbody tr")
        heads = page.locator("#view table:not(.probes) thead th").all_inner_texts()
        for line in page.locator("#view table:not(.probes) tbody tr:not(.why)").all():
            cells = dict(zip(heads, line.locator("th, td").all_inner_texts(), strict=True))
            assert all(cells[name] == "-" or cells[name].startswith("[") for name in service), cells
            assert not cells[others].startswith("["), cells
    for one in addresses:
        page.unroute(one)
    page.reload()


@pytest.mark.parametrize(
    ("route", "lost", "drawn"), [("", "**/api/runs", "table.runs"), (HOLD, "**/api/runs/tour", "#view .panel")]
)
def test_a_page_whose_first_request_is_lost_asks_again(
    page: Any, seen: Seen, route: str, lost: str, drawn: str
) -> None:
    page.route(lost, lambda one: one.abort("internetdisconnected"))
    page.goto(f"{seen.address}/{route}")
    page.reload()
    page.get_by_text("The server does not answer.").wait_for()
    page.unroute(lost)
    page.wait_for_selector(drawn)
    seen.errors.clear()


CUT = """async () => {
    const { sourceOf } = await import('/static/source.js');
    const own = window.fetch, source = await sourceOf(), said = [];
    const cut = () => new ReadableStream({ start: (stream) => stream.error(new TypeError('network error')) });
    window.fetch = async () => new Response(cut());
    for (const kind of ['json', 'binary']) await source[kind]('/api/runs').catch((error) => said.push(error.message));
    window.fetch = async () => new Response('{');
    await source.json('/api/runs').catch((error) => said.push(error.name));
    window.fetch = own;
    return said;
}"""


def test_an_answer_that_is_cut_is_none(page: Any) -> None:
    assert page.evaluate(CUT) == ["The server does not answer."] * 2 + ["SyntaxError"]


def test_without_histograms_the_other_charts_are_drawn(page: Any, seen: Seen) -> None:
    page.route("**/histograms*", lambda route: route.fulfill(status=500, json={"error": "histograms.sqlite is gone."}))
    show(page, seen, HOLD)
    page.get_by_text("histograms.sqlite is gone.").wait_for()
    assert page.evaluate("document.querySelector('.chart.rate').data[0].y.length") > 10
    page.unroute("**/histograms*")
    seen.errors.clear()


GROWN = """async () => {
    const { eventTrack } = await import('/static/event_track.js');
    const { TimeGroup } = await import('/static/charts.js');
    const node = document.createElement('div');
    document.getElementById('main').append(node);
    const events = [], series = { start: [0, 1], length_s: [1, 1], phase: ['run', 'run'] };
    const model = { step: 0, series, document: { events } };
    const group = new TimeGroup();
    const sizes = [];
    for (const kind of ['none', 'mark', 'edit', 'lost']) {
        if (kind !== 'none') events.push({ step: 0, utc: 0.5, kind, host: '', text: 'x' });
        await eventTrack(model, node, group, []);
        const drawn = node.querySelector('.main-svg').clientHeight;
        sizes.push([node.clientHeight, drawn, node.querySelectorAll('.ytick').length]);
    }
    return sizes;
}"""


def test_the_track_of_events_grows_with_its_lanes(page: Any) -> None:
    sizes = page.evaluate(GROWN)
    assert [lanes for _, _, lanes in sizes] == [1, 2, 3, 4]
    assert all(drawn == height for height, drawn, _ in sizes), sizes


WORDS = [
    ("all=all iops=5k", ["all=all", "iops=5k"]),
    ("  port='two words'  iops=5 ", ["port=two words", "iops=5"]),
    ('port="it\'s" x', ["port=it's", "x"]),
    ("port={a,b}", ["port={a,b}"]),
    ("port=5'", ["port=5'"]),
    ("''", [""]),
    ("", []),
]


@pytest.mark.parametrize(("text", "words"), WORDS)
def test_quotes_hold_words_together_as_on_the_command_line(page: Any, text: str, words: list[str]) -> None:
    found = page.evaluate("async (text) => (await import('/static/control_panel.js')).wordsOf(text)", text)
    assert found == words


NAMELESS = """() => [...document.querySelectorAll(
        'button, a, input, select, summary, [role=button], [role=img], [role=region]')]
    .filter((one) => one.checkVisibility() && !(one.ariaLabel || one.textContent.trim() || one.title
        || one.labels?.[0]?.textContent.trim())).map((one) => one.outerHTML.slice(0, 200))"""
HEADINGS = """[...document.querySelectorAll('h1, h2, h3, h4')].filter((one) => one.checkVisibility())
    .map((one) => Number(one.tagName[1]))"""
POOR_CONTRAST = """() => {
    const parsed = (text) => (text.match(/[\\d.]+/g) ?? [0, 0, 0, 0]).map(Number);
    const light = ([r, g, b]) => [r, g, b].map((one) => one / 255).map((one) =>
        one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4)
        .reduce((sum, one, place) => sum + one * [0.2126, 0.7152, 0.0722][place], 0);
    const behind = (node) => {
        for (; node; node = node.parentElement) {
            const found = parsed(getComputedStyle(node).backgroundColor);
            if (found.length < 4 || found[3] > 0.99) return found;
        }
        return [255, 255, 255];
    };
    const poor = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const node = walker.currentNode.parentElement;
        const isText = walker.currentNode.data.trim() && !node.closest('noscript, script, style');
        if (!isText || !node.checkVisibility()) continue;
        const style = getComputedStyle(node);
        const ink = node.closest('svg') ? style.fill : style.color;
        if (parsed(ink)[3] === 0) continue;
        const [a, b] = [light(parsed(ink)), light(behind(node))].sort((one, two) => two - one);
        if ((a + 0.05) / (b + 0.05) < 4.5) poor.push(`${walker.currentNode.data.trim().slice(0, 40)}: ${ink}`);
    }
    return [...new Set(poor)];
}"""


def accessible(page: Any) -> None:
    assert page.evaluate(NAMELESS) == []
    levels = page.evaluate(HEADINGS)
    assert levels[:1] == [1] and levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels)), levels
    assert page.evaluate(POOR_CONTRAST) == []
    assert page.locator("main").count() == 1 and page.locator("nav[aria-label]").count() >= 1
    assert page.locator("th:not([scope])").count() == 0


def test_every_view_is_accessible_in_both_themes(page: Any, seen: Seen) -> None:
    show(page, seen, "#/")
    accessible(page)
    for route in (f"{HOLD}{view}" for view in VIEWS):
        show(page, seen, route)
        accessible(page)
        page.locator("#theme").click()
        assert page.evaluate("document.documentElement.dataset.theme") == "dark"
        page.wait_for_selector(".chart .main-svg, #view table, #view pre")
        accessible(page)
        page.locator("#theme").click()


# How many rules passed, and what failed. Of the elements that passed, axe need not work out how to find them.
AXE = """async (rules) => {
    const found = await axe.run(document, { ...rules, resultTypes: ['violations'] });
    return [found.passes.length, found.violations.map((one) => [one.id, one.nodes[0].html])];
}"""


def test_axe_finds_nothing_in_any_view(browser: Any, seen: Seen) -> None:
    """The rules of axe-core; in the dark, those about colours. It runs from this test: the page's policy would not let
    it."""
    axe = Path(pytest.importorskip("axe_playwright_python").__file__).with_name("axe.min.js").read_text()
    context = browser.new_context(viewport=WIDE, bypass_csp=True)
    page = context.new_page()
    show(page, seen, "#/")
    page.evaluate(f"{axe}; 0")  # once, as no view loads the page anew
    for theme, rules, least in (("light", {}, 10), ("dark", {"runOnly": ["color-contrast"]}, 1)):
        page.emulate_media(color_scheme=theme)
        page.wait_for_function("(theme) => document.documentElement.dataset.theme === theme", arg=theme)
        for route in ("#/", *(f"{HOLD}{view}" for view in VIEWS)):
            show(page, seen, route)
            passed, violations = page.evaluate(AXE, rules)
            assert passed >= least
            assert violations == [], (theme, route)
    context.close()


def test_a_chosen_theme_stays(browser: Any, seen: Seen) -> None:
    """A phone in the dark: the browser's own wish first, then the user's; and nothing is wider than the screen."""
    context = browser.new_context(viewport=PHONE, color_scheme="dark", has_touch=True)
    seen.watch(context)
    page = context.new_page()
    page.goto(f"{seen.address}/#/")
    page.wait_for_selector("table.runs")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.locator("#theme").click()
    page.reload()
    page.wait_for_selector("table.runs")
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    for route in ["#/", *(f"{HOLD}{view}" for view in VIEWS)]:
        show(page, seen, route)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], route
    context.close()
    assert not seen.errors and not seen.elsewhere


def test_the_surface_is_drawn_when_it_is_opened(page: Any, seen: Seen) -> None:
    show(page, seen, HOLD)
    assert page.locator("canvas").count() == 0 or page.locator(".gl-container canvas").count() == 0
    page.get_by_role("tab", name="Surface").click()
    page.wait_for_selector(".chart.surface canvas")
    shape = page.evaluate("(({ z }) => [z.length, z[0].length])(document.querySelector('.chart.surface').data[0])")
    assert shape[0] <= 64 and shape[1] <= 240


MANY_STEPS = """async () => {
    const { RunTrack, barsOf } = await import('/static/run_track.js');
    const words = ['valid', 'partial', 'valid', 'invalid', 'failed'];
    const steps = Array.from({ length: 1000 }, (_, at) => ({
        number: at, name: `s${at}`, state: at === 999 ? 'running' : 'ended', verdict: at === 999 ? null : words[at % 5],
        start: 1e9 + 40 * at, end: at === 999 ? null : 1e9 + 40 * at + 30 }));
    const events = Array.from({ length: 5000 }, (_, at) => ({
        utc: 1e9 + 8 * at, kind: at % 2 ? 'edit' : 'slo_breached', host: '', text: `<b>${at}` }));
    const opened = [];
    const now = (unix) => ({ last: { utc: new Date(unix * 1000).toISOString() } });
    const model = { step: 999, isRunning: true, status: now(1e9 + 40000),
                    document: { run: { start_utc: new Date(1e12).toISOString(), length_s: null }, steps, events } };
    const track = new RunTrack(model, (number) => opened.push(number), () => model.step);
    const place = document.createElement('footer');  // its own: the page's is filled when the list of runs comes
    place.append(track.node);
    document.body.append(place);
    track.show();
    while (!track.width) await new Promise(requestAnimationFrame);
    const bars = [...track.node.querySelectorAll('.bar-of-step')];
    const began = performance.now();
    model.status = now(1e9 + 40010);
    track.show();
    const redrawn = performance.now() - began;
    const last = track.node.querySelector('.bar-of-step:last-child');
    last.focus();
    last.dispatchEvent(new KeyboardEvent('keydown', { key: 'Home', bubbles: true }));
    const first = document.activeElement.getAttribute('aria-label');
    document.activeElement.click();
    const counted = bars.map((one) => Number((one.getAttribute('aria-label').match(/^(\\d+) steps/) ?? [0, 1])[1]));
    const scale = (at) => (at - 1e9) / 400;
    const wide = barsOf(steps.slice(0, 2), 1e9 + 40000, scale, 0.001);
    track.close();
    const found = {
        bars: bars.length, ticks: track.node.querySelectorAll('.tick').length,
        counted: counted.reduce((a, b) => a + b), first, opened,
        stops: bars.filter((one) => one.tabIndex === 0).length, wide: wide.map((one) => [one.left, one.width]),
        redrawn, over: document.documentElement.scrollWidth - document.documentElement.clientWidth };
    place.remove();
    return found;
}"""


@pytest.mark.parametrize(("width", "worst"), [(WIDE, (1, "partial")), (PHONE, (3, "invalid"))], ids=["wide", "phone"])
def test_a_thousand_steps_are_one_strip(page: Any, width: Any, worst: tuple[int, str]) -> None:
    page.set_viewport_size(width)
    found = page.evaluate(MANY_STEPS)
    page.set_viewport_size(WIDE)
    assert found["bars"] <= width["width"] / 2 and found["ticks"] <= 2 * width["width"] / 2
    assert found["counted"] == 1000 and found["stops"] == 1
    assert [at for one in found["wide"] for at in one] == pytest.approx([0, 0.075, 0.1, 0.075]), "to scale"
    assert "steps, 0 to" in found["first"] and "UTC" in found["first"] and worst[1] in found["first"]
    assert found["opened"] == [worst[0]], "the worst of those that are joined"
    assert found["over"] <= 0, found


def test_the_strip_shows_every_step_where_it_was_and_opens_it(page: Any, seen: Seen, folders: dict[str, Path]) -> None:
    show(page, seen, HOLD)
    said = RunData(folders["tour"]).document()
    start = datetime.fromisoformat(said["run"]["start_utc"]).timestamp()
    length = said["run"]["length_s"]
    bars = page.locator(".bar-of-step")
    assert bars.count() == len(said["steps"])
    for place, step in enumerate(said["steps"]):
        left, width = bars.nth(place).evaluate("(one) => [parseFloat(one.style.left), parseFloat(one.style.width)]")
        assert left == pytest.approx(100 * (step["start"] - start) / length, abs=0.01)
        assert width == pytest.approx(100 * (step["end"] - step["start"]) / length, abs=0.01)
        assert f"step {place} {step['name']}: {step['verdict']}" in str(bars.nth(place).get_attribute("aria-label"))
    for lane in ("edits", "marks", "hosts", "thresholds"):
        assert page.locator(f".tick.{lane}").count() >= 1, lane
    bars.nth(1).focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.querySelectorAll('.bar-of-step')[2].ariaPressed === 'true'")
    assert "/step/2" in page.url


def test_the_terms_of_feedback_are_those_of_its_table(page: Any, seen: Seen, folders: dict[str, Path]) -> None:
    show(page, seen, "#/run/held/step/1")
    (path,) = folders["held"].glob("step0001.*/pid.csv")
    drawn = "document.querySelector('[data-table=pid] .chart')?.data"
    page.wait_for_function(f"() => {drawn}?.length >= 6")
    for name, column in (("error", "error_ln"), ("move", "integral_ln"), ("gain", "gain")):
        ys = page.evaluate(f"{drawn}.find((one) => one.name === '{name}').y")
        assert known(ys) == pytest.approx(known([float(one[column] or "nan") for one in rows_of(path)]), nan_ok=True)
        assert page.locator(".terms").get_by_text(f"{name}: ").count() == 1


REMOVED = """async () => {
    const { RunModel } = await import('/static/run_model.js');
    const { Missing } = await import('/static/source.js');
    let isThere = true, link;
    const source = {
        isLive: true,
        json: async () => { if (!isThere) throw new Missing('gone'); return { run: { state: 'running' }, steps: [] }; },
        follow: (id, onstate, onlink) => ((link = onlink), () => {}),
    };
    const model = new RunModel(source, 'x');
    await model.open(null);
    link(false);
    await new Promise((resolve) => setTimeout(resolve, 0));
    const before = model.isRemoved;
    isThere = false;
    link(false);
    await new Promise((resolve) => setTimeout(resolve, 0));
    return [before, model.isRemoved, model.isRunning];
}"""


def test_a_removed_run_is_told_from_a_lost_server(page: Any) -> None:
    assert page.evaluate(REMOVED) == [False, True, False]


def test_a_step_in_rounds_is_drawn_round_by_round_with_its_means_above(
    page: Any, seen: Seen, folders: dict[str, Path]
) -> None:
    show(page, seen, "#/run/held")
    chart = "document.querySelector('[aria-label=\"Rounds of again\"] .chart')"
    page.wait_for_function(f"() => {chart}?.data?.length")
    with open(folders["held"] / "rounds.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert page.evaluate(f"() => [...{chart}.data[0].y]") == pytest.approx([float(row["value"]) for row in rows])
    assert page.evaluate(f"() => [...{chart}.data[0].x]") == [int(row["round"]) for row in rows]
    table = page.locator("[aria-label='the result of again']")
    assert table.locator("tbody th, tbody td").all_inner_texts() == [
        *RunData(folders["held"]).document()["rounds"]["tables"][0]["rows"][0]
    ]


DISCARDED = """async () => {
    const { discard, draw, layoutOf } = await import(`${location.origin}/static/charts.js`);
    const node = document.createElement('div');
    document.querySelector('main, body').append(node);
    const drawn = draw(node, [{ type: 'scatter', x: [1, 2], y: [1, 2] }], layoutOf());
    discard(node);
    await drawn;
    node.remove();
    return node.data === undefined;
}"""


def test_a_chart_that_is_left_while_it_is_drawn_makes_no_error(page: Any) -> None:
    assert page.evaluate(DISCARDED)


def by_address(folder: Path, kind: str, instance: str, column: str) -> list[float | None]:
    with open(folder / "step0000.accuracy" / "by_address.csv", newline="") as file:
        rows = [row for row in csv.DictReader(file) if (row["rollup_type"], row["rollup_instance"]) == (kind, instance)]
    return [float(row[column]) if row[column] else None for row in rows]


ADDRESS_CHART = "document.querySelector('[aria-label=\"{}\"] .chart')"


def test_the_view_by_address_has_the_figures_of_by_address_csv(page: Any, seen: Seen, folders: dict[str, Path]) -> None:
    counts, times, mapped = (
        ADDRESS_CHART.format(one) for one in ("I/Os by address", "Service time by address", "Map of the instances")
    )
    show(page, seen, "#/run/held/step/0/address")
    page.wait_for_function(f"() => {times}?.data?.length === 4")
    of_all = [by_address(folders["held"], "all", "all", name) for name in ("reads", "changes")]
    assert page.evaluate(f"() => {counts}.data.map((one) => [...one.y])") == of_all
    assert page.evaluate(f"() => {counts}.data[0].x[0]") == 2.5  # twenty sections: the middle of the first
    longest = by_address(folders["held"], "all", "all", "change_service_us_max")
    assert page.evaluate(f"() => [...{times}.data[3].y]") == [*longest, longest[-1]]
    assert page.evaluate(f"() => {mapped}.closest('section').hidden")
    page.get_by_label("rollup").select_option("host")
    page.wait_for_function(f"() => {mapped}?.data?.length")
    page.get_by_label("figure").select_option("count")
    of_hosts = [by_address(folders["held"], "host", name, "reads") for name in ("lab01", "lab02")]
    page.wait_for_function(f"(expected) => String({mapped}.data[0].z) === String(expected)", arg=of_hosts)


def test_a_step_that_was_not_counted_by_address_has_no_such_view(page: Any, seen: Seen) -> None:
    show(page, seen, HOLD)
    tabs = ["Over time", "Instances", "Distribution", "Surface"]
    assert page.get_by_role("tab").all_inner_texts() == tabs
    show(page, seen, f"{HOLD}/address")
    counts = page.get_by_label("I/Os by address")
    counts.get_by_text("There are none: the plan of this step has no by_address, or nothing was measured.").wait_for()
