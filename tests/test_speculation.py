"""Law 6: speculation never changes the text, whoever drafts, and it takes fewer passes where drafts are good."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest

from lookahead_core import Document, Model, load_model
from lookahead_core.batch import stream_batch
from lookahead_core.corpus import Corpus
from lookahead_core.engines.costs import SIZES, Costs
from lookahead_core.strategies.drafters import Recycled, Suffix
from tests.conftest import tiny_llama
from tests.drafting import Oracle, Scripted, hostile
from tests.families import FAMILIES, make
from tests.parrot import parrot

PROMPT = [5, 9, 13, 5, 9, 13, 5, 9, 2, 7, 5, 9]
FEW = ("gpt2", "llama", "gemma3", "mamba")
"""The families of the default run; the others run with the slow tests."""
WAYS: dict[str, dict[str, Any]] = {
    "greedy": {},
    "sampled": {"temperature": 0.8, "top_p": 0.9, "seed": 3},
    "hot": {"temperature": 1.5, "seed": 11, "stream": 2},
    "cut": {"temperature": 1.0, "top_k": 7, "min_p": 0.05, "seed": 5},
    "penalised": {"temperature": 0.7, "frequency_penalty": 0.4, "repetition_penalty": 1.3, "no_repeat_ngram_size": 3},
    "ruled": {"forbidden": [5], "min_new_tokens": 6, "repetition_penalty": 1.2},
}


class Steady(Costs):
    """What passes usually cost, whatever a busy machine makes of them."""

    def note(self, nodes: int, seconds: float) -> None:
        pass


@pytest.fixture
def steady(tiny_model: Model, monkeypatch: pytest.MonkeyPatch) -> Model:
    """The tiny model, with costs that do not change: the same drafts each time."""
    monkeypatch.setattr(tiny_model.engine, "costs", Steady())
    return tiny_model


def plain(model: Model, prompt: list[int] = PROMPT, **options: Any) -> list[int]:
    """What comes without drafts."""
    stream = Document(model, token_ids=prompt).stream(**{"max_new_tokens": 24, "speculate": False} | options)
    return [step.token_id for step in stream]


def drafted(model: Model, drafters: Any, prompt: list[int] = PROMPT, **options: Any) -> list[int]:
    """What comes with them; the document is checked afterwards."""
    document = Document(model, token_ids=prompt)
    given = {"max_new_tokens": 24, "speculate": True, "drafters": drafters} | options
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


@pytest.mark.parametrize("way", WAYS)
def test_the_text_is_the_same_however_it_is_drawn(tiny_model: Model, way: str) -> None:
    expected = plain(tiny_model, **WAYS[way])
    found = teams(tiny_model, expected)
    for team in ("both", "Oracle3", "all"):
        assert drafted(tiny_model, found[team], **WAYS[way]) == expected, team


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", [0, 1])
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
        max_new_tokens=24, speculate=True, drafters=[Oracle([*PROMPT, *expected], steady.vocabulary)], **WAYS[way]
    )
    assert [step.token_id for step in stream] == expected
    assert sum(one.won for one in stream.passes) == len(expected)
    assert len(stream.passes) <= len(expected) // 3
    assert stream.cost.passes == len(stream.passes)
    won = [names for one in stream.passes for names in one.drafters]
    assert len(won) == len(expected) - len(stream.passes)
    assert set(won) == {"oracle"}


def test_the_same_model_drafting_with_the_same_dice_is_nearly_always_right(steady: Model, byte_tokenizer: Any) -> None:
    little = load_model(tiny_llama(len(byte_tokenizer)), tokenizer=byte_tokenizer)
    for way in ("greedy", "sampled", "hot"):
        options = {"max_new_tokens": 40, "draft_model": little, "drafters": ()} | WAYS[way]
        stream = Document(steady, token_ids=PROMPT).stream(speculate=True, **options)
        for _ in stream:
            pass
        assert len(stream.passes) < len(stream.steps) // 2, way


def test_several_texts_with_drafts_are_those_without(tiny_model: Model) -> None:
    prompts = [PROMPT, PROMPT[3:], [1, 2, 3]]
    for options in WAYS.values():
        expected = [plain(tiny_model, prompt, **options) for prompt in prompts]
        documents = [Document(tiny_model, token_ids=prompt) for prompt in prompts]
        streams = stream_batch(documents, max_new_tokens=24, speculate=True, **options)
        for _ in streams:
            pass
        assert [[step.token_id for step in steps] for steps in streams.steps] == expected
        same = Document(tiny_model, token_ids=PROMPT)
        streams = stream_batch([same, same], max_new_tokens=24, speculate=True, **options)
        for _ in streams:
            pass
        assert [step.token_id for step in streams.steps[0]] == expected[0]
        same.check()


def test_what_was_drafted_in_vain_leaves_nothing_in_tree_or_cache(tiny_model: Model) -> None:
    document = Document(tiny_model, token_ids=PROMPT)
    for _ in document.stream(max_new_tokens=20, speculate=True, drafters=hostile(tiny_model.vocabulary)):
        document.check()
    assert document.tree.size == len(PROMPT) + 20
    assert tiny_model.engine.usage(document.tree)[0] <= len(PROMPT) + 20


def test_an_end_token_inside_a_draft_ends_the_text_there(byte_tokenizer: Any) -> None:
    model = load_model(tiny_llama(len(byte_tokenizer)), tokenizer=byte_tokenizer)
    whole = plain(model)
    ending = load_model(tiny_llama(len(byte_tokenizer), eos_token_id=whole[5]), tokenizer=byte_tokenizer)
    expected = plain(ending)
    assert expected == whole[: whole.index(whole[5]) + 1]
    for team, drafters in teams(ending, whole).items():
        document = Document(ending, token_ids=PROMPT)
        stream = document.stream(max_new_tokens=24, speculate=True, drafters=drafters)
        steps = list(stream)
        assert [step.token_id for step in steps] == expected, team
        assert steps[-1].finish == "end" and steps[-1].text == ""
        assert sum(one.won for one in stream.passes) == len(expected), "what follows an end is not even counted"


def test_branches_with_drafts_are_those_without_in_fewer_passes(steady: Model) -> None:
    # A text in which the branches stand already: it has seen its own continuations.
    found = Document(steady, token_ids=PROMPT).lookahead(k=5, depth=10)
    told = [token_id for branch in found.branches for token_id in (*PROMPT, *branch.token_ids)]
    results = []
    for speculate in (False, True):
        document = Document(steady, token_ids=[*told, *PROMPT])
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
    keeper.engine.costs = Steady()  # type: ignore[misc]
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


def test_stops_hold_within_a_draft(tiny_model: Model) -> None:
    steps = list(Document(tiny_model, token_ids=PROMPT).stream(max_new_tokens=24, speculate=False))
    text = "".join(step.text for step in steps)
    for options in (
        {"stop": text[7:9]}, {"stop_ids": [steps[4].token_id]}, {"max_words": 2},
        {"stop_when": lambda ids: len(ids) > len(PROMPT) + 6},
    ):  # fmt: skip
        given: dict[str, Any] = {"max_new_tokens": 24, **options}
        expected = Document(tiny_model, token_ids=PROMPT).stream(speculate=False, **given)
        stream = Document(tiny_model, token_ids=PROMPT).stream(
            speculate=True, drafters=[Oracle([*PROMPT, *(step.token_id for step in steps)], 400)], **given
        )
        assert [(step.token_id, step.text) for step in stream] == [(step.token_id, step.text) for step in expected]
        assert stream.finish == expected.finish


def test_where_the_cache_has_no_room_for_drafts_the_text_comes_without_them(byte_tokenizer: Any) -> None:
    from lookahead_core.engines.cached import CachedEngine

    hf_model = tiny_llama(len(byte_tokenizer))
    model = load_model(hf_model, tokenizer=byte_tokenizer)
    assert isinstance(model.engine, CachedEngine)
    expected = plain(model)
    model.engine.cache_bytes = (len(PROMPT) + 26) * model.engine._slot_bytes
    assert drafted(model, hostile(model.vocabulary)) == expected


def test_a_size_that_was_slow_once_is_tried_again() -> None:
    costs = Costs()
    costs.note(1, 0.01)
    costs.note(8, 1.0)
    assert costs.of(8) <= 8 * costs.of(1), "more than a pass for each of them it never is"
    for _ in range(1000):
        costs.note(1, 0.01)
    assert costs.of(8) < 1.2 * costs.of(1)


def test_a_pass_is_only_made_larger_where_that_pays() -> None:
    costs = Costs()
    for _ in range(20):
        for size in SIZES:
            costs.note(size, 0.01 * size)
    assert costs.of(8) == pytest.approx(0.08, rel=0.1)
    assert costs.of(6) == pytest.approx(0.06, rel=0.1)
    assert [costs.of(size) for size in range(1, 70)] == sorted(costs.of(size) for size in range(1, 70))


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
    ],
)
def test_a_wrong_option_of_speculation_is_told_in_a_sentence(
    tiny_model: Model, options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        Document(tiny_model, "Once").stream(**{"speculate": True} | options)


def offers(model: Model, monkeypatch: pytest.MonkeyPatch, use: Callable[[Document], object]) -> list[tuple[Any, ...]]:
    """All that drafters offer in a document in which a secret was begun, while it is used."""
    offered: list[tuple[Any, ...]] = []
    with monkeypatch.context() as patch:
        for kind in (Suffix, Recycled):
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
    told = [*PROMPT, *SECRET, *PROMPT, *SECRET[:2]]
    taught = Document(steady, token_ids=told)
    for use in USES.values():
        use(taught)
    assert steady.engine.usage(taught.tree)[0], "the other document is still there"
    after = offers(steady, monkeypatch, USES[way])
    assert [token_id for token_id, _ in after] == [token_id for token_id, _ in before]
    own = offers(steady, monkeypatch, lambda _: [use(Document(steady, token_ids=told)) for use in USES.values()])
    assert SECRET[2] in {token_id for token_id, _ in own}, "where it stands, it is offered"


def test_documents_that_share_passes_teach_each_other_nothing(steady: Model) -> None:
    mine, other = Document(steady, token_ids=list(SECRET)), Document(steady, token_ids=PROMPT)
    for _ in stream_batch([mine, other], max_new_tokens=6, speculate=True):
        pass
    known = [set(document._memory._recycled._after) for document in (mine, other)]
    assert tuple(SECRET[-2:]) in known[0] and tuple(PROMPT[-2:]) in known[1]
    assert tuple(SECRET[-2:]) not in known[1] and tuple(PROMPT[-2:]) not in known[0]


def test_a_corpus_loaded_on_purpose_is_drafted_from(steady: Model) -> None:
    expected = plain(steady)
    corpus = Corpus.of_ids(steady, [[*PROMPT, *expected]])
    document = Document(steady, token_ids=PROMPT)
    stream = document.stream(max_new_tokens=24, speculate=True, drafters=["suffix"], corpus=corpus)
    assert [step.token_id for step in stream] == expected
    assert len(stream.passes) < 12


def test_a_source_text_is_drafted_from(steady: Model) -> None:
    text = Document(steady, "Once upon a time").stream(max_new_tokens=40, speculate=False).write(io.StringIO())
    stream = Document(steady, "Once upon a time").stream(
        max_new_tokens=40, speculate=True, drafters=["suffix"], source=text
    )
    assert stream.write(io.StringIO()) == text
    assert any("suffix" in one.drafters for one in stream.passes)
