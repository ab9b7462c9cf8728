"""Where branches hang and how their text begins: what turns the leaves of a lookahead into what it shows."""

from __future__ import annotations

import itertools
import math
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TypeVar

from lookahead_core.document.results import Beam, BeamNode, Beams, Branch, Cost, Lookahead, Other, Piece
from lookahead_core.engines.prediction_rows import TOP_TOKENS
from lookahead_core.strategies.beam import BeamOptions, BeamPath, BeamTrace
from lookahead_core.strategies.branch_growth import BranchLeaf, BranchStart, Complete
from lookahead_core.strategies.healing import ReopenedToken
from lookahead_core.strategies.lookahead_options import LookaheadOptions
from lookahead_core.text.boundaries import CONTEXT_CHARACTERS, boundary_levels
from lookahead_core.text.passage import TextEnd
from lookahead_core.tree import Node, Prediction

B = TypeVar("B", bound=Branch)


@dataclass(frozen=True, slots=True)
class ResultContext:
    """Where branches hang and how their text begins: what stays the same while they grow."""

    origin: Node
    spot: TextEnd
    stop: frozenset[int]
    options: LookaheadOptions = field(default_factory=LookaheadOptions)
    typed: ReopenedToken | None = None
    seen_from: int = 0

    @property
    def before(self) -> str:
        """The end of the text, as far as it matters to where words and sentences end."""
        spelled: list[bytes] = []
        node: Node | None = self.origin
        while node is not None and node.depth and len(spelled) < CONTEXT_CHARACTERS:
            spelled.append(self.spot.codec.bytes_of(node.token_id))
            node = node.parent
        return b"".join(reversed(spelled)).decode(errors="ignore")

    def complete(self) -> Complete | None:
        """How to tell that a path reaches the end of a word, a clause, a sentence or a line, if that is asked for."""
        if self.options.until == "tokens":
            return None
        self.spot.codec.require_tokenizer()
        level, before = ("word", "clause", "sentence", "line").index(self.options.until) + 1, self.before

        def complete(token_ids: Sequence[int], typed: bytes) -> int | None:
            pieces = _cut(token_ids, typed, self.spot, self.stop)
            flags = boundary_levels([text for text, _ in pieces], before)
            return next((size for (_, size), flag in zip(pieces, flags, strict=True) if flag >= level), None)

        return complete


def make_lookahead(
    leaves: Sequence[BranchLeaf], cost: Cost, scene: ResultContext, start: BranchStart | None = None
) -> Lookahead:
    """The view of these leaves, in their order; `start` is where they begin."""
    paths = [leaf.token_ids for leaf in leaves]
    apart, before = _apart(paths), scene.before if leaves else ""
    return Lookahead(
        branches=tuple(_branch(leaf, apart[leaf.token_ids], before, scene) for leaf in leaves),
        coverage=_coverage({leaf.token_ids: leaf.logprobs for leaf in leaves}, apart),
        cost=cost,
        given=scene.typed.text.decode() if scene.typed else "",
        seen_from=scene.seen_from,
        rest=_rest(paths, scene, start) if leaves and start else (),
        said=start.said if leaves and start else None,
        options=scene.options,
        read=scene.origin.depth,
    )


def make_beams(
    found: Sequence[BeamPath],
    traces: Sequence[tuple[BeamTrace, str]],
    steps: int,
    cost: Cost,
    options: BeamOptions,
    scene: ResultContext,
) -> Beams:
    """The result of a beam search that has found these, and looked at those, each with its fate."""
    before = scene.before
    apart = _apart([beam.leaf.token_ids for beam in found])
    branches = [_branch(beam.leaf, apart[beam.leaf.token_ids], before, scene) for beam in found]
    beams = (
        Beam(**{each.name: getattr(branch, each.name) for each in fields(branch)}, score=beam.score)
        for branch, beam in zip(branches, found, strict=True)
    )
    return Beams(tuple(beams), _looked_at(traces, scene), steps, cost, options)


def _looked_at(traces: Sequence[tuple[BeamTrace, str]], scene: ResultContext) -> tuple[BeamNode, ...]:
    """All paths of a search; each adds the text that its last token adds there."""
    places: dict[int, int] = {}
    spots: dict[int | None, TextEnd] = {None: scene.spot}
    nodes: list[BeamNode] = []
    for place, (trace, fate) in enumerate(traces):
        parent = None if trace.parent is None else places[id(trace.parent)]
        ended = trace.token_id in scene.stop
        text, spots[place] = ("", spots[parent]) if ended else spots[parent].decode(trace.token_id)
        places[id(trace)] = place
        nodes.append(BeamNode(parent, trace.token_id, text, trace.logprob, trace.total, trace.step, ended, fate))
    return tuple(nodes)


def _branch(leaf: BranchLeaf, apart: int, before: str, scene: ResultContext) -> Branch:
    logprobs = leaf.logprobs
    return Branch(
        token_ids=leaf.token_ids,
        logprobs=logprobs,
        pieces=_pieces(leaf, before, scene),
        share=math.exp(math.fsum(logprobs[:apart])),
        probability=math.exp(math.fsum(logprobs)),
        ended=leaf.ended(scene.stop),
        healed=leaf.healed,
        said=leaf.said,
        _origin=weakref.ref(scene.origin),
    )


def _apart(paths: Sequence[tuple[int, ...]]) -> dict[tuple[int, ...], int]:
    """For each path, the length of the shortest beginning that no other path shares; all of it, if others go on."""
    order = sorted(set(paths))
    lengths = dict.fromkeys(order, 1)
    for first, second in itertools.pairwise(order):
        same = _common(first, second)
        for path in (first, second):
            lengths[path] = max(lengths[path], min(same + 1, len(path)))
    return lengths


def shared_anew(branches: Sequence[B]) -> tuple[B, ...]:
    """Branches that were changed, with the shares and probabilities of what they are now."""
    apart = _apart([branch.token_ids for branch in branches])
    return tuple(
        replace(
            branch,
            share=math.exp(math.fsum(branch.logprobs[: apart[branch.token_ids]])),
            probability=math.exp(branch.logprob),
        )
        for branch in branches
    )


def coverage_of(branches: Sequence[Branch]) -> float:
    """The mass of all that begins as one of these branches does."""
    logprobs = {branch.token_ids: branch.logprobs for branch in branches}
    return _coverage(logprobs, _apart(list(logprobs)))


def _common(first: Sequence[int], second: Sequence[int]) -> int:
    for index, (one, other) in enumerate(zip(first, second, strict=False)):
        if one != other:
            return index
    return min(len(first), len(second))


def _coverage(logprobs: dict[tuple[int, ...], tuple[float, ...]], apart: dict[tuple[int, ...], int]) -> float:
    """The mass of all that begins as one of the branches does: equal beginnings, and longer ones, count once."""
    masses: list[float] = []
    counted: tuple[int, ...] | None = None
    for path in sorted(logprobs):
        beginning = path[: apart[path]]
        # Paths in order come right after those that they begin with.
        if counted is None or beginning[: len(counted)] != counted:
            counted = beginning
            masses.append(math.exp(math.fsum(logprobs[path][: len(beginning)])))
    return min(1.0, math.fsum(masses))


def _rest(paths: Sequence[tuple[int, ...]], scene: ResultContext, start: BranchStart) -> tuple[Other, ...]:
    """What else could come first, likeliest first; after the typed token itself what goes on from it."""
    begun = {path[:length] for path in paths for length in (1, 2)}
    found = [other for other in _beginnings(scene, start) if other.token_ids not in begun]
    return tuple(sorted(found, key=lambda other: -math.fsum(other.logprobs))[:TOP_TOKENS])


def _beginnings(scene: ResultContext, start: BranchStart) -> Iterator[Other]:
    """Everything that could come first, as far as it is kept."""
    said, after, head = start.said, start.after_typed, scene.origin
    for token_id, logprob in _finite(said):
        if after is None or token_id != head.token_id:
            yield _other((token_id,), (logprob,), (said,), scene)
    if after is not None:
        for token_id, logprob in _finite(after):
            yield _other((head.token_id, token_id), (start.typed, logprob), (said, after), scene)


def _finite(said: Prediction) -> Iterator[tuple[int, float]]:
    for token_id, logprob in zip(said.token_ids, said.logprobs, strict=True):
        if logprob > -math.inf:
            yield token_id, logprob


def _other(
    token_ids: tuple[int, ...], logprobs: tuple[float, ...], said: tuple[Prediction, ...], scene: ResultContext
) -> Other:
    cuts = _cut(token_ids, scene.typed.text if scene.typed else b"", scene.spot, scene.stop)
    text = "".join(piece for piece, _ in cuts)
    return Other(token_ids, logprobs, _whole(text), token_ids[-1] in scene.stop, said)


def _whole(text: str) -> str | None:
    return text if text and "\ufffd" not in text else None


def _pieces(leaf: BranchLeaf, before: str, scene: ResultContext) -> tuple[Piece, ...]:
    """The branch cut where characters are whole; an end token, and a character never completed, are in no piece."""
    cuts = _cut((*leaf.token_ids, *leaf.beyond), leaf.typed, scene.spot, scene.stop)
    flags = boundary_levels([text for text, _ in cuts], before, final=leaf.ended(scene.stop))
    pieces: list[Piece] = []
    begun = 0
    for (text, end), flag in zip(cuts, flags, strict=True):
        if end > len(leaf.token_ids):
            break
        odds = math.exp(math.fsum(leaf.logprobs[begun:end]))
        pieces.append(Piece(text, leaf.token_ids[begun:end], odds, end, flag))
        begun = end
    return tuple(pieces)


def _cut(token_ids: Sequence[int], typed: bytes, spot: TextEnd, stop: frozenset[int]) -> list[tuple[str, int]]:
    """The texts that tokens add, whole characters only, each with the number of tokens that it takes."""
    cuts: list[tuple[str, int]] = []
    for index, token_id in enumerate(token_ids):
        if token_id in stop:
            break
        text, spot = spot.decode(token_id, 0 if index else len(typed))
        if text:
            cuts.append((text, index + 1))
    return cuts
