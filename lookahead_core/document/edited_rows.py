"""Replaces some branches of a lookahead by edited ones."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lookahead_core.document.branch_edit import BranchEdit, edit_steps, edited_token_ids
from lookahead_core.document.coverage import coverage_of, with_new_shares
from lookahead_core.document.results import Branch, Lookahead, LookaheadStep, Other
from lookahead_core.strategies.lookahead_options import LookaheadOptions

if TYPE_CHECKING:
    from lookahead_core.document.document import Document


def with_edited_rows(
    document: Document,
    steps: Iterator[LookaheadStep],
    edits: Sequence[tuple[tuple[int, ...], BranchEdit]],
    options: Mapping[str, Any],
    most: int,
) -> Iterator[LookaheadStep]:
    """Yield the steps of a lookahead, then one for each pass of the edits; the last one has the edited branches.

    `edits` are pairs of the token ids of the branch to replace, and the edit. That branch may be the result of an
    earlier edit, even one with another continuation: see `_index_of`. If there is no such branch, the edited one
    becomes the first. An edit whose text has a banned token is left out. `options` are those of the lookahead; `most`
    is the maximum number of tokens of an edited branch. Raises the errors of `edit_steps`.
    """
    for last in steps:
        yield last
    result, checked_options = last.result, LookaheadOptions.of(options)
    banned, before = frozenset(checked_options.banned), list[Branch]()
    for row, edit in edits:
        if banned_token_id(document, edit, banned) is not None:
            continue
        for edited in edit_steps(document, edit, checked_options, most):  # noqa: B007
            yield last
        assert edited is not None
        before.append(replace(edited, earlier_edits=_earlier_edits(edited, edit, before)))
        result = _replaced(result, row, before[-1])
    yield LookaheadStep(last.tokens_read, 0, lambda: result)


def _earlier_edits(edited: Branch, edit: BranchEdit, before: Sequence[Branch]) -> tuple[tuple[int, int], ...]:
    """Return, in order, the tokens of the texts that earlier edits inserted and that `edited` still has.

    They are those of the branches `before` this one, and those that the edit itself names.
    """
    assert edited.edited_tokens is not None
    start, ids = edited.edited_tokens[0], edited.token_ids
    made = [(one.edited_tokens, one.token_ids) for one in before if one.edited_tokens is not None]
    kept = {span for span, own in made if span[1] <= start and own[: span[1]] == ids[: span[1]]}
    return tuple(sorted(kept.union(edit.earlier)))


def banned_token_id(document: Document, edit: BranchEdit, banned: frozenset[int]) -> int | None:
    """Return the first banned token of an edit's text, for which the edit is left out; None if it has none."""
    if not banned:
        return None
    return next((token_id for token_id in edited_token_ids(document, edit) if token_id in banned), None)


def _replaced(result: Lookahead, row: tuple[int, ...], edited: Branch) -> Lookahead:
    """Return the result with the branch `edited` instead of the one with the tokens `row`, or first if there is none.

    Other branches with the same tokens as `edited` are left out. Shares and coverage are computed anew. The beginning
    of a replaced branch of the lookahead is put first in `rest`, unless another branch begins with it. Beginnings in
    `rest` that `edited` begins with are left out.
    """
    assert edited.edited_tokens is not None
    branches, rest = list(result.branches), result.rest
    index = _index_of(row, branches, edited.edited_tokens[0])
    if index is None:
        branches.insert(0, edited)
    else:
        other = _beginning(branches[index])
        branches[index] = edited = _with_word_of(branches[index], edited)
        if other is not None and not any(one.token_ids[: len(other.token_ids)] == other.token_ids for one in branches):
            rest = (other, *rest)
    rest = tuple(one for one in rest if edited.token_ids[: len(one.token_ids)] != one.token_ids)
    shown = with_new_shares([one for one in branches if one is edited or one.token_ids != edited.token_ids])
    return replace(result, branches=shown, coverage=coverage_of(shown), rest=rest)


def _with_word_of(replaced: Branch, edited: Branch) -> Branch:
    """Return `edited` with the next word and share of the branch that it replaces; unchanged if that word is edited.

    It is unchanged too if the edit begins right after the word and lengthens it.
    """
    size = replaced.next_word_tokens
    if not size or edited.edited_tokens is None or edited.edited_tokens[0] < size:
        return edited
    word_ends = any(piece.tokens == size and piece.ends for piece in edited.pieces)
    if edited.edited_tokens[0] == size and not word_ends:
        return edited
    return replace(
        edited,
        next_word=replaced.next_word,
        next_word_tokens=size,
        share=replaced.share,
        share_error=replaced.share_error,
    )


def _beginning(branch: Branch) -> Other | None:
    """Return the first piece of a branch, or with word odds its next word; None for an edited branch or without it."""
    size = branch.next_word_tokens if branch.next_word is not None else branch.pieces[0].tokens if branch.pieces else 0
    if branch.edited_tokens is not None or not size:
        return None
    text = branch.next_word or branch.pieces[0].text
    share, error = (None, 0.0) if branch.next_word is None else (branch.share, branch.share_error)
    ids, logprobs, said = branch.token_ids[:size], branch.logprobs[:size], branch.said[:size]
    return Other(ids, logprobs, text, ended=False, said=said, share=share, share_error=error)


def _index_of(row: tuple[int, ...], branches: Sequence[Branch], kept: int) -> int | None:
    """Return the index of the branch with the tokens `row`; None if there is none.

    Under other options the branch may be longer or shorter than it was, or continue in another way after the token that
    the edit replaces, the one after the first `kept`. Of an edited branch only the tokens up to the end of its edit's
    text count, since those after them differ. Of several such branches it is the one that has most tokens in common
    with `row`.
    """

    def known(branch: Branch) -> int:
        """The number of tokens at the beginning of `row` that identify a branch; 0 if it is another one."""
        if branch.edited_tokens is not None and branch.token_ids != row:
            size = branch.edited_tokens[1]
            return size if branch.token_ids[:size] == row[:size] else 0
        shared = len(list(itertools.takewhile(bool, map(operator.eq, branch.token_ids, row))))
        return shared if shared > kept or shared == min(len(row), len(branch.token_ids)) else 0

    sizes = [known(branch) for branch in branches]
    return sizes.index(max(sizes)) if any(sizes) else None
