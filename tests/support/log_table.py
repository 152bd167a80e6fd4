"""The command's CSV, read back."""

import csv
import io

from tests.support.logs import Ran

Row = dict[str, str]


def table(ran: Ran) -> list[Row]:
    return list(csv.DictReader(io.StringIO(ran.out)))


def intervals(ran: Ran, instance: str = "all") -> list[Row]:
    """The rows of one rollup instance, without the one of the whole span."""
    return [row for row in table(ran) if row["rollup_instance"] == instance and row["interval"] != "whole"]


def whole(ran: Ran, instance: str = "all") -> Row:
    (found,) = [row for row in table(ran) if row["rollup_instance"] == instance and row["interval"] == "whole"]
    return found


def counts(rows: list[Row]) -> list[float]:
    return [float(row["count"]) for row in rows]
