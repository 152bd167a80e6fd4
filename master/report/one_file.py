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
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from ..errors import PlanError
from ..text.libraries import to_install

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
_IMPORT: Final = re.compile(r'^import \{([\w$,\s]*)\} from "\./([\w.-]+\.js)";[ \t]*$', re.MULTILINE)
_EXPORT: Final = re.compile(
    r"^export (?=(?:async )?function\*? ([\w$]+)\b|const ([\w$]+)\b|class ([\w$]+)\b)", re.MULTILINE
)
_NAME: Final = re.compile(r"[\w$]+")
_UNKNOWN: Final = (  # what is left after the known forms were taken out
    re.compile(r"^[ \t]*(?:import|export)\b.*", re.MULTILINE),
    re.compile(r"\bimport\s*[(.].*"),
    re.compile(r"^(?:(?=\S)[\w$ {},\[\]]+=\s*|for )?await\b.*", re.MULTILINE),
)


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
        before, separator, after = page.partition(place)
        if not separator:
            raise ValueError(f"page.html has no {place.strip()}")
        page = before + text + after
    return page


def has_plotly() -> bool:
    """Whether the package is there."""
    return importlib.util.find_spec("plotly") is not None


@cache
def _plotly() -> tuple[str, str]:
    """Plotly's JavaScript as base64 of gzip, and its hash in a policy. Raises PlanError."""
    spec = importlib.util.find_spec("plotly")  # not imported: that takes longer than all that is done here
    if spec is None or spec.origin is None:
        raise PlanError(f"a report needs plotly: {to_install('plotly')}")
    script = (Path(spec.origin).parent / "package_data" / _PLOTLY).read_bytes()
    return base64.b64encode(gzip.compress(script, _LEVEL, mtime=0)).decode(), _hash(script.decode())


def _hash(script: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"


@dataclass(frozen=True, slots=True)
class _Module:
    imports: tuple[tuple[str, tuple[str, ...]], ...]  # of each module: its names
    exports: tuple[str, ...]
    body: str


def join_modules(texts: Mapping[str, str], main: str) -> str:
    """The script that does what the module `main` does. `texts`: of each module, by its file's name.

    Only the forms that the page's modules are written in are known; anything else is refused, so that nothing is joined
    that would mean something else. Each module becomes a function that is called once, after those that it imports
    from, and returns what it exports: browsers load no modules for a page that is opened from a file.

    Raises ValueError where a module is missing, imports what is not exported, is in a circle of imports, or has a
    form that is not known.
    """
    modules = {name: _parsed(name, text) for name, text in texts.items()}
    for name, module in modules.items():
        for other, names in module.imports:
            if other not in modules:
                raise ValueError(f"{name}: imports from ./{other}, which is not there")
            if missing := [one for one in names if one not in modules[other].exports]:
                raise ValueError(f"{name}: imports {missing[0]}, which ./{other} does not export")
    order: list[str] = []
    _visit(main, modules, order, ())
    place = {name: f"module_{number}" for number, name in enumerate(order)}
    parts = [_joined(name, modules[name], place) for name in order]
    return '"use strict";\n' + "\n".join(parts)


def _parsed(name: str, text: str) -> _Module:
    imports = tuple((other, _names(name, words)) for words, other in _IMPORT.findall(text))
    exports = tuple(next(filter(None, unknown)) for unknown in _EXPORT.findall(text))
    body = _EXPORT.sub("", _IMPORT.sub("", text))
    for form in _UNKNOWN:
        if found := form.search(body):
            line = text[: text.find(found[0])].count("\n") + 1
            raise ValueError(f"{name}:{line}: a form that cannot be joined: {found[0].strip()[:80]}")
    if "</script" in body.lower() or "<!--" in body:
        raise ValueError(f"{name}: holds </script or <!--, which ends a script within a page")
    return _Module(imports, exports, body.strip())


def _names(name: str, words: str) -> tuple[str, ...]:
    """Of `a, b,` between braces."""
    names = tuple(word.strip() for word in words.split(",") if word.strip())
    if wrong := [one for one in names if not _NAME.fullmatch(one)]:
        raise ValueError(f"{name}: a form of import that cannot be joined: {wrong[0]}")
    return names


def _visit(name: str, modules: Mapping[str, _Module], order: list[str], above: tuple[str, ...]) -> None:
    """Append a module after those that it imports from."""
    if name in above:
        raise ValueError(f"a circle of imports: {' -> '.join([*above[above.index(name) :], name])}")
    if name in order:
        return
    if name not in modules:
        raise ValueError(f"{name}: not there")
    for other, _ in modules[name].imports:
        _visit(other, modules, order, (*above, name))
    order.append(name)


def _joined(name: str, module: _Module, place: Mapping[str, str]) -> str:
    imports = [f"const {{ {', '.join(names)} }} = {place[other]};" for other, names in module.imports]
    returned = f"return {{ {', '.join(module.exports)} }};"
    return "\n".join([f"const {place[name]} = (() => {{ // {name}", *imports, module.body, returned, "})();"])
