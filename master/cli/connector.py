"""The commands `ivypy connector`: for those who write connectors.

Rule: this module only parses words; heavy modules are imported when a command runs, so that --help is quick.
"""

import click

from ..errors import PlanError
from ..exit_codes import ExitCode
from ..live import stdio

MOST_GATHERS = 10_000


@click.group()
def connector() -> None:
    """Commands for those who write connectors: programs that report what an array, a switch or a host says."""


@connector.command(context_settings={"ignore_unknown_options": True})
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND...")
@click.option("--gathers", type=click.IntRange(1, MOST_GATHERS), default=5, show_default=True, help="How many times.")
@click.option("--interval", default="1s", show_default=True, metavar="TIME", help="From one gather to the next.")
@click.option("--timeout", default="30s", show_default=True, metavar="TIME", help="How long each answer may take.")
@click.option(
    "--lun", "luns", multiple=True, metavar="PATH",
    help="A LUN of this machine, as a connector that runs on test hosts gets them. May be repeated.",
)  # fmt: skip
def check(command: tuple[str, ...], gathers: int, interval: str, timeout: str, luns: tuple[str, ...]) -> ExitCode:
    """Start a connector as a run would, gather from it, and print what it has and where it breaks the protocol.

    COMMAND is its command line, on this machine. Nothing else is started, and no LUN is touched. Exits with 0 if it
    conforms, with 8 if not, and with 3 if it cannot be started.
    """
    from ..connectors.conformance import Deviation
    from ..connectors.try_connector import ConnectorTrial, try_connector
    from ..run.session.signals import run_until_pressed

    interval_s, patience_s = _seconds("--interval", interval), _seconds("--timeout", timeout)
    if patience_s <= 0:
        raise PlanError(f"--timeout {timeout}: an answer takes some time, for example 30s")
    trial = ConnectorTrial(command, luns, gathers, interval_s, patience_s)
    conformance = run_until_pressed(lambda presses: try_connector(trial))
    for line in conformance.lines():
        stdio.say(line)
    if conformance.conforms:
        return ExitCode.OK
    not_started = any(kind is Deviation.NOT_STARTED for kind, _ in conformance.deviations)
    return ExitCode.HOSTS if not_started else ExitCode.INVALID


@connector.command()
def types() -> ExitCode:
    """List the types of connectors that a plan can name: those that come with ivypy, and of installed packages."""
    from inspect import getdoc, getmodule

    from ..connectors.load_type import known_types, load_type

    for name, point in known_types().items():
        package = point.dist.name if point.dist is not None else "unknown"
        try:
            meaning = (getdoc(getmodule(load_type(name))) or "").partition("\n")[0].removeprefix(f"The type `{name}`: ")
        except PlanError as error:
            meaning = f"cannot be used: {error}"
        stdio.say(f"{name:<16}  {package:<12}  {meaning}")
    return ExitCode.OK


def _seconds(option: str, text: str) -> float:
    """Raises PlanError."""
    from ..text.units import parse_duration

    try:
        return parse_duration(text)
    except ValueError as error:
        raise PlanError(f"{option} {error}") from None
