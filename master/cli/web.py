"""The command `ivypy web`: the runs in the browser.

Rule: this module only parses words; heavy modules are imported when the command runs, so that --help is quick.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from ..errors import PlanError
from ..exit_codes import ExitCode
from ..live import stdio
from ..text.libraries import to_install
from .metrics import METRICS
from .results import ROOT

if TYPE_CHECKING:
    from ..run.session.signals import Interrupts
    from ..web.beside_run import PageBesideRun
    from ..web.live_clients import LiveClients

LISTEN: Final = "127.0.0.1:8808"
FILE = click.Path(path_type=Path, dir_okay=False)


def need_web() -> None:
    """Raises PlanError where the page's libraries are missing."""
    from importlib import import_module

    for name in ("aiohttp", "plotly"):
        try:
            import_module(name)
        except ImportError:
            raise PlanError(f"the page needs {name}: {to_install(name)}") from None


def page_of_run(root: Path) -> "PageBesideRun":
    """For a run that makes its folder in `root`; prints the address. Without a page the run goes on all the same."""
    from ..web.beside_run import PageBesideRun

    page = PageBesideRun(root)
    stdio.complain(f"page: {page.address}" if page.address else f"the run has no page: {page.fault}")
    return page


@click.command()
@click.argument("roots", nargs=-1, type=click.Path(path_type=Path), metavar="[ROOT]...")
@click.option("--listen", default=LISTEN, show_default=True, metavar="ADDRESS:PORT", help="Port 0 takes a free one.")
@click.option("--allow-control", is_flag=True, help="The page may change and stop running tests.")
@click.option("--tls-cert", type=FILE, metavar="FILE", help="Certificate (PEM), to listen beyond this machine.")
@click.option("--tls-key", type=FILE, metavar="FILE", help="Its private key (PEM).")
@click.option("--insecure", is_flag=True, help="Listen beyond this machine without TLS.")
@METRICS
@click.option("--beside-run", is_flag=True, hidden=True)
def web(
    roots: tuple[Path, ...], listen: str, allow_control: bool, tls_cert: Path | None, tls_key: Path | None,
    insecure: bool, metrics: str, beside_run: bool,
) -> ExitCode:  # fmt: skip
    """Show the runs in the folders ROOT, by default ./runs, in the browser, those that are running as they go on.

    Prints the address of the page, with a token: whoever has it sees the runs. Ctrl-C ends it; no run is disturbed.
    """
    import asyncio

    need_web()
    if missing := [root for root in roots if not root.is_dir() and not beside_run]:
        what = "a file" if missing[0].exists() else "there is no such folder"
        raise PlanError(f"{missing[0]}: {what}; name a folder of runs, or a run")
    from ..run.session.signals import run_until_pressed
    from ..web.access import WebAccess, names_of_this_machine
    from ..web.beside_run import until_not_needed
    from ..web.listen import listening, own_name, parse_listen, tls_of, url_of
    from ..web.serve import Served, serve

    address, tls = parse_listen(listen), tls_of(tls_cert, tls_key)
    sockets = listening(address, tls is not None, insecure, or_any_port=beside_run)
    if metrics:
        _serve_metrics(roots or (ROOT,), metrics)
    name = own_name(address, tls is not None)
    access = WebAccess(names_of_this_machine(address.host) | {name})
    stdio.say(f"{url_of(sockets[0], address, name, tls is not None)}#token={access.token}")
    served = Served(roots or (ROOT,), access, allow_control, tls)

    async def main(presses: "Interrupts") -> ExitCode:
        pressed = asyncio.Event()
        presses.halts(pressed.set)

        async def until(clients: "LiveClients") -> None:
            ends: list[asyncio.Task[Any]] = [asyncio.create_task(pressed.wait())]
            if beside_run:
                ends.append(asyncio.create_task(until_not_needed(clients)))
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            for end in ends:
                end.cancel()

        await serve(sockets, served, until)
        return ExitCode.INTERRUPTED if pressed.is_set() else ExitCode.OK

    return run_until_pressed(main)


def _serve_metrics(roots: tuple[Path, ...], address: str) -> None:
    """Those of the runs that are active at the time of a scrape. Raises PlanError."""
    from datetime import UTC, datetime

    from ..openmetrics.export import registry_of, served
    from ..web.run_index import RunIndex

    index = RunIndex(roots)
    served(registry_of(lambda: index.active(datetime.now(UTC)), None), address)
