"""Replacements: whether an alternative fits in place of a word of the text, with the rest of the text unchanged."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lookahead_core.analysis.highlight_results import HighlightAlternative, HighlightEntry
from lookahead_core.analysis.text_spans import node_before, token_spans
from lookahead_core.document.document import Document
from lookahead_core.engines.engine import prefill_in_chunks
from lookahead_core.errors import LookaheadError
from lookahead_core.tree import Node
from lookahead_core.validation import check_integer

MAX_LIKELIHOOD_RATIO = 4.0
"""An alternative fits if it makes the next words of the text at most this many times less likely."""
MAX_FOLLOWING_TOKENS = 8
"""Maximum number of tokens of the next words that are compared."""
_WORD = re.compile(r"\s*\S+")


@dataclass(frozen=True, slots=True)
class ReplacementFit:
    """The result of `drop_in` for one alternative: how likely the next words are after it and after the own word."""

    alternative: HighlightAlternative
    following: str
    """The next words of the text; the probability of their first tokens, at most 8, is compared."""
    logprob: float | None
    """Natural log-probability of these tokens after the alternative; None if the alternative has no text or is an end
    token, or if nothing follows that fits the context."""
    own_logprob: float | None
    """Their natural log-probability after the text's own word; None if nothing follows that fits the context, or if no
    alternative has text."""

    @property
    def drops_in(self) -> bool | None:
        """Whether the next words are at most `MAX_LIKELIHOOD_RATIO` times less likely than after the text's own word.

        None if either log-probability is None.
        """
        if self.logprob is None or self.own_logprob is None:
            return None
        return self.logprob >= self.own_logprob - math.log(MAX_LIKELIHOOD_RATIO)

    @property
    def verdict(self) -> str:
        """The result as an English phrase: "drops in", "would need the rest rewritten" or "cannot be told".

        These are for `drops_in` True, False and None. But it is "the text would end here" for an end token, and
        otherwise "nothing follows it" if the text has no next words.
        """
        if self.alternative.ended:
            return "the text would end here"
        if not self.following:
            return "nothing follows it"
        return {True: "drops in", False: "would need the rest rewritten", None: "cannot be told"}[self.drops_in]


def drop_in(
    document: Document, entry: HighlightEntry, alternatives: Sequence[HighlightAlternative], words: int = 3
) -> list[ReplacementFit]:
    """Return, for each alternative of a highlight entry, in order, whether it fits; one forward pass for all of them.

    Text that has to be prefilled again takes further passes. The alternative replaces the rest of the word from its
    token on. It fits if the next `words` words of the text, 1 to 8, of which at most 8 tokens are compared, are at most
    `MAX_LIKELIHOOD_RATIO` times less likely after it than after the text's own word. Raises LookaheadError if the text
    no longer has the entry at its index, and ValueError for a wrong number of words.
    """
    return next(fits for fits in drop_in_steps(document, entry, alternatives, words) if fits is not None)


def drop_in_steps(
    document: Document, entry: HighlightEntry, alternatives: Sequence[HighlightAlternative], words: int = 3
) -> Iterator[list[ReplacementFit] | None]:
    """Yield None after each chunk of the text that has to be prefilled again, and at last the result of `drop_in`.

    The first step raises the errors of `drop_in`; the last one LookaheadError if the text has changed there meanwhile.
    """
    check_integer("words", words, 1, MAX_FOLLOWING_TOKENS)
    for _ in prefill_in_chunks(document.model.engine, _origin(document, entry)):
        yield None
    yield _fits(document, entry, alternatives, words)


def _fits(
    document: Document, entry: HighlightEntry, alternatives: Sequence[HighlightAlternative], words: int
) -> list[ReplacementFit]:
    """Return a fit for each alternative, in order, in one forward pass; in none if there is nothing to compare.

    The pass also computes the text before the entry as far as it is not in the cache, so that should be prefilled.
    `words` is the number of next words to compare. Raises the LookaheadError of `drop_in`.
    """
    origin, own_ids = _origin(document, entry), _rest_of_word(document, entry)
    following, next_ids = _following(document, entry, words)
    context, tree = document.model.context_length, document.tree
    if context is not None:
        next_ids = next_ids[: max(0, context - origin.depth - len(own_ids) + 1)]
    ends = {
        alternative.token_id: tree.descend(
            origin, own_ids if alternative.token_id == own_ids[0] else [alternative.token_id]
        )
        for alternative in alternatives
        if alternative.text is not None and not alternative.ended
    }
    own_end = tree.descend(origin, own_ids)
    logprobs = _logprobs_after(document, [own_end, *ends.values()], next_ids) if ends else {}
    return [
        ReplacementFit(alternative, following, logprobs.get(ends[alternative.token_id]), logprobs.get(own_end))
        if alternative.token_id in ends
        else ReplacementFit(alternative, following, None, logprobs.get(own_end))
        for alternative in alternatives
    ]


def _origin(document: Document, entry: HighlightEntry) -> Node:
    """Return the node before the token that the entry's alternatives replace; missing nodes are created.

    Raises LookaheadError if the text no longer has the entry's tokens and characters at the entry's indexes. Changes
    elsewhere are not noticed.
    """
    token_ids = tuple(document.token_ids[entry.first_token : entry.first_token + len(entry.token_ids)])
    if token_ids != entry.token_ids or document.text[entry.start : entry.end] != entry.token:
        raise LookaheadError("The text has changed since it was read; read it again.")
    return node_before(document, entry.first_token + entry.offset, entry.read_from)


def _rest_of_word(document: Document, entry: HighlightEntry) -> list[int]:
    """Return the text's token ids from the one that the entry's alternatives replace to the end of the entry's word."""
    after = next(after for _, after, _, end in token_spans(document) if end >= entry.word[1])
    return document.token_ids[entry.first_token + entry.offset : after]


def _following(document: Document, entry: HighlightEntry, words: int) -> tuple[str, list[int]]:
    """Return the next `words` words of the text after the entry's word, and the ids of these words encoded anew.

    White space before a word is included; at the end of the text there are fewer words. Of the ids, only the first
    MAX_FOLLOWING_TOKENS are returned; the words are not cut to them.
    """
    runs = itertools.islice(_WORD.finditer(document.text, entry.word[1]), words)
    following = "".join(run[0] for run in runs)
    tokens = document.model.codec.encode(following, continuing=True)
    return following, [token.token_id for token in tokens][:MAX_FOLLOWING_TOKENS]


def _logprobs_after(document: Document, ends: Sequence[Node], token_ids: Sequence[int]) -> dict[Node, float]:
    """Return, for each node of `ends`, the natural log-probability of the whole sequence `token_ids` after it.

    One forward pass evaluates all sequences; missing nodes are created. An empty dict without a pass if `token_ids` is
    empty. No node of `ends` may be the root.
    """
    if not token_ids:
        return {}
    tree = document.tree
    paths = {end: [end, *tree.path(tree.descend(end, token_ids[:-1]), end)] for end in ends}
    nodes = list(dict.fromkeys(node for path in paths.values() for node in path))
    rows = document.model.engine.score(nodes).logits_of(nodes).log_softmax(-1)
    row_of = {node: row for row, node in enumerate(nodes)}
    return {
        end: math.fsum(float(rows[row_of[node], token_id]) for node, token_id in zip(path, token_ids, strict=True))
        for end, path in paths.items()
    }
