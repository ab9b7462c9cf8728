"""ASGI middleware in front of every route: bounds request bodies, and answers in a sentence what Gradio would not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect

from interface.http.same_origin import require_own_page
from interface.server.error_sentences import Refused, refusal

if TYPE_CHECKING:
    from gradio import Blocks
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

API = "/api/"
DOORS = "/gradio_api"
"""The prefix of Gradio's own routes."""
FOR_PAGES = (f"{DOORS}/component_server", f"{DOORS}/upload")
"""Gradio's routes that only this server's own pages call."""
BY_NAME = tuple(f"{DOORS}/{way}/" for way in ("run", "api", "call", "call/v2"))
"""Gradio's routes that end with the name of a function."""
JOIN = f"{DOORS}/queue/join"
MOST_BYTES = {API: 1_000_000, "": 10_000_000}
"""The largest body of a request, by how its path begins."""
MOST_DISCARDED = 64_000_000
"""Bytes of a larger body that are read and dropped: a client that still sends when it is answered loses the answer."""
SILENCE = 5.0
"""Seconds without a byte after which the rest of a body is not waited for."""


class RequestGate:
    """Reads the body of a request whole, checks what it names, and passes it on; or answers with a 4xx."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers, path = Headers(scope=scope), route_of(scope)
        try:
            body = await _read(headers, receive, most_bytes(path))
            _check(path, headers, body, scope["app"].get_blocks() if path.startswith(DOORS) else None)
        except ClientDisconnect:
            return
        except Exception as error:
            await refusal(error)(scope, receive, send)
            return
        await self.app(scope, _again(body, receive), send)


def route_of(scope: Mapping[str, Any]) -> str:
    """The path of a request as routes know it: without the prefix that a proxy adds, or a slash at the end."""
    path, root = scope["path"], scope.get("root_path", "").rstrip("/")
    return (path[len(root) :] if path.startswith(f"{root}/") else path).rstrip("/") or "/"


def most_bytes(path: str) -> int:
    """The size that the body of a request to this path may have."""
    return next(most for beginning, most in MOST_BYTES.items() if path.startswith(beginning))


async def _read(headers: Headers, receive: Receive, most: int) -> bytes:
    """The whole body. One that is too large is read to its end, or as far as that is bearable, before it is refused."""
    announced = headers.get("content-length", "0")
    if announced == "0" and "transfer-encoding" not in headers:
        return b""
    too_large = Refused(413, f"The request has more than {most:,} bytes: shorten the text.")
    if "expect" in headers and announced.isdecimal() and int(announced) > most:
        raise too_large  # the client asks before it sends
    held, size, more = bytearray(), 0, True
    while more and size <= MOST_DISCARDED:
        message = await _next(receive)
        size += len(message["body"])
        more = message["more_body"]
        if size <= most:
            held += message["body"]
    if size > most:
        raise too_large
    return bytes(held)


async def _next(receive: Receive) -> Message:
    try:
        message = await asyncio.wait_for(receive(), SILENCE)
    except asyncio.TimeoutError:
        raise Refused(
            408, "The body of the request ends before its announced length: send all of it, or the right length."
        ) from None
    if message["type"] == "http.disconnect":
        raise ClientDisconnect
    return {"body": b"", "more_body": False} | dict(message)


def _again(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives a body that was read already, and then what else comes: that the client has left."""
    unread = [{"type": "http.request", "body": body, "more_body": False}]

    async def given() -> Message:
        return unread.pop() if unread else await receive()

    return given


def _check(path: str, headers: Headers, body: bytes, blocks: Blocks | None) -> None:
    """Raise where Gradio would serve pages of other addresses, or fail with a traceback."""
    if path in FOR_PAGES:
        require_own_page(headers)
    if blocks is None:
        return
    if path == FOR_PAGES[0]:
        _require_json_type(headers)
        _check_component(json_object(body), blocks)
    elif path == JOIN or path.startswith(BY_NAME):
        _check_function(path, json_object(body), blocks)


def _require_json_type(headers: Headers) -> None:
    """Other types can be sent by any page, without the browser asking this server first."""
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Refused(415, "The request must have the content type application/json.")


def json_object(body: bytes) -> dict[str, Any]:
    """The fields of a body."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise Refused(400, "The body of the request must be JSON.") from None
    if not isinstance(found, dict):
        raise Refused(400, "The body of the request must be a JSON object.")
    return found


def _check_component(found: dict[str, Any], blocks: Blocks) -> None:
    number, name = found.get("component_id"), found.get("fn_name")
    if not isinstance(found.get("session_hash"), str) or "data" not in found:
        raise Refused(400, "The request needs session_hash, a string, and data.")
    component = blocks.blocks.get(number) if type(number) is int else None
    function = getattr(component, name, None) if isinstance(name, str) else None
    if not getattr(function, "_is_server_fn", False):
        raise Refused(404, "There is no such component, or it has no such function: load the page again.")


def _check_function(path: str, found: dict[str, Any], blocks: Blocks) -> None:
    number, names = found.get("fn_index"), {function.api_name for function in blocks.fns.values()}
    if number is not None:
        known = type(number) is int and number in blocks.fns
    else:
        known = path != JOIN and path.rsplit("/", 1)[-1] in names
    if not known:
        raise Refused(404, f"There is no such function; there are {_listed(names)}.")


def _listed(names: Iterable[Any]) -> str:
    return ", ".join(sorted(name for name in names if isinstance(name, str)))
