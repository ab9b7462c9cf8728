"""What a document's drafters have learnt from it: its own, nobody else's, and gone when it is."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import torch

from lookahead_core.errors import ModelError
from lookahead_core.model import Model
from lookahead_core.speculation.acceptance import drawn
from lookahead_core.speculation.corpus import Corpus
from lookahead_core.speculation.draft_and_verify import Speculation
from lookahead_core.speculation.draft_model import Choose, DraftModelDrafter
from lookahead_core.speculation.drafters import Drafter, GuessAccuracy, SuccessorDrafter, SuffixDrafter
from lookahead_core.speculation.heads import HeadsDrafter
from lookahead_core.speculation.heads_file import Heads, check_heads
from lookahead_core.speculation.ngram_index import NgramIndex
from lookahead_core.strategies.decode import REJECTION, Continuation, StreamOptions
from lookahead_core.strategies.rules import ModelRules
from lookahead_core.strategies.sampling import draw
from lookahead_core.tree import Node

SURE_ENOUGH = 0.35
"""Only guesses as likely as this are drafted for branches."""


class DocumentDrafting:
    """The drafters of one document."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.trust = GuessAccuracy()
        self._index = NgramIndex()
        self._suffix = SuffixDrafter(self._index)
        self._recycled = SuccessorDrafter()

    def speculation(self, options: StreamOptions, token_ids: Sequence[int], unread: int) -> Speculation | None:
        """Drafts for a stream with these options, behind this text; None where it is not to speculate, or where one
        token is asked for, behind which nothing can be drafted."""
        self._require(options)
        wanted = not self.model.engine_reason if options.speculate is None else options.speculate
        if not wanted or options.max_new_tokens == 1:
            return None
        drafters = [*self._named(options), *self._given(options, unread)]
        for drafter in drafters:
            drafter.read(token_ids)
        return self._speculation(drafters, apart=options.speculate == REJECTION)

    def line(self, node: Node, tokens: int) -> Continuation:
        """The likeliest tokens after a node, so many, with drafts. What is only looked at is not taken for text; what
        its passes have computed, and how often guesses were right, is kept all the same.
        """
        model = self.model
        drafters: list[Drafter] = [SuffixDrafter(self._index, hears=False), self._recycled]
        # A view takes as many passes as its slowest branch: a token won in another one is hardly worth a node.
        speculation = self._speculation(drafters, least=SURE_ENOUGH)
        options = StreamOptions(max_new_tokens=tokens)
        return Continuation(
            node, options, ModelRules(options, model.end_token_ids, model.codec, model.vocabulary), 0, speculation
        )

    def read(self, token_ids: Sequence[int]) -> None:
        """Take the text as it stands."""
        self._suffix.read(token_ids)

    def _speculation(self, drafters: Sequence[Drafter], **how: Any) -> Speculation:
        model = self.model
        return Speculation(drafters, self.trust, model.engine.pass_costs, model.end_token_ids, model.vocabulary, **how)

    def _require(self, options: StreamOptions) -> None:
        """Raise where something is given that this model cannot use, or that nobody would use, drafts wanted or not."""
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
            require_alike(self.model, options.draft_model)
        for name, given in (("corpus", corpus is not None), ("source", options.source)):
            if given and "suffix" not in options.drafters:
                raise ValueError(f"{name} is given, and only the drafter suffix looks into it: add it to drafters.")

    def _named(self, options: StreamOptions) -> list[Drafter]:
        def make(drafter: str | Drafter) -> Drafter:
            if not isinstance(drafter, str):
                return drafter
            return self._recycled if drafter == "recycled" else self._suffix.beside(self._others(options))

        return [make(drafter) for drafter in options.drafters]

    def _others(self, options: StreamOptions) -> list[NgramIndex]:
        """What was given to be quoted, beside the text itself."""
        others = []
        if options.source:
            source = NgramIndex()
            source.add([token.token_id for token in self.model.codec.encode(options.source, continuing=True)])
            others.append(source)
        if options.corpus is not None:
            others.append(options.corpus.index)
        return others

    def _given(self, options: StreamOptions, unread: int) -> list[Drafter]:
        given: list[Drafter] = []
        if options.heads is not None:
            given.append(HeadsDrafter(options.heads, self.model))
        if options.draft_model is not None:
            vocabulary, choose = self.model.vocabulary, _chooser(options, unread)
            given.append(DraftModelDrafter(options.draft_model, vocabulary, choose, self.trust))
        return given


def require_alike(model: Model, little: Any) -> None:
    """Raise where a model cannot draft for another one."""
    if not isinstance(little, Model):
        raise ValueError(f"draft_model is {type(little).__name__}, and must be a model that load_model has loaded.")
    ours, theirs = model.tokenizer, little.tokenizer
    if (ours is None) != (theirs is None) or (ours is not None and ours.get_vocab() != theirs.get_vocab()):
        raise ModelError(
            f"{little.name} has another tokenizer than {model.name}, so what it drafts means something else; "
            "choose a smaller model of the same family."
        )
    if ours is None and model.vocabulary != little.vocabulary:
        raise ModelError(
            f"{little.name} has {little.vocabulary:,} tokens and {model.name} has {model.vocabulary:,}; "
            "choose a draft model with the same tokens."
        )


def _chooser(options: StreamOptions, unread: int) -> Choose:
    """How a smaller model chooses so that the bigger one often chooses the same: with the same noise.

    Under rejection it has dice of its own for each place: its draws must tell nothing of those that judge them.
    """
    if not options.applied_temperature:
        return lambda row, path: (int(row.argmax()), None)
    seed, stream = options.seed or 0, options.stream

    def choose(row: torch.Tensor, path: Sequence[int]) -> tuple[int, torch.Tensor | None]:
        odds, position = options.cut(row), len(path) + unread
        if options.speculate == REJECTION:
            source = odds.exp()
            return drawn(source, random.Random(f"draft {seed} {stream} {position}").random()), source
        return draw(odds, seed=seed, stream=stream, position=position), None

    return choose
