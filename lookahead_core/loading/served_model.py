"""inspect: what one server says and gives of its model, and in what two servers differ."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from lookahead_core.engines.prediction_rows import TOP_TOKENS
from lookahead_core.engines.remote.completions import ALL, Completions, MissingFields, ServerToken
from lookahead_core.engines.remote.server_connection import ServerConnection
from lookahead_core.engines.remote.server_errors import Retries, ServerFault, ServerRefusal
from lookahead_core.errors import LookaheadError, ModelError, NoAnswer

T = TypeVar("T")
COUNTS = (TOP_TOKENS, 20, 5, 1)
"""Numbers of log-probabilities that are tried in turn: as many as predictions keep, the defaults of servers, one."""
ALLOWED = (0, 1, 2)
"""Token ids that a trial request allows. If the answer is conditioned on them, their probabilities add up to 1."""
UNKNOWN_CONTEXT = 2048
"""Tokens that a server is taken to read if it does not say; it would cut longer answers silently."""
MOST_DIFFERENCE = 0.5
"""Nats by which the log-probabilities of equal weights may differ between two servers, at most: in half precision, on
other hardware. Other weights differ by more, or in the likeliest tokens."""


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model as one server lists it, and what its answers hold."""

    address: str
    name: str
    root: str
    """The folder or Hub id that the server has loaded; the name if it does not say."""
    most_tokens: int
    """Tokens of prompt and answer together."""
    most: int
    """The number of log-probabilities of the likeliest tokens that it gives, at most TOP_TOKENS."""
    vocabulary: int
    """The number of all tokens, if it gives the log-probabilities of all; else 0."""
    conditional: bool
    """Whether its log-probabilities are renormalised over the tokens that a request allows (`allowed_token_ids`)."""
    sample: dict[int, float]
    """Log-probabilities after a short prompt that is the same for all servers."""

    def difference(self, other: ServedModel) -> str:
        """Return a sentence that says in what another server's model differs; "" if it is the same model."""
        if self.name != other.name:
            return f"{other.address} serves {other.name}, and {self.address} serves {self.name}"
        if self.vocabulary and other.vocabulary and self.vocabulary != other.vocabulary:
            return (
                f"{other.address} has {other.vocabulary} tokens in its vocabulary, "
                f"and {self.address} has {self.vocabulary}"
            )
        count = min(self.most, other.most)
        ours, theirs = _highest(self.sample, count), _highest(other.sample, count)
        common = ours.keys() & theirs.keys()
        if 2 * len(common) < count or any(abs(ours[each] - theirs[each]) > MOST_DIFFERENCE for each in common):
            return f"{other.address} and {self.address} have different weights: their odds differ"
        return ""


def _highest(logprobs: dict[int, float], count: int) -> dict[int, float]:
    chosen = sorted(logprobs, key=lambda each: -logprobs[each])[:count]
    return {token_id: logprobs[token_id] for token_id in chosen}


def inspect(connection: ServerConnection, model_name: str | None) -> ServedModel:
    """Return what a server gives of the model of this name, or of its only one for None, after a few short requests.

    Raises NoAnswer if it does not answer, and another ModelError if it lacks the model or what this library needs.
    """
    name, root, most_tokens = _find(connection, model_name)
    completions = Completions(connection, name)
    most, vocabulary, sample = _sample(completions)
    return ServedModel(
        connection.address, name, root, most_tokens, most, vocabulary, _is_conditional(completions, most), sample
    )


def _sample(completions: Completions) -> tuple[int, int, dict[int, float]]:
    """Return `most` and `vocabulary` of a `ServedModel`, and `sample`. Raises ModelError."""
    whole = _probe(completions, ALL)
    if whole is not None and whole.logprobs.keys() == set(range(max(len(whole.logprobs), 2))):
        return TOP_TOKENS, len(whole.logprobs), whole.logprobs
    for count in COUNTS:
        found = _probe(completions, count)
        if found is not None:
            return min(count, len(found.logprobs)), 0, found.logprobs
    raise ModelError(f"{completions.connection.address} gives no log-probabilities: serve the model with vLLM.")


def _is_conditional(completions: Completions, most: int) -> bool:
    """Return whether the log-probabilities are conditioned on the tokens that a request allows.

    False too if the server gives fewer than two, or refuses the option.
    """
    if most < 2:
        return False
    allowed = ALLOWED[:most]
    found = _probe(completions, len(allowed), allowed)
    if found is None:
        return False
    return math.isclose(math.fsum(math.exp(found.logprobs.get(each, -math.inf)) for each in allowed), 1, abs_tol=1e-3)


def _find(connection: ServerConnection, model_name: str | None) -> tuple[str, str, int]:
    """Return the name, root and context of the model of this name, or of the only one for None. Raises ModelError."""
    answer = _attempted(lambda: connection.get("models"))
    entries = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(entries, list) or not all(isinstance(each, dict) and each.get("id") for each in entries):
        raise ModelError(f"{connection.address} lists no models: give the address of its API, which ends in /v1.")
    names = [str(each["id"]) for each in entries]
    if model_name is None and len(names) != 1:
        raise ModelError(f"{connection.address} serves {_listed(names)}: name one with model_name.")
    if model_name is not None and model_name not in names:
        raise ModelError(f"{connection.address} serves no model {model_name}, but {_listed(names)}: name one of them.")
    entry = entries[names.index(model_name or names[0])]
    most = entry.get("max_model_len")
    context = most if isinstance(most, int) and most > 1 else UNKNOWN_CONTEXT
    return str(entry["id"]), str(entry.get("root") or entry["id"]), context


def _listed(names: list[str]) -> str:
    return ", ".join(names[:10]) + (", …" if len(names) > 10 else "") if names else "none"


def _attempted(request: Callable[[], T]) -> T:
    """Return what a request returns, after further attempts where it faults; every error becomes a ModelError."""
    retries = Retries()
    while True:
        try:
            try:
                return request()
            except ServerFault as fault:
                retries.wait_after(fault)
        except ServerFault as fault:
            raise NoAnswer(str(fault)) from None
        except LookaheadError as error:
            raise ModelError(str(error)) from None


def _probe(completions: Completions, count: int, allowed: Sequence[int] = ()) -> ServerToken | None:
    """Return the token after a short prompt with `count` log-probabilities, of the allowed tokens if there are any.

    None if the server refuses that.
    """
    try:
        return _attempted_probe(completions, count, allowed)
    except MissingFields as missing:
        raise ModelError(
            f"{completions.connection.address} answers without {missing}, which branches need: serve the model with "
            "vLLM (llama.cpp's server and `transformers serve` do not give them)."
        ) from None


def _attempted_probe(completions: Completions, count: int, allowed: Sequence[int]) -> ServerToken | None:
    def request() -> ServerToken | None:
        try:
            (token,) = completions.tokens([[0, 1]], 1, count, allowed=allowed)
            return token
        except ServerRefusal as refusal:
            if refusal.code in (400, 422) and (allowed or "logprob" in refusal.message.lower()):
                return None
            raise

    return _attempted(request)
