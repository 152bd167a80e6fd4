"""Every refusal and its sentence. Here the wording is tested, and nowhere else."""

from string import Formatter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivypy.protocol.refusals import RefusalReason
from tests.support.refusals import PATTERNS, found_in, refusals_in

Fields = dict[str, object]

SENTENCES: dict[RefusalReason, tuple[Fields, str]] = {
    RefusalReason.MUST_NOT_BE_WRITTEN: (
        {"lun": "/dev/sdb", "reason": "it is in use"},
        "/dev/sdb must not be written: it is in use",
    ),
    RefusalReason.NO_LONGER_TO_BE_WRITTEN: (
        {"reason": "it is in use"},
        "it must not be written any more: it is in use",
    ),
    RefusalReason.MOUNTED: ({"subject": "it", "point": "/data"}, "it is mounted at /data: umount /data"),
    RefusalReason.OF_SYSTEM: ({"subject": "it"}, "it is mounted at /: the system runs from it; choose another disk"),
    RefusalReason.MOUNTED_ELSEWHERE: (
        {"subject": "/dev/sdb1 on it", "point": "/data", "pid": 77, "program": "bash"},
        "/dev/sdb1 on it is mounted at /data in the mount namespace of process 77 (bash): nsenter -m -t 77 umount"
        " /data",
    ),
    RefusalReason.SWAP: ({"subject": "it", "entry": "/dev/sda2"}, "it is in use as swap: swapoff /dev/sda2"),
    RefusalReason.OPEN_FOR_WRITING: (
        {"subject": "it", "pid": 5, "program": "qemu-system-x86"},
        "it is open for writing by process 5 (qemu-system-x86): wait for it, or end it",
    ),
    RefusalReason.BELOW_LOOP: (
        {"subject": "/dev/sdb below it", "device": "/dev/loop7"},
        "/dev/sdb below it is what /dev/loop7 is made of: losetup -d /dev/loop7",
    ),
    RefusalReason.BELOW_ZRAM: (
        {"subject": "it", "device": "/dev/zram1"},
        "it is where /dev/zram1 writes back to: zramctl --reset /dev/zram1",
    ),
    RefusalReason.OF_XEN_GUEST: (
        {"subject": "it", "backend": "vbd-3-51712"},
        "it is a disk of a Xen guest, vbd-3-51712: detach it from that guest (xl block-detach)",
    ),
    RefusalReason.EXPORTED: (
        {"subject": "it", "exporter": "LIO backstore", "name": "iblock_0/lun1"},
        "it is exported as LIO backstore iblock_0/lun1: take it out of there",
    ),
    RefusalReason.OPENED_EXCLUSIVELY: (
        {"subject": "/dev/sdb below it", "path": "/dev/sdb"},
        "/dev/sdb below it is opened exclusively by another program: find it with fuser -v /dev/sdb",
    ),
    RefusalReason.SIGNED_BELOW: (
        {"subject": "/dev/sdb below it", "format": "xfs", "path": "/dev/sdb"},
        "/dev/sdb below it has the signature of xfs: wipefs -a /dev/sdb, if it is not wanted",
    ),
    RefusalReason.PARTITIONED_BELOW: (
        {"subject": "/dev/sdb below it", "names": "sdb1, sdb2", "path": "/dev/sdb"},
        "/dev/sdb below it has partitions (sdb1, sdb2): losetup one of these, or wipefs -a /dev/sdb",
    ),
    RefusalReason.HAS_HOLDER: (
        {"subject": "/dev/sdb below it", "holder": "dm-5"},
        "/dev/sdb below it has dm-5 built upon it: take it out of dm-5 first",
    ),
    RefusalReason.PARTITIONED: (
        {"names": "sdb1, sdb2", "path": "/dev/sdb"},
        "it has partitions (sdb1, sdb2): wipefs -a /dev/sdb and blockdev --rereadpt /dev/sdb, if none is wanted",
    ),
    RefusalReason.BUILT_UPON: (
        {"names": "dm-3"},
        "dm-3 is built upon it: take it out of that volume, array or map first, or name dm-3 itself",
    ),
    RefusalReason.SEVERAL_NAMES: (
        {"count": 3},
        "it is one file under 3 names: copy it, so that no other name loses its contents",
    ),
    RefusalReason.DEVICE_READ_ONLY: ({"path": "/dev/sdb"}, "it is read-only: blockdev --setrw /dev/sdb"),
    RefusalReason.IMMUTABLE: ({"path": "/a/f"}, "it is immutable: chattr -i /a/f, if it may be written"),
    RefusalReason.APPEND_ONLY: (
        {"path": "/a/f"},
        "it may only be appended to: chattr -a /a/f, if it may be overwritten",
    ),
    RefusalReason.IS_RUN: (
        {"subject": "it", "pid": 7, "program": "bash"},
        "it is a program that process 7 (bash) runs: wait for it, or end it",
    ),
    RefusalReason.OPENING_FORBIDDEN: (
        {"error": "Operation not permitted", "path": "/a/f"},
        "it cannot be opened (Operation not permitted), not even by root: see its flags (lsattr /a/f), its filesystem's"
        " options (NFS: root_squash) and the rules of security modules",
    ),
    RefusalReason.PROGRAM_RUNS: ({"path": "/a/f"}, "it is a program that is running: end it (fuser -v /a/f)"),
    RefusalReason.FILESYSTEM_READ_ONLY: ({"point": "/a"}, "/a is mounted read-only: mount -o remount,rw /a"),
    RefusalReason.CLAIMED: (
        {"path": "/dev/sdb"},
        "another program has opened it exclusively: find it with fuser -v /dev/sdb, and end it",
    ),
    RefusalReason.OPEN_ELSEWHERE: (
        {"path": "/a/f"},
        "another program has it open for writing: find it with fuser -v /a/f as root, and end it",
    ),
    RefusalReason.LOCKED: (
        {"path": "/a/f"},
        "another program has a lock on it (fcntl): find it with lslocks or fuser -v /a/f, and end it",
    ),
    RefusalReason.SIGNED: (
        {"format": "LVM2", "path": "/dev/sdb"},
        "it has the signature of LVM2: wipefs -a /dev/sdb, if its contents are not wanted",
    ),
    RefusalReason.UNREADABLE: (
        {"error": "Input/output error"},
        "its contents cannot be checked (Input/output error): only what can be read may be written",
    ),
    RefusalReason.UNIDENTIFIED: (
        {"error": "Input/output error"},
        "it cannot be identified (Input/output error): only what can be read may be written",
    ),
    RefusalReason.WRITTEN_SINCE: (
        {"writes": 1234, "size": "12 KiB", "path": "/dev/sdb"},
        "it was written since it was inspected (1,234 writes, 12 KiB): find out by whom (fuser -v /dev/sdb, other"
        " containers, virtual machines, exports), and end that",
    ),
    RefusalReason.PATH_CHANGED: (
        {},
        "its path was changed to another LUN meanwhile: find out who changes it, and try again",
    ),
    RefusalReason.NEVER_AGREED: (
        {},
        "it would be written, and nobody agreed to that: check the list with `ivypy devices`, and agree to it again",
    ),
    RefusalReason.AGREED_NOT_FOUND: (
        {},
        "it was agreed to, and cannot be identified now: check the list with `ivypy devices`, and agree to it again",
    ),
    RefusalReason.ANOTHER_LUN: (
        {"had": "serial A1, 1 MiB", "has": "no serial, 2 MiB"},
        "it is another LUN than the one that was agreed to (that had serial A1, 1 MiB; this has no serial, 2 MiB):"
        " check the list with `ivypy devices`, and agree to it again",
    ),
    RefusalReason.CONTENTS_CHANGED: (
        {"had": "changed 10:00", "has": "changed 10:01"},
        "it was changed after it was agreed to, by somebody or by a run that was killed (it was changed 10:00; now"
        " changed 10:01): check the list with `ivypy devices`, and agree to it again",
    ),
    RefusalReason.WRITES_UNAGREED: (
        {},
        "it would write, and nobody agreed to that: `destroy: true` in the plan, and its token",
    ),
    RefusalReason.EDITED_TO_WRITE: ({}, "it would write, and nobody agreed to that: its LUN is opened read-only"),
    RefusalReason.RANGE_UNAGREED: (
        {"start": 4096, "end": 8192, "agreed": "0 to 4,096"},
        "it would write from byte 4,096 to 8,192, but the agreed part is 0 to 4,096: choose a range within",
    ),
    RefusalReason.NOTHING_THERE: (
        {"error": "No such file or directory"},
        "there is nothing to drive (No such file or directory): check the path",
    ),
    RefusalReason.NO_SIZE: ({}, "it is a block device without a size: attach a medium or a backing file to it"),
    RefusalReason.EMPTY_FILE: ({}, "it is an empty file: write it, or let the plan `create` it"),
    RefusalReason.FOLDER: ({}, "it is a folder: name the files in it"),
    RefusalReason.NO_DEVICE_OR_FILE: ({}, "it is neither a block device nor a file"),
    RefusalReason.FILE_AS_DEVICE: ({}, "it is a file, and no block device: put it under `files`"),
    RefusalReason.DEVICE_AS_FILE: (
        {"path": "/dev/sdb"},
        "it is a block device: select it instead, `select: {path: /dev/sdb}`",
    ),
    RefusalReason.NAME_UNPRINTABLE: ({}, "its name is no UTF-8, or has control characters in it: rename it"),
    RefusalReason.NOT_INSPECTED: ({"error": "Permission denied"}, "it cannot be inspected: Permission denied"),
    RefusalReason.NO_ANSWER: (
        {"seconds": 10.0},
        "it did not answer a read within 10 s: repair it, or leave it out of the selection",
    ),
    RefusalReason.NO_ANSWER_ON_MOUNT: (
        {"seconds": 0.5, "what": "the file /far/i below it", "point": "/far", "filesystem": "nfs4", "who": "server"},
        "it did not answer a read within 0.5 s: the file /far/i below it is on /far (nfs4); see whether the server of"
        " that filesystem hangs, or leave it out of the selection",
    ),
    RefusalReason.PATH_SILENT: (
        {"seconds": 10.0},
        "its filesystem did not answer within 10 s: repair it, or leave it out of the plan",
    ),
    RefusalReason.NOT_OPENED: ({"error": "No such device"}, "it cannot be opened: No such device"),
    RefusalReason.OPENING_DENIED: (
        {"error": "Permission denied"},
        "it cannot be opened (Permission denied): run the slave as root, or as a user who may",
    ),
    RefusalReason.OPENED_BY_ANOTHER: (
        {},
        "another program has opened it exclusively: find it with fuser -v, and end it",
    ),
    RefusalReason.OPENED_READ_ONLY: ({}, "it cannot be opened for writing: it is read-only"),
    RefusalReason.NO_O_DIRECT: (
        {"filesystem": "tmpfs", "point": "/tmp"},
        "tmpfs on /tmp refuses O_DIRECT: use a file on ext4, xfs or another that has it, or `direct: false`",
    ),
    RefusalReason.NO_IO_URING: (
        {
            "what": "direct: false",
            "why": "kernel.io_uring_disabled is 2: set it to 0",
            "instead": "set `direct: true`",
        },
        "`direct: false` needs io_uring, which does not work here: kernel.io_uring_disabled is 2: set it to 0; or set"
        " `direct: true`",
    ),
    RefusalReason.BACKEND_UNABLE: (
        {"what": "direct: false", "backend": "libaio", "instead": "set `direct: true`"},
        "`direct: false` needs io_uring, and the backend is libaio: set `engine: { backend: io_uring }`, or"
        " set `direct: true`",
    ),
    RefusalReason.CANNOT_BE_POLLED: (
        {"what": "direct: false", "instead": "set `direct: true`"},
        "`direct: false` cannot be polled: leave `polled` out, or set `direct: true`",
    ),
    RefusalReason.TOO_MANY_OPEN: (
        {"most": 1024},
        "this process may have 1,024 files open at once: raise that limit (ulimit -Hn, LimitNOFILE)",
    ),
    RefusalReason.NOT_OURS: (
        {},
        "it is there, and ivypy did not make it, so it is not overwritten: choose another path, remove it, or name it"
        " under `files` if its contents may be lost",
    ),
    RefusalReason.HALF_MADE: ({}, "an ivypy was killed while it created it: remove it"),
    RefusalReason.MADE_LARGER_OR_SMALLER: (
        {"present": "4 bytes", "asked": "1 MiB"},
        "ivypy made it before, but with 4 bytes and not 1 MiB: remove it",
    ),
    RefusalReason.WRITTEN_BY_SOMEBODY: (
        {},
        "ivypy made it, and it was changed since, by somebody or by a run that was killed: remove it, or agree to it"
        " with the token that `ivypy devices` prints",
    ),
    RefusalReason.IN_USE: (
        {},
        "it is in use by another ivypy run, or by another host of this one: choose another path ({host} in it becomes"
        " the host's name), or wait",
    ),
    RefusalReason.FILE_UNIDENTIFIED: (
        {"error": "Stale file handle"},
        "the file cannot be identified: Stale file handle",
    ),
    RefusalReason.NO_FOLDER: ({"folder": "/no"}, "there is no folder /no: make it"),
    RefusalReason.FOLDER_READ_ONLY: (
        {"folder": "/ro"},
        "/ro is on a read-only filesystem: choose another folder, or mount it writable",
    ),
    RefusalReason.FOLDER_DENIED: (
        {"folder": "/root"},
        "/root may not be written by this user: choose another folder, or change its mode",
    ),
    RefusalReason.NO_SPACE: (
        {"files": "2 files", "needed": "1 EiB", "be": "are", "folder": "/d", "free": "3.2 GiB"},
        "2 files, 1 EiB, are to be created, and /d has 3.2 GiB free: free some, or create less",
    ),
    RefusalReason.NOT_WRITTEN: ({"error": "No space left on device"}, "it cannot be written: No space left on device"),
    RefusalReason.CREATED_TWICE: ({}, "it is to be created twice: give each file a path of its own"),
    RefusalReason.FILES_OF_NOTHING: (
        {"count": 1, "size": 0},
        "1 files of 0 bytes are nothing: both must be at least 1",
    ),
    RefusalReason.TOO_MANY_FILES: (
        {"count": 100001, "most": 100000},
        "100001 files are more than 100,000: create fewer",
    ),
    RefusalReason.FILES_UNNUMBERED: ({"count": 3}, "3 files need {} in their path, which becomes each one's number"),
}


def test_every_refusal_is_in_the_table() -> None:
    assert set(SENTENCES) == set(RefusalReason)


@pytest.mark.parametrize("reason", SENTENCES)
def test_the_sentence_of_a_refusal(reason: RefusalReason) -> None:
    fields, sentence = SENTENCES[reason]
    assert reason.sentence(**fields) == sentence
    assert {name for _, name, _, _ in Formatter().parse(reason.value) if name is not None} == set(fields)


@pytest.mark.parametrize("reason", PATTERNS)
def test_a_sentence_is_known_by_its_name_and_as_no_other(reason: RefusalReason) -> None:
    sentence = reason.sentence(**SENTENCES[reason][0])
    inner = [
        RefusalReason.MUST_NOT_BE_WRITTEN.sentence(lun="/d", reason=sentence),
        RefusalReason.NO_LONGER_TO_BE_WRITTEN.sentence(reason=sentence),
    ]
    assert found_in([sentence, *inner, sentence.replace(" ", "\n    ")]) == [reason] * 4


def test_what_is_no_refusal_or_two_has_no_name() -> None:
    two = RefusalReason.FOLDER.sentence() + "; " + RefusalReason.HALF_MADE.sentence()
    assert refusals_in(f"ivypy: {two}\n") == {RefusalReason.FOLDER, RefusalReason.HALF_MADE}
    with pytest.raises(AssertionError, match=r"FOLDER.*HALF_MADE"):
        found_in([two])
    with pytest.raises(AssertionError, match="'all is well' is no refusal"):
        found_in(["all is well"])


@given(st.sampled_from(list(RefusalReason)), st.data())
def test_a_field_stands_in_the_sentence_as_it_is(reason: RefusalReason, data: st.DataObject) -> None:
    """Also one that looks like a field itself."""
    words = st.text(st.sampled_from("{}: a\u00e9\u2028\udcff%\\0!") | st.characters(), max_size=8)
    fields = {name: data.draw(words) if isinstance(of, str) else of for name, of in SENTENCES[reason][0].items()}
    sentence, at = reason.sentence(**fields), 0
    for literal, name, spec, _ in Formatter().parse(reason.value):
        piece = literal + ("" if name is None else format(fields[name], spec or ""))
        assert sentence.startswith(piece, at)
        at += len(piece)
    assert at == len(sentence)
