"""A record of what attends to what: the tokens of a lookahead with their cache slots, passes and rows of the mask."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lookahead_core.document.document import Document
from lookahead_core.engines.cache import FlatCache
from lookahead_core.engines.dispatch import dispatcher_of
from lookahead_core.errors import LookaheadError
from lookahead_core.experiments.cache_experiment import LOADING_SECONDS, require_cache
from lookahead_core.model import Model
from lookahead_core.steps import last_step
from lookahead_core.validation import check_integer, parse_options

MAX_PROMPT_TOKENS = 40
"""The most tokens of a prompt: the record is for a figure that shows each of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionOptions:
    """The options of `attention_record`; a wrong one raises ValueError."""

    k: int = 3
    """Branches after the prompt; 1 to 6."""
    depth: int = 4
    """Tokens of each branch; 1 to 8."""

    def __post_init__(self) -> None:
        check_integer("k", self.k, 1, 6)
        check_integer("depth", self.depth, 1, 8)


@dataclass(frozen=True, slots=True)
class RecordedNode:
    """A token in the cache: where its keys and values are, which pass computed them, and what it attends to."""

    slot: int
    """The index of its slot in the cache, from 0."""
    token_id: int
    text: str
    """Its characters; U+FFFD stands for parts of a character."""
    parent: int | None
    """The slot of the token before it; None for the first token."""
    position: int
    """Its position in its text, from 0, which the model is told."""
    number: int
    """The number of the pass that computed it, from 1."""
    attends: tuple[int, ...]
    """The slots that it attends to, its own included, ascending: those that are open in its row of the mask."""


@dataclass(frozen=True, slots=True)
class RecordedLeaf:
    """The last token of a branch. Nothing attends to it, so it was not computed and has no slot."""

    token_id: int
    text: str
    parent: int | None
    """The slot of the token before it."""


@dataclass(frozen=True, slots=True)
class AttentionRecord:
    """The result of `attention_record`, or the part of it that is known while it runs."""

    nodes: tuple[RecordedNode, ...] = ()
    """The tokens in the cache, in order of their slots: the prompt, then the branches."""
    leaves: tuple[RecordedLeaf, ...] = ()
    """The last tokens of the branches, likeliest branch first."""
    prompt_tokens: int = 0
    """How many of `nodes` are the prompt's."""
    passes: int = 0
    """The number of forward passes."""


def attention_record(model: Model, prompt: str, **options: Any) -> AttentionRecord:
    """Grow branches after a prompt in a new cache, and return its slots with the row of the mask of each.

    `options` are those of `AttentionOptions`. The rows are read from the bit sets of which the engine makes its masks.
    Raises ValueError for a wrong option, LookaheadError for an empty prompt or one of more than MAX_PROMPT_TOKENS, and
    ModelError if the engine has no cache.
    """
    return last_step(attention_steps(model, prompt, **options))


def attention_steps(model: Model, prompt: str, *, caller: Any = None, **options: Any) -> Iterator[AttentionRecord]:
    """Do the same as `attention_record`, as a generator: yield the record so far after each forward pass.

    On shared GPUs all is computed in a worker, for `caller`, and records are yielded more than once.
    """
    checked = parse_options(AttentionOptions, options, "attention_record")
    require_cache(model)
    if (dispatcher := dispatcher_of(model.engine)) is not None:
        compute = functools.partial(attention_steps, prompt=prompt, **options)
        yield from dispatcher.steps(compute, AttentionRecord(), seconds=LOADING_SECONDS, caller=caller)
        return
    document = Document(model, prompt)
    count = len(document.token_ids)
    if count > MAX_PROMPT_TOKENS:
        raise LookaheadError(
            f"The prompt has {count:,} tokens, and at most {MAX_PROMPT_TOKENS} are allowed here: shorten it."
        )
    sizes: list[int] = []
    found = AttentionRecord(prompt_tokens=count)
    for step in document.lookahead_steps(k=checked.k, depth=checked.depth):
        cache = document.tree.cache
        if not isinstance(cache, FlatCache):
            continue
        if cache.used > (sizes[-1] if sizes else 0):
            sizes.append(cache.used)
        found = _recorded(document, cache, sizes, [branch.token_ids for branch in step.result.branches])
        yield found
    yield found


def _recorded(
    document: Document, cache: FlatCache, sizes: list[int], branches: list[tuple[int, ...]]
) -> AttentionRecord:
    """Return the record of a cache; `sizes` has the number of its used slots after each pass."""

    def text_of(token_id: int) -> str:
        return document.model.codec.bytes_of(token_id).decode("utf-8", "replace")

    nodes = []
    for slot, node in enumerate(cache.nodes):
        if node is None:
            continue
        attends = tuple(seen for seen in range(cache.used) if cache.visible[slot] >> seen & 1)
        number = 1 + next(index for index, size in enumerate(sizes) if slot < size)
        above = None if node.parent is None else cache.slots.get(node.parent)
        nodes.append(RecordedNode(slot, node.token_id, text_of(node.token_id), above, node.depth - 1, number, attends))
    leaves = []
    for token_ids in branches:
        node = document.tree.head
        for token_id in token_ids[:-1]:
            node = node.children[token_id]
        last = node.children[token_ids[-1]]
        if last not in cache.slots:
            leaves.append(RecordedLeaf(last.token_id, text_of(last.token_id), cache.slots.get(node)))
    return AttentionRecord(tuple(nodes), tuple(leaves), len(document.token_ids), len(sizes))
