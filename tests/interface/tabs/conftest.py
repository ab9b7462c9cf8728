"""The page in a browser, as tests of several tabs begin with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support import browser as browsers
from tests.support.browser import Visit


@pytest.fixture
def real(page: Any, real_page: str) -> Iterator[Visit]:
    """The page with the default model."""
    yield from _ready(page, real_page)


@pytest.fixture
def small(page: Any, small_page: str) -> Iterator[Visit]:
    """The same page with a small model of real tokens."""
    yield from _ready(page, small_page)


@pytest.fixture
def tiny(page: Any, tiny_page: str) -> Iterator[Visit]:
    """The same page with a tiny model, for what does not depend on what the model says."""
    yield from _ready(page, tiny_page)


@pytest.fixture
def phone(browser: Any, tiny_page: str) -> Iterator[Visit]:
    """The page with a tiny model on a phone, which has only a finger."""
    context = browser.new_context(has_touch=True, is_mobile=True, viewport={"width": 390, "height": 844})
    with browsers.visit(context, tiny_page) as opened:
        opened.wait_for_status("ready")
        yield opened
    context.close()


@pytest.fixture
def visit(real: Visit) -> Visit:
    return real


def _ready(page: Any, url: str) -> Iterator[Visit]:
    with browsers.visit_again(page, url) as opened:
        opened.wait_for_status("ready")
        yield opened
