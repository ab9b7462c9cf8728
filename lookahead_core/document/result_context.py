"""Builds results: turns the leaves of a lookahead or a beam search into branches with text, shares and coverage."""

from __future__ import annotations

import math
import weakref
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import TypeVar

from lookahead_core.document.coverage import coverage_of, with_new_shares
from lookahead_core.document.results import (
    BannedToken,
    Beam,
    BeamNode,
    Beams,
    Branch,
    Cost,
    Lookahead,
    Other,
    Piece,
    TypedToken,
)
from lookahead_core.engines.prediction_rows import TOP_TOKENS
from lookahead_core.prediction import Prediction
from lookahead_core.strategies.beam import BeamPath, BeamTrace
from lookahead_core.strategies.beam_options import BeamOptions
from lookahead_core.strategies.branch_growth import BranchLeaf, BranchStart, CompletedSize
from lookahead_core.strategies.healing import ReopenedToken
from lookahead_core.strategies.lookahead_options import LookaheadOptions
from lookahead_core.strategies.next_word_odds import NextWordOdds
from lookahead_core.strategies.word_odds import WordOdds
from lookahead_core.text.boundaries import CONTEXT_CHARACTERS, boundary_levels
from lookahead_core.text.passage import TextEnd
from lookahead_core.text.word_sets import words_in
from lookahead_core.tree import Node

B = TypeVar("B", bound=Branch)


@dataclass(frozen=True, slots=True)
class ResultContext:
    """What results are made from besides leaves: facts about a lookahead or beam search that stay while it grows."""

    origin: Node
    """The node of the text's last token; branches grow below it, or below its parent if it is `reopened`."""
    text_end: TextEnd
    """The end of the text at that node."""
    stop: frozenset[int]
    """The ids of the end tokens."""
    options: LookaheadOptions = field(default_factory=LookaheadOptions)
    reopened: ReopenedToken | None = None
    """The last typed token, if branches replace it."""
    seen_from: int = 0
    """The character from which on the model reads."""
    first_tokens: dict[int, tuple[BranchStart, tuple[Other, ...]]] = field(
        default_factory=dict, repr=False, compare=False
    )
    """What `_first_tokens` yields for each start, by its id(): all steps of a lookahead have the same one."""

    @property
    def before(self) -> str:
        """The text of the last tokens down to `origin`, at most `CONTEXT_CHARACTERS` of them.

        Bytes that are no whole character are left out. The rules for the ends of words and sentences look at no more.
        """
        spelled: list[bytes] = []
        node: Node | None = self.origin
        while node is not None and node.depth and len(spelled) < CONTEXT_CHARACTERS:
            spelled.append(self.text_end.codec.bytes_of(node.token_id))
            node = node.parent
        return b"".join(reversed(spelled)).decode(errors="ignore")

    def words_of(self, token_ids: Sequence[int]) -> frozenset[Hashable]:
        """Return the words of a path as `words_in` does; without a tokenizer, the set of its token ids."""
        codec = self.text_end.codec
        if codec.tokenizer is None:
            return frozenset(token_ids)
        return frozenset(words_in(b"".join(map(codec.bytes_of, token_ids)).decode(errors="ignore")))

    def complete(self, least: int = 0) -> CompletedSize | None:
        """Return a function that finds the first end of a word, clause, sentence or line, as `until` says, in a path.

        The function takes the token ids of a path after the text, and the bytes of the first token that the text has
        already (b"" without healing). It returns the number of tokens up to that end, at least `least`, or None if
        there is none yet; the end of a larger unit counts too. For `until="tokens"` there is no such function, and None
        is returned. Raises TextError without a tokenizer.
        """
        if self.options.until == "tokens":
            return None
        self.text_end.codec.require_tokenizer()
        level, before = ("word", "clause", "sentence", "line").index(self.options.until) + 1, self.before

        def complete(token_ids: Sequence[int], typed: bytes) -> int | None:
            pieces = _cut(token_ids, typed, self.text_end, self.stop)
            flags = boundary_levels([text for text, _ in pieces], before)
            ends = (size for (_, size), flag in zip(pieces, flags, strict=True) if flag >= level)
            return next((size for size in ends if size >= least), None)

        return complete


def make_lookahead(
    leaves: Sequence[BranchLeaf],
    cost: Cost,
    context: ResultContext,
    start: BranchStart | None = None,
    word: WordOdds | None = None,
    compared_by: str = "",
) -> Lookahead:
    """Return the lookahead result of these leaves, in their order.

    `start` has the predictions of the first tokens; without it, or without leaves, `rest` is empty and `said` None.
    Without it `banned` is empty too. `word` and `compared_by` become the fields of these names. The leaves must be
    below `context.origin`, or below its parent if it is re-opened.
    """
    before = context.before if leaves else ""
    branches = with_new_shares([_branch(leaf, before, context) for leaf in leaves])
    return Lookahead(
        branches=branches,
        coverage=coverage_of(branches),
        cost=cost,
        given=context.reopened.text.decode() if context.reopened else "",
        typed=_typed(context, start) if leaves and start else None,
        seen_from=context.seen_from,
        rest=_rest([leaf.token_ids for leaf in leaves], context, start) if leaves and start else (),
        banned=tuple(_banned(context, start)) if start and start.excluded else (),
        said=start.prediction if leaves and start else None,
        options=context.options,
        read=context.origin.depth,
        word=word,
        compared_by=compared_by,
    )


def _typed(context: ResultContext, start: BranchStart) -> TypedToken | None:
    """Return the re-opened token with its predictions; None if no token is re-opened."""
    if start.prediction_after_typed is None:
        return None
    return TypedToken(context.origin.token_id, start.typed_logprob, (start.prediction, start.prediction_after_typed))


def make_branch(leaf: BranchLeaf, context: ResultContext) -> Branch:
    """Return the branch that ends at a leaf. Its share is the one that it has without other branches."""
    return with_new_shares([_branch(leaf, context.before, context)])[0]


def make_beams(
    found: Sequence[BeamPath],
    traces: Sequence[tuple[BeamTrace, str]],
    steps: int,
    cost: Cost,
    options: BeamOptions,
    context: ResultContext,
) -> Beams:
    """Return the `Beams` of a beam search after `steps` levels.

    `found` are the paths that become its branches, best first. `traces` are pairs of a candidate and its fate, with
    parents before children; they become its `tree`.
    """
    before = context.before
    branches = with_new_shares([_branch(beam.leaf, before, context) for beam in found])
    beams = (
        Beam(**{each.name: getattr(branch, each.name) for each in fields(branch)}, score=beam.score)
        for branch, beam in zip(branches, found, strict=True)
    )
    return Beams(tuple(beams), _beam_nodes(traces, context), steps, cost, options)


def _beam_nodes(traces: Sequence[tuple[BeamTrace, str]], context: ResultContext) -> tuple[BeamNode, ...]:
    """Return a `BeamNode` for each (candidate, fate) pair of a search, in order; parents must come before children."""
    indexes: dict[int, int] = {}
    text_ends: dict[int | None, TextEnd] = {None: context.text_end}
    nodes: list[BeamNode] = []
    for index, (trace, fate) in enumerate(traces):
        parent = None if trace.parent is None else indexes[id(trace.parent)]
        ended = trace.token_id in context.stop
        text, text_ends[index] = ("", text_ends[parent]) if ended else text_ends[parent].decode(trace.token_id)
        indexes[id(trace)] = index
        nodes.append(BeamNode(parent, trace.token_id, text, trace.logprob, trace.total, trace.step, ended, fate))
    return tuple(nodes)


def _branch(leaf: BranchLeaf, before: str, context: ResultContext) -> Branch:
    """Return the branch that ends at a leaf, with odds of tokens without its share, which depends on other branches."""
    logprobs, word = leaf.logprobs, leaf.next_word
    return Branch(
        token_ids=leaf.token_ids,
        logprobs=logprobs,
        pieces=_pieces(leaf, before, context),
        share=word.share if word else 0.0,
        probability=math.exp(math.fsum(logprobs)),
        ended=leaf.ended(context.stop),
        healed=leaf.healed,
        said=leaf.predictions,
        repeats=leaf.repeats,
        next_word=word.text if word else None,
        next_word_tokens=min(word.size, len(leaf.token_ids)) if word else 0,
        share_error=word.error if word else 0.0,
        _origin=weakref.ref(context.origin),
        word_tokens=leaf.word_tokens,
    )


def _rest(paths: Sequence[tuple[int, ...]], context: ResultContext, start: BranchStart) -> tuple[Other, ...]:
    """Return an `Other` for each first token that no path begins with, likeliest first, at most `TOP_TOKENS`.

    The re-opened token inserts nothing alone: in its stead there are pairs of it and a token after it, as far as no
    path begins with such a pair. With `odds="words"`, the result is an `Other` for each next word that no path begins
    with, likeliest first.
    """
    if context.options.odds == "words":
        return tuple(_other_word(word, context, start) for word in start.other_words if word.share > 0)
    begun = {path[:length] for path in paths for length in (1, 2)}
    if id(start) not in context.first_tokens:
        context.first_tokens[id(start)] = start, tuple(_first_tokens(context, start))
    found = [other for other in context.first_tokens[id(start)][1] if other.token_ids not in begun]
    return tuple(sorted(found, key=lambda other: -math.fsum(other.logprobs))[:TOP_TOKENS])


def _other_word(word: NextWordOdds, context: ResultContext, start: BranchStart) -> Other:
    """Return a word as an `Other` with the predictions of its first token, or of two if the first is the typed one."""
    ids, ended = word.token_ids[: word.size or 1], word.text == ""
    said: tuple[Prediction, ...] = (start.prediction,)
    if start.prediction_after_typed is not None and ids[0] == context.origin.token_id:
        said = (start.prediction, start.prediction_after_typed)
    return Other(
        ids,
        word.logprobs[: len(ids)],
        word.text or None,
        ended,
        said=said[: len(ids)],
        share=word.share,
        share_error=word.error,
    )


def _first_tokens(context: ResultContext, start: BranchStart) -> Iterator[Other]:
    """Yield an `Other` for each first token that `start` keeps with a probability above 0, likeliest first.

    A re-opened token is left out: after all others come pairs of it and each token kept after it, likeliest first.
    """
    first, after_typed, typed_id = start.prediction, start.prediction_after_typed, context.origin.token_id
    for token_id, logprob in _possible(first):
        if after_typed is None or token_id != typed_id:
            yield _other((token_id,), (logprob,), (first,), context)
    if after_typed is not None:
        for token_id, logprob in _possible(after_typed):
            yield _other((typed_id, token_id), (start.typed_logprob, logprob), (first, after_typed), context)


def _banned(context: ResultContext, start: BranchStart) -> list[BannedToken]:
    """Return the banned tokens that the model would find likely at the end of the text, likeliest first.

    Tokens that begin with the text of a re-opened token are all among them, others if the prediction keeps them.
    """
    found = dict(start.banned)
    # The share of what follows the typed token, if that one may be replaced and no token were banned.
    typed = math.exp(start.typed_logprob) * (1 - math.fsum(found.values()))
    after_text = context.origin.prediction
    for token_id, logprob in _possible(after_text) if after_text else ():
        if token_id in start.excluded:
            found[token_id] = found.get(token_id, 0.0) + typed * math.exp(logprob)
    spelled = context.text_end.codec.bytes_of
    tokens = [
        BannedToken(token_id, spelled(token_id).decode(errors="replace"), p) for token_id, p in found.items() if p > 0
    ]
    return sorted(tokens, key=lambda token: -token.probability)


def _possible(prediction: Prediction) -> Iterator[tuple[int, float]]:
    """Yield (token id, natural log-probability) of the kept tokens with a probability above 0, likeliest first."""
    for token_id, logprob in zip(prediction.token_ids, prediction.logprobs, strict=True):
        if logprob > -math.inf:
            yield token_id, logprob


def _other(
    token_ids: tuple[int, ...], logprobs: tuple[float, ...], predictions: tuple[Prediction, ...], context: ResultContext
) -> Other:
    cuts = _cut(token_ids, context.reopened.text if context.reopened else b"", context.text_end, context.stop)
    text = "".join(piece for piece, _ in cuts)
    return Other(token_ids, logprobs, _whole(text), token_ids[-1] in context.stop, predictions)


def _whole(text: str) -> str | None:
    """Return the text; None if it is empty or holds a replacement character."""
    return text if text and "\ufffd" not in text else None


def _pieces(leaf: BranchLeaf, before: str, context: ResultContext) -> tuple[Piece, ...]:
    """Return the pieces of the branch that ends at a leaf: one for each token that completes a character, in order.

    An end token and a character left incomplete are in no piece. `before` is the text before the new characters, which
    the ends of words and sentences depend on.
    """
    cuts = _cut((*leaf.token_ids, *leaf.tokens_past_end), leaf.typed, context.text_end, context.stop)
    flags = boundary_levels([text for text, _ in cuts], before, final=leaf.ended(context.stop))
    pieces: list[Piece] = []
    begun = 0
    for (text, end), flag in zip(cuts, flags, strict=True):
        if end > len(leaf.token_ids):
            break
        probability = math.exp(math.fsum(leaf.logprobs[begun:end]))
        pieces.append(Piece(text, leaf.token_ids[begun:end], probability, end, flag))
        begun = end
    return tuple(pieces)


def _cut(token_ids: Sequence[int], typed: bytes, text_end: TextEnd, stop: frozenset[int]) -> list[tuple[str, int]]:
    """Return a pair for each token that completes a character: the new whole characters, and the token's number from 1.

    Stops before the first token whose id is in `stop`. `text_end` is the end of the text before the tokens; `typed` are
    bytes at the beginning of the first token that this text has already.
    """
    cuts: list[tuple[str, int]] = []
    for index, token_id in enumerate(token_ids):
        if token_id in stop:
            break
        text, text_end = text_end.decode(token_id, 0 if index else len(typed))
        if text:
            cuts.append((text, index + 1))
    return cuts
