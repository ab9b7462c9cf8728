"""Beam search beyond transformers: the rules of the seed notebooks, groups, the search tree, one shared cache."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
import torch
import transformers

from lookahead_core import CacheFull, Document, LookaheadError, Model, Settings, load_model
from tests.conftest import tiny_llama
from tests.support.families import make, plain_rows
from tests.support.parameters import mostly_slow
from tests.support.scripted_model import bigrams

PROMPT = [5, 40, 7, 61]
ENDS = {3, 17}


def with_ends(family: str = "llama", ends: set[int] = ENDS, seed: int = 0) -> Any:
    hf_model = make(family, seed=seed)
    hf_model.generation_config = transformers.GenerationConfig(eos_token_id=sorted(ends))
    return hf_model


@pytest.fixture(scope="module")
def model() -> Model:
    return load_model(with_ends())


def logprobs(hf_model: Any, path: list[int]) -> torch.Tensor:
    return plain_rows(hf_model, [path])[0].log_softmax(-1)


def seed_search(
    hf_model: Any, num_return: int, num_beams: int, size: int, ngram: int, ends: set[int]
) -> tuple[list[Any], int]:
    """The seed's generate and filter steps, on lists: the best of all continuations, those that ended put aside.

    Also how many steps it took.
    """
    final: list[tuple[float, list[int]]] = []
    beams: list[tuple[float, list[int]]] = [(0.0, list(PROMPT))]
    for level in range(1, size + 1):
        grown = []
        for total, path in beams:
            row = logprobs(hf_model, path)
            if ngram and len(path) >= ngram:
                for place in range(len(path) - ngram + 1):
                    if path[place : place + ngram - 1] == path[len(path) - ngram + 1 :]:
                        row[path[place + ngram - 1]] = -1e4
            best = row.topk(num_beams)
            pairs = zip(best.values.tolist(), best.indices.tolist(), strict=True)
            grown += [(total + value, [*path, token_id]) for value, token_id in pairs]
        grown.sort(key=lambda pair: -pair[0])
        best_ones = grown[:num_beams]
        beams = [pair for pair in best_ones if pair[1][-1] not in ends]
        final += [pair for pair in best_ones if pair[1][-1] in ends]
        if len(final) >= num_return:
            return final[:num_return], level
    return (final + beams)[:num_return], size


@pytest.mark.slow
@pytest.mark.parametrize("ngram", mostly_slow([1, 0, 2], 1))
@pytest.mark.parametrize(("num_return", "num_beams", "size"), [(1, 1, 6), (3, 3, 3), (2, 5, 9), (6, 6, 12), (1, 4, 20)])
def test_the_seeds_rules_give_what_its_generate_and_filter_steps_give(
    num_return: int, num_beams: int, size: int, ngram: int
) -> None:
    many = set(range(0, 96, 5))
    for ends in (set(), ENDS, many):
        hf_model = with_ends(ends=ends) if ends else make("llama")
        beams = Document(load_model(hf_model), token_ids=PROMPT).beam_search(
            num_beams=num_beams,
            num_return_sequences=num_return,
            max_new_tokens=size,
            no_repeat_ngram_size=ngram,
            stopping="seed",
        )
        found, levels = seed_search(hf_model, num_return, num_beams, size, ngram, ends)
        assert beams.steps == levels
        expected = sorted(found, key=lambda pair: -pair[0])
        assert [list(beam.token_ids) for beam in beams.branches] == [path[len(PROMPT) :] for _, path in expected]
        assert [beam.score for beam in beams.branches] == pytest.approx([total for total, _ in expected], abs=1e-4)


def test_by_the_seeds_rules_the_first_that_ended_are_the_results_not_the_best() -> None:
    follows = torch.full((96, 96), -12.0)
    for one, other, odds in (
        (61, 30, 0.6), (61, 31, 0.3), (61, 3, 0.1), (30, 3, 0.51), (30, 32, 0.49), (31, 3, 0.9), (31, 33, 0.1)
    ):  # fmt: skip
        follows[one, other] = math.log(odds)
    hf_model = bigrams(follows)
    hf_model.generation_config = transformers.GenerationConfig(eos_token_id=[3])
    found, levels = seed_search(hf_model, 2, 3, 6, 0, {3})
    beams = Document(load_model(hf_model), token_ids=PROMPT).beam_search(
        num_beams=3, num_return_sequences=2, max_new_tokens=6, stopping="seed"
    )
    assert [beam.token_ids for beam in beams.branches] == [(30, 3), (3,)], "not (31, 3), which ended later"
    assert sorted(tuple(path[len(PROMPT) :]) for _, path in found) == [(3,), (30, 3)] and levels == beams.steps == 2


@pytest.mark.parametrize("least", [0, 1, 3])
def test_no_beam_ends_before_its_minimum_and_a_beam_may_end_right_after_it(least: int) -> None:
    follows = torch.full((96, 96), -12.0)
    follows[:, 3] = math.log(0.9)
    follows[:, 30] = math.log(0.1)
    hf_model = bigrams(follows)
    hf_model.generation_config = transformers.GenerationConfig(eos_token_id=[3])
    document = Document(load_model(hf_model), token_ids=PROMPT)
    beams = document.beam_search(num_beams=2, max_new_tokens=8, min_new_tokens=least, length_penalty=0.0)
    assert beams.branches[0].token_ids == (30,) * least + (3,)
    assert all(len(beam.token_ids) > least for beam in beams.branches)


def group_search(
    hf_model: Any, groups: int, group_size: int, penalty: float, size: int, length_penalty: float, ends: set[int]
) -> list[tuple[float, list[int]]]:
    """Groups one after the other at each level, on lists; what an earlier group took costs a later one."""
    running = [[(0.0, list(PROMPT))] for _ in range(groups)]
    finished: list[list[tuple[float, list[int]]]] = [[] for _ in range(groups)]
    over = [False] * groups
    spare = max(2, 1 + len(ends))
    for level in range(1, size + 1):
        taken: list[int] = []
        for number in range(groups):
            if over[number]:
                continue
            grown = []
            for total, path in running[number]:
                for token_id, value in enumerate(logprobs(hf_model, path).tolist()):
                    grown.append((total + value - penalty * taken.count(token_id), [*path, token_id]))
            grown.sort(key=lambda pair: -pair[0])
            pool = grown[: spare * group_size]
            done = [pair[1][-1] in ends or level == size for pair in pool]
            ended = [pair for pair, hit in zip(pool[:group_size], done, strict=False) if hit]
            finished[number] += [(total / level**length_penalty, path) for total, path in ended]
            finished[number] = sorted(finished[number], key=lambda pair: -pair[0])[:group_size]
            running[number] = [pair for pair, hit in zip(pool, done, strict=True) if not hit][:group_size]
            taken += [path[-1] for _, path in running[number]]
            full = len(finished[number]) == group_size
            best = running[number][0][0] / level**length_penalty if running[number] else -math.inf
            over[number] = full and best <= finished[number][-1][0]
    return sorted((pair for some in finished for pair in some), key=lambda pair: -pair[0])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("groups", "group_size", "penalty", "length_penalty"),
    [(2, 1, 0.7, 1.0), (3, 2, 0.4, 0.0), (4, 1, 50.0, 1.0), (2, 3, 0.01, 2.0)],
)
def test_diverse_groups_give_what_a_search_on_lists_gives(
    groups: int, group_size: int, penalty: float, length_penalty: float
) -> None:
    for ends in (ENDS, set(range(0, 96, 9))):
        hf_model = with_ends(ends=ends)
        beams = Document(load_model(hf_model), token_ids=PROMPT).beam_search(
            num_beams=groups * group_size,
            num_beam_groups=groups,
            diversity_penalty=penalty,
            length_penalty=length_penalty,
            max_new_tokens=6,
        )
        expected = group_search(hf_model, groups, group_size, penalty, 6, length_penalty, ends)
        assert [list(beam.token_ids) for beam in beams.branches] == [path[len(PROMPT) :] for _, path in expected]
        assert [beam.score for beam in beams.branches] == pytest.approx([score for score, _ in expected], abs=1e-4)


def test_groups_that_are_kept_far_apart_begin_with_different_tokens(model: Model) -> None:
    beams = Document(model, token_ids=PROMPT).beam_search(
        num_beams=6, num_beam_groups=6, diversity_penalty=100.0, max_new_tokens=4
    )
    assert len({beam.token_ids[0] for beam in beams.branches}) == 6


@pytest.mark.parametrize(
    "options", [{}, {"stopping": "seed"}, {"num_beam_groups": 2, "diversity_penalty": 0.5}], ids=str
)
def test_the_search_tree_holds_every_candidate_and_its_fate(model: Model, options: dict[str, Any]) -> None:
    beams = Document(model, token_ids=PROMPT).beam_search(
        num_beams=4, num_return_sequences=3, max_new_tokens=7, **options
    )
    paths: list[tuple[int, ...]] = []
    for place, node in enumerate(beams.tree):
        assert node.parent is None or node.parent < place, "parents first"
        above = () if node.parent is None else paths[node.parent]
        paths.append((*above, node.token_id))
        assert node.step == len(paths[-1])
        assert node.reason
    fates = [node.fate for node in beams.tree]
    returned = [path for path, fate in zip(paths, fates, strict=True) if fate == "returned"]
    assert sorted(returned) == sorted(beam.token_ids for beam in beams.branches)
    children: dict[int | None, list[str]] = {}
    for node in beams.tree:
        children.setdefault(node.parent, []).append(node.fate)
    dead = {"outscored", "ended too low"}
    for place, (path, fate) in enumerate(zip(paths, fates, strict=True)):
        below = set(children.get(place, ()))
        assert bool(below - dead) == (fate == "grew"), "what went on has something below it that was good enough"
        assert not below or fate in ("grew", "overtaken"), "what was dropped at once has nothing below it"
        assert fate not in ("ended too low", "ended, outscored") or path[-1] in ENDS


def test_the_tree_tells_the_text_and_the_odds_that_each_token_adds_to_its_path(byte_tokenizer: Any) -> None:
    plain = load_model(tiny_llama(len(byte_tokenizer)), tokenizer=byte_tokenizer)
    second = Document(plain, "the sea 🙂").lookahead(k=2, depth=1).branches[1].token_ids[0]
    tiny_model = load_model(tiny_llama(len(byte_tokenizer), eos_token_id=[0, second]), tokenizer=byte_tokenizer)
    document = Document(tiny_model, "the sea 🙂")
    beams = document.beam_search(num_beams=5, max_new_tokens=6, repetition_penalty=1.4)
    paths: list[tuple[int, ...]] = []
    for node in beams.tree:
        above = () if node.parent is None else paths[node.parent]
        paths.append((*above, node.token_id))
        row = logprobs(tiny_model.hf_model, [*document.token_ids, *above])
        assert node.logprob == pytest.approx(float(row[node.token_id]), abs=1e-4)
        assert node.ended == (node.token_id in {0, second})
    assert any(node.ended for node in beams.tree)
    for branch in beams.branches:
        on_path = [next(n for n, p in zip(beams.tree, paths, strict=True) if p == branch.token_ids[:size])
                   for size in range(1, len(branch.token_ids) + 1)]  # fmt: skip
        assert "".join(node.text for node in on_path) == branch.text
        assert [node.logprob for node in on_path] == list(branch.logprobs)
        assert on_path[-1].total / len(on_path) == pytest.approx(branch.score)
        assert sum(len(piece.token_ids) for piece in branch.pieces) <= len(branch.token_ids)


@pytest.mark.parametrize(("ends", "each"), [(set(), 2), ({3}, 2), (ENDS, 3)])
def test_the_tree_tells_of_so_many_candidates_a_level_that_no_beam_dies_unseen(ends: set[int], each: int) -> None:
    hf_model = with_ends(ends=ends) if ends else make("llama")
    beams = Document(load_model(hf_model), token_ids=PROMPT).beam_search(num_beams=4, max_new_tokens=3)
    levels = [sum(node.step == step for node in beams.tree) for step in (1, 2, 3)]
    assert levels == [4 * each] * 3


def test_each_level_is_one_pass_and_a_slot_for_each_beam(model: Model) -> None:
    document = Document(model, token_ids=PROMPT)
    steps = list(document.beam_search_steps(num_beams=5, max_new_tokens=9))
    assert [step.step for step in steps] == list(range(1, len(steps) + 1))
    cost = steps[-1].result.cost
    assert cost.passes == len(steps)
    assert cost.tokens == len(PROMPT) + 5 * (len(steps) - 1) == cost.live_slots
    document.check()


def test_a_search_can_be_watched_and_left(model: Model) -> None:
    document = Document(model, token_ids=PROMPT)
    whole = document.beam_search(num_beams=3, max_new_tokens=8)
    for step in Document(model, token_ids=PROMPT).beam_search_steps(num_beams=3, max_new_tokens=8):
        shown = step.result
        assert len(shown.branches) == 3
        assert [beam.score for beam in shown.branches] == sorted((beam.score for beam in shown.branches), reverse=True)
        if step.step == 4:
            break
    assert len(shown.branches[0].token_ids) <= 4
    document.accept(whole.branches[1], tokens=2)
    assert document.token_ids == [*PROMPT, *whole.branches[1].token_ids[:2]]


def test_a_beam_is_a_branch_with_text_and_odds(tiny_model: Model) -> None:
    document = Document(tiny_model, "the sea")
    beam = document.beam_search(num_beams=3, max_new_tokens=6).branches[0]
    path, total = list(document.token_ids), 0.0
    for token_id, logprob in zip(beam.token_ids, beam.logprobs, strict=True):
        assert logprob == pytest.approx(float(logprobs(tiny_model.hf_model, path)[token_id]), abs=1e-4)
        total += logprob
        path.append(token_id)
    assert beam.logprob == pytest.approx(total)
    assert beam.probability == pytest.approx(math.exp(total))
    assert document.accept(beam) == beam.text


@pytest.mark.slow
def test_a_long_search_gives_the_slots_of_dead_beams_back() -> None:
    hf_model = tiny_llama(90, max_position_embeddings=2048, eos_token_id=None)
    small = load_model(hf_model, engine="cached", settings=Settings(cache_mb=1))
    large = load_model(hf_model, engine="cached")
    options = {"num_beams": 20, "max_new_tokens": 100}
    document = Document(small, token_ids=PROMPT)
    found = document.beam_search(**options)
    expected = Document(large, token_ids=PROMPT).beam_search(**options)
    assert [beam.token_ids for beam in found.branches] == [beam.token_ids for beam in expected.branches]
    assert expected.cost.live_slots < 20 * 100 / 2, "dead beams are forgotten before the end"
    document.check()


@pytest.mark.slow
def test_nodes_of_an_older_view_below_an_abandoned_beam_stay(model: Model) -> None:
    document = Document(model, token_ids=PROMPT)
    view = document.lookahead(mode="every_level", branch_levels=3, k=5, depth=25)
    document.beam_search(num_beams=12, max_new_tokens=40, min_new_tokens=40)
    document.check()
    again = document.lookahead(mode="every_level", branch_levels=3, k=5, depth=25)
    assert [branch.token_ids for branch in again.branches] == [branch.token_ids for branch in view.branches]
    assert again.cost.passes == 0


def test_a_search_without_any_possible_token_raises_an_error(model: Model) -> None:
    found = Document(model, token_ids=PROMPT).beam_search(num_beams=3, max_new_tokens=200, no_repeat_ngram_size=1)
    assert found.steps <= 96
    assert len(found.branches) == 3
    with pytest.raises((LookaheadError, ValueError), match="rule every token out"):
        Document(model, token_ids=PROMPT).beam_search(max_new_tokens=3, forbidden=list(range(96)))
    assert all(beam.ended or len(beam.token_ids) == found.steps - 1 for beam in found.branches)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"num_beams": 0}, "num_beams is 0, and must be a whole number from 1 to 100"),
        ({"num_beams": 3, "num_return_sequences": 4}, "num_return_sequences is 4, and there are only 3 beams"),
        ({"num_return_sequences": 0}, "num_return_sequences is 0"),
        ({"early_stopping": "soon"}, "early_stopping is 'soon', and must be one of False, True, never"),
        ({"early_stopping": 1}, "early_stopping is 1"),
        ({"stopping": "later"}, "stopping is 'later', and must be one of transformers, seed"),
        ({"num_beams": 5, "num_beam_groups": 2}, "5 beams cannot be shared out evenly"),
        ({"num_beam_groups": 9}, "num_beam_groups is 9"),
        ({"diversity_penalty": 1.0}, "raise num_beam_groups"),
        ({"num_beams": 6, "num_beam_groups": 3}, "all would find the same; raise diversity_penalty"),
        ({"length_penalty": 100.0}, "length_penalty is 100.0, and must be a number from -10 to 10"),
        ({"diversity_penalty": -1.0}, "diversity_penalty is -1.0"),
        ({"length_penalty": float("nan")}, "length_penalty is nan"),
        ({"stopping": "seed", "length_penalty": 2.0}, 'stopping="seed" adds up'),
        ({"temperature": 1.0}, "temperature is not an option of beam_search; the options are"),
    ],
    ids=str,
)
def test_wrong_beam_options_raise_an_error_that_names_them(
    model: Model, options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        Document(model, token_ids=PROMPT).beam_search(**options)


@pytest.mark.slow
def test_forced_words_come_in_every_beam(model: Model) -> None:
    dice = random.Random(1)
    for _ in range(10):
        forced = [tuple(dice.choices(range(20, 30), k=dice.randint(1, 3))) for _ in range(2)]
        beams = Document(model, token_ids=PROMPT).beam_search(num_beams=4, max_new_tokens=9, forced=forced)
        for beam in beams.branches:
            text = "," + ",".join(map(str, beam.token_ids)) + ","
            assert all("," + ",".join(map(str, word)) + "," in text for word in forced)


@pytest.mark.slow
def test_beams_without_a_possible_token_are_results_only_if_they_may_end(model: Model) -> None:
    for options in ({"forced": [(5,)]}, {"min_new_tokens": 150}, {"forced": [(9, 8), (8, 9)]}):
        with pytest.raises(ValueError, match=r"After \d+ tokens the options rule every token out"):
            Document(model, token_ids=PROMPT).beam_search(max_new_tokens=200, no_repeat_ngram_size=1, **options)
    with pytest.raises(ValueError, match="holds the same 2 tokens twice"):
        Document(model, token_ids=PROMPT).beam_search(forced=[(9, 8, 9, 8)], no_repeat_ngram_size=2)


def test_each_step_shows_the_beams_at_the_time_of_the_step(model: Model) -> None:
    document = Document(model, token_ids=PROMPT)
    steps = list(document.beam_search_steps(num_beams=4, max_new_tokens=7, min_new_tokens=7))
    assert len(steps) == 7
    for step in steps:
        result = step.result
        assert result.steps == step.step == max(node.step for node in result.tree)
        assert max(len(beam.token_ids) for beam in result.branches) == step.step
        assert result.cost.passes == step.step
        fates = {node.fate for node in result.tree}
        assert ("returned" in fates) == (step is steps[-1])


def test_a_beam_grown_below_another_text_is_not_accepted(model: Model) -> None:
    document = Document(model, token_ids=PROMPT)
    found = None
    for step in document.beam_search_steps(num_beams=3, max_new_tokens=6):
        if step.step == 1:
            document.accept(step.result.branches[0], tokens=1)
        found = step.result
    assert found is not None
    with pytest.raises(LookaheadError, match="grown from another text"):
        document.accept(found.branches[0])
    steps = document.beam_search_steps(num_beams=3, max_new_tokens=6)
    next(steps)
    document.rewind(2)
    with pytest.raises(LookaheadError, match="text has changed"):
        next(steps)


@pytest.mark.slow
def test_searches_streams_and_views_of_one_document_forget_nothing_of_each_other(model: Model) -> None:
    drawing = [{"max_new_tokens": 30, "seed": seed, "forbidden": sorted(ENDS)} for seed in (1, 2)]
    searching = [{"num_beams": size, "max_new_tokens": 40, "min_new_tokens": 40} for size in (5, 8)]
    expected = [[step.token_id for step in Document(model, token_ids=PROMPT).stream(**some)] for some in drawing]
    whole = [Document(model, token_ids=PROMPT).beam_search(**some).branches for some in searching]
    document = Document(model, token_ids=PROMPT)
    streams = [document.stream(**some) for some in drawing]
    searches = [document.beam_search_steps(**some) for some in searching]
    for _ in range(30):
        for each in (*streams, *searches):
            next(each)
        document.lookahead(k=2, depth=2)
        document.prune()
    document.check()
    assert [stream.token_ids for stream in streams] == expected
    last = [list(search)[-1].result.branches for search in searches]
    for found, alone in zip(last, whole, strict=True):
        assert [beam.token_ids for beam in found] == [beam.token_ids for beam in alone]
    del streams, searches, each
    document.lookahead(k=1, depth=1)
    document.prune()
    document.check()
    assert document.tree.size == len(PROMPT) + 1


def test_a_full_cache_raises_an_error() -> None:
    hf_model = tiny_llama(90, max_position_embeddings=8192, eos_token_id=None)
    small = load_model(hf_model, engine="cached", settings=Settings(cache_mb=1))
    with pytest.raises(CacheFull, match="The cache is full"):
        Document(small, token_ids=PROMPT * 1000).beam_search(num_beams=100, max_new_tokens=9)


@pytest.mark.slow
def test_beams_that_no_token_may_follow_are_complete() -> None:
    document = Document(load_model(make("llama"), tokenizer=None), token_ids=PROMPT)
    found = document.beam_search(num_beams=2, max_new_tokens=200, no_repeat_ngram_size=1)
    assert [sorted(beam.token_ids) for beam in found.branches] == [sorted(set(range(96)) - set(PROMPT))] * 2
