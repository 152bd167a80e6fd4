"""The change for the worse that a comparison accepts, as `--max-regression` and the page's field have it."""

from typing import Final

from ..errors import PlanError
from ..text.units import format_fraction, parse_fraction

USUAL_LIMIT: Final = 0.03


def parse_limit(text: str) -> float:
    """`5%` as a fraction. Raises PlanError."""
    try:
        limit = parse_fraction(text)
    except ValueError as error:
        raise PlanError(f"--max-regression: {error}") from None
    if not 0 <= limit < 1:
        example = format_fraction(USUAL_LIMIT)
        raise PlanError(f"--max-regression {text}: write a percentage from 0% to below 100%, for example {example}")
    return limit
