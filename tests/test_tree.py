"""The token tree against a plain list of paths: which nodes are visible, removed, kept and counted."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from itertools import pairwise

import pytest

from lookahead_core.prediction import Prediction
from lookahead_core.tree import MAX_MEMO, Node, TokenTree

Path = tuple[int, ...]


@dataclass
class PlainTree:
    """The reference: a tree as a set of paths of token ids; the empty path is the root."""

    view: int = 0
    head: Path = ()
    first_view: dict[Path, int] = field(default_factory=lambda: {(): 0})
    last_view: dict[Path, int] = field(default_factory=lambda: {(): 0})
    predicted: set[Path] = field(default_factory=set)
    ends: list[Path] = field(default_factory=list)

    def mark_visible(self, path: Path) -> None:
        for length in range(len(path) + 1):
            self.last_view[path[:length]] = self.view

    def expand(self, path: Path) -> None:
        for length in range(len(path) + 1):
            self.first_view.setdefault(path[:length], self.view)
        self.mark_visible(path)

    def children(self, path: Path) -> list[Path]:
        return [other for other in self.first_view if other and other[:-1] == path]

    def protected(self, path: Path) -> bool:
        """Whether it is a prefix of the path to the head or to a grower's frontier."""
        return any(end[: len(path)] == path for end in (self.head, *self.ends))

    def remove(self, path: Path) -> None:
        del self.first_view[path], self.last_view[path]
        self.predicted.discard(path)

    def prune_new(self, top: Path) -> set[Path]:
        removed: set[Path] = set()
        below = [path for path in self.first_view if path[: len(top)] == top and path != top]
        for path in sorted(below, key=len, reverse=True):
            if self.first_view[path] == self.view and not self.protected(path) and not self.children(path):
                self.remove(path)
                removed.add(path)
        return removed

    def prune_unevaluated(self, paths: list[Path]) -> set[Path]:
        removed: set[Path] = set()
        for path in sorted(paths, key=len, reverse=True):
            if path not in (self.head, *self.ends) and path not in self.predicted and not self.children(path):
                self.remove(path)
                removed.add(path)
        return removed

    def hidden(self) -> list[Path]:
        return [
            path for path in self.first_view if path and self.last_view[path] < self.view and not self.protected(path)
        ]


class Grower:
    """A grower that continues from these nodes."""

    def __init__(self, frontier: list[Node]) -> None:
        self.frontier = frontier


def path_of(node: Node) -> Path:
    ids = []
    while node.parent is not None:
        ids.append(node.token_id)
        node = node.parent
    return tuple(reversed(ids))


def node_at(tree: TokenTree, path: Path) -> Node:
    node = tree.root
    for token_id in path:
        node = node.children[token_id]
    return node


def assert_same(tree: TokenTree, plain: PlainTree) -> None:
    tree.check()
    nodes = {path_of(node): node for node in [tree.root, *tree.nodes()]}
    assert nodes.keys() == plain.first_view.keys()
    assert tree.size == len(nodes) - 1
    assert {path: node.first_view for path, node in nodes.items()} == plain.first_view
    assert {path: node.last_view for path, node in nodes.items()} == plain.last_view
    assert all(node.depth == len(path) for path, node in nodes.items())
    assert all(tree.token_ids(node) == list(path) for path, node in nodes.items())
    assert path_of(tree.head) == plain.head


@pytest.mark.parametrize("seed", range(40))
def test_random_operations_change_a_tree_as_they_change_a_list_of_paths(seed: int) -> None:
    generator = random.Random(seed)
    tree, plain = TokenTree(), PlainTree()
    grower: Grower | None = None
    for _ in range(60):
        paths = sorted(plain.first_view)
        path = generator.choice(paths)
        action = generator.choice(
            ["expand", "expand", "expand", "view", "head", "predict", "grow", "prune_new", "prune_unevaluated", "prune"]
        )
        if action == "expand":
            more = tuple(generator.randrange(4) for _ in range(generator.randint(1, 3)))
            assert path_of(tree.descend(node_at(tree, path), more)) == path + more
            plain.expand(path + more)
        elif action == "view":
            tree.new_view()
            plain.view += 1
            plain.mark_visible(plain.head)
        elif action == "head":
            tree.move_head(node_at(tree, path))
            plain.head = path
        elif action == "predict":
            node_at(tree, path).prediction = Prediction((0,), (0.0,), 0.0)
            plain.predicted.add(path)
        elif action == "grow":
            grower = Grower([node_at(tree, path)]) if generator.random() < 0.7 else None
            tree.growers.clear()
            plain.ends = [path] if grower else []
            if grower:
                tree.growers.add(grower)
        elif action == "prune_new":
            assert {path_of(node) for node in tree.prune_new(node_at(tree, path))} == plain.prune_new(path)
        elif action == "prune_unevaluated":
            some = [path for path in generator.sample(paths, min(5, len(paths))) if path]
            assert {
                path_of(node) for node in tree.prune_unevaluated([node_at(tree, path) for path in some])
            } == plain.prune_unevaluated(some)
        else:
            prune_both(tree, plain, generator.choice([None, 1, 3]))
        assert_same(tree, plain)


def prune_both(tree: TokenTree, plain: PlainTree, count: int | None) -> None:
    """Prune both trees; the nodes that were visible least recently are removed, from the bottom up."""
    hidden = sorted((plain.last_view[path], -len(path)) for path in plain.hidden())
    gone = [path_of(node) for node in tree.prune(count)]
    ages = [(plain.last_view[path], -len(path)) for path in gone]
    assert ages == (hidden if count is None else hidden[:count])
    for path in gone:
        assert path in plain.hidden()
        assert not plain.children(path)
        plain.remove(path)


def test_a_hidden_node_becomes_visible_when_a_child_is_added() -> None:
    tree = TokenTree()
    hidden = tree.expand(tree.root, 1)
    tree.new_view()
    below = tree.expand(hidden, 2)
    assert tree.prune() == []
    assert hidden.children == {2: below}
    tree.check()


def test_a_path_from_a_node_that_is_no_ancestor_is_an_error() -> None:
    tree = TokenTree()
    one, other = tree.expand(tree.root, 1), tree.expand(tree.root, 2)
    below = tree.descend(one, [3, 4])
    assert tree.path(below, one) == [below.parent, below]
    assert tree.path(one, one) == []
    with pytest.raises(ValueError, match="is not below"):
        tree.path(below, other)


def test_a_memo_keeps_the_latest_entries() -> None:
    tree = TokenTree()
    node = tree.expand(tree.root, 1)
    assert node.memo is None
    for number in range(MAX_MEMO + 3):
        tree.memoize(node, number, str(number))
    assert node.memo == {number: str(number) for number in range(3, MAX_MEMO + 3)}


def test_the_repr_of_a_node_has_its_token_and_depth() -> None:
    tree = TokenTree()
    assert repr(tree.descend(tree.root, [7, 8])) == "Node(token_id=8, depth=2)"
    assert repr(tree.root) == "Node(token_id=-1, depth=0)"


@pytest.mark.parametrize("temperature", [0, -1.0, math.nan])
def test_reheating_to_a_temperature_that_is_not_positive_is_an_error(temperature: float) -> None:
    with pytest.raises(ValueError, match=r"temperature is .*must be more than 0"):
        Prediction((1, 2), (-0.1, -2.4), 0.3).reheated(temperature)


def test_without_a_tail_the_kept_tokens_have_all_probability() -> None:
    logprobs = tuple(math.log(share) for share in (0.5, 0.3, 0.2))
    for temperature in (0.5, 1.0, 2.0):
        shares, rest = Prediction((1, 2, 3), logprobs, 1.0).reheated(temperature)
        heated = [math.exp(value / temperature) for value in logprobs]
        assert rest == 0
        assert shares == pytest.approx([value / sum(heated) for value in heated])


def test_a_tail_has_the_remaining_probability_and_more_at_higher_temperatures() -> None:
    prediction = Prediction((1, 2), (math.log(0.6), math.log(0.1)), 1.0, tail=(0,) * 20 + (5, 0, 9))
    shares, rest = prediction.reheated(1.0)
    assert shares == pytest.approx((0.6, 0.1))
    assert rest == pytest.approx(0.3)
    hotter = [prediction.reheated(temperature)[1] for temperature in (0.5, 1.0, 1.5, 2.0)]
    assert all(cooler < warmer for cooler, warmer in pairwise(hotter))


@pytest.mark.parametrize(
    ("message", "break_invariant"),
    [
        ("but size is", lambda tree: setattr(tree, "size", 1)),
        ("a parent is visible", lambda tree: setattr(tree.head, "last_view", 9)),
        (None, lambda tree: setattr(tree.head, "depth", 5)),
        (None, lambda tree: setattr(tree.head, "token_id", 5)),
        (None, lambda tree: setattr(tree.head, "tree", None)),
        (None, lambda tree: setattr(tree.head, "parent", tree.root)),
    ],
)
def test_check_notices_each_broken_invariant(message: str | None, break_invariant: object) -> None:
    tree = TokenTree()
    tree.move_head(tree.descend(tree.root, [1, 2]))
    tree.check()
    break_invariant(tree)
    with pytest.raises(AssertionError, match=message):
        tree.check()


def test_pruning_removes_the_least_recently_visible_first_and_never_the_trunk() -> None:
    tree = TokenTree()
    head = tree.descend(tree.root, [1, 2, 3])
    tree.move_head(head)
    views = []
    for token_id in (10, 20, 30):
        tree.new_view()
        views.append(tree.descend(head, [token_id, token_id + 1]))
    gone = tree.prune(2)
    assert gone == [views[0], views[0].parent]
    tree.check()
    tree.move_head(tree.root)
    tree.new_view()
    tree.move_head(head)
    tree.prune()
    assert list(tree.nodes()) == tree.path(head)
    tree.check()


def test_a_grower_of_two_trees_protects_in_each_of_them_its_own_nodes() -> None:
    trees = [TokenTree(), TokenTree()]
    ends = [tree.descend(tree.root, [1, 2, 3]) for tree in trees]
    grower = Grower(ends)
    for tree in trees:
        tree.growers.add(grower)
        tree.descend(tree.root, [4])
        tree.new_view()
    for tree, end in zip(trees, ends, strict=True):
        assert tree.protected() == set(tree.path(end))
        assert [node.token_id for node in tree.prune()] == [4]
        tree.check()
