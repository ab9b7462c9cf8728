"""A document's whole token tree as JSON, for files."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from lookahead_core.text.passage import PassageToken, TextEnd

if TYPE_CHECKING:
    from lookahead_core.document.document import Document
    from lookahead_core.tree import Node

MAX_LEVELS = 100
"""Maximum levels of a tree below the trunk. Each is an object and a list in JSON, and the server's encoder, orjson,
refuses more than 254 of these in each other."""


def tree_as_json(document: Document, max_nodes: int = 5000) -> dict[str, Any]:
    """Return the text's tokens as the flat list `trunk`, and all other nodes of its tree as the nested trees `below`.

    A token or node has `id`, `text` and `probability`, a node of a tree also `children`. At the top of each tree, `at`
    is the number of the text's tokens before it, start tokens included. If there are more than `max_nodes` other
    nodes, the result has those closest to the trunk, and of these first the ones closest to the end of the text. Nodes
    more than `MAX_LEVELS` below the trunk are left out.
    """
    trunk, positions = _trunk(document)
    on_trunk = {node for _, node, _ in positions}
    below: list[dict[str, Any]] = []
    waiting = deque(
        (child, text_end, {"at": at}, below, 1)
        for at, node, text_end in reversed(positions)
        for child in node.children.values()
        if child not in on_trunk
    )
    for _ in range(max_nodes):
        if not waiting:
            break
        node, text_end, fields, siblings, level = waiting.popleft()
        text, text_end = text_end.decode(node.token_id)
        children: list[dict[str, Any]] = []
        siblings.append(fields | _node_as_json(node, text) | {"children": children})
        if level < MAX_LEVELS:
            waiting.extend((child, text_end, {}, children, level + 1) for child in node.children.values())
    return {"trunk": trunk, "below": below}


def _node_as_json(node: Node, text: str) -> dict[str, Any]:
    """Return a node as JSON: `id`, `text` as it is given, and `probability`, 0 to 1.

    The probability is null if its parent's prediction is unknown or does not keep its token.
    """
    prediction = node.parent.prediction if node.parent else None
    probability = None
    if prediction is not None and node.token_id in prediction.token_ids:
        probability = math.exp(prediction.logprobs[prediction.token_ids.index(node.token_id)])
    return {"id": node.token_id, "text": text, "probability": probability}


def _trunk(document: Document) -> tuple[list[dict[str, Any]], list[tuple[int, Node, TextEnd]]]:
    """Return the text's tokens as JSON objects (id, text, probability), and the position in the text of their nodes.

    The second list has a tuple for the root and for each node of a token: the number of the text's tokens up to it,
    itself included, the node, and the `TextEnd` after it. Tokens that the model does not read have no node.
    """
    token_ids, text, nodes = document.token_ids, document.text, document.tree.path(document.head)
    tokens = document.passage.tokens or [PassageToken(token_id, 0) for token_id in token_ids]
    trunk, start = [], 0
    for token in tokens:
        trunk.append({"id": token.token_id, "text": text[start : token.end], "probability": None})
        start = token.end
    positions = [(0, document.tree.root, TextEnd(document.model.codec, b"", at_start=True))]
    for at, node in _nodes_with_index(nodes, len(token_ids), document.passage.start_count):
        token = tokens[at - 1]
        trunk[at - 1] |= {"probability": _node_as_json(node, "")["probability"]}
        positions.append((at, node, TextEnd(document.model.codec, token.partial, not (token.end or token.partial))))
    return trunk, positions


def _nodes_with_index(nodes: Sequence[Node], length: int, start_count: int) -> Iterator[tuple[int, Node]]:
    """Yield for each of `nodes` a pair: the number of the text's tokens up to it, itself included, and the node.

    `nodes` are those on the text's path, without the root. `length` is the number of all tokens, `start_count` that of
    the start tokens among them. Tokens that the model does not read have no node and are counted.
    """
    unread = length - len(nodes)
    for index, node in enumerate(nodes):
        yield index + 1 + (unread if index >= start_count else 0), node
