"""Nothing is overwritten that the user did not agree to, list by list."""

import itertools

import pytest

from ivypy.master.errors import PlanError, RefusedError
from ivypy.master.session.consent import Target, check, overwritten, token
from ivypy.protocol.messages import Lun


def target(
    path: str,
    host: str = "h1",
    *,
    created: bool = False,
    size: int = 1 << 30,
    serial: str = "",
    refusals: tuple[str, ...] = (),
) -> Target:
    attributes: dict[str, int | float | str] = {"serial": serial} if serial else {}
    return Target(host, Lun(path, "block", size, 512, attributes, refusals, ()), created)


A, B, OURS = target("/dev/sda"), target("/dev/sdb"), target("/tmp/file", created=True)


def test_a_file_of_the_plan_needs_no_consent() -> None:
    check([OURS], destroy=False, given=None, plan="p.yaml")
    assert token([OURS]) == "" and overwritten([OURS, A]) == [A]


def test_the_plan_and_the_token_must_both_agree() -> None:
    good = token([A, B])
    check([A, B], True, good, "p.yaml")
    check([B, OURS, A], True, good, "p.yaml")
    for destroy, given, says in [
        (False, None, "does not say `destroy: true`"),
        (False, good, "does not say `destroy: true`"),
        (True, None, "no token was given"),
        (True, "0123456789ab", "is not the token"),
        (True, "", "is not the token"),
    ]:
        with pytest.raises(RefusedError, match=says):
            check([A, B], destroy, given, "p.yaml")


@pytest.mark.parametrize(
    "other",
    [
        [A],
        [A, B, target("/dev/sdc")],
        [A, target("/dev/sdb", "h2")],
        [A, target("/dev/sdb", size=2 << 30)],
        [A, target("/dev/sdb", serial="X1")],
    ],
)
def test_a_token_is_of_exactly_one_list(other: list[Target]) -> None:
    assert token(other) != token([A, B])
    with pytest.raises(RefusedError, match="is not the token"):
        check(other, True, token([A, B]), "p.yaml")


def test_the_token_does_not_depend_on_the_order() -> None:
    three = [A, B, target("/dev/sdc", "h2")]
    assert len({token(order) for order in itertools.permutations(three)}) == 1


def test_what_is_held_is_refused_whatever_was_agreed() -> None:
    mounted = target("/dev/sdb", refusals=("it is mounted at /srv; unmount it",))
    signed = target("/dev/sdc", refusals=("it carries an ext4 signature; `wipefs -a` removes it",))
    with pytest.raises(RefusedError) as error:
        check([signed, mounted, A], True, token([signed, mounted, A]), "p.yaml")
    assert str(error.value).splitlines() == [
        "h1: /dev/sdb is not written: it is mounted at /srv; unmount it",
        "h1: /dev/sdc is not written: it carries an ext4 signature; `wipefs -a` removes it",
    ]


def test_a_token_for_a_plan_that_overwrites_nothing_is_a_mistake() -> None:
    with pytest.raises(PlanError, match="overwrites nothing"):
        check([OURS], True, "0123456789ab", "p.yaml")
