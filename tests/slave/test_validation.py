"""What is refused before anything is opened: workloads, edits, orders; each with its remedy."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from ivypy.protocol.parameters import Iosequencer, Parameters
from ivypy.protocol.payload import Consent, Identity, WorkloadToCreate
from ivypy.protocol.refusals import RefusalReason
from ivypy.slave.devices.block_devices import BlockDevice
from ivypy.slave.luns.lun_target import LunTarget
from ivypy.slave.luns.validation import edit_faults, order_fault, workload_faults

NUMBER, FOLDER = (8, 16), Path("/sys/block/sdb")
KNOWN = BlockDevice("sdb", "/dev/sdb", NUMBER, 1 << 20, 4096, FOLDER, FOLDER, {"wwn": "0x5", "serial": "A1"})
DISK = LunTarget("/dev/sdb", "block", 1 << 20, 4096, "", "", KNOWN, ("block", os.makedev(*NUMBER), 0))
FILE = LunTarget("/d/f", "file", 1 << 20, 512, "ext4", "/d", None, ("file", 1, 2))
WRITE = Parameters(fraction_read=0.0)


DEFAULTS = Parameters()
AGREED = ((0, 65536), (131072, 1 << 20))


def workload(
    parameters: Parameters = DEFAULTS, consent: bool = False, ceiling: int = 32, largest: int = 0
) -> WorkloadToCreate:
    largest = largest or parameters.blocksize
    given = Consent(Identity("m", 1 << 20, ()), AGREED) if consent else None
    return WorkloadToCreate(1, "h1+/dev/sdb+w", "/dev/sdb", given, parameters, ceiling, largest)


def beyond(start: int, end: int) -> str:
    return RefusalReason.RANGE_UNAGREED.sentence(start=start, end=end, agreed="0 to 65,536, 131,072 to 1,048,576")


@pytest.mark.parametrize(
    ("lun", "asked", "faults"),
    [
        (DISK, workload(), []),
        (DISK, workload(Parameters(range=(4096, 8192))), []),
        (FILE, workload(Parameters(range=(0, 4096))), []),
        (DISK, workload(replace(WRITE, range=(131072, 262144)), consent=True), []),
        (DISK, workload(replace(WRITE, range=(32768, 131072)), consent=True), [beyond(32768, 131072)]),
        (DISK, workload(WRITE, consent=True), [beyond(0, 1 << 20)]),
        (FILE, workload(Parameters(blocksize=512)), []),
        (FILE, workload(Parameters(blocksize=1 << 20)), []),
        (DISK, workload(WRITE), [RefusalReason.WRITES_UNAGREED.sentence()]),
        (DISK, workload(Parameters(maxtags=64)), ["its ceiling of 32 tags is not within maxtags (64) and 8192"]),
        (DISK, workload(largest=512), ["its ceiling of 512 bytes is not within blocksize (4096) and 1073741824"]),
        (
            DISK,
            workload(largest=2 << 30),
            ["its ceiling of 2147483648 bytes is not within blocksize (4096) and 1073741824"],
        ),
        (DISK, workload(ceiling=9000), ["its ceiling of 9000 tags is not within maxtags (1) and 8192"]),
        (
            DISK,
            workload(Parameters(maxtags=0, blocksize=100)),
            ["maxtags is 0; the least is 1"],
        ),
        (
            DISK,
            workload(Parameters(iosequencer=Iosequencer.SEQUENTIAL, sequential=0.5)),
            ["sequential: a share of the I/Os of a random workload, and this one is sequential; leave it out"],
        ),
        (
            DISK,
            workload(Parameters(blocksize=6144)),
            ["blocksize is 6,144, and /dev/sdb takes multiples of 4,096 bytes: choose one of these"],
        ),
        (
            DISK,
            workload(Parameters(blocksize=2 << 20)),
            ["/dev/sdb has 1 MiB, no block of 2 MiB: choose a smaller blocksize or a larger LUN"],
        ),
        (
            DISK,
            workload(Parameters(blocksize=1 << 20)),
            [
                "/dev/sdb has 1 MiB, no block of 1 MiB after block 0, which is never driven:"
                " choose a smaller blocksize or a larger LUN"
            ],
        ),
        (
            FILE,
            workload(Parameters(range=(8192, 8192))),
            ["range is 8,192 to 8,192, which is empty: its start must be below its end"],
        ),
        (
            FILE,
            workload(Parameters(range=(0, (1 << 20) + 1))),
            ["range ends at 1,048,577, and /d/f at 1,048,576: choose an end within it"],
        ),
        (
            FILE,
            workload(Parameters(range=(1, 8191))),
            ["range is 1 to 8,191, which holds no whole block of 4 KiB: make it wider"],
        ),
        (
            DISK,
            workload(Parameters(range=(0, 4096))),
            ["range is 0 to 4,096, which holds no whole block of 4 KiB: make it wider"],
        ),
    ],
)
def test_a_workload_that_cannot_be_is_refused_with_the_remedy(
    lun: LunTarget, asked: WorkloadToCreate, faults: list[str]
) -> None:
    assert workload_faults(asked, lun) == faults


@pytest.mark.parametrize(
    ("change", "consent", "faults"),
    [
        ({"iops": 5000.0}, False, []),
        ({"iops": "max", "fraction_read": 0.3, "range": (131072, 1 << 20)}, True, []),
        ({"iops": "max", "fraction_read": 0.3}, True, [beyond(0, 1 << 20)]),
        ({"fraction_read": 0.3, "range": (61440, 69632)}, True, [beyond(61440, 69632)]),
        ({"fraction_read": 0.3}, False, [RefusalReason.EDITED_TO_WRITE.sentence()]),
        ({"blocksize": 65536, "maxtags": 32, "range": (65536, 1 << 20)}, True, []),
        ({"blocksize": 131072}, True, ["blocksize is 131072, and its buffers were made for 65536: create it again"]),
        ({"maxtags": 33}, True, ["maxtags is 33, and its buffers were made for 32: create it again"]),
        (
            {"blocksize": 6144},
            True,
            ["blocksize is 6,144, and /dev/sdb takes multiples of 4,096 bytes: choose one of these"],
        ),
        (
            {"range": (0, 2 << 20)},
            False,
            ["range ends at 2,097,152, and /dev/sdb at 1,048,576: choose an end within it"],
        ),
        ({"range": (0, 4096)}, False, ["range is 0 to 4,096, which holds no whole block of 4 KiB: make it wider"]),
        (
            {"iosequencer": Iosequencer.SEQUENTIAL, "seed": 7},
            True,
            [
                "iosequencer, seed cannot change while the instance exists (only blocksize, fraction_read, iops,"
                " maxtags, operations, range can): delete it and create it again"
            ],
        ),
        ({"iops": -1.0}, True, ["iops is -1; the least is 0"]),
    ],
)
def test_an_edit_changes_what_is_live_and_what_was_agreed(
    change: dict[str, object], consent: bool, faults: list[str]
) -> None:
    before = Parameters(iops=100.0)
    made = workload(before, consent, largest=65536)
    assert edit_faults(before, replace(before, **change), made, DISK) == faults  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("order", "classes", "reason"),
    [
        ([], [], None),
        ([7, 3], [0, 0], None),
        ([7, 3], [1, 0], None),
        ([7], [0, 0], "1 instances have 2 merge classes: name one class for each"),
        ([7, 7], [0, 0], "duplicate instance in the order: name each once"),
        ([7, 8, 9], [0, 0, 0], "there are no instances 8, 9: create them first"),
        ([7, 3], [0, (1 << 32) - 1], "its merge classes are not 0, 1, 2 ... without a gap: number them so"),
        ([7, 3], [0, 2], "its merge classes are not 0, 1, 2 ... without a gap: number them so"),
    ],
)
def test_a_go_names_what_there_is(order: list[int], classes: list[int], reason: str | None) -> None:
    assert order_fault(order, classes, [3, 5, 7]) == reason
