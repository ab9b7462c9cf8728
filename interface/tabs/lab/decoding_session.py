"""The server side of the Lab's decoding page: one prompt continued by several methods, and odds compared with draws."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, cast

from interface.server.branch_request import BranchRequest
from interface.server.page_session import PageSession, View
from interface.tabs.lab.experiment_request import ExperimentRequest
from interface.tabs.lab.experiment_steps import painted_steps
from lookahead_core.serving.json_values import json_safe
from lookahead_core.validation import check_choice, check_integer, parse_options

if TYPE_CHECKING:
    from lookahead_core.document.results import BeamNode
    from lookahead_core.experiments.decoding_experiment import (
        DecodedText,
        DecodingExperiment,
        DecodingOptions,
        OddsOfToken,
    )

    Step = tuple[DecodingExperiment, Mapping[int, int] | None]

PARTS = ("odds", "texts", "draws")
"""What a request asks for: the odds of the next token alone, the texts of all methods too, or draws beside the odds."""
MOST_TOKENS = 40
"""The most tokens of a text: the drawn tree of a beam search has up to twice as many nodes for each beam."""
MOST_BEAMS = 6
DRAWS = 10_000
ROUNDING = 1e-6
"""Probabilities of a softmax in float32 sum to 1 within this; the rest differs from processor to processor."""


class DecodingRequest(ExperimentRequest):
    """A request of the decoding page; `experiment` has `part` and `options`, a DecodingOptions."""

    @classmethod
    def checked_options(cls, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the options in the object `experiment`: `part`, one of PARTS, and options of `decoding_experiment`."""
        from lookahead_core.experiments.decoding_experiment import DecodingOptions

        options = {name: value for name, value in fields.items() if name != "part"}
        check_choice("part", fields.get("part"), PARTS)
        checked = parse_options(DecodingOptions, options, "the experiment")
        check_integer("tokens", checked.tokens, 1, MOST_TOKENS)
        check_integer("beams", checked.beams, 0, MOST_BEAMS)
        return {"part": fields["part"], "options": checked}


class DecodingSession(PageSession):
    """The session of a page of the Lab that compares decoding methods; it grows no branches to choose from."""

    background = True

    def answer_steps(self, request: BranchRequest) -> Iterator[View]:
        """Run the part that the request asks for: the generator that `painted_steps` returns, with views of `as_json`.

        `request` must be a DecodingRequest. Raises the errors of `decoding_experiment`.
        """
        assert isinstance(request, DecodingRequest)
        part, options = request.experiment["part"], request.experiment["options"]
        steps = self._draws(request.text, options) if part == "draws" else self._texts(request.text, options, part)
        return painted_steps(steps, lambda step: as_json(*step))

    def _texts(self, prompt: str, options: DecodingOptions, part: str) -> Iterator[Step]:
        from lookahead_core.experiments.decoding_experiment import decoding_steps

        for found in decoding_steps(self.model, prompt, **asdict(options)):
            yield found, None
            if part == "odds":
                return

    def _draws(self, prompt: str, options: DecodingOptions) -> Iterator[Step]:
        from lookahead_core import Document
        from lookahead_core.experiments.decoding_experiment import DecodingExperiment, draw_steps, odds_after_options

        document = Document(self.model, prompt)
        found = DecodingExperiment(odds=odds_after_options(document, options))
        yield found, None
        for counts in draw_steps(document, options, DRAWS):
            yield found, counts


def as_json(found: DecodingExperiment, counts: Mapping[int, int] | None) -> View:
    """Return a result of the experiment as JSON values: those of `odds_as_json`, and the lists `texts` and `tree`."""
    view = {
        "texts": [_text_as_json(text) for text in found.texts],
        "tree": [_node_as_json(node) for node in found.beam_tree],
    }
    return cast("View", json_safe(odds_as_json(found.odds, counts) | view))


def odds_as_json(odds: Sequence[OddsOfToken], counts: Mapping[int, int] | None) -> View:
    """Return the odds of next tokens as JSON values: the lists `odds` and `others`, and `draws`.

    `others` is the probability of all tokens that are not among `odds`, as [raw, processed]. `counts` says how often
    each token was drawn: `draws` has their `number`, and `counts` in the order of `odds`; it is None without draws.
    """
    others = [_remainder([getattr(one, name) for one in odds]) for name in ("raw", "processed")]
    drawn = counts and {"number": sum(counts.values()), "counts": [counts.get(one.token_id, 0) for one in odds]}
    return {
        "odds": [{"id": one.token_id, "text": one.text, "raw": one.raw, "processed": one.processed} for one in odds],
        "others": others,
        "draws": drawn or None,
    }


def _remainder(probabilities: Sequence[float]) -> float:
    """Return 1 less the sum of float32 probabilities; 0 if that is no more than their rounding."""
    remainder = 1 - math.fsum(probabilities)
    return remainder if remainder > ROUNDING else 0.0


def _text_as_json(text: DecodedText) -> dict[str, Any]:
    return asdict(text) | {"total": text.total, "average": text.average, "repetition": text.repetition}


def _node_as_json(node: BeamNode) -> dict[str, Any]:
    return {name: getattr(node, name) for name in ("parent", "token_id", "text", "logprob", "ended", "fate", "reason")}
