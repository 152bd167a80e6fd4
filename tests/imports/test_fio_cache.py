"""What the import makes of fio's page cache, flushes and synchronous writes."""

from collections.abc import Mapping

import pytest

from ivypy.master.control.until import UntilSpec
from ivypy.master.imports.description import ImportedRun
from ivypy.protocol.parameters import Flush, FlushKind, Sync
from tests.imports.test_fio import description, plan_of

FILE = "[job]\nfilename=data\nsize=8m\nrw=randwrite\n"


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        ("direct=1", {"direct": True}),
        ("", {"direct": False, "drop_cache": True}),
        ("direct=0", {"direct": False, "drop_cache": True}),
        ("buffered=1\ninvalidate=0", {"direct": False, "drop_cache": False}),
        ("direct=1\nbuffered=1", {"direct": False}),  # the last counts
        ("buffered=1\ndirect=1", {"direct": True}),
        ("buffered=0", {"direct": True}),
        ("direct=1\ninvalidate=0", {"direct": True, "drop_cache": True}),
        ("bs=8000", {"blocksize": 8000}),
        ("fsync=1", {"flush": Flush(1)}),
        ("fdatasync=32", {"flush": Flush(32, FlushKind.FDATASYNC)}),
        ("fsync=0", {"flush": Flush(0)}),
        ("rw=randread\nfsync=1\nsync=1\nend_fsync=1", {"flush": Flush(0), "sync": Sync.NONE, "end_fsync": False}),
        ("rw=randrw\nrwmixread=0\nfsync=4", {"flush": Flush(4)}),
        ("sync=1", {"sync": Sync.SYNC}),
        ("sync=sync", {"sync": Sync.SYNC}),
        ("sync=dsync\ndirect=1", {"sync": Sync.DSYNC, "direct": True}),
        ("sync=none", {"sync": Sync.NONE}),
        ("end_fsync=1", {"end_fsync": True}),
        ("fsync_on_close=1", {"end_fsync": True}),
        ("ioengine=libaio\niodepth=32", {"maxtags": 1}),  # it waits for each
        ("ioengine=libaio\niodepth=32\ndirect=1", {"maxtags": 32}),
        ("ioengine=io_uring\niodepth=32", {"maxtags": 32}),
        ("numjobs=4\nioengine=libaio\niodepth=32\nrw=randread", {"maxtags": 4}),
    ],
)
def test_the_cache_is_used_and_flushed_as_fio_does(options: str, settings: Mapping[str, object]) -> None:
    found = description(FILE + options)
    (workload,) = plan_of(found).workloads
    assert {name: getattr(workload.parameters, name) for name in settings} == settings
    assert not [dropped for dropped in found.dropped if dropped.matters]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ("iodepth=32", "psync, fio's default engine, waits for each I/O"),
        ("ioengine=sync\niodepth=32\ndirect=1", "sync waits for each I/O"),
        ("ioengine=mmap\niodepth=32", "mmap waits for each I/O"),
        ("ioengine=libaio\niodepth=32", "libaio waits for each I/O through the page cache"),
        ("ioengine=libaio\niodepth=32\ndirect=1", ""),
        ("iodepth=1", ""),
        ("ioengine=psync", ""),
    ],
)
def test_a_depth_that_fio_does_not_have_either_is_named(options: str, why: str) -> None:
    dropped = [one for one in description(FILE + options).dropped if one.what.startswith("iodepth")]
    assert [(one.why, one.matters) for one in dropped] == ([(why, False)] if why else [])


@pytest.mark.parametrize("engine", ["libaio", "io_uring", "psync", "posixaio"])
def test_what_is_cached_has_a_backend_that_can(engine: str) -> None:
    assert description(f"{FILE}ioengine={engine}").backend in ("auto", "io_uring")


def test_a_time_that_a_flush_ends_is_an_end_of_the_workload() -> None:
    found = description(f"{FILE}time_based\nruntime=60\nramp_time=5\nend_fsync=1\n")
    (step,) = found.actions
    assert isinstance(step, ImportedRun) and step.keys == (("warmup", "5s"),)
    (workload,) = plan_of(found).workloads
    assert workload.parameters.until.amount == 65 * 10**9 and workload.parameters.end_fsync


def test_jobs_of_a_group_end_at_their_own_times() -> None:
    jobs = "[a]\nruntime=3\n[b]\nruntime=5\n[c]\nsize=1m\ntime_based=0\n"
    found = description(f"[global]\n{FILE[6:]}time_based\n{jobs}")
    assert [stream.until for stream in found.streams] == ["{ time: 3s }", "{ time: 5s }", "{ bytes: 1x }"]
    (step,) = plan_of(found).steps
    assert isinstance(step.control.measurement, UntilSpec) and not [one for one in found.dropped if one.matters]


def test_jobs_of_a_group_with_one_time_share_its_measurement() -> None:
    found = description(f"[global]\n{FILE[6:]}time_based\nruntime=5\n[a]\n[b]\n")
    assert [stream.until for stream in found.streams] == ["", ""]


GROUP = "[global]\nsize=16m\nrw=write\ndirect=1\nrate=1m\n"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (f"{GROUP}[a]\nruntime=2\n[b]\nruntime=4\n", ["[a]", "[b]"]),  # both stop by time, long before their size
        (f"{GROUP}[a]\nruntime=2\n[b]\nruntime=6\ntime_based\n", ["[a]"]),
        (f"{GROUP}[a]\nend_fsync=1\ntime_based\nruntime=5\n[b]\nruntime=5\n", ["[b]"]),
        ("[a]\nsize=1m\nrw=write\nloops=3\nend_fsync=1\n", ["loops=3"]),  # a flush after each loop
        ("[a]\nsize=1m\nrw=read\nloops=3\n", ["loops=3"]),  # the cache is dropped before each
        ("[a]\nsize=1m\nrw=read\nloops=3\ninvalidate=0\n", []),
        ("[a]\nsize=1m\nrw=write\nloops=3\n", []),
        ("[a]\nsize=1m\nrw=randrw\nfsync=4\n", ["fsync=4"]),  # again after each read that follows a flush
        ("[a]\nsize=1m\nrw=randread\nfsync=4\n", []),
        ("[a]\nsize=1m\nrw=write\nioengine=io_uring\niodepth=2\nfsync=4\n", ["fsync=4"]),  # twice as often
        ("[a]\nsize=1m\nrw=write\nioengine=io_uring\nfsync=4\n", []),
        ("[a]\nsize=1m\nrw=write\nioengine=libaio\niodepth=4\ndirect=1\nfsync=4\n", []),
        ("[a]\nfilename=/dev/loop0\ndirect=1\nsize=1m\nbs=96k\nrw=read\n", ["size=1m"]),  # an I/O for the rest
        ("[a]\nfilename=/dev/loop0\ndirect=1\nsize=960k\nbs=96k\nrw=read\n", []),
        ("[a]\nfilename=/dev/loop0\ndirect=1\noffset=512\nsize=16m\nrw=read\n", ["offset=512"]),
        ("[a]\nsize=1m\nbs=96k\nrw=read\n", []),
        (
            "[a]\nsize=9m\ndirect=1\nrw=write\nend_fsync=1\nss=iops:9%\nss_dur=2\nruntime=9\ntime_based\n",
            ["end_fsync=1"],
        ),
    ],
)
def test_a_load_that_differs_is_named(text: str, named: list[str]) -> None:
    found = description(text)
    assert [dropped.what for dropped in found.dropped if dropped.matters] == named
    assert plan_of(found).steps
