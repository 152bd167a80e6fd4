"""The page and the data of run folders, by the standard library's server, with the strict policy of `ivypy web`."""

import functools
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from ivypy.master.errors import PlanError
from ivypy.master.pages.run_data import RunData
from ivypy.master.web.compared import compared

STATIC = Path(__file__).parents[2] / "master" / "pages" / "static"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:;"
    " connect-src 'self'"
)
KINDS = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}


class Answers:
    """What there is to ask about some run folders. Their ids are their folders' names."""

    def __init__(self, folders: Mapping[str, Path]) -> None:
        self._data = {name: RunData(folder) for name, folder in folders.items()}
        self._lock = threading.Lock()

    def of(self, address: str) -> bytes:
        """Raises KeyError where there is nothing."""
        with self._lock:
            return self._answer(address)

    def _answer(self, address: str) -> bytes:
        split = urlsplit(address)
        match [unquote(one) for one in split.path.strip("/").split("/")]:
            case ["api", "runs"]:
                return json.dumps(
                    {"runs": [self.document(name)["run"] for name in self._data], "control": False}
                ).encode()
            case ["api", "compare"]:
                return json.dumps(self._compared(parse_qs(split.query))).encode()
            case ["api", "runs", name]:
                return json.dumps(self.document(name)).encode()
            case ["api", "runs", name, "steps", step, what]:
                return self._of_step(self._data[name], int(step), what, parse_qs(split.query, True))
            case _:
                raise KeyError(address)

    def document(self, name: str) -> dict[str, Any]:
        found = self._data[name].document()
        return {**found, "run": {**found["run"], "id": name}}

    def _compared(self, query: Mapping[str, list[str]]) -> dict[str, Any]:
        before, after = ({self._data[run].folder: run for run in query[side][0].split(",")} for side in "ab")
        metrics = tuple(query["metric"][0].split(",")) if "metric" in query else ()
        return compared(before, after, metrics, *query.get("max_regression", ()))

    def _of_step(self, data: RunData, step: int, what: str, query: Mapping[str, list[str]]) -> bytes:
        first = int(query.get("from", ["0"])[0])
        instance = (query.get("by", ["all"])[0], query.get("instance", ["all"])[0])
        match what:
            case "histograms":
                return data.histograms(step, *instance, first)
            case "series":
                return json.dumps(data.series(step, *instance, first)).encode()
            case "cpu":
                return json.dumps(data.cpu(step, first)).encode()
            case "instances":
                return json.dumps(data.instances(step, instance[0])).encode()
            case "sections":
                return json.dumps(data.sections(step, *instance)).encode()
            case "section_map":
                return json.dumps(data.section_map(step, instance[0])).encode()
            case "control":
                return json.dumps(data.control(step)).encode()
            case "elements":
                return json.dumps(data.elements(step, *instance)).encode()
            case "element_lines":
                return json.dumps(data.element_lines(step, query["metric"][0])).encode()
            case "distribution":
                return json.dumps(data.distribution(step, *instance)).encode()
            case _:
                raise KeyError(what)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, answers: Answers, *words: Any) -> None:
        self.answers = answers
        super().__init__(*words)

    def do_GET(self) -> None:
        if self.path.startswith("/api/"):
            try:
                self._send(200, self.answers.of(self.path), "application/json")
            except PlanError as error:
                self._send(422, json.dumps({"error": str(error)}).encode(), "application/json")
            except KeyError as error:
                self._send(404, json.dumps({"error": f"There is no {error.args[0]}."}).encode(), "application/json")
            return
        found = page_file(self.path.removeprefix("/static/") if self.path != "/" else "page.html")
        self._send(200 if found else 404, found, KINDS.get(Path(self.path).suffix, KINDS[".html"]))

    def _send(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        for name, value in (
            ("Content-Type", kind), ("Content-Length", str(len(body))), ("Content-Security-Policy", POLICY),
        ):  # fmt: skip
            self.send_header(name, value)
        self.end_headers()
        with suppress(BrokenPipeError, ConnectionResetError):  # the browser went on to another view
            self.wfile.write(body)

    def log_message(self, format: str, *words: Any) -> None:
        """Not to the terminal of the tests."""


@functools.cache
def page_file(name: str) -> bytes:
    """Empty where there is none."""
    if name == "plotly.min.js":
        return (files("plotly") / "package_data" / name).read_bytes()
    path = STATIC / Path(name).name
    return path.read_bytes() if path.is_file() else b""


@contextmanager
def serving(answers: Answers) -> Iterator[str]:
    """The address, until the end."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, answers))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
