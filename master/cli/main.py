"""The entry point of the command `ivypy`.

Rule: everything else is imported inside `try`, so that an interrupt during the imports also ends the command silently,
with the exit code 130.
"""

import os
import sys

# numpy's OpenBLAS starts a thread for each core, which wait in a loop: a tenth of a second of a start on two cores.
# Ours are products of short vectors. Programs that a run starts inherit it.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def main() -> None:
    """The command `ivypy`."""
    try:
        from .commands import main as command

        command()
    except KeyboardInterrupt:
        sys.exit(130)  # ExitCode.INTERRUPTED, which may not be there yet
