"""An ivyscript becomes a plan with the same steps, or says what differs."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from ivypy.master.cli.commands import cli
from ivypy.master.errors import PlanError
from ivypy.master.imports.description import Description, Edit, Run
from ivypy.master.imports.formats import tool_of
from ivypy.master.imports.ivyscript import read_ivyscript
from ivypy.master.imports.ivyscript_options import OF_STEPS, OF_WORKLOADS
from ivypy.master.imports.to_plan import to_plan
from ivypy.master.plan.load import read
from ivypy.master.plan.model import Plan
from ivypy.protocol.parameters import MAX, Iosequencer
from tests.support.real_runs import ROOT

HOSTS = '[Hosts] "h1" [Select] { vendor : HITACHI };\n'
WORKLOAD = '[CreateWorkload] "w" [parameters] "blocksize=4KiB, maxTags=8, IOPS=max";\n'
GO = '[Go!] "stepname=go";\n'


def description(text: str) -> Description:
    return read_ivyscript(text, "x.ivyscript")


def plan_of(text: str) -> Plan:
    plan = to_plan(description(text), "ivypy import x.ivyscript")
    return read(plan.replace("# destroy: true", "destroy: true"), "plan.yaml")


def keys_of(go: str) -> dict[str, str]:
    """What a step of these parameters has."""
    (run,) = (one for one in description(f'{HOSTS}{WORKLOAD}[Go!] "{go}";').actions if isinstance(one, Run))
    return dict(run.keys)


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ("", {"blocksize": 8192, "maxtags": 1, "iops": 1.0, "fraction_read": 1.0}),
        ("blocksize=16KiB, maxTags=32, IOPS=max", {"blocksize": 16384, "maxtags": 32, "iops": MAX}),
        ("BlockSize = 512, max_tags = 4, iops = 12.5", {"blocksize": 512, "maxtags": 4, "iops": 12.5}),
        ("fractionRead=70%", {"fraction_read": 0.7}),
        ("fraction_read=0.25 IOPS=3", {"fraction_read": 0.25, "iops": 3.0}),
        ("IOPS=pause", {"iops": 0.0}),
    ],
)
def test_parameters_of_a_workload(parameters: str, expected: dict[str, object]) -> None:
    plan = plan_of(f'{HOSTS}[CreateWorkload] "w" [parameters] "{parameters}";{GO}')
    found = plan.workloads[0].parameters
    assert {name: getattr(found, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("said", "sequencer"),
    [
        ("random_steady", Iosequencer.RANDOM_STEADY), ("Random_Independent", Iosequencer.RANDOM_INDEPENDENT),
        ("sequential", Iosequencer.SEQUENTIAL),
    ],
)  # fmt: skip
def test_iosequencers(said: str, sequencer: Iosequencer) -> None:
    plan = plan_of(f'{HOSTS}[CreateWorkload] "w" [iosequencer] "{said}";{GO}')
    assert plan.workloads[0].parameters.iosequencer is sequencer


@pytest.mark.parametrize(
    ("parameters", "span"),
    [
        ("RangeStart=0, RangeEnd=1", None),
        ("RangeStart=0.25", ("25%", "100%")),
        ("VolumeCoverageFractionStart=10%, VolumeCoverageFractionEnd=0.5", ("10%", "50%")),
        ("RangeStart=1GiB, RangeEnd=2TB", ("1GiB", "1953125000KiB")),
    ],
)
def test_ranges(parameters: str, span: tuple[str, str] | None) -> None:
    (stream,) = description(f'{HOSTS}[CreateWorkload] "w" [parameters] "{parameters}";{GO}').streams
    assert stream.span == span


def test_a_template_holds_for_later_workloads_of_its_type() -> None:
    template = '[SetIosequencerTemplate] "random_steady" [parameters] "blocksize=64KiB, maxTags=5";'
    text = HOSTS + WORKLOAD.replace('"w"', '"before"') + template + '[CreateWorkload] "after";' + GO
    assert [(s.name, s.blocksize, s.depth) for s in description(text).streams] == [
        ("before", 4096, 8),
        ("after", 65536, 5),
    ]


@pytest.mark.parametrize(
    ("said", "select"),
    [
        ('{ "serial_number":"83011441" }', (("serial", ("83011441",)),)),
        ("{ vendor : HITACHI, port : [ 1A, 2A ] }", (("vendor", ("HITACHI",)), ("port", ("1A", "2A")))),
        ('{ LDEV : "00:00-00:1F", "Product" : "OPEN-V" }', (("ldev", ("00:00-00:1F",)), ("model", ("OPEN-V",)))),
        ("{ vendor : HP, host : cb[1-4] }", (("vendor", ("HP",)), ("host", ("cb[1-4]",)))),
        ('{ host : [ "cb[1-4]", cb[6-7], cb9 ] }', (("host", ("cb[1-4]", "cb[6-7]", "cb9")),)),
        ('"{ vendor : HP }"', (("vendor", ("HP",)),)),
    ],
)
def test_select(said: str, select: tuple[tuple[str, tuple[str, ...]], ...]) -> None:
    assert description(f'[Hosts] "h1" [Select] {said};{WORKLOAD}{GO}').select == select


def test_attributes_that_only_the_array_knows_select_nothing_until_they_are_given() -> None:
    text = to_plan(description(f'[Hosts] "h1" [Select] {{ LDEV : "00:01" }};{WORKLOAD}{GO}'), "ivypy import")
    assert "{ match: { serial: none }, set: { ldev: none } }" in text
    assert read(text, "plan.yaml").steps


@pytest.mark.parametrize(
    ("go", "keys"),
    [
        ("", {"subinterval": "5s", "warmup": "5s", "measure": "1m"}),
        ("subinterval_seconds=3, measure_seconds=1:30", {"subinterval": "3s", "warmup": "3s", "measure": "1m30s"}),
        ("warmup_seconds=0, cooldown_seconds=01:00:00", {"warmup": "0s", "cooldown": "1h"}),
        (
            "measure=IOPS, accuracy_plus_minus=1%",
            {
                "measure": "{ metric: overall_iops, rollup: all, accuracy: 1%, confidence: 95%, min: 1m, "
                "timeout: 15m }",
            },
        ),
        (
            "measure=on, category=read, accumulator_type=service_time, focus_rollup=host, measure_seconds=30",
            {
                "measure": "{ metric: read_service_us_mean, rollup: host, accuracy: 5%, confidence: 95%, min: 30s, "
                "timeout: 15m }",
            },
        ),
        ("IOPS_curve=(10%, 0.5)", {"iops_curve": "[ 10%, 50% ]"}),
        (
            "dfc=IOPS_staircase, starting_IOPS=100, ending_IOPS=1000, steps=10",
            {"staircase": "{ start: 100, end: 1000, steps: 10 }"},
        ),
        ("dfc=IOPS_staircase, starting_IOPS=100, step=+0.1", {"staircase": "{ start: 100, step: 10% }"}),
        ("dfc=IOPS_staircase, starting_IOPS=100, step=50%", {"staircase": "{ start: 100, step: 0.5 }"}),
        (
            "dfc=IOPS_staircase, starting_IOPS=100, step=50, steps=4",
            {"staircase": "{ start: 100, end: 250, step: 50 }"},
        ),
        (
            "dfc=pid, measure=service_time_seconds, target_value=0.002, low_IOPS=10, low_target=0.0005, high_IOPS=900,"
            " high_target=0.03",
            {
                "control": "{ pid: { metric: overall_service_us_mean, target: 2ms, rollup: all, low_iops: 10, "
                "low_target: 500us, high_iops: 900, high_target: 30ms } }",
            },
        ),
    ],
)
def test_parameters_of_a_step(go: str, keys: dict[str, str]) -> None:
    found = keys_of(go)
    assert {key: found.get(key) for key in keys} == keys
    assert plan_of(f'{HOSTS}{WORKLOAD}[Go!] "{go}";').steps


@pytest.mark.parametrize(
    ("script", "actions"),
    [
        ('[EditRollup] "all=all" [parameters] "IOPS=5";', [Edit("all=all", (("iops", "5"),))]),
        ('[EditRollup] "" [parameters] "total_IOPS=5";', [Edit("all=all", (("total_iops", "5"),))]),
        (
            '[EditRollup] "serial_number + Port = { 410116+1A, 410116+2A }" [parameters] "maxTags=3";',
            [Edit("serial+port={410116+1A,410116+2A}", (("maxtags", "3"),))],
        ),
        ('[EditRollup] "workload={w}" [parameters] "IOPS=max";', [Edit("all=all", (("iops", "max"),))]),
    ],
)
def test_edits(script: str, actions: list[Edit]) -> None:
    one = description(HOSTS + WORKLOAD + script + GO)
    assert [action for action in one.actions if isinstance(action, Edit)] == actions
    assert plan_of(HOSTS + WORKLOAD + script + GO).steps


def test_a_loop_of_a_step() -> None:
    runs = description(f'{HOSTS}{WORKLOAD}[Go!] "blocksize=(4KiB, 8KiB), maxTags=(1,8)";').actions
    assert [run.loop for run in runs if isinstance(run, Run)] == [
        (("blocksize", ("4KiB", "8KiB")), ("maxtags", ("1", "8")))
    ]


def test_a_loop_that_writes_needs_consent() -> None:
    text = to_plan(description(f'{HOSTS}{WORKLOAD}[Go!] "fractionRead=(100%, 50%, 100%)";'), "ivypy import")
    assert "# destroy: true" in text


def test_the_last_value_of_a_loop_stays_in_force() -> None:
    actions = description(f'{HOSTS}{WORKLOAD}[Go!] "maxTags=(1,8,32)";{GO}').actions
    assert Edit("all=all", (("maxtags", "32"),)) in actions


def test_workloads_that_are_deleted_or_created_later_have_no_load() -> None:
    """A plan has all of them from the start to the end."""
    second = '[CreateWorkload] "late" [parameters] "blocksize=4KiB, IOPS=7";'
    edit = '[EditRollup] "host=h1" [parameters] "IOPS=3";'
    one = description(f'{HOSTS}{WORKLOAD}{edit}{GO}{second}[DeleteWorkload] "w";[Go!] "IOPS_curve=(50%)";')
    assert [stream.iops for stream in one.streams] == ["max", "0"]
    edits = [action for action in one.actions if isinstance(action, Edit)]
    assert edits == [
        Edit("host={h1}", (("iops", "3"),)),
        Edit("workload={late}", (("iops", "0"),)),
        Edit("workload={late}", (("iops", "7"),)),
        Edit("workload={w}", (("iops", "0"),)),
    ]
    assert [dropped.what for dropped in one.dropped] == ["a list of loads"] and one.dropped[0].matters


@pytest.mark.parametrize(
    ("between", "dropped"),
    [
        ("", ["dfc"]),
        ('[EditRollup] "all=all" [parameters] "maxTags=2";', ["dfc"]),
        ('[EditRollup] "all=all" [parameters] "IOPS=2";', []),
    ],
)
def test_the_load_that_a_staircase_leaves_in_force_is_named(between: str, dropped: list[str]) -> None:
    stairs = '[Go!] "stepname=a, dfc=IOPS_staircase, starting_IOPS=100, step=100, ending_IOPS=500";'
    one = description(f'{HOSTS}{WORKLOAD}{stairs}{between}[Go!] "stepname=b";')
    assert [found.what for found in one.dropped if found.matters] == dropped
    assert not description(f"{HOSTS}{WORKLOAD}{stairs}").dropped


def test_compound_rollups_follow_the_names_of_the_plan() -> None:
    two = "".join(
        f'[CreateWorkload] "a b" [select] {{ port : {port} }} [parameters] "blocksize=4KiB";' for port in ("1A", "2A")
    )
    one = description(f'{HOSTS}{two}[EditRollup] "workload+host = {{ a b+h1 }}" [parameters] "maxTags=3";{GO}')
    assert Edit("workload+host={a_b+h1,a_b-2+h1}", (("maxtags", "3"),)) in one.actions


def test_a_workload_has_its_name_once_on_its_luns() -> None:
    with pytest.raises(PlanError, match=r"x.ivyscript:3: \[CreateWorkload\] w: its LUNs have a workload of this name"):
        description(HOSTS + WORKLOAD + WORKLOAD + GO)


def test_a_workloads_own_range_counts_by_either_name() -> None:
    template = '[SetIosequencerTemplate] "random_steady" [parameters] "RangeStart=50%";'
    own = '[CreateWorkload] "w" [parameters] "blocksize=4KiB, VolumeCoverageFractionStart=0";'
    (stream,) = description(f"{HOSTS}{template}{own}{GO}").streams
    assert stream.span is None


def test_a_name_may_be_used_again_after_its_workload_was_deleted() -> None:
    again = description(f'{HOSTS}{WORKLOAD}{GO}[DeleteWorkload] "*";{WORKLOAD}[EditRollup] "workload={{w}}"'
                        f' [parameters] "maxTags=2";[Go!] "stepname=two";')  # fmt: skip
    assert [stream.name for stream in again.streams] == ["w", "w-2"]
    assert Edit("workload={w-2}", (("maxtags", "2"),)) in again.actions


def test_a_name_on_several_luns_is_several_workloads_that_are_edited_and_deleted_together() -> None:
    text = HOSTS + "".join(
        f'[CreateWorkload] "w" [select] {{ port : {port} }} [parameters] "blocksize=4KiB";' for port in ("1A", "2A")
    )
    one = description(f'{text}{WORKLOAD.replace("w", "v", 1)}[EditRollup] "workload={{w}}" [parameters] "IOPS=9";{GO}'
                      f'[DeleteWorkload] " w ";{GO}')  # fmt: skip
    assert [action for action in one.actions if isinstance(action, Edit)] == [
        Edit("workload={w,w-2}", (("iops", "9"),)),
        Edit("workload={w,w-2}", (("iops", "0"),)),
    ]


def test_an_edit_holds_for_the_workloads_that_there_are() -> None:
    """In the plan the edit of a host reaches a workload, too, that the script creates after it."""
    late = '[CreateWorkload] "late" [parameters] "blocksize=4KiB, IOPS=7, maxTags=9";'
    for edited, own in (("IOPS=3", (("iops", "7"),)), ("maxTags=3", (("iops", "7"), ("maxtags", "9")))):
        actions = description(f'{HOSTS}{WORKLOAD}[EditRollup] "host=h1" [parameters] "{edited}";{late}{GO}').actions
        *_, last, _ = actions
        assert last == Edit("workload={late}", own)


def test_the_last_load_of_a_curve_stays_in_force() -> None:
    text = f'{HOSTS}{WORKLOAD}[Go!] "stepname=c, IOPS_curve=(10%, 50%)";{GO}'
    assert Edit("all=all", (("total_iops", "50% of step c+total_iops=max"),)) in description(text).actions
    assert [step.name for step in plan_of(text).steps][-2:] == ["c+total_iops=50%", "go"]


@pytest.mark.parametrize(("more", "dropped"), [("", []), (GO, ["IOPS_curve in a loop"])])
def test_the_last_load_of_a_curve_in_a_loop_is_dropped_where_a_step_follows(more: str, dropped: list[str]) -> None:
    one = description(f'{HOSTS}{WORKLOAD}[Go!] "IOPS_curve=(10%), blocksize=(4KiB,8KiB)";{more}')
    assert [lost.what for lost in one.dropped if lost.matters] == dropped


def test_commas_around_hosts_are_no_hosts() -> None:
    assert description(f'[Hosts] " h1, h2, " [Select] {{ vendor : HP }};{WORKLOAD}{GO}').hosts == ("h1", "h2")


@pytest.mark.parametrize("droop", [".25", "0.25", "25%", '"25%"'])
def test_numbers_with_and_without_quotes(droop: str) -> None:
    (rollup,) = (
        one for one in description(f'{HOSTS}{WORKLOAD}[CreateRollup] "host" [MaxDroop] {droop};{GO}').rollups
        if one.by == "host"
    )  # fmt: skip
    assert rollup.max_droop == "25%"


@pytest.mark.parametrize("name", sorted({*OF_WORKLOADS}))
def test_parameters_of_workloads_without_a_counterpart_are_named(name: str) -> None:
    (dropped,) = description(f'{HOSTS}[CreateWorkload] "w" [parameters] "blocksize=4KiB, {name}=7";{GO}').dropped
    assert (dropped.where, dropped.what) == ("x.ivyscript:2", f"{name}=7")


@pytest.mark.parametrize("name", sorted({*OF_STEPS}))
def test_parameters_of_steps_without_a_counterpart_are_named(name: str) -> None:
    (dropped,) = description(f'{HOSTS}{WORKLOAD}[Go!] "{name}=7";').dropped
    assert (dropped.where, dropped.what) == ("x.ivyscript:3", f"{name}=7")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("int x = 1;", "x.ivyscript:1: int x = 1;: only statements are imported"),
        (HOSTS + "\nif (last) { }", "x.ivyscript:3: if (last) { }: only statements are imported"),
        ('[Hosts] "a" + name;', "x.ivyscript:1: + name;: only statements are imported"),
        ('[Goo] "x";', "x.ivyscript:1: [Goo]: no statement of ivy; did you mean 'Go!'?"),
        ('[Hosts] "a', 'x.ivyscript:1: "a: a text without its closing "'),
        ('"x";', 'x.ivyscript:1: "x": a statement begins with a word in brackets'),
        ('[Hosts] "a" [parameters] "x=1";', "[parameters]: not part of [Hosts]; a `;` may be missing"),
        (HOSTS + '[CreateWorkload] "w" [parameters] "IOPSS=1";' + GO, "IOPSS: not a parameter of ivy here; did you"),
        (HOSTS + '[CreateWorkload] "w" [parameters] "IOPS=ten";' + GO, "x.ivyscript:2: IOPS=ten: "),
        (HOSTS + '[CreateWorkload] "w" [iosequencer] "zipf";' + GO, "[iosequencer] zipf: random_steady, random_indep"),
        (HOSTS + WORKLOAD + '[Go!] "maxTags=4";', "maxTags=4: a loop of [Go!] needs parentheses"),
        (HOSTS + WORKLOAD + '[Go!] "dfc=pid, target_value=1";', "dfc=pid: lowiops, lowtarget, highiops"),
        (HOSTS + WORKLOAD + '[DeleteWorkload] "v";' + GO, "[DeleteWorkload] v: no such workload"),
        (HOSTS + WORKLOAD, "x.ivyscript: no [Go!]: it starts no load"),
        (WORKLOAD + GO, "x.ivyscript:1: [Hosts]: one statement with the names of the hosts is needed"),
        (HOSTS + GO, "x.ivyscript:2: [Go!]: there is no workload here"),
        (HOSTS + '[EditRollup] "" [parameters] "IOPS=1";' + WORKLOAD + GO, "x.ivyscript:2: [EditRollup]: there is no"),
        (HOSTS + WORKLOAD + '[EditRollup] "workload={v}" [parameters] "IOPS=1";' + GO, "[EditRollup] v: no such work"),
        (HOSTS + '[SetIosequencerTemplate] "random" [parameters] "maxTags=2";' + WORKLOAD + GO, "] random: random_st"),
        (HOSTS + WORKLOAD + '[CreateRollup] "host+";' + GO, "x.ivyscript:3: host+: an attribute is missing"),
        (HOSTS + WORKLOAD + '[CreateRollup] "";' + GO, "x.ivyscript:3: rollup: an attribute is missing"),
        (HOSTS + WORKLOAD + '[EditRollup] "host+={a}" [parameters] "IOPS=1";' + GO, "host+: an attribute is missing"),
        (HOSTS + WORKLOAD + '[Go!] "measure=on, focus_rollup=+host";', "+host: an attribute is missing"),
        (HOSTS + WORKLOAD + '[CreateRollup] "host" [quantity] 2.5;' + GO, "quantity=2.5: not a whole number"),
        (HOSTS + WORKLOAD + '[Go!] "maxTags=()";', "maxTags=(): a loop of [Go!] needs values"),
        (HOSTS + WORKLOAD + '[Go!] "IOPS_curve=()";', "IOPS_curve: it needs shares of the maximum"),
        (HOSTS + WORKLOAD + '[Go!] "IOPS=(inf)";', "IOPS=inf: not a number"),
        (HOSTS + WORKLOAD + '[Go!] "IOPS=(1e99)";', "IOPS=1e99: more than 1e+12"),
        (HOSTS + WORKLOAD + f'[Go!] "blocksize=({"9" * 400}.5TB)";', "TB: not a size"),
        (HOSTS + WORKLOAD + f'[Go!] "measure_seconds={"9" * 40}";', "9: more than 1e+12"),
        (HOSTS + WORKLOAD + '[Go!] "measure=on, category=reads";', "category=reads: overall, read, write"),
        (HOSTS + WORKLOAD + '[Go!] "dfc=IOPS_staircase, starting_IOPS={a, step=1";', "starting_IOPS={a: not a number"),
        (HOSTS + WORKLOAD + '[Go!] "dfc=IOPS_staircase, starting_IOPS=1";', "starting_IOPS, and step or steps are ne"),
        (HOSTS.replace("HITACHI", "HP, vendor : HITACHI") + WORKLOAD + GO, "vendor : HITACHI: the attribute is there"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_refuses_the_script_with_its_line(text: str, fault: str) -> None:
    with pytest.raises(PlanError) as refused:
        description(text)
    assert fault in str(refused.value)


@pytest.mark.parametrize("written", ["skew_weight", "Skew_Weight", "skewweight"])
def test_parameters_are_named_as_the_script_writes_them(written: str) -> None:
    (dropped,) = description(f"{HOSTS}{WORKLOAD.replace('maxTags', written)}{GO}").dropped
    assert dropped.what == f"{written}=8"


PARAMETERS = {
    "blocksize": st.sampled_from(["512", "4KiB", "1MiB"]),
    "maxTags": st.integers(1, 64).map(str),
    "IOPS": st.one_of(st.just("max"), st.integers(0, 5000).map(str)),
    "fractionRead": st.sampled_from(["0", "0.5", "70%", "1.0"]),
}
WORKLOADS = st.fixed_dictionaries({}, optional=PARAMETERS)
GOS = st.fixed_dictionaries(
    {},
    optional={
        "measure_seconds": st.integers(10, 300).map(str),
        "warmup_seconds": st.integers(5, 60).map(str),
        "measure": st.sampled_from(["IOPS", "MB_per_second", "service_time_seconds", "off"]),
        "maxTags": st.lists(st.integers(1, 64), min_size=1, max_size=3, unique=True).map(
            lambda tags: f"({str(tags)[1:-1]})"
        ),
    },
)  # fmt: skip


@given(st.lists(WORKLOADS, min_size=1, max_size=3), st.lists(GOS, min_size=1, max_size=3))
def test_every_script_of_known_statements_is_a_plan_with_its_steps(
    workloads: list[dict[str, str]], gos: list[dict[str, str]]
) -> None:
    def told(given: dict[str, str]) -> str:
        return ", ".join(f"{name}={value}" for name, value in given.items())

    text = HOSTS
    text += "".join(f'[CreateWorkload] "w{n}" [parameters] "{told(one)}";' for n, one in enumerate(workloads))
    text += "".join(f'[Go!] "{told(one)}";' for one in gos)
    plan = plan_of(text)
    assert len(plan.workloads) == len(workloads)
    assert len(plan.steps) == sum(len(one["maxTags"].split(",")) if "maxTags" in one else 1 for one in gos)


@pytest.mark.parametrize(
    ("text", "tool"),
    [
        (HOSTS, "ivyscript"), ("// a\n[createworkload] \"w\";", "ivyscript"), ("[Go];", "ivyscript"),
        ("[Go!] p;", "ivyscript"),
        ('[hosts]\n  "h1"', "ivyscript"), ("[Hosts] list [Select] { a : b };", "ivyscript"),
        ("[go]\n; c\nrw=read", "fio"),
        ("# as [hosts] (below)\n[job]\nrw=read\n", "fio"),
        ("[job]\nrw=read\n", "fio"), ("; c\n[global] ; all\nbs=4k", "fio"), ("[hosts]\nrw=read\n", "fio"),
        ("* c\nsd=sd1,lun=/dev/sdb\n", "vdbench"), ("include=luns.parm\n", "vdbench"), ("fsd=a\n[x]\n", "vdbench"),
        ("[job]\nsd=1\n", "fio"),
    ],
)  # fmt: skip
def test_the_format_is_told_from_the_content(text: str, tool: str) -> None:
    assert tool_of(text, "x") == tool


@pytest.mark.parametrize(("text", "says"), [("name: x\nluns: {}\n", "a plan already: ivypy run x"), ("", "neither")])
def test_other_contents_are_refused(text: str, says: str) -> None:
    with pytest.raises(PlanError, match=says):
        tool_of(text, "x")


def test_the_page_shows_what_the_import_makes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "coming-from-ivy.md").read_text()
    (source,), (plan,), (dropped,) = (
        re.findall(rf"```{kind}\n(.*?)```", page, re.DOTALL) for kind in ("c", "yaml", "text")
    )
    monkeypatch.chdir(tmp_path)
    Path("test.ivyscript").write_text(source)
    done = CliRunner().invoke(cli, ["import", "test.ivyscript"], standalone_mode=False)
    assert (done.stdout, done.stderr, done.return_value) == (plan, dropped, 6)
    assert [step.name for step in read(plan.replace("# destroy: true", "destroy: true"), "plan.yaml").steps] == [
        "both",
        "accurate",
    ]


def test_what_makes_no_plan_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    script, output = tmp_path / "x.ivyscript", tmp_path / "plan.yaml"
    script.write_text(f'{HOSTS}[CreateWorkload] "w" [parameters] "blocksize=4KiB, maxTags=0";{GO}')
    done = CliRunner().invoke(cli, ["import", str(script), "-o", str(output)], standalone_mode=False)
    assert isinstance(done.exception, PlanError) and not output.exists()
    assert "x.ivyscript: what it asks for makes no plan\nthe plan:" in str(done.exception)


@pytest.mark.parametrize("odd", ["\x1b[31m", "\x7f", "\x85", "\u2028"])
def test_no_control_character_reaches_the_plan_or_the_terminal(odd: str) -> None:
    text = f'[Hosts] "h1" [Select] {{ vendor : "A{odd}B" }};{WORKLOAD}[Go!] "stepname=go, maxwp=1{odd}";'
    one = description(text)
    plan = to_plan(one, f"ivypy import x{odd}.ivyscript")
    assert all(char.isprintable() for char in plan.replace("\n", ""))
    assert all(char.isprintable() for char in str(one.dropped[0]))
    assert read(plan.replace("# destroy: true", "destroy: true"), "plan.yaml").steps
