"""Logs made for tests, the cases with known answers, and the command run as a user runs it."""

import gzip
import io
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from click.testing import CliRunner, Result

from ivypy.master.cli.commands import cli
from ivypy.master.cli.percentiles import percentiles
from ivypy.master.errors import IvypyError
from ivypy.master.exit_codes import ExitCode

CASES = Path(__file__).parents[1] / "logs" / "cases"
NULL4 = CASES / "01-null-4job-randrw-1s"
STALL = CASES / "05-stall-4s-burst-rows"
FIO2 = CASES / "10-fio2-usec-1216"
SMALLFILE = CASES / "12-smallfile-rsptimes"

FIO_3_COLUMNS = 1856


def case_logs(case: Path, glob: str) -> list[str]:
    """The names of a case's logs; one is expected at least."""
    found = sorted(str(path) for path in (case / "in").glob(glob))
    assert found, f"no {glob} in {case}"
    return found


def expected(case: Path, name: str) -> list[str]:
    """What a published tool printed."""
    return gzip.decompress((case / "expected" / f"{name}.out.gz").read_bytes()).decode().splitlines()


def row(
    stamp_ms: int, direction: int, counts: Mapping[int, int], columns: int = FIO_3_COLUMNS, size: int = 4096
) -> str:
    """A line of a histogram log."""
    cells = ["0"] * columns
    for bucket, count in counts.items():
        cells[bucket] = str(count)
    return f"{stamp_ms}, {direction}, {size}, {', '.join(cells)}\n"


def log(path: Path, rows: Sequence[str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(rows))
    return path


@dataclass(frozen=True)
class Ran:
    code: ExitCode
    out: str
    err: str  # notes; or the error's text

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


def run(*arguments: object) -> Ran:
    """`ivypy percentiles ARGUMENTS`."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = percentiles.main([str(a) for a in arguments], "ivypy percentiles", standalone_mode=False)
        except IvypyError as error:
            code = ExitCode.PLAN
            err.write(f"{error}\n")
    return Ran(code, out.getvalue(), err.getvalue())


def run_steady(*words: object, stdin: str = "") -> Result:
    """`ivypy steady WORDS`."""
    arguments = ["steady", *map(str, words)]
    return CliRunner().invoke(cli, arguments, input=stdin, standalone_mode=False, catch_exceptions=False)
