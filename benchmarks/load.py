"""The server under load: simulated people who click and type over HTTP, beside idle documents."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean
from time import perf_counter
from typing import Any

import httpx

from benchmarks.load_page import Findings, LoadedPage, Secrets, component_of, joined
from benchmarks.load_people import Person
from benchmarks.load_report import AtOnce, Load, Reading, Service, Step, report, save_plot
from benchmarks.timing import rotated
from lookahead_core import Document, Model, load_model, lookahead_batch
from tests.support import browser

NAME = "load"
HELP = "Measure the server with 1 to 30 people who click and type, beside idle documents."
PEOPLE = (1, 2, 4, 8, 16, 30)
OPTIONS = {"k": 5, "depth": 10}
IDLE_CHARACTERS = 3000
PROMPT = "The old lighthouse keeper climbed the stairs again and looked out over the sea. He"
WORDS = ("saw", "the", "light", "of", "a", "small", "ship", "and", "then", "he", "went", "down")
"""Words that are typed one after the other where a view is timed."""
KEPT_OPEN = 3.0
"""Seconds for which unused connections are kept: fewer than the server's 5, which may close one just as it is used."""
ROOM = {"LOOKAHEAD_ADDRESS_PEOPLE": "400"}
"""Settings of the server: all people come from one address."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this subcommand to its parser."""
    parser.add_argument("--quick", action="store_true", help="1, 2 and 4 people for 20 s beside 10 documents: readings")
    parser.add_argument("--people", type=int, nargs="+", default=list(PEOPLE), help="people at once, in steps")
    parser.add_argument("--seconds", type=float, default=60, help="of each step but the last (60)")
    parser.add_argument("--last", type=float, default=600, help="seconds of the last step (600)")
    parser.add_argument("--idle", type=int, default=170, help="documents that are open and idle (170)")
    parser.add_argument("--pace", type=float, default=1.0, help="multiplies the waits between keys and clicks")
    parser.add_argument("--at-once", type=int, nargs="+", default=[1, 2, 8, 30], help="people who ask at the same time")
    parser.add_argument("--repeats", type=int, default=9, help="how often each number asks at the same time (9)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", help="what to load in place of the default model")
    parser.add_argument("--json", type=Path, metavar="FILE", help="save every figure")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="save a plot")


def main(arguments: argparse.Namespace) -> int:
    """Measure, print the tables, save figures and plot; return 1 if anything went wrong for anybody, else 0."""
    if arguments.quick:
        arguments.people, arguments.seconds, arguments.last = [1, 2, 4], 20, 20
        arguments.idle, arguments.at_once, arguments.repeats = 10, [1, 2, 4], 3
    with served(["--model", arguments.model] if arguments.model else []) as url:
        load = asyncio.run(measure(url, arguments))
    print(report(load))
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(asdict(load)))
    if arguments.plot:
        print(save_plot(load, arguments.plot))
    return 1 if any(step.errors for step in load.steps) or load.idle_errors else 0


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


async def measure(url: str, arguments: argparse.Namespace) -> Load:
    """Run all parts: idle documents, then each step of people, then views at once, then the library beside it."""
    generator, secrets = random.Random(arguments.seed), Secrets(arguments.seed)
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=KEPT_OPEN)
    async with httpx.AsyncClient(base_url=url, limits=limits) as client:
        component = await component_of(client)

        def page(options: dict[str, Any]) -> LoadedPage:
            return LoadedPage(client, component, secrets, OPTIONS | options)

        idle = [page({"ahead": False}) for _ in range(arguments.idle)]
        await open_idle(idle, generator)
        steps = []
        for people in arguments.people:
            seconds = arguments.last if people == arguments.people[-1] else arguments.seconds
            steps.append(await step(client, [page({}) for _ in range(people)], seconds, arguments))
            print(f"{people} people: {len(steps[-1].settled)} views", file=sys.stderr, flush=True)
        awake = idle[:: max(1, len(idle) // 10)]
        for one in awake:
            one.type(" again")
        await asyncio.gather(*(one.check() for one in awake))
        await asyncio.gather(*(one.close() for one in idle))
        at_once = await views_at_once(page, arguments)
        model = load_model(arguments.model)
        service = await service_and_library(page, model, arguments.repeats)
    return Load(steps, dict(joined(idle).errors), at_once, service, in_one_batch(model, arguments))


async def open_idle(pages: Sequence[LoadedPage], generator: random.Random) -> None:
    """Open documents with long texts, ten at a time, and leave them when their views are complete."""
    for start in range(0, len(pages), 10):
        some = pages[start : start + 10]
        for one in some:
            one.begin(f"{one.secret} " + " ".join(generator.choices(PROMPT.split(), k=IDLE_CHARACTERS // 5)))
        await asyncio.gather(*(one.settle() for one in some))


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


async def views_at_once(page: Any, arguments: argparse.Namespace) -> list[AtOnce]:
    """Let numbers of people type one more word at the same moment; return the seconds until the last has its view."""
    pages: list[LoadedPage] = [page({"ahead": False}) for _ in range(max(arguments.at_once))]
    for one in pages:
        one.begin(f"{one.secret}. {PROMPT}")
    await asyncio.gather(*(one.settle() for one in pages))
    seconds: dict[int, list[float]] = {people: [] for people in arguments.at_once}
    for repeat in range(arguments.repeats):
        for people in rotated(arguments.at_once, repeat):
            began = perf_counter()
            for one in pages[:people]:
                one.type(f" {WORDS[repeat % len(WORDS)]}")
            await asyncio.gather(*(one.settle() for one in pages[:people]))
            seconds[people].append(perf_counter() - began)
            await asyncio.sleep(0.1)
    await asyncio.gather(*(one.close() for one in pages))
    return [AtOnce(people, times) for people, times in seconds.items()]


async def service_and_library(page: Any, model: Model, repeats: int) -> Service:
    """Time a view after one more word through the service and by `Document.lookahead`, in turns on equal texts."""
    one: LoadedPage = page({"ahead": False})
    document = Document(model, f"{one.secret}. {PROMPT}")
    options = {**OPTIONS, "heal": True, "stop_at_repetition": True}
    document.lookahead(**options)
    one.begin(document.text)
    await one.settle()
    sides: dict[str, list[float]] = {"service": [], "library": []}
    for repeat in range(3 * repeats):
        word = f" {WORDS[repeat % len(WORDS)]}"
        for side in rotated(list(sides), repeat):
            began = perf_counter()
            if side == "service":
                one.type(word)
                await one.settle()
            else:
                document.text += word
                # The page's depth does not count a re-opened token.
                document.lookahead(**options | {"depth": OPTIONS["depth"] + bool(document.reopens)})
            sides[side].append(perf_counter() - began)
            await asyncio.sleep(0.1)
    await one.close()
    return Service(**sides)


def in_one_batch(model: Model, arguments: argparse.Namespace) -> dict[int, list[float]]:
    """Time `lookahead_batch` after one more word in as many documents as people at once, without a service."""
    documents = [Document(model, f"{number}. {PROMPT}") for number in range(max(arguments.at_once))]
    seconds: dict[int, list[float]] = {people: [] for people in arguments.at_once}
    for repeat in range(-1, arguments.repeats):  # the first one prepares and is not counted
        for people in rotated(arguments.at_once, repeat):
            for document in documents[:people]:
                document.text += f" {WORDS[repeat % len(WORDS)]}"
            began = perf_counter()
            lookahead_batch(documents[:people], **OPTIONS)
            if repeat >= 0:
                seconds[people].append(perf_counter() - began)
    return seconds
