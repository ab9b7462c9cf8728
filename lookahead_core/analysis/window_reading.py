"""`WindowReader`: evaluates a text window by window, and computes a fact about each of its tokens."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Generic, TypeVar, cast

from lookahead_core.analysis.text_spans import ReadingWindow, node_before
from lookahead_core.document.document import Document
from lookahead_core.engines.engine import MAX_LAST_CHUNK, PREFILL_CHUNK, Engine
from lookahead_core.errors import LookaheadError
from lookahead_core.tree import Node

MAX_LOGITS = 40_000_000
"""Maximum number of logits in memory at once: a row has one for each token of the vocabulary."""
T = TypeVar("T")


class WindowReader(Generic[T]):
    """Computes a value of type T, a fact, for each token of a text that another token precedes.

    Facts are kept in the tree: a second reader with the same key needs no passes for them.
    """

    def __init__(self, facts_of: Callable[[Engine, list[Node], list[int]], Iterable[T]], key: Hashable) -> None:
        """`facts_of` takes an engine, nodes, and the id of the token after each; it returns their facts, never None.

        `key` is different for each kind of fact.
        """
        self._facts_of = facts_of
        self._key = key
        self.facts: dict[int, T] = {}
        """The facts so far, by index in `document.token_ids`."""

    def read(self, document: Document, windows: Sequence[ReadingWindow]) -> Iterator[int]:
        """Evaluate the windows in order; yield after each forward pass how many of their tokens are done.

        Afterwards `facts` has all facts. A new view of the tree begins with each window. The generator may be
        abandoned: the tree keeps what was computed. Raises LookaheadError if the text changes between two steps.
        """
        token_ids, done = document.token_ids, 0
        for window in windows:
            document.new_view()
            for read in self._read_window(document, window):
                yield done + read
                if document.token_ids != token_ids:
                    raise LookaheadError("The text has changed while it was read; read it again.")
            done += window.end - window.begin

    def _read_window(self, document: Document, window: ReadingWindow) -> Iterator[int]:
        """Evaluate a window; yield after each forward pass how many of its tokens are done, and add their facts."""
        engine, tree, token_ids = document.model.engine, document.tree, document.token_ids
        path = tree.path(node_before(document, window.end - 1, window.start))
        # The fact of a token comes from the logits of the node before it.
        token_after = {node: token for token, node in enumerate(path, window.end - len(path)) if token >= window.begin}
        pending = [node for node, token in token_after.items() if self._known(node, token_ids[token]) is None]
        due = dict.fromkeys([*engine.nodes_to_prefill(pending[0]), *pending]) if pending else {}
        for chunk in _chunks(list(due), document.model.vocabulary):
            nodes = [node for node in chunk if node in token_after]
            if nodes:
                next_ids = [token_ids[token_after[node]] for node in nodes]
                found = self._facts_of(engine, nodes, next_ids)
                for node, token_id, fact in zip(nodes, next_ids, found, strict=True):
                    tree.memoize(node, (self._key, token_id), fact)
                yield token_after[nodes[-1]] + 1 - window.begin
            else:
                engine.prefill(chunk)
                yield 0
        for node, token in token_after.items():
            self.facts[token] = cast(T, self._known(node, token_ids[token]))

    def _known(self, node: Node, token_id: int) -> T | None:
        return (node.memo or {}).get((self._key, token_id))


def _chunks(nodes: list[Node], vocabulary: int) -> Iterator[list[Node]]:
    """Yield the nodes, in order, in chunks of at most `MAX_LAST_CHUNK` nodes, one for each forward pass.

    A chunk of two or more nodes has at most `MAX_LOGITS` logits: `vocabulary` per node.
    """
    most = max(1, MAX_LOGITS // vocabulary)
    while nodes:
        size = min(most, len(nodes) if len(nodes) <= MAX_LAST_CHUNK else PREFILL_CHUNK)
        yield nodes[:size]
        nodes = nodes[size:]
