"""`WordRow`: the next-token probabilities after the beginning of a word, summed over the tokens that end the word."""

from __future__ import annotations

from array import array
from collections.abc import Collection
from dataclasses import dataclass

import torch

from lookahead_core.engines.prediction_rows import top_k_sorted
from lookahead_core.text.boundaries import CONTEXT_CHARACTERS, LINE_BREAKS, is_space_separated
from lookahead_core.text.token_beginnings import NO_TEXT, TokenBeginnings
from lookahead_core.text.words import END, is_word_end

KEPT = 512
"""Maximum number of tokens in a `WordRow`: a token beyond them has a probability below 1 / 512."""
KEPT_AT_FIRST = 2048
"""The same before the word has any character."""
TAIL = 3
"""Number of last characters of a word that decide, with the next one, whether it ends."""
MAX_TAILS = 64
"""Maximum number of results that `word_ends` keeps."""


@dataclass(frozen=True, slots=True)
class ClosingTokens:
    """Tokens that show that the word has ended before them: their total probability, and the likeliest of them."""

    probability: float
    token_id: int = -1
    """The likeliest of them; -1 if there is none."""
    logprob: float = 0.0


NONE = ClosingTokens(0.0)


@dataclass(frozen=True, slots=True)
class WordRow:
    """The probabilities of the next token after the beginning of a word, summed over the tokens that end the word."""

    closing: ClosingTokens
    """The tokens that begin a new word: the word ends before them."""
    closing_before_sign: ClosingTokens
    """The tokens that show that the word ended before its last character, a sign: a space after "well-" ends "well"."""
    end: ClosingTokens
    """The end tokens."""
    open: float
    """Probability of tokens that do not show whether the word ends before them, as they begin with an incomplete
    character or with a sign such as "'"."""
    open_ids: frozenset[int]
    """Those of these tokens that are in `ids`."""
    ids: array[int]
    """The likeliest tokens that are not known to end the word, likeliest first."""
    logprobs: array[float]
    """The log-probability of each of `ids`."""
    others: float
    """Upper bound of the probability of each token that is not in `ids` and does not end the word; 0 without any."""


@dataclass(frozen=True, slots=True)
class WordEnds:
    """Masks of what each next token does to a word: float tensors of 0 and 1, of shape (vocabulary,).

    `closing`, `closing_before_sign` and `open` mean the tokens of these fields of `WordRow`. `ignored` are control
    tokens before the word has begun, which count for no word.
    """

    closing: torch.Tensor
    closing_before_sign: torch.Tensor
    open: torch.Tensor
    ignored: torch.Tensor


def word_row(row: torch.Tensor, ends: WordEnds, end_token_ids: Collection[int], most: int = KEPT) -> WordRow:
    """Return the `WordRow` of a row of log-probabilities, of shape (vocabulary,), with at most `most` tokens.

    `ends` are the masks for the beginning of the word that the row follows.
    """
    probabilities = row.exp()
    end_ids = torch.tensor(sorted(end_token_ids), dtype=torch.long, device=row.device)
    end_total = float(probabilities[end_ids].sum())
    probabilities[end_ids] = 0.0
    closing = _closing(probabilities, row, ends.closing)
    before_sign = _closing(probabilities, row, ends.closing_before_sign)
    going_on = row - 1e30 * (ends.closing + ends.closing_before_sign + ends.ignored)
    going_on[end_ids] = -torch.inf
    ids = top_k_sorted(going_on[None], min(most, len(row)))[0]
    ids = ids[going_on[ids] > -1e20]
    least = float(probabilities[ids[-1]]) if len(ids) == most else 0.0
    best_end = int(end_ids[row[end_ids].argmax()]) if len(end_ids) else -1
    return WordRow(
        closing,
        before_sign,
        ClosingTokens(end_total, best_end, float(row[best_end])) if end_total else NONE,
        float(probabilities @ ends.open),
        frozenset(ids[ends.open[ids] > 0].tolist()),
        array("i", ids.tolist()),
        array("f", row[ids].tolist()),
        least,
    )


def _closing(probabilities: torch.Tensor, row: torch.Tensor, mask: torch.Tensor) -> ClosingTokens:
    total = float(probabilities @ mask)
    if not total:
        return NONE
    best = int((probabilities * mask).argmax())
    return ClosingTokens(total, best, float(row[best]))


def first_characters(beginnings: TokenBeginnings, row: torch.Tensor) -> torch.Tensor:
    """Return for each token id of a row the index of its first character in `beginnings.characters`.

    Ids that the tokenizer does not have count as tokens without text. The result is on the row's device, and is kept in
    `beginnings.derived`.
    """
    key = ("first characters", len(row), row.device)
    if key not in beginnings.derived:
        first = torch.full((len(row),), NO_TEXT)
        known = torch.tensor(beginnings.first)[: len(row)]
        first[: len(known)] = known
        beginnings.derived[key] = first.to(row.device)
    found: torch.Tensor = beginnings.derived[key]
    return found


def word_ends(beginnings: TokenBeginnings, row: torch.Tensor, characters: str, before: str, partial: bytes) -> WordEnds:
    """Return the masks of next tokens for a word that begins with `characters`, after the text `before`.

    `partial` are the bytes of an incomplete character after `characters`, or empty. The masks have the length and the
    device of `row`. They are kept in `beginnings.derived`, by the last characters, on which alone they depend.
    """
    key = ("word ends", len(row), row.device, _tail(characters, before, partial))
    known = beginnings.derived
    if key not in known:
        if len(known) >= MAX_TAILS:
            known.clear()
        known[key] = _word_ends(beginnings, row, key[3])
    ends: WordEnds = known[key]
    return ends


def _tail(characters: str, before: str, partial: bytes) -> tuple[str, int]:
    """Return the last characters before a next token, and how many of them belong to the word: they decide its end.

    Letters are replaced by "a" and digits by "0", since all act alike. For a word that is only white space so far the
    result is ("", 0), or ("\\n", 0) with a line break; for an incomplete character it is ("", -1).
    """
    if partial:
        return "", -1
    own = characters.lstrip()
    if not own:
        return ("\n" if any(each in LINE_BREAKS for each in characters) else ""), 0
    tail = (before[-CONTEXT_CHARACTERS:] + characters)[-TAIL:]
    return "".join(map(_representative, tail)), min(len(own), TAIL)


def _representative(character: str) -> str:
    if not is_space_separated(character):
        return character
    return "0" if character.isdigit() else "a"


def _word_ends(beginnings: TokenBeginnings, row: torch.Tensor, tail: tuple[str, int]) -> WordEnds:
    first = first_characters(beginnings, row)
    kinds = [_kind(character, *tail) for character in beginnings.characters]
    # Control tokens end a word, as end tokens do; before a word they begin none.
    kinds[NO_TEXT] = "closing" if tail[1] > 0 or tail[0] else "ignored"
    masks = (
        torch.tensor([kind == name for kind in kinds], dtype=torch.float32, device=row.device)[first]
        for name in ("closing", "closing_before_sign", "open", "ignored")
    )
    return WordEnds(*masks)


def _kind(character: str, tail: str, own: int) -> str:
    """Return the name of the `WordEnds` mask that has the tokens which begin with `character`; "" if none has.

    `character` is "" for tokens that begin with an incomplete character. `tail` and `own` are those of `_tail`.
    """
    if own == 0 and not tail:
        return ""
    if own < 0 or not character:
        return "open"
    if own == 0:
        return "" if character in LINE_BREAKS else "closing"
    text, end = tail + character, len(tail)
    if own > 1 and is_word_end(text, end - 1):
        return "closing_before_sign"
    if is_word_end(text, end):
        return "closing"
    return "open" if is_word_end(text + END, end) else ""
