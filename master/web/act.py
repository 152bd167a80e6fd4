"""Does what a user asks of a running test from the page: the requests of the command line, with its answers.

Rule: this module parses nothing but the form of the request; words go to the run, whose parsers decide.
"""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..errors import PlanError
from ..live.change_lines import answer_text
from ..live.socket_client import connected
from ..live.socket_messages import (
    Changed,
    Done,
    EditRequest,
    MarkRequest,
    PauseRequest,
    Request,
    SkipRequest,
    StopRequest,
    UnpauseRequest,
    ViaRequest,
)
from ..live.step_lines import local_now

Word = Annotated[str, Field(max_length=1000)]


class Action(BaseModel):
    """The body of `POST act`."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    action: Literal["edit", "target", "pause", "unpause", "stop", "skip", "mark"]
    words: Annotated[list[Word], Field(max_length=64)] = []
    force: bool = False


def parse_action(body: bytes) -> Action:
    """Raises PlanError."""
    try:
        return Action.model_validate_json(body)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise PlanError(f"not an action: {place + ': ' if place else ''}{first['msg']}") from None


def act(folder: Path, action: Action, via: str) -> dict[str, Any]:
    """Do it to the run of a folder, and wait for its answer. `via`: for the author in events.csv."""
    try:
        request = _request(action)
        with connected(str(folder)) as client:
            client.request(ViaRequest(via))
            answer = client.request(request)
        assert isinstance(answer, Changed | Done)
    except PlanError as error:
        return {"ok": False, "text": str(error)}
    failed = isinstance(answer, Changed) and any(took.failed for took in answer.took)
    return {"ok": not failed, "text": answer_text(answer, local_now())}


def _request(action: Action) -> Request:
    words = tuple(action.words)
    match action.action:
        case "edit" | "target":
            return EditRequest(words, action.force)
        case "mark":
            return MarkRequest(" ".join(words))
    if words:
        raise PlanError(f"{action.action} takes no words")
    match action.action:
        case "pause":
            return PauseRequest()
        case "unpause":
            return UnpauseRequest()
        case "stop":
            return StopRequest()
        case "skip":
            return SkipRequest()
