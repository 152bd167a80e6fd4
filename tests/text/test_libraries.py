"""How a missing library is installed."""

import sys
from pathlib import Path

import pytest

from ivypy.master.text.libraries import to_install


@pytest.mark.parametrize(
    ("file", "command"),
    [("pyvenv.cfg", "pip install plotly"), ("pipx_metadata.json", "pipx inject ivypy-load plotly")],
)
def test_the_command_is_that_of_the_environment(
    file: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / file).touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert to_install("plotly") == command
