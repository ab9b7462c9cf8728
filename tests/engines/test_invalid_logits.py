"""Logits that are no numbers become a sentence, are never stored, and the next pass computes everything again."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch

from lookahead_core import Calls, Document, Model, load_model
from lookahead_core.analysis.token_facts import observe
from lookahead_core.engines.prediction_rows import LogitRows, token_logprobs
from lookahead_core.errors import InvalidLogits
from tests.conftest import tiny_llama


@pytest.fixture(scope="module")
def model(byte_tokenizer: Any) -> Model:
    """A model of its own: its weights are changed and restored."""
    return load_model(tiny_llama(len(byte_tokenizer)), tokenizer=byte_tokenizer, engine="cached", dtype="float32")


@contextmanager
def broken(model: Model) -> Iterator[None]:
    """Context in which all logits and keys that the model computes are NaN."""
    forward = model.engine.model_copy.forward

    def invalid(*arguments: Any, **options: Any) -> Any:
        result = forward(*arguments, **options)
        result.logits = result.logits * math.nan
        for layer in options["past_key_values"].layers:
            layer.keys.fill_(math.nan)
        return result

    model.engine.model_copy.forward = invalid
    try:
        yield
    finally:
        model.engine.model_copy.forward = forward


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("width", [50, 20_000])
def test_a_row_with_one_invalid_logit_has_no_prediction(value: float, width: int) -> None:
    logits = torch.randn(3, width)
    logits[1, 17] = value
    with pytest.raises(InvalidLogits):
        LogitRows(logits).predictions()
    with pytest.raises(InvalidLogits):
        token_logprobs(logits, [1, 2, 3])
    with pytest.raises(InvalidLogits):
        list(observe(logits, [1, 2, 3], 3))
    logits[1, 17] = -math.inf
    assert len(LogitRows(logits).predictions()) == len(token_logprobs(logits, [1, 2, 3])) == 3


def test_after_invalid_logits_the_same_text_has_the_branches_of_a_new_document(
    model: Model, caplog: pytest.LogCaptureFixture
) -> None:
    document, expected = Document(model, "The sea"), Document(model, "The sea and")
    document.lookahead(k=2, depth=2)
    document.text = "The sea and"
    with broken(model), pytest.raises(InvalidLogits, match=r"no numbers\. Change the text a little to try again\.$"):
        document.lookahead(k=3, depth=4)
    assert "LOOKAHEAD_DTYPE" in caplog.text, "what the person who runs the server can do is in the log"
    found, right = document.lookahead(k=3, depth=4), expected.lookahead(k=3, depth=4)
    assert [branch.token_ids for branch in found.branches] == [branch.token_ids for branch in right.branches]
    for branch, other in zip(found.branches, right.branches, strict=True):
        assert branch.logprobs == pytest.approx(other.logprobs, abs=1e-5)


@pytest.mark.parametrize("options", [{}, {"temperature": 0.8, "seed": 3}])
def test_a_stream_ends_with_the_error_and_not_with_tokens(model: Model, options: dict[str, Any]) -> None:
    document = Document(model, "The sea")
    with broken(model), pytest.raises(InvalidLogits):
        list(document.stream(max_new_tokens=3, **options))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("highlights", {"doc": "The sea is grey", "prompt": "", "updated_doc": "The sea is grey", "k": 3}),
        ("next_token", {"original_doc": "The sea", "prompt": "Go on", "doc_in_progress": "The", "k": 3}),
    ],
)
def test_a_call_that_ends_so_spoils_no_later_call(model: Model, name: str, arguments: dict[str, Any]) -> None:
    calls = Calls(model)
    expected = getattr(Calls(model), name)(**arguments)
    with broken(model), pytest.raises(InvalidLogits):
        getattr(calls, name)(**arguments)
    assert rounded(getattr(calls, name)(**arguments)) == rounded(expected)


def rounded(value: Any) -> Any:
    """The same JSON with few digits: the same passes, made together or one by one, differ in the last ones."""
    if isinstance(value, dict):
        return {name: rounded(each) for name, each in value.items()}
    if isinstance(value, list):
        return [rounded(each) for each in value]
    return float(f"{value:.3g}") if isinstance(value, float) else value
