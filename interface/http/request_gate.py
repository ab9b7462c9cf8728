"""ASGI middleware before every route: limits request bodies, and refuses invalid requests with a sentence."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect

from interface.http.caller_gate import caller_of, set_caller
from interface.http.request_path import route_of
from interface.http.same_origin import require_own_page
from interface.server.callers import LEAVE, PROGRAMS
from interface.server.error_sentences import Refused, refusal
from interface.server.rate_limits import CallerLimits, TooOften
from lookahead_core.settings import Settings

if TYPE_CHECKING:
    from gradio import Blocks
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

API = "/api/"
GRADIO = "/gradio_api"
"""The prefix of Gradio's own routes."""
COMPONENT = f"{GRADIO}/component_server"
"""The route of server functions, which page scripts call."""
PAGE_ROUTES = (COMPONENT, f"{GRADIO}/upload")
"""Routes that only this server's own pages may call."""
FUNCTION_ROUTES = tuple(f"{GRADIO}/{kind}/" for kind in ("run", "api", "call", "call/v2"))
"""Gradio's routes that end with the name of an API function."""
QUEUE_JOIN = f"{GRADIO}/queue/join"
MCP = f"{GRADIO}/mcp"
CALL_ROUTES = (API, *FUNCTION_ROUTES, QUEUE_JOIN, MCP)
"""Routes by which programs make calls."""
OWN_ROUTES = (API, COMPONENT, "/health", "/metrics")
"""Routes whose errors are errors of this server, not of Gradio."""
UNFIT = "The request does not have the form that this address takes: see the examples at /api."
MOST_BYTES = {API: 1_000_000, "": 10_000_000}
"""The largest body of a request in bytes, by the prefix of its path; the first match counts."""
MOST_DISCARDED = 64_000_000
"""Bytes of a too large body that are read before it is refused: a client that is still sending misses the answer."""
MOST_PERSON = 64
"""Characters of a page's id."""
BODY_TIMEOUT = 5.0
"""Seconds without a byte of the body after which a request is refused."""
BODY_SECONDS = 60.0
"""Seconds in which the whole body of a request must arrive."""
MOST_HELD, MOST_ADDRESS_HELD = 256_000_000, 64_000_000
"""The most bytes of request bodies in memory, of all addresses together and of one address. A body counts while it
arrives and while its request waits for its turn; a request that would exceed either number is refused."""


class RequestGate:
    """ASGI middleware: reads the whole body of an HTTP request, checks it, and only then calls the app.

    A body that is too large (413), stops coming or comes too slowly (408), or has no room beside others that are not
    yet handled (503), a request that `_check` refuses (its error's status), and too much of a person or an address
    (429), get an error response with a sentence instead; so does a request at which Gradio fails (400). The app is
    called when it is the request's turn among those of its person and address; see `CallerLimits.enter`. If the client
    disconnects before the body ends, nothing is called and nothing sent.
    Connections other than HTTP go to the app unchecked.
    """

    def __init__(self, app: ASGIApp, limits: CallerLimits | None = None) -> None:
        """`limits` are those of the settings' defaults if None."""
        self.app = app
        self._limits = limits or CallerLimits(Settings())
        self._held: Counter[str | None] = Counter()
        """The bytes of all kept bodies by address, and their sum under the key None."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers, path, caller = Headers(scope=scope), route_of(scope), caller_of(scope)
        kept = _KeptBody(self._held, caller.address)
        try:
            body = await self._read(headers, receive, most_bytes(path), kept)
            self._limits.admit_bytes(caller.address, len(body))  # before they are parsed, which takes processor time
            page = _check(path, headers, body, scope["app"].get_blocks() if path.startswith(GRADIO) else None)
            if not caller.person:
                caller = replace(caller, person=page or (PROGRAMS if path.startswith(CALL_ROUTES) else ""))
                set_caller(scope, caller)
            self._limits.admit_person(caller, len(body))
            leave = await self._limits.enter(caller)
        except ClientDisconnect:
            return
        except Exception as error:
            if isinstance(error, TooOften):
                await self._limits.pace_refusal(caller.address)
            await refusal(error)(scope, receive, send)
            return
        finally:
            kept.drop()
        response = _Response(send, leave)
        try:
            LEAVE.set(leave)
            await self.app(scope, _again(body, receive), response.send)
        except Exception as error:
            if response.begun or path.startswith(OWN_ROUTES):
                raise
            # Gradio's routes check little: arguments of another name, or a file's name that is too long, are errors.
            logging.getLogger(__name__).warning("Gradio could not handle a request (%s).", type(error).__name__)
            await refusal(Refused(400, UNFIT))(scope, receive, send)
        finally:
            leave()

    async def _read(self, headers: Headers, receive: Receive, most: int, kept: _KeptBody) -> bytes:
        """Return the whole body; raise Refused (413) if it has more than `most` bytes.

        Before it raises, a too large body is read to its end or for MOST_DISCARDED bytes, without keeping it; but if
        the request has an `Expect` header, and a Content-Length above `most`, nothing is read. Without a
        Transfer-Encoding and with a Content-Length of 0 or none, the body is b"". Raises the errors of `_KeptBody.add`
        and of `_next`.
        """
        announced = headers.get("content-length", "0")
        if announced == "0" and "transfer-encoding" not in headers:
            return b""
        too_large = Refused(413, f"The request has more than {most:,} bytes: shorten the text.")
        if "expect" in headers and announced.isdecimal() and int(announced) > most:
            raise too_large  # the client waits for permission before it sends the body
        if await self._read_into(kept, receive, most) > most:
            raise too_large
        return bytes(kept.body)

    async def _read_into(self, kept: _KeptBody, receive: Receive, most: int) -> int:
        """Read the body into `kept`, and return its size; of a body of more than `most` bytes nothing stays there."""
        size, more = 0, True
        deadline = asyncio.get_running_loop().time() + BODY_SECONDS
        while more and size <= MOST_DISCARDED:
            message = await _next(receive, deadline)
            part, more = message["body"], message["more_body"]
            size += len(part)
            if size > most:
                kept.drop()
            else:
                kept.add(part)
        return size


class _KeptBody:
    """The body of a request that is not yet handled, whose bytes count among those of all requests and its address."""

    def __init__(self, held: Counter[str | None], address: str) -> None:
        """`held` counts the bytes of all kept bodies by address, and their sum under the key None."""
        self.body = bytearray()
        self._held, self._address = held, address

    def add(self, part: bytes) -> None:
        """Keep a further part; raise Refused (503) if there are then more than MOST_HELD or MOST_ADDRESS_HELD bytes."""
        size = len(part)
        if self._held[None] + size > MOST_HELD or self._held[self._address] + size > MOST_ADDRESS_HELD:
            raise Refused(503, "The server is receiving too much just now: try again soon.")
        self.body += part
        self._held[None] += size
        self._held[self._address] += size

    def drop(self) -> None:
        """Keep nothing any more, and count nothing; may be called again without effect."""
        self._held[None] -= len(self.body)
        self._held[self._address] -= len(self.body)
        if not self._held[self._address]:
            del self._held[self._address]
        self.body.clear()


def most_bytes(path: str) -> int:
    """Return the largest allowed body, in bytes, of a request to this path, which is one of `route_of`."""
    return next(most for beginning, most in MOST_BYTES.items() if path.startswith(beginning))


async def _next(receive: Receive, deadline: float) -> Message:
    """Return the ASGI message with the next part of the body; `body` and `more_body` are added if they are missing.

    Raises Refused (408) if none comes within BODY_TIMEOUT seconds or before `deadline`, a time of the event loop, at
    which the whole body must be there; and ClientDisconnect if the client disconnects.
    """
    too_slow = Refused(
        408, f"The body of the request took more than {BODY_SECONDS:g} seconds: send it faster, or shorten it."
    )
    left = deadline - asyncio.get_running_loop().time()
    if left <= 0:
        raise too_slow
    try:
        # One timeout, not a second one around the whole body: before Python 3.12, `wait_for` can lose a cancellation.
        message = await asyncio.wait_for(receive(), min(BODY_TIMEOUT, left))
    except asyncio.TimeoutError:
        if left <= BODY_TIMEOUT:
            raise too_slow from None
        raise Refused(
            408, "The body of the request ends before its announced length: send all of it, or the right length."
        ) from None
    if message["type"] == "http.disconnect":
        raise ClientDisconnect
    return {"body": b"", "more_body": False} | dict(message)


class _Response:
    """Passes the messages of a response on, and knows whether it has begun; then `leave` is called."""

    def __init__(self, send: Send, leave: Callable[[], None]) -> None:
        self.begun = False
        self._send, self._leave = send, leave

    async def send(self, message: Message) -> None:
        """The ASGI `send` for the app."""
        self.begun = True
        self._leave()
        await self._send(message)


def _again(body: bytes, receive: Receive) -> Receive:
    """Return an ASGI `receive` whose first message has the whole `body`, already read; later ones are `receive`'s."""
    unread = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return unread.pop() if unread else await receive()

    return replay


def _check(path: str, headers: Headers, body: bytes, blocks: Blocks | None) -> str:
    """Raise an error if Gradio would serve this request to another site's page, or would fail at it with a traceback.

    Returns the id of the page that calls a component's server function; "" for other requests.

    PAGE_ROUTES are closed to other sites' pages (ForeignOrigin). For a component's server function, at QUEUE_JOIN and
    below FUNCTION_ROUTES, the body must be a JSON object that calls an existing function (Refused). All other requests
    pass, unless the path has control characters (Refused). `path` is that of `route_of`; `blocks` is the Gradio page,
    None for a path outside of Gradio's routes.
    """
    if not path.isprintable():
        raise Refused(400, "The address has control characters, which are not allowed.")
    if path in PAGE_ROUTES:
        require_own_page(headers)
    if blocks is None:
        return ""
    if path == COMPONENT:
        _require_json_type(headers)
        fields = json_object(body)
        _check_component(fields, blocks)
        page = fields["data"].get("page") if isinstance(fields["data"], dict) else None
        return page[:MOST_PERSON] if isinstance(page, str) else ""
    if path == QUEUE_JOIN or path.startswith(FUNCTION_ROUTES):
        _check_function(path, json_object(body), blocks)
    return ""


def _require_json_type(headers: Headers) -> None:
    """Raise Refused (415) unless the Content-Type is application/json; its parameters, such as charset, do not count.

    Browsers let a page of any site send some other types, without asking this server first (a preflight request).
    """
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Refused(415, "The request must have the content type application/json.")


def json_object(body: bytes) -> dict[str, Any]:
    """Return the JSON object in a body; raise Refused (400) if it is no JSON, also if empty, or another JSON value."""
    try:
        parsed = json.loads(body)
    except (ValueError, RecursionError):
        raise Refused(400, "The body of the request must be JSON.") from None
    if not isinstance(parsed, dict):
        raise Refused(400, "The body of the request must be a JSON object.")
    return parsed


def _check_component(fields: dict[str, Any], blocks: Blocks) -> None:
    """Raise Refused unless a body's `fields` call a server function of a component of the page.

    The status is 400 if `session_hash` is no string or `data` is missing, and 404 unless `component_id` is the number
    of a component that has a server function with the name `fn_name`.
    """
    number, name = fields.get("component_id"), fields.get("fn_name")
    if not isinstance(fields.get("session_hash"), str) or "data" not in fields:
        raise Refused(400, "The request needs session_hash, a string, and data.")
    component = blocks.blocks.get(number) if type(number) is int else None
    function = getattr(component, name, None) if isinstance(name, str) else None
    if not getattr(function, "_is_server_fn", False):
        raise Refused(404, "There is no such component or function: load the page again.")


def _check_function(path: str, fields: dict[str, Any], blocks: Blocks) -> None:
    """Raise Refused (404) unless a request, with these `fields` in its body, is for a function of the page.

    If there is an `fn_index`, it must be the number of a function. Otherwise the last part of the path must be the API
    name of one, and a request to QUEUE_JOIN is refused.
    """
    number, names = fields.get("fn_index"), {function.api_name for function in blocks.fns.values()}
    if number is not None:
        known = type(number) is int and number in blocks.fns
    else:
        known = path != QUEUE_JOIN and path.rsplit("/", 1)[-1] in names
    if not known:
        raise Refused(404, f"There is no such function. The functions are {_listed(names)}.")


def _listed(names: Iterable[Any]) -> str:
    return ", ".join(sorted(name for name in names if isinstance(name, str)))
