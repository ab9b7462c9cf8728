"""Streams: whole characters, stops that span tokens, forced and forbidden words, one text for one seed."""

from __future__ import annotations

import collections
import io
import itertools
import math
import random
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch

from lookahead_core import Document, LookaheadError, Model, TextError, load_model
from lookahead_core.document.batch import stream_batch
from lookahead_core.document.stop_conditions import StopStrings
from lookahead_core.strategies.continuation import model_scores
from tests.conftest import tiny_llama
from tests.strategies.test_sampling import reference_noise
from tests.support.families import make, plain_rows
from tests.support.parameters import mostly_slow
from tests.support.scripted_model import parrot
from tests.support.spelling import tokens_as_bytes

SAID = ["Old horn keepers fog drifted murmur. He fox ships above, but white tall quiet!"]
"""No token comes twice in it."""
IDS = [5, 40, 7, 61]


@pytest.fixture(scope="module")
def keeper() -> Model:
    """A model that knows one text by heart."""
    return parrot(SAID, [])


@pytest.fixture(scope="module")
def cached() -> Model:
    return load_model(make("llama"))


def written(model: Model, text: str, **options: Any) -> str:
    return Document(model, text).stream(**options).write(io.StringIO())


def ids(model: Model, **options: Any) -> list[int]:
    stream = Document(model, token_ids=IDS).stream(**options)
    return [step.token_id for step in stream]


def test_each_token_is_flushed_when_it_is_written(keeper: Model) -> None:
    class Flushed(io.StringIO):
        flushed = ""

        def flush(self) -> None:
            self.flushed = self.getvalue()

        def write(self, text: str) -> int:
            assert self.flushed == self.getvalue()
            return super().write(text)

    out = Flushed()
    stream = Document(keeper, "Old").stream(max_new_tokens=6)
    stream.write(out)
    assert out.flushed == stream.text


def test_statistics_count_the_tokens_and_seconds_of_every_pass(keeper: Model) -> None:
    started = time.perf_counter()
    stream = Document(keeper, "Old").stream(max_new_tokens=20, speculate=True)
    stream.write(io.StringIO())
    elapsed, figures = time.perf_counter() - started, stream.statistics
    assert sum(figures["edls"]) == len(stream.token_ids)
    assert all(won <= evaluated for won, evaluated in zip(figures["edls"], figures["dls"], strict=True))
    for seconds in (figures["fts"], figures["qts"]):
        assert len(seconds) == len(figures["edls"]) and min(seconds) > 0
    assert sum(figures["fts"]) + sum(figures["qts"]) <= elapsed


def test_a_stream_writes_what_the_model_would_and_leaves_the_text_as_it_is(keeper: Model) -> None:
    document, out = Document(keeper, "Old"), io.StringIO()
    stream = document.stream(max_new_tokens=60)
    assert stream.write(out) == out.getvalue() == stream.text == SAID[0][3:]
    assert stream.finish == "end"
    assert document.text == "Old"
    document.accept(stream.token_ids)
    assert document.text == SAID[0]


def test_a_stream_goes_on_from_what_was_accepted_meanwhile(keeper: Model) -> None:
    document = Document(keeper, "Old")
    for step in document.stream(max_new_tokens=60):
        document.accept([step.token_id])
    assert document.text == SAID[0]


def test_each_step_tells_the_odds_of_its_token_and_what_else_could_have_come(tiny_model: Model) -> None:
    document = Document(tiny_model, "the sea")
    path = list(document.token_ids)
    for step in document.stream(max_new_tokens=12, temperature=1.5, seed=3):
        row = plain_rows(tiny_model.hf_model, [path])[0].log_softmax(-1)
        assert step.logprob == pytest.approx(float(row[step.token_id]), abs=1e-4)
        assert step.rank == 1 + int((row > row[step.token_id] + 1e-6).sum())
        assert step.entropy == pytest.approx(float(-(row.exp() * row).sum()), abs=1e-4)
        heated = (row / 1.5).log_softmax(-1)
        assert step.chance == pytest.approx(float(heated[step.token_id]), abs=1e-4)
        best = row.topk(10)
        assert [one.token_id for one in step.alternatives] == best.indices.tolist()
        assert [one.logprob for one in step.alternatives] == pytest.approx(best.values.tolist(), abs=1e-4)
        for one in step.alternatives:
            assert (
                one.text
                == Document(tiny_model, token_ids=[*path, one.token_id]).text[len(document.text) :][
                    len(Document(tiny_model, token_ids=path).text) - len(document.text) :
                ]
            )
        path.append(step.token_id)


def test_what_is_known_is_not_computed_again(tiny_model: Model) -> None:
    document = Document(tiny_model, "the sea")
    branch = document.lookahead(k=1, depth=8).branches[0]
    stream = document.stream(max_new_tokens=8)
    assert [step.token_id for step in stream] == list(branch.token_ids)
    assert stream.cost.passes == 0
    options = {"max_new_tokens": 8, "seed": 4, "repetition_penalty": 1.2}
    first = document.stream(**options)
    drawn = [step.token_id for step in first]
    assert first.cost.passes == len(drawn)
    again = document.stream(**options)
    assert ([step.token_id for step in again], again.cost.passes) == (drawn, 0)


@pytest.mark.slow
@pytest.mark.parametrize("speculate", mostly_slow([None, True, False, "rejection"], 1))
def test_four_thousand_draws_of_one_token_after_the_same_text_take_one_pass(
    tiny_model: Model, speculate: bool | str | None
) -> None:
    document = Document(tiny_model, "the sea")
    odds = plain_rows(tiny_model.hf_model, [document.token_ids])[0].softmax(-1).tolist()
    before, runs = tiny_model.engine.passes, 4000 if speculate is None else 400
    counts = collections.Counter(
        next(document.stream(max_new_tokens=1, temperature=1.0, seed=seed, speculate=speculate)).token_id
        for seed in range(runs)
    )
    assert tiny_model.engine.passes - before == 1
    likely = sorted(range(len(odds)), key=lambda token_id: -odds[token_id])[:12]
    for token_id in likely:
        spread = math.sqrt(runs * odds[token_id])
        assert abs(counts[token_id] - runs * odds[token_id]) < 5 * spread
    document.check()


def test_a_draw_from_a_row_that_is_kept_is_the_draw_that_a_pass_gives(tiny_model: Model) -> None:
    document = Document(tiny_model, "the sea")
    for options in ({"top_p": 0.9}, {"temperature": 1.5, "repetition_penalty": 1.4}, {"top_k": 5, "min_new_tokens": 2}):
        for seed in range(5):
            fresh = Document(tiny_model, "the sea").stream(max_new_tokens=6, seed=seed, **options)
            expected = [(step.token_id, step.rank, step.finish) for step in fresh]
            again = document.stream(max_new_tokens=6, seed=seed, **options)
            assert [(step.token_id, step.rank, step.finish) for step in again] == expected
            assert [step.chance for step in again.steps] == pytest.approx([s.chance for s in fresh.steps], abs=1e-4)
    document.text = "the old sea"
    odds = plain_rows(tiny_model.hf_model, [document.token_ids])[0].log_softmax(-1)
    step = next(document.stream(seed=1))
    assert step.logprob == pytest.approx(float(odds[step.token_id]), abs=1e-4), "another text has a row of its own"


def test_a_kept_row_in_which_no_token_is_allowed_raises_an_error(cached: Model) -> None:
    document = Document(cached, token_ids=IDS)
    next(document.stream(seed=1))
    with pytest.raises(ValueError, match="After 0 tokens the options rule every token out"):
        list(document.stream(seed=1, forbidden=range(96)))
    others = [document, Document(cached, token_ids=[1, 2, 3])]
    streams = stream_batch(others, seed=1, max_new_tokens=95, no_repeat_ngram_size=1)
    with pytest.raises(ValueError, match="rule every token out"):
        list(streams)
    assert [len(steps) for steps in streams.steps] == [92, 93]


@pytest.mark.parametrize("stop", ["fog drifted", "s f", " ship", "quiet!", "Old", "mur. He fox ships above, but w"])
def test_a_stop_string_ends_the_text_before_it_however_it_is_cut_into_tokens(keeper: Model, stop: str) -> None:
    rest = SAID[0][3:]
    expected = rest[: rest.find(stop)] if stop in rest else rest
    steps = list(Document(keeper, "Old").stream(max_new_tokens=60, stop=stop))
    assert "".join(step.text for step in steps) == expected
    assert steps[-1].finish == ("stop" if stop in rest else "end")
    assert all(not step.finish for step in steps[:-1])
    for count in range(len(steps)):
        shown = "".join(step.text for step in steps[:count])
        assert expected.startswith(shown), "nothing is shown that has to be taken back"


def test_of_several_stop_strings_the_first_to_come_ends_the_text(keeper: Model) -> None:
    assert written(keeper, "Old", max_new_tokens=60, stop=["white", "ships", "xyz"]) == SAID[0][3:].split("ships")[0]


def test_of_stop_strings_that_are_complete_at_once_the_earlier_one_counts(keeper: Model) -> None:
    assert written(keeper, "Old", max_new_tokens=60, stop=["ps", "hips"]) == SAID[0][3:].split("hips")[0]


def test_an_end_token_that_has_text_does_not_write_it(byte_tokenizer: Any) -> None:
    hf_model = tiny_llama(len(byte_tokenizer), seed=3)
    model = load_model(hf_model, tokenizer=byte_tokenizer)
    first = next(Document(model, "the sea").stream())
    assert first.text
    hf_model.generation_config.eos_token_id = first.token_id
    stream = Document(load_model(hf_model, tokenizer=byte_tokenizer), "the sea").stream()
    assert [(step.token_id, step.text, step.finish) for step in stream] == [(first.token_id, "", "end")]


def test_text_that_might_have_become_a_stop_string_is_shown_when_it_does_not(keeper: Model) -> None:
    short = written(keeper, "Old", max_new_tokens=3)
    assert written(keeper, "Old", max_new_tokens=3, stop=short[-2:] + "§") == short


def test_a_sequence_of_ids_or_a_function_ends_the_text(keeper: Model) -> None:
    all_ids = [step.token_id for step in Document(keeper, "Old").stream(max_new_tokens=60)]
    for pair in (tuple(all_ids[4:6]), tuple(all_ids[:1])):
        stream = Document(keeper, "Old").stream(max_new_tokens=60, stop_ids=[(1, 2, 3), pair])
        assert [step.token_id for step in stream] == all_ids[: all_ids.index(pair[-1]) + 1]
        assert stream.finish == "stop"
    start = Document(keeper, "Old").token_ids
    seen: list[Sequence[int]] = []
    stream = Document(keeper, "Old").stream(stop_when=lambda path: seen.append(path) or len(path) == len(start) + 3)
    assert [step.token_id for step in stream] == all_ids[:3]
    assert seen == [(*start, *all_ids[:count]) for count in (1, 2, 3)]


@pytest.mark.parametrize(
    ("words", "end"), [(1, " horn"), (2, "keepers"), (5, "murmur"), (6, "He"), (9, "above"), (99, "quiet!")]
)
def test_so_many_words_and_no_more(keeper: Model, words: int, end: str) -> None:
    rest = SAID[0][3:]
    assert written(keeper, "Old", max_new_tokens=60, max_words=words) == rest[: rest.find(end) + len(end)]


def test_a_word_that_ends_with_its_own_token_needs_no_further_token() -> None:
    """Each of these characters is a word; so is what a line break ends."""
    model = parrot(["Go你好世界\nnow"], ["Go", "你", "好", "世", "界", "\n", "now"])
    for words, text in ((1, "你"), (2, "你好"), (3, "你好世"), (4, "你好世界")):
        stream = Document(model, "Go").stream(max_words=words, speculate=False)
        assert (stream.write(io.StringIO()), stream.finish, len(stream.steps)) == (text, "words", words)
    model = parrot(["One two\nthree four"], [" two\n", "three", " four"])
    stream = Document(model, "One").stream(max_words=1, speculate=False)
    assert (stream.write(io.StringIO()), stream.finish, len(stream.steps)) == (" two\n", "words", 1)


def test_without_stop_strings_nothing_is_held_back(keeper: Model) -> None:
    document = Document(keeper, "Old")
    shown = document.text
    for step in document.stream(max_new_tokens=60):
        shown += step.text
        document.accept([step.token_id])
        assert document.text == shown
    assert shown == SAID[0]


def test_a_word_that_the_text_had_begun_is_the_first_of_them(keeper: Model) -> None:
    ids = keeper.tokenizer("Old horn", add_special_tokens=False).input_ids
    document = Document(keeper, token_ids=[*ids, keeper.tokenizer.convert_tokens_to_ids("Ġkee")])
    assert document.text == "Old horn kee"
    assert document.stream(max_words=1).write(io.StringIO()) == "pers"
    assert document.stream(max_words=2).write(io.StringIO()) == "pers fog"


@pytest.mark.slow
def test_characters_come_whole(byte_tokenizer: Any) -> None:
    model = load_model(tiny_llama(len(byte_tokenizer), seed=5), tokenizer=byte_tokenizer)
    for seed in range(8):
        steps = list(Document(model, "naïve 🙂 ").stream(max_new_tokens=60, temperature=1.6, seed=seed))
        text = "".join(step.text for step in steps)
        again = Document(model, "naïve 🙂 ")
        again.accept([step.token_id for step in steps])
        assert again.text == "naïve 🙂 " + text


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [{"temperature": 1.2}, {"top_p": 0.8}, {"top_k": 9, "repetition_penalty": 1.3}], ids=str
)
def test_the_same_seed_gives_the_same_text_cached_or_not_alone_or_in_company(options: dict[str, Any]) -> None:
    one, other = load_model(make("llama"), engine="cached"), load_model(make("llama"), engine="uncached")
    for seed in (0, 1, 12345):
        alone = ids(one, max_new_tokens=15, seed=seed, **options)
        assert ids(other, max_new_tokens=15, seed=seed, **options) == alone
        company = [Document(one, token_ids=some) for some in ([9, 9], IDS, [3] * 30)]
        steps = list(stream_batch(company, max_new_tokens=15, seed=seed, **options))
        assert [step.token_id for index, step in steps if index == 1] == alone
    assert ids(one, max_new_tokens=15, seed=0, **options) != ids(one, max_new_tokens=15, seed=1, **options)


def test_a_stream_draws_what_the_sampled_branch_of_the_same_number_shows(tiny_model: Model) -> None:
    document = Document(tiny_model, "the sea")
    branches = document.lookahead(mode="sampled", k=4, depth=9, temperature=1.3, top_p=0.9, seed=8).branches
    for number, branch in enumerate(branches):
        stream = document.stream(max_new_tokens=9, temperature=1.3, top_p=0.9, seed=8, stream=number)
        assert [step.token_id for step in stream] == list(branch.token_ids)


def test_what_is_drawn_depends_on_the_place_in_the_text_and_goes_on_after_accepting(cached: Model) -> None:
    whole = ids(cached, max_new_tokens=12, seed=5)
    document = Document(cached, token_ids=[*IDS, *whole[:5]])
    assert [step.token_id for step in document.stream(max_new_tokens=7, seed=5)] == whole[5:]


@pytest.mark.slow
def test_any_sampling_option_makes_a_stream_sample(cached: Model) -> None:
    greedy = ids(cached, max_new_tokens=10)
    assert ids(cached, max_new_tokens=10, temperature=0, top_p=0.5, seed=3) == greedy
    for options in ({"seed": 3}, {"top_k": 50}, {"top_p": 0.99}, {"min_p": 0.001}, {"typical_p": 0.99}):
        assert ids(cached, max_new_tokens=10, **options) != greedy
        assert ids(cached, max_new_tokens=10, **options) == ids(cached, max_new_tokens=10, temperature=1.0, **options)


def forced_reference(model: Any, forced: list[tuple[int, ...]], size: int, ends: set[int]) -> list[int]:
    """Greedy, where a token is passed over if what is missing, written one after the other, would not fit behind it."""

    def holds(new: list[int], word: tuple[int, ...]) -> bool:
        return any(tuple(new[place : place + len(word)]) == word for place in range(len(new)))

    def needed(new: list[int]) -> int:
        missing = [word for word in forced if not holds(new, word)]
        begun = [size for word in missing for size in range(1, len(word)) if tuple(new[-size:]) == word[:size]]
        return sum(map(len, missing)) - max(begun, default=0)

    new: list[int] = []
    while len(new) < size and not ends & set(new):
        row = plain_rows(model, [[*IDS, *new]])[0]
        for token_id in row.argsort(descending=True).tolist():
            after = [*new, token_id]
            fits = needed(after) <= size - len(after)
            if fits and not (token_id in ends and needed(new)):
                break
        new.append(token_id)
    return new


@pytest.mark.slow
def test_forced_words_come_when_they_just_fit_and_the_text_is_greedy_before(cached: Model) -> None:
    dice = random.Random(0)
    for _ in range(40):
        forced = [tuple(dice.choices(range(8), k=dice.randint(1, 3))) for _ in range(dice.randint(1, 3))]
        size = sum(map(len, forced)) + dice.randint(0, 6)
        new = ids(cached, max_new_tokens=size, forced=forced)
        assert new == forced_reference(cached.hf_model, forced, size, set())
        text = ",".join(map(str, new))
        assert all(",".join(map(str, word)) in text for word in forced)


def test_a_text_with_forced_words_missing_does_not_end(byte_tokenizer: Any) -> None:
    hf_model = tiny_llama(len(byte_tokenizer))
    with torch.no_grad():
        hf_model.lm_head.weight[0] *= 0
        hf_model.lm_head.weight[0] += 10
    model = load_model(hf_model, tokenizer=byte_tokenizer)
    for seed in range(10):
        text = written(model, "the", max_new_tokens=12, forced=["sea", "Emoji"], seed=seed)
        assert " sea" in text and " Emoji" in text


@pytest.mark.slow
def test_a_forbidden_string_never_comes_however_it_would_be_cut(byte_tokenizer: Any) -> None:
    model = load_model(tiny_llama(len(byte_tokenizer), seed=1), tokenizer=byte_tokenizer)
    forbidden = ["e", "th", "ea ", "🙂", "中文"]
    came = 0
    for seed in range(6):
        document = Document(model, "the sea")
        free = document.stream(max_new_tokens=40, seed=seed).write(io.StringIO())
        came += any(one in free for one in forbidden)
        text = document.stream(max_new_tokens=40, seed=seed, forbidden=forbidden).write(io.StringIO())
        assert not any(one in text for one in forbidden)
    assert came > 3


def test_a_forbidden_word_that_the_text_has_begun_is_not_finished(keeper: Model) -> None:
    begun = Document(keeper, token_ids=keeper.tokenizer("Old horn", add_special_tokens=False).input_ids)
    begun.accept([keeper.tokenizer.convert_tokens_to_ids("Ġkee")])
    assert begun.stream(max_new_tokens=2).write(io.StringIO()) == "pers"
    assert not begun.stream(max_new_tokens=2, forbidden=["keeper"]).write(io.StringIO()).startswith("per")


def test_forbidden_strings_leave_every_other_way_to_go_on_open(tiny_model: Model) -> None:
    spelled, document = tokens_as_bytes(tiny_model.tokenizer), Document(tiny_model, "the se")
    odds = document.odds(temperature=1.0, forbidden=["sea"])
    before = b"".join(spelled[token_id] for token_id in document.token_ids)
    for token_id, piece in enumerate(spelled):
        completes = b"sea" in (before + piece)[-len(piece) - 2 :]
        assert bool(odds[token_id].isinf()) == completes, piece


def test_a_text_that_changes_ends_the_stream_with_a_sentence(keeper: Model) -> None:
    document = Document(keeper, "Old")
    stream = document.stream()
    next(stream)
    document.text = "He fox"
    with pytest.raises(LookaheadError, match="text has changed"):
        next(stream)


def test_a_stream_continues_though_tokens_after_its_start_were_accepted_and_removed(keeper: Model) -> None:
    document = Document(keeper, "Old")
    expected = [step.token_id for step in document.stream(max_new_tokens=6)]
    stream = document.stream(max_new_tokens=6)
    for step in itertools.islice(stream, 2):
        document.accept([step.token_id])
    document.rewind(2)
    list(stream)
    assert stream.token_ids == expected


def test_two_streams_and_a_lookahead_grow_below_the_same_text_side_by_side(tiny_model: Model) -> None:
    document = Document(tiny_model, "the sea")
    pairs = [{"seed": 1}, {"seed": 2}]
    alone = [[step.token_id for step in document.stream(max_new_tokens=9, **options)] for options in pairs]
    document = Document(tiny_model, "the sea")
    streams = [document.stream(max_new_tokens=9, **options) for options in pairs]
    for _ in range(9):
        for stream in streams:
            next(stream)
        document.lookahead(k=3, depth=3)
    assert [stream.token_ids for stream in streams] == alone
    document.check()


def test_options_that_exclude_every_token_raise_an_error_with_a_sentence(cached: Model) -> None:
    with pytest.raises(ValueError, match=r"After \d+ tokens the options rule every token out"):
        ids(cached, max_new_tokens=200, no_repeat_ngram_size=1)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"temperature": -0.1}, "temperature is -0.1, and must be a number from 0 to 100"),
        ({"temperature": float("nan")}, "temperature is nan"),
        ({"temperature": "hot"}, "temperature is 'hot'"),
        ({"top_p": 1.5}, "top_p is 1.5, and must be a number more than 0, and at most 1"),
        ({"top_p": 0}, "top_p is 0, and must be a number more than 0"),
        ({"top_k": -1}, "top_k is -1, and must be a whole number from 0"),
        ({"min_p": 2}, "min_p is 2"),
        ({"typical_p": 0}, "typical_p is 0"),
        ({"min_tokens_to_keep": 0}, "min_tokens_to_keep is 0"),
        ({"repetition_penalty": 0}, "repetition_penalty is 0, and must be a number more than 0"),
        ({"max_new_tokens": 0}, "max_new_tokens is 0, and must be a whole number from 1"),
        ({"max_new_tokens": 600, "min_new_tokens": 600}, "min_new_tokens is 600, and must be a whole number from 0 to"),
        ({"forbidden": ["\ud800"]}, "half of a surrogate pair"),
        (
            {"forced": ["lighthouse"], "stop": ["house"]},
            "stop holds 'house', which the forced 'lighthouse' would end at",
        ),
        ({"stop_ids": [1.5]}, "stop_ids holds 1.5"),
        ({"min_new_tokens": 50}, "min_new_tokens is 50, and must be a whole number from 0 to 40"),
        ({"no_repeat_ngram_size": -2}, "no_repeat_ngram_size is -2"),
        ({"seed": 1.5}, "seed is 1.5"),
        ({"stop": ""}, "stop holds an empty string"),
        ({"stop": ["a", ""]}, "stop holds an empty string"),
        ({"stop": [3]}, "token ids belong into stop_ids"),
        ({"stop_ids": ["a"]}, "strings belong to stop"),
        ({"stop_ids": [[]]}, "stop_ids holds \\[\\]"),
        ({"stop_ids": [(1, 99999)]}, "There is no token 99999"),
        ({"source": "a \ud800"}, "source holds half of a surrogate pair"),
        ({"stop_when": 3}, "stop_when is 3, and must be a function"),
        ({"max_words": 0}, "max_words is 0"),
        ({"forced": ["sea"], "forbidden": ["sea"]}, "'sea' is both forced and forbidden"),
        ({"forced": ["lighthouse"], "forbidden": ["house"]}, "The forced phrase .* holds a forbidden one"),
        ({"forced": [(1, 2, 3)], "forbidden": [(2, 3)]}, "holds a forbidden one"),
        ({"forced": [(7, 8, 9)], "max_new_tokens": 2}, "the forced words alone take 3"),
        ({"forced": [(9, 0)]}, "forced holds an end token"),
        ({"forbidden": [99999]}, "There is no token 99999"),
        ({"forbidden": [-4]}, "forbidden holds -4"),
        ({"forbidden": [True]}, "forbidden holds True"),
        ({"forbidden": 1.5}, "forbidden is 1.5"),
        ({"forbidden": ["a"] * 1001}, "at most 1,000"),
        ({"beams": 3}, "beams is not an option of stream; the options are"),
    ],
    ids=str,
)
def test_wrong_stream_options_raise_an_error_that_names_them(
    tiny_model: Model, options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        Document(tiny_model, "the sea").stream(**options)


def test_strings_take_a_tokenizer(cached: Model) -> None:
    for options in ({"forbidden": ["a"]}, {"stop": ["a"]}, {"max_words": 2}):
        with pytest.raises(TextError, match="without a tokenizer"):
            Document(cached, token_ids=IDS).stream(**options)
    with pytest.raises(TextError, match="without a tokenizer"):
        Document(cached, token_ids=IDS).stream(forced=["a"])


def test_without_a_tokenizer_there_are_ids_and_no_text(cached: Model) -> None:
    stream = Document(cached, token_ids=IDS).stream(max_new_tokens=4)
    assert [step.text for step in stream] == [""] * 4
    assert len(list(itertools.islice(Document(cached, token_ids=IDS).stream(max_new_tokens=9), 2))) == 2


def test_a_stream_ends_where_the_context_is_full_and_cuts_no_text_for_what_might_come() -> None:
    model = load_model(tiny_llama(96, max_position_embeddings=64, eos_token_id=None))
    prompt = [place % 96 for place in range(40)]
    document = Document(model, token_ids=prompt)
    stream = document.stream(max_new_tokens=5000)
    drawn = [step.token_id for step in stream]
    assert (len(drawn), stream.finish, stream.seen_from) == (24, "length", 0)
    path = list(prompt)
    for token_id in drawn:
        assert token_id == int(plain_rows(model.hf_model, [path])[0].argmax())
        path.append(token_id)
    assert document.lookahead(k=1, depth=3).branches[0].token_ids == tuple(drawn[:3])
    beams = Document(model, token_ids=prompt).beam_search(num_beams=2, max_new_tokens=5000).branches
    assert [len(beam.token_ids) for beam in beams] == [24, 24]


def test_what_is_drawn_from_is_what_odds_tells_beyond_the_context_too() -> None:
    model = load_model(tiny_llama(96, max_position_embeddings=64, eos_token_id=None))
    for length in (5, 60, 200):
        document = Document(model, token_ids=[place % 96 for place in range(length)])
        options = {"temperature": 1.3, "top_p": 0.9, "repetition_penalty": 1.2, "seed": 4}
        step = next(document.stream(**options))
        with torch.no_grad():
            logits = model.hf_model(torch.tensor([document.tree.token_ids(document.head)])).logits[0, -1]
        bound = 1e-5 * float(logits.abs().max())
        assert step.chance == pytest.approx(float(document.odds(**options)[step.token_id]), abs=bound)


def test_end_tokens_that_the_model_does_not_have_end_nothing_and_hurt_nothing() -> None:
    model = load_model(tiny_llama(96, eos_token_id=50256))
    assert model.end_token_ids == frozenset()
    assert len(ids(model, max_new_tokens=5, min_new_tokens=5, forced=[(5,)])) == 5


def test_a_row_is_the_models_own_scores_where_the_engine_knows_what_they_differ_by(cached: Model) -> None:
    document = Document(cached, token_ids=IDS)
    node, row = document.head, document.predict(row=True).row
    scores = plain_rows(cached.hf_model, [IDS])[0]
    assert torch.allclose(model_scores(node, row), scores, atol=1e-4)
    assert not torch.allclose(row, scores, atol=1e-2)
    node.prediction = replace(node.prediction, log_total=None)
    assert model_scores(node, row) is row
    node.prediction = None
    assert model_scores(node, row) is row


def test_temperatures_next_to_nothing_are_greedy(cached: Model) -> None:
    for temperature in (1e-320, 1e-12, 5e-324):
        assert ids(cached, max_new_tokens=6, temperature=temperature) == ids(cached, max_new_tokens=6)


def test_a_stop_string_may_begin_in_the_text(keeper: Model) -> None:
    document = Document(keeper, "Old")
    document.accept(keeper.tokenizer(" horn kee", add_special_tokens=False).input_ids)
    assert document.text == "Old horn kee"
    stream = document.stream(max_new_tokens=9, stop=["keeper"])
    assert (stream.write(io.StringIO()), stream.finish, len(stream.steps)) == ("", "stop", 1)
    assert document.stream(max_new_tokens=3, stop=["horn", "Old"]).write(io.StringIO()) == "pers fog"


def test_of_stop_strings_the_one_that_is_complete_first_decides_however_the_text_is_cut() -> None:
    dice = random.Random(0)
    for _ in range(400):
        text = "".join(dice.choices("abc", k=20))
        before = "".join(dice.choices("abc", k=dice.randint(0, 4)))
        stops = ["".join(dice.choices("abc", k=dice.randint(1, 5))) for _ in range(dice.randint(1, 3))]
        whole = before + text
        ends = [
            (place + len(stop), place)
            for stop in stops
            for place in range(len(whole))
            if whole.startswith(stop, place) and place + len(stop) > len(before)
        ]
        expected = whole[len(before) : max(len(before), min(ends)[1])] if ends else text
        shown, reader, rest = "", StopStrings(stops, before), text
        while rest and not reader.found:
            size = dice.randint(0, 4)
            shown += reader.add(rest[:size])
            rest = rest[size:]
            assert expected.startswith(shown)
        assert shown + reader.rest() == expected
        assert reader.found == (whole[slice(*reversed(min(ends)))] if ends else "")


def test_a_stop_string_is_found_that_begins_in_a_text_a_little_longer_than_its_reach() -> None:
    for before in ("U", "Us", "Use", "ouse", "house", "a house", "the Use"):
        reader = StopStrings(["User:"], before)
        shown = reader.add("r:")
        expected = "User:" if before.endswith("Use") else ""
        assert (reader.found, shown + reader.rest()) == (expected, "" if expected else "r:"), before


def test_beside_a_long_opening_a_token_of_the_text_is_read_or_a_sentence_says_what_is_wrong() -> None:
    model = load_model(tiny_llama(96, max_position_embeddings=32))
    for length in range(20, 31):
        document = Document(model, opening=[7] * length)
        document.accept([5, 9, 11, 13] * 4)
        stream = document.stream(max_new_tokens=8)
        assert list(stream)
        path = document.tree.token_ids(document.tree.head)
        assert path[:length] == [7] * length and len(path) > length and path[-1] == 13, length
    document = Document(model, opening=[7] * 31)
    document.accept([5, 9])
    with pytest.raises(LookaheadError, match="This model sees 32 tokens in all: shorten what comes before the text"):
        document.stream(max_new_tokens=8)
    for length in (32, 33, 60):
        with pytest.raises(ValueError, match=f"opening has {length} tokens, and this model sees 32 in all"):
            Document(model, opening=[7] * length)


def test_a_text_may_be_edited_once_its_stream_is_complete_and_not_before(keeper: Model) -> None:
    document = Document(keeper, "Old")
    for step in document.stream(max_new_tokens=4):
        if step.finish:
            document.text = "Something else"
    document.text = "Old"
    stream = document.stream(max_new_tokens=4)
    document.text = "He fox"
    with pytest.raises(LookaheadError, match="text has changed"):
        next(stream)
    stream = document.stream(max_new_tokens=4)
    next(stream)
    document.rewind(1)
    with pytest.raises(LookaheadError, match="text has changed"):
        next(stream)


def test_a_text_longer_than_the_context_goes_on_from_what_the_model_can_read(byte_tokenizer: Any) -> None:
    hf_model = tiny_llama(len(byte_tokenizer), max_position_embeddings=64, eos_token_id=None)
    model = load_model(hf_model, tokenizer=byte_tokenizer)
    document = Document(model, token_ids=[7 + place % 90 for place in range(150)])
    stream = document.stream(max_new_tokens=20, temperature=1.0, seed=2)
    drawn = [step.token_id for step in stream]
    read = [node.token_id for node in document.tree.path(document.head)]
    assert len(read) + 20 <= 64 and document.token_ids[-len(read) + 1 :] == read[1:]
    path = list(read)
    for place, token_id in enumerate(drawn):
        row = plain_rows(hf_model, [path])[0].log_softmax(-1).tolist()
        scores = [value + reference_noise(2, 0, 150 + place, other) for other, value in enumerate(row)]
        assert token_id == scores.index(max(scores)), "noise by the place in the text"
        path.append(token_id)
