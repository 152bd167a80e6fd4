"""`${name}`: parameters, their defaults, and -D."""

import pytest

from ivypy.master.plan.load import read
from ivypy.master.plan.model import Plan
from ivypy.master.plan.read.yaml_positions import PlanFaults
from tests.support.plan import completed


def plan(fragment: str, **defines: str) -> Plan:
    return read(completed(fragment), "p.yaml", defines)


def test_a_parameter_is_its_default_or_the_command_lines_value() -> None:
    text = 'parameters: { bs: 8KiB, tags: 4 }\nworkloads: { a: { blocksize: "${bs}", maxtags: "${tags}" } }'
    made = plan(text)
    assert (made.workloads[0].parameters.blocksize, made.workloads[0].parameters.maxtags) == (8192, 4)
    assert made.parameters == {"bs": "8KiB", "tags": "4"}
    given = plan(text, bs="1MiB")
    assert given.workloads[0].parameters.blocksize == 1 << 20
    assert given.parameters == {"bs": "1MiB", "tags": "4"}


@pytest.mark.parametrize(
    "written, text",
    [
        ("${a}", "x y"),
        ("'${a}'", "x y"),
        ('"${a}"', "x y"),
        ("pre-${a}-${b}", "pre-x y-7"),
        ("$${a}", "${a}"),
        ("$${a} ${b}", "${a} 7"),
        ("$a", "$a"),
        ("a$", "a$"),
        ("${b}${b}", "77"),
    ],
)
def test_a_reference_may_stand_anywhere_in_a_text(written: str, text: str) -> None:
    assert plan(f"parameters: {{ a: x y, b: 7 }}\nname: {written}").name == text


def test_the_user_is_known_in_texts_and_in_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it can be part of a path; a parameter of the same name is the plan's own."""
    monkeypatch.setenv("LOGNAME", "CORP/anna b")
    text = "parameters: { path: '/var/tmp/${user}' }\nluns: { create: { path: '${path}', size: 1MiB } }"
    assert plan(text).luns.create[0].path == "/var/tmp/CORP_anna_b"
    assert plan("name: by-${user}").name == "by-CORP_anna_b"
    assert plan("parameters: { user: bob }\nname: ${user}").name == "bob"
    assert plan("name: by-${user}").parameters == {}


def test_a_value_is_put_in_as_text_and_never_as_yaml() -> None:
    assert plan("parameters: { a: x }\nname: ${a}", a="{ b: c } # d").name == "{ b: c } # d"
    assert plan("parameters: { a: x }\nname: ${a}", a="${a}").name == "${a}"


def test_references_reach_into_lists_loops_and_selects() -> None:
    made = plan(
        'parameters: { t: 2, v: IBM }\nluns: { select: { vendor: [ "${v}" ] } }\n'
        'steps: [ { go: { name: l, loop: { maxtags: [ 1, "${t}" ] } } } ]'
    )
    assert [step.name for step in made.steps] == ["l+maxtags=1", "l+maxtags=2"]
    assert made.luns.select is not None
    assert made.luns.select.matches({"vendor": "ibm"})


def test_a_parameter_without_a_default_must_be_given() -> None:
    assert plan("parameters: { size: }\nname: ${size}", size="s").name == "s"
    with pytest.raises(PlanFaults) as caught:
        plan("parameters: { size: }\nworkloads: { a: { maxtags: '${size}' } }")
    assert [fault.text for fault in caught.value.faults] == ["parameter 'size' has no default; give -D size=VALUE"]


def test_a_reference_that_fails_makes_no_other_faults() -> None:
    with pytest.raises(PlanFaults) as caught:
        plan(
            "parameters: { size: 1 }\nrollups: [ '${x}' ]\nhosts: '${x}'\n"
            "luns: { select: { size: '${x}' }, create: { path: '${x}', size: '${x}' } }\n"
            "workloads: { a: { range: ['${x}', 50%] } }\n"
            "steps: [ { go: '${x}' }, { go: { name: a, measure: '${x}' } } ]"
        )
    told = {fault.text for fault in caught.value.faults}
    assert told == {"${x}: the plan has no parameter 'x'; there is 'size'"}
    assert len(caught.value.faults) == 8
    assert str(caught.value.faults[0].place) == "p.yaml:2:13"


def test_what_the_command_line_alone_says_is_no_parameter_to_suggest() -> None:
    with pytest.raises(PlanFaults) as caught:
        plan("parameters: { size: 1 }\nname: ${foo}", nope="3")
    unknown = next(fault.text for fault in caught.value.faults if fault.text.startswith("$"))
    assert unknown == "${foo}: the plan has no parameter 'foo'; there is 'size'"


@pytest.mark.parametrize(
    "section, fault",
    [
        ("{ a-b: 1 }", "'a-b' cannot be a parameter's name; use letters, digits and _"),
        ("{ 1a: 1 }", "'1a' cannot be a parameter's name; use letters, digits and _"),
        ("{ a: { b: 1 } }", "parameter 'a': a default is one value, not a list or mapping"),
        ("[ a ]", "parameters: needs a mapping of names to defaults: parameters: { size: 1GiB }"),
    ],
)
def test_invalid_parameters_are_refused(section: str, fault: str) -> None:
    with pytest.raises(PlanFaults) as caught:
        plan(f"parameters: {section}")
    assert caught.value.faults[0].text == fault


def test_a_value_given_on_the_command_line_is_checked_where_it_is_used() -> None:
    with pytest.raises(PlanFaults) as caught:
        plan("parameters: { bs: 4KiB }\nworkloads:\n  a: { blocksize: '${bs}' }", bs="8KB")
    assert str(caught.value).startswith("p.yaml:3:19: blocksize: '8KB' can mean two sizes; write 8KiB")


def test_a_fault_of_a_parameters_value_says_where_that_is_set() -> None:
    text = (
        "luns: { files: [ /f ] }\nworkloads: { w: { blocksize: 8KiB } }\nparameters: { other: 1,\n  length: 3 }\n"
        'steps: [ go: { name: one, measure: "${length}", warmup: 3 } ]\n'
    )
    with pytest.raises(PlanFaults) as caught:
        read(text, "p.yaml")
    first, second = str(caught.value).split("\n")[::3]
    assert first == "p.yaml:5:36: measure: '3' has no unit; write 3s for seconds (set as length in line 4 or by -D)"
    assert second.endswith("warmup: '3' has no unit; write 3s for seconds")
