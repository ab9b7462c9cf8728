"""The search towards a word: its bounds and branches are those of an enumeration of all texts, by plain forwards."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
import torch

from lookahead_core import Document, Model, TextError, load_model, stream_batch
from tests.conftest import tiny_llama
from tests.support.families import make
from tests.support.parameters import mostly_slow

TOKENS = ["a", "s", "e", "▁", "▁sea", "sea", "▁se", "son", "▁a", ".", "an", "<end>"]
END = TOKENS.index("<end>")
TEXTS = [token.replace("▁", " ") for token in TOKENS[:END]] + [""]
BEFORE = "a sea."


@pytest.fixture(scope="module")
def model() -> Model:
    """A model with twelve tokens, so that all texts of some tokens can be enumerated."""
    return few_tokens(seed=3)


def few_tokens(seed: int) -> Model:
    import tokenizers
    import transformers

    vocabulary = {token: index for index, token in enumerate(TOKENS)}
    made = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocabulary, merges=[]))
    made.normalizer = tokenizers.normalizers.Replace(" ", "▁")
    made.decoder = tokenizers.decoders.Replace("▁", " ")
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<end>")
    return load_model(tiny_llama(len(TOKENS), seed, eos_token_id=END), tokenizer=tokenizer)


def plain_logits(model: Model, token_ids: list[int]) -> torch.Tensor:
    with torch.no_grad():
        return model.hf_model(torch.tensor([token_ids]), use_cache=False).logits[0, -1].double()


def all_texts(model: Model, prompt: list[int], size: int, first: list[float] | None = None) -> dict[Any, float]:
    """The probability of each sequence of `size` tokens, shorter where it ends, by plain forward passes.

    `first` are the probabilities of the first token, if they are not the model's own.
    """
    found: dict[tuple[int, ...], float] = {(): 1.0}
    for length in range(size):
        growing = [path for path in found if path[-1:] != (END,)]
        with torch.no_grad():
            logits = model.hf_model(torch.tensor([[*prompt, *path] for path in growing]), use_cache=False).logits
        rows = [first] if first and not length else logits[:, -1].double().softmax(-1).tolist()
        ended = {path: p for path, p in found.items() if path[-1:] == (END,)}
        found = ended | {
            (*path, token_id): found[path] * p
            for path, row in zip(growing, rows, strict=True)
            for token_id, p in enumerate(row)
        }
    return found


def ways_to(word: str, before: str, texts: dict[Any, float], depth: int, typed: str = "") -> dict[Any, float]:
    """The probability of each way to the word: the tokens up to its last letter, of texts in which it ends there.

    `typed` is the beginning of the first token that stands in `before` already.
    """
    found: dict[tuple[int, ...], float] = {}
    for path, p in texts.items():
        pieces = ["", *(TEXTS[token_id] for token_id in path)]
        reach = [
            len(before) - len(typed) * (size > 0) + len("".join(pieces[: size + 1])) for size in range(len(pieces))
        ]
        text = before + "".join(pieces)[len(typed) :] + ("." if path[-1:] == (END,) else "")
        ends = (match.start() + len(word) for match in re.finditer(rf"(?<!\w)(?={re.escape(word)}[^\w])", text))
        end = next((end for end in ends if len(before) < end <= reach[min(depth, len(path))]), None)
        if end is not None:
            size = next(size for size in range(1, len(reach)) if reach[size] >= end)
            found[path[:size]] = found.get(path[:size], 0.0) + p
    return found


@pytest.mark.slow
@pytest.mark.parametrize("word", ["sea", "a", "se", "season", "a sea", "an"])
@pytest.mark.parametrize("before", mostly_slow(["a se", "a sea.", "a "], 1))
def test_a_complete_search_finds_the_exact_odds_and_the_likeliest_paths(model: Model, word: str, before: str) -> None:
    document = Document(model, before)
    result = document.lookahead(towards=word, k=4, depth=3, budget=4096, width=64)
    ways = ways_to(word, before, all_texts(model, document.token_ids, 4), 3)
    assert result.word is not None
    assert (result.word.word, result.word.within) == (word, 3)
    assert result.word.low == pytest.approx(math.fsum(ways.values()), rel=1e-4)
    assert result.word.high == pytest.approx(result.word.low, abs=1e-6)
    likeliest = sorted(ways, key=lambda path: -ways[path])
    assert [branch.token_ids for branch in result.branches] == likeliest[:4]
    texts = all_texts(model, document.token_ids, 3)
    for branch in result.branches:
        whole = math.fsum(p for path, p in texts.items() if path[: len(branch.token_ids)] == branch.token_ids)
        assert branch.probability == pytest.approx(whole, rel=1e-4)
        start, end = branch.word_tokens or (0, 0)
        assert word in before + branch.text
        assert end == len(branch.token_ids)
        assert start == 0 or word in "".join(TEXTS[token_id] for token_id in branch.token_ids[start:])
        assert word not in "".join(TEXTS[token_id] for token_id in branch.token_ids[start + 1 :])


@pytest.mark.slow
@pytest.mark.parametrize("seed", mostly_slow(range(4), 1))
@pytest.mark.parametrize(("budget", "width"), [(1, 1), (2, 1), (5, 2), (20, 8), (100, 16)])
def test_the_bounds_hold_at_each_step_and_never_widen(seed: int, budget: int, width: int) -> None:
    model = few_tokens(seed)
    document = Document(model, BEFORE)
    exact = math.fsum(ways_to("sea", BEFORE, all_texts(model, document.token_ids, 4), 3).values())
    low, high = 0.0, 1.0
    for step in document.lookahead_steps(towards="sea", depth=3, budget=budget, width=width):
        odds = step.result.word
        assert odds is not None
        assert low - 1e-6 <= odds.low <= exact + 1e-6
        assert exact - 1e-6 <= odds.high <= high + 1e-6
        low, high = odds.low, odds.high
    assert high < 1
    if low > 0:  # else likely branches were grown too
        assert document.tree.work.tokens <= len(document.token_ids) + budget
        assert document.tree.work.passes <= 1 + 2 * math.ceil(budget / width)


@pytest.mark.parametrize(
    ("before", "word"), [("a se", "sea"), ("a se", "se"), ("a sea", "sea"), ("a s", "sea"), ("a ", "sea")]
)
def test_with_healing_the_odds_are_conditional_on_what_was_typed(model: Model, before: str, word: str) -> None:
    document = Document(model, before)
    *prompt, last = document.token_ids
    typed = TEXTS[last]
    logits = plain_logits(model, prompt)
    matching = [TEXTS[token_id].startswith(typed) for token_id in range(len(TEXTS))]
    first = torch.where(torch.tensor(matching), logits, -math.inf).softmax(-1).tolist()
    ways = ways_to(word, before, all_texts(model, prompt, 4, first), 3, typed)
    found = document.lookahead(towards=word, k=3, depth=3, budget=4096, width=64, heal=True)
    assert found.given == typed
    assert found.word is not None
    assert found.word.low == pytest.approx(math.fsum(ways.values()), rel=1e-4)
    assert found.word.high == pytest.approx(found.word.low, abs=1e-6)
    assert [branch.token_ids for branch in found.branches] == sorted(ways, key=lambda path: -ways[path])[:3]
    document.accept(found.branches[0])
    assert re.search(rf"(?<!\w){word}$", document.text)


def test_banned_tokens_lead_nowhere_and_the_odds_are_renormalised(model: Model) -> None:
    document, banned = Document(model, BEFORE), {4, 6, END}
    texts = all_texts(model, document.token_ids, 3)
    rows: dict[Any, float] = {}
    for path, p in texts.items():
        for size in range(len(path)):
            rows[path[:size]] = rows.get(path[:size], 0.0) + (p if path[size] not in banned else 0.0)
    whole = {path[:size]: 0.0 for path in texts for size in range(4)}
    for path, p in texts.items():
        for size in range(len(path) + 1):
            whole[path[:size]] += p
    allowed = {
        path: math.prod(whole[path[: size + 1]] / rows[path[:size]] for size in range(3))
        for path in texts
        if banned.isdisjoint(path)
    }
    exact = math.fsum(ways_to("sea", BEFORE, allowed, 2).values())
    found = document.lookahead(towards="sea", depth=2, budget=4096, banned=banned)
    assert found.word is not None
    assert found.word.low == pytest.approx(exact, rel=1e-3)
    assert found.word.high == pytest.approx(exact, abs=1e-5)
    assert all(banned.isdisjoint(branch.token_ids) for branch in found.branches)


def test_without_a_path_to_the_word_the_branches_are_those_of_mode_likely(model: Model) -> None:
    document = Document(model, BEFORE)
    found = document.lookahead(towards="zebra", k=3, depth=4, budget=40)
    plain = document.lookahead(k=3, depth=4)
    assert [branch.token_ids for branch in found.branches] == [branch.token_ids for branch in plain.branches]
    assert all(branch.word_tokens is None for branch in found.branches)
    assert found.word is not None
    assert found.word.low == 0
    assert 0 < found.word.high < 1


def test_a_second_search_needs_no_pass(model: Model) -> None:
    document = Document(model, BEFORE)
    first = document.lookahead(towards="sea", depth=4)
    again = document.lookahead(towards="sea", depth=4)
    assert (again.cost.passes, again.word) == (0, first.word)
    assert again.branches == first.branches
    assert document.lookahead(towards="an", depth=4).word != first.word


@pytest.mark.parametrize("mode", ["likely", "every_level", "forks", "best_first", "sampled"])
def test_branches_that_avoid_a_word_never_hold_it_and_renormalise(model: Model, mode: str) -> None:
    """The reference leaves out, at each token, those after which the text would hold the word, bounded or not yet."""
    document = Document(model, BEFORE)
    plain = document.lookahead(mode=mode, k=6, depth=4, temperature=1.5)
    avoided = document.lookahead(mode=mode, k=6, depth=4, temperature=1.5, avoid="sea")
    spells = re.compile(r"(?<!\w)sea(?!\w)")
    assert any(spells.search(branch.text) for branch in plain.branches)
    assert len(avoided.branches) >= 6 or mode == "forks"
    for branch in avoided.branches[:6]:
        assert not spells.search(branch.text)
        path = list(document.token_ids)
        text = BEFORE
        for token_id, logprob in zip(branch.token_ids, branch.logprobs, strict=True):
            logits = plain_logits(model, path)
            for other in range(len(TEXTS)):
                if len(spells.findall(text + TEXTS[other])) > len(spells.findall(BEFORE)):
                    logits[other] = -math.inf
            assert logprob == pytest.approx(float(logits.log_softmax(-1)[token_id]), abs=1e-4)
            path.append(token_id)
            text += TEXTS[token_id]
    probabilities = plain_logits(model, document.token_ids).softmax(-1)
    expected = {TEXTS[token_id]: float(probabilities[token_id]) for token_id in (4, 5)}
    assert {token.text: token.probability for token in avoided.banned} == pytest.approx(expected, rel=1e-4)


def test_a_typed_word_may_become_a_longer_one_but_not_the_word_to_avoid(model: Model) -> None:
    document, word = Document(model, "a s"), TEXTS.index("sea")
    plain = document.lookahead(k=20, depth=4, heal=True)
    assert (word,) in [branch.token_ids[:1] for branch in plain.branches]  # "sea" would replace "s"
    found = document.lookahead(avoid="sea", k=20, depth=4, heal=True)
    assert found.branches
    for branch in found.branches:
        assert not re.search(r"(?<!\w)sea(?!\w)", "a s" + branch.text)
    assert word in [token.token_id for token in found.banned]


def test_after_a_click_the_search_begins_at_the_new_end_of_the_text(model: Model) -> None:
    document = Document(model, BEFORE)
    result = document.lookahead(towards="sea", k=3, depth=4, budget=200)
    branch = next(branch for branch in result.branches if len(branch.token_ids) > 1)
    *_, ahead = document.steps_after(branch, 1, towards="sea", k=3, depth=4, budget=200)
    document.accept(branch, tokens=1)
    fresh = document.lookahead(towards="sea", k=3, depth=4, budget=200)
    assert [one.token_ids for one in fresh.branches] == [one.token_ids for one in ahead.result.branches]
    assert fresh.word == ahead.result.word


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"towards": 3}, "towards is 3, and must be a string."),
        ({"avoid": "x" * 41}, "avoid has 41 characters, and may have at most 40."),
        ({"towards": " sea"}, "towards is ' sea', and must not begin or end with white space."),
        ({"towards": "sea", "avoid": "an"}, "towards and avoid are both set; name a word in one of the two."),
        ({"avoid": "\ud800"}, "half of a surrogate pair"),
    ],
)
def test_a_wrong_word_is_refused_in_a_sentence(model: Model, options: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        Document(model, BEFORE).lookahead(**options)


def test_a_word_needs_a_tokenizer() -> None:
    document = Document(load_model(make("llama"), tokenizer=None), token_ids=[3, 1, 4])
    with pytest.raises(TextError, match="without a tokenizer"):
        document.lookahead(towards="sea")


@pytest.mark.slow
def test_a_likely_path_is_found_on_which_the_word_follows_some_tokens_later(default_model: Model) -> None:
    """The word is unlikely right after " it" and " for": only the probability of the path leads there."""
    text = (
        "The old captain came home after many years at sea. In the kitchen he had made a new recipe for a new recipe. "
        "He had made"
    )
    likeliest = max(Document(default_model, text).lookahead(k=5, depth=5).branches, key=lambda one: "wife" in one.text)
    assert " wife" in likeliest.text
    steered = Document(default_model, text).lookahead(k=5, depth=5, towards="wife")
    assert likeliest.text.split(" wife")[0] + " wife" in [branch.text for branch in steered.branches]


@pytest.mark.slow
def test_the_bounds_agree_with_sampled_texts_of_the_default_model(default_model: Model) -> None:
    """Whole words by a regular expression in texts drawn by streams; the bounds leave three standard errors."""
    document, draws, within = Document(default_model, "Once upon a time, an old keeper looked out over the"), 600, 6
    result = document.lookahead(towards="sea", depth=within, budget=256, width=32)
    assert result.word is not None
    hits = 0
    for start in range(0, draws, 60):
        texts = [""] * 60
        for index, step in stream_batch(
            [document] * 60, max_new_tokens=within + 1, temperature=1.0, seed=start, speculate=False
        ):
            texts[index] += step.text
        hits += sum(bool(re.search(r"(?<!\w)sea(?=\W)", text)) for text in texts)
    share = hits / draws
    margin = 3 * math.sqrt(max(share, 1 / draws) * (1 - share) / draws)
    assert result.word.low - margin <= share <= result.word.high + margin
    assert result.word.low > 0.7 * (share - margin)
