"""A plan from its file or text, in five stages; all faults of all stages are reported at once.

text -> positions (yaml_positions) -> parameters replaced (substitute) -> models (schema, schema_errors)
     -> sections built and compared (build_plan) -> Plan
"""

import getpass
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from ..errors import PlanError
from ..text.scaled import scaled_size
from .build_plan import check_name_option, resolved
from .hosts import HOST_NAME
from .model import Plan
from .read.schema_errors import validated
from .read.substitute import substitute
from .read.yaml_positions import Faults, PlanFaults, parse
from .slurm import SLURM, Allocation, allocation_of, expand_list

LARGEST: Final = 8 << 20  # bytes of a plan
USER_NAME: Final = re.compile(r"[^\s-]\S*")
NO_DEFINES: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Instead:
    """Values of a command line in place of the plan's own; None is as in the plan."""

    hosts: str | None = None
    user: str | None = None  # of ssh
    name: str | None = None


AS_IT_IS: Final = Instead()


def load(path: Path, defines: Mapping[str, str] = NO_DEFINES, instead: Instead = AS_IT_IS) -> Plan:
    """The plan in a file. `defines`: values for its parameters, as from -D.

    Raises PlanError if the file cannot be read, and PlanFaults, whose text is the complete report of all faults.
    """
    try:
        text = bytes_of(path, "a plan").decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PlanError(f"{path}: byte {error.start} is not UTF-8 text; save the plan as UTF-8") from None
    except OSError as error:
        raise PlanError(f"{path}: {error.strerror or error}; a plan is a YAML file") from None
    return _read(text, str(path), defines, path, instead)


def bytes_of(path: Path, what: str) -> bytes:
    """The content of `what`, a text that a person wrote; a device, or what is too large, is not read to its end.

    Raises PlanError, OSError.
    """
    if path.is_block_device():
        raise PlanError(f"{path}: a block device, not {what}")
    with path.open("rb") as file:
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise PlanError(f"{path}: more than {scaled_size(LARGEST)} are too much for {what}")
    return content


def read(text: str, name: str, defines: Mapping[str, str] = NO_DEFINES, instead: Instead = AS_IT_IS) -> Plan:
    """The plan in a text; `name` is its name in faults. Raises PlanFaults, and PlanError for `instead`."""
    return _read(text, name, defines, None, instead)


def _read(text: str, name: str, defines: Mapping[str, str], path: Path | None, instead: Instead = AS_IT_IS) -> Plan:
    slurm = _allocation()
    document = parse(text.replace("\r\n", "\n"), name)
    faults = Faults(document)
    faults.collected += document.faults
    substituted = substitute(document, defines, _user())
    faults.collected += substituted.faults
    _replace(substituted.data, instead)
    doc, removed = validated(substituted.data, faults)
    plan = resolved(doc, removed, substituted.values, path, slurm, faults)
    if plan is None:
        raise PlanFaults(faults.collected, document.text)
    return plan


def _replace(data: dict[str, Any], instead: Instead) -> None:
    """In the plan's sections. A section that is not what it should be stays, for its own fault."""
    if instead.hosts is not None:
        data["hosts"] = _host_names(instead.hosts)
    if instead.name is not None:
        check_name_option(instead.name)
        data["name"] = instead.name
    if instead.user is not None and not USER_NAME.fullmatch(instead.user):
        raise PlanError(f"--user {instead.user!r}: not a user's name")
    ssh = data.get("ssh") or {}
    if instead.user is not None and isinstance(ssh, dict):
        data["ssh"] = {**ssh, "user": instead.user}


def _user() -> str:
    """The user's name, as it can be part of a path."""
    try:
        name = getpass.getuser()
    except (OSError, KeyError):  # of an id that has no name
        name = str(os.getuid())
    return re.sub(r"[^A-Za-z0-9._-]", "_", name)


def _allocation() -> Allocation | None:
    try:
        return allocation_of(os.environ)
    except ValueError as error:
        raise PlanError(f"SLURM_JOB_NODELIST: {error}") from None


def _host_names(text: str) -> list[str]:
    """The hosts of `--hosts`, each once: it has no line in the plan that a fault could name."""
    try:
        names = expand_list(text)
    except ValueError as error:
        raise PlanError(f"--hosts: {error}") from None
    for name in names:
        if not HOST_NAME.fullmatch(name):
            raise PlanError(f"--hosts {text}: {name!r} cannot be a host's name; write lab[01-16], local or {SLURM}")
    if twice := [name for name in names if names.count(name) > 1]:
        raise PlanError(f"--hosts {text}: it names {twice[0]} twice")
    if SLURM in names and _allocation() is None:
        raise PlanError(f"--hosts {text}: there is no Slurm allocation here; run ivypy in one, for example by salloc")
    return names
