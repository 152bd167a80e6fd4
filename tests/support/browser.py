"""Debian's chromium without a window, and what went on in it that nobody may see."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium-headless-shell")
ARGS = [
    "--no-sandbox", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
    "--disable-gpu",  # there is none: with or without it, the CPU draws, also WebGL
    # Plotly makes errors as it loads, to try what the browser can. For each, V8 would parse the whole script again.
    "--js-flags=--no-enable-lazy-source-positions",
]  # fmt: skip
WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
IN_A_BROWSER = [
    pytest.mark.slow,
    pytest.mark.xdist_group("browser"),
    pytest.mark.usefixtures("same_addresses"),
    pytest.mark.skipif(CHROMIUM is None, reason="chromium-headless-shell is not installed"),
]


@dataclass
class Seen:
    """Errors of pages, and requests that went anywhere but to their server."""

    address: str
    errors: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)

    def watch(self, context: Any) -> None:
        context.on("console", lambda one: self.errors.append(one.text) if one.type == "error" else None)
        context.on("weberror", lambda one: self.errors.append(str(one.error)))
        context.on("request", lambda one: self._requested(one.url))

    def complaints(self) -> list[str]:
        """What went on since this was asked last: an error is of the test in which it happened."""
        found = [*self.errors, *self.elsewhere]
        self.errors.clear()
        self.elsewhere.clear()
        return found

    def _requested(self, url: str) -> None:
        if not url.startswith((self.address, self.address.replace("http", "ws", 1), "data:", "blob:", "about:")):
            self.elsewhere.append(url)


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser of playwright's, until the end. A loop of its own runs as long as it does."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=ARGS)
        yield browser
        browser.close()
