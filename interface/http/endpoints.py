"""The calls over plain HTTP, under the paths, parameters and fields of the teacher's prototype."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, get_args

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from interface.http.request_gate import json_object
from interface.http.same_origin import require_own_page
from interface.server.call_runner import NAMES, CallRunner, parameters_of
from interface.server.error_sentences import Refused, refusal
from interface.server.model_loading import ModelLoader

PATH = "/api"
EXAMPLES = Path(__file__).parents[2] / "docs" / "calls.md"
SHOWN_ADDRESS = "http://127.0.0.1:7860"
"""The address in the examples; a visitor sees the one that they came by."""
BY_ADDRESS = ("next_token", "highlights", "gen_revisions")
"""Calls that the prototype makes with GET; they take a body as well, since an address cannot be long."""
ANY = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]


def routes(loader: ModelLoader) -> list[Route]:
    """Routes for the server that Gradio starts."""
    calls = [Route(f"{PATH}/{name}", _endpoint(loader.caller, name), methods=_methods(name)) for name in NAMES]
    others = [Route(path, _other, methods=ANY) for path in (PATH, f"{PATH}/{{name:path}}")]
    return [Route(PATH, _examples, methods=["GET"]), *calls, *others]


def _methods(name: str) -> list[str]:
    return ["GET", "POST"] if name in BY_ADDRESS else ["POST"]


async def _examples(request: Request) -> Response:
    """What can be called, with examples to copy."""
    text = EXAMPLES.read_text(encoding="utf-8").replace(SHOWN_ADDRESS, str(request.base_url).rstrip("/"))
    return PlainTextResponse(text, headers={"X-Content-Type-Options": "nosniff"})


async def _other(request: Request) -> Response:
    """Whatever is no call, or no way to make it."""
    name = request.path_params.get("name", "").strip("/")
    if not name and request.method == "GET":
        return await _examples(request)
    if name and name not in NAMES:
        return refusal(Refused(404, f"There is no such call; there are {', '.join(NAMES)}. Examples are at {PATH}."))
    methods = _methods(name) if name else ["GET"]
    said = f"{PATH}/{name}".rstrip("/") + f" takes {' or '.join(methods)}, and not {request.method}."
    return refusal(Refused(405, f"{said} Examples are at {PATH}."), Allow=", ".join(methods))


def _endpoint(caller: CallRunner, name: str) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        try:
            require_own_page(request.headers)
            given = json_object(await request.body()) if request.method == "POST" else _query(name, request)
            found = await _while_there(request, caller.answer(name, given))
        except Exception as error:
            return refusal(error)
        try:
            return JSONResponse(found)
        except ValueError as error:  # not the caller's mistake, but ours
            return refusal(RuntimeError(f"The answer is no JSON: {error}"))

    return answer


async def _while_there(request: Request, answer: Awaitable[dict[str, Any]]) -> dict[str, Any] | None:
    """The answer; who hangs up waits for it no longer, and what they have asked for ends."""
    asked, gone = asyncio.ensure_future(answer), asyncio.ensure_future(_hung_up(request))
    try:
        await asyncio.wait((asked, gone), return_when=asyncio.FIRST_COMPLETED)
        return asked.result() if asked.done() else None
    finally:
        asked.cancel()
        gone.cancel()


async def _hung_up(request: Request) -> None:
    """Once the request is read, nothing comes but its end."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _query(call: str, request: Request) -> dict[str, Any]:
    """What the address says: text, and whole numbers where the call takes some."""
    kinds = {name: parameter.annotation for name, parameter in parameters_of(call).items()}
    whole = {name for name, kind in kinds.items() if int in (kind, *get_args(kind))}
    return {name: _whole(name, value) if name in whole else value for name, value in request.query_params.items()}


def _whole(name: str, value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise Refused(400, f"{name} must be a whole number.") from None
