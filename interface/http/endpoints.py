"""The calls over plain HTTP under /api. Paths, parameters and fields are those that clients of the prototype use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, get_args

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from interface.http.connections import while_connected
from interface.http.request_gate import json_object
from interface.http.same_origin import require_own_page
from interface.server.call_arguments import NAMES, parameters_of
from interface.server.call_runner import CallRunner
from interface.server.error_sentences import Refused, refusal
from interface.server.model_loading import ModelLoader

PATH = "/api"
EXAMPLES = Path(__file__).parents[2] / "docs" / "calls.md"
SHOWN_ADDRESS = "http://127.0.0.1:7860"
"""The base URL in the examples' text; it is replaced by the base URL of the request."""
GET_CALLS = ("next_token", "highlights", "gen_revisions")
"""Names of the calls that take GET, as in the prototype, and also POST, since the length of a URL is limited."""
ALL_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]


def routes(loader: ModelLoader) -> list[Route]:
    """Return routes for Gradio's server: `PATH`/name for each call, the examples at `PATH`, and errors for the rest.

    None is outside of `PATH`. Calls run on the loader's `caller`; the model may still be loading.
    """
    calls = [Route(f"{PATH}/{name}", _endpoint(loader.caller, name), methods=_methods(name)) for name in NAMES]
    others = [Route(path, _unknown, methods=ALL_METHODS) for path in (PATH, f"{PATH}/{{name:path}}")]
    return [Route(PATH, _examples, methods=["GET"]), *calls, *others]


def _methods(name: str) -> list[str]:
    return ["GET", "POST"] if name in GET_CALLS else ["POST"]


async def _examples(request: Request) -> Response:
    """Respond with docs/calls.md as plain text: all calls with examples to copy, at the base URL of the request."""
    text = EXAMPLES.read_text(encoding="utf-8").replace(SHOWN_ADDRESS, str(request.base_url).rstrip("/"))
    return PlainTextResponse(text, headers={"X-Content-Type-Options": "nosniff"})


async def _unknown(request: Request) -> Response:
    """Respond to a request below `PATH` that no other route takes, with a sentence as JSON.

    The status is 404 for an unknown call, and 405 for a wrong method. The response to `GET /api/` is the examples.
    """
    name = request.path_params.get("name", "").strip("/")
    if not name and request.method == "GET":
        return await _examples(request)
    if name and name not in NAMES:
        return refusal(
            Refused(404, f"There is no such call. The calls are {', '.join(NAMES)}. Examples are at {PATH}.")
        )
    methods = _methods(name) if name else ["GET"]
    sentence = f"{PATH}/{name}".rstrip("/") + f" takes {' or '.join(methods)}, and not {request.method}."
    return refusal(Refused(405, f"{sentence} Examples are at {PATH}."), Allow=", ".join(methods))


def _endpoint(caller: CallRunner, name: str) -> Callable[[Request], Awaitable[Response]]:
    """Return the request handler of the call `name`: it responds with the call's result, or with an error, as JSON.

    The arguments are the JSON object in the body of a POST, or else those in the URL. Requests of other sites' pages
    are refused with 403; for other statuses see `status`. If the client disconnects, the call is cancelled.
    """

    async def answer(request: Request) -> Response:
        try:
            require_own_page(request.headers)
            arguments = json_object(await request.body()) if request.method == "POST" else _query(name, request)
            result = await while_connected(request, caller.answer(name, arguments))
        except Exception as error:
            caller.loader.counts.count_error(error)
            return refusal(error)
        try:
            return JSONResponse(result)
        except ValueError as error:  # a bug of the server, not a mistake of the caller
            return refusal(RuntimeError(f"The result cannot be written as JSON: {error}"))

    return answer


def _query(call: str, request: Request) -> dict[str, Any]:
    """Return the arguments in the query of a URL, by name, for the call with the name `call`.

    Values are int for parameters that may be int, otherwise strings, also under names that the call does not know.
    Raises Refused (400) if a value for an int parameter is no whole number.
    """
    kinds = {name: parameter.annotation for name, parameter in parameters_of(call).items()}
    whole = {name for name, kind in kinds.items() if int in (kind, *get_args(kind))}
    return {name: _whole(name, value) if name in whole else value for name, value in request.query_params.items()}


def _whole(name: str, value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise Refused(400, f"{name} must be a whole number.") from None
