"""Why a LUN, a device or a file is refused: each reason has a name, and its sentence stands here.

Rule: pure. A sentence states what is wrong and its remedy, and travels as text; who compares refusals, compares names.
"""

from __future__ import annotations

from enum import Enum, unique
from typing import Final

_ANEW: Final = "check the list with `ivypy devices`, and agree to it again"


@unique
class RefusalReason(Enum):
    """The value is the sentence, with its fields in braces."""

    # Where another reason is part of the sentence.
    MUST_NOT_BE_WRITTEN = "{lun} must not be written: {reason}"
    NO_LONGER_TO_BE_WRITTEN = "it must not be written any more: {reason}"

    # Who uses it, or what has blocks in common with it: that is the subject ("it", "/dev/sdb1 on it").
    MOUNTED = "{subject} is mounted at {point}: umount {point}"
    OF_SYSTEM = "{subject} is mounted at /: the system runs from it; choose another disk"
    MOUNTED_ELSEWHERE = (
        "{subject} is mounted at {point} in the mount namespace of process {pid} ({program}): nsenter -m -t {pid}"
        " umount {point}"
    )
    SWAP = "{subject} is in use as swap: swapoff {entry}"
    OPEN_FOR_WRITING = "{subject} is open for writing by process {pid} ({program}): wait for it, or end it"
    IS_RUN = "{subject} is a program that process {pid} ({program}) runs: wait for it, or end it"
    BELOW_LOOP = "{subject} is what {device} is made of: losetup -d {device}"
    BELOW_ZRAM = "{subject} is where {device} writes back to: zramctl --reset {device}"
    OF_XEN_GUEST = "{subject} is a disk of a Xen guest, {backend}: detach it from that guest (xl block-detach)"
    EXPORTED = "{subject} is exported as {exporter} {name}: take it out of there"
    OPENED_EXCLUSIVELY = "{subject} is opened exclusively by another program: find it with fuser -v {path}"
    SIGNED_BELOW = "{subject} has the signature of {format}: wipefs -a {path}, if it is not wanted"
    PARTITIONED_BELOW = "{subject} has partitions ({names}): losetup one of these, or wipefs -a {path}"
    HAS_HOLDER = "{subject} has {holder} built upon it: take it out of {holder} first"

    # What else is known against writing to it.
    PARTITIONED = "it has partitions ({names}): wipefs -a {path} and blockdev --rereadpt {path}, if none is wanted"
    BUILT_UPON = "{names} is built upon it: take it out of that volume, array or map first, or name {names} itself"
    SEVERAL_NAMES = "it is one file under {count} names: copy it, so that no other name loses its contents"
    DEVICE_READ_ONLY = "it is read-only: blockdev --setrw {path}"
    IMMUTABLE = "it is immutable: chattr -i {path}, if it may be written"
    APPEND_ONLY = "it may only be appended to: chattr -a {path}, if it may be overwritten"
    FILESYSTEM_READ_ONLY = "{point} is mounted read-only: mount -o remount,rw {point}"
    CLAIMED = "another program has opened it exclusively: find it with fuser -v {path}, and end it"
    OPEN_ELSEWHERE = "another program has it open for writing: find it with fuser -v {path} as root, and end it"
    LOCKED = "another program has a lock on it (fcntl): find it with lslocks or fuser -v {path}, and end it"
    SIGNED = "it has the signature of {format}: wipefs -a {path}, if its contents are not wanted"
    UNREADABLE = "its contents cannot be checked ({error}): only what can be read may be written"
    UNIDENTIFIED = "it cannot be identified ({error}): only what can be read may be written"
    WRITTEN_SINCE = (
        "it was written since it was inspected ({writes:,} writes, {size}): find out by whom (fuser -v {path}, other"
        " containers, virtual machines, exports), and end that"
    )
    PATH_CHANGED = "its path was changed to another LUN meanwhile: find out who changes it, and try again"

    # Consent.
    NEVER_AGREED = "it would be written, and nobody agreed to that: " + _ANEW
    AGREED_NOT_FOUND = "it was agreed to, and cannot be identified now: " + _ANEW
    ANOTHER_LUN = "it is another LUN than the one that was agreed to (that had {had}; this has {has}): " + _ANEW
    CONTENTS_CHANGED = (
        "it was changed after it was agreed to, by somebody or by a run that was killed (it was {had}; now {has}): "
        + _ANEW
    )
    WRITES_UNAGREED = "it would write, and nobody agreed to that: `destroy: true` in the plan, and its token"
    EDITED_TO_WRITE = "it would write, and nobody agreed to that: its LUN is opened read-only"
    RANGE_UNAGREED = (
        "it would write from byte {start:,} to {end:,}, but the agreed part is {agreed}: choose a range within"
    )

    # What is at a path.
    NOTHING_THERE = "there is nothing to drive ({error}): check the path"
    NO_SIZE = "it is a block device without a size: attach a medium or a backing file to it"
    EMPTY_FILE = "it is an empty file: write it, or let the plan `create` it"
    FOLDER = "it is a folder: name the files in it"
    NO_DEVICE_OR_FILE = "it is neither a block device nor a file"
    FILE_AS_DEVICE = "it is a file, and no block device: put it under `files`"
    DEVICE_AS_FILE = "it is a block device: select it instead, `select: {{path: {path}}}`"
    NAME_UNPRINTABLE = "its name is no UTF-8, or has control characters in it: rename it"
    NOT_INSPECTED = "it cannot be inspected: {error}"
    NO_ANSWER = "it did not answer a read within {seconds:g} s: repair it, or leave it out of the selection"
    NO_ANSWER_ON_MOUNT = (
        "it did not answer a read within {seconds:g} s: {what} is on {point} ({filesystem}); see whether the {who} of"
        " that filesystem hangs, or leave it out of the selection"
    )
    PATH_SILENT = "its filesystem did not answer within {seconds:g} s: repair it, or leave it out of the plan"

    # Opening it.
    NOT_OPENED = "it cannot be opened: {error}"
    OPENING_DENIED = "it cannot be opened ({error}): run the slave as root, or as a user who may"
    OPENING_FORBIDDEN = (
        "it cannot be opened ({error}), not even by root: see its flags (lsattr {path}), its filesystem's options (NFS:"
        " root_squash) and the rules of security modules"
    )
    PROGRAM_RUNS = "it is a program that is running: end it (fuser -v {path})"
    OPENED_BY_ANOTHER = "another program has opened it exclusively: find it with fuser -v, and end it"
    OPENED_READ_ONLY = "it cannot be opened for writing: it is read-only"
    NO_O_DIRECT = (
        "{filesystem} on {point} refuses O_DIRECT: use a file on ext4, xfs or another that has it, or `direct: false`"
    )
    NO_IO_URING = "`{what}` needs io_uring, which does not work here: {why}; or {instead}"
    BACKEND_UNABLE = (
        "`{what}` needs io_uring, and the backend is {backend}: set `engine: {{ backend: io_uring }}`, or {instead}"
    )
    CANNOT_BE_POLLED = "`{what}` cannot be polled: leave `polled` out, or {instead}"
    TOO_MANY_OPEN = "this process may have {most:,} files open at once: raise that limit (ulimit -Hn, LimitNOFILE)"

    # Creating a file.
    NOT_OURS = (
        "it is there, and ivypy did not make it, so it is not overwritten: choose another path, remove it, or name it"
        " under `files` if its contents may be lost"
    )
    HALF_MADE = "an ivypy was killed while it created it: remove it"
    MADE_LARGER_OR_SMALLER = "ivypy made it before, but with {present} and not {asked}: remove it"
    WRITTEN_BY_SOMEBODY = (
        "ivypy made it, and it was changed since, by somebody or by a run that was killed: remove it, or agree to it"
        " with the token that `ivypy devices` prints"
    )
    IN_USE = (
        "it is in use by another ivypy run, or by another host of this one: choose another path ({{host}} in it"
        " becomes the host's name), or wait"
    )
    FILE_UNIDENTIFIED = "the file cannot be identified: {error}"
    NO_FOLDER = "there is no folder {folder}: make it"
    FOLDER_READ_ONLY = "{folder} is on a read-only filesystem: choose another folder, or mount it writable"
    FOLDER_DENIED = "{folder} may not be written by this user: choose another folder, or change its mode"
    NO_SPACE = "{files}, {needed}, {be} to be created, and {folder} has {free} free: free some, or create less"
    NOT_WRITTEN = "it cannot be written: {error}"
    CREATED_TWICE = "it is to be created twice: give each file a path of its own"
    FILES_OF_NOTHING = "{count} files of {size} bytes are nothing: both must be at least 1"
    TOO_MANY_FILES = "{count} files are more than {most:,}: create fewer"
    FILES_UNNUMBERED = "{count} files need {{}} in their path, which becomes each one's number"

    def sentence(self, **fields: object) -> str:
        """The sentence, with each of its fields filled in."""
        return self.value.format(**fields)
