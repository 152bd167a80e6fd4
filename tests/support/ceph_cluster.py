"""A Ceph cluster of Debian's own packages on loopback: a monitor, a manager and an OSD as plain processes.

Rule: nothing is installed and nothing of the machine's is touched; the OSD's disk is a sparse file in the folder.
"""

import os
import shutil
import socket
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.waits import wait_until

UNPACKED = Path(__file__).parents[2] / ".venv/ceph"  # scripts/setup long
POOL = "gold"
CONFIG = """\
[global]
fsid = {fsid}
mon_host = v2:127.0.0.1:{port}
auth_cluster_required = none
auth_service_required = none
auth_client_required = none
public_addr = 127.0.0.1
cluster_addr = 127.0.0.1
run_dir = {folder}
crash_dir = {folder}
admin_socket = {folder}/$pid.asok
pid_file =
log_file = {folder}/$name.log
erasure_code_dir = {libraries}/ceph/erasure-code
plugin_dir = {libraries}/ceph
osd_class_dir = {libraries}/rados-classes
mgr_module_path = {unpacked}/usr/share/ceph/mgr
mgr_initial_modules =
mon_data = {folder}/mon
mgr_data = {folder}/mgr
osd_data = {folder}/osd
osd_objectstore = bluestore
bluestore_block_size = 8589934592
osd_memory_target = 939524096
osd_pool_default_size = 1
osd_pool_default_min_size = 1
osd_pool_default_pg_autoscale_mode = off
osd_crush_chooseleaf_type = 0
mon_allow_pool_size_one = true
mon_data_avail_crit = 1
"""


@dataclass(frozen=True)
class CephCluster:
    environment: dict[str, str]
    folder: Path

    @property
    def command(self) -> list[str]:
        """What runs `ceph`; its environment has to be this cluster's."""
        words = [f"{name}={value}" for name, value in self.environment.items()]
        return ["env", *words, "/usr/bin/python3", self.program("ceph"), "--connect-timeout", "10"]

    def program(self, name: str) -> str:
        return str(UNPACKED / "usr/bin" / name)

    def ceph(self, *words: str) -> str:
        found = subprocess.run([*self.command, *words], capture_output=True, text=True, timeout=60)
        assert found.returncode == 0, found.stderr
        return found.stdout

    def run(self, name: str, *words: str) -> None:
        """Run a program of Ceph's to its end."""
        found = subprocess.run(
            [self.program(name), *words], env=os.environ | self.environment, capture_output=True, text=True, timeout=60
        )
        assert found.returncode == 0, found.stderr


@contextmanager
def ceph_cluster(folder: Path) -> Iterator[CephCluster]:
    if not (UNPACKED / "usr/bin/ceph-mon").exists() or shutil.which("python3", path="/usr/bin") is None:
        pytest.skip("needs Ceph: scripts/setup long")
    (libraries,) = (UNPACKED / "usr/lib").glob("*-linux-gnu")
    paths = [libraries, libraries / "ceph", UNPACKED / "usr/lib", UNPACKED / "lib" / libraries.name]
    environment = {
        "LD_LIBRARY_PATH": ":".join(map(str, paths)),
        "PYTHONPATH": str(UNPACKED / "usr/lib/python3/dist-packages"),
        "CEPH_CONF": str(folder / "ceph.conf"),
    }
    fsid, port = str(uuid.uuid4()), free_port()
    (folder / "ceph.conf").write_text(
        CONFIG.format(fsid=fsid, port=port, folder=folder, libraries=libraries, unpacked=UNPACKED)
    )
    for name in ("mon", "mgr", "osd"):
        (folder / name).mkdir()
    cluster = CephCluster(environment, folder)
    with ExitStack() as stack:

        def start(name: str, number: str) -> None:
            log = stack.enter_context((folder / f"{name}.out").open("wb"))
            words = [cluster.program(name), "-i", number, "-f"]
            process = subprocess.Popen(words, env=os.environ | environment, stdout=log, stderr=log)
            stack.callback(process.wait)
            stack.callback(process.kill)

        address = f"[v2:127.0.0.1:{port}]"
        cluster.run("monmaptool", "--create", "--fsid", fsid, "--addv", "a", address, str(folder / "monmap"))
        cluster.run("ceph-mon", "-i", "a", "--mkfs", "--monmap", str(folder / "monmap"))
        start("ceph-mon", "a")
        start("ceph-mgr", "x")
        disk = str(uuid.uuid4())
        cluster.ceph("osd", "new", disk)
        cluster.run("ceph-osd", "-i", "0", "--mkfs", "--osd-uuid", disk)
        start("ceph-osd", "0")
        wait_until(lambda: "1 up" in cluster.ceph("osd", "stat"), "the OSD is up")
        cluster.ceph("osd", "pool", "create", POOL, "8")
        cluster.ceph("osd", "pool", "set", POOL, "size", "1", "--yes-i-really-mean-it")
        wait_until(lambda: "active+clean" in cluster.ceph("pg", "stat"), "the pool is active")
        yield cluster


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port
