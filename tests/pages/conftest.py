"""What the tests of views in a browser share: the server of the module's `folders`, and the browser that sees them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.browser import Seen, chromium
from tests.support.page_server import Answers, serving


@pytest.fixture(scope="module")
def address(folders: dict[str, Path]) -> Iterator[str]:
    with serving(Answers(folders)) as url:
        yield url


@pytest.fixture(scope="module")
def browser(address: str) -> Iterator[Any]:
    """Started when the runs are there, which have a loop of their own."""
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def seen(address: str) -> Seen:
    return Seen(address)
