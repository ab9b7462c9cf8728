"""A server of the tiny model for the tests of connections and faults."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lookahead_core import Model
from lookahead_core.engines.remote import server_errors
from tests.support.completions_server import CompletionsServer


@pytest.fixture
def server(tiny_model: Model, monkeypatch: pytest.MonkeyPatch) -> Iterator[CompletionsServer]:
    """A server with faults and limits to order; the engine waits a hundredth of a second before its second attempt."""
    monkeypatch.setattr(server_errors, "BACK_OFF", 0.01)
    served = CompletionsServer(tiny_model.hf_model)
    yield served
    served.close()
