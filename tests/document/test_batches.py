"""Several documents at once: one pass for all of them, and the same results as alone."""

from __future__ import annotations

import random
from typing import Any

import pytest

from lookahead_core import Document, LookaheadError, Model, Settings, load_model
from lookahead_core.document.batch import beam_search_batch, lookahead_batch, stream_batch
from tests.conftest import tiny_llama
from tests.support.families import CACHED, FAMILIES, make, plain_rows
from tests.support.parameters import mostly_slow

LENGTHS = (1, 5, 13, 40)
QUICK = ("gpt2", "llama", "mistral", "bloom", "llama_dynamic_rope")
"""The families that the default run tries; the continuous integration tries all."""


def prompts(seed: int = 0) -> list[list[int]]:
    dice = random.Random(seed)
    return [[dice.randrange(96) for _ in range(length)] for length in LENGTHS]


def documents(model: Model, seed: int = 0) -> list[Document]:
    return [Document(model, token_ids=some) for some in prompts(seed)]


def streamed(steps: Any, count: int) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in range(count)]
    for index, step in steps:
        found[index].append(step.token_id)
    return found


@pytest.mark.parametrize(
    "family", [family if family in QUICK else pytest.param(family, marks=pytest.mark.slow) for family in FAMILIES]
)
def test_a_batch_gives_every_document_what_it_gets_alone(family: str) -> None:
    model = load_model(make(family, limit=64 if "rope" in family else 8))
    for options in ({}, {"seed": 4, "top_p": 0.9, "repetition_penalty": 1.2}):
        batch = streamed(stream_batch(documents(model), max_new_tokens=7, **options), len(LENGTHS))
        for document, found in zip(documents(model), batch, strict=True):
            assert [step.token_id for step in document.stream(max_new_tokens=7, **options)] == found
    beams = beam_search_batch(documents(model), num_beams=3, max_new_tokens=5)
    for document, found in zip(documents(model), beams, strict=True):
        alone = document.beam_search(num_beams=3, max_new_tokens=5)
        assert [beam.token_ids for beam in found.branches] == [beam.token_ids for beam in alone.branches]
        assert [beam.score for beam in found.branches] == pytest.approx(
            [beam.score for beam in alone.branches], abs=1e-4
        )
    views = lookahead_batch(documents(model), k=3, depth=4)
    for document, view in zip(documents(model), views, strict=True):
        alone = document.lookahead(k=3, depth=4)
        assert [branch.token_ids for branch in view.branches] == [branch.token_ids for branch in alone.branches]


def joining(family: str) -> bool:
    return family not in ("gptj", "gemma2", "falcon")


@pytest.mark.slow
@pytest.mark.parametrize("family", mostly_slow([family for family in CACHED if joining(family)], 6))
def test_documents_of_one_batch_share_each_pass_and_no_odds(family: str) -> None:
    """One row of tokens, each document over its own cache: law 1 for every row of it."""
    hf_model = make(family)
    model = load_model(hf_model)
    passes: list[int] = []
    model.engine.model_copy.register_forward_hook(lambda *given: passes.append(1))
    some = documents(model)
    ids: list[list[int]] = [list(one.token_ids) for one in some]
    largest = 0.0
    for index, step in stream_batch(some, max_new_tokens=12, temperature=1.0, seed=1, speculate=False):
        row = plain_rows(hf_model, [ids[index]])[0]
        expected = row.log_softmax(-1)
        largest = max(largest, abs(step.logprob - float(expected[step.token_id])) / float(row.abs().max()))
        ids[index].append(step.token_id)
    assert len(passes) == 12
    assert largest < 1e-5
    for document in some:
        document.check()


def test_documents_that_have_been_looked_at_keep_what_they_know() -> None:
    model = load_model(make("llama"))
    some = documents(model)
    for document in some[:2]:
        document.lookahead(k=2, depth=6)
    batch = streamed(stream_batch(some, max_new_tokens=6), len(some))
    assert [document.tree.work.tokens for document in some[:2]] == [1 + 2 * 5, 5 + 2 * 5]
    assert batch == streamed(stream_batch(documents(model), max_new_tokens=6), len(some))


def test_one_document_many_times_has_many_texts_over_one_cache() -> None:
    model = load_model(make("llama"))
    document = Document(model, token_ids=prompts()[3])
    texts = streamed(stream_batch([document] * 6, max_new_tokens=8, seed=3, speculate=False), 6)
    assert len({tuple(text) for text in texts}) > 3
    for number, text in enumerate(texts):
        single = Document(model, token_ids=prompts()[3])
        assert [step.token_id for step in single.stream(max_new_tokens=8, seed=3, stream=number)] == text
    assert document.tree.work.passes == 8
    assert document.tree.work.tokens <= 40 + 6 * 7


def test_texts_that_end_early_leave_the_others_to_go_on(tiny_model: Model) -> None:
    some = [Document(tiny_model, text) for text in ("the sea", "Once upon", "Emoji")]
    steps = list(stream_batch(some, max_new_tokens=15, stop=["a", "e"], seed=2))
    for index, document in enumerate(some):
        alone = list(Document(tiny_model, document.text).stream(max_new_tokens=15, stop=["a", "e"], seed=2))
        mine = [step for number, step in steps if number == index]
        assert [(step.token_id, step.text, step.finish) for step in mine] == [
            (step.token_id, step.text, step.finish) for step in alone
        ]


def test_long_prompts_share_passes_of_bounded_size() -> None:
    model = load_model(tiny_llama(96, max_position_embeddings=4096, eos_token_id=None))
    sizes: list[int] = []
    model.engine.model_copy.register_forward_pre_hook(
        lambda module, args, kwargs: sizes.append(kwargs["input_ids"].shape[1]), with_kwargs=True
    )
    dice = random.Random(2)
    texts = [[dice.randrange(96) for _ in range(length)] for length in (1500, 30, 512, 200, 90)]
    batch = streamed(stream_batch([Document(model, token_ids=ids) for ids in texts], max_new_tokens=3), 5)
    assert max(sizes) <= 768
    for ids, found in zip(texts, batch, strict=True):
        assert [step.token_id for step in Document(model, token_ids=ids).stream(max_new_tokens=3)] == found


@pytest.mark.slow
def test_where_the_cache_holds_one_document_at_a_time_a_batch_still_gives_the_same() -> None:
    hf_model = tiny_llama(96, max_position_embeddings=8192, eos_token_id=None)
    small = load_model(hf_model, engine="cached", settings=Settings(cache_mb=1))
    large = load_model(hf_model, engine="cached")
    dice = random.Random(2)
    texts = [[dice.randrange(96) for _ in range(2500)] for _ in range(3)]
    batches = [
        streamed(stream_batch([Document(model, token_ids=ids) for ids in texts], max_new_tokens=3), 3)
        for model in (small, large)
    ]
    assert batches[0] == batches[1]


@pytest.mark.slow
def test_three_hundred_texts_of_one_document() -> None:
    model = load_model(make("llama"))
    steps = list(stream_batch([Document(model, token_ids=[1, 2])] * 300, max_new_tokens=2, temperature=1.0))
    assert len(steps) == 600


def test_a_document_that_cannot_go_on_leaves_the_others_to_go_on() -> None:
    model = load_model(make("llama"))
    some = [Document(model, token_ids=[1]), Document(model, token_ids=list(range(90)))]
    options = {"max_new_tokens": 30, "no_repeat_ngram_size": 1}
    streams = stream_batch(some, **options)
    with pytest.raises(ValueError, match="rule every token out"):
        list(streams)
    alone = [step.token_id for step in Document(model, token_ids=[1]).stream(**options)]
    assert [step.token_id for step in streams.steps[0]] == alone
    assert len(streams.steps[1]) == 6


def test_a_text_that_changes_ends_the_batch_with_a_sentence() -> None:
    model = load_model(make("llama"))
    some = documents(model)
    streams = stream_batch(some, max_new_tokens=5)
    next(streams)
    some[2].rewind(3)
    with pytest.raises(LookaheadError, match="text has changed"):
        list(streams)


@pytest.mark.parametrize("engine", ["cached", "uncached"])
def test_a_batch_tells_what_it_has_cost(engine: str) -> None:
    model = load_model(make("llama"), engine=engine)
    streams = stream_batch(documents(model), max_new_tokens=4)
    list(streams)
    assert streams.cost.passes == 4
    views = lookahead_batch(documents(model), k=2, depth=3)
    assert [view.cost.passes for view in views] == [3] * 4
    if engine == "cached":
        assert [view.cost.tokens for view in views] == [length + 4 for length in LENGTHS]


def test_what_a_batch_costs_is_the_sum_of_its_documents_each_counted_once() -> None:
    model = load_model(make("llama"))
    one, other = documents(model)[:2]
    list(Document(model, token_ids=[3, 4]).stream(max_new_tokens=2))
    streams = stream_batch([one, other, one], max_new_tokens=4, temperature=1.0, seed=1, speculate=False)
    assert streams.cost.passes == 0
    list(streams)
    cost = streams.cost
    assert cost.passes == 4
    assert cost.tokens == one.tree.work.tokens + other.tree.work.tokens
    slots, used = zip(*(model.engine.cache_usage(each.tree) for each in (one, other)), strict=True)
    assert (cost.live_slots, cost.cache_bytes) == (sum(slots), sum(used))
    assert min(slots) > 0
    assert cost.seconds > 0
    nothing = stream_batch([]).cost
    assert (nothing.passes, nothing.tokens, nothing.seconds, nothing.live_slots, nothing.cache_bytes) == (0, 0, 0, 0, 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [{}, {"mode": "forks"}, {"mode": "best_first"}, {"until": "word"}, {"banned": {5, 60, 90}}, {"heal": True}],
    ids=str,
)
def test_a_batch_looks_ahead_no_further_than_each_document_alone(options: dict[str, Any], tiny_model: Model) -> None:
    texts = ("Once upon a ti", "the sea", "Emoji")
    for count in (1, 3):
        views = lookahead_batch([Document(tiny_model, text) for text in texts[:count]], k=3, depth=4, **options)
        for text, view in zip(texts, views, strict=False):
            alone = Document(tiny_model, text).lookahead(k=3, depth=4, **options)
            assert [branch.token_ids for branch in view.branches] == [branch.token_ids for branch in alone.branches]
            assert view.cost.tokens == alone.cost.tokens
        assert len(views) == count


def test_beams_of_one_document_are_those_it_has_alone(tiny_model: Model) -> None:
    (found,) = beam_search_batch([Document(tiny_model, "the sea")], num_beams=2, max_new_tokens=3)
    alone = Document(tiny_model, "the sea").beam_search(num_beams=2, max_new_tokens=3)
    assert [beam.token_ids for beam in found.branches] == [beam.token_ids for beam in alone.branches]


def test_an_empty_batch_gives_nothing_and_mixed_models_a_sentence(tiny_model: Model) -> None:
    assert list(stream_batch([])) == beam_search_batch([]) == lookahead_batch([]) == []
    other = load_model(make("gpt2"))
    with pytest.raises(ValueError, match="several models"):
        stream_batch([Document(tiny_model, "the"), Document(other, token_ids=[1])])
    for none in (None, 3):
        with pytest.raises(ValueError, match=f"^documents is {type(none).__name__}, and must be a list of documents"):
            lookahead_batch(none)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="documents holds str"):
        stream_batch("the")
    assert len(list(stream_batch(Document(tiny_model, "the"), max_new_tokens=2))) == 2
    with pytest.raises(ValueError, match="temperature is -1"):
        stream_batch([Document(tiny_model, "the")], temperature=-1)
