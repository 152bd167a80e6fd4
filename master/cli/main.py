"""The entry point of the command `ivypy`.

Rule: everything else is imported inside `try`, so that an interrupt during the imports also ends the command silently,
with the exit code 130.
"""

import sys


def main() -> None:
    """The command `ivypy`."""
    try:
        from .commands import main as command

        command()
    except KeyboardInterrupt:
        sys.exit(130)  # ExitCode.INTERRUPTED, which may not be there yet
