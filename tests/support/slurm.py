"""A Slurm cluster of one machine: its controller, and three nodes that are daemons on ports of their own.

Everything is below one folder, listens on loopback alone, and ends with the block that started it.
"""

import contextlib
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.support.devices import Missing
from tests.support.waits import wait_until

NODES = ("n1", "n2", "n3")
PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "salloc", "scancel", "sinfo")
END_S = 10.0

CONFIGURATION = """\
ClusterName=ivypy
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={control_port}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
SlurmUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
ReturnToService=2
KillWait=1
MpiDefault=none
SwitchType=switch/none
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


@dataclass(frozen=True)
class Cluster:
    environment: Mapping[str, str]  # of the commands of Slurm

    def run(self, *words: str) -> str:
        """What a command prints. Raises CalledProcessError."""
        done = subprocess.run(words, capture_output=True, text=True, check=True, env=self.environment, timeout=60)
        return done.stdout

    def start(self, *words: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.environment,
            start_new_session=True,
        )  # fmt: skip


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """Raises Missing where Slurm's programs are not installed, or it is not root who asks."""
    lacking = [program for program in PROGRAMS if shutil.which(program) is None]
    if lacking or os.geteuid():
        raise Missing(", ".join(lacking) or "root")
    environment = os.environ | {"SLURM_CONF": str(_configured(folder))}
    key = folder / "munge.key"
    key.touch(0o600)
    key.write_bytes(os.urandom(128))
    ends = {"socket": "sock", "key-file": "key", "log-file": "log", "pid-file": "pid", "seed-file": "seed"}
    places = [f"--{name}={folder}/munge.{end}" for name, end in ends.items()]
    with contextlib.ExitStack() as daemons:
        # --force: a folder of a test's is open to its group
        daemons.enter_context(_daemon(folder, environment, "munged", "--foreground", "--force", *places))
        wait_until((folder / "munge.sock").exists, "munged listens")
        daemons.enter_context(_daemon(folder, environment, "slurmctld", "-D"))
        for node in NODES:
            daemons.enter_context(_daemon(folder, environment, "slurmd", "-D", "-N", node))
        made = Cluster(environment)
        wait_until(lambda: _idle(made) == len(NODES), "all nodes are idle")
        yield made


def _configured(folder: Path) -> Path:
    (folder / "state").mkdir()
    with contextlib.ExitStack() as bound:
        ports = [_free_port(bound) for _ in range(len(NODES) + 1)]
    nodes = [
        f"NodeName={node} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port} CPUs=1"
        for node, port in zip(NODES, ports[1:], strict=True)
    ]
    path = folder / "slurm.conf"
    path.write_text(CONFIGURATION.format(folder=folder, control_port=ports[0], nodes="\n".join(nodes)))
    return path


def _free_port(bound: contextlib.ExitStack) -> int:
    """Free while `bound` is open: then all of them are different."""
    listener = bound.enter_context(socket.socket())
    listener.bind(("127.0.0.1", 0))
    return int(listener.getsockname()[1])


@contextlib.contextmanager
def _daemon(folder: Path, environment: Mapping[str, str], *words: str) -> Iterator[None]:
    with open(folder / f"{words[0]}.out", "ab") as out:
        process = subprocess.Popen(words, stdout=out, stderr=out, env=environment, start_new_session=True)
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _idle(made: Cluster) -> int:
    """How many nodes are idle; 0 while the controller does not answer."""
    try:
        return int(made.run("sinfo", "-h", "-t", "idle", "-o", "%D").strip() or 0)
    except subprocess.CalledProcessError:
        return 0
