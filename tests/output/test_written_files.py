"""docs/columns.md has every file that runs write, with exactly its columns: of runs that do all that control can do."""

import csv
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ivypy.master.output.column import Group, names
from ivypy.master.output.columns import FILES, OTHER_FILES
from ivypy.master.rollup.metrics import of_nothing
from tests.support.made_once import Store
from tests.support.shown_runs import gathered, held, tour
from tests.support.small_run import write_run

pytestmark = pytest.mark.slow
INSTANCE_FILES = "step*/<rollup type>/<instance>.csv"


@pytest.fixture
def folders(tmp_path: Path, store: Store) -> list[Path]:
    return [*map(store.run, (tour, held, gathered)), write_run(tmp_path)]


def written(folders: list[Path]) -> Iterator[tuple[Path, str]]:
    """Every file, and its name in its run."""
    for folder in folders:
        for path in folder.rglob("*"):
            if path.is_file():
                yield path, path.relative_to(folder).as_posix()


def pattern_of(name: str, patterns: dict[str, object]) -> str:
    """The most exact of those that a file's name fits: `summary.csv` is no `summary.<rollup type>.csv`."""
    fitting = [one for one in patterns if re.fullmatch(re.sub(r"<[^>]*>|\\\*", "[^/]*", re.escape(one)), name)]
    assert fitting, f"{name} is in no table"
    return min(fitting, key=lambda one: (one.count("<") + one.count("*"), -len(one)))


def tables_for(path: Path) -> dict[str, object]:
    """Without that of rollup instances where index.csv does not list the file: a connector's may be called like one."""
    index = path.parents[1] / "index.csv"
    tables: dict[str, object] = {**FILES, **OTHER_FILES}
    if index.is_file() and f"{path.parent.name}/{path.name}" not in index.read_text():
        tables.pop(INSTANCE_FILES)
    return tables


def test_every_file_and_every_column_is_described(folders: list[Path]) -> None:
    seen = set()
    for path, name in written(folders):
        pattern = pattern_of(name, tables_for(path))
        seen.add(pattern)
        if pattern in FILES:
            with open(path, newline="") as file:
                header = next(csv.reader(file))
            check(header, FILES[pattern], name)
    assert not FILES.keys() - seen


def check(header: list[str], groups: tuple[Group, ...], name: str) -> None:
    """The described columns, in their order; others only where the plan or the hosts may add some."""
    left_out = {one for one in of_nothing("0") if one not in header}
    columns = [one for one in names(*(group for group in groups if not isinstance(group, str))) if one not in left_out]
    assert [one for one in header if one in columns] == columns, name
    may_add = any(isinstance(group, str) for group in groups)
    assert may_add or header == columns, name
