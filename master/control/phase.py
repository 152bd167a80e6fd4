"""What a subinterval is for.

Rule: a phase says what was known when the subinterval's row was written. Which subintervals make a measurement is
decided later and stands in windows.csv and the summary, never here.
"""

from enum import StrEnum


class Phase(StrEnum):
    WARMUP = "warmup"  # under load, before the measurement may begin
    RUN = "run"  # under load, may become part of a measurement
    TRANSIENT = "transient"  # an edit acted in it: two loads in one row
    TAIL = "tail"  # ran while the decision to stop was on its way, or was cut by a halt; never measured
    COOLDOWN = "cooldown"  # at 0 IOPS, until what is in flight has come back
