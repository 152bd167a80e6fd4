"""ivypy: distributed storage load generation.

The root of the repository is this package: `ivypy.master` is the controller, `ivypy.slave` the
test host, `ivypy.protocol` the messages between them. `ivypy.run` runs a plan, `ivypy.Session` is a run controlled by a
program, and `ivypy.load` reads results back.
"""

TYPE_CHECKING = False  # typing's own takes longer to import than all of this

if TYPE_CHECKING:
    from .master.analysis.blocking_run import RunResult, run
    from .master.analysis.loaded_runs import load
    from .master.run.session.session import OpenSession, Session

    __version__: str

__all__ = ["OpenSession", "RunResult", "Session", "__version__", "load", "run"]


def __getattr__(name: str) -> object:
    """Sessions import the controller, and the version the metadata of what is installed; both are imported on first
    use."""
    if name in ("OpenSession", "Session"):
        from .master.run.session import session

        return getattr(session, name)
    if name in ("RunResult", "run"):
        from .master.analysis import blocking_run

        return getattr(blocking_run, name)
    if name == "load":
        from .master.analysis import loaded_runs

        return loaded_runs.load
    if name == "__version__":
        from .master.version import VERSION

        return VERSION
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
