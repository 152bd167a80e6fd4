"""Functions of an imported module, with the code of a mutant in place of their own."""

import functools
import gc
from types import CodeType, FunctionType


class NotSwapped(Exception):
    """The mutant must be imported: it is not within one function, or has other variables."""


def swap(module: str, function: tuple[str, int], mutated: CodeType) -> None:
    """Give the live function of this name and first line the code that it has in the mutated module."""
    (new,) = [code for code in _codes(mutated) if (code.co_qualname, code.co_firstlineno) == function]
    found = [
        one
        for one in gc.get_objects()
        if type(one) is FunctionType
        and one.__module__ == module
        and (one.__code__.co_qualname, one.__code__.co_firstlineno) == function
    ]
    if not found:
        raise NotSwapped
    for one in found:
        try:
            one.__code__ = new
        except ValueError as error:
            raise NotSwapped from error


def forget() -> None:
    """Empty all caches: what is in them was computed before."""
    for one in gc.get_objects():
        if isinstance(one, functools._lru_cache_wrapper) and str(one.__module__).startswith("ivypy."):
            one.cache_clear()


def _codes(code: CodeType) -> list[CodeType]:
    return [code, *(inner for one in code.co_consts if isinstance(one, CodeType) for inner in _codes(one))]
