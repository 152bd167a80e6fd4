"""Room in a queue, shared by threads: the laws hold for random settings that change all the time.

In flight is never more than the queue takes, or one I/O of each thread where that is more. What is held and what is
free add up to the limit. Who wants its part has it, if the others' I/Os complete. Idle neighbours leave a busy thread
its room.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.engine import run

pytestmark = pytest.mark.slow


@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 1 << 62))
def test_nothing_overfills_the_queue_and_nobody_starves(seed: int) -> None:
    run("queue_room", seed, 6, sanitizer="plain")
