"""The odds of a guessed word equal an enumeration of all its tokenizations, with plain forward passes."""

from __future__ import annotations

import codecs
import functools
import math
import random
from collections.abc import Collection
from typing import Any

import pytest

from lookahead_core import Document, Model
from lookahead_core.analysis.guess_odds import MAX_CHARACTERS, continuations_of, guess_odds, guess_odds_steps
from lookahead_core.errors import LookaheadError
from lookahead_core.text.boundaries import WORD, boundary_levels
from tests.conftest import CORPUS
from tests.support.families import plain_rows_by_length
from tests.support.parameters import mostly_slow
from tests.support.spelling import tokens_as_bytes

Path = tuple[int, ...]


class Enumeration:
    """All paths of tokens after a text that may spell one word, by plain forward passes over whole paths."""

    def __init__(
        self,
        model: Model,
        document: Document,
        heal: bool,
        temperature: float = 1.0,
        top_p: float = 1.0,
        banned: Collection[int] = (),
    ) -> None:
        self.model, self.before = model, document.text
        self.temperature, self.top_p, self.banned = temperature, top_p, banned
        self.typed_id = document.token_ids[-1]
        self.typed = document.reopens.encode() if heal else b""
        self.ids = document.token_ids[:-1] if self.typed else document.token_ids
        self.spelled = tokens_as_bytes(model.tokenizer)

    def bytes_of(self, path: Path) -> bytes:
        """The bytes that a path inserts."""
        return b"".join(self.spelled[i] for i in path)[len(self.typed) :]

    def rows(self, paths: list[Path]) -> list[list[float]]:
        """The probabilities of all next tokens after each path; only those that begin with the typed bytes first."""
        found = []
        rows = plain_rows_by_length(self.model.hf_model, [[*self.ids, *path] for path in paths])
        for path, row in zip(paths, rows, strict=True):
            if self.typed and path in ((), (self.typed_id,)):
                found.append(self.replacing[path])
            else:
                p = row.double().softmax(-1).tolist()
                found.append(self.heated([0.0 if i in self.banned else x for i, x in enumerate(p)]))
        return found

    def heated(self, p: list[float]) -> list[float]:
        """Probabilities at the temperature, cut to the likeliest ones that have top-p together."""
        p = [x ** (1 / self.temperature) for x in p]
        total, held, kept = math.fsum(p), 0.0, set()
        for i in sorted(range(len(p)), key=lambda i: -p[i]):
            if held < self.top_p * total:
                kept.add(i)
                held += p[i]
        return [x / held if i in kept else 0.0 for i, x in enumerate(p)]

    @functools.cached_property
    def replacing(self) -> dict[Path, list[float]]:
        """The probabilities of the first token, and of the one after the typed token, heated as ways of one text."""
        rows = plain_rows_by_length(self.model.hf_model, [self.ids, [*self.ids, self.typed_id]])
        first, after = (row.double().softmax(-1).tolist() for row in rows)
        begins = [self.spelled[i].startswith(self.typed) for i in range(len(first))]
        allowed = [b and (i not in self.banned or i == self.typed_id) for i, b in enumerate(begins)]
        first = [x if ok else 0.0 for x, ok in zip(first, allowed, strict=True)]
        after = [0.0 if i in self.banned else x for i, x in enumerate(after)]
        typed = first[self.typed_id] / (math.fsum(first) * math.fsum(after))
        ways = [0.0 if i == self.typed_id else x / math.fsum(first) for i, x in enumerate(first)]
        heated = self.heated([*ways, *(typed * x for x in after)])
        replaced, following = heated[: len(first)], heated[len(first) :]
        kept = math.fsum(following)
        replaced[self.typed_id] = kept
        return {(): replaced, (self.typed_id,): [x / kept if kept else 0.0 for x in following]}

    def state(self, word: str, text: str, final: bool) -> bool | None:
        """Whether a text begins with the word, and the word ends there; None if that is not known yet."""
        if not text.startswith(word) or (text == word and not final):
            return False if final else None
        after = text[len(word) :]
        if final or boundary_levels((word,), self.before, after)[0] >= WORD:
            return not final or boundary_levels((word,), self.before, f"{after} ")[0] >= WORD
        return None if boundary_levels((word,), self.before, f"{after} ")[0] >= WORD else False

    def probability(self, word: str) -> tuple[float, float]:
        """Bounds of the probability of one next word: of all paths that spell it and end it, however unlikely.

        What leaves open whether the word has ended is followed where that is at least a hundredth as likely.
        """
        spelled = word.encode()
        low = unknown = 0.0
        waiting: list[tuple[Path, float, float]] = [((), 1.0, 1.0)]  # the last number: since the word was spelled
        while waiting:
            longer = []
            rows = self.rows([path for path, _, _ in waiting])
            for (path, mass, since), row in zip(waiting, rows, strict=True):
                was = bool(path) and self.bytes_of(path).startswith(spelled)
                for token_id, p in enumerate(row):
                    own = self.bytes_of((*path, token_id))
                    if not p or not (own.startswith(spelled) or spelled.startswith(own)):
                        continue
                    text = codecs.getincrementaldecoder("utf-8")("replace").decode(own)
                    state = self.state(word, text, final=token_id in self.model.end_token_ids)
                    if state is not None:
                        low += mass * p * state
                    elif self.spelled[token_id] and (not was or since * p > 0.01):
                        longer.append(((*path, token_id), mass * p, since * p if was else 1.0))
                    else:
                        unknown += mass * p
            waiting = longer
        return low, low + unknown


def check(model: Model, text: str, guess: str, heal: bool, **options: Any) -> float:
    document = Document(model, text)
    found = guess_odds(document, guess, heal=heal, **options)
    reference = Enumeration(model, document, heal, **options)
    bounds = [reference.probability(one) for one in found.texts]
    low, high = (math.fsum(each) for each in zip(*bounds, strict=True))
    assert found.low <= high * (1 + 1e-4) + 1e-9, (text, guess, heal)
    assert low <= found.high * (1 + 1e-4) + 1e-9, (text, guess, heal)
    # What neither knows is mostly half a character after the word, which this model finds likely.
    assert found.low >= 0.9 * low - 1e-9, (text, guess, found)
    assert found.high - found.low <= 1.1 * (high - low) + 0.02 * high + 1e-9, (text, guess, found)
    assert document.text == text
    return found.probability


@pytest.mark.parametrize("seed", mostly_slow(range(3), 1))
def test_the_odds_of_a_guess_equal_an_enumeration_of_its_tokenizations(tiny_model: Model, seed: int) -> None:
    draw = random.Random(seed)
    line = draw.choice(CORPUS)
    cut = draw.randrange(6, len(line) - 12)
    guess = draw.choice([line[cut:].split()[0], "sea", "a", "the", ","])
    check(tiny_model, line[:cut], guess, heal=bool(seed % 2))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60))
def test_the_odds_of_many_guesses_equal_the_enumeration(tiny_model: Model, seed: int) -> None:
    draw = random.Random(1000 + seed)
    line = draw.choice(CORPUS)
    cut = draw.randrange(4, len(line) - 8)
    guess = draw.choice(
        [line[cut:].split()[0], draw.choice(line.split()), "keeper's", "sea-side", "42", ",", "é", "中"]
    )
    check(tiny_model, line[:cut], guess[:8], heal=bool(seed % 2))


@pytest.mark.parametrize("seed", mostly_slow(range(12), 1))
def test_bans_temperature_and_top_p_count_for_a_guess_as_they_do_for_rows(tiny_model: Model, seed: int) -> None:
    draw = random.Random(2000 + seed)
    line = draw.choice(CORPUS)
    cut = draw.randrange(6, len(line) - 12)
    likely = [branch.token_ids[0] for branch in Document(tiny_model, line[:cut]).lookahead(k=8, depth=1).branches]
    options = {
        "temperature": draw.choice([0.6, 1.5]),
        "top_p": draw.choice([0.8, 1.0]),
        "banned": draw.sample(likely, 3),
    }
    check(tiny_model, line[:cut], line[cut:].split()[0], heal=bool(seed % 2), **options)


@pytest.mark.slow
def test_a_word_to_avoid_has_no_odds_and_the_others_gain(tiny_model: Model) -> None:
    for heal in (False, True):
        document = Document(tiny_model, "The keeper looked out over the ")
        assert guess_odds(document, "sea", heal=heal).probability > 0
        assert guess_odds(document, "sea", heal=heal, avoid="sea").high == 0
        assert guess_odds(document, "a", heal=heal, avoid="sea").high >= guess_odds(document, "a", heal=heal).high
    for wrong in ({"temperature": 3.0}, {"top_p": 0.0}, {"banned": [10**6]}, {"avoid": " sea"}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            guess_odds(document, "sea", **wrong)


def test_a_guess_is_a_new_word_or_continues_the_text_or_completes_its_last_word() -> None:
    assert continuations_of("", "keeper") == ("keeper",)
    assert continuations_of("The ", " keeper ") == ("keeper",)
    assert continuations_of("The", "keeper") == (" keeper", "keeper")
    assert continuations_of("The kee", "keeper") == (" keeper", "keeper", "per")
    assert continuations_of("The keeper", "keeper") == (" keeper", "keeper")
    assert continuations_of("The keeper", ",") == (" ,", ",")


@pytest.mark.parametrize(
    ("guess", "sentence"),
    [("", "Type the word"), (" \n", "Type the word"), ("a" * (MAX_CHARACTERS + 1), "The guess has 81 characters")],
)
def test_a_guess_that_is_empty_or_too_long_is_refused(guess: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        continuations_of("The", guess)


def test_a_changed_text_ends_the_scoring(tiny_model: Model) -> None:
    document = Document(tiny_model, "Once upon a")
    steps = guess_odds_steps(document, "time")
    next(steps)
    document.text = "Once upon no"
    with pytest.raises(LookaheadError, match="text has changed"):
        list(steps)


def test_scoring_a_guess_does_not_disturb_a_lookahead(tiny_model: Model) -> None:
    document, alone = Document(tiny_model, "Once upon a"), Document(tiny_model, "Once upon a")
    growing: Any = document.lookahead_steps(k=3, depth=4)
    next(growing)
    guess_odds(document, "time")
    *_, last = growing
    assert [one.token_ids for one in last.result.branches] == [
        one.token_ids for one in alone.lookahead(k=3, depth=4).branches
    ]
    document.check()
