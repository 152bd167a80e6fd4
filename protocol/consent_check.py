"""Consent: whether the LUNs that are about to be written are the ones that the user agreed to.

Rule: pure, and the same on both sides: the controller checks everything that it is about to have written, a host what
it holds open for writing. Nothing is similar enough: what is not exactly what was agreed to is refused.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Final, TypeVar

from .payload import Identity
from .quantities import exact_size
from .refusals import RefusalReason

Where = TypeVar("Where", bound=Hashable)

# Names of facts that identify a LUN only for a while.
START: Final = "start of the machine"
FINGERPRINT: Final = "fingerprint"
CHANGED: Final = "changed"  # of a file: when it was last changed by anybody but ivypy


def consent_faults(agreed: Mapping[Where, Identity], present: Mapping[Where, Identity | None]) -> dict[Where, str]:
    """Why what is about to be written is not what was agreed to: a sentence for each place that differs.

    `present`: what is there now, None where that is not known. Empty if the two are the same.
    """
    faults: dict[Where, str] = {}
    for where in dict.fromkeys((*agreed, *present)):
        asked, now = agreed.get(where), present.get(where)
        if asked is None:
            faults[where] = RefusalReason.NEVER_AGREED.sentence()
        elif now is None:
            faults[where] = RefusalReason.AGREED_NOT_FOUND.sentence()
        elif asked != now:
            faults[where] = _another(asked, now)
    return faults


def lasting(identity: Identity) -> Identity:
    """The part of an identity that stays while ivypy itself writes the LUN."""
    return replace(identity, facts=tuple(fact for fact in identity.facts if fact[0] not in (FINGERPRINT, CHANGED)))


def _another(asked: Identity, now: Identity) -> str:
    had, has = differences(asked, now)
    ends = dict(asked.facts).get(FINGERPRINT) == dict(now.facts).get(FINGERPRINT)
    if lasting(asked) == lasting(now) and ends and CHANGED in dict(asked.facts):
        return RefusalReason.CONTENTS_CHANGED.sentence(had=had, has=has)
    return RefusalReason.ANOTHER_LUN.sentence(had=had, has=has)


def differences(one: Identity, other: Identity) -> tuple[str, str]:
    """The facts that each has and the other has not, as text: "serial A1, 1 MiB"."""
    ones, others = _words(one), _words(other)
    names = [name for name in dict.fromkeys((*ones, *others)) if ones.get(name) != others.get(name)]
    had, has = (", ".join(words.get(name, f"no {name}") for name in names) for words in (ones, others))
    return had, has


def identified_by(identity: Identity) -> str:
    """The identity of the LUN, as text, and how long the token is good for if that is not long."""
    facts = ", ".join(f"{name} {value}" for name, value in identity.facts if name != START)
    names = [name for name, _ in identity.facts]
    if START in names:
        return f"{facts}, until this machine is restarted: the token changes then"
    if FINGERPRINT in names:
        return f"{facts}: the token changes when its first or last 64 KiB are written"
    if CHANGED in names:
        return f"{facts}: the token changes when anybody but ivypy changes it"
    return facts or "its size alone"


def _words(identity: Identity) -> dict[str, str]:
    named = {name: f"{name} {value}" for name, value in identity.facts}
    return {"size": exact_size(identity.size), **named, "machine": f"machine {identity.machine}"}
