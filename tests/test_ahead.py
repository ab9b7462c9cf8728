"""Following a page's text and reading ahead of it: what comes is what accepting would have given, and costs no pass."""

from __future__ import annotations

from typing import Any

import pytest

from lookahead_core import Document, Model
from lookahead_core.ahead import Ahead, read_ahead
from lookahead_core.document import Accepted
from lookahead_core.strategies.options import MODES, Options

TEXTS = ["The old keeper said", "The old keeper sa", "The sea and ", "The sea."]


def shown(result: Any) -> list[tuple[Any, ...]]:
    return [(branch.token_ids, branch.text, branch.share, branch.ended) for branch in result.branches]


def near(ours: Any, theirs: Any) -> bool:
    return [row[:2] for row in shown(ours)] == [row[:2] for row in shown(theirs)] and all(
        one[2] == pytest.approx(other[2], rel=1e-4) for one, other in zip(shown(ours), shown(theirs), strict=True)
    )


def settled(document: Document, text: str, **options: Any) -> Any:
    document.follow(text)
    return document.lookahead(heal=True, **options)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("text", TEXTS)
def test_what_is_read_ahead_equals_what_accepting_gives_and_accepting_then_costs_no_pass(
    tiny_model: Model, text: str, mode: str
) -> None:
    options: dict[str, Any] = {"mode": mode, "k": 3, "depth": 4, **({"seed": 5} if mode == "sampled" else {})}
    document = Document(tiny_model)
    result = settled(document, text, **options)
    found = [one for one in read_ahead(document, result, most_nodes=10_000, **options) if isinstance(one, Ahead)]
    firsts = {branch.token_ids[: branch.pieces[0].tokens] for branch in result.branches if branch.pieces}
    assert {one.token_ids for one in found} >= firsts
    assert {one.token_ids for one in found[: len(firsts)]} == firsts, "first words come first"
    assert document.text == text
    document.check()
    for one in found[:6]:
        branch = next(b for b in result.branches if b.token_ids[: len(one.token_ids)] == one.token_ids)
        inserted = "".join(piece.text for piece in branch.pieces if piece.tokens <= len(one.token_ids))
        fresh = Document(tiny_model)
        fresh.follow(text + inserted, [Accepted(len(text), one.token_ids, branch.healed)])
        assert near(one.result, fresh.lookahead(**options))
        document.follow(text + inserted, [Accepted(len(text), one.token_ids, branch.healed)])
        again = document.lookahead(**options)
        assert (again.cost.passes, again.cost.tokens) == (0, 0)
        assert near(again, one.result)
        document.follow(text)
        document.lookahead(heal=True, **options)


def test_reading_ahead_takes_all_first_words_in_as_many_passes_as_one_view(tiny_model: Model) -> None:
    document = Document(tiny_model)
    result = settled(document, "The sea.", k=5, depth=6)
    passes = document.tree.work.passes
    steps = read_ahead(document, result, k=5, depth=6)
    found: list[Ahead] = []
    while len(found) < 5:
        step = next(steps)
        found += [step] if step is not None else []
    assert document.tree.work.passes - passes <= 6


def test_reading_ahead_stops_where_its_budget_ends(tiny_model: Model) -> None:
    document = Document(tiny_model)
    result = settled(document, "The sea.", k=5, depth=6)
    before = document.tree.work.tokens
    list(read_ahead(document, result, most_nodes=50, k=5, depth=6))
    assert 50 <= document.tree.work.tokens - before <= 50 + 5 * 5 * 6


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"k": 0}, "k is 0, and must be a whole number from 1 to 20"),
        ({"depth": "5"}, "depth is '5', and must be a whole number"),
        ({"mode": "best"}, "mode is 'best', and must be one of"),
        ({"beams": 2}, "beams is not an option of lookahead"),
    ],
)
def test_options_of_reading_ahead_are_checked_as_those_of_a_view_are(
    tiny_model: Model, options: dict[str, Any], sentence: str
) -> None:
    document = Document(tiny_model, "The sea.")
    result = document.lookahead(k=2, depth=2)
    with pytest.raises(ValueError, match=sentence):
        list(read_ahead(document, result, **options))


def test_without_options_a_view_is_read_ahead_by_the_defaults_of_a_view(tiny_model: Model) -> None:
    document = Document(tiny_model, "The sea.")
    result = document.lookahead()
    first = next(one for one in read_ahead(document, result) if one is not None)
    fresh = Document(tiny_model, "The sea.")
    fresh.accept(first.token_ids)
    assert near(first.result, fresh.lookahead())
    assert first.result.options == Options()
    assert document.tree.work.passes - result.cost.passes <= Options().depth


def test_nothing_is_read_ahead_that_the_model_would_read_through_another_window(tiny_model: Model) -> None:
    document, context = Document(tiny_model), tiny_model.context_length
    assert context is not None
    text = "The sea. "
    while len(Document(tiny_model, text).token_ids) < context - 8:
        text += "The sea. "
    result = settled(document, text, k=2, depth=5)
    found = [one for one in read_ahead(document, result, most_nodes=10_000, k=2, depth=5) if one is not None]
    clicks = {branch.token_ids[: piece.tokens] for branch in result.branches for piece in branch.pieces}
    assert {one.token_ids for one in found} < clicks, "some clicks would move the window"
    for one in found:
        branch = next(b for b in result.branches if b.token_ids[: len(one.token_ids)] == one.token_ids)
        inserted = "".join(piece.text for piece in branch.pieces if piece.tokens <= len(one.token_ids))
        document.follow(text + inserted, [Accepted(len(text), one.token_ids, branch.healed)])
        assert near(one.result, document.lookahead(k=2, depth=5))
        document.follow(text)


def test_following_keeps_the_ids_of_what_was_accepted_with_typing_before_and_between(tiny_model: Model) -> None:
    document, page = Document(tiny_model), Document(tiny_model)
    text, accepted = "", []
    for typed in ("The old", ", and", " so"):
        text += typed
        page.text = text
        branch = max(page.lookahead(k=4, depth=5, heal=True).branches, key=lambda one: len(one.pieces))
        count = branch.pieces[-1].tokens
        accepted.append(Accepted(len(text), branch.token_ids[:count], branch.healed))
        text += page.accept(branch, count)
    document.follow(text, accepted)
    assert document.text == page.text == text
    assert document.token_ids == page.token_ids
    document.check()


@pytest.mark.parametrize(
    "wrong",
    [
        Accepted(3, (5, 6)),
        Accepted(0, (10**9,)),
        Accepted(0, (-1,)),
        Accepted(0, ()),
        Accepted(10**9, (5,)),
        Accepted(3, (5,), healed=True),
        Accepted(0, (0,)),
    ],
)
def test_what_does_not_spell_the_text_is_taken_for_typed(tiny_model: Model, wrong: Accepted) -> None:
    document = Document(tiny_model)
    document.follow("The sea and the sky", [wrong, wrong])
    assert document.text == "The sea and the sky"
    assert document.token_ids == Document(tiny_model, "The sea and the sky").token_ids
    document.check()


def test_an_opening_stands_before_every_text_and_is_no_part_of_it(tiny_model: Model) -> None:
    opening = tiny_model.codec.encode("Tell a story: ")
    ids = [token.token_id for token in opening]
    document = Document(tiny_model, opening=ids)
    assert document.text == ""
    assert document.lookahead(k=2, depth=2).branches
    document.text = "The sea"
    assert document.token_ids[: len(ids)] == ids
    document.rewind(len(document.token_ids) - len(ids))
    assert document.text == ""
