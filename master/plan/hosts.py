"""The plan's hosts: ranges expanded, defaults filled in, names unique."""

import os.path
import re
from typing import Any, Final

from ..hosts.host_spec import HostSpec, Launcher
from .read.schema import Access, HostDoc, PlanDoc
from .read.yaml_positions import Faults, Path
from .select.host_ranges import expand

LOCAL: Final = "local"
_NAME: Final = re.compile(r"[A-Za-z0-9._:-]+")  # also part of file names, rollup instances and clauses


def hosts_of(doc: PlanDoc, faults: Faults) -> tuple[HostSpec, ...]:
    """Every host of the plan, in its order; this machine if it names none."""
    if not doc.hosts:
        return (HostSpec(LOCAL, Launcher.LOCAL, LOCAL),)
    found: dict[str, HostSpec] = {}
    places: dict[str, Path] = {}
    for i, host in enumerate(doc.hosts):
        path: Path = ("hosts", i)
        for spec in _expanded(host, doc.ssh, path, faults):
            if spec.name in found:
                line = faults.document.place(places[spec.name]).line
                faults.add(path, f"duplicate host {spec.name!r} (first in line {line})")
            else:
                found[spec.name], places[spec.name] = spec, path
    return tuple(found.values())


def _expanded(host: HostDoc, ssh: Access, path: Path, faults: Faults) -> list[HostSpec]:
    try:
        names = expand(host.name)
        addresses = expand(host.address) if host.address else names
    except ValueError as error:
        faults.add((*path, "name"), str(error))
        return []
    for name in names:
        if not _NAME.fullmatch(name):
            faults.add((*path, "name"), f"{name!r} cannot be a host's name{_name_remedy(name)}")
            return []
    if len(addresses) != len(names):
        faults.add(
            (*path, "address"), f"{len(names)} names but {len(addresses)} addresses; both need ranges of one length"
        )
        return []
    launcher = _launcher(host, path, faults)
    return [_spec(name, address, launcher, host, ssh) for name, address in zip(names, addresses, strict=True)]


def _name_remedy(name: str) -> str:
    user, at, rest = name.rpartition("@")
    if at and user and _NAME.fullmatch(rest):
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


def _spec(name: str, address: str, launcher: Launcher, host: HostDoc, ssh: Access) -> HostSpec:
    sources = [host] if launcher is Launcher.LOCAL else [host, ssh]  # `ssh:` is about other machines
    given: dict[str, Any] = {}
    for key in Access.model_fields:
        value = next((v for source in sources if (v := getattr(source, key)) is not None), None)
        if value is not None:
            given[key] = os.path.expanduser(value) if key in ("identity", "known_hosts") else value
    if "connect_timeout" in given:
        given["connect_timeout_s"] = given.pop("connect_timeout")
    command = tuple(w.replace("{name}", name).replace("{address}", address) for w in host.command or ())
    return HostSpec(name, launcher, address, command=command, **given)
