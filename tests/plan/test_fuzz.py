"""Whatever is written, a plan comes out or every fault has a sentence and a place; nothing else happens."""

import re
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from ivypy.master.plan.describe import describe
from ivypy.master.plan.load import read
from ivypy.master.plan.read.yaml_positions import PlanFaults

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


def checked(text: str) -> None:
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
def test_any_content_is_checked(content: dict[str, Any]) -> None:
    checked(yaml.safe_dump(content, allow_unicode=True, sort_keys=False))


@given(st.text(st.sampled_from("abn:-,[]{}&*!|>'\"%@#$?~ \n\t\u00e9"), max_size=60))
def test_any_text_is_checked(text: str) -> None:
    checked(text)


CONFIGS = Path(__file__).parents[2] / "configs"
TEXTS = [path.read_text() for path in sorted(CONFIGS.rglob("*.yaml"))]
NINES = "9" * 400
EXTREMES = [
    NINES, f"{NINES}s", f"{NINES}d", f"{NINES}%", f"{NINES}KiB", f"{NINES}:00", f"[1-{NINES}]", f"${{{NINES}}}",
    "9" * 5000, "99999999999d", "11y", "1e999", "1e-400s", "1e99999999999999999999", "1ns", "nan", "inf",
    "-1", "0", "0s", "[" * 300, "- " * 300, "? " * 300, "\ud800", "\x1b[31m", "\u202e", "*" * 500, "&a [*a]",
]  # fmt: skip
VALUE = re.compile(r"(?<=[:\[ ])[\w.%]+")


def altered(text: str, random: Random) -> str:
    """A plan with an extreme value in the place of another, or anywhere; or with something missing, or twice."""
    way, at = random.randrange(4), random.randrange(len(text) + 1)
    if way == 0 and (found := list(VALUE.finditer(text))):
        value = random.choice(found)
        return text[: value.start()] + random.choice(EXTREMES) + text[value.end() :]
    if way == 1:
        return text[:at] + random.choice(EXTREMES) + text[at:]
    if way == 2:
        return text[:at] + text[at + random.randrange(1, 30) :]
    lines = text.split("\n")
    lines.insert(random.randrange(len(lines)), random.choice(lines))
    return "\n".join(lines)


@pytest.mark.parametrize("seed", range(8))
def test_whatever_becomes_of_a_real_plan_is_checked(seed: int) -> None:
    random = Random(seed)
    for _ in range(40):
        text = random.choice(TEXTS)
        for _ in range(random.randint(1, 3)):
            text = altered(text, random)
        checked(text)


@pytest.mark.parametrize("value", EXTREMES)
@pytest.mark.parametrize("key", ["measure", "warmup", "subinterval", "name", "find", "steady", "iops"])
def test_no_value_of_a_step_is_too_extreme_to_be_checked(key: str, value: str) -> None:
    head = "name: x\nhosts: [local]\nluns: {files: /x}\nworkloads: {w: {}}\nsteps:\n  - go: { name: y, "
    for text in (f"{head}{key}: {value} }}\n", f"{head}{key}: {{ target: {value}, time: {value} }} }}\n"):
        checked(text)


@pytest.mark.slow
def test_nesting_is_counted_before_it_can_end_the_process() -> None:
    with pytest.raises(PlanFaults) as refused:
        read("a: 1\nb: " + "[" * 200_000, "p.yaml")
    (fault,) = refused.value.faults
    assert fault.place.line == 2 and "more than 100 values" in fault.text  # the column: where the parser gave up


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (f"{NINES}d", "'99999999999999999999'... is not a duration"),
        ("99999999999d", "'99999999999d' is longer than 10 years"),
        ("1e99999999999999999999s", "is not a duration"),
    ],
)
def test_a_duration_beyond_all_bounds_is_reported_with_its_place(value: str, said: str) -> None:
    head = "name: x\nhosts: [local]\nluns: {files: /x}\nworkloads: {w: {}}\n"
    text = f"{head}steps:\n  - go:\n      measure: {value}\n"
    with pytest.raises(PlanFaults) as refused:
        read(text, "p.yaml")
    (fault,) = [fault for fault in refused.value.faults if said in fault.text]
    assert (fault.place.line, fault.place.column) == (7, 16)
