"""The decoding experiment: one prompt continued by greedy decoding, by sampling and by beam search, to be compared."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch

from lookahead_core.document.document import Document
from lookahead_core.document.results import Beam, BeamNode
from lookahead_core.document.stream import StreamStep, stream_steps
from lookahead_core.model import Model
from lookahead_core.steps import last_step
from lookahead_core.strategies.sampling import sample_tokens
from lookahead_core.strategies.stream_options import StreamOptions
from lookahead_core.validation import check_integer, check_number, parse_options

Method = Literal["greedy", "sample", "beam"]
SAMPLING = (
    *("temperature", "top_k", "top_p", "min_p", "typical_p", "seed"),
    *("repetition_penalty", "frequency_penalty", "presence_penalty", "no_repeat_ngram_size"),
)
"""The options of the experiment that are those of `Document.stream`."""
REPEATED = 3
"""The length of the n-grams that `DecodedText.repetition` counts, in tokens."""
DRAWS_IN_STEP = 50
"""Draws between two steps of `draw_steps`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodingOptions:
    """The options of `decoding_experiment`; a wrong one raises ValueError.

    Those from `temperature` on are for the samples, see `StreamKeywords`; greedy decoding and the beam search use the
    model's odds as they are.
    """

    tokens: int = 20
    """Tokens of each text at most, 1 to 60."""
    greedy: bool = True
    """Whether the greedy text is computed."""
    samples: int = 3
    """Number of sampled texts, 0 to 8."""
    beams: int = 4
    """Number of beams, 0 to 8; with 0 there is no beam search."""
    length_penalty: float = 1.0
    """Of the beam search: its totals are divided by the length to this power."""
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    typical_p: float = 1.0
    repetition_penalty: float = 1.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    no_repeat_ngram_size: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        check_integer("tokens", self.tokens, 1, 60)
        check_integer("samples", self.samples, 0, 8)
        check_integer("beams", self.beams, 0, 8)
        check_number("length_penalty", self.length_penalty, -10, 10)
        self.stream_options()

    def stream_options(self, number: int = 0) -> StreamOptions:
        """Return the options of a sampled text; texts with another `number` are drawn independently."""
        chosen = {name: getattr(self, name) for name in SAMPLING}
        return StreamOptions(**chosen, max_new_tokens=self.tokens, stream=number, speculate=False)


@dataclass(frozen=True, slots=True)
class DecodedText:
    """A continuation of the prompt, by one of the methods."""

    method: Method
    number: int
    """The number of the sample, or the rank of the beam, from 1; 1 for greedy decoding."""
    token_ids: tuple[int, ...]
    """Its tokens, with an end token if it has ended."""
    texts: tuple[str, ...]
    """The text that each token adds; may be empty."""
    logprobs: tuple[float, ...]
    """The model's natural log-probability of each token, without temperature, cuts and penalties."""
    ended: bool = False
    """Whether its last token is an end token."""

    @property
    def text(self) -> str:
        """The whole text."""
        return "".join(self.texts)

    @property
    def total(self) -> float:
        """The sum of the log-probabilities."""
        return math.fsum(self.logprobs)

    @property
    def average(self) -> float:
        """The average log-probability of a token; NaN before the first one."""
        return self.total / len(self.logprobs) if self.logprobs else math.nan

    @property
    def repetition(self) -> float:
        """The part of its n-grams of REPEATED tokens that occurred before in it, 0 to 1; 0 for a shorter text."""
        ngrams = list(zip(*(self.token_ids[first:] for first in range(REPEATED)), strict=False))
        return 1 - len(set(ngrams)) / len(ngrams) if ngrams else 0.0


@dataclass(frozen=True, slots=True)
class OddsOfToken:
    """The probability of a token after the prompt, as the model has it and as the samples are drawn."""

    token_id: int
    text: str
    """Its characters; U+FFFD stands for parts of a character."""
    raw: float
    """The model's probability, 0 to 1."""
    processed: float
    """The probability with the options of the samples, 0 to 1; 0 for a token that they exclude."""


@dataclass(frozen=True, slots=True)
class DecodingExperiment:
    """The result of `decoding_experiment`, or the part of it that is known while it runs."""

    texts: tuple[DecodedText, ...] = ()
    """The greedy text, the samples in order, and the beams, best first."""
    beam_tree: tuple[BeamNode, ...] = ()
    """Every path that the beam search considered, each after its parent, with its fate."""
    odds: tuple[OddsOfToken, ...] = ()
    """The likeliest tokens after the prompt, by the model's odds, likeliest first; see `odds_after_options`."""


def decoding_experiment(model: Model, prompt: str, **options: Any) -> DecodingExperiment:
    """Continue a prompt by every method and return the texts; `options` are those of `DecodingOptions`.

    Raises ValueError for a wrong option, or if the options exclude every token, and LookaheadError for an empty prompt
    if the model has no start token.
    """
    return last_step(decoding_steps(model, prompt, **options))


def decoding_steps(model: Model, prompt: str, **options: Any) -> Iterator[DecodingExperiment]:
    """Do the same as `decoding_experiment`, as a generator: yield the result so far after every token or level.

    The greedy text and the samples grow in the same forward passes. Between steps the caller can show progress, serve
    others, or stop. Only the last result is complete.
    """
    checked = parse_options(DecodingOptions, options, "decoding_experiment")
    document = Document(model, prompt)
    found = DecodingExperiment(odds=odds_after_options(document, checked))
    yield found
    plain = StreamOptions(temperature=0.0, max_new_tokens=checked.tokens, speculate=False)
    streams: list[tuple[Method, int, StreamOptions]] = [("greedy", 1, plain)] if checked.greedy else []
    streams += [("sample", number, checked.stream_options(number)) for number in range(1, checked.samples + 1)]
    if streams:
        start = document.generation_start(plain)
        readers = [start.stream_reader(own) for _, _, own in streams]
        steps: list[list[StreamStep]] = [[] for _ in streams]
        for index, step in stream_steps(model.engine, readers):
            steps[index].append(step)
            decoded = (_decoded(method, number, own) for (method, number, _), own in zip(streams, steps, strict=True))
            found = replace(found, texts=tuple(decoded))
            yield found
    if checked.beams:
        before = found.texts
        levels = document.beam_search_steps(
            max_new_tokens=checked.tokens, num_beams=checked.beams, length_penalty=checked.length_penalty
        )
        for level in levels:
            beams = level.result
            ranked = [_decoded_beam(rank, beam) for rank, beam in enumerate(beams.branches, 1)]
            found = replace(found, texts=(*before, *ranked), beam_tree=beams.tree)
            yield found


def odds_after_options(document: Document, options: DecodingOptions, count: int = 12) -> tuple[OddsOfToken, ...]:
    """Return the `count` likeliest next tokens with their odds before and after the options of the samples."""
    raw = document.predict(row=True).row
    assert isinstance(raw, torch.Tensor)
    processed = _sampling_logprobs(document, options).exp()
    bytes_of = document.model.codec.bytes_of
    return tuple(
        OddsOfToken(
            token_id,
            bytes_of(token_id).decode("utf-8", "replace"),
            float(raw[token_id].double().exp()),
            float(processed[token_id]),
        )
        for token_id in raw.topk(min(count, len(raw))).indices.tolist()
    )


def draw_steps(document: Document, options: DecodingOptions, draws: int = 10_000) -> Iterator[dict[int, int]]:
    """Draw the next token again and again, as the samples do; yield how often each token came so far.

    A generator with a step after each DRAWS_IN_STEP draws, and at the end. The draws are those of streams 0, 1, 2, …
    with the seed of `options`.
    """
    scores, position = _sampling_logprobs(document, options), len(document.token_ids)
    counts: dict[int, int] = {}
    tokens = sample_tokens(scores, seed=options.seed, streams=range(draws), position=position)
    for drawn, token_id in enumerate(tokens, start=1):
        counts[token_id] = counts.get(token_id, 0) + 1
        if drawn % DRAWS_IN_STEP == 0 or drawn == draws:
            yield dict(counts)


def _sampling_logprobs(document: Document, options: DecodingOptions) -> torch.Tensor:
    """Return the log-probabilities that the first token of a sample is drawn from, as `Document.odds` does."""
    stream = options.stream_options()
    return document.generation_start(stream).odds(stream)


def _decoded_beam(rank: int, beam: Beam) -> DecodedText:
    """Return a beam as a text."""
    return DecodedText(
        "beam", rank, beam.token_ids, tuple(piece.text for piece in beam.pieces), beam.logprobs, beam.ended
    )


def _decoded(method: Method, number: int, steps: Sequence[StreamStep]) -> DecodedText:
    """Return the text of a stream's steps so far."""
    return DecodedText(
        method,
        number,
        tuple(step.token_id for step in steps),
        tuple(step.text for step in steps),
        tuple(step.logprob for step in steps),
        bool(steps) and steps[-1].finish == "end",
    )
