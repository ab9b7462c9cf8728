"""A document: what a person has written, the tree of what might follow, and an engine to grow it with."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from lookahead_core.document.drafting import DocumentDrafting
from lookahead_core.document.generation_start import CostMeter, GenerationStart, guarded
from lookahead_core.document.result_context import ResultContext, make_lookahead
from lookahead_core.document.results import Beams, BeamStep, Branch, Lookahead, LookaheadStep
from lookahead_core.document.stream import Stream, read_lines
from lookahead_core.errors import LookaheadError
from lookahead_core.model import Model
from lookahead_core.strategies import lookahead
from lookahead_core.strategies.beam import BeamOptions, beam_search
from lookahead_core.strategies.branch_growth import GrowthContext
from lookahead_core.strategies.decode import StreamOptions
from lookahead_core.strategies.healing import ReopenedToken
from lookahead_core.strategies.keywords import takes_options
from lookahead_core.strategies.lookahead_options import LookaheadOptions
from lookahead_core.strategies.rules import LogitRules
from lookahead_core.text.context_window import window_start
from lookahead_core.text.passage import Passage, TextEnd
from lookahead_core.tree import Node, Prediction, TokenTree
from lookahead_core.validation import as_token_id, parse_options

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from lookahead_core.strategies.keywords import BeamKeywords, LookaheadKeywords, StreamKeywords


@dataclass(frozen=True, slots=True)
class AcceptedTokens:
    """Tokens that were accepted elsewhere, after so many characters; healed ones stand in place of the last typed."""

    before: int
    token_ids: tuple[int, ...]
    healed: bool = False


MOST_NODES = 4000
"""How many nodes off the trunk a document keeps: some tens of megabytes of predictions."""


class Document:
    """A text that can be looked ahead of, accepted into, rewound and edited, without computing anything twice.

    It belongs to one thread at a time; several documents of one model may be used in several.
    """

    def __init__(
        self,
        model: Model,
        text: str = "",
        *,
        token_ids: Sequence[int] | None = None,
        opening: Sequence[int] | None = None,
        tree: TokenTree | None = None,
    ) -> None:
        """`opening` stands before the text in place of the model's start tokens: an instruction, in its template.

        `tree` holds what was read before: one of another document of this model, which is not used any more.
        """
        if text and token_ids is not None:
            raise ValueError("text and token_ids are both given; a document starts from one of them.")
        self.model = model
        self.tree = TokenTree() if tree is None else tree
        self._passage = Passage(model.codec, model.start_ids, None if opening is None else tuple(opening))
        self._typed: tuple[Node, ReopenedToken] | None = None
        self._memory = DocumentDrafting(model)
        self._seen_from = 0
        self._room = 0
        """The most tokens that anybody looked ahead here: kept free, so that the window does not move to and fro."""
        if token_ids is not None:
            self._passage.append([_checked_id(token_id, model.vocabulary) for token_id in token_ids])
        elif model.tokenizer is not None:
            self.text = text
        elif text:
            model.codec.require_tokenizer()
        self._move()

    @property
    def text(self) -> str:
        """What stands, as the person typed it and as the pieces were inserted."""
        self.model.codec.require_tokenizer()
        return self._passage.text

    @text.setter
    def text(self, text: str) -> None:
        if not isinstance(text, str):
            raise ValueError(f"text is {type(text).__name__}, and must be a string.")
        self._passage.edit(text)
        self._move()
        # What hung below the old text is out of sight now, and may be forgotten.
        self._new_view()

    @property
    def token_ids(self) -> list[int]:
        """The ids that stand, a start token included."""
        return self._passage.token_ids

    @property
    def reopens(self) -> str:
        """The typed characters that a healed view starts from; none unless the text ends in a word or in spaces."""
        head = self.tree.head
        return self._passage.reopened_bytes().decode() if head.parent is not None and head.parent.depth else ""

    @property
    def head(self) -> Node:
        """The end of the trunk."""
        return self.tree.head

    @takes_options(LookaheadOptions)
    def lookahead(self, **options: Unpack[LookaheadKeywords]) -> Lookahead:
        """Return several continuations of the text at once: `k` branches of at most `depth` tokens, each with its odds.

        The text stays as it is. `LookaheadKeywords` explains each option, `LookaheadOptions` holds the defaults.
        """
        step = None
        for step in self.lookahead_steps(**options):  # noqa: B007
            pass
        assert step is not None
        return step.result

    @takes_options(LookaheadOptions)
    def lookahead_steps(self, **options: Unpack[LookaheadKeywords]) -> Iterator[LookaheadStep]:
        """Yield one step per forward pass of a lookahead; the last step has the result that `lookahead` returns.

        The options are those of `lookahead`. The generator may be abandoned at any step: the tree keeps the predictions
        made so far. It raises LookaheadError if the text changes meanwhile.
        """
        return self._steps(LookaheadOptions.of(options))

    @takes_options(StreamOptions)
    def stream(self, **options: Unpack[StreamKeywords]) -> Stream:
        """Return an iterator over one continuation, token by token, greedy or sampled; the text stays as it is.

        `for step in document.stream(...)`, or `document.stream(...).write()` to print it. It may be abandoned at any
        step. It ends with an end token, a stop condition, `max_new_tokens`, or where the model's context is full, and
        raises LookaheadError if the text changes meanwhile. `StreamKeywords` explains each option, `StreamOptions`
        holds the defaults.
        """
        asked = parse_options(StreamOptions, options, "stream")
        ground = self.ground(asked)
        reader = ground.line(asked)
        steps = (step for _, step in read_lines(self.model.engine, [reader]))
        checked_steps = guarded([ground], steps, lambda: reader.line.over)
        return Stream(checked_steps, ground.cost, ground.seen_from, reader.line.passes)

    @takes_options(StreamOptions)
    def odds(self, **options: Unpack[StreamKeywords]) -> torch.Tensor:
        """Return the log-probabilities, by token id, that `stream` with these options draws its first token from."""
        asked = parse_options(StreamOptions, options, "odds")
        return self.ground(asked).odds(asked)

    @takes_options(BeamOptions)
    def beam_search(self, **options: Unpack[BeamKeywords]) -> Beams:
        """Return the results of a beam search after the text, best first; the text stays as it is.

        `BeamKeywords` explains each option, `BeamOptions` holds the defaults.
        """
        step = None
        for step in self.beam_search_steps(**options):  # noqa: B007
            pass
        assert step is not None
        return step.result

    @takes_options(BeamOptions)
    def beam_search_steps(self, **options: Unpack[BeamKeywords]) -> Iterator[BeamStep]:
        """Yield one step per level of a beam search, which is one forward pass; the last step has the final result.

        The options are those of `beam_search`. The generator may be abandoned at any step. It raises LookaheadError if
        the text changes meanwhile.
        """
        asked = parse_options(BeamOptions, options, "beam_search")
        ground = self.ground(asked)
        search = ground.search(asked)
        steps = (ground.found(search) for _ in beam_search(self.model.engine, [search]))
        return guarded([ground], steps, lambda: not search.waiting)

    def ground(self, rules: LogitRules) -> GenerationStart:
        """The end of the text, with room for what these rules ask for, or for a quarter of the context."""
        context = self.model.context_length
        room = rules.max_new_tokens if context is None else min(rules.max_new_tokens, max(1, context // 4))
        seen_from = self._move(room)
        self._require_tokens()
        self._new_view()
        return GenerationStart(
            self.model,
            self.tree.head,
            self._passage.end,
            self._passage.text,
            tuple(self.token_ids),
            seen_from,
            lambda: self.token_ids,
            lambda: self._passage.removals,
            self._memory,
        )

    def predict(self, *, row: bool = False) -> Prediction:
        """What the model says after the text; with `row`, all log-probabilities as well."""
        self._move()
        self._require_tokens()
        head = self.tree.head
        if row:
            full = self.model.engine.evaluate([head])[0]
            return dataclasses.replace(_said(head), row=full.clone())
        if head.prediction is None:
            self.model.engine.evaluate([head])
        return _said(head)

    def accept(self, branch: Branch | Sequence[int], tokens: int | None = None) -> str:
        """Let the first tokens of a branch (or any ids) stand; stops before an end token. Returns what it inserts."""
        healed = isinstance(branch, Branch) and branch.healed
        token_ids = self._ids_of(branch)
        if tokens is not None:
            if isinstance(tokens, bool) or not isinstance(tokens, int) or not 0 <= tokens <= len(token_ids):
                raise ValueError(f"tokens is {tokens!r}, and must be a whole number from 0 to {len(token_ids)}.")
            token_ids = token_ids[:tokens]
        ends = [index for index, token_id in enumerate(token_ids) if token_id in self.model.end_token_ids]
        token_ids = token_ids[: ends[0]] if ends else token_ids
        if not token_ids:
            return ""
        inserted = self._passage.accept(token_ids, replace_last=healed)
        self._move()
        return inserted

    def follow(self, text: str, accepted: Sequence[AcceptedTokens] = ()) -> None:
        """Take a text that somebody went on with elsewhere; what they accepted on the way keeps its tokens.

        What does not spell the text at its place is not believed, and taken for typed.
        """
        for one in accepted:
            self._follow(text, one)
        self.text = text

    def _follow(self, text: str, one: AcceptedTokens) -> None:
        known = all(0 <= token_id < self.model.vocabulary for token_id in one.token_ids)
        if not known or not one.token_ids or not self.model.end_token_ids.isdisjoint(one.token_ids):
            return
        self._passage.edit(text[: one.before])
        if one.healed:
            self._move()  # the last piece is re-opened below the head only
            typed = self._passage.reopened_bytes() if self.reopens else b""
            if not (typed and self.model.codec.bytes_of(one.token_ids[0]).startswith(typed)):
                return
        self._passage.accept(one.token_ids, replace_last=one.healed)
        if not text.startswith(self._passage.text):
            self._passage.pop(len(one.token_ids))

    def rewind(self, tokens: int = 1) -> None:
        """Take that many tokens back; a typed token that healing had replaced stands again."""
        most = len(self.token_ids) - self._passage.start_count
        if isinstance(tokens, bool) or not isinstance(tokens, int) or not 0 <= tokens <= most:
            raise ValueError(f"tokens is {tokens!r}, and must be a whole number from 0 to {most}.")
        self._passage.pop(tokens)
        self._move()

    def prune(self) -> None:
        """Forget everything that is not in the latest view."""
        self.model.engine.free(self.tree.prune())

    def compact(self) -> None:
        """Close the gaps in the cache."""
        self.model.engine.compact(self.tree)

    def check(self) -> None:
        """Raise AssertionError if tree, cache or text have lost what must always hold."""
        self.tree.check()
        self._passage.check()
        if self.tree.cache is not None:
            self.tree.cache.check()
        assert self.tree.token_ids(self.tree.head) == self._window()[0]

    def _steps(self, options: LookaheadOptions) -> Iterator[LookaheadStep]:
        context = self.model.context_length
        if context is not None and options.depth + self._passage.start_count >= context:
            raise ValueError(f"depth is {options.depth}, and this model sees only {context} tokens in all.")
        seen_from = self._move(options.depth)
        self._require_tokens()
        self._new_view()
        typed = self._reopened() if options.heal else None
        yield from self._grow(options, self.tree.head, self._passage.end, seen_from, typed)

    @takes_options(LookaheadOptions)
    def steps_after(self, branch: Branch, tokens: int, **options: Unpack[LookaheadKeywords]) -> Iterator[LookaheadStep]:
        """Yield the steps that `lookahead_steps` would yield after accepting this many tokens of a branch.

        The text stays as it is. Yields nothing where `after` returns None.
        """
        checked, after = LookaheadOptions.of(options), self.after(branch, tokens)
        if after is not None:
            yield from self._grow(checked, *after, self._seen_from, None)

    def after(self, branch: Branch, tokens: int) -> tuple[Node, TextEnd] | None:
        """The node that the head would be after accepting so much, and how the text would go on there.

        Nothing where accepting would move the window, since the model would read something else then.
        """
        length = len(self.token_ids)
        if self._left_out(length) != self._left_out(length + tokens - branch.healed):
            return None
        token_ids = self._ids_of(branch)[:tokens]
        base, spot = self.tree.head, self._passage.end
        skip = 0
        if branch.healed:
            assert base.parent is not None
            base, skip = base.parent, len(self.reopens.encode())
        for token_id in token_ids:
            _, spot = spot.decode(token_id, skip)
            skip = 0
        return self.tree.descend(base, token_ids), spot

    def _grow(
        self, options: LookaheadOptions, origin: Node, spot: TextEnd, seen_from: int, typed: ReopenedToken | None
    ) -> Iterator[LookaheadStep]:
        """Branches below a node, or in place of it where it is re-opened."""
        meter = CostMeter(self.model.engine, self.tree)
        options.check_vocabulary(self.model.vocabulary)
        view, stop = self.tree.view, self.model.end_token_ids
        to_read = len(self.model.engine.nodes_to_prefill(origin))
        scene = ResultContext(origin, spot, stop, options, typed, seen_from)
        line = None
        if options.speculate:
            self._memory.read(self.token_ids)
            line = self._memory.line
        place = GrowthContext(len(self.token_ids) - self.tree.head.depth, scene.complete(), line)
        for step in lookahead.lookahead(self.model.engine, origin, options, stop, typed, place):
            build = functools.partial(make_lookahead, step.leaves, meter.cost(), scene, step.start)
            yield LookaheadStep(to_read - step.tokens_to_read, step.tokens_to_read, build)
            if self.tree.view != view:
                raise LookaheadError("The text has changed while branches were growing below it; look ahead again.")

    def _new_view(self) -> None:
        """Begin another view, and forget the oldest of what nobody can see where that has become too much."""
        self.tree.new_view()
        over = self.tree.size - self.tree.head.depth - MOST_NODES
        if over > 0:
            self.model.engine.free(self.tree.prune(over + MOST_NODES // 4))

    def _ids_of(self, branch: Branch | Sequence[int]) -> Sequence[int]:
        if not isinstance(branch, Branch):
            return [_checked_id(token_id, self.model.vocabulary) for token_id in branch]
        if branch.origin is not self.tree.head:
            raise LookaheadError("That branch was grown from another text than the one that stands; look ahead again.")
        return branch.token_ids

    def _move(self, room: int = 0) -> int:
        """Bring the head to where the text ends; returns the character from which on the model reads."""
        self._room = max(self._room, room)
        token_ids, start = self._window()
        self.tree.move_head(self.tree.descend(self.tree.root, token_ids))
        self._seen_from = self._passage.tokens[start - 1].end if start else 0
        return self._seen_from

    def _window(self) -> tuple[list[int], int]:
        """The ids that the model reads, and how many it does not: none, unless the text would exceed its context.

        What is left out grows by a quarter of the context at a time, so that the cache lives through many edits.
        """
        token_ids = self.token_ids
        start = self._left_out(len(token_ids))
        return ([*token_ids[: self._passage.start_count], *token_ids[start:]] if start else token_ids), start

    def _left_out(self, length: int) -> int:
        """Up to where a text of so many tokens is left out."""
        return window_start(length, self.model.context_length, self._room, self._passage.start_count)

    def _reopened(self) -> ReopenedToken | None:
        """What healing has to begin with, or nothing where there is nothing to heal."""
        head, text = self.tree.head, self.reopens.encode()
        if not text:
            return None
        if self._typed is None or self._typed[0] is not head:
            self._typed = head, ReopenedToken(text, self.model.codec.tokens_starting_with(text))
        return self._typed[1]

    def _require_tokens(self) -> None:
        if not self.tree.head.depth:
            raise LookaheadError("There is nothing to go on from: this model has no start token, so write something.")


def _said(node: Node) -> Prediction:
    assert node.prediction is not None
    return node.prediction


def _checked_id(given: Any, vocabulary: int) -> int:
    if not 0 <= (token_id := as_token_id(given)) < vocabulary:
        raise ValueError(f"token_ids holds {given!r}, and must hold whole numbers from 0 to {vocabulary - 1}.")
    return token_id
