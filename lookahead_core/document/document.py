"""`Document`: a text, the token tree of its possible continuations, and an engine that evaluates the tree."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from lookahead_core.document.branch_edit import BranchEdit, edit_steps
from lookahead_core.document.cost_meter import CostMeter
from lookahead_core.document.drafting import DocumentDrafting
from lookahead_core.document.generation_start import GenerationStart, while_text_stays
from lookahead_core.document.joint_lookahead import dispatched_steps
from lookahead_core.document.result_context import ResultContext, make_lookahead
from lookahead_core.document.results import Beams, BeamStep, Branch, Lookahead, LookaheadStep, NextWord
from lookahead_core.document.stream import Stream, stream_steps
from lookahead_core.engines.dispatch import dispatcher_of
from lookahead_core.engines.engine import Engine, predict
from lookahead_core.errors import NO_TOKENS, VIEW_ENDED, LookaheadError
from lookahead_core.model import Model
from lookahead_core.prediction import Prediction
from lookahead_core.steps import last_step
from lookahead_core.strategies import lookahead
from lookahead_core.strategies.beam import beam_search
from lookahead_core.strategies.beam_options import BeamOptions
from lookahead_core.strategies.branch_growth import Growth, GrowthContext, NextWordContext
from lookahead_core.strategies.healing import ReopenedToken
from lookahead_core.strategies.keywords import takes_options
from lookahead_core.strategies.lookahead_options import LookaheadOptions
from lookahead_core.strategies.next_word_leaves import NextWordBranches
from lookahead_core.strategies.next_word_search import MAX_TOKENS as MAX_WORD_TOKENS
from lookahead_core.strategies.rules import LogitRules
from lookahead_core.strategies.stream_options import StreamOptions
from lookahead_core.strategies.word_tokens import WordTokens
from lookahead_core.text.codec import check_text
from lookahead_core.text.context_window import window_start
from lookahead_core.text.passage import Passage, TextEnd
from lookahead_core.tree import Node, TokenTree
from lookahead_core.validation import as_token_id, check_integer, parse_options, short_repr

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from lookahead_core.strategies.keywords import BeamKeywords, LookaheadKeywords, StreamKeywords


@dataclass(frozen=True, slots=True)
class AcceptedTokens:
    """Tokens that a client has accepted into its own copy of the text; `Document.follow` keeps their ids."""

    before: int
    """Number of characters before these tokens; if `healed`, those of the replaced token are counted."""
    token_ids: tuple[int, ...]
    healed: bool = False
    """Whether the first of them replaces the last typed token, as accepting a healed branch does."""


MOST_NODES = 4000
"""Number of nodes off the trunk from which on a new result removes hidden ones: some tens of MB of predictions."""


class Document:
    """A text, and the methods that continue it with a model (look ahead, stream, search) or change it.

    Predictions stay in the document's token tree, and all methods reuse them; prefer one document to a new one for each
    text. A document may be used by one thread at a time; several documents of one model may be used in several threads.
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
        """Start from a text, or from token ids as they are, start tokens included; without both the text is empty.

        `opening` replaces the model's start tokens before a text: an instruction in its chat template, for example. It
        is not put before `token_ids`. `tree` is that of an earlier document of the same model that is no longer in use:
        its predictions are reused. Raises ValueError for a model or tree of another type, for text and token ids
        together and for a wrong id, and TextError for half of a surrogate pair, or for a text if the model has no
        tokenizer.
        """
        if not isinstance(model, Model):
            raise ValueError(f"model is {type(model).__name__}, and must be a model that load_model returned.")
        if not isinstance(tree, TokenTree | None):
            raise ValueError(f"tree is {type(tree).__name__}, and must be the tree of a document.")
        if text and token_ids is not None:
            raise ValueError("text and token_ids are both given; a document starts from one of them.")
        self.model = model
        self.tree = TokenTree() if tree is None else tree
        opening_ids = None if opening is None else _checked_opening(opening, model)
        self.passage = Passage(model.codec, model.start_ids, opening_ids)
        """The token ids of the text, each with the character that it reaches. Only the document changes it."""
        self.drafting = DocumentDrafting(model)
        """The drafters of this document, with what they have learned from it."""
        self.may_reopen = True
        """Whether `reopens` may have characters. False leaves out token healing, for a server that lacks the odds."""
        self._reopened: tuple[Node, ReopenedToken] | None = None
        """The last head that was healed, with its re-opened token: finding the candidates takes time."""
        self._words: WordTokens | None = None
        self._seen_from = 0
        self._reserved = 0
        """Largest number of tokens ever grown here: kept free, so that the context window does not move to and fro."""
        if token_ids is not None:
            self.passage.append(_checked_ids("token_ids", token_ids, model.vocabulary))
        elif model.tokenizer is not None:
            self.text = text
        elif text:
            model.codec.require_tokenizer()
        self._update_head()

    @property
    def text(self) -> str:
        """The text: what was typed and what was accepted. Raises TextError for a model without a tokenizer.

        Setting it is an edit: tokens before the word of the first change keep their ids, except the last of them, and
        their predictions are reused; the rest counts as typed and is tokenized anew. A lookahead that is still growing
        then ends with a LookaheadError. Raises ValueError unless the text is a string.
        """
        self.model.codec.require_tokenizer()
        return self.passage.text

    @text.setter
    def text(self, text: str) -> None:
        check_text(text)
        self.passage.edit(text)
        self._update_head()
        # Nodes below the old text are no longer visible, and may be forgotten.
        self.new_view()

    @property
    def token_ids(self) -> list[int]:
        """A new list of all token ids of the text, start tokens or opening included.

        Tokens before the context window, which the model does not read, are included too.
        """
        return self.passage.token_ids

    @property
    def reopens(self) -> str:
        """The characters of the last token that `heal=True` re-opens, so that branches may continue it within the word.

        Empty if it cannot be re-opened: it was accepted and not typed, the model reads no token before it, it does not
        spell exactly its characters, or the text does not end in a letter, mark, digit, space, tab or apostrophe. Also
        empty if `may_reopen` is False.
        """
        if not self.may_reopen:
            return ""
        head = self.tree.head
        return self.passage.reopened_bytes().decode() if head.parent is not None and head.parent.depth else ""

    @property
    def head(self) -> Node:
        """The tree's node at the end of the text, below which branches grow; the root if there is no token."""
        return self.tree.head

    @takes_options(LookaheadOptions)
    def lookahead(self, **options: Unpack[LookaheadKeywords]) -> Lookahead:
        """Return several continuations of the text, each of at most `depth` tokens; `k` and the mode say how many.

        The text stays as it is. With `odds="words"` a branch has at least its whole first word. `LookaheadKeywords`
        explains each option, `LookaheadOptions` holds the defaults. Raises ValueError for a wrong option, also for a
        `depth` that the model's context has no room for, and LookaheadError if there is no token to start from, or an
        option (`until`, `towards`, `avoid`, `odds`) needs a tokenizer and the model has none.
        """
        return last_step(self.lookahead_steps(**options)).result

    @takes_options(LookaheadOptions)
    def lookahead_steps(self, **options: Unpack[LookaheadKeywords]) -> Iterator[LookaheadStep]:
        """Yield a step after each forward pass of a lookahead; also when its first tokens are known, and at its end.

        The latter two come even if they needed no pass. The last step has the result that `lookahead` returns; the
        options and errors are the same. The generator may be abandoned at any step: the tree keeps the predictions made
        so far. It raises LookaheadError if `text` is set, or another lookahead, stream or beam search of this document
        begins, between its steps.
        """
        return self._steps(LookaheadOptions.of(options))

    def next_words(self, k: int = 10, *, heal: bool = False, banned: Collection[int] = ()) -> tuple[NextWord, ...]:
        """Return the k likeliest next words, likeliest first; k is 1 to 20. There may be fewer.

        A word's probability is that of all its tokenizations, and includes that the word ends there. If the text ends
        inside a word, next words may be completions of it. The options and errors are those of `lookahead`.
        """
        result = self.lookahead(k=k, depth=1, odds="words", heal=heal, banned=banned)
        return tuple(NextWord(branch.next_word or "", branch.share, branch.share_error) for branch in result.branches)

    @takes_options(StreamOptions)
    def stream(self, **options: Unpack[StreamKeywords]) -> Stream:
        """Return an iterator over one continuation, token by token, greedy or sampled; the text stays as it is.

        `for step in document.stream(...)`, or `document.stream(...).write()` to print it. It may be abandoned at any
        step. It ends with an end token, a stop condition, `max_new_tokens`, or where the model's context is full. It
        raises LookaheadError if the text up to its start changes meanwhile (accepting tokens does not count), and
        ValueError if the options exclude every token. The call itself raises ValueError for wrong options, and
        LookaheadError if there is no token to start from, or options do not fit the model. `StreamKeywords` explains
        each option, `StreamOptions` holds the defaults.
        """
        checked_options = parse_options(StreamOptions, options, "stream")
        start = self.generation_start(checked_options)
        reader = start.stream_reader(checked_options)
        steps = (step for _, step in stream_steps(self.model.engine, [reader]))
        guarded = while_text_stays([start], steps, lambda: reader.continuation.over)
        return Stream(guarded, start.cost, start.seen_from, reader.continuation.passes)

    @takes_options(StreamOptions)
    def odds(self, **options: Unpack[StreamKeywords]) -> torch.Tensor:
        """Return the natural log-probabilities that `stream` with these options draws its first token from.

        The tensor is one-dimensional, indexed by token id, float64 and on the CPU; excluded tokens have -inf. At
        temperature 0 the likeliest token has 0 and all others -inf. Makes a forward pass, and begins a new view as
        `stream` does. Raises ValueError if the options exclude every token, and LookaheadError if there is no token to
        start from.
        """
        checked_options = parse_options(StreamOptions, options, "odds")
        return self.generation_start(checked_options).odds(checked_options)

    @takes_options(BeamOptions)
    def beam_search(self, **options: Unpack[BeamKeywords]) -> Beams:
        """Return the result of a beam search after the text: its beams, best first, and the tree of its candidates.

        The text stays as it is. Where the model's context has less room than `max_new_tokens`, there are fewer levels.
        Raises ValueError for a wrong option, or if the options exclude every token so that no beam is left, and
        LookaheadError if there is no token to start from. `BeamKeywords` explains each option, `BeamOptions` holds the
        defaults.
        """
        return last_step(self.beam_search_steps(**options)).result

    @takes_options(BeamOptions)
    def beam_search_steps(self, **options: Unpack[BeamKeywords]) -> Iterator[BeamStep]:
        """Yield one step per level of a beam search (one more token for all beams); the last has the final result.

        The options and errors are those of `beam_search`; wrong options raise at the call, before the first step. The
        first step takes longest if the text is not in the cache yet. The generator may be abandoned at any step. It
        raises LookaheadError if the text up to its start changes meanwhile; accepting tokens does not count.
        """
        checked_options = parse_options(BeamOptions, options, "beam_search")
        start = self.generation_start(checked_options)
        search = start.beam_search(checked_options)
        steps = (start.beam_step(search) for _ in beam_search(self.model.engine, [search]))
        return while_text_stays([start], steps, lambda: not search.pending_nodes)

    def generation_start(self, rules: LogitRules) -> GenerationStart:
        """Return the end of the text as a start for streams and beam searches, and begin a new view of the tree.

        Moves the context window, if necessary, so that `rules.max_new_tokens` more tokens fit, or a quarter of the
        context if that is less; after a long opening one token of the text is read too. Of the rules only that number
        is used here. Raises LookaheadError if there is no token to start from, or if an opening leaves no room.
        """
        context = self.model.context_length
        reserved = rules.max_new_tokens
        if context is not None:
            # After a long opening less than a quarter may be free: one token of the text must be read too.
            free = context - self.passage.start_count - 1
            if free < 1:
                raise LookaheadError(f"This model sees {context:,} tokens in all: shorten what comes before the text.")
            reserved = min(reserved, max(1, context // 4), free)
        seen_from = self._update_head(reserved)
        self._require_tokens()
        self.new_view()
        return GenerationStart(
            self.model,
            self.tree.head,
            self.passage.end,
            self.passage.text,
            tuple(self.token_ids),
            seen_from,
            lambda: self.token_ids,
            lambda: self.passage.removals,
            self.drafting,
        )

    def predict(self, *, row: bool = False) -> Prediction:
        """Return the model's prediction of the token after the text, before any options.

        With `row=True`, its field `row` is a float32 tensor of all natural log-probabilities, of shape (vocabulary,);
        otherwise it is None, and no forward pass is made if the prediction is known. Raises LookaheadError if there is
        no token to start from.
        """
        self._update_head()
        self._require_tokens()
        head = self.tree.head
        if row:
            full = self.model.engine.evaluate([head])[0]
            return dataclasses.replace(_prediction_of(head), row=full.clone())
        if head.prediction is None:
            predict(self.model.engine, [head])
        return _prediction_of(head)

    def accept(self, branch: Branch | Sequence[int], tokens: int | None = None) -> str:
        """Append the first `tokens` tokens of a branch, or of any token ids, to the text; with None, all of them.

        The first end token among them, and all after it, are left out. A healed branch replaces the last typed token.
        Returns the inserted characters, which may be none. Raises LookaheadError if a branch was not grown from the
        present end of the text, and ValueError for an unknown id or a number that is negative or too large.
        """
        healed = isinstance(branch, Branch) and branch.healed
        token_ids = self.token_ids_of(branch)
        if tokens is not None:
            check_integer("tokens", tokens, 0, len(token_ids))
            token_ids = token_ids[:tokens]
        ends = [index for index, token_id in enumerate(token_ids) if token_id in self.model.end_token_ids]
        token_ids = token_ids[: ends[0]] if ends else token_ids
        if not token_ids:
            return ""
        inserted = self.passage.accept(token_ids, replace_last=healed)
        self._update_head()
        return inserted

    def follow(self, text: str, accepted: Sequence[AcceptedTokens] = ()) -> None:
        """Set the text to one that a client has continued: an edit in which tokens that it accepted keep their ids.

        `accepted` is in the order of the text. An entry is ignored, and its characters count as typed, if its tokens do
        not spell the text at `before`, are unknown to the model, hold an end token or a token without text, or if it is
        healed and its first token does not begin with the typed token's text. Raises as setting `text` does.
        """
        check_text(text)
        for part in accepted:
            self._follow(text, part)
        self.text = text

    def _follow(self, text: str, accepted: AcceptedTokens) -> None:
        token_ids = accepted.token_ids
        known = all(0 <= token_id < self.model.vocabulary for token_id in token_ids)
        if not known or not token_ids or not self.model.end_token_ids.isdisjoint(token_ids):
            return
        # Control tokens spell nothing, so a link could hide any number of them behind a text.
        if not all(map(self.model.codec.bytes_of, token_ids)):
            return
        self.passage.edit(text[: accepted.before])
        if accepted.healed:
            typed = self.passage.reopened_bytes()
            if not (typed and self.model.codec.bytes_of(token_ids[0]).startswith(typed)):
                return
            self._update_head()  # `reopens` looks at the head
            if not self.reopens:
                return
        self.passage.accept(token_ids, replace_last=accepted.healed)
        if not text.startswith(self.passage.text):
            self.passage.pop(len(token_ids))

    def rewind(self, tokens: int = 1) -> None:
        """Remove the last `tokens` tokens from the text, one by one.

        A typed token that a removed token of a healed branch had replaced comes back, and is then the last one. Raises
        ValueError for a negative number or more tokens than the text has; start tokens and an opening do not count.
        """
        check_integer("tokens", tokens, 0, len(self.token_ids) - self.passage.start_count)
        self.passage.pop(tokens)
        self._update_head()

    def prune(self) -> None:
        """Remove the hidden nodes from the tree, and their keys and values from the KV cache; the text stays.

        Kept are the path of the text, nodes made or evaluated in the current view (since the latest lookahead, stream,
        beam search or edit), and nodes in use by a stream or beam search.
        """
        self.model.engine.free(self.tree.prune())

    def compact(self) -> None:
        """Close the gaps that removed nodes have left in the KV cache; free memory if less than half of it is used."""
        self.model.engine.compact(self.tree)

    def check(self) -> None:
        """Raise AssertionError if an invariant of the tree, the KV cache or the text is violated; for tests."""
        self.tree.check()
        self.passage.check()
        if self.tree.cache is not None:
            self.tree.cache.check()
        assert self.tree.token_ids(self.tree.head) == self._tokens_read()[0]

    def require_room(self, depth: int) -> None:
        """Raise ValueError unless the context has room for the opening, one token of the text, and `depth` more."""
        context = self.model.context_length
        if context is not None and depth + self.passage.start_count >= context:
            raise ValueError(f"depth is {depth}, and this model sees only {context} tokens in all.")

    @property
    def reserved(self) -> int:
        """Number of tokens kept free in the model's context: the most that were ever grown here."""
        return self._reserved

    def resume(self, passage: Passage, reserved: int) -> None:
        """Take over the tokens and the `reserved` of another document of the same model, and begin a new view."""
        self.passage, self._reserved = passage, reserved
        self._update_head()
        self.new_view()

    def _steps(self, options: LookaheadOptions) -> Iterator[LookaheadStep]:
        if dispatcher_of(self.model.engine) is None:
            yield from self.begin_lookahead(options)(self.model.engine)
        else:
            yield from dispatched_steps(self, options)

    def begin_lookahead(self, options: LookaheadOptions) -> Callable[[Engine], Iterator[LookaheadStep]]:
        """Begin a new view, and return a function that takes an engine and yields the steps of a lookahead with it.

        The function may be called several times, as long as no other view begins; predictions in the tree are not
        computed again. Raises the errors of `lookahead_steps`.
        """
        self.require_room(options.depth)
        seen_from = self._update_head(options.depth)
        self._require_tokens()
        self.new_view()
        reopened = self.reopened_token() if options.heal else None
        head, end = self.tree.head, self.passage.end
        return lambda engine: self.grow_branches(options, head, end, seen_from, reopened, engine)

    @takes_options(LookaheadOptions)
    def steps_after(self, branch: Branch, tokens: int, **options: Unpack[LookaheadKeywords]) -> Iterator[LookaheadStep]:
        """Yield the steps that `lookahead_steps` would yield after accepting the first `tokens` tokens of a branch.

        The text stays as it is, and no new view begins; `heal` has no effect. Yields nothing if accepting would move
        the context window. Otherwise raises LookaheadError if the branch was not grown from the present end of the
        text, or between two steps if a new view has begun. `tokens` must not reach beyond an end token, and must be at
        least 1 for a healed branch.
        """
        checked_options, after = LookaheadOptions.of(options), self.after(branch, tokens)
        if after is not None:
            yield from self.grow_branches(checked_options, *after, self._seen_from)

    @takes_options(LookaheadOptions)
    def continue_branch(
        self, branch: Branch | Sequence[int], text: str, tokens: int = 0, **options: Unpack[LookaheadKeywords]
    ) -> Branch:
        """Return a new branch: the first `tokens` of a branch or of token ids, then `text`, continued greedily.

        The document's text stays as it is; `accept` takes the new branch like any other. The option `depth` is the
        maximum number of tokens after `text`; `until` applies to these tokens. `banned` and `avoid` exclude tokens
        after `text`, and all probabilities are those without them; an excluded token of `text` has the model's own.
        Raises ValueError for an empty or too long text or a wrong option, and LookaheadError if the branch was not
        grown from the present end of the text.
        """
        checked_options, kept = LookaheadOptions.of(options), self.token_ids_of(branch)
        check_integer("tokens", tokens, 0, len(kept))
        edit = BranchEdit(tuple(kept[:tokens]), text, isinstance(branch, Branch) and branch.healed)
        edited = last_step(edit_steps(self, edit, checked_options))
        assert edited is not None
        return edited

    def descend(self, token_ids: Sequence[int], healed: bool) -> tuple[Node, TextEnd]:
        """Return the node and the `TextEnd` at the end of a path below the head; missing nodes are created.

        If `healed`, the path begins below the head's parent, and its first token replaces the last typed token.
        """
        base, text_end, skip = self.tree.head, self.passage.end, 0
        if healed:
            assert base.parent is not None
            base, skip = base.parent, len(self.reopens.encode())
        for token_id in token_ids:
            _, text_end = text_end.decode(token_id, skip)
            skip = 0
        return self.tree.descend(base, token_ids), text_end

    def after(self, branch: Branch, tokens: int) -> tuple[Node, TextEnd] | None:
        """Return the node and the `TextEnd` at the end of the text plus the first `tokens` tokens of a branch.

        The text stays as it is; missing nodes are created. Unlike `accept`, it does not stop before an end token.
        `tokens` must be at least 1 for a healed branch. None if accepting these tokens would move the context window:
        the model would then read another text. Otherwise raises LookaheadError if the branch was not grown from the
        present end of the text.
        """
        return self.after_tokens(self.token_ids_of(branch)[:tokens], branch.healed)

    def after_tokens(self, token_ids: Sequence[int], healed: bool) -> tuple[Node, TextEnd] | None:
        """Return the same for these tokens, whichever branch they are of; if `healed`, the first replaces the last."""
        length = len(self.token_ids)
        if self._tokens_left_out(length) != self._tokens_left_out(length + len(token_ids) - healed):
            return None
        return self.descend(token_ids, healed)

    def begin_below(
        self, options: LookaheadOptions, node: Node, text_end: TextEnd
    ) -> Callable[[Engine], Iterator[LookaheadStep]]:
        """Return a function like that of `begin_lookahead`, as if the text ended at a node of `after_tokens`.

        No new view begins, and `heal` has no effect.
        """
        seen_from = self._seen_from
        return lambda engine: self.grow_branches(options, node, text_end, seen_from, None, engine)

    def grow_branches(
        self,
        options: LookaheadOptions,
        origin: Node,
        text_end: TextEnd,
        seen_from: int,
        reopened: ReopenedToken | None = None,
        engine: Engine | None = None,
    ) -> Iterator[LookaheadStep]:
        """Yield the steps of a lookahead below `origin`, any node of the tree but its root; begin no new view.

        With `reopened`, `origin` is the last typed token and branches replace it: they hang below its parent.
        `text_end` is the end of the text at `origin`. `seen_from` is the index of the first character inside the
        context window and is only reported. `engine` makes the passes; None is the model's own. Raises LookaheadError
        between two steps if another view has begun, and before the first step ValueError for a banned id that the model
        does not have, or TextError if `until`, `towards`, `avoid` or `odds` needs a tokenizer.
        """
        engine = self.model.engine if engine is None else engine
        meter = CostMeter(engine, self.tree)
        options.check_vocabulary(self.model.vocabulary)
        view, stop = self.tree.view, self.model.end_token_ids
        to_read = len(engine.nodes_to_prefill(origin))
        context = ResultContext(origin, text_end, stop, options, reopened, seen_from)
        draft = None
        if options.speculate:
            self.drafting.require_local(True)
            self.drafting.read(self.token_ids)
            draft = self.drafting.continuation
        words = self.word_tokens(options.word) if options.word else None
        unread, next_words = len(self.token_ids) - self.tree.head.depth, self._next_word_context(context)
        reopened_id = origin.token_id if reopened else None
        growth_context = GrowthContext(
            unread, context.complete(), draft, words, context.words_of, next_words, reopened_id
        )
        for step in lookahead.lookahead(engine, origin, options, stop, reopened, growth_context):
            build = functools.partial(
                make_lookahead, step.leaves, meter.cost(), context, step.start, step.word, step.compared_by
            )
            yield LookaheadStep(to_read - step.tokens_to_read, step.tokens_to_read, build)
            if self.tree.view != view:
                raise LookaheadError(VIEW_ENDED)

    def word_tokens(self, word: str) -> WordTokens:
        """Return the `WordTokens` of a word. The last one is kept, since finding the tokens takes time."""
        if self._words is None or self._words.matcher.word != word:
            model = self.model
            self._words = WordTokens(word, model.codec, model.end_token_ids, model.vocabulary)
        return self._words

    def next_word_branches(self, origin: Node, text_end: TextEnd, options: LookaheadOptions) -> NextWordBranches:
        """Return a next-word search after `origin`, any node of the tree but its root.

        `text_end` is the end of the text at that node. `options` must have `odds="words"`. Raises TextError without a
        tokenizer.
        """
        stop = self.model.end_token_ids
        context = GrowthContext(next_words=self._next_word_context(ResultContext(origin, text_end, stop, options)))
        return NextWordBranches(Growth(self.model.engine, options, stop, context), origin, None)

    def _next_word_context(self, context: ResultContext) -> NextWordContext | None:
        """Return the context of a next-word search; None for token odds. Raises TextError without a tokenizer."""
        if context.options.odds == "tokens":
            return None
        self.model.codec.require_tokenizer()
        length = self.model.context_length
        room = MAX_WORD_TOKENS if length is None else length - context.origin.depth
        return NextWordContext(context.text_end, context.before, room)

    def new_view(self) -> None:
        """Begin a new view: hide all nodes off the trunk, the path of the text, until results show them again.

        If more than `MOST_NODES` nodes lie off the trunk, hidden ones that no stream or beam search uses are removed,
        least recently shown first, until three quarters of `MOST_NODES` are left there, or no such node is. A lookahead
        that is still growing then raises LookaheadError.
        """
        self.tree.new_view()
        over = self.tree.size - self.tree.head.depth - MOST_NODES
        if over > 0:
            self.model.engine.free(self.tree.prune(over + MOST_NODES // 4))

    def token_ids_of(self, branch: Branch | Sequence[int]) -> Sequence[int]:
        """Return a branch's token ids, or the given ids after a check against the vocabulary.

        Raises LookaheadError if the branch was not grown from the present end of the text.
        """
        if not isinstance(branch, Branch):
            return _checked_ids("token_ids", branch, self.model.vocabulary)
        if branch.origin is not self.tree.head:
            raise LookaheadError("That branch was grown from another text; look ahead again.")
        return branch.token_ids

    def _update_head(self, reserved: int = 0) -> int:
        """Move the tree's head to the node of the text's last token; return where the model begins to read.

        That is the index of a character, 0 if it reads the whole text. Missing nodes are created. `reserved` is the
        number of tokens to keep free in the context; the largest number of all calls so far counts.
        """
        self._reserved = max(self._reserved, reserved)
        token_ids, start = self._tokens_read()
        self.tree.move_head(self.tree.descend(self.tree.root, token_ids))
        self._seen_from = self.passage.tokens[start - 1].end if start else 0
        return self._seen_from

    def _tokens_read(self) -> tuple[list[int], int]:
        """Return the ids of the tokens that the model reads: start tokens, and the text tokens in the context window.

        Also returns the index in `self.token_ids` of the first of these text tokens, or 0 if the model reads all.
        """
        token_ids = self.token_ids
        start = self._tokens_left_out(len(token_ids))
        return ([*token_ids[: self.passage.start_count], *token_ids[start:]] if start else token_ids), start

    def _tokens_left_out(self, length: int) -> int:
        """Return at which token of a text of `length` tokens the context window would begin; 0 if all are read.

        `length` and the returned index count the start tokens too, which are read in addition to the window.
        """
        return window_start(length, self.model.context_length, self._reserved, self.passage.start_count)

    def reopened_token(self) -> ReopenedToken | None:
        """Return the text's last token, and all tokens that begin with its text; None if `reopens` is empty."""
        head, text = self.tree.head, self.reopens.encode()
        if not text:
            return None
        if self._reopened is None or self._reopened[0] is not head:
            # A tokenizer may have more tokens than the model's vocabulary.
            found = self.model.codec.tokens_starting_with(text)
            self._reopened = head, ReopenedToken(text, [one for one in found if one < self.model.vocabulary])
        return self._reopened[1]

    def _require_tokens(self) -> None:
        if not self.tree.head.depth:
            raise LookaheadError(NO_TOKENS)


def _prediction_of(node: Node) -> Prediction:
    assert node.prediction is not None
    return node.prediction


def _checked_opening(opening: Any, model: Model) -> tuple[int, ...]:
    """Return the ids of an opening; raise ValueError for wrong ones, or if they fill the model's whole context."""
    token_ids, context = tuple(_checked_ids("opening", opening, model.vocabulary)), model.context_length
    if context is not None and len(token_ids) >= context:
        raise ValueError(f"opening has {len(token_ids):,} tokens, and this model sees {context:,} in all; shorten it.")
    return token_ids


def _checked_ids(name: str, values: Any, vocabulary: int) -> list[int]:
    """Return the values as ints; raise ValueError, with the argument's `name`, unless all are ids below `vocabulary`.

    An integer of an array library counts as one, and a bool does not.
    """
    if not isinstance(values, Iterable):
        raise ValueError(f"{name} is {short_repr(values)}, and must be a list of token ids.")
    token_ids = []
    for value in values:
        if not 0 <= (token_id := as_token_id(value)) < vocabulary:
            raise ValueError(
                f"{name} holds {short_repr(value)}, and must hold whole numbers from 0 to {vocabulary - 1}."
            )
        token_ids.append(token_id)
    return token_ids
