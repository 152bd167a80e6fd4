"""What tests share is made once, whoever asks first, and never again after it failed."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.made_once import NotMade, Store


def test_of_many_who_need_it_at_once_one_makes_it(tmp_path: Path) -> None:
    made = []

    def make(folder: Path) -> None:
        (folder / "half").touch()
        made.append(folder)
        (folder / "whole").touch()

    with ThreadPoolExecutor(8) as many:
        found = list(many.map(lambda _: {path.name for path in Store(tmp_path).made("it", make).iterdir()}, range(8)))
    assert len(made) == 1 and found == [{"half", "whole"}] * 8


def test_what_failed_is_not_made_again(tmp_path: Path) -> None:
    def make(folder: Path) -> None:
        (folder / "half").touch()
        raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        Store(tmp_path).made("it", make)
    with pytest.raises(NotMade, match="it could not be made: see the test that failed first"):
        Store(tmp_path).made("it", make)


def test_two_things_do_not_wait_for_each_other(tmp_path: Path) -> None:
    store = Store(tmp_path)
    inner = []
    store.made("outer", lambda folder: inner.append(store.made("inner", Path.iterdir)))
    assert inner == [tmp_path / "inner"]


@pytest.fixture(scope="module")
def shared() -> str:
    return "made"


def test_who_shares_what_a_module_makes_is_of_its_group(shared: str, request: pytest.FixtureRequest) -> None:
    """conftest.py gives it the group, before xdist asks for it."""
    is_grouped = request.node.nodeid.endswith("@test_made_once")
    assert is_grouped == request.config.getoption("loadgroup", False), request.node.nodeid
