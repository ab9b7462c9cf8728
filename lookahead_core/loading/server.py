"""connect: make a `Model` from the address of a server, after checking what its answers hold."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import httpx
from transformers import AutoConfig, AutoTokenizer, GenerationConfig

from lookahead_core.engines.prediction_rows import TOP_TOKENS
from lookahead_core.engines.remote.completions import ALL, Completions, MissingFields, ServerToken
from lookahead_core.engines.remote.remote_engine import RemoteEngine
from lookahead_core.engines.remote.server_connection import ServerConnection
from lookahead_core.engines.remote.server_errors import Retries, ServerFault, ServerRefusal
from lookahead_core.errors import LookaheadError, ModelError
from lookahead_core.loading.from_transformers import PretrainedSource, quiet_loading
from lookahead_core.loading.special_tokens import first_end_tokens, first_start_token
from lookahead_core.model import Model
from lookahead_core.settings import Settings
from lookahead_core.text.codec import TextCodec

T = TypeVar("T")
COUNTS = (TOP_TOKENS, 20, 5, 1)
"""Numbers of log-probabilities that are tried in turn: as many as predictions keep, the defaults of servers, one."""
UNKNOWN_CONTEXT = 2048
"""Tokens that a server is taken to read if it does not say; it would cut longer answers silently."""


def is_address(source: Any) -> bool:
    """Whether a source of `load_model` is the address of a server."""
    return isinstance(source, str) and source.startswith(("http://", "https://"))


@dataclass(frozen=True, slots=True)
class _Served:
    """A model as the server lists it."""

    name: str
    root: str
    """The folder or Hub id that the server has loaded; the name if it does not say."""
    most_tokens: int
    """Tokens of prompt and answer together."""


def connect(address: str, model_name: str | None, tokenizer: Any, own_tokenizer: Any, settings: Settings) -> Model:
    """Return a `Model` whose predictions the server at `address` computes, for `load_model`.

    `model_name` may be None if the server serves one model. `tokenizer` is a tokenizer, a folder or Hub id of one, None
    for none, or `own_tokenizer` for that of the folder or Hub id that the server names. Raises ModelError, which says
    what to do, if the server cannot be reached, lacks the model or what this library needs, or no tokenizer is found.
    """
    _check_address(address)
    connection = ServerConnection(address, key=settings.server_key, seconds=settings.server_seconds)
    try:
        served = _find(connection, model_name)
        location = tokenizer if isinstance(tokenizer, str | os.PathLike) else served.root
        if tokenizer is own_tokenizer or location is tokenizer:
            tokenizer = _load_tokenizer(os.fspath(location), address, settings.trust_remote_code)
        configs = _configs(os.fspath(location), settings.trust_remote_code)
        engine = _engine(connection, served, lambda: _vocabulary(configs, tokenizer))
    except BaseException:
        connection.close()
        raise
    codec, end_tokens = TextCodec(tokenizer), first_end_tokens((*configs, tokenizer))
    return Model(
        name=served.name,
        hf_model=None,
        tokenizer=tokenizer,
        codec=codec,
        engine=engine,
        engine_reason="a server computes its predictions",
        end_token_ids=frozenset(token_id for token_id in end_tokens if token_id < engine.vocabulary),
        start_ids=codec.start_ids or first_start_token((tokenizer, *reversed(configs))),
        vocabulary=engine.vocabulary,
        # The server needs room for one new token.
        context_length=served.most_tokens - 1,
        quantization="",
        computation=engine.computation,
        address=connection.address,
    )


def _check_address(address: str) -> None:
    """Raise ModelError for an address that is none, or holds a name or password: those would be in logs."""
    try:
        url = httpx.URL(address)
    except httpx.InvalidURL:
        raise ModelError("This is no address of a server: give one like http://host:8000/v1.") from None
    if url.userinfo:
        raise ModelError("The server's address holds a password or key: set LOOKAHEAD_SERVER_KEY instead.")
    if not url.host or url.query or url.fragment:
        raise ModelError(f"{address} is no address of a server: give one like http://host:8000/v1.")


def _find(connection: ServerConnection, model_name: str | None) -> _Served:
    """Return the served model of this name, or the only one for None. Raises ModelError."""
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
    return _Served(
        str(entry["id"]),
        str(entry.get("root") or entry["id"]),
        most if isinstance(most, int) and most > 1 else UNKNOWN_CONTEXT,
    )


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
        except LookaheadError as error:
            raise ModelError(str(error)) from None


def _engine(connection: ServerConnection, served: _Served, vocabulary: Callable[[], int]) -> RemoteEngine:
    """Return the engine, after a short request for each number of log-probabilities that the server might give.

    `vocabulary` returns the number of tokens, for a server that does not give those of all. Raises ModelError.
    """
    completions = Completions(connection, served.name)
    whole = _probe(completions, ALL)
    if whole is not None and whole.logprobs.keys() == set(range(max(len(whole.logprobs), 2))):
        return RemoteEngine(
            completions,
            most=TOP_TOKENS,
            vocabulary=len(whole.logprobs),
            most_tokens=served.most_tokens,
            whole_rows=True,
        )
    for count in COUNTS:
        found = _probe(completions, count)
        if found is not None:
            most = min(count, len(found.logprobs))
            return RemoteEngine(
                completions, most=most, vocabulary=vocabulary(), most_tokens=served.most_tokens, whole_rows=False
            )
    raise ModelError(f"{connection.address} gives no log-probabilities: serve the model with vLLM.")


def _probe(completions: Completions, count: int) -> ServerToken | None:
    """Return the token after a short prompt with `count` log-probabilities; None if the server refuses that number."""
    try:
        return _attempted_probe(completions, count)
    except MissingFields as missing:
        raise ModelError(
            f"{completions.connection.address} answers without {missing}, which branches need: serve the model with "
            "vLLM (llama.cpp's server and `transformers serve` do not give them)."
        ) from None


def _attempted_probe(completions: Completions, count: int) -> ServerToken | None:
    def request() -> ServerToken | None:
        try:
            (token,) = completions.tokens([[0, 1]], 1, count)
            return token
        except ServerRefusal as refusal:
            if refusal.code in (400, 422) and "logprob" in refusal.message.lower():
                return None
            raise

    return _attempted(request)


def _load_tokenizer(location: str, address: str, trust_remote_code: bool) -> Any:
    """Return the tokenizer of a folder or Hub id; ModelError if it cannot be had."""
    source = PretrainedSource(location, trust_remote_code=trust_remote_code, local_only=False)
    try:
        with quiet_loading(source):
            return AutoTokenizer.from_pretrained(location, trust_remote_code=trust_remote_code)
    except Exception as error:
        raise ModelError(
            f"The tokenizer {location} of the model at {address} cannot be loaded ({type(error).__name__}): give "
            "tokenizer, a folder or Hub id that holds it."
        ) from error


def _configs(location: str, trust_remote_code: bool) -> list[Any]:
    """Return the generation config and the text config of a folder or Hub id, as far as they can be had."""
    found: list[Any] = []
    if not Path(location).is_dir() and location.count("/") != 1:
        return found
    for load in (
        lambda: GenerationConfig.from_pretrained(location),
        lambda: AutoConfig.from_pretrained(location, trust_remote_code=trust_remote_code).get_text_config(decoder=True),
    ):
        try:
            found.append(load())
        except Exception:  # the tokenizer alone is enough
            continue
    return found


def _vocabulary(configs: list[Any], tokenizer: Any) -> int:
    """Return the number of tokens by the config, else of the tokenizer. Raises ModelError without both."""
    for config in configs:
        if isinstance(size := getattr(config, "vocab_size", None), int):
            return size
    if tokenizer is None:
        raise ModelError("The server does not say how many tokens its model has: give its tokenizer.")
    return len(tokenizer)
