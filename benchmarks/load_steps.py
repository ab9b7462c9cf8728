"""A step of a load run: people who write for some time in the pages of a running server, and what its metrics say."""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from time import perf_counter

import httpx

from benchmarks.load_page import Findings, LoadedPage, joined
from benchmarks.load_people import Person
from benchmarks.load_report import Reading, Step
from tests.support import browser

OPTIONS = {"k": 5, "depth": 10}
"""What people ask for."""
KEPT_OPEN = 3.0
"""Seconds for which unused connections are kept: fewer than the server's 5, which may close one just as it is used."""
ROOM = {"LOOKAHEAD_ADDRESS_PEOPLE": "400"}
"""Settings of the server: all people come from one address."""


@contextmanager
def served(words: list[str]) -> Iterator[str]:
    """Context manager: the address of a new server with these arguments, once its model is loaded.

    At the end the server's warnings and errors are printed to stderr.
    """
    before = {name: os.environ.get(name) for name in ROOM}
    os.environ.update(ROOM)
    try:
        with tempfile.TemporaryDirectory() as folder, browser.app(Path(folder) / "log", *words) as app:
            app.wait_for("Ready:", 600)
            try:
                yield app.url.rstrip("/")
            finally:
                lines = app.said.splitlines()
                first = next((at for at, line in enumerate(lines) if line.startswith(("WARNING", "ERROR"))), len(lines))
                print(*lines[first:], sep="\n", file=sys.stderr, flush=True)
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def client_of(url: str) -> httpx.AsyncClient:
    """Return a client of the server at this address, with as many connections as people."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=KEPT_OPEN)
    return httpx.AsyncClient(base_url=url, limits=limits)


@dataclass
class Watch:
    """Reads a server's metrics each second, until it is cancelled."""

    client: httpx.AsyncClient
    readings: list[Reading]

    async def run(self) -> None:
        began = perf_counter()
        while True:
            found = await metrics(self.client)
            names = ("process_resident_memory_bytes", "lookahead_cache_bytes", "lookahead_sessions")
            memory, cache, sessions = (found.get(name, 0.0) for name in names)
            self.readings.append(Reading(perf_counter() - began, memory, cache, sessions))
            await asyncio.sleep(1)


async def metrics(client: httpx.AsyncClient) -> dict[str, float]:
    """Return the server's metrics without labels, by name."""
    text = (await client.get("/metrics", timeout=60)).text
    return {name: float(value) for name, value in re.findall(r"^([a-z_]+) ([0-9.e+-]+)$", text, re.M)}


async def step(
    client: httpx.AsyncClient, pages: Sequence[LoadedPage], seconds: float, arguments: argparse.Namespace
) -> Step:
    """Let one person write in each page for so many seconds, and return what they found."""
    people = [Person(page, arguments.seed + number, arguments.pace) for number, page in enumerate(pages)]
    before, watch = await metrics(client), Watch(client, [])
    watching = asyncio.ensure_future(watch.run())
    end = perf_counter() + seconds
    await asyncio.gather(*(person.write_until(end) for person in people))
    watching.cancel()
    after = await metrics(client)
    await asyncio.gather(*(page.close() for page in pages))
    return step_of(pages, seconds, watch.readings, {name: after[name] - before.get(name, 0) for name in after})


def step_of(pages: Sequence[LoadedPage], seconds: float, readings: list[Reading], rises: dict[str, float]) -> Step:
    """Return the figures of one step: its views and errors, and by how much the server's counters have risen."""
    found: Findings = joined(pages)
    means = [mean(page.findings.settled) for page in pages if page.findings.settled]
    passes = rises.get("lookahead_passes_total", 0.0)
    return Step(
        people=len(pages), seconds=seconds, first=found.first, settled=found.settled,
        worst=max(means) / mean(found.settled) if means else 0.0,
        errors=dict(found.errors), refused=found.refused, rebuilt=found.rebuilt, clicks=found.clicks,
        known=found.known, seen=found.seen, passes=passes,
        rows=rises.get("lookahead_tokens_total", 0.0) / passes if passes else 0.0, readings=readings,
    )  # fmt: skip
