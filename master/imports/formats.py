"""Which tool a test was written for, told from its content."""

import re
from collections.abc import Callable, Mapping
from typing import Final

from ..errors import PlanError
from .description import Description, ImportContext
from .fio import read_fio
from .vdbench import read_vdbench

_FIO: Final = re.compile(r"^[ \t]*\[[^\]\n]+\][ \t]*([;#].*)?$", re.MULTILINE)
_VDBENCH: Final = re.compile(r"^[ \t]*(hd|host|sd|wd|rd|fsd|fwd|include)=", re.MULTILINE)
_PLAN: Final = re.compile(r"^(name|luns|workloads|steps)[ \t]*:", re.MULTILINE)

READERS: Final[Mapping[str, Callable[[str, str, ImportContext], Description]]] = {
    "fio": read_fio,
    "vdbench": read_vdbench,
}


def tool_of(text: str, name: str) -> str:
    """A key of READERS: of fio and vdbench, what comes first decides. Raises PlanError for other texts."""
    section, definition = _FIO.search(text), _VDBENCH.search(text)
    if definition and (section is None or definition.start() < section.start()):
        return "vdbench"
    if section:
        return "fio"
    if _PLAN.search(text):
        raise PlanError(f"{name}: this is a plan already: ivypy run {name}")
    raise PlanError(
        f"{name}: neither a job file of fio ([job], rw=read) nor a parameter file of vdbench (sd=, wd=, rd=)"
    )
