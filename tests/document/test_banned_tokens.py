"""A lookahead says which likely tokens are missing because they are banned, and how likely they would be."""

from __future__ import annotations

import pytest
import torch

from lookahead_core import Document, Model
from lookahead_core.serving.json_view import MAX_BANNED_SHOWN, lookahead_as_json


def plain_probabilities(model: Model, token_ids: list[int]) -> torch.Tensor:
    """The probabilities after these tokens, from one plain forward of transformers."""
    with torch.no_grad():
        logits = model.hf_model(torch.tensor([token_ids]), use_cache=False).logits[0, -1]
    return torch.softmax(logits.double(), -1)


@pytest.mark.parametrize("mode", ["likely", "every_level", "forks", "best_first", "sampled", "diverse"])
def test_banned_tokens_have_the_probabilities_of_the_plain_model(tiny_model: Model, mode: str) -> None:
    document = Document(tiny_model, "Old sea")
    probabilities = plain_probabilities(tiny_model, document.token_ids)
    likeliest = probabilities.argsort(descending=True).tolist()
    banned = [likeliest[0], likeliest[3], likeliest[9]]
    found = document.lookahead(k=3, depth=2, mode=mode, banned=banned).banned
    assert [token.token_id for token in found] == banned
    assert [token.text for token in found] == [tiny_model.tokenizer.decode([token_id]) for token_id in banned]
    expected = [float(probabilities[token_id]) for token_id in banned]
    assert [token.probability for token in found] == pytest.approx(expected, rel=1e-4)


def test_banned_tokens_are_conditional_on_a_reopened_token(tiny_model: Model) -> None:
    """The reference adds up whole paths: a token that begins with the typed text, or the typed token and one more."""
    document = Document(tiny_model, "Old sea t")
    token_ids, typed = document.token_ids, tiny_model.tokenizer.decode(document.token_ids[-1:])
    before = plain_probabilities(tiny_model, token_ids[:-1])
    after = plain_probabilities(tiny_model, token_ids)
    pieces = [tiny_model.tokenizer.decode([token_id]) for token_id in range(len(before))]
    matching = [token_id for token_id, piece in enumerate(pieces) if piece.startswith(typed)]
    assert len(matching) > 2
    total = float(before[matching].sum())
    longer = max((one for one in matching if one != token_ids[-1]), key=lambda token_id: float(before[token_id]))
    following = int(after.argmax())
    expected = {
        longer: float(before[longer]) / total,
        following: float(before[token_ids[-1]]) / total * float(after[following]),
    }
    found = document.lookahead(k=4, depth=3, heal=True, banned=list(expected)).banned
    assert {token.token_id: token.probability for token in found} == pytest.approx(expected, rel=1e-4)
    assert [token.token_id for token in found] == sorted(expected, key=lambda token_id: -expected[token_id])


def test_unlikely_banned_tokens_are_not_listed(tiny_model: Model) -> None:
    document = Document(tiny_model, "Old sea")
    order = plain_probabilities(tiny_model, document.token_ids).argsort(descending=True).tolist()
    assert document.lookahead(k=3, depth=2, banned=order[-3:]).banned == ()
    assert document.lookahead(k=3, depth=2).banned == ()


def test_the_json_holds_the_likeliest_banned_tokens(tiny_model: Model) -> None:
    document = Document(tiny_model, "Old sea")
    order = plain_probabilities(tiny_model, document.token_ids).argsort(descending=True).tolist()
    result = document.lookahead(k=3, depth=2, banned=order[: MAX_BANNED_SHOWN + 2])
    assert len(result.banned) == MAX_BANNED_SHOWN + 2
    listed = lookahead_as_json(result)["without"]
    assert [one["id"] for one in listed] == order[:MAX_BANNED_SHOWN]
    first = result.banned[0]
    assert listed[0] == {"id": order[0], "text": first.text, "probability": round(first.probability, 6)}
    assert lookahead_as_json(document.lookahead(k=3, depth=2))["without"] == []
