"""The methods that the branching benchmark compares: ours, the floor (floor.py) and the peers (peers.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import torch
from transformers import PreTrainedModel

from benchmarks import peers
from benchmarks.floor import Floor, floor
from benchmarks.results import Case, Measure
from benchmarks.timing import timed
from lookahead_core import Branch, Document, Lookahead, Model

COLD, ACCEPTED, TYPED, FLOOR = "ours, cold", "ours, after 3 accepted", "ours, after a word", "floor"
SEED_CACHED, SEED_CACHED_KIND = "seed cached", "seed cached, last logits"
SEED_UNCACHED, SEED_UNCACHED_KIND = "seed uncached", "seed uncached, last logits"
GENERATE, BEAM = "generate, k rows", "beam search"
SAME_BRANCHES = (SEED_CACHED, SEED_CACHED_KIND, GENERATE, SEED_UNCACHED, SEED_UNCACHED_KIND)
METHODS = (
    COLD, ACCEPTED, TYPED, FLOOR, SEED_CACHED, SEED_CACHED_KIND, GENERATE, BEAM, SEED_UNCACHED, SEED_UNCACHED_KIND,
)  # fmt: skip
ACCEPT = 3

Peer = Callable[[PreTrainedModel, list[int], int, int], peers.Rows]
Tokens = Callable[[Case], int]


@dataclass(frozen=True)
class Method:
    """A method of getting k branches, in one dtype."""

    name: str
    dtype: str
    tokens: Tokens
    """A function that returns the number of tokens that the method evaluates in a case."""
    attempt: Callable[[Case, list[int]], Iterator[Measure]]
    """A function that takes a case and a prompt's token ids, runs the method, and yields one or several measures."""


def contestants(model: Model, peer_model: PreTrainedModel, dtype: str, slots: int) -> list[Method]:
    """Return all methods in one dtype: ours with `model`, the floor of its shapes, and the peers with `peer_model`.

    `slots` is the most tokens of a tree.
    """
    bare = floor(peer_model.config, getattr(torch, dtype), peer_model.device, slots)
    field = [
        Method(COLD, dtype, lambda case: case.tree_tokens, partial(_ours, model, peer_model.device)),
        Method(FLOOR, dtype, lambda case: case.tree_tokens, partial(_floor, bare, peer_model.device)),
    ]
    for name, (peer, tokens) in PEERS.items():
        field.append(Method(name, dtype, tokens, partial(_peer, name, peer, tokens, peer_model)))
    return field


def _uncached_tokens(case: Case) -> int:
    """The tokens of one pass over the prompt, and of a pass over the whole sequence for each further token."""
    lengths = range(case.prompt + 1, case.prompt + case.depth)
    return case.prompt + case.k * sum(lengths)


def _generate_tokens(case: Case) -> int:
    return case.prompt + case.row_tokens


def _beam_tokens(case: Case) -> int:
    return case.row_tokens


PEERS: dict[str, tuple[Peer, Tokens]] = {
    SEED_CACHED: (peers.seed_cached, lambda case: case.tree_tokens),
    SEED_CACHED_KIND: (partial(peers.seed_cached, last_only=True), lambda case: case.tree_tokens),
    GENERATE: (peers.generate_rows, _generate_tokens),
    BEAM: (peers.beam_search, _beam_tokens),
    SEED_UNCACHED: (peers.seed_uncached, _uncached_tokens),
    SEED_UNCACHED_KIND: (partial(peers.seed_uncached, last_only=True), _uncached_tokens),
}


def _peer(
    name: str, peer: Peer, tokens: Tokens, model: PreTrainedModel, case: Case, ids: list[int]
) -> Iterator[Measure]:
    seconds, rows = timed(lambda: peer(model, ids, case.k, case.depth), model.device)
    yield Measure(name, seconds, tokens(case), rows.slots, rows.cache_bytes, rows.branches)


def _floor(bare: Floor, device: torch.device, case: Case, ids: list[int]) -> Iterator[Measure]:
    seconds, _ = timed(lambda: bare(len(ids), case.k, case.depth), device)
    yield Measure(FLOOR, seconds, case.tree_tokens, case.tree_tokens, 0)


def _ours(model: Model, device: torch.device, case: Case, ids: list[int]) -> Iterator[Measure]:
    """Yield measures of one document: cold, after accepting tokens of a branch, and after typing a word.

    The second is left out if all branches have reached an end token.
    """
    seconds, (document, result) = timed(lambda: _cold(model, case, ids), device)
    cold = _measure(COLD, seconds, result)
    _check_cold(cold, case)
    yield cold
    unfinished = [branch for branch in result.branches if not branch.ended]
    if unfinished:
        branch = unfinished[min(1, len(unfinished) - 1)]
        seconds, result = timed(lambda: _after_accepting(document, case, branch), device)
        yield _measure(ACCEPTED, seconds, result)
    seconds, result = timed(lambda: _after_typing(document, case), device)
    yield _measure(TYPED, seconds, result)


def _cold(model: Model, case: Case, ids: list[int]) -> tuple[Document, Lookahead]:
    document = Document(model, token_ids=ids)
    return document, document.lookahead(k=case.k, depth=case.depth)


def _after_accepting(document: Document, case: Case, branch: Branch) -> Lookahead:
    document.accept(branch, tokens=min(ACCEPT, case.depth))
    return document.lookahead(k=case.k, depth=case.depth)


def _after_typing(document: Document, case: Case) -> Lookahead:
    document.text = document.text + " sometimes"
    return document.lookahead(k=case.k, depth=case.depth)


def _measure(method: str, seconds: float, result: Lookahead) -> Measure:
    """Return the measure of a lookahead of ours that took this many seconds."""
    branches = tuple(tuple(branch.token_ids) for branch in result.branches)
    ended = sum(branch.ended for branch in result.branches)
    cost = result.cost
    return Measure(method, seconds, cost.tokens, cost.live_slots, cost.cache_bytes, branches, ended)


def _check_cold(cold: Measure, case: Case) -> None:
    """Raise AssertionError unless a cold run has evaluated every token itself and found k whole branches.

    A branch is whole with `depth` tokens or an end token.
    """
    least = case.prompt if cold.ended else case.tree_tokens
    if not least <= cold.tokens <= case.tree_tokens:
        raise AssertionError(f"{case}: {cold.tokens} tokens evaluated, {case.tree_tokens} expected of a cold start.")
    whole = [len(branch) == case.depth for branch in cold.branches]
    if len(whole) != case.k or whole.count(False) > cold.ended:
        raise AssertionError(f"{case}: the branches have {[len(branch) for branch in cold.branches]} tokens.")
