"""What engines return: scores of several passes, prefill in chunks, greedy roll-outs."""

from __future__ import annotations

import pytest
import torch

from lookahead_core.engines import engine as base
from lookahead_core.engines.cached import CachedEngine
from lookahead_core.engines.engine import NodeScores, prefill_in_chunks
from lookahead_core.engines.uncached import UncachedEngine
from lookahead_core.tree import Node, TokenTree
from tests.conftest import tiny_llama
from tests.support.families import plain_rows


def some_nodes(count: int) -> list[Node]:
    tree = TokenTree()
    nodes = [tree.expand(tree.root, token_id) for token_id in range(count)]
    tree.new_view()
    return nodes


def drawn(rows: int, width: int = 200, seed: int = 0) -> torch.Tensor:
    return torch.randn(rows, width, generator=torch.Generator().manual_seed(seed)) * 3


def test_scores_of_several_passes_are_those_of_one() -> None:
    nodes, rows, hidden = some_nodes(6), drawn(6), drawn(6, 8, 1)
    parts = [
        NodeScores(nodes[first:last], rows[first:last], hidden[first:last]) for first, last in ((0, 2), (2, 3), (3, 6))
    ]
    joined = NodeScores.joined(parts)
    assert joined.nodes == nodes
    assert torch.equal(joined.logits, rows)
    assert joined.hidden is not None
    assert torch.equal(joined.hidden, hidden)
    assert NodeScores.joined(parts[:1]) is parts[0]
    parts[1].hidden = None
    assert NodeScores.joined(parts).hidden is None, "vectors of some nodes only are none"


def test_scores_answer_for_each_node_in_any_order() -> None:
    nodes, rows, hidden = some_nodes(5), drawn(5), drawn(5, 8, 1)
    scores = NodeScores(nodes, rows, hidden)
    exact = rows.double().log_softmax(-1)
    some = [nodes[3], nodes[0], nodes[4]]
    assert [scores.best_token(node) for node in nodes] == scores.best_tokens == rows.argmax(-1).tolist()
    assert torch.equal(scores.logits_of(some), rows[[3, 0, 4]])
    assert torch.allclose(scores.logprobs_of(some).double(), exact[[3, 0, 4]], atol=1e-5)
    token_ids, odds = scores.top_k(some, 3)
    assert token_ids == rows[[3, 0, 4]].topk(3).indices.tolist()
    assert [len(each) for each in odds] == [3, 3, 3]
    vector = scores.hidden_state(nodes[2])
    assert vector is not None
    assert torch.equal(vector, hidden[2])
    assert NodeScores(nodes, rows).hidden_state(nodes[2]) is None
    assert all(node.prediction is None for node in nodes), "nothing was told"


def test_a_row_is_computed_once_and_stores_a_prediction_on_its_node_only() -> None:
    nodes, rows = some_nodes(4), drawn(4)
    scores = NodeScores(nodes, rows)
    nodes[1].tree.new_view()
    row = scores.logprob_row(nodes[1])
    assert torch.allclose(row.double(), rows[1].double().log_softmax(-1), atol=1e-5)
    assert scores.logprob_row(nodes[1]) is row
    assert [node.prediction is not None for node in nodes] == [False, True, False, False]
    prediction = nodes[1].prediction
    assert prediction is not None
    assert prediction.token_ids[0] == int(rows[1].argmax())
    assert nodes[1].last_view == nodes[1].tree.view
    assert nodes[0].last_view < nodes[1].last_view, "who is told can be seen"


@pytest.mark.parametrize(
    ("length", "left"),
    [
        (500, []),
        (768, []),
        (769, [257]),
        (1024, [512]),
        (1280, [768]),
        (1281, [769, 257]),
        (2100, [1588, 1076, 564]),
    ],
)
def test_a_long_text_is_read_in_chunks_of_512_up_to_a_last_one_of_768(length: int, left: list[int]) -> None:
    engine = CachedEngine(tiny_llama(96, max_position_embeddings=4096), cache_bytes=2**30)
    tree = TokenTree()
    head = tree.descend(tree.root, [place % 96 for place in range(length)])
    assert list(prefill_in_chunks(engine, head)) == left
    assert len(engine.nodes_to_prefill(head)) == (left[-1] if left else length)
    assert engine.passes == len(left)


@pytest.mark.parametrize("kind", ["cached", "uncached"])
def test_branches_roll_out_greedily_to_a_depth_or_an_end_token(kind: str) -> None:
    hf_model = tiny_llama(96, seed=3)
    engine = CachedEngine(hf_model, cache_bytes=2**30) if kind == "cached" else UncachedEngine(hf_model)
    tree = TokenTree()
    nodes = [tree.descend(tree.root, [5, 6, token_id]) for token_id in (7, 8, 9)]
    expected = {node: greedy(hf_model, tree.token_ids(node), 6) for node in nodes}
    # An end token that comes second in one branch.
    stop = frozenset({expected[nodes[1]][1]})
    steps = list(base.roll_out(engine, nodes, 8, stop))
    assert 1 <= len(steps) <= 5
    for node in nodes:
        path, current = [], node
        while current.children:
            (current,) = current.children.values()
            path.append(current.token_id)
        wanted = expected[node][:5]
        ends = [place for place, token_id in enumerate(wanted) if token_id in stop]
        assert path == wanted[: ends[0] + 1 if ends else 5]
    assert [node.token_id for node in steps[0]] == [expected[node][0] for node in nodes]
    passes = engine.passes
    assert list(base.roll_out(engine, nodes, 8, stop)) == []
    assert list(base.roll_out(engine, nodes, 3, stop)) == []
    assert engine.passes == passes, "what is there is not computed again"


def greedy(hf_model: object, token_ids: list[int], count: int) -> list[int]:
    """The likeliest tokens after a text, by a plain forward for each."""
    ids = list(token_ids)
    for _ in range(count):
        ids.append(int(plain_rows(hf_model, [ids])[0].argmax()))
    return ids[len(token_ids) :]
