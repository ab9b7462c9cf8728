"""The bounds of every option: values on them are accepted, values beyond raise an error that names the bounds."""

from __future__ import annotations

import math
from typing import Any

import pytest

from lookahead_core.strategies.beam_options import BeamOptions
from lookahead_core.strategies.lookahead_options import LookaheadOptions
from lookahead_core.strategies.rules import LogitRules
from lookahead_core.strategies.stream_options import StreamOptions
from lookahead_core.validation import as_token_id, check_choice, check_integer, check_number, parse_options

SAFE = 2**53
WHOLE: list[tuple[type[Any], str, int, int, dict[str, Any]]] = [
    (LookaheadOptions, "k", 1, 20, {}),
    (LookaheadOptions, "depth", 1, 100, {}),
    (LookaheadOptions, "branch_levels", 1, 8, {}),
    (LookaheadOptions, "branch_total", 0, 400, {}),
    (LookaheadOptions, "split_limit", 1, 20, {}),
    (LookaheadOptions, "budget", 1, 4096, {}),
    (LookaheadOptions, "width", 1, 256, {}),
    (LookaheadOptions, "seed", 0, SAFE, {}),
    (LogitRules, "max_new_tokens", 1, 65_536, {}),
    (LogitRules, "min_new_tokens", 0, 7, {"max_new_tokens": 7}),
    (LogitRules, "no_repeat_ngram_size", 0, 65_536, {}),
    (StreamOptions, "top_k", 0, 10**9, {}),
    (StreamOptions, "min_tokens_to_keep", 1, 10**9, {}),
    (StreamOptions, "seed", 0, SAFE, {}),
    (StreamOptions, "stream", 0, SAFE, {}),
    (StreamOptions, "max_words", 1, 65_536, {}),
    (BeamOptions, "num_beams", 1, 100, {}),
    (BeamOptions, "num_return_sequences", 1, 100, {"num_beams": 100}),
]
NUMBERS: list[tuple[type[Any], str, float, float, bool]] = [
    (LookaheadOptions, "cutoff", 0.0, 1.0, False),
    (LookaheadOptions, "slope", 1.0, 100.0, False),
    (LookaheadOptions, "temperature", 0.0, 2.0, False),
    (LookaheadOptions, "top_p", 0.0, 1.0, True),
    (LookaheadOptions, "contrast", 0.0, 100.0, False),
    (LookaheadOptions, "floor", 0.0, 1.0, False),
    (LogitRules, "repetition_penalty", 0.0, 100.0, True),
    (LogitRules, "frequency_penalty", -1000.0, 1000.0, False),
    (LogitRules, "presence_penalty", -1000.0, 1000.0, False),
    (StreamOptions, "temperature", 0.0, 100.0, False),
    (StreamOptions, "top_p", 0.0, 1.0, True),
    (StreamOptions, "min_p", 0.0, 1.0, False),
    (StreamOptions, "typical_p", 0.0, 1.0, True),
    (BeamOptions, "length_penalty", -10.0, 10.0, False),
]
DEFAULTS: dict[type[Any], dict[str, Any]] = {
    LookaheadOptions: {
        "k": 5, "depth": 5, "mode": "likely", "until": "tokens", "branch_levels": 2, "cutoff": 0.15, "slope": 1.0,
        "split_limit": 3, "budget": 64, "width": 16, "temperature": 1.0, "top_p": 1.0, "seed": 0,
        "banned": frozenset(), "heal": False, "speculate": False, "stop_at_repetition": False, "contrast": 10.0,
        "floor": 0.003, "branch_total": 0,
    },
    LogitRules: {
        "max_new_tokens": 40, "min_new_tokens": 0, "repetition_penalty": 1.0, "frequency_penalty": 0.0,
        "presence_penalty": 0.0, "no_repeat_ngram_size": 0, "forbidden": (), "forced": (),
    },
    StreamOptions: {
        "temperature": None, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "typical_p": 1.0, "min_tokens_to_keep": 1,
        "seed": None, "stream": 0, "stop": (), "stop_ids": (), "stop_when": None, "max_words": None,
        "speculate": None, "drafters": ("suffix", "recycled"), "draft_model": None, "heads": None, "corpus": None,
        "source": "", "applied_temperature": 0.0,
    },
    BeamOptions: {
        "num_beams": 5, "num_return_sequences": None, "returned": 5, "length_penalty": 1.0, "early_stopping": False,
        "num_beam_groups": 1, "diversity_penalty": 0.0, "stopping": "transformers",
    },
}  # fmt: skip


@pytest.mark.parametrize(("kind", "name", "low", "high", "others"), WHOLE)
def test_whole_numbers_up_to_both_bounds_are_taken_and_no_others(
    kind: type[Any], name: str, low: int, high: int, others: dict[str, Any]
) -> None:
    for value in (low, high):
        assert getattr(kind(**{name: value}, **others), name) == value
    for wrong in (low - 1, high + 1, low + 0.5, float(high), True, str(high), math.nan):
        with pytest.raises(ValueError, match=rf"^{name} is .*, and must be a whole number from {low} to {high:,}\.$"):
            kind(**{name: wrong}, **others)


@pytest.mark.parametrize(("kind", "name", "low", "high", "above"), NUMBERS)
def test_numbers_up_to_both_bounds_are_taken_and_no_others(
    kind: type[Any], name: str, low: float, high: float, above: bool
) -> None:
    least = low + 1e-9 if above else low
    for value in (least, high, int(high)):
        assert getattr(kind(**{name: value}), name) == value
    for wrong in (low if above else low - 1e-9, high + 1e-9, math.nan, math.inf, True, "1", None):
        if wrong is None and kind is StreamOptions and name == "temperature":
            continue
        with pytest.raises(ValueError, match=rf"^{name} is .*, and must be "):
            kind(**{name: wrong})


@pytest.mark.parametrize("kind", DEFAULTS)
def test_options_have_their_documented_defaults(kind: type[Any]) -> None:
    made = kind()
    assert {name: getattr(made, name) for name in DEFAULTS[kind]} == DEFAULTS[kind]


def test_the_diversity_of_groups_has_bounds() -> None:
    groups = {"num_beams": 4, "num_beam_groups": 4}
    for value in (0.001, 1000):
        assert BeamOptions(**groups, diversity_penalty=value).diversity_penalty == value
    for wrong in (-0.001, 1000.1):
        with pytest.raises(ValueError, match=r"diversity_penalty is .*, and must be a number from 0 to 1000"):
            BeamOptions(**groups, diversity_penalty=wrong)
    for wrong in (0, 5):
        with pytest.raises(ValueError, match=f"num_beam_groups is {wrong}, and must be a whole number from 1 to 4"):
            BeamOptions(num_beams=4, num_beam_groups=wrong, diversity_penalty=1.0)


def test_so_many_branches_and_no_more() -> None:
    """400 rows: 20 ways at two levels, or 7 at three, and no level that is deeper than the branches are."""
    assert LookaheadOptions(mode="every_level", k=20, branch_levels=2).k == 20
    assert LookaheadOptions(mode="every_level", k=7, branch_levels=3).k == 7
    assert LookaheadOptions(mode="every_level", k=20, branch_levels=8, depth=2).depth == 2
    assert LookaheadOptions(mode="likely", k=20, branch_levels=8).k == 20
    for wrong in ({"k": 8, "branch_levels": 3}, {"k": 20, "branch_levels": 3}, {"k": 2, "branch_levels": 9}):
        with pytest.raises(ValueError, match="branch_levels is "):
            LookaheadOptions(mode="every_level", depth=9, **wrong)
    assert LookaheadOptions(mode="every_level", k=2, branch_levels=8, depth=9).branch_levels == 8
    assert LookaheadOptions(mode="every_level", k=20, branch_levels=8, depth=9, branch_total=20).branch_total == 20


def test_bans_are_token_ids_at_most_a_thousand_and_not_all_there_are() -> None:
    assert LookaheadOptions(banned=range(1000)).banned == frozenset(range(1000))
    assert LookaheadOptions(banned=[3, 3]).banned == {3}
    LookaheadOptions(banned=range(9)).check_vocabulary(10)
    for wrong, sentence in (
        (range(1001), "banned holds 1,001 ids, and may hold at most 1,000"),
        ([-1], "banned holds -1, and must hold whole numbers from 0"),
        ([True], "banned holds True"), ([1.0], "banned holds 1.0"), ("12", "banned is '12', and must be a list"),
        (b"12", "banned is b'12'"), (7, "banned is 7"), (iter([1]), "and must be a list of token ids"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=sentence):
            LookaheadOptions(banned=wrong)
    with pytest.raises(ValueError, match="banned holds 9, and must hold whole numbers from 0 to 8"):
        LookaheadOptions(banned=[1, 9]).check_vocabulary(9)
    with pytest.raises(ValueError, match="banned holds every token there is; leave at least one"):
        LookaheadOptions(banned=range(9)).check_vocabulary(9)


@pytest.mark.parametrize("name", ["heal", "speculate"])
def test_switches_are_true_or_false(name: str) -> None:
    assert getattr(LookaheadOptions(**{name: True}), name) is True
    for wrong in (1, 0, None, "yes"):
        with pytest.raises(ValueError, match=f"{name} is .*, and must be True or False"):
            LookaheadOptions(**{name: wrong})


def test_a_seed_or_a_cut_makes_a_stream_sample() -> None:
    assert StreamOptions(min_tokens_to_keep=3, stream=4, repetition_penalty=2.0).applied_temperature == 0
    for options in ({"top_k": 1}, {"top_p": 0.99}, {"min_p": 0.01}, {"typical_p": 0.99}, {"seed": 0}):
        assert StreamOptions(**options).applied_temperature == 1
        assert StreamOptions(**options, temperature=0).applied_temperature == 0
        assert StreamOptions(**options, temperature=0.5).applied_temperature == 0.5


def test_options_for_the_choice_leave_out_stops_and_speculation() -> None:
    drawing = {"temperature": 0.7, "top_k": 9, "seed": 3, "stream": 2, "forbidden": [(4,)], "max_new_tokens": 9}
    ending = {"stop": "x", "stop_ids": [(1,)], "stop_when": len, "max_words": 3}
    saving = {"speculate": False, "drafters": ("suffix",), "draft_model": 1, "heads": 2, "corpus": 3, "source": "y"}
    assert StreamOptions(**drawing, **ending, **saving).for_choice == StreamOptions(**drawing)
    for name, other in (("temperature", 0.8), ("top_k", 8), ("seed", 4), ("stream", 3), ("forbidden", [(5,)])):
        assert StreamOptions(**drawing | {name: other}).for_choice != StreamOptions(**drawing).for_choice


def test_words_are_strings_or_ids_each_once() -> None:
    rules = LogitRules(forbidden=["a", 5, (5,), [6, 7], "a"], forced="b")
    assert rules.forbidden == ("a", (5,), (6, 7)) and rules.forced == ("b",)
    assert LogitRules(forbidden=5).forbidden == ((5,),)
    assert len(LogitRules(forbidden=range(1000)).forbidden) == 1000
    for wrong, sentence in (
        (range(1001), "forbidden holds 1,001 entries, and may hold at most 1,000"), (b"a", "forbidden is b'a'"),
        (None, "forbidden is None"), ([()], r"forbidden holds \(\), and must hold strings or lists of token ids"),
        ([(1, -1)], r"forbidden holds \(1, -1\)"), ([1.5], "forbidden holds 1.5"), ([""], "forbidden holds an empty"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=sentence):
            LogitRules(forbidden=wrong)


def test_forced_words_must_not_repeat_n_grams_that_may_not_repeat() -> None:
    assert LogitRules(forced=[(1, 2, 1)], no_repeat_ngram_size=2).forced == ((1, 2, 1),)
    assert LogitRules(forced=[(1, 2, 1, 2)], no_repeat_ngram_size=3).forced == ((1, 2, 1, 2),)
    assert LogitRules(forced=[(1, 2, 1, 2)]).forced == ((1, 2, 1, 2),)
    for word, size in (((1, 1), 1), ((1, 2, 1, 2), 2), ((1, 1, 1), 2)):
        with pytest.raises(ValueError, match=f"is forced, and holds the same {size} tokens twice"):
            LogitRules(forced=[word], no_repeat_ngram_size=size)


def test_a_stop_string_may_stand_beside_forced_words_that_do_not_hold_it() -> None:
    made = StreamOptions(forced=["lighthouse", (7, 8)], stop=["x", "houses"])
    assert (made.stop, made.forced) == (("x", "houses"), ("lighthouse", (7, 8)))
    for stop in ("house", "lighthouse", "l"):
        with pytest.raises(ValueError, match=f"stop holds '{stop}', which the forced 'lighthouse' would end at"):
            StreamOptions(forced=["lighthouse", (7, 8)], stop=["x", stop])


def test_error_messages_name_the_wrong_value_and_the_allowed_ones() -> None:
    with pytest.raises(ValueError, match=r"^n is 0, and must be a number more than 0\.$"):
        check_number("n", 0, 0, math.inf, above=True)
    with pytest.raises(ValueError, match=r"^n is 0, and must be a number more than 0, and at most 3\.$"):
        check_number("n", 0, 0, 3, above=True)
    with pytest.raises(ValueError, match=r"^n is -1, and must be a number from 0 to 3\.$"):
        check_number("n", -1, 0, 3)
    with pytest.raises(ValueError, match=r"^n is 2000, and must be a whole number from 1 to 1,000\.$"):
        check_integer("n", 2000, 1, 1000)
    with pytest.raises(ValueError, match=r"^n is 1, and must be one of True, never\.$"):
        check_choice("n", 1, (True, "never"))
    check_choice("n", "".join(["nev", "er"]), (True, "never"))
    with pytest.raises(ValueError, match=r"^deep is not an option of lookahead; the options are k, depth, "):
        parse_options(LookaheadOptions, {"k": 3, "deep": 2}, "lookahead")


def test_numbers_of_numpy_are_options() -> None:
    import numpy as np

    options = LookaheadOptions.of({"k": np.int64(3), "depth": np.uint8(4), "temperature": np.float32(0.5)})
    assert (options.k, options.depth, options.temperature) == (3, 4, 0.5)
    assert [type(one) for one in (options.k, options.depth, options.temperature)] == [int, int, float]
    with pytest.raises(ValueError, match=r"k is 3\.0, and must be a whole number"):
        LookaheadOptions.of({"k": np.float64(3)})
    with pytest.raises(ValueError, match="k is "):
        LookaheadOptions.of({"k": np.True_})


def test_token_ids_are_whole_numbers_of_any_kind() -> None:
    import numpy as np
    import torch

    assert [as_token_id(one) for one in (7, np.int64(7), torch.tensor(7))] == [7, 7, 7]
    assert [as_token_id(one) for one in (True, 7.0, "7", None, torch.tensor(7.0))] == [-1] * 5
