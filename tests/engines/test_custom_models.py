"""Models whose forward treats `logits_to_keep` differently: predictions are right, or loading raises a ModelError."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers

from lookahead_core import Document, ModelError, load_model
from tests.conftest import tiny_llama
from tests.document.test_documents import continuations
from tests.support.families import plain_rows

CONFIG = tiny_llama(300).config


class AllPositions(transformers.LlamaForCausalLM):
    """Accepts `logits_to_keep` and returns the logits of every position."""

    def forward(self, input_ids=None, attention_mask=None, position_ids=None, logits_to_keep=0, **options: Any) -> Any:
        return super().forward(input_ids, attention_mask, position_ids, **options)


class LastTwoOnly(transformers.LlamaForCausalLM):
    """Returns the logits of the last two positions, whichever were requested."""

    def forward(self, input_ids=None, attention_mask=None, position_ids=None, logits_to_keep=0, **options: Any) -> Any:
        return super().forward(input_ids, attention_mask, position_ids, logits_to_keep=2, **options)


class IntegersOnly(transformers.LlamaForCausalLM):
    """Accepts `logits_to_keep` as an integer, and fails on a tensor of positions."""

    def forward(self, input_ids=None, attention_mask=None, position_ids=None, logits_to_keep=0, **options: Any) -> Any:
        if not isinstance(logits_to_keep, int):
            raise TypeError("logits_to_keep must be a number")
        return super().forward(input_ids, attention_mask, position_ids, logits_to_keep=logits_to_keep, **options)


class Changing(transformers.LlamaForCausalLM):
    """Returns the requested logits until `last_two` is set, and then those of the last two positions."""

    last_two = False

    def forward(self, input_ids=None, attention_mask=None, position_ids=None, logits_to_keep=0, **options: Any) -> Any:
        kept = 2 if type(self).last_two else logits_to_keep
        return super().forward(input_ids, attention_mask, position_ids, logits_to_keep=kept, **options)


def random_model(kind: Any) -> Any:
    """A tiny model of this class with random weights."""
    torch.manual_seed(0)
    hf_model = kind(CONFIG).eval()
    for parameter in hf_model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.15)
    return hf_model


@pytest.mark.parametrize("engine", ["cached", "uncached"])
def test_a_model_that_ignores_logits_to_keep_gets_the_right_branches(engine: str) -> None:
    hf_model = random_model(AllPositions)
    model = load_model(hf_model, tokenizer=None, engine=engine)
    ids = [5, 17, 100, 3, 250, 8, 9]
    document = Document(model, token_ids=ids)
    (logits,) = plain_rows(hf_model, [ids])
    row = document.predict(row=True).row
    assert float((row - logits.log_softmax(-1)).abs().max()) <= 1e-5 * float(logits.abs().max())
    expected = continuations(hf_model, ids, 3, 5, frozenset())
    assert [list(branch.token_ids) for branch in document.lookahead(k=3, depth=5).branches] == expected
    drafted = [step.token_id for step in Document(model, token_ids=ids).stream(max_new_tokens=12, speculate=True)]
    plain = [step.token_id for step in Document(model, token_ids=ids).stream(max_new_tokens=12, speculate=False)]
    assert drafted == plain


def test_a_model_that_returns_other_positions_than_requested_is_refused_at_load() -> None:
    with pytest.raises(ModelError, match="returned logits for 2 positions, but 1 of 3 were requested"):
        load_model(random_model(LastTwoOnly), tokenizer=None, engine="uncached")
    with pytest.raises(ModelError, match="returned logits for 2 positions"):
        load_model(random_model(LastTwoOnly), tokenizer=None)


@pytest.mark.parametrize("engine", ["cached", "uncached"])
def test_a_model_that_returns_other_positions_later_is_refused_in_that_pass(
    engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = load_model(random_model(Changing), tokenizer=None, engine=engine)
    document = Document(model, token_ids=[5, 17, 100, 3])
    document.predict()
    monkeypatch.setattr(Changing, "last_two", True)
    with pytest.raises(ModelError, match="returned logits for 2 positions"):
        document.lookahead(k=5, depth=2)
    monkeypatch.setattr(Changing, "last_two", False)
    assert document.lookahead(k=5, depth=2).branches
    document.check()


def test_a_model_whose_forward_fails_is_refused_at_load_with_its_own_error_message() -> None:
    for engine in ("auto", "uncached"):
        with pytest.raises(ModelError, match="logits_to_keep must be a number"):
            load_model(random_model(IntegersOnly), tokenizer=None, engine=engine)
