"""A comparison as a file of HTML that needs nothing else: with plotly the page's own view, else its tables alone."""

from pathlib import Path

from ..errors import PlanError
from ..output.named_files import save
from ..report.archive import ArchiveLimits, archive_of
from ..report.one_file import MARK, has_plotly
from ..report.write_report import check_place, save_page
from ..text.libraries import to_install
from .compare import Comparison
from .page_data import address_of, overlaid_of, page_data, route_of
from .render_data import LOOK, body_of, html_of


def write_page(path: Path, comparison: Comparison) -> str:
    """Write the page; return a note about it, "" if there is none.

    A reader that runs no scripts, as of some CI systems, sees the tables. Raises PlanError, OutputError.
    """
    check_place(path, MARK.encode())
    if not has_plotly():
        save(path, lambda: path.write_text(html_of(comparison), encoding="utf-8"))
        return f"{path}: without charts: they need plotly: {to_install('plotly')}"
    runs = (*comparison.a, *comparison.b)
    kept = [run.folder for run in overlaid_of(comparison)]
    names = {run.folder: f"{run.name} {run.folder.name}" for run in runs}
    try:
        archive = archive_of([run.folder for run in runs], ArchiveLimits(most_bytes=0), names, kept)
    except PlanError as error:
        save(path, lambda: path.write_text(html_of(comparison), encoding="utf-8"))
        return f"{path}: without charts: {error}"
    archive.left_out.clear()  # a comparison shows whole runs
    sides = archive.runs[: len(comparison.a)], archive.runs[len(comparison.a) :]
    ids = {run.folder: name for run, name in zip(runs, archive.runs, strict=True) if run.folder in kept}
    archive.add(address_of(*sides), page_data(comparison, ids))
    archive.route = route_of(*sides)
    above = f"<noscript><style>\n{LOOK}</style>\n{body_of(comparison)}\n</noscript>\n"
    save_page(path, archive, "ivypy compare", above)
    return ""
