"""The report that a run writes at its end.

Rule: whatever happens to it, the run has ended with its results and its exit code. It takes a bounded time: what is
not recorded soon is left out, and a disk that takes no file is not waited for.
"""

import time
from pathlib import Path
from threading import Thread
from typing import Final

from ..errors import IvypyError
from .archive import ArchiveLimits
from .write_report import NAME, write_report

WHY_NOT: Final = "report: not written: "
RECORDING_S: Final = 1.5  # then no more instances are recorded
PATIENCE_S: Final = 10.0  # of a slow machine, or disk


def line_at_end(folder: Path, recording_s: float = RECORDING_S, patience_s: float = PATIENCE_S) -> str:
    """Write the report into the run's folder; what was written, or from WHY_NOT on what went wrong."""
    end = time.monotonic() + recording_s
    limits = ArchiveLimits(is_late=lambda: time.monotonic() > end)
    said: list[str] = []

    def write() -> None:
        try:
            said.append(f"report: {write_report(folder / NAME, [folder], limits)}")
        except (IvypyError, OSError) as error:
            said.append(f"{WHY_NOT}{error}")
        except Exception as error:  # only the report is lost
            said.append(f"{WHY_NOT}{type(error).__name__}: {error}")

    writing = Thread(target=write, name="report", daemon=True)
    try:
        writing.start()
        writing.join(patience_s)
    except KeyboardInterrupt:
        return f"{WHY_NOT}interrupted"
    return said[0] if said else f"{WHY_NOT}it took longer than {patience_s:g} s; `ivypy report {folder}` writes it"
