"""The server functions of the Rewrite tab that shorten a source that is too long for the model."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import groupby
from typing import TYPE_CHECKING, Any

from interface.server.branch_request import page_id
from interface.server.error_sentences import sentence
from interface.server.model_loading import ModelLoader

if TYPE_CHECKING:
    from lookahead_core.serving.calls import Reading

RATIOS = (0.5, 0.25)
"""The shares of its tokens to which a page may shorten a source."""


class Shortening:
    """Shortens sources for pages by the call `compress`, within its limits, at most one at a time for each page."""

    def __init__(self, loader: ModelLoader) -> None:
        self._loader = loader
        self._running: dict[str, asyncio.Task[dict[str, Any]]] = {}
        """The running call of each page, by its id."""
        self._readings: dict[asyncio.Task[dict[str, Any]], Reading] = {}
        """How far the running calls have read their sources."""

    @property
    def functions(self) -> list[Callable[[Any], Awaitable[Any]]]:
        """The server functions `shorten`, `shortening_progress` and `stop_shortening` for the tab's script.

        They raise no errors.
        """

        async def shorten(payload: Any) -> dict[str, Any]:
            return await self.shorten(payload)

        async def shortening_progress(payload: Any) -> dict[str, Any]:
            return await self.shortening_progress(payload)

        async def stop_shortening(payload: Any) -> None:
            await self.stop_shortening(payload)

        # Gradio sets attributes on them, which methods cannot have.
        return [shorten, shortening_progress, stop_shortening]

    async def shorten(self, payload: Any) -> dict[str, Any]:
        """Return the payload's `source`, shortened by its `ratio`, one of RATIOS; `page` is the page's id.

        The result has `text`, `parts` (the whole source in order, as pairs [text, whether it is kept]), `tokens_before`
        and `tokens_after`; or only `sentence`, if the payload is invalid, the source is refused, or the call was
        stopped. A page's newer call stops its older one.
        """
        try:
            page, source, ratio = _checked(payload)
        except Exception as error:
            return {"sentence": sentence(error)}
        self._stop(page)

        def on_reading(reading: Reading) -> None:
            if self._running.get(page) is task:  # a step may end after its call was stopped
                self._readings[task] = reading

        answer = self._loader.caller.answer("compress", {"text": source, "ratio": ratio}, on_reading)
        task = self._running[page] = asyncio.ensure_future(answer)
        try:
            return _for_page(source, await task)
        except asyncio.CancelledError:
            if not task.cancelled():
                task.cancel()
                raise
            return {"sentence": "Stopped: the source is as it was."}
        except Exception as error:
            return {"sentence": sentence(error)}
        finally:
            self._readings.pop(task, None)
            if self._running.get(page) is task:
                del self._running[page]

    async def shortening_progress(self, payload: Any) -> dict[str, Any]:
        """Return how far the running call of the payload's `page` has read its source.

        That is `reading`, a list [tokens that are read, tokens of the source]; nothing before the first pass, and if no
        call runs.
        """
        task = self._running.get(_page_of(payload))
        reading = None if task is None else self._readings.get(task)
        return {} if reading is None else {"reading": list(reading)}

    async def stop_shortening(self, payload: Any) -> None:
        """Stop the running call of the payload's `page` after its current pass; without one, do nothing."""
        self._stop(_page_of(payload))

    def _stop(self, page: str) -> None:
        task = self._running.pop(page, None)
        if task is not None:
            task.cancel()


def _page_of(payload: Any) -> str:
    """Return the page of a page's JSON; "" if it names none."""
    page = payload.get("page") if isinstance(payload, dict) else None
    return page if isinstance(page, str) else ""


def _checked(payload: Any) -> tuple[str, str, float]:
    """Return page, source and ratio of a page's JSON; raise ValueError with a sentence if one of them is invalid."""
    page = page_id(payload)
    source, ratio = payload.get("source"), payload.get("ratio")
    if not isinstance(source, str):
        raise ValueError("The source must be a text.")
    if isinstance(ratio, bool) or ratio not in RATIOS:
        raise ValueError(f"ratio must be one of {', '.join(map(str, RATIOS))}.")
    return page, source, float(ratio)


def _for_page(source: str, answer: dict[str, Any]) -> dict[str, Any]:
    """Return the result of `Shortening.shorten` for an answer of the call `compress`.

    A part joins adjacent spans that are all kept or all removed. Parts have texts, not indexes: JavaScript counts
    characters otherwise than Python.
    """
    parts = []
    for kept, spans in groupby(answer["spans"], key=lambda span: bool(span["kept"])):
        spans = list(spans)
        parts.append([source[spans[0]["start"] : spans[-1]["end"]], kept])
    return {"text": answer["text"], "parts": parts} | {name: answer[name] for name in ("tokens_before", "tokens_after")}
