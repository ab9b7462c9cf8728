"""The start of streams and beam searches: the end of a text, and a check that the text has not changed since."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import torch

from lookahead_core.document.cost_meter import CostMeter
from lookahead_core.document.drafting import DocumentDrafting
from lookahead_core.document.result_context import ResultContext, make_beams
from lookahead_core.document.results import BeamStep, Cost
from lookahead_core.document.stream import StreamReader
from lookahead_core.errors import LookaheadError
from lookahead_core.model import Model
from lookahead_core.strategies.beam import BeamSearch
from lookahead_core.strategies.beam_options import BeamOptions
from lookahead_core.strategies.continuation import Continuation, model_scores
from lookahead_core.strategies.rules import LogitRules, ModelRules, check_vocabulary
from lookahead_core.strategies.stream_options import StreamOptions
from lookahead_core.text.passage import TextEnd
from lookahead_core.tree import Node

T = TypeVar("T")
R = TypeVar("R", bound=LogitRules)
_END = object()


@dataclass
class GenerationStart:
    """The end of a document's text when this was made: where streams and beam searches start, also side by side.

    Made by `Document.generation_start`. What starts here may go on as long as the text up to here stays the same, see
    `require_unchanged`; tokens that are accepted after it do no harm.
    """

    model: Model
    head: Node
    """The node of the last token: the first new token hangs below it."""
    text_end: TextEnd
    text: str
    token_ids: Sequence[int]
    """All ids of the text, also those that the model does not read."""
    seen_from: int
    """The character from which on the model reads."""
    current_ids: Callable[[], Sequence[int]]
    """Returns the ids of the document's text now."""
    removals: Callable[[], int]
    """Returns how often tokens were removed from the document's text."""
    drafting: DocumentDrafting
    meter: CostMeter = field(init=False)

    def __post_init__(self) -> None:
        self.meter = CostMeter(self.model.engine, self.head.tree)
        self._removals = self.removals()

    def cost(self) -> Cost:
        """Return what the document has cost since this start was made, and the cache that it uses now."""
        return self.meter.cost()

    def require_unchanged(self) -> None:
        """Raise LookaheadError if the text up to here has changed; accepted tokens after it do not count."""
        now = self.removals()
        if now != self._removals and list(self.current_ids()[: len(self.token_ids)]) != list(self.token_ids):
            raise LookaheadError("The text has changed while more was growing below it; ask again.")
        self._removals = now

    def model_rules(self, rules: LogitRules) -> ModelRules:
        """Return the rules as `ModelRules`: prepared for this model's tokenizer, end tokens and vocabulary.

        Raises ValueError if they contradict each other, or name a token that the model does not have, and TextError if
        they hold strings and the model has no tokenizer.
        """
        return ModelRules(rules, self.model.end_token_ids, self.model.codec, self.model.vocabulary)

    def odds(self, options: StreamOptions) -> torch.Tensor:
        """Return the natural log-probabilities that a stream with these options draws its first token from.

        The tensor is one-dimensional, indexed by token id, float64 and on the CPU; excluded tokens have -inf. At
        temperature 0 the likeliest token has 0 and all others -inf. Makes a forward pass. Raises ValueError if the
        options exclude every token, and the errors of `model_rules`.
        """
        self._require_logits(options)
        row = self.model.engine.evaluate([self.head])[0]
        path = self.head.tree.token_ids(self.head)
        return options.sampling_logprobs(model_scores(self.head, row), self.model_rules(options), path, 0)

    def stream_reader(self, options: StreamOptions) -> StreamReader:
        """Return the reader of a new continuation that starts here; `stream_steps` then grows it.

        It ends after `max_new_tokens`, or earlier where the model's context is full. Raises TextError if there are stop
        strings or a word limit and the model has no tokenizer, and ValueError or LookaheadError if other options do not
        fit the model.
        """
        if options.stop or options.max_words:
            self.model.codec.require_tokenizer()
        check_vocabulary(options.stop_ids, self.model.vocabulary)
        self._require_logits(options)
        options = self._fitted(options)
        unread = len(self.token_ids) - self.head.depth
        speculation = self.drafting.speculation(options, self.token_ids, unread)
        continuation = Continuation(self.head, options, self.model_rules(options), unread, speculation)
        return StreamReader(continuation, self.text_end, self.text)

    def _require_logits(self, options: StreamOptions) -> None:
        """Raise LookaheadError if the options need logits, and a server computes the model: it gives none."""
        if self.model.address and options.repetition_penalty != 1:
            raise LookaheadError(
                f"repetition_penalty needs logits, and the server of {self.model.name} gives log-probabilities: "
                "leave it out, or set frequency_penalty or presence_penalty."
            )

    def beam_search(self, options: BeamOptions) -> BeamSearch:
        """Return the state of a new beam search that starts here; `strategies.beam.beam_search` then runs it.

        It has at most `max_new_tokens` levels, fewer where the model's context has less room. Raises ValueError or
        TextError if the rules do not fit the model.
        """
        options = self._fitted(options)
        return BeamSearch(self.head, options, self.model_rules(options))

    def beam_step(self, search: BeamSearch) -> BeamStep:
        """Return a step with the result of `search`, a search from here, as it is now: its later levels change nothing.

        The cost in the result counts from when this start was made.
        """
        context = ResultContext(self.head, self.text_end, self.model.end_token_ids)
        step, cost, results, traces = search.step, self.cost(), search.results, search.snapshot()
        return BeamStep(step, lambda: make_beams(results, traces, step, cost, search.options, context))

    def _fitted(self, options: R) -> R:
        """Return the options, or a copy with `max_new_tokens` reduced to the tokens left in the model's context.

        The context must have room for at least one token; that is not checked here.
        """
        context = self.model.context_length
        if context is None or self.head.depth + options.max_new_tokens <= context:
            return options
        return dataclasses.replace(options, max_new_tokens=context - self.head.depth)


def while_text_stays(starts: Sequence[GenerationStart], steps: Iterator[T], is_over: Callable[[], bool]) -> Iterator[T]:
    """Yield the items of `steps`; raise LookaheadError before computing one if the text of any start has changed.

    The text is not checked any more once `is_over()` returns True. See `GenerationStart.require_unchanged`.
    """
    while True:
        if not is_over():
            for start in starts:
                start.require_unchanged()
        step = next(steps, _END)
        if step is _END:
            return
        yield step  # type: ignore[misc]
