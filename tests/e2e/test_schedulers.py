"""Hosts whose processes a scheduler starts: Slurm for real, kubectl by a stand-in with its command line."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.support import devices, real_runs, slurm
from tests.support.fork_server import COMMAND
from tests.support.real_runs import ENDED, Finished, folder_of, written
from tests.support.waits import wait_until, wait_until_ended

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("slurm")]

PLAN = """\
name: scheduled
hosts: {hosts}
engine: {{ threads: 1 }}
connectors: {{ host: off }}
luns: {{ create: {{ path: "{folder}/lun-{{host}}", size: 16MiB }} }}
workloads: {{ w: {{ iops: 50 }} }}
rollups: [ host ]
defaults: {{ subinterval: 1s, warmup: 0s, measure: {measure} }}
steps: [ go: one ]
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[slurm.Cluster]:
    try:
        with slurm.cluster(tmp_path_factory.mktemp("slurm")) as made:
            yield made
    except devices.Missing as missing:
        pytest.skip(f"this machine lacks {missing}")


def plan(folder: Path, hosts: str, measure: str) -> Path:
    return written(folder, PLAN.format(folder=folder, hosts=hosts, measure=measure))


def slaves(folder: Path) -> list[psutil.Process]:
    """The processes that said hello in the logs of a run."""
    found = []
    for log in folder.glob("log/n*.log"):
        if hello := re.search(r'<- (\{"type":"hello".*)', log.read_text()):
            found.append(psutil.Process(json.loads(hello[1])["pid"]))
    return found


@pytest.mark.parametrize("named", ["plan", "option"])
def test_every_node_of_an_allocation_is_a_host_and_srun_starts_its_slave(
    named: str, cluster: slurm.Cluster, tmp_path: Path
) -> None:
    path = plan(tmp_path, "{ slurm: true }" if named == "plan" else "local", "3s")
    words = [COMMAND, "run", str(path), "-o", str(tmp_path / "runs"), "--ui", "lines"]
    option = ["--hosts", "n[1-2]"] if named == "option" else []
    process = cluster.start("salloc", "--quiet", f"-N{len(slurm.NODES)}", *words, *option)
    out, err = process.communicate(timeout=100)
    assert process.returncode in ENDED, err
    done = Finished(process.returncode, out, err, tmp_path / "runs")
    nodes = list(slurm.NODES) if named == "plan" else ["n1", "n2"]
    assert [(row["host"], row["launcher"]) for row in done.rows("hosts.csv")] == [(node, "command") for node in nodes]
    (row,) = done.rows("summary.all.csv")
    assert float(row["iops"]) == pytest.approx(50 * len(nodes), rel=0.1) or row["reasons"]


def test_cancelling_the_job_ends_all_slaves(cluster: slurm.Cluster, tmp_path: Path) -> None:
    path = plan(tmp_path, "{ slurm: true }", "300s")
    words = [COMMAND, "run", str(path), "-o", str(tmp_path / "runs"), "--ui", "lines"]
    process = cluster.start("salloc", "--quiet", f"-N{len(slurm.NODES)}", *words)
    try:
        wait_until(lambda: list(tmp_path.glob("runs/*/step*/interlock.csv")) != [], "the step runs")
        running = slaves(folder_of(tmp_path / "runs"))
        assert len(running) == len(slurm.NODES)
        cluster.run("scancel", "--user=root")
        wait_until_ended(*running)
        process.communicate(timeout=100)
        assert process.returncode != 0
    finally:
        cluster.run("scancel", "--user=root")
        process.communicate(timeout=100)


KUBECTL = """\
#!{python}
# kubectl exec -i POD -- COMMAND...: as kubectl does, it gives the words to the pod's program, through no shell.
import os, sys
assert sys.argv[1:3] == ["exec", "-i"] and sys.argv[4] == "--", sys.argv
os.environ["HOSTNAME"] = sys.argv[3]
os.execvp(sys.argv[5], sys.argv[5:])
"""


def test_a_pod_is_a_host_through_kubectl(tmp_path: Path) -> None:
    kubectl = written(tmp_path, KUBECTL.format(python=sys.executable), "kubectl")
    kubectl.chmod(0o755)
    hosts = f"{{ name: 'load-[0-1]', command: '{kubectl} exec -i {{name}} --' }}"
    done = real_runs.run(plan(tmp_path, hosts, "2s"), tmp_path / "runs")
    assert done.code in ENDED, done.err
    assert [row["host"] for row in done.rows("hosts.csv")] == ["load-0", "load-1"]
