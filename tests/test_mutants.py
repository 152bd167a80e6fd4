"""scripts/mutants: what it changes, that its names stay, and that it finds what no test notices."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.mutants.__main__ import EQUIVALENT, equivalents
from tests.support.mutants.c_changes import CFile
from tests.support.mutants.held_by import HELD_BY
from tests.support.mutants.python_changes import PythonModule

ROOT = Path(__file__).parents[1]


def changes(text: str) -> set[tuple[str, str]]:
    return {(one.change.before, one.change.after) for one in PythonModule(text, "m").mutants}


@pytest.mark.parametrize(
    ("statement", "after"),
    [
        ("x = a < b", {"x = a <= b", "x = a >= b"}),
        ("x = a is b", {"x = a is not b"}),
        ("x = a + b", {"x = a - b"}),
        ("x = a and b", {"x = a or b", "x = a", "x = b"}),
        ("x = not a", {"x = a"}),
        ("x = 3", {"x = 4", "x = 2"}),
        ("x = 0.0", {"x = 1.0"}),
        ("x = True", {"x = False"}),
        ("x = min(a)", {"x = max(a)"}),
        ("x = np.floor(a)", {"x = np.ceil(a)"}),
        ("x = [a for a in b if a]", {"x = [a for a in b]"}),
        ("x.y = a", {"(removed)"}),
        ("f(a)", {"(removed)"}),
        ("x += a", {"x -= a", "(removed)"}),
        # wording, types and assertions are left alone
        ("x = 'text'", set()),
        ("x = f'{a + 1:.3f}'", set()),
        ("x: Annotated[int, 3] = a", set()),
        ("assert a < b", set()),
        ("'a docstring'", set()),
    ],
)
def test_what_is_changed_of_a_statement(statement: str, after: set[str]) -> None:
    assert {new for _, new in changes(statement)} == after


@pytest.mark.parametrize(
    ("statement", "after"),
    [
        ("if (a->b < 3)", {"if (a->b <= 3)", "if (a->b >= 3)", "if (a->b < 4)", "if (a->b < 2)"}),
        ("return a && !b;", {"return a || !b;"}),
        ("return a - 0x1f;", {"return a + 0x1f;"}),
        ("return a + 1.5;", {"return a - 1.5;"}),
        ("return 2ULL << a;", {"return 3ULL << a;", "return 1ULL << a;", "return 2ULL >> a;"}),
        ("a->b = c;", {";"}),
        ("a[0].b++;", {"a[1].b++;", "a[0].b--;", ";"}),
        ("f(a,\n      b);", {";"}),
        # words, comments, types and the preprocessor are left alone
        ("return true_of(a); // a < b", set()),
        ('return s == "a < b";', {'return s != "a < b";'}),
        ("uint64_t a;", set()),
        ("/* a < b */", set()),
    ],
)
def test_what_is_changed_of_a_statement_of_c(statement: str, after: set[str]) -> None:
    text = f"#define LESS(a, b) ((a) < (b))\n\nstatic int f(int a)\n{{\n    {statement}\n}}\n"
    mutants = CFile(text).mutants
    assert {one.change.after for one in mutants} == after
    assert {one.change.scope for one in mutants} <= {"f"}
    assert all(CFile(text).text(one) == text.replace(statement, one.change.after) for one in mutants)


def test_a_mutant_has_the_same_name_wherever_its_function_is() -> None:
    text = "def f(a):\n    return a + 1\n"
    one, other = PythonModule(text, "m"), PythonModule("import os\n\nx = 5\n\n\n" + text, "m")
    assert {mutant.id for mutant in one.mutants} < {mutant.id for mutant in other.mutants}
    twice = PythonModule("def f(a):\n    a.b()\n    a.b()\n", "m").mutants
    assert len({mutant.id for mutant in twice}) == len(twice)


def test_the_code_of_a_mutant_has_its_change_alone() -> None:
    module = PythonModule("def f(a):\n    return a + 1\n", "m")
    answers = {}
    for mutant in module.mutants:
        names: dict[str, object] = {}
        exec(module.code(mutant), names)
        answers[mutant.change.after] = names["f"](5)  # type: ignore[operator]
    assert answers == {"return a - 1": 4, "return a + 2": 7, "return a + 0": 5, "return None": None}


def test_modules_and_the_tests_that_hold_them_are_there() -> None:
    for module, files in HELD_BY.items():
        assert all((ROOT / file).is_file() for file in (module, *files)), module
    rows = [line.split(maxsplit=2) for line in EQUIVALENT.read_text().splitlines() if line and line[0] != "#"]
    assert all(module in HELD_BY and len(name) == 8 and reason for module, name, reason in rows)


def test_set_aside_are_mutants_that_a_module_has() -> None:
    """Of a small one; scripts/mutants says so of each that it tries."""
    path = "master/compare/outcomes.py"
    assert equivalents(path).keys() <= {one.id for one in PythonModule((ROOT / path).read_text(), path).mutants}


@pytest.mark.slow
def test_mutants_that_tests_notice_are_killed_and_the_others_listed() -> None:
    """And nothing is written."""
    path = "protocol/consent_check.py"
    before = (ROOT / path).read_bytes()
    command = [sys.executable, "-m", "tests.support.mutants", path, "--max", "4", "--tests"]

    def said(file: str) -> str:
        done = subprocess.run(
            [*command, file], cwd=ROOT, capture_output=True, text=True, timeout=100, check=True,
            env=os.environ | {"HYPOTHESIS_PROFILE": "mutants"},
        )  # fmt: skip
        return done.stdout

    killed = said("tests/protocol/test_consent_check.py")
    assert ": 4 killed, 0 by timeout, 0 survived" in killed and "; 4 tried without an import" in killed
    listed = said("tests/protocol/test_histogram.py").splitlines()
    assert len(listed) == 5 and ": 0 killed, 0 by timeout, 4 survived" in listed[-1]
    assert (ROOT / path).read_bytes() == before


@pytest.mark.long
def test_a_mutant_of_c_is_tried_in_a_copy() -> None:
    path = "slave/engine/load/pacer.c"
    before = (ROOT / path).read_bytes()
    command = [sys.executable, "-m", "tests.support.mutants", path, "--max", "1", "--tests"]
    for tests, fate in (("tests/engine/test_pacing.py", "1 killed"), ("tests/engine/test_clock.py", "1 survived")):
        done = subprocess.run([*command, tests], cwd=ROOT, capture_output=True, text=True, timeout=110, check=True)
        assert fate in done.stdout.splitlines()[-1]
    assert (ROOT / path).read_bytes() == before
