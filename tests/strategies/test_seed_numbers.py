"""The worked figures of the seed texts on decoding; those of its own model only with access to the Hub."""

from __future__ import annotations

import collections
import io
from typing import Any

import pytest
import torch

from lookahead_core import Document, Model, ModelError, load_model
from lookahead_core.strategies.branch_growth import BranchLeaf
from lookahead_core.strategies.sampling import (
    apply_count_penalties,
    apply_min_p,
    apply_temperature,
    apply_temperature_and_cuts,
    apply_top_k,
    apply_top_p,
    apply_typical_p,
    gumbel_noise,
    ngram_completions,
    sample_token,
)  # fmt: skip

ODDS = [0.31, 0.22, 0.15, 0.11, 0.08, 0.06, 0.04, 0.03]
ROW = torch.tensor(ODDS, dtype=torch.float64).log()
UNLIKELY = {1: 15.1, 2: 18.4, 3: 21.1, 4: 23.5, 5: 25.7, 6: 27.9, 7: 29.9}
"""What chi-square stays below 9,999 times of 10,000, by degrees of freedom."""
DRAWS = 100_000


def test_the_worked_example_of_top_p_keeps_three_and_makes_them_add_up() -> None:
    row = torch.tensor([0.4, 0.3, 0.2, 0.1]).log()
    kept = apply_top_p(row, 0.8).softmax(-1)
    assert kept.tolist() == pytest.approx([0.4 / 0.9, 0.3 / 0.9, 0.2 / 0.9, 0.0])
    assert apply_top_p(row, 0.1, keep=2).softmax(-1).tolist() == pytest.approx([4 / 7, 3 / 7, 0.0, 0.0])


def test_a_frequency_penalty_of_two_makes_of_one_eleven_below_zero_after_six_and_five_after_three() -> None:
    ids = [0] + [5156] * 6 + [14801] * 3 + [7]
    penalised = apply_count_penalties(torch.ones(50257), ids, 2.0, 0.0)
    assert (penalised[5156], penalised[14801], penalised[7], penalised[8]) == (-11, -5, -1, 1)
    assert apply_count_penalties(torch.ones(20), [3, 3, 4], 0.0, 1.5)[:5].tolist() == [1, 1, 1, -0.5, -0.5]


def test_low_temperatures_sharpen_and_high_ones_flatten() -> None:
    row = torch.tensor([1.0, 2.0]).log()
    assert torch.allclose(apply_temperature(row, 0.001), (1000 * row).log_softmax(-1))
    assert torch.allclose(apply_temperature(row, 1000.0), (0.001 * row).log_softmax(-1))
    assert apply_temperature(row, 0.001).exp().tolist() == pytest.approx([0.0, 1.0])
    assert apply_temperature(row, 1000.0).exp().tolist() == pytest.approx([0.5, 0.5], abs=1e-3)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 1.7])
def test_the_seeds_frequency_penalty_after_the_temperature_is_ours_times_the_temperature(
    tiny_model: Model, temperature: float
) -> None:
    document, penalty = Document(tiny_model, "the sea and the sky and the old sea"), 0.8
    ids = torch.tensor(document.token_ids)
    with torch.no_grad():
        logits = tiny_model.hf_model(ids[None]).logits[0, -1].double()
    counts = torch.bincount(ids, minlength=len(logits))
    seeds = (logits / temperature - penalty * counts).log_softmax(-1)
    ours = ((logits - penalty * counts) / temperature).log_softmax(-1)
    options = {"temperature": temperature, "frequency_penalty": penalty}
    assert torch.allclose(document.odds(**options), ours, atol=1e-4)
    options["frequency_penalty"] = penalty * temperature
    assert torch.allclose(document.odds(**options), seeds, atol=1e-4)
    assert torch.allclose(ours, seeds, atol=1e-2) == (temperature == 1)


def test_at_temperature_0_a_frequency_penalty_holds_where_the_seed_applies_none(tiny_model: Model) -> None:
    document = Document(tiny_model, "the sea and the sky")
    best = document.predict().token_ids[0]
    document.accept([best] * 3)
    again = document.predict().token_ids[0]
    penalised = document.odds(temperature=0, frequency_penalty=100.0)
    assert int(penalised.argmax()) not in document.token_ids
    assert int(document.odds(temperature=0).argmax()) == again


def test_a_repeated_pair_is_known_by_its_first_half() -> None:
    assert ngram_completions([1, 2, 3, 1], 2) == {2}
    assert ngram_completions([1, 2, 1, 3, 1], 2) == {2, 3}
    assert ngram_completions([4, 5], 1) == {4, 5}
    assert ngram_completions([1, 2, 3, 1, 2], 3) == {3}
    assert ngram_completions([1], 2) == set() == ngram_completions([1, 2, 3], 2)


def exact(kept: list[int], temperature: float = 1.0) -> list[float]:
    weights = [value ** (1 / temperature) if index in kept else 0.0 for index, value in enumerate(ODDS)]
    return [weight / sum(weights) for weight in weights]


ALL = list(range(8))
SAMPLERS: list[tuple[dict[str, Any], list[float]]] = [
    ({"temperature": 1.0}, exact(ALL)),
    ({"temperature": 0.5}, exact(ALL, 0.5)),
    ({"temperature": 2.0}, exact(ALL, 2.0)),
    ({"temperature": 1.0, "top_k": 3}, exact([0, 1, 2])),
    # 0.31 + 0.22 + 0.15 is 0.68, and the next one crosses 0.7.
    ({"temperature": 1.0, "top_p": 0.7}, exact([0, 1, 2, 3])),
    # A quarter of 0.31 is 0.0775, which 0.08 is above.
    ({"temperature": 1.0, "min_p": 0.25}, exact([0, 1, 2, 3, 4])),
    # The entropy is 1.810, and the surprises nearest to it are those of 0.15, 0.22 and 0.11 in this order.
    ({"temperature": 1.0, "typical_p": 0.4}, exact([1, 2, 3])),
    ({"temperature": 0.8, "top_k": 6, "top_p": 0.9, "min_p": 0.1}, exact([0, 1, 2, 3, 4], 0.8)),
]


@pytest.mark.slow
@pytest.mark.parametrize(("options", "law"), SAMPLERS, ids=[str(options) for options, _ in SAMPLERS])
def test_a_hundred_thousand_draws_follow_the_law_of_each_sampler(options: dict[str, Any], law: list[float]) -> None:
    odds = apply_temperature_and_cuts(ROW, **options)
    assert odds.softmax(-1).tolist() == pytest.approx(law, abs=1e-9)
    open_ids = odds.isfinite().nonzero()[:, 0]
    places = torch.arange(DRAWS)[:, None]
    drawn = open_ids[(odds[open_ids] + gumbel_noise(17, 2, places, open_ids)).argmax(-1)].tolist()
    assert drawn[:500] == [sample_token(odds, seed=17, stream=2, position=place) for place in range(500)]
    counts = collections.Counter(drawn)
    assert set(counts) == {token_id for token_id, value in enumerate(law) if value}
    chi_square = sum((counts[token_id] - DRAWS * law[token_id]) ** 2 / (DRAWS * law[token_id]) for token_id in counts)
    assert chi_square < UNLIKELY[len(counts) - 1]


def test_cuts_keep_at_least_the_minimum_number_of_tokens() -> None:
    for cut in (apply_top_k(ROW, 1, 3), apply_top_p(ROW, 0.01, 3), apply_min_p(ROW, 1.0, 3)):
        assert cut.isfinite().nonzero()[:, 0].tolist() == [0, 1, 2]
    assert int(apply_typical_p(ROW, 0.01, 3).isfinite().sum()) == 3


@pytest.mark.slow
def test_cached_equals_uncached_for_a_seed(default_model: Model) -> None:
    text = "Eliezer Shlomo Yudkowsky is an American decision and artificial intelligence theorist, best known for"
    plain = load_model(default_model.hf_model, tokenizer=default_model.tokenizer, engine="uncached")
    texts = [
        Document(model, text).stream(temperature=0.7, top_p=0.95, seed=0, max_new_tokens=8).write(io.StringIO())
        for model in (default_model, plain)
    ]
    assert texts[0] == texts[1] != ""


@pytest.mark.slow
def test_cached_beams_equal_uncached_ones(default_model: Model) -> None:
    text = "For you, the day Bison graced your village was the most important day of your life. But for me, it was"
    plain = load_model(default_model.hf_model, tokenizer=default_model.tokenizer, engine="uncached")
    found = [
        Document(model, text).beam_search(
            num_beams=8, num_return_sequences=3, max_new_tokens=6, no_repeat_ngram_size=2, stopping="seed"
        )
        for model in (default_model, plain)
    ]
    assert [beam.text for beam in found[0].branches] == [beam.text for beam in found[1].branches]
    assert [beam.score for beam in found[0].branches] == pytest.approx([b.score for b in found[1].branches], abs=1e-3)


@pytest.fixture(scope="module")
def gpt2() -> Model:
    try:
        return load_model("gpt2", dtype="float32")
    except ModelError as error:
        pytest.skip(f"The seed's figures are those of its own checkpoint: {error}")


@pytest.mark.hub
def test_the_five_next_words_of_the_seed(gpt2: Model) -> None:
    said = Document(gpt2, "John and Mary went to the").predict()
    expected = {" church": 0.0648, " house": 0.0367, " temple": 0.0145, " same": 0.0104, " Church": 0.0097}
    found = [gpt2.codec.bytes_of(token_id).decode() for token_id in said.token_ids[:5]]
    assert found == list(expected)
    odds = torch.tensor(said.logprobs[:5]).exp().tolist()
    assert odds == pytest.approx(list(expected.values()), abs=1e-4)


@pytest.mark.hub
def test_the_greedy_continuation_of_the_seed(gpt2: Model) -> None:
    document = Document(gpt2, "Jingle bells, jingle bells, jingle all the way")
    assert document.stream(max_new_tokens=8).write(io.StringIO()) == " up to the top of the mountain."


@pytest.mark.hub
def test_the_three_best_beams_of_the_seed(gpt2: Model) -> None:
    beams = Document(gpt2, "When I was").beam_search(num_beams=3, max_new_tokens=2, stopping="seed").branches
    assert [beam.text for beam in beams] == [" a kid", " growing up", " in the"]
    assert [beam.score for beam in beams] == pytest.approx([-3.091, -3.181, -4.611], abs=0.01)


@pytest.mark.hub
def test_without_repeated_pairs_the_seeds_beams_say_i_was_once(gpt2: Model) -> None:
    for start in (" a", " in", " growing"):
        document = Document(gpt2, "When I was" + start)
        free = document.stream(max_new_tokens=5).write(io.StringIO())
        kept = document.stream(max_new_tokens=5, no_repeat_ngram_size=2).write(io.StringIO())
        assert "I was" in free and "I was" not in kept


def test_a_made_model_shows_generate_and_filter_with_the_seeds_own_figures(parrot_of_the_seed: Model) -> None:
    """The seed's diagram: three first words, nine ways to go on, and the three best of them kept."""
    document = Document(parrot_of_the_seed, token_ids=[0])
    beams = document.beam_search(num_beams=3, max_new_tokens=2, stopping="seed")
    first = [(node.token_id, round(node.total, 3)) for node in beams.tree if node.step == 1]
    assert first == [(1, -2.393), (2, -2.556), (3, -3.168)]
    assert [beam.token_ids for beam in beams.branches] == [(1, 4), (3, 5), (2, 6)]
    assert [beam.score for beam in beams.branches] == pytest.approx([-3.091, -3.181, -4.611], abs=1e-3)


@pytest.fixture(scope="module")
def parrot_of_the_seed() -> Model:
    """A bigram model with the log-probabilities of the seed's diagram: " a" 1, " in" 2, " growing" 3, then the rest."""
    from tests.support.scripted_model import bigrams

    ways = {
        0: {1: -2.393, 2: -2.556, 3: -3.168},
        1: {4: -3.091 + 2.393, 7: -4.808 + 2.393, 8: -4.916 + 2.393},
        2: {6: -4.611 + 2.556, 9: -4.671 + 2.556, 10: -5.140 + 2.556},
        3: {5: -3.181 + 3.168, 11: -9.352 + 3.168, 12: -10.004 + 3.168},
    }
    size = 40
    follows = torch.full((size, size), -12.0)
    for token_id, some in ways.items():
        # What the diagram leaves out has the rest between the other tokens.
        rest = (1 - sum(torch.tensor(value).exp().item() for value in some.values())) / (size - 13)
        follows[token_id, 13:] = torch.tensor(max(rest, 1e-9)).log()
        for other, value in some.items():
            follows[token_id, other] = value
        shown = [other for other in range(13) if other not in some]
        follows[token_id, shown] = -40.0
    return load_model(bigrams(follows))


def test_lookahead_and_beam_search_return_the_same_branches(default_model: Model) -> None:
    document = Document(default_model, "When I was")
    beams = document.beam_search(num_beams=3, max_new_tokens=1).branches
    likely = document.lookahead(k=3, depth=1).branches
    assert [beam.token_ids for beam in beams] == [branch.token_ids for branch in likely]
    assert BranchLeaf(document.head, (), ()).logprob == 0
