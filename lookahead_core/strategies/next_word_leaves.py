"""Branches that begin with the likeliest next words: runs the word search, and makes leaves of the words."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import torch

from lookahead_core.strategies.branch_growth import BranchLeaf, BranchStart, Growth
from lookahead_core.strategies.healing import ReopenedToken, evaluate_healed_start, known_healed_start
from lookahead_core.strategies.next_word_odds import NextWordOdds
from lookahead_core.strategies.next_word_rows import KEPT, KEPT_AT_FIRST, WordRow, word_ends, word_row
from lookahead_core.strategies.next_word_search import Beginning, NextWordSearch, node_of
from lookahead_core.tree import Node

MAX_OTHERS = 64
"""Maximum number of words in a step that no branch begins with."""


def word_leaves(growth: Growth, head: Node, typed: ReopenedToken | None) -> Iterator[list[BranchLeaf]]:
    """Search the k likeliest next words; yield their leaves after each forward pass and at the end.

    Before the end, the words and their odds are those known so far. A leaf holds all tokens of its word, even more than
    `depth`, and then the token that shows the word's end if `depth` allows it. Its `next_word` has the odds. With
    `typed`, the last typed token, `head`, is re-opened: leaves begin below its parent, and a word is the text that is
    inserted. Needs `growth.context.next_words`, and sets `growth.start`.
    """
    words = NextWordBranches(growth, head, typed)
    while pending := words.pending():
        words.evaluate(pending)
        words.take_known()
        yield words.leaves()
    words.search.find_others()
    yield words.leaves()


@dataclass(slots=True, eq=False)
class NextWordBranches:
    """The next-word search of one lookahead: stores its rows in the tree, and makes leaves of its words.

    To advance it: evaluate what `pending` returns with `evaluate` or `store_rows`, then call `take_known`.
    """

    growth: Growth
    head: Node
    typed: ReopenedToken | None
    search: NextWordSearch = field(init=False)
    root: Beginning = field(init=False)
    """The beginning without tokens, at the end of the text or before the re-opened token."""
    _wanted: Sequence[Beginning] = field(init=False, default=())

    def __post_init__(self) -> None:
        context = self.growth.context.next_words
        assert context is not None
        k, ends = self.growth.options.k, self.growth.end_token_ids
        self.search = NextWordSearch(context.text_end.codec, context.before, k, ends, context.most_tokens)
        typed = self.typed.text if self.typed else b""
        base = self.head.parent if self.typed else self.head
        assert base is not None
        self.root = Beginning(base, (), (), 1.0, "", context.text_end, typed)
        self.search.add(self.root)

    def pending(self) -> list[Beginning]:
        """Return the beginnings that the next forward pass must evaluate; none if the search is over.

        While the tree has all rows that the search needs, they are taken from there without a pass.
        """
        while True:
            self._wanted = self.search.wanted()
            unknown = [each for each in self._wanted if not self._is_known(each)]
            if unknown or not self._wanted:
                return unknown
            self.take_known()

    def take_known(self) -> None:
        """Pass the rows that the search wants from the tree to it. What `pending` returned must be evaluated before."""
        self.search.rounds += 1
        for beginning in self._wanted:
            memo = node_of(beginning).memo
            assert memo is not None
            row: WordRow = memo[self._key]
            self.search.take(beginning, row)

    def _is_known(self, beginning: Beginning) -> bool:
        node = node_of(beginning)
        if self._key not in (node.memo or {}):
            return False
        if beginning is self.root and self.typed is not None:
            return known_healed_start(self.growth, self.head, self.typed) is not None
        return self.growth.prediction_after(node) is not None

    def evaluate(self, beginnings: Sequence[Beginning]) -> None:
        """Compute the rows of these beginnings in one forward pass, and store them in the tree."""
        if beginnings == [self.root] and self.typed is not None:
            _, first_row, typed_row = evaluate_healed_start(self.growth, self.head, self.typed)
            typed_token = replace(self.root, parent=self.root.parent, token_ids=(self.head.token_id,), typed=b"")
            self._store(self.root, first_row)
            self._store(typed_token, typed_row)
        else:
            self.store_rows(beginnings, self.growth.engine.evaluate([node_of(each) for each in beginnings]))

    def store_rows(self, beginnings: Sequence[Beginning], rows: Iterable[torch.Tensor]) -> None:
        """Store the `WordRow` of each beginning in the tree, made from its row of log-probabilities."""
        for beginning, row in zip(beginnings, rows, strict=True):
            self._store(beginning, self.growth.note_without_banned(node_of(beginning), row))

    def _store(self, beginning: Beginning, row: torch.Tensor) -> None:
        codec, before = self.search.codec, self.search.before
        ends = word_ends(codec.beginnings, row, beginning.characters, before, beginning.text_end.partial)
        node = node_of(beginning)
        most = KEPT if beginning.characters else KEPT_AT_FIRST
        node.tree.memoize(node, self._key, word_row(row, ends, self.growth.end_token_ids, most))

    @property
    def _key(self) -> Hashable:
        """The key of a `WordRow` in a node's memo: all that it depends on besides the node's path."""
        typed = (self.typed.text, self.head.token_id) if self.typed else ()
        return "word row", self.head.depth, typed, self.growth.banned

    def leaves(self) -> list[BranchLeaf]:
        """Return the leaves of the k likeliest words so far, the likeliest first, and set `growth.start`."""
        k = self.growth.options.k
        words = self.search.words(k + MAX_OTHERS)
        self.growth.start = replace(self._start(), other_words=tuple(words[k:]))
        return self.growth.distinct([self._leaf(word) for word in words[:k]])

    def _start(self) -> BranchStart:
        if self.typed is None:
            prediction = self.growth.prediction_after(self.head)
            assert prediction is not None
            return BranchStart(prediction)
        start = known_healed_start(self.growth, self.head, self.typed)
        assert start is not None
        return start

    def _leaf(self, word: NextWordOdds) -> BranchLeaf:
        growth, most = self.growth, max(self.growth.options.depth, word.size)
        leaf = BranchLeaf(self.root.parent, (), (), typed=self.root.typed, next_word=word)
        prediction = self._start().prediction
        for count, (token_id, logprob) in enumerate(list(zip(word.token_ids, word.logprobs, strict=True))[:most], 1):
            inserts_nothing = self.typed is not None and not leaf.token_ids and token_id == self.head.token_id
            if inserts_nothing or count < word.size:
                leaf = leaf.extended(token_id, logprob, prediction)
            else:
                grown = growth.extended(leaf, token_id, logprob, prediction)
                # A line or a sentence may end within the word, as in a blank line. Its share is that of the whole word.
                is_cut = len(grown.token_ids) < word.size
                leaf = leaf.extended(token_id, logprob, prediction).completed(word.size) if is_cut else grown
            if leaf.complete:
                break
            after = growth.prediction_after(leaf.node)
            if after is not None:
                prediction = after
        return leaf
