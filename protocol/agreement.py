"""Whether what is about to be written is what was agreed to.

Rule: pure, and the same on both sides: the controller asks of everything that it is about to have written, a host of
what it holds open for that. There is no likeness: what is not exactly what was agreed to is refused.
"""

from collections.abc import Hashable, Mapping
from typing import Final, TypeVar

from .payload import Identity
from .quantities import of_bytes

Where = TypeVar("Where", bound=Hashable)

ANEW: Final = "look at the list with `ivypy devices`, and agree to it anew"

# Names of facts that identify a LUN only for a while.
START: Final = "start of the machine"
FINGERPRINT: Final = "fingerprint"


def unagreed(agreed: Mapping[Where, Identity], found: Mapping[Where, Identity | None]) -> dict[Where, str]:
    """Why what is about to be written is not what was agreed to, a sentence for each place where it is not.

    `found`: what is there now, None where that is not known. Empty if the two are the same.
    """
    said: dict[Where, str] = {}
    for where in dict.fromkeys((*agreed, *found)):
        asked, there = agreed.get(where), found.get(where)
        if asked is None:
            said[where] = f"it would be written, and nobody agreed to that: {ANEW}"
        elif there is None:
            said[where] = f"it was agreed to, and cannot be told by now: {ANEW}"
        elif asked != there:
            had, has = differences(asked, there)
            said[where] = f"it is another LUN than the one that was agreed to (that had {had}; this has {has}): {ANEW}"
    return said


def differences(one: Identity, other: Identity) -> tuple[str, str]:
    """Of each, in words, what the other has not: "serial A1, 1 MiB"."""
    ones, others = _words(one), _words(other)
    names = [name for name in dict.fromkeys((*ones, *others)) if ones.get(name) != others.get(name)]
    had, has = (", ".join(words.get(name, f"no {name}") for name in names) for words in (ones, others))
    return had, has


def rests_on(identity: Identity) -> str:
    """What tells the LUN from others, in words, and what the token is worth where that is little."""
    facts = ", ".join(f"{name} {value}" for name, value in identity.facts if name != START)
    names = [name for name, _ in identity.facts]
    if START in names:
        return f"{facts}, until this machine starts anew: the token is then another"
    if FINGERPRINT in names:
        return f"{facts}: the token is another once its first or last 64 KiB were written"
    return facts or "its size alone"


def _words(identity: Identity) -> dict[str, str]:
    named = {name: f"{name} {value}" for name, value in identity.facts}
    return {"size": of_bytes(identity.size), **named, "machine": f"machine {identity.machine}"}
