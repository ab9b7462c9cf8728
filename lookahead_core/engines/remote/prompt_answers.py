"""Greedy tokens after several prompts from a server, however many requests they take. Trees are not touched here."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

from lookahead_core.engines.remote.completions import ALL, Completions, MissingFields, ServerToken
from lookahead_core.engines.remote.replicas import Replica, Replicas
from lookahead_core.engines.remote.server_errors import Retries, ServerFault
from lookahead_core.engines.server_engine import Gate
from lookahead_core.errors import LookaheadError, ModelError

MOST_PROMPTS = 256
"""Maximum number of prompts in a request; vLLM takes up to 1,024."""
MOST_WHOLE_ROWS = 8
"""Maximum number of prompts in a request for the log-probabilities of all tokens: each row is megabytes of JSON."""


@dataclass(eq=False, slots=True)
class Prompt:
    """Token ids, and what is wanted after them. `answers` adds the tokens that come to `token_ids`."""

    token_ids: list[int]
    count: int
    """The number of tokens that are still wanted; 0 after a token in `stop`."""
    stop: frozenset[int] = frozenset()
    """The token ids after which no more tokens are wanted."""
    allowed: tuple[int, ...] = ()
    """The token ids that the tokens are to be among; if empty, all."""


@dataclass(frozen=True, slots=True)
class PromptToken:
    """A token that has come after a prompt."""

    prompt: Prompt
    token: ServerToken
    """The server's token; its `likeliest` one is what was added to the prompt."""


def answers(
    replicas: Replicas,
    prompts: Sequence[Prompt],
    *,
    logprobs: int,
    least: int,
    key: str,
    most_tokens: int,
    on_request: Callable[[Sequence[Prompt], Replica], None],
    gate: Gate,
) -> Generator[PromptToken, None, None]:
    """Yield the likeliest tokens after each prompt as they come, in order for each, until none is wanted any more.

    All prompts must have the same `allowed`. `logprobs` is that of `Completions.tokens`, and `least` the number that
    each token must come with; `most_tokens` is the servers' context with new tokens. `key` is the person's, which
    chooses the replica and is the salt. `on_request` is called with the prompts of each request and
    its replica. There is one request, and more where there are too many prompts for one, where an answer breaks off,
    where a token was not the likeliest one, or where the `gate` was closed for a while. After a fault the next request
    may go to another replica, with the tokens that have come. The generator may be closed at any time, which ends the
    request; it ends early if the gate is abandoned. Raises LookaheadError, ModelError, and a ServerFault that has not
    passed.
    """
    retries = Retries()
    most = MOST_WHOLE_ROWS if logprobs == ALL else MOST_PROMPTS
    while wanted := [prompt for prompt in prompts if prompt.count]:
        chosen = _fitting(wanted[:most], most_tokens)
        _check_length(chosen, most_tokens, replicas.address)
        replica = replicas.choose(key)
        with gate.turn(replica.address) as may_go:
            if not may_go:
                return
            on_request(chosen, replica)
            try:
                with contextlib.closing(_answer(replica.completions, chosen, logprobs, least, key)) as found:
                    for each in found:
                        retries.note_progress()
                        yield each
                        if gate.closed:
                            break
            except ServerFault as fault:
                replicas.after_fault(replica, fault, retries)
            except MissingFields as missing:
                raise ModelError(f"{replica.address} no longer answers with {missing}; check the server.") from None


def _answer(
    completions: Completions, prompts: Sequence[Prompt], logprobs: int, least: int, salt: str
) -> Generator[PromptToken, None, None]:
    """Yield the tokens of one request, which ends as soon as it has no use for any prompt.

    Raises ServerFault if a token has fewer log-probabilities than `least`.
    """
    growing = dict(enumerate(prompts))
    count, allowed = max(prompt.count for prompt in prompts), prompts[0].allowed
    request = completions.tokens([prompt.token_ids for prompt in prompts], count, logprobs, allowed=allowed, salt=salt)
    with contextlib.closing(request) as tokens:
        for token in tokens:
            if token.prompt not in growing:
                continue
            if len(token.logprobs) < least:
                raise ServerFault(f"{completions.connection.address} has left out log-probabilities; try again.")
            prompt, likeliest = growing[token.prompt], token.likeliest
            prompt.token_ids.append(likeliest)
            prompt.count = 0 if likeliest in prompt.stop else prompt.count - 1
            # Where the server goes on with another token than the likeliest, the rest of its answer is of no use.
            if not prompt.count or likeliest != token.token_id:
                del growing[token.prompt]
            yield PromptToken(prompt, token)
            if not growing:
                return


def _fitting(prompts: Sequence[Prompt], most_tokens: int) -> Sequence[Prompt]:
    """Return the prompts that have room for as many tokens as the request brings; all if none has."""
    count = max(prompt.count for prompt in prompts)
    return [prompt for prompt in prompts if len(prompt.token_ids) + count <= most_tokens] or prompts


def _check_length(prompts: Sequence[Prompt], most_tokens: int, address: str) -> None:
    """Raise LookaheadError if the answer does not fit the context: the server would cut it silently."""
    count = max(prompt.count for prompt in prompts)
    if max(len(prompt.token_ids) for prompt in prompts) + count > most_tokens:
        raise LookaheadError(
            f"The text and {count} more tokens are longer than the {most_tokens} tokens that {address} reads: "
            "shorten the text, or the branches."
        )
