"""Seed 004: a little model writes, a big one checks; and the same text in fewer of the big one's passes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from lookahead_core import Document, Model, ModelError, load_model
from lookahead_core.analysis.agreement import agreement_length, generate_and_check
from tests.conftest import CORPUS, byte_fallback, tiny_llama

PROMPTS = ["Once upon a time", "After careful", "The sea", "Emoji 🙂"]


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


@pytest.mark.slow
def test_a_check_says_how_far_the_big_model_agrees_in_one_pass_for_all_prompts(
    tiny_model: Model, draft_model: Model
) -> None:
    checks = generate_and_check(tiny_model, draft_model, PROMPTS, max_new_tokens=12)
    assert len(checks) == len(PROMPTS)
    for prompt, check in zip(PROMPTS, checks, strict=True):
        ids = Document(tiny_model, prompt).token_ids
        ends = tiny_model.end_token_ids
        written, wanted = greedy(draft_model, ids, 12, ends), greedy(tiny_model, ids, 12, ends)
        assert list(check.token_ids) == written
        assert check.agreed == common(written, wanted)
        assert check.stands == (check.agreed == len(written))
        assert check.instead == (None if check.stands else wanted[check.agreed])
        assert check.big_passes == 1
        assert agreement_length(tiny_model, draft_model, prompt, most=12) == check.agreed
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


def test_a_draft_model_generates_no_ids_that_the_bigger_model_lacks(byte_tokenizer: Any, tiny_model: Model) -> None:
    hf_model = tiny_llama(len(byte_tokenizer) + 24)
    with torch.no_grad():
        hf_model.lm_head.weight[len(byte_tokenizer) :] *= 50
    larger = load_model(hf_model, tokenizer=byte_tokenizer)
    ids = Document(larger, PROMPTS[0]).token_ids
    assert max(greedy(larger, ids, 12)) >= tiny_model.vocabulary
    (check,) = generate_and_check(tiny_model, larger, [PROMPTS[0]], max_new_tokens=12)
    assert max(check.token_ids) < tiny_model.vocabulary
    assert check.agreed == common(list(check.token_ids), greedy(tiny_model, ids, 12, tiny_model.end_token_ids))
    (back,) = generate_and_check(larger, tiny_model, [PROMPTS[0]], max_new_tokens=12)
    assert list(back.token_ids) == greedy(tiny_model, ids, 12, tiny_model.end_token_ids)
    much = load_model(tiny_llama(len(byte_tokenizer) + 1001), tokenizer=byte_tokenizer)
    with pytest.raises(ModelError, match="choose a little model with at most 1,000 more"):
        generate_and_check(tiny_model, much, PROMPTS)


@pytest.mark.slow
@pytest.mark.parametrize("length", [3, 20, 25, 31, 32, 70])
def test_past_its_context_the_big_model_agrees_with_what_its_own_stream_would_write(length: int) -> None:
    narrow, wide = (load_model(tiny_llama(400, max_position_embeddings=size, eos_token_id=None)) for size in (32, 512))
    ids = [5 + 7 * place % 300 for place in range(length)]
    for most in (6, 60):
        wanted = list(Document(narrow, token_ids=ids).stream(max_new_tokens=most, speculate=False))
        for draft_model in (narrow, wide):
            (check,) = generate_and_check(narrow, draft_model, [ids], max_new_tokens=most)
            assert len(check.token_ids) == len(wanted)
            assert check.agreed == common(list(check.token_ids), [step.token_id for step in wanted])
            assert check.stands or draft_model is wide


@pytest.mark.parametrize("prompts", [[3], 3, None, ["Once", 3]])
def test_invalid_prompts_are_refused_with_a_sentence(tiny_model: Model, prompts: Any) -> None:
    with pytest.raises(ValueError, match=r"prompts holds (3|None), and must hold texts, or lists of token ids\."):
        generate_and_check(tiny_model, tiny_model, prompts)


@pytest.mark.parametrize("engine", ["cached", "uncached"])
def test_no_prompts_give_no_checks(byte_tokenizer: Any, engine: str) -> None:
    model = load_model(tiny_llama(len(byte_tokenizer)), tokenizer=byte_tokenizer, engine=engine)
    assert generate_and_check(model, model, []) == []


def test_one_text_is_a_list_of_one(tiny_model: Model) -> None:
    assert generate_and_check(tiny_model, tiny_model, PROMPTS[0]) == generate_and_check(
        tiny_model, tiny_model, PROMPTS[:1]
    )


def test_models_with_other_tokens_cannot_be_compared(tiny_model: Model) -> None:
    other = byte_fallback(CORPUS)
    stranger = load_model(tiny_llama(len(other)), tokenizer=other)
    with pytest.raises(ModelError, match="has another tokenizer than"):
        generate_and_check(tiny_model, stranger, PROMPTS)
    with pytest.raises(ModelError, match="has another tokenizer than"):
        Document(tiny_model, "Once").stream(speculate=True, draft_model=stranger)
    with pytest.raises(ValueError, match="max_new_tokens is 0"):
        generate_and_check(tiny_model, tiny_model, PROMPTS, max_new_tokens=0)
