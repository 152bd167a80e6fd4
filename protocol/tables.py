"""The two state tables as text, for ARCHITECTURE.md: printed from the code, so that they cannot drift."""

from .messages import word
from .states import ANSWERS, MAY_COMMAND, NEXT, State


def state_tables() -> str:
    """Both tables in Markdown."""
    lines = ["| state | may be commanded | may say (and is then) |", "|---|---|---|"]
    for state in State:
        commands = ", ".join(sorted(f"`{word(command)}`" for command in MAY_COMMAND[state])) or "-"
        said: dict[State, list[str]] = {}
        for saying, after in NEXT[state].items():
            said.setdefault(after, []).append(f"`{word(saying)}`")
        says = "; ".join(
            f"{', '.join(sorted(sayings))}" + (f" → **{after}**" if after is not state else "")
            for after, sayings in said.items()
        )
        lines.append(f"| **{state}** | {commands} | {says or '-'} |")
    lines += ["", "| command | answer (or `refused`) |", "|---|---|"]
    for command, answers in ANSWERS.items():
        lines.append(f"| `{word(command)}` | {', then '.join(f'`{word(answer)}`' for answer in answers)} |")
    return "\n".join(lines) + "\n"
