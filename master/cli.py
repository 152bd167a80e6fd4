"""The commands, one function each: arguments in, an exit code out.

Rule: nothing below this module prints or exits. Every error a user can mend is an IvypyError, whose text is printed
as it is; the exit code says whose fault it was. Heavy imports stand inside the commands, so that `--help` is quick.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from .. import __version__
from .analysis.command import percentiles
from .errors import HostsError, IvypyError, OutputError, PlanError, RefusedError
from .live.choose import Ui
from .verdicts import ExitCode

PLAN = click.argument("plan", type=click.Path(path_type=Path, dir_okay=False), metavar="PLAN.yaml")
DEFINE = click.option(
    "-D",
    "defines",
    multiple=True,
    metavar="NAME=VALUE",
    help="Set a parameter that the plan declares. May be repeated.",
)
Command = TypeVar("Command", bound=Callable[..., Any])


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="ivypy")
def cli() -> None:
    """Distributed storage load generation with honest latency.

    Start with `ivypy check PLAN.yaml`, which touches nothing.
    """


@cli.command()
@PLAN
@DEFINE
def check(plan: Path, defines: tuple[str, ...]) -> ExitCode:
    """Say what PLAN.yaml would run, without touching anything.

    Parses, validates and expands the plan; prints every fault with its place, or the hosts, LUNs, workloads and
    steps with their settings.
    """
    from .plan.describe import describe

    click.echo(describe(_load(plan, defines)))
    return ExitCode.OK


@cli.command()
@PLAN
@DEFINE
def devices(plan: Path, defines: tuple[str, ...]) -> ExitCode:
    """Show what PLAN.yaml finds on its hosts, what it would read and overwrite, and the token for --destroy.

    Connects to the hosts and lists their LUNs; reads and writes nothing on them.
    """
    from .session.devices import devices_page
    from .session.interrupt import run_until_pressed

    loaded = _load(plan, defines)
    page = run_until_pressed(lambda presses: devices_page(loaded))
    click.echo(page)
    return ExitCode.OK


@cli.command()
@PLAN
@DEFINE
@click.option(
    "-o", "--output", "root", type=click.Path(path_type=Path, file_okay=False), default=Path("runs"), show_default=True,
    metavar="ROOT", help="Folder in which the run's own folder is made.",
)  # fmt: skip
@click.option(
    "--destroy", metavar="TOKEN", help="Agree to overwrite exactly the LUNs that `ivypy devices` shows with this token."
)
@click.option(
    "--ui", type=click.Choice([str(ui) for ui in Ui]), default=str(Ui.AUTO), show_default=True,
    help="What to show while it runs; auto is a progress bar on a terminal, lines elsewhere.",
)  # fmt: skip
def run(plan: Path, defines: tuple[str, ...], root: Path, destroy: str | None, ui: str) -> ExitCode:
    """Run PLAN.yaml and leave a folder of CSV files.

    Ctrl-C once halts the I/O, writes what there is and exits with 130; twice gives up on the hosts; three times
    leaves at once.
    """
    from .live.choose import watcher
    from .session.interrupt import run_until_pressed
    from .session.run import Options, run_plan

    loaded = _load(plan, defines)
    options = Options(root=root, destroy=destroy, command_line=tuple(sys.argv))
    watching = watcher(Ui(ui))
    try:
        return run_until_pressed(lambda presses: run_plan(loaded, options, watching, presses))
    finally:
        watching.close()


@cli.command()
def schema() -> ExitCode:
    """Print the JSON schema of plans, for editors.

    With the YAML language server: `# yaml-language-server: $schema=plan.schema.json` as a plan's first line.
    """
    import json

    from .plan.reference import schema as plan_schema

    click.echo(json.dumps(plan_schema(), indent=2))
    return ExitCode.OK


@cli.command()
def columns() -> ExitCode:
    """Print every column of the CSV files: name, unit, meaning."""
    from .output.reference import columns_page

    click.echo(columns_page())
    return ExitCode.OK


cli.add_command(percentiles)


def _load(path: Path, defines: tuple[str, ...]) -> Any:
    from .plan.load import load

    pairs = {}
    for define in defines:
        name, equals, value = define.partition("=")
        if not equals or not name:
            raise PlanError(f"-D {define}: say -D NAME=VALUE")
        pairs[name] = value
    return load(path, pairs)


_CODES: tuple[tuple[type[IvypyError], ExitCode], ...] = (
    (PlanError, ExitCode.PLAN),
    (HostsError, ExitCode.HOSTS),
    (RefusedError, ExitCode.REFUSED),
    (OutputError, ExitCode.INTERNAL),
    (IvypyError, ExitCode.INTERNAL),
)


def main() -> None:
    """The command `ivypy`."""
    try:
        code = cli.main(standalone_mode=False)
    except click.Abort:
        code = ExitCode.INTERRUPTED
    except click.ClickException as error:
        error.show()
        code = ExitCode.PLAN
    except IvypyError as error:
        click.echo(str(error), err=True)
        code = next(code for kind, code in _CODES if isinstance(error, kind))
    except BrokenPipeError:  # `ivypy columns | head`
        sys.stderr.close()
        code = ExitCode.OK
    sys.exit(int(code or 0))
