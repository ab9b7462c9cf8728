"""Limits for each person and each address: one too many is refused with a sentence, and all others are served."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest

from interface.http import request_gate
from interface.http.caller_address import address_of
from interface.server import rate_limits
from interface.server.callers import Caller
from interface.server.rate_limits import (
    BURST,
    LONGEST_WAIT,
    OTHERS_WITHIN,
    REQUEST_GAP,
    Budgets,
    CallerLimits,
    Pace,
    TooOften,
    Turns,
)
from lookahead_core import Model, Settings
from tests.support.http_requests import served

PAGES = [f"a-page-of-somebody-{number}" for number in range(20)]
CALL = json.dumps({"text": "a", "k": 1, "depth": 1}).encode()


def request_from(
    source: str, url: str, method: str, path: str, body: bytes | None = None, **headers: str
) -> tuple[int, Any, Any]:
    """Status, headers and parsed content of the response to a request from the address `source` of this computer."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=60, source_address=(source, 0))
    try:
        connection.request(method, path, body, {"Content-Type": "application/json"} | headers)
        response = connection.getresponse()
        return response.status, response.headers, json.loads(response.read())
    finally:
        connection.close()


@pytest.fixture(scope="module")
def strict(model: Model) -> Iterator[str]:
    """The address of a page with few requests for a person, and three times as many for an address."""
    with served(model, settings=Settings(person_requests=40, address_people=3, person_characters=100_000)) as url:
        yield url


def until_refused(send: Callable[[int], tuple[int, Any, Any]]) -> tuple[list[int], Any, Any]:
    """Send requests until one is refused; return the status of each, and the headers and content of the last response.

    The number of each is passed to `send`. On a slow machine more come through, since budgets refill meanwhile.
    """
    statuses: list[int] = []
    while len(statuses) < 2000:
        status, headers, answer = send(len(statuses))
        if status == 429 or "retry_after" in (answer or {}):
            return statuses, headers, answer
        statuses.append(status)
    raise AssertionError("Nothing is refused.")


def stop_of(url: str, page: str) -> bytes:
    """The body by which the script of a page calls its server function `stop`."""
    components = request_from("127.0.0.9", url, "GET", "/config")[2]["components"]
    component = next(one["id"] for one in components if "stop" in one["props"].get("server_fns", []))
    data = {"page": page, "number": 1}
    called = {"component_id": component, "fn_name": "stop", "session_hash": "a-session", "data": data}
    return json.dumps(called).encode()


@pytest.mark.slow
def test_a_person_who_sends_too_much_is_refused_and_others_at_the_same_address_are_not(strict: str) -> None:
    path = "/gradio_api/component_server"
    first, second = (stop_of(strict, page) for page in PAGES[:2])
    statuses, _, answer = until_refused(lambda number: request_from("127.0.0.2", strict, "POST", path, first))
    assert statuses[:40] == [200] * 40
    assert "at most 40 requests a minute are allowed for a person" in answer["sentence"]
    assert answer["sentence"][-1] == "."
    assert 1 <= answer["retry_after"] <= 60
    assert request_from("127.0.0.2", strict, "POST", path, second)[0] == 200, "another person"
    assert request_from("127.0.0.2", strict, "POST", "/api/lookahead", CALL)[0] == 200, "a program"


def test_an_address_has_the_limits_of_several_people_and_no_header_changes_it(strict: str) -> None:
    body = {page: stop_of(strict, page) for page in PAGES[:7]}

    def send(number: int) -> tuple[int, Any, Any]:
        forged = {"X-Forwarded-For": f"192.0.2.{number % 250}"}
        page = PAGES[number % 7]
        return request_from("127.0.0.3", strict, "POST", "/gradio_api/component_server", body[page], **forged)

    statuses, _, answer = until_refused(send)
    assert statuses[:120] == [200] * 120
    assert "3 times as many for an address" in answer["sentence"]
    status, headers, refused = request_from("127.0.0.3", strict, "POST", "/api/lookahead", CALL)
    assert status == 429 and "3 times as many for an address" in refused["detail"]
    assert 1 <= int(headers["Retry-After"]) <= 60
    assert request_from("127.0.0.4", strict, "POST", "/api/lookahead", CALL)[0] == 200, "another address"


def test_a_page_is_told_in_its_news_why_it_was_refused_and_metrics_count_a_429(strict: str) -> None:
    body = stop_of(strict, PAGES[10])
    sent = [request_from("127.0.0.6", strict, "POST", "/gradio_api/component_server", body) for _ in range(42)]
    status, _, news = sent[-1]
    assert status == 200, "Gradio's client in the browser drops the body of an error"
    wait = news.pop("retry_after")
    assert news.pop("sentence").endswith(f"Wait for {wait} seconds.") and news == {"state": "full", "over": True}
    with urlopen(f"{strict}metrics") as response:
        assert 'lookahead_responses_total{status="429"}' in response.read().decode()


def test_characters_are_limited_too(strict: str) -> None:
    long = json.dumps({"text": "a", "k": 1, "depth": 1}).encode() + b" " * 99_000
    statuses = [request_from("127.0.0.5", strict, "POST", "/api/lookahead", long) for _ in range(3)]
    assert [status for status, _, _ in statuses] == [200, 429, 429]
    assert "at most 100,000 characters a minute" in statuses[-1][2]["detail"]


def test_the_bytes_of_refused_requests_count_before_they_are_parsed(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[int] = []
    parse = request_gate.json_object
    monkeypatch.setattr(request_gate, "json_object", lambda body: parsed.append(len(body)) or parse(body))
    unknown = json.dumps({"data": [], "fn_index": 999}).encode() + b" " * 90_000
    with served(model, settings=Settings(address_people=3, person_characters=100_000)) as url:
        sent = [request_from("127.0.0.7", url, "POST", "/gradio_api/run/none", unknown) for _ in range(6)]
        assert [status for status, _, _ in sent] == [404] * 3 + [429] * 3
        assert len(parsed) == 3
        assert request_from("127.0.0.8", url, "POST", "/api/lookahead", CALL)[0] == 200, "another address"


def test_a_budget_is_used_up_and_comes_back_evenly() -> None:
    now = 0.0
    budgets = Budgets(60, clock=lambda: now)
    assert [budgets.take("a") for _ in range(60)] == [0.0] * 60
    assert budgets.take("a") == pytest.approx(1.0)
    assert budgets.take("b") == 0.0
    now = 2.5
    assert [budgets.take("a") for _ in range(2)] == [0.0] * 2
    assert budgets.take("a") == pytest.approx(0.5)
    now = 1000.0
    assert budgets.take("a", 70) == 0.0, "an amount above all of it takes all of it"
    assert budgets.take("a") == pytest.approx(1.0)


def test_what_was_refused_for_a_person_was_not_taken_from_another() -> None:
    limits = CallerLimits(Settings(person_requests=2, address_people=2), clock=lambda: 0.0)
    for _ in range(2):
        limits.admit_person(Caller("a", "one"), 10)
    with pytest.raises(TooOften) as refused:
        limits.admit_person(Caller("a", "one"), 10)
    assert refused.value.retry_after == 30
    limits.admit_person(Caller("a", "two"), 10)
    limits.admit_person(Caller("b", "one"), 10)
    for _ in range(4):
        limits.admit_address("a")
    with pytest.raises(TooOften):
        limits.admit_address("a")
    limits.admit_address("b")


def test_bytes_that_were_refused_for_a_person_are_left_for_others_at_the_address() -> None:
    limits = CallerLimits(Settings(person_characters=100, address_people=2), clock=lambda: 0.0)
    for _ in range(5):
        limits.admit_bytes("a", 60)
        with suppress(TooOften):
            limits.admit_person(Caller("a", "one"), 60)
    limits.admit_bytes("a", 60)
    limits.admit_person(Caller("a", "two"), 60)
    limits.admit_bytes("a", 60)
    limits.admit_person(Caller("a", "three"), 60)
    with pytest.raises(TooOften, match="2 times as many for an address"):
        limits.admit_bytes("a", 60)


def test_an_address_is_spread_over_time_only_while_others_send_requests_too() -> None:
    now = 1000.0
    pace = Pace(lambda: now)
    assert [pace.reserve("class") for _ in range(5 * BURST)] == [0.0] * 5 * BURST, "alone"
    assert pace.reserve("visitor") == 0.0
    waits = [pace.reserve("class") for _ in range(BURST)]
    assert waits == pytest.approx([0.0] * BURST, abs=1e-9), "what it sent while alone does not count"
    assert [pace.reserve("class") for _ in range(3)] == pytest.approx([REQUEST_GAP * place for place in (1, 2, 3)])
    assert pace.reserve("visitor") == 0.0
    now += 2 * REQUEST_GAP
    assert pace.reserve("class") == pytest.approx(2 * REQUEST_GAP), "three wait already, and two turns have come"
    for _ in range(round((OTHERS_WITHIN + 5) / REQUEST_GAP)):
        pace.reserve("class")
    now += OTHERS_WITHIN + 0.1
    assert pace.reserve("class") == 0.0, "the visitor has gone"


def test_an_address_may_not_reserve_more_than_the_longest_wait() -> None:
    now = 0.0
    pace = Pace(lambda: now)
    many = BURST + round(LONGEST_WAIT / REQUEST_GAP)
    pace.reserve("visitor")
    waits = [pace.reserve("flood") for _ in range(many + 100)]
    assert waits[many - 2] < LONGEST_WAIT <= min(waits[many:])
    now = 1.0
    pace.reserve("visitor")
    assert pace.reserve("flood") == pytest.approx(LONGEST_WAIT - 1.0, abs=2 * REQUEST_GAP), (
        "refused requests are not counted"
    )


async def answers_to(source: str, url: str, path: str, count: int) -> list[tuple[bytes, bytes]]:
    """Statuses and bodies of the answers to so many requests for a path, sent at once from the address `source`."""
    parts = urlsplit(url)

    async def one() -> tuple[bytes, bytes]:
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port, local_addr=(source, 0))
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {parts.netloc}\r\nConnection: close\r\n\r\n".encode())
        answer = await reader.read()
        writer.close()
        return answer.split(b" ", 2)[1], answer.partition(b"\r\n\r\n")[2]

    return await asyncio.gather(*(one() for _ in range(count)))


@pytest.mark.slow
def test_a_flood_is_refused_while_others_use_the_server_except_for_files(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rate_limits, "BURST", 10)
    monkeypatch.setattr(rate_limits, "LONGEST_WAIT", 0.5)
    with served(model) as url:
        assert request_from("127.0.0.7", url, "GET", "/config")[0] == 200
        flood = asyncio.run(answers_to("127.0.0.8", url, "/api", 100))
        files = asyncio.run(answers_to("127.0.0.8", url, "/theme.css", 100))
        assert request_from("127.0.0.7", url, "GET", "/config")[0] == 200
    assert {status for status, _ in flood} == {b"200", b"429"}
    refused = next(json.loads(body)["detail"] for status, body in flood if status == b"429")
    assert "at most 40 requests a second are allowed for an address while others use this server" in refused
    assert {status for status, _ in files} == {b"200"}


def test_requests_of_one_key_take_turns_in_the_order_they_came_and_others_do_not_wait() -> None:
    async def run() -> list[str]:
        turns, events = Turns(2), []

        async def one(key: str, name: str, hurry: asyncio.Event) -> None:
            leave = await turns.enter(key)
            events.append(name)
            await hurry.wait()
            leave()
            leave()

        doors = [asyncio.Event() for _ in range(5)]
        tasks = [asyncio.ensure_future(one("a", f"a{place}", door)) for place, door in enumerate(doors)]
        tasks.append(asyncio.ensure_future(one("b", "b", doors[0])))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert events == ["a0", "a1", "b"]
        for door in doors:
            door.set()
        await asyncio.gather(*tasks)
        return events

    assert asyncio.run(run()) == ["a0", "a1", "b", "a2", "a3", "a4"]


@pytest.mark.parametrize(
    ("peer", "forwarded", "trusted", "address"),
    [
        ("192.0.2.1", [], "", "192.0.2.1"),
        ("192.0.2.1", ["198.51.100.7"], "", "192.0.2.1"),
        ("127.0.0.1", ["198.51.100.7"], "", "127.0.0.1"),
        ("10.0.0.1", ["198.51.100.7"], "10.0.0.0/8", "198.51.100.7"),
        ("10.0.0.1", ["198.51.100.7"], "10.0.0.2", "10.0.0.1"),
        # What the sender has written itself comes before what the proxy adds.
        ("10.0.0.1", ["203.0.113.9, 198.51.100.7"], "10.0.0.0/8", "198.51.100.7"),
        ("10.0.0.1", ["203.0.113.9", "198.51.100.7, 10.2.3.4"], "10.0.0.0/8", "198.51.100.7"),
        ("10.0.0.1", ["10.9.9.9, 10.2.3.4"], "10.0.0.0/8", "10.9.9.9"),
        ("10.0.0.1", [], "10.0.0.0/8", "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.7:4711"], "10.0.0.1", "198.51.100.7"),
        ("10.0.0.1", ["[2001:db8:1:2:3::4]:80"], "10.0.0.1", "2001:db8:1:2::"),
        ("10.0.0.1", ["nonsense " * 40], "10.0.0.1", ("nonsense " * 40)[:64]),
        ("2001:db8:1:2:ffff::1", [], "", "2001:db8:1:2::"),
        ("::ffff:192.0.2.1", [], "", "192.0.2.1"),
        ("", [], "", ""),
    ],
)
def test_the_address_is_that_of_the_connection_or_what_a_trusted_proxy_says(
    peer: str, forwarded: list[str], trusted: str, address: str
) -> None:
    headers = [(b"x-forwarded-for", value.encode()) for value in forwarded]
    networks = Settings(trusted_proxies=trusted).proxy_networks
    written = {"client": ("203.0.113.200", 0), "lookahead.peer": peer, "headers": headers}
    assert address_of(written if peer else {"client": None, "headers": headers}, networks) == address


def test_a_space_trusts_its_own_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    scope = {"client": ("10.20.1.2", 0), "headers": [(b"x-forwarded-for", b"192.0.2.1, 198.51.100.7")]}
    assert address_of(scope, Settings().proxy_networks) == "10.20.1.2"
    monkeypatch.setenv("SPACE_ID", "somebody/lookahead")
    assert address_of(scope, Settings().proxy_networks) == "198.51.100.7"
    assert address_of(scope, Settings(trusted_proxies="192.0.2.99").proxy_networks) == "10.20.1.2"
