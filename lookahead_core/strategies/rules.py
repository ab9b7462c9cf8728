"""What may come next, whichever way it is chosen: penalties, what must not be said, what must, how short, how long."""

from __future__ import annotations

import math
from array import array
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import torch

from lookahead_core.strategies.sampling import counted, only, repeated, repeats, without
from lookahead_core.text.boundaries import is_space_separated
from lookahead_core.text.codec import SURROGATE, TextCodec
from lookahead_core.validation import as_token_id, check_integer, check_number

Word: TypeAlias = "str | int | Sequence[int]"
"""A string, a token id, or token ids in their order. Checked options hold strings and tuples of ids only."""
LONGEST = 65_536
"""The most tokens that may be asked for at once."""
MOST_WORDS = 1000


@dataclass(frozen=True)
class LogitRules:
    """Options that streams and beams share."""

    max_new_tokens: int = 40
    """How many tokens to add at most, an end token included."""
    min_new_tokens: int = 0
    """How many tokens come before an end token may; stops do not wait for them."""
    repetition_penalty: float = 1.0
    """Scores of tokens that stood before are divided by this, or multiplied where they are negative."""
    frequency_penalty: float = 0.0
    """What a token's score loses for each time that it stood before."""
    presence_penalty: float = 0.0
    """What a token's score loses once, if it stood before."""
    no_repeat_ngram_size: int = 0
    """So many tokens in a row never come twice; 0 lets them."""
    forbidden: Collection[Word] = ()
    """Strings that the text must not come to hold however it is cut into tokens, single token ids, or sequences of
    them; an end token is ruled out like any other."""
    forced: Collection[Word] = ()
    """Words, or sequences of token ids, that must come before an end token or the length ends the text, at the latest
    when they just fit; stops do not wait for them."""

    def __post_init__(self) -> None:
        check_integer("max_new_tokens", self.max_new_tokens, 1, LONGEST)
        check_integer("min_new_tokens", self.min_new_tokens, 0, self.max_new_tokens)
        check_integer("no_repeat_ngram_size", self.no_repeat_ngram_size, 0, LONGEST)
        check_number("repetition_penalty", self.repetition_penalty, 0, 100, above=True)
        check_number("frequency_penalty", self.frequency_penalty, -1000, 1000)
        check_number("presence_penalty", self.presence_penalty, -1000, 1000)
        for name in ("forbidden", "forced"):
            object.__setattr__(self, name, checked_words(name, getattr(self, name)))
        for word in set(self.forced) & set(self.forbidden):
            raise ValueError(f"{word!r} is both forced and forbidden; take it out of one of the two.")
        size = self.no_repeat_ngram_size
        for word in self.forced:
            if not size or not isinstance(word, tuple):
                continue
            runs = [word[start : start + size] for start in range(len(word) - size + 1)]
            if len(set(runs)) < len(runs):
                raise ValueError(f"{word!r} is forced, and holds the same {size} tokens twice; allow longer n-grams.")


def checked_words(name: str, given: Any) -> tuple[str | tuple[int, ...], ...]:
    """Words, each once: strings, sequences of ids, or single ids. A string or an id alone is a list of one."""
    listed = [given] if isinstance(given, str | int) else given
    if not isinstance(listed, Collection) or isinstance(listed, bytes):
        raise ValueError(f"{name} is {given!r}, and must be a list of strings or of lists of token ids.")
    if len(listed) > MOST_WORDS:
        raise ValueError(f"{name} holds {len(listed):,} entries, and may hold at most {MOST_WORDS:,}.")
    return tuple(dict.fromkeys(_checked_word(name, word) for word in listed))


def _checked_word(name: str, word: Any) -> str | tuple[int, ...]:
    if isinstance(word, str):
        if not word:
            raise ValueError(f"{name} holds an empty string, which stands everywhere; leave it out.")
        if SURROGATE.search(word):
            raise ValueError(f"{name} holds {word!r}, half of a pair of characters that belong together; remove it.")
        return word
    ids = tuple(map(as_token_id, word)) if isinstance(word, Iterable) else (as_token_id(word),)
    if not ids or min(ids) < 0:
        raise ValueError(f"{name} holds {word!r}, and must hold strings or lists of token ids from 0.")
    return ids


class ModelRules:
    """Rules for one model: what they make of a row of scores, given the path so far."""

    def __init__(self, rules: LogitRules, stop: frozenset[int], codec: TextCodec, vocabulary: int) -> None:
        self.rules = rules
        self.stop = stop
        self.codec = codec
        self.forbidden_ids = [word for word in rules.forbidden if isinstance(word, tuple)]
        self.forbidden_texts = [word.encode() for word in rules.forbidden if isinstance(word, str)]
        self.forced = [word if isinstance(word, tuple) else self._spelled(cast(str, word)) for word in rules.forced]
        self._check(vocabulary)
        never = {word[0] for word in self.forbidden_ids if len(word) == 1}
        self._never = sorted(never.union(*map(codec.tokens_containing, self.forbidden_texts)))
        """Tokens that are ruled out wherever they would stand."""

    @property
    def bare(self) -> bool:
        """Whether rows stay as they are."""
        rules = self.rules
        penalties = (rules.repetition_penalty != 1, rules.frequency_penalty, rules.presence_penalty)
        return not any((*penalties, rules.no_repeat_ngram_size, rules.min_new_tokens, rules.forbidden, self.forced))

    def apply(self, scores: torch.Tensor, path: Sequence[int], new: int) -> torch.Tensor:
        """The scores after a path whose last `new` tokens are new, with everything but temperature and cuts applied."""
        rules, missing = self.rules, self.missing(path[len(path) - new :])
        if rules.repetition_penalty != 1:
            scores = repeated(scores, path, rules.repetition_penalty)
        if self._never:
            scores = without(scores, self._never)
        if banned := self._banned(path, new, missing):
            scores = without(scores, banned)
        if missing and (needed := self._needed(path[len(path) - new :], missing)) is not None:
            scores = only(scores, needed)
        if rules.frequency_penalty or rules.presence_penalty:
            scores = counted(scores, path, rules.frequency_penalty, rules.presence_penalty)
        return scores

    def may_end(self, new: Sequence[int]) -> bool:
        """Whether an end token may come after these."""
        return len(new) >= self.rules.min_new_tokens and not self.missing(new)

    def missing(self, new: Sequence[int]) -> list[tuple[int, ...]]:
        """The forced words that have not come yet."""
        held = array("q", new).tobytes() if self.forced else b""
        return [word for word in self.forced if not _holds(held, word)]

    def _banned(self, path: Sequence[int], new: int, missing: Sequence[tuple[int, ...]]) -> set[int]:
        """Tokens that must not follow this path, and might follow another one."""
        rules = self.rules
        found = repeats(path, rules.no_repeat_ngram_size) if rules.no_repeat_ngram_size else set()
        found |= {word[-1] for word in self.forbidden_ids if tuple(path[len(path) - len(word) + 1 :]) == word[:-1]}
        for text in self.forbidden_texts:
            found |= self._completing(text, path)
        if new < rules.min_new_tokens or missing:
            found |= self.stop
        return found

    def _needed(self, new: Sequence[int], missing: Sequence[tuple[int, ...]]) -> set[int] | None:
        """The only tokens after which all forced words still fit in, one after the other; None where any will do."""
        total, left = sum(map(len, missing)), self.rules.max_new_tokens - len(new) - 1
        if total <= left:
            return None
        # A token helps by as much as it has of a word that is missing: what it goes on with, or begins.
        helps: dict[int, int] = {}
        for word in missing:
            for done in range(len(word)):
                if tuple(new[len(new) - done :]) == word[:done]:
                    helps[word[done]] = max(helps.get(word[done], 0), done + 1)
        return {token_id for token_id, help in helps.items() if total - help <= left}

    def _completing(self, text: bytes, path: Sequence[int]) -> set[int]:
        """Tokens that would complete a string that the end of a path has begun."""
        tail = b""
        for token_id in reversed(path):
            if len(tail) >= len(text) - 1:
                break
            tail = self.codec.bytes_of(token_id) + tail
        found: set[int] = set()
        for size in range(1, min(len(text), len(tail) + 1)):
            if tail.endswith(text[:size]):
                found.update(self.codec.tokens_starting_with(text[size:]))
        return found

    def _spelled(self, word: str) -> tuple[int, ...]:
        """The tokens of a word within a text: with a space before it, in scripts that have spaces."""
        return tuple(
            token.token_id for token in self.codec.encode(" " * is_space_separated(word[0]) + word, continuing=True)
        )

    def _check(self, vocabulary: int) -> None:
        if self.forbidden_texts:
            self.codec.require_tokenizer()
        for token_id in (one for word in (*self.forbidden_ids, *self.forced) for one in word):
            if token_id >= vocabulary:
                raise ValueError(f"There is no token {token_id}; this model's ids go from 0 to {vocabulary - 1}.")
        if self.stop & {one for word in self.forced for one in word}:
            raise ValueError("forced holds an end token, after which nothing can come; set min_new_tokens instead.")
        if (needed := sum(map(len, self.forced))) > self.rules.max_new_tokens:
            raise ValueError(
                f"max_new_tokens is {self.rules.max_new_tokens}, and the forced words alone take {needed}; raise it."
            )
        for word in self.forced:
            text = b"".join(map(self.codec.bytes_of, word))
            held = array("q", word).tobytes()
            if any(_holds(held, ids) for ids in self.forbidden_ids) or any(one in text for one in self.forbidden_texts):
                raise ValueError(f"A forced word ({text.decode(errors='replace') or word!r}) holds a forbidden one.")


def _holds(path: bytes, word: tuple[int, ...]) -> bool:
    """Whether ids, eight bytes each, hold these in a row."""
    sought = array("q", word).tobytes()
    place = path.find(sought)
    while place % 8 and place >= 0:
        place = path.find(sought, place + 1)
    return place >= 0


class RuledOutError(ValueError):
    """The options leave no token to choose from after so many new ones."""

    def __init__(self, new: int) -> None:
        super().__init__(
            f"After {new} tokens the options rule every token out; allow more n-grams, or forbid and force fewer words."
        )


def require_open(scores: torch.Tensor, new: int) -> None:
    """Raise where the rules have left no token to choose from."""
    if float(scores.max()) == -math.inf:
        raise RuledOutError(new)
