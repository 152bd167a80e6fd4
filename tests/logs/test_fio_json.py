"""fio's JSON, with whatever fio prints around it."""

import pytest

from ivypy.master.logs.readers.fio_json import jobs_of

DOCUMENT = '{"jobs": [{"jobname": "a"}]}'


@pytest.mark.parametrize(
    "text",
    [
        DOCUMENT,
        f"fio: a warning\n{DOCUMENT}",
        f"  {DOCUMENT}\nbye\n",
        f'{{"jobs": []}}\n{DOCUMENT}',
        "\n" * 1_000_000 + DOCUMENT,
    ],
    ids=lambda text: text[:20],
)
def test_the_last_document_counts(text: str) -> None:
    assert [job["jobname"] for job in jobs_of(text)] == ["a"]


@pytest.mark.parametrize("text", ["", "\n" * 1_000_000, " " * 1_000_000, "[]"], ids=lambda text: text[:20])
def test_other_texts_are_refused(text: str) -> None:
    """In time that follows from their length."""
    with pytest.raises((ValueError, TypeError)):
        jobs_of(text)
