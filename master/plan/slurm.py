"""The Slurm allocation that the controller runs in: its nodes are hosts, and Slurm starts the slaves on them.

Rule: pure; the environment is handed in. Nothing of Slurm is rebuilt: `srun` is the command that gives a pipe, and a
job that is cancelled takes its slaves with it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from .select.host_ranges import expand

SLURM: Final = "slurm"  # as a host's name: all nodes of the allocation
_COMMA: Final = re.compile(r",(?![^\[]*\])")  # outside of brackets


@dataclass(frozen=True, slots=True)
class Allocation:
    """A job's nodes, as `salloc` and `sbatch` give them to what they start."""

    job: str
    nodes: tuple[str, ...]

    def command(self, node: str) -> tuple[str, ...]:
        """The words that start a program on a node of the job, beside what already runs there, with all of its cores
        and memory."""
        share = ("--overlap", "--whole", "--mem=0", "--cpu-bind=none")
        return ("srun", f"--jobid={self.job}", *share, "--nodes=1", "--ntasks=1", "--quiet", f"--nodelist={node}")


def allocation_of(environment: Mapping[str, str]) -> Allocation | None:
    """The allocation that these variables describe; None outside of one. Raises ValueError for a list of nodes that
    cannot be read."""
    job, nodes = (environment.get(name, "").strip() for name in ("SLURM_JOB_ID", "SLURM_JOB_NODELIST"))
    return Allocation(job, tuple(expand_list(nodes))) if job and nodes else None


def expand_list(text: str) -> list[str]:
    """All names of a list with commas, `lab[01-03,7],db1`. Raises ValueError with the remedy."""
    return [name for part in _COMMA.split(text) for name in expand(part.strip())]
