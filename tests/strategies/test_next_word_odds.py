"""Word odds equal an exhaustive enumeration of all tokenizations, with plain forward passes, on tiny models."""

from __future__ import annotations

import codecs
import json
import math
import random
import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import tokenizers
import torch
import transformers

from lookahead_core import Document, Model, TextError, load_model
from lookahead_core.document.prefetch import prefetch_views
from lookahead_core.serving.calls import Calls
from lookahead_core.serving.json_view import lookahead_as_json
from lookahead_core.strategies.next_word_search import LEAST, MAX_ROUNDS, OTHERS_NAMED
from lookahead_core.text.words import first_word_size
from tests.conftest import CORPUS, tiny_llama
from tests.support.families import make, plain_rows_by_length
from tests.support.parameters import mostly_slow
from tests.support.scripted_model import parrot
from tests.support.spelling import tokens_as_bytes

TOLERANCE = 0.001
ROUNDING = 1e-5
"""Tolerance of sums of float32 probabilities."""
FOLLOWED = 1e-5
"""Minimum probability of a path that the reference extends to sum up the probability of a word."""
COARSE = 2e-3
"""Minimum probability of a path that the reference extends to find the likely words."""

Tokens = tuple[int, ...]


class Enumeration:
    """Next words after token ids by plain forward passes over whole paths, one token after another.

    `typed` are bytes that the first token must begin with, and `banned` ids are not followed.
    """

    def __init__(self, model: Model, ids: list[int], before: str, typed: bytes = b"", banned: Any = ()) -> None:
        self.model, self.ids, self.before, self.typed, self.banned = model, ids, before, typed, set(banned)
        self.spelled = tokens_as_bytes(model.tokenizer)
        self.rows: dict[Tokens, list[float]] = {}
        self.words: dict[tuple[bytes, int | None], str | None] = {}
        self.fitting: dict[tuple[bytes, bool], list[int]] = {}
        self.allowed = torch.tensor([i not in self.banned for i in range(len(self.spelled))])
        self.allowed_first = torch.tensor([self._allows_first(i) for i in range(len(self.spelled))])

    def after(self, paths: list[Tokens]) -> list[list[float]]:
        """The probability of each token after each path, renormalised over the tokens that are allowed there."""
        new = [path for path in paths if path not in self.rows]
        rows = plain_rows_by_length(self.model.hf_model, [[*self.ids, *path] for path in new])
        for path, row in zip(new, rows, strict=True):
            p = row.double().softmax(-1)[: len(self.spelled)] * (self.allowed if path else self.allowed_first)
            self.rows[path] = (p / p.sum()).tolist()
        return [self.rows[path] for path in paths]

    def _allows_first(self, token_id: int) -> bool:
        if not self.typed:
            return token_id not in self.banned
        spelled = self.spelled[token_id]
        return spelled.startswith(self.typed) and (token_id not in self.banned or spelled == self.typed)

    def _fits(self, wanted: bytes, first: bool) -> list[int]:
        """The tokens that begin with these bytes, or that these bytes begin with."""
        if (wanted, first) not in self.fitting:
            spelled = [one[len(self.typed) if first else 0 :] for one in self.spelled]
            self.fitting[wanted, first] = [
                i for i, one in enumerate(spelled) if one.startswith(wanted) or wanted.startswith(one)
            ]
        return self.fitting[wanted, first]

    def text(self, path: Tokens) -> str:
        """The whole characters that a path inserts."""
        spelled = b"".join(self.spelled[i] for i in path)[len(self.typed) :]
        return codecs.getincrementaldecoder("utf-8")("replace").decode(spelled)

    def word(self, path: Tokens) -> str | None:
        """The first word that a path spells; None if it depends on what follows."""
        text = self.text(path)
        if not text and not self.spelled[path[-1]] and path[-1] not in self.model.end_token_ids:
            return "\ufffd"  # a control token begins no word, and ends one
        size = first_word_size(text, self.before, final=not self.spelled[path[-1]])
        return None if size is None else text[:size]

    def _outgrows(self, word: str, path: Tokens) -> bool:
        """Whether the first word of a path is longer than this word, whatever follows."""
        text = self.text(path)
        return len(text) > len(word) != first_word_size(text, self.before, final=True)

    def probability(self, word: str) -> tuple[float, float]:
        """Bounds of the probability of one next word: the sum over all but the least likely paths."""
        low, lost, wanted = 0.0, 0.0, word.encode()
        waiting: list[tuple[Tokens, float, bytes]] = [((), 1.0, b"")]
        while waiting:
            longer = []
            for (path, mass, begun), row in zip(waiting, self.after([path for path, _, _ in waiting]), strict=True):
                for token_id in self._fits(wanted[len(begun) :], not path):
                    p = row[token_id]
                    if not p:
                        continue
                    spelled = begun + self.spelled[token_id][0 if path else len(self.typed) :]
                    key = spelled, token_id if not self.spelled[token_id] else None
                    if key not in self.words:
                        self.words[key] = self.word((*path, token_id))
                    if self.words[key] == word:
                        low += mass * p
                    elif self.words[key] is not None or self._outgrows(word, (*path, token_id)):
                        continue
                    elif mass * p < FOLLOWED:
                        lost += mass * p
                    else:
                        longer.append(((*path, token_id), mass * p, spelled))
            waiting = longer
        return low, low + lost

    def likely_words(self, count: int) -> list[str]:
        """The likeliest words, as far as paths of at least the probability COARSE show them."""
        low: dict[str, float] = defaultdict(float)
        waiting: list[tuple[Tokens, float]] = [((), 1.0)]
        while waiting:
            longer = []
            for (path, mass), row in zip(waiting, self.after([path for path, _ in waiting]), strict=True):
                for token_id, p in enumerate(row):
                    if mass * p >= COARSE / 10:
                        found = self.word((*path, token_id))
                        if found is not None:
                            low[found] += mass * p
                        elif mass * p >= COARSE:
                            longer.append(((*path, token_id), mass * p))
            waiting = longer
        return sorted((word for word in low if "\ufffd" not in word), key=lambda word: -low[word])[:count]


LINES = [
    "Once upon a time there was a small lighthouse keeper who watched the sea and the sky.",
    "After careful consideration of the risks, the old keeper climbed the stairs again and again.",
    'The keeper\'s well-kept key, "number 3.14 or 1984", was gone!\n\nThen the thermometer fell: the thaw.',
    "Le café résumé.",
]


def texts(count: int, seed: int) -> list[str]:
    """Beginnings of lines, cut anywhere."""
    draw = random.Random(seed)
    lines = [draw.choice(LINES[:3]) for _ in range(count)]
    return [line[: draw.randrange(4, len(line))] for line in lines]


def few_characters() -> Any:
    """A byte-level tokenizer whose only bytes are those of the lines: most of its tokens are whole characters."""
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=150, special_tokens=["<|end|>"], show_progress=False)
    made.train_from_iterator(LINES * 5, trainer)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<|end|>")


def check(model: Model, text: str, k: int = 4, banned: Any = (), heal: bool = False) -> Any:
    """Compare the words of a lookahead with the enumeration."""
    document = Document(model, text)
    typed = document.reopens.encode() if heal else b""
    ids = document.token_ids[:-1] if typed else document.token_ids
    result = document.lookahead(k=k, depth=3, odds="words", banned=banned, heal=heal)
    slow = Enumeration(model, ids, text, typed, banned)
    assert len({branch.next_word for branch in result.branches}) == len(result.branches)
    for branch in result.branches:
        low, high = slow.probability(branch.next_word)
        assert high - low < TOLERANCE, "the enumeration is exact enough"
        assert branch.share - branch.share_error - ROUNDING <= high, (text, branch.next_word, low, branch)
        assert branch.share + branch.share_error + ROUNDING >= low, (text, branch.next_word, high, branch)
        assert branch.share_error <= TOLERANCE + ROUNDING or result.cost.passes > MAX_ROUNDS // 2
        assert branch.share_error <= result.odds_error
    least = min(branch.share for branch in result.branches)
    shown = {branch.next_word for branch in result.branches}
    for word in slow.likely_words(k + 2):
        if word not in shown and result.cost.passes <= MAX_ROUNDS // 2:
            assert slow.probability(word)[0] <= least + 2 * TOLERANCE, (text, word)
    document.check()
    return result


@pytest.fixture(scope="module")
def models() -> list[Model]:
    """Tiny models, from flat to sharp distributions."""
    made, tokenizer = [], few_characters()
    for seed, sharpness in enumerate((0.5, 1.0, 2.0, 4.0)):
        hf_model = tiny_llama(len(tokenizer), seed)
        hf_model.lm_head.weight.data *= sharpness
        made.append(load_model(hf_model, tokenizer=tokenizer))
    return made


@pytest.fixture(scope="module")
def speller() -> Model:
    """A model that spells words in several pieces, with other words that begin alike."""
    return parrot(
        [*CORPUS[:2], "The keep keeps the keeper's well-kept key, 3.14 or 1984.", "the the theory then. Then"]
    )


@pytest.mark.slow
@pytest.mark.parametrize("text", mostly_slow(texts(12, seed=1), 5))
def test_next_word_odds_equal_an_exhaustive_enumeration(models: list[Model], text: str) -> None:
    check(models[len(text) % len(models)], text)


@pytest.mark.parametrize("text", ["the", "The keep", "keeper's", "well", "3", "1984", "the keeper."])
def test_words_of_several_tokens_are_merged_with_all_their_tokenizations(speller: Model, text: str) -> None:
    check(speller, text)


@pytest.mark.slow
def test_next_word_odds_equal_an_exhaustive_enumeration_after_200_prompts(models: list[Model]) -> None:
    for index, text in enumerate(texts(200, seed=2)):
        result = check(models[index % len(models)], text, heal=index % 3 == 0)
        assert result.odds_error <= TOLERANCE + ROUNDING, text


@pytest.mark.slow
@pytest.mark.parametrize("text", ["Once upon a ti", "After careful ", "the lighth", "Then the"])
def test_healed_word_odds_are_conditional_on_the_typed_text(models: list[Model], speller: Model, text: str) -> None:
    for model in (models[1], speller):
        result = check(model, text, heal=True)
        assert result.given
        assert all(
            branch.text.startswith(branch.next_word) or branch.next_word.startswith(branch.text)
            for branch in result.branches
        )


def test_banned_tokens_have_no_part_in_word_odds(models: list[Model], speller: Model) -> None:
    for model in (models[2], speller):
        document = Document(model, "the keeper")
        free = document.lookahead(k=4, depth=3, odds="words")
        banned = {branch.token_ids[0] for branch in free.branches[:2]}
        result = check(model, "the keeper", banned=banned)
        assert not banned & {i for branch in result.branches for i in branch.token_ids}


@pytest.mark.slow
def test_a_branch_holds_its_word_and_goes_on_with_the_likeliest_tokens(speller: Model) -> None:
    for text in ("the", "The keep", "Once upon a"):
        for depth in (1, 2, 9):
            document = Document(speller, text)
            result = document.lookahead(k=4, depth=depth, odds="words")
            assert [branch.share for branch in result.branches] == sorted(
                (branch.share for branch in result.branches), reverse=True
            )
            slow = Enumeration(speller, document.token_ids, text)
            for branch in result.branches:
                word_ids = branch.token_ids[: branch.next_word_tokens]
                assert branch.text.startswith(branch.next_word), "a word is whole even at depth 1"
                assert slow.text(word_ids) == branch.next_word or slow.word(word_ids) == branch.next_word
                assert len(branch.token_ids) == max(depth, branch.next_word_tokens) or branch.ended
                rest = branch.token_ids[branch.next_word_tokens :]
                for place, token_id in enumerate(rest):
                    before = (*word_ids, *rest[:place])
                    (row,) = slow.after([before])
                    closes = [
                        (p, i) for i, p in enumerate(row) if place or slow.word((*before, i)) == branch.next_word
                    ]  # fmt: skip
                    assert max(closes)[0] == pytest.approx(row[token_id], rel=1e-4)
                assert branch.probability == pytest.approx(
                    math.prod(
                        slow.after([branch.token_ids[:place]])[0][token_id]
                        for place, token_id in enumerate(branch.token_ids)
                    ),
                    rel=1e-3,
                )


@pytest.mark.parametrize("until", ["word", "clause", "sentence", "line"])
def test_a_row_holds_its_whole_word_though_a_line_ends_within_it(until: Any) -> None:
    model = parrot(["A cat.\n\nThe end.", "A cat.\nThen more.", "A cat. It ran."])
    result = Document(model, "A cat.").lookahead(k=4, depth=40, until=until, odds="words")
    words = [branch.next_word for branch in result.branches]
    assert len(words) == len(set(words)) == 4
    assert {"\n", "\n\n"} <= set(words)
    for branch in result.branches:
        assert branch.text.startswith(branch.next_word)
        assert len(branch.token_ids) >= branch.next_word_tokens


def test_coverage_is_the_probability_of_the_words_and_the_rest_are_other_words(speller: Model) -> None:
    document = Document(speller, "The keep")
    result = document.lookahead(k=3, depth=2, odds="words")
    assert result.coverage == pytest.approx(math.fsum(branch.share for branch in result.branches))
    slow = Enumeration(speller, document.token_ids, "The keep")
    shown = {branch.next_word for branch in result.branches}
    for other in result.rest[:5]:
        assert other.text not in shown
        assert other.share is not None
        low, high = slow.probability(other.text or "")
        assert other.share - other.share_error - ROUNDING <= high
        assert other.share + other.share_error + ROUNDING >= low
    assert document.lookahead(k=3, depth=2).odds_error == 0


def test_the_same_words_again_cost_no_pass(models: list[Model]) -> None:
    document = Document(models[1], "the keeper")
    first = document.lookahead(k=4, depth=4, odds="words")
    again = document.lookahead(k=4, depth=4, odds="words")
    assert first.cost.passes > 1 and again.cost.passes == 0
    assert again.branches == first.branches
    document.accept(first.branches[0])
    document.rewind(len(first.branches[0].token_ids))
    assert document.lookahead(k=4, depth=4, odds="words").cost.passes == 0


def test_every_step_has_branches_and_the_last_is_the_result(speller: Model) -> None:
    steps = list(Document(speller, "The keep").lookahead_steps(k=3, depth=4, odds="words"))
    results = [step.result for step in steps]
    assert all(result.branches for result in results)
    errors = [result.odds_error for result in results]
    assert errors[-1] <= TOLERANCE < errors[0]
    assert results[-1].branches == Document(speller, "The keep").lookahead(k=3, depth=4, odds="words").branches


def test_next_words_are_the_words_of_a_lookahead(speller: Model) -> None:
    document = Document(speller, "The keep")
    words = document.next_words(k=6)
    result = Document(speller, "The keep").lookahead(k=6, depth=1, odds="words")
    assert [(word.text, word.probability, word.error) for word in words] == [
        (branch.next_word, branch.share, branch.share_error) for branch in result.branches
    ]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"odds": "letters"}, "odds is 'letters'"),
        ({"odds": "words", "mode": "forks"}, 'mode is \'forks\', and must be "likely" with odds="words"'),
        ({"odds": "words", "temperature": 0.5}, "temperature is 0.5"),
        ({"odds": "words", "top_p": 0.5}, "top_p 0.5"),
    ],
)
def test_options_that_word_odds_do_not_support_are_refused(tiny_model: Model, options: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        Document(tiny_model, "The").lookahead(**options)


def test_words_need_a_tokenizer() -> None:
    with pytest.raises(TextError):
        Document(load_model(make("llama"), tokenizer=None), token_ids=[3, 1]).lookahead(odds="words")


def test_json_and_calls_name_what_a_share_is_the_probability_of(speller: Model) -> None:
    result = Document(speller, "The keep").lookahead(k=3, depth=2, odds="words")
    view = lookahead_as_json(result)
    assert view["asked"]["odds"] == "words"
    for shown, branch in zip(view["branches"], result.branches, strict=True):
        assert shown["next_word"] == {
            "text": branch.next_word,
            "tokens": branch.next_word_tokens,
            "share": pytest.approx(branch.share, abs=1e-5),
            "error": pytest.approx(branch.share_error, abs=1e-5),
        }
    assert view["rest"][0]["next_word"]["share"] == pytest.approx(result.rest[0].share, abs=1e-5)
    assert "word" not in lookahead_as_json(Document(speller, "The keep").lookahead(k=2, depth=2))["branches"][0]
    answer = Calls(speller).lookahead("The keep", k=3, depth=2, odds="words")
    assert answer["odds_error"] == pytest.approx(result.odds_error)
    assert [one["next_word"] for one in answer["branches"]] == [branch.next_word for branch in result.branches]
    assert [one["share_error"] for one in answer["branches"]] == pytest.approx(
        [branch.share_error for branch in result.branches]
    )


@pytest.mark.slow
def test_on_the_default_model_words_cost_at_most_four_passes_more_than_tokens(default_model: Model) -> None:
    more, errors = [], []
    for text in prose(50, seed=3):
        tokens = Document(default_model, text).lookahead(k=5, depth=5, heal=True)
        words = Document(default_model, text).lookahead(k=5, depth=5, heal=True, odds="words")
        more.append(words.cost.passes - tokens.cost.passes)
        errors.append(words.odds_error)
    assert statistics.median(more) <= 4, sorted(more)
    assert max(errors) <= TOLERANCE, sorted(errors)


@pytest.mark.slow
def test_unlikely_other_words_are_named_where_no_other_is_likely(default_model: Model) -> None:
    text = "My little brother found a strange key under a tree, and he was determined"
    result = Document(default_model, text).lookahead(k=5, depth=3, heal=True, odds="words")
    likeliest = Document(default_model, text).lookahead(k=12, depth=1, heal=True, odds="words").branches[5:]
    assert sum(other.share or 0.0 for other in result.rest) < 5 * LEAST, "all others are unlikely"
    assert len(result.rest) >= OTHERS_NAMED
    assert {other.text for other in result.rest[:OTHERS_NAMED]} & {branch.next_word for branch in likeliest}
    slow = Enumeration(default_model, Document(default_model, text).token_ids, text)
    for other in result.rest[:OTHERS_NAMED]:
        low, high = slow.probability(other.text or "")
        assert other.share is not None
        assert low - other.share_error - ROUNDING <= other.share <= high + other.share_error + ROUNDING


def prose(count: int, seed: int) -> list[str]:
    """Parts of English texts that begin with a sentence and are cut anywhere."""
    draw = random.Random(seed)
    folder = Path(__file__).parents[2] / "benchmarks" / "texts"
    texts = [
        prompt["text"]
        for name in ("answering", "retelling")
        for prompt in json.loads((folder / f"{name}.json").read_text())["prompts"]
    ]
    found = []
    for _ in range(count):
        whole = draw.choice(texts)
        start = draw.choice([0, *(place + 2 for place in range(len(whole) // 2) if whole.startswith(". ", place))])
        found.append(whole[start : start + draw.randrange(30, 300)])
    return found


@pytest.mark.parametrize("text", mostly_slow(["The keep", "Once upon a time ", "Then the thermo"], 0))
def test_a_prefetched_view_of_words_equals_the_one_after_accepting_which_then_costs_no_pass(
    models: list[Model], text: str
) -> None:
    options: dict[str, Any] = {"k": 3, "depth": 4, "odds": "words"}
    for model in models[1:]:
        document = Document(model, text)
        result = document.lookahead(heal=True, **options)
        views = [view for view in prefetch_views(document, result, most_nodes=2000, **options) if view]
        firsts = {branch.token_ids[: branch.pieces[0].tokens] for branch in result.branches if branch.pieces}
        assert {view.token_ids for view in views} >= firsts
        for view in views[:4]:
            branch = next(b for b in result.branches if b.token_ids[: len(view.token_ids)] == view.token_ids)
            document.accept(branch, len(view.token_ids))
            after = document.lookahead(**options)
            assert after.cost.passes == 0
            assert [(b.next_word, b.token_ids) for b in after.branches] == [
                (b.next_word, b.token_ids) for b in view.result.branches
            ]
            document.rewind(len(view.token_ids))
