"""The tokens of an edited text: which are kept, and which are made anew."""

from __future__ import annotations

from lookahead_core import Model
from lookahead_core.text.passage import LONGEST_WORD, Passage


def letter_tokens(model: Model) -> tuple[str, int, int, int]:
    """Two letters that are one token of the model, the id of that token, and those of each letter."""
    spelled = {model.codec.bytes_of(token_id): token_id for token_id in range(400)}
    pair = next(piece for piece in spelled if len(piece) == 2 and piece.isalpha())
    return pair.decode(), spelled[pair], spelled[pair[:1]], spelled[pair[1:]]


def test_typed_characters_may_merge_with_the_last_accepted_token_and_with_none_before_it(tiny_model: Model) -> None:
    pair, whole, first, last = letter_tokens(tiny_model)
    passage = Passage(tiny_model.codec)
    passage.edit("the")
    typed = passage.token_ids
    passage.accept([last, first, first], replace_last=False)
    passage.edit(passage.text + pair[1:])
    assert passage.token_ids == [*typed, last, first, whole]


def test_a_text_that_is_cut_where_an_accepted_token_ends_keeps_that_token(tiny_model: Model) -> None:
    _, _, first, last = letter_tokens(tiny_model)
    passage = Passage(tiny_model.codec)
    passage.edit("the ")
    passage.accept([first, last], replace_last=False)
    before, ids = passage.text, passage.token_ids
    passage.accept([first, first], replace_last=False)
    assert passage.edit(before) == len(ids) and passage.token_ids == ids
    assert passage.reopened_bytes() == b"", "an accepted token is not re-opened"
    passage.edit(before[:-1])
    assert passage.token_ids == ids[:-1], "the token before it was accepted too"
    passage.edit("the ")
    assert passage.reopened_bytes() != b""
    passage.check()


def test_a_healed_token_is_kept_where_it_added_characters_and_typed_again_where_it_added_none(
    tiny_model: Model,
) -> None:
    pair, longer, typed, _ = letter_tokens(tiny_model)
    for healed, added in ((longer, pair[1:]), (typed, "")):
        passage = Passage(tiny_model.codec)
        passage.edit("the " + pair[:1])
        assert passage.accept([healed], replace_last=True) == added
        before = passage.text
        passage.accept([typed], replace_last=False)
        passage.edit(before)
        assert passage.token_ids[-1] == healed
        assert passage.reopened_bytes() == (b"" if added else pair[:1].encode())


def test_an_edit_goes_back_to_the_beginning_of_a_word_but_not_beyond_64_tokens(tiny_model: Model) -> None:
    letters = "qzjxvk" * 30
    for text, first in (("the sea " + letters, 64), ("the sea " + letters[:20], None)):
        passage = Passage(tiny_model.codec)
        passage.edit(text)
        count = len(passage.tokens)
        kept = passage.edit(text + "q")
        if first is None:
            assert "".join(text[: passage.tokens[kept - 1].end]) == "the sea" and count - kept < LONGEST_WORD
        else:
            assert kept == count - 1 - first
