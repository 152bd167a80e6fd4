"""A result of a run folder that has not come yet, and comes late: as a run stores it."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path


def without_result(folder: Path, step: int, subinterval: int, host: str) -> Callable[[], None]:
    """Take a host's result out of a finished run's histograms.sqlite; what is returned joins it again."""
    place = (step, subinterval)
    of_host = "step = ? AND subinterval = ? AND host = ?"

    def base() -> sqlite3.Connection:
        return sqlite3.connect(folder / "histograms.sqlite")

    with closing(base()) as taken, taken:
        (result,) = taken.execute(f"SELECT * FROM result WHERE {of_host}", (*place, host)).fetchall()
        (total,) = taken.execute("SELECT * FROM total WHERE step = ? AND subinterval = ?", place).fetchall()
        taken.execute(f"DELETE FROM result WHERE {of_host}", (*place, host))
        taken.execute("DELETE FROM total WHERE step = ? AND subinterval = ?", place)

    def join() -> None:
        with closing(base()) as joined, joined:
            joined.execute(f"INSERT INTO result VALUES ({','.join('?' * len(result))})", result)
            joined.execute(f"INSERT INTO total VALUES ({','.join('?' * len(total))})", total)

    return join
