"""The seed's evaluation and round trips of text on the default model."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import pytest
import torch

from lookahead_core import Document, Model, load_model
from lookahead_core.engines.uncached import UncachedEngine
from tests.support.families import plain_rows_by_length
from tests.text.test_codec import accept_random, decoded, random_text

SEED_CHECKPOINT = "Alina3234/gemma-lookahead"


def seed_evaluation(hf_model: Any, cached: Document, depth: int) -> None:
    """At every step of every branch, the cached logits are those of a plain forward over that step's path, to 1e-4."""
    branches = [list(branch.token_ids) for branch in cached.lookahead(k=5, depth=depth).branches]
    paths = [cached.token_ids + ids[:length] for ids in branches for length in range(len(ids))]
    rows = iter(plain_rows_by_length(hf_model, paths))
    for ids in branches:
        require_equal_rows(cached, ids, [next(rows) for _ in ids])


def require_equal_rows(cached: Document, ids: list[int], rows: Iterable[torch.Tensor]) -> None:
    """Compare the cached predictions along a branch with the plain logits before each of its tokens."""
    node = cached.head
    for depth, (token_id, logits) in enumerate(zip(ids, rows, strict=True)):
        assert node.prediction is not None
        expected = torch.log_softmax(logits, -1)
        said = torch.tensor(node.prediction.logprobs)
        assert torch.allclose(said, expected[list(node.prediction.token_ids)], atol=1e-4)
        assert token_id == int(logits.argmax()) or depth == 0
        node = node.children[token_id]


def test_cached_equals_uncached_at_every_step_for_the_seeds_prompt(default_model: Model) -> None:
    document = Document(default_model, "After careful")
    assert document.token_ids == [4582, 5649]
    seed_evaluation(default_model.hf_model, document, 10)


@pytest.mark.slow
def test_cached_equals_uncached_at_every_step_to_depth_100(default_model: Model) -> None:
    """The reference is one plain forward over each whole branch, which gives the logits of all its steps."""
    document = Document(default_model, "After careful")
    for branch in document.lookahead(k=5, depth=100).branches:
        path = torch.tensor([[*document.token_ids, *branch.token_ids]])
        with torch.inference_mode():
            logits = default_model.hf_model(path, use_cache=False).logits[0].float()
        require_equal_rows(document, list(branch.token_ids), logits[len(document.token_ids) - 1 : -1])


@pytest.mark.slow
def test_the_two_engines_show_the_same_branches(default_model: Model) -> None:
    uncached = load_model(default_model.hf_model, tokenizer=default_model.tokenizer, engine="uncached")
    assert isinstance(uncached.engine, UncachedEngine)
    one, other = (Document(model, "The old lighthouse keeper") for model in (default_model, uncached))
    first, second = one.lookahead(k=5, depth=6), other.lookahead(k=5, depth=6)
    assert [branch.token_ids for branch in first.branches] == [branch.token_ids for branch in second.branches]
    assert first.coverage == pytest.approx(second.coverage, abs=1e-4)
    assert first.cost.tokens < second.cost.tokens


@pytest.mark.parametrize("texts", [200, pytest.param(2000, marks=pytest.mark.slow)])
def test_random_unicode_texts_survive_a_round_trip(default_model: Model, texts: int) -> None:
    dice = random.Random(texts)
    for _ in range(texts):
        typed = random_text(dice)
        document = Document(default_model, typed)
        assert document.text == typed == decoded(default_model.tokenizer, document.token_ids)
        accept_random(document, dice, typed, 49152)


def test_the_end_token_is_an_ending_and_never_text(default_model: Model) -> None:
    assert default_model.end_token_ids == frozenset({default_model.tokenizer.convert_tokens_to_ids("<|im_end|>")})
    chat = default_model.tokenizer.apply_chat_template(
        [{"role": "user", "content": "Say yes."}], add_generation_prompt=True, return_dict=False
    )
    result = Document(default_model, token_ids=list(chat)).lookahead(k=5, depth=12)
    ended = [branch for branch in result.branches if branch.ended]
    assert ended and all("<|" not in branch.text for branch in result.branches)


@pytest.mark.hub
def test_the_seeds_evaluation_holds_on_its_own_checkpoint() -> None:
    from lookahead_core import ModelError

    try:
        model = load_model(SEED_CHECKPOINT, dtype="float32")
    except ModelError as error:
        pytest.skip(f"The seed's checkpoint cannot be had here: {error}")
    seed_evaluation(model.hf_model, Document(model, "After careful"), 10)
