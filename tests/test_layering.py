"""The folder tree is the architecture: who may import whom."""

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.import_graph import ROOT, imported, modules

pytestmark = pytest.mark.xdist_group("layering")  # what is parsed once serves all of them

FOLDERS = {"master": {"master", "protocol"}, "slave": {"slave", "protocol"}, "protocol": {"protocol"}}

# Inside master, from the ground up; a room may import what stands before it, and the ground floor's single files, which
# import no room. `text` and `stats` import not even these, nor each other.
GROUND = ["verdicts", "causes", "exit_codes", "errors", "version"]
MASTER = [
    "text", "stats", "hosts", "rollup", "drivers", "connectors", "control", "plan", "imports", "output", "summary",
    "live", "results", "pages", "report", "openmetrics", "run", "logs", "compare", "web", "analysis", "cli",
]  # fmt: skip

# Inside logs: what each room may import of the others; the files beside the rooms are `faults`, for all, and `execute`.
LOGS = {
    "native": set[str](),
    "readers": {"native"},
    "timeline": {"native", "readers"},
    "result": {"readers", "timeline"},
    "render": {"readers", "result"},
    "compat": {"native", "readers"},
}

# Inside run, from the ground up.
RUN = ["setup", "edits", "step", "record", "session"]

# Inside the slave; the files beside the rooms are for all of them, and import none.
SLAVE = ["engine", "devices", "host", "host_connector", "gate", "luns", "workloads", "link"]
SLAVE_GROUND = ["kernel_files", "worker_progress", "bounded_calls"]
APART = ["__main__"]  # the program, which nothing imports

# Inside the engine, likewise.
ENGINE = ["time", "load", "stats", "luns", "backends", "thread", "commands", "binding"]


def all_modules() -> list[Path]:
    return [path for folder in FOLDERS for path in modules(folder)]


@functools.cache
def nodes_of(path: Path) -> list[ast.AST]:
    """Of a module's syntax tree, the module first: parsed and walked once for all tests of this file."""
    return [*ast.walk(ast.parse(path.read_text()))]


@pytest.fixture(scope="module", autouse=True)
def _forget_the_nodes() -> Iterator[None]:
    """A million of them."""
    yield
    nodes_of.cache_clear()


@pytest.mark.parametrize("folder", FOLDERS)
def test_nothing_crosses_but_through_the_protocol(folder: str) -> None:
    for path in modules(folder):
        for name in imported(path):
            where = name.split(".")[1]
            assert where in FOLDERS[folder], f"{path.relative_to(ROOT)} imports {name}"


def test_the_protocol_does_no_io_and_the_slave_needs_little() -> None:
    allowed = {"protocol": set[str](), "slave": set[str]()}
    import sys

    for folder, more in allowed.items():
        for path in modules(folder):
            for node in nodes_of(path):
                if isinstance(node, ast.Import):
                    tops = {a.name.split(".")[0] for a in node.names}
                elif isinstance(node, ast.ImportFrom) and node.level == 0:
                    tops = {(node.module or "").split(".")[0]}
                else:
                    continue
                assert tops <= set(sys.stdlib_module_names) | more, f"{path.relative_to(ROOT)} imports {tops}"
                if folder == "protocol":
                    assert not tops & {"asyncio", "socket", "os", "io", "subprocess", "select"}


def test_the_rooms_of_the_controller_stand_on_each_other() -> None:
    floors = [*GROUND, *MASTER]
    for path in modules("master"):
        room = path.relative_to(ROOT / "master").parts[0].removesuffix(".py")
        if room == "__init__":
            assert not imported(path)
            continue
        assert room in floors, f"{path.relative_to(ROOT)} is in no room of MASTER"
        for name in imported(path):
            parts = name.split(".")
            if parts[1] == "master":
                assert floors.index(parts[2]) <= floors.index(room), f"{path.relative_to(ROOT)} imports {name}"
                assert parts[2] == room or room not in ("text", "stats"), f"{path.relative_to(ROOT)} imports {name}"


def test_the_rooms_of_log_analysis_read_merge_judge_and_print() -> None:
    rooms = ROOT / "master" / "logs"
    assert {path.name for path in rooms.iterdir() if path.is_dir() and (path / "__init__.py").exists()} == set(LOGS)
    for room, below in LOGS.items():
        for path in modules(f"master/logs/{room}"):
            for name in imported(path):
                parts = name.split(".")
                if parts[1:3] == ["master", "logs"]:
                    assert parts[3] in below | {room, "faults"}, f"{path.relative_to(ROOT)} imports {name}"


def test_the_rooms_of_a_run_stand_on_each_other() -> None:
    """From what is there before a step to who starts it; no file is beside the rooms."""
    for path in modules("master/run"):
        room, *_ = path.relative_to(ROOT / "master" / "run").parts
        if room == "__init__.py":
            continue
        for name in imported(path):
            parts = name.split(".")
            if parts[1:3] == ["master", "run"]:
                assert RUN.index(parts[3]) <= RUN.index(room), f"{path.relative_to(ROOT)} imports {name}"


def test_the_rooms_of_the_slave_stand_on_each_other() -> None:
    floors = [*SLAVE_GROUND, *SLAVE]
    for path in modules("slave"):
        room = path.relative_to(ROOT / "slave").parts[0].removesuffix(".py")
        for name in imported(path) if room != "__init__" else ():
            parts = name.split(".")
            if parts[1] == "slave" and len(parts) > 3 and parts[2] != room:
                at_most = len(floors) if room in APART else floors.index(room)
                assert floors.index(parts[2]) < at_most, f"{path.relative_to(ROOT)} imports {name}"


def test_the_rooms_of_the_engine_stand_on_each_other() -> None:
    engine = ROOT / "slave" / "engine"
    assert {path.parent.name for path in engine.rglob("*.[ch]")} == set(ENGINE)
    for path in engine.rglob("*.[ch]"):
        for room in re.findall(r'#include "(\w+)/', path.read_text()):
            assert ENGINE.index(room) < ENGINE.index(path.parent.name), f"{path.relative_to(ROOT)} includes of {room}/"


def test_architecture_lists_the_rooms_in_their_order() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    listed = re.findall(r"^\| `(\w+)/` \|", text, re.MULTILINE)
    assert [room for room in listed if room in (*MASTER, *ENGINE)] == [*MASTER, *ENGINE]
    for folder, rooms in (("run", RUN), ("slave", SLAVE[1:])):
        assert re.findall(rf"^\| `{folder}/(\w+)/` \|", text, re.MULTILINE) == rooms


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_module_uses_the_private_names_of_another(folder: str) -> None:
    """`thing._field` stands only where the module itself defines `_field`."""
    of_python = {"_exit", "_asdict", "_replace", "_fields", "_make"}
    for path in modules(folder):
        nodes = nodes_of(path)
        mine = {node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}
        mine |= {node.id for node in nodes if isinstance(node, ast.Name)}
        used = [node for node in nodes if isinstance(node, ast.Attribute) and node.attr.startswith("_")]
        mine |= {node.attr for node in used if isinstance(node.ctx, ast.Store)}
        for node in used:
            its_own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            if not its_own and not node.attr.startswith("__"):
                assert node.attr in mine | of_python, f"{path.relative_to(ROOT)}:{node.lineno} uses {node.attr}"


def parts_of_a_thread() -> list[str]:
    """struct x x; in struct thread is a part where thread/x.h has struct x."""
    thread = ROOT / "slave" / "engine" / "thread"
    members = re.findall(r"^    struct (\w+) (\w+);", (thread / "thread.h").read_text(), re.MULTILINE)
    return [name for kind, name in members if kind == name and (thread / f"{name}.h").exists()]


def test_a_part_of_a_workload_thread_is_written_by_its_own_file_alone() -> None:
    parts = parts_of_a_thread()
    assert len(parts) >= 10
    for path in (ROOT / "slave" / "engine").rglob("*.[ch]"):
        others = "|".join(part for part in parts if part != path.stem)
        place = rf"(?:t->|\]\.)(?:{others})\b(?:\.\w+|\[[^]]*\])*"
        writes = [
            rf"{place}\s*(?:=[^=]|[-+*/|&^]=|<<=|>>=|\+\+|--)",
            rf"(?:\+\+|--)\w*{place}",
            rf"atomic_(?!load)\w+\(&[\w>-]*{place}",
            rf"(?<!const )struct (?:{others}) \*\w+ = &",
            rf"mem(?:cpy|move|set)\(&?[\w>-]*{place}",
        ]
        for write in writes:
            found = re.search(write, path.read_text())
            assert not found, f"{path.relative_to(ROOT)}: {found and found[0]}"


def test_what_runs_on_test_hosts_is_written_for_the_python_that_they_have() -> None:
    """3.9: what scripts/check would find later (vermin), where nothing else does."""
    newer = {"dataclass": {"slots", "kw_only"}, "zip": {"strict"}}
    for path in [*modules("slave"), *modules("protocol")]:
        for node in nodes_of(path):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                used = {keyword.arg for keyword in node.keywords} & newer.get(node.func.id, set[str]())
                assert not used, f"{path.relative_to(ROOT)}:{node.lineno}: Python 3.9 has no {used}"


MUTATORS = {"add", "append", "clear", "difference_update", "discard", "extend", "pop", "remove", "setdefault", "update"}


def fields_of(nodes: list[ast.AST]) -> set[str]:
    """The attributes that the classes of a module have."""
    declared = {one.target.id for one in nodes if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)}
    stored = (one for one in nodes if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store))
    return declared | {one.attr for one in stored if isinstance(one.value, ast.Name) and one.value.id == "self"}


def written(node: ast.AST) -> ast.expr | None:
    """What a node assigns to, puts something into, or changes by a method."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
        return node.value
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
        return node
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MUTATORS:
        return node.func.value
    return None


def test_a_part_of_a_step_is_written_by_its_own_file_alone() -> None:
    """As in the engine: others call its methods, which say what happens to it."""
    for path in modules("master/run/step"):
        own = fields_of(nodes_of(path))
        for node in nodes_of(path):
            place = written(node)
            if isinstance(place, ast.Attribute) and ast.unparse(place.value) != "self":
                assert place.attr in own, f"{path.relative_to(ROOT)}:{place.lineno} writes {ast.unparse(place)}"


def test_a_part_of_a_step_takes_at_most_six_arguments() -> None:
    for path in modules("master/run/step"):
        for node in nodes_of(path):
            if isinstance(node, ast.FunctionDef) and node.name == "__init__":
                count = len(node.args.args) + len(node.args.kwonlyargs) - 1
                assert count <= 6, f"{path.relative_to(ROOT)}:{node.lineno} takes {count}"


def test_no_two_classes_have_one_name() -> None:
    """Whoever searches for a class finds one."""
    homes: dict[str, str] = {}
    for path in all_modules():
        for node in ast.iter_child_nodes(nodes_of(path)[0]):
            if isinstance(node, ast.ClassDef):
                home = homes.setdefault(node.name, str(path.relative_to(ROOT)))
                assert home == str(path.relative_to(ROOT)), f"{node.name} is in {home} and {path.relative_to(ROOT)}"


def test_docstrings_are_sentences_with_a_verb_or_name_what_is_returned() -> None:
    """Not "What it has", which is a question to the reader."""
    for path in all_modules():
        for node in nodes_of(path):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
                begins = (ast.get_docstring(node) or "").split(" ")[0]
                assert begins != "What", f"{path.relative_to(ROOT)}: {getattr(node, 'name', 'the module')}"


WORN = {"one", "ones", "found", "said", "told", "behind", "of", "here", "there", "mine", "its"}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def lines_of_names(scope: ast.AST) -> tuple[set[str], dict[str, list[int]]]:
    """The names that a function or comprehension binds itself, and the lines of each name in it and what is inside."""
    bound, lines = set[str](), dict[str, list[int]]()
    left = [(node, True) for node in ast.iter_child_nodes(scope)]
    while left:
        node, is_own = left.pop()
        name = node.id if isinstance(node, ast.Name) else node.arg if isinstance(node, ast.arg) else ""
        if isinstance(node, ast.Name | ast.arg):
            lines.setdefault(name, []).append(node.lineno)
        if is_own and (isinstance(node, ast.arg) or isinstance(getattr(node, "ctx", None), ast.Store)):
            bound.add(name)
        is_own = is_own and not isinstance(node, (*FUNCTIONS, *COMPREHENSIONS, ast.ClassDef))
        left += [(inner, is_own) for inner in ast.iter_child_nodes(node)]
    return bound, lines


def test_a_name_that_lives_for_more_than_three_lines_says_what_it_holds() -> None:
    """`host`, not `one`; and each field of a class."""
    for path in all_modules():
        where = path.relative_to(ROOT)
        for scope in nodes_of(path):
            if isinstance(scope, ast.ClassDef):
                declared = {ast.unparse(node.target) for node in scope.body if isinstance(node, ast.AnnAssign)}
                assert not declared & WORN, f"{where}:{scope.lineno} {declared & WORN}"
            elif isinstance(scope, ast.Attribute) and isinstance(scope.ctx, ast.Store):
                assert ast.unparse(scope.value) != "self" or scope.attr not in WORN, f"{where}:{scope.lineno}"
            elif isinstance(scope, (*FUNCTIONS, *COMPREHENSIONS)):
                bound, lines = lines_of_names(scope)
                for name in bound & WORN:
                    assert max(lines[name]) - min(lines[name]) < 3, f"{where}:{min(lines[name])} {name}"
