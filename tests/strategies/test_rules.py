"""The tokens that logit rules allow, against slow references on bytes and ids."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
import torch

from lookahead_core import Model
from lookahead_core.strategies.rules import LogitRules, ModelRules, RuledOutError, require_allowed_token
from tests.support.spelling import tokens_as_bytes

ENDS = frozenset({0})


def ruling(model: Model, **options: Any) -> ModelRules:
    return ModelRules(LogitRules(**options), ENDS, model.codec, model.vocabulary)


def left(made: ModelRules, path: list[int], new: int) -> set[int]:
    """The tokens that may follow a path whose last tokens are new."""
    row = made.apply(torch.zeros(400), path, new)
    return set(row.isfinite().nonzero()[:, 0].tolist())


@pytest.mark.parametrize("seed", range(12))
def test_exactly_the_tokens_that_complete_a_forbidden_string_are_excluded(tiny_model: Model, seed: int) -> None:
    dice, spelled = random.Random(seed), tokens_as_bytes(tiny_model.tokenizer)
    words = ["the", "sea", " s", "e", "eper", "keeper ", "🙂", "ab", "aa", "中文", "a and a"]
    forbidden = dice.sample(words, dice.randint(1, 4))
    path = [dice.randrange(400) for _ in range(dice.randint(0, 6))]
    for word in dice.sample(words, 2):
        path += tiny_model.tokenizer(word, add_special_tokens=False).input_ids[: dice.randint(1, 3)]
    before = b"".join(spelled[token_id] for token_id in path)
    made = ruling(tiny_model, forbidden=forbidden)
    expected = set()
    for token_id, piece in enumerate(spelled):
        text = before + piece
        starts = range(max(0, len(before) - 40), len(text))
        ends = [
            start + len(one.encode()) for start in starts for one in forbidden if text.startswith(one.encode(), start)
        ]
        if all(end <= len(before) for end in ends):
            expected.add(token_id)
    assert left(made, path, 0) == expected
    assert not made.changes_nothing


def test_forbidden_ids_are_excluded_where_they_would_complete_a_sequence(tiny_model: Model) -> None:
    made = ruling(tiny_model, forbidden=[5, (6, 7), (7, 6, 7), (8, 8)])
    everything = set(range(400))
    assert left(made, [], 0) == left(made, [7], 1) == everything - {5}
    assert left(made, [6], 1) == left(made, [7, 6], 2) == left(made, [6], 0) == everything - {5, 7}
    assert left(made, [8], 0) == everything - {5, 8}
    assert left(made, [8, 9], 0) == everything - {5}


def test_end_tokens_wait_for_the_minimum_length_and_for_forced_phrases(tiny_model: Model) -> None:
    made = ruling(tiny_model, min_new_tokens=3)
    assert [0 in left(made, [4] * size, size) for size in range(5)] == [False] * 3 + [True] * 2
    assert 0 not in left(made, [4] * 9, 2), "what stood before does not count"
    made = ruling(tiny_model, forced=[(5, 6)], min_new_tokens=1)
    assert [made.may_end(new) for new in ([], [5, 6], [5], [6, 5], [4, 5, 6, 4])] == [False, True, False, False, True]
    assert ruling(tiny_model, min_new_tokens=2).may_end([1, 2]) and not ruling(tiny_model, min_new_tokens=3).may_end(
        [1, 2]
    )


def test_phrases_are_found_at_token_boundaries_only(tiny_model: Model) -> None:
    """The eight bytes of token 256 also occur across the boundary of two tokens 1."""
    made = ruling(tiny_model, forced=[(256,), (1, 1, 256)])
    assert made.missing_phrases([1, 1]) == [(256,), (1, 1, 256)]
    assert made.missing_phrases([1, 1, 256]) == []
    assert made.missing_phrases([256, 1, 1]) == [(1, 1, 256)]
    assert made.missing_phrases([]) == [(256,), (1, 1, 256)]


@pytest.mark.parametrize("seed", range(30))
def test_when_forced_phrases_only_just_fit_only_their_tokens_are_allowed(tiny_model: Model, seed: int) -> None:
    dice = random.Random(seed)
    forced = list({tuple(dice.choices(range(1, 5), k=dice.randint(1, 3))) for _ in range(dice.randint(1, 2))})
    new = [dice.randrange(1, 5) for _ in range(dice.randint(0, 4))]
    total = sum(map(len, forced))
    most = max(total, len(new) + 1 + dice.randint(0, total))
    made = ruling(tiny_model, forced=forced, max_new_tokens=most)

    def needed(tokens: list[int]) -> int:
        """How many tokens are still to come, the words one after the other, the one that is begun furthest first."""
        missing = [w for w in forced if not any(tuple(tokens[i : i + len(w)]) == w for i in range(len(tokens)))]
        begun = [size for w in missing for size in range(1, len(w)) if tuple(tokens[-size:]) == w[:size]]
        return sum(map(len, missing)) - max(begun, default=0)

    room = most - len(new) - 1
    missing = made.missing_phrases(new)
    if sum(map(len, missing)) <= room:
        expected = set(range(400))
    else:
        # A token counts by how far it brings the word that is missing; another word may be over with it.
        expected = {
            one for one in range(400)
            if any(w[done] == one and tuple(new[len(new) - done :]) == w[:done]
                   and sum(map(len, missing)) - done - 1 <= room for w in missing for done in range(len(w)))
        }  # fmt: skip
        assert all(needed([*new, one]) <= room for one in expected)
    assert left(made, new, len(new)) == expected - (ENDS if missing else set())


def test_penalties_are_applied_in_the_order_of_transformers(tiny_model: Model) -> None:
    """Divided or multiplied first, then ruled out, then less by what it has cost to come."""
    row = torch.linspace(-2, 2, 400)
    made = ruling(tiny_model, repetition_penalty=2.0, frequency_penalty=0.5, presence_penalty=0.25, forbidden=[9])
    found = made.apply(row, [3, 3, 390, 9], 2)
    assert float(found[3]) == pytest.approx(float(row[3]) * 2 - 1.25)
    assert float(found[390]) == pytest.approx(float(row[390]) / 2 - 0.75)
    assert float(found[9]) == -math.inf
    rest = [token_id for token_id in range(400) if token_id not in (3, 9, 390)]
    assert torch.equal(found[rest], row[rest])


def test_rules_that_rule_nothing_leave_rows_bare(tiny_model: Model) -> None:
    assert ruling(tiny_model).changes_nothing and ruling(tiny_model, max_new_tokens=3).changes_nothing
    for options in (
        {"repetition_penalty": 1.1}, {"frequency_penalty": -0.1}, {"presence_penalty": 0.1}, {"forbidden": [3]},
        {"no_repeat_ngram_size": 1}, {"min_new_tokens": 1}, {"forced": [3]},
    ):  # fmt: skip
        assert not ruling(tiny_model, **options).changes_nothing


def test_the_error_for_a_row_without_allowed_tokens_names_the_number_of_new_tokens() -> None:
    require_allowed_token(torch.tensor([-math.inf, -90.0]), 3)
    with pytest.raises(RuledOutError, match=r"^After 3 tokens the options rule every token out"):
        require_allowed_token(torch.tensor([-math.inf, -math.inf]), 3)


def test_a_forced_word_stands_apart_from_the_one_before_it_in_scripts_with_spaces(tiny_model: Model) -> None:
    spelled = tokens_as_bytes(tiny_model.tokenizer)
    for word, text in (("sea", " sea"), ("中文", "中文"), ("!", "!"), ("7", " 7")):
        (ids,) = ruling(tiny_model, forced=[word]).forced
        assert b"".join(spelled[token_id] for token_id in ids).decode() == text


def test_impossible_forced_phrases_raise_an_error(tiny_model: Model) -> None:
    for options, sentence in (
        ({"forced": [(7, 400)]}, "There is no token 400; this model's ids go from 0 to 399"),
        ({"forbidden": [(400,)]}, "There is no token 400"),
        ({"forced": [(7, 0)]}, "forced holds an end token"),
        ({"forced": [(7, 8), (9,)], "max_new_tokens": 2}, "max_new_tokens is 2, and the forced words alone take 3"),
        ({"forced": [(7, 8, 9)], "forbidden": [(8, 9)]}, r"The forced phrase .* holds a forbidden one"),
        ({"forced": ["seaside"], "forbidden": ["asi"]}, r"The forced phrase ' seaside' holds a forbidden one"),
    ):
        with pytest.raises(ValueError, match=sentence):
            ruling(tiny_model, **options)
    made = ruling(tiny_model, forced=[(7, 8), (9,)], forbidden=[(9, 7), "zz"], max_new_tokens=3)
    assert made.forced == [(7, 8), (9,)]
    ruling(tiny_model, forbidden=[0], forced=[399])
