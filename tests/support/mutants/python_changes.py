"""Changes of a Python module, by its syntax tree.

What is only wording (strings, f-strings), a type or a decorator is left alone, and so are assertions.
"""

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType
from typing import Final

from tests.support.mutants.mutant import Change, Mutant, named

COMPARISONS: Final[dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]]] = {
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE), ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,), ast.NotIn: (ast.In,),
}  # fmt: skip
OPERATORS: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.LShift: ast.RShift,
    ast.RShift: ast.LShift, ast.BitXor: ast.BitOr,
}  # fmt: skip
_OPPOSITES: Final = [
    ("min", "max"), ("minimum", "maximum"), ("argmin", "argmax"), ("any", "all"), ("floor", "ceil"),
    ("clear", "copy"), ("left", "right"), ("low", "high"), ("least", "most"), ("first", "last"),
]  # fmt: skip
UNTOUCHED: Final = frozenset({"annotation", "returns", "decorator_list", "bases", "keywords", "format_spec"})
WORDING: Final = (ast.JoinedStr, ast.Assert, ast.Import, ast.ImportFrom)
OPPOSITES: Final = {a: b for pair in _OPPOSITES for a, b in (pair, pair[::-1])}
CALLED_ONLY: Final = frozenset(name for pair in _OPPOSITES[:6] for name in pair)  # elsewhere these are just names


@dataclass(frozen=True)
class Place:
    """A field of a node, and what to put there."""

    parent: ast.AST | None
    field: str
    index: int | None
    new: object
    function: tuple[str, int] | None  # the outermost function that it is in: name, first line; None: runs at import

    def exchange(self, value: object) -> object:
        """Put a value there; what was there."""
        held = getattr(self.parent, self.field)
        if self.index is None:
            setattr(self.parent, self.field, value)
            return held
        old, held[self.index] = held[self.index], value
        return old


class PythonModule:
    """A module's source and its mutants."""

    def __init__(self, text: str, name: str) -> None:
        self.tree, self.name = ast.parse(text), name
        self.mutants: list[Mutant[Place]] = named(self._changes())

    def code(self, mutant: Mutant[Place]) -> CodeType:
        """The module's code with one change."""
        place = mutant.change.place
        old = place.exchange(place.new)
        try:
            return compile(ast.fix_missing_locations(copy.deepcopy(self.tree)), self.name, "exec")
        finally:
            place.exchange(old)

    def _changes(self) -> Iterator[Change[Place]]:
        whole = {ast.unparse(self.tree)}
        for statement, scope, place in _walk(self.tree, _Where("", None, None)):
            old = place.exchange(place.new)
            changed = place.new if isinstance(place.new, ast.stmt) else statement
            new_text, new_whole = _header(changed), ast.unparse(self.tree)
            place.exchange(old)
            if new_whole not in whole:
                whole.add(new_whole)
                yield Change(statement.lineno, scope, _header(statement), new_text, place)


def _header(statement: ast.stmt) -> str:
    """A statement as one line of text, without the statements in it."""
    if isinstance(statement, ast.Pass):
        return "(removed)"
    text = ast.unparse(statement)
    if hasattr(statement, "body"):
        text = text.split("\n")[0]
    return " ".join(text.split())


@dataclass(frozen=True)
class _Where:
    """What encloses a node."""

    scope: str
    function: tuple[str, int] | None
    statement: ast.stmt | None

    def inside(self, child: ast.AST) -> "_Where":
        scope, function = self.scope, self.function
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            scope = f"{scope}.{child.name}".lstrip(".")
            if function is None and not isinstance(child, ast.ClassDef):
                function = scope, min([child.lineno, *(one.lineno for one in child.decorator_list)])
        return _Where(scope, function, child if isinstance(child, ast.stmt) else self.statement)

    def of_defaults(self, outside: "_Where") -> "_Where":
        """Of a function's default values, which are computed where it is defined."""
        return _Where(self.scope, outside.function, self.statement)


def _walk(node: ast.AST, where: _Where, outside: _Where | None = None) -> Iterator[tuple[ast.stmt, str, Place]]:
    """(the statement that changes, the function that it is in, the change)"""
    for field, value in ast.iter_fields(node):
        if field in UNTOUCHED and not isinstance(node, ast.Call):
            continue
        here = where.of_defaults(outside) if outside and isinstance(value, ast.arguments) else where
        several = isinstance(value, list)
        for index, child in enumerate(value if several else [value]):
            if not isinstance(child, ast.AST) or isinstance(child, WORDING):
                continue
            inside = here.inside(child)
            if inside.statement is not None:
                for new in _instead(child):
                    place = Place(node, field, index if several else None, new, here.function)
                    yield inside.statement, here.scope, place
            yield from _walk(child, inside, here)


def _instead(node: ast.AST) -> Iterator[ast.AST]:
    """What could stand in a node's place."""
    match node:
        case ast.Compare():
            for i, operator in enumerate(node.ops):
                for other in COMPARISONS[type(operator)]:
                    yield ast.Compare(node.left, [*node.ops[:i], other(), *node.ops[i + 1 :]], node.comparators)
        case ast.BinOp() if not _is_text(node):
            yield ast.BinOp(node.left, OPERATORS[type(node.op)](), node.right)
        case ast.BoolOp():
            yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
            for i in range(len(node.values)):
                rest = [*node.values[:i], *node.values[i + 1 :]]
                yield rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
        case ast.UnaryOp():
            yield node.operand
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield from (ast.Constant(value + 1), ast.Constant(value - 1))
        case ast.Constant(value=float(value)):
            yield from (ast.Constant(value * 2 or 1.0), ast.Constant(value / 2))
        case ast.Call(func=ast.Name(id=name)) if name in CALLED_ONLY:
            yield ast.Call(ast.Name(OPPOSITES[name], ast.Load()), node.args, node.keywords)
        case ast.Call(func=ast.Attribute(attr=name) as called) if name in CALLED_ONLY:
            yield ast.Call(ast.Attribute(called.value, OPPOSITES[name], ast.Load()), node.args, node.keywords)
        case ast.Name(id=name, ctx=ast.Load()) if name in OPPOSITES and name not in CALLED_ONLY:
            yield ast.Name(OPPOSITES[name], ast.Load())
        case ast.If() | ast.While() | ast.IfExp() if not isinstance(node.test, ast.Compare):
            changed = copy.copy(node)
            changed.test = ast.UnaryOp(ast.Not(), node.test)
            yield changed
        case ast.comprehension() if node.ifs:
            yield ast.comprehension(node.target, node.iter, [], node.is_async)
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield ast.Return(ast.Constant(None))
    if isinstance(node, ast.AugAssign):
        yield ast.AugAssign(node.target, OPERATORS[type(node.op)](), node.value)
    if _may_go(node):
        yield ast.Pass()


def _is_text(node: ast.BinOp) -> bool:
    return any(
        isinstance(side, ast.JoinedStr) or (isinstance(side, ast.Constant) and isinstance(side.value, str))
        for side in (node.left, node.right)
    )


def _may_go(node: ast.AST) -> bool:
    """Statements that may be left out without a name that nobody made."""
    match node:
        case ast.Expr(value=ast.Constant()):
            return False
        case ast.Expr() | ast.AugAssign() | ast.Raise() | ast.Continue() | ast.Break() | ast.Delete():
            return True
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            return True
        case ast.If(orelse=[]):
            return True
    return False
