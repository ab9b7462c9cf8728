"""Streams: continuations token by token, with whole characters, stop conditions and the probability of each token."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO

from lookahead_core.document.results import Cost, average_probability
from lookahead_core.document.stop_conditions import StopStrings, WordLimit
from lookahead_core.engines.engine import Engine
from lookahead_core.prediction import Prediction
from lookahead_core.speculation.draft_and_verify import Pass
from lookahead_core.strategies.continuation import Continuation, GeneratedToken
from lookahead_core.strategies.decode import decode
from lookahead_core.text.passage import TextEnd

SHOWN = 10
"""Number of alternatives in `StreamStep.alternatives`."""


@dataclass(frozen=True, slots=True)
class StreamAlternative:
    """One of the likeliest tokens at a step of a stream, with its text and probability."""

    token_id: int
    text: str
    """The whole characters that it would add; may be empty."""
    logprob: float
    """The model's natural log-probability of it, before any options."""


@dataclass(frozen=True, slots=True)
class StreamStep:
    """One token of a stream, with the text that it completes, its probabilities, and whether the stream ends here."""

    token_id: int
    text: str
    """The characters that are now certain: whole ones, without any that may still belong to a stop string."""
    logprob: float
    """The model's natural log-probability of the token, before any options."""
    chance: float
    """Its natural log-probability after all options: what it was drawn with; 0 in a greedy stream."""
    rank: int
    """Its rank in the model's prediction, 1 for the likeliest token."""
    entropy: float
    """Entropy of the model's prediction, in nats."""
    finish: str
    """Why the stream ends with this token; empty if it goes on. "end": an end token. "length": `max_new_tokens`, or the
    context is full. "stop": a stop string, `stop_ids` or `stop_when`. "words": `max_words`. If several apply, "stop"
    counts, then "words"."""
    said: Prediction = field(repr=False, compare=False)
    """The model's prediction of this token, before any options."""
    _text_end: TextEnd = field(repr=False, compare=False)
    stopped_by: str = ""
    """The stop string that ended the stream; empty if none did."""

    @property
    def alternatives(self) -> tuple[StreamAlternative, ...]:
        """The likeliest tokens here, at most ten, likeliest first; the token that came is included if it is one."""
        pairs = zip(self.said.token_ids[:SHOWN], self.said.logprobs, strict=False)
        return tuple(
            StreamAlternative(token_id, self._text_end.decode(token_id)[0], value) for token_id, value in pairs
        )


class StreamReader:
    """Turns the tokens of a continuation into steps with text, and ends it at a stop condition of its options.

    `text_end` is the state at the end of the text where the continuation starts, from which its tokens are decoded;
    `before` is that text. `stream_steps` grows the continuation and calls `step`.
    """

    def __init__(self, continuation: Continuation, text_end: TextEnd, before: str) -> None:
        """`text_end` is the end of the text where the continuation starts, `before` the text itself."""
        self.continuation = continuation
        self._text_end = text_end
        options = continuation.options
        self._stops = StopStrings([stop for stop in options.stop if isinstance(stop, str)], before)
        self._words = WordLimit(options.max_words, before)

    def step(self, pick: GeneratedToken) -> StreamStep:
        """Return the step of `pick`, the token that the continuation has just taken; at a stop condition, end it.

        To be called once for each token, in order.
        """
        chosen, before, options, finish = pick.chosen, self._text_end, self.continuation.options, pick.finish
        raw = ""
        if finish != "end":
            raw, self._text_end = self._text_end.decode(chosen.token_id)
        if self._words.add(raw):
            raw, finish = ("", "words") if self._words.beyond else (raw, "words")
        text = self._stops.add(raw)
        path = self.continuation.path
        ids_stop = any(isinstance(ids, tuple) and tuple(path[-len(ids) :]) == ids for ids in options.stop_ids)
        if self._stops.found or ids_stop or (options.stop_when is not None and options.stop_when(tuple(path))):
            finish = "stop"
        if finish:
            text += self._stops.rest()
            self.continuation.over = True
        prediction = pick.prediction
        odds = (chosen.logprob, chosen.chance, chosen.rank, prediction.entropy)
        return StreamStep(chosen.token_id, text, *odds, finish, prediction, before, self._stops.found)


def stream_steps(engine: Engine, readers: Sequence[StreamReader]) -> Iterator[tuple[int, StreamStep]]:
    """Grow all continuations side by side until all are over; yield pairs of a reader's index and its next step.

    A forward pass, for all together, is made only when no continuation knows its next token. If the options exclude
    every token of one continuation, the others go on, and its RuledOutError, a ValueError, is raised at the end.
    """
    for picks in decode(engine, [reader.continuation for reader in readers]):
        for index, pick in picks:
            yield index, readers[index].step(pick)


class Streams(Iterator[tuple[int, StreamStep]]):
    """An iterator over the steps of the streams of `stream_batch`: pairs of a stream's index and a step.

    The steps so far are kept.
    """

    def __init__(
        self, steps: Iterator[tuple[int, StreamStep]], cost: Callable[[], Cost], passes: Sequence[Sequence[Pass]]
    ) -> None:
        self.steps: list[list[StreamStep]] = [[] for _ in passes]
        """The steps so far, one list per stream."""
        self.passes = passes
        """The passes so far, one sequence per stream."""
        self._coming = steps
        self._cost = cost

    def __next__(self) -> tuple[int, StreamStep]:
        index, step = next(self._coming)
        self.steps[index].append(step)
        return index, step

    @property
    def texts(self) -> list[str]:
        """The text generated so far by each stream, without held-back characters of a possible stop string."""
        return ["".join(step.text for step in steps) for steps in self.steps]

    @property
    def cost(self) -> Cost:
        """What the documents of all streams have cost since the streams were created, and the cache that they use now.

        Passes are all forward passes of the engine since then.
        """
        return self._cost()


class Stream(Iterator[StreamStep]):
    """An iterator over the steps of one stream, one per token, as `Document.stream` returns it.

    `steps` keeps the steps so far, and the properties describe the stream up to there. It may be abandoned at any step.
    """

    def __init__(
        self, steps: Iterator[StreamStep], cost: Callable[[], Cost], seen_from: int, passes: Sequence[Pass]
    ) -> None:
        self.steps: list[StreamStep] = []
        """The steps so far."""
        self.passes = passes
        """The forward passes so far; tokens whose predictions were known need none."""
        self.seen_from = seen_from
        """Index of the first character that the model reads; 0 unless the text is longer than the model's context."""
        self._coming = steps
        self._cost = cost

    def __next__(self) -> StreamStep:
        step = next(self._coming)
        self.steps.append(step)
        return step

    @property
    def text(self) -> str:
        """The text generated so far, without held-back characters of a possible stop string."""
        return "".join(step.text for step in self.steps)

    @property
    def token_ids(self) -> list[int]:
        """A new list of the ids of the tokens generated so far, also of those whose text is not shown.

        Such are an end token, the tokens of a stop string, and the token that has shown that the last word is over.
        """
        return [step.token_id for step in self.steps]

    @property
    def finish(self) -> str:
        """Why the stream has ended; empty while it goes on, and if it was abandoned or ended with an error.

        "end": with an end token. "length": at `max_new_tokens`, or the context is full. "stop": at a stop string, at
        `stop_ids`, or because `stop_when` returned True. "words": at `max_words`. If several apply, "stop" counts,
        then "words".
        """
        return self.steps[-1].finish if self.steps else ""

    @property
    def average_probability(self) -> float | None:
        """The geometric mean of the model's probabilities of all tokens so far, 0 to 1; None before the first token."""
        return average_probability([step.logprob for step in self.steps]) if self.steps else None

    @property
    def cost(self) -> Cost:
        """What the document has cost since the stream was created, and the cache that it uses now."""
        return self._cost()

    @property
    def statistics(self) -> dict[str, list[float]]:
        """Lists with one number per forward pass so far, by a short name.

        `edls`: number of tokens known after the pass and not before, at least 1. `dls`: number of tokens evaluated,
        drafts included; 1 if nothing was drafted. `fts`: seconds of the pass. `qts`: seconds of drafting before it.
        """
        return {
            "edls": [each.won for each in self.passes],
            "dls": [each.evaluated for each in self.passes],
            "fts": [each.seconds for each in self.passes],
            "qts": [each.drafting for each in self.passes],
        }

    def write(self, file: IO[str] | None = None) -> str:
        """Run to the end and write the text of all further steps as it comes, to standard output or to `file`.

        Returns the whole text, that of earlier steps included.
        """
        out = file or sys.stdout
        for step in self:
            out.write(step.text)
            out.flush()
        return self.text
