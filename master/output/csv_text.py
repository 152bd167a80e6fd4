"""CSV files that only ever grow by whole lines.

Rule: a file is opened, written with one call and closed, so what stands in it after a crash, or after the disk is
full, is whole lines; what could not be written completely is taken back. Nobody else writes to it. A row is one line:
a line break within a text is written as \\n. A text that a table program would take for a formula has a ' before it
(`unguarded` takes it away): hosts, devices and users chose it. Numbers are printed as metrics.Precision says; a number
that is not known is blank.
"""

import contextlib
import csv
import errno
import io
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ..errors import OutputError
from .full_disk import patiently

_FORMULA: Final = re.compile(r"'*[=+\-@\t]")  # with the quotes of a text that has some itself
_BREAKS: Final = str.maketrans({"\n": "\\n", "\r": "\\r", "\0": "\\0"})


def append(path: Path, text: str) -> None:
    """Append whole lines. Raises OutputError naming the path; the file then is as it was."""
    data = text.encode("utf-8", "surrogateescape")
    try:
        size = _size(path)
        patiently(lambda: _append(path, size, data))
    except OSError as error:
        raise not_written(path, error) from error


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _append(path: Path, size: int, data: bytes) -> None:
    """Behind the first `size` bytes: all of it or, with the error, nothing.

    At a place of its own, so that another try writes the same bytes to it again: how much of a failed one the disk
    has, nobody knows. NFS reports a full disk or quota when the file is closed. A link is not followed: somebody else
    put it there.
    """
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    try:
        try:
            written = 0
            while written < len(data):
                written += os.pwrite(file, data[written:] if written else data, size + written)
        finally:
            os.close(file)
    except OSError:
        with contextlib.suppress(OSError):
            os.truncate(path, size)
        raise


def replace_file(folder: Path, file: str, text: str) -> None:
    """Write a file as a whole: a reader sees the one before or this one. Raises OutputError."""
    path, beside = folder / file, folder / f".{file}.new"

    def write() -> None:
        try:
            beside.unlink(missing_ok=True)  # of a run that was killed
            with beside.open("x", encoding="utf-8", errors="surrogateescape") as file:
                file.write(text)
            os.replace(beside, path)
        except OSError:
            with contextlib.suppress(OSError):
                beside.unlink()
            raise

    try:
        patiently(write)
    except OSError as error:
        raise not_written(path, error) from error


def overwrite_file(folder: Path, file: str, text: str) -> None:
    """Into the blocks that it has, where a full disk has no room for a second: if they are too few, it stays as it is.

    Raises OutputError.
    """
    path, data = folder / file, text.encode(errors="surrogateescape")
    try:
        with open(path, "r+b") as old:
            block = os.fstatvfs(old.fileno()).f_bsize
            if len(data) > -(-os.fstat(old.fileno()).st_size // block) * block:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            old.write(data)
            old.truncate()
    except OSError as error:
        raise not_written(path, error) from error


def not_written(path: Path, error: Exception) -> OutputError:
    """The error of a file that cannot be written."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return OutputError(f"{path}: not written: {reason}")


def lines(rows: Iterable[Iterable[Any]]) -> str:
    """Rows as CSV text, a line each; None is blank, and so is a number that is not finite."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([_cell(value) for value in row] for row in rows)
    return text.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        return _guarded(value if value.isprintable() else value.translate(_BREAKS))
    if isinstance(value, float) and not isfinite(value):
        return None
    return value


def _guarded(text: str) -> str:
    return f"'{text}" if _FORMULA.match(text) and not _is_number(text) else text


def unguarded(cell: str) -> str:
    """The text of a cell."""
    return cell[1:] if cell[:1] == "'" and _FORMULA.match(cell) else cell


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def whole_lines(file: Iterable[str]) -> Iterator[str]:
    """The lines of a file that may end within one: that one has no line break, and its last cell may be half a cell."""
    return (line for line in file if line.endswith(("\n", "\r")))


def cells(values: Sequence[Any]) -> str:
    """Values as part of a row: quoted as CSV asks, separated, no newline."""
    return lines([values])[:-1] if len(values) != 1 else lines([(*values, "")])[:-2]


def number_cells(columns: Sequence[tuple[str, NDArray[Any]]]) -> list[str]:
    """Numbers as parts of rows, a text for each row. `columns`: a %-format and a value per row each; nan is blank.

    Columns that are blank, or zero, in every row cost nothing: most categories of I/O are not used in most steps.
    """
    values = np.array([values for _, values in columns])
    blank, zero = np.isnan(values).all(axis=1), ~values.any(axis=1)
    varying = values[~(blank | zero)]
    marks: Any = zip(columns, blank.tolist(), zero.tolist(), strict=True)  # type: ignore[arg-type]
    row = ",".join("" if is_blank else "0" if is_zero else form for (form, _), is_blank, is_zero in marks)
    if not len(varying):
        return [row] * values.shape[1]
    return [(row % tuple(cells)).replace("nan", "") for cells in varying.T.tolist()]


def utc(ns: int) -> str:
    """A UTC time as ISO 8601 with microseconds: 2025-11-21T11:10:05.250000Z."""
    return datetime.fromtimestamp(ns // 10**9, UTC).strftime("%Y-%m-%dT%H:%M:%S") + f".{ns % 10**9 // 1000:06d}Z"


def make_folder(path: Path) -> None:
    """Make a folder, if it is not there. Raises OutputError."""
    try:
        patiently(lambda: path.mkdir(exist_ok=True))
    except OSError as error:
        raise not_written(path, error) from error
