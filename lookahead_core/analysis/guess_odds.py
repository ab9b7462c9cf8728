"""How likely the model finds a guessed next word, summed over all tokenizations of the guess."""

from __future__ import annotations

import functools
import heapq
import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace

import torch

from lookahead_core.document.document import Document
from lookahead_core.engines.engine import prefill_in_chunks
from lookahead_core.errors import NO_TOKENS, LookaheadError
from lookahead_core.strategies.branch_growth import Growth, GrowthContext
from lookahead_core.strategies.healing import ReopenedToken, evaluate_healed_start, joint_row
from lookahead_core.strategies.lookahead_options import LookaheadOptions
from lookahead_core.strategies.next_word_rows import first_characters
from lookahead_core.strategies.sampling import apply_temperature, apply_top_p, exclude_tokens
from lookahead_core.text.boundaries import CONTEXT_CHARACTERS, WORD, boundary_levels
from lookahead_core.text.passage import TextEnd
from lookahead_core.tree import Node

MAX_CHARACTERS = 80
"""Maximum number of characters of a guess."""
MAX_RELATIVE_ERROR = 0.01
"""The search ends when the probability of open paths is at most this share of the guess's known probability."""
LEAST = 1e-12
"""The search ends when open paths have at most this probability."""
FOLLOWED = 128
"""Maximum number of tokens followed after the guess if they do not show whether its word ends, such as "'"."""
LEAST_SHARE = 1e-3
"""Minimum probability of such a token."""
WIDTH = 32
"""Maximum number of nodes per forward pass."""
MAX_NODES = 512
"""Maximum number of nodes of a search; paths that are still open then count in the error."""


@dataclass(frozen=True, slots=True)
class GuessOdds:
    """The probability that the next word is the guess, with bounds."""

    texts: tuple[str, ...]
    """The continuations that count as the guess: see `continuations_of`."""
    low: float
    """Lower bound: the probability of all paths that are known to spell one of them and end the word there, 0 to 1."""
    high: float
    """Upper bound: `low` plus the probability of all paths that may still do so."""

    @property
    def probability(self) -> float:
        """The estimated probability of the guess: the middle between `low` and `high`."""
        return (self.low + self.high) / 2

    @property
    def error(self) -> float:
        """Maximum difference between `probability` and the exact one."""
        return (self.high - self.low) / 2


def continuations_of(text: str, guess: str) -> tuple[str, ...]:
    """Return the distinct continuations of `text` that count as the guess.

    After white space, or without a text, it is the guess itself. Else these are a space and the guess; the guess
    directly after the text; and, if the text's last word is a beginning of the guess, the rest of the guess.
    Raises ValueError with a sentence if the guess is empty or has more than MAX_CHARACTERS characters.
    """
    guess = guess.strip()
    if not guess:
        raise ValueError("Type the word that you expect next.")
    if len(guess) > MAX_CHARACTERS:
        raise ValueError(f"The guess has {len(guess)} characters, and at most {MAX_CHARACTERS} are allowed.")
    if not text or text[-1].isspace():
        return (guess,)
    begun = text.split()[-1]
    rest = (guess[len(begun) :],) if guess.startswith(begun) and guess != begun else ()
    return tuple(dict.fromkeys((f" {guess}", guess, *rest)))


def guess_odds(
    document: Document,
    guess: str,
    *,
    heal: bool = False,
    temperature: float = 1.0,
    top_p: float = 1.0,
    banned: Collection[int] = (),
    avoid: str = "",
) -> GuessOdds:
    """Return the probability that the next word is the guess, and that the word ends there.

    `guess` is one or several words; white space around it is ignored. With `heal`, the last typed token is re-opened,
    and `banned` and `avoid` exclude tokens, as in `Document.lookahead`. `temperature`, then `top_p`, apply to each
    token; to a token that replaces the re-opened one as in `joint_row`. Usually takes two to six forward passes. Raises
    ValueError if the guess is empty or has more than MAX_CHARACTERS characters, or for a wrong option, and the errors
    of `guess_odds_steps`.
    """
    options = LookaheadOptions(temperature=temperature, top_p=top_p, banned=banned, avoid=avoid)
    return next(odds for odds in guess_odds_steps(document, guess, options, heal=heal) if odds is not None)


def guess_odds_steps(
    document: Document, guess: str, options: LookaheadOptions | None = None, *, heal: bool = False
) -> Iterator[GuessOdds | None]:
    """Yield None after each forward pass, and at last the result of `guess_odds`.

    Of the options, `temperature`, `top_p`, `banned` and `avoid` count. Raises LookaheadError if the text changes
    between two steps, or at first if it is empty and the model has no start token.
    """
    texts = continuations_of(document.text, guess)
    options = options or LookaheadOptions()
    options.check_vocabulary(document.model.vocabulary)
    head = document.tree.head
    if not head.depth:
        raise LookaheadError(NO_TOKENS)
    search = _GuessSearch(document, texts, document.reopened_token() if heal else None, options)
    engine = document.model.engine
    for _ in prefill_in_chunks(engine, search.base):
        yield None
    if search.reopened is not None:
        search.advance_reopened(search.reopened)
        yield None
    while paths := search.next_paths():
        rows = engine.evaluate([search.node_of(path) for path in paths])
        for path, row in zip(paths, rows, strict=True):
            search.advance(path, row)
        yield None
        if document.tree.head is not head:
            raise LookaheadError("The text has changed while the guess was scored.")
    yield GuessOdds(texts, min(1.0, search.low), min(1.0, search.low + search.open))


@functools.lru_cache(maxsize=100_000)
def _ends(before: str, text: str, after: str) -> bool | None:
    """Return whether a word certainly ends between `text` and `after`; None if characters after `after` decide that.

    `before` is the text before `text`.
    """
    if boundary_levels((text,), before, after)[0] >= WORD:
        return True
    return None if boundary_levels((text,), before, f"{after} ")[0] >= WORD else False


@dataclass(frozen=True, slots=True)
class _Path:
    """A path of tokens that spells a beginning of a continuation, or all of it without showing that the word ends."""

    token_ids: tuple[int, ...]
    mass: float
    characters: str
    text_end: TextEnd
    typed: bytes = b""

    def __lt__(self, other: _Path) -> bool:
        return self.mass > other.mass

    @property
    def spelled(self) -> bytes:
        return self.characters.encode() + self.text_end.partial


@dataclass(slots=True)
class _GuessSearch:
    document: Document
    texts: Sequence[str]
    reopened: ReopenedToken | None
    options: LookaheadOptions
    low: float = 0.0
    """Probability of the paths that spell a continuation and end the word there."""
    lost: float = 0.0
    """Probability of the paths that may do so and are not followed."""
    base: Node = field(init=False)
    before: str = field(init=False)
    """The last characters of the text, which decide where the next word ends."""
    _growth: Growth = field(init=False)
    """Knows the tokens that the options exclude."""
    _waiting: list[_Path] = field(init=False)
    _nodes: int = 0

    def __post_init__(self) -> None:
        model, avoid = self.document.model, self.options.avoid
        context = GrowthContext(words=self.document.word_tokens(avoid) if avoid else None)
        self._growth = Growth(model.engine, self.options, model.end_token_ids, context)
        head = self.document.tree.head
        self.base = head if self.reopened is None or head.parent is None else head.parent
        self.before = self.document.text[-CONTEXT_CHARACTERS:]
        self._waiting = [_Path((), 1.0, "", self.document.passage.end, self.reopened.text if self.reopened else b"")]

    @property
    def open(self) -> float:
        """Probability of all paths that may still turn out to spell the guess."""
        return self.lost + math.fsum(path.mass for path in self._waiting)

    def next_paths(self) -> list[_Path]:
        """Remove and return the likeliest waiting paths, at most `WIDTH`; none if the search is over."""
        waiting = self.open - self.lost
        if waiting <= MAX_RELATIVE_ERROR * self.low or waiting <= LEAST or self._nodes >= MAX_NODES:
            return []
        paths = [heapq.heappop(self._waiting) for _ in range(min(WIDTH, len(self._waiting)))]
        self._nodes += len(paths)
        return paths

    def node_of(self, path: _Path) -> Node:
        return self.document.tree.descend(self.base, path.token_ids)

    def advance(self, path: _Path, row: torch.Tensor) -> None:
        """Add an evaluated path's results; `row` has the log-probabilities of the next token."""
        excluded = self._growth.excluded_after(self.node_of(path))
        self._advance(path, self._probabilities(exclude_tokens(row, excluded) if excluded else row))

    def advance_reopened(self, reopened: ReopenedToken) -> None:
        """Advance the first path, and the path of the typed token, which inserts nothing. Makes one forward pass."""
        head, (first,) = self.document.tree.head, self._waiting
        _, first_row, typed_row = evaluate_healed_start(self._growth, head, reopened)
        joint = self._probabilities(joint_row(first_row, head.token_id, typed_row))
        probabilities, after_typed = joint.tensor_split(2)
        probabilities[head.token_id] = kept = after_typed.sum()
        self._waiting = []
        self._advance(first, probabilities)
        if typed := [path for path in self._waiting if path.token_ids == (head.token_id,)]:
            self._waiting = [path for path in self._waiting if path is not typed[0]]
            heapq.heapify(self._waiting)
            self._advance(typed[0], after_typed / kept)

    def _advance(self, path: _Path, probabilities: torch.Tensor) -> None:
        """Add the results of a path after which the next token has these probabilities."""
        following = self._continuing(path, len(probabilities))
        if path.characters:
            following |= self._end_word(path, probabilities)
        for token_id in following:
            mass = path.mass * float(probabilities[token_id])
            if mass > 0.0:
                self._follow(path, token_id, mass)

    def _probabilities(self, scores: torch.Tensor) -> torch.Tensor:
        """Return the probabilities of a row of scores at the options' temperature and top-p; 0 if all are -inf."""
        if not bool(scores.isfinite().any()):
            return torch.zeros_like(scores)
        scores = apply_temperature(scores, self.options.temperature)
        return apply_top_p(scores, self.options.top_p).softmax(-1)

    def _continuing(self, path: _Path, vocabulary: int) -> set[int]:
        """Return the tokens after a path that spell more of a continuation, or its rest and further characters."""
        spellings = []
        for text in self.texts:
            own, spelled = path.spelled, text.encode()
            if spelled.startswith(own) and spelled != own:
                spellings.append(path.typed + spelled[len(own) :])
        codec, least = self.document.model.codec, len(path.typed) or 1
        if path.text_end.at_start and codec.adds_space:
            spellings += [b" " + spelling for spelling in spellings]
        ids = {token_id for spelling in spellings for token_id in codec.tokens_starting_with(spelling)}
        for spelling in spellings:
            ids.update(codec.beginnings.prefixes(spelling, least))
        return {token_id for token_id in ids if token_id < vocabulary}

    def _end_word(self, path: _Path, probabilities: torch.Tensor) -> set[int]:
        """If a path has spelled a continuation, add the probability that its word ends there to `low`.

        Returns the tokens to follow: likely ones that do not show whether the word ends.
        """
        text = next((text for text in self.texts if path.characters.startswith(text)), None)
        if text is None:
            return set()
        beginnings = self.document.model.codec.beginnings
        after, characters = path.characters[len(text) :], beginnings.characters
        kinds: list[bool | None] = [None] * len(characters)
        if not path.text_end.partial:
            kinds = [_ends(self.before, text, after + character) if character else None for character in characters]
        first = first_characters(beginnings, probabilities)
        by_first = torch.zeros(len(kinds), dtype=probabilities.dtype, device=probabilities.device)
        by_first.index_add_(0, first, probabilities)
        end_ids = sorted(token_id for token_id in self.document.model.end_token_ids if token_id < len(probabilities))
        ended = float(probabilities[end_ids].sum()) if end_ids and _ends(self.before, text, f"{after} ") else 0.0
        self.low += path.mass * (
            ended + math.fsum(float(mass) for mass, kind in zip(by_first, kinds, strict=True) if kind)
        )
        unclear = torch.tensor([kind is None for kind in kinds], device=first.device)[first]
        unclear[end_ids] = False
        open_mass = float(probabilities[unclear].sum())
        likely = (probabilities * unclear).topk(min(FOLLOWED, len(first)))
        pairs = zip(likely.indices.tolist(), likely.values.tolist(), strict=True)
        followed = {token_id for token_id, probability in pairs if probability > LEAST_SHARE}
        self.lost += path.mass * max(0.0, open_mass - math.fsum(probabilities[list(followed)].tolist()))
        return followed

    def _follow(self, path: _Path, token_id: int, mass: float) -> None:
        """Add the path that is one token longer: to `low` if it ends the word, to the queue if it may still do so."""
        added, text_end = path.text_end.decode(token_id, len(path.typed))
        longer = replace(
            path,
            token_ids=(*path.token_ids, token_id),
            mass=mass,
            characters=path.characters + added,
            text_end=text_end,
            typed=b"",
        )
        states = {self._state(longer, text) for text in self.texts}
        if True in states:
            self.low += mass
        elif None in states:
            if self._has_room(longer):
                heapq.heappush(self._waiting, longer)
            else:
                self.lost += mass

    def _has_room(self, path: _Path) -> bool:
        length = self.document.model.context_length
        return length is None or self.base.depth + len(path.token_ids) < length

    def _state(self, path: _Path, text: str) -> bool | None:
        """Return whether a path spells `text` and ends the word there; None if that is not known yet."""
        if text.startswith(path.characters) and text != path.characters:
            return None if text.encode().startswith(path.spelled) else False
        if text == path.characters:
            return None
        if not path.characters.startswith(text):
            return False
        return _ends(self.before, text, path.characters[len(text) :])
