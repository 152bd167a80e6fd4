"""YAML as a plan reads it: by what a key needs, never by what YAML 1.1 would guess."""

from dataclasses import fields

import pytest

from ivypy.master.plan.load import read
from ivypy.master.plan.model import OnIoError, Plan
from ivypy.master.plan.read.schema import EngineDoc
from ivypy.master.plan.read.yaml_positions import PlanFaults
from ivypy.protocol.parameters import Iosequencer
from ivypy.protocol.payload import EngineOptions, Spin
from tests.support.plan import completed


def plan(fragment: str) -> Plan:
    return read(completed(fragment), "p.yaml")


# What stands behind `name:`, and the text that it is. The YAML 1.1 guess is in the comment.
TEXTS = [
    ("yes", "yes"),  # True
    ("on", "on"),  # True
    ("null", "null"),  # None
    ("1:30", "1:30"),  # 90
    ("12:30:45", "12:30:45"),  # 45045
    ("010", "010"),  # 8
    ("0x1F", "0x1F"),  # 31
    ("1e3", "1e3"),
    ("1_000", "1_000"),  # 1000
    ("2026-11-21", "2026-11-21"),  # a date
    (".inf", None),  # infinity; here it begins with a dot, which a plan's name may not
    ("'it''s'", "it's"),
    ('"tab\\tle"', None),  # not one line of printable text
    ("oltp # a comment", "oltp"),
    ("oltp#1", "oltp#1"),
    ("${x}", "from a parameter"),
]


@pytest.mark.parametrize("written, text", TEXTS)
def test_text_stays_text(written: str, text: str | None) -> None:
    fragment = f"parameters: {{ x: from a parameter }}\nname: {written}"
    if text is None:
        with pytest.raises(PlanFaults, match="name"):
            plan(fragment)
    else:
        assert plan(fragment).name == text


@pytest.mark.parametrize(
    "written, value",
    [("1000", 1000.0), ("1e3", 1000.0), ("'1000'", 1000.0), ("0.5", 0.5), ("max", "max"), ("1k", 1000.0)],
)
def test_a_number_is_one_whether_quoted_or_not(written: str, value: object) -> None:
    assert plan(f"workloads: {{ oltp: {{ iops: {written} }} }}").workloads[0].parameters.iops == value


def test_enums_and_flags_have_their_types() -> None:
    made = plan(
        "destroy: true\non_io_error: stop\nengine: { backend: null }\nworkloads: { a: { iosequencer: sequential } }"
    )
    assert made.destroy is True
    assert made.on_io_error is OnIoError.STOP
    assert made.engine.backend == "null"
    assert made.workloads[0].parameters.iosequencer is Iosequencer.SEQUENTIAL


def test_an_alias_stands_for_what_its_anchor_holds() -> None:
    made = plan("workloads: { a: &same { blocksize: 8KiB }, b: *same }")
    assert [workload.parameters.blocksize for workload in made.workloads] == [8192, 8192]


def test_line_ends_byte_order_mark_and_tabs_between_values_do_not_matter() -> None:
    assert plan("name:\toltp\r\nlease: 12s\r").lease_s == 12


@pytest.mark.parametrize(
    "long, brief",
    [
        ("hosts: [ { name: db1 }, { name: local } ]", "hosts: [ db1, local ]"),
        ("hosts: [ db1, db2, db7, local ]", 'hosts: "db[1-2,7], local"'),
        ("hosts: [ db1 ]", "hosts: db1"),
        ("rollups: [ { by: [host] }, { by: [serial, vendor] } ]", "rollups: [ host, serial+vendor ]"),
        ("steps: [ { go: { name: a, measure: { time: 60s } } } ]", "steps: [ { go: { name: a, measure: 60s } } ]"),
        ("steps: [ { go: { name: a } } ]", "steps: [ go: a ]"),
        ("luns: { create: [ { path: /f, size: 1MiB } ] }", "luns: { create: { path: /f, size: 1MiB } }"),
        ("luns: { files: [ /data/* ] }", "luns: { files: /data/* }"),
        ("workloads: { a: { range: [25%, 50%] } }", "workloads: { a: { range: 25%..50% } }"),
        (
            "steps: [ { go: { name: a, loop: { range: [ [0%, 50%] ] } } } ]",
            "steps: [ { go: { name: a, loop: { range: [0%, 50%] } } } ]",
        ),
        (
            "steps: [ { go: { name: a, loop: { maxtags: [ 4 ] } } } ]",
            "steps: [ { go: { name: a, loop: { maxtags: 4 } } } ]",
        ),
    ],
)
def test_a_short_form_means_its_long_form(long: str, brief: str) -> None:
    def content(fragment: str) -> tuple[object, ...]:
        made = plan(fragment)
        rollups = [(r.by, r.quantity, r.csv) for r in made.rollups]
        steps = [(s.name, s.measure_s, s.loop) for s in made.steps]
        workloads = [(w.name, w.parameters) for w in made.workloads]
        return made.hosts, rollups, steps, workloads, made.luns.files, made.luns.create

    assert content(long) == content(brief)


@pytest.mark.parametrize(
    ("written", "cores"),
    [
        ("3", (3,)),
        ("0-3,8", (0, 1, 2, 3, 8)),
        ("8, 0-1", (8, 0, 1)),
        ("[ 0, 4-5 ]", (0, 4, 5)),
        ("[ 7 ]", (7,)),
    ],
)
def test_cpus_are_read(written: str, cores: tuple[int, ...]) -> None:
    assert plan(f"engine:\n  cpus: {written}").engine.cpus == cores
    assert plan("engine: { threads: 1 }").engine.cpus == ()


def test_what_the_engine_may_be_told_is_what_a_plan_may_say() -> None:
    assert EngineOptions(**dict(EngineDoc())) == EngineOptions()
    assert list(EngineDoc.model_fields) == [field.name for field in fields(EngineOptions)]


@pytest.mark.parametrize(
    ("written", "spin"),
    [
        ("threads: 1", Spin.AUTO),
        ("spin: auto", Spin.AUTO),
        ("spin: on", Spin.ON),
        ("spin: true", Spin.ON),  # as YAML 1.1 writes on, and plans of 0.1
        ("spin: off", Spin.OFF),
        ("spin: false", Spin.OFF),
    ],
)
def test_spin_is_read(written: str, spin: Spin) -> None:
    assert plan(f"engine: {{ {written} }}").engine.spin is spin


def test_paths_are_a_short_select() -> None:
    luns = plan("luns: { paths: [ /dev/sdb, '/dev/nvme[1-2]n1', '/dev/sd*' ] }").luns
    select = plan("luns: { paths: [ /dev/sdb, '/dev/nvme[1-2]n1' ] }").luns.select
    assert luns.paths == ("/dev/sdb", "/dev/nvme1n1", "/dev/nvme2n1"), "those have to be there"
    assert plan("luns: { select: { path: /dev/sdb } }").luns.paths == ()
    assert select is not None
    assert [select.matches({"path": p}) for p in ("/dev/sdb", "/dev/nvme2n1", "/dev/sda")] == [True, True, False]
