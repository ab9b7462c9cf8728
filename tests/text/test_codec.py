"""Law 7 and healing: typed and inserted text is the decoded path, in complete characters, in any script."""

from __future__ import annotations

import functools
import math
import random
import re
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lookahead_core import Document, LookaheadError, Model, TextError, load_model
from lookahead_core.text.codec import TextCodec, is_complete_utf8
from tests.conftest import CORPUS, byte_fallback, byte_level, tiny_llama
from tests.support.families import plain_rows
from tests.support.scripted_model import parrot
from tests.support.slow_tokenizer import SlowTokenizer
from tests.support.spelling import tokens_as_bytes

SCRIPTS = [
    "👩‍👩‍👧‍👦🏳️‍🌈🇩🇪🙂🫠",
    "中文字符漢字かなカナ한국어",
    "العربية עברית فارسی",
    "e\u0301o\u0308a\u030a\u0323 नमस्ते ไทย",
    "\t\n\r  \u00a0\u2003\u200b",
    "\u0000\u0007\u001b\u007f\u0085\u2028\ufeff\ufffd\u202e",
    "The old keeper's “lighthouse”, 1984! x=y+1; café",
    "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𐍈 \U0010ffff",
]


def random_text(dice: random.Random) -> str:
    """A few runs of characters from different scripts, controls and spaces among them."""
    return "".join(dice.choice(dice.choice(SCRIPTS)) for _ in range(dice.randrange(1, 24)))


def decoded(tokenizer: Any, ids: list[int]) -> str:
    """The text that the tokenizer itself decodes, without special tokens."""
    return tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)


def assert_whole(text: str, decode: str) -> None:
    """The text is the decoded text, except for an incomplete character at its end."""
    assert decode.startswith(text)
    assert set(decode[len(text) :]) <= {"\ufffd"} and len(decode) - len(text) <= 3


def accept_random(document: Document, dice: random.Random, typed: str, size: int) -> None:
    """Accept random tokens a few at a time: the returned pieces add up to the text and to the decoded ids."""
    tokenizer = document.model.tokenizer
    before, inserted = document.token_ids, ""
    accepted: list[int] = []
    for _ in range(4):
        ids = [dice.randrange(size) for _ in range(dice.randrange(1, 5))]
        inserted += document.accept(ids)
        stop = next((place for place, token_id in enumerate(ids) if token_id in document.model.end_token_ids), None)
        accepted += ids[:stop]
        assert document.text == typed + inserted
        document.passage.check()
    assert document.token_ids == before + accepted
    anchor = tokenizer("a", add_special_tokens=False).input_ids
    assert_whole("a" + inserted, decoded(tokenizer, anchor + accepted))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_inserted_pieces_concatenate_to_the_decode_for_any_unicode(tiny_model: Model, part: int) -> None:
    dice = random.Random(part)
    for _ in range(500):
        typed = random_text(dice)
        document = Document(tiny_model, typed)
        assert document.text == typed
        assert decoded(tiny_model.tokenizer, document.token_ids) == typed
        accept_random(document, dice, typed, len(tiny_model.tokenizer))


@pytest.mark.slow
def test_typed_texts_survive_a_tokenizer_with_space_markers_and_byte_fallback(
    fallback_tokenizer: Any,
) -> None:
    model = load_model(tiny_llama(len(fallback_tokenizer), eos_token_id=2), tokenizer=fallback_tokenizer)
    dice = random.Random(0)
    for _ in range(300):
        typed = random_text(dice)
        document = Document(model, typed)
        assert document.text == typed and document.token_ids[0] == fallback_tokenizer.bos_token_id
        ids = fallback_tokenizer("a" + random_text(dice), add_special_tokens=False).input_ids[1:]
        inserted = document.accept(ids)
        assert document.text == typed + inserted
        anchor = fallback_tokenizer("a", add_special_tokens=False).input_ids
        assert_whole("a" + inserted, decoded(fallback_tokenizer, anchor + ids))


def test_a_tokenizer_with_space_markers_starts_a_text_without_a_space(fallback_tokenizer: Any) -> None:
    model = load_model(tiny_llama(len(fallback_tokenizer), eos_token_id=2), tokenizer=fallback_tokenizer)
    ids = fallback_tokenizer("the sea").input_ids
    assert Document(model, token_ids=ids).text == "the sea"
    empty = Document(model)
    assert empty.accept(ids[1:]) == "the sea" == empty.text


@pytest.mark.parametrize("kind", ["byte_tokenizer", "fallback_tokenizer", "slow_tokenizer"])
def test_every_edit_leaves_ids_that_spell_the_text(kind: str, request: pytest.FixtureRequest) -> None:
    tokenizer = request.getfixturevalue(kind)
    model = load_model(tiny_llama(len(tokenizer), eos_token_id=2), tokenizer=tokenizer)
    dice = random.Random(5)
    document, text = Document(model, ""), ""
    for _ in range(400):
        place = dice.randrange(len(text) + 1)
        end = min(len(text), place + dice.choice([0, 0, 0, 1, 5, 30]))
        text = text[:place] + random_text(dice)[: dice.randrange(8)] + text[end:]
        if dice.random() < 0.3:
            text = text[: dice.randrange(len(text) + 1)]
        document.text = text
        assert document.text == text
        document.passage.check()
        if text:
            assert decoded(tokenizer, document.token_ids) == text


class Collapsing(SlowTokenizer):
    """A tokenizer that collapses spaces, so that its tokens do not spell the typed text."""

    def _tokenize(self, text: str, **options: Any) -> list[str]:
        return super()._tokenize(re.sub(" +", " ", text), **options)


@pytest.mark.parametrize("continuing", [False, True])
def test_if_tokens_do_not_spell_the_typed_text_the_last_token_has_all_of_it(
    slow_tokenizer: Any, continuing: bool
) -> None:
    tokenizer = Collapsing(slow_tokenizer._backend, bos_token="<s>", eos_token="</s>", unk_token="<unk>")
    text = "the   sea"
    tokens = TextCodec(tokenizer).encode(text, continuing)
    assert [token.token_id for token in tokens] == tokenizer(text, add_special_tokens=False).input_ids
    assert len(tokens) > 1 and [(token.start, token.end) for token in tokens] == [(0, 0)] * (len(tokens) - 1) + [(0, 9)]


def test_an_edit_keeps_the_ids_of_the_unchanged_prefix_except_the_last(tiny_model: Model) -> None:
    document = Document(tiny_model, "once upon")
    odd = tiny_model.tokenizer("x", add_special_tokens=False).input_ids
    split = [token_id for letter in " time" for token_id in tiny_model.tokenizer(letter).input_ids]
    document.accept(split)
    before = document.token_ids
    document.text = "once upon time there"
    assert document.token_ids[: len(before) - 1] == before[:-1], "ids that no tokenizer would choose are kept"
    document.text = "once upon time"
    document.text = "Once upon time"
    assert document.token_ids[0] != before[0] and odd


@pytest.mark.parametrize("kind", ["byte_tokenizer", "fallback_tokenizer", "slow_tokenizer"])
def test_a_text_typed_letter_by_letter_ends_as_the_tokens_of_the_whole(
    kind: str, request: pytest.FixtureRequest
) -> None:
    tokenizer = request.getfixturevalue(kind)
    model = load_model(tiny_llama(len(tokenizer), eos_token_id=2), tokenizer=tokenizer)
    whole = "Once upon a time,  the keeper climbed\n\nthe stairs (1984!) again"
    document = Document(model, "")
    for end in range(1, len(whole) + 1):
        document.text = whole[:end]
        assert document.token_ids == Document(model, whole[:end]).token_ids, whole[:end]
    for end in range(len(whole) - 1, 0, -1):
        document.text = whole[:end]
        assert document.token_ids == Document(model, whole[:end]).token_ids, whole[:end]


def test_an_incomplete_character_has_ids_and_no_text_yet(tiny_model: Model) -> None:
    smile = tiny_model.tokenizer("🫠", add_special_tokens=False).input_ids
    assert len(smile) > 1
    document = Document(tiny_model, "the ")
    for count, token_id in enumerate(smile, 1):
        inserted = document.accept([token_id])
        assert inserted == ("🫠" if count == len(smile) else "")
        assert len(document.token_ids) == len(tiny_model.tokenizer("the ").input_ids) + count
    document.rewind(1)
    assert document.text == "the " and document.token_ids[-1] == smile[-2]
    document.text = "the end"
    assert decoded(tiny_model.tokenizer, document.token_ids) == "the end"


def test_typed_special_tokens_are_plain_text(tiny_model: Model, fallback_tokenizer: Any) -> None:
    for model in (tiny_model, load_model(tiny_llama(len(fallback_tokenizer)), tokenizer=fallback_tokenizer)):
        typed = "a <|end|> b </s> <s> <|start|>"
        document = Document(model, typed)
        special = set(model.tokenizer.all_special_ids)
        assert not special & set(document.token_ids[len(model.codec.start_ids) :])
        assert document.text == typed


def test_branches_with_equal_texts_stay_separate() -> None:
    import tokenizers
    import transformers

    made = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0, "b": 1, "<s>": 2, "<e>": 3}, unk_token="a"))
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=made, bos_token="<s>", eos_token="<e>")
    model = load_model(tiny_llama(8, eos_token_id=3), tokenizer=tokenizer)
    branches = Document(model, "a").lookahead(k=8, depth=2).branches
    assert len(branches) == 8
    assert len({branch.text for branch in branches}) < len({branch.token_ids for branch in branches})


def test_half_of_a_surrogate_pair_is_an_error_that_leaves_the_text_unchanged(tiny_model: Model) -> None:
    document = Document(tiny_model, "ab")
    with pytest.raises(TextError, match="Character 1 of the text is half of a surrogate pair"):
        document.text = "x\ud83d"
    assert document.text == "ab"


def healed_reference(model: Model, text: str, k: int) -> tuple[bytes, list[tuple[tuple[int, ...], float]]]:
    """Healing by brute force: the bytes of the last typed token, and the k most likely paths that begin with them."""
    spelled = tokens_as_bytes(model.tokenizer)
    ids = model.tokenizer(text, add_special_tokens=False).input_ids
    typed = spelled[ids[-1]]
    before, after = (torch.log_softmax(row, -1) for row in plain_rows(model.hf_model, [ids[:-1], ids]))
    allowed = [i for i in range(len(spelled)) if spelled[i].startswith(typed)]
    total = math.log(sum(math.exp(before[i]) for i in allowed))
    paths = [((i,), float(before[i]) - total) for i in allowed if i != ids[-1]]
    through = float(before[ids[-1]]) - total
    paths += [((ids[-1], i), through + float(after[i])) for i in range(len(after))]
    return typed, sorted(paths, key=lambda path: -path[1])[:k]


def test_continuations_of_the_typed_token_replace_no_other_branch_that_is_more_likely() -> None:
    """k" is the most likely token that begins with the typed text; its continuations are all unlikely."""
    model = parrot(["the sea"], [" k", " ke", " kee", " keep", " keeper"])
    first = model.tokenizer.convert_tokens_to_ids([" k", " ke", " kee", " keep", " keeper"])
    ids = model.tokenizer("the k", add_special_tokens=False).input_ids
    assert ids[-1] == first[0]
    weight = model.hf_model.lm_head.weight
    with torch.no_grad():
        weight[:, ids[-1]] = 0
        for token_id, odds in zip(first, (0.4, 0.2, 0.15, 0.1, 0.05), strict=True):
            weight[token_id, ids[-2]] = math.log(odds) / weight.shape[1] ** 0.5
    again = load_model(model.hf_model, tokenizer=model.tokenizer)
    for k in (1, 2, 3, 4):
        _, expected = healed_reference(again, "the k", k)
        assert [path for path, _ in expected] == [(token_id,) for token_id in first[1 : k + 1]]
        branches = Document(again, "the k").lookahead(k=k, depth=2, heal=True).branches
        assert [branch.token_ids[:1] for branch in branches] == [path for path, _ in expected]
        assert [branch.share for branch in branches] == pytest.approx(
            [math.exp(value) for _, value in expected], rel=1e-3
        )


@pytest.mark.slow
@pytest.mark.parametrize("text", ["the old keep", "Once upon a ", "watched the s", "again and a", "the  ", "keeper'"])
def test_healed_branches_are_the_most_likely_paths_that_begin_with_the_typed_text(tiny_model: Model, text: str) -> None:
    typed, expected = healed_reference(tiny_model, text, 5)
    document = Document(tiny_model, text)
    ids = document.token_ids
    result = document.lookahead(k=5, depth=4, heal=True)
    assert result.given.encode() == typed
    assert sum(branch.share for branch in result.branches) <= 1 + 1e-6
    spelled = tokens_as_bytes(tiny_model.tokenizer)
    for branch, (path, logprob) in zip(result.branches, expected, strict=True):
        assert branch.healed and branch.token_ids[: len(path)] == path and len(branch.token_ids) <= 4
        assert math.fsum(branch.logprobs[: len(path)]) == pytest.approx(logprob, abs=1e-4)
        fresh = Document(tiny_model, text)
        shown = fresh.lookahead(k=5, depth=4, heal=True).branches[result.branches.index(branch)]
        inserted = fresh.accept(shown)
        assert fresh.text == text + inserted == text + branch.text
        ended = branch.ended
        assert fresh.token_ids == ids[:-1] + list(branch.token_ids[: -1 if ended else None])
        whole = b"".join(spelled[token_id] for token_id in branch.token_ids)
        assert whole.startswith(typed) and whole[len(typed) :].decode(errors="replace").startswith(branch.text)
        fresh.rewind(len(branch.token_ids) - ended)
        assert (fresh.text, fresh.token_ids) == (text, ids)
    assert document.lookahead(k=5, depth=4, heal=True).cost.passes == 0


def test_healing_ignores_tokens_beyond_the_models_vocabulary(byte_tokenizer: Any) -> None:
    spelled = tokens_as_bytes(byte_tokenizer)
    model = load_model(tiny_llama(300), tokenizer=byte_tokenizer)
    tried = 0
    for text in ("the s", "the l", "an a", "one o", "the w"):
        ids = byte_tokenizer(text, add_special_tokens=False).input_ids
        if max(ids) >= 300 or not any(piece.startswith(spelled[ids[-1]]) for piece in spelled[300:]):
            continue
        tried += 1
        branches = Document(model, text).lookahead(k=5, depth=2, heal=True).branches
        assert len(branches) == 5 and max(max(branch.token_ids) for branch in branches) < 300
    assert tried


@pytest.mark.parametrize("text", ["the keeper.", "the keeper\n", "", "!"])
def test_a_text_that_does_not_end_in_a_word_or_spaces_is_not_reopened(tiny_model: Model, text: str) -> None:
    document = Document(tiny_model, text)
    healed = document.lookahead(k=4, depth=3, heal=True)
    assert healed.given == "" and healed.branches == document.lookahead(k=4, depth=3).branches


def test_a_stream_ends_when_a_healed_branch_replaces_the_last_token_of_its_text(
    tiny_model: Model,
) -> None:
    for healed in (False, True):
        document = Document(tiny_model, "the old keep")
        stream = document.stream(max_new_tokens=5, speculate=False)
        next(stream)
        branches = document.lookahead(k=5, depth=3, heal=healed).branches
        last = document.token_ids[-1]
        chosen = next(branch for branch in branches if not branch.ended and branch.token_ids[0] != last)
        document.accept(chosen)
        if healed:
            with pytest.raises(LookaheadError, match="The text has changed while more was growing"):
                next(stream)
        else:
            assert next(stream).token_id >= 0, "appending tokens does not end a stream"


def test_a_token_accepted_by_a_click_is_not_reopened(tiny_model: Model) -> None:
    document = Document(tiny_model, "the old.")
    document.accept(tiny_model.tokenizer(" keep").input_ids)
    assert document.lookahead(k=2, depth=2, heal=True).given == ""


def test_byte_level_tokens_have_the_bytes_of_the_published_table(byte_tokenizer: Any) -> None:
    codec = TextCodec(byte_tokenizer)
    assert [codec.bytes_of(token_id) for token_id in range(len(byte_tokenizer))] == tokens_as_bytes(byte_tokenizer)
    assert codec.bytes_of(-1) == codec.bytes_of(len(byte_tokenizer)) == b""


def test_an_added_space_is_recognised_if_it_is_a_separate_token() -> None:
    tokenizer = byte_fallback(["the sea"] * 3)
    codec = TextCodec(tokenizer)
    first, *_ = tokenizer("a", add_special_tokens=False).input_ids
    assert tokenizer.convert_ids_to_tokens(first) == "▁"
    assert codec.adds_space and codec.first_bytes_of(first) == b"" and codec.bytes_of(first) == b" "
    (letter,) = codec.encode("a", continuing=True)
    assert tokenizer.convert_ids_to_tokens(letter.token_id) == "a"


def test_special_and_unknown_ids_have_no_bytes(tiny_model: Model) -> None:
    codec, size = tiny_model.codec, len(tiny_model.tokenizer)
    assert [codec.bytes_of(token_id) for token_id in (0, 1, -1, size, size + 7)] == [b""] * 5
    assert codec.bytes_of(2) and codec.bytes_of(size - 1)
    assert TextCodec(None).bytes_of(5) == b"" == TextCodec(None).first_bytes_of(5)


def test_tokens_that_begin_with_or_contain_some_bytes_are_those_found_by_brute_force(tiny_model: Model) -> None:
    codec = tiny_model.codec
    spelled = {token_id: codec.bytes_of(token_id) for token_id in range(len(tiny_model.tokenizer))}
    pieces = {piece[:length] for piece in spelled.values() for length in (1, 2, 3)} - {b""}
    for piece in [*sorted(pieces), b"zzzz", b"\xff"]:
        beginning = {token_id for token_id, one in spelled.items() if one.startswith(piece)}
        assert set(codec.tokens_starting_with(piece)) == beginning
        assert codec.tokens_containing(piece) == {token_id for token_id, one in spelled.items() if piece in one}
        assert codec.tokens_containing(piece) == codec.tokens_containing(piece)


def test_remembered_searches_are_bounded(byte_tokenizer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lookahead_core.text.codec.MAX_SEARCHES", 3)
    codec = TextCodec(byte_tokenizer)
    for letter in "abcdefg":
        expected = {i for i in range(len(byte_tokenizer)) if letter.encode() in codec.bytes_of(i)}
        assert codec.tokens_containing(letter.encode()) == expected and len(codec._containing) <= 3


@pytest.mark.slow
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(max_size=60), st.text(max_size=60))
def test_a_codec_tiles_any_text_with_the_spans_of_its_tokens(first: str, second: str) -> None:
    codec = byte_codec()
    for text, continuing in ((first, False), (second, True)):
        try:
            tokens = codec.encode(text, continuing)
        except TextError:
            assert any("\ud800" <= character <= "\udfff" for character in text)
            continue
        place = 0
        for token in tokens:
            assert token.start == place <= token.end
            place = token.end
        assert place == len(text)
        assert b"".join(codec.bytes_of(token.token_id) for token in tokens).decode() == text


@functools.cache
def byte_codec() -> TextCodec:
    """Cached: it is trained, and Hypothesis calls the test many times."""
    return TextCodec(byte_level(CORPUS))


def test_bytes_are_complete_if_they_end_with_a_whole_character() -> None:
    assert is_complete_utf8(b"") and is_complete_utf8("é🙂".encode())
    assert not is_complete_utf8("é🙂".encode()[:-1]) and not is_complete_utf8(b"\xff")
