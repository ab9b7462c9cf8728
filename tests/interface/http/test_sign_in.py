"""With accounts, the page, the calls and MCP answer only those who have signed in."""

from __future__ import annotations

import http.client
import json
import re
from base64 import b64encode
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest

from interface.http.sign_in import SENTENCE
from lookahead_core import Model
from tests.support.browser import PATIENCE, page_of
from tests.support.http_requests import http_request

ACCOUNTS = [("ada", "a:long wörd"), ("ben", "other")]
CALL = {"text": "a", "k": 1, "depth": 1}
CLOSED = [
    ("GET", "/api"),
    ("POST", "/api/lookahead"),
    ("GET", "/api/"),
    ("POST", "/gradio_api/mcp/"),
    ("POST", "/gradio_api/component_server/"),
    ("GET", "/config"),
]


@pytest.fixture(scope="module")
def closed(model: Model) -> Iterator[str]:
    """The address of a page with accounts."""
    with page_of(lambda report: model, auth=ACCOUNTS) as url:
        yield url


def basic(name: str, password: str) -> dict[str, str]:
    return {"Authorization": f"Basic {b64encode(f'{name}:{password}'.encode()).decode()}"}


def cookies_after_sign_in(url: str, name: str, password: str) -> tuple[int, list[str]]:
    """The status of a sign-in on the page, and the cookies that it sets."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=30)
    body = urlencode({"username": name, "password": password})
    connection.request("POST", "/login", body, {"Content-Type": "application/x-www-form-urlencoded"})
    response = connection.getresponse()
    cookies = [value.split(";")[0] for key, value in response.getheaders() if key.lower() == "set-cookie"]
    connection.close()
    return response.status, cookies


def status_when_loaded(url: str, **headers: str) -> int:
    """The status of a call, once the model is loaded."""
    while (status := http_request(url, "POST", "/api/lookahead", CALL, **headers)[0]) == 503:
        pass
    return status


@pytest.mark.slow
@pytest.mark.parametrize(("method", "path"), CLOSED)
def test_a_stranger_gets_401(closed: str, method: str, path: str) -> None:
    status, content = http_request(closed, method, path, CALL if method == "POST" else None)
    assert status == 401
    assert path == "/config" or content["detail"] == SENTENCE


@pytest.mark.parametrize(
    "headers",
    [
        basic("ada", "other"),
        basic("eve", "other"),
        basic("ada", ""),
        {"Authorization": "Basic %%%"},
        {"Authorization": "Basic /w=="},
        {"Authorization": "Bearer other"},
        {"Authorization": ""},
        {"Cookie": "access-token-unsecure-x=y"},
    ],
)
def test_a_wrong_password_or_cookie_gets_401(closed: str, headers: dict[str, str]) -> None:
    assert http_request(closed, "POST", "/api/lookahead", CALL, **headers)[0] == 401


@pytest.mark.parametrize("account", ACCOUNTS)
def test_a_name_and_its_password_open_the_calls_with_each_request_or_after_a_sign_in(
    closed: str, account: tuple[str, str]
) -> None:
    assert status_when_loaded(closed, **basic(*account)) == 200
    status, cookies = cookies_after_sign_in(closed, *account)
    # One of them is for HTTPS; over HTTP a browser keeps only the other.
    assert status == 200 and len(cookies) == 2
    assert [status_when_loaded(closed, Cookie=cookie) for cookie in cookies] == [200, 200]
    assert cookies_after_sign_in(closed, account[0], "wrong") == (400, [])


def test_the_page_shows_a_stranger_a_form_and_nothing_else(closed: str) -> None:
    status, content = http_request(closed, "GET", "/")
    configuration = re.search(r"window\.gradio_config = (\{.*?\});</script>", content, re.S)
    assert status == 200 and configuration
    shown = json.loads(configuration[1])
    assert shown["auth_required"] is True
    assert not any(shown.get(name) for name in ("components", "dependencies", "layout"))


def test_without_accounts_everybody_may_call(address: str) -> None:
    assert http_request(address, "POST", "/api/lookahead", CALL)[0] == 200
    assert http_request(address, "POST", "/api/lookahead", CALL, **basic("eve", "none"))[0] == 200


@pytest.mark.slow
@pytest.mark.browser
def test_a_person_signs_in_on_the_page_and_writes(closed: str, browser: Any) -> None:
    page = browser.new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(closed)
    page.locator("input").nth(0).fill("ada")
    page.locator("input").nth(1).fill("a:long wörd")
    page.locator("button").last.click()
    box = page.locator("#document textarea")
    box.wait_for()
    page.wait_for_selector("#status[data-state=ready]")
    box.fill("The old")
    page.wait_for_selector("#branches[data-state=settled] [data-token]")
    page.close()
