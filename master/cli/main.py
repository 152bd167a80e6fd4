"""The command's first moment.

Rule: nothing but this is imported before an interrupt ends the command as it does later: without a word, by its code.
"""

import sys


def main() -> None:
    """The command `ivypy`."""
    try:
        from .commands import main as command

        command()
    except KeyboardInterrupt:
        sys.exit(130)  # ExitCode.INTERRUPTED, which may not be there yet
