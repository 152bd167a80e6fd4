"""`ivypy connector types`."""

from click.testing import CliRunner

from ivypy.master.cli.commands import cli
from ivypy.master.connectors.load_type import known_types
from ivypy.protocol.distribution import DISTRIBUTION


def test_the_types_that_a_plan_can_name_are_listed() -> None:
    done = CliRunner().invoke(cli, ["connector", "types"], standalone_mode=False)
    assert done.return_value == 0
    listed = [line.split() for line in done.output.splitlines()]
    assert [words[0] for words in listed] == list(known_types())
    assert {"command", "prometheus"} <= {words[0] for words in listed if words[1] == DISTRIBUTION and len(words) > 2}
