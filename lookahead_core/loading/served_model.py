"""inspect: what one server says and gives of its model, and in what two servers differ."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
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
CHOSEN = (0, 1, 2)
"""Token ids that a trial request names in `logprob_token_ids`. A server that ignores this option returns two
log-probabilities at most: those of the likeliest and of the generated token."""
TRIAL_TOKENS, TRIAL_LOGPROBS = 128, 3
"""Tokens of the answer during which chosen tokens are requested, and the log-probabilities of each; a server that
confuses the two requests gives two at most."""
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
    chooses: bool
    """Whether it gives the log-probabilities of tokens that a request names (`logprob_token_ids`), and the answers to
    other requests at the same time stay whole."""
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
    chosen = _probe(completions, 1, CHOSEN)
    chooses = chosen is not None and chosen.logprobs.keys() >= set(CHOSEN) and _keeps_apart(completions, most_tokens)
    whole = _probe(completions, ALL)
    if whole is not None and whole.logprobs.keys() == set(range(max(len(whole.logprobs), 2))):
        vocabulary = len(whole.logprobs)
        return ServedModel(connection.address, name, root, most_tokens, TOP_TOKENS, vocabulary, chooses, whole.logprobs)
    for count in COUNTS:
        found = _probe(completions, count)
        if found is not None:
            most = min(count, len(found.logprobs))
            return ServedModel(connection.address, name, root, most_tokens, most, 0, chooses, found.logprobs)
    raise ModelError(f"{connection.address} gives no log-probabilities: serve the model with vLLM.")


def _keeps_apart(completions: Completions, most_tokens: int) -> bool:
    """Whether a request for chosen tokens leaves the answers to other requests as they are.

    vLLM 0.32 computes both in one batch, and then gives the others no log-probabilities but that of their own token:
    also those of other users of the server. False too if the two requests did not run at the same time.
    """

    def answers_stay_whole() -> bool:
        whole, during, after = True, None, 0
        with ThreadPoolExecutor(1) as thread:
            for token in completions.tokens([[0, 1]], min(TRIAL_TOKENS, most_tokens - 4), TRIAL_LOGPROBS):
                whole = whole and len(token.logprobs) >= TRIAL_LOGPROBS
                during = during or thread.submit(_probe, completions, 1, CHOSEN)
                after += during.done()
        return whole and after > 1

    try:
        return _attempted(answers_stay_whole)
    except ModelError:
        return False


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


def _probe(completions: Completions, count: int, chosen: Sequence[int] = ()) -> ServerToken | None:
    """Return the token after a short prompt with `count` log-probabilities, or those of the chosen tokens.

    None if the server refuses that number or choice.
    """
    try:
        return _attempted_probe(completions, count, chosen)
    except MissingFields as missing:
        raise ModelError(
            f"{completions.connection.address} answers without {missing}, which branches need: serve the model with "
            "vLLM (llama.cpp's server and `transformers serve` do not give them)."
        ) from None


def _attempted_probe(completions: Completions, count: int, chosen: Sequence[int]) -> ServerToken | None:
    def request() -> ServerToken | None:
        try:
            (token,) = completions.tokens([[0, 1]], 1, count, chosen=chosen)
            return token
        except ServerRefusal as refusal:
            if refusal.code in (400, 422) and "logprob" in refusal.message.lower():
                return None
            raise

    return _attempted(request)
