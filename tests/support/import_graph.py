"""Which file of this repository imports which, by their syntax trees (test_layering.py, `scripts/test changed`)."""

import ast
import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ("master", "slave", "protocol")
DOTTED = re.compile(r"(?:ivypy|tests)(?:\.\w+)+")


def modules(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


@functools.cache
def imported(path: Path) -> tuple[str, ...]:
    """The dotted names under ivypy that a module imports."""
    return tuple(name for name in _imported(path, _nodes(path)) if name.startswith("ivypy."))


def import_graph() -> dict[str, set[str]]:
    """Path of each Python file below the rooms and tests -> paths of those that it imports, or names in a string.

    Names in strings are imports that are done when they are needed, and programs that are started (`-m tests.x`).
    """
    files = {
        _dotted(path): path.relative_to(ROOT).as_posix() for folder in (*ROOMS, "tests") for path in modules(folder)
    }
    return {own: set(_files(_named(ROOT / own), files)) - {own} for own in files.values()}


def importers(graph: Mapping[str, Iterable[str]], files: Iterable[str]) -> set[str]:
    """These files, and all that import one of them, directly or through others."""
    reached = set(files)
    fresh = reached
    while fresh:
        fresh = {path for path, imports in graph.items() if path not in reached and not fresh.isdisjoint(imports)}
        reached = reached | fresh
    return reached


def _dotted(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join([*([] if parts[0] == "tests" else ["ivypy"]), *parts]).removesuffix(".__init__")


def _imported(path: Path, nodes: Iterable[ast.AST]) -> Iterator[str]:
    package = _dotted(path.parent / "__init__.py").split(".")
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            base = list(package[: len(package) - node.level + 1]) if node.level else []
            yield from (".".join([*base, *([node.module] if node.module else []), a.name]) for a in node.names)
        elif isinstance(node, ast.Import):
            yield from (a.name for a in node.names)


def _nodes(path: Path) -> list[ast.AST]:
    """All that import, and all constants: of a million nodes few, and ast.walk() takes thrice as long to find them."""
    found: list[ast.AST] = []
    left: list[ast.AST] = [ast.parse(path.read_text())]
    while left:
        node = left.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom, ast.Constant)):
            found.append(node)
        else:
            for value in vars(node).values():
                if isinstance(value, ast.AST):
                    left.append(value)
                elif isinstance(value, list):
                    left += [one for one in value if isinstance(one, ast.AST)]
    return found


def _named(path: Path) -> Iterator[str]:
    nodes = _nodes(path)
    yield from _imported(path, nodes)
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and DOTTED.fullmatch(node.value):
            yield node.value


def _files(names: Iterable[str], files: Mapping[str, str]) -> Iterator[str]:
    """A name's module, or that of what holds it, and the packages around it."""
    for name in names:
        parts = name.split(".")
        yield from (files[above] for n in range(len(parts)) if (above := ".".join(parts[: n + 1])) in files)
