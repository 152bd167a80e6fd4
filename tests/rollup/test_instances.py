"""Slicing: every workload instance in exactly one rollup instance of every type."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivypy.master.rollup.instances import Rollups, WorkloadInstance, joined
from tests.support.rollup import instance, rollup_spec, rollups_by

TWO_HOSTS = [
    instance(0, "h1", port="1A", serial=410116),
    instance(1, "h1", port="2A", serial=410116),
    instance(0, "h2", port="1A"),
]


@pytest.mark.parametrize(
    ("by", "names"),
    [
        ("all", ["all"]),
        ("host", ["h1", "h2"]),
        ("port", ["1A", "2A"]),
        ("serial", ["410116", "none"]),
        ("serial+port", ["410116+1A", "410116+2A", "none+1A"]),
        ("lun", ["h1:/dev/sd0", "h1:/dev/sd1", "h2:/dev/sd0"]),  # two hosts may have a /dev/sd0 each
        ("workload", ["w"]),
        ("host+workload", ["h1+w", "h2+w"]),
        ("vendor", ["none"]),
    ],
)
def test_instances_come_from_values(by: str, names: list[str]) -> None:
    assert [one.name for one in rollups_by(TWO_HOSTS, by).type(by).instances] == names


def test_all_is_always_there_and_first() -> None:
    for specs in ([], [rollup_spec("host")], [rollup_spec("host"), rollup_spec("all", quantity=1)]):
        rollups = Rollups.build(TWO_HOSTS, specs)
        assert rollups.types[0].name == "all"
        assert [kind.name for kind in rollups.types].count("all") == 1
        assert rollups.rows[0].members == tuple(TWO_HOSTS)


def test_a_plan_may_set_quantity_and_droop_of_all() -> None:
    (kind,) = Rollups.build(TWO_HOSTS, [rollup_spec("all", quantity=1, csv=False)]).types
    assert (kind.quantity, kind.csv) == (1, False)


def test_an_empty_attribute_is_absent() -> None:
    assert instance(0, "h", vendor="").attribute("vendor") == "none"
    assert instance(0, "h", rotational=0).attribute("rotational") == "0"


def test_id_is_host_lun_and_workload() -> None:
    assert WorkloadInstance(3, "h1", "/dev/sdb", "oltp").id == "h1+/dev/sdb+oltp"


def test_two_instances_with_one_number_are_a_mistake() -> None:
    with pytest.raises(ValueError, match="one number"):
        Rollups.build([instance(0, "h"), instance(0, "h")], [])


def test_rows_are_numbered_through() -> None:
    rollups = rollups_by(TWO_HOSTS, "host", "serial+port")
    assert [row.row for row in rollups.rows] == list(range(len(rollups.rows)))
    assert [str(row) for row in rollups.rows] == [
        "all=all", "host=h1", "host=h2", "serial+port=410116+1A", "serial+port=410116+2A", "serial+port=none+1A",
    ]  # fmt: skip
    assert rollups.rows_of("h1", 1) == (0, 1, 4)


def test_instances_in_the_same_rows_form_one_merge_class() -> None:
    many = [instance(n, "h", port=f"{n % 2}A", tier=n // 4) for n in range(8)]
    assert rollups_by(many, "host").classes("h").class_of == (0,) * 8
    assert rollups_by(many, "port").classes("h").class_of == (0, 1) * 4
    both = rollups_by(many, "port", "tier").classes("h")
    assert both.class_of == (0, 1, 0, 1, 2, 3, 2, 3)
    assert both.order == tuple(range(8))
    assert both.rows == ((0, 1, 3), (0, 2, 3), (0, 1, 4), (0, 2, 4))


def test_merge_classes_follow_the_given_order() -> None:
    rollups = rollups_by(TWO_HOSTS, "port")
    assert rollups.classes("h1", [1, 0]).class_of == (0, 1)
    assert rollups.classes("h1", [1]).rows == ((0, 2),)


@given(st.lists(st.tuples(st.text("a+%", max_size=3), st.text("a+%", max_size=3)), unique=True, max_size=20))
def test_names_are_as_different_as_values(values: list[tuple[str, str]]) -> None:
    assert len({joined(pair) for pair in values}) == len(values)


ATTRIBUTES = st.dictionaries(st.sampled_from("pqr"), st.sampled_from([1, 2, "x"]), max_size=3)


@given(st.lists(st.tuples(st.sampled_from(["h1", "h2"]), ATTRIBUTES), min_size=1, max_size=12))
def test_each_instance_is_in_exactly_one_slice_of_each_type(drawn: list[tuple[str, dict[str, int | str]]]) -> None:
    instances = [WorkloadInstance(n, host, "/f", "w", attributes) for n, (host, attributes) in enumerate(drawn)]
    rollups = rollups_by(instances, "host", "p", "p+q", "host+r")
    for kind in rollups.types:
        members = [member.id for one in kind.instances for member in one.members]
        assert sorted(members) == sorted(one.id for one in instances)
    for host in rollups.hosts():
        classes = rollups.classes(host)
        for number, klass in zip(classes.order, classes.class_of, strict=True):
            assert classes.rows[klass] == rollups.rows_of(host, number)
        assert len(set(classes.rows)) == len(classes.rows)
