"""Steps that differ only in combinations of settings, as one step with a loop."""

from collections.abc import Mapping, Sequence
from itertools import product

from .course import Wanted
from .description import Loop

Dimensions = Sequence[tuple[str, int]]  # settings and how many values each takes; the first changes slowest


def folded(steps: Sequence[Wanted], dimensions: Dimensions) -> tuple[Wanted, Loop] | None:
    """What all of the steps have in common, and the loop; None where a loop would not do the same.

    `steps`: one for every combination of the dimensions, in their order.
    """
    first = steps[0]
    if any(step.keys() != first.keys() for step in steps):
        return None
    looped = {key for key, _ in dimensions}
    loop: list[tuple[str, tuple[str, ...]]] = []
    stride = len(steps)
    for key, count in dimensions:
        stride //= count
        values = [{settings.get(key, "") for settings in steps[place * stride].values()} for place in range(count)]
        texts = tuple(next(iter(value)) for value in values)
        if any(len(value) > 1 for value in values) or "" in texts or len(set(texts)) < count:
            return None
        loop.append((key, texts))
    common = {name: _without(settings, looped) for name, settings in first.items()}
    for step, values_of in zip(steps, product(*(texts for _, texts in loop)), strict=True):
        combination = dict(zip((key for key, _ in loop), values_of, strict=True))
        if any(dict(settings) != {**common[name], **combination} for name, settings in step.items()):
            return None
    return common, tuple(loop)


def _without(settings: Mapping[str, str], looped: set[str]) -> dict[str, str]:
    return {key: value for key, value in settings.items() if key not in looped}
