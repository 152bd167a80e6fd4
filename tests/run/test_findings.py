"""Law: no row is valid that contradicts what was staged: hosts that go, are late or are cut, and instances that fall
behind, at random. And a row that none of it concerns is not invalid."""

import random
from itertools import count
from pathlib import Path

import pytest

from ivypy.master.verdicts import Reason
from ivypy.protocol import messages as m
from ivypy.protocol.parameters import MAX, Parameters
from tests.support.real_runs import names_of
from tests.support.simulated.runs import SimulatedHosts, run
from tests.support.simulated.slave import Faults, Service, SimulatedSlave

pytestmark = pytest.mark.slow

HOSTS = ("a", "b", "c")
LUNS = 2
KEPT_UP = 1.0
TEXT = """\
name: truth
hosts: [a, b, c]
engine: {{ backend: "null" }}
luns: {{ create: {{ path: "/x/{{}}", size: 1GiB, count: 2 }} }}
workloads: {{ fg: {{ maxtags: 8, iops: 1000 }}, bg: {{ maxtags: 8, iops: {background} }} }}
rollups: [ host, workload, lun, {{ by: [host, workload] }} ]
defaults: {{ warmup: 2s, measure: {measure}s }}
steps: [ go: {{ name: it, {control} }} ]
"""
HICCUPS = ("late", "stall")  # cost nothing
CONTROLS = ("", "", "slo: { metric: overall_service_us_p99, at_most: 1s, rollup: host }")


def plant(shares: list[float]) -> Service:
    """Instances in turn, each doing a share of what is asked of it; at max, as much as ever."""
    turn = count()

    def asked(offered: float, parameters: Parameters) -> tuple[float, int]:
        share = shares[next(turn) % len(shares)]
        if parameters.iops == MAX:
            return 50_000.0, 100_000
        rate = float(parameters.iops)
        return (min(offered, share * rate) if share < KEPT_UP else min(offered, 3 * rate)), 300_000

    return asked


def fault(chance: random.Random, subintervals: int) -> tuple[Faults, int | None]:
    """What goes wrong, and the first subinterval that is without the host."""
    at = chance.randrange(subintervals + 3)
    kinds: dict[str, Faults] = {
        "die": Faults(die_at=at),
        "silent": Faults(silent_from=at),
        "late": Faults(late={at: chance.choice((1.0, 2.5))}),
        "stall": Faults(stall={at: 2.0}),
        "thread": Faults(ends_at=(at, m.StopReason.DIED), catch_s=chance.choice((0.0, 6.0))),
        "lease": Faults(ends_at=(at, m.StopReason.LEASE)),
        "half": Faults(half_line_at=at),
        "garbage": Faults(garbage_at=at),
    }
    if chance.random() < 0.6:
        return Faults(), None
    kind = chance.choice(sorted(kinds))
    return kinds[kind], None if kind in HICCUPS else at


@pytest.mark.parametrize("seed", range(20))
def test_no_row_is_valid_that_the_truth_contradicts(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    measure = chance.choice((6, 12, 24))
    staged = {host: fault(chance, measure + 2) for host in HOSTS}
    # in `go`'s order: the LUNs of a workload, then those of the next
    shares = {
        host: [chance.choice((0.5, 0.8, 0.97)) if chance.random() < 0.1 else KEPT_UP for _ in range(2 * LUNS)]
        for host in HOSTS
    }
    background = chance.choice(("max", "500"))
    lab = SimulatedHosts(
        **{host: SimulatedSlave(host, plant=plant(shares[host]), faults=staged[host][0]) for host in HOSTS}
    )
    text = TEXT.format(background=background, measure=measure, control=chance.choice(CONTROLS))
    outcome = run(tmp_path, text, lab)
    names = {row["instance"]: (row["host"], int(row["number"])) for row in outcome.rows("workloads.csv")}
    order = {host: sorted(number for of, number in names.values() if of == host) for host in HOSTS}
    behind = {
        name
        for name, (host, number) in names.items()
        if shares[host][order[host].index(number)] < KEPT_UP and not (name.endswith("+bg") and background == "max")
    }
    for kind in ("all", "host", "workload", "lun", "host+workload"):
        for row in outcome.rows(f"summary.{kind}.csv"):
            assert names_of(row["reasons"]) <= {reason.word for reason in Reason}, "a reader splits the reasons there"
            mine = {name for name in names if _is_of(name, kind, row["rollup_instance"])}
            hosts = {names[name][0] for name in mine}
            if not row["first_subinterval"]:
                assert row["verdict"] != "valid"
                continue
            last = int(row["last_subinterval"])
            gone = {host for host in hosts if (at := staged[host][1]) is not None and at <= last}
            where = (seed, kind, row["rollup_instance"], row["verdict"], row["reasons"], staged, behind)
            if row["verdict"] == "valid":
                assert not gone and not mine & behind, where
                assert row["hosts_in"] == row["hosts_of"], where
            if gone:
                assert row["verdict"] != "valid", where
            if mine & behind and not gone:
                assert "load_not_sustained" in row["reasons"], where
            if not gone and not mine & behind:
                assert row["verdict"] != "invalid", where


def _is_of(name: str, kind: str, instance: str) -> bool:
    host, lun, workload = name.split("+")
    values = {
        "all": "all",
        "host": host,
        "workload": workload,
        "lun": f"{host}:{lun}",
        "host+workload": f"{host}+{workload}",
    }
    return values[kind] == instance
