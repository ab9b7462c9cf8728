"""A page as its script behaves towards the server, over HTTP, and the checks that nothing in it is lost or mixed up."""

from __future__ import annotations

import asyncio
import random
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from time import perf_counter
from typing import Any

import httpx

GAP = 0.04
"""Seconds between two requests of a page while somebody types, as in `interface/web/net/requests.js`."""
TIMEOUT = 45.0
"""Seconds after which a page gives up a request."""
RETRIES = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Seconds until a page repeats a request that had no room, times 0.5 to 1.5."""
SECRET = re.compile(r"K-\d{6}")
APART = 4
"""Digits in which two secrets differ at least: a model that copies one may get a digit wrong."""
SAME_ROWS = 0.5
"""Least share of first pieces that two views of one text must have in common; in half precision some may differ."""
View = dict[str, Any]


class Secrets:
    """Draws secrets: short numbers, of which a model repeats its own text's, and nobody else's."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.drawn: set[str] = set()

    def draw(self) -> str:
        """Return a new secret; all of them match SECRET."""
        while True:
            secret = f"K-{self._random.randrange(10**6):06}"
            if all(sum(one != other for one, other in zip(secret, old, strict=True)) >= APART for old in self.drawn):
                self.drawn.add(secret)
                return secret

    def in_response(self, content: str, answer: Any) -> set[str]:
        """Return the drawn secrets in a response, as it is sent and in the texts of its rows."""
        views = [answer.get("view"), *answer.get("ahead", {}).values()] if isinstance(answer, dict) else []
        rows = [row_text(branch) for view in views if view for branch in view["branches"]]
        return set(SECRET.findall("\n".join([content, *rows]))) & self.drawn


def row_text(branch: View) -> str:
    """Return the text of a row."""
    return "".join(piece["text"] for piece in branch["pieces"])


@dataclass
class Findings:
    """What went wrong and how long things took, for one person or several."""

    errors: Counter[str] = field(default_factory=Counter)
    """What a person would see as an error, by kind; each is a failure of the server."""
    refused: int = 0
    """Requests for which there was no room; the page sends them again."""
    rebuilt: int = 0
    """Requests that a server had to answer again, since the session had ended."""
    first: list[float] = field(default_factory=list)
    """Seconds from a key or click to the first view of the text, prefetched ones included."""
    settled: list[float] = field(default_factory=list)
    """Seconds from a key or click to the complete view of the text."""
    clicks: int = 0
    known: int = 0
    """Clicks whose view was prefetched."""
    seen: int = 0
    """Responses that held the person's own secret: where there are none, mixing could not be noticed."""


class LoadedPage:
    """One page in one browser: a text, the requests for it, and the views that come back."""

    def __init__(self, client: httpx.AsyncClient, component: int, secrets: Secrets, options: dict[str, Any]) -> None:
        self.client, self.component, self.secrets, self.options = client, component, secrets, options
        self.secret, self.name = secrets.draw(), f"{random.getrandbits(128):032x}"
        self.findings = Findings()
        self.text = ""
        self.view: View | None = None
        """The newest view of the present text; None if there is none yet."""
        self.trail: list[list[Any]] = []
        """All accepted pieces of the text, as requests hold them."""
        self._number = self._answered = 0
        self._ahead: dict[str, View] = {}
        self._sent = self._changed = 0.0
        self._is_settled = asyncio.Event()
        self._following: set[asyncio.Task[None]] = set()

    def type(self, characters: str) -> None:
        """Append characters to the text."""
        self._change(self.text + characters)

    def delete(self, count: int) -> None:
        """Remove the last characters; accepted pieces that they belonged to are typed text from then on."""
        kept = len(self.text) - count
        self.trail = [piece for piece in self.trail if piece[0] < kept and piece[0] + piece[3] <= kept]
        self._change(self.text[:kept])

    def begin(self, text: str) -> None:
        """Begin another text."""
        self.trail = []
        self._change(text)

    def accept(self, generator: random.Random, *, whole: bool = False) -> bool:
        """Click on a row's first piece, or with `whole` on its last; False if no row has a readable one."""
        rows = [(branch, _readable(branch)) for branch in (self.view or {"branches": []})["branches"]]
        rows = [(branch, pieces) for branch, pieces in rows if pieces]
        if not rows:
            return False
        branch, pieces = generator.choice(rows)
        chosen = pieces if whole else pieces[:1]
        ids, inserted = branch["ids"][: chosen[-1]["tokens"]], "".join(piece["text"] for piece in chosen)
        self.trail.append([len(self.text), ids, branch["healed"], len(inserted), self._number + 1])
        known = self._ahead.get(" ".join(map(str, ids)))
        self.findings.clicks += 1
        self.findings.known += known is not None
        self._change(self.text + inserted, known)
        return True

    async def settle(self) -> bool:
        """Wait until the view of the present text is complete; False if an error came instead, or no answer in time."""
        try:
            await asyncio.wait_for(self._is_settled.wait(), 2 * TIMEOUT)
        except asyncio.TimeoutError:
            self.findings.errors["no view in time"] += 1
        return self.view is not None

    async def check(self) -> None:
        """Compare the server's text with the page's, character by character, once its view is complete."""
        if not await self.settle():
            return
        text, tree = self.text, await self._call("tree", {"page": self.name})
        if tree is None:
            return  # the session has ended meanwhile: the page holds the text
        if text == self.text and "".join(token["text"] for token in tree["trunk"]) != text:
            self.findings.errors["characters lost"] += 1

    async def check_rows(self) -> None:
        """Compare the rows of the present text with those that a new page gets for the same text."""
        if not await self.settle() or self.view is None:
            return
        other = LoadedPage(self.client, self.component, self.secrets, self.options | {"ahead": False})
        other.secret, other.trail = self.secret, self.trail
        text, view = self.text, self.view
        other._change(text)
        if await other.settle() and other.view is not None and text == self.text:
            ours, theirs = _first_pieces(view), _first_pieces(other.view)
            if len(ours & theirs) < SAME_ROWS * min(len(ours), len(theirs)):
                self.findings.errors["rows of another text"] += 1
        self.findings.errors += other.findings.errors
        await other.close()

    async def stop(self) -> None:
        """Stop the server's work for this page."""
        await self._call("stop", {"page": self.name, "number": self._number})

    async def close(self) -> None:
        """End all requests, as a tab that is closed."""
        for task in self._following:
            task.cancel()
        await asyncio.gather(*self._following, return_exceptions=True)

    def _change(self, text: str, known: View | None = None) -> None:
        """Take a new text, of which a view may be known, and send a request for it soon."""
        self.text, self.view, self._ahead = text, known, {}
        self._number += 1
        self._changed = perf_counter()
        self._is_settled.clear()
        if known is not None:
            self.findings.first.append(0.0)
        task = asyncio.ensure_future(self._follow(self._number))
        self._following.add(task)
        task.add_done_callback(self._following.discard)

    async def _follow(self, number: int) -> None:
        """Send the request with this number and take its news to the end; as another one again if that was refused."""
        await asyncio.sleep(max(0.0, self._sent + GAP - perf_counter()))
        for wait in (*RETRIES, *RETRIES[-1:] * 20):
            if number != self._number or await self._is_answered(number):
                return
            await asyncio.sleep(wait * random.uniform(0.5, 1.5))
            if number != self._number:
                return
            number = self._number = number + 1

    async def _is_answered(self, number: int) -> bool:
        """Send a request and take its news; False if it has to be sent again."""
        self._sent = perf_counter()
        news = await self._call("ask", self._request(number))
        while number == self._number:
            if news is None or news.get("superseded"):
                return False
            if news.get("state") == "full":
                self.findings.refused += 1
                return False
            if news.get("unknown"):
                self.findings.rebuilt += 1
                self._answered = 0
                return self._is_settled.is_set()
            self._take(news, number)
            if news.get("over", True):
                return True
            news = await self._call("more", {"page": self.name, "number": number, "seen": news["seen"]})
        return True

    def _request(self, number: int) -> dict[str, Any]:
        accepted = [piece[:3] for piece in self.trail if piece[4] > self._answered]
        identity = {"page": self.name, "number": number, "revision": number}
        return self.options | identity | {"text": self.text, "accepted": accepted}

    def _take(self, news: dict[str, Any], number: int) -> None:
        """Take the news of the request for the present text."""
        if news.get("state") == "error":
            self.findings.errors[f"sentence: {news.get('sentence', '')}"] += 1
            self._is_settled.set()
            return
        if news.get("state") in ("thinking", "settled"):
            self._answered = max(self._answered, number)
        if "view" in news:
            if self.view is None:
                self.findings.first.append(perf_counter() - self._changed)
            self.view = news["view"]
        self._ahead |= news.get("ahead", {})
        if news.get("state") == "settled" and not self._is_settled.is_set():
            self.findings.settled.append(perf_counter() - self._changed)
            self._is_settled.set()

    async def _call(self, function: str, payload: dict[str, Any]) -> Any:
        """Call a server function as the page does; None after an error, which is counted."""
        body = {"component_id": self.component, "fn_name": function, "session_hash": self.name, "data": payload}
        try:
            response = await self.client.post("/gradio_api/component_server", json=body, timeout=TIMEOUT)
        except httpx.HTTPError as error:
            self.findings.errors[type(error).__name__] += 1
            return None
        if response.status_code != 200:
            self.findings.errors[f"status {response.status_code}"] += 1
            return None
        answer = response.json()
        found = self.secrets.in_response(response.text, answer)
        self.findings.seen += self.secret in found
        if found - {self.secret}:
            self.findings.errors["another person's secret"] += 1
        return answer


def _readable(branch: View) -> list[dict[str, Any]]:
    """Return the pieces of a branch before the first one with an incomplete character."""
    return list(takewhile(lambda piece: "\ufffd" not in piece["text"], branch["pieces"]))


def _first_pieces(view: View) -> set[str]:
    """Return the texts of the first pieces of a view's rows."""
    return {branch["pieces"][0]["text"] for branch in view["branches"] if branch["pieces"]}


def joined(pages: Sequence[LoadedPage]) -> Findings:
    """Return the findings of several pages together."""
    whole = Findings()
    for found in (page.findings for page in pages):
        whole.errors += found.errors
        whole.first += found.first
        whole.settled += found.settled
        for name in ("refused", "rebuilt", "clicks", "known", "seen"):
            setattr(whole, name, getattr(whole, name) + getattr(found, name))
    return whole


async def component_of(client: httpx.AsyncClient) -> int:
    """Return the number of the component whose server functions the Write tab calls."""
    config = (await client.get("/config", timeout=TIMEOUT)).json()
    return next(int(one["id"]) for one in config["components"] if "guess" in one["props"].get("server_fns", []))
