"""Branches of any depth: the likely ones, all of the first levels, those where the model hesitates, the best first."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import torch

from lookahead_core.engines.engine import CHUNK, KEPT, Engine, best
from lookahead_core.tree import Node

MODES = ("likely", "every_level", "forks", "best_first")
MOST_BRANCHES = 400


@dataclass(frozen=True)
class Options:
    """What may be asked of a lookahead; see `document.lookahead`."""

    k: int = 5
    """How many branches, 1 to 20."""
    depth: int = 5
    """How many tokens each, the first included, 1 to 100."""
    mode: str = "likely"
    branch_levels: int = 2
    """every_level: at how many levels to branch."""
    cutoff: float = 0.15
    """forks: another token gets a branch of its own if it has at least this probability."""
    slope: float = 1.0
    """forks: the cutoff is multiplied by this at each further level."""
    split_limit: int = 3
    """forks: the most ways at one node."""
    budget: int = 64
    """best_first: how many nodes may be evaluated."""
    width: int = 16
    """best_first: how many nodes a pass takes; sixteen cost little more than one."""
    heal: bool = False
    """Re-open the last typed token where the text ends inside a word or in spaces."""

    @classmethod
    def of(cls, given: dict[str, Any]) -> Options:
        """Options from keyword arguments, every name and value checked."""
        known = [field.name for field in fields(cls)]
        for name in given:
            if name not in known:
                raise ValueError(f"{name} is not an option of lookahead; the options are {', '.join(known)}.")
        return cls(**given)

    def __post_init__(self) -> None:
        for name, low, high in (
            ("k", 1, 20),
            ("depth", 1, 100),
            ("branch_levels", 1, 8),
            ("split_limit", 1, 20),
            ("budget", 1, 4096),
            ("width", 1, 256),
        ):
            _check_whole(name, getattr(self, name), low, high)
        _check_number("cutoff", self.cutoff, 0.0, 1.0)
        _check_number("slope", self.slope, 1.0, 100.0)
        if self.mode not in MODES:
            raise ValueError(f"mode is {self.mode!r}, and must be one of {', '.join(MODES)}.")
        if not isinstance(self.heal, bool):
            raise ValueError(f"heal is {self.heal!r}, and must be True or False.")
        if self.mode == "every_level" and self.k ** min(self.branch_levels, self.depth) > MOST_BRANCHES:
            raise ValueError(
                f"branch_levels is {self.branch_levels!r}, which with k = {self.k} makes more than {MOST_BRANCHES} "
                "branches; ask for fewer levels or a smaller k."
            )


def _check_whole(name: str, value: object, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ValueError(f"{name} is {value!r}, and must be a whole number from {low} to {high}.")


def _check_number(name: str, value: object, low: float, high: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise ValueError(f"{name} is {value!r}, and must be a number from {low:g} to {high:g}.")


@dataclass(frozen=True, slots=True)
class Leaf:
    """The end of a path below a base, with the log-probability of each token on it."""

    node: Node
    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    typed: bytes = b""
    """What was typed of the first token, where it stands in place of the last one typed."""

    @property
    def healed(self) -> bool:
        return bool(self.typed)

    @property
    def logprob(self) -> float:
        return math.fsum(self.logprobs)

    def then(self, token_id: int, logprob: float) -> Leaf:
        """One token further down."""
        child = self.node.tree.expand(self.node, token_id)
        return Leaf(child, (*self.token_ids, token_id), (*self.logprobs, logprob), self.typed)

    def ended(self, stop: frozenset[int]) -> bool:
        return bool(self.token_ids) and self.token_ids[-1] in stop


@dataclass(frozen=True, slots=True)
class Step:
    """After a pass: the paths so far, and how much of the text is still to be read."""

    leaves: tuple[Leaf, ...]
    tokens_to_read: int = 0


@dataclass(slots=True)
class Typed:
    """The last typed token, to be re-opened: its text, and the tokens whose text begins with it."""

    text: bytes
    token_ids: Sequence[int]
    odds: dict[int, float] | None = None
    """The likeliest of them with their log-probabilities given what was typed, once they are known."""


def lookahead(
    engine: Engine, head: Node, options: Options, stop: frozenset[int], typed: Typed | None = None
) -> Iterator[Step]:
    """Grow branches below `head`, or in place of it where it is re-opened; one step for each forward pass."""
    yield from _read(engine, head)
    if typed is None:
        if head.prediction is None:
            engine.evaluate([head])
        beginnings = _ways(Leaf(head, (), ()), options.k)
    else:
        beginnings = _healed(engine, head, typed, options.k)
    if options.mode == "forks":
        beginnings = [leaf for leaf in beginnings if leaf.logprob >= math.log(options.cutoff or 1e-9)] or beginnings[:1]
        beginnings = beginnings[: options.split_limit]
    yield Step(tuple(beginnings))
    yield from _GROWERS[options.mode](engine, beginnings, options, stop)


def _read(engine: Engine, head: Node) -> Iterator[Step]:
    """Take a long text in chunks; what is left of it at the end goes with the first prediction."""
    # As many rounds as there are chunks now: where two long texts take each other's room, the last one reads it all.
    for _ in range(len(engine.unread(head)) // CHUNK):
        unread = engine.unread(head)
        if len(unread) <= CHUNK:
            return
        engine.read(unread[:CHUNK])
        yield Step((), len(unread) - CHUNK)


def _ways(leaf: Leaf, count: int) -> list[Leaf]:
    """The most likely ways to go on from a leaf that has been evaluated."""
    said = leaf.node.prediction
    assert said is not None
    pairs = zip(said.token_ids[:count], said.logprobs[:count], strict=True)
    return [leaf.then(token_id, logprob) for token_id, logprob in pairs if logprob > -math.inf]


def _healed(engine: Engine, head: Node, typed: Typed, count: int) -> list[Leaf]:
    """The likeliest paths below the head's parent that begin with what was typed, odds given that.

    The typed token itself inserts nothing, so it stands for the ways to go on from it.
    """
    assert head.parent is not None
    if typed.odds is None or head.prediction is None:
        typed.odds = _odds_given(engine, head, typed.token_ids)
    base = Leaf(head.parent, (), (), typed.text)
    leaves = [base.then(token_id, value) for token_id, value in typed.odds.items() if token_id != head.token_id]
    leaves += _ways(base.then(head.token_id, typed.odds[head.token_id]), count)
    return sorted(leaves, key=lambda leaf: -leaf.logprob)[:count]


def _odds_given(engine: Engine, head: Node, token_ids: Sequence[int]) -> dict[int, float]:
    """Log-probabilities after the head's parent among these tokens only; of the likeliest, and of the head."""
    assert head.parent is not None
    row = engine.evaluate([head.parent, head])[0]
    # A tokenizer may know more tokens than the model has odds for.
    allowed = torch.tensor([token_id for token_id in token_ids if token_id < len(row)], device=row.device)
    logprobs = row[allowed].log_softmax(0)
    values, places = logprobs.topk(min(KEPT, len(allowed)))
    odds = dict(zip(allowed[places].tolist(), values.tolist(), strict=True))
    return {head.token_id: float(logprobs[(allowed == head.token_id).nonzero()[0, 0]]), **odds}


def _bottom(leaves: Sequence[Leaf], options: Options) -> int:
    """The depth of the tree at which branches end."""
    return leaves[0].node.depth - len(leaves[0].token_ids) + options.depth


def _evaluate(engine: Engine, leaves: Sequence[Leaf]) -> bool:
    """Predictions for these leaves, in one pass; tells whether one was needed."""
    pending = list(dict.fromkeys(leaf.node for leaf in leaves if leaf.node.prediction is None))
    if pending:
        engine.evaluate(pending)
    return bool(pending)


def _greedy(engine: Engine, leaves: Sequence[Leaf], options: Options, stop: frozenset[int]) -> Iterator[Step]:
    """Each leaf on its own, always the most likely token, to the bottom."""
    bottom = _bottom(leaves, options)
    for _ in engine.roll_out([leaf.node for leaf in leaves], bottom, stop):
        yield Step(tuple(_slide(leaf, bottom, stop) for leaf in leaves))
    yield Step(tuple(_slide(leaf, bottom, stop) for leaf in leaves))


def _slide(leaf: Leaf, bottom: int, stop: frozenset[int]) -> Leaf:
    """As far down the most likely tokens as predictions reach."""
    node, token_ids, logprobs = leaf.node, list(leaf.token_ids), list(leaf.logprobs)
    while node.depth < bottom and node.token_id not in stop and node.prediction is not None:
        token_ids.append(best(node))
        logprobs.append(node.prediction.logprobs[0])
        node = node.tree.expand(node, token_ids[-1])
    return Leaf(node, tuple(token_ids), tuple(logprobs), leaf.typed)


def _every_level(engine: Engine, leaves: list[Leaf], options: Options, stop: frozenset[int]) -> Iterator[Step]:
    """All ways at each of the first levels, then greedily on."""
    for _ in range(min(options.branch_levels, options.depth) - 1):
        growing = [leaf for leaf in leaves if not leaf.ended(stop)]
        passed = _evaluate(engine, growing)
        leaves = [way for leaf in leaves for way in ([leaf] if leaf.ended(stop) else _ways(leaf, options.k))]
        if passed:
            yield Step(tuple(leaves))
    yield from _greedy(engine, leaves, options, stop)


def _forks(engine: Engine, leaves: list[Leaf], options: Options, stop: frozenset[int]) -> Iterator[Step]:
    """Split where another token has enough probability, run on where not; the k likeliest paths go on."""
    bottom = _bottom(leaves, options)
    for level in range(1, options.depth):
        growing = [leaf for leaf in leaves if not leaf.ended(stop) and leaf.node.depth < bottom]
        if not growing:
            break
        passed = _evaluate(engine, growing)
        cutoff = options.cutoff * options.slope**level
        split = {leaf.node for leaf in growing}
        grown = [way for leaf in leaves for way in (_split(leaf, cutoff, options) if leaf.node in split else [leaf])]
        leaves = _likeliest(grown, options.k)
        if passed:
            yield Step(tuple(leaves))
    yield Step(tuple(leaves))


def _split(leaf: Leaf, cutoff: float, options: Options) -> list[Leaf]:
    ways = _ways(leaf, options.split_limit)
    return ways[:1] + [way for way in ways[1:] if math.exp(way.logprobs[-1]) >= cutoff]


def _likeliest(leaves: Sequence[Leaf], count: int) -> list[Leaf]:
    """The most probable ones, in the order in which they came."""
    chosen = heapq.nlargest(count, range(len(leaves)), key=lambda index: leaves[index].logprob)
    return [leaves[index] for index in sorted(chosen)]


def _best_first(engine: Engine, leaves: list[Leaf], options: Options, stop: frozenset[int]) -> Iterator[Step]:
    """Always grow the most probable ends, as many at once as a pass takes cheaply, until the budget is spent."""
    bottom, spent = _bottom(leaves, options), 0
    while spent < options.budget:
        growing = [leaf for leaf in leaves if not leaf.ended(stop) and leaf.node.depth < bottom]
        chosen = heapq.nlargest(min(options.width, options.budget - spent), growing, key=lambda leaf: leaf.logprob)
        if not chosen:
            break
        passed = _evaluate(engine, chosen)
        spent += len(chosen)
        opened = {leaf.node for leaf in chosen}
        leaves = [way for leaf in leaves for way in (_ways(leaf, options.k) if leaf.node in opened else [leaf])]
        if passed:
            yield Step(tuple(_likeliest(leaves, options.k)))
    yield Step(tuple(sorted(_likeliest(leaves, options.k), key=lambda leaf: -leaf.logprob)))


_GROWERS = {"likely": _greedy, "every_level": _every_level, "forks": _forks, "best_first": _best_first}
