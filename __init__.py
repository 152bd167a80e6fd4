"""ivypy: distributed storage load generation.

The root of the repository is this package: `ivypy.master` is the controller, `ivypy.slave` the
test host, `ivypy.protocol` what they say to each other. `ivypy.Session` is a run under a program's command.
"""

TYPE_CHECKING = False  # typing's own takes longer to import than all of this

if TYPE_CHECKING:
    from .master.run.session import Session

    __version__: str

__all__ = ["Session", "__version__"]


def __getattr__(name: str) -> object:
    """`Session` brings the whole controller with it, and the version takes a look at what is installed: both are there
    when they are first asked for."""
    if name == "Session":
        from .master.run.session import Session

        return Session
    if name == "__version__":
        from importlib.metadata import version

        return version("ivypy")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
