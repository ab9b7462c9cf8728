"""All endpoints of the running app: its routes, the server functions of its components, and its calls."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from interface.server.call_arguments import NAMES, parameters_of

COMPONENT = "/gradio_api/component_server"
ENDLESS = ("/gradio_api/heartbeat", "/gradio_api/queue/data")
"""Streams that last as long as a page is open; a request to them is ended by its client."""


@dataclass(frozen=True)
class Endpoint:
    """A route with a method; or a server function of a component, or a call, with an example of what it takes."""

    method: str
    path: str
    """With `{name}` for each parameter."""
    example: Any = None
    """An object that the endpoint accepts; None if it is unknown."""
    component: int | None = None
    function: str = ""

    @property
    def name(self) -> str:
        return f"{self.method} {self.path} {self.function}".strip()


EXAMPLE = {"page": "a-page-of-somebody", "number": 1, "revision": 1, "text": "The sea", "k": 2, "depth": 2, "seen": 0}
"""What the page's functions accept; each reads the fields that it needs."""


def endpoints_of(app: Any) -> list[Endpoint]:
    """Return the endpoints of a Gradio app, each once."""
    return list(dict.fromkeys([*_routes(app.routes), *_functions(app.get_blocks()), *_calls()], None))


def _routes(routes: Any, prefix: str = "") -> Iterator[Endpoint]:
    for route in routes:
        path = prefix + getattr(route, "path", "")
        # FastAPI keeps the routes of an included router in an object without a path.
        inner = getattr(route, "routes", None) or getattr(getattr(route, "original_router", None), "routes", None)
        if inner:
            yield from _routes(inner, path)
        for method in sorted(getattr(route, "methods", None) or ()):
            yield Endpoint(method, re.sub(r"{(\w+):\w+}", r"{\1}", path))


def _functions(blocks: Any) -> Iterator[Endpoint]:
    for number, component in blocks.blocks.items():
        for name in component.get_config().get("server_fns") or getattr(component, "server_fns", None) or ():
            yield Endpoint("POST", COMPONENT, _Shown(EXAMPLE), number, name if isinstance(name, str) else name.__name__)


def _calls() -> Iterator[Endpoint]:
    for name in NAMES:
        example = _Shown({each: _value_of(each) for each in parameters_of(name)})
        for path in (f"/api/{name}", f"/gradio_api/call/v2/{name}"):
            yield Endpoint("POST", path, example)


def _value_of(parameter: str) -> Any:
    values = {"messages": None, "stop": None, "ratio": 0.5, "seed": 1, "mode": "likely", "until": "tokens"}
    if parameter in ("text", "doc", "prompt", "original_doc", "doc_in_progress", "updated_doc"):
        return "The sea"
    return values.get(parameter, 1)


class _Shown(dict[str, Any]):
    """A dictionary that can be hashed, by its identity."""

    def __hash__(self) -> int:  # type: ignore[override]
        return id(self)
