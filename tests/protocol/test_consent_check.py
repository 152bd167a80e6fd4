"""What is about to be written is what was agreed to, or it is refused."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from ivypy.protocol.consent_check import CHANGED, FINGERPRINT, START, consent_faults, identified_by
from ivypy.protocol.payload import Identity
from ivypy.protocol.refusals import RefusalReason

DISK = Identity("m", 1 << 20, (("wwn", "0x5"), ("serial", "A1")))

identities = st.builds(
    Identity,
    st.sampled_from(["m", "n"]),
    st.integers(0, 2),
    st.lists(st.tuples(st.sampled_from(["wwn", "serial"]), st.sampled_from(["1", "2"])), max_size=2).map(tuple),
)


@given(st.dictionaries(st.sampled_from("abc"), identities), st.dictionaries(st.sampled_from("abc"), identities))
def test_only_what_was_agreed_to_passes(agreed: dict[str, Identity], found: dict[str, Identity]) -> None:
    refused = consent_faults(agreed, found)
    assert (refused == {}) == (agreed == found)
    assert {where for where in found if where not in refused} == {w for w in found if agreed.get(w) == found[w]}
    assert refused.keys() <= agreed.keys() | found.keys()


def test_what_differs_is_reported() -> None:
    def said(there: Identity) -> str:
        return consent_faults({"/dev/sdb": DISK}, {"/dev/sdb": there})["/dev/sdb"]

    for change, had, has in (
        (replace(DISK, size=2 << 20), "1 MiB", "2 MiB"),
        (replace(DISK, machine="n"), "machine m", "machine n"),
        (replace(DISK, facts=(("serial", "B2"),)), "wwn 0x5, serial A1", "no wwn, serial B2"),
    ):
        assert said(change) == RefusalReason.ANOTHER_LUN.sentence(had=had, has=has)
    file = replace(DISK, facts=(("file", "8:1:7"), (CHANGED, "10:00")))
    later = replace(file, facts=(("file", "8:1:7"), (CHANGED, "10:01")))
    other = replace(file, facts=(("file", "8:1:8"), (CHANGED, "10:00")))
    words = {"had": "changed 10:00", "has": "changed 10:01"}
    assert consent_faults({"a": file}, {"a": later}) == {"a": RefusalReason.CONTENTS_CHANGED.sentence(**words)}
    words = {"had": "file 8:1:7", "has": "file 8:1:8"}
    assert consent_faults({"a": file}, {"a": other}) == {"a": RefusalReason.ANOTHER_LUN.sentence(**words)}
    assert consent_faults({}, {"a": DISK}) == {"a": RefusalReason.NEVER_AGREED.sentence()}
    assert consent_faults({"a": DISK}, {"a": None}) == consent_faults({"a": DISK}, {})
    assert consent_faults({"a": DISK}, {}) == {"a": RefusalReason.AGREED_NOT_FOUND.sentence()}


def test_what_an_identity_rests_on_is_reported() -> None:
    assert identified_by(DISK) == "wwn 0x5, serial A1"
    attached = Identity("m", 1, (("attachment", "7"), (START, "e1")))
    assert identified_by(attached) == "attachment 7, until this machine is restarted: the token changes then"
    marked = Identity("m", 1, ((FINGERPRINT, "ab"), ("start", "2048")))
    assert identified_by(marked) == (
        "fingerprint ab, start 2048: the token changes when its first or last 64 KiB are written"
    )
    file = Identity("m", 1, (("file", "8:1:7"), (CHANGED, "10:00")))
    assert identified_by(file) == ("file 8:1:7, changed 10:00: the token changes when anybody but ivypy changes it")
    assert identified_by(Identity("m", 1, ())) == "its size alone"
