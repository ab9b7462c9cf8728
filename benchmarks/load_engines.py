"""The page on a model's server beside the page with the local engine, under the same load, in turns."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.load_engines_report import Comparison, Trial
from benchmarks.load_page import LoadedPage, Secrets, component_of
from benchmarks.load_steps import OPTIONS, client_of, served, step
from benchmarks.timing import rotated
from tests.support import vllm_server

PEOPLE = (1, 2, 4, 8, 16, 32, 64)
SECONDS, REPEATS = 30.0, 3
"""Seconds of a trial, and trials of each engine for each number of people."""
CACHE_GIB = 2
"""GiB of the server's KV cache: as much as all caches of the local page may have."""
PAUSE = 1.0
"""Seconds between two trials, in which the work of pages that were closed ends."""


def compare(arguments: argparse.Namespace) -> Comparison:
    """Start what is missing, and measure; see `measure`.

    The server is that of `arguments.address` or LOOKAHEAD_TEST_VLLM, or else a vLLM that is started here.
    """
    with contextlib.ExitStack() as stack:
        address = arguments.address or os.environ.get("LOOKAHEAD_TEST_VLLM", "")
        address = address or stack.enter_context(_vllm(arguments.max_logprobs))
        local = ["--dtype", arguments.dtype, *(["--model", arguments.model] if arguments.model else [])]
        pages = {
            "local": stack.enter_context(served(local)),
            "remote": stack.enter_context(served(["--model", address])),
        }
        return asyncio.run(measure(pages, arguments))


@contextmanager
def _vllm(most_logprobs: int) -> Iterator[str]:
    """Context manager: the address of a new vLLM with the default model; it is installed first if it is missing."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        with vllm_server.serving(most_logprobs=most_logprobs, log=log, cache_gib=CACHE_GIB) as address:
            yield address


async def measure(pages: Mapping[str, str], arguments: argparse.Namespace) -> Comparison:
    """Let each number of people write in each page in turns; `pages` has the addresses of running pages by engine.

    Both engines have the same people with the same texts: their choices depend on the seed and the views only.
    """
    trials: list[Trial] = []
    async with contextlib.AsyncExitStack() as stack:
        clients = {engine: await stack.enter_async_context(client_of(url)) for engine, url in pages.items()}
        components = {engine: await component_of(client) for engine, client in clients.items()}
        for people in arguments.people:
            for repeat in range(arguments.repeats):
                for engine in rotated(list(pages), repeat):
                    client, secrets = clients[engine], Secrets(arguments.seed + repeat)
                    loaded = [LoadedPage(client, components[engine], secrets, OPTIONS) for _ in range(people)]
                    trials.append(Trial(engine, repeat, await step(client, loaded, arguments.seconds, arguments)))
                    _say(trials)
                    await asyncio.gather(*(page.stop() for page in loaded))  # else the next trial would share its cores
                    await asyncio.sleep(PAUSE)
    return Comparison(trials)


def _say(trials: Sequence[Trial]) -> None:
    last = trials[-1]
    print(f"{last.step.people} people, {last.engine}: {len(last.step.settled)} views", file=sys.stderr, flush=True)
