"""The commands, one function each: arguments in, an exit code out.

Rule: nothing below this module prints or exits. Every error that a user can fix is an IvypyError; its text is printed
as it is, and its exit code says whose fault it was. Commands import heavy modules themselves, so `--help` is fast.
"""

import io
import shlex
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...protocol.distribution import DISTRIBUTION
from ..errors import HostsError, IvypyError, PlanError
from ..exit_codes import ExitCode
from ..live import stdio
from .active_runs import attach, edit, mark, pause, skip, status, stop, unpause
from .analysis import export, query
from .command_groups import CommandGroups, help_command
from .compare import compare
from .connector import connector
from .import_plan import import_plan
from .percentiles import percentiles
from .quick import PlanCommand, not_a_plan, quick
from .report import report
from .results import list_runs, show
from .run_outputs import output_options, outputs_of, run_and_show
from .steady import steady
from .view_options import view_of, view_options
from .web import web

if TYPE_CHECKING:
    from ..plan.model import Plan

PLAN_PATH = click.Path(path_type=Path, dir_okay=False)
PLAN = click.argument("plan", type=PLAN_PATH, metavar="PLAN.yaml")
DEFINE = click.option(
    "-D",
    "defines",
    multiple=True,
    metavar="NAME=VALUE",
    help="Set a parameter that the plan declares. May be repeated.",
)
HOSTS_HELP = "Hosts instead of the plan's: lab[01-16],db1; slurm is every node of this Slurm allocation."
HOSTS = click.option("--hosts", metavar="NAMES", help=HOSTS_HELP)


@click.group(cls=CommandGroups, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name=DISTRIBUTION, prog_name="ivypy")
def cli() -> None:
    """Distributed storage load generation, with a verdict on every number.

    Start with `ivypy quick`, which lists what can be measured. `ivypy help TOPIC` prints a page of the documentation.
    """


@cli.command(cls=PlanCommand)
@click.argument("plan", required=False, type=PLAN_PATH, metavar="PLAN.yaml")
@DEFINE
@click.option("--connect", is_flag=True, help="Connect to the hosts, and show what each is and lacks.")
@click.option("--hosts", is_flag=False, flag_value="", metavar="NAMES", help=HOSTS_HELP)
def check(plan: Path | None, defines: tuple[str, ...], connect: bool, hosts: str | None) -> ExitCode:
    """Print what PLAN.yaml would run, without touching a host.

    Parses, validates and expands the plan. Prints every fault with its line, or the hosts, LUNs, workloads and steps
    with their settings. With --connect, also connects to all hosts at once; exits with 3 where some cannot be used.
    """
    if hosts is not None and not (hosts and plan):
        plan = plan or Path(hosts or "PLAN.yaml")
        raise PlanError(
            f"--hosts needs the names of hosts, to be used instead of the plan's; to connect to those of the plan:"
            f" ivypy check --connect {plan}"
        )
    if plan is None:
        raise click.UsageError("Missing argument 'PLAN.yaml'.")
    from ..plan.describe import describe

    loaded = _load(plan, defines, hosts)
    stdio.say(_fitted(describe(loaded)))
    if not connect:
        return ExitCode.OK
    from ..run.session.signals import run_until_pressed
    from .host_list import hosts_page

    page, missing = run_until_pressed(lambda presses: hosts_page(loaded))
    stdio.say("\n" + page)
    if not missing:
        words = [str(plan), *(word for one in defines for word in ("-D", one)), *(["--hosts", hosts] if hosts else [])]
        stdio.say(f"\nLUNs, with their write caches and queue limits: ivypy devices {shlex.join(words)}")
    return ExitCode.HOSTS if missing else ExitCode.OK


@cli.command()
@click.argument("names", nargs=-1, metavar="[PLAN.yaml | HOST...]")
@DEFINE
@HOSTS
@click.option("--user", metavar="NAME", help="The user to log in as, without a plan.")
def devices(names: tuple[str, ...], defines: tuple[str, ...], hosts: str | None, user: str | None) -> ExitCode:
    """List the LUNs that PLAN.yaml selects, what it would read and overwrite, and the token for --destroy.

    Without a plan: list the block devices of each HOST (lab[01-16]; default: this machine), who uses them, and how
    to select them. Connects to all hosts at once; shows what each is and lacks. Starts no load and writes nothing.
    Exits with 3 where hosts cannot be used; the others are shown all the same. Exits with 4 where a LUN that the plan
    would write is refused.
    """
    from ..run.session.signals import run_until_pressed
    from .devices import devices_page
    from .inventory import inventory

    def show(text: str) -> None:
        if text:
            stdio.say(text)

    if len(names) == 1 and names_a_plan(names[0]):
        if user is not None:
            raise PlanError("--user is for hosts without a plan; in a plan, write `ssh: { user: NAME }`")
        loaded = _load(Path(names[0]), defines, hosts)
        return run_until_pressed(lambda presses: devices_page(loaded, show))
    if defines:
        raise PlanError("-D sets a parameter of a plan, and no plan is named")
    if plans := [name for name in names if names_a_plan(name)]:
        raise PlanError(f"{plans[0]}: name one plan, or hosts; hosts for a plan are in --hosts")
    wanted = ",".join([*names, *([hosts] if hosts is not None else [])]) or None
    code, _ = run_until_pressed(lambda presses: inventory(wanted, user, show))
    return code


def names_a_plan(name: str) -> bool:
    """Whether a word is a path rather than a host's name."""
    return "/" in name or name.endswith((".yaml", ".yml")) or Path(name).is_file()


@cli.command(cls=PlanCommand)
@PLAN
@DEFINE
@click.option(
    "-o", "--output", "root", type=click.Path(path_type=Path, file_okay=False), default=Path("runs"), show_default=True,
    metavar="ROOT", help="Folder in which to create the run folder.",
)  # fmt: skip
@click.option(
    "--destroy",
    metavar="TOKEN",
    help="Consent to overwrite exactly the LUNs for which `ivypy devices` prints this token.",
)
@HOSTS
@click.option("--user", metavar="NAME", help="The user to log in as, instead of the plan's.")
@click.option("--name", metavar="NAME", help="Begins the run folder's name, instead of the plan's.")
@click.option("--dry-run", is_flag=True, help="Print what the plan would run, as `ivypy check` does; run nothing.")
@output_options
@view_options
def run(
    plan: Path, defines: tuple[str, ...], root: Path, destroy: str | None, hosts: str | None, user: str | None,
    name: str | None, dry_run: bool, ui: str, every: str, verbose: bool, **words: Any,
) -> ExitCode:  # fmt: skip
    """Run PLAN.yaml and write a folder of CSV files.

    Ctrl-C once halts the I/O, writes the results so far and exits with 130; twice gives up the hosts; three times
    exits at once.
    """
    from ..plan.describe import describe
    from ..run.session.run import Options

    view, outputs = view_of(ui, every, verbose), outputs_of(words)
    if dry_run:
        outputs.refuse_in_dry_run()
        stdio.say(_fitted(describe(_load(plan, defines, hosts, user, name))))
        return ExitCode.OK
    with outputs.begun(str(plan)):
        loaded = _load(plan, defines, hosts, user, name)
    return run_and_show(loaded, Options(root=root, destroy=destroy, command_line=tuple(sys.argv)), view, outputs)


@cli.command()
@click.option(
    "--host", default="local", show_default=True, metavar="HOST", help="local, or [user@]name[:port], by ssh."
)
@click.option("--time", "duration", default="10s", show_default=True, help="Length of the measurement, 1s to 1h.")
@click.option("--json", "as_json", is_flag=True, help="Print all figures as JSON.")
def clock(host: str, duration: str, as_json: bool) -> ExitCode:
    """Measure the clock with which a host would stamp I/Os, and compare it with fio's method.

    Compares the CPU's cycle counter with the kernel's clocks for the given time, and tests its order across cores.
    Exits with 8 and the reason if ivypy would not use the counter there.
    """
    from ..run.session.signals import run_until_pressed
    from .clock import clock_page

    text, code = run_until_pressed(lambda presses: clock_page(host, duration, as_json))
    click.echo(text)
    return code


@cli.command()
@click.option("--result", is_flag=True, help="That of a run's result.json instead.")
def schema(result: bool) -> ExitCode:
    """Print the JSON schema of plans, for editors.

    With the YAML language server: `# yaml-language-server: $schema=plan.schema.json` as a plan's first line.
    """
    import json

    from ..plan.doc_pages import schema as plan_schema
    from ..results.result_document import schema as result_schema

    click.echo(json.dumps(result_schema() if result else plan_schema(), indent=2))
    return ExitCode.OK


@cli.command()
def columns() -> ExitCode:
    """Print every column of the CSV files with unit and meaning."""
    from ..output.doc_pages import columns_page, diagnosis_page

    click.echo(f"{columns_page()}\n{diagnosis_page()}")
    return ExitCode.OK


for command in (
    compare, connector, quick, import_plan, percentiles, steady, list_runs, show, report, query, export,
    attach, edit, mark, pause, skip, status, stop, unpause, web, help_command,
):  # fmt: skip
    cli.add_command(command)


def _fitted(text: str) -> str:
    """Lines as wide as the terminal, where there is one."""
    from ..live.line_view import columns_of_output
    from ..text.wrapping import wrapped

    width = columns_of_output()
    return text if width is None else "\n".join(piece for line in text.split("\n") for piece in wrapped(line, width))


def _load(
    path: Path, defines: tuple[str, ...], hosts: str | None = None, user: str | None = None, name: str | None = None
) -> "Plan":
    from ..plan.load import Instead, load

    pairs = {}
    for define in defines:
        parameter, equals, value = define.partition("=")
        if not equals or not parameter:
            raise PlanError(f"-D {define}: write -D NAME=VALUE")
        pairs[parameter] = value
    if remedy := not_a_plan(path):
        raise PlanError(remedy)
    return load(path, pairs, Instead(hosts, user, name))


def main() -> None:
    """The command `ivypy`."""
    stdio.guard()
    code = _code()
    stdio.settle()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
        signal.signal(number, signal.SIG_IGN)  # the code is earned: none of them may end the process by another
    sys.exit(code)


def _code() -> int:
    """Run the command; errors that a user can fix are printed."""
    try:
        return int(cli.main(standalone_mode=False) or ExitCode.OK)
    except (click.Abort, KeyboardInterrupt) as error:
        stdio.complain(f"Interrupted by {error}." if str(error) else "Interrupted.")
        return ExitCode.INTERRUPTED
    except click.ClickException as error:
        text = io.StringIO()
        error.show(text)
        stdio.complain(text.getvalue().rstrip())
        return ExitCode.PLAN
    except HostsError as error:
        from .host_faults import fault_lines

        stdio.complain("\n".join(fault_lines(error.faults)))
        return error.exit_code
    except IvypyError as error:
        stdio.complain(str(error))
        return error.exit_code
    except stdio.ConsoleLost as error:
        if error.read_enough:
            return ExitCode.OK
        stdio.complain(f"standard output cannot be written: {error}")
        return ExitCode.INTERNAL
