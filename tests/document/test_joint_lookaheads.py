"""Lookaheads of several documents side by side: the results of each alone, in the passes of the longest."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
import torch

from lookahead_core import Document, LookaheadError, Model, load_model, lookahead_batch, lookahead_batch_steps
from lookahead_core.engines import engine as base
from lookahead_core.engines.deferred import DeferredEngine, PassNeeded
from lookahead_core.strategies.lookahead_options import MODES
from lookahead_core.tree import TokenTree
from tests.support.families import make, plain_rows
from tests.support.parameters import mostly_slow

TEXTS = ("The old keeper said", "The old keeper sa", "The sea and ", "The sea.", "sea")
FAMILIES = ("llama", "bloom")
"""One for the cached engine, and one for the uncached one."""


def fresh(family: str) -> tuple[Model, list[int]]:
    """A new model, and a list that gets an entry with each of its forward passes."""
    hf_model = make(family)
    hf_model.generation_config.eos_token_id = 7
    model, passes = load_model(hf_model, tokenizer=None), []
    model.engine.model_copy.register_forward_hook(lambda *given: passes.append(1))
    return model, passes


def prompts(seed: int) -> list[list[int]]:
    dice = random.Random(seed)
    return [[dice.randrange(96) for _ in range(length)] for length in (1, 5, 13, 30)]


def assert_same(found: Any, alone: Any) -> None:
    assert [branch.token_ids for branch in found.branches] == [branch.token_ids for branch in alone.branches]
    for ours, theirs in zip(found.branches, alone.branches, strict=True):
        assert ours.logprobs == pytest.approx(theirs.logprobs, abs=1e-4)
        assert (ours.text, ours.ended, ours.healed) == (theirs.text, theirs.ended, theirs.healed)
    assert found.coverage == pytest.approx(alone.coverage, abs=1e-4)
    assert [other.token_ids for other in found.rest[:5]] == [other.token_ids for other in alone.rest[:5]]
    assert (found.given, found.seen_from, found.read) == (alone.given, alone.seen_from, alone.read)
    assert found.options == alone.options


@pytest.mark.slow
@pytest.mark.parametrize("family", mostly_slow(FAMILIES, 1))
@pytest.mark.parametrize("mode", mostly_slow(MODES, 3))
def test_each_result_equals_the_documents_own_and_the_passes_are_those_of_the_longest(family: str, mode: str) -> None:
    each = [{"depth": 2}, {"k": 2}, {}, {"temperature": 0.5, "seed": 3, "banned": {5, 9}}]
    alone, counts = [], []
    for prompt, own in zip(prompts(1), each, strict=True):
        model, passes = fresh(family)
        alone.append(Document(model, token_ids=prompt).lookahead(**{"k": 3, "depth": 5, "mode": mode, **own}))
        counts.append(len(passes))
    model, passes = fresh(family)
    together = lookahead_batch(
        [Document(model, token_ids=one) for one in prompts(1)], each=each, k=3, depth=5, mode=mode
    )
    for ours, theirs in zip(together, alone, strict=True):
        assert_same(ours, theirs)
        assert ours.cost.passes == theirs.cost.passes or family == "bloom"
    assert len(passes) == max(counts) < sum(counts)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "options", mostly_slow([{"heal": True}, {}, {"until": "word"}, {"heal": True, "speculate": True}], 1)
)
def test_healed_and_ended_texts_get_the_results_that_each_gets_alone(
    tiny_model: Model, mode: str, options: dict[str, Any]
) -> None:
    wanted: dict[str, Any] = {"k": 3, "depth": 4, "mode": mode, **options}
    together = lookahead_batch([Document(tiny_model, text) for text in TEXTS], **wanted)
    for text, found in zip(TEXTS, together, strict=True):
        assert_same(found, Document(tiny_model, text).lookahead(**wanted))


def test_one_document_with_several_temperatures_draws_each_as_alone(tiny_model: Model) -> None:
    each = [{"temperature": 0.3}, {"temperature": 1.0}, {"temperature": 1.8}]
    document = Document(tiny_model, "The old keeper said")
    document.predict()
    before = document.tree.work.passes
    together = lookahead_batch([document] * 3, each=each, mode="sampled", k=3, depth=6, seed=11)
    assert document.tree.work.passes - before == 6
    for found, own in zip(together, each, strict=True):
        alone = Document(tiny_model, "The old keeper said").lookahead(mode="sampled", k=3, depth=6, seed=11, **own)
        assert_same(found, alone)
    assert len({tuple(branch.token_ids for branch in found.branches) for found in together}) == 3
    document.check()


def test_documents_with_end_tokens_of_their_own_share_passes(tiny_model: Model) -> None:
    """Models that were copied with other end tokens have one engine."""
    first = Document(tiny_model, TEXTS[0]).lookahead(k=1, depth=1).branches[0].token_ids[0]
    other = replace(tiny_model, end_token_ids=tiny_model.end_token_ids | {first})
    before = tiny_model.engine.passes
    plain, ended = lookahead_batch([Document(tiny_model, TEXTS[0]), Document(other, TEXTS[0])], k=2, depth=3)
    assert tiny_model.engine.passes - before == 3
    assert ended.branches[0].ended
    assert not plain.branches[0].ended
    assert_same(plain, Document(tiny_model, TEXTS[0]).lookahead(k=2, depth=3))


def test_steps_come_after_each_pass_and_grow_towards_the_result(tiny_model: Model) -> None:
    documents = [Document(tiny_model, text) for text in TEXTS[:2]]
    engine, counts, seen, begun = tiny_model.engine, [], [], []
    began = engine.passes
    for step in lookahead_batch_steps(documents, k=2, depth=4):
        counts.append(engine.passes - began)
        begun.append(step.begun)
        seen.append([[len(branch.token_ids) for branch in one.branches] if one else None for one in step.results])
    assert counts == [0, 1, 2, 3, 4]
    assert seen[0] == [None, None]
    assert begun == [False, True, True, True, True]
    assert seen[1:] == [[[depth] * 2] * 2 for depth in (1, 2, 3, 4)]


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_shows_rows_before_its_last_pass(tiny_model: Model, mode: str) -> None:
    steps = list(lookahead_batch_steps([Document(tiny_model, text) for text in TEXTS[:2]], k=2, depth=4, mode=mode))
    sizes = [sum(len(branch.token_ids) for one in step.results if one for branch in one.branches) for step in steps]
    assert len(steps) > 3
    assert len(set(sizes)) > 2
    assert sizes[0] == 0


def test_long_texts_are_prefilled_step_by_step_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "PREFILL_CHUNK", 8)
    monkeypatch.setattr(base, "MAX_LAST_CHUNK", 12)
    model, passes = fresh("llama")
    dice = random.Random(5)
    long, short = [dice.randrange(96) for _ in range(25)], [3, 4]
    steps = list(lookahead_batch_steps([Document(model, token_ids=ids) for ids in (long, short)], k=2, depth=2))
    assert [(step.tokens_read, step.tokens_to_read) for step in steps][:3] == [(8, 19), (16, 11), (27, 0)]
    (row,) = plain_rows(model.hf_model, [long])
    assert [branch.token_ids[0] for branch in steps[-1].results[0].branches] == row.topk(2).indices.tolist()
    assert len(passes) == 2 + 2


def test_another_view_of_one_document_ends_the_batch(tiny_model: Model) -> None:
    documents = [Document(tiny_model, text) for text in TEXTS[:2]]
    steps = lookahead_batch_steps(documents, k=2, depth=4)
    next(steps)
    documents[1].text = "Another text"
    with pytest.raises(LookaheadError, match="text has changed"):
        next(steps)
    begun = lookahead_batch_steps(documents, k=2, depth=4)
    documents[0].lookahead(k=1, depth=1)
    next(begun)
    with pytest.raises(LookaheadError, match="text has changed"):
        next(begun)


def test_another_text_of_a_document_whose_lookahead_is_complete_ends_the_batch(tiny_model: Model) -> None:
    documents = [Document(tiny_model, text) for text in TEXTS[:2]]
    steps = lookahead_batch_steps(documents, each=[{"depth": 1}, {"depth": 6}], k=2)
    for _ in range(4):
        next(steps)
    documents[0].text = "Another text"
    with pytest.raises(LookaheadError, match="text has changed"):
        list(steps)


def test_wrong_options_are_refused_with_a_sentence_at_the_call(tiny_model: Model) -> None:
    documents = [Document(tiny_model, text) for text in TEXTS[:2]]
    with pytest.raises(ValueError, match="each has 1 entries for 2 documents"):
        lookahead_batch_steps(documents, each=[{}])
    with pytest.raises(ValueError, match="temperature is 3"):
        lookahead_batch_steps(documents, each=[{}, {"temperature": 3}])
    with pytest.raises(ValueError, match="colour is not an option"):
        lookahead_batch_steps(documents, each=[{"colour": 1}, {}])
    with pytest.raises(ValueError, match="k is 0"):
        lookahead_batch_steps(documents, k=0, each=[{"k": 1}, {"k": 1}])
    for each in ({"k": 3}, [None, None], [{}, 5], 5, "{}"):
        with pytest.raises(ValueError, match="each must be a list of dictionaries of options, one for each document"):
            lookahead_batch_steps(documents, each=each)
    assert list(lookahead_batch_steps([])) == lookahead_batch([]) == []


def test_a_deferred_engine_requests_missing_scores_and_drops_unused_ones() -> None:
    model, _ = fresh("llama")
    tree = TokenTree()
    nodes = [tree.descend(tree.root, ids) for ids in ([1, 2], [1, 3], [1, 2, 4])]
    engine = DeferredEngine(model.engine)

    def computation() -> tuple[torch.Tensor, Any]:
        rows = engine.evaluate([nodes[0], nodes[1], nodes[0]])
        return rows, engine.score([nodes[2]], hidden=True)

    with pytest.raises(PassNeeded):
        computation()
    assert engine.pending == nodes[:2]
    assert not engine.hidden
    engine.add(model.engine.score([nodes[1], nodes[0], nodes[2]]), hidden=False)
    with pytest.raises(PassNeeded):
        computation()
    assert engine.pending == [nodes[2]], "its scores are known, and its hidden state is not"
    assert engine.hidden
    engine.add(model.engine.score([nodes[2]], hidden=True), hidden=True)
    rows, scores = computation()
    expected = torch.stack(plain_rows(model.hf_model, [[1, 2], [1, 3], [1, 2]])).log_softmax(-1)
    assert torch.allclose(rows, expected, atol=1e-4)
    assert scores.nodes == [nodes[2]]
    assert scores.hidden_state(nodes[2]).shape == (64,)
    assert all(node.prediction is not None for node in nodes[:2])
    assert nodes[2].prediction is None, "`score` stores no predictions"
    engine.add(model.engine.score([nodes[2]]), hidden=False)
    engine.evaluate([nodes[2]])
    engine.add(model.engine.score([nodes[2]]), hidden=False)
    with pytest.raises(PassNeeded):
        engine.evaluate([nodes[0]])
