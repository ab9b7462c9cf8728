"""The calls of the teacher's prototype, and the library's own, as plain typed functions around one model.

Whatever they answer is plain JSON, under the names that the prototype gave. Each call is a row of steps, at most one
forward pass each, so that a server can take turns; called as a function it runs to its end.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, cast

from lookahead_core.errors import LookaheadError
from lookahead_core.serving.json_values import plain
from lookahead_core.serving.tree_pool import TreePool
from lookahead_core.text.chat import ChatToken, max_opening_tokens, tokenize_conversation
from lookahead_core.validation import check_integer

if TYPE_CHECKING:
    from lookahead_core.analysis.highlight_results import Highlights
    from lookahead_core.model import Model
    from lookahead_core.serving.call_document import CallDocument
    from lookahead_core.strategies.keywords import LookaheadKeywords
    from lookahead_core.strategies.lookahead_options import Mode, Until

P = ParamSpec("P")
Answer: TypeAlias = dict[str, Any]
Steps: TypeAlias = Iterator["Answer | None"]
"""Nothing after each pass, and at last the answer."""
Messages: TypeAlias = list[dict[str, str]]
REWRITE = "Rewrite this document to be more concise."
MOST_K = 50
"""How many alternatives may be asked for at each token."""


def call(steps: Callable[P, Steps]) -> Callable[P, Answer]:
    """A function that takes all of these steps and gives the answer; the steps themselves stay to be had.

    Here every answer becomes plain JSON: a model may find something impossible, and that has no number.
    """

    @functools.wraps(steps)
    def told(*arguments: P.args, **options: P.kwargs) -> Steps:
        for fact in steps(*arguments, **options):
            yield plain(fact)

    @functools.wraps(told)
    def whole(*arguments: P.args, **options: P.kwargs) -> Answer:
        answer = None
        for answer in told(*arguments, **options):  # noqa: B007
            pass
        return cast(Answer, answer)

    whole.__annotations__ = steps.__annotations__ | {"return": "dict[str, Any]"}
    return whole


class Calls:
    """One model, and the trees of what was asked of it: the same beginning is read once."""

    def __init__(self, model: Model, shelf: TreePool | None = None) -> None:
        self.model = model
        self.shelf = TreePool() if shelf is None else shelf

    def steps(self, name: str, arguments: Mapping[str, Any]) -> Steps:
        """The call of that name, pass by pass."""
        return cast(Steps, getattr(type(self), name).__wrapped__(self, **arguments))

    @call
    def next_token(
        self,
        original_doc: str,
        prompt: str,
        doc_in_progress: str,
        k: int = 5,
        depth: int = 2,
        n_future_tokens: int | None = None,
    ) -> Steps:
        """What could come next in a rewriting of a document: k continuations, with their odds.

        Args:
            original_doc: The document to be rewritten; may be empty.
            prompt: What to do with it.
            doc_in_progress: The new text so far.
            k: How many continuations.
            depth: How many tokens each, the first included.
            n_future_tokens: Another name for depth.
        """
        written = _string("doc_in_progress", doc_in_progress)
        messages = _rewriting(prompt, _string("original_doc", original_doc), written)
        depth = depth if n_future_tokens is None else n_future_tokens
        with self.place(messages=messages) as place:
            for step in place.document.lookahead_steps(k=k, depth=depth):  # noqa: B007
                yield None
            result = place.closed(step.result)
            branches = place.branches(result)
            yield {
                "next_tokens": [branch["text"] for branch in branches],
                "branches": branches,
                "coverage": result.coverage,
                "seen_from": result.seen_from,
            }

    @call
    def continue_messages(self, messages: Messages, n_branch_tokens: int = 5, n_future_tokens: int = 5) -> Steps:
        """What could come next in the last message of a conversation, whoever writes it: continuations with odds.

        Args:
            messages: {"role", "content"} each; the last one is half written and goes on.
            n_branch_tokens: How many continuations.
            n_future_tokens: How many tokens each, the first included.
        """
        with self.place(messages=_listed(messages)) as place:
            for step in place.document.lookahead_steps(k=n_branch_tokens, depth=n_future_tokens):  # noqa: B007
                yield None
            result = place.closed(step.result)
            found = [{"doc_text": branch["text"], **branch} for branch in place.branches(result)]
            yield {
                "continuations": found,
                "coverage": result.coverage,
                "seen_from": result.seen_from,
            }

    @call
    def logprobs(
        self,
        text: str | None = None,
        messages: Messages | None = None,
        k: int = 5,
        n_branch_tokens: int | None = None,
        n_future_tokens: int | None = None,
    ) -> Steps:
        """What the model thought at every token of a text or a conversation, template included, and of the next one.

        Args:
            text: A plain text; or else
            messages: {"role", "content"} each; the last one is half written.
            k: How many alternatives at each token; the one that came is added where it is not among them.
            n_branch_tokens: Another name for k.
            n_future_tokens: Taken, as the prototype sends it, and of no effect.
        """
        count = k if n_branch_tokens is None else n_branch_tokens
        check_integer("k", count, 1, MOST_K)
        with self.place(text, messages, grows=False) as place:
            for _ in place.evaluated():
                yield None
            yield {"logprobs": place.entries(count)}

    @call
    def lookahead(
        self,
        text: str | None = None,
        k: int = 5,
        depth: int = 5,
        mode: str = "likely",
        until: str = "tokens",
        temperature: float = 1.0,
        top_p: float = 1.0,
        seed: int = 0,
        heal: bool = False,
        messages: Messages | None = None,
    ) -> Steps:
        """Several continuations of a text at once, with their odds.

        Args:
            text: A plain text; or messages.
            k: How many branches.
            depth: How many tokens each, the first included.
            mode: likely, every_level, forks, best_first or sampled.
            until: Branches end with this: tokens, word, clause, sentence or line.
            temperature: Of sampled branches.
            top_p: Sampled ones are drawn among the likeliest tokens that have this probability together.
            seed: The same seed draws the same.
            heal: Whether a text that ends inside a word is finished: texts are then what is still to insert.
            messages: {"role", "content"} each; the last one is half written and goes on.
        """
        options: LookaheadKeywords = {
            "k": k,
            "depth": depth,
            "mode": cast("Mode", mode),
            "until": cast("Until", until),
            "temperature": temperature,
            "top_p": top_p,
            "seed": seed,
            "heal": heal,
        }
        with self.place(text, messages) as place:
            for step in place.document.lookahead_steps(**options):  # noqa: B007
                yield None
            result = place.closed(step.result)
            yield {
                "branches": place.branches(result),
                "coverage": result.coverage,
                "given": result.given,
                "seen_from": result.seen_from,
            }

    @call
    def generate(
        self,
        text: str | None = None,
        max_new_tokens: int = 40,
        temperature: float | None = None,
        top_k: int = 0,
        top_p: float = 1.0,
        seed: int | None = None,
        stop: list[str] | None = None,
        messages: Messages | None = None,
    ) -> Steps:
        """One continuation of a text, greedy unless something of drawing is asked for.

        Args:
            text: A plain text; or messages.
            max_new_tokens: How many tokens at most.
            temperature: 0 takes the best; left out, 1 where a cut or a seed asks for drawing.
            top_k: Draw among so many of the likeliest tokens; 0 is all.
            top_p: Draw among the likeliest tokens that have this probability together.
            seed: The same seed draws the same text.
            stop: Strings that end the text and do not come into it.
            messages: {"role", "content"} each; the last one is half written and goes on.
        """
        with self.place(text, messages) as place:
            stream = place.document.stream(
                max_new_tokens=max_new_tokens,
                temperature=temperature,
                top_k=top_k,
                top_p=top_p,
                seed=seed,
                stop=[*_strings("stop", stop), *place.end_texts],
            )
            yield from place.read()
            for _ in stream:
                yield None
            yield place.streamed(stream.steps) | {"seen_from": stream.seen_from}

    @call
    def beam_search(
        self,
        text: str | None = None,
        num_beams: int = 5,
        max_new_tokens: int = 10,
        length_penalty: float = 1.0,
        messages: Messages | None = None,
    ) -> Steps:
        """The best of several continuations that grow side by side, best first.

        Args:
            text: A plain text; or messages.
            num_beams: How many grow at once.
            max_new_tokens: How many tokens each at most.
            length_penalty: Above 0 favours long ones, below it short ones.
            messages: {"role", "content"} each; the last one is half written and goes on.
        """
        with self.place(text, messages) as place:
            steps = place.document.beam_search_steps(
                num_beams=num_beams, max_new_tokens=max_new_tokens, length_penalty=length_penalty
            )
            yield from place.read()
            for step in steps:  # noqa: B007
                yield None
            beams = place.closed(step.result)
            shown = zip(place.branches(beams), beams.branches, strict=True)
            yield {"branches": [branch | {"score": beam.score} for branch, beam in shown]}

    @call
    def gen_revisions(self, prompt: str, doc: str, n: int = 5, max_length: int = 256, seed: int = 0) -> Steps:
        """Whole revisions of a document, drawn as the prototype drew them.

        Args:
            prompt: What to do with the document.
            doc: The document.
            n: How many revisions.
            max_length: How many tokens each at most.
            seed: The same seed draws the same.
        """
        from lookahead_core.document.batch import stream_batch

        check_integer("n", n, 1, 20)
        with self.place(messages=_rewriting(prompt, doc, "")) as place:
            streams = stream_batch(
                [place.document] * n,
                max_new_tokens=max_length,
                temperature=0.5,
                top_k=50,
                top_p=0.95,
                seed=seed,
                stop=place.end_texts,
            )
            yield from place.read()
            for _ in streams:
                yield None
            found = [place.streamed(steps) for steps in streams.steps]
            yield {"ok": True, "revised_docs": [{"doc_text": one["text"], **one} for one in found]}

    @call
    def highlights(self, doc: str, prompt: str = REWRITE, updated_doc: str = "", k: int = 5) -> Steps:
        """What the model thought of every token of a text, as a rewriting of a document by a prompt.

        Args:
            doc: The document.
            prompt: What to do with it.
            updated_doc: The text that is asked about; where it is blank, the document itself.
            k: How many alternatives at each token.
        """
        from lookahead_core.analysis.highlights import highlights_steps

        written = updated_doc if _string("updated_doc", updated_doc).strip() else _string("doc", doc)
        if not written:
            yield {"highlights": []}
            return
        with self.place(messages=_rewriting(prompt, doc, written)) as place:
            for step in highlights_steps(place.document, k):  # noqa: B007
                yield None
            yield {"highlights": place.highlights(cast("Highlights", step.result))}

    @contextmanager
    def place(
        self, text: str | None = None, messages: Messages | None = None, *, grows: bool = True
    ) -> Iterator[CallDocument]:
        """A document for this call alone, on a tree that has read its beginning where there is one.

        Where it grows there must be room for that behind what stands before it.
        """
        from lookahead_core.serving.call_document import CallDocument

        given = _given(text, messages)
        if isinstance(given, str):
            chat, written, tokens = None, given, self._plain(given)
        else:
            chat = tokenize_conversation(self.model.codec, given)
            written, tokens = chat.last_message, list(chat.tokens)
            if grows:
                self._check_room(chat.opening_length)
        with self.shelf.borrow([token.token_id for token in tokens]) as tree:
            place = CallDocument.of(self.model, written, tokens, chat, tree)
            try:
                yield place
            finally:
                place.prune()

    def _plain(self, text: str) -> list[ChatToken]:
        """The tokens of a text, those that stand before every text first."""
        starts = self.model.codec.start_ids if text else self.model.start_ids
        typed = [ChatToken(one.token_id, one.start, one.end, 0) for one in self.model.codec.encode(text)]
        return [ChatToken(token_id, 0, 0, None) for token_id in starts] + typed

    def _check_room(self, opened: int) -> None:
        context = self.model.context_length
        if context is not None and opened > (most := max_opening_tokens(context)):
            raise LookaheadError(
                f"There are {opened:,} tokens before what is written, and this model sees {context:,} in all: "
                f"shorten what stands before until it has at most {most:,}."
            )


def _rewriting(prompt: str, doc: str, written: str) -> Messages:
    """The prototype's chat: one message with the prompt, an empty line and the document; the new text answers it."""
    asked = "\n\n".join(part for part in (_string("prompt", prompt), _string("doc", doc)) if part)
    return [{"role": "user", "content": asked}, {"role": "assistant", "content": written}]


def _given(text: str | None, messages: Messages | None) -> str | Messages:
    if (text is None) == (messages is None):
        raise ValueError("Give either text or messages: one of the two.")
    return _string("text", text) if messages is None else _listed(messages)


def _listed(messages: object) -> Messages:
    if not isinstance(messages, list):
        raise ValueError('messages must be a list of {"role": …, "content": …}.')
    return messages


def _string(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{name} is {type(value).__name__}, and must be a string.")
    return value


def _strings(name: str, value: object) -> list[str]:
    if value is not None and not (isinstance(value, list) and all(isinstance(one, str) for one in value)):
        raise ValueError(f"{name} must be a list of strings.")
    return list(value or [])
