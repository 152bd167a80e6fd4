"""The type `ceph`: a real cluster on loopback (long), and what one of Ceph 16 printed, recorded."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ivypy.protocol.payload import Fact
from tests.support.ceph_cluster import POOL, CephCluster, ceph_cluster
from tests.support.connector_program import MadeConnector, by_name
from tests.support.waits import wait_until

# Recorded from Ceph 16.2.15 (Debian 12), without fields that are not read.
TREE = {
    "nodes": [
        {"id": -1, "name": "default", "type": "root", "children": [-3]},
        {"id": -3, "name": "vm", "type": "host", "children": [0]},
        {"id": 0, "device_class": "hdd", "name": "osd.0", "type": "osd", "status": "up"},
    ],
    "stray": [],
}
DUMP: dict[str, Any] = {
    "pg_ready": True,
    "osd_stats": [
        {"osd": 0, "kb": 1048576, "kb_used": 556816, "perf_stat": {
            "commit_latency_ms": 2, "apply_latency_ms": 2, "commit_latency_ns": 2000000, "apply_latency_ns": 2500000}},
    ],
    "pool_stats": [
        {"poolid": 2, "stat_sum": {"num_read": 0, "num_read_kb": 0, "num_write": 4304, "num_write_kb": 275456}},
        {"poolid": 7, "stat_sum": {"num_read": 1, "num_read_kb": 1, "num_write": 1, "num_write_kb": 1}},
    ],
}  # fmt: skip
USAGE = {"pools": [{"name": "gold", "id": 2, "stats": {"stored": 282263552, "percent_used": 0.38553288578987122}}]}


def recorded(folder: Path, tree: Any = TREE, dump: Any = DUMP, usage: Any = USAGE) -> MadeConnector:
    """A connector of a `ceph` that prints these."""
    for name, answer in {"osd": tree, "pg": dump, "df": usage}.items():
        (folder / name).write_text(answer if isinstance(answer, str) else f"\n{json.dumps(answer)}\n")
    script = f'echo "dumped all" >&2; cat {folder}/$1'
    return MadeConnector("ceph", command=["sh", "-c", script, "ceph"], timeout="1m")


def test_osds_and_pools_of_a_recorded_cluster(tmp_path: Path) -> None:
    connector = recorded(tmp_path)
    config, readings = connector.config(), connector.gather()
    assert config.facts == (
        Fact("osd", "0", "device_class", "hdd"),
        Fact("osd", "0", "host", "vm"),
        Fact("osd", "0", "root", "default"),
    )
    assert by_name(readings) == {
        "osd 0 commit_latency_ms": 2,
        "osd 0 apply_latency_ms": 2.5,
        "osd 0 used_percent": pytest.approx(53.1, abs=0.01),
        "pool gold used_percent": pytest.approx(38.55, abs=0.01),
        "pool gold reads_per_s": 0,
        "pool gold writes_per_s": 4304,
        "pool gold read_mib_per_s": 0,
        "pool gold write_mib_per_s": 275456,
    }
    declared = {f"{one.element} {one.attribute}" for one in config.metrics}
    assert {f"{fact.element} {fact.attribute}" for fact in readings.facts} == declared


@pytest.mark.parametrize(
    "given, fault",
    [
        ({"dump": "Error EACCES"}, "ceph pg dump osds pools: its output is not JSON"),
        (
            {"dump": {"pg_ready": False}},
            "ceph pg dump, or ceph df: the answer is not as expected (KeyError: 'osd_stats')",
        ),
        ({"dump": []}, "the answer is not as expected (TypeError"),
        ({"usage": {"pools": [{"id": 2}]}}, "the answer is not as expected (KeyError: 'name')"),
        (
            {"dump": DUMP | {"osd_stats": DUMP["osd_stats"] * 2}},
            "osd 0 and osd 0 are both commit_latency_ms of osd '0'",
        ),
    ],
)
def test_an_answer_that_is_not_ceph_s_is_named(tmp_path: Path, given: dict[str, Any], fault: str) -> None:
    assert fault in recorded(tmp_path, **given).refused_gather()


def test_a_tree_that_is_none_is_named(tmp_path: Path) -> None:
    assert "ceph osd tree: the answer is not as expected" in recorded(tmp_path, tree={"nodes": [1]}).refusal()


def test_an_osd_that_has_not_reported_yet_has_no_readings(tmp_path: Path) -> None:
    silent = DUMP | {"osd_stats": [DUMP["osd_stats"][0] | {"kb": 0, "kb_used": 0}], "pool_stats": []}
    assert by_name(recorded(tmp_path, dump=silent).gather()).keys() == {"pool gold used_percent"}


def test_a_ceph_that_is_missing_is_named() -> None:
    assert "no-ceph is not on this machine; give its path" in MadeConnector("ceph", command=["no-ceph"]).refusal()


def written(cluster: CephCluster, objects: int) -> None:
    """Write objects of 64 KiB into the pool."""
    cluster.run(
        "rados", "-p", POOL, "bench", "60", "write", "-b", "65536", "-t", "4", "--max-objects", str(objects),
        "--no-cleanup", "--run-name", str(objects),
    )  # fmt: skip


def settled(connector: MadeConnector, writes: Callable[[float], bool]) -> dict[str, Any]:
    """The readings once the OSD has reported so many writes."""
    found: dict[str, Any] = {}

    def reported() -> bool:
        found.update(by_name(connector.gather()))
        return writes(found[f"pool {POOL} writes_per_s"])

    wait_until(reported, "the OSD reports what was written")
    return found


@pytest.mark.long
def test_a_real_cluster_counts_what_was_written(tmp_path: Path) -> None:
    with ceph_cluster(tmp_path) as cluster:
        connector = MadeConnector("ceph", command=cluster.command, timeout="1m")
        assert by_name(connector.config())["osd 0 root"] == "default"
        before = settled(connector, lambda writes: writes == 0)
        written(cluster, 500)
        after = settled(connector, lambda writes: writes >= 500)
    # An object each, and the bench's own record of the run.
    assert 500 <= after[f"pool {POOL} writes_per_s"] - before[f"pool {POOL} writes_per_s"] <= 510
    kib = after[f"pool {POOL} write_mib_per_s"] - before[f"pool {POOL} write_mib_per_s"]
    assert 500 * 64 <= kib <= 500 * 64 + 64
    assert after["osd 0 commit_latency_ms"] >= 0 and 0 < after["osd 0 used_percent"] < 100
    assert 0 <= after[f"pool {POOL} used_percent"] < 100
