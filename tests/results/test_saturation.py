"""Which element saturates first, of hand-made levels."""

import pytest

from ivypy.master.results.saturation import Element, Level, Sign, first_saturated

MP, PG = Element("array.mp_busy_percent", "0"), Element("array.pg_busy_percent", "1-1")
LOADS = [1000.0, 1500, 2250, 3375]
SERVICE = [300.0, 310, 350, 900]


def levels(loads: list[float], services: list[float], **busy: list[float | None]) -> list[Level]:
    elements = {"mp": MP, "pg": PG}
    return [
        Level(f"{load:g}", load, service, {elements[name]: one for name, some in busy.items() if (one := some[place])})
        for place, (load, service) in enumerate(zip(loads, services, strict=True))
    ]


CASES = [
    ("a processor reaches 90 %", [20.0, 30, 45, 91], [10.0, 15, 22, 34], [(MP, "3375", Sign.BUSY)]),
    ("it is busy from the first level", [95.0, 96, 97, 98], [10.0, 15, 22, 34], [(MP, "1000", Sign.BUSY)]),
    ("a single core of several is busy", [12.0, 18, 18.3, 18.4], [10.0, 15, 22, 34], [(MP, "2250", Sign.STOPPED)]),
    ("two at the same level, the busiest first", [20.0, 30, 92, 95], [20.0, 30, 97, 99],
     [(PG, "2250", Sign.BUSY), (MP, "2250", Sign.BUSY)]),
    ("one that stops before another is full", [12.0, 18, 18.3, 18.4], [40.0, 60, 85, 99], [(MP, "2250", Sign.STOPPED)]),
    ("both follow the load", [20.0, 30, 45, 67], [10.0, 15, 22, 34], []),
    ("one that never followed it", [50.0, 50, 50, 50], [10.0, 15, 22, 34], []),
    ("noise of an idle one", [2.0, 3, 3, 3], [10.0, 15, 22, 34], []),
    ("it grows again", [20.0, 30, 30.5, 46], [10.0, 15, 22, 34], []),
    ("it grew less than half as much as the load", [50.0, 58, 58.5, 59], [10.0, 15, 22, 34], []),
    ("it is missing where it would have stopped", [12.0, None, 18.3, 18.4], [10.0, 15, 22, 34], []),
]  # fmt: skip


@pytest.mark.parametrize(("mp", "pg", "expected"), [one[1:] for one in CASES], ids=[one[0] for one in CASES])
def test_the_first_that_saturates(
    mp: list[float | None], pg: list[float | None], expected: list[tuple[Element, str, Sign]]
) -> None:
    found = first_saturated(levels(LOADS, SERVICE, mp=mp, pg=pg))
    assert [(one.element, one.level.name, one.rule) for one in found.first] == expected


def test_where_the_load_stops_growing_no_element_is_blamed() -> None:
    found = first_saturated(levels([1000.0, 1500, 1510, 1512], [300.0, 400, 900, 3000], mp=[30.0, 45, 45.1, 45.1]))
    assert not found.first
    assert found.sentence() == (
        "No element saturates that reports a busy figure: the highest at the highest load is"
        " array.mp_busy_percent of 0 with 45.1 %. The load stopped growing and service times still grew: what limits"
        " it is none of these."
    )


def test_sentences() -> None:
    found = first_saturated(levels(LOADS, SERVICE, mp=[20.0, 30, 92, 95], pg=[20.0, 30, 97, 99]))
    expected = "First to saturate: array.pg_busy_percent of 1-1 is 97 % at 2250: 90 % or more. So do 1 more there."
    assert found.sentence() == expected
    assert "needs several loads" in first_saturated(levels([1000.0], [300.0], mp=[20.0])).sentence()
    assert first_saturated(levels(LOADS, SERVICE)).sentence() == "No element has a busy figure at these loads."
