"""What the tests of the page share: the app as a process of its own, and a real browser that looks at it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import pytest

from interface import Loader, build, look
from lookahead_core import Model

ROOT = Path(__file__).parents[1]
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
PATIENCE = 120_000
"""Milliseconds: on a busy machine a small model takes its time."""
FORGET = """async () => {
  const deleted = name => new Promise((done, failed) => {
    const request = indexedDB.deleteDatabase(name);
    Object.assign(request, {onsuccess: done, onerror: failed});
  });
  localStorage.clear();
  sessionStorage.clear();
  for (const {name} of await indexedDB.databases()) await deleted(name);
}"""


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@dataclass
class App:
    """`python app.py` while it runs."""

    process: subprocess.Popen[str]
    url: str
    log: Path

    @property
    def said(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def wait_for(self, words: str, seconds: float = 120.0) -> str:
        """What the terminal shows, once it shows these words."""
        end = time.monotonic() + seconds
        while words not in self.said:
            assert time.monotonic() < end, f"{words!r} did not appear:\n{self.said}"
            time.sleep(0.1)
        return self.said


@contextmanager
def app(log: Path, *arguments: str, port: int | None = None) -> Iterator[App]:
    """The app on this port or a free one, up and answering; ended when the test is over."""
    port = port or free_port()
    command = [sys.executable, "app.py", "--port", str(port), *arguments]
    with log.open("w") as output:
        process = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=output, text=True)
    running = App(process, f"http://127.0.0.1:{port}/", log)
    try:
        _wait_until_up(running)
        yield running
    finally:
        process.terminate()
        process.wait(20)


def _wait_until_up(running: App, seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert running.process.poll() is None, f"The app ended by itself:\n{running.said}"
        with suppress(OSError), urllib.request.urlopen(running.url, timeout=2):
            return
        time.sleep(0.1)
    raise AssertionError(f"The app did not answer:\n{running.said}")


@contextmanager
def page_of(load: Callable[[Any], Model]) -> Iterator[str]:
    """The page in this process, around a model loaded by this function; gives its address."""
    loader = Loader(load).start()
    page = build(loader)
    _, url, _ = page.launch(prevent_thread_lock=True, quiet=True, server_port=free_port(), **look())
    try:
        yield url
    finally:
        page.close()
        if loader.model is not None:
            loader.scheduler.close()  # who shares the model need not share it with what is still read ahead


def model_arguments() -> list[str]:
    """The folder in LOOKAHEAD_TEST_MODEL, or the default model."""
    folder = os.environ.get("LOOKAHEAD_TEST_MODEL", "")
    return ["--model", folder] if folder else []


@contextmanager
def chromium() -> Iterator[Any]:
    """A real browser without a window; the test is skipped where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright for Python is not installed.")
    found = _chromium()
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield browser
        browser.close()


@asynccontextmanager
async def chromium_of_many() -> AsyncIterator[Any]:
    """The same for tests that do many things at once."""
    playwright = pytest.importorskip("playwright.async_api", reason="Playwright for Python is not installed.")
    found = _chromium()
    async with playwright.async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield browser
        await browser.close()


def _chromium() -> str:
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        pytest.skip("There is no chromium on this machine.")
    return found


@dataclass
class Visit:
    """A page somebody has open, with all that it asked for and complained about."""

    page: Any
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return str(self.page.locator("#document textarea").input_value())

    def type(self, text: str, delay: float = 20) -> None:
        self.page.locator("#document textarea").press_sequentially(text, delay=delay)

    def fill(self, text: str) -> None:
        self.page.locator("#document textarea").fill(text)

    def wait_for_view(self, state: str) -> None:
        self.page.wait_for_selector(f"#branches[data-state={state}]", timeout=PATIENCE)

    def wait_for_status(self, state: str) -> str:
        self.page.wait_for_selector(f"#status[data-state={state}]", timeout=PATIENCE)
        return str(self.page.locator("#status").inner_text())

    def wait_until_settled(self) -> int:
        """The revision of the branches, once they are those of the text as it stands."""
        self.page.wait_for_selector("#branches[data-state=settled][data-stale=false]", timeout=PATIENCE)
        return int(self.page.locator("#branches").get_attribute("data-revision"))

    def token(self, branch: int, token: int) -> Any:
        return self.page.locator(f"#branches [data-branch='{branch}'] [data-token='{token}']")

    @property
    def rows(self) -> int:
        return int(self.page.locator("#branches [data-branch]").count())

    def pieces(self, branch: int) -> list[str]:
        """What the tokens of a row insert."""
        found = self.page.locator(f"#branches [data-branch='{branch}'] [data-token]")
        return list(found.evaluate_all("tokens => tokens.map(token => token.dataset.text)"))


@contextmanager
def visit(browser: Any, url: str, **options: Any) -> Iterator[Visit]:
    """Open the page; in the end no request may have left for another host, and the console holds no error."""
    page = browser.new_page(**options)
    with _seen(page, url) as opened:
        yield opened
    page.close()


@contextmanager
def visit_again(page: Any, url: str) -> Iterator[Visit]:
    """The same on a page that was used before, as if nobody had been there: it is up sooner than one of its own."""
    forget(page, url)
    with _seen(page, url) as opened:
        yield opened
    page.unroute_all()
    page.goto("about:blank")


@contextmanager
def _seen(page: Any, url: str) -> Iterator[Visit]:
    """The page at this address, with a witness of its requests and complaints."""
    seen = Visit(page)
    hear: dict[str, Callable[[Any], None]] = {
        "request": lambda request: seen.requests.append(request.url),
        "console": lambda message: seen.complaints.append(message.text) if message.type == "error" else None,
        "pageerror": lambda error: seen.complaints.append(str(error)),
    }
    for event, heard in hear.items():
        page.on(event, heard)
    page.goto(url)
    page.wait_for_selector("#document textarea", timeout=PATIENCE)
    yield seen
    for event, heard in hear.items():
        page.remove_listener(event, heard)
    hosts = {urlparse(url).hostname for url in seen.requests if not url.startswith(("data:", "blob:"))}
    assert hosts == {"127.0.0.1"}
    assert not seen.complaints


def forget(page: Any, url: str) -> None:
    """Nothing is left of what this browser keeps for the server at this address, in this tab or in any."""
    page.mouse.move(0, 0)
    page.goto(f"{url}lookahead/writer/words.js")  # there nothing runs that could keep something anew
    page.evaluate(FORGET)
