"""With `stop_at_repetition` a branch ends where it repeats itself, in every mode, and says so."""

from __future__ import annotations

import itertools
import re
from typing import Any

import pytest

from lookahead_core import Document, Model, load_model
from lookahead_core.strategies.repetition import size_before_repetition
from tests.support.families import make
from tests.support.scripted_model import parrot

STUTTERS = ["the words tore the words, and the words tore the words, and the words tore.", "again and again and again"]


def cut_by_reading(text: list[int], row: tuple[int, ...]) -> tuple[tuple[int, ...], int, bool]:
    """What is left of a row, how many of its tokens had to be known, and whether it repeats, found by a pattern."""
    for known in range(1, len(row) + 1):
        spelled = "".join(f"<{token_id}>" for token_id in [*text, *row[:known]])
        for block in range(3, known + 1):
            if re.search(rf"((?:<\d+>){{{block}}})\1$", spelled):
                return row[: known - block] if known - block >= block else row[:known], known, True
    return row, len(row), False


def test_repetitions_equal_those_of_a_regular_expression() -> None:
    for length in range(1, 10):
        for ids in (
            itertools.product((1, 2, 11), repeat=length) if length < 8 else itertools.product((1, 2), repeat=length)
        ):
            for size in range(1, length + 1):
                row = ids[length - size :]
                kept, known, repeats = cut_by_reading(list(ids[: length - size]), row)
                if known == size:  # not earlier: what repeats before its end has stopped there
                    assert size_before_repetition(list(ids), size) == (len(kept) if repeats else None)


@pytest.fixture(scope="module")
def stutterer() -> Model:
    return parrot(STUTTERS)


@pytest.mark.slow
@pytest.mark.parametrize(("text", "repeated"), [("the", 1), ("and the words tore the words, and the", 1), ("ag", 1)])
@pytest.mark.parametrize("speculate", [False, True])
def test_a_row_that_repeats_itself_ends_there_and_says_so(
    stutterer: Model, text: str, repeated: int, speculate: bool
) -> None:
    requested = {"k": 6, "depth": 40, "speculate": speculate}
    whole = Document(stutterer, text)
    rows = whole.lookahead(**requested)
    assert not any(branch.repeats for branch in rows.branches), "without the option rows are as they were"
    document = Document(stutterer, text)
    result = document.lookahead(stop_at_repetition=True, **requested)
    cut = 0
    for row, branch in zip(rows.branches, result.branches, strict=True):
        kept, _, repeats = cut_by_reading(whole.token_ids, row.token_ids)
        assert (branch.token_ids, branch.repeats) == (kept, repeats)
        assert branch.logprobs == pytest.approx(row.logprobs[: len(kept)], abs=1e-5)
        cut += repeats
    assert cut >= repeated
    again = document.lookahead(stop_at_repetition=True, **requested)
    assert again.branches == result.branches and again.cost.passes == 0


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["likely", "forks"])
@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("the words", "tore the words tore the"),
        ("the words tore the words, and the words tore the", "words tore the"),
        ("the words tore the words, and", "again and again and again and again"),
        ("again and again and", "again and again and again"),
    ],
)
def test_a_row_ends_at_the_same_word_whether_or_not_a_space_ends_the_text(
    stutterer: Model, text: str, row: str, mode: str
) -> None:
    """Without the space its first token is the text's last one, re-opened: it is no token of the row's own."""
    for end in ("", " "):
        result = Document(stutterer, text + end).lookahead(k=6, depth=40, mode=mode, heal=True, stop_at_repetition=True)
        assert row in [branch.text.lstrip() for branch in result.branches if branch.repeats], f"after {text + end!r}"


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["every_level", "forks", "best_first", "sampled"])
def test_no_mode_grows_a_branch_after_a_repetition(mode: str) -> None:
    """A model of random weights soon runs in circles."""
    hf_model = make("llama")
    model = load_model(hf_model, tokenizer=None)
    text = [3, 1, 4, 1, 5]
    requested: dict[str, Any] = {"mode": mode, "k": 5, "depth": 30, "cutoff": 0.02, "budget": 200, "temperature": 0.2}
    document = Document(model, token_ids=text)
    result = document.lookahead(stop_at_repetition=True, **requested)
    rows = [branch.token_ids for branch in result.branches]
    assert mode == "sampled" or len(set(rows)) == len(rows)
    assert 0 < result.coverage <= 1 + 1e-6
    for branch in result.branches:
        kept, _, repeats = cut_by_reading(text, branch.token_ids)
        assert kept == branch.token_ids, "it ends before the second copy"
        assert branch.repeats or not repeats
        assert branch.repeats or branch.ended or mode == "best_first" or len(branch.token_ids) == 30
    if mode == "sampled":
        whole = Document(model, token_ids=text).lookahead(**requested)
        for row, branch in zip(whole.branches, result.branches, strict=True):
            kept, _, repeats = cut_by_reading(text, row.token_ids)
            assert (branch.token_ids, branch.repeats) == (kept, repeats)


def test_an_end_of_the_sentence_comes_before_a_repetition(stutterer: Model) -> None:
    document = Document(stutterer, "the")
    result = document.lookahead(k=6, depth=40, until="word", stop_at_repetition=True)
    assert result.branches and not any(branch.repeats for branch in result.branches)


@pytest.mark.parametrize("speculate", [False, True])
def test_of_rows_that_are_cut_to_the_same_tokens_one_is_kept(speculate: bool) -> None:
    """After "e" come "c" and "b": "a b c d e c d e" and "a b c d e b c d e" both end before their second "c d e"."""
    model = parrot(["a b c d e c d e b c d e"])
    requested = {"mode": "every_level", "k": 2, "branch_levels": 6, "depth": 12, "speculate": speculate}
    result = Document(model, "a").lookahead(stop_at_repetition=True, **requested)
    rows = [branch.token_ids for branch in result.branches]
    assert len(set(rows)) == len(rows) == 62, "two of the 64 are cut to rows that are there already"
