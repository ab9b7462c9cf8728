"""Highlights: exact characters, the plain forward's own figures, and words that fit in place; the text is only read."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from interface.tabs.highlights.highlights_json import as_json
from lookahead_core import Document, LookaheadError, Model, load_model
from lookahead_core.analysis.highlight_results import HighlightEntry, Highlights
from lookahead_core.analysis.highlights import highlights, highlights_steps
from lookahead_core.analysis.lookahead_within_text import lookahead_steps_at
from lookahead_core.analysis.replacements import MAX_LIKELIHOOD_RATIO, drop_in, drop_in_steps
from tests.conftest import CORPUS, tiny_llama
from tests.support.plain_forward import plain_logprobs
from tests.support.scripted_model import parrot
from tests.support.unicode_texts import unicode_texts

TEXT = "After careful consideration of the risks, the old keeper climbed the stairs 🙂 again."
UNICODE = unicode_texts(30)


@pytest.fixture(scope="module")
def short_model(byte_tokenizer: Any) -> Model:
    """The same with a context of 32 tokens."""
    return load_model(tiny_llama(len(byte_tokenizer), max_position_embeddings=32), tokenizer=byte_tokenizer)


def assert_same(some: Sequence[HighlightEntry], others: Sequence[HighlightEntry]) -> None:
    """The same entries, read in passes of other sizes: their last bits may differ on some processors."""
    bare = {"loss": None, "excess_loss": None, "entropy": None, "alternatives": ()}
    for one, other in zip(some, others, strict=True):
        assert replace(one, **bare) == replace(other, **bare)
        for name in ("loss", "excess_loss", "entropy"):
            figure = getattr(other, name)
            assert getattr(one, name) == (None if figure is None else pytest.approx(figure, rel=1e-4, abs=1e-6))
        for mine, theirs in zip(one.alternatives, other.alternatives, strict=True):
            assert replace(mine, probability=0) == replace(theirs, probability=0)
            assert mine.probability == pytest.approx(theirs.probability, rel=1e-4)


def assert_equals_plain(model: Model, token_ids: list[int], found: Highlights, k: int, left: int = 0) -> None:
    """Every figure of every entry by the forwards alone; `left` is how many tokens no window leaves out."""
    for entry in found.entries:
        came = range(entry.first_token, entry.first_token + len(entry.token_ids))
        if entry.loss is None:
            assert entry.first_token == 0 and entry.alternatives == ()
            assert entry.rank is entry.entropy is entry.excess_loss is None
            continue
        rows = {}
        for place in came:
            path = [*token_ids[:left], *token_ids[entry.read_from : place]]
            rows[place] = plain_logprobs(model, path)[-1]
        assert entry.loss == pytest.approx(sum(-float(rows[p][token_ids[p]]) for p in came), abs=2e-4)
        likeliest = sum(-float(rows[p].max()) for p in came)
        assert entry.excess_loss == pytest.approx(entry.loss - likeliest, abs=4e-4)
        ranks = [int((rows[p] > rows[p][token_ids[p]]).sum()) + 1 for p in came]
        place = next((p for p, rank in zip(came, ranks, strict=True) if rank > 1), entry.first_token)
        row = rows[place]
        assert entry.first_token + entry.offset == place and entry.rank == ranks[place - entry.first_token]
        assert entry.entropy == pytest.approx(float(-(row.exp() * row).sum()), abs=2e-4)
        expected = row.argsort(descending=True)[:k].tolist()
        assert [one.token_id for one in entry.alternatives] == expected
        odds = [float(row[token_id].exp()) for token_id in expected]
        assert [one.probability for one in entry.alternatives] == pytest.approx(odds, abs=1e-5)
        assert [one.ended for one in entry.alternatives] == [one in model.end_token_ids for one in expected]


def assert_exact(text: str, entries: tuple[HighlightEntry, ...]) -> None:
    """Entries tile the text, and words tile the entries."""
    place = 0
    for entry in entries:
        assert entry.start == place and entry.end > place
        assert text[entry.start : entry.end] == entry.token
        assert entry.word[0] <= entry.start and entry.end <= entry.word[1]
        place = entry.end
    assert place == len(text)
    bounds = list(dict.fromkeys(entry.word for entry in entries))
    assert bounds == sorted(bounds) and bounds[0][0] == 0 and bounds[-1][1] == len(text)
    assert all(one[1] == other[0] for one, other in itertools.pairwise(bounds))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(text=UNICODE)
def test_start_and_end_cut_the_exact_characters_in_any_unicode(
    tiny_model: Model, fallback_model: Model, text: str
) -> None:
    for model in (tiny_model, fallback_model):
        document = Document(model, text)
        found = highlights(document, k=3)
        assert_exact(text, found.entries)
        started = len(document.token_ids) - sum(len(entry.token_ids) for entry in found.entries)
        assert started == (model is fallback_model)
        spelled = [token_id for entry in found.entries for token_id in entry.token_ids]
        assert document.token_ids[started:] == spelled


def test_losses_ranks_entropies_and_alternatives_equal_a_plain_forward(
    tiny_model: Model, fallback_model: Model
) -> None:
    for model in (tiny_model, fallback_model):
        document = Document(model, TEXT)
        found = highlights(document, k=4)
        assert_equals_plain(model, document.token_ids, found, 4, left=int(model is fallback_model))
        assert found.cost.passes == 1


def test_an_instruction_before_the_text_counts_and_is_no_part_of_it(tiny_model: Model) -> None:
    opening = tiny_model.tokenizer("Rewrite this.\n\nthe sea and the sky").input_ids
    document = Document(tiny_model, "The sea and the old keeper", opening=opening)
    found = highlights(document)
    assert_exact(document.text, found.entries)
    assert found.entries[0].first_token == len(opening) and found.entries[0].loss is not None
    assert_equals_plain(tiny_model, document.token_ids, replace_from(found, len(opening)), 5, left=len(opening))


def replace_from(found: Highlights, first: int) -> Highlights:
    assert {entry.read_from for entry in found.entries} == {first} and not any(one.seen_from for one in found.entries)
    return found


def test_the_first_token_has_odds_only_where_something_stands_before_it(
    tiny_model: Model, fallback_model: Model
) -> None:
    first = highlights(Document(tiny_model, "🙂 sea")).entries[0]
    assert len(first.token_ids) > 1 and first.token == "🙂"
    assert (first.loss, first.rank, first.entropy, first.alternatives, first.most_likely) == (
        None,
        None,
        None,
        (),
        None,
    )
    assert not first.differs
    assert highlights(Document(fallback_model, "sea")).entries[0].loss is not None


def test_long_texts_are_read_in_chunks_with_progress_and_in_as_many_tokens_as_they_have(byte_tokenizer: Any) -> None:
    model = load_model(tiny_llama(len(byte_tokenizer), max_position_embeddings=4096), tokenizer=byte_tokenizer)
    document = Document(model, " ".join(CORPUS[:45]))
    length = len(document.token_ids)
    assert length > 900
    steps = list(highlights_steps(document, 2))
    assert [step.read for step in steps] == sorted(step.read for step in steps)
    assert len(steps) > 2 and steps[-1].read == steps[-1].total == length and steps[-1].result is not None
    assert all(step.result is None for step in steps[:-1])
    assert document.tree.work.tokens == length - 1
    rows = plain_logprobs(model, document.token_ids)
    for entry in steps[-1].result.entries[1:]:
        came = range(entry.first_token, entry.first_token + len(entry.token_ids))
        assert entry.loss == pytest.approx(sum(-float(rows[p - 1][document.token_ids[p]]) for p in came), abs=2e-4)


def test_beyond_the_context_every_token_is_seen_with_half_a_window_before_it(short_model: Model) -> None:
    for opening in (None, short_model.tokenizer("Tell a tale.").input_ids):
        document = Document(short_model, " ".join(CORPUS[:5]), opening=opening)
        first = len(opening or [])
        assert len(document.token_ids) > 64
        found = highlights(document, k=3)
        assert_exact(document.text, found.entries)
        assert_equals_plain(short_model, document.token_ids, found, 3, left=first)
        for entry in found.entries:
            at, room = entry.first_token + entry.offset, 32 - first
            assert at - entry.read_from >= min(at - first, room // 2)
            assert first + at - entry.read_from <= 32
            assert bool(entry.seen_from) == (entry.read_from > first)
            if entry.seen_from:
                assert any(one.start == entry.seen_from and one.first_token <= entry.read_from for one in found.entries)


def test_a_text_longer_than_the_context_reports_each_of_its_tokens_once(short_model: Model) -> None:
    document = Document(short_model, " ".join(CORPUS[:5]))
    steps = list(highlights_steps(document, 2))
    length = len(document.token_ids)
    assert length > 64 and {step.total for step in steps} == {length}
    read = [step.read for step in steps]
    assert read == sorted(read) and read[-1] == length


def opened_with(model: Model, ids: list[int], opened: int) -> Document:
    """A document of these ids, the first of which stand before its text."""
    if not opened:
        return Document(model, token_ids=ids)
    document = Document(model, opening=ids[:opened])
    document.accept(ids[opened:])
    return document


@pytest.mark.parametrize("length", [31, 32, 33, 34, 48, 49, 50])
@pytest.mark.parametrize("opened", [0, 5])
def test_near_the_contexts_end_a_text_is_read_in_as_few_windows_as_can_be(
    short_model: Model, length: int, opened: int
) -> None:
    ids = [5 + place * 7 % 90 for place in range(length)]
    document = opened_with(short_model, ids, opened)
    found = highlights(document, k=2)
    assert_exact(document.text, found.entries)
    assert_equals_plain(short_model, document.token_ids, found, 2, left=opened)
    # A window tells of one token more than it holds, and the next one begins half a window before what it tells of.
    room, ends = 32 - opened, [min(length, 33)]
    while ends[-1] < length:
        ends.append(min(length, ends[-1] - (room + 1) // 2 + room + 1))
    for entry in found.entries:
        window = next(place for place, end in enumerate(ends) if entry.first_token + entry.offset < end)
        assert entry.read_from == (ends[window - 1] - (room + 1) // 2 if window else opened)


@pytest.mark.parametrize("opened", [0, 5])
def test_branches_at_a_word_have_room_in_the_context_and_see_all_that_it_leaves(
    short_model: Model, opened: int
) -> None:
    ids = short_model.tokenizer(" ".join(CORPUS[:2])).input_ids[:64]
    document = opened_with(short_model, ids, opened)
    entries = highlights(document, k=2).entries
    for depth in (1, 20):
        for entry in entries[1::9]:
            *_, step = lookahead_steps_at(document, entry.start, k=2, depth=depth)
            left = max(entry.read_from, entry.first_token - (32 - opened - depth))
            before = [*ids[:opened], *ids[left : entry.first_token]]
            assert len(before) + depth <= 32 and step.result.read == len(before)
            expected = Document(short_model, token_ids=before).lookahead(k=2, depth=depth).branches
            assert [one.token_ids for one in step.result.branches] == [one.token_ids for one in expected]
            assert step.result.seen_from == document.passage.tokens[left - 1].end * (left > opened)


def test_words_after_a_replacement_near_the_contexts_end_are_compared_as_far_as_there_is_room(
    short_model: Model,
) -> None:
    ids = short_model.tokenizer(" ".join(CORPUS[:2])).input_ids[:40]
    document = Document(short_model, token_ids=ids)
    counts = set()
    for entry in highlights(document, k=3).entries[1:]:
        rest = next(n for n in range(1, 40) if document.passage.tokens[entry.first_token + n - 1].end >= entry.word[1])
        origin = [*ids[entry.read_from : entry.first_token]]
        fits = drop_in(document, entry, entry.alternatives, words=8)
        following = short_model.tokenizer(fits[0].following, add_special_tokens=False).input_ids[:8]
        room = 32 - len(origin) - rest
        asked = following[: max(0, room + 1)]
        counts.add(len(asked))
        path = [*origin, *ids[entry.first_token : entry.first_token + rest], *asked]
        assert len(path) <= 33, "the last one is only told of"
        if asked and any(fit.logprob is not None for fit in fits):
            rows = plain_logprobs(short_model, path)
            first = len(path) - len(asked)
            own = sum(float(rows[first + n - 1][token_id]) for n, token_id in enumerate(asked))
            assert fits[0].own_logprob == pytest.approx(own, abs=2e-4)
        else:
            assert all(fit.own_logprob is None or not asked for fit in fits)
    assert {0, 8} <= counts and len(counts) > 4


def test_a_text_read_before_costs_nothing_and_an_edit_only_what_follows_it(tiny_model: Model) -> None:
    document = Document(tiny_model, TEXT)
    first = highlights(document)
    again = highlights(document)
    assert again.entries == first.entries and again.cost.tokens == 0
    document.text = TEXT + " And again."
    more = highlights(document)
    assert 0 < more.cost.tokens < 20
    assert_same(more.entries, highlights(Document(tiny_model, document.text)).entries)


def test_candidates_are_ranked_by_how_unlikely_their_token_was(tiny_model: Model) -> None:
    found = highlights(Document(tiny_model, TEXT))
    candidates = found.candidates
    assert candidates and all(entry.most_likely.token_id != entry.token_ids[entry.offset] for entry in candidates)
    others = [entry for entry in found.entries if entry not in candidates]
    assert all(entry.loss is None or entry.most_likely.token_id == entry.token_ids[0] for entry in others)
    losses = [entry.loss for entry in candidates]
    assert losses == sorted(losses, reverse=True)
    assert found.relative_loss(candidates[0]) == 1 and found.highest_loss == losses[0]
    words = [entry.word for entry in found.marks]
    assert len(set(words)) == len(words)
    for entry in found.marks:
        in_word = [one for one in candidates if one.word == entry.word]
        assert entry == max(in_word, key=lambda one: one.excess_loss)
    factors = [entry.most_likely.probability / math.exp(-entry.loss) for entry in found.marks]
    assert factors == pytest.approx(sorted(factors, reverse=True)), "all are entries of one token"


def test_the_first_token_is_left_out_of_the_highest_loss(fallback_model: Model) -> None:
    found = highlights(Document(fallback_model, "sea the sky"))
    strange = replace(found, entries=(replace(found.entries[0], loss=99.0), *found.entries[1:]))
    assert strange.highest_loss == max(entry.loss for entry in found.entries[1:]) < 99
    assert strange.relative_loss(strange.entries[0]) > 1


@pytest.mark.parametrize(
    ("losses", "highest"),
    [
        ([None, 2.0, 5.0, 3.0], 5.0),
        ([9.0, 2.0, 5.0, math.inf], 5.0),
        ([math.inf, 4.0, 3.0], 4.0),
        ([7.0], 7.0),
        ([7.0, None, math.inf], 7.0),
        ([None], 0.0),
        ([math.inf], 0.0),
        ([0.0, 0.0], 0.0),
    ],
)
def test_the_highest_loss_is_a_finite_one_behind_the_first_token_where_there_is_any(
    tiny_model: Model, losses: list[float | None], highest: float
) -> None:
    found = highlights(Document(tiny_model, TEXT))
    made = replace(found, entries=tuple(replace(found.entries[1], loss=loss) for loss in losses))
    assert made.highest_loss == highest
    for entry in made.entries:
        expected = None if entry.loss is None or not highest else entry.loss / highest
        assert made.relative_loss(entry) == expected


def test_of_a_word_the_entry_is_marked_at_which_the_model_lost_most_and_the_words_come_in_that_order(
    tiny_model: Model,
) -> None:
    found = highlights(Document(tiny_model, TEXT))
    one = next(entry for entry in found.entries if entry.differs)
    parts = [
        (0, (0, 9), 9.0, 2.0),
        (4, (0, 9), 7.5, 7.0),
        (9, (9, 20), 5.5, 5.0),
        (12, (9, 20), 1.5, 1.0),
        (20, (20, 22), 8.0, math.inf),
    ]
    entries = [
        replace(one, start=start, word=word, loss=loss, excess_loss=excess) for start, word, loss, excess in parts
    ]
    entries.append(replace(one, start=22, word=(22, 23), loss=99.0, excess_loss=0.0, rank=1))
    entries.append(replace(one, start=23, word=(23, 24), loss=None, excess_loss=None, rank=None))
    made = replace(found, entries=tuple(entries))
    assert [entry.start for entry in made.candidates] == [0, 20, 4, 9, 12]
    assert [entry.start for entry in made.marks] == [20, 4, 9]
    assert made.message == ""


def test_a_text_that_is_just_what_the_model_would_write_has_no_candidates_and_says_so() -> None:
    text = "the sea was grey"
    model = parrot([text])
    found = highlights(Document(model, text))
    assert found.candidates == () == found.marks
    assert found.message == "No possible edits found."
    assert highlights(Document(model, "the grey")).message == ""


def test_reading_leaves_the_text_its_tokens_and_its_trunk_as_they_are(tiny_model: Model, short_model: Model) -> None:
    for model in (tiny_model, short_model):
        document = Document(model, TEXT)
        before, head = (document.text, document.token_ids), document.head
        found = highlights(document)
        for entry in found.candidates[:4]:
            drop_in(document, entry, entry.alternatives)
            list(lookahead_steps_at(document, entry.start, k=2, depth=3))
        assert (document.text, document.token_ids) == before
        assert document.head is head
        document.check()


def assert_fits(model: Model, document: Document, entry: HighlightEntry, words: int = 3) -> None:
    """The verdicts by plain forwards of whole paths, and tokens of the next words cut by the tokenizer alone."""
    fits = drop_in(document, entry, entry.alternatives, words)
    first = document.passage.start_count
    place = entry.first_token + entry.offset
    before = [*document.token_ids[:first], *document.token_ids[entry.read_from : place]]
    rest = document.text[entry.word[1] :]
    following = fits[0].following
    assert rest.startswith(following) and len(following.split()) <= words
    token_ids = model.tokenizer(following, add_special_tokens=False).input_ids[:8]
    count = next(n for n in range(len(document.token_ids)) if document.passage.tokens[place + n].end >= entry.word[1])
    own = document.token_ids[place : place + count + 1]

    def after(start: list[int]) -> float:
        rows = plain_logprobs(model, [*before, *start, *token_ids])
        first = len(before) + len(start) - 1
        return sum(float(rows[first + n][token_id]) for n, token_id in enumerate(token_ids))

    for fit, alternative in zip(fits, entry.alternatives, strict=True):
        assert fit.alternative is alternative
        if alternative.ended or alternative.text is None or not token_ids:
            assert fit.logprob is None and fit.drops_in is None
            continue
        start = own if alternative.token_id == own[0] else [alternative.token_id]
        assert fit.logprob == pytest.approx(after(start), abs=2e-4)
        assert fit.own_logprob == pytest.approx(after(own), abs=2e-4)
        assert fit.drops_in == (fit.logprob >= fit.own_logprob - math.log(MAX_LIKELIHOOD_RATIO))
        assert fit.verdict == ("drops in" if fit.drops_in else "would need the rest rewritten")


def test_as_many_next_words_are_compared_as_requested_and_three_by_default(tiny_model: Model) -> None:
    document = Document(tiny_model, "the sea and the sky and the old sea")
    entry = highlights(document).entries[1]
    after = document.text[entry.word[1] :].split()
    for words, said in ((1, [1]), (3, []), (8, [8])):
        fits = drop_in(document, entry, entry.alternatives, *said)
        assert {tuple(fit.following.split()) for fit in fits} == {tuple(after[:words])}


def test_what_drops_in_equals_plain_forwards_and_takes_one_pass(tiny_model: Model) -> None:
    document = Document(tiny_model, TEXT)
    for entry in highlights(document, k=6).candidates:
        passes = document.tree.work.passes
        assert_fits(tiny_model, document, entry)
        assert document.tree.work.passes <= passes + 1


def test_what_stands_in_place_of_the_second_half_of_a_character_is_weighed_there(tiny_model: Model) -> None:
    spelled = {tiny_model.codec.bytes_of(token_id): token_id for token_id in range(400)}
    halves = {spelled[bytes([first])] for first in range(0xC3, 0xE0)}
    dice = random.Random(0)
    letters = [token_id for one, token_id in spelled.items() if one.isalpha()]
    prefixes = ([dice.choice(letters) for _ in range(4)] for _ in range(2000))
    agreed = next(ids for ids in prefixes if Document(tiny_model, token_ids=ids).predict().token_ids[0] in halves)
    half = Document(tiny_model, token_ids=agreed).predict().token_ids[0]
    # The model agrees with the character's first half; of its second halves the person took an unlikely one.
    row = plain_logprobs(tiny_model, [*agreed, half])[-1]
    second = min((spelled[bytes([last])] for last in range(0x80, 0xC0)), key=lambda one: float(row[one]))
    rest = tiny_model.tokenizer("the sea and the sky").input_ids
    document = Document(tiny_model, token_ids=[*agreed, half, second, *rest])
    entry = next(one for one in highlights(document, k=20).entries if one.first_token == len(agreed))
    assert entry.offset == 1 and entry.token_ids == (half, second)
    assert_fits(tiny_model, document, entry)


def test_the_next_words_are_tokenized_as_a_continuation_of_the_text(fallback_model: Model) -> None:
    document = Document(fallback_model, "the old keeper, again and again the sea")
    logprobs = plain_logprobs(fallback_model, document.token_ids)
    compared = 0
    for entry in highlights(document).entries[2:-1]:
        (fit, *_) = drop_in(document, entry, entry.alternatives[:1], words=1)
        inside = [
            place
            for place, token in enumerate(document.passage.tokens)
            if entry.word[1] < token.end <= entry.word[1] + len(fit.following)
        ][:8]
        if inside and fit.own_logprob is not None:
            expected = sum(float(logprobs[place - 1, document.token_ids[place]]) for place in inside)
            assert fit.own_logprob == pytest.approx(expected, abs=2e-4)
            compared += 1
    assert compared > 2


def test_the_persons_own_word_drops_in_and_a_text_that_ends_there_has_no_verdict(tiny_model: Model) -> None:
    document = Document(tiny_model, TEXT)
    found = highlights(document, k=20)
    own = [
        (entry, one)
        for entry in found.entries
        for one in entry.alternatives
        if one.token_id == entry.token_ids[entry.offset]
    ]
    assert own
    for entry, alternative in own:
        if entry.word[1] < len(TEXT):
            (fit,) = drop_in(document, entry, [alternative])
            assert fit.logprob == fit.own_logprob and fit.drops_in
    last = drop_in(document, found.entries[-1], found.entries[-1].alternatives)
    assert {fit.drops_in for fit in last} == {None}
    assert "nothing follows it" in {fit.verdict for fit in last}


def test_a_word_that_the_model_was_taught_drops_in_and_another_does_not() -> None:
    model = parrot(
        ["the sea was grey and cold", "the sky was grey and cold", "the ship sank"], [" sea", " sky", " ship"]
    )
    document = Document(model, "the sky was grey")
    entry = next(entry for entry in highlights(document).entries if entry.token == " sky")
    fits = {fit.alternative.text: fit.drops_in for fit in drop_in(document, entry, entry.alternatives)}
    assert fits[" sea"] is True
    assert fits[" ship"] is False


def test_what_the_cache_has_lost_meanwhile_is_read_again_in_chunks_with_steps_between(
    byte_tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PREFILL_CHUNK", "MAX_LAST_CHUNK"):
        monkeypatch.setattr(f"lookahead_core.engines.engine.{name}", 4)
    model = load_model(tiny_llama(len(byte_tokenizer)), tokenizer=byte_tokenizer)
    document = Document(model, TEXT)
    entry = next(one for one in highlights(document).candidates if one.first_token > 14)
    expected = drop_in(document, entry, entry.alternatives)
    assert [fits is None for fits in drop_in_steps(document, entry, entry.alternatives)] == [False]
    document.tree.cache.clear()
    steps = drop_in_steps(document, entry, entry.alternatives)
    counts = [(fits, document.tree.work.tokens) for fits in steps]
    fits, _ = counts[-1]
    assert fits is not None and len(counts) > 3
    assert {after - before for (_, before), (_, after) in itertools.pairwise(counts[:-1])} == {4}
    assert [fit.verdict for fit in fits] == [fit.verdict for fit in expected]


def test_scores_of_a_large_vocabulary_are_computed_in_smaller_chunks(
    tiny_model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = highlights(Document(tiny_model, TEXT))
    monkeypatch.setattr("lookahead_core.analysis.window_reading.MAX_LOGITS", 4 * tiny_model.vocabulary)
    document = Document(tiny_model, TEXT)
    *steps, last = highlights_steps(document)
    total = len(document.token_ids)
    assert total > 20 and last.result is not None
    # Each pass tells of four tokens; of the first one nothing can be told.
    assert [step.read for step in steps] == [*range(5, total, 4), total]
    assert {step.total for step in (*steps, last)} == {last.read} == {total}
    assert_same(last.result.entries, whole.entries)


def test_branches_at_a_word_are_those_of_the_text_before_it_and_read_nothing_anew(tiny_model: Model) -> None:
    document = Document(tiny_model, TEXT)
    entry = highlights(document).candidates[0]
    work = document.tree.work.tokens
    *_, step = lookahead_steps_at(document, entry.start, k=3, depth=4)
    assert document.tree.work.tokens - work <= 1 + 3 * 3
    other = Document(tiny_model, token_ids=document.token_ids[: entry.first_token])
    expected = other.lookahead(k=3, depth=4)
    assert [branch.text for branch in step.result.branches] == [branch.text for branch in expected.branches]


def test_a_reading_whose_text_changes_meanwhile_ends_with_a_sentence(tiny_model: Model) -> None:
    document = Document(tiny_model, TEXT)
    steps = highlights_steps(document)
    next(steps)
    document.text = "Another text"
    with pytest.raises(LookaheadError, match="The text has changed while it was read"):
        next(steps)
    entry = highlights(Document(tiny_model, TEXT)).candidates[0]
    with pytest.raises(LookaheadError, match="The text has changed since it was read"):
        drop_in(document, entry, entry.alternatives)


def test_bad_input_gets_a_sentence(tiny_model: Model, short_model: Model) -> None:
    document = Document(tiny_model, "the sea")
    for k in (0, 21, "5", True):
        with pytest.raises(ValueError, match=r"k is .+ and must be a whole number from 1 to 20"):
            highlights(document, k)  # type: ignore[arg-type]
    with pytest.raises(LookaheadError, match="There is no text to read yet"):
        highlights(Document(tiny_model))
    entry = highlights(document).entries[-1]
    with pytest.raises(ValueError, match="words is 0"):
        drop_in(document, entry, entry.alternatives, words=0)
    with pytest.raises(ValueError, match="start is 100, and must be"):
        list(lookahead_steps_at(document, 100))
    with pytest.raises(ValueError, match=r"^depth is 32, and this model sees only 32 tokens in all\.$"):
        list(lookahead_steps_at(Document(short_model, TEXT), 6, depth=32))
    with pytest.raises(ValueError, match="start is 6, and must be"):
        list(lookahead_steps_at(document, 6))
    with pytest.raises(LookaheadError, match="Nothing precedes the first word"):
        list(lookahead_steps_at(document, 0))
    with pytest.raises(LookaheadError, match="shorten the instruction"):
        highlights(Document(short_model, "the sea", opening=list(range(10, 41))))


def test_highlights_are_json_that_says_what_they_say(tiny_model: Model) -> None:
    found = highlights(Document(tiny_model, TEXT), k=3)
    reported = json.loads(json.dumps(as_json(found), allow_nan=False))
    assert [reported["entries"][place]["start"] for place in reported["marks"]] == [
        entry.start for entry in found.marks
    ]
    for shown, entry in zip(reported["entries"], found.entries, strict=True):
        assert (shown["start"], shown["end"], shown["token"]) == (entry.start, entry.end, entry.token)
        assert shown["loss"] is None if entry.loss is None else shown["loss"] == pytest.approx(entry.loss, rel=1e-5)
        assert [one["id"] for one in shown["alternatives"]] == [one.token_id for one in entry.alternatives]
        assert [one["end"] for one in shown["alternatives"]] == [one.ended for one in entry.alternatives]


def test_figures_of_a_text_are_made_in_a_few_walks_over_it_however_long_it_is(tiny_model: Model) -> None:
    class Walked(tuple):
        walks = 0

        def __iter__(self) -> Any:
            Walked.walks += 1
            return super().__iter__()

    found = highlights(Document(tiny_model, TEXT))
    as_json(replace(found, entries=Walked(found.entries)))
    assert Walked.walks < 10 < len(found.entries)
