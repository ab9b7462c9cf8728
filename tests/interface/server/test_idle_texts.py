"""Texts that nobody uses are forgotten while the server runs, also while nobody sends a request."""

from __future__ import annotations

import asyncio
import time

import pytest

from interface import ModelLoader, build
from interface.server import idle_texts, session_lifetime
from lookahead_core import Model
from lookahead_core.serving.tree_pool import TreePool
from tests.interface.server.test_page_service import Page
from tests.support.browser import free_port
from tests.support.launching import launch


def test_a_running_server_forgets_idle_texts_by_itself(tiny_model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idle_texts, "GAP", 0.05)
    monkeypatch.setattr(session_lifetime, "MAX_IDLE_SECONDS", 0.2)
    loader = ModelLoader(lambda report: tiny_model)
    page = build(loader)
    loader.run()
    pool = loader.caller._tree_pool = TreePool(max_idle_seconds=0.2)
    launch(page, loader, free_port())
    try:
        sessions = loader.services[0].open_pages
        asyncio.run(Page(loader.services[0]).view("The sea", k=2, depth=2))
        asyncio.run(loader.caller.answer("lookahead", {"text": "The sea", "k": 2, "depth": 2}))
        assert len(sessions) == 1 and len(pool) == 1
        end = time.monotonic() + 10
        while (len(sessions) or len(pool)) and time.monotonic() < end:
            time.sleep(0.05)
        assert not len(sessions) and not len(pool)
    finally:
        page.close()
        loader.scheduler.close()
