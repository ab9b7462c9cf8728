"""The calls that programs can make over HTTP, with `gradio_client` and as MCP tools: functions that return JSON.

Some keep the names and fields of an earlier prototype, so that its pages still work. Each call is a generator with one
step per forward pass, so that a server can take turns; called as a function it runs to its end.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeAlias, cast

from lookahead_core.errors import LookaheadError
from lookahead_core.serving.compression_json import compression_as_json
from lookahead_core.serving.json_values import json_safe
from lookahead_core.serving.json_view import word_as_json
from lookahead_core.serving.tree_pool import TreePool
from lookahead_core.steps import last_step, passes_of
from lookahead_core.text.chat import ChatToken, max_opening_tokens, tokenize_conversation
from lookahead_core.validation import check_integer

if TYPE_CHECKING:
    from lookahead_core.analysis.compression import Compression
    from lookahead_core.analysis.highlight_results import Highlights
    from lookahead_core.model import Model
    from lookahead_core.serving.call_document import CallDocument
    from lookahead_core.strategies.keywords import LookaheadKeywords
    from lookahead_core.strategies.lookahead_options import Mode, Odds, Until

P = ParamSpec("P")
Answer: TypeAlias = dict[str, Any]
Steps: TypeAlias = Iterator["Answer | Reading | None"]
"""None or a `Reading` after each forward pass, and the answer at the end."""
Messages: TypeAlias = list[dict[str, str]]
REWRITE = "Rewrite this document to be more concise."
MOST_K = 50
"""Maximum number of alternatives per token in `Calls.logprobs`."""


class Reading(NamedTuple):
    """A step of a call that reads a text."""

    read: int
    """Number of tokens that are read."""
    total: int
    """Number of tokens of the text."""


def call(steps: Callable[P, Steps]) -> Callable[P, Answer]:
    """Decorate a generator of steps: it becomes a function that runs to the end and returns the last step, the answer.

    `Calls.steps` still returns the steps. Answers are JSON-safe: the log-probability of an impossible token is None.
    """

    @functools.wraps(steps)
    def json_steps(*arguments: P.args, **options: P.kwargs) -> Steps:
        for step in steps(*arguments, **options):
            yield step if isinstance(step, Reading) else json_safe(step)

    @functools.wraps(json_steps)
    def run(*arguments: P.args, **options: P.kwargs) -> Answer:
        return cast(Answer, last_step(json_steps(*arguments, **options)))

    run.__annotations__ = steps.__annotations__ | {"return": "dict[str, Any]"}
    return run


class Calls:
    """The calls to one model: each method with the decorator `call` takes JSON values, and returns a JSON object.

    A call raises ValueError for a wrong argument, and LookaheadError if the model cannot do what it asks for. Trees of
    earlier calls are kept in `tree_pool`, a new `TreePool` if it is None: if one of them holds more than half of a
    call's tokens, from the first on, what was computed for these is not computed again. Only trees of calls with the
    same `owner` are used: who asks, in a pool for several people.
    """

    def __init__(self, model: Model, tree_pool: TreePool | None = None, *, owner: Hashable = None) -> None:
        self.model = model
        self.tree_pool = TreePool() if tree_pool is None else tree_pool
        self.owner = owner

    def steps(self, name: str, arguments: Mapping[str, Any]) -> Steps:
        """Return the steps of the call `name` with these arguments: None or a `Reading` per step, then the answer.

        `name` must be that of a method with the decorator `call`. Nothing is computed, and no argument checked, before
        the first step.
        """
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
        """Return continuations of a text that rewrites a document: the k likeliest next tokens, continued greedily.

        The answer has next_tokens (the text of each continuation), branches (text, ids, logprobs, share, probability
        and ended of each), coverage (the probability that they hold together) and seen_from (the index of the first
        character of doc_in_progress that the model reads).

        Args:
            original_doc: The document to rewrite; may be empty.
            prompt: The instruction for the rewriting.
            doc_in_progress: The new text so far.
            k: Number of continuations.
            depth: Number of tokens per continuation, the first included.
            n_future_tokens: Another name for depth.
        """
        written = _string("doc_in_progress", doc_in_progress)
        messages = _rewriting(prompt, _string("original_doc", original_doc), written)
        depth = depth if n_future_tokens is None else n_future_tokens
        with self.open_document(messages=messages) as call_document:
            step = yield from passes_of(call_document.document.lookahead_steps(k=k, depth=depth))
            result = call_document.closed(step.result)
            branches = call_document.branches_as_json(result)
            yield {
                "next_tokens": [branch["text"] for branch in branches],
                "branches": branches,
                "coverage": result.coverage,
                "seen_from": result.seen_from,
            }

    @call
    def continue_messages(self, messages: Messages, n_branch_tokens: int = 5, n_future_tokens: int = 5) -> Steps:
        """Return continuations of the last message of a conversation, of either role, with their probabilities.

        The answer has continuations (doc_text and text, which are equal, ids, logprobs, share, probability and ended of
        each), coverage (the probability that they hold together) and seen_from (the index of the first character of the
        last message that the model reads).

        Args:
            messages: {"role", "content"} each; the last one is unfinished and is continued.
            n_branch_tokens: Number of continuations.
            n_future_tokens: Number of tokens per continuation, the first included.
        """
        with self.open_document(messages=_message_list(messages)) as call_document:
            steps = call_document.document.lookahead_steps(k=n_branch_tokens, depth=n_future_tokens)
            step = yield from passes_of(steps)
            result = call_document.closed(step.result)
            found = [{"doc_text": branch["text"], **branch} for branch in call_document.branches_as_json(result)]
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
        """Return the probability of every token of a text or a conversation, template included, and of the next token.

        The answer has logprobs: an entry per token with its log-probability, rank and alternatives, and a last one with
        the alternatives for the next token. The first token has no prediction: its log-probability and rank are null.

        Args:
            text: A plain text; give either this or messages.
            messages: {"role", "content"} each; the last one is unfinished.
            k: Number of alternatives per token, 1 to 50; the text's own token is added if it is not among them.
            n_branch_tokens: Another name for k.
            n_future_tokens: Ignored; the prototype's page sends it.
        """
        count = k if n_branch_tokens is None else n_branch_tokens
        check_integer("k", count, 1, MOST_K)
        with self.open_document(text, messages, grows=False) as call_document:
            for _ in call_document.evaluate_steps():
                yield None
            yield {"logprobs": call_document.token_entries(count)}

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
        stop_at_repetition: bool = False,
        towards: str = "",
        avoid: str = "",
        budget: int = 64,
        odds: str = "tokens",
    ) -> Steps:
        """Return several continuations of a text at once, with their probabilities.

        The answer has branches (text, ids, logprobs, share, probability, ended and repeats of each; with odds="words"
        also next_word and share_error), coverage (the probability of all branches together), odds_error (maximum error
        of a share), given (the typed characters that heal re-opened), seen_from (the index of the first character that
        the model reads) and compared_by (by what diverse and surprising compare branches). With towards it has word:
        low and high, bounds of the probability that the text reaches the word within depth tokens.

        Args:
            text: A plain text; give either this or messages.
            k: Number of branches; with every_level, at each of the first two levels.
            depth: Maximum number of tokens per branch, the first included.
            mode: likely, every_level, forks, best_first, sampled, diverse or surprising.
            until: Where branches end: tokens (at depth), word, clause, sentence or line.
            temperature: Temperature of sampled branches.
            top_p: Sampled branches choose among the likeliest tokens that together have this probability.
            seed: The same seed draws the same branches.
            heal: Whether to finish a word that the text ends in; branches then have only the characters to insert.
            messages: {"role", "content"} each; the last one is unfinished and is continued.
            stop_at_repetition: Whether a branch ends where it would repeat itself; repeats then says so.
            towards: A word or phrase; the branches are the likeliest paths to it.
            avoid: A word or phrase that no branch may contain.
            budget: Maximum number of nodes that best_first and towards evaluate.
            odds: What a share is the probability of: tokens, or words (the first word, over all its tokenizations).
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
            "stop_at_repetition": stop_at_repetition,
            "towards": towards,
            "avoid": avoid,
            "budget": budget,
            "odds": cast("Odds", odds),
        }
        with self.open_document(text, messages) as call_document:
            step = yield from passes_of(call_document.document.lookahead_steps(**options))
            result = call_document.closed(step.result)
            yield {
                "branches": call_document.branches_as_json(result),
                "coverage": result.coverage,
                "odds_error": result.odds_error,
                "given": result.given,
                "seen_from": result.seen_from,
                **word_as_json(result),
                "compared_by": result.compared_by,
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
        """Return one continuation of a text, greedy unless a temperature, a cut or a seed is set.

        The answer has text, ids, logprobs, finish ("end", "length" or "stop"), ended (whether finish is "end") and
        seen_from (the index of the first character that the model reads).

        Args:
            text: A plain text; give either this or messages.
            max_new_tokens: Maximum number of tokens.
            temperature: 0 takes the likeliest token; without a value it is 1 if a cut or a seed is set.
            top_k: Sample among this many likeliest tokens; 0 is off.
            top_p: Sample among the likeliest tokens that together have this probability.
            seed: The same seed draws the same text.
            stop: Strings that end the text and are not part of it.
            messages: {"role", "content"} each; the last one is unfinished and is continued.
        """
        with self.open_document(text, messages) as call_document:
            stream = call_document.document.stream(
                max_new_tokens=max_new_tokens,
                temperature=temperature,
                top_k=top_k,
                top_p=top_p,
                seed=seed,
                stop=[*_strings("stop", stop), *call_document.stop_strings],
            )
            yield from call_document.prefill_steps()
            for _ in stream:
                yield None
            yield call_document.stream_as_json(stream.steps) | {"seen_from": stream.seen_from}

    @call
    def beam_search(
        self,
        text: str | None = None,
        num_beams: int = 5,
        max_new_tokens: int = 10,
        length_penalty: float = 1.0,
        messages: Messages | None = None,
    ) -> Steps:
        """Return the results of a beam search, best first.

        The answer has branches: text, ids, logprobs, share, probability, ended and score of each.

        Args:
            text: A plain text; give either this or messages.
            num_beams: Number of beams.
            max_new_tokens: Maximum number of tokens per beam.
            length_penalty: Above 0 favours long beams, below 0 short ones.
            messages: {"role", "content"} each; the last one is unfinished and is continued.
        """
        with self.open_document(text, messages) as call_document:
            steps = call_document.document.beam_search_steps(
                num_beams=num_beams, max_new_tokens=max_new_tokens, length_penalty=length_penalty
            )
            yield from call_document.prefill_steps()
            step = yield from passes_of(steps)
            beams = call_document.closed(step.result)
            shown = zip(call_document.branches_as_json(beams), beams.branches, strict=True)
            yield {"branches": [branch | {"score": beam.score} for branch, beam in shown]}

    @call
    def gen_revisions(self, prompt: str, doc: str, n: int = 5, max_length: int = 256, seed: int = 0) -> Steps:
        """Return whole revisions of a document, sampled with temperature 0.5, top_k 50 and top_p 0.95.

        The answer has ok, which is true, and revised_docs: doc_text and text, which are equal, ids, logprobs, finish
        and ended of each.

        Args:
            prompt: The instruction for the revisions.
            doc: The document.
            n: Number of revisions.
            max_length: Maximum number of tokens per revision.
            seed: The same seed draws the same revisions.
        """
        from lookahead_core.document.batch import stream_batch

        check_integer("n", n, 1, 20)
        with self.open_document(messages=_rewriting(prompt, doc, "")) as call_document:
            streams = stream_batch(
                [call_document.document] * n,
                max_new_tokens=max_length,
                temperature=0.5,
                top_k=50,
                top_p=0.95,
                seed=seed,
                stop=call_document.stop_strings,
            )
            yield from call_document.prefill_steps()
            for _ in streams:
                yield None
            found = [call_document.stream_as_json(steps) for steps in streams.steps]
            yield {"ok": True, "revised_docs": [{"doc_text": one["text"], **one} for one in found]}

    @call
    def highlights(self, doc: str, prompt: str = REWRITE, updated_doc: str = "", k: int = 5) -> Steps:
        """Return how likely every token of a text is that rewrites a document.

        The answer has highlights, an entry per token: start, end, token (its characters), token_loss (in nats), ids,
        word (its start and end), rank, alternatives, topk_tokens (their texts), most_likely_token and ratio (the loss
        relative to the highest one). There is none if the text to judge is empty.

        Args:
            doc: The document.
            prompt: The instruction for the rewriting.
            updated_doc: The text whose tokens are judged; if it is blank, the document itself.
            k: Number of alternatives per token.
        """
        from lookahead_core.analysis.highlights import highlights_steps

        written = updated_doc if _string("updated_doc", updated_doc).strip() else _string("doc", doc)
        if not written:
            yield {"highlights": []}
            return
        with self.open_document(messages=_rewriting(prompt, doc, written)) as call_document:
            step = yield from passes_of(highlights_steps(call_document.document, k))
            yield {"highlights": call_document.highlights_as_json(cast("Highlights", step.result))}

    @call
    def compress(self, text: str, ratio: float = 0.25) -> Steps:
        """Return a text without its least surprising phrases; names and numbers are removed last.

        The answer has text (the kept spans), spans, tokens_before and tokens_after. The spans cover the text in order:
        start, end, kept, protected (whether it is names and numbers), tokens, surprise (the sum of the negative
        log-probabilities of its tokens, in nats) and phrase_surprise (the mean over its phrase).

        Args:
            text: The text to shorten; it may be longer than the model's context.
            ratio: Maximum share of the tokens that is kept, more than 0 and at most 1.
        """
        from lookahead_core.analysis.compression import check_ratio, compression_steps

        check_ratio(ratio)
        with self.open_document(_string("text", text)) as call_document:
            for step in compression_steps(call_document.document, ratio):
                yield Reading(step.read, step.total)
            yield compression_as_json(cast("Compression", step.result))

    @contextmanager
    def open_document(
        self, text: str | None = None, messages: Messages | None = None, *, grows: bool = True
    ) -> Iterator[CallDocument]:
        """A context manager: a document of a text or of messages for one call, on a tree borrowed from the pool.

        `grows` says that the call continues the text. Entering raises ValueError unless exactly one of the two is set
        and well-formed, LookaheadError if it cannot be turned into tokens, and, with `grows`, LookaheadError if the
        messages before the last one leave less than a quarter of the context.
        """
        from lookahead_core.serving.call_document import CallDocument

        source = _text_or_messages(text, messages)
        if isinstance(source, str):
            chat, written, tokens = None, source, self._tokens_of_text(source)
        else:
            chat = tokenize_conversation(self.model.codec, source)
            written, tokens = chat.last_message, list(chat.tokens)
            if grows:
                self._check_opening_length(chat.opening_length)
        with self.tree_pool.borrow([token.token_id for token in tokens], self.owner) as tree:
            call_document = CallDocument.open(self.model, written, tokens, chat, tree)
            try:
                yield call_document
            finally:
                call_document.prune()

    def _tokens_of_text(self, text: str) -> list[ChatToken]:
        """Return the tokens of a text with their characters, start tokens first; these have no characters."""
        starts = self.model.codec.start_ids if text else self.model.start_ids
        tokens = [ChatToken(token.token_id, token.start, token.end, 0) for token in self.model.codec.encode(text)]
        return [ChatToken(token_id, 0, 0, None) for token_id in starts] + tokens

    def _check_opening_length(self, length: int) -> None:
        context = self.model.context_length
        if context is not None and length > (limit := max_opening_tokens(context)):
            raise LookaheadError(
                f"There are {length:,} tokens before the last message, and this model sees {context:,} in all: "
                f"shorten the earlier messages to at most {limit:,} tokens."
            )


def _rewriting(prompt: str, doc: str, written: str) -> Messages:
    """Return a conversation: the prompt and the document as a user message, the new text `written` as its answer.

    Raises ValueError unless the prompt and the document are strings.
    """
    request = "\n\n".join(part for part in (_string("prompt", prompt), _string("doc", doc)) if part)
    return [{"role": "user", "content": request}, {"role": "assistant", "content": written}]


def _text_or_messages(text: str | None, messages: Messages | None) -> str | Messages:
    """Return the one that is not None; raise ValueError if both or none are, or if it has the wrong type."""
    if (text is None) == (messages is None):
        raise ValueError("Give either text or messages: one of the two.")
    return _string("text", text) if messages is None else _message_list(messages)


def _message_list(messages: object) -> Messages:
    if not isinstance(messages, list):
        raise ValueError('messages must be a list of {"role": …, "content": …}.')
    return messages


def _string(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{name} is {type(value).__name__}, and must be a string.")
    return value


def _strings(name: str, value: object) -> list[str]:
    if value is not None and not (isinstance(value, list) and all(isinstance(item, str) for item in value)):
        raise ValueError(f"{name} must be a list of strings.")
    return list(value or [])
