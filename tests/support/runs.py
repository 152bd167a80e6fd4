"""Running ivypy as a user does, and reading the folder that it leaves."""

import csv
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ivypy.master.hosts.spec import HostSpec

COMMAND = str(Path(sys.executable).with_name("ivypy"))
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Finished:
    """A run that ended, and its folder."""

    code: int
    out: str
    err: str
    root: Path

    @property
    def folder(self) -> Path:
        (folder,) = self.root.iterdir()
        return folder

    def rows(self, name: str) -> list[dict[str, str]]:
        with open(self.folder / name, newline="") as file:
            return list(csv.DictReader(file))


def presence(row: Mapping[str, str]) -> str:
    """How many hosts a row is of, and of how many it should be: "3/4"."""
    return f"{row['hosts_in']}/{row['hosts_of']}"


def names_of(reasons: str) -> set[str]:
    """The names in a cell of `reasons`: "overrun[invalid] (h1: 2 times); edited[note]" has overrun and edited."""
    return {reason.split("[")[0] for reason in reasons.split("; ") if reason}


def only_late(reasons: str) -> bool:
    """Whether nothing but a busy test machine speaks against a row: late I/Os, late answers, and it says so.

    So late that the load is not reached, too, where it is the generator that was.
    """
    found = names_of(reasons)
    if "generator_late[invalid]" in reasons:
        found.discard("load_not_sustained")
    return found <= {
        "generator_late", "reap_delay", "host_limit", "too_few_subintervals", "clock_uncertain", "slow_controller",
    }  # fmt: skip


def ivypy(*words: str, timeout_s: float = 100.0) -> subprocess.CompletedProcess[str]:
    return subprocess.run([COMMAND, *words], capture_output=True, text=True, timeout=timeout_s, check=False)


def start(plan: Path, root: Path, *words: str) -> "subprocess.Popen[str]":
    """A run under way."""
    return subprocess.Popen(
        [COMMAND, "run", "-o", str(root), "--ui", "lines", *words, str(plan)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


def run(plan: Path, root: Path, *words: str, timeout_s: float = 100.0) -> Finished:
    process = start(plan, root, *words)
    try:
        out, err = process.communicate(timeout=timeout_s)
    except BaseException:
        process.kill()
        raise
    return Finished(process.returncode, out, err, root)


def written(folder: Path, text: str, name: str = "plan.yaml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def hosts_yaml(specs: Sequence[HostSpec]) -> str:
    """Hosts of the lab as a plan has them."""
    lines = []
    for spec in specs:
        if spec.command:
            command = " ".join(spec.command)
            lines.append(f'  - {{ name: {spec.name}, command: "{command}", cache_dir: {spec.cache_dir} }}')
            continue
        lines.append(
            f"  - {{ name: {spec.name}, launcher: {spec.launcher}, address: {spec.address}, port: {spec.port or 22},"
            f" user: {spec.user}, identity: {spec.identity}, known_hosts: {spec.known_hosts},"
            f" cache_dir: {spec.cache_dir}, ssh_config: false }}"
        )
    return "\n".join(lines)
