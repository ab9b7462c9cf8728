"""The route of server functions gives what the function returns, and the function knows the request."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pytest
from gradio.context import LocalContext
from gradio.routes import App
from starlette.applications import Starlette
from starlette.routing import Match
from starlette.testclient import TestClient

from interface.http import page_functions
from interface.http.request_gate import COMPONENT


async def echo(payload: Any) -> Any:
    """Return the payload and a header of the request."""
    request: Any = LocalContext.request.get(None)
    return {"payload": payload, "header": request.headers.get("x-ip-token")}


@pytest.fixture
def blocks() -> gr.Blocks:
    with gr.Blocks() as made:
        gr.HTML(html_template="", server_functions=[echo])
    return made


@pytest.mark.slow
@pytest.mark.parametrize("path", [COMPONENT, f"{COMPONENT}/"])
@pytest.mark.parametrize("payload", [{"text": "Ünï \U0001f33f", "list": [1, 2.5, None, True, {}]}, [], None, "a"])
def test_a_server_function_gets_the_payload_and_the_request(blocks: gr.Blocks, path: str, payload: Any) -> None:
    app = App.create_app(blocks, app_kwargs={"routes": page_functions.routes()})
    number = next(number for number, block in blocks.blocks.items() if hasattr(block, "echo"))
    body = {"component_id": number, "fn_name": "echo", "session_hash": "any", "data": payload}
    answer = TestClient(app).post(path, json=body, headers={"x-ip-token": "mine"})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.json() == {"payload": payload, "header": "mine"}


def test_a_server_function_is_cancelled_when_the_page_leaves() -> None:
    ended: list[Any] = []

    async def compute(payload: Any) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(payload)

    app = Starlette(routes=page_functions.routes())
    page = SimpleNamespace(blocks={1: SimpleNamespace(compute=compute)})
    app.get_blocks = lambda: page  # type: ignore[attr-defined]
    body = json.dumps({"component_id": 1, "fn_name": "compute", "data": "a"}).encode()
    messages = [{"type": "http.request", "body": body}, {"type": "http.disconnect"}]
    scope = {"type": "http", "method": "POST", "path": COMPONENT, "headers": [], "query_string": b""}

    async def receive() -> Any:
        return messages.pop(0)

    async def send(message: Any) -> None:
        pass

    asyncio.run(app(scope, receive, send))
    assert ended == ["a"]


def test_no_other_route_takes_these_requests_before(blocks: gr.Blocks) -> None:
    app = App.create_app(blocks, app_kwargs={"routes": page_functions.routes()})
    scope = {"type": "http", "method": "POST", "path": COMPONENT, "app": app, "headers": []}
    first = next(route for route in app.routes if route.matches(scope)[0] is Match.FULL)
    assert first.endpoint.__module__ == page_functions.__name__  # type: ignore[attr-defined]
