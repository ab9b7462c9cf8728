"""Speculation on the default model: the same text in float32; in bfloat16 it differs only where two tokens tie."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import pytest
import torch

from benchmarks.tasks import TASKS, prompts_of
from lookahead_core import Document, Model, load_model
from tests.support.drafting import Steady, hostile

pytestmark = pytest.mark.slow
PROMPTS = 1
NEW_TOKENS = 40


@pytest.fixture(scope="module")
def halved() -> Model:
    """The default model in bfloat16."""
    return load_model(os.environ.get("LOOKAHEAD_TEST_MODEL") or None, dtype="bfloat16")


def texts_of(model: Model, ids: Sequence[int], **options: Any) -> tuple[list[int], list[int], int]:
    """What comes without drafts and with them, and how many passes the latter took."""
    plain = Document(model, token_ids=ids).stream(max_new_tokens=NEW_TOKENS, speculate=False, **options)
    without = [step.token_id for step in plain]
    stream = Document(model, token_ids=ids).stream(max_new_tokens=NEW_TOKENS, speculate=True, **options)
    return without, [step.token_id for step in stream], len(stream.passes)


@pytest.mark.parametrize("task", TASKS)
def test_in_float32_the_text_is_the_same_and_takes_fewer_passes(
    default_model: Model, task: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a slow machine, measured costs of passes may say that drafts do not pay.
    monkeypatch.setattr(default_model.engine, "pass_costs", Steady())
    passes = tokens = 0
    for prompt in list(prompts_of(task, default_model.tokenizer, NEW_TOKENS))[:PROMPTS]:
        for options in ({}, {"temperature": 0.7, "top_p": 0.9, "seed": 1}):
            without, drafted, count = texts_of(default_model, prompt.ids, **options)
            assert drafted == without
            passes, tokens = passes + count, tokens + len(drafted)
    assert passes < tokens


def test_in_float32_hostile_drafters_change_nothing(default_model: Model) -> None:
    (prompt, *_) = prompts_of("chat", default_model.tokenizer, NEW_TOKENS)
    drafters = hostile(default_model.vocabulary, default_model.end_token_ids)[:3]
    without, drafted, _ = texts_of(default_model, prompt.ids, drafters=drafters)
    assert drafted == without


def wobble(model: Model, ids: Sequence[int], start: int) -> float:
    """The 99th percentile of what the plain model's logits differ by between one forward and one token at a time."""
    row = torch.tensor([list(ids)])
    with torch.no_grad():
        whole = model.hf_model(row, use_cache=False).logits[0, start:].float()
        known = model.hf_model(row[:, :start], use_cache=True).past_key_values
        steps = []
        for place in range(start, row.shape[1]):
            out = model.hf_model(row[:, place : place + 1], past_key_values=known, use_cache=True)
            steps.append(out.logits[0, -1].float())
    differences = (whole - torch.stack(steps)).abs().flatten()
    return float(differences[torch.randperm(len(differences))[:1_000_000]].quantile(0.99))


def test_in_bfloat16_texts_differ_only_where_two_tokens_nearly_tie(
    halved: Model, default_model: Model, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.manual_seed(0)
    parted, texts = 0, 0
    for task in TASKS:
        for prompt in list(prompts_of(task, halved.tokenizer, NEW_TOKENS))[:PROMPTS]:
            without, drafted, _ = texts_of(halved, prompt.ids)
            texts += 1
            if without == drafted:
                continue
            parted += 1
            place = next(index for index, pair in enumerate(zip(without, drafted, strict=False)) if pair[0] != pair[1])
            path = [*prompt.ids, *without[:place]]
            row: Any = Document(default_model, token_ids=path).predict(row=True).row
            gap = abs(float(row[without[place]] - row[drafted[place]]))
            bound = 2 * wobble(halved, path, max(1, len(path) - 40))
            assert gap <= bound, f"{task} {prompt.number}: {gap:.3f}, and the plain model wobbles by {bound / 2:.3f}"
    with capsys.disabled():
        print(f"\nbfloat16: {parted} of {texts} texts part from the plain run, each where two tokens tie")
