"""What rows say of the parameters in force."""

import pytest

from ivypy.master.rollup.parameters_in_force import Settings, SettingsInForce
from ivypy.protocol.parameters import Iops, Iosequencer, Parameters
from tests.support.rollup import instance, rollups_by

ROLLUPS = rollups_by([instance(0, "h1"), instance(1, "h1"), instance(0, "h2")], "host")


def settings_of(*parameters: Parameters) -> Settings:
    keys = [("h1", 0), ("h1", 1), ("h2", 0)]
    return Settings.of(ROLLUPS, dict(zip(keys, parameters, strict=False)))


def test_one_value_is_plain() -> None:
    found = settings_of(*[Parameters(blocksize=8192, fraction_read=0.7, iops=2500.0)] * 3).columns
    assert {name: texts[0] for name, texts in found.items()} == {
        "iosequencer": "random_steady", "blocksize": "8192", "fraction_read": "0.7", "maxtags": "1", "iops": "2500",
        "operations": "plain", "align": "0", "sequential": "0", "streams": "1", "cursors": "shared",
        "zipf": "0", "pareto": "0", "normal": "0", "hot_zones": "none", "working_set": "0", "scattered": "true",
        "scatter_seed": "0", "start": "0", "skew": "0", "start_after": "0", "bursty": "never",
        "range": "all", "spread": "auto", "seed": "1", "drop_after": "never", "think_time": "0",
        "random_map": "false", "until": "never", "direct": "true", "drop_cache": "true", "sync": "none",
        "flush": "never", "end_fsync": "false",
    }  # fmt: skip


def test_a_total_is_of_hosts_that_are_gone_too_while_the_load_is_as_planned() -> None:
    """Nothing else of a row is of what is not in it."""
    parameters = {("h1", 0): Parameters(iops=100.0), ("h1", 1): Parameters(iops=40.0), ("h2", 0): Parameters(iops=7.0)}
    in_force = SettingsInForce(ROLLUPS)
    for hosts, as_planned, totals in (
        ({"h1", "h2"}, True, ("147", "140", "7")),
        ({"h1"}, True, ("147", "140", "7")),
        ({"h1"}, False, ("140", "140", "")),
        ({"h2"}, True, ("147", "140", "7")),
    ):
        found = in_force.of(parameters, hosts, as_planned)
        assert found.iops == totals
        there = {key: one for key, one in parameters.items() if key[0] in hosts}
        assert found.columns == Settings.of(ROLLUPS, there).columns


@pytest.mark.parametrize(
    ("rates", "totals"),
    [
        ((100.0, 40.0, 60.0), ("50", "35", "15")),
        ((0.0, 0.0, 0.0), ("50", "", "")),  # it ended at 0, so the parts are not known
    ],
)
def test_of_a_rate_that_changed_the_mean_is_shown(rates: tuple[float, ...], totals: tuple[str, ...]) -> None:
    settings = settings_of(*(Parameters(iops=rate, maxtags=7) for rate in rates))
    changing = settings.with_changing_rate(50.0)
    assert changing.iops == totals and changing.columns["iops"] == ("profile",) * 3
    assert {**changing.columns, "iops": ""} == {**settings.columns, "iops": ""}


def test_several_values_are_listed_with_their_numbers() -> None:
    found = settings_of(Parameters(range=(0, 4096)), Parameters(), Parameters()).columns["range"]
    assert found == ("all(2/3) 0-4096(1/3)", "0-4096(1/2) all(1/2)", "all")


def test_many_values_are_cut_short() -> None:
    rollups = rollups_by([instance(n, "h") for n in range(20)])
    found = Settings.of(rollups, {("h", n): Parameters(seed=n) for n in range(20)}).columns["seed"][0]
    assert found.startswith("0(1/20) 1(1/20)") and found.endswith("7(1/20) and 12 other values")


@pytest.mark.parametrize(
    ("iops", "total", "paced", "some_max"),
    [
        ((100.0, 200.0, 0.5), "300.5", True, False),
        (("max", "max", "max"), "max", False, True),
        (("max", 100.0, 100.0), "", False, True),  # no sum that would mean anything: the iops column says it
        ((0.0, 0.0, 0.0), "0", True, False),
        ((1 / 3, 1 / 3, 1 / 3), "1", True, False),
    ],
)
def test_a_row_shows_the_total_of_its_iops_settings(
    iops: tuple[Iops, Iops, Iops], total: str, paced: bool, some_max: bool
) -> None:
    found = settings_of(*(Parameters(iops=one) for one in iops))
    assert (found.iops[0], bool(found.paced[0]), bool(found.some_max[0])) == (total, paced, some_max)


def test_rows_without_instances_in_the_step_are_blank() -> None:
    found = settings_of(Parameters(iosequencer=Iosequencer.SEQUENTIAL))
    assert (found.columns["iosequencer"][2], found.iops[2], bool(found.paced[2])) == ("", "", False)
