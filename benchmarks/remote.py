"""A lookahead on a model's server: its two requests, beside one request a level and one request a branch."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import secrets
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, Protocol

import httpx

from benchmarks.prompts import Prompts
from benchmarks.report import markdown
from benchmarks.timing import rotated
from lookahead_core import Document, Model, load_model
from lookahead_core.engines.remote.completions import Completions, ServerToken
from tests.support import vllm_server

NAME = "remote"
HELP = "Measure a lookahead on a model's server beside one request a level and one request a branch."
WORD = " sometimes"
"""What is typed between the lookahead that fills the server's prefix cache and the measured one."""
OURS = "two requests (Document.lookahead)"
Branches = list[tuple[int, ...]]


class Contestant(Protocol):
    """A way to find branches on the server. Each text of each contestant has a prefix cache of its own there."""

    name: str

    def begin(self, ids: Sequence[int]) -> Branches:
        """Return the branches after a prompt that the server has not read yet."""
        ...

    def go_on(self, ids: Sequence[int]) -> tuple[Branches, int]:
        """Return the branches after that prompt with WORD typed, which has these ids, and the number of requests."""
        ...


@dataclass(frozen=True)
class Timing:
    """One contestant's lookahead after the typed word, in one repeat."""

    name: str
    repeat: int
    seconds: float
    requests: int
    same: bool
    """Whether it found the branches of OURS."""
    cached: float | None = None
    """The part of the prompts' tokens that came from the server's prefix cache; None without vLLM's metrics."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this subcommand to its parser."""
    parser.add_argument("--address", help="a server that runs already; a vLLM on this computer is started without it")
    parser.add_argument("--prompt", type=int, default=512, help="tokens of the prompt before the typed word (512)")
    parser.add_argument("--k", type=int, default=5, help="branches (5)")
    parser.add_argument("--depth", type=int, default=10, help="tokens of a branch (10)")
    parser.add_argument("--repeats", type=int, default=15, help="prompts, with all contestants in turns; medians count")
    parser.add_argument("--json", type=Path, metavar="FILE", help="save every raw figure")


def main(arguments: argparse.Namespace) -> int:
    """Measure, print the table, save the figures as the arguments say; return 0."""
    with contextlib.ExitStack() as stack:
        address = arguments.address or os.environ.get("LOOKAHEAD_TEST_VLLM", "")
        address = address or stack.enter_context(vllm_server.serving())
        model = stack.enter_context(_loaded(address))
        timings = measure(model, arguments)
    print(report(timings))
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps([asdict(timing) for timing in timings], indent=1))
    return 0


def measure(model: Model, arguments: argparse.Namespace) -> list[Timing]:
    """Time all contestants in turns on `arguments.repeats` prompts; `model` is on a server.

    Each finds the branches of a prompt first, unmeasured, so that the server has read it.
    """
    # End tokens end no branch, so that all contestants do the same work.
    endless = replace(model, end_token_ids=frozenset())
    contestants: list[Contestant] = [TwoRequests(endless, arguments.k, arguments.depth)]
    kinds = (EveryLevel, BranchesInTurn, BranchesAtOnce)
    contestants += [kind(model.engine, arguments.k, arguments.depth) for kind in kinds]
    prompts, timings = Prompts(model.tokenizer), []
    for repeat in range(arguments.repeats + 1):
        ids = prompts.draw(arguments.prompt)
        document = Document(model, token_ids=ids)
        document.text += WORD
        found: dict[str, tuple[float, Branches, int, float | None]] = {}
        for contestant in rotated(contestants, repeat):
            contestant.begin(ids)
            before, began = _cache_counts(model), perf_counter()
            branches, requests = contestant.go_on(document.token_ids)
            seconds = perf_counter() - began
            found[contestant.name] = seconds, branches, requests, _cached(before, _cache_counts(model))
        if repeat:  # The first prompt warms up the server and its connections.
            timings += [
                Timing(name, repeat, seconds, requests, branches == found[OURS][1], cached)
                for name, (seconds, branches, requests, cached) in found.items()
            ]
    return timings


class TwoRequests:
    """Our way: the likeliest next tokens, and then all branches in one request."""

    name = OURS

    def __init__(self, model: Model, k: int, depth: int) -> None:
        self._model, self._k, self._depth = model, k, depth

    def begin(self, ids: Sequence[int]) -> Branches:
        self._document = Document(self._model, token_ids=ids)
        return self._branches()[0]

    def go_on(self, ids: Sequence[int]) -> tuple[Branches, int]:
        self._document.text += WORD
        return self._branches()

    def _branches(self) -> tuple[Branches, int]:
        result = self._document.lookahead(k=self._k, depth=self._depth)
        return [tuple(branch.token_ids) for branch in result.branches], result.cost.passes


class PlainRequests:
    """The base of other ways, over the same calls and connections: a first request, and then `_grown`."""

    name = ""

    def __init__(self, engine: Any, k: int, depth: int) -> None:
        """`engine` is a RemoteEngine, of whose servers the first is used."""
        self._completions: Completions = engine.replicas.all[0].completions
        self._logprobs, self._k, self._depth = engine.most, k, depth

    def begin(self, ids: Sequence[int]) -> Branches:
        self._salt = secrets.token_hex(16)
        return self.go_on(ids)[0]

    def go_on(self, ids: Sequence[int]) -> tuple[Branches, int]:
        self._requests = 0
        (first,) = self._tokens([list(ids)], 1)
        likeliest = sorted(first.logprobs, key=lambda each: (-first.logprobs[each], each))[: self._k]
        return self._grown(list(ids), [(token_id,) for token_id in likeliest]), self._requests

    def _grown(self, ids: list[int], branches: Branches) -> Branches:
        """Return the branches after `ids`, grown from their first tokens to the full depth."""
        raise NotImplementedError

    def _tokens(self, prompts: list[list[int]], count: int) -> list[ServerToken]:
        self._requests += 1
        return list(self._completions.tokens(prompts, count, self._logprobs, salt=self._salt))


class EveryLevel(PlainRequests):
    """One request for each level, with all branches."""

    name = "one request a level"

    def _grown(self, ids: list[int], branches: Branches) -> Branches:
        for _ in range(self._depth - 1):
            tokens = self._tokens([[*ids, *branch] for branch in branches], 1)
            following = {token.prompt: token.token_id for token in tokens}
            branches = [(*branch, following[index]) for index, branch in enumerate(branches)]
        return branches


class BranchesInTurn(PlainRequests):
    """One request for each branch, one after another."""

    name = "one request a branch, in turn"

    def _grown(self, ids: list[int], branches: Branches) -> Branches:
        return [self._whole(ids, branch) for branch in branches]

    def _whole(self, ids: list[int], branch: tuple[int, ...]) -> tuple[int, ...]:
        tokens = self._tokens([[*ids, *branch]], self._depth - 1)
        return (*branch, *(token.token_id for token in tokens))


class BranchesAtOnce(BranchesInTurn):
    """One request for each branch, all at the same time."""

    name = "one request a branch, at once"

    def _grown(self, ids: list[int], branches: Branches) -> Branches:
        with ThreadPoolExecutor(len(branches)) as pool:
            return list(pool.map(lambda branch: self._whole(ids, branch), branches))


def report(timings: Sequence[Timing]) -> str:
    """Return a Markdown table: each contestant's requests, median seconds, and their ratio to those of OURS."""
    names = list(dict.fromkeys([OURS, *(timing.name for timing in timings)]))
    seconds = {name: median(timing.seconds for timing in timings if timing.name == name) for name in names}
    rows = []
    for name in names:
        own = [timing for timing in timings if timing.name == name]
        shares = [timing.cached for timing in own if timing.cached is not None]
        cached = f"{min(shares):.1%}" if shares else "–"
        same = f"{sum(timing.same for timing in own)} of {len(own)}"
        ratio = f"{seconds[name] / seconds[OURS]:.2f}"
        requests = f"{max(timing.requests for timing in own)}"
        rows.append([name, requests, f"{seconds[name]:.3f}", ratio, cached, same])
    return markdown(["way", "requests", "seconds", "ratio", "from the cache, least", "same branches"], rows)


@contextmanager
def _loaded(address: str) -> Iterator[Model]:
    model = load_model(address)
    try:
        yield model
    finally:
        model.engine.close()  # type: ignore[attr-defined]


def _cache_counts(model: Model) -> tuple[float, float] | None:
    """Return how many prompt tokens vLLM has looked up in its prefix cache, and found; None for another server."""
    address = model.engine.replicas.all[0].address  # type: ignore[attr-defined]
    answer = httpx.get(f"{address.removesuffix('/v1')}/metrics")
    lines = [line for line in answer.text.splitlines() if line.startswith("vllm:prefix_cache_")]
    values = {line.split("{")[0]: float(line.rsplit(" ")[-1]) for line in lines}
    queries, hits = (values.get(f"vllm:prefix_cache_{name}_total") for name in ("queries", "hits"))
    return None if queries is None or hits is None else (queries, hits)


def _cached(before: tuple[float, float] | None, after: tuple[float, float] | None) -> float | None:
    if before is None or after is None or after[0] == before[0]:
        return None
    return (after[1] - before[1]) / (after[0] - before[0])
