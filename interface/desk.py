"""What the writer's page asks of the server: branches for its text, each person's from a document of their own."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import gradio as gr

from interface.asking import MOST_REVISION, Asked, View, answers, whole
from interface.loading import Loader
from lookahead_core.errors import LookaheadError
from lookahead_core.store import DocumentStore, Held

if TYPE_CHECKING:
    from lookahead_core import Document

UNFORESEEN = "Something went wrong on the server; your text is untouched. Change it a little to try again."
WAITING = "Branches appear here when the model is ready."

Status = dict[str, Any]


class Desk:
    """Handlers that a tab gives to Gradio. Whatever goes wrong in them comes out as a sentence for the status."""

    def __init__(self, loader: Loader) -> None:
        self.loader = loader
        self.store = DocumentStore(self._document)

    def note(self, revision: object, request: gr.Request) -> None:
        """A newer text is there: whoever works on an older one of the same page stops after this pass."""
        if self.loader.model is not None and request.session_hash:
            try:
                self._held(request).note(whole("revision", revision, 0, MOST_REVISION))
            except ValueError:
                return  # who sends nonsense stops nobody

    def answer(self, given: object, k: object, depth: object, request: gr.Request) -> Iterator[tuple[View, Status]]:
        """Views for the text, one after each pass, and the status that goes with them."""
        try:
            asked = Asked.of(given, k, depth)
            for view in self._views(asked, request):
                yield view, self.loader.loading.as_json()
        except (LookaheadError, ValueError) as error:
            yield _mistake(given, str(error))
        except Exception:
            logging.getLogger(__name__).exception("A request could not be answered.")
            yield _mistake(given, UNFORESEEN)

    def _views(self, asked: Asked, request: gr.Request) -> Iterator[View]:
        if self.loader.model is not None:
            yield from answers(self._held(request), asked)
        elif self.loader.loading.state == "error":
            yield {"state": "error", "revision": asked.revision}
        elif asked.text:
            yield {"state": "thinking", "revision": asked.revision, "note": WAITING}

    def _held(self, request: gr.Request) -> Held:
        return self.store.hold(request.session_hash or "")

    def _document(self) -> Document:
        from lookahead_core import Document  # not before the page is up: it brings torch along

        assert self.loader.model is not None
        return Document(self.loader.model)


def _mistake(given: object, sentence: str) -> tuple[View, Status]:
    revision = given.get("revision") if isinstance(given, dict) else None
    view = {"state": "error", "revision": revision if type(revision) is int else 0}
    return view, {"state": "error", "sentence": sentence, "fraction": None}
