"""When the I/Os of a job begin, and how long it thinks between them, as a plan has that."""

import pytest

from ivypy.master.imports.description import Description, ImportContext
from ivypy.master.imports.fio import read_fio
from ivypy.master.imports.to_plan import to_plan
from ivypy.master.plan.load import read
from ivypy.master.text.units import format_volume

HEAD = "[global]\nfilename=/dev/sdb\ndirect=1\nioengine=libaio\nrw=randread\nnorandommap\n"


def imported(jobs: str) -> Description:
    return read_fio(HEAD + jobs, "job.fio", ImportContext("/data", {}, lambda name: "", lambda path: False))


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ("thinktime=1000", "think_time: 1ms"),
        ("thinktime=2ms\nthinktime_blocks=1", "think_time: 2ms"),
        ("thinktime=1500\nthinktime_spin=500", "think_time: 1500us"),
        ("thinktime=1000\nnumjobs=4", "think_time: 1ms"),
    ],
)
def test_a_job_with_one_io_in_flight_thinks_as_a_tag_does(options: str, line: str) -> None:
    found = imported(f"time_based\nruntime=9\n[job]\n{options}\n")
    text = to_plan(found, "ivypy import job.fio")
    assert f"    {line}\n" in text
    assert [one for one in found.dropped if one.matters] == []


@pytest.mark.parametrize(
    "options", ["iodepth=2", "thinktime_blocks=8", "rate_iops=100", "thinktime_iotime=5s", "filename=/dev/sdb:/dev/sdc"]
)
def test_a_job_that_thinks_as_a_whole_is_named(options: str) -> None:
    jobs = f"time_based\nruntime=9\n[job]\nthinktime=1000\n{options}\n"
    assert any("think" in one.what and one.matters for one in imported(jobs).dropped)


def plan_of(jobs: str) -> dict[str, tuple[float, str]]:
    """By workload: after what time it starts, in s, and when it ends; "" is with the step."""
    plan = read(to_plan(imported(jobs), ""), "job.yaml")
    return {
        one.name: (one.parameters.start_after, format_volume(one.parameters.until).replace("never", ""))
        for one in plan.workloads
    }


@pytest.mark.parametrize(
    ("jobs", "expected"),
    [
        (
            "time_based\nruntime=30\n[a]\n[b]\nstartdelay=10\n",
            {"a": (0.0, "{ time: 30s }"), "b": (10.0, "{ time: 30s }")},
        ),
        ("time_based\nruntime=30\nstartdelay=5\n[a]\n[b]\n", {"a": (0.0, ""), "b": (0.0, "")}),  # both alike
        (
            "time_based\nruntime=30\n[a]\n[b]\nstonewall\nstartdelay=10s\n[c]\nstartdelay=1m\n",
            {"a": (0.0, ""), "b": (0.0, "{ time: 30s }"), "c": (50.0, "{ time: 30s }")},
        ),
        (
            "number_ios=500\n[a]\n[b]\nstartdelay=2\n",
            {"a": (0.0, "{ ios: 500 }"), "b": (2.0, "{ ios: 500 }")},
        ),
    ],
)
def test_jobs_of_a_group_start_apart(jobs: str, expected: dict[str, tuple[float, str]]) -> None:
    assert plan_of(jobs) == expected
