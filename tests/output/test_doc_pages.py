"""docs/ is what the program's tables say; `scripts/docs` writes it anew."""

import re
from pathlib import Path

import pytest

from ivypy.master.exit_codes import ExitCode
from ivypy.master.output.column import names
from ivypy.master.output.columns import FILES, METRIC_COLUMNS
from ivypy.master.output.doc_pages import columns_page, diagnosis_page, exit_codes_page, pages, verdicts_page
from ivypy.master.rollup.metrics import METRICS
from ivypy.master.verdicts import Reason
from ivypy.protocol.parameters import PARAMETERS

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", pages())
def test_docs_are_up_to_date(name: str) -> None:
    assert (ROOT / "docs" / name).read_text(encoding="utf-8") == pages()[name], "run scripts/docs"


def test_every_column_is_described() -> None:
    text = columns_page() + diagnosis_page()
    described_or_named = re.compile(r"`([^`]+)`(?: \([^)]+\))?[:,]|`([^`]+)`$", re.MULTILINE)
    found = {one or other for one, other in described_or_named.findall(text)}
    for groups in FILES.values():
        for group in groups:
            if not isinstance(group, str) and group is not METRIC_COLUMNS:
                assert {*names(group)} - PARAMETERS.keys() <= found
                assert all(column.meaning for column in group), group
    described = [name for name in METRICS if name.startswith(("overall_", "generator_")) or "_" not in name]
    assert {*described} <= found


def test_every_reason_and_exit_code_is_described() -> None:
    assert all(f"- `{reason.word}` (" in verdicts_page() and reason.sentence in verdicts_page() for reason in Reason)
    assert all(f"| {code.value} | {code.name.lower()} | {code.sentence} |" in exit_codes_page() for code in ExitCode)
