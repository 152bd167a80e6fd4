"""Pages that code prints are as the code prints them; `scripts/docs` writes them anew."""

from pathlib import Path

from ivypy.protocol.tables import state_tables

ROOT = Path(__file__).parent.parent


def between(text: str, name: str) -> str:
    """What stands between a page's markers."""
    _, _, rest = text.partition(f"<!-- {name}: begin")
    return rest.partition("-->\n")[2].partition(f"<!-- {name}: end")[0]


def test_architecture_has_the_state_tables() -> None:
    assert between((ROOT / "ARCHITECTURE.md").read_text(), "state-tables") == state_tables()
