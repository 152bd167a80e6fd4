"""Lists that are too long for one message travel in several."""

from typing import Any, cast

import pytest

from ivypy.master.hosts.driver import Driver
from ivypy.master.run.setup.host_settings import ask_in_parts
from ivypy.protocol.messages import MOST_IN_A_LIST, CreateWorkloads, Ok


class Asked:
    """A host that remembers what it was asked."""

    def __init__(self) -> None:
        self.fields: list[dict[str, Any]] = []

    async def request(self, kind: type[CreateWorkloads], **fields: Any) -> list[Ok]:
        self.fields.append(fields)
        return [Ok(len(self.fields), 0)]


@pytest.mark.parametrize("count", [0, 1, MOST_IN_A_LIST, MOST_IN_A_LIST + 1, 3 * MOST_IN_A_LIST])
async def test_every_message_but_the_last_says_that_more_follow(count: int) -> None:
    host = Asked()
    answers = await ask_in_parts(cast(Driver, host), CreateWorkloads, "workloads", range(count), gathered=True)
    sent = [one["workloads"] for one in host.fields]
    assert [item for part in sent for item in part] == list(range(count))
    assert all(len(part) <= MOST_IN_A_LIST for part in sent) and len(answers) == len(sent)
    assert [one["more"] for one in host.fields] == [*[True] * (len(sent) - 1), *[False] * bool(sent)]
