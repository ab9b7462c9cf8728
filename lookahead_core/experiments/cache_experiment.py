"""The cache experiment: branches grown with the KV cache and without it, with the logits of both compared.

Both sides grow the same tokens. At each depth, the model's engine evaluates the newest token of every branch, and
transformers' plain forward reads every whole path again, as a program without a cache would.
"""

from __future__ import annotations

import functools
import operator
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, replace
from typing import Any, TypeVar

import torch

from lookahead_core.document.document import Document
from lookahead_core.engines.dispatch import dispatcher_of
from lookahead_core.engines.engine import Engine, prefill_in_chunks
from lookahead_core.engines.uncached import UncachedEngine
from lookahead_core.errors import LookaheadError, ModelError
from lookahead_core.experiments.energy import EnergyCounter, energy_counter
from lookahead_core.experiments.precision_comparison import PrecisionStep, engines_of_precisions, precision_steps
from lookahead_core.model import Model
from lookahead_core.steps import last_step
from lookahead_core.strategies.rules import LogitRules
from lookahead_core.text.codec import split_bytes
from lookahead_core.tree import Node, TokenTree
from lookahead_core.validation import check_choice, check_integer, parse_options

T = TypeVar("T")
FLOAT32_BOUND = 1e-5
"""The largest difference of two logits that counts as equal in float32, as a part of the row's largest logit."""
HALF_PRECISION_BOUND = 0.1
"""The same of log-probabilities in bfloat16 and float16. Two right computations round differently, by up to 7 % with
the default model, and a mask that is wrong changes them by 15 % or more."""
MAX_BRANCHES = 200
"""The most branches of an experiment."""
LOADING_SECONDS, DEPTH_SECONDS = 10.0, 0.2
"""Upper estimates for shared GPUs: of the seconds until a worker computes, and of both sides of one depth."""
UNCACHED_PASS_TOKENS = 512
"""Tokens of an uncached pass at most, unless one path has more: others who use the model wait for one such pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheExperimentOptions:
    """The options of `cache_experiment`; a wrong one raises ValueError."""

    k: int = 5
    """Branches after the prompt, and children of each split; 1 to 20."""
    depth: int = 10
    """Tokens of each branch; 1 to 100."""
    levels: int = 1
    """At how many of the first tokens branches split, 1 to 3: with 2, each first token gets `k` second ones."""
    precisions: bool = False
    """Whether the branches are also read in float32 and in bfloat16, see `precision_comparison`."""
    runs: int = 1
    """How often everything is computed, 1 to 9: times differ from run to run."""

    def __post_init__(self) -> None:
        check_integer("k", self.k, 1, 20)
        check_integer("depth", self.depth, 1, 100)
        check_integer("levels", self.levels, 1, 3)
        check_integer("runs", self.runs, 1, 9)
        check_choice("precisions", self.precisions, (True, False))
        branches = self.k ** min(self.levels, self.depth)
        if branches > MAX_BRANCHES:
            raise ValueError(
                f"k is {self.k} and levels is {self.levels}, which makes {branches:,} branches; "
                f"choose a lower k, so that there are at most {MAX_BRANCHES}."
            )


@dataclass(frozen=True, slots=True)
class Work:
    """The cost of a side of the experiment, with the cache or without it."""

    seconds: float = 0.0
    """Seconds of its passes, without the time it waited for others who use the model."""
    cpu_seconds: float = 0.0
    """Processor time of the whole process, all threads together, in these seconds."""
    passes: int = 0
    """Number of forward passes."""
    tokens: int = 0
    """Number of tokens computed in them, each as often as it was computed."""
    joules: float = 0.0
    """Energy in these seconds, as `CacheExperiment.energy_source` says."""

    def __add__(self, other: Work) -> Work:
        return Work(*map(operator.add, astuple(self), astuple(other)))


@dataclass(frozen=True, slots=True)
class CacheStep:
    """The predictions from which the branches' tokens at one depth are chosen, computed by both sides."""

    depth: int
    """The position of the chosen tokens in their branches, from 1."""
    rows: int
    """Number of predictions: 1 after the prompt, then one for each branch."""
    difference: float
    """The largest difference between the two logits of a token; NaN if a logit is no number."""
    relative_difference: float
    """The largest difference in a row as a part of the row's largest value, over all rows; of what `compared` says."""
    compared: str
    """What `relative_difference` is of: "logit" in float32, "log-probability" in types of 16 bits."""
    bound: float
    """The largest `relative_difference` that counts as equal: FLOAT32_BOUND or HALF_PRECISION_BOUND."""
    other_tokens: int
    """Number of predictions whose most likely token differs between the sides."""
    cached: Work
    uncached: Work
    cache_bytes: int
    """Bytes of the cache after this step."""

    @property
    def equal(self) -> bool:
        """Whether the logits of both sides are equal, within `bound`."""
        return self.relative_difference <= self.bound


@dataclass(frozen=True, slots=True)
class RunSeconds:
    """The times of one run: at index i the seconds from the prompt to depth i + 1, with and without the cache."""

    cached: tuple[float, ...] = ()
    uncached: tuple[float, ...] = ()

    def after(self, cached: Work, uncached: Work) -> RunSeconds:
        """Return the times with those of one more depth, whose work on both sides is given."""
        return RunSeconds(_summed(self.cached, cached.seconds), _summed(self.uncached, uncached.seconds))


def _summed(sums: tuple[float, ...], value: float) -> tuple[float, ...]:
    """Return the sums with one more: the last one plus `value`."""
    return (*sums, (sums[-1] if sums else 0.0) + value)


@dataclass(frozen=True, slots=True)
class CacheExperiment:
    """The result of `cache_experiment`, or a part of it while it runs."""

    prompt_tokens: int
    """Tokens that the model reads before the branches, with a start token."""
    steps: tuple[CacheStep, ...]
    """A step for each depth that both sides have computed so far; the first has depth 1."""
    token_ids: tuple[tuple[int, ...], ...]
    """The tokens of each branch, up to the depth of the last step."""
    texts: tuple[str, ...]
    """The text of each branch, in whole characters; empty strings if the model has no tokenizer."""
    energy_source: str
    """How the joules are known."""
    runs: tuple[RunSeconds, ...] = ()
    """The times of each run so far. All else in the result is of the first run."""
    precisions: tuple[PrecisionStep, ...] = ()
    """The same predictions in float32 and in bfloat16, a step for each depth; empty unless they were asked for."""

    @property
    def equal(self) -> bool:
        """Whether the logits of both sides are equal at every depth so far."""
        return all(step.equal for step in self.steps)

    @property
    def cached(self) -> Work:
        """The work of all steps with the cache."""
        return sum((step.cached for step in self.steps), Work())

    @property
    def uncached(self) -> Work:
        """The work of all steps without it."""
        return sum((step.uncached for step in self.steps), Work())


def cache_experiment(model: Model, prompt: str, **options: Any) -> CacheExperiment:
    """Grow branches after a prompt with the cache and without it; return the differences and the work of both.

    `options` are those of `CacheExperimentOptions`. Branches split into the `k` most likely tokens at each of the first
    `levels` tokens, and go on with the most likely one. An end token does not end them: all depths have the same rows.
    Raises ValueError for a wrong option, LookaheadError for an empty prompt if the model has no start token or
    for branches that do not fit into the model's context, and ModelError for a model that runs without a cache, or if
    `engines_of_precisions` raises it.
    """
    return last_step(cache_experiment_steps(model, prompt, **options))


def cache_experiment_steps(
    model: Model, prompt: str, *, reference: UncachedEngine | None = None, caller: Any = None, **options: Any
) -> Iterator[CacheExperiment]:
    """Do the same as `cache_experiment`, as a generator: yield the result so far after each forward pass.

    Between passes the caller can show progress, serve others, or stop. Only the last result is complete. `reference`
    computes without the cache; if None, one is made from `model.hf_model`. On shared GPUs all is computed in a worker,
    without `reference`, for `caller`, and results are yielded more than once.
    """
    checked = parse_options(CacheExperimentOptions, options, "cache_experiment")
    require_cache(model)
    if (dispatcher := dispatcher_of(model.engine)) is not None:
        compute = functools.partial(cache_experiment_steps, prompt=prompt, **options)
        estimate = LOADING_SECONDS + checked.runs * checked.depth * DEPTH_SECONDS
        empty = CacheExperiment(0, (), (), (), "")
        yield from dispatcher.steps(compute, empty, seconds=estimate, caller=caller)
    else:
        yield from _computed_here(model, prompt, reference or UncachedEngine(model.hf_model), checked)


def _computed_here(
    model: Model, prompt: str, reference: UncachedEngine, checked: CacheExperimentOptions
) -> Iterator[CacheExperiment]:
    """Compute the experiment in this process; see `cache_experiment_steps`."""
    head = _head_of(model, prompt, checked.depth)
    engines = engines_of_precisions(model.hf_model) if checked.precisions else []
    energy = energy_counter(model.device)
    found = CacheExperiment(head.depth, (), (), (), energy.source)
    leaves: list[Node] = []
    for run in range(checked.runs):
        start = _head_of(model, prompt, checked.depth) if run else head
        before, seconds, frontier = found.runs, RunSeconds(), [start]
        for depth in range(1, checked.depth + 1):
            cached, uncached = _Meter(start.tree, energy), _Meter(start.tree, energy)
            logits = yield from _after_each(_cached_passes(model.engine, frontier, cached), found)
            others = yield from _after_each(_uncached_passes(reference, frontier, uncached), found)
            seconds = seconds.after(cached.work, uncached.work)
            found = replace(found, runs=(*before, seconds))
            count = checked.k if depth <= checked.levels else 1
            grown = [
                start.tree.expand(node, token_id)
                for node, row in zip(frontier, logits, strict=True)
                for token_id in row.topk(min(count, len(row))).indices.tolist()
            ]
            if not run:
                compared = _compare(logits, torch.cat(others), model.hf_model.dtype)
                cache_bytes = model.engine.cache_usage(start.tree)[1]
                step = CacheStep(depth, len(frontier), *compared, cached.work, uncached.work, cache_bytes)
                paths = tuple(tuple(node.token_id for node in start.tree.path(node, below=start)) for node in grown)
                texts = tuple(_text(model, path) for path in paths)
                found = replace(found, steps=(*found.steps, step), token_ids=paths, texts=texts)
                leaves = grown
            frontier = grown
            yield found
    if engines:
        branches = [[head, *head.tree.path(leaf, below=head)][:-1] for leaf in leaves]
        for precisions in precision_steps(engines, branches):
            found = replace(found, precisions=precisions)
            yield found


def require_cache(model: Model) -> None:
    """Raise ModelError if the model's engine has no cache to compare with."""
    if model.engine_reason:
        raise ModelError(
            f"This model runs without a cache, because {model.engine_reason}; choose another model for this experiment."
        )


class _Meter:
    """Adds up the work of one side: `with meter.measure():` around each pass."""

    def __init__(self, tree: TokenTree, energy: EnergyCounter) -> None:
        self.work = Work()
        self._tree, self._energy = tree, energy

    @contextmanager
    def measure(self) -> Iterator[None]:
        passes, tokens = self._tree.work.passes, self._tree.work.tokens
        joules, cpu_seconds, seconds = self._energy.read(), time.process_time(), time.perf_counter()
        yield
        self.work += Work(
            time.perf_counter() - seconds,
            time.process_time() - cpu_seconds,
            self._tree.work.passes - passes,
            self._tree.work.tokens - tokens,
            self._energy.read() - joules,
        )

    def subtract(self, seconds: float) -> None:
        """Leave out seconds in which the side waited for others."""
        self.work += Work(seconds=-seconds)


def _head_of(model: Model, prompt: str, depth: int) -> Node:
    """Return the node at the prompt's end in a tree of its own; LookaheadError if the branches do not fit after it."""
    start = Document(model, prompt).generation_start(LogitRules(max_new_tokens=depth))
    most = model.context_length
    if start.seen_from > 0 or (most is not None and start.head.depth + depth > most):
        raise LookaheadError(
            f"The prompt has {len(start.token_ids):,} tokens, and with {depth} more it does not fit into the model's "
            f"context of {most:,}; shorten it."
        )
    return start.head


def _after_each(steps: Iterable[T], found: CacheExperiment) -> Generator[CacheExperiment, None, T]:
    """Yield `found` for each step and return the last one, of which there must be one."""
    for last in steps:  # noqa: B007
        yield found
    return last


def _cached_passes(engine: Engine, nodes: Sequence[Node], meter: _Meter) -> Iterator[torch.Tensor]:
    """Evaluate nodes with the engine; yield an empty tensor after each pass of prefill, and at last their logits."""
    chunks = prefill_in_chunks(engine, nodes[0])
    while True:
        with meter.measure():
            if next(chunks, None) is None:
                break
        yield torch.empty(0)
    with meter.measure():
        scores = engine.score(nodes)
        logits = scores.logits_of(nodes).float().cpu().clone()
    meter.subtract(scores.waited)
    yield logits


def _uncached_passes(engine: UncachedEngine, nodes: Sequence[Node], meter: _Meter) -> Iterator[list[torch.Tensor]]:
    """Read the whole path to each node, several at a time; yield after each pass all logits so far, in order."""
    found: list[torch.Tensor] = []
    count = max(1, UNCACHED_PASS_TOKENS // nodes[0].depth)
    for first in range(0, len(nodes), count):
        some = nodes[first : first + count]
        with meter.measure():
            found.append(engine.score(some).logits_of(some).float().cpu())
        yield found


def _compare(logits: torch.Tensor, others: torch.Tensor, dtype: torch.dtype) -> tuple[float, float, str, float, int]:
    """Return the fields `difference` to `other_tokens` of a `CacheStep` for two tensors of shape (rows, vocabulary)."""
    difference = float((logits - others).abs().max())
    other_tokens = int((logits.argmax(-1) != others.argmax(-1)).sum())
    compared, bound = "logit", FLOAT32_BOUND
    if dtype != torch.float32:
        # Where all logits of a row are small, rounding is a large part of them, but not of the log-probabilities.
        logits, others = logits.log_softmax(-1), others.log_softmax(-1)
        compared, bound = "log-probability", HALF_PRECISION_BOUND
    relative = (logits - others).abs().amax(-1) / others.abs().amax(-1)
    return difference, float(relative.max()), compared, bound, other_tokens


def _text(model: Model, token_ids: Sequence[int]) -> str:
    """Return the whole characters of some tokens; "" if the model has no tokenizer."""
    if model.tokenizer is None:
        return ""
    return split_bytes(b"", b"".join(map(model.codec.bytes_of, token_ids)))[0]
