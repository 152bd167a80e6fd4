"""Checks what a run may overwrite, and whether the user has agreed to exactly that.

Rule: pure. The write gate checks the most that any step, loop or edit of the plan could do. A file that the plan itself
creates may be written; every other LUN that could be written needs `destroy: true` in the plan and the token over
exactly the list of these LUNs, by their identities, so that agreeing to one list is never agreeing to another. A LUN
that the host says is mounted, signed or held is refused whatever the plan says.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from ....protocol.consent_check import consent_faults
from ....protocol.payload import Lun
from ...errors import PlanError, RefusedError
from ...text.scaled import scaled_size


@dataclass(frozen=True, slots=True)
class Target:
    """One LUN that at least one step could write."""

    host: str
    lun: Lun
    created: bool  # by this plan: consent is in the plan itself

    @property
    def identity(self) -> str:
        """The identity that the token is over: a disk that was renumbered, replaced or resized, or another machine's,
        is another.
        """
        seen = self.lun.identity
        if seen is None:
            return "\t".join((self.host, self.lun.path, "not known"))  # it is refused, too
        facts = (f"{name}={value}" for name, value in seen.facts)
        return "\t".join((self.host, self.lun.path, seen.machine, str(seen.size), *facts))


def overwritten(targets: Sequence[Target]) -> list[Target]:
    """The targets that hold, or may hold, somebody's data."""
    return sorted((t for t in targets if not t.created), key=lambda t: (t.host, t.lun.path))


def token(targets: Sequence[Target]) -> str:
    """The token for `--destroy`: of exactly this list of LUNs, in any order. "" where nothing is overwritten."""
    doomed = overwritten(targets)
    if not doomed:
        return ""
    return hashlib.sha256("\n".join(sorted(t.identity for t in doomed)).encode()).hexdigest()[:12]


def counted(number: int, noun: str) -> str:
    """ "1 LUN", "3 LUNs"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def check(targets: Sequence[Target], destroy: bool, given: str | None, plan: str, repeat: str = "") -> None:
    """Raise RefusedError with every reason why these LUNs must not be written; return if they may.

    `destroy` is the plan's word, `given` the token on the command line; `repeat`: the command that takes the token,
    where the plan has no file that `ivypy devices` could show.
    """
    held = [
        f"{target.host}: {target.lun.path} is not written: {refusal}"
        for target in sorted(targets, key=lambda t: (t.host, t.lun.path))
        for refusal in target.lun.refusals or _unknown(target)
    ]
    if held:
        raise RefusedError("\n".join(held))
    doomed = overwritten(targets)
    if not doomed:
        if given:
            raise PlanError(f"--destroy {given}: this plan overwrites nothing; leave the option out")
        return
    listed = "\n".join(f"  {t.host}: {t.lun.path} ({described(t.lun)})" for t in doomed)
    if repeat and given != token(targets):
        wrong = "" if given is None else f"--destroy {given} is not the token of this list. "
        raise RefusedError(
            f"{wrong}{counted(len(doomed), 'LUN')} would be overwritten:\n{listed}\n"
            f"if {'its' if len(doomed) == 1 else 'their'} contents may be lost, repeat the command with the token:\n"
            f"  {repeat} --destroy {token(targets)}"
        )
    if not destroy:
        raise RefusedError(
            f"the plan would overwrite {counted(len(doomed), 'LUN')} but has no `destroy: true`:\n{listed}\n"
            f"if their contents may be lost, add `destroy: true` to the plan and give the token that"
            f" `ivypy devices {plan}` prints"
        )
    if given is None:
        raise RefusedError(
            f"{counted(len(doomed), 'LUN')} would be overwritten, and no token was given:\n{listed}\n"
            f"check the list with `ivypy devices {plan}`, then pass its token: --destroy TOKEN"
        )
    if given != token(targets):
        raise RefusedError(
            f"--destroy {given} is not the token of the LUNs that would be overwritten now:\n{listed}\n"
            f"the list has changed, or the token is another plan's; check it with `ivypy devices {plan}`"
        )


def check_same(agreed: Sequence[Target], now: Sequence[Target]) -> None:
    """Raise RefusedError unless what would be overwritten `now` is exactly what was agreed to."""
    before, there = ({(t.host, t.lun.path): t.lun.identity for t in overwritten(some)} for some in (agreed, now))
    said = consent_faults({where: one for where, one in before.items() if one is not None}, there)
    if said:
        raise RefusedError("\n".join(f"{host}: {path} is not written: {why}" for (host, path), why in said.items()))


def described(lun: Lun) -> str:
    """Its size, which one it is, and what would be lost."""
    known = [str(lun.attributes[name]) for name in ("vendor", "model", "serial") if lun.attributes.get(name)]
    return ", ".join([scaled_size(lun.size), *known, *lun.holds])


def _unknown(target: Target) -> tuple[str, ...]:
    """A LUN that is not the plan's own has to be known, to be agreed to."""
    return () if target.created or target.lun.identity is not None else ("its host cannot identify the LUN",)
