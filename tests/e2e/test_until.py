"""Steps that end by volume, for real: how much was done, where, and in what time."""

import json
from pathlib import Path

import pytest

from tests.support.real_runs import ENDED, Finished, answered, names_of, run, token, written

pytestmark = pytest.mark.slow

MIB = 1 << 20
BLOCK = 4096
PLAN = """
luns: {{ {luns} }}
{more}
engine: {{ threads: 2 }}
workloads: {{ {workloads} }}
rollups: [ workload ]
defaults: {{ subinterval: 250ms }}
steps: [ go: {{ name: one, {go} }} ]
"""


def done(folder: Path, workloads: str, go: str) -> Finished:
    """On a new file."""
    luns = f"create: {{ path: {folder}/data, size: 16MiB }}"
    return run(
        written(folder, PLAN.format(luns=luns, more="", workloads=workloads, go=go)),
        folder / "runs",
    )


def ios(row: dict[str, str]) -> int:
    return round(float(row["overall_iops"]) * float(row["length_s"]))


@pytest.mark.parametrize("order", ["random_steady", "random_independent", "sequential"])
def test_once_writes_every_block_exactly_once(order: str, tmp_path: Path) -> None:
    """As many I/Os as there are blocks, and no block is as before: so none was written twice."""
    before = bytes(range(256)) * (3 * MIB // 256)
    data = tmp_path / "data"
    data.write_bytes(before)
    luns, more = f"files: [ {data} ]", "destroy: true"
    workloads = f"w: {{ iosequencer: {order}, fraction_read: 0%, maxtags: 16 }}"
    plan = written(tmp_path, PLAN.format(luns=luns, more=more, workloads=workloads, go="once: true"))
    ended = run(plan, tmp_path / "runs", "--destroy", token(plan))
    assert ended.code in ENDED, ended.out + ended.err
    (row,) = ended.rows("summary.all.csv")
    assert ios(row) == 3 * MIB // BLOCK
    after = data.read_bytes()
    same = [at for at in range(0, len(before), BLOCK) if after[at : at + BLOCK] == before[at : at + BLOCK]]
    assert len(after) == len(before) and same == []


def test_a_paced_volume_takes_its_time(tmp_path: Path) -> None:
    """The n-th due time is n gaps and a part of one after the start: the rate is what was asked for, to a gap."""
    ended = done(tmp_path, "w: { iops: 2000, maxtags: 8 }", "until: { ios: 3000 }")
    (row,) = ended.rows("summary.all.csv")
    assert ios(row) == 3000
    assert float(row["length_s"]) >= 2999 / 2000
    assert "its workloads ended after 1." in ended.out


def test_each_workload_ends_by_itself_and_the_rest_goes_on(tmp_path: Path) -> None:
    workloads = (
        "few: { iops: 1000, until: { ios: 200 } }, many: { iops: 1000, until: { read: 4096000 } }, "
        "mixed: { iops: 1000, fraction_read: 50%, until: { written: 819200 } }"
    )
    ended = done(tmp_path, workloads, "disturbed: keep")
    of = {row["rollup_instance"]: row for row in ended.rows("summary.workload.csv")}
    assert (ios(of["few"]), ios(of["many"])) == (200, 1000)
    assert round(float(of["mixed"]["write_iops"]) * float(of["mixed"]["length_s"])) == 200
    (row,) = ended.rows("summary.all.csv")
    assert "ended_apart" in names_of(row["reasons"])


def test_one_beside_an_endless_workload_ends_the_step_where_it_has_no_time(tmp_path: Path) -> None:
    ended = done(tmp_path, "w: { iops: 1000, until: { ios: 300 } }, endless: { iops: 100 }", "disturbed: keep")
    of = {row["rollup_instance"]: row for row in ended.rows("summary.workload.csv")}
    assert ios(of["w"]) == 300 and ios(of["endless"]) >= 20


def test_a_step_that_times_out_is_partial_and_says_what_is_left(tmp_path: Path) -> None:
    ended = done(tmp_path, "w: { maxtags: 1, iops: 100 }", "until: { ios: 1000, timeout: 1s }")
    assert ended.code == 3 and "its volume is out of reach: 1,000 I/Os at 100 IOPS take 10s" in ended.err
    (tmp_path / "second").mkdir()
    thinks = "w: { maxtags: 1, think_time: 10ms }"
    ended = done(tmp_path / "second", thinks, "until: { ios: 1000, timeout: 1s }")
    (row,) = ended.rows("summary.all.csv")
    assert row["verdict"] in ("partial", "invalid") and "volume_not_reached" in names_of(row["reasons"])
    left = next(one for one in row["reasons"].split("; ") if one.startswith("volume_not_reached"))
    assert "% was left" in left


def test_a_step_with_a_time_ends_with_whichever_comes_first(tmp_path: Path) -> None:
    go = "until: { ios: 300 }, measure: 30s, disturbed: keep"
    ended = done(tmp_path, "w: { iops: 1000 }", go)
    assert ios(ended.rows("summary.all.csv")[0]) == 300
    shown = json.loads(answered("show", "--json", str(ended.folder)).stdout)
    assert [step["name"] for step in shown["steps"]] == ["one"]
