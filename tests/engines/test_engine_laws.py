"""Laws 1 and 2 for every model family: predictions equal a plain forward pass, in whatever passes they are computed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import transformers

from lookahead_core import Document, load_model
from lookahead_core.engines import probe
from lookahead_core.engines.cached import CachedEngine
from lookahead_core.engines.masks import FULL, MaskPlan
from lookahead_core.engines.probe import fit
from lookahead_core.engines.uncached import UncachedEngine
from lookahead_core.tree import Node, TokenTree
from tests.support.families import (
    CACHED,
    FAMILIES,
    GROUPED,
    VOCABULARY,
    forget_rotation,
    make,
    plain_rows,
    plain_rows_by_length,
)
from tests.support.parameters import mostly_slow

LIMITS = (8, 64)
PROMPT = {8: 24, 64: 72}


def random_tree(limit: int, seed: int, nodes: int = 30) -> tuple[TokenTree, list[Node]]:
    """A prompt that crosses a window or rope limit, or nearly, and random nodes below it, some of them deep."""
    dice, tree = random.Random(seed), TokenTree()
    # In half of the trees the prompt ends just before the limit, so that the branches cross it.
    length = PROMPT[limit] if seed % 2 else limit - 3
    head = tree.descend(tree.root, (dice.randrange(VOCABULARY) for _ in range(length)))
    tree.move_head(head)
    below = [head]
    for _ in range(nodes):
        parent = below[-1] if dice.random() < 0.6 else dice.choice(below)
        below.append(tree.expand(parent, dice.randrange(VOCABULARY)))
    return tree, list(dict.fromkeys(below))


def path_ids(node: Node) -> list[int]:
    """The ids of the path to a node, without the tree's own methods."""
    ids: list[int] = []
    while node.parent is not None:
        ids.insert(0, node.token_id)
        node = node.parent
    return ids


def assert_rows_equal_plain(hf_model: Any, nodes: list[Node], rows: torch.Tensor) -> None:
    """Log-probabilities and predictions are those of a plain forward pass over each path, within law 1's bound."""
    plain = plain_rows_by_length(hf_model, [path_ids(node) for node in nodes])
    for node, row, logits in zip(nodes, rows, plain, strict=True):
        expected = torch.log_softmax(logits.double(), -1)
        bound = 1e-5 * float(logits.abs().max())
        assert float((row.double() - expected).abs().max()) <= bound, f"at depth {node.depth}"
        assert node.prediction is not None
        assert node.prediction.token_ids[0] == int(logits.argmax())


def evaluate_in_passes(engine: Any, nodes: list[Node], size: int, seed: int) -> torch.Tensor:
    """Evaluate nodes in random order, `size` per call; the rows are in the order of `nodes`."""
    order = random.Random(seed).sample(range(len(nodes)), len(nodes))
    rows: dict[int, torch.Tensor] = {}
    for start in range(0, len(order), size):
        some = order[start : start + size]
        rows |= dict(zip(some, engine.evaluate([nodes[index] for index in some]).clone(), strict=True))
    return torch.stack([rows[index] for index in range(len(nodes))])


@pytest.mark.parametrize("limit", [LIMITS[0], *(pytest.param(limit, marks=pytest.mark.slow) for limit in LIMITS[1:])])
@pytest.mark.parametrize("family", FAMILIES)
def test_every_prediction_equals_a_plain_forward_over_its_path(family: str, limit: int) -> None:
    hf_model = make(family, limit)
    model = load_model(hf_model, tokenizer=None)
    assert isinstance(model.engine, CachedEngine if family in CACHED else UncachedEngine), model.engine_reason
    for seed in (0, 1):
        _, nodes = random_tree(limit, seed)
        rows = evaluate_in_passes(model.engine, nodes, 7, seed)
        assert_rows_equal_plain(hf_model, nodes, rows)


@pytest.mark.parametrize("family", mostly_slow(FAMILIES, 10))
def test_grouping_and_order_of_evaluation_change_nothing(family: str) -> None:
    hf_model = make(family)
    engine = load_model(hf_model, tokenizer=None).engine
    results = []
    for size, order in ((1, 0), (5, 1), (100, 2)):
        tree, nodes = random_tree(8, seed=3)
        other, strangers = random_tree(8, seed=5)
        together = nodes + strangers if size == 100 else nodes
        results.append(evaluate_in_passes(engine, together, size, order)[: len(nodes)])
        if tree.cache is not None:
            tree.cache.check()  # type: ignore[attr-defined]
        tree.check()
        other.check()
    for other_rows in results[1:]:
        assert torch.allclose(results[0], other_rows, atol=2e-5, rtol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_paths_padded_right_in_one_batch_equal_single_runs(family: str) -> None:
    hf_model = make(family)
    engine = UncachedEngine(hf_model)
    _, nodes = random_tree(8, seed=4)
    assert len({node.depth for node in nodes}) > 3
    assert_rows_equal_plain(hf_model, nodes, engine.evaluate(nodes).clone())


@pytest.mark.parametrize("family", mostly_slow(FAMILIES, 10))
def test_a_path_is_run_once_for_all_requested_nodes_on_it(family: str) -> None:
    hf_model = make(family)
    engine, tree = UncachedEngine(hf_model), TokenTree()
    path = tree.path(tree.descend(tree.root, list(range(3, 33))))
    side = tree.path(tree.descend(path[9], [5, 6, 7]))
    nodes = list(dict.fromkeys([*path, *side]))
    assert_rows_equal_plain(hf_model, nodes, engine.evaluate(nodes).clone())
    one_run_per_length = engine.same_length_only
    assert tree.work.tokens == (sum(node.depth for node in nodes) if one_run_per_length else 30 + 13)
    assert engine.passes <= (30 if one_run_per_length else 1)


@pytest.mark.parametrize("family", mostly_slow(FAMILIES, 10))
def test_predictions_hold_after_accepts_and_rewinds(family: str) -> None:
    hf_model = make(family)
    model = load_model(hf_model, tokenizer=None)
    document = Document(model, token_ids=[3, 1, 4, 1, 5])
    dice = random.Random(0)
    for round_number in range(6):
        result = document.lookahead(k=3, depth=4)
        document.accept(dice.choice(result.branches), 3)
        if round_number % 2:
            document.rewind(2)
        document.check()
        row = document.predict(row=True).row
        (logits,) = plain_rows(hf_model, [document.token_ids])
        assert float((row - torch.log_softmax(logits, -1)).abs().max()) <= 1e-5 * float(logits.abs().max())


@pytest.mark.parametrize("family", ["llama", "mistral", "gemma3", "gpt2", "falcon", "llama_dynamic_rope", "mixtral"])
def test_a_model_that_was_loaded_by_the_user_behaves_afterwards_as_before(family: str) -> None:
    hf_model = make(family)
    ids = torch.randint(0, VOCABULARY, (3, 20), generator=torch.Generator().manual_seed(1))
    mask = torch.ones_like(ids)
    mask[0, :6] = 0
    mask[1, :1] = 0

    def run() -> Any:
        return hf_model.generate(
            input_ids=ids,
            attention_mask=mask,
            max_new_tokens=12,
            do_sample=False,
            pad_token_id=0,
            return_dict_in_generate=True,
            output_logits=True,
        )

    forget_rotation(hf_model)
    before = run()
    weights = {name: (id(value), value.clone()) for name, value in hf_model.state_dict(keep_vars=True).items()}
    attention = hf_model.config._attn_implementation
    forget_rotation(hf_model)
    buffers = {name: buffer.clone() for name, buffer in hf_model.named_buffers()}
    document = Document(load_model(hf_model, tokenizer=None), token_ids=list(range(30)))
    result = document.lookahead(k=4, depth=6)
    document.accept(result.branches[1], 2)
    document.lookahead(k=4, depth=6)
    assert {name for name, _ in hf_model.named_buffers()} == set(buffers)
    assert all(torch.equal(buffers[name], buffer) for name, buffer in hf_model.named_buffers())
    after = run()
    assert torch.equal(before.sequences, after.sequences)
    assert all(torch.equal(one, other) for one, other in zip(before.logits, after.logits, strict=True))
    assert hf_model.config._attn_implementation == attention
    for name, value in hf_model.state_dict(keep_vars=True).items():
        assert weights[name][0] == id(value) and torch.equal(weights[name][1], value)


def test_a_model_in_training_mode_stays_in_it() -> None:
    hf_model = make("gpt2").train()
    Document(load_model(hf_model, tokenizer=None), token_ids=[1, 2, 3]).lookahead(k=2, depth=3)
    assert hf_model.training and all(module.training for module in hf_model.modules())


def test_a_model_whose_attention_is_cut_into_chunks_goes_uncached() -> None:
    config = transformers.Llama4TextConfig(
        **{**GROUPED, "num_hidden_layers": 4},
        head_dim=16,
        intermediate_size_mlp=96,
        num_local_experts=2,
        attention_chunk_size=64,
    )
    hf_model = transformers.AutoModelForCausalLM.from_config(config).eval()
    model = load_model(hf_model, tokenizer=None)
    assert isinstance(model.engine, UncachedEngine) and "chunk" in model.engine_reason


def test_a_window_under_an_unknown_name_is_detected_by_the_probe() -> None:
    found = fit(make("gpt_neo", limit=64))
    assert not found.cached and "differs from a plain forward" in found.reason


@pytest.fixture
def empty_probe_cache() -> Iterator[None]:
    """Forget the probe's results before and after the test."""
    probe.difference.cache_clear()
    yield
    probe.difference.cache_clear()


@pytest.mark.usefixtures("empty_probe_cache")
def test_the_probe_detects_masks_that_ignore_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    hf_model = make("mistral", limit=64)
    assert fit(hf_model).cached
    without_window = MaskPlan((FULL,), None, by_name=False)
    # The real engine with a real mistake, which the probe must find.
    monkeypatch.setattr(MaskPlan, "of", classmethod(lambda cls, config: without_window))
    probe.difference.cache_clear()
    assert not fit(hf_model).cached


@pytest.mark.usefixtures("empty_probe_cache")
def test_only_the_first_model_of_an_architecture_is_probed() -> None:
    found = [fit(make("mistral", limit=64)) for _ in range(2)]
    assert found[0] == found[1] and found[0].cached
    once = probe.difference.cache_info().misses
    assert once == 1 and probe.difference.cache_info().hits == once
    for other in ("qwen2", "mixtral"):
        fit(make(other, limit=64))
        assert probe.difference.cache_info().misses > once
        once = probe.difference.cache_info().misses
    # Another configuration of a class is probed apart, as far as the small model shows the difference.
    biased = make("mistral", limit=64)
    biased.config.rms_norm_eps = 0.1
    fit(biased)
    assert probe.difference.cache_info().misses == once + 1


@pytest.mark.parametrize(("key_heads", "small"), [(8, 4), (1, 1), (2, 2), (4, 2)])
@pytest.mark.parametrize("name", ["num_key_value_heads", "num_kv_heads"])
def test_the_probes_model_shares_key_heads_as_the_model_does(name: str, key_heads: int, small: int) -> None:
    config = transformers.LlamaConfig(num_attention_heads=8, num_key_value_heads=8)
    setattr(config, name, key_heads)
    assert getattr(probe.small_config(config), name) == small
