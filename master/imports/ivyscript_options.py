"""Parameters of ivy that have no counterpart in a plan: why, what comes nearest, whether the load differs without it.

Names are in lower case, without underscores.
"""

from typing import Final

_NO_SKEW: Final = "I/Os of several workloads are not tied to a proportion"
_NO_HOT_ZONE: Final = "random addresses are evenly distributed"
_NO_CONTENT: Final = "ivypy writes data that neither compresses nor repeats"
_NO_CONNECTOR: Final = "ivypy does not ask the array"
_TWO_RANGES: Final = "two workloads with a `range` each"

OF_WORKLOADS: Final[dict[str, tuple[str, str, bool]]] = {
    "seqstartpoint": ("a sequential workload begins at the start of its range", "", False),
    "seqstartfractionofcoverage": ("a sequential workload begins at the start of its range", "", False),
    "hotzonesizebytes": (_NO_HOT_ZONE, _TWO_RANGES, True),
    "hotzonereadfraction": (_NO_HOT_ZONE, _TWO_RANGES, True),
    "hotzonewritefraction": (_NO_HOT_ZONE, _TWO_RANGES, True),
    "hotzoneiopsfraction": (_NO_HOT_ZONE, _TWO_RANGES, True),
    "skewweight": (_NO_SKEW, "give each workload its `iops`", True),
    "skew": (_NO_SKEW, "give each workload its `iops`", True),
    "dedupe": (_NO_CONTENT, "", True),
    "dedupemethod": (_NO_CONTENT, "", True),
    "dedupetype": (_NO_CONTENT, "", True),
    "dedupeunitbytes": (_NO_CONTENT, "", True),
    "duplicatesetsize": (_NO_CONTENT, "", True),
    "fractionzeropattern": (_NO_CONTENT, "", True),
    "pattern": (_NO_CONTENT, "", True),
    "compressibility": (_NO_CONTENT, "", True),
}

# Values that ask for nothing.
IDLE: Final[dict[str, frozenset[str]]] = {
    "dedupe": frozenset({"1", "1.0"}),
    "pattern": frozenset({"random", "whatever"}),
    "compressibility": frozenset({"0", "0.0"}),
    "skew": frozenset({"-1", "-1.0"}),
    "skewweight": frozenset({"-1", "-1.0"}),
    "seqstartpoint": frozenset({"0", "0.0"}),
    "sequentialfill": frozenset({"off", "false", "no"}),
    "source": frozenset({"workload"}),
}

OF_STEPS: Final[dict[str, tuple[str, str, bool]]] = {
    "sequentialfill": ("the length of a step is a time", "give the fill a step that is long enough", True),
    "source": (_NO_CONNECTOR, "use a metric of the hosts", True),
    "subsystemelement": (_NO_CONNECTOR, "use a metric of the hosts", True),
    "elementmetric": (_NO_CONNECTOR, "use a metric of the hosts", True),
    "minwp": (_NO_CONNECTOR, "", True),
    "maxwp": (_NO_CONNECTOR, "", True),
    "maxwpchange": (_NO_CONNECTOR, "", True),
    "maxwprange": (_NO_CONNECTOR, "", True),
    "cooldownbywp": (_NO_CONNECTOR, "use `cooldown`", False),
    "cooldownbympbusy": (_NO_CONNECTOR, "use `cooldown`", False),
    "subsystemwpthreshold": (_NO_CONNECTOR, "use `cooldown`", False),
    "subsystembusythreshold": (_NO_CONNECTOR, "use `cooldown`", False),
    "cooldownbympbusystaydowntimeseconds": (_NO_CONNECTOR, "use `cooldown`", False),
    "maxiops": ("the load is at most `high_iops`", "", False),
    "gainstep": ("feedback control finds its gain by itself", "", False),
    "maxripple": ("feedback control finds its gain by itself", "", False),
    "maxmonotone": ("feedback control finds its gain by itself", "", False),
    "balancedstepdirectionby": ("feedback control finds its gain by itself", "", False),
    "ballparkseconds": ("feedback control finds its gain by itself", "", False),
}

# What has no part in the load: left out without a word.
SILENT: Final = frozenset(
    "noperf suppressperf skipldev stepcsv storcsv checkfailedcomponent".split()
)  # fmt: skip
