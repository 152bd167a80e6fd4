"""Text that may be shown: without what would end a line, steer a terminal, turn a line's order around, or be unseen.

Rule: no text on the link has such a character, in either direction. The sender escapes them (`sendable`), and a
message that has one all the same is rejected (lines.py), so nothing after the link has to check again. What comes by
another way than the link (a login's stderr, a banner) passes `printable` where it enters.
"""

import re
from typing import Final

LONGEST_TEXT: Final = 1 << 15  # characters of one text on the link: several of the longest paths

# C0, DEL and C1 controls; line and paragraph separators; bidirectional marks, embeddings, overrides and isolates; what
# has no width, by which two names may look alike (but for joiners, which change how letters look); and halves of
# characters (surrogates), which no file and no terminal takes. None of them is printable to Python, and so in a plan.
_UNPRINTABLE: Final = re.compile(
    r"[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    r"\ud800-\udfff\U000e0000-\U000e007f]"
)


def printable(text: str) -> str:
    """`text` with those characters written out, as `\\x1b`."""
    return _UNPRINTABLE.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def sendable(text: str) -> str:
    """`text` as it may be sent: printable, and no longer than the link allows."""
    if len(text) <= LONGEST_TEXT and text.isascii() and text.isprintable():
        return text
    shown = printable(text)
    return shown if len(shown) <= LONGEST_TEXT else shown[: LONGEST_TEXT - 3] + "..."


def why_unsendable(text: str) -> str:
    """Why `text` may not be sent; "" if it may."""
    if len(text) > LONGEST_TEXT:
        return f"{len(text)} characters are too many"
    if text.isascii() and text.isprintable():
        return ""  # nearly all text
    found = _UNPRINTABLE.search(text)
    return f"it holds the character U+{ord(found[0]):04X}" if found else ""
