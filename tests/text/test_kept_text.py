"""The kept spans of a text, joined: the source's own characters, with its own white space between them."""

from __future__ import annotations

import pytest

from lookahead_core.text.kept_text import join_spans


@pytest.mark.parametrize(
    ("source", "kept", "text"),
    [
        ("one two three", ["one", " three"], "one three"),
        ("one two three", ["one two three"], "one two three"),
        (" one two ", [" one", " two", " "], " one two "),
        (" one two three ", [" two"], "two"),
        ("one.\n\ntwo. three", ["one.", " three"], "one.\n\nthree"),
        ("one\ntwo\n\nthree\nfour", ["one", "four"], "one\n\nfour"),
        ("one  two", ["one", " two"], "one  two"),
        ("一二三", ["一", "三"], "一三"),
        ("a(b)c", ["a", "c"], "a c"),
        ("a(b),", ["a", ","], "a,"),
        ("one \n two", ["one ", "two"], "one \n two"),
        ("one two", [], ""),
        ("one  ", ["  "], ""),
    ],
)
def test_spans_are_joined_with_the_white_space_between_them(source: str, kept: list[str], text: str) -> None:
    spans, end = [], 0
    for part in kept:
        start = source.index(part, end)
        end = start + len(part)
        spans.append((start, end))
    assert join_spans(source, spans) == text
