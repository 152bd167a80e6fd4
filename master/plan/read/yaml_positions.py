"""YAML text as a tree of texts, each with its place.

Rule: nothing is typed here. YAML 1.1's guesses (1:30 is 90, 010 is 8, yes is true, 1e3 is text) never happen,
since every scalar stays text until the field that it is given to reads it. What YAML allows but a plan does not
need is refused with its place: duplicate keys, tags, merge keys, keys that are not text, recursive aliases. A fault
is one sentence with the remedy; the report adds `file:line:column`, the line and a caret.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

import yaml

from ...errors import PlanError

LONGEST: Final = 16 << 20  # characters of a plan
MOST_VALUES: Final = 500_000  # with aliases written out
DEEPEST: Final = 100  # values inside each other
TOO_DEEP: Final = f"more than {DEEPEST} values inside each other; a plan needs no more"
Path = tuple[str | int, ...]  # keys and positions from the root

_LOADER: Final = getattr(yaml, "CBaseLoader", yaml.BaseLoader)  # "base": resolves no types
# Line ends to YAML 1.1 but not to editors: with them, no line number would be right.
_HIDDEN_BREAKS: Final = re.compile("[\r\x85\u2028\u2029]")
_HALVES: Final = re.compile("[\ud800-\udfff]")
_PLAIN_TAGS: Final = {f"tag:yaml.org,2002:{kind}" for kind in ("str", "seq", "map")}
WIDEST: Final = 76  # characters of a source line that are shown, on 80 columns; longer ones are cut around the caret


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A position in a plan's text, counted from 1."""

    name: str  # the file as the user named it
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.name}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True, order=True)
class PlanFault:
    place: Place
    text: str


class Predicate(ValueError):
    """A fault whose text goes on from the name of the value: "is empty; it needs a host"."""


class AlreadyReported(ValueError):
    """A value that cannot be read for a fault that has been noted elsewhere."""


def sentence(subject: str, error: ValueError) -> str:
    """The sentence for a fault of a value: "select is empty", "maxtags: '0' is too little"."""
    return f"{subject}{' ' if isinstance(error, Predicate) else ': '}{error}"


class PlanFaults(PlanError):
    """Every fault of a plan. Its text is the complete report."""

    def __init__(self, faults: Iterable[PlanFault], source: str) -> None:
        self.faults = tuple(sorted(set(faults)))
        lines = source.split("\n")
        super().__init__("\n".join(_shown(fault, lines) for fault in self.faults))


def _shown(fault: PlanFault, lines: list[str]) -> str:
    place = fault.place
    line = lines[place.line - 1] if place.line <= len(lines) else ""
    column = min(place.column - 1, len(line))
    start = max(0, column - WIDEST + 20) if len(line) > WIDEST else 0
    shown = "".join(c if c.isprintable() else " " for c in line[start : start + WIDEST])
    return f"{place}: {fault.text}\n    {shown}\n    {' ' * (column - start)}^"


@dataclass(slots=True)
class Node:
    """A scalar (None: nothing was given), a list, or a mapping; line and column from 1."""

    value: "str | list[Node] | dict[str, Node] | None"
    line: int
    column: int
    quoted: bool = False
    keys: dict[str, tuple[int, int]] = field(default_factory=dict)  # of a mapping: the place of each key


@dataclass(slots=True)
class Document:
    """A plan's text, its tree, and what was wrong with it as YAML."""

    name: str
    text: str
    root: Node
    faults: list[PlanFault]

    def find(self, path: Path) -> tuple[Node, Path]:
        """The node at `path`, or the deepest one above it in the text; and the rest of the path."""
        node = self.root
        for depth, part in enumerate(path):
            below = None
            if isinstance(part, int) and not isinstance(node.value, list):
                continue  # a single value where a list may be
            if isinstance(node.value, dict) and isinstance(part, str):
                below = node.value.get(part)
            elif isinstance(node.value, list) and isinstance(part, int) and part < len(node.value):
                below = node.value[part]
            if below is None:
                return node, path[depth:]
            node = below
        return node, ()

    def place(self, path: Path) -> Place:
        """The place of the value at `path`; of a missing value, its key or the nearest node above it."""
        node, rest = self.find(path)
        if not rest and node.value is None and path and isinstance(path[-1], str):
            return self.key_place(path)
        return Place(self.name, node.line, node.column)

    def key_place(self, path: Path) -> Place:
        """The place of the key that ends `path`."""
        above, _ = self.find(path[:-1])
        line, column = above.keys.get(str(path[-1]), (above.line, above.column)) if path else (1, 1)
        return Place(self.name, line, column)

    def keys(self, path: Path) -> list[str]:
        """The keys of the mapping at `path`, in the order of the text."""
        node, rest = self.find(path)
        return list(node.value) if not rest and isinstance(node.value, dict) else []


PARAMETERS: Final = "parameters"  # the section with values that others refer to as ${name}


class Faults:
    """Collects faults by the path of the faulty value."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.collected: list[PlanFault] = []
        self.sections: set[str] = set()  # that have faults

    def add(self, path: Path, text: str) -> None:
        """A fault of the value at `path`; of a parameter's, it says where that is set, too."""
        self._note(path, self.document.place(path), text + self._from_parameters(path))

    def _from_parameters(self, path: Path) -> str:
        node, _ = self.document.find(path)
        if not isinstance(node.value, str):
            return ""
        names = [name for name in self.document.keys((PARAMETERS,)) if f"${{{name}}}" in node.value]
        places = [f"{name} in line {self.document.place((PARAMETERS, name)).line} or by -D" for name in names]
        return f" (set as {', '.join(places)})" if places else ""

    def has_fault(self, path: Path) -> bool:
        """Whether the value at `path` has a fault already."""
        place = self.document.place(path)
        return any(fault.place == place for fault in self.collected)

    def unreadable(self, path: Path) -> bool:
        """Whether the value at `path` could not be read and has a fault: it is not missing."""
        above, rest = self.document.find(path[:-1])
        return not rest and isinstance(above.value, dict) and path[-1] in above.keys.keys() - above.value.keys()

    def add_key(self, path: Path, text: str) -> None:
        """A fault of the key that ends `path`."""
        self._note(path, self.document.key_place(path), text)

    def _note(self, path: Path, place: Place, text: str) -> None:
        self.collected.append(PlanFault(place, text))
        self.sections.update(str(part) for part in path[:1])


def parse(text: str, name: str) -> Document:
    """Raises PlanFaults where `text` is not YAML at all; other faults are listed in the document."""
    if len(text) > LONGEST:
        raise PlanFaults([PlanFault(Place(name, 1, 1), f"the plan is longer than {LONGEST >> 20} MiB")], "")
    if hidden := [_hidden_break(text, found.start(), name) for found in _HIDDEN_BREAKS.finditer(text)]:
        raise PlanFaults(hidden, text)
    if half := _HALVES.search(text):
        before = text[: half.start()]
        place = Place(name, before.count("\n") + 1, half.start() - before.rfind("\n"))
        raise PlanFaults(
            [PlanFault(place, "half a character (U+D800 to U+DFFF), which no file holds; remove it")], text
        )
    try:
        if deep := _too_deep(text):
            raise PlanFaults([PlanFault(Place(name, *deep), TOO_DEEP)], text)
        composed = yaml.compose(text, Loader=_LOADER)
    except yaml.YAMLError as error:
        raise PlanFaults([_syntax_fault(error, text, name)], text) from None
    document = Document(name, text, Node(None, 1, 1), [])
    if composed is not None:
        document.root = _Builder(document).build(composed)
    if document.root.value is None:
        raise PlanFaults([PlanFault(Place(name, 1, 1), "the plan is empty; docs/plan.md says what it may hold")], text)
    if not isinstance(document.root.value, dict):
        document.faults.append(
            PlanFault(Place(name, 1, 1), "the plan is not a mapping of keys (name:, luns:, steps: ...)")
        )
        raise PlanFaults(document.faults, text)
    return document


def _too_deep(text: str) -> tuple[int, int] | None:
    """Line and column, from 1, where a list or mapping begins that stands inside too many. Composing one uses the
    stack for each, in C: the process would end. Raises yaml.YAMLError.
    """
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > DEEPEST and event.start_mark:
                return event.start_mark.line + 1, event.start_mark.column + 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
    return None


def _hidden_break(text: str, at: int, name: str) -> PlanFault:
    place = Place(name, text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at))
    return PlanFault(
        place, f"U+{ord(text[at]):04X} ends a line for YAML, but not for editors; remove it, or use a plain newline"
    )


class _Builder:
    """Turns the parser's nodes into ours, noting what a plan may not have."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.made: dict[int, Node] = {}  # by the identity of the parser's node: an alias is the same node
        self.open: set[int] = set()
        self.size: dict[int, int] = {}  # values in a node, aliases written out

    def fault(self, node: yaml.Node, text: str) -> None:
        self.document.faults.append(PlanFault(self.place(node), text))

    def place(self, node: yaml.Node) -> Place:
        return Place(self.document.name, node.start_mark.line + 1, node.start_mark.column + 1)

    def build(self, node: yaml.Node) -> Node:
        known = self.made.get(id(node))
        if known is not None:
            return known
        built = Node(None, node.start_mark.line + 1, node.start_mark.column + 1)
        if id(node) in self.open:
            self.fault(node, "an alias inside its own value would never end; write it out")
            return built
        if len(self.open) >= DEEPEST:
            self.fault(node, TOO_DEEP)
            raise PlanFaults(self.document.faults, self.document.text)
        self.open.add(id(node))
        if node.tag not in _PLAIN_TAGS:
            word = node.tag.replace("tag:yaml.org,2002:", "!!")
            self.fault(node, f"{word!r} is a YAML tag, which plans do not have; if it is text, put it in quotes")
        children = self.fill(built, node)
        self.size[id(node)] = 1 + sum(self.size.get(id(child), 1) for child in children)
        if self.size[id(node)] > MOST_VALUES:
            self.fault(node, f"with its aliases written out, this holds more than {MOST_VALUES:,} values")
            raise PlanFaults(self.document.faults, self.document.text)
        self.open.discard(id(node))
        self.made[id(node)] = built
        return built

    def fill(self, built: Node, node: yaml.Node) -> list[yaml.Node]:
        if isinstance(node, yaml.ScalarNode):
            built.quoted = node.style in ("'", '"', "|", ">")
            empty = not built.quoted and node.value in ("", "~")
            built.value = None if empty else node.value
            return []
        if isinstance(node, yaml.SequenceNode):
            built.value = [self.build(child) for child in node.value]
            return list(node.value)
        built.value = dict(self.entries(built, node))
        return [value for _, value in node.value]

    def entries(self, built: Node, node: yaml.Node) -> Iterator[tuple[str, Node]]:
        for key, value in node.value:
            child = self.build(value)
            place = self.place(key)
            if not isinstance(key, yaml.ScalarNode):
                self.fault(key, "a key must be text; what begins with { or [ needs quotes to be text")
            elif key.value == "<<" and not key.style:
                self.fault(key, "plans have no merge keys (<<); write the settings out, or alias the whole mapping")
            elif key.value in built.keys:
                line, column = built.keys[key.value]
                self.fault(key, f"duplicate key {key.value!r} (first in line {line}, column {column})")
            else:
                built.keys[key.value] = (place.line, place.column)
                yield key.value, child


def _syntax_fault(error: yaml.YAMLError, text: str, name: str) -> PlanFault:
    if isinstance(error, yaml.reader.ReaderError):
        before = text[: error.position]
        place = Place(name, before.count("\n") + 1, error.position - before.rfind("\n"))
        return PlanFault(place, f"a character that text cannot have: #x{error.character:04x}; remove it")
    error = _clearer(error, text)
    mark = getattr(error, "problem_mark", None)
    problem = str(getattr(error, "problem", None) or error).removeprefix("but ")
    if "unexpected end of stream" in problem:
        mark = getattr(error, "context_mark", None) or mark  # where the quote began
    line, column = (mark.line, mark.column) if mark else (0, 0)
    lines = text.split("\n")
    if line >= len(lines) or (line == len(lines) - 1 and not lines[line] and line > 0):  # the end of the text
        line, column = max(0, len(lines) - 2), len(lines[max(0, len(lines) - 2)])
    return PlanFault(Place(name, line + 1, column + 1), _remedy(problem, lines[line], column))


def _clearer(error: yaml.YAMLError, text: str) -> yaml.YAMLError:
    """The pure parser's word on the same line, which says what it found there."""
    try:
        yaml.compose(text, Loader=yaml.BaseLoader)
    except yaml.MarkedYAMLError as clearer:
        ours, theirs = getattr(error, "problem_mark", None), clearer.problem_mark
        if ours and theirs and ours.line == theirs.line:
            return clearer
    except (yaml.YAMLError, RecursionError):
        pass
    return error


# The parser's words, and the line with @ where the fault is -> what to do about it. The first row that fits.
_REMEDIES: Final[tuple[tuple[str, str, str], ...]] = (
    ("", r"@\t", "a tab where YAML requires spaces; indent with spaces"),
    ("", r"\$@\{", 'inside { } and [ ], ${...} needs quotes: "${name}"'),
    ("expected ',' or", r"[\w.=+-]@[\[{]", "inside { } and [ ], text with { } [ ] or a comma in it needs quotes"),
    ("expected ',' or", r"", "a { or [ is not closed, or a comma is missing"),
    ("block scalar", r"", 'text that begins with > or | needs quotes: ">= 100GiB"'),
    ("chomping", r"", 'text that begins with > or | needs quotes: ">= 100GiB"'),
    ("undefined alias", r"", "text that begins with * needs quotes"),
    ("cannot start any token", r"", "text that begins with this character needs quotes"),
    ("mapping values are not", r"", "text with a colon and a space in it needs quotes; or the indentation is wrong"),
    ("block end", r"", "the indentation does not fit the lines above"),
    ("could not find expected ':'", r"", "a key needs a colon and a space after it"),
    ("unexpected end of stream", r"", "a quote is not closed"),
    ("unknown escape character", r"", "write it in single quotes, where a backslash is only a backslash"),
    ("another document", r"", "a plan is one document; remove the line ---"),
)


def _remedy(problem: str, line: str, column: int) -> str:
    if "maximum nesting depth" in problem:  # its own limit of 1,000, since PyYAML 6.0.4; it reads ahead of ours
        return TOO_DEEP
    marked = f"{line[:column]}@{line[column:]}"
    for words, looks, remedy in _REMEDIES:
        if words in problem and re.search(looks, marked):
            return f"not YAML: {problem}; {remedy}"
    return f"not YAML: {problem}"
