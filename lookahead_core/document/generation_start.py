"""Where streams and beam searches grow from: the text as it stood, and what has been spent since."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import torch

from lookahead_core.document.drafting import DocumentDrafting
from lookahead_core.document.result_context import ResultContext, make_beams
from lookahead_core.document.results import BeamStep, Cost
from lookahead_core.document.stream import StreamReader
from lookahead_core.engines.engine import Engine
from lookahead_core.errors import LookaheadError
from lookahead_core.model import Model
from lookahead_core.strategies.beam import BeamOptions, BeamSearch
from lookahead_core.strategies.decode import Continuation, StreamOptions, model_scores
from lookahead_core.strategies.rules import LogitRules, ModelRules
from lookahead_core.text.passage import TextEnd
from lookahead_core.tree import Node, TokenTree

T = TypeVar("T")
R = TypeVar("R", bound=LogitRules)
_END = object()


class CostMeter:
    """What a document costs from now on."""

    def __init__(self, engine: Engine, tree: TokenTree) -> None:
        self._engine = engine
        self._tree = tree
        self._began, self._before = time.perf_counter(), dataclasses.replace(tree.work)

    def cost(self) -> Cost:
        work, before = self._tree.work, self._before
        passes, tokens = work.passes - before.passes, work.tokens - before.tokens
        return Cost(passes, tokens, time.perf_counter() - self._began, *self._engine.cache_usage(self._tree))


@dataclass
class GenerationStart:
    """A place in a document. Things that grow here may run beside others, as long as its text stands."""

    model: Model
    head: Node
    spot: TextEnd
    text: str
    token_ids: Sequence[int]
    """All ids of the text, also those that the model does not read."""
    seen_from: int
    standing: Callable[[], Sequence[int]]
    """The ids that stand in the document now."""
    removals: Callable[[], int]
    """How often something was taken out of the document."""
    memory: DocumentDrafting
    meter: CostMeter = field(init=False)

    def __post_init__(self) -> None:
        self.meter = CostMeter(self.model.engine, self.head.tree)
        self._removals = self.removals()

    def cost(self) -> Cost:
        """What the document has cost since."""
        return self.meter.cost()

    def require(self) -> None:
        """Raise where the text that stood here stands no more; what was accepted behind it does no harm."""
        now = self.removals()
        if now != self._removals and list(self.standing()[: len(self.token_ids)]) != list(self.token_ids):
            raise LookaheadError("The text has changed while more was growing below it; ask again.")
        self._removals = now

    def ruling(self, rules: LogitRules) -> ModelRules:
        return ModelRules(rules, self.model.end_token_ids, self.model.codec, self.model.vocabulary)

    def odds(self, options: StreamOptions) -> torch.Tensor:
        """What the first token of a stream with these options is drawn from."""
        row = self.model.engine.evaluate([self.head])[0]
        return options.odds(model_scores(self.head, row), self.ruling(options), self.head.tree.token_ids(self.head), 0)

    def line(self, options: StreamOptions) -> StreamReader:
        """A line that grows here."""
        if options.stop or options.max_words:
            self.model.codec.require_tokenizer()
        options = self._fitted(options)
        unread = len(self.token_ids) - self.head.depth
        speculation = self.memory.speculation(options, self.token_ids, unread)
        return StreamReader(
            Continuation(self.head, options, self.ruling(options), unread, speculation), self.spot, self.text
        )

    def search(self, options: BeamOptions) -> BeamSearch:
        """A beam search that grows here."""
        options = self._fitted(options)
        return BeamSearch(self.head, options, self.ruling(options))

    def found(self, search: BeamSearch) -> BeamStep:
        """What a search has come to now; it may go on meanwhile."""
        scene = ResultContext(self.head, self.spot, self.model.end_token_ids)
        step, cost, results, traces = search.step, self.cost(), search.results, search.snapshot()
        return BeamStep(step, lambda: make_beams(results, traces, step, cost, search.options, scene))

    def _fitted(self, options: R) -> R:
        """The same options; more than the model's context holds is never asked for."""
        context = self.model.context_length
        if context is None or self.head.depth + options.max_new_tokens <= context:
            return options
        return dataclasses.replace(options, max_new_tokens=context - self.head.depth)


def guarded(grounds: Sequence[GenerationStart], steps: Iterator[T], over: Callable[[], bool]) -> Iterator[T]:
    """Steps that grow below texts, as long as these stand, or nothing is left to grow."""
    while True:
        if not over():
            for ground in grounds:
                ground.require()
        step = next(steps, _END)
        if step is _END:
            return
        yield step  # type: ignore[misc]
