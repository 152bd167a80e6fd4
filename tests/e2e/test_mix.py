"""Mixes on real devices: what rows say of each operation against what the kernel counted on the device."""

from pathlib import Path

import pytest

from tests.support.devices import Missing, loop
from tests.support.real_runs import ENDED, ROOT, run, token, written

pytestmark = pytest.mark.slow

SECTOR = 512
IOS = 2000
ON_DEVICE = """
luns: {{ paths: {device} }}
destroy: true
engine: {{ threads: 1 }}
workloads:
  w:
    operations: {{ read: 40%, write: 30%, trim: 20%, write_zeroes: 10% }}
    blocksize: {{ read: {{ 4KiB: 50%, 16KiB: 50% }}, write: 8KiB, trim: 128KiB, write_zeroes: 64KiB }}
    maxtags: 4
defaults: {{ subinterval: 250ms }}
steps: [ {{ go: {{ name: one, until: {{ ios: {ios} }} }} }} ]
"""


def sectors(device: str) -> dict[str, int]:
    """That the kernel counted, since the device is there (Documentation/block/stat.rst)."""
    counted = [int(one) for one in Path("/sys/block", Path(device).name, "stat").read_text().split()]
    return {"written": counted[6], "discarded": counted[13]}


def test_what_a_device_trimmed_and_wrote_is_what_rows_say(tmp_path: Path) -> None:
    try:
        with loop(64 << 20) as device:
            plan = written(tmp_path, ON_DEVICE.format(device=device, ios=IOS))
            before = sectors(device)
            ended = run(plan, tmp_path / "runs", "--destroy", token(plan))
            after = sectors(device)
    except Missing as missing:
        pytest.skip(f"this machine lacks {missing}")
    assert ended.code in ENDED, ended.out + ended.err
    (row,) = ended.rows("summary.all.csv")
    length_s = float(row["length_s"])
    ios = {
        name: round(float(row[f"{name}_iops"]) * length_s) for name in ("overall", "read", "write", "trim", "zeroes")
    }
    assert ios.pop("overall") == IOS == sum(ios.values()) == int(row["due"])
    for name, share in (("read", 0.4), ("write", 0.3), ("trim", 0.2), ("zeroes", 0.1)):
        assert ios[name] == pytest.approx(IOS * share, abs=5 * (IOS * share * (1 - share)) ** 0.5)
        assert int(row[f"{name}_service_count"]) == ios[name]
    moved = {name: round(float(row[f"{name}_mib_per_s"]) * length_s * 2**20) for name in ("write", "trim", "zeroes")}
    of_sizes = {"write": ios["write"] * 8192, "trim": ios["trim"] * 131072, "zeroes": ios["zeroes"] * 65536}
    assert moved == pytest.approx(of_sizes, rel=1e-6)
    assert (after["discarded"] - before["discarded"]) * SECTOR == of_sizes["trim"]
    written_bytes = (after["written"] - before["written"]) * SECTOR
    # a device in memory refuses the first request to zero, and the kernel writes zeros from then on
    assert written_bytes - of_sizes["write"] - of_sizes["zeroes"] in (0, 65536)


def test_the_example_runs(tmp_path: Path) -> None:
    small = {
        "path": str(tmp_path / "data"),
        "size": "32MiB",
        "subinterval": "250ms",
        "warmup": "0s",
        "measure": "500ms",
    }
    words = [word for name, value in small.items() for word in ("-D", f"{name}={value}")]
    ended = run(ROOT / "configs" / "mix.yaml", tmp_path / "runs", *words)
    assert ended.code in ENDED, ended.out + ended.err
    found = {(row["name"], row["rollup_instance"]): row for row in ended.rows("summary.workload.csv")}
    assert float(found["max", "mail"]["trim_iops"]) > 0 and float(found["paced", "mail"]["trim_iops"]) > 0
    assert float(found["beside", "scan"]["sequential_read_iops"]) > float(
        found["beside", "scan"]["sequential_write_iops"]
    )
    assert found["paced", "mail"]["operations"] == (
        "read:4096=0.21;read:65536=0.09;write:8192=0.622222;trim:1048576=0.0777778"
    )
