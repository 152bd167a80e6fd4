"""Pages that code prints are as the code prints them; `scripts/docs` writes them anew."""

import re
from pathlib import Path

import pytest

from ivypy.master.plan.load import read
from tests.support.doc_pages import ROOT, pages


@pytest.mark.parametrize("path", pages(), ids=lambda path: path.name)
def test_a_generated_page_is_as_the_code_prints_it(path: Path) -> None:
    assert path.read_text() == pages()[path]


@pytest.mark.parametrize(
    "page", ["README.md", "ARCHITECTURE.md", *sorted(p.name for p in (ROOT / "docs").glob("*.md"))]
)
def test_every_link_leads_somewhere(page: str) -> None:
    path = ROOT / page if (ROOT / page).exists() else ROOT / "docs" / page
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", path.read_text()):
        assert target.startswith("http") or (path.parent / target).exists(), f"{page}: {target}"


def test_the_readmes_plan_is_a_plan() -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    plan = read(text, "README.md", {})
    assert [step.name for step in plan.steps] == ["max", "half"] and len(plan.hosts) == 16
