"""Streams and beam searches equal transformers' `generate`, per option and in random combinations, on every family."""

from __future__ import annotations

import functools
import math
import random
from typing import Any

import pytest
import torch
import transformers
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from transformers import LogitsProcessor, LogitsProcessorList

from lookahead_core import Document, Model, load_model
from tests.support.families import FAMILIES, VOCABULARY, make, plain_rows
from tests.support.parameters import mostly_slow
from tests.support.scripted_model import bigrams

GROWING = ("llama_dynamic_rope", "phi3_longrope")
"""Rotations that grow: there `generate` differs from a plain forward, and the plain forward is right."""
STEADY = [family for family in FAMILIES if family not in GROWING]
ENDS = (3, 17)
MANY_ENDS = tuple(range(3, 96, 9))
PROMPT = [5, 40, 7, 40, 7, 61, 5, 40, 22]
NEW = 8
ALONE: list[dict[str, Any]] = [
    {"repetition_penalty": 1.6},
    {"repetition_penalty": 0.7},
    {"frequency_penalty": 0.9},
    {"presence_penalty": 1.3},
    {"no_repeat_ngram_size": 1},
    {"no_repeat_ngram_size": 2},
    {"min_new_tokens": 6},
    {"forbidden": [(7,), (40, 22), (61, 5, 40)]},
]
CUTS: list[dict[str, Any]] = [
    {"temperature": 0.4},
    {"temperature": 1.9},
    {"temperature": 1.0, "top_k": 7},
    {"temperature": 1.0, "top_p": 0.6},
    {"temperature": 1.0, "min_p": 0.2},
    {"temperature": 1.0, "typical_p": 0.5},
    {"temperature": 1.0, "top_k": 2, "min_tokens_to_keep": 5},
    {"temperature": 1.0, "top_p": 0.05, "min_tokens_to_keep": 5},
    {"temperature": 1.0, "min_p": 0.9, "min_tokens_to_keep": 5},
    {"temperature": 1.0, "typical_p": 0.05, "min_tokens_to_keep": 5},
]
SEARCHES: list[dict[str, Any]] = [
    {"num_beams": 1},
    {"num_beams": 4},
    {"num_beams": 5, "num_return_sequences": 2},
    {"num_beams": 3, "length_penalty": 0.0},
    {"num_beams": 3, "length_penalty": 2.5},
    {"num_beams": 3, "length_penalty": -1.0},
    {"num_beams": 4, "early_stopping": True},
    {"num_beams": 4, "early_stopping": "never"},
    {"num_beams": 4, "early_stopping": "never", "length_penalty": -0.5},
    {"num_beams": 2, "early_stopping": "never", "length_penalty": -0.2},
    {"num_beams": 2, "length_penalty": 0.6},
]


QUICK = ("llama", "mamba")
"""The families that the default run tries; the continuous integration tries all."""


def some_slow(families: list[str]) -> list[Any]:
    return [family if family in QUICK else pytest.param(family, marks=pytest.mark.slow) for family in families]


class Counted(LogitsProcessor):
    """Frequency and presence penalties, which transformers does not have, where it puts what is not its own."""

    def __init__(self, frequency: float, presence: float) -> None:
        self.frequency, self.presence = frequency, presence

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        scores = scores.clone()
        for row, ids in enumerate(input_ids.tolist()):
            for token_id in set(ids):
                scores[row, token_id] -= self.frequency * ids.count(token_id) + self.presence
        return scores


@functools.cache
def both(family: str, seed: int = 0, ends: tuple[int, ...] = ENDS) -> tuple[Model, Any]:
    """Ours, and a model of the same weights for `generate` alone: with end tokens that do come up."""
    ours, theirs = make(family, seed=seed), make(family, seed=seed)
    for model in (ours, theirs):
        model.generation_config = transformers.GenerationConfig(eos_token_id=list(ends), pad_token_id=0)
    return load_model(ours, tokenizer=None), theirs


def told_to_transformers(options: dict[str, Any]) -> dict[str, Any]:
    """The same options in its words, every other one said to be off."""
    off = {
        "do_sample": False, "num_beams": 1, "repetition_penalty": 1.0, "no_repeat_ngram_size": 0, "min_new_tokens": 0,
        "length_penalty": 1.0, "early_stopping": False, "num_return_sequences": options.get("num_beams", 1),
        "bad_words_ids": None, "top_k": None, "top_p": None, "temperature": None, "use_cache": False,
        "max_new_tokens": NEW, "pad_token_id": 0,
    }  # fmt: skip
    given = dict(options)
    if forbidden := given.pop("forbidden", None):
        given["bad_words_ids"] = [list(word) for word in forbidden]
    counted = Counted(given.pop("frequency_penalty", 0.0), given.pop("presence_penalty", 0.0))
    return off | given | {"logits_processor": LogitsProcessorList([counted])}


def generate(model: Any, **options: Any) -> Any:
    ids = torch.tensor([PROMPT])
    return model.generate(
        ids, attention_mask=torch.ones_like(ids), return_dict_in_generate=True, output_scores=True,
        eos_token_id=model.generation_config.eos_token_id, **told_to_transformers(options),
    )  # fmt: skip


def trimmed(row: list[int], ends_with: tuple[int, ...] = ENDS) -> list[int]:
    """What was generated, up to and with its end token."""
    new = row[len(PROMPT) :]
    ends = [place for place, token_id in enumerate(new) if token_id in ends_with]
    return new[: ends[0] + 1] if ends else new


def assert_same_text(family: str, **options: Any) -> None:
    ours, theirs = both(family)
    stream = Document(ours, token_ids=PROMPT).stream(max_new_tokens=NEW, **options)
    for _ in stream:
        pass
    assert stream.token_ids == trimmed(generate(theirs, **options).sequences[0].tolist())
    assert stream.finish == ("end" if stream.token_ids[-1] in ENDS else "length")


def assert_same_beams(family: str, **options: Any) -> None:
    ours, theirs = both(family)
    beams = Document(ours, token_ids=PROMPT).beam_search(max_new_tokens=NEW, **options).branches
    expected = generate(theirs, **options)
    if options["num_beams"] == 1:
        assert [list(beam.token_ids) for beam in beams] == [trimmed(expected.sequences[0].tolist())]
        return
    scores = expected.sequences_scores.tolist()
    assert [list(beam.token_ids) for beam in beams] == [trimmed(row) for row in expected.sequences.tolist()]
    assert [beam.score for beam in beams] == pytest.approx(scores, abs=1e-4)
    rows = [
        plain_rows(theirs, [PROMPT + list(beam.token_ids[:n]) for n in range(len(beam.token_ids))]) for beam in beams
    ]
    for beam, some in zip(beams, rows, strict=True):
        plain = [float(row.log_softmax(-1)[token_id]) for row, token_id in zip(some, beam.token_ids, strict=True)]
        assert beam.logprob == pytest.approx(sum(plain), abs=1e-4), "the plain sum, whatever was penalised"


def warped(model: Any, **options: Any) -> torch.Tensor:
    """The distribution that `generate` draws its first token from, by the processors that it makes itself."""
    given = told_to_transformers(options) | {"do_sample": True}
    keep = given.pop("min_tokens_to_keep", 1)
    extra = given.pop("logits_processor")
    config = transformers.GenerationConfig(**given, eos_token_id=list(ENDS))
    config._eos_token_tensor = torch.tensor(list(ENDS))
    ids = torch.tensor([PROMPT])
    processors = model._get_logits_processor(
        config, input_ids_seq_length=len(PROMPT), logits_processor=extra, device="cpu",
        model_kwargs={"attention_mask": torch.ones_like(ids)},
    )  # fmt: skip
    for processor in processors:
        if hasattr(processor, "min_tokens_to_keep"):
            processor.min_tokens_to_keep = keep
        if hasattr(processor, "top_k"):
            processor.top_k = max(processor.top_k, keep)
    return processors(ids, plain_rows(model, [PROMPT])[0][None])[0].softmax(-1)


def assert_same_odds(family: str, **options: Any) -> None:
    ours, theirs = both(family)
    odds = Document(ours, token_ids=PROMPT).odds(**options).exp()
    assert float((odds - warped(theirs, **options)).abs().max()) < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("family", some_slow(STEADY))
def test_greedy_streams_and_beams_equal_generate(family: str) -> None:
    assert_same_text(family)
    for options in SEARCHES:
        assert_same_beams(family, **options)


@pytest.mark.parametrize("options", SEARCHES, ids=str)
@pytest.mark.parametrize("seed", mostly_slow(range(6), 1))
def test_searches_that_could_end_early_end_where_generate_ends(seed: int, options: dict[str, Any]) -> None:
    ours, theirs = both("llama", seed, MANY_ENDS)
    given = {"max_new_tokens": 25, **options}
    beams = Document(ours, token_ids=PROMPT).beam_search(**given).branches
    expected = generate(theirs, **given).sequences.tolist()
    assert [list(beam.token_ids) for beam in beams] == [trimmed(row, MANY_ENDS) for row in expected]


def table_models(rows: dict[int, dict[int, float]], ends: tuple[int, ...]) -> tuple[Model, Any]:
    """Ours and theirs of a model that says after a token what a table of odds says, and next to nothing else."""
    follows = torch.full((VOCABULARY, VOCABULARY), -12.0)
    for token_id, odds in rows.items():
        for other, probability in odds.items():
            follows[token_id, other] = math.log(probability)
    models = bigrams(follows), bigrams(follows)
    for model in models:
        model.generation_config = transformers.GenerationConfig(eos_token_id=list(ends), pad_token_id=0)
    return load_model(models[0], tokenizer=None), models[1]


def assert_same_search(ours: Model, theirs: Any, ends: tuple[int, ...], **options: Any) -> list[tuple[int, ...]]:
    beams = Document(ours, token_ids=PROMPT).beam_search(**options).branches
    expected = generate(theirs, **options)
    scores = expected.sequences_scores.tolist()
    assert [beam.score for beam in beams] == pytest.approx(scores, abs=1e-3)
    theirs_ids = [tuple(trimmed(row, ends)) for row in expected.sequences.tolist()]
    # Texts that go the same ways in another order have one score, and rounding puts either first.
    for beam, ids, score in zip(beams, theirs_ids, scores, strict=True):
        assert beam.token_ids == ids or sum(abs(score - other) < 1e-3 for other in scores) > 1
    return [beam.token_ids for beam in beams]


def test_with_several_end_tokens_enough_candidates_are_kept_to_grow() -> None:
    """Four ends are likelier than all else: only candidates beyond two for each beam go on at all."""
    ends = (1, 2, 3, 4)
    endings = {1: 0.3, 2: 0.25, 3: 0.2, 4: 0.15}
    rows = {22: endings | {30: 0.06, 31: 0.04}, 30: endings | {32: 0.1}, 31: endings | {32: 0.1}, 32: {33: 1.0}}
    ours, theirs = table_models(rows | {33: {34: 1.0}, 34: {35: 1.0}, 35: {1: 0.9, 2: 0.1}}, ends)
    given = {"num_beams": 2, "max_new_tokens": 8, "length_penalty": 3.0, "early_stopping": "never"}
    found = assert_same_search(ours, theirs, ends, **given)
    assert found == [(30, 32, 33, 34, 35, 1), (31, 32, 33, 34, 35, 1)]
    assert assert_same_search(ours, theirs, ends, **given | {"early_stopping": True}) == [(1,), (2,)]


@pytest.mark.parametrize("length_penalty", [-2.0, -0.5, 0.0, 0.5])
def test_early_stopping_never_continues_while_a_beam_could_score_higher(length_penalty: float) -> None:
    """Below 0 a longer text has a lower score: what a beam can reach is its score of now, not that of its last step."""
    rows = {22: {30: 0.9, 1: 0.06, 40: 0.04}, 30: {31: 0.9, 1: 0.06, 40: 0.04}, 31: {1: 0.9, 40: 0.1}}
    ours, theirs = table_models(rows, (1,))
    given = {"num_beams": 2, "max_new_tokens": 25, "length_penalty": length_penalty, "early_stopping": "never"}
    found = assert_same_search(ours, theirs, (1,), **given)
    assert length_penalty > 0 or sorted(found) == [(1,), (30, 31, 1)]


@pytest.mark.parametrize("seed", mostly_slow(range(24), 8))
def test_searches_in_random_tables_are_those_of_generate(seed: int) -> None:
    dice = random.Random(seed)
    ends = tuple(dice.sample(range(1, 20), dice.choice([1, 2, 3, 6])))
    rows = {}
    for token_id in (22, *range(1, 50)):
        followers = dice.sample(range(1, 50), 6)
        weights = [dice.random() ** 4 for _ in followers]
        rows[token_id] = {one: weight / sum(weights) for one, weight in zip(followers, weights, strict=True)}
    ours, theirs = table_models(rows, ends)
    for early in (False, True, "never"):
        given = {"num_beams": dice.choice([2, 3, 5]), "max_new_tokens": dice.choice([1, 2, 6, 20])}
        penalty = dice.choice([-2.0, -0.4, 0.0, 0.7, 1.0, 3.0])
        assert_same_search(ours, theirs, ends, early_stopping=early, length_penalty=penalty, **given)


@pytest.mark.parametrize("family", GROWING)
def test_if_generate_differs_from_a_plain_forward_the_plain_forward_applies(family: str) -> None:
    ours, theirs = both(family)
    stream, path = Document(ours, token_ids=PROMPT).stream(max_new_tokens=20), list(PROMPT)
    for step in stream:
        assert step.token_id == int(plain_rows(theirs, [path])[0].argmax())
        path.append(step.token_id)


@pytest.mark.parametrize("options", ALONE, ids=str)
@pytest.mark.parametrize("family", mostly_slow(["llama", "gpt2", "bloom"], 1))
def test_each_rule_alone_equals_generate(family: str, options: dict[str, Any]) -> None:
    assert_same_text(family, **options)
    assert_same_beams(family, num_beams=4, **options)
    assert_same_odds(family, temperature=1.0, **options)


@pytest.mark.parametrize("options", CUTS, ids=str)
@pytest.mark.parametrize("family", some_slow(STEADY))
def test_each_cut_alone_gives_the_distribution_of_transformers(family: str, options: dict[str, Any]) -> None:
    assert_same_odds(family, **options)


rules = st.fixed_dictionaries(
    {},
    optional={
        "repetition_penalty": st.floats(0.5, 2.0),
        "frequency_penalty": st.floats(-1.0, 2.0),
        "presence_penalty": st.floats(-1.0, 2.0),
        "no_repeat_ngram_size": st.integers(1, 4),
        "min_new_tokens": st.integers(0, NEW),
        "forbidden": st.lists(
            st.lists(st.integers(20, VOCABULARY - 1), min_size=1, max_size=3).map(tuple), min_size=1, max_size=6
        ),
    },
)
cuts = st.fixed_dictionaries(
    {"temperature": st.floats(0.2, 3.0)},
    optional={
        "top_k": st.integers(1, VOCABULARY + 4),
        "top_p": st.floats(0.05, 1.0),
        "min_p": st.floats(0.001, 0.9),
        "typical_p": st.floats(0.05, 0.999),
        "min_tokens_to_keep": st.integers(1, 6),
    },
)
searches = st.fixed_dictionaries(
    {"num_beams": st.integers(2, 6)},
    optional={
        "length_penalty": st.floats(-1.0, 3.0),
        "early_stopping": st.sampled_from([False, True, "never"]),
    },
)


@pytest.mark.slow
@pytest.mark.long
@settings(max_examples=200, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(family=st.sampled_from(STEADY), rules=rules, cuts=cuts, searches=searches)
def test_two_hundred_random_combinations_of_options_equal_generate(
    family: str, rules: dict[str, Any], cuts: dict[str, Any], searches: dict[str, Any]
) -> None:
    assert_same_text(family, **rules)
    assert_same_beams(family, **rules, **searches)
    assert_same_odds(family, **rules, **cuts)
