"""A comparison as a page: its tables, and below them charts of the runs over each other, as `ivypy report` has them."""

from pathlib import Path
from urllib.parse import quote

from ..errors import PlanError
from ..output.named_files import save
from ..report.archive import ArchiveLimits, archive_of
from ..report.one_file import MARK, has_plotly
from ..report.write_report import check_place, save_page
from .compare import Comparison
from .render_data import LOOK, body_of, html_of


def write_page(path: Path, comparison: Comparison) -> str:
    """Write the page; return a note about it, "" if there is none. Without plotly it has the tables alone.

    Raises PlanError, OutputError.
    """
    check_place(path, MARK.encode())
    if not has_plotly():
        save(path, lambda: path.write_text(html_of(comparison), encoding="utf-8"))
        return f"{path}: without charts: they need plotly: pip install 'ivypy[report]'"
    shown = {
        run.folder: f"{letter}{number} {run.folder.name}"
        for letter, runs in (("A", comparison.a), ("B", comparison.b))
        for number, run in enumerate(runs, 1)
    }
    try:
        archive = archive_of([*shown], ArchiveLimits(most_bytes=0), shown)
    except PlanError as error:
        save(path, lambda: path.write_text(html_of(comparison), encoding="utf-8"))
        return f"{path}: without charts: {error}"
    archive.left_out.clear()  # a comparison shows whole runs
    archive.route = f"#/compare/{','.join(quote(run, safe='') for run in archive.runs)}"
    save_page(path, archive, "ivypy compare", f"<style>\n{LOOK}</style>\n{body_of(comparison)}\n")
    return ""
