"""Which edits are refused, and why: two hosts with two LUNs each, of which the plan writes one, in part."""

from dataclasses import replace
from typing import Any

import pytest

from ivypy.master.rollup.instances import Rollups
from ivypy.master.run.edits.edit_policy import check, violations
from ivypy.master.run.edits.edit_types import EditRefused, InForce
from ivypy.master.run.setup.discover_luns import PlacedPlan
from ivypy.master.run.setup.limits import Limits
from ivypy.master.run.setup.placement import PlacedLun, Placement
from ivypy.protocol.parameters import Parameters
from ivypy.protocol.payload import Lun
from tests.support.rollup import instance, rollup_spec

Key = tuple[str, int]
MIB = 1 << 20
KEYS = [("h1", 0), ("h1", 1), ("h2", 0), ("h2", 1)]
WRITTEN: Key = ("h1", 0)
AGREED = ((0, 4 * MIB), (8 * MIB, 16 * MIB))


BEFORE = Parameters(iops=100.0, maxtags=4)
NAMES = {key: f"{key[0]}+/dev/sd{key[1]}+w" for key in KEYS}


def placed() -> PlacedPlan:
    instances = [instance(number, host) for host, number in KEYS]
    luns = {
        key: PlacedLun(key[0], Lun(f"/dev/sd{key[1]}", "file", 64 * MIB, 512, {}, (), ()), {}, False) for key in KEYS
    }
    placement = Placement(tuple(luns.values()), tuple(instances), luns, NAMES)
    limits = Limits(dict.fromkeys(KEYS, 8), frozenset({WRITTEN}), {WRITTEN: AGREED}, 0, {"h1": 16, "h2": 16}, {})
    return PlacedPlan(placement, Rollups.build(instances, [rollup_spec("host")]), limits)


def refused(changes: dict[Key, dict[str, Any]], steered: tuple[Key, ...] = (), force: bool = False) -> list[str]:
    """What `check` has against changes of these instances."""
    in_force = InForce(dict.fromkeys(KEYS, BEFORE), dict.fromkeys(KEYS, 8192), frozenset(steered))
    try:
        check({key: replace(BEFORE, **change) for key, change in changes.items()}, in_force, placed(), force)
    except EditRefused as error:
        return list(error.reasons)
    return []


OUTSIDE = (
    "no step of the plan writes to this LUN, so it is outside the consent;"
    " a step with a lower fraction_read in the plan would include it"
)


@pytest.mark.parametrize(
    ("key", "change", "reason"),
    [
        (WRITTEN, {}, None),
        (WRITTEN, {"maxtags": 8}, None),
        (
            WRITTEN,
            {"maxtags": 9},
            "maxtags is 9, and the buffers are made for 8; `live: { maxtags: 9 }` in the plan would allow it",
        ),
        (WRITTEN, {"iops": -1.0}, "iops is -1; the least is 0"),
        # the consent: at all, and which part of the LUN
        (("h1", 1), {"fraction_read": 1.0}, None),
        (("h1", 1), {"fraction_read": 0.999}, OUTSIDE),
        (("h1", 1), {"fraction_read": 0.0, "range": (0, MIB)}, OUTSIDE),
        (("h2", 0), {"fraction_read": 0.5}, OUTSIDE),
        (WRITTEN, {"fraction_read": 0.999, "range": (0, 4 * MIB)}, None),
        (WRITTEN, {"fraction_read": 0.0, "range": (8 * MIB, 16 * MIB)}, None),
        (WRITTEN, {"fraction_read": 1.0, "range": (0, 32 * MIB)}, None),
        (
            WRITTEN,
            {"fraction_read": 0.999, "range": (2 * MIB, 8 * MIB)},
            "it would write from byte 2,097,152 to 8,388,608, but the agreed part is 0 to 4,194,304, 8,388,608 to"
            " 16,777,216; `live: { range: ... }` in the plan would allow more",
        ),
        (
            WRITTEN,
            {"fraction_read": 0.5},
            "it would write from byte 0 to 67,108,864, but the agreed part is 0 to 4,194,304, 8,388,608 to"
            " 16,777,216; `live: { range: ... }` in the plan would allow more",
        ),
        # what the step's buffers hold
        (WRITTEN, {"blocksize": 8192}, None),
        (
            WRITTEN,
            {"blocksize": 16384},
            "blocksize is 16KiB, and the buffers hold 8KiB; `live: { blocksize: 16KiB }` in the plan would allow it",
        ),
        # the LUN
        (
            WRITTEN,
            {"blocksize": 1000},
            "blocksize is 1,000, and /dev/sd0 takes multiples of 512 bytes: choose one of these",
        ),
    ],
)
def test_an_edit_is_refused_for_what_its_plan_consent_or_lun_does_not_allow(
    key: Key, change: dict[str, Any], reason: str | None
) -> None:
    assert refused({key: change}) == ([f"{NAMES[key]}: {reason}"] if reason else [])


def test_each_reason_names_all_its_instances_once() -> None:
    changes: dict[Key, dict[str, Any]] = {key: {"fraction_read": 0.0, "range": (0, MIB)} for key in KEYS}
    changes["h2", 1]["maxtags"] = 9
    assert refused(changes) == [
        "h1+/dev/sd1+w, h2+/dev/sd0+w and h2+/dev/sd1+w: " + OUTSIDE,
        "h2+/dev/sd1+w: maxtags is 9, and the buffers are made for 8;"
        " `live: { maxtags: 9 }` in the plan would allow it",
    ]


@pytest.mark.parametrize(
    ("change", "force", "is_refused"),
    [({"iops": 200.0}, False, True), ({"iops": 200.0}, True, False), ({"iops": 100.0, "maxtags": 2}, False, False)],
)
def test_the_rate_that_control_sets_is_edited_by_force_alone(
    change: dict[str, Any], force: bool, is_refused: bool
) -> None:
    reason = "h1+/dev/sd0+w: the step's control sets its iops, and would set them again; use --force to edit it anyway"
    assert refused({WRITTEN: change}, (WRITTEN,), force) == [reason] * is_refused
    assert refused({("h1", 1): change}, (WRITTEN,), force) == []


def test_all_reasons_are_said_at_once() -> None:
    found = refused({WRITTEN: {"iops": 5.0, "maxtags": 9}, ("h1", 1): {"blocksize": 16384}}, (WRITTEN,))
    assert [text.split(": ")[1].split(" ")[0] for text in found] == ["maxtags", "blocksize", "the"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, None),
        ({"maxtags": 9}, "maxtags is 9"),
        ({"fraction_read": 0.5}, "it would write from byte 0"),
        ({"range": (0, 65 * MIB)}, "range ends at 68,157,440, and /dev/sd0 at 67,108,864"),
        ({"blocksize": 16384}, None),  # which the buffers of another step may hold
    ],
)
def test_parameters_of_a_step_violate_limits_consent_or_geometry(change: dict[str, Any], words: str | None) -> None:
    found = violations({WRITTEN: replace(BEFORE, **change)}, placed())
    assert len(found) == (words is not None) and all(words in text for text in found if words)


def test_five_instances_are_named_and_the_others_counted() -> None:
    keys = [("h1", number) for number in range(7)]
    instances = [instance(number, host) for host, number in keys]
    luns = {
        key: PlacedLun(key[0], Lun(f"/dev/sd{key[1]}", "file", 64 * MIB, 512, {}, (), ()), {}, False) for key in keys
    }
    names = {(one.host, one.number): one.id for one in instances}
    placement = Placement(tuple(luns.values()), tuple(instances), luns, names)
    limits = Limits(dict.fromkeys(keys, 8), frozenset(), {}, 0, {"h1": 56}, {})
    many = PlacedPlan(placement, Rollups.build(instances, []), limits)
    (found,) = violations(dict.fromkeys(keys, replace(BEFORE, maxtags=9)), many)
    assert found.startswith(", ".join(names[key] for key in keys[:5]) + " and 2 more: maxtags is 9")
