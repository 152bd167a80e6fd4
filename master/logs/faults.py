"""A fault of a log: the file, the place in it, what was expected, and the remedy.

Rule: faults are collected, all of them, and end the command; with `--keep-going` each names what is left out
instead, and the output repeats it.
"""

from dataclasses import dataclass

from ..errors import PlanError


@dataclass(frozen=True, slots=True)
class Fault:
    path: str
    what: str  # what is wrong, and what was expected
    remedy: str = ""
    line: int | None = None  # from 1; None where the file as a whole is meant
    left_out: str = "the file"  # what --keep-going leaves out

    def __str__(self) -> str:
        place = self.path if self.line is None else f"{self.path}: line {self.line}"
        return f"{place}: {self.what}" + (f"; {self.remedy}" if self.remedy else "")


class LogError(PlanError):
    """Logs that cannot be used; every fault of every file."""

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__("\n".join(str(fault) for fault in faults))
        self.faults = faults
