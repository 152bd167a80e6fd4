"""An ivyscript as text: statements of bracketed words, their parameters, select expressions, amounts.

Rule: pure. The language around the statements (variables, if, loops, functions) is not run: it refuses the file.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ..text.suggestions import did_you_mean
from .description import Select

_TOKEN: Final = re.compile(
    r"""(?P<blank>\s+|//[^\n]*|/\*.*?\*/) | (?P<word>\[\s*[A-Za-z_]+!?\s*\]) | (?P<text>"(?:[^"\\]|\\.)*")
        | (?P<json>\{[^{}]*\}) | (?P<end>;) | (?P<number>[-+]?(?:\d+(?:\.\d*)?|\.\d+)%?)""",
    re.VERBOSE | re.DOTALL,
)
_MOST: Final = 1e12  # of I/Os per second and of seconds: far more than any plan takes
_ESCAPES: Final = {"n": "\n", "t": "\t"}
_BYTES: Final = {
    "": 1, "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
}  # fmt: skip

# The words that begin a statement, and those that may follow.
STATEMENTS: Final[Mapping[str, tuple[str, ...]]] = {
    "outputfolderroot": (),
    "hosts": ("select",),
    "setiosequencertemplate": ("parameters",),
    "createworkload": ("select", "iosequencer", "parameters"),
    "deleteworkload": ("select",),
    "createrollup": ("nocsv", "quantity", "maxdroop"),
    "editrollup": ("parameters",),
    "deleterollup": (),
    "go": (),
}
_SHOWN: Final = {
    "outputfolderroot": "OutputFolderRoot", "hosts": "Hosts", "setiosequencertemplate": "SetIosequencerTemplate",
    "createworkload": "CreateWorkload", "deleteworkload": "DeleteWorkload", "createrollup": "CreateRollup",
    "editrollup": "EditRollup", "deleterollup": "DeleteRollup", "go": "Go!", "select": "Select",
    "iosequencer": "iosequencer", "parameters": "parameters", "nocsv": "nocsv", "quantity": "quantity",
    "maxdroop": "MaxDroop",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement: what follows its words, as text."""

    word: str  # in lower case
    where: str  # file:line
    value: str
    clauses: Mapping[str, str]  # `select`: what is between the braces


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    where: str


def statements(text: str, name: str, faults: list[str]) -> list[Statement]:
    """The statements of a script in their order; what is none of them is added to `faults`, the first of each kind."""
    found = []
    for tokens in _parted(text, name, faults):
        statement = _statement(tokens, faults)
        if statement is not None:
            found.append(statement)
    return found


def _parted(text: str, name: str, faults: list[str]) -> list[list[_Token]]:
    """The tokens of each statement, without the `;`."""
    parted: list[list[_Token]] = [[]]
    at, line = 0, 1
    while at < len(text):
        match = _TOKEN.match(text, at)
        where = f"{name}:{line}"
        if match is None:
            faults.append(f"{where}: {_excerpt(text, at)}: {_foreign(text, at)}")
            return []
        if match.lastgroup == "end":
            parted.append([])
        elif match.lastgroup != "blank":
            parted[-1].append(_Token(match.lastgroup or "", match[0], where))
        at, line = match.end(), line + match[0].count("\n")
    return [tokens for tokens in parted if tokens]


def _foreign(text: str, at: int) -> str:
    if text[at] == '"':
        return 'a text without its closing "'
    if text[at] == "[":
        return "no statement of ivy"
    return "only statements are imported, no variables, conditions or loops: write those in Python with `ivypy.Session`"


def _excerpt(text: str, at: int) -> str:
    return text[at:].split("\n")[0].strip()[:40]


def _statement(tokens: list[_Token], faults: list[str]) -> Statement | None:
    first, *others = tokens
    word = _plain(first.text)
    if first.kind != "word" or word not in STATEMENTS:
        known = [shown for name, shown in _SHOWN.items() if name in STATEMENTS]
        what = "no statement of ivy" if first.kind == "word" else "a statement begins with a word in brackets"
        likely = did_you_mean(first.text.strip("[] "), known) if first.kind == "word" else ""
        faults.append(f"{first.where}: {first.text[:40]}: {what}{likely}")
        return None
    value, clauses, current = "", {}, ""
    for token in others:
        if token.kind == "word":
            current = _plain(token.text)
            if current not in STATEMENTS[word]:
                faults.append(
                    f"{token.where}: {token.text}: not part of [{_SHOWN[word]}]; a `;` may be missing before it"
                )
                return None
            clauses[current] = ""
        elif current:
            clauses[current] += _value(token)
        else:
            value += _value(token)
    return Statement(word, first.where, value, clauses)


def _plain(word: str) -> str:
    return re.sub(r"[\[\]_!\s]", "", word).lower()


def _value(token: _Token) -> str:
    if token.kind == "text":
        return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), token.text[1:-1], flags=re.DOTALL)
    return token.text.strip("{}").strip() if token.kind == "json" else token.text


def parameters(text: str) -> tuple[dict[str, str], dict[str, str]]:
    """`a_b=1, b="x y", c=(1,2)` by names in lower case without underscores, and those names as they are written.

    A list keeps its parentheses. Raises ValueError with what cannot be read.
    """
    found: dict[str, str] = {}
    written: dict[str, str] = {}
    at = 0
    pattern = re.compile(r"""[\s,]*([A-Za-z_][\w ]*?)\s*=\s*("[^"]*"|'[^']*'|\([^)]*\)|[^,\s]+)""")
    while text[at:].replace(",", " ").strip():
        match = pattern.match(text, at)
        if match is None:
            raise ValueError(f"{text[at:].strip()[:40]}: not NAME=VALUE")
        name = re.sub(r"[_ ]", "", match[1]).lower()
        found[name], written[name] = match[2].strip("\"'"), match[1]
        at = match.end()
    return found, written


def values(text: str) -> list[str]:
    """Of `(1, 2)`; of `1`, itself."""
    return [part.strip().strip("\"'") for part in text.strip("()").split(",") if part.strip()]


def select(text: str) -> Select:
    """`"serial_number" : "83011441", "port" : [ "1A", "2A" ]`, quotes or not; names as ivypy has them.

    Raises ValueError with what cannot be read.
    """
    found: dict[str, tuple[str, ...]] = {}
    at = 0
    text = text.strip().removeprefix("{").removesuffix("}")  # of a text in quotes
    pattern = re.compile(r"""[\s,]*("[^"]*"|[\w ]+?)\s*:\s*(\[(?:"[^"]*"|[^]"[]|\[[^]"]*\])*\]|"[^"]*"|[^,\s]+)""")
    while text[at:].replace(",", " ").strip():
        match = pattern.match(text, at)
        if match is None:
            raise ValueError(f"{text[at:].strip()[:40]}: not ATTRIBUTE : VALUE")
        listed = match[2][1:-1] if match[2].startswith("[") else match[2]
        chosen = [part.strip().strip('"') for part in re.findall(r"(?:\[[^]]*\]|[^,])+", listed)]
        name = attribute(match[1].strip('"'))
        if name in found:
            raise ValueError(f"{match[0].strip(', ')}: the attribute is there twice; write a list of its values")
        found[name] = tuple(one for one in chosen if one)
        at = match.end()
    return tuple(found.items())


# Attributes of LUNs by ivy's names.
_ATTRIBUTES: Final = {
    "serial_number": "serial", "product": "model", "lun_name": "path", "product_revision": "firmware",
    "ivyscript_hostname": "host", "sector_size": "logical_block_size", "workloadid": "host+path+workload",
}  # fmt: skip


def attribute(name: str) -> str:
    plain = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    return _ATTRIBUTES.get(plain, plain)


def rollup_type(text: str) -> str:
    """`serial_number + port` as a plan writes it."""
    return "+".join(attribute(part) for part in text.split("+"))


def size_of(text: str) -> int:
    """Bytes. Raises ValueError."""
    match = re.fullmatch(r"(\d{1,18}(?:\.\d+)?)\s*([kmgt]i?b)?", text.strip().lower())
    if match is None:
        raise ValueError(f"{text}: not a size")
    return round(float(match[1]) * _BYTES[match[2] or ""])


def seconds_of(text: str) -> float:
    """Of seconds, `MM:SS` or `HH:MM:SS`. Raises ValueError."""
    if not re.fullmatch(r"\d+(\.\d+)?|(\d+:){1,2}\d+", text.strip()):
        raise ValueError(f"{text}: not a time in seconds")
    total = 0.0
    for part in text.split(":"):
        total = total * 60 + float(part)
    return _bounded(total)


def number_of(text: str) -> float:
    """Raises ValueError."""
    if not re.fullmatch(r"(\d+\.?\d*|\.\d+)(e[-+]?\d{1,2})?", text.strip(), re.IGNORECASE):
        raise ValueError("not a number")
    return _bounded(float(text))


def _bounded(number: float) -> float:
    if number > _MOST:
        raise ValueError(f"more than {_MOST:.0e}")
    return number


def whole_of(text: str) -> int:
    """Raises ValueError."""
    if not re.fullmatch(r"[0-9]{1,9}", text.strip()):
        raise ValueError("not a whole number")
    return int(text)


def fraction_of(text: str) -> float:
    """Of `0.5` or `50%`. Raises ValueError."""
    match = re.fullmatch(r"(\d*\.?\d+|\d+\.)(%?)", text.strip())
    if match is None:
        raise ValueError(f"{text}: not a fraction")
    return float(match[1]) / (100 if match[2] else 1)
