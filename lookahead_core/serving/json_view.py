"""A document or a result as plain JSON, for pages, files and other programs."""

from __future__ import annotations

import base64
import math
import struct
from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from lookahead_core.text.codec import split_bytes
from lookahead_core.text.passage import PassageToken, TextEnd
from lookahead_core.tree import TAIL_BIN

if TYPE_CHECKING:
    import torch

    from lookahead_core.document.document import Document
    from lookahead_core.document.results import Branch, Lookahead, Other
    from lookahead_core.tree import Node, Prediction

TOP = 10
"""How many of the most likely next tokens a document shows."""
TEMPERATURES = tuple(tenths / 10 for tenths in range(1, 21))
HEAT_STEPS = 5000
"""Packed sums are whole numbers of so many steps a nat: they are below 13 for any vocabulary up to 400,000."""
ODDS_STEPS = 2000
MOST_PACKED = 2**16 - 1
ASKED = ("k", "depth", "mode", "until", "temperature", "top_p", "seed")
"""Options of a lookahead that a page compares with its sliders."""
DEEPEST = 200
"""How many levels of an exported tree nest: readers and writers of JSON give up on deep ones."""


def as_json(result: Lookahead, *, kept: int = 64, rest: int = 64) -> dict[str, Any]:
    """A whole view: branches, and the odds behind each of their tokens, packed so that a page can heat them itself."""
    said = _distinct(result, rest)
    places = {id(one): place for place, one in enumerate(said)}
    options, cost = result.options, result.cost
    return {
        "branches": [_branch(branch, places) for branch in result.branches],
        "nodes": pack(said, kept),
        "rest": [{**_tokens(other, places), "text": other.text, "end": other.ended} for other in result.rest[:rest]],
        "given": result.given,
        "seen_from": result.seen_from,
        "cost": {
            "passes": cost.passes,
            "tokens": cost.tokens,
            "seconds": cost.seconds,
            "live_slots": cost.live_slots,
            "cache_bytes": cost.cache_bytes,
        },
        "alone": result.alone,
        "asked": {name: getattr(options, name) for name in ASKED} | {"banned": len(options.banned)},
    }


def document_as_json(document: Document) -> dict[str, Any]:
    """What stands, and what the model says after it, where that is known already."""
    return {"text": document.text, "token_ids": document.token_ids, "top": _top(document)}


def _branch(branch: Branch, places: dict[int, int]) -> dict[str, Any]:
    return {
        **_tokens(branch, places),
        "pieces": [{"text": piece.text, "tokens": piece.tokens, "ends": piece.ends} for piece in branch.pieces],
        "ended": branch.ended,
        "healed": branch.healed,
    }


def _tokens(path: Branch | Other, places: dict[int, int]) -> dict[str, Any]:
    return {
        "ids": list(path.token_ids),
        "logprobs": [_short(logprob) for logprob in path.logprobs],
        "at": [places[id(one)] for one in path.said],
    }


def _short(logprob: float) -> float:
    return round(logprob, 5)


def _distinct(result: Lookahead, rest: int) -> list[Prediction]:
    """Every prediction that something shown passed, once; first the one where all of it begins."""
    said = [] if result.said is None else [result.said]
    paths: list[Branch | Other] = [*result.branches, *result.rest[:rest]]
    said += [one for path in paths for one in path.said]
    return list({id(one): one for one in said}.values())


def pack(said: Sequence[Prediction], kept: int) -> list[str]:
    """For each prediction the sums at all temperatures, then how far its tokens lie below the first, in 16 bits each.

    The probability of a token is exp((its log-probability - the first one's) / temperature - sum at temperature).
    """
    if not said:
        return []
    sums = (_sums(said) * HEAT_STEPS).round().clamp(0, MOST_PACKED).int().tolist()
    return [
        base64.b64encode(_bytes([*heat, *_below(one, kept)])).decode() for one, heat in zip(said, sums, strict=True)
    ]


def _bytes(values: list[int]) -> bytes:
    return struct.pack(f"<{len(values)}H", *values)


def _below(said: Prediction, kept: int) -> list[int]:
    """How far tokens lie below the most likely one; what is ruled out lies as far as can be said."""
    top = said.logprobs[0]
    return [int(min((top - value) * ODDS_STEPS + 0.5, MOST_PACKED)) for value in said.logprobs[:kept]]


def _sums(said: Sequence[Prediction]) -> torch.Tensor:
    """For each prediction and temperature, the logarithm of the weight of all tokens, where the first one weighs 1.

    The tail's weight is what `Prediction.reheated` takes for it, here for many at once.
    """
    import torch  # not before there is something to show: it takes seconds, and this module is imported before the page

    temperatures = torch.tensor(TEMPERATURES, dtype=torch.float64)
    logprobs = _filled(said, -math.inf)
    tops = logprobs[:, :1]
    kept = ((logprobs - tops)[:, None, :] / temperatures[:, None]).exp().sum(-1)
    tails = torch.tensor([[*one.tail, *[0] * (_bins(said) - len(one.tail))] for one in said], dtype=torch.float64)
    spread = TAIL_BIN / temperatures / 2
    centres = (torch.arange(_bins(said)) + 0.5) * TAIL_BIN
    weights = tails @ ((-centres[:, None] / temperatures).exp() * spread.sinh() / spread)
    left = 1 - logprobs.exp().sum(-1)
    known = weights[:, TEMPERATURES.index(1.0)] * tops[:, 0].exp()
    scale = torch.where(left < 1e-3, 1.0, left / known)
    return (kept + weights * scale[:, None]).log()


def _bins(said: Sequence[Prediction]) -> int:
    return max(len(one.tail) for one in said)


def _filled(said: Sequence[Prediction], filler: float) -> torch.Tensor:
    """Log-probabilities as one tensor; small vocabularies have fewer than others."""
    import torch

    width = max(len(one.logprobs) for one in said)
    rows = [[*one.logprobs, *[filler] * (width - len(one.logprobs))] for one in said]
    return torch.tensor(rows, dtype=torch.float64)


def _top(document: Document) -> list[dict[str, Any]]:
    """The most likely next tokens; a token that holds no whole character has no text."""
    said = document.head.prediction
    if said is None:
        return []
    pairs = zip(said.token_ids[:TOP], said.logprobs[:TOP], strict=True)
    return [
        {"id": token_id, "text": _whole(document, token_id), "probability": math.exp(logprob)}
        for token_id, logprob in pairs
    ]


def _whole(document: Document, token_id: int) -> str | None:
    """A token's text, where it is made of whole characters."""
    text, held = split_bytes(b"", document.model.codec.bytes_of(token_id))
    return text if text and not held and "\ufffd" not in text else None


def tree_as_json(document: Document, most: int = 5000) -> dict[str, Any]:
    """For files: the text's tokens as a flat list, and all else that is known as trees that hang off it.

    `at` says how many tokens of the trunk stand before a tree. Where there are more than `most` nodes, those nearest
    to the trunk and to the text's end are taken.
    """
    trunk, places = _trunk(document)
    standing = {node for _, node, _ in places}
    below: list[dict[str, Any]] = []
    waiting = deque(
        (child, spot, {"at": at}, below, 1)
        for at, node, spot in reversed(places)
        for child in node.children.values()
        if child not in standing
    )
    for _ in range(most):
        if not waiting:
            break
        node, spot, shown, siblings, level = waiting.popleft()
        text, spot = spot.decode(node.token_id)
        children: list[dict[str, Any]] = []
        siblings.append(shown | _shown(node, text) | {"children": children})
        if level < DEEPEST:
            waiting.extend((child, spot, {}, children, level + 1) for child in node.children.values())
    return {"trunk": trunk, "below": below}


def _shown(node: Node, text: str) -> dict[str, Any]:
    said = node.parent.prediction if node.parent else None
    known = said is not None and node.token_id in said.token_ids
    probability = math.exp(said.logprobs[said.token_ids.index(node.token_id)]) if said and known else None
    return {"id": node.token_id, "text": text, "probability": probability}


def _trunk(document: Document) -> tuple[list[dict[str, Any]], list[tuple[int, Node, TextEnd]]]:
    """What stands, token by token; and each of its nodes, with how many tokens stand up to it and how text goes on."""
    token_ids, text, nodes = document.token_ids, document.text, document.tree.path(document.head)
    stands = document.passage.tokens or [PassageToken(token_id, 0) for token_id in token_ids]
    shown, begun = [], 0
    for stand in stands:
        shown.append({"id": stand.token_id, "text": text[begun : stand.end], "probability": None})
        begun = stand.end
    places = [(0, document.tree.root, TextEnd(document.model.codec, b"", at_start=True))]
    for at, node in _placed(nodes, len(token_ids), document.passage.start_count):
        stand = stands[at - 1]
        shown[at - 1] |= {"probability": _shown(node, "")["probability"]}
        places.append((at, node, TextEnd(document.model.codec, stand.partial, not (stand.end or stand.partial))))
    return shown, places


def _placed(nodes: Sequence[Node], tokens: int, started: int) -> Iterator[tuple[int, Node]]:
    """Each node of the trunk with its place in the text, some of which the model may not read."""
    unread = tokens - len(nodes)
    for index, node in enumerate(nodes):
        yield index + 1 + (unread if index >= started else 0), node
