"""Two slaves told to write in the same instant: the same LUN, one of them does; LUNs that overlap, at most one.

Where they overlap, each may find the claim that the other one lays for a moment, and then neither writes.
"""

import contextlib
import os
from pathlib import Path

import pytest

from ivypy.protocol import messages as m
from ivypy.protocol.parameters import Parameters
from ivypy.protocol.payload import Consent, WorkloadToCreate
from tests.support.devices import losetup
from tests.support.loop_devices import agreed, loop_device, need, needs_loops, partitioned
from tests.support.slave_client import Client

pytestmark = [pytest.mark.slow, needs_loops]

TIMES = 20
WRITE = Parameters(fraction_read=0.0)


def create(slave: Client, lun: str, consent: Consent) -> m.Command:
    workload = WorkloadToCreate(0, f"h+{lun}+w", lun, consent, WRITE, 1, WRITE.blocksize)
    return slave.send(m.CreateWorkloads, workloads=(workload,))


def who_proceeds(slaves: list[Client], luns: list[str]) -> list[list[int]]:
    """For each time: which of the slaves may write its LUN; it gives it up again."""
    found = []
    consents = [agreed(lun) for lun in luns]
    for time in range(TIMES):
        order = [0, 1] if time % 2 else [1, 0]
        commands = {i: create(slaves[i], luns[i], consents[i]) for i in order}
        answers = {i: slaves[i].answer(command) for i, command in commands.items()}
        proceed = [i for i, answer in answers.items() if isinstance(answer, m.Ok)]
        for i in proceed:
            slaves[i].do(m.DeleteWorkloads, numbers=(0,))
        found.append(proceed)
    return found


@pytest.mark.parametrize("kind", ["block", "file", "disk and its partition", "file and the loop device over it"])
def test_of_two_that_start_together_no_more_than_one_proceeds(kind: str, shm: Path) -> None:
    with contextlib.ExitStack() as undo:
        slaves = [undo.enter_context(Client()) for _ in range(2)]
        for slave in slaves:
            slave.prepare()
        file = shm / "file"
        file.write_bytes(os.urandom(1 << 20))
        match kind:
            case "block":
                luns = [undo.enter_context(loop_device(shm, 8 << 20))] * 2
            case "file":
                luns = [str(file)] * 2
            case "disk and its partition":
                need("sfdisk", "partx")
                loop = undo.enter_context(loop_device(shm, 8 << 20))
                luns = [undo.enter_context(partitioned(loop, "2MiB"))[0], loop]
            case _:
                loop = losetup("-f", "--show", str(file))
                undo.callback(losetup, "-d", loop)
                luns = [loop, str(file)]
        found = [len(proceed) for proceed in who_proceeds(slaves, luns)]
        assert set(found) <= ({1} if luns[0] == luns[1] else {0, 1}), found
