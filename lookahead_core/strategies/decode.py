"""One continuation, token by token: greedy or drawn. Several run side by side, one pass for all of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch

from lookahead_core.engines.engine import Engine
from lookahead_core.sampling import draw, shaped
from lookahead_core.strategies.checks import check_number, check_whole
from lookahead_core.strategies.options import MOST_SEED
from lookahead_core.strategies.rules import LONGEST, Rules, Ruling, Word, checked_words, require_open
from lookahead_core.tree import Node, Prediction


@dataclass(frozen=True)
class StreamOptions(Rules):
    """What may be asked of a stream; see `document.stream`."""

    temperature: float | None = None
    """0 takes the best token; left out, it is 1 where a cut or a seed asks for drawing, and 0 elsewhere."""
    top_k: int = 0
    """Draw among so many of the likeliest tokens; 0 is all."""
    top_p: float = 1.0
    """Draw among the likeliest tokens that have this probability together, the last one included."""
    min_p: float = 0.0
    """Draw among the tokens that are at least this share as likely as the likeliest."""
    typical_p: float = 1.0
    """Draw among the tokens whose surprise is nearest to the expected one, until they have this probability."""
    min_tokens_to_keep: int = 1
    """How many tokens each of these cuts leaves at least."""
    seed: int | None = None
    """The same seed draws the same text; left out, it is 0."""
    stream: int = 0
    """Which of a seed's many texts."""
    stop: str | Collection[str] = ()
    """Strings that end the text, also where they begin before it; they do not come into it."""
    stop_ids: Collection[Word] = ()
    """Sequences of token ids that end the text."""
    stop_when: Callable[[Sequence[int]], bool] | None = None
    """Asked after each token with all ids so far; true ends the text."""
    max_words: int | None = None
    """How many words to add at most, one that the text had begun included."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.temperature is not None:
            check_number("temperature", self.temperature, 0, 100)
        check_whole("top_k", self.top_k, 0, 10**9)
        check_number("top_p", self.top_p, 0, 1, above=True)
        check_number("min_p", self.min_p, 0, 1)
        check_number("typical_p", self.typical_p, 0, 1, above=True)
        check_whole("min_tokens_to_keep", self.min_tokens_to_keep, 1, 10**9)
        if self.seed is not None:
            check_whole("seed", self.seed, 0, MOST_SEED)
        check_whole("stream", self.stream, 0, MOST_SEED)
        if self.max_words is not None:
            check_whole("max_words", self.max_words, 1, LONGEST)
        for name in ("stop", "stop_ids"):
            object.__setattr__(self, name, checked_words(name, getattr(self, name)))
        if not all(isinstance(word, str) for word in self.stop):
            raise ValueError(f"stop is {self.stop!r}, and must hold strings; token ids belong into stop_ids.")
        if not all(isinstance(word, tuple) for word in self.stop_ids):
            raise ValueError(
                f"stop_ids is {self.stop_ids!r}, and must hold lists of token ids; strings belong to stop."
            )
        if self.stop_when is not None and not callable(self.stop_when):
            raise ValueError(f"stop_when is {self.stop_when!r}, and must be a function of the ids so far.")
        for stop in self.stop:
            for word in self.forced:
                if isinstance(word, str) and stop in word:
                    raise ValueError(
                        f"stop holds {stop!r}, which the forced {word!r} would end at; change one of them."
                    )

    @property
    def applied_temperature(self) -> float:
        """The temperature that holds."""
        if self.temperature is not None:
            return float(self.temperature)
        cut = (self.top_k, self.top_p < 1, self.min_p, self.typical_p < 1, self.seed is not None)
        return 1.0 if any(cut) else 0.0

    def odds(self, scores: torch.Tensor, ruling: Ruling, path: Sequence[int], new: int) -> torch.Tensor:
        """The log-probabilities to draw from after a path whose last `new` tokens are new."""
        if not ruling.bare:
            scores = ruling.apply(scores, path, new)
            require_open(scores, new)
        cut = shaped(
            scores,
            temperature=self.applied_temperature,
            top_k=self.top_k,
            top_p=self.top_p,
            min_p=self.min_p,
            typical_p=self.typical_p,
            keep=self.min_tokens_to_keep,
        )
        return cut.log_softmax(-1)


@dataclass(frozen=True, slots=True)
class Chosen:
    """A token that was taken: how likely it was, how likely with all options applied, and its rank, 1 the likeliest."""

    token_id: int
    logprob: float
    chance: float
    rank: int


@dataclass(frozen=True, slots=True)
class Pick:
    """A token of a line, what the model said before it came, and whether it is the last: "end", "length" or not yet."""

    chosen: Chosen
    said: Prediction
    last: str


class Line:
    """A continuation as it grows."""

    def __init__(self, head: Node, options: StreamOptions, ruling: Ruling, unread: int = 0) -> None:
        self.node = head
        self.options = options
        self.ruling = ruling
        self.unread = unread
        """How many tokens of the text the model does not read."""
        self.path = head.tree.token_ids(head)
        self.new = 0
        self.over = False
        self.error: ValueError | None = None
        """Why it could not go on, where its options rule everything out."""
        self._chosen: Chosen | None = None
        head.tree.growers.add(self)
        self._plain = ruling.bare and not options.applied_temperature
        # What is chosen after a node depends on the node, on where the line began, and on these options alone.
        asked = replace(options, stop=(), stop_ids=(), stop_when=None, max_words=None)
        self._key: Hashable = (asked, unread, head.depth)

    @property
    def ends(self) -> list[Node]:
        """Where it grows."""
        return [] if self.over else [self.node]

    @property
    def position(self) -> int:
        """Where in the whole text the next token stands."""
        return self.node.depth + self.unread

    @property
    def known(self) -> Chosen | None:
        """The next token, where no pass is needed to know it."""
        said = self.node.prediction
        if self._chosen is not None:
            return self._chosen
        if self._plain and said is not None:
            return Chosen(said.token_ids[0], said.logprobs[0], 0.0, 1)
        return (self.node.notes or {}).get(self._key)

    def hear(self, row: torch.Tensor) -> None:
        """Choose from the row of this line's end; the line is over where there is nothing to choose."""
        if self._plain:
            return
        options = self.options
        try:
            odds = options.odds(model_scores(self.node, row), self.ruling, self.path, self.new)
        except ValueError as error:
            self.error, self.over = error, True
            return
        token_id = draw(odds, seed=options.seed or 0, stream=options.stream, position=self.position)
        rank = 1 + int((row > row[token_id]).sum())
        self._chosen = Chosen(token_id, float(row[token_id]), float(odds[token_id]), rank)
        # For those who come here again.
        self.node.tree.note(self.node, self._key, self._chosen)

    def take(self) -> Pick:
        """Go on by the token that is known."""
        chosen, said = self.known, self.node.prediction
        assert chosen is not None
        assert said is not None
        self.node, self._chosen = self.node.tree.expand(self.node, chosen.token_id), None
        self.path.append(chosen.token_id)
        self.new += 1
        last = "end" if chosen.token_id in self.ruling.stop else ""
        last = last or ("length" if self.new >= self.options.max_new_tokens else "")
        self.over = bool(last)
        return Pick(chosen, said, last)


def model_scores(node: Node, row: torch.Tensor) -> torch.Tensor:
    """A node's row of log-probabilities as the scores that the model itself gave, which a repetition penalty needs."""
    said = node.prediction
    return row if said is None or said.log_total is None else row + said.log_total


def decode(engine: Engine, lines: Sequence[Line]) -> Iterator[list[tuple[int, Pick]]]:
    """All lines one token further, in at most one pass; which lines went on, and by what.

    A line that cannot go on lets the others go on, and its error is raised when they are over.
    """
    while growing := [line for line in lines if not line.over]:
        deaf = [line for line in growing if line.known is None]
        if deaf:
            for line, row in zip(deaf, engine.evaluate([line.node for line in deaf]), strict=True):
                line.hear(row)
        yield [(index, line.take()) for index, line in enumerate(lines) if not line.over]
    for line in lines:
        if line.error is not None:
            raise line.error
