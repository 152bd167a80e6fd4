"""Loop devices for tests: a number that somebody had before is given with nothing of what was on it."""

from pathlib import Path

from tests.support.devices import loops_alone
from tests.support.loop_devices import attach, detach, loop_device, need, needs_loops, partitioned, run

SIZE = 32 << 20


@needs_loops
def test_partitions_that_an_earlier_user_of_the_number_left_are_not_in_the_way(shm: Path) -> None:
    """The kernel keeps them when the file is detached, where it does not scan for partitions itself."""
    need("sfdisk", "partx")
    with loops_alone(), loop_device(shm, SIZE) as loop:
        with partitioned(loop, "8MiB", "8MiB") as (_, second):
            run("partx", "-d", "--nr", "1", loop)
            detach(loop)
            another = shm / "another"
            another.write_bytes(bytes(SIZE))
            attach(loop, another)
            with partitioned(loop, "24MiB") as (only,):
                assert run("blockdev", "--getsize64", only).strip() == str(24 << 20)
                assert not Path(second).exists()
