"""The document of one call, on a tree that earlier calls may have evaluated, and the call's results as JSON."""

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
from lookahead_core.errors import NO_TOKENS, LookaheadError
from lookahead_core.model import Model
from lookahead_core.prediction import Prediction
from lookahead_core.text.chat import ChatToken, Conversation
from lookahead_core.text.codec import is_complete_utf8
from lookahead_core.tree import Node, TokenTree

Answer: TypeAlias = dict[str, Any]
R = TypeVar("R", Lookahead, Beams)
EVALUATED_ROWS = 128
"""Tokens per forward pass if every token's logits are needed: each row of logits is large."""


@dataclass(frozen=True)
class CallDocument:
    """The document of one call, for a text or for a conversation, and the call's results as JSON.

    `Calls.open_document` makes it.
    """

    document: Document
    tokens: Sequence[ChatToken]
    """All tokens that the model reads, start tokens and chat template included, with their characters in `text`."""
    chat: Conversation | None
    """The conversation whose last message is the document's text; None for a text."""

    @classmethod
    def open(
        cls, model: Model, written: str, tokens: Sequence[ChatToken], chat: Conversation | None, tree: TokenTree
    ) -> CallDocument:
        """Return a document of `written`, a text or a conversation's last message, on this tree.

        `tokens` are all its tokens, start tokens and chat template included. With `chat`, its opening comes before the
        text, and its control tokens for the end of a message are end tokens. No other document may be using the tree.
        """
        if chat is None:
            return cls(Document(model, written, tree=tree), tokens, None)
        ending = replace(model, end_token_ids=model.end_token_ids | chat.turn_end_ids)
        return cls(Document(ending, written, opening=chat.opening, tree=tree), tokens, chat)

    @property
    def text(self) -> str:
        """All characters of the text, or of the conversation with its template, whether the model reads them or not."""
        return self.document.text if self.chat is None else self.chat.text

    @property
    def stop_strings(self) -> list[str]:
        """The plain text with which the chat template ends a message, as a list of one; empty if there is none."""
        return [self.chat.turn_end_text] if self.chat is not None and self.chat.turn_end_text else []

    def prefill_steps(self) -> Iterator[None]:
        """Prefill the text and evaluate its last token; a generator that yields None after each forward pass.

        It also yields at its end, without a pass. A new view of the tree begins. Make the stream or beam search before:
        making it keeps room for its tokens in the context. Raises LookaheadError if there is no token.
        """
        for _ in self.document.lookahead_steps(k=1, depth=1):
            yield None

    def prune(self) -> None:
        """Remove nodes off the text's path until at most `MOST_NODES` are left, least recently visible first.

        A new view begins if there are more. Nodes that an unfinished stream or beam search goes on from are kept.
        """
        tree = self.document.tree
        over = tree.size - tree.head.depth - MOST_NODES
        if over > 0:
            tree.new_view()
            self.document.model.engine.free(tree.prune(over))

    def closed(self, result: R) -> R:
        """Return the result with each branch cut where the chat template's plain text for the end of a message begins.

        A branch that is cut counts as ended, and branches that have become equal are merged, except samples. Returns
        the result unchanged for a text, and if no branch has such an ending.
        """
        return result if self.chat is None else closed(result, self.chat, self.document.text)

    @staticmethod
    def branches_as_json(result: Lookahead | Beams) -> list[Answer]:
        """Return a JSON object per branch: text, ids, logprobs, share, probability and ended.

        With word odds also next_word and share_error.
        """
        return [_branch_as_json(branch) for branch in result.branches]

    @staticmethod
    def highlights_as_json(found: Highlights) -> list[Answer]:
        """Return a JSON object per entry of highlights, in the order of the text.

        It has start, end, token (its characters), token_loss (in nats), ids, word (its start and end), rank,
        alternatives (id, text, probability, ended), topk_tokens (their texts; "" if no whole characters),
        most_likely_token (the entry's own text unless the model predicted another token), and ratio, as
        `Highlights.relative_loss`: null if that is None, above 1 only for the first entry and an infinite loss. Without
        a prediction token_loss, rank and ratio are null, and alternatives and topk_tokens empty.
        """
        return [_highlight_as_json(found, entry) for entry in found.entries]

    def stream_as_json(self, steps: Sequence[StreamStep]) -> Answer:
        """Return a stream as JSON: text, ids, logprobs, `finish` as in `StreamStep`, and `ended`, True if it is "end".

        The template's text for the end of a message counts as an end token: then `finish` is "end". It is "" if there
        are no steps.
        """
        finish = steps[-1].finish if steps else ""
        if finish == "stop" and steps[-1].stopped_by in self.stop_strings:
            finish = "end"
        return {
            "text": "".join(step.text for step in steps),
            "ids": [step.token_id for step in steps],
            "logprobs": [step.logprob for step in steps],
            "finish": finish,
            "ended": finish == "end",
        }

    def evaluate_steps(self) -> Iterator[int]:
        """Evaluate every token that is not evaluated yet; a generator that yields after each pass how many are done.

        It yields nothing if all are evaluated. Afterwards `predictions` and `token_entries` are known. Its first step
        raises LookaheadError if there is no token, or if there are more than the model's context holds.
        """
        tree, context = self.document.tree, self.document.model.context_length
        if context is not None and len(self.tokens) > context:
            raise LookaheadError(
                f"There are {len(self.tokens):,} tokens, and this model sees {context:,} at once: shorten the text."
            )
        if not self.tokens:
            raise LookaheadError(NO_TOKENS)
        nodes = tree.path(self.document.head)
        pairs = list(zip(nodes, [*nodes[1:], None], strict=True))
        pending = [(node, after) for node, after in pairs if _logprob_and_rank(node, after) is None]
        for first in range(0, len(pending), EVALUATED_ROWS):
            chunk = pending[first : first + EVALUATED_ROWS]
            rows = self.document.model.engine.evaluate([node for node, _ in chunk])
            for (node, after), row in zip(chunk, rows, strict=True):
                if after is not None and _logprob_and_rank(node, after) is None:
                    logprob = row[after.token_id]
                    rank = int((row > logprob).sum()) + 1
                    tree.memoize(node, ("came", after.token_id), (float(logprob), rank))
            yield chunk[-1][0].depth

    @property
    def predictions(self) -> list[Prediction]:
        """The prediction after each token, in order; only once `evaluate_steps` has finished."""
        return [cast(Prediction, node.prediction) for node in self.document.tree.path(self.document.head)]

    def token_entries(self, count: int) -> list[Answer]:
        """Return a JSON object per token, start tokens and chat template included, and a last one for the next token.

        Only once `evaluate_steps` has finished. An object has token (its characters), id, start and end (in `text`),
        message (its index; null in the template), logprob, rank, alternatives (at most the `count` likeliest tokens,
        and the token itself: id, text, logprob and ended of each), and logprobs (their log-probabilities by text). In
        the last one, token, id, message, logprob and rank are null, and start and end are the end of the text. The
        first token has no prediction: its logprob and rank are null, its alternatives and logprobs empty.
        """
        nodes = self.document.tree.path(self.document.head)
        previous = [None, *nodes]
        return [
            self._token_entry(before, node, token, count)
            for before, node, token in zip(previous, [*nodes, None], [*self.tokens, None], strict=True)
        ]

    def _token_entry(self, before: Node | None, node: Node | None, token: ChatToken | None, count: int) -> Answer:
        alternatives = [] if before is None else self._alternatives(before, count)
        logprob, rank = (_logprob_and_rank(before, node) or (None, None)) if before and node else (None, None)
        if token is not None and before is not None and token.token_id not in [each["id"] for each in alternatives]:
            alternatives.append(self._alternative(token.token_id, cast(float, logprob)))
        logprob_by_text: dict[str, float] = {}
        for each in alternatives:
            logprob_by_text.setdefault(each["text"], each["logprob"])
        return {
            "token": None if token is None else self._text_of(token),
            "logprobs": logprob_by_text or [],
            "id": None if token is None else token.token_id,
            "start": len(self.text) if token is None else token.start,
            "end": len(self.text) if token is None else token.end,
            "message": None if token is None else token.message,
            "logprob": logprob,
            "rank": rank,
            "alternatives": alternatives,
        }

    def token_as_json(self, token_id: int) -> Answer:
        """Return a token alone as JSON: `text`, `bytes`, and `ended`: whether it is an end token.

        `text` is the token's name if it has no text. `bytes` are in hexadecimal if they are no whole characters, else
        null.
        """
        model = self.document.model
        spelled = model.codec.bytes_of(token_id)
        return {
            "text": _text_or_name(model, token_id),
            "bytes": None if is_complete_utf8(spelled) else spelled.hex(" ").upper(),
            "ended": token_id in model.end_token_ids,
        }

    def _text_of(self, token: ChatToken) -> str:
        """Return a token's characters in this text; if it has none, its own text or its name, see `_text_or_name`.

        A token that is only a part of a character then has replacement characters, and a start token its name.
        """
        return self.text[token.start : token.end] or _text_or_name(self.document.model, token.token_id)

    def _alternatives(self, node: Node, count: int) -> list[Answer]:
        prediction = node.prediction
        assert prediction is not None
        pairs = zip(prediction.token_ids[:count], prediction.logprobs, strict=False)
        return [self._alternative(token_id, logprob) for token_id, logprob in pairs]

    def _alternative(self, token_id: int, logprob: float) -> Answer:
        token = self.token_as_json(token_id)
        return {"id": token_id, "text": token["text"], "logprob": logprob, "ended": token["ended"]}


def _branch_as_json(branch: Branch) -> Answer:
    return {
        "text": branch.text,
        "ids": list(branch.token_ids),
        "logprobs": list(branch.logprobs),
        "share": branch.share,
        "probability": math.exp(math.fsum(branch.logprobs)),
        "ended": branch.ended,
        "repeats": branch.repeats,
        **({} if branch.next_word is None else {"next_word": branch.next_word, "share_error": branch.share_error}),
    }


def _logprob_and_rank(node: Node, after: Node | None) -> tuple[float, int] | None:
    """Return the natural log-probability and the rank, from 1, of `after`, the next node of the text after `node`.

    None if they are not known yet. For the last node, `after` is None, and an evaluated node has (0.0, 0).
    """
    prediction = node.prediction
    if prediction is None:
        return None
    if after is None:
        return 0.0, 0
    if after.token_id in prediction.token_ids:
        index = prediction.token_ids.index(after.token_id)
        return prediction.logprobs[index], index + 1
    return (node.memo or {}).get(("came", after.token_id))


def _text_or_name(model: Model, token_id: int) -> str:
    """Return a token's text, with replacement characters for half characters.

    If it has no text, its name in the tokenizer, such as "<s>"; TextError if the model has no tokenizer.
    """
    spelled = model.codec.bytes_of(token_id)
    if spelled:
        return spelled.decode(errors="replace")
    return str(model.codec.require_tokenizer().convert_ids_to_tokens(token_id))


def _highlight_as_json(found: Highlights, entry: HighlightEntry) -> Answer:
    """Return an entry as in `highlights_as_json`; an alternative without whole characters has an empty text.

    Pages mark each token that differs from `most_likely_token`. So this is the entry's own text wherever the model
    predicted the entry, even if several tokens spell it.
    """
    first = entry.most_likely
    return {
        "start": entry.start,
        "end": entry.end,
        "token": entry.token,
        "token_loss": entry.loss,
        "most_likely_token": first.text or "" if entry.differs and first is not None else entry.token,
        "topk_tokens": [each.text or "" for each in entry.alternatives],
        "ids": list(entry.token_ids),
        "word": list(entry.word),
        "rank": entry.rank,
        "ratio": found.relative_loss(entry),
        "alternatives": [
            {"id": each.token_id, "text": each.text or "", "probability": each.probability, "ended": each.ended}
            for each in entry.alternatives
        ],
    }
