"""A bare page with the interface's script modules and CSS variables and without Gradio, to test one module."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Route

from interface.http.assets import route
from interface.web.theme import VARIABLES
from tests.support.browser import free_port

HEAD = f"<meta charset=utf-8><title>Workbench</title><style>{VARIABLES.read_text(encoding='utf-8')}</style>"
PAGE = f"<!doctype html><html lang=en><head>{HEAD}</head><body></body></html>"


@contextmanager
def workbench(body: str = "") -> Iterator[str]:
    """The address of a page with this body. Code from `importing` finds the scripts there as on the real page."""

    async def page(request: object) -> HTMLResponse:
        return HTMLResponse(PAGE.replace("<body>", f"<body>{body}"))

    port = free_port()
    config = uvicorn.Config(
        Starlette(routes=[Route("/", page), route()]), host="127.0.0.1", port=port, log_level="error"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{port}/"
    finally:
        server.should_exit = True
        thread.join(10)
