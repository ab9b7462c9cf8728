"""Edits a branch before it is accepted: replaces its end by a text, and continues it greedily."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch

from lookahead_core.document.result_context import ResultContext, make_branch
from lookahead_core.document.results import Branch
from lookahead_core.errors import LookaheadError
from lookahead_core.prediction import Prediction
from lookahead_core.strategies.branch_growth import BranchLeaf, Growth, GrowthContext
from lookahead_core.strategies.healing import ReopenedToken, evaluate_healed_start
from lookahead_core.strategies.lookahead import continue_greedily
from lookahead_core.strategies.lookahead_options import INTEGER_RANGES, LookaheadOptions
from lookahead_core.tree import Node
from lookahead_core.validation import short_repr

if TYPE_CHECKING:
    from lookahead_core.document.document import Document

MAX_CHARACTERS = 200
"""Maximum number of characters of a text that replaces the end of a branch."""
MAX_TOKENS = INTEGER_RANGES["depth"][1]
"""Maximum number of tokens of the new branch."""


@dataclass(frozen=True, slots=True)
class BranchEdit:
    """An edit of a branch: it keeps the branch's first tokens, and replaces the others by a text.

    Making it raises ValueError for an empty or too long text.
    """

    before: tuple[int, ...]
    """The tokens that are kept."""
    text: str
    """The characters after these tokens: at least one, at most MAX_CHARACTERS."""
    healed: bool = False
    """Whether the first token of the branch replaces the last typed token."""
    earlier: tuple[tuple[int, int], ...] = ()
    """Start and end, in `before`, of texts that earlier edits put there."""

    def __post_init__(self) -> None:
        if not isinstance(self.text, str) or not self.text:
            raise ValueError(f"text is {short_repr(self.text)}, and must be a string of at least one character.")
        if len(self.text) > MAX_CHARACTERS:
            raise ValueError(f"text has {len(self.text):,} characters, and may have at most {MAX_CHARACTERS}.")


def edit_steps(
    document: Document, edit: BranchEdit, options: LookaheadOptions, most: int = MAX_TOKENS
) -> Iterator[Branch | None]:
    """Make the edited branch, continued greedily; yield None after each forward pass, and the branch at the end.

    The branch is below the head, and the document's text stays as it is. At most `options.depth` tokens follow the
    edit's text, and the branch has at most `most` tokens. All tokens have the probabilities of a lookahead with these
    options, but for a banned token of the text, which has the model's own. Raises ValueError if a kept token
    is wrong or they end inside a character, or if the branch would be too long, and LookaheadError if the model's
    context has no room for it.
    """
    model, head = document.model, document.head
    reopened = document.reopened_token() if edit.healed else None
    token_ids = (*edit.before, *edited_token_ids(document, edit))
    base = document.descend((), edit.healed)[0]
    options = replace(options, mode="likely", towards="", depth=_depth(document, base, len(token_ids), options, most))
    context = ResultContext(head, document.passage.end, model.end_token_ids, options, reopened)
    words = document.word_tokens(options.avoid) if options.avoid else None
    complete = context.complete(least=len(token_ids))
    reopened_id = head.token_id if reopened else None
    unread = len(document.token_ids) - head.depth
    growth_context = GrowthContext(unread, complete, words=words, reopened_token_id=reopened_id)
    growth = Growth(model.engine, options, model.end_token_ids, growth_context)
    leaf = BranchLeaf(base, (), (), typed=reopened.text if reopened else b"")
    for odds in _odds_steps(growth, leaf, token_ids, (head, reopened) if reopened else None):
        if odds is None:
            yield None
            continue
        for token_id, (logprob, prediction) in zip(token_ids, odds, strict=True):
            leaf = leaf.extended(token_id, logprob, prediction)
    grown = leaf
    for grown in continue_greedily(growth, leaf):  # noqa: B007
        yield None
    if len(grown.token_ids) < len(token_ids):
        grown = leaf  # the edit's text is never cut, even if it repeats itself
    yield replace(make_branch(grown, context), edited_tokens=(len(edit.before), len(token_ids)))


def edited_token_ids(document: Document, edit: BranchEdit) -> list[int]:
    """Return the token ids that `edit_steps` puts after the kept tokens: those of the edit's text, tokenized as typed.

    If no token is kept and the branch replaces the last typed token, the typed characters and the text are tokenized
    together. If the first token then does not begin with all typed characters, the typed token is kept instead. Raises
    ValueError if a kept token is wrong, or if they end inside a character.
    """
    reopened = document.reopened_token() if edit.healed else None
    _check_kept(document, edit, reopened)
    end = document.descend(edit.before, edit.healed)[1]
    if end.partial:
        raise ValueError("The kept tokens end inside a character; keep more or fewer of them.")
    codec = document.model.codec
    typed = "" if reopened is None or edit.before else reopened.text.decode()
    token_ids = [token.token_id for token in codec.encode(typed + edit.text, continuing=not end.at_start)]
    if typed and not codec.bytes_of(token_ids[0]).startswith(typed.encode()):
        return [document.head.token_id, *(token.token_id for token in codec.encode(edit.text, continuing=True))]
    return token_ids


def _check_kept(document: Document, edit: BranchEdit, reopened: ReopenedToken | None) -> None:
    """Raise ValueError for a kept token that the model lacks or that is an end token, or if the first is a wrong one.

    With `reopened`, the first one is wrong if it does not begin with the typed characters.
    """
    model = document.model
    for token_id in edit.before:
        if not 0 <= token_id < model.vocabulary or token_id in model.end_token_ids:
            raise ValueError(f"{token_id} is not a token that a text can follow.")
    if reopened and edit.before and not model.codec.bytes_of(edit.before[0]).startswith(reopened.text):
        raise ValueError("The branch does not begin with the typed characters; look ahead again.")


def _depth(document: Document, base: Node, size: int, options: LookaheadOptions, most: int) -> int:
    """Return the maximum number of tokens of a branch below `base` whose first `size` tokens are known.

    Raises ValueError if `size` is more than `most`, and LookaheadError if the model's context has no room for them.
    """
    context = document.model.context_length
    room = most if context is None else context - base.depth
    if size > most:
        raise ValueError(f"The branch has {size} tokens with this text, and may have at most {most}.")
    if size > room:
        raise LookaheadError("The model's context has no room for this text.")
    return min(most, room, size + options.depth)


Odds = tuple[tuple[float, Prediction], ...]
"""For each token its log-probability, and the prediction that it comes from."""


def _odds_steps(
    growth: Growth,
    leaf: BranchLeaf,
    token_ids: Sequence[int],
    replaced: tuple[Node, ReopenedToken] | None,
) -> Iterator[Odds | None]:
    """Yield None after each pass, and at the end the odds of the tokens on a path below a leaf; the tree keeps them.

    The odds are those of `growth`, but for an excluded token, whose are the model's own. With `replaced`, the node of
    the last typed token and that token, the path replaces it: the first odds are conditional on the typed text.
    """
    tree = leaf.node.tree
    key: Hashable = ("edit", tuple(token_ids), growth.exclusion, leaf.typed)
    if (known := (leaf.node.memo or {}).get(key)) is None:
        nodes = [leaf.node, *tree.path(tree.descend(leaf.node, token_ids), leaf.node)][:-1]
        odds: list[tuple[float, Prediction]] = []
        if replaced is not None:
            start, row, _ = evaluate_healed_start(growth, *replaced)
            if row[token_ids[0]] == -math.inf:
                plain = Growth(growth.engine, LookaheadOptions(), growth.end_token_ids, GrowthContext())
                start, row, _ = evaluate_healed_start(plain, *replaced)
            odds.append((float(row[token_ids[0]]), start.prediction))
            yield None
        if missing := nodes[len(odds) :]:
            rows = growth.engine.evaluate(missing)
            for node, row in zip(missing, rows, strict=True):
                odds.append(_odds_after(growth, node, row, token_ids[len(odds)]))
            yield None
        known = tuple(odds)
        tree.memoize(leaf.node, key, known)
    yield known


def _odds_after(growth: Growth, node: Node, row: torch.Tensor, token_id: int) -> tuple[float, Prediction]:
    """Return a token's log-probability after a node, and the prediction; both the model's own if it is excluded.

    `row` has the model's log-probabilities after the node.
    """
    logprob = float(growth.note_without_banned(node, row)[token_id])
    prediction = growth.prediction_after(node)
    assert prediction is not None
    if logprob > -math.inf or node.prediction is None:
        return logprob, prediction
    return float(row[token_id]), node.prediction
