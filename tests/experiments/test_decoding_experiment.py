"""The decoding experiment: its texts against plain forwards and the library's methods, its draws against the odds."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest
import torch

from lookahead_core import Document, Model, load_model
from lookahead_core.experiments.decoding_experiment import (
    SAMPLING,
    DecodedText,
    DecodingOptions,
    decoding_experiment,
    decoding_steps,
    draw_steps,
    odds_after_options,
)
from lookahead_core.steps import last_step
from tests.conftest import tiny_llama

PROMPT = "The keeper watched the sea"
CHOSEN = {"temperature": 0.7, "top_k": 40, "top_p": 0.9, "min_p": 0.01, "repetition_penalty": 1.2, "seed": 5}


@pytest.fixture(scope="module")
def model(byte_tokenizer: Any) -> Model:
    return load_model(tiny_llama(len(byte_tokenizer), seed=3), tokenizer=byte_tokenizer, dtype="float32")


def texts_of(found: Any, method: str) -> list[DecodedText]:
    return [text for text in found.texts if text.method == method]


def test_the_greedy_text_is_the_likeliest_token_again_and_again_with_the_models_odds(model: Model) -> None:
    found = decoding_experiment(model, PROMPT, tokens=8, samples=0, beams=0)
    (greedy,) = found.texts
    token_ids = list(Document(model, PROMPT).token_ids)
    for token_id, logprob in zip(greedy.token_ids, greedy.logprobs, strict=True):
        with torch.no_grad():
            row = model.hf_model(torch.tensor([token_ids])).logits[0, -1].log_softmax(-1)
        assert token_id == int(row.argmax())
        assert logprob == pytest.approx(float(row.max()), abs=1e-4)
        token_ids.append(token_id)
    assert greedy.total == pytest.approx(sum(greedy.logprobs))
    assert greedy.average == pytest.approx(greedy.total / 8)


def test_samples_are_streams_with_the_same_options_and_do_not_change_the_greedy_text(model: Model) -> None:
    found = decoding_experiment(model, PROMPT, tokens=10, samples=3, beams=0, **CHOSEN)
    for sample in texts_of(found, "sample"):
        options: Any = {name: CHOSEN[name] for name in SAMPLING if name in CHOSEN}
        stream = Document(model, PROMPT).stream(max_new_tokens=10, stream=sample.number, **options)
        list(stream)
        assert list(sample.token_ids) == stream.token_ids
    assert len({sample.token_ids for sample in texts_of(found, "sample")}) == 3
    alone = decoding_experiment(model, PROMPT, tokens=10, samples=0, beams=0)
    assert texts_of(found, "greedy")[0].token_ids == alone.texts[0].token_ids


def test_beams_and_their_candidates_are_those_of_a_beam_search(model: Model) -> None:
    found = decoding_experiment(model, PROMPT, tokens=6, samples=0, beams=3, length_penalty=0.5)
    search = Document(model, PROMPT).beam_search(max_new_tokens=6, num_beams=3, length_penalty=0.5)
    beams = texts_of(found, "beam")
    assert [beam.token_ids for beam in beams] == [branch.token_ids for branch in search.branches]
    assert [beam.text for beam in beams] == [branch.text for branch in search.branches]
    assert [beam.number for beam in beams] == [1, 2, 3]
    assert [(node.token_id, node.fate) for node in found.beam_tree] == [
        (node.token_id, node.fate) for node in search.tree
    ]
    assert {"returned", "outscored"} <= {node.fate for node in found.beam_tree}


def test_the_length_penalty_is_that_of_the_beam_search(model: Model, byte_tokenizer: Any) -> None:
    (greedy,) = decoding_experiment(model, PROMPT, tokens=4, samples=0, beams=0).texts
    ending = tiny_llama(len(byte_tokenizer), seed=3)
    ending.generation_config.eos_token_id = greedy.token_ids[3]  # so that beams of different lengths end
    loaded = load_model(ending, tokenizer=byte_tokenizer, dtype="float32")
    ranked = []
    for penalty in (-3.0, 3.0):
        found = decoding_experiment(loaded, PROMPT, tokens=8, greedy=False, samples=0, beams=4, length_penalty=penalty)
        search = Document(loaded, PROMPT).beam_search(max_new_tokens=8, num_beams=4, length_penalty=penalty)
        ranked.append([beam.token_ids for beam in found.texts])
        assert ranked[-1] == [branch.token_ids for branch in search.branches]
    assert ranked[0] != ranked[1]


def test_results_grow_token_by_token_and_streams_share_their_passes(model: Model) -> None:
    sizes = [
        sum(len(text.token_ids) for text in found.texts) for found in decoding_steps(model, PROMPT, tokens=5, beams=0)
    ]
    assert sizes == list(range(4 * 5 + 1)), "one token more at each step: greedy and three samples"
    passes = model.engine.passes
    decoding_experiment(model, PROMPT, tokens=5, beams=0)
    assert model.engine.passes - passes <= 7, "two for the odds of the prompt, and one for each token of all four texts"


def test_the_odds_are_those_before_and_after_the_options(model: Model) -> None:
    found = decoding_experiment(model, PROMPT, tokens=1, greedy=False, samples=0, beams=0, **CHOSEN)
    document = Document(model, PROMPT)
    row = document.predict(row=True).row
    assert isinstance(row, torch.Tensor)
    options: Any = CHOSEN
    processed = document.odds(**options).exp()
    assert [odds.token_id for odds in found.odds] == row.topk(12).indices.tolist()
    for odds in found.odds:
        assert odds.raw == pytest.approx(float(row[odds.token_id].exp()), rel=1e-4)
        assert odds.processed == pytest.approx(float(processed[odds.token_id]), rel=1e-6)
    assert float(processed.sum()) == pytest.approx(1.0)
    strict = odds_after_options(document, DecodingOptions(top_k=2))
    assert [odds.processed > 0 for odds in strict] == [True] * 2 + [False] * 10


@pytest.mark.slow
def test_frequencies_of_many_draws_are_those_of_the_odds(model: Model) -> None:
    document, options = Document(model, PROMPT), DecodingOptions(temperature=0.8, top_k=12, seed=7)
    steps = list(draw_steps(document, options, 4_000))
    assert [sum(counts.values()) for counts in steps] == list(range(50, 4_001, 50))
    odds = document.odds(temperature=0.8, top_k=12).exp()
    expected = {token_id: float(odds[token_id]) * 4_000 for token_id in odds.nonzero()[:, 0].tolist()}
    assert set(steps[-1]) <= set(expected)
    chi_square = sum((steps[-1].get(token_id, 0) - mean) ** 2 / mean for token_id, mean in expected.items())
    assert chi_square < 31.3, "11 degrees of freedom, 0.1 %"


@pytest.mark.slow
def test_draws_are_those_of_the_samples_first_tokens(model: Model) -> None:
    options: Any = {"temperature": 1.3, "top_p": 0.95, "seed": 11}
    (counts,) = draw_steps(Document(model, PROMPT), DecodingOptions(**options), 50)
    streams = [
        last_step(Document(model, PROMPT).stream(**options, stream=number, max_new_tokens=1)) for number in range(50)
    ]
    assert counts == Counter(step.token_id for step in streams)


def test_repetition_is_the_part_of_trigrams_that_came_before() -> None:
    def text(*token_ids: int) -> DecodedText:
        return DecodedText("greedy", 1, token_ids, ("",) * len(token_ids), (0.0,) * len(token_ids))

    assert text(1, 2, 3, 4, 5).repetition == 0
    assert text(1, 2, 3, 1, 2, 3, 1).repetition == pytest.approx(2 / 5)
    assert text(1, 1, 1, 1).repetition == 0.5
    assert text(1, 1).repetition == 0
    assert math.isnan(text().average)


@pytest.mark.parametrize(
    ("options", "because"),
    [
        ({"tokens": 61}, "tokens is 61, and must be a whole number from 1 to 60."),
        ({"samples": -1}, "samples is -1"),
        ({"beams": 9}, "beams is 9"),
        ({"top_p": 0}, "top_p is 0"),
        ({"length_penalty": 11}, "length_penalty is 11"),
        ({"warmth": 1}, "warmth is not an option of decoding_experiment"),
    ],
)
def test_a_wrong_option_gets_a_sentence(model: Model, options: Any, because: str) -> None:
    with pytest.raises(ValueError, match=because):
        decoding_experiment(model, PROMPT, **options)
