"""Seed 004: a little model writes, a big one checks; and the same text in fewer of the big one's passes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from lookahead_core import Document, Model, ModelError, load_model
from lookahead_core.agreement import agreement_length, generate_and_check
from tests.conftest import CORPUS, byte_fallback, tiny_llama

PROMPTS = ["Once upon a time", "After careful", "The sea", "Emoji 🙂"]


@pytest.fixture(scope="module")
def little(byte_tokenizer: Any) -> Model:
    """The tiny model with some noise in its weights: it agrees now and then."""
    hf_model = tiny_llama(len(byte_tokenizer))
    torch.manual_seed(5)
    with torch.no_grad():
        for parameter in hf_model.parameters():
            parameter += 0.02 * torch.randn_like(parameter)
    return load_model(hf_model, tokenizer=byte_tokenizer)


def greedy(model: Model, ids: list[int], count: int, ends: frozenset[int] = frozenset()) -> list[int]:
    """The reference: a plain forward for each token."""
    path = list(ids)
    with torch.no_grad():
        for _ in range(count):
            path.append(int(model.hf_model(torch.tensor([path])).logits[0, -1].argmax()))
            if path[-1] in ends:
                break
    return path[len(ids) :]


def common(one: list[int], other: list[int]) -> int:
    return next((place for place, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), len(one))


def test_a_check_says_how_far_the_big_model_agrees_in_one_pass_for_all_prompts(
    tiny_model: Model, little: Model
) -> None:
    checks = generate_and_check(tiny_model, little, PROMPTS, max_new_tokens=12)
    assert len(checks) == len(PROMPTS)
    for prompt, check in zip(PROMPTS, checks, strict=True):
        ids = Document(tiny_model, prompt).token_ids
        ends = tiny_model.end_token_ids
        written, wanted = greedy(little, ids, 12, ends), greedy(tiny_model, ids, 12, ends)
        assert list(check.token_ids) == written
        assert check.agreed == common(written, wanted)
        assert check.stands == (check.agreed == len(written))
        assert check.instead == (None if check.stands else wanted[check.agreed])
        assert check.big_passes == 1
        assert agreement_length(tiny_model, little, prompt, most=12) == check.agreed
    assert {check.stands for check in checks} == {False} or len({check.agreed for check in checks}) > 1


def test_a_model_agrees_with_itself(tiny_model: Model) -> None:
    assert all(check.stands for check in generate_and_check(tiny_model, tiny_model, PROMPTS))


def test_after_an_end_token_nothing_is_written_compared_or_shown(tiny_model: Model) -> None:
    ids = Document(tiny_model, PROMPTS[0]).token_ids
    written = greedy(tiny_model, ids, 10)
    end = written[4]
    ending = replace(tiny_model, end_token_ids=frozenset({end}))
    (check,) = generate_and_check(ending, ending, [PROMPTS[0]], max_new_tokens=10)
    assert list(check.token_ids) == written[: written.index(end) + 1]
    assert check.stands
    assert check.text == Document(tiny_model, token_ids=[*ids, *check.token_ids[:-1]]).text[len(PROMPTS[0]) :]


def test_the_big_models_text_comes_in_fewer_of_its_passes(tiny_model: Model) -> None:
    ids = Document(tiny_model, PROMPTS[0]).token_ids
    wanted = greedy(tiny_model, ids, 30)
    before = tiny_model.engine.passes
    stream = Document(tiny_model, PROMPTS[0]).stream(max_new_tokens=30, drafters=(), draft_model=tiny_model)
    assert [step.token_id for step in stream] == wanted
    assert len(stream.passes) < 30
    assert tiny_model.engine.passes > before


def test_models_with_other_tokens_cannot_be_compared(tiny_model: Model) -> None:
    other = byte_fallback(CORPUS)
    stranger = load_model(tiny_llama(len(other)), tokenizer=other)
    with pytest.raises(ModelError, match="has another tokenizer than"):
        generate_and_check(tiny_model, stranger, PROMPTS)
    with pytest.raises(ModelError, match="has another tokenizer than"):
        Document(tiny_model, "Once").stream(speculate=True, draft_model=stranger)
    with pytest.raises(ValueError, match="max_new_tokens is 0"):
        generate_and_check(tiny_model, tiny_model, PROMPTS, max_new_tokens=0)
