"""Does a little model's text stand under a big one? The little one writes, the big one checks it all in one pass."""

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


@dataclass(frozen=True, slots=True)
class Check:
    """A prompt, what the little model went on with, and how far the big one would have written the same."""

    text: str
    """What the little model wrote, without an end token."""
    token_ids: tuple[int, ...]
    """The same as ids, with the end token, if it ended."""
    agreed: int
    """How many of these tokens the big model would have written as well, one after the other."""
    instead: int | None
    """The token that the big model would have written where they part; None where they do not."""
    big_passes: int
    """How many passes of the big model the check took, for all prompts together."""

    @property
    def stands(self) -> bool:
        """Whether the big model agrees with all of it."""
        return self.agreed == len(self.token_ids)


def generate_and_check(
    big: Model, little: Model, prompts: Iterable[str | Sequence[int]], *, max_new_tokens: int = 10
) -> list[Check]:
    """Let the little model go on from each prompt greedily, and the big one check everything in one pass.

    Prompts are texts, or lists of token ids. What would follow an end token is neither written nor compared. Where the
    big model's context has room for less behind the longest prompt, less is written, as it would write less itself.
    """
    require_same_tokens(big, little)
    listed, rules = _listed(prompts), LogitRules(max_new_tokens=max_new_tokens)
    heads = [_document(big, prompt).generation_start(rules).head for prompt in listed]
    context = big.context_length
    most = min([max_new_tokens, *(context - head.depth for head in heads if context is not None)])
    written = stream_batch(
        [_document(little, prompt) for prompt in listed], max_new_tokens=most, forbidden=_unknown(big, little)
    )
    for _ in written:
        pass
    answers = [[step.token_id for step in steps] for steps in written.steps]
    paths = [_path(head, answer) for head, answer in zip(heads, answers, strict=True)]
    before = big.engine.passes
    if paths:
        big.engine.evaluate(list(dict.fromkeys(node for path in paths for node in path)))
    passes = big.engine.passes - before
    pairs = zip(written.texts, answers, paths, strict=True)
    return [_check(text, answer, path, big, passes) for text, answer, path in pairs]


def agreement_length(big: Model, little: Model, prompt: str | Sequence[int], *, most: int = 40) -> int:
    """For how many tokens a little model writes what the big one would, up to the most that is asked for."""
    return generate_and_check(big, little, [prompt], max_new_tokens=most)[0].agreed


def _listed(prompts: Any) -> list[str | Sequence[int]]:
    listed = [prompts] if isinstance(prompts, str) or not isinstance(prompts, Iterable) else list(prompts)
    for prompt in listed:
        if not isinstance(prompt, Iterable):
            raise ValueError(f"prompts holds {prompt!r}, and must hold texts, or lists of token ids.")
    return listed


def _unknown(big: Model, little: Model) -> range:
    """The ids that only the little model has, which stand for nothing; it must not write them."""
    unknown = range(big.vocabulary, max(big.vocabulary, little.vocabulary))
    if len(unknown) > MAX_PHRASES:
        raise ModelError(
            f"{little.name} has {little.vocabulary:,} ids and {big.name} has {big.vocabulary:,}; "
            f"choose a little model with at most {MAX_PHRASES:,} more."
        )
    return unknown


def _document(model: Model, prompt: str | Sequence[int]) -> Document:
    return Document(model, prompt) if isinstance(prompt, str) else Document(model, token_ids=prompt)


def _path(head: Node, answer: Sequence[int]) -> list[Node]:
    """The nodes of the big model's tree after which its own next tokens are compared with the answer's."""
    nodes = [head]
    for token_id in answer[:-1]:
        nodes.append(head.tree.expand(nodes[-1], token_id))
    return nodes


def _check(text: str, answer: Sequence[int], path: Sequence[Node], big: Model, passes: int) -> Check:
    said = [node.prediction.token_ids[0] for node in path if node.prediction is not None]
    agreed = matching_prefix_length(answer, said, big.end_token_ids)
    instead = said[agreed] if agreed < len(answer) else None
    return Check(text, tuple(answer), agreed, instead, passes)
