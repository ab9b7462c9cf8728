"""Sampling from a row: the noise against a second implementation, and the distribution of the samples."""

from __future__ import annotations

import collections
import math
import random
from typing import Any

import pytest
import torch

from lookahead_core.strategies.sampling import (
    apply_count_penalties,
    apply_min_p,
    apply_repetition_penalty,
    apply_temperature,
    apply_temperature_and_cuts,
    apply_top_k,
    apply_top_p,
    apply_typical_p,
    exclude_tokens,
    gumbel_noise,
    keep_only,
    ngram_completions,
    sample_token,
)
from tests.support.parameters import mostly_slow

ODDS = [0.4, 0.3, 0.2, 0.1]
ROW = torch.tensor(ODDS).log()
UNLIKELY = {1: 15.1, 2: 18.4, 3: 21.1, 7: 29.9}
"""What chi-square stays below 9,999 times of 10,000, by degrees of freedom."""


def mixed(state: int) -> int:
    """SplitMix64's finaliser as it is published, on whole numbers without bounds."""
    state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    state = (state ^ (state >> 27)) * 0x94D049BB133111EB % 2**64
    return state ^ (state >> 31)


def reference_noise(seed: int, stream: int, position: int, token_id: int) -> float:
    gamma, state = 0x9E3779B97F4A7C15, 0
    for part in (seed, stream, position):
        state = mixed(((state ^ part) + gamma) % 2**64)
    bits = mixed((state + (token_id + 1) * gamma) % 2**64)
    return -math.log(-math.log(((bits >> 12) + 0.5) / 2**52))


def reference_odds(odds: list[float], temperature: float, top_p: float) -> list[float]:
    """The exact law: heated, cut where the mass before a token reaches the bound, and made to add up to one."""
    heated = [value ** (1 / temperature) for value in odds]
    heated = [value / sum(heated) for value in heated]
    order = sorted(range(len(odds)), key=lambda index: -heated[index])
    kept = [index for place, index in enumerate(order) if sum(heated[other] for other in order[:place]) < top_p]
    total = sum(heated[index] for index in kept)
    return [heated[index] / total if index in kept else 0.0 for index in range(len(odds))]


def test_the_noise_equals_published_splitmix64_on_every_machine() -> None:
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    assert [mixed((1234567 + (index + 1) * 0x9E3779B97F4A7C15) % 2**64) for index in range(4)] == published
    for seed, stream, position in ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (2**53, 19, 123456)):
        expected = [reference_noise(seed, stream, position, token_id) for token_id in range(50)]
        assert gumbel_noise(seed, stream, position, torch.arange(50)).tolist() == pytest.approx(expected, rel=1e-12)
        some = gumbel_noise(seed, stream, position, torch.tensor([3, 7])).tolist()
        assert some == pytest.approx([expected[3], expected[7]], rel=1e-12)


def test_noise_at_different_seeds_streams_and_positions_is_uncorrelated() -> None:
    places = [(seed, stream, position) for seed in (0, 1, 7) for stream in range(4) for position in (0, 1, 5, 400)]
    rows = torch.stack([gumbel_noise(*place, torch.arange(2000)) for place in places])
    assert float((torch.corrcoef(rows) - torch.eye(len(places))).abs().max()) < 0.1
    assert float(rows.mean()) == pytest.approx(0.5772, abs=0.02), "Euler's constant"
    assert float(rows.std()) == pytest.approx(math.pi / 6**0.5, abs=0.02)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("temperature", "top_p"), mostly_slow([(1.0, 1.0), (1.5, 0.6), (0.5, 1.0), (2.0, 1.0), (1.0, 0.8)], 2)
)
@pytest.mark.parametrize("over", ["seed", "stream", "position"])
def test_samples_follow_the_probabilities_over_seeds_streams_and_positions(
    temperature: float, top_p: float, over: str
) -> None:
    place = {"seed": 11, "stream": 3, "position": 17}
    odds = apply_temperature_and_cuts(ROW, temperature=temperature, top_p=top_p)
    counts = collections.Counter(sample_token(odds, **(place | {over: number})) for number in range(1500))
    law = reference_odds(ODDS, temperature, top_p)
    assert {token_id for token_id in counts if law[token_id] == 0} == set()
    expected = {token_id: value * 1500 for token_id, value in enumerate(law) if value}
    chi_square = sum((counts[token_id] - value) ** 2 / value for token_id, value in expected.items())
    assert len(expected) == 1 or chi_square < UNLIKELY[len(expected) - 1]


def test_top_p_includes_the_token_that_reaches_it_and_keeps_at_least_one() -> None:
    assert apply_top_p(ROW, 0.8).exp().tolist() == pytest.approx([0.4, 0.3, 0.2, 0.0])
    assert apply_top_p(ROW, 1e-9).exp().tolist() == pytest.approx([0.4, 0.0, 0.0, 0.0])
    assert torch.equal(apply_top_p(ROW, 1.0), ROW)


@pytest.mark.slow
@pytest.mark.parametrize(("spread", "top_p"), [(5.0, 0.9), (2.0, 0.9), (1.0, 0.95), (0.1, 0.99)])
def test_top_p_with_partial_sorting_equals_top_p_with_a_full_sort(spread: float, top_p: float) -> None:
    row = (torch.randn(20_000, generator=torch.Generator().manual_seed(0)) * spread).double().log_softmax(-1)
    mass, kept = 0.0, set()
    for value, token_id in sorted(((float(value), index) for index, value in enumerate(row)), reverse=True):
        if mass >= top_p:
            break
        kept.add(token_id)
        mass += math.exp(value)
    cut = apply_top_p(row, top_p)
    assert abs(int(cut.isfinite().sum()) - len(kept)) <= 1, "but for rounding at the very edge"
    assert len(set(cut.isfinite().nonzero()[:, 0].tolist()) ^ kept) <= 1


def test_top_p_keeps_the_minimum_number_of_tokens_of_a_wide_row() -> None:
    row = (torch.randn(20_000, generator=torch.Generator().manual_seed(0)) * 3).double().log_softmax(-1)
    for keep in (3, 1500, 9000):
        assert set(apply_top_p(row, 1e-6, keep).isfinite().nonzero()[:, 0].tolist()) == set(
            row.topk(keep).indices.tolist()
        )


def test_ngram_completions_are_the_tokens_that_would_repeat_an_ngram() -> None:
    assert (
        ngram_completions([5], 1) == {5}
        and ngram_completions([], 1) == ngram_completions([], 2) == ngram_completions([5], 2) == set()
    )
    assert ngram_completions([5, 5], 2) == {5} and ngram_completions([5, 6], 2) == set(), (
        "a path as long as the n-gram holds one"
    )
    assert ngram_completions([7, 7, 7], 3) == {7} and ngram_completions([7, 7], 3) == set()
    dice = random.Random(0)
    for _ in range(400):
        path, size = [dice.randrange(3) for _ in range(dice.randrange(9))], dice.randint(1, 5)
        grams = [path[place : place + size] for place in range(len(path) - size + 1)]
        expected = {token_id for token_id in range(3) if [*path, token_id][-size:] in grams}
        assert ngram_completions(path, size) == expected, (path, size)


NONE = -math.inf


def cut_by_hand(row: list[float], options: dict[str, Any]) -> list[float]:
    """All that may be drawn, cut after cut on lists: log-probabilities of what is kept, before they add up to one."""
    heated = [value / options["temperature"] for value in row]
    total = math.log(sum(math.exp(value) for value in heated))
    scores, keep = [value - total for value in heated], options.get("keep", 1)

    def odds() -> list[float]:
        whole = sum(math.exp(value) for value in scores)
        return [math.exp(value) / whole for value in scores]

    def left(kept: Any) -> list[float]:
        best = sorted(range(len(scores)), key=lambda index: -scores[index])[:keep]
        return [value if index in kept or index in best else NONE for index, value in enumerate(scores)]

    if top_k := max(options.get("top_k", 0), keep) if options.get("top_k") else 0:
        least = sorted(scores, reverse=True)[min(top_k, len(scores)) - 1]
        scores = left([index for index, value in enumerate(scores) if value >= least])
    if (top_p := options.get("top_p", 1.0)) < 1:
        law, order = odds(), sorted(range(len(scores)), key=lambda index: -scores[index])
        scores = left([one for place, one in enumerate(order) if sum(law[other] for other in order[:place]) < top_p])
    if min_p := options.get("min_p", 0.0):
        scores = left([index for index, value in enumerate(scores) if value >= max(scores) + math.log(min_p)])
    if (mass := options.get("typical_p", 1.0)) < 1:
        law = odds()
        spread = -sum(value * math.log(value) for value in law if value)
        surprise = [abs(-math.log(value) - spread) if value else math.inf for value in law]
        order, held, kept = sorted(range(len(law)), key=lambda index: surprise[index]), 0.0, []
        for one in order:
            if held < mass:
                kept.append(one)
            held += law[one]
        kept = [index for index in order if surprise[index] <= surprise[kept[-1]]]
        kept += order[:keep]
        scores = [value if index in kept else NONE for index, value in enumerate(scores)]
    return scores


def test_each_cut_and_all_cuts_together_equal_a_reference_on_lists() -> None:
    dice = random.Random(0)
    for _ in range(600):
        weights = [
            dice.choice([0.1, 0.2, 0.2, 0.35, 0.8, 1.3]) + 1e-3 * dice.random() for _ in range(dice.randint(2, 12))
        ]
        row = torch.tensor(weights, dtype=torch.float64).log().log_softmax(-1)
        options: dict[str, Any] = {"temperature": dice.choice([0.5, 1.0, 1.7])}
        cuts = {"top_k": dice.randint(1, 13), "top_p": dice.uniform(0.05, 0.99), "min_p": dice.uniform(0.01, 0.99)}
        cuts |= {"typical_p": dice.uniform(0.05, 0.99), "keep": dice.randint(1, 4)}
        options |= {name: value for name, value in cuts.items() if dice.random() < 0.5}
        expected = cut_by_hand(row.tolist(), options)
        found = apply_temperature_and_cuts(row, **options).tolist()
        assert found == pytest.approx(expected), options


def test_tokens_tied_with_the_last_kept_token_are_kept_too() -> None:
    row = torch.tensor([0.25, 0.25, 0.2, 0.2, 0.1], dtype=torch.float64).log()
    assert (
        apply_top_k(row, 1).isfinite().tolist() == apply_top_k(row, 2).isfinite().tolist() == [True] * 2 + [False] * 3
    )
    assert apply_top_k(row, 3).isfinite().tolist() == [True] * 4 + [False]
    assert torch.equal(apply_top_k(row, 5), row) and torch.equal(apply_top_k(row, 9), row)
    assert apply_top_k(row, 4).isfinite().tolist() == [True] * 4 + [False]
    half = torch.tensor([0.4, 0.2, 0.2, 0.1], dtype=torch.float64).log()
    assert apply_min_p(half, 0.5).isfinite().tolist() == [True, True, True, False], "just so likely is likely enough"
    assert torch.equal(apply_min_p(half, 0.0), half)
    assert apply_min_p(half, 1.0, 9).isfinite().all() and apply_min_p(half, 1.0, 2).isfinite().sum() == 2
    even = torch.full((4,), 0.25, dtype=torch.float64).log()
    assert apply_typical_p(even, 0.1).isfinite().all(), "all are as surprising"
    assert torch.equal(apply_typical_p(half, 1.0), half)


def test_excluded_tokens_stay_excluded_through_every_cut() -> None:
    row = torch.tensor([0.5, 0.0, 0.3, 0.2], dtype=torch.float64).log()
    options = {"temperature": 1.3, "top_k": 4, "top_p": 0.99, "min_p": 0.01, "typical_p": 0.99}
    assert apply_temperature_and_cuts(row, **options).isfinite().tolist() == [True, False, True, True]
    assert keep_only(row, [3, 0]).tolist() == [row[0], NONE, NONE, row[3]]
    assert keep_only(row, [1]).tolist() == [NONE] * 4


def test_penalties_apply_to_earlier_tokens_and_ignore_ids_outside_the_row() -> None:
    row = torch.tensor([2.0, -2.0, 0.5, 0.0])
    assert apply_repetition_penalty(row, [0, 1, 1, 9], 2.0).tolist() == [1.0, -4.0, 0.5, 0.0]
    assert apply_repetition_penalty(row, [3], 2.0).tolist() == row.tolist()
    assert apply_count_penalties(row, [0, 1, 1, 9], 0.5, 0.25).tolist() == [1.25, -3.25, 0.5, 0.0]
    assert apply_count_penalties(row, [], 0.5, 0.25).tolist() == row.tolist()


def test_only_temperatures_below_one_millionth_are_greedy() -> None:
    assert apply_temperature(ROW, 0.9e-6).exp().tolist() == [1.0, 0.0, 0.0, 0.0]
    warm = torch.tensor([-1.0, -1.0 - 1e-6], dtype=torch.float64)
    assert apply_temperature(warm, 1e-6).exp().tolist() == pytest.approx(
        [1 / (1 + math.exp(-1)), math.exp(-1) / (1 + math.exp(-1))]
    )


def test_temperature_0_is_greedy_and_excluding_tokens_keeps_the_other_scores() -> None:
    assert apply_temperature(ROW, 0).exp().tolist() == [1.0, 0.0, 0.0, 0.0]
    assert apply_temperature(ROW, 2.0).exp().tolist() == pytest.approx(reference_odds(ODDS, 2.0, 1.0))
    assert exclude_tokens(ROW, {0, 2}).exp().tolist() == pytest.approx([0.0, 0.3, 0.0, 0.1])
    assert torch.equal(exclude_tokens(ROW, ()), ROW)
    for seed in range(20):
        assert (
            sample_token(
                apply_temperature_and_cuts(ROW, temperature=0, top_p=0.5), seed=seed, stream=seed, position=seed
            )
            == 0
        )
