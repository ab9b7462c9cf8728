"""The route by which page scripts call server functions, in place of Gradio's own.

Gradio's copies each response object by object and compares the path with a hundred others first: an answer took three
times as long, on the processors that the model computes with.
"""

from __future__ import annotations

import json
from typing import Any

import orjson
from gradio.context import LocalContext
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from interface.http.connections import while_connected
from interface.http.request_gate import COMPONENT


def routes() -> list[Route]:
    """Return the routes for Gradio's server, at Gradio's path; server functions must be coroutines."""
    return [Route(path, _answer, methods=["POST"]) for path in (COMPONENT, f"{COMPONENT}/")]


async def _answer(request: Request) -> Response:
    """Call the server function that the body names, and respond with its result as JSON.

    `RequestGate` has checked the body, and `SignIn` the account. The context has the request while the function runs,
    as with Gradio's route: a visitor of shared GPUs is known by its headers. If the page disconnects before the result,
    the function is cancelled.
    """
    fields = json.loads(await request.body())
    component: Any = request.app.get_blocks().blocks[fields["component_id"]]
    LocalContext.request.set(request)  # type: ignore[arg-type]
    result = await while_connected(request, getattr(component, fields["fn_name"])(fields["data"]))
    return Response(orjson.dumps(result), media_type="application/json")
