"""The lab as pytest fixtures."""

import contextlib
from collections.abc import Iterator

import pytest

from tests.support.lab import Lab, Missing


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Three hosts with an sshd each; a machine without sshd skips."""
    with contextlib.ExitStack() as undo:
        try:
            hosts = undo.enter_context(Lab(tmp_path_factory.mktemp("lab"), 3))
        except Missing as missing:
            pytest.skip(f"this machine lacks {missing}")
        yield hosts


@pytest.fixture
def namespaces(lab: Lab) -> Lab:
    """The lab, if its hosts are network namespaces."""
    if not lab.namespaces:
        pytest.skip("network namespaces are not allowed here (root, iproute2 and unshare are needed)")
    return lab
