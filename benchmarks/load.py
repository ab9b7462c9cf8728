"""The server under load: simulated people who click and type over HTTP, beside idle documents."""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks import load_engines, load_engines_report
from benchmarks.load_page import LoadedPage, Secrets, component_of, joined
from benchmarks.load_report import AtOnce, Load, Service, report, save_plot
from benchmarks.load_steps import OPTIONS, client_of, served, step
from benchmarks.timing import rotated
from lookahead_core import Document, Model, load_model, lookahead_batch

NAME = "load"
HELP = "Measure the server with many people who click and type; with a model's server in turns with the local engine."
PEOPLE = (1, 2, 4, 8, 16, 30)
IDLE_CHARACTERS = 3000
PROMPT = "The old lighthouse keeper climbed the stairs again and looked out over the sea. He"
WORDS = ("saw", "the", "light", "of", "a", "small", "ship", "and", "then", "he", "went", "down")
"""Words that are typed one after the other where a view is timed."""


DEFAULTS = {
    "local": {"people": list(PEOPLE), "seconds": 60.0, "repeats": 9},
    "remote": {
        "people": list(load_engines.PEOPLE), "seconds": load_engines.SECONDS, "repeats": load_engines.REPEATS,
    },
}  # fmt: skip
"""Values of options that are not given, by engine."""
QUICK = {
    "local": {"people": [1, 2, 4], "seconds": 20.0, "last": 20.0, "idle": 10, "at_once": [1, 2, 4], "repeats": 3},
    "remote": {"people": [1, 4], "seconds": 10.0, "repeats": 2},
}
"""Values of options with --quick."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this subcommand to its parser."""
    add = parser.add_argument
    add("--quick", action="store_true", help="few people for a short time beside few documents: readings")
    add(
        "--engine",
        choices=list(DEFAULTS),
        default="local",
        help="remote: a page on a model's server beside a local one",
    )
    add("--people", type=int, nargs="+", help="people at once, in steps (up to 30; remote: 64)")
    add("--seconds", type=float, help="of each step but the last (60; remote: 30, of all)")
    add("--last", type=float, default=600, help="seconds of the last step (600)")
    add("--idle", type=int, default=170, help="documents that are open and idle (170; remote: none)")
    add("--pace", type=float, default=1.0, help="multiplies the waits between keys and clicks")
    add("--at-once", type=int, nargs="+", default=[1, 2, 8, 30], help="people who ask at the same time")
    add("--repeats", type=int, help="how often each number asks at the same time (9); remote: steps of each engine (3)")
    add("--seed", type=int, default=0)
    add("--model", help="what to load in place of the default model, by the local engine")
    add("--dtype", default="float32", help="remote: the local engine's type, that of the server (float32)")
    add("--address", help="remote: the server's address, or several with commas; without one a vLLM is started")
    add("--max-logprobs", type=int, default=-1, help="remote: of the vLLM that is started (-1, all)")
    add("--json", type=Path, metavar="FILE", help="save every figure")
    add("--plot", type=Path, metavar="FILE", help="save a plot")


def main(arguments: argparse.Namespace) -> int:
    """Measure, print the tables, save figures and plot; return 1 if anything went wrong for anybody, else 0."""
    for name, value in DEFAULTS[arguments.engine].items():
        if getattr(arguments, name) is None:
            setattr(arguments, name, value)
    if arguments.quick:
        vars(arguments).update(QUICK[arguments.engine])
    if arguments.engine == "remote":
        comparison = load_engines.compare(arguments)
        plot = load_engines_report.save_plot
        return _finish(comparison, load_engines_report.report(comparison), plot, arguments, bool(comparison.errors))
    with served(["--model", arguments.model] if arguments.model else []) as url:
        load = asyncio.run(measure(url, arguments))
    failed = any(step.errors for step in load.steps) or bool(load.idle_errors)
    return _finish(load, report(load), save_plot, arguments, failed)


def _finish(
    figures: Any, text: str, plot: Callable[[Any, Path], str], arguments: argparse.Namespace, failed: bool
) -> int:
    """Print the report, save figures and plot as the arguments say; return the exit status."""
    print(text)
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(asdict(figures)))
    if arguments.plot:
        print(plot(figures, arguments.plot))
    return int(failed)


async def measure(url: str, arguments: argparse.Namespace) -> Load:
    """Run all parts: idle documents, then each step of people, then views at once, then the library beside it."""
    generator, secrets = random.Random(arguments.seed), Secrets(arguments.seed)
    async with client_of(url) as client:
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
