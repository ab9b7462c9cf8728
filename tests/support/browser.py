"""For tests of the page: the app in its own process, and a real browser."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import pytest

from interface import ModelLoader, answer_unreadable_requests, build, remember_peers
from interface.http import assets
from lookahead_core import Model, Settings
from lookahead_core.engines.dispatch import dispatcher_of
from lookahead_core.serving.scheduler import SCHEDULERS
from tests.support.launching import launch

ROOT = Path(__file__).parents[2]
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
"""Milliseconds to wait for the page; a small model is slow on a busy machine."""
counts_passes = pytest.mark.skipif(
    "TEST_WORKERS" in os.environ, reason="a new worker reads the source again, and a task counts its views ahead"
)
"""Skips a test that counts the passes of a view where the tests run on the stand-in for shared GPUs."""
PORTS = 1500
"""How many ports a worker may give out, one after the other, from 20000 on: Chromium refuses some lower ports."""
_FIRST = os.getpid() % PORTS
_PORTS = cycle([*range(20000 + _FIRST, 20000 + PORTS), *range(20000, 20000 + _FIRST)])
"""Two runs of the tests on one machine begin with different ports, and hardly ever meet."""
STARTED = "document.querySelector('#branches')?.matches('[data-state=empty][data-revision=\"-1\"]') === false"
"""Whether the writer's scripts have run: buttons that are pressed before do nothing."""
CHOOSE_ODDS = "odds => { const choice = document.getElementById('odds'); if (choice) choice.value = odds; }"
"""Chooses what the shares of the Write tab are of, before there is a text."""
PUT = """([id, value]) => {
  const field = document.getElementById(id);
  field.value = value;
  field.dispatchEvent(new Event('input', {bubbles: true}));
}"""

REST = """async () => {
  for (let turn = 0; turn < 3; turn += 1) await new Promise(done => setTimeout(done, 300));
}"""
"""Timers of the page run in their order, however slow it is: one of these comes after whatever it waits with."""
ANNOUNCED = """text => [...document.querySelectorAll('.branch-view')].some(({branchView}) => {
  const announced = branchView?.announcedTab();
  return text === null ? announced : announced === text;
})"""
"""Whether a painted announcement has said that Tab inserts this text, or any if it is null."""
FORGET = """async () => {
  const deleted = name => new Promise((done, failed) => {
    const request = indexedDB.deleteDatabase(name);
    Object.assign(request, {onsuccess: done, onerror: failed});
  });
  localStorage.clear();
  sessionStorage.clear();
  for (const {name} of await indexedDB.databases()) await deleted(name);
}"""


START_AND_STOP = """button => {
  button.click();
  const meanwhile = button.textContent;
  button.click();
  return [meanwhile, button.textContent];
}"""
"""For a button that begins something and then stops it: its names meanwhile, and afterwards."""
CLICK_ONCE_SHOWN = """([selector, button]) => {
  new MutationObserver((_, observer) => {
    if (!document.querySelector(selector)) return;
    observer.disconnect();
    document.querySelector(button).click();
  }).observe(document.body, {childList: true, subtree: true});
}"""
"""Clicks a button in the moment in which an element is first shown, also if all is over when a test would see it."""
MOVED = """([clientX, clientY]) => {
  const below = document.elementFromPoint(clientX, clientY);
  const moved = {clientX, clientY, pointerType: 'mouse', bubbles: true};
  if (below !== window.lastBelow) below.dispatchEvent(new PointerEvent('pointerover', moved));
  below.dispatchEvent(new PointerEvent('pointermove', moved));
  window.lastBelow = below;
}"""
LISTEN = """regions => {
  window.spoken = [];
  const regionOf = ({target}) => (target.closest ? target : target.parentElement)?.closest(regions);
  const observer = new MutationObserver(changes => {
    for (const region of new Set(changes.map(regionOf)))
      if (region?.textContent && region.checkVisibility()) spoken.push(region.textContent);
  });
  for (const region of document.querySelectorAll(regions))
    observer.observe(region, {childList: true, characterData: true, subtree: true});
}"""
LIVE_REGIONS = "[aria-live=polite], [role=status]"


def importing(code: str) -> str:
    """The same code for a page, in which `import('/lookahead/FILE')` finds that file's present address."""
    return re.sub(r"'/lookahead/([^']+)'", lambda found: f"'{assets.scripts().address(found[1])}'", code)


def free_port() -> int:
    """A port that stays free until it is used: no connection leaves by one so low, and each worker has its own."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    while True:
        port = next(_PORTS) + PORTS * worker
        with socket.socket() as listener, suppress(OSError):
            listener.bind(("127.0.0.1", port))
            return port


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
        """Wait until the log contains these words; return the log."""
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
        process.wait(120)


def _wait_until_up(running: App, seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert running.process.poll() is None, f"The app ended by itself:\n{running.said}"
        with suppress(OSError), urllib.request.urlopen(running.url, timeout=2):
            return
        time.sleep(0.1)
    raise AssertionError(f"The app did not answer:\n{running.said}")


@contextmanager
def page_of(
    load: Callable[[Any], Model],
    settings: Settings | None = None,
    load_draft: Callable[[Any], Model] | None = None,
    **options: Any,
) -> Iterator[str]:
    """The page in this process, around a model loaded by this function; gives its address. Options are `launch`'s.

    `settings` has the limits of requests, and `load_draft` loads the draft model.

    With TEST_WORKERS in the environment, the model is on a stand-in for shared GPUs.
    """
    gpus: list[Any] = []
    if "TEST_WORKERS" in os.environ:
        load = _on_workers(load, gpus)
    loader = ModelLoader(load, settings, load_draft)
    page = build(loader)
    url = launch(page, loader, free_port(), **options)
    answer_unreadable_requests(page.server)
    remember_peers(page.server)
    loader.start()
    try:
        yield url
    finally:
        page.close()
        if loader.model is not None:
            loader.scheduler.close()  # who shares the model need not share it with what is still prefetched
        for gpu in gpus:
            gpu.close()


def _on_workers(load: Callable[[Any], Model], gpus: list[Any]) -> Callable[[Any], Model]:
    """The same model on a stand-in for shared GPUs, which is added to `gpus`, so that all tests can be run on it.

    A model of a server has no weights for a GPU, and one that is on such a stand-in already stays as it is.
    TEST_WORKERS is the share of its calls before which it kills the worker, 0 to 1.
    """
    from tests.support.forking_gpu import on_workers

    def loaded(report: Any) -> Model:
        model = load(report)
        if model.hf_model is None or dispatcher_of(model.engine) is not None:
            return model
        dispatched, gpu = on_workers(model, kills=float(os.environ["TEST_WORKERS"]))
        gpus.append(gpu)
        return dispatched

    return loaded


def model_arguments() -> list[str]:
    """The folder in LOOKAHEAD_TEST_MODEL, or the default model."""
    folder = os.environ.get("LOOKAHEAD_TEST_MODEL", "")
    return ["--model", folder] if folder else []


@contextmanager
def chromium() -> Iterator[Any]:
    """A headless Chromium; the test is skipped if there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright for Python is not installed.")
    found = _chromium()
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield browser
        browser.close()


@asynccontextmanager
async def chromium_of_many() -> AsyncIterator[Any]:
    """The same with Playwright's asynchronous API."""
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


def expect(locator: Any) -> Any:
    """Playwright's `expect` with the timeout `PATIENCE`: it waits until the condition holds."""
    from playwright.sync_api import expect as expected

    expected.set_options(timeout=PATIENCE)
    return expected(locator)


def wait_until_idle() -> None:
    """Wait until no scheduler of this process has a request or a prefetch left."""
    end = time.monotonic() + PATIENCE / 1000
    while not all(scheduler.is_idle for scheduler in list(SCHEDULERS)):
        assert time.monotonic() < end, "It never ends."
        time.sleep(0.02)


def middle_of(element: Any) -> tuple[float, float]:
    """Return the middle of an element in the window."""
    box = element.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


@dataclass
class Visit:
    """A page somebody has open, with all that it asked for and complained about."""

    page: Any
    requests: list[str] = field(default_factory=list)
    calls: list[tuple[str, Any]] = field(default_factory=list)
    """What its scripts called of the server's functions: each by its name, and with what."""
    complaints: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return str(self.page.locator("#document textarea").input_value())

    def hear(self, request: Any) -> None:
        self.requests.append(request.url)
        if request.url.rstrip("/").endswith("component_server"):
            call = json.loads(request.post_data)
            self.calls.append((call["fn_name"], call["data"]))

    @property
    def asked(self) -> list[Any]:
        """All that was asked of the server; what is fetched of it later is nothing new."""
        return [given for name, given in self.calls if name != "more"]

    def type(self, text: str, delay: float = 20) -> None:
        self.page.locator("#document textarea").press_sequentially(text, delay=delay)

    def fill(self, text: str) -> None:
        self.page.locator("#document textarea").fill(text)

    def put(self, name: str, value: float | str) -> None:
        """Set the field with this id as if its value had been typed. The page does not scroll to it."""
        self.page.evaluate(PUT, [name, value])

    def wait_for_two_frames(self) -> None:
        """Wait until what has changed is painted."""
        self.page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def listen(self, regions: str = LIVE_REGIONS) -> None:
        """From now on record in `window.spoken` what these live regions announce while they are visible, in order."""
        self.page.evaluate(LISTEN, regions)

    def move_slowly(self, start: tuple[float, float], end: tuple[float, float], steps: int = 160) -> None:
        """Move a mouse in a line by events of the page, whose own clock passes 50 ms at each step.

        A busy computer may take longer for a step. The clock runs on afterwards.
        """
        clock = self.page.clock
        clock.install()
        clock.pause_at(self.page.evaluate("Date.now()") + 1000)
        for step in range(1, steps + 1):
            x, y = (first + (last - first) * step / steps for first, last in zip(start, end, strict=True))
            self.page.evaluate(MOVED, [x, y])
            clock.run_for(50)
        clock.resume()

    def hold(self, element: Any) -> None:
        """Rest a finger on an element for 1.2 seconds."""
        (x, y), session = middle_of(element), self.page.context.new_cdp_session(self.page)
        point = {"x": x, "y": y}
        session.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [point]})
        self.page.wait_for_timeout(1200)
        session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})

    def swipe(self, element: Any, right: float, steps: int = 8) -> None:
        """Move a finger from the middle of an element by this many pixels to the right, or to the left if negative.

        Each step takes at least 16 ms, and longer on a busy machine; a finger that is down for half a second holds.
        """
        (x, y), session = middle_of(element), self.page.context.new_cdp_session(self.page)
        session.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": x, "y": y}]})
        for step in range(1, steps + 1):
            point = {"x": x + right * step / steps, "y": y}
            session.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [point]})
            self.page.wait_for_timeout(16)
        session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})

    def control(self, name: str) -> Any:
        """A setting of the Write tab by its id; "More settings" is opened if it is inside."""
        found = self.page.locator(f"#{name}")
        if not found.is_visible():
            self.page.locator("#controls summary").click()
        return found

    def choose(self, name: str, value: str) -> None:
        """Choose a view (`name` is "view") or the shape of the tree ("tree-shape"): a click on what is seen of it."""
        self.page.locator(f"label:has(input[name={name}][value={value}])").click()
        expect(self.page.locator(f"input[name={name}][value={value}]")).to_be_checked()

    def open_tab(self, name: str) -> None:
        """Open a tab of the page and wait until its script has run."""
        self.page.get_by_role("tab", name=name, exact=True).click()
        self.page.wait_for_timeout(300)

    def analyse(self, text: str) -> None:
        """Fill the text of the Highlights tab, which must be open, and wait for its highlights."""
        self.page.locator("#highlights-text").fill(text)
        self.page.wait_for_function(
            """text => {
              const shown = document.querySelector('#highlights'), settled = shown.dataset.state === 'settled';
              return settled && !shown.matches('[data-stale]') && shown.textContent === text;
            }""",
            arg=text,
            timeout=PATIENCE,
        )

    def wait_for_view(self, state: str) -> None:
        self.page.wait_for_selector(f"#branches[data-state={state}]", timeout=PATIENCE)

    def wait_for_status(self, state: str) -> str:
        self.page.wait_for_selector(f"#status[data-state={state}]", timeout=PATIENCE)
        return str(self.page.locator("#status").inner_text())

    def wait_until_settled(self) -> int:
        """The revision of the branches, once they are those of the text as it stands."""
        self.page.wait_for_selector("#branches[data-state=settled][data-stale=false]", timeout=PATIENCE)
        return int(self.page.locator("#branches").get_attribute("data-revision"))

    def wait_until_asked(self) -> None:
        """Until whatever is to be asked has been asked: the page waits a little for what else is changed."""
        self.page.evaluate(REST)

    def wait_until_prefetched(self, rows: int = 5) -> None:
        """Until a click on the first word of each row is prepared, and nothing more is."""
        self.page.wait_for_selector(f"#branches[data-ahead-ready='{rows}']", timeout=PATIENCE)
        wait_until_idle()

    def token(self, branch: int, token: int) -> Any:
        return self.page.locator(f"#branches [data-branch='{branch}'] [data-token='{token}']")

    @property
    def rows(self) -> int:
        return int(self.page.locator("#branches [data-branch]").count())

    def pieces(self, branch: int) -> list[str]:
        """The texts that the tokens of a row insert."""
        found = self.page.locator(f"#branches [data-branch='{branch}'] [data-token]")
        return list(found.evaluate_all("tokens => tokens.map(token => token.dataset.text)"))


@contextmanager
def visit(browser: Any, url: str, odds: str = "tokens", **options: Any) -> Iterator[Visit]:
    """Open the page; in the end no request may have left for another host, and the console holds no error.

    On a first visit the Write tab shows odds of words. Most tests see odds of tokens, as if a person had chosen them:
    what they hold is the same for both, and a search of words takes tiny models long, whose words never end.
    """
    page = browser.new_page(**options)
    with _seen(page, url, odds) as opened:
        yield opened
    page.close()


@contextmanager
def visit_again(
    page: Any,
    url: str,
    odds: str = "tokens",
    *,
    viewport: dict[str, int] | None = None,
    color_scheme: str | None = None,
) -> Iterator[Visit]:
    """The same on a page that was used before, as if nobody had been there: it is up sooner than one of its own."""
    forget(page, url)
    with _looking(page, viewport or page.viewport_size, color_scheme or "light"), _seen(page, url, odds) as opened:
        yield opened
    page.unroute_all()
    page.goto("about:blank")


def accept_grey_text(page: Any, text: str | None = None) -> None:
    """Press Tab once it is announced that Tab inserts this text, or any grey text: before, it would insert nothing."""
    page.wait_for_function(ANNOUNCED, arg=text, timeout=PATIENCE)
    page.keyboard.press("Tab")


@contextmanager
def requests_held(page: Any) -> Iterator[None]:
    """Hold all calls of the page's own server functions back until the block ends."""
    held: list[Any] = []
    is_over = False
    page.route("**/component_server/", lambda route: route.continue_() if is_over else held.append(route))
    yield
    is_over = True
    for route in held:
        route.continue_()


@contextmanager
def _looking(page: Any, viewport: dict[str, int], color_scheme: str) -> Iterator[None]:
    """The page in a window of this size, in these colours; afterwards as before, and light."""
    before = page.viewport_size
    page.set_viewport_size(viewport)
    page.emulate_media(color_scheme=color_scheme)
    try:
        yield
    finally:
        page.set_viewport_size(before)
        page.emulate_media(color_scheme="light")


@contextmanager
def _seen(page: Any, url: str, odds: str) -> Iterator[Visit]:
    """The page at this address, with a witness of its requests and complaints."""
    seen = Visit(page)
    hear: dict[str, Callable[[Any], None]] = {
        "request": seen.hear,
        "console": lambda message: seen.complaints.append(message.text) if message.type == "error" else None,
        "pageerror": lambda error: seen.complaints.append(str(error)),
    }
    for event, heard in hear.items():
        page.on(event, heard)
    page.set_default_timeout(PATIENCE)
    page.goto(url)
    page.wait_for_selector("#document textarea")
    page.wait_for_function(STARTED)
    page.evaluate(CHOOSE_ODDS, odds)
    yield seen
    for event, heard in hear.items():
        page.remove_listener(event, heard)
    hosts = {urlparse(url).hostname for url in seen.requests if not url.startswith(("data:", "blob:"))}
    assert hosts == {"127.0.0.1"}
    assert not seen.complaints, seen.complaints


def forget(page: Any, url: str) -> None:
    """Nothing is left of what this browser keeps for the server at this address, in this tab or in any."""
    page.mouse.move(0, 0)
    page.goto(
        f"{url}{assets.scripts().address('web/core/text_words.js')[1:]}"
    )  # no script runs there and stores anything
    page.evaluate(FORGET)
