"""Compression: one read of the text, the plain forward's own figures, exact characters, and which phrases go first."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lookahead_core
from lookahead_core import Document, LookaheadError, Model, TextError, compress, load_model
from lookahead_core.analysis.compression import compression_steps
from lookahead_core.analysis.phrases import PHRASE_WORDS, phrases
from lookahead_core.analysis.token_surprise import surprise_steps
from lookahead_core.engines.engine import NodeScores
from lookahead_core.tree import TokenTree
from tests.conftest import tiny_llama
from tests.support.parameters import mostly_slow
from tests.support.plain_forward import plain_logprobs
from tests.support.unicode_texts import unicode_texts

TEXT = (
    "After careful consideration of the risks, the old keeper climbed the stairs again. He met Anna Vold in Bergen, "
    "and she gave him 42 maps of the sea. Once upon a time there was a small lighthouse, and the sky was grey: "
    "the keeper watched the sea.\n\nAnna left in 1907, again and again, with the lighthouse keeper of Oslo."
)
UNICODE = unicode_texts(40, "AB")


@pytest.fixture(scope="module")
def short_model(byte_tokenizer: Any) -> Model:
    """A tiny model with a context of 64 tokens."""
    return load_model(tiny_llama(len(byte_tokenizer), max_position_embeddings=64), tokenizer=byte_tokenizer)


def plain_surprises(model: Model, token_ids: list[int]) -> list[float | None]:
    """-log p of each token, from one plain forward of transformers; None for the first."""
    rows = plain_logprobs(model, token_ids)
    return [None, *(-float(rows[index, token]) for index, token in enumerate(token_ids[1:]))]


def found_surprises(model: Model, text: str) -> tuple[Document, list[float | None]]:
    document, surprises = Document(model, text), []
    list(surprise_steps(document, surprises))
    return document, surprises


def white_space_removed(text: str) -> str:
    return re.sub(r"\s", "", text)


def test_surprises_equal_those_of_a_plain_forward_pass(tiny_model: Model, fallback_model: Model) -> None:
    for model in (tiny_model, fallback_model):
        document, surprises = found_surprises(model, TEXT)
        expected = plain_surprises(model, document.token_ids)
        assert surprises[0] is None
        assert surprises[1:] == pytest.approx(expected[1:], rel=1e-4, abs=1e-4)
        found = compress(model, TEXT, 0.5)
        token = document.passage.start_count
        for span in found.spans:
            own = expected[token : token + span.tokens]
            token += span.tokens
            known = [surprise for surprise in own if surprise is not None]
            whole = pytest.approx(math.fsum(known), rel=1e-4, abs=1e-4) if len(known) == len(own) else None
            assert span.surprise == whole
        assert token == len(expected)


def test_surprises_of_impossible_and_of_certain_tokens_are_exact() -> None:
    tree = TokenTree()
    nodes = [tree.expand(tree.root, token) for token in range(20)]
    logits = torch.zeros(20, 300)
    logits[:, 0] = torch.arange(20) * 20.0  # up to 380 nats above the others
    logits[3, 5] = -math.inf
    for token in (0, 5):
        expected = -torch.log_softmax(logits.double(), -1)[:, token]
        found = NodeScores(nodes, logits).next_logprobs(nodes, [token] * 20)
        assert [-logprob for logprob in found] == pytest.approx(expected.tolist(), rel=1e-6, abs=1e-6)
    assert NodeScores(nodes, logits).next_logprobs(nodes, [5] * 20)[3] == -math.inf


def test_a_text_beyond_the_context_is_read_once_in_windows_with_a_small_overlap(short_model: Model) -> None:
    text = TEXT * 4
    document, surprises = found_surprises(short_model, text)
    ids, context = document.token_ids, 64
    assert len(ids) > 5 * context
    assert document.tree.work.tokens <= 1.05 * len(ids)
    # Each surprise is that of a plain forward over its window: at most 64 tokens before the token.
    starts, begin = [0], context + 1
    overlap = int((context + 1) * 0.04)
    assert overlap >= 1
    while begin < len(ids):
        starts.append(begin - overlap)
        begin = starts[-1] + context + 1
    expected: list[float | None] = []
    for start in starts:
        of_window = plain_surprises(short_model, ids[start : start + context + 1][:context])
        last = ids[start : start + context + 1]
        if len(last) == context + 1:
            of_window.append(-float(plain_logprobs(short_model, last[:context])[-1, last[context]]))
        expected += of_window[len(expected) - start :]
    assert surprises[1:] == pytest.approx(expected[1:], rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("ratio", mostly_slow([0.25, 0.5], 1))
def test_the_source_is_evaluated_once(tiny_model: Model, short_model: Model, ratio: float) -> None:
    for model in (tiny_model, short_model):
        found = compress(model, TEXT, ratio)
        assert found.tokens_before == len(model.codec.encode(TEXT))
        assert found.cost.tokens <= 1.05 * found.tokens_before
    assert compress(tiny_model, TEXT, ratio).cost.passes == 1


def reference(model: Model, text: str, ratio: float) -> list[tuple[str, bool]]:
    """Each run of words and whether it is kept, by slow code of its own, for English with plain punctuation."""
    ids = list(model.tokenizer(text, add_special_tokens=False).input_ids)
    offsets = model.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True).offset_mapping
    surprise = dict(zip([start for start, _ in offsets], plain_surprises(model, ids), strict=True))
    clauses = re.findall(r"\s*[^,.:\n]+[,.:\n]+", text)
    assert "".join(clauses) == text
    runs: list[dict[str, Any]] = []
    start = 0
    for number, clause in enumerate(clauses):
        mean = mean_of([surprise[at] for at in range(start, start + len(clause)) if at in surprise])
        for word in re.findall(r"\s*\S+\s*$|\s*\S+", clause):
            inside = text[:start].strip()[-1:] != "." if text[:start].strip() else False
            if text[:start].endswith("\n"):
                inside = False
            bare = word.strip().strip(",.:")
            kept_longer = bool(re.search(r"\d", bare)) or (bare[:1].isupper() and (inside or bare == "Anna"))
            known = [surprise[at] for at in range(start, start + len(word)) if at in surprise]
            run = {"text": word, "phrase": number, "late": kept_longer, "mean": mean, "own": known}
            if runs and runs[-1]["phrase"] == number and runs[-1]["late"] == kept_longer:
                runs[-1]["text"] += word
                runs[-1]["own"] += known
            else:
                runs.append(run)
            start += len(word)
    queue = sorted(
        range(len(runs)),
        key=lambda index: (
            runs[index]["late"],
            mean_of(runs[index]["own"]) if runs[index]["late"] else runs[index]["mean"],
            index,
        ),
    )
    removed: set[int] = set()
    for index in queue:
        source_tokens = sum(len(run["own"]) for number, run in enumerate(runs) if number not in removed)
        if source_tokens <= int(ratio * len(ids)):
            break
        removed.add(index)
    return [(run["text"], number not in removed) for number, run in enumerate(runs)]


def mean_of(surprises: list[float | None]) -> float:
    known = [each for each in surprises if each is not None]
    return sum(known) / len(known) if known else math.inf


@pytest.mark.parametrize("ratio", mostly_slow([0.5, 0.25, 0.9, 0.75, 0.1], 2))
def test_phrases_are_removed_by_mean_surprise_and_names_and_numbers_last(tiny_model: Model, ratio: float) -> None:
    text = TEXT.replace("\n\n", " ")
    found = compress(tiny_model, text, ratio)
    expected = reference(tiny_model, text, ratio)
    assert [(text[span.start : span.end], span.kept) for span in found.spans] == expected
    assert found.tokens_after <= ratio * found.tokens_before


def test_names_and_numbers_of_removed_phrases_stay(tiny_model: Model) -> None:
    found = compress(tiny_model, TEXT, 0.5)
    stayed = {TEXT[span.start : span.end].strip(" ,.\n") for span in found.spans if span.protected}
    assert stayed == {"Anna Vold", "Bergen", "42", "Anna", "1907", "Oslo"}
    assert all(span.kept for span in found.spans if span.protected)
    assert any(not span.kept for span in found.spans)


@pytest.mark.parametrize("ratio", mostly_slow([0.1, 0.3, 0.05, 0.15, 0.2, 0.4, 0.6, 0.8, 0.95], 2))
def test_more_is_removed_where_the_kept_text_has_more_tokens_than_its_spans(tiny_model: Model, ratio: float) -> None:
    found = compress(tiny_model, TEXT, ratio)
    assert found.tokens_after == len(tiny_model.codec.encode(found.text)) <= ratio * found.tokens_before


def assert_exact_characters(models: Sequence[Model], text: str, ratio: float) -> None:
    for model in models:
        found = compress(model, text, ratio)
        assert [span.start for span in found.spans] == [0, *(span.end for span in found.spans[:-1])]
        assert found.spans[-1].end == len(text) and all(span.end > span.start for span in found.spans)
        assert sum(span.tokens for span in found.spans) == found.tokens_before == len(model.codec.encode(text))
        assert white_space_removed(found.text) == white_space_removed(
            "".join(text[span.start : span.end] for span in found.kept)
        )
        assert all(run == " " or run in text for run in re.findall(r"\s+", found.text))
        assert found.tokens_after <= ratio * found.tokens_before
        assert sorted([*found.kept, *found.removed], key=lambda span: span.start) == list(found.spans)
        if ratio == 1:
            assert found.text == text


ANY = {"text": UNICODE, "ratio": st.sampled_from([0.1, 0.25, 0.5, 0.75, 1.0])}
UNHURRIED = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}


@settings(max_examples=12, **UNHURRIED)
@given(**ANY)
def test_the_kept_text_has_the_exact_characters_of_its_spans_in_any_unicode(
    tiny_model: Model, fallback_model: Model, text: str, ratio: float
) -> None:
    assert_exact_characters((tiny_model, fallback_model), text, ratio)


@pytest.mark.slow
@settings(max_examples=300, **UNHURRIED)
@given(**ANY)
def test_the_kept_text_has_the_exact_characters_of_its_spans_in_many_texts_in_any_unicode(
    tiny_model: Model, fallback_model: Model, text: str, ratio: float
) -> None:
    assert_exact_characters((tiny_model, fallback_model), text, ratio)


def test_the_same_arguments_give_the_same_result(tiny_model: Model) -> None:
    one, other = compress(tiny_model, TEXT, 0.4), compress(tiny_model, TEXT, 0.4)
    assert (one.text, one.spans) == (other.text, other.spans)


def test_compression_changes_no_document_and_computes_nothing_again(tiny_model: Model) -> None:
    document = Document(tiny_model, TEXT)
    ids = document.token_ids
    steps = list(compression_steps(document, 0.5))
    assert steps[-1].result is not None and all(step.result is None for step in steps[:-1])
    assert steps[-1].read == steps[-1].total == len(ids)
    again = list(compression_steps(document, 0.25))[-1].result
    assert again is not None and again.cost.tokens == 0
    assert (document.text, document.token_ids) == (TEXT, ids)
    assert again.text == compress(tiny_model, TEXT, 0.25).text


def test_a_text_that_changes_meanwhile_is_refused(byte_tokenizer: Any) -> None:
    model = load_model(tiny_llama(len(byte_tokenizer), max_position_embeddings=2048), tokenizer=byte_tokenizer)
    document = Document(model, TEXT * 12)
    steps = compression_steps(document)
    next(steps)
    document.text = "Another text."
    with pytest.raises(LookaheadError, match="has changed while it was read"):
        next(steps)


@pytest.mark.parametrize("ratio", [0, -0.5, 1.01, True, "half", None, math.nan])
def test_a_wrong_ratio_is_refused_with_a_sentence(tiny_model: Model, ratio: Any) -> None:
    with pytest.raises(ValueError, match=r"^ratio is .*, and must be a number more than 0, and at most 1\.$"):
        compress(tiny_model, TEXT, ratio)


def test_an_empty_text_and_a_model_without_a_tokenizer_are_refused_with_a_sentence(tiny_model: Model) -> None:
    with pytest.raises(LookaheadError, match="There is no text to shorten yet"):
        compress(tiny_model, "")
    bare = load_model(tiny_model.hf_model, tokenizer=None)
    with pytest.raises(TextError, match="without a tokenizer"):
        compress(bare, "some text")


def test_the_names_are_public() -> None:
    assert {"compress", "Compression", "CompressionSpan"} <= set(lookahead_core.__all__)


def texts_of(text: str, pieces: list[str] | None = None) -> list[list[tuple[str, bool]]]:
    """The phrases of a text that comes in these pieces, or in words: each word and whether it is protected."""
    found = phrases(pieces or re.findall(r" *[\w'’.-]*\w| *[^\w\s]|\s+", text))
    return [[(text[word.start : word.end], word.protected) for word in phrase] for phrase in found]


def protected(text: str) -> list[str]:
    return [word.strip(" ,.") for phrase in texts_of(text) for word, late in phrase if late]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("The keeper met Anna Vold.", ["Anna", "Vold"]),
        ("Anna came. We saw Anna.", ["Anna", "Anna"]),
        ("Anna came. We saw her.", []),
        ("The sea is the sea, said The Times.", ["The", "Times"]),
        ("We think I'm late, and I’ll say I know.", []),
        ("NASA sent 3 rockets, and 1/2 of an iPhone.", ["NASA", "3", "1/2", "iPhone"]),
        ("He said: “Come home” to Ida.", ["Ida"]),
        ("the sky\nGrey was the Sea", ["Sea"]),
    ],
)
def test_names_and_numbers_are_found_by_capitals_inside_sentences_and_digits(text: str, names: list[str]) -> None:
    assert protected(text) == names


def test_phrases_end_with_clauses_and_after_twenty_words_and_signs_stay_with_their_word() -> None:
    text = "  One, two (three) four. five\n\nsix"
    assert ["".join(word for word, _ in phrase) for phrase in texts_of(text)] == [
        "  One,", " two (three) four.", " five\n\n", "six",
    ]  # fmt: skip
    pieces = [" word"] * (2 * PHRASE_WORDS + 1)
    assert [len(phrase) for phrase in phrases(pieces)] == [PHRASE_WORDS, PHRASE_WORDS, 1]
    assert phrases([]) == []
