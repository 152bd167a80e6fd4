"""Pictures of the page's views, of the simulated runs that its tests look at, and of the gallery's runs.

`scripts/screenshots` writes them.
"""

import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.support.browser import PHONE, WIDE, chromium
from tests.support.compared_runs import nights, set_cells
from tests.support.gallery import EXHIBITS, Exhibit
from tests.support.page_server import Answers, serving
from tests.support.shown_runs import gathered, held, tour

IMAGES = Path(__file__).parents[2] / "docs" / "images"
DRAWN = """() => {
  const charts = [...document.querySelectorAll('.chart')].filter((one) => one.offsetParent);
  return document.querySelector('#view .panel, #view table, #view .empty, #main table.runs, #main .chart')
    && charts.every((one) => one.querySelector('.main-svg') || !one.matches('[data-time]'));
}"""
SETTLES_MS = 1500  # drawings in 3-D, and what moves into its place
WIDTHS = {"wide": WIDE, "phone": PHONE}
FIRST_SCREEN = {"width": 1200, "height": 1150}  # of an exhibit
THEMES = ("light", "dark")


@dataclass(frozen=True, slots=True)
class View:
    name: str
    route: str
    panel: str = ""  # of the documentation's picture, where it is not the whole page


NIGHTS = tuple(f"n{number}" for number in range(1, 25))  # the last three slower by 8 %
BEFORE, AFTER = NIGHTS[:-3], NIGHTS[-3:]
VIEWS = (
    View("runs", "#/"),
    View("compare", f"#/compare/{','.join(BEFORE)}/{','.join(AFTER)}"),
    View("summary", "#/run/tour"),
    View("overview", "#/run/tour/step/1"),
    View("accuracy", "#/run/held/step/0", '[data-table="measure"]'),
    View("pid", "#/run/held/step/1", '[data-table="pid"]'),
    View("steady", "#/run/held/step/2", '[data-table="steady"]'),
    View("search", "#/run/tour/step/3", '[data-table="find"]'),
    View("instances", "#/run/tour/step/1/instances"),
    View("elements", "#/run/array/step/1/elements"),
    View("distribution", "#/run/tour/step/1/distribution"),
    View("surface", "#/run/tour/step/1/surface"),
    View("events", "#/run/tour/events"),
    View("plan", "#/run/tour/plan"),
)
ALSO = (("overview", "dark", "wide"), ("overview", "light", "phone"))


@dataclass(frozen=True, slots=True)
class Picture:
    view: View
    theme: str
    width: str

    @property
    def file(self) -> str:
        """The view alone where it is as most see it."""
        more = [one for one in (self.theme, self.width) if one not in ("light", "wide")]
        return "-".join([self.view.name, *more]) + ".png"


def pictures(everything: bool) -> Iterator[Picture]:
    for theme in THEMES:
        for width in WIDTHS:
            for view in VIEWS:
                if everything or (theme, width) == ("light", "wide") or (view.name, theme, width) in ALSO:
                    yield Picture(view, theme, width)


def take(browser: Any, address: str, picture: Picture, folder: Path, panel: str) -> None:
    context = browser.new_context(viewport=WIDTHS[picture.width], color_scheme=picture.theme, timezone_id="UTC")
    page = context.new_page()
    page.goto(f"{address}/{picture.view.route}")
    page.wait_for_function(DRAWN)
    page.wait_for_timeout(SETTLES_MS)
    if panel:
        page.locator(panel).screenshot(path=folder / picture.file)
    else:
        page.screenshot(path=folder / picture.file, full_page=True)
    context.close()


def take_exhibit(browser: Any, address: str, exhibit: Exhibit) -> None:
    """The first screen of its view."""
    page = browser.new_page(viewport=FIRST_SCREEN, color_scheme="light", timezone_id="UTC")
    page.goto(f"{address}/#/run/{exhibit.name}{exhibit.route}")
    page.wait_for_function(DRAWN)
    page.wait_for_timeout(SETTLES_MS)
    page.screenshot(path=exhibit.picture)
    page.close()


def main(words: list[str]) -> None:
    """Of the documentation into docs/images, or with `--all FOLDER` of every view in both themes and at both widths."""
    match words:
        case []:
            folder, everything = IMAGES, False
        case ["--all", name]:
            folder, everything = Path(name), True
        case _:
            sys.exit("scripts/screenshots [--all FOLDER]")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as root:
        folders = {"tour": tour(Path(root), "2B").folder, "held": held(Path(root)).folder}
        folders["array"] = gathered(Path(root)).folder
        levels = np.exp(0.007 * np.random.default_rng(1).standard_normal(len(NIGHTS))) * ([1.0] * 21 + [1.08] * 3)
        runs = nights(Path(root) / "nights", levels.tolist(), name="nightly", subintervals=24)
        set_cells(runs[8], "max", service_verdict="invalid", reasons="reap_delay[invalid] (90% of the mean)")
        folders |= zip(NIGHTS, runs, strict=True)
        exhibits = () if everything else EXHIBITS
        folders |= {exhibit.name: exhibit.run(Path(root)).folder for exhibit in exhibits}
        with serving(Answers(folders)) as address, chromium() as browser:
            for picture in pictures(everything):
                take(browser, address, picture, folder, "" if everything else picture.view.panel)
                print(folder / picture.file)
            for exhibit in exhibits:
                take_exhibit(browser, address, exhibit)
                print(exhibit.picture)


if __name__ == "__main__":
    main(sys.argv[1:])
