"""In a given text, the words where the model would have gone elsewhere."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from lookahead_core.analysis.token_facts import TokenFacts, observe
from lookahead_core.document.cost_meter import CostMeter
from lookahead_core.document.document import Document
from lookahead_core.document.results import Cost, LookaheadStep
from lookahead_core.engines.engine import MAX_LAST_CHUNK, PREFILL_CHUNK
from lookahead_core.errors import LookaheadError
from lookahead_core.strategies.keywords import takes_options
from lookahead_core.strategies.lookahead_options import LookaheadOptions
from lookahead_core.text.boundaries import WORD, boundary_levels
from lookahead_core.text.passage import TextEnd
from lookahead_core.tree import Node
from lookahead_core.validation import check_integer

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from lookahead_core.strategies.keywords import LookaheadKeywords

MOST_ALTERNATIVES = 20
NONE_FOUND = "No possible edits found."
MOST_SCORES = 40_000_000
"""So many scores are held at once: a row has one for each token of the vocabulary."""
BATCH = 64
"""Pieces whose words are told apart at once: that takes time with the square of the text's length."""


@dataclass(frozen=True, slots=True)
class HighlightAlternative:
    """A token that the model thought likely at a place."""

    token_id: int
    text: str | None
    """The characters that would stand there; None where it makes no whole one."""
    probability: float
    ended: bool
    """Whether it is an ending."""


@dataclass(frozen=True, slots=True)
class HighlightEntry:
    """A token of a text, or several that only together make whole characters, and what the model thought of it.

    Rank, entropy and alternatives are those at the first of its tokens that was not the likeliest; where all were, at
    its first. They are None, as its loss is, and there are no alternatives, where nothing stands before it.
    """

    start: int
    end: int
    token: str
    token_ids: tuple[int, ...]
    word: tuple[int, int]
    """From where to where the word goes that it is part of."""
    loss: float | None
    """In nats, of all its tokens."""
    rank: int | None
    entropy: float | None
    alternatives: tuple[HighlightAlternative, ...]
    """The likeliest first."""
    at: int
    """Which of the document's tokens comes first in it."""
    place: int
    """Which of its tokens the rank and the alternatives are about."""
    read_from: int
    """From which of the document's tokens on the model had read."""
    seen_from: int
    """The same as a character: 0 unless the text is longer than the model's context."""

    @property
    def most_likely(self) -> HighlightAlternative | None:
        """What the model would have said; none where it has no odds."""
        return self.alternatives[0] if self.alternatives else None

    @property
    def differs(self) -> bool:
        """Whether the model would have gone elsewhere."""
        return self.rank is not None and self.rank > 1


@dataclass(frozen=True)
class Highlights:
    """What the model thought of every token of a text."""

    entries: tuple[HighlightEntry, ...]
    cost: Cost

    @property
    def candidates(self) -> tuple[HighlightEntry, ...]:
        """The entries where the model would have gone elsewhere, those first that it thought least likely."""
        return tuple(sorted((entry for entry in self.entries if entry.differs), key=lambda entry: -(entry.loss or 0)))

    @property
    def marks(self) -> tuple[HighlightEntry, ...]:
        """The same for words: of each word the first entry where the model would have gone elsewhere.

        A word is as unlikely as the least likely of those entries: its first piece may be a likely one.
        """
        first: dict[tuple[int, int], HighlightEntry] = {}  # in the order of what is least likely in each
        for entry in self.candidates:
            known = first.get(entry.word, entry)
            first[entry.word] = min(entry, known, key=lambda one: one.start)
        return tuple(first.values())

    @functools.cached_property
    def highest(self) -> float:
        """The highest loss, sought once for all who compare; the first entry's counts only where there is no other."""
        return max(_finite(self.entries[1:]) or _finite(self.entries[:1]), default=0.0)

    def relative(self, entry: HighlightEntry) -> float | None:
        """An entry's loss as a share of the highest one; the first entry's may be above 1."""
        return entry.loss / self.highest if entry.loss is not None and self.highest else None

    @property
    def sentence(self) -> str:
        """What there is to say where there is no candidate; else nothing."""
        return "" if any(entry.differs for entry in self.entries) else NONE_FOUND


def _finite(entries: Sequence[HighlightEntry]) -> list[float]:
    """The losses of those that have one, and are not impossible."""
    return [entry.loss for entry in entries if entry.loss is not None and entry.loss < math.inf]


@dataclass(frozen=True, slots=True)
class HighlightsStep:
    """How many tokens are read, of how many; the last step has the result."""

    read: int
    total: int
    result: Highlights | None = None


@dataclass(frozen=True, slots=True)
class _Window:
    """Tokens told of, and from where on the model reads for them."""

    start: int
    begin: int
    end: int


def highlights(document: Document, k: int = 5) -> Highlights:
    """What the model thought of every token of the text, with its `k` likeliest; the text stays as it is."""
    step = None
    for step in highlights_steps(document, k):  # noqa: B007
        pass
    assert step is not None
    assert step.result is not None
    return step.result


def highlights_steps(document: Document, k: int = 5) -> Iterator[HighlightsStep]:
    """The same, a step for each forward pass. It may be left at any step; what was computed is kept.

    A text that is longer than the context is read in windows: each token with at least half of one before it.
    """
    check_integer("k", k, 1, MOST_ALTERNATIVES)
    if not document.text:
        raise LookaheadError("There is no text to read yet: write or paste one.")
    meter = CostMeter(document.model.engine, document.tree)
    token_ids = document.token_ids
    told: dict[int, TokenFacts] = {}
    seen: dict[int, int] = {}
    windows = _windows(document)
    total, before = sum(window.end - window.begin for window in windows), 0
    for window in windows:
        document.new_view()
        for read in _read(document, window, k, told):
            yield HighlightsStep(before + read, total)
            if document.token_ids != token_ids:
                raise LookaheadError("The text has changed while it was read; read it again.")
        seen |= dict.fromkeys(range(window.begin, window.end), window.start)
        before += window.end - window.begin
    yield HighlightsStep(total, total, Highlights(tuple(_entries(document, told, seen)), meter.cost()))


@takes_options(LookaheadOptions)
def branches_steps(document: Document, start: int, **options: Unpack[LookaheadKeywords]) -> Iterator[LookaheadStep]:
    """Yield the steps of a lookahead from the middle of the text, as if it ended before the token at character `start`.

    The text stays as it is. The options are those of `Document.lookahead`.
    """
    asked = LookaheadOptions.of(options)
    at = _token_at(document, start)
    window = next(window for window in _windows(document) if window.begin <= at < window.end)
    context, first = document.model.context_length, document.passage.start_count
    document.new_view()
    left = window.start if context is None else max(window.start, at - (context - first - asked.depth))
    origin = node_at(document, left, at)
    if not origin.depth:
        raise LookaheadError("Nothing stands before the first word, so there is nothing to look ahead from.")
    yield from document.grow_branches(asked, origin, _spot(document, at), _character(document, left), None)


def _windows(document: Document) -> list[_Window]:
    """Which tokens are told of in which window; one has all of them where the context holds the text."""
    length, first, context = len(document.token_ids), document.passage.start_count, document.model.context_length
    room = length if context is None else context - first
    if room < 2:
        raise LookaheadError("What the model is told fills its context: shorten the instruction.")
    windows = [_Window(first, first, min(length, first + room + 1))]
    while (begin := windows[-1].end) < length:
        start = begin - (room + 1) // 2
        windows.append(_Window(start, begin, min(length, start + room + 1)))
    return windows


def _read(document: Document, window: _Window, k: int, told: dict[int, TokenFacts]) -> Iterator[int]:
    """Read a window, tell of its tokens what is not known yet, and yield after each pass how many are told of."""
    engine, tree, token_ids = document.model.engine, document.tree, document.token_ids
    path = tree.path(node_at(document, window.start, window.end - 1))
    # What comes after a node is told by its row.
    nodes = {node: at for at, node in enumerate(path, window.end - len(path)) if at >= window.begin}
    pending = [node for node, at in nodes.items() if _note(node, token_ids[at], k) is None]
    due = dict.fromkeys([*engine.nodes_to_prefill(pending[0]), *pending]) if pending else {}
    for chunk in _chunks(list(due), document.model.vocabulary):
        asked = [node for node in chunk if node in nodes]
        if asked:
            rows, came = engine.score(asked).logits_of(asked), [token_ids[nodes[node]] for node in asked]
            for node, token_id, facts in zip(asked, came, observe(rows, came, k), strict=True):
                tree.memoize(node, ("highlight", token_id, k), facts)
            yield nodes[asked[-1]] + 1 - window.begin
        else:
            engine.prefill(chunk)
            yield 0
    told |= {at: cast(TokenFacts, _note(node, token_ids[at], k)) for node, at in nodes.items()}


def _note(node: Node, token_id: int, k: int) -> TokenFacts | None:
    return (node.memo or {}).get(("highlight", token_id, k))


def _chunks(nodes: list[Node], vocabulary: int) -> Iterator[list[Node]]:
    most = max(1, MOST_SCORES // vocabulary)
    while nodes:
        size = min(most, len(nodes) if len(nodes) <= MAX_LAST_CHUNK else PREFILL_CHUNK)
        yield nodes[:size]
        nodes = nodes[size:]


def _entries(document: Document, told: dict[int, TokenFacts], seen: dict[int, int]) -> Iterator[HighlightEntry]:
    """The tokens of the text, put together where only several make whole characters."""
    cuts = list(spans(document))
    words = _words([document.text[start:end] for _, _, start, end in cuts])
    for (at, after, start, end), word in zip(cuts, words, strict=True):
        yield _entry(document, (at, after), (start, end), word, told, seen)


def _entry(
    document: Document,
    tokens: tuple[int, int],
    characters: tuple[int, int],
    word: tuple[int, int],
    told: dict[int, TokenFacts],
    seen: dict[int, int],
) -> HighlightEntry:
    (at, after), (start, end) = tokens, characters
    facts = [told.get(place) for place in range(at, after)]
    known = [fact for fact in facts if fact is not None]
    place = next((place for place, fact in enumerate(facts) if fact is not None and fact.rank > 1), 0)
    fact = facts[place] if len(known) == len(facts) else None
    read_from = seen[at + place]
    return HighlightEntry(
        start=start,
        end=end,
        token=document.text[start:end],
        token_ids=tuple(stand.token_id for stand in document.passage.tokens[at:after]),
        word=word,
        loss=max(0.0, -math.fsum(one.logprob for one in known)) if fact else None,
        rank=fact.rank if fact else None,
        entropy=fact.entropy if fact else None,
        alternatives=tuple(_alternatives(document, at + place, fact)) if fact else (),
        at=at,
        place=place,
        read_from=read_from,
        seen_from=_character(document, read_from),
    )


def _alternatives(document: Document, at: int, fact: TokenFacts) -> Iterator[HighlightAlternative]:
    spot = _spot(document, at)
    for token_id, logprob in fact.likeliest:
        ended = token_id in document.model.end_token_ids
        text = "" if ended else spot.decode(token_id)[0]
        whole = text if ended or (text and "\ufffd" not in text) else None
        yield HighlightAlternative(token_id, whole, math.exp(logprob), ended)


def spans(document: Document) -> Iterator[tuple[int, int, int, int]]:
    """Tokens from one to before another, and the characters that they add: at least one each time."""
    stands, begun = document.passage.tokens, document.passage.start_count
    start = 0
    for index in range(begun, len(stands)):
        end = stands[index].end
        if end > start:
            yield begun, index + 1, start, end
            begun, start = index + 1, end


def _words(pieces: Sequence[str]) -> list[tuple[int, int]]:
    """For each piece of a text from where to where the word goes that it is part of."""
    words: list[tuple[int, int]] = []
    begun, start, count = 0, 0, 0
    for piece, complete in zip(pieces, _complete(pieces), strict=True):
        begun, count = begun + len(piece), count + 1
        if complete or len(words) + count == len(pieces):
            words += [(start, begun)] * count
            start, count = begun, 0
    return words


def _complete(pieces: Sequence[str]) -> Iterator[bool]:
    """Whether a word ends with each piece."""
    for start in range(0, len(pieces), BATCH):
        before, after = (
            "".join(pieces[max(0, start - BATCH) : start]),
            "".join(pieces[start + BATCH : start + 2 * BATCH]),
        )
        yield from (end >= WORD for end in boundary_levels(pieces[start : start + BATCH], before, after))


def node_at(document: Document, start: int, at: int) -> Node:
    """The node before a token, as it is read from another one on."""
    token_ids, tree = document.token_ids, document.tree
    return tree.descend(tree.root, itertools.chain(token_ids[: document.passage.start_count], token_ids[start:at]))


def _spot(document: Document, at: int) -> TextEnd:
    """How text goes on before a token."""
    if not at:
        return TextEnd(document.model.codec, b"", at_start=True)
    stand = document.passage.tokens[at - 1]
    return TextEnd(document.model.codec, stand.partial, at_start=not (stand.end or stand.partial))


def _character(document: Document, at: int) -> int:
    """Where the text of a token begins."""
    return document.passage.tokens[at - 1].end if at else 0


def _token_at(document: Document, start: int) -> int:
    """The first token of the entry that begins at a character."""
    found = next((at for at, _, begins, _ in spans(document) if begins == start), None)
    if found is None:
        raise ValueError(f"start is {start!r}, and must be the character at which a token of the text begins.")
    return found
