"""The completions call with token ids: greedy tokens after prompts, with log-probabilities of the likeliest ones."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from lookahead_core.engines.remote.server_connection import ServerConnection
from lookahead_core.engines.remote.server_errors import ServerFault

KEY = "token_id:"
"""What the keys of log-probabilities begin with: keys by text would merge tokens of equal text."""
LEAST_LOGPROB = -9999.0
"""The log-probability that stands for a probability of 0 in JSON."""
GREEDY = {
    "temperature": 0,
    "top_p": 1,
    "top_k": 0,
    "min_p": 0,
    "repetition_penalty": 1,
    "presence_penalty": 0,
    "frequency_penalty": 0,
    "n": 1,
    "ignore_eos": True,
    "stream": True,
    "return_token_ids": True,
    "return_tokens_as_token_ids": True,
}
"""All options that could change the likeliest token: a server may take others from the model's generation config."""
ALL = -1
"""The value of `logprobs` that asks for those of all tokens."""


class MissingFields(Exception):
    """An answer lacks token ids or log-probabilities by token id. The message names what is missing."""


@dataclass(frozen=True, slots=True)
class ServerToken:
    """A token that the server has generated after one of the prompts."""

    prompt: int
    """The prompt's index."""
    token_id: int
    logprobs: dict[int, float]
    """Natural log-probabilities of the likeliest tokens by token id. This token's is always among them."""

    @property
    def likeliest(self) -> int:
        """The id of the likeliest token; of several, this token if it is among them, else the lowest id."""
        return min(self.logprobs, key=lambda each: (-self.logprobs[each], each != self.token_id, each))


class Completions:
    """The completions call of one model on a server."""

    def __init__(self, connection: ServerConnection, model_name: str) -> None:
        self.connection = connection
        self.model_name = model_name

    def tokens(
        self,
        prompts: Sequence[Sequence[int]],
        count: int,
        logprobs: int,
        *,
        allowed: Sequence[int] = (),
        salt: str = "",
    ) -> Generator[ServerToken, None, None]:
        """Yield `count` greedy tokens after each prompt as they arrive, in order for each prompt, in one request.

        End tokens do not end a prompt's tokens. `logprobs` is the number of log-probabilities of the likeliest tokens,
        or ALL. With `allowed` all new tokens are among these ids. The log-probabilities are then conditioned on that if
        the server gives those of processed logits (vLLM's `--logprobs-mode processed_logprobs`); else they are the
        model's own. The server's prefix cache is shared with requests of the same `salt` only, and of all others
        without one if it is empty. The generator may be closed, which stops the server's work. Raises ServerFault, also
        if tokens are missing at the end, ServerRefusal, and MissingFields.
        """
        body = {
            "model": self.model_name,
            "prompt": [list(prompt) for prompt in prompts],
            "max_tokens": count,
            "logprobs": logprobs,
            **GREEDY,
            **({"allowed_token_ids": list(allowed)} if allowed else {}),
            **({"cache_salt": salt} if salt else {}),
        }
        seen = [0] * len(prompts)
        with contextlib.closing(self.connection.events("completions", body)) as events:
            for event in events:
                for choice in event.get("choices") or ():
                    for token in _tokens_of(choice):
                        if not 0 <= token.prompt < len(prompts) or seen[token.prompt] == count:
                            raise ServerFault(f"{self.connection.address} has answered something else; try again.")
                        seen[token.prompt] += 1
                        yield token
        if min(seen) < count:
            raise ServerFault(f"{self.connection.address} has left out tokens of its answer; try again.")


def _tokens_of(choice: Any) -> Iterator[ServerToken]:
    """Yield the tokens of one choice of an event, of which there may be none. Raises MissingFields."""
    if not isinstance(choice, dict):
        raise MissingFields("token ids")
    if not choice.get("text") and not choice.get("token_ids") and not choice.get("logprobs"):
        return
    token_ids = choice.get("token_ids")
    if not isinstance(token_ids, list):
        raise MissingFields("token ids")
    logprobs = choice.get("logprobs")
    rows = logprobs.get("top_logprobs") if isinstance(logprobs, dict) else None
    if not isinstance(rows, list) or len(rows) != len(token_ids):
        raise MissingFields("log-probabilities of the likeliest tokens")
    for token_id, row in zip(token_ids, rows, strict=True):
        yield ServerToken(int(choice.get("index", 0)), int(token_id), _by_id(row))


def _by_id(row: Any) -> dict[int, float]:
    """Return log-probabilities by token id, from those by key; -inf for tokens of probability 0."""
    if not isinstance(row, dict) or not row:
        raise MissingFields("log-probabilities of the likeliest tokens")
    found: dict[int, float] = {}
    for key, value in row.items():
        number = key.removeprefix(KEY)
        if not key.startswith(KEY) or not number.isdecimal() or not isinstance(value, int | float):
            raise MissingFields("log-probabilities by token id")
        found[int(number)] = value if value > LEAST_LOGPROB else -math.inf
    return found
