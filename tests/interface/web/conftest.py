"""Fixtures of the tests of the shared scripts in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.text_box_page import BODY, MOUNT, TextBoxPage
from tests.support.workbench import workbench


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with workbench(BODY) as url:
        yield url


@pytest.fixture
def box(page: Any, address: str) -> Iterator[TextBoxPage]:
    mistakes: list[str] = []
    page.on("pageerror", lambda error: mistakes.append(str(error)))
    page.goto(address)
    page.evaluate(MOUNT)
    page.locator("#box").focus()
    yield TextBoxPage(page)
    assert not mistakes
