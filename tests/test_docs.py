"""Pages that code prints are as the code prints them; `scripts/docs` writes them anew."""

import re
from enum import StrEnum
from pathlib import Path

import pytest

from ivypy.master.control.observation import Phase
from ivypy.master.imports.fio_options import MAPPED
from ivypy.master.imports.vdbench_words import RD, SD, WD
from ivypy.master.plan.load import read
from ivypy.master.verdicts import Scope, Severity, Verdict
from ivypy.protocol.parameters import PARAMETERS, Iosequencer
from tests.support.doc_pages import ROOT, pages
from tests.support.gallery import EXHIBITS, GALLERY
from tests.support.screenshots import IMAGES, pictures


@pytest.mark.parametrize("path", pages(), ids=lambda path: path.name)
def test_a_generated_page_is_as_the_code_prints_it(path: Path) -> None:
    assert path.read_text() == pages()[path]


def test_what_contributors_are_pointed_to_is_there() -> None:
    """Each path but one, which is said not to be."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    named = re.findall(r"`([\w.]+/[\w./-]*)", text)
    assert len(named) > 40 and [path for path in named if not (ROOT / path).exists()] == ["src/"]


def test_the_table_of_workloads_names_what_there_is() -> None:
    """Every key, every word of fio and vdbench that the imports know, and every test."""
    rows = re.findall(r"^\| (.*) \|$", (ROOT / "docs" / "workloads.md").read_text(), re.MULTILINE)
    table = [[cell.strip() for cell in row.split("|")] for row in rows if "`" in row]
    keys, fio, vdbench = ({word for row in table for word in re.findall(r"`(\w+)`", row[at])} for at in (1, 2, 3))
    assert {name for name in PARAMETERS if name not in ("spread", "seed", "drop_after")} <= keys
    assert keys <= {*PARAMETERS, "once", "total_iops"}
    assert fio <= {*MAPPED}
    assert vdbench <= {*SD, *WD, *RD}
    assert all((ROOT / "tests" / row[4]).is_file() for row in table)


def anchors(page: Path) -> set[str]:
    """Of the headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize(
    "page", [*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md"))], ids=lambda page: page.name
)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", page.read_text()):
        if not target.startswith("http"):
            file, _, anchor = target.partition("#")
            there = page.parent / file if file else page
            assert there.exists(), target
            assert not anchor or anchor in anchors(there), target


def test_the_user_docs_can_be_read_in_an_evening() -> None:
    """Internals are for those who change ivypy."""
    words = {page: len(page.read_text().split()) for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]}
    assert words[ROOT / "README.md"] <= 900 and sum(words.values()) <= 35_000


def test_pictures_are_those_that_the_script_writes_and_each_is_linked() -> None:
    linked = {
        (page.parent / target).resolve()
        for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
        for target in re.findall(r"\]\(([^)\s]+\.png)\)", page.read_text())
    }
    assert linked == {*IMAGES.iterdir(), *GALLERY.glob("*.png")}
    written = {IMAGES / picture.file for picture in pictures(everything=False)}
    assert linked == written | {exhibit.picture for exhibit in EXHIBITS}


def test_each_plan_of_the_gallery_has_its_place() -> None:
    assert [exhibit.plan for exhibit in EXHIBITS] == sorted(GALLERY.glob("*.yaml")) and len(EXHIBITS) == 12


def test_the_readmes_plan_is_a_plan() -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    plan = read(text, "README.md", {})
    assert [step.name for step in plan.steps] == ["max", "half"] and len(plan.hosts) == 16


def glossary_words() -> list[str]:
    """The words that the glossary explains, with which its entries begin."""
    cells = re.findall(r"^- \*\*(.+?)\*\*: ", (ROOT / "docs/glossary.md").read_text(), re.MULTILINE)
    return [word for cell in cells for word in cell.split(", ")]


@pytest.mark.parametrize("enum", [Phase, Verdict, Severity, Scope, Iosequencer], ids=lambda enum: enum.__name__)
def test_every_word_of_a_column_is_in_the_glossary(enum: type[StrEnum]) -> None:
    text = (ROOT / "docs/glossary.md").read_text()
    assert [str(word) for word in enum if not re.search(rf"\b{word}\b", text)] == []


def plain(text: str) -> str:
    """Without case and the differences between prose and names of columns and reasons."""
    return text.casefold().replace("_", " ").replace("i/o", "io")


def test_every_word_of_the_glossary_is_used_and_explained_once() -> None:
    places = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "master").rglob("*.py")]
    used = plain("\n".join(path.read_text() for path in places if path.name != "glossary.md"))
    words = glossary_words()
    assert len(words) == len(set(words)) > 80
    assert [word for word in words if plain(word) not in used] == []
