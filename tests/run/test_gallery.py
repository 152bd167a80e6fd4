"""The plans of the gallery run, and end as their pictures show."""

from pathlib import Path

import pytest

from ivypy.master.exit_codes import ExitCode
from tests.support.gallery import EXHIBITS, Exhibit


@pytest.mark.slow
@pytest.mark.parametrize("exhibit", EXHIBITS, ids=lambda exhibit: exhibit.name)
def test_a_plan_of_the_gallery_ends_as_its_picture_shows(tmp_path: Path, exhibit: Exhibit) -> None:
    """Valid; but a staircase climbs until a threshold is missed."""
    ended = exhibit.run(tmp_path)
    assert ended.code is (ExitCode.SLO_MISSED if exhibit.name == "04-stairs" else ExitCode.OK)
