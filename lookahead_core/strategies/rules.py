"""Rules on which tokens may come next: penalties, forbidden and forced phrases, n-gram repetition, minimum length.

Streams and beam searches share these options. They change scores before temperature and cuts are applied.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import torch

from lookahead_core.strategies.sampling import (
    apply_count_penalties,
    apply_repetition_penalty,
    exclude_tokens,
    keep_only,
    ngram_completions,
)
from lookahead_core.text.boundaries import is_space_separated
from lookahead_core.text.codec import SURROGATE, TextCodec
from lookahead_core.validation import as_token_id, check_integer, check_number, short_repr

Phrase: TypeAlias = "str | int | Sequence[int]"
"""A string, a token id, or a sequence of token ids."""
CheckedPhrase: TypeAlias = "str | tuple[int, ...]"
"""A phrase in checked options: a string, or a tuple of token ids; a single id becomes a tuple of one."""
MAX_GENERATED_TOKENS = 65_536
"""Highest value of the options `max_new_tokens`, `min_new_tokens`, `no_repeat_ngram_size` and `max_words`."""
MAX_PHRASES = 1000
"""Highest number of entries in each of the options `forbidden`, `forced`, `stop` and `stop_ids`."""
_ID_BYTES = 8
"""Bytes per token id in the arrays that are searched for runs of ids."""


@dataclass(frozen=True)
class LogitRules:
    """The options that streams and beam searches share; `RuleKeywords` explains each.

    Making them raises a ValueError for a wrong value, or for phrases that contradict other options. Phrases are brought
    into the form that `checked_phrases` returns.
    """

    max_new_tokens: int = 40
    min_new_tokens: int = 0
    repetition_penalty: float = 1.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    no_repeat_ngram_size: int = 0
    forbidden: Collection[Phrase] = ()
    forced: Collection[Phrase] = ()

    def __post_init__(self) -> None:
        check_integer("max_new_tokens", self.max_new_tokens, 1, MAX_GENERATED_TOKENS)
        check_integer("min_new_tokens", self.min_new_tokens, 0, self.max_new_tokens)
        check_integer("no_repeat_ngram_size", self.no_repeat_ngram_size, 0, MAX_GENERATED_TOKENS)
        check_number("repetition_penalty", self.repetition_penalty, 0, 100, above=True)
        check_number("frequency_penalty", self.frequency_penalty, -1000, 1000)
        check_number("presence_penalty", self.presence_penalty, -1000, 1000)
        for name in ("forbidden", "forced"):
            object.__setattr__(self, name, checked_phrases(name, getattr(self, name)))
        for phrase in set(self.forced) & set(self.forbidden):
            raise ValueError(f"{short_repr(phrase)} is both forced and forbidden; take it out of one of the two.")
        size = self.no_repeat_ngram_size
        for phrase in self.forced:
            if not size or not isinstance(phrase, tuple):
                continue
            ngrams = [phrase[start : start + size] for start in range(len(phrase) - size + 1)]
            if len(set(ngrams)) < len(ngrams):
                raise ValueError(
                    f"{short_repr(phrase)} is forced, and holds the same {size} tokens twice; allow longer n-grams."
                )


def checked_phrases(name: str, value: Any) -> tuple[CheckedPhrase, ...]:
    """Return the phrases of an option in order, without duplicates; a ValueError names the option if one is invalid.

    `value` is a collection of at most MAX_PHRASES strings, token ids or sequences of token ids; a single string or
    token id counts as a collection of one. In the result, token ids are tuples, also single ones. An empty collection
    is allowed, an empty phrase is not.
    """
    phrases = [value] if isinstance(value, str | int) else value
    if not isinstance(phrases, Collection) or isinstance(phrases, bytes):
        raise ValueError(f"{name} is {short_repr(value)}, and must be a list of strings or of lists of token ids.")
    if len(phrases) > MAX_PHRASES:
        raise ValueError(f"{name} holds {len(phrases):,} entries, and may hold at most {MAX_PHRASES:,}.")
    return tuple(dict.fromkeys(_checked_phrase(name, phrase) for phrase in phrases))


def _checked_phrase(name: str, phrase: Any) -> CheckedPhrase:
    """Return a phrase as a string or as a tuple of token ids; a ValueError names the option `name` if it is invalid.

    Valid are strings, token ids from 0, and collections of those ids; none may be empty, and no string may hold half of
    a surrogate pair.
    """
    if isinstance(phrase, str):
        if not phrase:
            raise ValueError(f"{name} holds an empty string, which every text contains; leave it out.")
        if SURROGATE.search(phrase):
            raise ValueError(f"{name} holds {short_repr(phrase)}, half of a surrogate pair; remove it.")
        return phrase
    ids = tuple(map(as_token_id, phrase)) if isinstance(phrase, Iterable) else (as_token_id(phrase),)
    if not ids or min(ids) < 0:
        raise ValueError(f"{name} holds {short_repr(phrase)}, and must hold strings or lists of token ids from 0.")
    return ids


def check_vocabulary(phrases: Iterable[Phrase], vocabulary: int) -> None:
    """Raise a ValueError if a phrase holds a token id of `vocabulary` or above; strings are skipped."""
    for token_id in (one for phrase in phrases if isinstance(phrase, tuple) for one in phrase):
        if token_id >= vocabulary:
            raise ValueError(f"There is no token {token_id}; this model's ids go from 0 to {vocabulary - 1}.")


class ModelRules:
    """The options of a `LogitRules`, made applicable to one model: its tokenizer, its end tokens and its vocabulary.

    `apply` changes the scores of next tokens accordingly. It keeps nothing about the text: the caller passes the tokens
    so far each time.
    """

    def __init__(self, rules: LogitRules, end_token_ids: frozenset[int], codec: TextCodec, vocabulary: int) -> None:
        """Prepare the rules for a model with `vocabulary` token ids, and tokenize forced strings.

        A ValueError is raised if the rules contradict each other (see `_check`) or name a token that the model does not
        have, and a TextError if they hold strings and the codec has no tokenizer.
        """
        self.rules = rules
        self.end_token_ids = end_token_ids
        self.codec = codec
        self.forbidden_ids = [phrase for phrase in rules.forbidden if isinstance(phrase, tuple)]
        self.forbidden_texts = [phrase.encode() for phrase in rules.forbidden if isinstance(phrase, str)]
        self.forced = [
            phrase if isinstance(phrase, tuple) else self._tokenized(cast(str, phrase)) for phrase in rules.forced
        ]
        self._check(vocabulary)
        always_excluded = {phrase[0] for phrase in self.forbidden_ids if len(phrase) == 1}
        self._always_excluded = sorted(always_excluded.union(*map(codec.tokens_containing, self.forbidden_texts)))
        """Tokens that are excluded at every position."""

    @property
    def changes_nothing(self) -> bool:
        """Whether all rules are off, so that `apply` returns every row unchanged."""
        rules = self.rules
        penalties = (rules.repetition_penalty != 1, rules.frequency_penalty, rules.presence_penalty)
        return not any((*penalties, rules.no_repeat_ngram_size, rules.min_new_tokens, rules.forbidden, self.forced))

    def apply(self, scores: torch.Tensor, path: Sequence[int], new: int) -> torch.Tensor:
        """Return the scores after `path` with all rules applied, not renormalised; excluded tokens have the score -inf.

        `scores`, of shape (vocabulary,), are logits or log-probabilities, and are not changed; a repetition penalty is
        exact on logits only. `path` holds the token ids that the model reads: of the prompt, and the last `new` of them
        generated. If the rules exclude every token, all scores are -inf, and no error is raised.
        """
        rules, missing = self.rules, self.missing_phrases(path[len(path) - new :])
        if rules.repetition_penalty != 1:
            scores = apply_repetition_penalty(scores, path, rules.repetition_penalty)
        if self._always_excluded:
            scores = exclude_tokens(scores, self._always_excluded)
        if excluded := self._excluded_after(path, new, missing):
            scores = exclude_tokens(scores, excluded)
        if missing and (required := self._required(path[len(path) - new :], missing)) is not None:
            scores = keep_only(scores, required)
        if rules.frequency_penalty or rules.presence_penalty:
            scores = apply_count_penalties(scores, path, rules.frequency_penalty, rules.presence_penalty)
        return scores

    def may_end(self, new: Sequence[int]) -> bool:
        """Whether the text may end after these generated tokens: `min_new_tokens` or more, with all forced phrases."""
        return len(new) >= self.rules.min_new_tokens and not self.missing_phrases(new)

    def missing_phrases(self, new: Sequence[int]) -> list[tuple[int, ...]]:
        """Return the token ids of each forced phrase that does not occur in these generated tokens yet, in order.

        A phrase occurs if its token ids do: another tokenization of the same string does not count.
        """
        packed = array("q", new).tobytes() if self.forced else b""
        return [phrase for phrase in self.forced if not _contains_run(packed, phrase)]

    def _excluded_after(self, path: Sequence[int], new: int, missing: Sequence[tuple[int, ...]]) -> set[int]:
        """Return the ids of the tokens that must not follow this path, besides those that are excluded everywhere.

        They would repeat an n-gram or complete a forbidden phrase, or are end tokens that come too early. `missing` are
        the forced phrases that do not occur in the last `new` tokens of the path, the generated ones.
        """
        rules = self.rules
        excluded = ngram_completions(path, rules.no_repeat_ngram_size) if rules.no_repeat_ngram_size else set()
        excluded |= {ids[-1] for ids in self.forbidden_ids if tuple(path[len(path) - len(ids) + 1 :]) == ids[:-1]}
        for text in self.forbidden_texts:
            excluded |= self._completions(text, path)
        if new < rules.min_new_tokens or missing:
            excluded |= self.end_token_ids
        return excluded

    def _required(self, new: Sequence[int], missing: Sequence[tuple[int, ...]]) -> set[int] | None:
        """Return the ids after which all missing phrases still fit into `max_new_tokens`, one after the other.

        None if they fit after any token; empty if after none. `new` are the generated token ids so far, and `missing`
        the forced phrases, one or more, that do not occur in them.
        """
        total, left = sum(map(len, missing)), self.rules.max_new_tokens - len(new) - 1
        if total <= left:
            return None
        # A token that continues or begins a missing phrase saves as many tokens as it completes of that phrase.
        saved: dict[int, int] = {}
        for phrase in missing:
            for done in range(len(phrase)):
                if tuple(new[len(new) - done :]) == phrase[:done]:
                    saved[phrase[done]] = max(saved.get(phrase[done], 0), done + 1)
        return {token_id for token_id, tokens in saved.items() if total - tokens <= left}

    def _completions(self, text: bytes, path: Sequence[int]) -> set[int]:
        """Return the ids of the tokens that would complete a forbidden string which the end of the path has begun.

        `text` is the string in UTF-8. A token completes it if it begins with the missing bytes. Tokens that contain all
        of it are not looked for.
        """
        tail = b""
        for token_id in reversed(path):
            if len(tail) >= len(text) - 1:
                break
            tail = self.codec.bytes_of(token_id) + tail
        completions: set[int] = set()
        for size in range(1, min(len(text), len(tail) + 1)):
            if tail.endswith(text[:size]):
                completions.update(self.codec.tokens_starting_with(text[size:]))
        return completions

    def _tokenized(self, phrase: str) -> tuple[int, ...]:
        """Return the token ids of a forced string as it would be tokenized in the middle of a text.

        A space is put before it if it begins with a letter or digit of a script that puts spaces between words. Raises
        TextError if the codec has no tokenizer.
        """
        text = " " * is_space_separated(phrase[0]) + phrase
        return tuple(token.token_id for token in self.codec.encode(text, continuing=True))

    def _check(self, vocabulary: int) -> None:
        """Raise a ValueError if the rules contradict each other or name an id that is not below `vocabulary`.

        They contradict if a forced phrase holds an end token or a forbidden phrase, or if the forced phrases together
        have more tokens than `max_new_tokens`. A TextError is raised if strings are forbidden and the codec has no
        tokenizer.
        """
        if self.forbidden_texts:
            self.codec.require_tokenizer()
        check_vocabulary((*self.forbidden_ids, *self.forced), vocabulary)
        if self.end_token_ids & {one for phrase in self.forced for one in phrase}:
            raise ValueError("forced holds an end token, after which nothing can come; set min_new_tokens instead.")
        if (needed := sum(map(len, self.forced))) > self.rules.max_new_tokens:
            raise ValueError(
                f"max_new_tokens is {self.rules.max_new_tokens}, and the forced words alone take {needed}; raise it."
            )
        for phrase in self.forced:
            text = b"".join(map(self.codec.bytes_of, phrase))
            packed = array("q", phrase).tobytes()
            if any(_contains_run(packed, ids) for ids in self.forbidden_ids) or any(
                one in text for one in self.forbidden_texts
            ):
                shown = text.decode(errors="replace") or phrase
                raise ValueError(
                    f"The forced phrase {short_repr(shown)} holds a forbidden one; take one of the two out."
                )


def _contains_run(packed: bytes, ids: tuple[int, ...]) -> bool:
    """Whether these ids occur one right after the other in `packed`: the bytes of an `array("q")` of token ids."""
    wanted = array("q", ids).tobytes()
    offset = packed.find(wanted)
    while offset % _ID_BYTES and offset >= 0:
        offset = packed.find(wanted, offset + 1)
    return offset >= 0


class RuledOutError(ValueError):
    """The error that the options exclude every token. `new` is the number of generated tokens before that position."""

    def __init__(self, new: int) -> None:
        super().__init__(
            f"After {new} tokens the options rule every token out; allow more n-grams, or forbid and force fewer words."
        )


def require_allowed_token(scores: torch.Tensor, new: int) -> None:
    """Raise a RuledOutError if all scores are -inf; `new` is the number of generated tokens so far."""
    if float(scores.max()) == -math.inf:
        raise RuledOutError(new)
