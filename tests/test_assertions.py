"""No test compares by identity what is made anew for the comparison: such an assertion is always true, or never.

Numpy's truth values are no bools: `np.isnan(x) is not known` holds whatever x is.
"""

import ast
from collections.abc import Iterator

import pytest

from tests.support.import_graph import ROOT, modules

FRESH = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp, ast.JoinedStr)
NUMPY_METHODS = {"any", "all", "sum", "min", "max", "mean"}  # those of an array; Python's are functions


def of_numpy(node: ast.expr) -> bool:
    """Whether an expression is certainly a numpy scalar or array, made by this expression."""
    match node:
        case ast.Call(func=ast.Attribute(value=owner, attr=method)):
            root = owner
            while isinstance(root, ast.Attribute):
                root = root.value
            return method in NUMPY_METHODS or (isinstance(root, ast.Name) and root.id in ("np", "numpy"))
        case ast.UnaryOp(op=ast.Invert(), operand=operand):
            return of_numpy(operand)
        case ast.Compare(left=left, comparators=others):
            return any(of_numpy(operand) for operand in (left, *others))
    return False


def vain(tree: ast.Module) -> Iterator[str]:
    """Comparisons by identity that do not depend on what is compared."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and any(isinstance(operator, (ast.Is, ast.IsNot)) for operator in node.ops):
            operands = (node.left, *node.comparators)
            if any(isinstance(operand, FRESH) or of_numpy(operand) for operand in operands):
                yield f"{node.lineno}: {ast.unparse(node)}"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("np.isnan(x) is not known", True),
        ("(np.abs(x) < 1) is known", True),
        ("known is ~np.isnan(x)", True),
        ("np.linalg.norm(x) is y", True),
        ("(x == y).all() is True", True),
        ("names is not []", True),
        ("x is f'{y}'", True),
        ("x is None", False),
        ("(x > y) is known", False),
        ("all(x) is known", False),
        ("bool(np.isnan(x)) is known", False),
        ("math.isnan(x) is not known", False),
        ("np.isnan(x) == known", False),
        ("kind is np.float64", False),
    ],
)
def test_the_scan_tells_which_comparisons_are_vain(text: str, found: bool) -> None:
    assert bool([*vain(ast.parse(f"assert {text}"))]) is found


@pytest.mark.slow
def test_every_comparison_by_identity_can_fail() -> None:
    found = {path.relative_to(ROOT).as_posix(): [*vain(ast.parse(path.read_text()))] for path in modules("tests")}
    assert {path: lines for path, lines in found.items() if lines} == {}
