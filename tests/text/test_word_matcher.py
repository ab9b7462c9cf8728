"""A word is found as a whole word, however the text is cut into pieces: compared with a regular expression."""

from __future__ import annotations

import random
import re

import pytest

from lookahead_core.text.word_matcher import WordMatcher

WORDS = ["sea", "a", "aa", "aba", "see sea", "café", "été", "s'", "-a", "3", "海", "海a", "…"]
SIGNS = [*"seabcfét \n'-3海…🙂", "\u0301", "sea", "café", "aba"]


def holds_word(word: str, text: str, after: int, final: bool) -> bool:
    """Whether the word ends in `text` behind `after`; at the end of the text only if the text is `final`."""
    letters = "[a-zé3\u0301]"
    begins, ends = (re.match("[a-zé3]", sign) is not None for sign in (word[0], word[-1]))
    before = f"(?<!{letters})" if begins else ""
    behind = f"(?!{letters})" if final else f"(?!{letters}|\\Z)"
    pattern = before + re.escape(word) + (behind if ends else "")
    return any(found.start() + len(word) > after for found in re.finditer(f"(?={pattern})", text))


@pytest.mark.slow
@pytest.mark.parametrize("word", WORDS)
def test_a_word_is_found_where_a_regular_expression_finds_it(word: str) -> None:
    dice, matcher, hits = random.Random(word), WordMatcher(word), 0
    for _ in range(1500):
        before = "".join(dice.choices([*SIGNS, word], k=dice.randrange(4)))
        after = "".join(dice.choices([*SIGNS, word], k=dice.randrange(6)))
        state, more = matcher.start(before.encode()), after.encode()
        while more:
            size = dice.randrange(1, 5)
            state, more = matcher.advance(state, more[:size]), more[size:]
        found = holds_word(word, before + after, len(before), final=False)
        assert state.found == found, (word, before, after)
        assert (state.found or matcher.is_spelled(state)) == holds_word(word, before + after, len(before), final=True)
        hits += found
    assert hits > 5


def test_beginnings_of_the_word_are_known_with_the_missing_rest() -> None:
    matcher = WordMatcher("café")
    state = matcher.start(b"the ")
    assert not matcher.is_begun(state)
    state = matcher.advance(state, b"caf\xc3")
    assert matcher.is_begun(state)
    assert matcher.open_beginnings(state) == [b"\xa9"]
    assert not matcher.is_begun(matcher.advance(state, b"\xa8"))
    assert not matcher.is_begun(matcher.start(b"deca"))
    assert WordMatcher("aab").open_beginnings(WordMatcher("aab").start(b" aa")) == [b"b"]
    assert WordMatcher("été").is_begun(WordMatcher("été").start(b" \xc3"))


def test_only_the_last_bytes_of_a_text_count() -> None:
    """As many as `WordMatcher.start` names."""
    for word in ("sea", "café"):
        matcher, limit = WordMatcher(word), 4 * len(word) + 8
        for before in ("é" * 30 + " ca", "x" * 50 + " se", "🙂" * 20 + "sea" * 9):
            whole, short = (matcher.start(text) for text in (before.encode(), before.encode()[-limit:]))
            assert (whole.matched, whole.after_letter) == (short.matched, short.after_letter)
