"""Prefetched views of a page's text: each equals the view after accepting, and accepting then costs no pass."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import pytest

from lookahead_core import Document, Model, load_model
from lookahead_core.document.document import AcceptedTokens
from lookahead_core.document.prefetch import PrefetchedView, prefetch_views
from lookahead_core.strategies.lookahead_options import MODES, LookaheadOptions
from lookahead_core.text.codec import split_bytes
from lookahead_core.text.context_window import window_start
from tests.conftest import tiny_llama
from tests.support.parameters import mostly_slow

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


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("text", mostly_slow(TEXTS, 1))
def test_a_prefetched_view_equals_the_one_after_accepting_which_then_costs_no_pass(
    tiny_model: Model, text: str, mode: str
) -> None:
    options: dict[str, Any] = {"mode": mode, "k": 3, "depth": 4, **({"seed": 5} if mode == "sampled" else {})}
    document = Document(tiny_model)
    result = settled(document, text, **options)
    found = [
        one for one in prefetch_views(document, result, most_nodes=10_000, **options) if isinstance(one, PrefetchedView)
    ]
    firsts = {branch.token_ids[: branch.pieces[0].tokens] for branch in result.branches if branch.pieces}
    assert {one.token_ids for one in found} >= firsts
    assert {one.token_ids for one in found[: len(firsts)]} == firsts, "first words come first"
    assert document.text == text
    document.check()
    for one in found[:6]:
        branch = next(b for b in result.branches if b.token_ids[: len(one.token_ids)] == one.token_ids)
        inserted = "".join(piece.text for piece in branch.pieces if piece.tokens <= len(one.token_ids))
        fresh = Document(tiny_model)
        fresh.follow(text + inserted, [AcceptedTokens(len(text), one.token_ids, branch.healed)])
        assert near(one.result, fresh.lookahead(**options))
        document.follow(text + inserted, [AcceptedTokens(len(text), one.token_ids, branch.healed)])
        again = document.lookahead(**options)
        assert (again.cost.passes, again.cost.tokens) == (0, 0)
        assert near(again, one.result)
        document.follow(text)
        document.lookahead(heal=True, **options)


def test_reading_ahead_takes_all_first_words_in_as_many_passes_as_one_view(tiny_model: Model) -> None:
    document = Document(tiny_model)
    result = settled(document, "The sea.", k=5, depth=6)
    passes = document.tree.work.passes
    steps = prefetch_views(document, result, k=5, depth=6)
    found: list[PrefetchedView] = []
    while len(found) < 5:
        step = next(steps)
        found += [step] if step is not None else []
    assert document.tree.work.passes - passes <= 6


def clicks_of(result: Any) -> list[tuple[int, ...]]:
    """Every beginning of a branch that a click could take: first pieces first, then the likeliest, each once."""
    found = []
    for branch in result.branches:
        for place, piece in enumerate(branch.pieces):
            path = branch.token_ids[: piece.tokens]
            found.append((place > 0, -math.fsum(branch.logprobs[: piece.tokens]), path))
    return list(dict.fromkeys(path for _, _, path in sorted(found, key=lambda one: one[:2])))


@pytest.mark.parametrize("mode", ["likely", "every_level", "sampled", "diverse"])
def test_what_is_likely_to_be_clicked_is_read_first_and_each_click_once(tiny_model: Model, mode: str) -> None:
    document = Document(tiny_model)
    options: dict[str, Any] = {"mode": mode, "k": 4, "depth": 4, "temperature": 0.7}
    result = settled(document, "The sea.", **options)
    found = [one.token_ids for one in prefetch_views(document, result, most_nodes=10**6, **options) if one is not None]
    assert found == clicks_of(result)


@pytest.mark.parametrize("most", mostly_slow([7, 31, 60, 1, 30, 32, 90], 3))
@pytest.mark.parametrize("banned", [(), (5,)])
def test_views_are_whole_up_to_the_budget_and_none_is_begun_beyond_it(
    tiny_model: Model, most: int, banned: tuple[int, ...]
) -> None:
    options: dict[str, Any] = {"k": 3, "depth": 4, "banned": banned}
    document = Document(tiny_model)
    result = settled(document, "The sea.", **options)
    everything = [one for one in prefetch_views(document, result, most_nodes=10**6, **options) if one is not None]
    document = Document(tiny_model)
    result = settled(document, "The sea.", **options)
    work, before, counted = document.tree.work, document.tree.work.tokens, []
    found = []
    for step in prefetch_views(document, result, most_nodes=most, **options):
        counted.append(work.tokens - before)
        if step is not None:
            found.append(step)
    assert [one.token_ids for one in found] == [one.token_ids for one in everything[: len(found)]]
    for one, whole in zip(found, everything, strict=False):
        assert near(one.result, whole.result), "no view is given that is shorter than it would be"
    assert work.tokens - before >= most or len(found) == len(everything)
    if banned:
        assert work.tokens - before < most + 2 * 3, "the pass that spends it and one more, of a node for each branch"
    else:
        assert work.tokens - before < most + 10 * 3 * 4, "ten views that were begun together are all complete"


def test_reading_ahead_stops_where_its_budget_ends(tiny_model: Model) -> None:
    document = Document(tiny_model)
    result = settled(document, "The sea.", k=5, depth=6)
    before = document.tree.work.tokens
    list(prefetch_views(document, result, most_nodes=50, k=5, depth=6))
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
        list(prefetch_views(document, result, **options))


def test_without_options_a_view_is_prefetched_with_the_defaults_of_a_view(tiny_model: Model) -> None:
    document = Document(tiny_model, "The sea.")
    result = document.lookahead()
    first = next(one for one in prefetch_views(document, result) if one is not None)
    fresh = Document(tiny_model, "The sea.")
    fresh.accept(first.token_ids)
    assert near(first.result, fresh.lookahead())
    assert first.result.options == LookaheadOptions()
    assert document.tree.work.passes - result.cost.passes <= LookaheadOptions().depth


def test_no_view_is_prefetched_that_would_need_another_context_window(tiny_model: Model) -> None:
    document, context = Document(tiny_model), tiny_model.context_length
    assert context is not None
    text = "The sea. "
    while len(Document(tiny_model, text).token_ids) < context - 8:
        text += "The sea. "
    result = settled(document, text, k=2, depth=5)
    found = [one for one in prefetch_views(document, result, most_nodes=10_000, k=2, depth=5) if one is not None]
    clicks = {branch.token_ids[: piece.tokens] for branch in result.branches for piece in branch.pieces}
    assert {one.token_ids for one in found} < clicks, "some clicks would move the window"
    for one in found:
        branch = next(b for b in result.branches if b.token_ids[: len(one.token_ids)] == one.token_ids)
        inserted = "".join(piece.text for piece in branch.pieces if piece.tokens <= len(one.token_ids))
        document.follow(text + inserted, [AcceptedTokens(len(text), one.token_ids, branch.healed)])
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
        accepted.append(AcceptedTokens(len(text), branch.token_ids[:count], branch.healed))
        text += page.accept(branch, count)
    document.follow(text, accepted)
    assert document.text == page.text == text
    assert document.token_ids == page.token_ids
    document.check()


@pytest.mark.parametrize(
    "wrong",
    [
        AcceptedTokens(3, (5, 6)),
        AcceptedTokens(0, (10**9,)),
        AcceptedTokens(0, (-1,)),
        AcceptedTokens(0, ()),
        AcceptedTokens(10**9, (5,)),
        AcceptedTokens(3, (5,), healed=True),
        AcceptedTokens(0, (0,)),
    ],
)
def test_what_does_not_spell_the_text_is_taken_for_typed(tiny_model: Model, wrong: AcceptedTokens) -> None:
    document = Document(tiny_model)
    document.follow("The sea and the sky", [wrong, wrong])
    assert document.text == "The sea and the sky"
    assert document.token_ids == Document(tiny_model, "The sea and the sky").token_ids
    document.check()


def test_control_tokens_cannot_be_hidden_behind_a_text(tiny_model: Model) -> None:
    typed = Document(tiny_model, "The sea").token_ids
    control = tiny_model.tokenizer.bos_token_id
    assert control not in tiny_model.end_token_ids
    for hidden in ((control, *typed), (*typed, control), (control,) * 9 + tuple(typed)):
        document = Document(tiny_model)
        document.follow("The sea", [AcceptedTokens(0, hidden)])
        assert document.text == "The sea"
        assert document.token_ids == typed


def token_spelling(model: Model, start: str, end: str) -> tuple[int, str]:
    """A token whose text begins and ends like this, with more than both, and that text."""
    names = {token_id: model.tokenizer.decode([token_id]) for token_id in range(2, len(model.tokenizer))}
    fitting = (pair for pair in names.items() if pair[1].startswith(start) and pair[1].endswith(end))
    return next(pair for pair in fitting if len(pair[1]) > len(start + end) and pair[1].isascii())


@pytest.mark.parametrize("text", ["The sea.", "The sea\n", "The sea (", ""])
def test_a_healed_token_is_not_believed_where_nothing_would_be_opened_again(tiny_model: Model, text: str) -> None:
    token_id, spelled = token_spelling(tiny_model, " ", "r")
    whole = text + spelled[1:]
    document = Document(tiny_model)
    document.follow(whole, [AcceptedTokens(len(text), (token_id,), healed=True)])
    assert not Document(tiny_model, text).reopens
    assert (document.text, document.token_ids) == (whole, Document(tiny_model, whole).token_ids)
    assert document.follow(text) is None and document.token_ids == Document(tiny_model, text).token_ids


def test_a_healed_token_is_not_believed_behind_one_that_was_accepted(tiny_model: Model) -> None:
    accepted = tuple(tiny_model.tokenizer(letter).input_ids[0] for letter in " k")
    healed, spelled = token_spelling(tiny_model, "k", "")
    text = f"The {spelled}"
    document, without = Document(tiny_model), Document(tiny_model)
    document.follow(text, [AcceptedTokens(3, accepted), AcceptedTokens(5, (healed,), healed=True)])
    without.follow(text, [AcceptedTokens(3, accepted)])
    assert (document.text, document.token_ids) == (text, without.token_ids)


def test_a_healed_token_is_not_believed_where_it_does_not_begin_with_what_was_typed(tiny_model: Model) -> None:
    typed = "the s"
    reopened = Document(tiny_model, typed).reopens
    token_id, spelled = token_spelling(tiny_model, " k", "")
    assert reopened == " s" and not spelled.startswith(reopened)
    whole = typed + spelled[len(reopened) :]
    document = Document(tiny_model)
    document.follow(whole, [AcceptedTokens(len(typed), (token_id,), healed=True)])
    assert (document.text, document.token_ids) == (whole, Document(tiny_model, whole).token_ids)
    right, spelled = token_spelling(tiny_model, reopened, "")
    document.follow(typed + spelled[2:], [AcceptedTokens(len(typed), (right,), healed=True)])
    assert document.text == typed + spelled[2:] and document.token_ids[-1] == right


def test_the_text_end_after_tokens_of_a_healed_branch_is_that_after_accepting_them(tiny_model: Model) -> None:
    pieces = ((token_id, tiny_model.codec.bytes_of(token_id)) for token_id in range(400))
    part, spelled = next((token_id, piece) for token_id, piece in pieces if len(piece) > 1 and piece[0] >= 0xF0)
    assert split_bytes(b"", spelled) == ("", spelled), "the beginning of an emoji"
    document = Document(tiny_model, "The old keeper sa")
    found = next(branch for branch in document.lookahead(k=5, depth=4, heal=True).branches if branch.healed)
    branch = replace(found, token_ids=(found.token_ids[0], part))
    after = document.after(branch, 2)
    assert after is not None
    document.accept(branch, 2)
    assert after[0] is document.head
    assert after[1].partial == document.passage.end.partial == spelled


@pytest.mark.parametrize("heal", [False, True])
def test_at_the_edge_of_the_context_a_click_is_ahead_exactly_where_it_leaves_the_window_where_it_is(
    byte_tokenizer: Any, heal: bool
) -> None:
    model = load_model(tiny_llama(len(byte_tokenizer), max_position_embeddings=48), tokenizer=byte_tokenizer)
    seen = set()
    for length in range(36, 49):
        document = Document(model, token_ids=[5 + place % 90 for place in range(length - 3)])
        document.text += " the s"
        result = document.lookahead(k=2, depth=4, heal=heal)
        before = document.tree.path(document.head)
        for branch in result.branches:
            assert branch.healed == heal or branch.token_ids[0] != document.token_ids[-1]
            for tokens in range(1, len(branch.token_ids) + 1 - branch.ended):
                after = document.after(branch, tokens)
                document.accept(branch, tokens)
                stays = document.tree.path(document.head)[: len(before) - heal] == before[: len(before) - heal]
                assert (after is not None) == stays
                assert after is None or after[0] is document.head
                document.rewind(tokens)
                document.tree.move_head(before[-1])
                seen.add(stays)
    assert seen == {True, False}


@pytest.mark.parametrize("first", [0, 1, 3])
def test_what_is_left_out_of_a_long_text_is_the_fewest_strides_that_leave_room(first: int) -> None:
    for context, room in itertools.product((8, 9, 16, 20), (0, 1, 3, 5)):
        stride = max(1, min(context // 4, context - room - first))
        for length in range(first, 4 * context):
            steps = next(n for n in itertools.count() if length - n * stride + room <= context)
            assert window_start(length, context, room, first) == (steps * stride + first if steps else 0)
    assert window_start(10**6, None, 100, first) == 0


def test_some_of_a_text_is_kept_however_much_room_is_requested() -> None:
    for context, first, room in itertools.product((8, 16), (0, 2, 7), (1, 7, 15, 40)):
        for length in range(context - 2, 60):
            left = window_start(length, context, room, first)
            assert left < length or room + first >= context


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
