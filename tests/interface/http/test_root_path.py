"""Behind a proxy that serves the page under a path: the page, its scripts, its requests and the calls."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from lookahead_core import Model
from tests.support.browser import PATIENCE, page_of
from tests.support.http_requests import http_request, wait_until_ready
from tests.support.path_proxy import served_under

PATH = "/class/lookahead"


@pytest.fixture(scope="module")
def outside(model: Model) -> Iterator[str]:
    """The page's address outside of the proxy."""
    with page_of(lambda report: model, root_path=PATH) as url:
        wait_until_ready(url)
        with served_under(PATH, url) as address:
            yield address


def get(address: str, path: str) -> tuple[int, Any]:
    return http_request(address, "GET", urlsplit(address).path + path)


@pytest.mark.slow
def test_the_page_its_scripts_and_the_calls_are_reached_under_the_path_only(outside: str) -> None:
    status, page = get(outside, "/")
    assert status == 200
    scripts = re.findall(r"/lookahead/[0-9a-f]{16}/[\w/]+\.js", page)
    assert scripts and get(outside, scripts[0])[0] == 200
    root = re.search(r'"root": ?"([^"]+)"', page)
    assert root and urlsplit(root[1]).path == PATH
    assert get(outside, "/api")[0] == 200
    body = {"text": "a", "k": 1, "depth": 1}
    assert http_request(outside, "POST", f"{PATH}/api/lookahead", body)[0] == 200
    assert http_request(outside, "GET", "/")[0] == 404


@pytest.mark.slow
@pytest.mark.browser
def test_typing_and_clicking_work_under_the_path(outside: str, browser: Any) -> None:
    page = browser.new_page()
    page.set_default_timeout(PATIENCE)
    failed: set[str] = set()
    page.on("response", lambda response: failed.add(urlsplit(response.url).path) if response.status >= 400 else None)
    page.goto(f"{outside}/")
    page.wait_for_selector("#status[data-state=ready]")
    page.locator("#document textarea").fill("The old")
    page.wait_for_selector("#branches[data-state=settled][data-stale=false] [data-token]")
    token = page.locator("#branches [data-branch='0'] [data-token='0']")
    piece = token.get_attribute("data-text")
    token.click()
    page.wait_for_function("text => document.querySelector('#document textarea').value === text", arg=f"The old{piece}")
    page.close()
    assert failed <= {"/manifest.json"}, (
        "Gradio's own page asks for this one at the root of the host, and needs it not."
    )
