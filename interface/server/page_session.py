"""The session of one page: its document, the views that answer its requests, and views prefetched for likely clicks.

All of it runs in the scheduler's thread, and is suspended there for each forward pass.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from interface.server.branch_request import MOST_ROW_TOKENS, BranchRequest, MessageContext, SourceTooLong
from interface.server.column_views import ColumnViews
from interface.server.prefetched_views import AHEAD_BYTES, inserted, view_key, views_of
from lookahead_core.engines.dispatch import WAITING, dispatcher_of
from lookahead_core.engines.server_engine import can_reopen, most_known, server_engine_of
from lookahead_core.errors import LookaheadError
from lookahead_core.tree import TokenTree, new_session_key

if TYPE_CHECKING:
    from lookahead_core import Document, Lookahead, Model
    from lookahead_core.document.branch_edit import BranchEdit
    from lookahead_core.document.results import LookaheadStep
    from lookahead_core.serving.packed_predictions import PredictionPacker
    from lookahead_core.strategies.lookahead_options import LookaheadOptions
    from lookahead_core.text.chat import Conversation

PAINT_INTERVAL = 0.3
"""Least seconds between two views of one request, except before the final one. Sending a view costs the processor about
half a pass of the default model, and most views are complete soon after the first one is sent."""
QUEUE_NOTE_AFTER = 1.0
"""Seconds without a GPU after which the page says that it waits for one."""
NODE_BYTES = 10_000
"""Bytes of a node of a tree with its prediction; 10,158 were measured for the default model on a 64-bit computer."""
AHEAD_FIRSTS = 300
"""Nodes that the prefetched views after the first words of all branches may have together."""

TOWARDS_NODES = 128
"""Maximum number of nodes of a search for a word, in eight passes or more."""

View = dict[str, Any]


class Step(Protocol):
    """A step of one or more lookaheads: `LookaheadStep` and `LookaheadBatchStep` have these fields."""

    @property
    def tokens_read(self) -> int: ...

    @property
    def tokens_to_read(self) -> int: ...

    @property
    def waiting(self) -> str: ...


S = TypeVar("S", bound=Step)


class PageSession:
    """Answers the requests of one page, and keeps its document and the last final result, for prefetching.

    `OpenPages` makes it. All methods run in the scheduler's thread; the generators are advanced there by one pass at a
    time. `_steps` methods answer with JSON values, as `RequestProgress.add` takes them.
    """

    background = False
    """Whether the requests of other pages go first; see `Scheduler.submit`."""

    def __init__(self, model: Model, session_key: str = "") -> None:
        """`session_key` is that of the page's other session, for a session of one of its columns."""
        self.model = model
        self.session_key = session_key or new_session_key()
        """The key of all trees of the page, see `TokenTree.session_key`."""
        self.document: Document | None = None
        self._message: MessageContext | None = None
        self._conversation: Conversation | None = None
        self._shown: Lookahead | None = None
        self._columns = ColumnViews(lambda: PageSession(model, self.session_key), paint_steps)

    @property
    def tree_bytes(self) -> int:
        """The approximate bytes of the document's tree and its predictions, see NODE_BYTES, without the KV cache.

        Those of columns count too. May be read from any thread.
        """
        document = self.document
        own = 0 if document is None else NODE_BYTES * document.tree.size
        return own + self._columns.tree_bytes

    def answer_steps(self, request: BranchRequest) -> Iterator[View]:
        """Answer a request: a generator of JSON values, about one for each pass, and the final view at the end.

        A step has the `state` "thinking" and either `reading`, a list [tokens prefilled, tokens to prefill in all], or
        a `view`; or it is `{}`, since views are made at the pace of `paint_steps`. The last one has the state
        "settled", the `view`, and `note` (see `left_out_edit` and `_note`). With an empty text and no conversation the
        only step has the state "empty". A request with columns is answered by `ColumnViews`. Where a server has
        stopped, the `note` of the last step says so. Raises the errors of `_document_for` and `Document.lookahead`.
        """
        for answer in self._answers(request):
            notice = self._notice(request, answer) if answer.get("state") == "settled" else ""
            yield answer | {"note": notice} if notice else answer

    def _notice(self, request: BranchRequest, answer: View) -> str:
        """Return the sentence that is shown with the last step; "" if there is nothing to say."""
        notice = self.take_notice() or self.left_out_edit(request) or answer.get("note") or self.missing_odds(request)
        return str(notice or "")

    def take_notice(self) -> str:
        """Return a sentence, once, after the page's texts have moved to another server; else ""."""
        own = server_engine_of(self.model.engine)
        if own is None:
            return ""
        found = [own.take_notice(self.document.tree)] if self.document is not None else []
        return next(filter(None, [*found, *self._columns.notices()]), "")

    def left_out_edit(self, request: BranchRequest) -> str:
        """Return a sentence on the request's first edit that is left out for a banned token in its text; else ""."""
        from lookahead_core.document.edited_rows import banned_token_id

        document, banned = self.document, frozenset(request.options["banned"])
        for _, edit in self._edits_of(document, request) if document is not None and not request.columns else ():
            if (token_id := banned_token_id(document, edit, banned)) is not None:
                token = self.model.codec.bytes_of(token_id).decode(errors="replace")
                return (
                    f"Your change to “{edit.text.strip()}” is left out: it has the banned token “{token.strip()}”. "
                    "To use it, first choose that token beside “Never:”, which allows it again."
                )
        return ""

    def missing_odds(self, request: BranchRequest) -> str:
        """Return a sentence on what this request's view lacks since the server gives few log-probabilities; else ""."""
        most, document = most_known(self.model.engine), self.document
        completes = can_reopen(self.model.engine)
        reopens = document is not None and document.passage.reopened_bytes()
        if most is None or not (request.words_left_out or (reopens and not completes)):
            return ""
        return (
            f"The model's server gives the odds of its {most} likeliest tokens only, so shares are of tokens"
            f"{'' if completes else ' and a typed word is not completed'}. "
            "Whoever runs it can start it with --max-logprobs -1."
        )

    def _answers(self, request: BranchRequest) -> Iterator[View]:
        """Yield the steps of `answer_steps`, without notices."""
        if request.columns:
            yield from self._columns.answer_steps(request, self)
            return
        if not request.text and request.message is None:
            yield {"state": "empty"}
            return
        document = self._document_for(request)
        self.prepare_dispatch(document, request, lambda: [_checked_ahead_options(request.options)])
        # Healing re-opens a typed token, which counts for the depth of a branch. Where its replacement inserts nothing,
        # the page shows no button for it; where it inserts characters, the page leaves out the last token.
        options = dict(request.options)
        options["depth"] += bool(document.reopens)
        if "towards" in options:
            options["budget"] = TOWARDS_NODES
        if request.source is not None:
            options["speculate"] = True  # a rewriting often repeats its source, which suffix drafts find
        steps = document.lookahead_steps(**options, heal=True, stop_at_repetition=True)
        yield from self._views(self._edited(document, steps, request), request)

    def prepare_dispatch(
        self, document: Document, request: BranchRequest, ahead: Callable[[], Sequence[LookaheadOptions]] = tuple
    ) -> None:
        """Set for whom the engine's dispatcher, if it has one, dispatches tasks of a document.

        `ahead` returns the options of the views that follow each lookahead of its next task. If the request wants them,
        they are prefetched in the same task.
        """
        if (dispatcher := dispatcher_of(self.model.engine)) is None:
            return
        from lookahead_core.serving.worker_tasks import PrefetchRequest

        options = tuple(ahead()) if request.ahead else ()
        prefetch = PrefetchRequest(options, request.ahead_tokens) if options else None
        dispatcher.prepare(document.tree, caller=request.visitor, prefetch=prefetch)

    def _edited(
        self, document: Document, steps: Iterator[LookaheadStep], request: BranchRequest
    ) -> Iterator[LookaheadStep]:
        """Return the `steps` of a lookahead and those of the request's edits; the last result has all edited rows."""
        from lookahead_core.document.edited_rows import with_edited_rows

        options = {**request.options, "stop_at_repetition": True}
        edits = self._edits_of(document, request)
        return with_edited_rows(document, steps, edits, options, MOST_ROW_TOKENS) if edits else steps

    def _edits_of(self, document: Document, request: BranchRequest) -> list[tuple[tuple[int, ...], BranchEdit]]:
        """Return the request's changes of rows for `with_edited_rows`, each after the token ids of its row."""
        return [(one.row, replace(one.edit, healed=bool(document.reopens))) for one in request.edits]

    def _views(self, steps: Iterator[LookaheadStep], request: BranchRequest) -> Iterator[View]:
        """Yield the `steps` of a lookahead as JSON values, as `answer_steps` describes them; there must be one.

        The last result is kept for `ahead_steps`.
        """
        from lookahead_core.serving.packed_predictions import PredictionPacker

        text, packer = "" if self.document is None else self.document.text, PredictionPacker()

        def view(step: LookaheadStep) -> View:
            self._shown = self.closed(step.result, text)
            return self._view(self._shown, request, packer)

        for answer in paint_steps(steps, view):
            settled = answer.get("state") == "settled" and self._shown is not None
            yield answer | {"note": _note(self._shown)} if settled else answer

    def ahead_steps(self, request: BranchRequest) -> Iterator[View]:
        """Prefetch the views after possible clicks on the last final view: a generator of passes and views.

        A click accepts a branch up to one of its pieces; clicks on first pieces come first, each group from the
        likeliest. A step is `{}`, or has `ahead`, a pair of a key (the ids of the tokens that the click accepts, joined
        by spaces) and the view, and `tokens_ahead`, the number of tokens prefetched so far. It ends after the last
        click, soon after the request's `ahead_tokens`, or before the views exceed AHEAD_BYTES. `request` must be the
        one that `answer_steps` has just answered with a final view; AssertionError if there is none. With columns the
        steps are those of `ColumnViews.ahead_steps`.
        """
        from lookahead_core.document.prefetch import prefetch_views

        if request.columns:
            yield from self._columns.ahead_steps(request)
            return
        document, shown, options = self.document, self._shown, request.options
        assert document is not None
        assert shown is not None
        began, sent = document.tree.work.tokens, 0
        shallow = _ahead_options(options)
        for prepared in prefetch_views(document, shown, most_nodes=request.ahead_tokens, **shallow):
            if prepared is None:
                yield {}
                continue
            result = self.closed(prepared.result, document.text + inserted([shown], prepared.token_ids))
            (view,), size = views_of([result], AHEAD_BYTES // options["k"])
            sent += size
            if sent > AHEAD_BYTES:
                return
            key = view_key(prepared.token_ids)
            yield {"ahead": (key, view), "tokens_ahead": document.tree.work.tokens - began}

    def continues(self, request: BranchRequest) -> bool:
        """Whether the session has a document, and with the request's instruction, source or conversation."""
        return self.document is not None and request.message == self._message

    def open(self, request: BranchRequest) -> Document:
        """Return the session's document with the request's text, as `_document_for` does; no columns are allowed."""
        return self._document_for(request)

    def view_of(self, result: Lookahead, request: BranchRequest) -> View:
        """Return the JSON view of a lookahead of the session's document, which `closed` has returned."""
        return self._view(result, request)

    def tree(self) -> dict[str, Any] | None:
        """Return the document's token tree as `tree_as_json` does; None if the page has no document yet."""
        from lookahead_core.serving.tree_export import tree_as_json

        return None if self.document is None else tree_as_json(self.document)

    def document_of(self, request: BranchRequest) -> Document | None:
        """Return the session's document if it has the request's text, and its instruction, source or conversation.

        Else that of a column that has them; None if there is neither.
        """
        document = self.document
        same = document is not None and document.text == request.text and request.message == self._message
        return document if same else self._columns.document_of(request)

    def _document_for(self, request: BranchRequest) -> Document:
        """Return the session's document, set to the request's text; a new one if `request.message` has changed.

        Forgets the last result, so `ahead_steps` may be called only after a new one. Raises LookaheadError if a
        conversation leaves too little of the model's context for the text, or if the chat template fails.
        """
        if self.document is None or request.message != self._message:
            self.document = self._open_document(request)
            self._message = request.message
        self._shown = None
        self.document.follow(request.text, request.accepted)
        self.prepare_dispatch(self.document, request)
        return self.document

    def _open_document(self, request: BranchRequest) -> Document:
        """Return a new document without text; after the tokens of the request's conversation, if it has one.

        Those end where the new message's content begins. Tokens that end a message are end tokens of the document. It
        uses the old document's tree, so that a common prefix stays cached. Raises LookaheadError if the chat template
        fails, and see `_require_room`.
        """
        from lookahead_core import Document
        from lookahead_core.text.chat import tokenize_conversation

        model, opening, talk = self.model, None, None
        if request.message is not None:
            talk = tokenize_conversation(model.codec, request.message.messages)
            opening = talk.opening
            self._require_room(opening, in_conversation=request.conversation is not None)
            model = replace(model, end_token_ids=model.end_token_ids | talk.turn_end_ids)
        self._conversation = talk
        tree = TokenTree(self.session_key) if self.document is None else self.document.tree
        document = Document(model, opening=opening, tree=tree)
        document.may_reopen = can_reopen(model.engine)
        return document

    def _require_room(self, prompt: Sequence[int], *, in_conversation: bool) -> None:
        """Raise LookaheadError if a prompt (token ids) leaves less than about a quarter of the model's context free.

        Outside of a conversation it is SourceTooLong. Passes if the context's length is unknown. `in_conversation`
        selects the advice in the error's sentence: about earlier messages, or else about instruction and source.
        """
        from lookahead_core.text.chat import max_opening_tokens

        context = self.model.context_length
        if context is None or len(prompt) <= (most := max_opening_tokens(context)):
            return
        subject, remedy = (
            ("The earlier messages", "go back to an earlier one")
            if in_conversation
            else ("Instruction and source", "shorten the source")
        )
        sentence = (
            f"{subject} have {len(prompt):,} tokens. This model's context has {context:,} tokens, and the new text "
            f"needs some of them: {remedy} until there are at most {most:,}."
        )
        raise LookaheadError(sentence) if in_conversation else SourceTooLong(sentence, len(prompt), most)

    def closed(self, result: Lookahead, text: str) -> Lookahead:
        """Return the result with branches cut where they spell the template's end of a message: `template_endings`.

        `text` is the text before the branches. Without a conversation the result is returned unchanged.
        """
        if self._conversation is None:
            return result

        from lookahead_core.document.template_endings import closed

        return closed(result, self._conversation, text)

    def _view(self, result: Lookahead, request: BranchRequest, packer: PredictionPacker | None = None) -> View:
        """Return the JSON of `lookahead_as_json`, with the request's depth in the fields `asked` and `word`.

        The result's own depth is one more if a token was re-opened.
        """
        from lookahead_core.serving.json_view import lookahead_as_json

        view = lookahead_as_json(result, packer=packer)
        view["asked"]["depth"] = request.options["depth"]
        if "word" in view:
            view["word"]["within"] = request.options["depth"]
        return view


def paint_steps(steps: Iterator[S], view: Callable[[S], View]) -> Iterator[View]:
    """Yield a JSON value for each step of one or more lookaheads, and a last one with the final view.

    There must be a step. `view` is a function that returns the JSON view of a step. While the text is prefilled, a
    value has the state "thinking" and `reading`; afterwards "thinking" and the `view` of its step, or it is `{}`: views
    are made at most every PAINT_INTERVAL seconds, and take at most a sixth of the job's seconds, so that the views of
    many people at once leave the time to passes. The last value has the state "settled" and the final `view`.
    """
    step, next_paint, next_paint_job_seconds, waiting_since, noted = None, 0.0, 0.0, 0.0, False
    for step in steps:
        if step.waiting and not step.tokens_to_read:
            waiting_since = waiting_since or time.perf_counter()
            queued = step.waiting == WAITING and time.perf_counter() - waiting_since > QUEUE_NOTE_AFTER
            yield {"state": "thinking", "note": WAITING if queued else None} if queued != noted else {}
            noted = queued
        elif step.tokens_to_read:
            yield {"state": "thinking", "reading": [step.tokens_read, step.tokens_read + step.tokens_to_read]}
        elif (began := time.perf_counter()) >= next_paint and _job_seconds() >= next_paint_job_seconds:
            made = view(step)
            ended = time.perf_counter()
            next_paint, next_paint_job_seconds = ended + PAINT_INTERVAL, _job_seconds() + 5 * (ended - began)
            yield {"state": "thinking", "view": made}
        else:
            yield {}
    assert step is not None
    yield {"state": "settled", "view": view(step)}


def _job_seconds() -> float:
    """Return `Job.seconds` of the running job; outside of jobs `time.perf_counter()`."""
    from lookahead_core.serving.job import Job

    return Job.current_seconds(outside=time.perf_counter())


def _ahead_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of prefetched views for a request's options."""
    return {**options, "depth": ahead_depth(options), "stop_at_repetition": True}


def _checked_ahead_options(options: Mapping[str, Any]) -> LookaheadOptions:
    from lookahead_core.strategies.lookahead_options import LookaheadOptions

    return LookaheadOptions.of(_ahead_options(options))


def ahead_depth(options: Mapping[str, Any]) -> int:
    """Return the depth, in tokens, of prefetched views for a request's options, which need `k`, `depth` and `mode`.

    In the modes `likely` and `sampled` it is the request's depth, or less if k views with k branches each would have
    more than about AHEAD_FIRSTS nodes together, but at least 1. In other modes, whose rows depend on the depth, it is
    the request's.
    """
    k, depth = options["k"], options["depth"]
    return min(depth, 1 + AHEAD_FIRSTS // k**2) if options["mode"] in ("likely", "sampled") else depth


def _note(result: Lookahead) -> str | None:
    """Return a sentence for the page about what its mode could not do; None if there is nothing to say.

    That is: the engine has no hidden states by which branches can be compared; or mode `surprising` finds fewer
    branches than the page wants.
    """
    if result.compared_by == "words":
        return "The rows differ in words only: this model's engine has no hidden states to compare meanings by."
    if result.options.mode == "surprising" and len(result.branches) < result.options.k:
        count = len(result.branches) - 1
        only = "No other row is" if not count else f"Only {count} other {'row is' if count == 1 else 'rows are'}"
        least = f"{100 * result.options.floor:g}\u00a0%"
        return f"{only} likely enough: the words that set a row apart must have at least {least}."
    return None
