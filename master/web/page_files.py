"""The page's own files, and the JavaScript of plotly's package, by name.

Rule: a name is looked up among those that there are, never made into a path.
"""

from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from .answers import WebAnswer, answer_of

PAGE: Final = "page.html"
PLOTLY: Final = "plotly.min.js"
KINDS: Final = {
    "html": "text/html",
    "js": "text/javascript",
    "css": "text/css",
    "svg": "image/svg+xml",
    "png": "image/png",
    "ico": "image/x-icon",
}


@cache
def page_file(name: str) -> WebAnswer | None:
    """None where there is no such file."""
    if name == PLOTLY:
        return answer_of(plotly_js().read_bytes(), KINDS["js"], level=6)
    folder = files("ivypy.master.pages") / "static"
    found = {one.name: one for one in folder.iterdir() if one.is_file()} if folder.is_dir() else {}
    kind = KINDS.get(name.rpartition(".")[2])
    return answer_of(found[name].read_bytes(), kind, level=6) if name in found and kind else None


def plotly_js() -> Traversable:
    """Raises ModuleNotFoundError where the package is missing."""
    return files("plotly") / "package_data" / PLOTLY
