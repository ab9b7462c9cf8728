"""Fixtures of the tests of the calls: a tiny model with a chat template, and the address of a page that has it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from lookahead_core import Model
from tests.serving.test_calls import chatty
from tests.support.http_requests import served


@pytest.fixture(scope="module")
def model(byte_tokenizer: Any) -> Model:
    return chatty(byte_tokenizer)


@pytest.fixture(scope="module")
def address(model: Model) -> Iterator[str]:
    with served(model) as url:
        yield url
