"""Agreement of two models: a smaller one continues texts, and a bigger one checks all of it in one forward pass."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from lookahead_core.document.batch import stream_batch
from lookahead_core.document.document import Document
from lookahead_core.document.drafting import require_same_tokens
from lookahead_core.errors import ModelError
from lookahead_core.model import Model
from lookahead_core.speculation.acceptance import matching_prefix_length
from lookahead_core.strategies.rules import MAX_PHRASES, LogitRules
from lookahead_core.tree import Node
from lookahead_core.validation import short_repr


@dataclass(frozen=True, slots=True)
class Check:
    """The smaller model's continuation of one prompt, and how far the bigger model agrees with it."""

    text: str
    """The continuation, without an end token."""
    token_ids: tuple[int, ...]
    """Its token ids, with the end token if it ended."""
    agreed: int
    """Number of tokens from its beginning that the bigger model would have written as well."""
    instead: int | None
    """The bigger model's token where the two first differ; None if they do not."""
    big_passes: int
    """Number of forward passes of the bigger model, for all prompts together."""

    @property
    def stands(self) -> bool:
        """Whether the bigger model agrees with all tokens of the continuation, an end token included."""
        return self.agreed == len(self.token_ids)


def generate_and_check(
    big: Model, little: Model, prompts: Iterable[str | Sequence[int]], *, max_new_tokens: int = 10
) -> list[Check]:
    """Continue each prompt greedily with the smaller model, and check all of it in one pass of the bigger model.

    Prompts are texts or lists of token ids; a single text counts as a list of one. Returns one check per prompt, in
    order. A continuation ends with an end token, after `max_new_tokens`, or where the smaller model's context is full;
    all have at most as many tokens as the bigger model's context has room for after the longest prompt. Long prompts
    take further passes. Raises ModelError if the models have different tokens, ValueError for a wrong option or prompt,
    and LookaheadError for an empty prompt if the model has no start token.
    """
    require_same_tokens(big, little)
    listed, rules = _listed(prompts), LogitRules(max_new_tokens=max_new_tokens)
    heads = [_document(big, prompt).generation_start(rules).head for prompt in listed]
    context = big.context_length
    limit = min([max_new_tokens, *(context - head.depth for head in heads if context is not None)])
    streams = stream_batch(
        [_document(little, prompt) for prompt in listed], max_new_tokens=limit, forbidden=_unknown_ids(big, little)
    )
    for _ in streams:
        pass
    continuations = [[step.token_id for step in steps] for steps in streams.steps]
    paths = [_path(head, token_ids) for head, token_ids in zip(heads, continuations, strict=True)]
    before = big.engine.passes
    if paths:
        big.engine.evaluate(list(dict.fromkeys(node for path in paths for node in path)))
    passes = big.engine.passes - before
    results = zip(streams.texts, continuations, paths, strict=True)
    return [_check(text, token_ids, path, big, passes) for text, token_ids, path in results]


def agreement_length(big: Model, little: Model, prompt: str | Sequence[int], *, most: int = 40) -> int:
    """Return how many tokens of the smaller model's greedy continuation the bigger model would have written as well.

    The continuation has at most `most` tokens, 1 or more; an end token counts, tokens after the first difference do
    not. Raises the errors of `generate_and_check`.
    """
    return generate_and_check(big, little, [prompt], max_new_tokens=most)[0].agreed


def _listed(prompts: Any) -> list[str | Sequence[int]]:
    listed = [prompts] if isinstance(prompts, str) or not isinstance(prompts, Iterable) else list(prompts)
    for prompt in listed:
        if not isinstance(prompt, Iterable):
            raise ValueError(f"prompts holds {short_repr(prompt)}, and must hold texts, or lists of token ids.")
    return listed


def _unknown_ids(big: Model, little: Model) -> range:
    """Return the ids that only the smaller model has; empty if it has no more than the bigger one.

    They are padding, and it must not write them. Raises ModelError if there are more than `MAX_PHRASES`.
    """
    unknown = range(big.vocabulary, max(big.vocabulary, little.vocabulary))
    if len(unknown) > MAX_PHRASES:
        raise ModelError(
            f"{little.name} has {little.vocabulary:,} ids and {big.name} has {big.vocabulary:,}; "
            f"choose a little model with at most {MAX_PHRASES:,} more."
        )
    return unknown


def _document(model: Model, prompt: str | Sequence[int]) -> Document:
    return Document(model, prompt) if isinstance(prompt, str) else Document(model, token_ids=prompt)


def _path(head: Node, token_ids: Sequence[int]) -> list[Node]:
    """Return the nodes of the bigger model's tree whose predictions are compared with the continuation's tokens.

    One per token, in order: `head`, the node at the end of the prompt, and the nodes of all tokens but the last.
    Missing nodes are created, and none is evaluated. There must be at least one token.
    """
    nodes = [head]
    for token_id in token_ids[:-1]:
        nodes.append(head.tree.expand(nodes[-1], token_id))
    return nodes


def _check(text: str, token_ids: Sequence[int], path: Sequence[Node], big: Model, passes: int) -> Check:
    wanted = [node.prediction.token_ids[0] for node in path if node.prediction is not None]
    agreed = matching_prefix_length(token_ids, wanted, big.end_token_ids)
    instead = wanted[agreed] if agreed < len(token_ids) else None
    return Check(text, tuple(token_ids), agreed, instead, passes)
