"""`scripts/test changed`: what a change selects, in a repository of a few files, and in this one."""

import pytest

from tests.support.changed import ALWAYS, COMMAND_LINE, EVERYTHING, Tree, read_tree, select
from tests.support.import_graph import ROOT, importers

IMPORTS = {
    "master/cli/main.py": ["master/cli/report.py", "master/cli/show.py"],
    "master/cli/report.py": ["master/report/pages.py"],
    "master/cli/show.py": ["master/results/show.py"],
    "master/results/show.py": ["protocol/lines.py"],
    "master/report/pages.py": ["master/report/parts.py"],
    "master/report/parts.py": ["master/causes.py"],
    "master/causes.py": [],
    "master/report/static/__init__.py": [],
    "protocol/lines.py": [],
    "slave/loop.py": ["protocol/lines.py"],
    "tests/cli/test_main.py": ["master/cli/main.py"],
    "tests/cli/test_report.py": ["master/cli/report.py"],
    "tests/conftest.py": ["tests/support/disks.py"],
    "tests/e2e/test_local.py": ["tests/support/runs.py"],
    "tests/engine/test_core.py": ["tests/support/engine.py"],
    "tests/report/conftest.py": ["tests/support/runs.py"],
    "tests/report/test_report.py": ["master/report/pages.py", "tests/support/runs.py"],
    "tests/results/test_show.py": ["master/results/show.py"],
    "tests/slave/test_loop.py": ["slave/loop.py"],
    "tests/support/disks.py": [],
    "tests/support/engine.py": [],
    "tests/support/runs.py": ["protocol/lines.py"],
    "tests/test_causes.py": ["master/causes.py"],
    "tests/test_docs.py": [],
}
TREE = Tree(
    {path: frozenset(imports) for path, imports in IMPORTS.items()},
    {
        "docs": frozenset({"tests/cli/test_main.py"}),
        "configs": frozenset({"tests/e2e/test_local.py"}),
        "README.md": frozenset({"tests/cli/test_report.py"}),
    },
)

SELECTED = {
    "a leaf room: its folder, and who imports it": (
        ["master/report/parts.py"],
        ["tests/report", "tests/cli/test_report.py"],
    ),
    "a file of no room: its own tests, too": (
        ["master/causes.py"],
        ["tests/cli/test_report.py", "tests/report/test_report.py", "tests/test_causes.py"],
    ),
    "what all import, a folder's fixtures, too": (
        ["protocol/lines.py"],
        [
            "tests/e2e/test_local.py",
            "tests/report",
            "tests/results/test_show.py",
            "tests/slave/test_loop.py",
        ],
    ),
    "the command line itself": (["master/cli/main.py"], ["tests/cli"]),
    "a file that Python does not import": (["master/report/static/page.js"], ["tests/report"]),
    "a file that is gone": (["master/report/old.py"], ["tests/report", "tests/cli/test_report.py"]),
    "the engine's C": (["slave/engine/load/pacer.c"], ["tests/engine", "tests/slave"]),
    "a driver": (["tests/engine/faults.c"], ["tests/engine"]),
    "a changed test": (["tests/slave/test_loop.py"], ["tests/slave/test_loop.py"]),
    "a deleted test": (["tests/slave/test_old.py"], []),
    "help for tests": (["tests/support/engine.py"], ["tests/engine/test_core.py"]),
    "help that a folder's fixtures use": (["tests/support/runs.py"], ["tests/e2e/test_local.py", "tests/report"]),
    "data of tests": (["tests/report/cases/old.csv"], ["tests/report"]),
    "a page": (["docs/plan.md"], ["tests/cli/test_main.py"]),
    "the first page": (["README.md"], ["tests/cli/test_report.py"]),
    "a plan": (["configs/first.yaml"], ["tests/e2e/test_local.py"]),
    "two rooms": (["README.md", "slave/loop.py"], ["tests/slave", "tests/cli/test_report.py"]),
}


@pytest.mark.parametrize(("changed", "tests"), SELECTED.values(), ids=SELECTED)
def test_a_change_selects_what_it_can_break(changed: list[str], tests: list[str]) -> None:
    selected = select(changed, TREE).tests
    assert sorted(set(selected) - {*ALWAYS}) == sorted(tests)
    assert len(selected) == len(set(selected))
    assert {test.partition("::")[0] for test in ALWAYS} <= {test.partition("::")[0] for test in selected}


@pytest.mark.parametrize(
    "path",
    [
        "scripts/test",
        "pyproject.toml",
        ".ci/run",
        "setup.py",
        "tests/conftest.py",
        "tests/support/disks.py",
        "tests/support/faultfs.c",
        "new/x.py",
    ],
)
def test_what_no_rule_knows_selects_everything(path: str) -> None:
    assert select([path, "README.md"], TREE).tests == (EVERYTHING,)


def test_no_change_selects_nothing() -> None:
    assert select([], TREE).tests == ()


def test_what_imports_a_file_through_others_imports_it() -> None:
    graph = {"a": ["b"], "b": ["c"], "c": ["b"], "d": ["a"], "e": []}
    assert importers(graph, ["c"]) == {"a", "b", "c", "d"}
    assert importers(graph, ["e"]) == {"e"}


@pytest.mark.slow
def test_this_repository_is_read_with_its_lazy_imports() -> None:
    tree = read_tree()
    assert "tests/support/fixtures.py" in tree.imports["tests/conftest.py"]
    assert "master/compare/outcomes.py" in tree.imports["tests/compare/test_outcomes.py"]
    assert "tests/test_docs.py" in tree.naming["docs"]
    assert {*COMMAND_LINE} <= tree.imports.keys()
    for test in ALWAYS:
        path, _, name = test.partition("::")
        assert f"def {name}" in (ROOT / path).read_text()
