"""A view as JSON: what a page computes from the packed odds, against the full rows; and a whole tree for files."""

from __future__ import annotations

import base64
import json
import math
from typing import Any

import orjson
import pytest
import torch

from lookahead_core import Cost, Document, Model, load_model
from lookahead_core.document.result_context import ResultContext, make_lookahead
from lookahead_core.engines.prediction_rows import LogitRows
from lookahead_core.serving.json_view import lookahead_as_json
from lookahead_core.serving.packed_predictions import PredictionPacker, pack
from lookahead_core.serving.tree_export import tree_as_json
from lookahead_core.strategies.lookahead_options import LookaheadOptions
from tests.conftest import tiny_llama
from tests.engines.test_reheated_predictions import example_rows
from tests.support.families import plain_rows

TEXT = "After careful consideration of the"


class Node:
    """What a page makes of a packed node, by the formula alone."""

    def __init__(self, packed: str) -> None:
        raw = base64.b64decode(packed)
        numbers = [raw[place] + 256 * raw[place + 1] for place in range(0, len(raw), 2)]
        self.sums = [number / 5000 for number in numbers[:20]]
        self.below = [number / 2000 for number in numbers[20:]]
        self.top = -self.sums[9]

    def probability(self, logprob: float, tenths: int) -> float:
        return math.exp((logprob - self.top) / (tenths / 10) - self.sums[tenths - 1])

    def kept(self, tenths: int) -> list[float]:
        return [self.probability(self.top - below, tenths) for below in self.below]


def assert_shares(node: Node, row: torch.Tensor, coldest: int = 1) -> None:
    """Within one per cent of the full row's softmax at every temperature up to 2."""
    order = row.argsort(descending=True, stable=True)[: len(node.below)]
    for tenths in range(coldest, 21):
        exact = torch.softmax(row.double() / (tenths / 10), -1)[order].tolist()
        for place, (share, expected) in enumerate(zip(node.kept(tenths), exact, strict=True)):
            # In steps of 1/2000 nat and 1/5000; what is too unlikely to be drawn as a pixel may be further off.
            assert share == pytest.approx(expected, rel=0.01, abs=1e-5), (tenths, place)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(6))
def test_a_page_can_heat_packed_odds_to_within_one_per_cent_of_the_full_row(number: int) -> None:
    row = example_rows()[number]
    (packed,) = pack(LogitRows(row[None]).predictions(), 64)
    node = Node(packed)
    assert len(node.below) == min(64, len(row)) and node.below[0] == 0
    # A row as flat as the first is no model's: far below temperature 1 its tail's histogram is too coarse.
    assert_shares(node, row, coldest=1 if number else 4)


def test_packed_odds_are_those_of_a_reheated_prediction_for_many_at_once() -> None:
    rows = example_rows()
    said = [LogitRows(row[None]).predictions()[0] for row in rows]
    for packed, one in zip(pack(said, 20), said, strict=True):
        node = Node(packed)
        assert len(node.below) == min(20, len(one.logprobs))
        for tenths in (2, 5, 10, 15, 20):
            expected = one.reheated(tenths / 10)[0][:20]
            assert node.kept(tenths) == pytest.approx(expected, rel=0.003 if tenths < 5 else 0.001, abs=1e-6)


@pytest.mark.slow
def test_the_default_models_view_can_be_heated_at_every_node(default_model: Model) -> None:
    document = Document(default_model, "After careful")
    result = document.lookahead(k=3, depth=4)
    view = lookahead_as_json(result)
    start = document.token_ids
    for shown, branch in zip(view["branches"], result.branches, strict=True):
        rows = plain_rows(default_model.hf_model, [start + list(branch.token_ids[:n]) for n in range(4)])
        for place, row in enumerate(rows):
            node = Node(view["nodes"][shown["at"][place]])
            assert_shares(node, torch.log_softmax(row, -1))
            for tenths in (5, 10, 20):
                exact = float(torch.softmax(row.double() * 10 / tenths, -1)[branch.token_ids[place]])
                assert node.probability(shown["logprobs"][place], tenths) == pytest.approx(exact, rel=0.01)


@pytest.mark.parametrize("mode", ["likely", "every_level", "forks", "best_first", "sampled", "diverse"])
@pytest.mark.parametrize("heal", [False, True])
def test_a_view_is_json_and_says_what_its_result_says(tiny_model: Model, mode: str, heal: bool) -> None:
    document = Document(tiny_model, "the old keep")
    result = document.lookahead(k=4, depth=4, mode=mode, heal=heal, seed=9, until="clause", cutoff=0.01)
    view = json.loads(json.dumps(lookahead_as_json(result)))
    told = {"given", "seen_from", "compared_by", "cost", "alone", "asked"}
    assert set(view) == {"branches", "nodes", "rest", "without"} | told | ({"typed"} if heal else set())
    assert view["compared_by"] == result.compared_by
    assert view["asked"] == {
        "k": 4, "depth": 4, "mode": mode, "until": "clause", "temperature": 1, "top_p": 1, "seed": 9,
        "odds": "tokens", "banned": 0,
    }  # fmt: skip
    for shown, branch in zip(view["branches"], result.branches, strict=True):
        assert set(shown) == {"ids", "logprobs", "at", "pieces", "ended", "healed", "repeats"}
        assert shown["ids"] == list(branch.token_ids) and shown["at"][0] == 0
        assert "".join(piece["text"] for piece in shown["pieces"]) == branch.text
        assert [piece["tokens"] for piece in shown["pieces"]] == [piece.tokens for piece in branch.pieces]
        for place, logprob, one in zip(shown["at"], shown["logprobs"], branch.said, strict=True):
            node = Node(view["nodes"][place])
            assert node.top == pytest.approx(one.logprobs[0], abs=1e-3)
            assert node.probability(logprob, 10) == pytest.approx(math.exp(logprob), rel=0.002)
    assert [other["ids"] for other in view["rest"]] == [list(other.token_ids) for other in result.rest]
    for shown, other in zip(view["rest"], result.rest, strict=True):
        for place, logprob, one in zip(shown["at"], other.logprobs, other.said, strict=True):
            assert Node(view["nodes"][place]).probability(logprob, 10) == pytest.approx(math.exp(logprob), rel=0.002)
            assert one.logprobs[0] >= logprob
    assert view["given"] == result.given and bool(view["given"]) == heal
    if heal:
        typed = view["typed"]
        assert typed["id"] == document.head.token_id and typed["at"][0] == 0
        kept = math.exp(result.typed.logprob)
        assert Node(view["nodes"][0]).probability(typed["logprob"], 10) == pytest.approx(kept, rel=0.002)
        assert Node(view["nodes"][typed["at"][1]]).top == pytest.approx(result.typed.said[1].logprobs[0], abs=1e-3)
    assert lookahead_as_json(result, kept=5, rest=3)["rest"] == view["rest"][:3]
    assert len(Node(lookahead_as_json(result, kept=5)["nodes"][0]).below) == min(5, len(result.said.logprobs))
    length = len(document.token_ids)
    assert view["alone"] == sum(length - shown["healed"] + len(shown["ids"]) - 1 for shown in view["branches"])


@pytest.mark.parametrize("text", ["The sea and ", "The old keep"], ids=["whole", "healed"])
def test_the_views_of_all_steps_are_those_that_are_made_alone(tiny_model: Model, text: str) -> None:
    packer, options = PredictionPacker(), {"k": 4, "depth": 5, "heal": True}
    steps = list(Document(tiny_model, text).lookahead_steps(**options))
    together = [lookahead_as_json(step.result, packer=packer) for step in steps]
    assert len({len(view["nodes"]) for view in together}) > 3
    for step, view in zip(steps, together, strict=True):
        for fields in (view, alone := lookahead_as_json(step.result)):
            fields.pop("cost"), fields.pop("alone")
        assert view == alone and view["rest"]
    fresh = lookahead_as_json(Document(tiny_model, text).lookahead(**options))
    assert fresh["rest"] == together[-1]["rest"] and fresh["nodes"] == together[-1]["nodes"]


def test_each_node_is_sent_once(tiny_model: Model) -> None:
    result = Document(tiny_model, TEXT).lookahead(k=3, depth=4, mode="every_level", branch_levels=3)
    view = lookahead_as_json(result)
    paths = {tuple(shown["ids"][:place]) for shown in view["branches"] for place in range(len(shown["ids"]))}
    assert len(view["nodes"]) == len(paths)
    known = {tuple(b["ids"][:place]): b["at"][place] for b in view["branches"] for place in range(len(b["ids"]))}
    assert len(set(known.values())) == len(paths)
    for shown in view["branches"]:
        assert shown["at"] == [known[tuple(shown["ids"][:place])] for place in range(len(shown["ids"]))]


def test_only_predictions_behind_shown_tokens_and_the_typed_one_are_sent(tiny_model: Model) -> None:
    for text in ("After careful consideration of th", "The old keeper sa", "the s"):
        result = Document(tiny_model, text).lookahead(k=1, depth=2, heal=True)
        for rest in (0, 1, 64):
            view = lookahead_as_json(result, kept=0, rest=rest)
            shown = {index for path in (*view["branches"], *view["rest"], view["typed"]) for index in path["at"]}
            assert shown == set(range(len(view["nodes"])))


def test_a_view_while_the_text_is_read_has_no_branches(tiny_model: Model) -> None:
    document = Document(tiny_model, "the sea")
    context = ResultContext(document.head, document.passage.end, tiny_model.end_token_ids, LookaheadOptions())
    view = lookahead_as_json(make_lookahead((), Cost(0, 0, 0.0, 0, 0), context))
    assert (view["branches"], view["nodes"], view["rest"], view["alone"]) == ([], [], [], 0)


def flat(trees: list[dict[str, Any]], above: tuple[int, ...]) -> set[tuple[int, ...]]:
    found = set()
    for tree in trees:
        path = (*above, tree["id"])
        found |= {path} | flat(tree["children"], path)
    return found


def test_an_exported_tree_holds_all_that_is_known_and_its_odds(tiny_model: Model) -> None:
    document = Document(tiny_model, "the sea")
    start = len(document.token_ids)
    result = document.lookahead(k=3, depth=4)
    document.accept(result.branches[1], 2)
    document.lookahead(k=2, depth=3)
    tree = json.loads(json.dumps(tree_as_json(document)))
    assert [token["id"] for token in tree["trunk"]] == document.token_ids
    assert "".join(token["text"] for token in tree["trunk"]) == document.text
    assert tree["trunk"][start]["probability"] == pytest.approx(math.exp(result.branches[1].logprobs[0]))
    ids = document.token_ids
    got = {path for one in tree["below"] for path in flat([one], tuple(ids[: one["at"]]))}
    trunk = {tuple(ids[:place]) for place in range(1, len(ids) + 1)}
    known = {tuple(node.token_id for node in document.tree.path(each)) for each in document.tree.nodes()}
    assert got == known - trunk
    for one in tree["below"]:
        for branch in result.branches:
            if one["at"] == start and one["id"] == branch.token_ids[0]:
                assert one["probability"] == pytest.approx(math.exp(branch.logprobs[0]))
                assert one["text"] in ("", branch.pieces[0].text if branch.pieces else "")


def test_a_deep_or_wide_tree_is_exported_without_end(tiny_model: Model) -> None:
    document = Document(tiny_model, "the sea")
    node = document.head
    for token_id in range(3000):
        node = document.tree.expand(node, 5 + token_id % 90)
    for token_id in range(300):
        document.tree.expand(document.head, 5 + token_id)
    tree = json.loads(json.dumps(tree_as_json(document, max_nodes=250)))
    assert len([one for one in tree["below"]]) == 250
    assert json.loads(json.dumps(tree_as_json(document)))["below"]
    deep = Document(tiny_model, token_ids=list(range(5, 95)) * 5)
    assert len(tree_as_json(deep)["trunk"]) == 450


def nearest(document: Document, read: int, most: int) -> list[tuple[int, tuple[int, ...]]]:
    """The reference: paths off the trunk, each with where it leaves it, level by level, from the text's end on."""
    nodes = [document.tree.root, *document.tree.path(document.head)]
    unread, started = len(document.token_ids) - len(nodes) + 1, document.passage.start_count
    level = []
    for depth, node in reversed(list(enumerate(nodes))):
        at = depth + (unread if depth > started else 0)
        level += [(at, child, (child.token_id,)) for child in node.children.values() if child not in nodes]
    found = []
    while level:
        found += [(at, path) for at, _, path in level]
        level = [(at, one, (*path, one.token_id)) for at, node, path in level for one in node.children.values()]
    return found[:most]


def flat_trees(tree: dict[str, Any]) -> list[tuple[int, tuple[int, ...]]]:
    return [(one["at"], path) for one in tree["below"] for path in sorted(flat([one], ()))]


@pytest.mark.parametrize("most", [0, 1, 2, 7, 20, 21, 22, 5000])
def test_of_a_tree_above_its_limit_those_nearest_to_the_trunk_and_the_texts_end_are_taken(
    tiny_model: Model, most: int
) -> None:
    document = Document(tiny_model, token_ids=[5, 6, 7])
    for place, node in enumerate(document.tree.path(document.head)):
        for first in (20, 30):
            document.tree.descend(node, [first + place, 40, 50][: 2 + place % 2])
            document.tree.expand(node.children[first + place], 41)
    everything = nearest(document, 0, 10**6)
    assert len(everything) == 20
    tree = tree_as_json(document, max_nodes=most)
    assert sorted(flat_trees(tree)) == sorted(everything[:most])
    assert [token["id"] for token in tree["trunk"]] == [5, 6, 7]


def test_a_tree_is_nested_a_hundred_levels_deep_which_the_server_can_encode(tiny_model: Model) -> None:
    document = Document(tiny_model, "the sea")
    document.tree.descend(document.head, [5 + place % 90 for place in range(250)])
    (tree,) = orjson.loads(orjson.dumps(tree_as_json(document)))["below"]
    levels = 0
    while tree:
        levels, tree = levels + 1, next(iter(tree["children"]), None)
    assert levels == 100


@pytest.mark.parametrize("kind", ["byte_tokenizer", "fallback_tokenizer"])
def test_beyond_the_context_each_token_of_the_trunk_has_its_text_and_its_probability(
    kind: str, request: pytest.FixtureRequest
) -> None:
    tokenizer = request.getfixturevalue(kind)
    hf_model = tiny_llama(len(tokenizer), max_position_embeddings=64, eos_token_id=2)
    document = Document(load_model(hf_model, tokenizer=tokenizer), "the sea and the sky " * 20)
    result = document.lookahead(k=3, depth=4)
    document.accept(result.branches[1], 3)
    document.lookahead(k=2, depth=3)
    document.rewind(1)
    document.lookahead(k=2, depth=3)
    ids, read = document.token_ids, document.tree.path(document.head)
    started = int(ids[0] == tokenizer.bos_token_id and kind == "fallback_tokenizer")
    unread = len(ids) - len(read)
    assert unread > 30
    sea = tokenizer("the sea", add_special_tokens=False).input_ids[-1]
    for node in (document.tree.root, *read[:3]):
        document.tree.expand(node, sea)
    tree = tree_as_json(document)
    shown = {one["at"]: one["text"] for one in tree["below"] if one["id"] == sea}
    assert {at: shown[at] for at in range(started + 1)} == dict.fromkeys(range(started + 1), " sea"[started:])
    assert shown[started + unread + 1] == shown[started + unread + 2] == " sea"
    assert [token["id"] for token in tree["trunk"]] == ids
    assert "".join(token["text"] for token in tree["trunk"]) == document.text
    window = [*ids[:started], *ids[started + unread :]]
    (row,) = [torch.log_softmax(logits, -1) for logits in plain_rows(hf_model, [window[:-1]])]
    assert tree["trunk"][-1]["probability"] == pytest.approx(float(row[ids[-1]].exp()), rel=1e-3)
    known = {place for place, token in enumerate(tree["trunk"]) if token["probability"] is not None}
    said = {place for place, node in enumerate(read) if node.parent.prediction is not None}
    assert known == {place if place < started else place + unread for place in said} and len(known) >= 2
    assert sorted(flat_trees(tree)) == sorted(nearest(document, 0, 10**6))


@pytest.mark.parametrize("number", range(6))
def test_packed_odds_and_shown_log_probabilities_are_rounded_to_the_nearest_step(number: int) -> None:
    row = example_rows()[number]
    (said,) = LogitRows(row[None]).predictions()
    node = Node(pack([said], 64)[0])
    exact = [min(said.logprobs[0] - value, 65535 / 2000) for value in said.logprobs[:64]]
    assert max(abs(one - other) for one, other in zip(node.below, exact, strict=True)) <= 0.5 / 2000 + 1e-9
    for tenths in range(1, 21):
        sums = -math.log(said.reheated(tenths / 10)[0][0])
        assert abs(node.sums[tenths - 1] - sums) <= 0.5 / 5000 + 1e-6


def test_shown_log_probabilities_have_five_digits_behind_the_point(tiny_model: Model) -> None:
    result = Document(tiny_model, TEXT).lookahead(k=3, depth=4)
    view = lookahead_as_json(result)
    for shown, branch in zip(view["branches"], result.branches, strict=True):
        assert shown["logprobs"] == [float(f"{value:.5f}") for value in branch.logprobs]
        assert shown["logprobs"] != list(branch.logprobs)


def test_half_a_character_has_no_text_in_a_tree_until_it_is_whole(tiny_model: Model) -> None:
    document = Document(tiny_model, "the ")
    smile = tiny_model.tokenizer("🫠", add_special_tokens=False).input_ids
    document.tree.descend(document.head, smile)
    (tree,) = tree_as_json(document)["below"]
    texts = []
    while tree:
        texts.append(tree["text"])
        tree = tree["children"][0] if tree["children"] else None
    assert texts == [""] * (len(smile) - 1) + ["🫠"]
    document.accept(smile[:1])
    below = tree_as_json(document)
    assert below["trunk"][-1]["text"] == "" and below["below"][0]["id"] == smile[1]


def test_a_tree_of_a_text_longer_than_the_context_hangs_where_it_belongs(byte_tokenizer: Any) -> None:
    model = load_model(tiny_llama(len(byte_tokenizer), max_position_embeddings=64), tokenizer=byte_tokenizer)
    document = Document(model, "the sea and the sky " * 20)
    result = document.lookahead(k=3, depth=4)
    assert result.seen_from > 0
    tree = tree_as_json(document)
    assert "".join(token["text"] for token in tree["trunk"]) == document.text
    assert {one["at"] for one in tree["below"]} == {len(document.token_ids)}
    assert {one["id"] for one in tree["below"]} == {branch.token_ids[0] for branch in result.branches}
