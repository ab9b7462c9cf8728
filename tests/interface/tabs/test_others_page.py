"""A page that waits while other people do says so, and its rows come when it is their turn."""

from __future__ import annotations

import multiprocessing
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from lookahead_core import Model
from lookahead_core.engines.dispatch import WAITING
from tests.support import browser as browsers
from tests.support.browser import expect
from tests.support.http_requests import http_request, wait_until_ready
from tests.support.witness import around

pytestmark = [pytest.mark.browser, pytest.mark.slow]
SAID = (
    "The model has 3 other requests at the same time, so this may take longer."
    if "TEST_WORKERS" not in os.environ
    else WAITING
)
"""On the stand-in for shared GPUs the page waits for the worker."""


def test_a_page_that_waits_for_others_says_how_many_they_are_until_its_rows_come(tiny_model: Model) -> None:
    go = multiprocessing.Event()
    go.set()
    with (
        # A forked worker inherits the pipe to the browser's driver: the browser closes only after the worker has ended.
        browsers.chromium() as chromium,
        browsers.page_of(lambda report: around(tiny_model, lambda: go.wait(120) and None)) as url,
        browsers.visit(chromium, url) as visit,
        ThreadPoolExecutor(3) as others,
    ):
        wait_until_ready(url)
        visit.wait_for_status("ready")
        go.clear()
        try:
            body = {"text": "The sea and the sky", "k": 2, "depth": 2}
            calls = [others.submit(http_request, url, "POST", "/api/lookahead", body) for _ in range(3)]
            visit.type("Once upon a")
            note = visit.page.locator("#branches .note .words")
            expect(note).to_have_text(SAID, timeout=60_000)
        finally:
            go.set()
        visit.wait_until_settled()
        expect(note).not_to_contain_text("other request")
        assert all(call.result()[0] == 200 for call in calls)
