"""Parts of the standard library of Python 3.10 and 3.11, for test hosts: they run 3.9 and later."""

import sys
from collections.abc import Collection, Iterator
from typing import Any, TypeVar, overload

if sys.version_info >= (3, 11):
    from enum import StrEnum as StrEnum  # novermin
else:
    from enum import Enum

    class StrEnum(str, Enum):
        """A member is its value wherever a text is wanted, also in an f-string."""

        __str__ = str.__str__


A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")


@overload
def zip_strict(a: Collection[A], b: Collection[B], /) -> Iterator[tuple[A, B]]: ...
@overload
def zip_strict(a: Collection[A], b: Collection[B], c: Collection[C], /) -> Iterator[tuple[A, B, C]]: ...
def zip_strict(*columns: Collection[Any]) -> Iterator[tuple[Any, ...]]:
    """zip(..., strict=True), since 3.10, of collections. Raises ValueError where they differ in length."""
    if len({len(column) for column in columns}) > 1:
        raise ValueError(f"zip_strict() of {', '.join(str(len(column)) for column in columns)} elements")
    return zip(*columns)
