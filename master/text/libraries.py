"""How a library that is missing is added to ivypy's own environment."""

import sys
from pathlib import Path

from ...protocol.distribution import DISTRIBUTION


def to_install(library: str) -> str:
    """The command. An environment of pipx, which leaves a file in it, has no `pip` on anybody's path."""
    if Path(sys.prefix, "pipx_metadata.json").exists():
        return f"pipx inject {DISTRIBUTION} {library}"
    return f"pip install {library}"
