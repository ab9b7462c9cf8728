"""Law 6: speculation never changes the text, with any drafter, and good drafts take fewer passes."""

from __future__ import annotations

import io
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from lookahead_core import Document, Model, load_model
from lookahead_core.document.batch import stream_batch
from lookahead_core.engines.pass_costs import SIZES, PassCosts
from lookahead_core.speculation import draft_value
from lookahead_core.speculation.corpus import Corpus
from lookahead_core.speculation.draft_value import DrafterPayoff
from lookahead_core.speculation.drafters import protocol as drafter_protocol
from lookahead_core.speculation.drafters import successor_drafter
from lookahead_core.speculation.drafters.draft_model_drafter import MAX_DRAFT_DEPTH, DraftModelDrafter
from lookahead_core.speculation.drafters.protocol import Guess, GuessAccuracy, checked_guesses
from lookahead_core.speculation.drafters.successor_drafter import SuccessorDrafter
from lookahead_core.speculation.drafters.suffix_drafter import SuffixDrafter
from lookahead_core.speculation.ngram_index import NgramIndex
from lookahead_core.strategies import continuation
from lookahead_core.strategies.rules import RuledOutError
from lookahead_core.strategies.stream_options import StreamOptions
from tests.conftest import tiny_llama
from tests.strategies.test_sampling import reference_noise
from tests.support.drafting import Oracle, Saying, Scripted, Steady, hostile
from tests.support.families import FAMILIES, make
from tests.support.parameters import mostly_slow
from tests.support.scripted_model import parrot

PROMPT = [5, 9, 13, 5, 9, 13, 5, 9, 2, 7, 5, 9]
NEW = 16
"""Tokens of most texts."""
FEW = ("llama", "mamba")
"""The families of the default run; the others run with the slow tests."""
WAYS: dict[str, dict[str, Any]] = {
    "greedy": {},
    "sampled": {"temperature": 0.8, "top_p": 0.9, "seed": 3},
    "hot": {"temperature": 1.5, "seed": 11, "stream": 2},
    "cut": {"temperature": 1.0, "top_k": 7, "min_p": 0.05, "seed": 5},
    "penalised": {"temperature": 0.7, "frequency_penalty": 0.4, "repetition_penalty": 1.3, "no_repeat_ngram_size": 3},
    "ruled": {"forbidden": [5], "min_new_tokens": 6, "repetition_penalty": 1.2},
}


@pytest.fixture
def steady(tiny_model: Model, monkeypatch: pytest.MonkeyPatch) -> Model:
    """The tiny model, with costs that do not change: the same drafts each time."""
    monkeypatch.setattr(tiny_model.engine, "pass_costs", Steady())
    return tiny_model


def plain(model: Model, prompt: list[int] = PROMPT, **options: Any) -> list[int]:
    """What comes without drafts."""
    stream = Document(model, token_ids=prompt).stream(**{"max_new_tokens": NEW, "speculate": False} | options)
    return [step.token_id for step in stream]


def drafted(model: Model, drafters: Any, prompt: list[int] = PROMPT, **options: Any) -> list[int]:
    """What comes with them; the document is checked afterwards."""
    document = Document(model, token_ids=prompt)
    given = {"max_new_tokens": NEW, "speculate": True, "drafters": drafters} | options
    found = [step.token_id for step in document.stream(**given)]
    document.check()
    return found


def teams(model: Model, text: list[int]) -> dict[str, list[Any]]:
    """Drafters alone and together; `text` is what will come."""
    vocabulary, ends = model.vocabulary, model.end_token_ids
    good: list[Scripted] = [Oracle([*PROMPT, *text], vocabulary), Oracle([*PROMPT, *text], vocabulary, wrong=0.3)]
    bad = hostile(vocabulary, ends)
    alone: list[Any] = ["suffix", "recycled", *good, *bad]
    named = {one if isinstance(one, str) else type(one).__name__ + str(place): [one] for place, one in enumerate(alone)}
    return {**named, "both": ["suffix", "recycled"], "all": alone, "none": []}


@pytest.mark.parametrize(
    "family", [family if family in FEW else pytest.param(family, marks=pytest.mark.slow) for family in FAMILIES]
)
def test_the_text_is_the_same_with_drafts_on_every_family(family: str) -> None:
    model = load_model(make(family), tokenizer=None)
    for way in ("greedy", "sampled"):
        expected = plain(model, **WAYS[way])
        assert drafted(model, teams(model, expected)["all"], **WAYS[way]) == expected


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["auto", "uncached"])
@pytest.mark.parametrize("family", FAMILIES)
def test_the_text_is_the_same_with_every_drafter_alone_on_every_family(family: str, engine: str) -> None:
    hf_model = make(family)
    model = load_model(hf_model, tokenizer=None, engine=engine)
    for way in ("greedy", "hot"):
        options = {"max_new_tokens": 12} | WAYS[way]
        expected = plain(model, **options)
        for team, drafters in teams(model, expected).items():
            assert drafted(model, drafters, **options) == expected, (way, team)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_the_text_is_the_same_however_it_is_drawn(tiny_model: Model, way: str) -> None:
    expected = plain(tiny_model, **WAYS[way])
    found = teams(tiny_model, expected)
    for team in ("both", "Oracle3", "all"):
        assert drafted(tiny_model, found[team], **WAYS[way]) == expected, team


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", mostly_slow([0, 1], 1))
def test_a_draft_model_changes_nothing_whether_it_is_the_same_or_another(
    tiny_model: Model, byte_tokenizer: Any, way: str, seed: int
) -> None:
    little = load_model(tiny_llama(len(byte_tokenizer), seed=seed), tokenizer=byte_tokenizer)
    expected = plain(tiny_model, **WAYS[way])
    assert drafted(tiny_model, (), draft_model=little, **WAYS[way]) == expected
    assert drafted(tiny_model, ("suffix", "recycled"), draft_model=little, **WAYS[way]) == expected


@pytest.mark.parametrize("way", WAYS)
def test_good_drafts_win_several_tokens_a_pass(steady: Model, way: str) -> None:
    expected = plain(steady, **WAYS[way])
    stream = Document(steady, token_ids=PROMPT).stream(
        max_new_tokens=NEW, speculate=True, drafters=[Oracle([*PROMPT, *expected], steady.vocabulary)], **WAYS[way]
    )
    assert [step.token_id for step in stream] == expected
    assert sum(one.won for one in stream.passes) == len(expected)
    assert len(stream.passes) <= len(expected) // 3
    assert stream.cost.passes == len(stream.passes)
    won = [names for one in stream.passes for names in one.drafters]
    assert len(won) == len(expected) - len(stream.passes)
    assert set(won) == {"oracle"}


def test_a_costly_drafter_is_used_only_where_the_others_are_uncertain(steady: Model) -> None:
    text = [*PROMPT, *plain(steady)]
    known = len(PROMPT) + 12
    requested: list[int] = []

    class Dear(Oracle):
        name = "dear"
        dear = True

        def ways(self, state: Any) -> Sequence[Guess]:
            requested.append(len(state))
            return super().ways(state)

    class HalfWay(Oracle):
        def ways(self, state: Any) -> Sequence[Guess]:
            return super().ways(state) if len(state) < known else []

    team = [HalfWay(text, steady.vocabulary), Dear(text, steady.vocabulary)]
    assert drafted(steady, team) == text[len(PROMPT) :]
    assert requested and min(requested) >= known


class Clock:
    """A clock that only the test moves on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr(draft_value, "time", self)

    def perf_counter(self) -> float:
        return self.now


def test_the_payoff_of_a_drafter_counts_the_time_of_each_draft_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each draft takes a hundredth of a second, and wins 0.016: more than one and a half times as much."""
    clock, pay = Clock(monkeypatch), DrafterPayoff()

    class Slow(Scripted):
        def ways(self, state: Any) -> Sequence[Guess]:
            clock.now += 0.01
            return [Guess(7, 0.9, "slow")]

    for _ in range(40):
        assert pay.begin_pass()
        assert [way.token_id for way in pay.timed_ways(Slow(), ())] == [7]
        assert pay.seconds == pytest.approx(0.01)
        pay.note_gain(0.016)
    requested = []
    for _ in range(60):
        requested.append(pay.begin_pass())
        if requested[-1]:
            pay.timed_ways(Slow(), ())
            pay.timed_ways(Slow(), ())
            assert pay.seconds == pytest.approx(0.02)
        pay.note_gain(0.016)
    # With two guesses a draft it takes more than it wins: then it is asked in every sixth pass, the 40 before counted.
    assert [place for place, one in enumerate(requested) if one] == [0, *range(1, 60, 6)]


def test_a_drafter_that_was_not_used_is_not_judged_by_the_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, pay = Clock(monkeypatch), DrafterPayoff()

    class Slow(Scripted):
        def ways(self, state: Any) -> Sequence[Guess]:
            clock.now += 0.01
            return []

    for _ in range(30):
        pay.begin_pass()
        pay.note_gain(100.0)
    assert pay.begin_pass(), "nothing speaks against it"
    pay.timed_ways(Slow(), ())
    pay.note_gain(0.0)
    assert not pay.begin_pass(), "what was won while nobody asked it is not its own"
    assert [pay.begin_pass() for _ in range(6)].count(True) == 1


def test_recent_passes_count_most_in_the_payoff_of_a_drafter(monkeypatch: pytest.MonkeyPatch) -> None:
    """After ten drafts in vain, four that win three times what they take make up for them."""
    clock, pay = Clock(monkeypatch), DrafterPayoff()

    class Slow(Scripted):
        def ways(self, state: Any) -> Sequence[Guess]:
            clock.now += 0.01
            return []

    def draft(gained: float) -> int:
        """After how many passes it was asked."""
        passes = 1
        while not pay.begin_pass():
            passes += 1
        pay.timed_ways(Slow(), ())
        pay.note_gain(gained)
        return passes

    assert [draft(0.0) for _ in range(10)] == [1, 5, *[6] * 8]
    assert [draft(0.03) for _ in range(8)] == [6, 6, 6, 6, 1, 1, 1, 1]


@pytest.mark.parametrize("wrong", [0.0, 1.0])
def test_a_costly_drafter_is_rarely_used_while_its_guesses_are_rejected(steady: Model, wrong: float) -> None:
    text = [*PROMPT, *plain(steady, max_new_tokens=60)]
    requested: set[int] = set()

    class Dear(Oracle):
        name = "dear"
        dear = True

        def start(self, path: Sequence[int], vector: torch.Tensor | None, reach: int) -> Any:
            requested.add(len(path))
            return super().start(path, vector, min(reach, 2))

        def ways(self, state: Any) -> Sequence[Guess]:
            return super().ways(state)[:1]

    document = Document(steady, token_ids=PROMPT)
    given = {"max_new_tokens": 60, "speculate": True, "drafters": [Dear(text, steady.vocabulary, wrong=wrong)]}
    stream = document.stream(**given)
    assert [step.token_id for step in stream] == text[len(PROMPT) :]
    # At its end a text has no room for a draft.
    passes = len(stream.passes) - 1
    assert len(requested) >= passes if not wrong else 2 <= len(requested) <= passes / DrafterPayoff.RETRY_INTERVAL + 3


def test_the_same_model_drafting_with_the_same_dice_is_nearly_always_right(steady: Model, byte_tokenizer: Any) -> None:
    little = load_model(tiny_llama(len(byte_tokenizer)), tokenizer=byte_tokenizer)
    for way in ("greedy", "sampled", "hot"):
        options = {"max_new_tokens": 40, "draft_model": little, "drafters": ()} | WAYS[way]
        stream = Document(steady, token_ids=PROMPT).stream(speculate=True, **options)
        for _ in stream:
            pass
        assert len(stream.passes) < len(stream.steps) // 2, way


def padded(vocabulary: int, extra: int, logit: float) -> Any:
    """The tiny model with rows of padding, whose scores are about so large."""
    hf_model, plain_one = tiny_llama(vocabulary + extra), tiny_llama(vocabulary)
    with torch.no_grad():
        own, other = hf_model.state_dict(), plain_one.state_dict()
        for name, values in other.items():
            own[name][: len(values)] = values
        hf_model.lm_head.weight[vocabulary:] = logit * hf_model.lm_head.weight[vocabulary:]
    return hf_model


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_rows_of_padding_in_a_draft_model_are_never_drafted_and_cost_no_draft(
    steady: Model, byte_tokenizer: Any, way: str
) -> None:
    size, passes = len(byte_tokenizer), []
    expected = plain(steady, **WAYS[way])
    for hf_model in (tiny_llama(size), padded(size, 24, 50.0)):
        little = load_model(hf_model, tokenizer=byte_tokenizer)
        stream = Document(steady, token_ids=PROMPT).stream(
            max_new_tokens=NEW, speculate=True, drafters=(), draft_model=little, **WAYS[way]
        )
        assert [step.token_id for step in stream] == expected
        passes.append(len(stream.passes))
    assert passes[0] == passes[1] < 14


def test_a_draft_model_renormalises_without_padding_ids(byte_tokenizer: Any) -> None:
    size, reported = len(byte_tokenizer), []
    for hf_model in (tiny_llama(size), padded(size, 24, 5.0)):
        drafter = choosing(load_model(hf_model, tokenizer=None), size)
        state = drafter.start(PROMPT, None, 4)
        reported.append(drafter.ways(state)[0])
    assert reported[0].token_id == reported[1].token_id
    assert reported[0].odds == pytest.approx(reported[1].odds, rel=1e-3)


@pytest.mark.parametrize("way", WAYS)
def test_a_draft_model_without_the_padding_of_the_big_one_changes_nothing(byte_tokenizer: Any, way: str) -> None:
    size = len(byte_tokenizer)
    big = load_model(padded(size, 24, 1.0), tokenizer=byte_tokenizer)
    little = load_model(tiny_llama(size), tokenizer=byte_tokenizer)
    for prompt in (PROMPT, [*PROMPT, size + 3]):
        expected = plain(big, prompt, **WAYS[way])
        assert drafted(big, (), prompt, draft_model=little, **WAYS[way]) == expected


@pytest.mark.parametrize("extra", [24, -24])
def test_under_rejection_a_draft_model_may_have_more_ids_or_fewer(byte_tokenizer: Any, extra: int) -> None:
    size = len(byte_tokenizer)
    big = load_model(padded(size, max(0, -extra), 1.0), tokenizer=byte_tokenizer)
    big.engine.pass_costs = Steady()  # type: ignore[misc]
    little = load_model(padded(size, max(0, extra), 50.0), tokenizer=byte_tokenizer)
    given: dict[str, Any] = {"speculate": "rejection", "temperature": 1.0, "max_new_tokens": 40, "min_new_tokens": 40}
    stream = Document(big, token_ids=PROMPT).stream(drafters=(), draft_model=little, **given)
    assert all(step.token_id < big.vocabulary for step in stream)
    assert any(one.won > 2 for one in stream.passes), "what the same model draws is mostly accepted"


def test_texts_drawn_side_by_side_under_rejection_are_different_texts(byte_tokenizer: Any) -> None:
    big, little = (load_model(tiny_llama(len(byte_tokenizer)), tokenizer=byte_tokenizer) for _ in range(2))
    streams = stream_batch(
        [Document(big, token_ids=PROMPT)] * 5,
        max_new_tokens=12, temperature=1.0, speculate="rejection", drafters=(), draft_model=little,
    )  # fmt: skip
    for _ in streams:
        pass
    texts = [[step.token_id for step in steps] for steps in streams.steps]
    same = [sum(map(int.__eq__, one, other)) for one in texts for other in texts if one is not other]
    assert max(same) < 4


def test_if_the_draft_models_cache_is_full_the_text_continues_without_it(steady: Model, byte_tokenizer: Any) -> None:
    little = load_model(tiny_llama(len(byte_tokenizer)), tokenizer=byte_tokenizer)
    for slots in (4, len(PROMPT) + 3, len(PROMPT) + 12):
        little.engine.cache_bytes = slots * little.engine._slot_bytes  # type: ignore[attr-defined]
        assert drafted(steady, (), draft_model=little) == plain(steady)


@pytest.mark.parametrize("context", [1, MAX_DRAFT_DEPTH, MAX_DRAFT_DEPTH + 1, 12, 16])
def test_a_draft_model_with_a_short_context_changes_nothing(steady: Model, byte_tokenizer: Any, context: int) -> None:
    hf_model = tiny_llama(len(byte_tokenizer), max_position_embeddings=context)
    little = load_model(hf_model, tokenizer=byte_tokenizer)
    for way in ("greedy", "hot"):
        assert drafted(steady, (), draft_model=little, **WAYS[way]) == plain(steady, **WAYS[way])


def choosing(little: Model, vocabulary: int) -> DraftModelDrafter:
    """A drafter that takes its likeliest token."""
    return DraftModelDrafter(little, vocabulary, lambda row, path: (int(row.argmax()), None), GuessAccuracy())


def running(context: int, **options: Any) -> DraftModelDrafter:
    """A drafter that sees so many tokens."""
    hf_model = tiny_llama(96, max_position_embeddings=context, eos_token_id=None, **options)
    return choosing(load_model(hf_model, tokenizer=None), 96)


def test_behind_a_long_text_a_draft_model_reads_about_as_few_tokens_as_behind_a_short_one() -> None:
    read = []
    for length in (20, 300):
        drafter = running(128)
        text = [7 * place % 96 for place in range(length + 64)]
        for end in range(length, len(text)):
            drafter.start(text[:end], None, 4)
        read.append(drafter._tree.work.tokens)
    assert read[1] < read[0] + 4 * 128


def test_a_draft_model_reads_its_start_tokens_and_the_end_of_a_long_text() -> None:
    drafter = running(32, bos_token_id=1)
    for length in range(1, 200):
        text = [1, *(2 + place % 90 for place in range(length))]
        seen = list(drafter._window(text))
        assert len(seen) <= 32 - MAX_DRAFT_DEPTH
        assert seen == text or (seen[0] == 1 and seen[1:] == text[len(text) + 1 - len(seen) :] and len(seen) >= 16)


def test_a_draft_model_with_too_small_a_context_guesses_nothing() -> None:
    assert running(MAX_DRAFT_DEPTH + 1, bos_token_id=1).start([1, 5, 6], None, 4) is None
    assert running(MAX_DRAFT_DEPTH + 2, bos_token_id=1).start([1, 5, 6], None, 4) is not None


def test_a_draft_model_forgets_the_texts_that_stand_no_more() -> None:
    drafter = running(512)
    for start in range(40):
        path = [(start + 5 * place) % 96 for place in range(60)]
        drafter.start(path, None, 4)
        assert drafter._tree.size <= 2 * len(path) + 256
        assert drafter.draft_model.engine.cache_usage(drafter._tree)[0] <= 2 * len(path) + 256


@pytest.mark.slow
def test_several_texts_with_drafts_are_those_without(tiny_model: Model) -> None:
    prompts = [PROMPT, PROMPT[3:], [1, 2, 3]]
    for options in WAYS.values():
        expected = [plain(tiny_model, prompt, **options) for prompt in prompts]
        documents = [Document(tiny_model, token_ids=prompt) for prompt in prompts]
        streams = stream_batch(documents, max_new_tokens=NEW, speculate=True, **options)
        for _ in streams:
            pass
        assert [[step.token_id for step in steps] for steps in streams.steps] == expected
        same = Document(tiny_model, token_ids=PROMPT)
        streams = stream_batch([same, same], max_new_tokens=NEW, speculate=True, **options)
        for _ in streams:
            pass
        assert [step.token_id for step in streams.steps[0]] == expected[0]
        same.check()


def test_rejected_drafts_leave_nothing_in_tree_or_cache(tiny_model: Model) -> None:
    document = Document(tiny_model, token_ids=PROMPT)
    for _ in document.stream(max_new_tokens=20, speculate=True, drafters=hostile(tiny_model.vocabulary)):
        document.check()
    assert document.tree.size == len(PROMPT) + 20
    assert tiny_model.engine.cache_usage(document.tree)[0] <= len(PROMPT) + 20


def test_drafters_learn_from_every_token_including_those_that_took_no_pass(steady: Model) -> None:
    observed: list[int] = []

    class Hearing(Scripted):
        def hear(self, path: Sequence[int], new: int, scores: Any, nodes: Sequence[Any]) -> None:
            observed.extend(path[-new:])

    for way in ("greedy", "sampled"):
        expected = plain(steady, **WAYS[way])
        for known in (0, 7):
            document = Document(steady, token_ids=PROMPT)
            steps = document.stream(**{"max_new_tokens": NEW, "speculate": False} | WAYS[way])
            assert len(list(itertools.islice(steps, known))) == known
            observed.clear()
            stream = document.stream(**{"max_new_tokens": NEW, "speculate": True, "drafters": [Hearing()]} | WAYS[way])
            assert [step.token_id for step in stream] == observed == expected
            assert len(stream.passes) == NEW - known


def test_a_text_that_needed_no_pass_is_used_for_later_drafts(steady: Model) -> None:
    document = Document(steady, token_ids=PROMPT)
    list(document.stream(max_new_tokens=3, speculate=False))
    came = [step.token_id for step in document.stream(max_new_tokens=20, speculate=True)]
    index = document.drafting._index
    places, length = index.find([*PROMPT, *came[:10]])
    assert length == len(PROMPT) + 10 and index.token_at(places[0]) == came[10]


def test_nothing_is_drafted_for_a_stream_of_one_token(steady: Model) -> None:
    requested: list[Sequence[int]] = []

    class Asked(Scripted):
        def read(self, token_ids: Sequence[int]) -> None:
            requested.append(token_ids)

    for speculate in (True, "rejection"):
        stream = Document(steady, token_ids=PROMPT).stream(
            max_new_tokens=1, temperature=1.0, speculate=speculate, drafters=[Asked()]
        )
        assert len(list(stream)) == len(stream.passes) == 1
    assert not requested
    list(Document(steady, token_ids=PROMPT).stream(max_new_tokens=2, speculate=True, drafters=[Asked()]))
    assert requested == [tuple(PROMPT)]


def test_an_end_token_inside_a_draft_ends_the_text_there(byte_tokenizer: Any) -> None:
    model = load_model(tiny_llama(len(byte_tokenizer)), tokenizer=byte_tokenizer)
    whole = plain(model)
    ending = load_model(tiny_llama(len(byte_tokenizer), eos_token_id=whole[5]), tokenizer=byte_tokenizer)
    expected = plain(ending)
    assert expected == whole[: whole.index(whole[5]) + 1]
    for team, drafters in teams(ending, whole).items():
        document = Document(ending, token_ids=PROMPT)
        stream = document.stream(max_new_tokens=NEW, speculate=True, drafters=drafters)
        steps = list(stream)
        assert [step.token_id for step in steps] == expected, team
        assert steps[-1].finish == "end" and steps[-1].text == ""
        assert sum(one.won for one in stream.passes) == len(expected), "what follows an end is not even counted"


def test_tokens_that_were_drafted_count_as_new_when_the_next_is_chosen(byte_tokenizer: Any) -> None:
    whole = plain(load_model(tiny_llama(len(byte_tokenizer)), tokenizer=byte_tokenizer))
    ending = load_model(tiny_llama(len(byte_tokenizer), eos_token_id=whole[5]), tokenizer=byte_tokenizer)
    ending.engine.pass_costs = Steady()  # type: ignore[misc]
    oracle = Oracle([*PROMPT, *whole], ending.vocabulary)
    assert drafted(ending, [oracle], min_new_tokens=5) == whole[:6] == plain(ending, min_new_tokens=5)


def test_the_odds_of_a_guess_use_the_noise_of_the_sample_that_verifies_it(tiny_model: Model) -> None:
    way = {"max_new_tokens": 4, "temperature": 1.0, "seed": 3, "stream": 2}
    document = Document(tiny_model, token_ids=PROMPT)
    options = StreamOptions(**way)
    line = document.generation_start(options).stream_reader(options).continuation
    tokens = plain(tiny_model, **way)
    assert len(tokens) == 4
    for depth in range(4):
        odds = Document(tiny_model, token_ids=[*PROMPT, *tokens[:depth]]).odds(temperature=1.0).tolist()
        luck = [reference_noise(3, 2, len(PROMPT) + depth, token_id) for token_id in range(len(odds))]
        assert [line._noise(depth, token_id) for token_id in range(len(odds))] == pytest.approx(luck, rel=1e-12)
        assert max(range(len(odds)), key=lambda token_id: odds[token_id] + luck[token_id]) == tokens[depth]


def test_a_drafter_that_is_never_right_is_drafted_less_and_less(steady: Model) -> None:
    expected = plain(steady, max_new_tokens=80)
    stream = Document(steady, token_ids=PROMPT).stream(
        max_new_tokens=80, speculate=True, drafters=[Saying(lambda path: (expected[len(path) - len(PROMPT)] + 1) % 400)]
    )
    assert [step.token_id for step in stream] == expected
    tried = [one.evaluated for one in stream.passes]
    assert len(tried) == 80 and sum(tried[50:70]) < sum(tried[:20]) / 2


def test_kinds_of_guesses_not_verified_for_long_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drafter_protocol, "MAX_KINDS", 8)
    trust = GuessAccuracy()
    for sign in range(100):
        trust.learn("own", Guess(1, 0.5, "often"), True)
        trust.learn("own", Guess(1, 0.5, sign), True)
    assert len(trust._counts) == 8
    assert trust.odds("own", Guess(1, 0.5, "often")) > 0.9
    assert trust.odds("own", Guess(1, 0.5, 99)) > trust.odds("own", Guess(1, 0.5, 0)) == 0.5


def test_the_oldest_successors_are_dropped(steady: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(successor_drafter, "MAX_CONTEXTS", 30)
    document = Document(steady, token_ids=PROMPT)
    came = [step.token_id for step in document.stream(max_new_tokens=40, speculate=True, temperature=1.5)]
    known = document.drafting._drafters["recycled"]._successors
    assert len(known) == 30
    assert tuple(came[-3:-1]) in known and tuple(PROMPT[-2:]) not in known


def test_after_an_edit_no_run_spans_the_old_and_the_new_text() -> None:
    suffix = SuffixDrafter(NgramIndex())
    text = list(range(100, 130))
    suffix.read(text)
    assert [way.token_id for way in suffix.ways(suffix.start(text[:20], None, 4))] == [120]
    suffix.read([*text[:3], 7, 8, 9])
    state = suffix.start([5, *text[-6:]], None, 4)
    assert state is None or not suffix.ways(state), "the old text ended there, and the new one begins elsewhere"
    assert [way.token_id for way in suffix.ways(suffix.start([5, *text[:3]], None, 4))][:1] in ([7], [103])


def test_branches_that_are_only_shown_are_not_indexed_as_text(steady: Model) -> None:
    document = Document(steady, token_ids=PROMPT)
    document.lookahead(k=3, depth=2, speculate=True)
    size = document.drafting._index.size
    document.lookahead(k=5, depth=10, speculate=True)
    assert document.drafting._index.size == size


def test_branches_with_drafts_are_those_without_in_fewer_passes(steady: Model) -> None:
    # A text in which the branches stand already: it has seen its own continuations.
    found = Document(steady, token_ids=PROMPT).lookahead(k=5, depth=10)
    reported = [token_id for branch in found.branches for token_id in (*PROMPT, *branch.token_ids)]
    results = []
    for speculate in (False, True):
        document = Document(steady, token_ids=[*reported, *PROMPT])
        results.append(document.lookahead(k=5, depth=10, speculate=speculate))
        document.check()
    plainly, result = results
    assert [branch.token_ids for branch in result.branches] == [branch.token_ids for branch in plainly.branches]
    assert plainly.cost.passes == 10


def test_branches_that_stand_in_the_text_are_grown_in_few_passes() -> None:
    said = [
        "The old keeper climbed up seven steep wooden stairs without any lamp tonight.",
        "The old ship carried nine barrels from some distant southern harbour yesterday.",
        "The old woman told her grandchildren about wolves under those silver birches.",
        "The old clock struck twelve while nobody but Anna could hear its sound.",
        "The old road leads past three windmills into our neighbour's yellow fields.",
    ]
    words = sorted({f" {word}" for text in said for word in text.rstrip(".").split()[1:]})
    keeper = parrot(said, words)
    keeper.engine.pass_costs = Steady()  # type: ignore[misc]
    text = " ".join([*said, "The old"])
    plainly, drafted = (
        Document(keeper, text).lookahead(k=5, depth=10, speculate=speculate) for speculate in (False, True)
    )
    assert [branch.text for branch in drafted.branches] == [branch.text for branch in plainly.branches]
    assert {branch.text for branch in drafted.branches} == {
        " ".join(["", *one.rstrip(".").split()[2:12]]) for one in said
    }
    assert plainly.cost.passes == 10
    assert drafted.cost.passes < 6


def test_other_errors_at_a_drafted_token_are_raised(steady: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = plain(steady, seed=3)
    scores, failed = continuation.model_scores, []

    def failing(node: Any, row: torch.Tensor) -> torch.Tensor:
        if node.depth == len(PROMPT) + 1 and not failed:
            failed.append(node)
            raise ValueError("Something else than a rule.")
        return scores(node, row)

    monkeypatch.setattr(continuation, "model_scores", failing)
    stream = Document(steady, token_ids=PROMPT).stream(
        max_new_tokens=NEW, seed=3, speculate=True, drafters=[Oracle([*PROMPT, *expected], steady.vocabulary)]
    )
    with pytest.raises(ValueError, match="Something else than a rule"):
        list(stream)


def test_rules_that_exclude_every_token_after_a_draft_raise_only_when_the_text_gets_there(steady: Model) -> None:
    """No token may come twice, so that a text ends where every one has come; drafts reach that place before it does."""
    model = load_model(tiny_llama(24, eos_token_id=None), tokenizer=None)
    model.engine.pass_costs = Steady()  # type: ignore[misc]
    given: dict[str, Any] = {"max_new_tokens": 60, "no_repeat_ngram_size": 1, "seed": 1}
    texts = []
    for drafters in ((), [Oracle(range(3), 24)]):
        stream = Document(model, token_ids=[0, 1, 2]).stream(speculate=True, drafters=drafters, **given)
        with pytest.raises(RuledOutError, match="After 21 tokens the options rule every token out"):
            list(stream)
        texts.append(stream.token_ids)
    known = Document(model, token_ids=[0, 1, 2]).stream(
        speculate=True, drafters=[Oracle([0, 1, 2, *texts[0], 5, 5, 5], 24)], **given
    )
    with pytest.raises(RuledOutError, match="After 21 tokens"):
        list(known)
    assert texts[0] == texts[1] == known.token_ids and sorted(texts[0]) == list(range(3, 24))
    assert len(known.passes) < 15


def test_stops_hold_within_a_draft(tiny_model: Model) -> None:
    steps = list(Document(tiny_model, token_ids=PROMPT).stream(max_new_tokens=NEW, speculate=False))
    text = "".join(step.text for step in steps)
    for options in (
        {"stop": text[7:9]}, {"stop_ids": [steps[4].token_id]}, {"max_words": 2},
        {"stop_when": lambda ids: len(ids) > len(PROMPT) + 6},
    ):  # fmt: skip
        given: dict[str, Any] = {"max_new_tokens": NEW, **options}
        expected = Document(tiny_model, token_ids=PROMPT).stream(speculate=False, **given)
        stream = Document(tiny_model, token_ids=PROMPT).stream(
            speculate=True, drafters=[Oracle([*PROMPT, *(step.token_id for step in steps)], 400)], **given
        )
        assert [(step.token_id, step.text) for step in stream] == [(step.token_id, step.text) for step in expected]
        assert stream.finish == expected.finish


@pytest.mark.slow
def test_if_the_cache_has_no_space_for_drafts_the_text_continues_without_them(byte_tokenizer: Any) -> None:
    from lookahead_core.engines.cached import CachedEngine

    hf_model = tiny_llama(len(byte_tokenizer))
    model = load_model(hf_model, tokenizer=byte_tokenizer)
    assert isinstance(model.engine, CachedEngine)
    expected = plain(model)
    model.engine.cache_bytes = (len(PROMPT) + 26) * model.engine._slot_bytes
    assert drafted(model, hostile(model.vocabulary)) == expected
    stream = Document(model, token_ids=PROMPT).stream(
        max_new_tokens=NEW, speculate=True, drafters=hostile(model.vocabulary)
    )
    for _ in stream:
        pass
    assert stream.statistics["dls"] == [1] * len(stream.token_ids), "drafts without space are not counted as tried"


def test_a_size_that_was_slow_once_is_tried_again() -> None:
    costs = PassCosts()
    costs.record(1, 0.01)
    costs.record(8, 1.0)
    assert costs.cost(8) <= 8 * costs.cost(1), "more than a pass for each of them it never is"
    for _ in range(1000):
        costs.record(1, 0.01)
    assert costs.cost(8) < 1.3 * costs.cost(1)


def seen_often(seconds: dict[int, float], times: int = 200) -> PassCosts:
    """Costs after many passes of each of these sizes, in turn."""
    costs = PassCosts()
    for _ in range(times):
        for nodes, each in seconds.items():
            costs.record(nodes, each)
    return costs


def test_the_cost_of_a_size_is_half_forgotten_after_139_passes_of_other_sizes() -> None:
    """What is told of a size fades towards what it usually costs beside the size that is seen: 1.45 of one for 16."""
    costs = seen_often({1: 0.01, 16: 0.1})
    dear = costs.cost(16) / costs.cost(1)
    assert 9 < dear < 10.1
    for halves in (1, 2, 3):
        for _ in range(139):
            costs.record(1, 0.01)
        expected = 1.45 + (dear - 1.45) / 2**halves
        assert costs.cost(16) / costs.cost(1) == pytest.approx(expected, rel=0.01)
    assert costs.cost(1) == pytest.approx(0.01)


def test_a_size_that_is_seen_to_be_dear_again_and_again_stays_dear() -> None:
    costs = seen_often({1: 0.01, 16: 0.1})
    for _ in range(500):
        costs.record(16, 0.1)
    assert costs.cost(16) == pytest.approx(0.1, rel=0.01)
    assert costs.cost(1) == pytest.approx(0.01), "what is not dearer than usual beside it is left as it is"


def test_a_size_cheaper_than_usual_stays_so_while_other_sizes_are_measured() -> None:
    costs = seen_often({1: 0.01, 16: 0.011})
    cheap = costs.cost(16)
    for _ in range(500):
        costs.record(1, 0.01)
    assert costs.cost(16) == pytest.approx(cheap) == pytest.approx(0.011, rel=0.01)


def test_a_size_without_measurements_costs_its_usual_ratio_to_the_nearest_size() -> None:
    costs = PassCosts()
    for nodes in (1, 2, 3, 6, 16, 64, 128):
        assert costs.cost(nodes) == pytest.approx(1 + 0.03 * (min(nodes, 64) - 1) if nodes <= 64 else 2 * 2.89)
    costs.record(1, 0.02)
    for nodes in (2, 4, 16, 64):
        assert costs.cost(nodes) == pytest.approx(0.02 * (1 + 0.03 * (nodes - 1)))
    costs.record(8, 0.03)
    assert costs.cost(16) / costs.cost(8) == pytest.approx(1.45 / 1.21)
    assert costs.cost(4) == pytest.approx(costs.cost(8) * 1.09 / 1.21), "the nearest size that was seen counts"
    assert costs.min_node_cost == pytest.approx(min(
        (costs.cost(high) - costs.cost(low)) / (high - low) for low, high in itertools.pairwise(SIZES)
    ))  # fmt: skip


def test_more_nodes_never_cost_less_than_fewer_and_the_largest_size_is_learnt_too() -> None:
    costs = seen_often({1: 0.01, 4: 0.03, 16: 0.02, 64: 0.05})
    assert costs.cost(16) == costs.cost(8) > costs.cost(4) > 0.025
    assert costs.cost(64) == pytest.approx(0.05, rel=0.05)
    assert costs.cost(40) == pytest.approx((costs.cost(32) * 24 + costs.cost(64) * 8) / 32)
    assert costs.cost(96) == pytest.approx(1.5 * costs.cost(64))


def test_empty_and_large_passes_do_not_change_the_cost_of_other_sizes() -> None:
    costs = seen_often({1: 0.01})
    before = [costs.cost(nodes) for nodes in SIZES]
    for nodes in (0, 65, 1000):
        costs.record(nodes, 5.0)
    assert [costs.cost(nodes) for nodes in SIZES] == before


def test_faster_is_believed_three_times_as_soon_as_slower() -> None:
    costs = PassCosts()
    for seconds, expected in ((0.04, 0.04), (0.05, 0.041), (0.03, 0.0377)):
        costs.record(2, seconds)
        assert costs.cost(2) == pytest.approx(expected)


def test_so_many_nodes_never_cost_more_than_so_many_passes() -> None:
    costs = PassCosts()
    for seconds in (0.1, 0.2, 0.3):
        costs.record(1, seconds)
    assert costs.cost(1) == pytest.approx(0.1), "what a busy machine adds is not believed"
    for _ in range(400):
        costs.record(4, 9.0)
    assert costs.cost(4) == pytest.approx(0.4, rel=0.01)


def test_the_first_pass_of_a_size_is_not_believed_whole() -> None:
    costs = PassCosts()
    for _ in range(5):
        costs.record(1, 0.01)
    usual = costs.cost(16) / costs.cost(1)
    costs.record(16, 0.16)
    assert usual < costs.cost(16) / costs.cost(1) < 2.1 * usual
    for _ in range(50):
        costs.record(16, 0.16)
    assert costs.cost(16) / costs.cost(1) > 12


def test_a_pass_is_only_enlarged_if_that_pays() -> None:
    costs = PassCosts()
    for _ in range(60):
        for size in SIZES:
            costs.record(size, 0.01 * size)
    assert costs.cost(8) == pytest.approx(0.08, rel=0.1)
    assert costs.cost(6) == pytest.approx(0.06, rel=0.1)
    assert [costs.cost(size) for size in range(1, 70)] == sorted(costs.cost(size) for size in range(1, 70))


class Nameless:
    """A drafter that lacks two parts."""

    read = hear = start = ways = follow = Scripted.read


@pytest.mark.parametrize(
    ("ways", "sentence"),
    [
        (None, "returns None; `ways` must return a list of guesses"),
        ([None], "returns None as a guess; it must be a `Guess`"),
        ([7], "returns 7 as a guess"),
        ([Guess(None, 0.9, "s")], "returns None as a token id; it must be a whole number"),  # type: ignore[arg-type]
        ([Guess(True, 0.9, "s")], "returns True as a token id"),
        ([Guess("7", 0.9, "s")], "returns '7' as a token id"),  # type: ignore[arg-type]
        ([Guess(7.0, 0.9, "s")], "returns 7.0 as a token id"),  # type: ignore[arg-type]
        ([Guess(torch.tensor(7), 0.9, "s")], r"returns tensor\(7\) as a token id"),  # type: ignore[arg-type]
        ([Guess(7, "sure", "s")], "returns 'sure' as odds; they must be a number"),  # type: ignore[arg-type]
        ([Guess(7, 0.9, [1])], r"returns \[1\] as a sign; it must be hashable"),  # type: ignore[arg-type]
        ([Guess(7, 0.9, "s", torch.full((3,), 1 / 3))], "returns a source that token 7 was not sampled from"),
        ([Guess(7, 0.9, "s", torch.full((20,), 1.0))], "returns a source that token 7 was not sampled from"),
        ([Guess(7, 0.9, "s", torch.full((20,), math.nan))], "returns a source that token 7 was not sampled from"),
        ([Guess(7, 0.9, "s", torch.eye(20)[8])], "returns a source that token 7 was not sampled from"),
        (
            [Guess(7, 0.9, "s", torch.eye(20)[7] * 2 - torch.eye(20)[1])],
            "returns a source that token 7 was not sampled from",
        ),
        ([Guess(20, 0.9, "s", torch.full((20,), 0.05))], "returns a source that token 20 was not sampled from"),
        ([Guess(7, 0.9, "s", [0.05] * 20)], "returns a source that token 7 was not sampled from"),  # type: ignore[arg-type]
    ],
)
def test_an_invalid_guess_raises_an_error_that_names_its_drafter(ways: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=f"The drafter scripted {sentence}"):
        list(checked_guesses(Scripted(), ways, 20))


def test_guesses_are_taken_as_they_come() -> None:
    ways = [
        Guess(7, 0.9, "s"),
        Guess(-1, math.nan, None),
        Guess(99, 5, (1, "x")),
        Guess(3, 1, "s", torch.full((20,), 0.05)),
    ]
    assert list(checked_guesses(Scripted(), iter(ways), 20)) == ways


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"speculate": "maybe"}, "speculate is 'maybe', and must be one of"),
        ({"drafters": ["prophet"]}, "drafters holds 'prophet', and must hold suffix, recycled"),
        ({"drafters": 7}, "drafters is 7, and must be a list"),
        ({"draft_model": "gpt2"}, "draft_model is str, and must be a model that load_model has loaded"),
        ({"heads": "mine"}, "heads is str, and must come from load_heads"),
        ({"corpus": "a text"}, "corpus is str, and must come from load_corpus"),
        ({"source": 3}, "source is int, and must be a string"),
        ({"corpus": "a text", "speculate": False}, "corpus is str, and must come from load_corpus"),
        ({"heads": "mine", "speculate": False}, "heads is str, and must come from load_heads"),
        ({"draft_model": 3, "speculate": False}, "draft_model is int, and must be a model"),
        ({"source": "a text", "drafters": ()}, "source is given, and only the drafter suffix looks into it"),
        ({"drafters": [Oracle]}, r"drafters holds the class Oracle; pass an object of it: Oracle\(\)"),
        ({"drafters": [Nameless()]}, "which lacks name, hidden; see `Drafter`"),
        ({"drafters": [None]}, "drafters holds None, and must hold suffix, recycled"),
        ({"drafters": [["suffix"]]}, r"drafters holds \['suffix'\], and must hold suffix, recycled"),
    ],
)
def test_a_wrong_option_of_speculation_raises_an_error_that_names_it(
    tiny_model: Model, options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        Document(tiny_model, "Once").stream(**{"speculate": True} | options)


def offers(model: Model, monkeypatch: pytest.MonkeyPatch, use: Callable[[Document], object]) -> list[tuple[Any, ...]]:
    """All that drafters offer in a document in which a secret was begun, and how far it is trusted there."""
    offered: list[tuple[Any, ...]] = []
    trusted = GuessAccuracy.odds

    def noting_trust(trust: GuessAccuracy, drafter: str, way: Guess) -> float:
        odds = trusted(trust, drafter, way)
        offered.append((way.token_id, odds))
        return odds

    with monkeypatch.context() as patch:
        patch.setattr(GuessAccuracy, "odds", noting_trust)
        for kind in (SuffixDrafter, SuccessorDrafter):
            patch.setattr(kind, "ways", noting(kind.ways, offered))
        use(Document(model, token_ids=[*PROMPT, *SECRET[:2]]))
    return offered


def noting(ways: Any, offered: list[tuple[Any, ...]]) -> Any:
    def noted(drafter: Any, state: Any) -> Any:
        found = ways(drafter, state)
        offered.extend((way.token_id, way.odds) for way in found)
        return found

    return noted


SECRET = range(300, 330)
USES: dict[str, Callable[[Document], object]] = {
    "stream": lambda document: list(document.stream(max_new_tokens=8, speculate=True)),
    "drawn": lambda document: list(document.stream(max_new_tokens=8, speculate=True, temperature=1.0)),
    "lookahead": lambda document: document.lookahead(k=3, depth=4, speculate=True),
}


@pytest.mark.parametrize("way", USES)
def test_nothing_that_one_document_taught_a_drafter_is_offered_in_another(
    steady: Model, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    before = offers(steady, monkeypatch, USES[way])
    reported = [*PROMPT, *SECRET, *PROMPT, *SECRET[:2]]
    taught = Document(steady, token_ids=reported)
    for use in USES.values():
        use(taught)
    assert steady.engine.cache_usage(taught.tree)[0], "the other document is still there"
    after = offers(steady, monkeypatch, USES[way])
    assert [token_id for token_id, _ in after] == [token_id for token_id, _ in before]
    assert [odds for _, odds in after] == pytest.approx([odds for _, odds in before], abs=1e-4)
    own = offers(steady, monkeypatch, lambda _: [use(Document(steady, token_ids=reported)) for use in USES.values()])
    assert SECRET[2] in {token_id for token_id, _ in own}, "where it stands, it is offered"


def test_documents_that_share_passes_teach_each_other_nothing(steady: Model) -> None:
    mine, other = Document(steady, token_ids=list(SECRET)), Document(steady, token_ids=PROMPT)
    for _ in stream_batch([mine, other], max_new_tokens=6, speculate=True):
        pass
    known = [set(document.drafting._drafters["recycled"]._successors) for document in (mine, other)]
    assert tuple(SECRET[-2:]) in known[0] and tuple(PROMPT[-2:]) in known[1]
    assert tuple(SECRET[-2:]) not in known[1] and tuple(PROMPT[-2:]) not in known[0]


def test_a_corpus_loaded_on_purpose_is_drafted_from(steady: Model) -> None:
    expected = plain(steady)
    corpus = Corpus.of_ids(steady, [[*PROMPT, *expected]])
    document = Document(steady, token_ids=PROMPT)
    stream = document.stream(max_new_tokens=NEW, speculate=True, drafters=["suffix"], corpus=corpus)
    assert [step.token_id for step in stream] == expected
    assert len(stream.passes) < 12


def test_a_source_text_is_drafted_from(steady: Model) -> None:
    text = Document(steady, "Once upon a time").stream(max_new_tokens=40, speculate=False).write(io.StringIO())
    stream = Document(steady, "Once upon a time").stream(
        max_new_tokens=40, speculate=True, drafters=["suffix"], source=text
    )
    assert stream.write(io.StringIO()) == text
    assert any("suffix" in one.drafters for one in stream.passes)
