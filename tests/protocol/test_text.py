"""Text that may be shown, on the link and wherever else it enters."""

import pytest

from ivypy.protocol.text import printable, why_unsendable

SHOWN = ["lab01", "höst", "机", "a b", "\u0915\u094d\u200d\u0937", "👩\u200d💻"]  # the last two with joiners
ESCAPED = [
    ("a\nb", r"a\nb"),
    ("\x1b[31m", r"\x1b[31m"),
    ("\u202egnp.exe", r"\u202egnp.exe"),
    ("lab\u200b01", r"lab\u200b01"),  # unseen: this host is not lab01
    ("lab01\ufeff", r"lab01\ufeff"),
    ("lab\U000e004101", r"lab\U000e004101"),
    ("lab\xad01", r"lab\xad01"),
    ("\ud800", r"\ud800"),
]


@pytest.mark.parametrize("text", SHOWN)
def test_what_is_seen_stays(text: str) -> None:
    assert printable(text) == text and not why_unsendable(text)


@pytest.mark.parametrize(("text", "shown"), ESCAPED)
def test_what_steers_or_is_unseen_is_written_out(text: str, shown: str) -> None:
    assert printable(text) == shown and printable(shown) == shown and not text.isprintable()
    assert f"U+{ord(next(one for one in text if not one.isprintable())):04X}" in why_unsendable(text)
