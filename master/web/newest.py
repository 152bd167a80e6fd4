"""The newest state of something, for any number of readers, none of which is waited for."""

import asyncio


class GoneError(Exception):
    """There will be no other text."""


class Newest:
    """Holds one text, and how often there was a new one. A reader that is slow misses those in between."""

    def __init__(self) -> None:
        self.text = ""
        self.number = 0  # of the text; 0: there is none yet
        self.is_last = False  # no other text will come
        self.is_gone = False
        self._news = asyncio.Event()

    def put(self, text: str, is_last: bool = False) -> None:
        """Replace the text; the same one again is no news."""
        if self.number and text == self.text:
            return
        self.is_last = is_last
        self.text = text
        self.number += 1
        news, self._news = self._news, asyncio.Event()
        news.set()

    def stop(self) -> None:
        """No reader waits any longer: what the texts are of is gone."""
        self.is_gone = True
        self._news.set()

    async def after(self, number: int) -> tuple[int, str]:
        """The newest text and its number, as soon as that is greater. Raises GoneError."""
        while self.number <= number:
            if self.is_gone:
                raise GoneError
            await self._news.wait()
        return self.number, self.text
