"""Every endpoint of the running app gets random hostile requests, and answers each with less than a 500."""

from __future__ import annotations

import json
import logging
import random
import sys
from typing import Any

import pytest

from interface import ModelLoader, build
from interface.server.call_arguments import NAMES
from interface.server.error_sentences import UNEXPECTED
from lookahead_core import Settings
from tests.fuzz import campaign
from tests.fuzz.endpoints import COMPONENT, Endpoint, endpoints_of
from tests.fuzz.requests import HUGE, HostileRequest, request_to
from tests.fuzz.server import served_app, tiny_chat_model
from tests.support.http_requests import http_request

ROUNDS = {1: 3, 2: 3}
"""Requests to each endpoint, by seed."""


@pytest.mark.slow
@pytest.mark.parametrize("seed", ROUNDS)
def test_no_request_gets_a_500_or_a_traceback_and_the_app_still_answers(seed: int) -> None:
    settings = Settings(person_requests=10**9, person_characters=10**15, call_seconds=5, page_seconds=5)
    with served_app(tiny_chat_model(), settings) as (url, app):
        endpoints = endpoints_of(app)
        report = campaign.run(url, endpoints, seed, ROUNDS[seed])
        status, answer = http_request(url, "POST", "/api/lookahead", {"text": "The sea", "k": 2})
    assert not report.failures, "\n".join(report.failures[:20])
    assert report.statuses.total() > len(endpoints)
    assert status == 200 and len(answer["branches"]) == 2


def test_endpoints_are_those_of_the_app() -> None:
    from gradio.routes import App

    page = build(ModelLoader(lambda report: None))  # type: ignore[arg-type, return-value]
    found = endpoints_of(App.create_app(page))
    paths = {(one.method, one.path) for one in found}
    assert {("GET", "/config"), ("POST", "/gradio_api/queue/join"), ("POST", "/gradio_api/upload")} <= paths
    assert {("POST", f"/api/{name}") for name in NAMES} <= paths
    functions = [one.function for one in found if one.path == COMPONENT and one.function]
    assert {"ask", "more", "stop", "tree", "fit", "guess", "shorten"} <= set(functions)
    assert functions.count("ask") >= 5, "one for each tab"


def test_requests_to_an_endpoint_are_of_many_kinds_and_repeat_with_their_seed() -> None:
    endpoint = Endpoint("POST", COMPONENT, None, 1, "ask")
    object.__setattr__(endpoint, "example", {"page": "a", "number": 1, "text": "The sea"})

    def drawn(seed: int) -> list[HostileRequest]:
        dice, sent = random.Random(seed), []
        for _ in range(300):
            sent.append(request_to(endpoint, dice, sent))
        return sent

    first = drawn(1)
    assert [one.body for one in first] == [one.body for one in drawn(1)] != [one.body for one in drawn(2)]
    bodies = [one.body or b"" for one in first]
    assert any(len(body) > HUGE for body in bodies)
    assert any(body.startswith(b"[[[[") for body in bodies)
    assert len(set(bodies)) < len(bodies), "some are replayed"
    assert any("Origin" in one.headers for one in first)
    kinds = {type(json.loads(body)["data"].get("text")) for body in bodies if b'"data": {' in body}
    assert {str, int, type(None)} <= kinds


@pytest.mark.parametrize(
    ("status", "content", "words"),
    [
        (200, b"{}", None),
        (429, b"", None),
        (503, b'{"detail": "The model is not loaded yet: try again soon."}', None),
        (503, b"Service Unavailable", "503"),
        (500, b'{"detail": "A sentence."}', "500"),
        (400, b"Traceback (most recent call last):", "traceback"),
        (200, json.dumps({"state": "error", "sentence": UNEXPECTED}).encode(), "unexpected"),
    ],
)
def test_what_is_wrong_with_a_response_is_recognised(status: int, content: bytes, words: str | None) -> None:
    problem = campaign.problem_of(status, content)
    assert problem is None if words is None else words in (problem or "")


def test_errors_in_the_log_and_tracebacks_on_the_terminal_are_noticed(caplog: Any) -> None:
    with campaign.watched() as found:
        logging.getLogger("uvicorn.error").error("first")
        logging.getLogger("anybody").warning("second")
        print("Traceback (most recent call last):", file=sys.stderr)
    assert [line.split()[0] for line in found] == ["uvicorn.error", "Traceback"]
