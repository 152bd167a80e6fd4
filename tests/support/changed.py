"""Which tests a change can break: `python -m tests.support.changed [BASE]` prints what pytest is to run, a line each.

Rule: what no rule here knows selects everything. Tests that start the command line depend on all of it; a change
selects those of its own room, and one small real run stands for the others.
"""

import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from tests.support.import_graph import ROOMS, ROOT, import_graph, importers

EVERYTHING = "tests"
ALWAYS = (  # what reads the whole tree, and one real run
    "tests/test_layering.py", "tests/test_assertions.py", "tests/test_docs.py",
    "tests/rollup/test_metrics.py::test_no_code_takes_a_metrics_name_apart",
    "tests/e2e/test_local.py::test_rows_add_up",
)  # fmt: skip
COMMAND_LINE = ("master/cli/main.py", "master/cli/commands.py")  # which import every command
DOCUMENTS = ("docs", "configs", "README.md", "ARCHITECTURE.md", "CHANGELOG.md")  # of which tests read, by their names


@dataclass(frozen=True)
class Tree:
    """What the repository holds: who imports whom, and which tests name a folder of documents."""

    imports: Mapping[str, frozenset[str]]
    naming: Mapping[str, frozenset[str]]  # of DOCUMENTS -> test files that name it, or import what does

    def modules_below(self, folder: str) -> set[str]:
        return {path for path in self.imports if path.startswith(f"{folder}/")}

    def has_tests(self, path: str) -> bool:
        return path in self.imports or bool(self.modules_below(path))


@dataclass(frozen=True)
class Selection:
    """What to run, and why."""

    tests: tuple[str, ...]
    why: str


def select(changed: Iterable[str], tree: Tree) -> Selection:
    """The tests that a change of these files can break."""
    changed = sorted(changed)
    if unknown := [path for path in changed if not _is_known(path)]:
        return Selection((EVERYTHING,), f"everything, for {_some(unknown)}")
    reached = _reached(changed, tree)
    if "tests/conftest.py" in reached:
        return Selection((EVERYTHING,), f"everything: tests/conftest.py uses {_some(changed)}")
    folders = {tests for path in changed for tests in _own_tests(path) if tree.has_tests(tests)}
    folders |= {path.removesuffix("/conftest.py") for path in reached if path.endswith("/conftest.py")}
    naming = {test for path in changed for test in tree.naming.get(path.split("/")[0], ())}
    files = {path for path in reached if _is_test(path)} | naming
    files -= {path for path in files if any(path.startswith(f"{folder}/") for folder in folders)}
    if not changed:
        return Selection((), "nothing: no file changed")
    why = f"{len(changed)} changed files: {_some(sorted(folders)) or 'no folder'}, {len(files)} files that import them"
    always = [test for test in ALWAYS if test.partition("::")[0] not in files | folders]
    return Selection((*sorted(folders), *sorted(files - folders), *always), f"{why}, layering, one real run")


def _is_known(path: str) -> bool:
    parts = PurePosixPath(path).parts
    if parts[0] == "tests":
        return (len(parts) > 2 and (parts[1] != "support" or path.endswith(".py"))) or _is_test(path)
    return parts[0] in (*ROOMS, *DOCUMENTS) or (len(parts) == 1 and path.endswith(".md"))


def _is_test(path: str) -> bool:
    return path.startswith("tests/") and PurePosixPath(path).name.startswith("test_") and path.endswith(".py")


def _own_tests(path: str) -> list[str]:
    """Folders or files of tests that belong to a file, whether they exist or not."""
    parts = PurePosixPath(path).parts
    match parts[0]:
        case "tests" if parts[1] in ("support", "bench"):
            return []
        case "tests":
            return [path] if _is_test(path) else [f"tests/{parts[1]}"]
        case "master" if len(parts) > 2:
            return [f"tests/{parts[1]}"]
        case "master":
            return [f"tests/test_{parts[1]}"]
        case "slave" if parts[1] == "engine":
            return ["tests/engine", "tests/slave"]
        case "slave" | "protocol" as room:
            return [f"tests/{room}"]
    return []


def _reached(changed: Iterable[str], tree: Tree) -> set[str]:
    """The changed files and all that import them; one that is no module stands for those of its folder."""
    graph = {path: imports for path, imports in tree.imports.items() if path not in COMMAND_LINE}
    begin = set[str]()
    for path in changed:
        in_room = path.split("/")[0] in ROOMS
        begin |= {path} if path in tree.imports else _beside(path, tree) if in_room and not _is_c(path) else set()
    if not any(path.startswith("tests/") for path in begin):
        graph = {path: imports for path, imports in graph.items() if path != "tests/conftest.py"}
    return importers(graph, begin)


def _is_c(path: str) -> bool:
    return path.startswith("slave/engine/") and path.endswith((".c", ".h"))


def _beside(path: str, tree: Tree) -> set[str]:
    folder = PurePosixPath(path).parent
    while folder.parts and not (found := tree.modules_below(folder.as_posix())):
        folder = folder.parent
    return found if folder.parts else set()


def _some(paths: list[str]) -> str:
    return ", ".join(paths[:4]) + (f" and {len(paths) - 4} more" if len(paths) > 4 else "")


def read_tree() -> Tree:
    """The repository as it is."""
    graph = import_graph()
    texts = {path: (ROOT / path).read_text() for path in graph if path.startswith("tests/")}
    naming = {}
    for name in DOCUMENTS:
        reached = importers(graph, {path for path, text in texts.items() if f'"{name}' in text})
        naming[name] = frozenset(filter(_is_test, reached))
    return Tree({path: frozenset(imports) for path, imports in graph.items()}, naming)


def _git(*words: str, check: bool = True) -> list[str]:
    done = subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True, check=check)
    return done.stdout.splitlines()


def default_base() -> str:
    """Where this branch left main; the last commit, on main itself."""
    head = _git("rev-parse", "HEAD")
    for main in ("origin/main", "main"):
        if (base := _git("merge-base", main, "HEAD", check=False)) and base != head:
            return base[0]
    return head[0]


def changed_files(base: str) -> list[str]:
    """All that differs from `base`: committed, uncommitted, and new."""
    return [
        *_git("diff", "--name-only", "--no-renames", base, "--"),
        *_git("ls-files", "--others", "--exclude-standard"),
    ]


if __name__ == "__main__":
    base = sys.argv[1] if len(sys.argv) > 1 else default_base()
    selection = select(changed_files(base), read_tree())
    print(f"since {base[:12]}: {selection.why}", file=sys.stderr)
    print("\n".join(selection.tests))
