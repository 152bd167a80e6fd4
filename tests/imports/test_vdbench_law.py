"""The steps of an imported parameter file have the rates, sizes, depths and mixes that vdbench's rules give.

The rules are written out here once more, in another way: per wd and LUN instead of per stream.
"""

from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivypy.master.imports.description import Description, ImportContext
from ivypy.master.imports.to_plan import to_plan
from ivypy.master.imports.vdbench import read_vdbench
from ivypy.master.plan.load import read
from ivypy.master.plan.model import Plan, Step, Workload
from ivypy.master.text.plan_parameters import OfStep
from ivypy.protocol.parameters import MAX, Iosequencer


@dataclass(frozen=True)
class Sd:
    name: str
    path: str
    threads: int


@dataclass(frozen=True)
class Wd:
    name: str
    sds: tuple[Sd, ...]
    values: dict[str, int]  # xfersize, rdpct, seekpct
    skew: int | None


@dataclass(frozen=True)
class Rd:
    name: str
    wds: tuple[Wd, ...]
    rates: tuple[int, ...] | str
    curve: tuple[int, ...]
    lists: dict[str, tuple[int, ...]]  # in their order
    elapsed: int
    interval: int
    warmup: int
    pause: int


RATES: list[tuple[int, ...] | str] = ["max", "curve", (120,), (60, 900)]
VALUES = {"xfersize": [4096, 8192, 65536], "rdpct": [0, 25, 100], "seekpct": [0, 100], "threads": [1, 4, 12, 48]}


@st.composite
def parameter_files(draw: st.DrawFn) -> tuple[int, list[Sd], list[Wd], list[Rd]]:
    sds = [
        Sd(f"sd{i}", f"/dev/sd{'bcd'[i]}", draw(st.sampled_from([1, 8, 30]))) for i in range(draw(st.integers(1, 3)))
    ]
    some = st.lists(st.sampled_from(sds), min_size=1, unique=True).map(lambda found: sorted(found, key=sds.index))
    of_wd = st.fixed_dictionaries({name: st.sampled_from(VALUES[name]) for name in ("xfersize", "rdpct", "seekpct")})
    count = draw(st.integers(1, 3))
    skews = draw(st.lists(st.sampled_from([None, None, 20]), min_size=count, max_size=count))
    wds = [Wd(f"wd{i}", tuple(draw(some)), draw(of_wd), skew) for i, skew in enumerate(skews)]
    rds = []
    for i in range(draw(st.integers(1, 3))):
        of_rd = draw(st.lists(st.sampled_from(wds), min_size=1, unique_by=lambda wd: wd.name))
        if all(wd.skew for wd in of_rd):  # has to be 100
            of_rd = [Wd(wd.name, wd.sds, wd.values, None) for wd in of_rd]
            wds = [next((one for one in of_rd if one.name == wd.name), wd) for wd in wds]
        lists = draw(
            st.lists(st.sampled_from(sorted(VALUES)), max_size=3, unique=True).flatmap(
                lambda names: st.fixed_dictionaries(
                    {
                        n: st.lists(st.sampled_from(VALUES[n]), min_size=1, max_size=3, unique=True).map(tuple)
                        for n in names
                    }
                )
            )
        )
        rates: tuple[int, ...] | str = draw(st.sampled_from(RATES))
        interval = draw(st.sampled_from([1, 5]))
        rds.append(
            Rd(
                f"rd{i}", tuple(of_rd), rates, draw(st.sampled_from([(10, 50, 100), (70,), (120,)])), lists,
                20 * interval, interval, draw(st.sampled_from([0, interval * 2])), draw(st.sampled_from([0, interval])),
            )
        )  # fmt: skip
    named = {wd.name: wd for wd in wds}
    rds = [Rd(**{**vars(rd), "wds": tuple(named[wd.name] for wd in rd.wds)}) for rd in rds]
    return draw(st.integers(1, 2)), sds, wds, rds


def written(hosts: int, sds: list[Sd], wds: list[Wd], rds: list[Rd]) -> str:
    lines = [f"hd=h{i}" for i in range(hosts)] if hosts > 1 else []
    lines += [f"sd={sd.name},lun={sd.path},threads={sd.threads},openflags=o_direct" for sd in sds]
    for wd in wds:
        values = ",".join(f"{name}={value}" for name, value in wd.values.items())
        skew = f",skew={wd.skew}" if wd.skew else ""
        lines.append(f"wd={wd.name},sd=({','.join(sd.name for sd in wd.sds)}),{values}{skew}")
    for rd in rds:
        rates = rd.rates if isinstance(rd.rates, str) else f"({','.join(map(str, rd.rates))})"
        parts = [f"rd={rd.name},wd=({','.join(wd.name for wd in rd.wds)}),iorate={rates}"]
        parts += [f"for{name}=({','.join(map(str, values))})" for name, values in rd.lists.items()]
        parts += [f"curve=({','.join(map(str, rd.curve))})", f"elapsed={rd.elapsed},interval={rd.interval}"]
        parts += [f"warmup={rd.warmup},pause={rd.pause}"]
        lines.append(",\n".join(parts))
    return "\n".join(lines) + "\n"


Driven = dict[tuple[str, str], dict[tuple[int, bool], tuple[int, int, Any]]]  # wd, LUN -> reads, sequential -> ...


def expected(hosts: int, rd: Rd) -> list[tuple[Driven, tuple[int, int, int]]]:
    """By step: for every wd and LUN the streams with their size, depth on each host and rate; and the step's times."""
    measured = (rd.warmup, rd.elapsed) if rd.warmup else (rd.interval, rd.elapsed - rd.interval)
    rates: list[list[Any]] = [["max"]] if isinstance(rd.rates, str) else [[rate] for rate in rd.rates]
    if rd.rates == "curve":
        rates = [["max", *(f"{point}%" for point in rd.curve)]]
    given_skew = sum(wd.skew or 0 for wd in rd.wds)
    found = []
    for one, of_curve in product(product(*rd.lists.values()), rates):
        values = dict(zip(rd.lists, one, strict=True))
        for rate in of_curve:
            driven: Driven = {}
            for wd in rd.wds:
                settings: dict[str, int] = {**wd.values, **values}
                without = [other for other in rd.wds if not other.skew]
                share = Fraction(wd.skew, 100) if wd.skew else Fraction(100 - given_skew, 100 * len(without))
                for sd in wd.sds:
                    users = sum(sd in other.sds for other in rd.wds)
                    depth = settings.get("threads", sd.threads) / (hosts * users)
                    reads, sequential = settings["rdpct"], settings["seekpct"] == 0
                    paced = float(rate * share / len(wd.sds)) if isinstance(rate, int) else rate
                    driven[wd.name, sd.path] = {
                        (reads, sequential): (settings["xfersize"], max(round(depth), 1), paced)
                    }
            found.append((driven, (*measured, rd.pause)))
    return found


def actual(plan: Plan, one: Description, step: Step) -> Driven:
    driven: Driven = {}
    for workload in plan.workloads:
        settings = in_force(workload, step, len(plan.workloads) == 1)
        if settings.get("iops") == 0:
            continue
        stream = next(stream for stream in one.streams if stream.name == workload.name)
        rate = settings.get("total_iops", settings.get("iops"))
        if isinstance(rate, OfStep):
            (base,) = (other for other in plan.steps if other.name == rate.step)
            assert base.number < step.number and MAX in (
                in_force(workload, base, len(plan.workloads) == 1).get(key) for key in ("iops", "total_iops")
            )
            rate = f"{rate.fraction * 100:g}%"
        elif isinstance(rate, float):
            rate /= len(stream.paths)
        sequential = settings["iosequencer"] is Iosequencer.SEQUENTIAL
        for path in stream.paths:
            streams = driven.setdefault((workload.name.split("-")[0], path), {})
            key = round(settings["fraction_read"] * 100), sequential
            assert key not in streams
            streams[key] = settings["blocksize"], settings["maxtags"], rate
    return driven


def in_force(workload: Workload, step: Step, alone: bool) -> dict[str, Any]:
    names = ("iops", "blocksize", "maxtags", "fraction_read", "iosequencer")
    settings: dict[str, Any] = {name: getattr(workload.parameters, name) for name in names}
    for edit in step.edits:
        assert edit.rollup != "all" or "total_iops" not in edit.changes or alone, "another load than a total of each"
        if edit.rollup == "all" or workload.name in edit.instances:
            if {"iops", "total_iops"} & edit.changes.keys():
                settings.pop("iops", None)
                settings.pop("total_iops", None)
            settings.update(edit.changes)
    return settings


@pytest.mark.slow
@given(parameter_files())
def test_every_step_has_the_rates_sizes_depths_and_mixes_of_vdbench(
    drawn: tuple[int, list[Sd], list[Wd], list[Rd]],
) -> None:
    hosts, sds, wds, rds = drawn
    text = written(hosts, sds, wds, rds)
    one = read_vdbench(text, "x.parm", ImportContext("/data", {}, lambda name: "", lambda path: False))
    plan = read(to_plan(one, "ivypy import").replace("# destroy: true", "destroy: true"), "x.yaml")
    wanted = [step for rd in rds for step in expected(hosts, rd)]
    assert len(plan.steps) == len(wanted)
    for step, (driven, times) in zip(plan.steps, wanted, strict=True):
        found = actual(plan, one, step)
        assert found.keys() == driven.keys()
        for key, streams in driven.items():
            assert found[key].keys() == streams.keys()
            for stream, (size, depth, rate) in streams.items():
                approximate = pytest.approx(rate, abs=1e-5) if isinstance(rate, float) else rate
                assert found[key][stream] == (size, depth, approximate)
        assert (step.warmup_s, step.measure_s, step.cooldown_s) == times
    writes = any(reads < 100 for driven, _ in wanted for streams in driven.values() for reads, _ in streams)
    assert plan.destroy == writes
