"""An edited branch: the kept tokens, the text as it is tokenized, and the greedy continuation of a plain model."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch

from lookahead_core import Document, LookaheadError, Model
from lookahead_core.document.branch_edit import BranchEdit, edit_steps
from lookahead_core.document.edited_rows import with_edited_rows
from lookahead_core.document.results import Branch
from lookahead_core.strategies.lookahead_options import LookaheadOptions
from tests.support.families import greedy


def plain_row(model: Model, token_ids: list[int]) -> torch.Tensor:
    """The log-probabilities after these tokens, from one plain forward of transformers."""
    with torch.no_grad():
        return model.hf_model(torch.tensor([token_ids]), use_cache=False).logits[0, -1].double().log_softmax(-1)


def spelled(model: Model, text: str) -> tuple[int, ...]:
    return tuple(model.tokenizer(text, add_special_tokens=False).input_ids)


@pytest.mark.slow
@pytest.mark.parametrize("kept", [0, 1, 3])
@pytest.mark.parametrize("text", [" the sea", "s", " zzz🙂", "\n"])
def test_an_edit_keeps_the_tokens_before_it_and_is_continued_greedily(tiny_model: Model, kept: int, text: str) -> None:
    document = Document(tiny_model, "Once upon a time.")
    result = document.lookahead(k=4, depth=5)
    head, branch = document.head, result.branches[2]
    made = document.continue_branch(branch, text, tokens=kept, depth=4)
    fixed = [*branch.token_ids[:kept], *spelled(tiny_model, text)]
    expected = [*fixed, *greedy(tiny_model, [*document.token_ids, *fixed], 4)]
    assert list(made.token_ids) == expected
    assert made.edited_tokens == (kept, len(fixed))
    for index, (token_id, logprob) in enumerate(zip(made.token_ids, made.logprobs, strict=True)):
        row = plain_row(tiny_model, [*document.token_ids, *made.token_ids[:index]])
        assert logprob == pytest.approx(float(row[token_id]), abs=1e-4)
    assert made.probability == pytest.approx(math.exp(math.fsum(made.logprobs)))
    assert (document.head, document.text) == (head, "Once upon a time.")
    document.check()
    before = document.token_ids
    document.accept(made, tokens=len(fixed))
    assert document.token_ids == [*before, *fixed]
    assert document.text == "Once upon a time." + tiny_model.tokenizer.decode(fixed)


def test_the_same_edit_again_needs_no_pass(tiny_model: Model) -> None:
    document = Document(tiny_model, "Once upon a time.")
    branch = document.lookahead(k=2, depth=3).branches[1]
    first = document.continue_branch(branch, " old", tokens=1)
    passes = document.tree.work.passes
    assert document.continue_branch(branch, " old", tokens=1) == first
    assert document.tree.work.passes == passes


def test_an_edit_of_a_banned_token_has_its_own_odds_and_the_rest_leaves_it_out(tiny_model: Model) -> None:
    document = Document(tiny_model, "Once upon a time.")
    (token_id,) = spelled(tiny_model, " the")
    following = greedy(tiny_model, [*document.token_ids, token_id], 1)[0]
    branch = document.lookahead(k=2, depth=3, banned={token_id, following}).branches[0]
    made = document.continue_branch(branch, " the", banned={token_id, following}, depth=5)
    assert made.logprobs[0] == pytest.approx(float(plain_row(tiny_model, document.token_ids)[token_id]), abs=1e-4)
    row = plain_row(tiny_model, [*document.token_ids, token_id])
    row[[token_id, following]] = -math.inf
    assert made.token_ids[1] == int(row.argmax())
    assert made.logprobs[1] == pytest.approx(float(row.log_softmax(-1).max()), abs=1e-4)
    assert not {token_id, following} & set(made.token_ids[1:])


def test_the_odds_of_an_edited_token_leave_banned_tokens_out_as_those_of_other_rows_do(tiny_model: Model) -> None:
    document = Document(tiny_model, "Once upon a time.")
    (token_id,) = spelled(tiny_model, " the")
    row = plain_row(tiny_model, document.token_ids)
    likeliest = {int(one) for one in row.argsort(descending=True)[:3]} - {token_id}
    branch = document.lookahead(k=2, depth=3, banned=likeliest).branches[0]
    made = document.continue_branch(branch, " the", banned=likeliest)
    row[list(likeliest)] = -math.inf
    assert made.logprobs[0] == pytest.approx(float(row.log_softmax(-1)[token_id]), abs=1e-4)


def test_everything_else_leaves_out_the_beginning_of_an_edited_row(tiny_model: Model) -> None:
    document = Document(tiny_model, "Once upon a time.")
    before = document.lookahead(k=2, depth=3)
    other = next(one for one in before.rest if one.text and document.model.codec.bytes_of(one.token_ids[0]).isascii())
    edits = [(before.branches[1].token_ids, BranchEdit((), str(other.text)))]
    *_, last = with_edited_rows(document, document.lookahead_steps(k=2, depth=3), edits, {"depth": 3}, 41)
    assert last.result.branches[1].token_ids[:1] == other.token_ids
    assert other.token_ids not in [one.token_ids for one in last.result.rest]


@pytest.mark.slow
@pytest.mark.parametrize(("until", "level"), [("word", 1), ("clause", 2), ("line", 4)])
def test_an_edited_branch_ends_at_the_first_boundary_after_the_edit(tiny_model: Model, until: Any, level: int) -> None:
    document, text = Document(tiny_model, "Once upon a time."), " the keeper.\nHe, then, sai"
    branch = document.lookahead(k=1, depth=2).branches[0]
    whole = document.continue_branch(branch, text, depth=60)
    assert whole.edited_tokens is not None
    fixed = whole.edited_tokens[1]
    ends = (piece.tokens for piece in whole.pieces if piece.ends >= level and piece.tokens >= fixed)
    size = next(ends, len(whole.token_ids))
    made = document.continue_branch(branch, text, until=until, depth=60)
    assert made.token_ids == whole.token_ids[:size]
    assert size > fixed


@pytest.mark.parametrize(("text", "edit"), [("Old se", "a and"), ("Old se", "🙂"), ("Old s", "ky"), ("Old ", "sea")])
def test_an_edit_may_continue_a_typed_word(tiny_model: Model, text: str, edit: str) -> None:
    """The reference: the typed token's text conditions the first token; typed and new text are tokenized together."""
    document = Document(tiny_model, text)
    typed = document.reopens
    assert typed
    branch = document.lookahead(k=3, depth=3, heal=True).branches[0]
    made = document.continue_branch(branch, edit, depth=3)
    assert made.healed
    assert made.text.startswith(edit)
    assert made.edited_tokens is not None
    size = made.edited_tokens[1]
    joined = spelled(tiny_model, typed + edit)
    names = [tiny_model.tokenizer.decode([token_id]) for token_id in range(len(tiny_model.tokenizer))]
    if names[joined[0]].startswith(typed):
        assert made.token_ids[:size] == joined
    else:
        assert made.token_ids[:size] == (document.token_ids[-1], *spelled(tiny_model, edit))
    row = plain_row(tiny_model, document.token_ids[:-1])
    matching = [token_id for token_id, name in enumerate(names) if name.startswith(typed)]
    expected = float(row[made.token_ids[0]] - row[matching].logsumexp(0))
    assert made.logprobs[0] == pytest.approx(expected, abs=1e-4)
    document.accept(made, tokens=size)
    assert document.text == text + edit


def test_an_edit_of_another_text_or_without_text_is_refused(tiny_model: Model) -> None:
    document = Document(tiny_model, "Once upon a time.")
    branch = document.lookahead(k=1, depth=3).branches[0]
    with pytest.raises(ValueError, match="at least one character"):
        document.continue_branch(branch, "")
    with pytest.raises(ValueError, match="201 characters"):
        document.continue_branch(branch, "x" * 201)
    with pytest.raises(ValueError, match="tokens is 4, and must be a whole number from 0 to 3"):
        document.continue_branch(branch, "x", tokens=4)
    with pytest.raises(ValueError, match=r"may have at most 4\."):
        list(edit_steps(document, BranchEdit(branch.token_ids[:2], "once upon a"), LookaheadOptions(), most=4))
    for token_id in (-1, 10**6, 0):
        with pytest.raises(ValueError, match="is not a token that a text can follow"):
            list(edit_steps(document, BranchEdit((token_id,), "x"), LookaheadOptions()))
    document.accept(branch, tokens=1)
    with pytest.raises(LookaheadError, match="another text"):
        document.continue_branch(branch, "x")


@pytest.mark.parametrize("again", [1, 3])
def test_a_row_edited_twice_is_shown_once_when_a_ban_has_changed_its_continuation(
    tiny_model: Model, again: int
) -> None:
    """The second edit replaces the text of the first one, or a token after it; then a later token is banned."""
    document = Document(tiny_model, "Once upon a time.")

    def edited(edits: list[tuple[tuple[int, ...], BranchEdit]], banned: set[int]) -> list[Branch]:
        steps = document.lookahead_steps(k=3, depth=4, banned=banned)
        *_, last = with_edited_rows(document, steps, edits, {"depth": 4, "banned": banned}, 41)
        return list(last.result.branches)

    plain = document.lookahead(k=3, depth=4).branches[1].token_ids
    edits = [(plain, BranchEdit(plain[:1], " sea"))]
    once = edited(edits, set())[1].token_ids
    edits.append((once, BranchEdit(once[:again], " old")))
    twice = edited(edits, set())[1].token_ids
    assert (twice[:again], twice[again : again + 1]) == (once[:again], spelled(tiny_model, " old"))
    banned = set(once) - {*once[:again], *spelled(tiny_model, " sea"), *twice[: again + 1]}
    assert banned, "the continuation of the first edit has other tokens than the edits"
    rows = edited(edits, banned)
    assert [row.token_ids[: again + 1] for row in rows if row.edited_tokens] == [twice[: again + 1]]
    others = [row.token_ids for row in document.lookahead(k=3, depth=4, banned=banned).branches]
    assert [row.token_ids for row in rows if not row.edited_tokens] == [row for row in others if row != plain]


def test_a_row_edited_twice_names_the_tokens_of_both_texts_unless_the_second_replaces_the_first(
    tiny_model: Model,
) -> None:
    document = Document(tiny_model, "Once upon a time.")
    options: dict[str, Any] = {"k": 3, "depth": 5}
    plain = document.lookahead(**options).branches[1]
    first = BranchEdit(plain.token_ids[: plain.pieces[0].tokens], " old")

    def edited(*edits: tuple[tuple[int, ...], BranchEdit]) -> Branch:
        (*_, last) = with_edited_rows(document, document.lookahead_steps(**options), edits, options, 9)
        return last.result.branches[1]

    once = edited((plain.token_ids, first))
    assert once.edited_tokens is not None and once.earlier_edits == ()
    kept = next(piece.tokens for piece in once.pieces if piece.tokens > once.edited_tokens[1])
    later = BranchEdit(once.token_ids[:kept], " sky")
    twice = edited((plain.token_ids, first), (once.token_ids, later))
    assert twice.earlier_edits == (once.edited_tokens,)
    assert twice.edited_tokens is not None and twice.edited_tokens[0] == kept
    other = document.lookahead(**options).branches[2]
    elsewhere = BranchEdit(other.token_ids[: other.pieces[0].tokens], " old")
    assert len(elsewhere.before) == len(first.before), "both changes are at the same place of their rows"
    both = edited((plain.token_ids, first), (other.token_ids, elsewhere), (once.token_ids, later))
    assert both.earlier_edits == (once.edited_tokens,)
    again = edited((plain.token_ids, first), (once.token_ids, BranchEdit(first.before, " sky")))
    assert again.earlier_edits == ()
    alone = [(once.token_ids, replace(later, earlier=(once.edited_tokens,)))]
    (*_, last) = with_edited_rows(document, document.lookahead_steps(**options), alone, options, 9)
    (named,) = (row for row in last.result.branches if row.edited_tokens)
    assert named.earlier_edits == (once.edited_tokens,), "the edit names what an earlier one put there"


def test_an_edit_whose_text_has_a_banned_token_leaves_the_rows_as_they_are_without_it(tiny_model: Model) -> None:
    document = Document(tiny_model, "Once upon a time.")
    plain = document.lookahead(k=3, depth=4).branches[1].token_ids
    own, other = (BranchEdit(plain[:1], text) for text in (" sea", " old"))
    for banned, kept in ((spelled(tiny_model, " sea")[-1], own), (spelled(tiny_model, " old")[-1], other)):
        options = {"k": 3, "depth": 4, "banned": {banned}}
        expected = [row.token_ids for row in document.lookahead(**options).branches]
        steps = document.lookahead_steps(**options)
        *_, last = with_edited_rows(document, steps, [(plain, kept)], options, 41)
        assert [row.token_ids for row in last.result.branches] == expected
        assert not any(row.edited_tokens for row in last.result.branches)


def test_an_edited_row_replaces_the_row_that_was_edited(tiny_model: Model) -> None:
    document = Document(tiny_model, "Once upon a time.")
    plain = document.lookahead(k=3, depth=4).branches
    edit = BranchEdit(plain[1].token_ids[:2], " sea")
    steps = document.lookahead_steps(k=3, depth=4)
    *_, last = with_edited_rows(
        document, steps, [(plain[1].token_ids, edit), ((1, 2), BranchEdit((), "!!"))], {"depth": 4}, 41
    )
    rows = last.result.branches
    assert [row.edited_tokens is not None for row in rows] == [True, False, True, False]
    assert (rows[1].token_ids, rows[3].token_ids) == (plain[0].token_ids, plain[2].token_ids)
    assert rows[2].token_ids[:2] == plain[1].token_ids[:2]
    firsts = {row.token_ids[0] for row in rows}
    assert last.result.coverage == pytest.approx(
        sum(math.exp(float(plain_row(tiny_model, document.token_ids)[token_id])) for token_id in firsts), abs=1e-4
    )


@pytest.mark.slow
@pytest.mark.parametrize("odds", ["tokens", "words"])
@pytest.mark.parametrize("depth", [2, 9])
def test_an_edited_row_stays_in_its_place_when_the_rows_are_longer_or_shorter_than_they_were(
    tiny_model: Model, depth: int, odds: Any
) -> None:
    document = Document(tiny_model, "Once upon a time.")
    options = {"k": 3, "depth": depth, "odds": odds}
    plain, row = document.lookahead(**options), document.lookahead(k=3, depth=4, odds=odds).branches[1]
    edit = BranchEdit(row.token_ids[:1], " sea")
    *_, last = with_edited_rows(document, document.lookahead_steps(**options), [(row.token_ids, edit)], options, 41)
    rows = last.result.branches
    assert [one.edited_tokens is not None for one in rows] == [False, True, False]
    assert [rows[0].token_ids, rows[2].token_ids] == [plain.branches[0].token_ids, plain.branches[2].token_ids]
    if odds == "tokens":
        assert last.result.coverage == pytest.approx(plain.coverage)


@pytest.mark.parametrize("kept", [0, 1])
def test_an_edited_row_stays_in_its_place_when_a_ban_has_changed_the_end_of_the_row(
    tiny_model: Model, kept: int
) -> None:
    document = Document(tiny_model, "Once upon a time.")
    before = document.lookahead(k=3, depth=4).branches
    row = next(one for one in before if one.token_ids[3] not in one.token_ids[:3])
    options = {"k": 3, "depth": 4, "banned": [row.token_ids[3]]}
    plain = document.lookahead(**options).branches
    (place,) = (index for index, one in enumerate(plain) if one.token_ids[:3] == row.token_ids[:3])
    assert plain[place].token_ids != row.token_ids
    edit = BranchEdit(row.token_ids[:kept], " sea")
    *_, last = with_edited_rows(document, document.lookahead_steps(**options), [(row.token_ids, edit)], options, 41)
    assert [one.edited_tokens is not None for one in last.result.branches] == [index == place for index in range(3)]


@pytest.mark.slow
@pytest.mark.parametrize("odds", ["tokens", "words"])
@pytest.mark.parametrize("kept", [0, 1])
def test_the_beginning_of_a_replaced_row_is_among_the_others_unless_a_row_has_it(
    tiny_model: Model, odds: Any, kept: int
) -> None:
    document = Document(tiny_model, "Once upon a time.")
    options = {"k": 3, "depth": 4, "odds": odds}
    plain = document.lookahead(**options)
    first = plain.branches[0]
    edit = BranchEdit(first.token_ids[:kept], " zzz")
    *_, last = with_edited_rows(document, document.lookahead_steps(**options), [(first.token_ids, edit)], options, 41)
    size = first.next_word_tokens if odds == "words" else first.pieces[0].tokens
    assert last.result.rest[size > kept :] == plain.rest
    if size > kept:
        other = last.result.rest[0]
        assert other.token_ids == first.token_ids[:size]
        row = plain_row(tiny_model, document.token_ids)
        assert other.logprobs[0] == pytest.approx(float(row[first.token_ids[0]]), abs=1e-4)
        expected = (first.next_word, first.share) if odds == "words" else (first.pieces[0].text, None)
        assert (other.text, other.share) == expected


@pytest.mark.slow
def test_a_row_that_is_edited_after_its_next_word_keeps_the_word_and_its_share(tiny_model: Model) -> None:
    document = Document(tiny_model, "Once upon a time.")
    options = {"k": 3, "depth": 6, "odds": "words"}
    plain = document.lookahead(**options)
    for place, branch in enumerate(plain.branches):
        size = branch.next_word_tokens
        for kept in (size - 1, size + 1):
            edit = BranchEdit(branch.token_ids[:kept], " zzz")
            steps = with_edited_rows(
                document, document.lookahead_steps(**options), [(branch.token_ids, edit)], options, 41
            )
            *_, last = steps
            row = last.result.branches[place]
            assert row.edited_tokens is not None
            if kept < size:
                assert row.next_word is None
            else:
                assert (row.next_word, row.next_word_tokens) == (branch.next_word, size)
                assert (row.share, row.share_error) == (branch.share, branch.share_error)
                assert last.result.coverage == plain.coverage
                assert last.result.rest == plain.rest


@pytest.mark.slow
@pytest.mark.parametrize(("text", "keeps"), [(" zzz", True), (", zzz", True), ("zzz", False)])
def test_a_row_whose_second_word_is_edited_keeps_its_next_word_unless_the_edit_lengthens_it(
    tiny_model: Model, text: str, keeps: bool
) -> None:
    document = Document(tiny_model, "Once upon a time.")
    options = {"k": 3, "depth": 6, "odds": "words"}
    branch = document.lookahead(**options).branches[0]
    assert branch.next_word is not None and branch.next_word[-1:].isalnum()
    edit = BranchEdit(branch.token_ids[: branch.next_word_tokens], text)
    *_, last = with_edited_rows(document, document.lookahead_steps(**options), [(branch.token_ids, edit)], options, 41)
    row = last.result.branches[0]
    assert row.next_word == (branch.next_word if keeps else None)
    assert (row.share == branch.share) == keeps


def test_token_ids_are_continued_as_a_branch_is(tiny_model: Model) -> None:
    document = Document(tiny_model, "Once upon a time.")
    branch = document.lookahead(k=2, depth=3).branches[1]
    made = document.continue_branch(branch, " old", tokens=2)
    assert document.continue_branch(branch.token_ids, " old", tokens=2) == made
