"""Which workload thread drives which instance.

Rule: pure. Every thread gets its even share of tags, since a tag is what costs a thread time; where tags are equal, of
instances. An instance stays with its thread for as long as it exists.
"""

from collections.abc import Sequence


def deal(loads: Sequence[tuple[int, int]], tags: Sequence[int]) -> list[int]:
    """The thread of each new instance, given its number of tags.

    `loads`: what each thread drives already, as (tags, instances). The largest are dealt first, each to the thread that
    has least; the result is in the order of `tags`.
    """
    now = list(loads)
    chosen = [0] * len(tags)
    for i in sorted(range(len(tags)), key=lambda i: -tags[i]):
        thread = min(range(len(now)), key=lambda t: (*now[t], t))
        chosen[i] = thread
        now[thread] = (now[thread][0] + tags[i], now[thread][1] + 1)
    return chosen
