"""ES modules as one classic script, for a page that is opened from a file: browsers load no modules from there.

Rule: only the forms that the page's modules are written in are known; anything else is refused, so that nothing is
joined that would mean something else. Each module becomes a function that is called once, after those that it
imports from, and returns what it exports.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

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


@dataclass(frozen=True, slots=True)
class _Module:
    imports: tuple[tuple[str, tuple[str, ...]], ...]  # of each module: its names
    exports: tuple[str, ...]
    body: str


def join_modules(texts: Mapping[str, str], main: str) -> str:
    """The script that does what the module `main` does. `texts`: of each module, by its file's name.

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
    exports = tuple(next(filter(None, found)) for found in _EXPORT.findall(text))
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
