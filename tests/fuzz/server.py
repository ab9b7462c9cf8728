"""The app in this process, with a tiny model, for hostile requests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from interface import ModelLoader, answer_unreadable_requests, build, remember_peers
from lookahead_core import Model, Settings
from tests.conftest import CORPUS, byte_level
from tests.support.browser import free_port
from tests.support.launching import launch


def tiny_chat_model() -> Model:
    """A tiny model with a chat template."""
    from tests.serving.test_calls import chatty

    return chatty(byte_level(CORPUS))


@contextmanager
def served_app(model: Model, settings: Settings) -> Iterator[tuple[str, Any]]:
    """The address and the ASGI app of a page whose model is loaded."""
    loader = ModelLoader(lambda report: model, settings)
    page = build(loader)
    url = launch(page, loader, free_port())
    answer_unreadable_requests(page.server)
    remember_peers(page.server)
    loader.run()
    try:
        yield url, page.app
    finally:
        page.close()
        loader.scheduler.close()
