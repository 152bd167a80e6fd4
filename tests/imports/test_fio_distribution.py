"""`random_distribution` becomes the same law of a workload: how often the most frequent places come, as with fio."""

import shutil
import subprocess
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from ivypy.master.imports.description import Description, ImportContext
from ivypy.master.imports.fio import read_fio
from ivypy.master.imports.to_plan import to_plan
from ivypy.master.plan.load import read
from ivypy.protocol.parameters import MAX

DEVICE = "filename=/dev/sdb\ndirect=1\nioengine=libaio\ntime_based\nruntime=9\nrw=randread\n"
KIB, MIB = 1 << 10, 1 << 20


def imported(options: str) -> Description:
    around = ImportContext("/data", {}, lambda name: "", lambda path: False)
    return read_fio(f"[job]\n{DEVICE}{options}\n", "job.fio", around)


def law_of(options: str) -> list[str]:
    """The lines of the plan that say where the I/Os go, which a plan has."""
    text = to_plan(imported(options), "ivypy import job.fio").replace("# destroy: true", "destroy: true")
    read(text, "job.yaml")
    words = ("zipf", "pareto", "normal", "hot_zones", "random_map")
    return [line.strip() for line in text.splitlines() if line.strip().startswith(words)]


@pytest.mark.parametrize(
    ("options", "lines"),
    [
        ("random_distribution=random", ["random_map: true"]),
        ("random_distribution=zipf", ["zipf: 1.1"]),
        ("random_distribution=zipf:1.2", ["zipf: 1.2"]),
        ("random_distribution=pareto", ["pareto: 20%"]),
        ("random_distribution=pareto:0.3", ["pareto: 30%"]),
        ("random_distribution=normal:5", ["normal: 8.33%"]),
        (
            "norandommap\nrandom_distribution=zoned:60/10:30/20:10/70",
            ["hot_zones: [{ range: 0%..10%, share: 60% }, { range: 10%..30%, share: 30% }, "
             "{ range: 30%..100%, share: 10% }]"],
        ),
        (
            "norandommap\nrandom_distribution=zoned:90/10:10/",
            ["hot_zones: [{ range: 0%..10%, share: 90% }, { range: 10%..100%, share: 10% }]"],
        ),
        (
            "norandommap\nrandom_distribution=zoned:50/50:/50",
            ["hot_zones: [{ range: 0%..50%, share: 50% }, { range: 50%..100%, share: 50% }]"],
        ),
        (
            "norandommap\nrw=randrw\nrandom_distribution=zoned:90/10:10/90,50/50:50/50",
            ["hot_zones: [{ range: 0%..10%, read_share: 90%, write_share: 10% }, "
             "{ range: 10%..50%, read_share: 4.4444444%, write_share: 40% }, "
             "{ range: 50%..100%, read_share: 5.5555556%, write_share: 50% }]"],
        ),
        (
            "norandommap\nrandom_distribution=zoned:0/10:100/10",
            ["hot_zones: [{ range: 10%..20%, share: 100% }]"],
        ),
        (
            "norandommap\nrandom_distribution=zoned_abs:90/10m:10/1g",
            ["hot_zones: [{ range: 0..10MiB, share: 90% }, { range: 10MiB..1034MiB, share: 10% }]"],
        ),
    ],
)  # fmt: skip
def test_the_law_of_a_job(options: str, lines: list[str]) -> None:
    assert law_of(options) == lines


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ("random_distribution=normal:5", "fio's is the mean of twelve even numbers"),
        ("random_distribution=zipf:1.2:0.5", "fio's begins at that place"),
        ("random_distribution=zoned:90/10:10/90", "fio visits each block of a zone once"),
    ],
)
def test_what_differs_is_named(options: str, why: str) -> None:
    named = [one for one in imported(options).dropped if one.matters]
    assert [one for one in named if why in one.why] == named != []


@pytest.mark.parametrize("options", ["random_distribution=zipf:1.2", "random_distribution=pareto:0.1"])
def test_the_same_law_needs_no_word(options: str) -> None:
    assert [one for one in imported(options).dropped if one.matters] == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("zapf", "'zapf' is not a distribution; fio has random, zipf, pareto"),
        ("zipf:0", "theta is above 0"),
        ("zipf:x", "'zipf:x' has no number; write for example zipf:1.1"),
        ("pareto:1", "ivypy has above 0 and at most 0.99"),
        ("zipf:1e9", "theta is above 0 and at most 16"),
        ("zoned:50/50:50/50,50/50:50/50,50/50:50/50", "no third ones"),
        ("normal", "'normal' has no number"),
        ("zoned:", "there are no zones"),
        ("zoned:50/50:40/50", "add up to 90 %, not to 100"),
        ("zoned:50/60:50/60", "its zones are 120 % of the range"),
        ("zoned_abs:50/10g:50/", "a zone has no size"),
        ("zoned:" + ":".join(["2/2"] * 50), "it has 50 zones; a workload has at most 31"),
    ],
)
def test_what_fio_refuses_or_no_plan_holds(text: str, why: str) -> None:
    with pytest.raises(Exception, match=why) as refused:
        imported(f"random_distribution={text}")
    assert str(refused.value).count(why) == 1


def test_clones_have_frequent_places_of_their_own() -> None:
    """fio scatters those of each clone by another number."""
    streams = imported("numjobs=3\niodepth=4\nrandom_distribution=zipf:1.2").streams
    assert [(one.name, one.depth) for one in streams] == [("job-0", 4), ("job-1", 4), ("job-2", 4)]
    (one,) = imported("numjobs=3\niodepth=4\nnorandommap\nrandom_distribution=zoned:90/10:10/90").streams
    assert one.depth == 12


# fio's own law

COUNT, BLOCKS = 40_000, 4096


def blocks_of_fio(law: str, folder: Path) -> Counter[int]:
    words = [
        "--name=job", "--filename=none", "--ioengine=null", f"--size={BLOCKS * 4}k", f"--number_ios={COUNT}",
        "--io_size=1t", "--rw=randread", "--bs=4k", "--norandommap", f"--random_distribution={law}",
        "--write_iolog=log", "--output=out",
    ]  # fmt: skip
    subprocess.run(["fio", *words], cwd=folder, check=True, timeout=120, capture_output=True)
    lines = [line.split() for line in (folder / "log").read_text().splitlines()]
    return Counter(int(line[-2]) // 4096 for line in lines if line[-3] == "read")


def ranked(options: str) -> np.ndarray:
    """How often each place comes by the plan's law, the most frequent first."""
    plan = read(to_plan(imported(options), "").replace("# destroy: true", "destroy: true"), "job.yaml")
    found = plan.workloads[0].parameters.absolute(BLOCKS * 4096, "file", MAX)
    ranks = np.arange(1, BLOCKS + 1)
    if found.zipf:
        weights = ranks**-found.zipf
    else:
        power = np.log(found.pareto) / np.log(1 - found.pareto)
        weights = np.diff((np.arange(BLOCKS + 1) / BLOCKS) ** (1 / power))
    return np.asarray(weights / weights.sum())


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("fio") is None, reason="this machine lacks fio")
@pytest.mark.parametrize("law", ["zipf:0.8", "zipf:1.2", "zipf:2.5", "pareto:0.2", "pareto:0.05"])
def test_the_most_frequent_places_come_as_often_as_with_fio(law: str, tmp_path: Path) -> None:
    """fio's hash lays some places upon each other, which adds a little to all; its zipf is a formula beyond rank 2."""
    theirs = sorted(blocks_of_fio(law, tmp_path).values(), reverse=True)
    ours = ranked(f"random_distribution={law}")
    for most in (1, 2, 10, 100):
        assert sum(theirs[:most]) / COUNT == pytest.approx(ours[:most].sum(), rel=0.1, abs=0.02), most


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("fio") is None, reason="this machine lacks fio")
def test_the_zones_are_those_of_fio(tmp_path: Path) -> None:
    law = "zoned:60/10:30/20:10/70"
    plan = read(to_plan(imported(f"norandommap\nrandom_distribution={law}"), "").replace("# dest", "dest"), "job.yaml")
    theirs = blocks_of_fio(law, tmp_path)
    for zone in plan.workloads[0].parameters.absolute(BLOCKS * 4096, "file", MAX).hot_zones:
        ios = sum(count for block, count in theirs.items() if zone.start <= block * 4096 < zone.end)
        assert ios / COUNT == pytest.approx(zone.reads, abs=0.01)
