"""ivypy: distributed storage load generation.

The root of the repository is this package: `ivypy.master` is the controller, `ivypy.slave` the
test host, `ivypy.protocol` what they say to each other. `ivypy.Session` is a run under a program's command.
"""

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .master.session.session import Session

__all__ = ["Session", "__version__"]
__version__ = version("ivypy")


def __getattr__(name: str) -> Any:
    """`Session` brings the whole controller with it, so it is imported when it is first asked for."""
    if name == "Session":
        from .master.session.session import Session

        return Session
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
