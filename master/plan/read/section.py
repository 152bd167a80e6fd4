"""The base of all sections of a plan: how a key is declared, and how a short form becomes the long one.

Rule: an unknown key is a fault everywhere; a section that is given holds something.
"""

from collections.abc import Callable, Iterator
from typing import Any, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from .yaml_positions import Predicate


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def sections_below(model: type[Section]) -> Iterator[tuple[tuple[str, ...], type[Section]]]:
    """Every section in a section, and in these: the keys down to it, and its class."""
    for key, field in model.model_fields.items():
        if section := _section_in(field.annotation):
            yield (key,), section
            yield from (((key, *keys), below) for keys, below in sections_below(section))


def _section_in(annotation: Any) -> type[Section] | None:
    """The section that a field may hold: one, or a list of them."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return annotation
    return next(filter(None, map(_section_in, get_args(annotation))), None)


def about(text: str, default: Any = None) -> Any:
    """A field that may be left out."""
    return Field(default=default, description=text)


def short(key: str) -> Callable[[Any], Any]:
    """Text alone means a mapping with only `key`."""
    return lambda value: {key: value} if isinstance(value, str) else value


def not_empty(wanted: str) -> BeforeValidator:
    """A section that is given must hold something."""

    def check(value: Any) -> Any:
        if value == {}:
            raise Predicate(f"is empty; it needs {wanted}")
        return value

    return BeforeValidator(check)


def one_or_many(value: Any) -> Any:
    """One thing alone means a list of it."""
    return value if isinstance(value, list) or value is None else [value]
