"""The plans of SNIA's tests, for real, on a device in memory that is small, and steady from the beginning.

Of the capacity the first block is not driven: it holds the label."""

from pathlib import Path

import pytest

from tests.support.devices import Missing, loop
from tests.support.real_runs import ENDED, ROOT, Finished, run, token

pytestmark = [pytest.mark.long, pytest.mark.timeout(2 * 1800)]  # tests/run/test_rounds.py has them simulated

SIZE = 32 << 20
SMALL = {"measure": "250ms", "subinterval": "250ms"}
LONGEST_S = 1800.0  # of 25 rounds of 56 passes


def snia(name: str, tmp_path: Path, small: dict[str, str] = SMALL) -> Finished:
    plan = ROOT / "configs" / "snia" / f"{name}.yaml"
    try:
        with loop(SIZE) as device:
            words = [word for key, value in (small | {"device": device}).items() for word in ("-D", f"{key}={value}")]
            ended = run(plan, tmp_path / "runs", *words, "--destroy", token(plan, *words), timeout_s=LONGEST_S)
    except Missing as missing:
        pytest.skip(f"this machine lacks {missing}")
    assert ended.code in (*ENDED, 6), ended.out + ended.err  # 6: on a busy machine even this is not steady
    return ended


def check_rounds(ended: Finished, step: str, passes: int, watched: int) -> None:
    """Every round has all passes; the rounds ended when those that are watched were steady, or after 25."""
    rows = [row for row in ended.rows("rounds.csv") if row["step"] == step]
    rounds = int(rows[-1]["round"])
    assert len(rows) == rounds * watched
    names = [row["name"] for row in ended.rows("summary.all.csv") if row["name"].startswith(f"{step}+")]
    assert len(names) == len({*names}) == rounds * passes
    assert all(row["steady"] == "true" for row in rows[-watched:]) or rounds == 25
    assert rounds >= 5


def test_throughput(tmp_path: Path) -> None:
    ended = snia("throughput", tmp_path)
    whole = {row["name"]: row for row in ended.rows("summary.all.csv")}
    for size, block in (("128k", 128 << 10), ("1m", 1 << 20)):
        check_rounds(ended, f"throughput-{size}", passes=2, watched=2)
        filled = whole[f"precondition-{size}"]
        written = float(filled["write_mib_per_s"]) * float(filled["length_s"]) * 2**20
        assert written == pytest.approx(2 * (SIZE - block), rel=1e-6) and filled["verdict"] != "invalid"


@pytest.mark.parametrize(("name", "passes"), [("iops", 56), ("latency", 9)])
def test_a_matrix(name: str, passes: int, tmp_path: Path) -> None:
    check_rounds(snia(name, tmp_path), name, passes, watched=1)


def test_write_saturation(tmp_path: Path) -> None:
    (row,) = snia("write-saturation", tmp_path, {"subinterval": "250ms"}).rows("summary.all.csv")
    assert float(row["write_mib_per_s"]) * float(row["length_s"]) * 2**20 == pytest.approx(4 * (SIZE - 4096), rel=1e-6)
