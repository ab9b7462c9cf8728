"""How a request is answered: a view after each pass, in the scheduler's thread, and then what might be clicked next."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from interface.server.branch_request import MOST_ROWS, BranchRequest, MessageContext
from lookahead_core.errors import LookaheadError

if TYPE_CHECKING:
    from lookahead_core import Document, Lookahead, Model
    from lookahead_core.document.results import LookaheadStep
    from lookahead_core.text.chat import Conversation

PAINT = 0.03
"""Seconds between two views that are worth painting."""
AHEAD_BYTES = 64 * 1024
AHEAD_KEPT = 16
"""How many odds a view read ahead carries for each node, and how many words of everything else."""
AHEAD_NODES = 512
AHEAD_FIRSTS = 300
"""Nodes that the views after the first words may take, all together."""
TOLD = ("Instruction and source", "shorten the source")
"""What takes the room of a text that is the answer to them, and what helps."""

View = dict[str, Any]


class PageSession:
    """One page's document, and what its last answer showed: from there it is read ahead."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.document: Document | None = None
        self._message: MessageContext | None = None
        self._conversation: Conversation | None = None
        self._shown: Lookahead | None = None

    def answers(self, asked: BranchRequest) -> Iterator[View]:
        """What is new after each pass: how far the reading is, or a view; the last one is settled."""
        if not asked.text and asked.message is None:
            yield {"state": "empty"}
            return
        document = self._take(asked)
        # The typed token that healing re-opens counts as one of a branch's, and is none that a person sees.
        options = {**asked.options, "depth": asked.options["depth"] + bool(document.reopens)}
        if asked.source is not None:
            options["speculate"] = True  # a new text often says what its source says
        yield from self._grown(document.lookahead_steps(**options, heal=True), asked)

    def _grown(self, steps: Iterator[LookaheadStep], asked: BranchRequest) -> Iterator[View]:
        """The same of branches that grow."""
        step, next_paint, text = None, 0.0, "" if self.document is None else self.document.text
        for step in steps:
            if step.tokens_to_read:
                yield {"state": "thinking", "reading": [step.tokens_read, step.tokens_read + step.tokens_to_read]}
            elif (began := time.perf_counter()) >= next_paint:
                view = self._view(self._closed(step.result, text), asked)
                # Large views are made less often: most of the time belongs to the model.
                next_paint = time.perf_counter() + max(PAINT, 5 * (time.perf_counter() - began))
                yield {"state": "thinking", "view": view}
            else:
                yield {}
        assert step is not None
        self._shown = self._closed(step.result, text)
        yield {"state": "settled", "view": self._view(self._shown, asked), "note": _note(asked)}

    def ahead(self, asked: BranchRequest) -> Iterator[View]:
        """Views that are a click away from the settled one, the likeliest first, within what a page is sent."""
        from lookahead_core.document.read_ahead import read_ahead
        from lookahead_core.serving.json_view import as_json

        document, shown, options = self.document, self._shown, asked.options
        assert document is not None
        assert shown is not None
        began, sent = document.tree.work.tokens, 0
        shallow = {**options, "depth": ahead_depth(options)}
        for found in read_ahead(document, shown, most_nodes=AHEAD_NODES, **shallow):
            if found is None:
                yield {}
                continue
            result = self._closed(found.result, document.text + _inserted(shown, found.token_ids))
            for kept in (AHEAD_KEPT, AHEAD_KEPT // 4, 0):
                view = as_json(result, kept=kept, rest=kept)
                size = len(json.dumps(view, separators=(",", ":")))
                if size <= AHEAD_BYTES // options["k"]:
                    break
            sent += size
            if sent > AHEAD_BYTES:
                return
            key = " ".join(map(str, found.token_ids))
            yield {"ahead": (key, view), "tokens_ahead": document.tree.work.tokens - began}

    def tree(self) -> dict[str, Any] | None:
        """All that is known of the document, for a file."""
        from lookahead_core.serving.json_view import tree_as_json

        return None if self.document is None else tree_as_json(self.document)

    def _take(self, asked: BranchRequest) -> Document:
        """The document, brought to the text that the page has."""
        if self.document is None or asked.message != self._message:
            self.document = self._opened(asked)
            self._message = asked.message
        self._shown = None
        self.document.follow(asked.text, asked.accepted)
        return self.document

    def _opened(self, asked: BranchRequest) -> Document:
        """A document for what the model is told, on the tree of the one before: what they share is not read again."""
        from lookahead_core import Document
        from lookahead_core.text.chat import conversation

        model, told, talk = self.model, None, None
        if asked.message is not None:
            talk = conversation(model.codec, asked.message.messages)
            why = ("The messages before", "go back to an earlier one") if asked.talk else TOLD
            told = self._fitting(talk.opening, *why)
            model = replace(model, end_token_ids=model.end_token_ids | talk.end_ids)
        self._conversation = talk
        return Document(model, opening=told, tree=None if self.document is None else self.document.tree)

    def _fitting(self, told: Sequence[int], what: str, remedy: str) -> Sequence[int]:
        """What the model is told, where that leaves room for a text."""
        from lookahead_core.text.chat import most_before

        context = self.model.context_length
        if context is not None and len(told) > (most := most_before(context)):
            raise LookaheadError(
                f"{what} are {len(told):,} tokens long, and this model sees {context:,} in all, the new text among "
                f"them: {remedy} until there are at most {most:,}."
            )
        return told

    def _closed(self, result: Lookahead, text: str) -> Lookahead:
        """Branches below a text; in a conversation, where one begins what ends a message, it ends."""
        if self._conversation is None:
            return result

        from lookahead_core.document.template_endings import closed

        return closed(result, self._conversation, text)

    def _view(self, result: Lookahead, asked: BranchRequest) -> View:
        from lookahead_core.serving.json_view import as_json

        view = as_json(result)
        view["asked"]["depth"] = asked.options["depth"]
        return view


def ahead_depth(options: Mapping[str, Any]) -> int:
    """How deep to read ahead: so deep that the first words of all branches get their views within the budget.

    Modes whose rows depend on how deep they go cannot be cut short.
    """
    k, depth = options["k"], options["depth"]
    return min(depth, 1 + AHEAD_FIRSTS // k**2) if options["mode"] in ("likely", "sampled") else depth


def _inserted(result: Lookahead, token_ids: Sequence[int]) -> str:
    """The characters that these first tokens of one of the branches insert."""
    branch = next(one for one in result.branches if one.token_ids[: len(token_ids)] == tuple(token_ids))
    return "".join(piece.text for piece in branch.pieces if piece.tokens <= len(token_ids))


def _note(asked: BranchRequest) -> str | None:
    if asked.options.get("branch_levels") == 1:
        return f"With more than {math.isqrt(MOST_ROWS)} branches only the first level branches."
    return None
