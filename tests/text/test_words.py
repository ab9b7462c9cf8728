"""Where the first word of a continuation ends: a table of cases, and that no further text takes an end back."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from lookahead_core.text.words import first_word_size

CASES = [
    # text before, continuation, its first word; None if what follows decides
    ("After", " careful thought", " careful"),
    ("After", " careful", None),
    ("After care", "ful thought", "ful"),
    ("After ", "careful thought", "careful"),
    ("After", "  careful.", "  careful"),
    ("word", ", and", ","),
    ("word", ',"', None),
    ("word", '," he', ',"'),
    ("word", "... and", "..."),
    ("word", ".\n", "."),
    ("word.", "\n\nThe", "\n\n"),
    ("word.", " \nThe", " \n"),
    ("word.", "\n", None),
    ("I", " don't know", " don't"),
    ("I don", "'t know", "'t"),
    ("a", " well-known man", " well-known"),
    ("a", " well-", None),
    ("a", " well- or", " well"),
    ("in", " 3.14 or", " 3.14"),
    ("in", " 1984. Then", " 1984"),
    ("in", " 1984.", None),
    ("He said", ' "Hello, you', ' "Hello'),
    ("He said", " (see below", " (see"),
    ("He said", ":“Hello ", ":"),
    ("sea", "—and", "—"),
    ("我", "喜欢", "喜"),
    ("我", "喜", None),
    ("", "犬は", "犬"),
    ("cafe", "\u0301 in", "\u0301"),
    ("so", " 👍🏽👍 and", " 👍🏽👍"),
    ("so", " ", None),
    ("so", "", None),
]
AT_THE_END = [
    ("a", " well-", " well"),
    ("in", " 1984.", " 1984"),
    ("word.", "\n", "\n"),
    ("so", " ", " "),
    ("so", "", ""),
]


@pytest.mark.parametrize(("before", "continuation", "word"), CASES)
def test_a_first_word_ends_where_the_next_one_begins(before: str, continuation: str, word: str | None) -> None:
    assert first_word_size(continuation, before) == (None if word is None else len(word))


@pytest.mark.parametrize(("before", "continuation", "word"), AT_THE_END)
def test_the_end_of_a_text_ends_its_last_word(before: str, continuation: str, word: str) -> None:
    assert first_word_size(continuation, before, final=True) == len(word)


TEXTS = some.text("ab1 .,'-\"(“\n中か👍🏽\u0301\u200d#é", max_size=8)


@settings(deadline=None)
@given(TEXTS, TEXTS, TEXTS)
def test_a_known_end_of_a_word_stays_with_any_further_text(before: str, continuation: str, more: str) -> None:
    size = first_word_size(continuation, before)
    longer, final = first_word_size(continuation + more, before), first_word_size(continuation, before, final=True)
    assert size is None or size == longer == final
    assert final is not None and final <= len(continuation)
    if size is None and longer is not None:
        assert longer >= final or longer >= len(continuation) - 1
