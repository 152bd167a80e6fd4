"""The plan's hosts: ranges expanded, defaults filled in, names unique."""

import os.path
import re
from collections.abc import Sequence
from typing import Any, Final

from ..hosts.host_spec import HostSpec, Launcher
from .read.schema import Access, HostDoc, PlanDoc
from .read.yaml_positions import Faults, Path
from .select.host_ranges import expand
from .slurm import SLURM, Allocation

LOCAL: Final = "local"
HOST_NAME: Final = re.compile(r"[A-Za-z0-9._:-]+")  # also part of file names, rollup instances and clauses


def hosts_of(doc: PlanDoc, slurm: Allocation | None, faults: Faults) -> tuple[HostSpec, ...]:
    """Every host of the plan, in its order; this machine if it names none.

    `slurm`: the allocation that the controller runs in. Its nodes are started by `srun`, unless the plan says how.
    """
    if not doc.hosts:
        return (HostSpec(LOCAL, Launcher.LOCAL, LOCAL),)
    hosts: dict[str, HostSpec] = {}
    places: dict[str, Path] = {}
    for i, host in enumerate(doc.hosts):
        path: Path = ("hosts", i)
        for spec in _expanded(host, doc.ssh, slurm, path, faults):
            if spec.name in hosts:
                line = faults.document.place(places[spec.name]).line
                faults.add(path, f"duplicate host {spec.name!r} (first in line {line})")
            else:
                hosts[spec.name], places[spec.name] = spec, path
    return tuple(hosts.values())


def host_of(host: HostDoc, ssh: Access, path: Path, faults: Faults) -> HostSpec | None:
    """A machine that is no test host; None where it has a fault."""
    specs = _expanded(host, ssh, None, path, faults)
    if len(specs) > 1:
        faults.add((*path, "name"), f"{host.name!r} is {len(specs)} machines; name one")
    return specs[0] if specs else None


def _expanded(host: HostDoc, ssh: Access, slurm: Allocation | None, path: Path, faults: Faults) -> list[HostSpec]:
    every_node = host.name == SLURM and host.launcher is None and not host.command
    if every_node and slurm is None:
        remedy = "run ivypy in one: salloc -N4 ivypy run PLAN.yaml, or a script for sbatch"
        faults.add((*path, "name"), f"there is no Slurm allocation here (SLURM_JOB_ID is not set); {remedy}")
        return []
    try:
        names = list(slurm.nodes) if every_node and slurm else expand(host.name)
        addresses = expand(host.address) if host.address else names
    except ValueError as error:
        faults.add((*path, "name"), str(error))
        return []
    for name in names:
        if not HOST_NAME.fullmatch(name):
            faults.add((*path, "name"), f"{name!r} cannot be a host's name{_name_remedy(name)}")
            return []
    if len(addresses) != len(names):
        faults.add(
            (*path, "address"), f"{len(names)} names but {len(addresses)} addresses; both need ranges of one length"
        )
        return []
    if slurm is not None and not host.launcher and not host.command and set(names) <= set(slurm.nodes):
        return [_spec(name, name, Launcher.COMMAND, host, ssh, slurm.command(name)) for name in names]
    launcher, words = _launcher(host, path, faults), host.command or ()
    return [_spec(name, address, launcher, host, ssh, words) for name, address in zip(names, addresses, strict=True)]


def _name_remedy(name: str) -> str:
    user, at, rest = name.rpartition("@")
    if at and user and HOST_NAME.fullmatch(rest):
        return f"; write {{ name: {rest}, user: {user} }}"
    if "," in name or " " in name:
        return "; a list of hosts is written [a, b]"
    return "; use letters, digits, dots, colons, - and _, and 'address' for anything else"


def _launcher(host: HostDoc, path: Path, faults: Faults) -> Launcher:
    implied = Launcher.COMMAND if host.command else Launcher.LOCAL if host.name == LOCAL else Launcher.SSH
    launcher = host.launcher or implied
    if launcher is Launcher.COMMAND and not host.command:
        faults.add((*path, "launcher"), "the launcher 'command' needs a 'command', a command line that gives a pipe")
    if launcher is not Launcher.COMMAND and host.command:
        faults.add((*path, "command"), f"a 'command' has no use with the launcher {str(launcher)!r}; remove one")
    if launcher is not Launcher.SSH:
        for key in ("user", "port", "identity", "known_hosts", "connect_timeout", "ssh_config"):
            if getattr(host, key) is not None:
                faults.add_key((*path, key), f"{key!r} is for ssh; the launcher of this host is {str(launcher)!r}")
    return launcher


def _spec(name: str, address: str, launcher: Launcher, host: HostDoc, ssh: Access, command: Sequence[str]) -> HostSpec:
    sources = [host] if launcher is Launcher.LOCAL else [host, ssh]  # `ssh:` is about other machines
    given: dict[str, Any] = {}
    for key in Access.model_fields:
        value = next((v for source in sources if (v := getattr(source, key)) is not None), None)
        if value is not None:
            given[key] = os.path.expanduser(value) if key in ("identity", "known_hosts") else value
    if "connect_timeout" in given:
        given["connect_timeout_s"] = given.pop("connect_timeout")
    words = tuple(w.replace("{name}", name).replace("{address}", address) for w in command)
    return HostSpec(name, launcher, address, command=words, **given)
