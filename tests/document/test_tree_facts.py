"""The facts of a tree, on their way into a tree of another process."""

from __future__ import annotations

import pickle
import random

import pytest

from lookahead_core.document.tree_facts import FactsReader, FactsWriter, TreeFacts
from lookahead_core.prediction import Prediction
from lookahead_core.tree import Node, TokenTree

TRUNK = [5, 3, 8, 1]


def tree_of(trunk: list[int]) -> TokenTree:
    tree = TokenTree()
    tree.move_head(tree.descend(tree.root, trunk))
    tree.new_view()
    return tree


def known(tree: TokenTree) -> dict[tuple[int, ...], tuple[Prediction | None, dict]]:
    """All that is known of the nodes from the head's parent down, by their paths."""
    found: dict[tuple[int, ...], tuple[Prediction | None, dict]] = {}

    def visit(node: Node) -> None:
        found[tuple(tree.token_ids(node))] = (node.prediction, dict(node.memo or {}))
        for child in node.children.values():
            visit(child)

    visit(tree.head.parent or tree.head)
    return {path: facts for path, facts in found.items() if facts != (None, {})}


def prediction(number: int) -> Prediction:
    return Prediction((number,), (-0.5,), float(number))


def sent(facts: TreeFacts) -> TreeFacts:
    return pickle.loads(pickle.dumps(facts))


def learn(tree: TokenTree, dice: random.Random) -> None:
    """Grow the tree, and learn something about some of its nodes."""
    nodes = [tree.head, tree.head.parent or tree.head]
    for _ in range(dice.randrange(12)):
        nodes.append(tree.expand(dice.choice(nodes), dice.randrange(9)))
    for node in nodes:
        if dice.random() < 0.5 and node.prediction is None:
            node.prediction = prediction(dice.randrange(1000))
            tree.work.passes += 1
        if dice.random() < 0.3:
            tree.memoize(node, ("key", dice.randrange(3)), dice.randrange(1000) if node.memo is None else 0)


@pytest.mark.parametrize("seed", range(20))
def test_a_tree_that_gets_all_facts_knows_what_the_first_one_knows(seed: int) -> None:
    dice, tree, other = random.Random(seed), tree_of(TRUNK), tree_of(TRUNK)
    reader, writer = FactsReader("tree", tree), FactsWriter(other)
    for _ in range(4):
        learn(tree, dice)
        facts = sent(reader.read((3, 7)))
        assert writer.write(facts) == bool(facts.predictions or facts.memos)
        assert {path: each[0] for path, each in known(other).items()} == {
            path: each[0] for path, each in known(tree).items()
        }
        assert {path: set(each[1]) for path, each in known(other).items()} == {
            path: set(each[1]) for path, each in known(tree).items()
        }
        other.check()
    assert other.work.passes == tree.work.passes
    assert facts.usage == (3, 7)
    assert reader.read().nodes == reader.read().predictions == reader.read().memos == (), "nothing is sent twice"


def test_facts_that_an_earlier_task_left_are_sent_again_if_the_view_shows_them() -> None:
    tree = tree_of(TRUNK)
    shown, hidden = tree.expand(tree.head, 1), tree.expand(tree.head, 2)
    shown.prediction, hidden.prediction = prediction(1), prediction(2)
    tree.new_view()
    tree.expand(tree.head, 1)
    facts = FactsReader("tree", tree).read()
    assert [each for _, each in facts.predictions] == [prediction(1)]


def test_facts_of_another_text_or_of_an_older_view_are_ignored() -> None:
    tree = tree_of(TRUNK)
    reader = FactsReader("tree", tree)
    tree.expand(tree.head, 2).prediction = prediction(2)
    facts = reader.read()
    for other in (tree_of([*TRUNK, 2]), tree_of([5, 3, 8, 2])):
        assert not FactsWriter(other).write(facts)
        assert known(other) == {}
    older = tree_of(TRUNK)
    writer = FactsWriter(older)
    older.new_view()
    assert not writer.write(facts)
    assert known(older) == {}


def test_a_second_reader_begins_to_count_anew_after_a_restart() -> None:
    other = tree_of(TRUNK)
    writer = FactsWriter(other)
    for numbers in ([1, 2], [2, 1]):
        tree = tree_of(TRUNK)
        reader = FactsReader("tree", tree)
        for number in numbers:
            tree.expand(tree.head, number).prediction = prediction(number)
            writer.write(sent(reader.read()))
        writer.restart()
    assert {path[-1]: each for path, (each, _) in known(other).items()} == {1: prediction(1), 2: prediction(2)}
