"""Sources that a host is sent, compiled, so that the same Python there need not do it again: a third of the CPU time in
which a slave starts.

Rule: it depends on the sources and on this Python alone, so that the bundle keeps its hash. Another Python looks for
files of its own name, and takes the sources.
"""

import importlib.util
import marshal
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Final

# Later ones write how often an object was referred to, which is not the same each time.
_FORMAT: Final = 2
_UNCHECKED: Final = (1).to_bytes(4, "little")  # the bootstrap has hashed it, and the source beside it


def compiled(path: Path, place: str) -> dict[str, bytes]:
    """The file that Python looks for beside the source `path` once that is at `place`, a path in the bundle; none if
    this Python can make none that is the same each time.
    """
    tag = sys.implementation.cache_tag
    if tag is None or sys.flags.optimize:  # without its assertions
        return {}
    code = SourceFileLoader(path.stem, str(path)).get_code(path.stem)  # mostly kept from an earlier time
    assert code is not None, "a source has code"
    try:
        data = marshal.dumps(_moved(code, place), _FORMAT)
    except ValueError:  # from 3.14 on: a slice of constants, which this format lacks
        return {}
    folder, _, name = place.rpartition("/")
    head = importlib.util.MAGIC_NUMBER + _UNCHECKED + importlib.util.source_hash(path.read_bytes())
    return {f"{folder}/__pycache__/{name.removesuffix('.py')}.{tag}.pyc": head + data}


def _moved(code: CodeType, place: str) -> CodeType:
    """The same, and nothing of where it was compiled."""
    parts = tuple(_moved(part, place) if isinstance(part, CodeType) else part for part in code.co_consts)
    return code.replace(co_filename=place, co_consts=parts)
