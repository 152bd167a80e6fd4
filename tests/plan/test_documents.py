"""The example plans, the schema, the reference and the description: all of them agree with what is read."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from ivypy.master.errors import PlanError
from ivypy.master.plan.describe import describe, planned_s
from ivypy.master.plan.doc_pages import plan_reference, schema
from ivypy.master.plan.load import load, read
from ivypy.master.plan.read.schema import EngineDoc
from ivypy.master.plan.read.yaml_positions import PlanFaults
from ivypy.master.plan.select.attributes import ATTRIBUTES
from ivypy.master.text.suggestions import INSTEAD, SAME, nearest
from ivypy.protocol.parameters import PARAMETERS
from tests.support.json_schema import violations
from tests.support.plan import completed

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted([*(ROOT / "configs").glob("*.yaml"), *(ROOT / "configs/snia").glob("*.yaml")])
CONFIGS = {path.relative_to(ROOT / "configs").with_suffix("").as_posix(): path for path in EXAMPLES}


@pytest.mark.parametrize("name", CONFIGS)
def test_every_example_plan_is_sound(name: str) -> None:
    plan = load(CONFIGS[name])
    assert plan.name == name.replace("/", "-")
    assert plan.path == CONFIGS[name]
    assert describe(plan).startswith(f"plan {plan.name}\nhosts\n")


@pytest.mark.parametrize("name", CONFIGS)
def test_every_example_plan_can_be_made_small(name: str) -> None:
    given = {"subinterval": "250ms", "measure": "500ms"}
    on_device = name == "device" or name.startswith("snia/")
    small = load(CONFIGS[name], given | ({} if on_device else {"size": "1MiB"}))
    assert all(step.subinterval_s == 0.25 and step.measure_s == 0.5 for step in small.steps)
    assert all(file.size == 1 << 20 for file in small.luns.create)


def test_the_first_plan_is_three_short_steps_on_a_file() -> None:
    plan = load(ROOT / "configs" / "first.yaml")
    assert len(plan.steps) == 3
    assert 45 <= planned_s(plan.steps) <= 75
    assert plan.luns.select is None
    assert [file.keep for file in plan.luns.create] == [False]


@pytest.mark.parametrize("name", CONFIGS)
def test_every_example_plan_satisfies_the_schema(name: str) -> None:
    made = schema()
    assert violations(made, yaml.safe_load(CONFIGS[name].read_text()), made) == []


@pytest.mark.parametrize(
    "text",
    [
        "steps: [ { goo: a } ]",
        "steps: [ {} ]",
        "hosts: [ { nme: a } ]",
        "workloads: { a: { blocksize: 8KX } }",
        "workloads: { a: { blocksize: [1] } }",
        "workloads: { a: { iops: fast } }",
        "destroy: maybe",
        "lease: 10",
        "rollups: { a: b }",
        "luns: { paths: [ sdb ] }",
    ],
)
def test_the_schema_refuses_what_an_editor_can_see(text: str) -> None:
    made = schema()
    assert violations(made, yaml.safe_load(text), made)


@pytest.mark.parametrize(
    "text",
    [
        "hosts: lab[1-2], local",
        "hosts: [ lab, { name: b, port: 22 } ]",
        "steps: [ { go: max }, { edit: { rollup: host, set: { iops: max } } } ]",
        "defaults: { measure: { time: 5s }, warmup: 0 }",
        "rollups: [ host, { by: [a, b] }, { by: a+b, csv: false, max_droop: 0.2 } ]",
        "workloads: { a: { iops: 50% of step x, range: 0%..50% }, b: { maxtags: '${t}' } }",
        "steps: [ { go: { name: l, loop: { maxtags: 1, range: [ [0%, 50%] ], iops: [1, max] } } } ]",
        "luns: { create: [ { path: /a, size: 5 } ], files: [ /b ], select: [ { size: '> 5', rotational: true } ] }",
    ],
)
def test_the_schema_knows_the_short_forms(text: str) -> None:
    made = schema()
    assert violations(made, yaml.safe_load(text), made) == []


def test_the_reference_names_every_parameter_attribute_and_section() -> None:
    text = plan_reference()
    for word in (*PARAMETERS, *ATTRIBUTES, "total_iops", "parameters", "steps", "loop", "destroy", "connect_timeout"):
        assert f"`{word}`" in text


@pytest.mark.parametrize(
    ("word", "why"),
    [
        ("sqpoll", "it is gone, since its kernel thread could submit I/Os after the lease had ended"),
        ("sqthread_poll", "workload threads submit I/Os themselves"),
    ],
)
def test_a_kernel_thread_that_submits_is_refused_with_what_to_use(word: str, why: str) -> None:
    with pytest.raises(PlanFaults) as caught:
        read(f"engine: {{ backend: io_uring }}\n{word}: true\nsteps: []\n", "p.yaml")
    told = [fault.text for fault in caught.value.faults if fault.place.line == 2]
    advice = "leave it out, or use 'engine: { spin: on }', which keeps workload threads awake"
    assert told == [f"unknown key {word!r} in the plan; {why}: {advice}"]


@pytest.mark.parametrize("option", list(EngineDoc.model_fields))
@pytest.mark.parametrize(
    ("text", "section"), [("{}: on\n", "the plan"), ("defaults:\n  {}: on\n", "defaults")], ids=["plan", "defaults"]
)
def test_an_option_of_the_engine_outside_its_group_is_refused_with_its_new_spelling(
    option: str, text: str, section: str
) -> None:
    with pytest.raises(PlanFaults) as caught:
        read("name: n\n" + completed(text.format(option)), "p.yaml")
    found = [(fault.place.line, fault.text) for fault in caught.value.faults]
    line = 1 + text.count("\n")
    assert found == [(line, f"unknown key {option!r} in {section}; it belongs in 'engine: {{ {option}: ... }}'")]


@pytest.mark.parametrize("word", ["ioengine", "IOengine"])
def test_fios_engine_leads_to_the_backend(word: str) -> None:
    with pytest.raises(PlanFaults) as caught:
        read(completed(f"{word}: libaio"), "p.yaml")
    assert [fault.text for fault in caught.value.faults] == [
        f"unknown key {word!r} in the plan; use 'engine: {{ backend: ... }}'"
    ]


def test_a_parameter_sets_an_option_of_the_engine() -> None:
    text = completed(
        'parameters: { backend: auto, threads: 0 }\nengine: { backend: "${backend}", threads: "${threads}" }'
    )
    given = read(text, "p.yaml", {"backend": "io_uring", "threads": "3"})
    assert (given.engine.backend, given.engine.threads) == ("io_uring", 3)
    assert read(text, "p.yaml").engine.backend == "auto"


def keys(node: Any) -> set[str]:
    """Every key that the schema knows anywhere."""
    if isinstance(node, list):
        return set().union(*(keys(item) for item in node))
    if isinstance(node, dict):
        return set(node.get("properties", {})) | set().union(set(), *(keys(item) for item in node.values()))
    return set()


def test_words_of_other_tools_lead_to_keys_that_there_are() -> None:
    known = keys(schema())
    assert set(SAME.values()) <= known
    assert all(word not in PARAMETERS for word in (*SAME, *INSTEAD))


@pytest.mark.parametrize(
    "word, known, near",
    [
        ("warmpup", ["warmup", "measure"], "warmup"),
        ("Max-Tags", ["maxtags", "max_droop"], "maxtags"),
        ("HOST", ["host", "hosts"], "host"),
        ("zzz", ["host", "hosts"], None),
        ("x", [], None),
    ],
)
def test_a_misspelt_key_suggests_the_nearest_one(word: str, known: list[str], near: str | None) -> None:
    assert nearest(word, known) == near


def test_a_description_lists_what_would_run() -> None:
    text = completed("""\
name: oltp
hosts: [ "lab[01-10]", { name: pod, command: kubectl exec -i pod -- }, local ]
ssh: { user: perf, port: 2222 }
destroy: true
luns:
  select: { vendor: HITACHI, size: ">= 100GiB" }
  files: [ /data/* ]
  create: { path: "/data/{}", size: 1GiB, count: 2, keep: true }
rollups: [ host, { by: [serial, vendor], quantity: 64, max_droop: 20%, csv: false } ]
workloads: { oltp: { blocksize: 8KiB, select: { kind: block } } }
defaults: { subinterval: 5s }
steps:
  - go: { name: max, warmup: 12s }
  - edit: { rollup: host, set: { total_iops: 50% of step max } }
  - edit: { rollup: "host={lab01,lab02}", set: { maxtags: 4 } }
  - edit: { rollup: host=lab03, set: { maxtags: 5 } }
  - go: { name: half, measure: 15m, cooldown: 5s }
""")
    assert (
        describe(read(text, "p.yaml"))
        == """\
plan oltp
hosts
  lab01: ssh as perf port 2222
  lab02: ssh as perf port 2222
  lab03: ssh as perf port 2222
  lab04: ssh as perf port 2222
  lab05: ssh as perf port 2222
  lab06: ssh as perf port 2222
  ... 5 more ...
  local: this machine
luns
  block devices with vendor: HITACHI, size: >= 100GiB (may be overwritten, given the token)
  files /data/*
  2 files made at /data/{}, 1GiB each, kept
workloads
  oltp: on LUNs with kind: block
      iosequencer random_steady, blocksize 8KiB, fraction_read 100%, maxtags 1, iops max
rollups
  all
  host
  serial+vendor: 64 instances required, droop at most 20%, no files in the steps' folders
steps
  0000 max: warmup 15s, measure 1m, subintervals of 5s
      note: warmup 12s becomes 15s: whole subintervals of 5s
      note: 12 subintervals are too few for half-widths, which need 20: a longer `measure`, or shorter subintervals
  0001 half: warmup 10s, measure 15m, cooldown 5s, subintervals of 5s
      every host: total_iops 50% of step max
      host={lab01,lab02}: maxtags 4
      host=lab03: maxtags 5
2 steps, about 16m40s in all
"""
    )


@pytest.mark.parametrize("text", ["luns: " + "[" * 400 + "]" * 400, "luns:\n  " + "- " * 400 + "x", "a: {" * 150])
def test_a_plan_that_is_nested_too_deep_is_reported_with_its_place(text: str) -> None:
    with pytest.raises(PlanError, match=r"^p\.yaml:[12]:\d+: "):
        read(text + "}" * text.count("{") + "\n", "p.yaml", {})


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r"none\.yaml: No such file or directory; a plan is a YAML file"):
        load(tmp_path / "none.yaml")
    with pytest.raises(PlanError, match="Is a directory"):
        load(tmp_path)
    (tmp_path / "latin.yaml").write_bytes(b"name: caf\xe9\n")
    with pytest.raises(PlanError, match=r"latin\.yaml: byte 9 is not UTF-8 text; save the plan as UTF-8"):
        load(tmp_path / "latin.yaml")


def test_a_plan_without_a_name_is_called_after_its_file(tmp_path: Path) -> None:
    path = tmp_path / "nightly run.yaml"
    path.write_text("\ufeff" + completed("lease: 10s"), encoding="utf-8")
    assert load(path).name == "nightly run"


RATED = """\
hosts: [{hosts}]
luns: {{ create: {{ path: "/x/{{}}", size: 1MiB, count: {count} }} }}
workloads: {{ w: {{ iops: {iops} }} }}
defaults: {{ subinterval: {subinterval}, measure: 60s }}
steps:
{edits}  - go: {go}
"""


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            {},
            "the p99 of a subinterval will be blank: it needs 1,000 I/Os, and 500 IOPS give 500; `subinterval: 2s` has",
        ),
        ({"count": 2}, None),
        ({"hosts": "a, b"}, None),
        ({"subinterval": "2s"}, None),
        ({"iops": "max"}, None),
        ({"iops": 0}, None),
        ({"edits": "  - edit: { rollup: all=all, set: { total_iops: 300 } }\n"}, "`subinterval: 4s` has enough"),
        ({"edits": "  - edit: { rollup: all=all, set: { total_iops: 1000 } }\n"}, None),
        ({"edits": "  - edit: { rollup: all=all, set: { iops: max } }\n"}, None),
        ({"go": "{ name: s, staircase: { start: 10, step: 10% } }"}, None),
    ],
)
def test_a_step_whose_p99_will_be_blank_has_a_note(changed: dict[str, Any], said: str | None) -> None:
    given = {"hosts": "a", "count": 1, "iops": 500, "subinterval": "1s", "edits": "", "go": "s"} | changed
    text = describe(read(RATED.format(**given), "rated"))
    assert said in text if said else "will be blank" not in text
