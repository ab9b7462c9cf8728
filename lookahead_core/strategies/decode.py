"""One continuation, token by token: greedy or drawn. Several run side by side, one pass for all of them."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal

import torch

from lookahead_core.engines.engine import Engine, NodeScores, group_by_tree
from lookahead_core.errors import CacheFull
from lookahead_core.speculation.acceptance import agreeing, rejection
from lookahead_core.speculation.draft_and_verify import Pass, PassLoad, Speculation, noise_adjustment
from lookahead_core.speculation.drafters import checked_drafters
from lookahead_core.strategies.lookahead_options import MOST_SEED
from lookahead_core.strategies.rules import (
    LONGEST,
    LogitRules,
    ModelRules,
    RuledOutError,
    Word,
    checked_words,
    require_open,
)
from lookahead_core.strategies.sampling import draw, noise_at, shaped
from lookahead_core.tree import Node, Prediction
from lookahead_core.validation import check_choice, check_integer, check_number

if TYPE_CHECKING:
    from lookahead_core.model import Model
    from lookahead_core.speculation.corpus import Corpus
    from lookahead_core.speculation.drafters import Drafter
    from lookahead_core.speculation.heads_file import Heads

REJECTION = "rejection"
UNDRAWN = (
    "stop", "stop_ids", "stop_when", "max_words", "speculate", "drafters", "draft_model", "heads", "corpus", "source",
)  # fmt: skip
"""Options that do not bear on which token is chosen."""


@dataclass(frozen=True)
class StreamOptions(LogitRules):
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
    speculate: bool | Literal["rejection"] | None = None
    """Whether tokens are drafted and verified, several a pass; left out, where the engine gains by it. The text is the
    same with and without; with "rejection" it is another one with the same odds (arXiv 2302.01318)."""
    drafters: Collection[str | Drafter] = ("suffix", "recycled")
    """Who guesses: what came where the text's end stood before, what earlier passes thought likely, or one's own."""
    draft_model: Model | None = None
    """A smaller model with the same tokenizer, loaded by `load_model`, that guesses as well."""
    heads: Heads | None = None
    """Heads that were trained for this model, as `load_heads` gives them, that guess as well."""
    corpus: Corpus | None = None
    """Texts to guess from, as `load_corpus` gives them."""
    source: str = ""
    """A text that will probably be quoted, to guess from."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.temperature is not None:
            check_number("temperature", self.temperature, 0, 100)
        check_integer("top_k", self.top_k, 0, 10**9)
        check_number("top_p", self.top_p, 0, 1, above=True)
        check_number("min_p", self.min_p, 0, 1)
        check_number("typical_p", self.typical_p, 0, 1, above=True)
        check_integer("min_tokens_to_keep", self.min_tokens_to_keep, 1, 10**9)
        if self.seed is not None:
            check_integer("seed", self.seed, 0, MOST_SEED)
        check_integer("stream", self.stream, 0, MOST_SEED)
        if self.max_words is not None:
            check_integer("max_words", self.max_words, 1, LONGEST)
        for name in ("stop", "stop_ids"):
            object.__setattr__(self, name, checked_words(name, getattr(self, name)))
        if not all(isinstance(word, str) for word in self.stop):
            raise ValueError(f"stop is {self.stop!r}, and must hold strings; token ids belong into stop_ids.")
        if not all(isinstance(word, tuple) for word in self.stop_ids):
            raise ValueError(
                f"stop_ids is {self.stop_ids!r}, and must hold lists of token ids; strings belong to stop."
            )
        check_choice("speculate", self.speculate, (None, True, False, REJECTION))
        object.__setattr__(self, "drafters", checked_drafters(self.drafters))
        if not isinstance(self.source, str):
            raise ValueError(f"source is {type(self.source).__name__}, and must be a string.")
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

    @property
    def drawn_by(self) -> StreamOptions:
        """These options without those that end a text or save passes: what a token is chosen by."""
        plain: dict[str, Any] = {each.name: each.default for each in fields(self) if each.name in UNDRAWN}
        return replace(self, **plain)

    def odds(self, scores: torch.Tensor, ruling: ModelRules, path: Sequence[int], new: int) -> torch.Tensor:
        """The log-probabilities to draw from after a path whose last `new` tokens are new."""
        if not ruling.bare:
            scores = ruling.apply(scores, path, new)
            require_open(scores, new)
        return self.cut(scores)

    def cut(self, scores: torch.Tensor) -> torch.Tensor:
        """The log-probabilities to draw from, of scores that all rules but temperature and cuts were applied to."""
        return shaped(
            scores,
            temperature=self.applied_temperature,
            top_k=self.top_k,
            top_p=self.top_p,
            min_p=self.min_p,
            typical_p=self.typical_p,
            keep=self.min_tokens_to_keep,
        ).log_softmax(-1)


@dataclass(frozen=True, slots=True)
class ChosenToken:
    """A token that was taken: how likely it was, how likely with all options applied, and its rank, 1 the likeliest."""

    token_id: int
    logprob: float
    chance: float
    rank: int


@dataclass(frozen=True, slots=True)
class PickedToken:
    """A token of a line, what the model said before it came, and whether it is the last: "end", "length" or not yet."""

    chosen: ChosenToken
    said: Prediction
    last: str


class Continuation:
    """A continuation as it grows."""

    def __init__(
        self,
        head: Node,
        options: StreamOptions,
        ruling: ModelRules,
        unread: int = 0,
        speculation: Speculation | None = None,
    ) -> None:
        self.node = head
        self.options = options
        self.ruling = ruling
        self.unread = unread
        """How many tokens of the text the model does not read."""
        self.speculation = speculation
        self.path = head.tree.token_ids(head)
        self.new = 0
        self._start = head
        self._heard = len(self.path)
        """How much of the path drafters have heard of."""
        self.over = False
        self.error: RuledOutError | None = None
        """Why it could not go on, where its options rule everything out."""
        self.passes: list[Pass] = []
        """What each pass has won."""
        head.tree.growers.add(self)
        self.plain = ruling.bare and not options.applied_temperature
        """Whether the most likely token is always taken."""
        # What is chosen after a node depends on the node, on where the line began, and on these options alone.
        self._key: Hashable = (options.drawn_by, unread, head.depth)
        self._ahead: dict[Node, ChosenToken] = {}
        """What is chosen already, at the line's end and behind it."""

    @property
    def frontier(self) -> list[Node]:
        """Where it grows."""
        return [] if self.over else [self.node]

    @property
    def position(self) -> int:
        """Where in the whole text the next token stands."""
        return self.node.depth + self.unread

    @property
    def rejects(self) -> bool:
        """Whether drafts are accepted by rejection, and not by agreement."""
        return self.options.speculate == REJECTION and self.options.applied_temperature > 0

    @property
    def known(self) -> ChosenToken | None:
        """The next token, where no pass is needed to know it."""
        return self._known_after(self.node)

    def recall(self) -> None:
        """Choose at the line's end from the row that is kept of it, where nothing is chosen there and there is one."""
        row = self.node.tree.row_of(self.node)
        if row is not None and self.known is None:
            self._choose(self.node, list(self.path), row)

    def _known_after(self, node: Node) -> ChosenToken | None:
        said = node.prediction
        if self.plain:
            return None if said is None else ChosenToken(said.token_ids[0], said.logprobs[0], 0.0, 1)
        return self._ahead.get(node) or (None if self.rejects else (node.memo or {}).get(self._key))

    def draft(self, company: PassLoad) -> list[Node]:
        """What to evaluate: its end, and what is guessed to follow."""
        if self.speculation is None:
            return [self.node]
        reach = self.options.max_new_tokens - self.new - 1
        luck = None if self.rejects or not self.options.applied_temperature else noise_adjustment(self._noise)
        return self.speculation.draft(self.node, self.path, reach, company, luck)

    def agreeing(self, scores: NodeScores) -> list[Node]:
        """Where the most likely token is taken: the nodes that stand."""
        return list(agreeing(self.node, scores.best_token, self._drafted))

    def listen(self, scores: NodeScores) -> list[Node]:
        """Choose at the line's end, and at what was drafted as long as that is what was chosen."""
        path = list(self.path)
        return list(agreeing(self.node, lambda node: self._choose(node, path, scores.logprob_row(node)), self._drafted))

    def learn(self, stood: Sequence[Node], scores: NodeScores, seconds: float) -> None:
        """Note what a pass has won; drafters learn from it."""
        after = self._known_after(stood[-1])
        if after is None:
            return
        if self.speculation is None:
            self.passes.append(Pass(len(stood), 1, seconds, 0.0, ()))
            return
        path = [*self.path, *(node.token_id for node in stood[1:]), after.token_id]
        self.passes.append(self.speculation.hear(path, len(path) - self._heard, stood, scores, seconds))
        self._heard = len(path)

    def take(self) -> PickedToken:
        """Go on by the token that is known."""
        chosen, said = self.known, self.node.prediction
        assert chosen is not None
        assert said is not None
        self._ahead.pop(self.node, None)
        self.node = self.node.tree.expand(self.node, chosen.token_id)
        self.path.append(chosen.token_id)
        self.new += 1
        last = "end" if chosen.token_id in self.ruling.stop else ""
        last = last or ("length" if self.new >= self.options.max_new_tokens else "")
        self.over = bool(last)
        return PickedToken(chosen, said, last)

    def take_known(self) -> None:
        """Go on as far as is known."""
        while not self.over and self.known is not None:
            self.take()

    def _drafted(self, node: Node) -> bool:
        return self.speculation is not None and self.speculation.holds(node)

    def _choose(self, node: Node, path: list[int], row: torch.Tensor) -> int | None:
        """Choose from the row after a node; `path` leads to the line's end or the node before it, and is extended."""
        if node is not self.node:
            path.append(node.token_id)
        if node is self._start:
            # Many texts are drawn after the same one, by other dice: each begins with this row.
            node.tree.keep_row(node, row)
        options = self.options
        try:
            odds = options.odds(model_scores(node, row), self.ruling, path, len(path) - len(self.path) + self.new)
        except RuledOutError as error:
            # What was only guessed may run into it as well; it is told when the text has come so far.
            if node is self.node:
                self.error, self.over = error, True
            return None
        token_id = self._drawn(odds, node)
        rank = 1 + int((row > row[token_id]).sum())
        self._ahead[node] = chosen = ChosenToken(token_id, float(row[token_id]), float(odds[token_id]), rank)
        if not self.rejects:
            # For those who come here again.
            node.tree.memoize(node, self._key, chosen)
        return token_id

    def _drawn(self, odds: torch.Tensor, node: Node) -> int:
        position, seed = node.depth + self.unread, self.options.seed or 0
        if not self.rejects or self.speculation is None:
            return draw(odds, seed=seed, stream=self.options.stream, position=position)
        tried = self.speculation.tried(node)
        dice = random.Random(f"{seed} {self.options.stream} {position}")
        return rejection(odds.exp(), tried, [dice.random() for _ in tried], dice.random()).token_id

    def _noise(self, depth: int, token_id: int) -> float:
        """The noise of a token at a place below the line's end."""
        return noise_at(self.options.seed or 0, self.options.stream, self.position + depth)(token_id)


def model_scores(node: Node, row: torch.Tensor) -> torch.Tensor:
    """A node's row of log-probabilities as the scores that the model itself gave, which a repetition penalty needs."""
    said = node.prediction
    return row if said is None or said.log_total is None else row + said.log_total


def decode(engine: Engine, lines: Sequence[Continuation]) -> Iterator[list[tuple[int, PickedToken]]]:
    """All lines as far as is known, token by token, then a pass for all of them: which lines went on, and by what.

    A line that cannot go on lets the others go on, and its error is raised when they are over.
    """
    for line in lines:
        line.recall()
    while growing := [(index, line) for index, line in enumerate(lines) if not line.over]:
        if known := [(index, line) for index, line in growing if line.known is not None]:
            yield [(index, line.take()) for index, line in known]
        else:
            look([line for _, line in growing], engine)
    for line in lines:
        if line.error is not None:
            raise line.error


def look(lines: Sequence[Continuation], engine: Engine) -> None:
    """One pass for all lines, each with its draft: what comes next is known afterwards, and often what comes then."""
    vain: list[Node] = []
    try:
        vain = _look(lines, engine)
    finally:
        # Those made below others first: what is left in the cache has its whole path there.
        _forget(engine, [node for speculation in _speculations(lines) for node in speculation.give_up()])
        if vain:
            engine.free(vain)


def _look(lines: Sequence[Continuation], engine: Engine) -> list[Node]:
    """The pass; returns the nodes that stood there before, unread, and were read in vain."""
    started = time.perf_counter()
    # The first pass reads a text, which says nothing about what a pass costs.
    usual = all(len(engine.nodes_to_prefill(line.node)) <= 1 for line in lines)
    nodes: list[Node] = []
    company = PassLoad(len(lines), _room_for_drafts(engine, lines))
    for line in lines:
        nodes += line.draft(company)
    found = [
        node for speculation in _speculations(lines) for node in speculation.found if engine.nodes_to_prefill(node)
    ]
    began = time.perf_counter()
    scores = _scored(engine, lines, list(dict.fromkeys(nodes)))
    stood = {id(line): line.agreeing(scores) for line in lines if line.plain}
    seconds = time.perf_counter() - began
    if agreed := [node for some in stood.values() for node in some]:
        scores.store_predictions(agreed)
    for line in lines:
        if not line.plain:
            stood[id(line)] = line.listen(scores)
    for line in lines:
        line.learn(stood[id(line)], scores, seconds)
    if usual:
        # Drafting and telling are part of what it costs: the fewer passes, the less of them.
        engine.pass_costs.record(len(scores.nodes), time.perf_counter() - started)
    return [node for node in found if node.prediction is None]


def _room_for_drafts(engine: Engine, lines: Sequence[Continuation]) -> float:
    """How many drafted nodes a pass may have without changing the bits of the lines' own rows."""
    if engine.batch_invariant_rows is None:
        return math.inf
    return engine.batch_invariant_rows - sum(max(1, len(engine.nodes_to_prefill(line.node))) for line in lines)


def _speculations(lines: Sequence[Continuation]) -> list[Speculation]:
    return [line.speculation for line in lines if line.speculation is not None]


def _scored(engine: Engine, lines: Sequence[Continuation], nodes: list[Node]) -> NodeScores:
    """A pass over all nodes; without drafts, where there is no room for them."""
    speculations = _speculations(lines)
    hidden = any(speculation.hidden for speculation in speculations)
    try:
        return engine.score(nodes, hidden=hidden)
    except CacheFull:
        if not any(len(speculation.drafted) > 1 for speculation in speculations):
            raise
        _forget(engine, [node for speculation in speculations for node in speculation.give_up()])
        return engine.score(list(dict.fromkeys(line.node for line in lines)), hidden=hidden)


def _forget(engine: Engine, made: Sequence[Node]) -> None:
    """Let go of what was only drafted."""
    for tree, nodes in group_by_tree(made).items():
        if gone := tree.prune_unevaluated(nodes):
            engine.free(gone)
