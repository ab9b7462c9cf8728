"""The cache experiment: its verdict, its branches and its counts, against plain forwards and counts made by hand."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch

from benchmarks.contestants import COLD, SEED_UNCACHED, contestants
from benchmarks.peers import peers_model
from benchmarks.results import Case
from lookahead_core import Document, LookaheadError, Model, ModelError, load_model
from lookahead_core.engines import cached
from lookahead_core.experiments import precision_comparison
from lookahead_core.experiments.cache_experiment import cache_experiment, cache_experiment_steps
from lookahead_core.experiments.cache_table import COLUMNS, cache_csv, cache_table
from tests.conftest import tiny_llama

PROMPT = "The keeper watched the sea"


@pytest.fixture(scope="module")
def model(byte_tokenizer: Any) -> Model:
    return load_model(tiny_llama(len(byte_tokenizer), seed=3), tokenizer=byte_tokenizer, dtype="float32")


def greedy(model: Model, token_ids: list[int], count: int) -> list[int]:
    """The most likely continuation, by plain forwards over the whole text."""
    for _ in range(count):
        with torch.no_grad():
            token_ids = [*token_ids, int(model.hf_model(torch.tensor([token_ids])).logits[0, -1].argmax())]
    return token_ids


def test_the_branches_are_greedy_continuations_of_the_likeliest_tokens(model: Model) -> None:
    prompt = list(Document(model, PROMPT).token_ids)
    found = cache_experiment(model, PROMPT, k=3, depth=6)
    with torch.no_grad():
        first = model.hf_model(torch.tensor([prompt])).logits[0, -1].topk(3).indices.tolist()
    assert [list(ids) for ids in found.token_ids] == [
        greedy(model, [*prompt, token_id], 5)[len(prompt) :] for token_id in first
    ]
    document = Document(model, PROMPT)
    for branch, text in zip(document.lookahead(k=3, depth=6).branches, found.texts, strict=True):
        assert branch.ended or branch.text == text


def test_with_two_levels_every_first_token_has_its_own_second_tokens(model: Model) -> None:
    found = cache_experiment(model, PROMPT, k=3, depth=4, levels=2)
    assert [step.rows for step in found.steps] == [1, 3, 9, 9]
    assert len(set(found.token_ids)) == 9
    prompt = list(Document(model, PROMPT).token_ids)
    for first in dict.fromkeys(ids[0] for ids in found.token_ids):
        with torch.no_grad():
            best = model.hf_model(torch.tensor([[*prompt, first]])).logits[0, -1].topk(3).indices.tolist()
        assert [ids[1] for ids in found.token_ids if ids[0] == first] == best


def test_the_logits_are_equal_and_the_differences_are_those_of_the_engine(model: Model) -> None:
    found = cache_experiment(model, PROMPT, k=4, depth=12)
    assert found.equal
    assert all(step.relative_difference <= 1e-5 and not step.other_tokens for step in found.steps)
    assert any(step.difference > 0 for step in found.steps), "two different computations, not one result twice"


def test_a_mask_that_shows_a_token_of_another_branch_turns_the_verdict(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = cached.CachedEngine._masks

    def masks(self: Any, cache: Any, nodes: Any, visible: Any) -> Any:
        made = make(self, cache, nodes, visible)
        if cache.used:
            made[..., -1] = 0.0  # the last branch's token
        return made

    assert cache_experiment(model, PROMPT, k=4, depth=4).equal
    monkeypatch.setattr(cached.CachedEngine, "_masks", masks)
    found = cache_experiment(model, PROMPT, k=4, depth=4)
    assert not found.equal
    assert found.steps[0].equal, "the prompt alone has no other branch"


@pytest.mark.slow
def test_in_bfloat16_right_branches_are_equal_and_those_with_a_wrong_mask_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    half = load_model(dtype="bfloat16")
    make = cached.CachedEngine._masks

    def masks(self: Any, cache: Any, nodes: Any, visible: Any) -> Any:
        made = make(self, cache, nodes, visible)
        if cache.used:
            made[..., -1] = 0.0  # the last branch's token
        return made

    for prompt in ("After careful", "Dear Sir,", "The capital of France is", "The man said that he"):
        found = cache_experiment(half, prompt, k=5, depth=10)
        assert found.equal, prompt
        assert {step.compared for step in found.steps} == {"log-probability"}
        with monkeypatch.context() as broken:
            broken.setattr(cached.CachedEngine, "_masks", masks)
            assert not cache_experiment(half, prompt, k=5, depth=10).equal, prompt


def test_passes_and_tokens_are_counted_as_a_lookahead_counts_them(model: Model) -> None:
    prompt = len(Document(model, PROMPT).token_ids)
    found = cache_experiment(model, PROMPT, k=4, depth=7)
    cost = Document(model, PROMPT).lookahead(k=4, depth=7).cost
    assert (found.cached.passes, found.cached.tokens) == (7, prompt + 4 * 6)
    assert (found.cached.passes, found.cached.tokens) == (cost.passes, cost.tokens)
    assert found.uncached.tokens == prompt + sum(4 * (prompt + depth) for depth in range(1, 7))
    assert found.steps[-1].cache_bytes > 0
    assert found.cached.seconds > 0
    assert found.uncached.cpu_seconds > 0
    assert found.uncached.joules > 0


def test_float32_and_bfloat16_are_compared_at_every_prediction_of_the_branches(model: Model) -> None:
    found = cache_experiment(model, PROMPT, k=3, depth=9, precisions=True)
    assert cache_experiment(model, PROMPT, k=3, depth=9).precisions == ()
    rounded = copy.deepcopy(model.hf_model).to(torch.bfloat16)
    prompt = list(Document(model, PROMPT).token_ids)
    worst, others = [0.0] * 9, [0] * 9
    for token_ids in found.token_ids:
        text = torch.tensor([[*prompt, *token_ids[:-1]]])
        with torch.no_grad():
            exact, other = (each(text).logits[0, len(prompt) - 1 :].float() for each in (model.hf_model, rounded))
        for place in range(9):
            relative = float((exact[place] - other[place]).abs().max() / exact[place].abs().max())
            worst[place] = max(worst[place], relative)
            others[place] += int(exact[place].argmax() != other[place].argmax())
    assert [step.depth for step in found.precisions] == list(range(1, 10))
    assert [step.relative_difference for step in found.precisions] == pytest.approx(worst, rel=0.02)
    assert [step.other_tokens for step in found.precisions] == others
    assert min(worst) > 1e-4, "bfloat16 has 8 bits"
    assert model.hf_model.dtype == torch.float32, "the model itself stays as it is"


def test_a_model_too_large_for_a_copy_gets_a_sentence(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision_comparison, "MOST_PARAMETERS", 1000)
    with pytest.raises(ModelError, match="at most 1,000 parameters"):
        cache_experiment(model, PROMPT, precisions=True)


def test_the_table_has_the_figures_of_an_experiment_of_every_depth(model: Model) -> None:
    found = cache_experiment(model, PROMPT, k=2, depth=5)
    rows = list(cache_table(found))
    assert [row["depth"] for row in rows] == [1, 2, 3, 4, 5]
    shorter = cache_experiment(model, PROMPT, k=2, depth=3)
    for name in ("cached_passes", "cached_tokens", "uncached_passes", "uncached_tokens"):
        assert rows[2][name] == list(cache_table(shorter))[-1][name]
    header, *lines = cache_csv(found).splitlines()
    assert header == ",".join(COLUMNS)
    assert [line.split(",")[0] for line in lines] == ["1", "2", "3", "4", "5"]


def test_times_are_medians_of_the_runs_with_the_least_and_the_most(model: Model) -> None:
    found = cache_experiment(model, PROMPT, k=2, depth=5, runs=3)
    once = cache_experiment(model, PROMPT, k=2, depth=5)
    assert [len(run.cached) for run in found.runs] == [len(run.uncached) for run in found.runs] == [5, 5, 5]
    assert all(list(run.cached) == sorted(run.cached) for run in found.runs), "each from the prompt on"
    assert found.runs[0].cached[-1] == pytest.approx(found.cached.seconds)
    assert len({run.uncached for run in found.runs}) == 3, "each was computed"
    assert (found.token_ids, found.cached.passes, found.uncached.tokens) == (
        once.token_ids, once.cached.passes, once.uncached.tokens
    )  # fmt: skip
    for depth, row in enumerate(cache_table(found)):
        for side in ("cached", "uncached"):
            seconds = sorted(getattr(run, side)[depth] for run in found.runs)
            assert [row[f"{side}_seconds_least"], row[f"{side}_seconds"], row[f"{side}_seconds_most"]] == seconds
        assert row["runs"] == 3


def test_the_times_of_a_run_that_is_not_complete_are_not_joined_with_those_of_the_others(model: Model) -> None:
    partial = 0
    for found in cache_experiment_steps(model, PROMPT, k=2, depth=5, runs=3):
        rows = list(cache_table(found))
        complete = sum(len(run.cached) >= len(rows) for run in found.runs)
        partial += complete < len(found.runs)
        assert {row["runs"] for row in rows} <= {complete}
        for name in ("cached_seconds", "uncached_seconds", "uncached_seconds_most"):
            assert [row[name] for row in rows] == sorted(row[name] for row in rows), "the time to a depth is a sum"
    assert partial


def test_counts_and_bytes_are_those_of_the_branching_benchmark(model: Model) -> None:
    ids = list(Document(model, PROMPT).token_ids)
    case = Case(len(ids), 4, 7)
    methods = {method.name: method for method in contestants(model, peers_model(model.hf_model), "float32", 64)}
    cold = next(iter(methods[COLD].attempt(case, ids)))
    found = cache_experiment(model, PROMPT, k=4, depth=7)
    assert not cold.ended
    assert found.cached.tokens == cold.tokens == case.tree_tokens
    assert found.steps[-1].cache_bytes == cold.cache_bytes > 0
    assert found.uncached.tokens == methods[SEED_UNCACHED].tokens(case)
    assert [list(branch) for branch in found.token_ids] == [list(branch) for branch in cold.branches]


def test_long_paths_are_read_in_several_passes_between_which_a_caller_can_stop(model: Model) -> None:
    steps = cache_experiment_steps(model, "the sea and the sky " * 12, k=20, depth=2)
    passes = 0
    for found in steps:
        passes += 1
        if len(found.steps) == 2:
            break
    assert found.uncached.passes > 2
    assert passes >= found.uncached.passes + found.cached.passes


@pytest.mark.parametrize(
    ("options", "because"),
    [
        ({"k": 0}, "k is 0, and must be a whole number from 1 to 20."),
        ({"runs": 10}, "runs is 10, and must be a whole number from 1 to 9."),
        ({"depth": 101}, "depth is 101, and must be a whole number from 1 to 100."),
        ({"k": 20, "levels": 2}, "which makes 400 branches"),
        ({"precisions": 2}, "precisions is 2, and must be one of True, False"),
        ({"breadth": 2}, "breadth is not an option of cache_experiment"),
    ],
)
def test_a_wrong_option_gets_a_sentence(model: Model, options: dict[str, int], because: str) -> None:
    with pytest.raises(ValueError, match=because):
        cache_experiment(model, PROMPT, **options)


def test_branches_that_do_not_fit_into_the_context_get_a_sentence(byte_tokenizer: Any) -> None:
    short = load_model(tiny_llama(len(byte_tokenizer), max_position_embeddings=20), tokenizer=byte_tokenizer)
    with pytest.raises(LookaheadError, match="does not fit into the model's context of 20"):
        cache_experiment(short, PROMPT, depth=30)
    with pytest.raises(LookaheadError, match="does not fit into the model's context of 20"):
        cache_experiment(short, PROMPT * 10, depth=2)


def test_a_model_without_a_cache_gets_a_sentence(byte_tokenizer: Any) -> None:
    uncached = load_model(tiny_llama(len(byte_tokenizer)), tokenizer=byte_tokenizer, engine="uncached")
    with pytest.raises(ModelError, match="This model runs without a cache, because"):
        cache_experiment(uncached, PROMPT)
