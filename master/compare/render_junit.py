"""A comparison as JUnit's XML: a test case for each step and figure.

Rule: a failure is a regression that is shown. What cannot be told is skipped, never red: so are a nightly's first
nights, those after a disturbed one, and a newest run that does not count. A comparison that did not come about is an
error, as no run is.
"""

from datetime import datetime
from typing import Final

from ..results.junit import ERROR, FAILURE, SKIPPED, JunitCase, junit_text
from ..results.run_entries import entry_of
from .compare import Comparison
from .outcomes import Basis, Judged
from .render_text import figures_text, short_name

SUITE: Final = "compare"
LEFT_OUT: Final = "newest runs: left out"
DOUBTFUL: Final = "doubtful: see the notes of the runs"


def junit_of(comparison: Comparison, now: datetime) -> str:
    """The file's text; `now` in UTC. The class is the plan of the newest run."""
    name = entry_of(comparison.b[-1].folder, now).name
    cases = [case_of(row, comparison.limit, comparison.basis) for row in comparison.rows]
    cases = cases or [JunitCase(SUITE, SKIPPED, "nothing could be compared")]
    if comparison.newest_left_out:
        cases.append(JunitCase(LEFT_OUT, SKIPPED, "\n".join(comparison.newest_left_out)))
    if comparison.doubts:
        cases.append(JunitCase(DOUBTFUL, SKIPPED, "\n".join(comparison.doubts)))
    return junit_text(SUITE, f"{name}.{SUITE}", now, 0, cases)


def case_of(row: Judged, limit: float, basis: Basis) -> JunitCase:
    """Of one figure of one step."""
    name = f"{row.compared.key}: {short_name(row.compared.metric)}"
    if basis is Basis.RUNS and row.is_regression:
        return JunitCase(name, FAILURE, f"worse by more than {100 * limit:g} %: {figures_text(row)}")
    if basis is Basis.RUNS and row.is_no_regression:
        return JunitCase(name)
    return JunitCase(name, SKIPPED, f"cannot tell: {row.compared.why or figures_text(row)}")


def junit_of_none(now: datetime, why: str = "") -> str:
    """The text until runs are compared, an error; with `why`, that there is nothing to compare yet: skipped."""
    begun = JunitCase(SUITE, ERROR, "the runs were not compared: the output of `ivypy compare` says why")
    return junit_text(SUITE, SUITE, now, 0, [JunitCase(SUITE, SKIPPED, why) if why else begun])
