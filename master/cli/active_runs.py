"""The commands to runs that are active: `edit`, `status`, `stop`, `skip`, `pause`, `unpause`, `mark` and `attach`.

Rule: each is a request to the run's control socket; this module only parses words. Heavy modules are imported when a
command runs, so that --help is quick.
"""

from pathlib import Path
from typing import Any

import click

from ..errors import PlanError
from ..exit_codes import ExitCode
from ..live import stdio
from ..live.choose_view import close_view
from .view_options import view_of, view_options

BY = click.option("--by", default="", metavar="TYPE", help="A rollup type of the plan: host, port, serial ...")
RUN = click.argument("run", required=False, metavar="[RUN]")


@click.command()
@click.argument("words", nargs=-1, required=True, metavar="[RUN] CLAUSE... SETTING...")
@click.option("--force", is_flag=True, help="Change iops even where the step's own control sets it.")
def edit(words: tuple[str, ...], force: bool) -> ExitCode:
    """Change the load of a running test, on all hosts at once.

    A CLAUSE names rollup instances, as in plans: all=all, host=h1, 'host={h1,h2}'. Several clauses select their
    union. A SETTING is iops=5000, iops=+100, iops=+10%, total_iops=20k, fraction_read=50%, maxtags=16,
    blocksize=64KiB or range=0%..50%; or target=2ms alone, the target of control: pid. RUN is a run's folder or id,
    needed where several runs are active. An edit that is rejected changes nothing.
    """
    from ..live.change_lines import changed_lines
    from ..live.socket_client import NoSuchRun
    from ..live.socket_messages import Changed, EditRequest
    from ..live.step_lines import local_now

    # RUN has no "=" in it, unless it is a folder that has.
    named = "=" not in words[0] or Path(words[0]).is_dir()
    run, rest = (words[0], words[1:]) if named else (None, words)
    try:
        answer = _request(run, EditRequest(rest, force))
    except NoSuchRun as error:
        raise PlanError(f"{error}; for a clause, write {words[0]}=..., like all=all or host=h1") from None
    assert isinstance(answer, Changed)
    stdio.say("\n".join(changed_lines(answer, local_now())))
    return ExitCode.PARTIAL if any(took.failed for took in answer.took) else ExitCode.OK


@click.command()
@RUN
@BY
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def status(run: str | None, by: str, as_json: bool) -> ExitCode:
    """Print the status of a running test: step, phase, last figures, control, remaining time, hosts.

    With --by, also the figures of each rollup instance of that type, the highest p99 first. RUN is a run's folder or
    id; default: your newest active run. `kill -USR1` makes the run itself print the same.
    """
    from ..live.json_lines import JsonLines
    from ..live.line_view import TextLines
    from ..live.reports import RunStatus
    from ..live.socket_messages import StatusRequest

    answer = _request(run, StatusRequest(by), only=False)
    assert isinstance(answer, RunStatus)
    (JsonLines(click.echo) if as_json else TextLines(click.echo)).show(answer)
    return ExitCode.OK


@click.command()
@RUN
def stop(run: str | None) -> ExitCode:
    """Stop a running test like the first Ctrl-C: halt the I/O and write the results so far."""
    from ..live.socket_messages import StopRequest

    return _command(run, StopRequest())


@click.command()
@RUN
def skip(run: str | None) -> ExitCode:
    """End the running step with what it has measured, and go on with the next one.

    Its measurement is of the complete subintervals until then: its verdict is `partial`, reason `shortened`.
    """
    from ..live.socket_messages import SkipRequest

    return _command(run, SkipRequest())


@click.command()
@RUN
def pause(run: str | None) -> ExitCode:
    """Stop all I/O of a running step until `ivypy unpause`; then the measurement starts again."""
    from ..live.socket_messages import PauseRequest

    return _command(run, PauseRequest())


@click.command()
@RUN
def unpause(run: str | None) -> ExitCode:
    """Continue after `ivypy pause`, with the load from before."""
    from ..live.socket_messages import UnpauseRequest

    return _command(run, UnpauseRequest())


@click.command()
@click.argument("text")
@RUN
def mark(text: str, run: str | None) -> ExitCode:
    """Write TEXT into the events.csv of a running test."""
    from ..live.socket_messages import MarkRequest

    return _command(run, MarkRequest(text))


@click.command()
@RUN
@BY
@view_options
def attach(run: str | None, by: str, ui: str, every: str, verbose: bool) -> ExitCode:
    """Follow a running test from another terminal, to its end.

    With --by, on a terminal: a full-screen table of the rollup instances of that type, the worst first, each with its
    latest subintervals. Exits with the run's exit code. Ctrl-C stops following; the run continues.
    """
    from ..live.choose_view import followed
    from ..live.reports import RunEnds
    from ..live.socket_client import connected, exit_code_of

    code, view = None, view_of(ui, every, verbose)
    with connected(run) as client:
        folder = client.standing(by).folder
        with followed(view, by) as (watching, has_left):
            try:
                for report in client.follow(by):
                    watching.show(report)
                    code = report.exit_code if isinstance(report, RunEnds) else code
            except KeyboardInterrupt:
                if has_left():
                    return ExitCode.OK
                click.echo("no longer following; the run continues", err=True)
                return ExitCode.INTERRUPTED
            finally:
                close_view(watching)
    return ExitCode(exit_code_of(folder) if code is None else code)


def _request(run: str | None, request: Any, only: bool = True) -> Any:
    """Ask a run. Without a name it is the newest; `only` where it is to be changed: then there must be no other."""
    from ..live.socket_client import connected

    with connected(run, only) as client:
        return client.request(request)


def _command(run: str | None, request: Any) -> ExitCode:
    """Ask for something that is answered with a sentence, or with what changed."""
    from ..live.change_lines import answer_text
    from ..live.step_lines import local_now

    stdio.say(answer_text(_request(run, request), local_now()))
    return ExitCode.OK
