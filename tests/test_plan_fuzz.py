"""Whatever is written, a plan comes out or every fault has a sentence and a place; nothing else happens."""

from typing import Any

import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from ivypy.master.plan.describe import describe
from ivypy.master.plan.load import read
from ivypy.master.plan.places import PlanFaults

WORDS = st.sampled_from(
    "host local h1 all=all host=h1 host={h1,h2} max 50% 50% of step a 5s 8KiB 8k 0 -1 1e9 yes true /data/f ${x} ${ $${ "
    "sequential a a+b [1-2] {} > * 0%..50% not none".split(" ")
) | st.text(max_size=5)
KEYS = st.sampled_from(
    "name parameters hosts ssh luns attributes destroy workloads rollups defaults steps go edit rollup set loop "
    "measure time warmup subinterval select paths files create path size count by match quantity iops total_iops "
    "blocksize fraction_read iosequencer range x".split()
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    WORDS | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS | WORDS, inner, max_size=4),
    max_leaves=12,
)
STEPS = st.lists(st.dictionaries(st.sampled_from(["go", "edit"]), VALUES, min_size=1, max_size=1), max_size=3)
PLANS = st.builds(lambda plan, steps: plan | {"steps": steps}, st.dictionaries(KEYS, VALUES, max_size=6), STEPS)


def judged(text: str) -> None:
    try:
        plan = read(text, "p.yaml")
    except PlanFaults as error:
        lines = text.count("\n") + 1
        assert error.faults
        assert all(fault.text and 1 <= fault.place.line <= lines and fault.place.column >= 1 for fault in error.faults)
    else:
        assert describe(plan)


@given(PLANS)
@example({"name": "\x85", "parameters": "\x85", "steps": []})
def test_any_content_is_judged(content: dict[str, Any]) -> None:
    judged(yaml.safe_dump(content, allow_unicode=True, sort_keys=False))


@given(st.text(st.sampled_from("abn:-,[]{}&*!|>'\"%@#$?~ \n\t\u00e9"), max_size=60))
def test_any_text_is_judged(text: str) -> None:
    judged(text)
