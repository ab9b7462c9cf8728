"""The drafters of one document and what they have learned from its text; no other document uses them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import torch

from lookahead_core.errors import LookaheadError, ModelError
from lookahead_core.model import Model
from lookahead_core.speculation.acceptance import sample_at
from lookahead_core.speculation.corpus import Corpus
from lookahead_core.speculation.draft_and_verify import Speculation
from lookahead_core.speculation.drafters.draft_model_drafter import Choose, DraftModelDrafter
from lookahead_core.speculation.drafters.heads_drafter import HeadsDrafter
from lookahead_core.speculation.drafters.protocol import Drafter, GuessAccuracy
from lookahead_core.speculation.drafters.registry import DRAFTERS
from lookahead_core.speculation.drafters.suffix_drafter import SuffixDrafter
from lookahead_core.speculation.heads_file import Heads, check_heads
from lookahead_core.speculation.ngram_index import NgramIndex
from lookahead_core.strategies.continuation import Continuation
from lookahead_core.strategies.rules import ModelRules
from lookahead_core.strategies.sampling import sample_token
from lookahead_core.strategies.stream_options import REJECTION, StreamOptions
from lookahead_core.tree import Node

MIN_BRANCH_DRAFT_PROBABILITY = 0.35
"""Minimum probability of a drafted token in branches of a lookahead."""


class DocumentDrafting:
    """The drafters of one document, which guess next tokens, and what its streams and lookaheads have taught them.

    That is an n-gram index of the text, a table of tokens that followed others, and how often guesses were right. Each
    `Document` makes its own.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.accuracy = GuessAccuracy()
        self._index = NgramIndex()
        self._drafters = {name: make(self._index) for name, make in DRAFTERS.items()}

    def speculation(self, options: StreamOptions, token_ids: Sequence[int], unread: int) -> Speculation | None:
        """Return the `Speculation`, which drafts tokens, for a new stream after `token_ids`, all tokens of the text.

        All its drafters have read these tokens. `unread` is the number of them that the model does not read. None if
        `speculate` is false, or is None and the engine is the uncached one, or if `max_new_tokens` is 1, after which
        nothing can be drafted. Raises ValueError or LookaheadError if heads, a corpus, a source or a draft model do not
        fit the model or the options, and LookaheadError if drafts are asked for and a server computes the model.
        """
        self._check(options)
        if self.model.address:
            own = any(not isinstance(drafter, str) for drafter in options.drafters)
            learned = options.heads or options.corpus or options.draft_model or options.source
            self.require_local(bool(options.speculate or learned or own))
            return None
        wanted = not self.model.engine_reason if options.speculate is None else options.speculate
        if not wanted or options.max_new_tokens == 1:
            return None
        drafters = [*self._listed(options), *self._learned(options, unread)]
        for drafter in drafters:
            drafter.read(token_ids)
        return self._speculation(drafters, separate_duplicates=options.speculate == REJECTION)

    def require_local(self, wanted: bool) -> None:
        """Raise LookaheadError if drafts are `wanted` and a server computes the model: it drafts by itself."""
        if wanted and self.model.address:
            raise LookaheadError(
                f"{self.model.name} is on a server, which makes drafts by itself: leave speculate and its options out."
            )

    def continuation(self, node: Node, tokens: int) -> Continuation:
        """Return a new greedy continuation below a node, with drafts; it has no tokens yet, and the caller grows it.

        It is for a branch of a lookahead; `tokens`, at least 1, is its maximum length. The n-gram index does not learn
        its tokens, which are not text; the table of successors and the accuracy of the guesses do learn from it.
        """
        model = self.model
        drafters: list[Drafter] = [SuffixDrafter(self._index, learns_from_passes=False), self._drafters["recycled"]]
        # A lookahead takes as many passes as its slowest branch: a token won in another branch is hardly worth a node.
        speculation = self._speculation(drafters, min_odds=MIN_BRANCH_DRAFT_PROBABILITY)
        options = StreamOptions(max_new_tokens=tokens)
        rules = ModelRules(options, model.end_token_ids, model.codec, model.vocabulary)
        return Continuation(node, options, rules, 0, speculation)

    def read(self, token_ids: Sequence[int]) -> None:
        """Add what is new in `token_ids`, all tokens of the text, to the n-gram index; it keeps earlier texts."""
        self._drafters["suffix"].read(token_ids)

    def _speculation(self, drafters: Sequence[Drafter], **options: Any) -> Speculation:
        model, costs = self.model, self.model.engine.pass_costs
        return Speculation(drafters, self.accuracy, costs, model.end_token_ids, model.vocabulary, **options)

    def _check(self, options: StreamOptions) -> None:
        """Raise an error if the option `heads`, `corpus` or `draft_model` has a wrong type or does not fit this model.

        ValueError for a wrong type, and if `corpus` or `source` is set and the drafter "suffix", the only one that uses
        them, is not in `drafters`; LookaheadError for one that does not fit.
        """
        heads, corpus = options.heads, options.corpus
        if heads is not None:
            if not isinstance(heads, Heads):
                raise ValueError(f"heads is {type(heads).__name__}, and must come from load_heads.")
            check_heads(heads, self.model)
        if corpus is not None:
            if not isinstance(corpus, Corpus):
                raise ValueError(f"corpus is {type(corpus).__name__}, and must come from load_corpus.")
            corpus.require(self.model)
        if options.draft_model is not None:
            require_same_tokens(self.model, options.draft_model)
        for name, is_set in (("corpus", corpus is not None), ("source", options.source)):
            if is_set and "suffix" not in options.drafters:
                raise ValueError(f"{name} is given, and only the drafter suffix looks into it: add it to drafters.")

    def _listed(self, options: StreamOptions) -> list[Drafter]:
        """Return the drafters of the option `drafters`, in order: for a name, this document's drafter of that name.

        Objects are returned as they are. For "suffix" it is one that also looks into the options `source` and `corpus`.
        """

        def of_this_document(drafter: str | Drafter) -> Drafter:
            if not isinstance(drafter, str):
                return drafter
            own = self._drafters[drafter]
            return own.with_indexes(self._quotable(options)) if isinstance(own, SuffixDrafter) else own

        return [of_this_document(drafter) for drafter in options.drafters]

    def _quotable(self, options: StreamOptions) -> list[NgramIndex]:
        """Return the n-gram indexes of the options `source` and `corpus`, in this order; empty if neither is set.

        That of the source is made anew. Raises TextError for a source if the model has no tokenizer.
        """
        indexes = []
        if options.source:
            source = NgramIndex()
            source.add([token.token_id for token in self.model.codec.encode(options.source, continuing=True)])
            indexes.append(source)
        if options.corpus is not None:
            indexes.append(options.corpus.index)
        return indexes

    def _learned(self, options: StreamOptions, unread: int) -> list[Drafter]:
        """Return new drafters for the options `heads` and `draft_model`, in this order; empty if neither is set.

        `unread` is the number of the text's tokens that the model does not read.
        """
        drafters: list[Drafter] = []
        if options.heads is not None:
            drafters.append(HeadsDrafter(options.heads, self.model))
        if options.draft_model is not None:
            vocabulary, choose = self.model.vocabulary, draft_chooser(options, unread)
            drafters.append(DraftModelDrafter(options.draft_model, vocabulary, choose, self.accuracy))
        return drafters


def require_same_tokens(model: Model, smaller: Any) -> None:
    """Raise an error unless `smaller` is a model whose token ids mean the same as those of `model`.

    ValueError if it is no `Model`; ModelError if the vocabularies of the tokenizers differ, if only one of the models
    has a tokenizer, or if neither has one and their vocabularies have different sizes.
    """
    if not isinstance(smaller, Model):
        raise ValueError(f"draft_model is {type(smaller).__name__}, and must be a model that load_model has loaded.")
    ours, theirs = model.tokenizer, smaller.tokenizer
    if (ours is None) != (theirs is None) or (ours is not None and ours.get_vocab() != theirs.get_vocab()):
        raise ModelError(
            f"{smaller.name} has another tokenizer than {model.name}, so its token ids mean other tokens; "
            "choose a smaller model of the same family."
        )
    if ours is None and model.vocabulary != smaller.vocabulary:
        raise ModelError(
            f"{smaller.name} has {smaller.vocabulary:,} tokens and {model.name} has {model.vocabulary:,}; "
            "choose a draft model with the same tokens."
        )


def draft_chooser(options: StreamOptions, unread: int) -> Choose:
    """Return a function that chooses a draft model's next token: (row of log-probabilities, path) -> (token id, odds).

    The row has the shape (vocabulary,). The path holds all token ids before the new token, except for the `unread` ones
    that the bigger model does not read. At temperature 0 the token is the likeliest one; otherwise it is sampled with
    the options' temperature and cuts, and with the noise that the bigger model will choose with. The odds are None,
    except with rejection sampling above temperature 0. They are then the probabilities that the token was drawn from,
    of shape (vocabulary,), and the noise is another: drafts must be independent of the numbers that accept them.
    """
    if not options.applied_temperature:
        return lambda row, path: (int(row.argmax()), None)
    seed, stream = options.seed or 0, options.stream

    def choose(row: torch.Tensor, path: Sequence[int]) -> tuple[int, torch.Tensor | None]:
        odds, position = options.cut_logprobs(row), len(path) + unread
        if options.speculate == REJECTION:
            probabilities = odds.exp()
            noise = random.Random(f"draft {seed} {stream} {position}").random()
            return sample_at(probabilities, noise), probabilities
        return sample_token(odds, seed=seed, stream=stream, position=position), None

    return choose
