"""How wide a terminal is: real pseudo-terminals, and a pipe, which has no width."""

import os
import pty
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

import pytest

from ivypy.master.live.terminal_width import ASSUMED, columns_of, fitted

TEXT = """\
a sentence that is longer than forty columns, of course
  ivypy run --destroy 41ef10d080b3 a/plan/that/is/named.yaml"""


@contextmanager
def terminal(columns: int) -> Iterator[TextIO]:
    ours, its = pty.openpty()
    termios.tcsetwinsize(its, (24, columns))
    with os.fdopen(its, "w") as stream:
        yield stream
    os.close(ours)


@pytest.mark.parametrize(
    ("columns", "told", "expected"),
    [(60, "", 60), (160, "", 160), (0, "", ASSUMED), (60, "100", 100), (60, "0", 60), (60, "wide", 60)],
)
def test_a_terminal_has_the_width_that_it_or_columns_says(
    monkeypatch: pytest.MonkeyPatch, columns: int, told: str, expected: int
) -> None:
    monkeypatch.setenv("COLUMNS", told)
    with terminal(columns) as stream:
        assert columns_of(stream) == expected


def test_sentences_are_cut_for_a_terminal_and_commands_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    with terminal(40) as stream:
        _, command = TEXT.split("\n")
        assert fitted(TEXT, stream) == f"a sentence that is longer than forty\n  columns, of course\n{command}"


def test_a_pipe_gets_its_lines_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as stream:
        assert columns_of(stream) is None and fitted(TEXT, stream) == TEXT
