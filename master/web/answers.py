"""An answer as it is sent to any number of clients: made once, compressed once, known by its tag."""

import gzip
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import web

JSON: Final = "application/json"
BINARY: Final = "application/octet-stream"
WORTH_IT: Final = 1400  # bytes: what a packet holds
NOT_KEPT: Final = "no-store"  # what runs hold: no copy stays in the browser
REVALIDATED: Final = "no-cache"  # of the page's own files: may be kept, if it is asked for again each time


@dataclass(frozen=True, slots=True)
class WebAnswer:
    """A body and its compressed form, None where that saves nothing."""

    kind: str
    body: bytes
    compressed: bytes | None
    tag: str

    @property
    def size(self) -> int:
        return len(self.body) + len(self.compressed or b"")


def answer_of(body: bytes, kind: str, level: int = 1) -> WebAnswer:
    compressed = gzip.compress(body, level, mtime=0) if len(body) > WORTH_IT else None
    return WebAnswer(kind, body, compressed, f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"')


def encoded(value: Mapping[str, Any] | bytes) -> WebAnswer:
    """Of JSON data, or of bytes. Raises ValueError for what JSON has no number for."""
    if isinstance(value, bytes):
        return answer_of(value, BINARY)
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return answer_of(text.encode(), JSON)


def respond(request: web.Request, answer: WebAnswer, caching: str = NOT_KEPT) -> web.Response:
    """The answer, or that the client has it."""
    headers = {"Cache-Control": caching, "ETag": answer.tag, "Vary": "Accept-Encoding"}
    if answer.tag in request.headers.get("If-None-Match", ""):
        return web.Response(status=304, headers=headers)
    body = answer.body
    if answer.compressed is not None and "gzip" in request.headers.get("Accept-Encoding", ""):
        body = answer.compressed
        headers["Content-Encoding"] = "gzip"
    charset = None if answer.kind == BINARY or answer.kind.startswith("image/") else "utf-8"
    return web.Response(body=body, headers=headers, content_type=answer.kind, charset=charset)


def failure(status: int, sentence: str) -> web.Response:
    """An error of the interface."""
    return web.json_response({"error": sentence}, status=status, headers={"Cache-Control": NOT_KEPT})
