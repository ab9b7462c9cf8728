"""The page begins with the script that keeps early keys, and no other response has it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interface.http import assets
from interface.http.first_script import FirstScript

SCRIPT = "<script>\n" + assets.scripts().contents[assets.EARLY_KEYS].decode() + "</script>"
PAGE = "<!doctype html><html><head><title>A <head></title></head></html>"


def get(path: str, body: str, media_type: str, root_path: str = "") -> tuple[dict[str, str], str]:
    """Return the headers and the body that FirstScript sends when the app inside it answers with this body."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        headers = [(b"content-type", media_type.encode()), (b"content-length", str(len(body.encode())).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body.encode()})

    messages: list[Any] = []

    async def send(message: Any) -> None:
        messages.append(message)

    asyncio.run(FirstScript(app)({"type": "http", "path": path, "root_path": root_path}, None, send))  # type: ignore[arg-type]
    start, *parts = messages
    headers = {name.decode(): value.decode() for name, value in start["headers"]}
    return headers, b"".join(part["body"] for part in parts).decode()


@pytest.mark.parametrize(("path", "root_path"), [("/", ""), ("/below/", "/below")])
def test_the_script_is_the_first_element_of_the_page(path: str, root_path: str) -> None:
    headers, body = get(path, PAGE, "text/html; charset=utf-8", root_path)
    assert body == PAGE.replace("<head>", f"<head>{SCRIPT}", 1)
    assert headers["content-length"] == str(len(body.encode()))


@pytest.mark.parametrize(
    ("path", "body", "media_type"),
    [
        ("/config", PAGE, "text/html"),
        ("/", PAGE, "application/json"),
        ("/", "", "text/html"),
        ("/", "<p>no page</p>", "text/html"),
    ],
)
def test_other_responses_are_unchanged(path: str, body: str, media_type: str) -> None:
    headers, sent = get(path, body, media_type)
    assert sent == body and headers["content-length"] == str(len(body.encode()))
