"""The addresses of the server: the page, its files, the data of runs, their live state, and actions."""

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from aiohttp import web
from aiohttp.typedefs import Handler
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
from ..pages.run_data import RunData
from ..rollup.instances import ALL
from .answers import REVALIDATED, WebAnswer, answer_of, encoded, failure, respond
from .compared import MOST_COMPARED, compared
from .live_clients import LiveClients
from .open_runs import OpenRuns

A_WEEK: Final = "private, max-age=604800"  # for plotly: it changes with its package only
STEP: Final = "/api/runs/{id}/steps/{step:[0-9]{1,6}}"
ACTING: Final = 4  # actions at a time; more wait
MOST_DIGITS: Final = 9
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
Word = Annotated[str, Field(max_length=1000)]


class Routes:
    """The handlers. Errors become sentences in serve.py."""

    def __init__(self, runs: OpenRuns, clients: LiveClients, control: bool) -> None:
        self._runs = runs
        self._clients = clients
        self._control = control
        self._comparing = asyncio.Lock()  # one at a time: it reads many files
        self._acting = ThreadPoolExecutor(ACTING, "ivypy-web-act")

    def table(self) -> list[web.RouteDef]:
        return [
            web.get("/", self.page),
            web.get("/static/{name}", self.file),
            web.get("/api/runs", self.runs),
            web.get("/api/compare", self.compare),
            web.get("/api/runs/{id}", self.document),
            *(web.get(f"{STEP}/{name}", self._of_step(name, compute)) for name, compute in _STEP_ANSWERS.items()),
            web.get("/api/runs/{id}/live", self.live),
            web.get("/api/runs/{id}/events", self.events),
            web.post("/api/runs/{id}/act", self.act),
        ]

    async def page(self, request: web.Request) -> web.StreamResponse:
        return await self._file(request, PAGE, REVALIDATED)

    async def file(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["name"]
        return await self._file(request, name, A_WEEK if name == PLOTLY else REVALIDATED)

    async def runs(self, request: web.Request) -> web.StreamResponse:
        return respond(request, await self._runs.list())

    async def compare(self, request: web.Request) -> web.StreamResponse:
        query = request.query
        sides = [[run for run in query.get(side, "").split(",") if run] for side in "ab"]
        if not all(sides):
            raise web.HTTPBadRequest(text="a, b: name the ids of the runs of each side.")
        if sum(map(len, sides)) > MOST_COMPARED:
            raise web.HTTPBadRequest(text=f"At most {MOST_COMPARED} runs are compared.")
        metrics = tuple(name for name in query.get("metric", "").split(",") if name)
        before, after = [{await self._runs.folder(run): run for run in side} for side in sides]
        async with self._comparing:
            try:
                data = await asyncio.to_thread(compared, before, after, metrics, query.get("max_regression", ""))
            except PlanError as error:
                return failure(422, str(error))
        return respond(request, encoded(data))

    async def document(self, request: web.Request) -> web.StreamResponse:
        run = await self._runs.open(request.match_info["id"])

        def document(data: RunData) -> dict[str, Any]:
            found = data.document()
            return {**found, "run": {**found["run"], "id": run.id}}

        return respond(request, await run.answer(("document",), document))

    async def live(self, request: web.Request) -> web.StreamResponse:
        return await self._clients.websocket(request, await self._runs.open(request.match_info["id"]))

    async def events(self, request: web.Request) -> web.StreamResponse:
        return await self._clients.events(request, await self._runs.open(request.match_info["id"]))

    async def act(self, request: web.Request) -> web.StreamResponse:
        if not self._control:
            return failure(403, "This server only shows runs; `ivypy web --allow-control` also changes them.")
        if request.content_type != "application/json":
            return failure(415, "Send application/json.")
        folder = await self._runs.folder(request.match_info["id"])
        try:
            action = parse_action(await request.read())
        except PlanError as error:
            return failure(400, str(error))
        via = f"ivypy web from {request.remote}"
        done = await asyncio.get_running_loop().run_in_executor(self._acting, act, folder, action, via)
        return web.json_response(done, headers={"Cache-Control": "no-store"})

    def close(self) -> None:
        self._acting.shutdown(wait=False, cancel_futures=True)

    async def _file(self, request: web.Request, name: str, caching: str) -> web.StreamResponse:
        answer = await asyncio.to_thread(page_file, name)
        if answer is None:
            raise KeyError(f"file {name}")
        return respond(request, answer, caching)

    def _of_step(self, name: str, compute: Callable[[RunData, "Asked"], Mapping[str, Any] | bytes]) -> Handler:
        async def answer(request: web.Request) -> web.StreamResponse:
            asked = _asked(request)
            run = await self._runs.open(request.match_info["id"])
            return respond(request, await run.answer((name, *astuple(asked)), lambda data: compute(data, asked)))

        return answer


@dataclass(frozen=True, slots=True)
class Asked:
    """The step, rollup instance and metric that a request names."""

    step: int
    by: str
    instance: str
    first: int  # subinterval
    metric: str  # of a connector


def _asked(request: web.Request) -> Asked:
    """Raises HTTPBadRequest."""
    query = request.query
    if unknown := query.keys() - {"by", "instance", "from", "metric"}:
        raise web.HTTPBadRequest(text=f"There is no parameter {min(unknown)}; there are by, instance, from and metric.")
    first = query.get("from", "0")
    if not (first.isascii() and first.isdigit() and len(first) <= MOST_DIGITS):
        raise web.HTTPBadRequest(text="from: write the number of a subinterval.")
    step, metric = int(request.match_info["step"]), query.get("metric", "")
    return Asked(step, query.get("by", ALL), query.get("instance", ALL), int(first), metric)


_STEP_ANSWERS: Final[Mapping[str, Callable[[RunData, Asked], Mapping[str, Any] | bytes]]] = {
    "series": lambda data, asked: data.series(asked.step, asked.by, asked.instance, asked.first),
    "cpu": lambda data, asked: data.cpu(asked.step, asked.first),
    "instances": lambda data, asked: data.instances(asked.step, asked.by),
    "control": lambda data, asked: data.control(asked.step),
    "sections": lambda data, asked: data.sections(asked.step, asked.by, asked.instance),
    "section_map": lambda data, asked: data.section_map(asked.step, asked.by),
    "distribution": lambda data, asked: data.distribution(asked.step, asked.by, asked.instance),
    "elements": lambda data, asked: data.elements(asked.step, asked.by, asked.instance),
    "element_lines": lambda data, asked: data.element_lines(asked.step, asked.metric),
    "histograms": lambda data, asked: data.histograms(asked.step, asked.by, asked.instance, asked.first),
}


@cache
def page_file(name: str) -> WebAnswer | None:
    """None where there is no such file: a name is looked up among those that there are, never made into a path."""
    if name == PLOTLY:
        return answer_of(plotly_js().read_bytes(), KINDS["js"], level=6)
    folder = files("ivypy.master.pages") / "static"
    found = {one.name: one for one in folder.iterdir() if one.is_file()} if folder.is_dir() else {}
    kind = KINDS.get(name.rpartition(".")[2])
    return answer_of(found[name].read_bytes(), kind, level=6) if name in found and kind else None


def plotly_js() -> Traversable:
    """Raises ModuleNotFoundError where the package is missing."""
    return files("plotly") / "package_data" / PLOTLY


class Action(BaseModel):
    """The body of `POST act`: a request of the command line. Its words go to the run, whose parsers decide."""

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
