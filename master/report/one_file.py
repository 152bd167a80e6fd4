"""The page with everything inside: one file of HTML that opens from disk, without network.

Rule: the page's policy forbids whatever is not in the file. Its two scripts, the page's own and Plotly, are named by
their hashes; Plotly is compressed, and unpacked by the page's script before that starts.
"""

import base64
import gzip
import hashlib
import importlib.util
import json
import re
from collections.abc import Mapping
from functools import cache
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from ..errors import PlanError
from .join_modules import join_modules

MARK: Final = '<meta name="generator" content="ivypy report">'  # in each file that is one
_PLOTLY: Final = "plotly.min.js"
_LEVEL: Final = 6  # of compression: the next three save 0.2 %
_STYLE: Final = re.compile(r'<link rel="stylesheet" href="static/([\w.-]+\.css)">')
_SCRIPT: Final = re.compile(r'<script src="static/plotly\.min\.js"></script>\n?')
_MODULE: Final = re.compile(r'<script type="module" src="static/([\w.-]+\.js)"></script>\n?')
_MAIN: Final = '<main id="main"'
_HEAD: Final = '<meta charset="utf-8">\n'

_BEGIN: Final = """\
async function unpackPlotly() {
  const packed = document.getElementById("plotly-gz");
  const bytes = Uint8Array.from(atob(packed.textContent), (letter) => letter.charCodeAt(0));
  const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const script = document.createElement("script");
  script.textContent = await new Response(unpacked).text();
  document.head.append(script);
  packed.remove();
}

function showFailure(error) {
  const line = document.createElement("p");
  line.setAttribute("role", "alert");
  line.textContent = `The report cannot be shown: ${error.message}. It needs a browser of 2023 or later.`;
  document.body.append(line);
}

unpackPlotly().then(startPage).catch(showFailure);

function startPage() {
"""
_END: Final = "\n}\n"


def page_of(archive: Mapping[str, Any], title: str, above: str = "") -> str:
    """The page with its data. `above`: markup that stands before the views.

    Raises PlanError where the package plotly is missing.
    """
    static = files("ivypy.master.pages") / "static"
    texts = {
        one.name: one.read_text(encoding="utf-8") for one in static.iterdir() if one.name.endswith((".js", ".css"))
    }
    page = static.joinpath("page.html").read_text(encoding="utf-8")
    plotly, plotly_hash = _plotly()
    (main,) = _MODULE.findall(page)
    script = _BEGIN + join_modules({name: text for name, text in texts.items() if name.endswith(".js")}, main) + _END
    page = _MODULE.sub("", _SCRIPT.sub("", page))
    page = _STYLE.sub(lambda found: f"<style>\n{texts[found[1]]}</style>", page)
    if "static/" in page:
        raise ValueError("page.html names a file that is not put into the report")
    data = json.dumps(archive, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}' '{plotly_hash}'; style-src 'unsafe-inline';"
        " img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    head = f'{_HEAD}{MARK}\n<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
    end = "\n".join([
        f'<script type="application/json" id="archive">{data}</script>',
        f'<script type="text/plain" id="plotly-gz">{plotly}</script>',
        f"<script>{script}</script>",
        "</body>",
    ])  # fmt: skip
    inserted = (
        (_HEAD, head),
        ("</body>", end),
        ("<title>ivypy</title>", f"<title>{escape(title)}</title>"),
        (_MAIN, above + _MAIN),
    )
    for place, text in inserted:
        before, found, after = page.partition(place)
        if not found:
            raise ValueError(f"page.html has no {place.strip()}")
        page = before + text + after
    return page


def has_plotly() -> bool:
    """Whether the package is there."""
    return importlib.util.find_spec("plotly") is not None


@cache
def _plotly() -> tuple[str, str]:
    """Plotly's JavaScript as base64 of gzip, and its hash in a policy. Raises PlanError."""
    found = importlib.util.find_spec("plotly")  # not imported: that takes longer than all that is done here
    if found is None or found.origin is None:
        raise PlanError("a report needs plotly: pip install 'ivypy[report]'")
    script = (Path(found.origin).parent / "package_data" / _PLOTLY).read_bytes()
    return base64.b64encode(gzip.compress(script, _LEVEL, mtime=0)).decode(), _hash(script.decode())


def _hash(script: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"
