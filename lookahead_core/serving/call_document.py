"""Where a call works: a document on a tree that was read before, and what it tells of it as plain JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar, cast

from lookahead_core.analysis.highlight_results import HighlightEntry, Highlights
from lookahead_core.document.document import MOST_NODES, Document
from lookahead_core.document.results import Beams, Branch, Lookahead
from lookahead_core.document.stream import StreamStep
from lookahead_core.document.template_endings import closed
from lookahead_core.errors import LookaheadError
from lookahead_core.model import Model
from lookahead_core.text.chat import ChatToken, Conversation
from lookahead_core.text.codec import is_complete_utf8
from lookahead_core.tree import Node, Prediction, TokenTree

Answer: TypeAlias = dict[str, Any]
R = TypeVar("R", Lookahead, Beams)
ROWS = 128
"""How many tokens a pass takes where every one is asked about: their rows are large."""


@dataclass(frozen=True)
class CallDocument:
    """What a call works on: a document, the tokens that stand in it, and the conversation if it is one."""

    document: Document
    tokens: Sequence[ChatToken]
    chat: Conversation | None

    @classmethod
    def of(
        cls, model: Model, written: str, tokens: Sequence[ChatToken], chat: Conversation | None, tree: TokenTree
    ) -> CallDocument:
        if chat is None:
            return cls(Document(model, written, tree=tree), tokens, None)
        ending = replace(model, end_token_ids=model.end_token_ids | chat.turn_end_ids)
        return cls(Document(ending, written, opening=chat.opening, tree=tree), tokens, chat)

    @property
    def text(self) -> str:
        return self.document.text if self.chat is None else self.chat.text

    @property
    def end_texts(self) -> list[str]:
        """What ends the last message, where the template does so in plain words."""
        return [self.chat.turn_end_text] if self.chat is not None and self.chat.turn_end_text else []

    def read(self) -> Iterator[None]:
        """Read what stands, in passes of a bounded size; what will grow is begun before, and has its room."""
        for _ in self.document.lookahead_steps(k=1, depth=1):
            yield None

    def prune(self) -> None:
        """Forget the oldest of what the tree holds beside this text, where that has become too much."""
        tree = self.document.tree
        over = tree.size - tree.head.depth - MOST_NODES
        if over > 0:
            tree.new_view()
            self.document.model.engine.free(tree.prune(over))

    def closed(self, result: R) -> R:
        """The same result, no branch of which goes on beyond the end of the message in progress."""
        return result if self.chat is None else closed(result, self.chat, self.document.text)

    @staticmethod
    def branches(result: Lookahead | Beams) -> list[Answer]:
        return [_branch(branch) for branch in result.branches]

    def streamed(self, steps: Sequence[StreamStep]) -> Answer:
        """What has come, and why it is over; where the template ends a message in plain words, that is an end."""
        finish = steps[-1].finish if steps else ""
        if finish == "stop" and steps[-1].stopped_by in self.end_texts:
            finish = "end"
        return {
            "text": "".join(step.text for step in steps),
            "ids": [step.token_id for step in steps],
            "logprobs": [step.logprob for step in steps],
            "finish": finish,
            "ended": finish == "end",
        }

    @staticmethod
    def highlights(found: Highlights) -> list[Answer]:
        return [_highlight(found, entry) for entry in found.entries]

    def evaluated(self) -> Iterator[int]:
        """Ask the model at every token, some at a time, and note the odds of what came where no one keeps them.

        Yields after each pass how many tokens are told of.
        """
        tree, context = self.document.tree, self.document.model.context_length
        if context is not None and len(self.tokens) > context:
            raise LookaheadError(
                f"There are {len(self.tokens):,} tokens, and this model sees {context:,} at once: shorten the text."
            )
        if not self.tokens:
            raise LookaheadError("There is nothing to go on from: this model has no start token, so write something.")
        nodes = tree.path(self.document.head)
        pairs = list(zip(nodes, [*nodes[1:], None], strict=True))
        pending = [(node, after) for node, after in pairs if _odds(node, after) is None]
        for first in range(0, len(pending), ROWS):
            some = pending[first : first + ROWS]
            rows = self.document.model.engine.evaluate([node for node, _ in some])
            for (node, after), row in zip(some, rows, strict=True):
                if after is not None and _odds(node, after) is None:
                    logprob = row[after.token_id]
                    tree.memoize(node, ("came", after.token_id), (float(logprob), int((row > logprob).sum()) + 1))
            yield some[-1][0].depth

    @property
    def said(self) -> list[Prediction]:
        """What the model says after each token, once it was asked at all of them."""
        return [cast(Prediction, node.prediction) for node in self.document.tree.path(self.document.head)]

    def entries(self, count: int) -> list[Answer]:
        """A line for each token, with what was thought before it came; the last one for the token to come."""
        nodes = self.document.tree.path(self.document.head)
        befores = [None, *nodes]
        return [
            self._entry(before, node, token, count)
            for before, node, token in zip(befores, [*nodes, None], [*self.tokens, None], strict=True)
        ]

    def _entry(self, before: Node | None, node: Node | None, token: ChatToken | None, count: int) -> Answer:
        alternatives = [] if before is None else self._alternatives(before, count)
        logprob, rank = (_odds(before, node) or (None, None)) if before and node else (None, None)
        if token is not None and before is not None and token.token_id not in [one["id"] for one in alternatives]:
            alternatives.append(self._alternative(token.token_id, cast(float, logprob)))
        odds: dict[str, float] = {}
        for one in alternatives:
            odds.setdefault(one["text"], one["logprob"])
        return {
            "token": None if token is None else self._shown(token),
            "logprobs": odds or [],
            "id": None if token is None else token.token_id,
            "start": len(self.text) if token is None else token.start,
            "end": len(self.text) if token is None else token.end,
            "message": None if token is None else token.message,
            "logprob": logprob,
            "rank": rank,
            "alternatives": alternatives,
        }

    def spelled(self, token_id: int) -> Answer:
        """A token alone: as text or by its name, with its bytes where those are no whole characters."""
        model = self.document.model
        held = model.codec.bytes_of(token_id)
        return {
            "text": _name(model, token_id),
            "bytes": None if is_complete_utf8(held) else held.hex(" ").upper(),
            "ended": token_id in model.end_token_ids,
        }

    def _shown(self, token: ChatToken) -> str:
        """What a token stands for in this text; a start token is no text and goes by its name."""
        return self.text[token.start : token.end] or _name(self.document.model, token.token_id)

    def _alternatives(self, node: Node, count: int) -> list[Answer]:
        said = node.prediction
        assert said is not None
        pairs = zip(said.token_ids[:count], said.logprobs, strict=False)
        return [self._alternative(token_id, logprob) for token_id, logprob in pairs]

    def _alternative(self, token_id: int, logprob: float) -> Answer:
        spelled = self.spelled(token_id)
        return {"id": token_id, "text": spelled["text"], "logprob": logprob, "ended": spelled["ended"]}


def _branch(branch: Branch) -> Answer:
    return {
        "text": branch.text,
        "ids": list(branch.token_ids),
        "logprobs": list(branch.logprobs),
        "share": branch.share,
        "probability": math.exp(math.fsum(branch.logprobs)),
        "ended": branch.ended,
    }


def _odds(node: Node, after: Node | None) -> tuple[float, int] | None:
    """How likely what came after a node was, and which rank it had; None where that is not known any more."""
    said = node.prediction
    if said is None:
        return None
    if after is None:
        return 0.0, 0
    if after.token_id in said.token_ids:
        place = said.token_ids.index(after.token_id)
        return said.logprobs[place], place + 1
    return (node.memo or {}).get(("came", after.token_id))


def _name(model: Model, token_id: int) -> str:
    """A token alone as text: a control token by its name, a part of a character as the sign for one."""
    spelled = model.codec.bytes_of(token_id)
    return (
        spelled.decode(errors="replace")
        if spelled
        else str(model.codec.require_tokenizer().convert_ids_to_tokens(token_id))
    )


def _highlight(found: Highlights, entry: HighlightEntry) -> Answer:
    """A token under the prototype's names; an alternative without a whole character, or an ending, has no text.

    A page that follows the prototype marks every token that is not the most likely one: where the model would have gone
    nowhere else, that one is the token itself, however many tokens it takes.
    """
    first = entry.most_likely
    return {
        "start": entry.start,
        "end": entry.end,
        "token": entry.token,
        "token_loss": entry.loss,
        "most_likely_token": first.text or "" if entry.differs and first is not None else entry.token,
        "topk_tokens": [one.text or "" for one in entry.alternatives],
        "ids": list(entry.token_ids),
        "word": list(entry.word),
        "rank": entry.rank,
        "ratio": found.relative_loss(entry),
        "alternatives": [
            {"id": one.token_id, "text": one.text or "", "probability": one.probability, "ended": one.ended}
            for one in entry.alternatives
        ],
    }
