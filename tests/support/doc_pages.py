"""The generated pages, each with the text that it should have; `scripts/docs` writes them, test_docs.py compares."""

import re
from pathlib import Path

from ivypy.master.cli.commands import cli
from ivypy.master.cli.man_page import man_page
from ivypy.master.imports.fio_options import option_table
from ivypy.master.imports.vdbench_words import keyword_table
from ivypy.master.output.doc_pages import pages as output_pages
from ivypy.master.plan.doc_pages import plan_reference
from ivypy.master.version import VERSION
from ivypy.protocol.states import state_tables
from ivypy.slave.host_connector.connector import metric_table
from tests.support import gallery

ROOT = Path(__file__).parents[2]


def between(text: str, name: str, content: str) -> str:
    """A page with `content` between its two markers."""
    before, _, rest = text.partition(f"<!-- {name}: begin")
    comment, _, rest = rest.partition("-->\n")
    _, _, after = rest.partition(f"<!-- {name}: end -->")
    return f"{before}<!-- {name}: begin{comment}-->\n{content}<!-- {name}: end -->{after}"


def released() -> str:
    """The date of the newest version in the changelog."""
    newest = re.search(r"^## .*?(\d{4}-\d\d-\d\d)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None
    return newest[1]


def pages() -> dict[Path, str]:
    """Path and text of every page that code prints, in whole or in part."""
    architecture = ROOT / "ARCHITECTURE.md"
    from_fio = ROOT / "docs" / "coming-from-fio.md"
    from_vdbench = ROOT / "docs" / "coming-from-vdbench.md"
    of_hosts = ROOT / "docs" / "host-connector.md"
    return {
        **{ROOT / "docs" / name: text for name, text in output_pages().items()},
        ROOT / "docs" / "plan.md": plan_reference(),
        gallery.PAGE: gallery.page(),
        from_fio: between(from_fio.read_text(), "fio-options", option_table()),
        from_vdbench: between(from_vdbench.read_text(), "vdbench-keywords", keyword_table()),
        of_hosts: between(of_hosts.read_text(), "host-metrics", metric_table()),
        ROOT / "docs" / "ivypy.1": man_page(cli, VERSION, released()),
        architecture: between(architecture.read_text(), "state-tables", state_tables()),
    }


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text)
