"""connect: make a `Model` from the addresses of one or several servers, after checking what their answers hold."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
from transformers import AutoConfig, AutoTokenizer, GenerationConfig

from lookahead_core.engines.remote.completions import Completions
from lookahead_core.engines.remote.remote_engine import RemoteEngine
from lookahead_core.engines.remote.replicas import Replica, Replicas
from lookahead_core.engines.remote.server_connection import ServerConnection
from lookahead_core.errors import ModelError, NoAnswer
from lookahead_core.loading.from_transformers import PretrainedSource, quiet_loading
from lookahead_core.loading.served_model import ServedModel, inspect
from lookahead_core.loading.special_tokens import first_end_tokens, first_start_token
from lookahead_core.model import Model
from lookahead_core.settings import Settings
from lookahead_core.text.codec import TextCodec


def addresses_of(source: Any) -> list[str]:
    """Return the addresses of servers in a source of `load_model`, each once; [] for any other source.

    That is a list of addresses, or a string of one or several, separated by commas.
    """
    parts = [part.strip() for part in source.split(",")] if isinstance(source, str) else source
    if not isinstance(parts, list | tuple) or not parts or not all(map(_is_address, parts)):
        return []
    return list(dict.fromkeys(part.rstrip("/") for part in parts))


def _is_address(part: Any) -> bool:
    return isinstance(part, str) and part.startswith(("http://", "https://"))


def connect(
    addresses: Sequence[str], model_name: str | None, tokenizer: Any, own_tokenizer: Any, settings: Settings
) -> Model:
    """Return a `Model` whose predictions the servers at `addresses` compute, for `load_model`.

    All must serve the same model; one that does not answer now is used from its return on, if another one does.
    `model_name` may be None if they serve one model. `tokenizer` is a tokenizer, a folder or Hub id of one, None for
    none, or `own_tokenizer` for that of the folder or Hub id that a server names. Raises NoAnswer if no server answers
    now, and another ModelError, which says what to do, if one lacks the model or what this library needs, or no
    tokenizer is found.
    """
    for address in addresses:
        _check_address(address)
    connections = [
        ServerConnection(address, key=settings.server_key, seconds=settings.server_seconds) for address in addresses
    ]
    try:
        found, reasons = _inspect_all(connections, model_name)
        location = tokenizer if isinstance(tokenizer, str | os.PathLike) else found[0].root
        if tokenizer is own_tokenizer or location is tokenizer:
            tokenizer = _load_tokenizer(os.fspath(location), found[0].address, settings.trust_remote_code)
        configs = _configs(os.fspath(location), settings.trust_remote_code)
        served = _common(found, lambda: _vocabulary(configs, tokenizer))
    except BaseException:
        for connection in connections:
            connection.close()
        raise
    replicas = [Replica(Completions(each, served.name), reasons.get(each.address, "")) for each in connections]
    whole_rows = all(each.vocabulary for each in found)
    engine = RemoteEngine(
        Replicas(replicas, functools.partial(_why_out, found[0], served, whole_rows)),
        most=served.most,
        vocabulary=served.vocabulary,
        most_tokens=served.most_tokens,
        whole_rows=whole_rows,
        conditional=served.conditional,
    )
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
        address=engine.address,
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


def _inspect_all(
    connections: Sequence[ServerConnection], model_name: str | None
) -> tuple[list[ServedModel], dict[str, str]]:
    """Return what the servers that answer give, one at least, and by address why others do not answer.

    Raises NoAnswer if none answers, and another ModelError if one lacks something, or if two serve different models.
    """
    found: list[ServedModel] = []
    missing: dict[str, NoAnswer] = {}
    for connection in connections:
        try:
            found.append(inspect(connection, model_name))
        except NoAnswer as error:
            missing[connection.address] = error
    if not found:
        raise next(iter(missing.values()))
    for other in found[1:]:
        if difference := found[0].difference(other):
            raise ModelError(f"{difference}; give the addresses of servers of the same model.")
    return found, {address: str(error) for address, error in missing.items()}


def _common(found: Sequence[ServedModel], vocabulary: Callable[[], int]) -> ServedModel:
    """Return what all servers give: the smallest context and number of log-probabilities.

    `vocabulary` returns the number of tokens if no server gives those of all.
    """
    return replace(
        found[0],
        most_tokens=min(each.most_tokens for each in found),
        most=min(each.most for each in found),
        conditional=all(each.conditional for each in found),
        vocabulary=max(each.vocabulary for each in found) or vocabulary(),
    )


def _why_out(first: ServedModel, common: ServedModel, whole_rows: bool, replica: Replica) -> str:
    """Return why a replica that was out stays out: it serves another model than the first one, or gives less than all.

    "" if it may be used again. Raises ModelError if it does not answer.
    """
    found = inspect(replica.completions.connection, first.name)
    if difference := first.difference(found):
        return f"{difference}."
    if found.most_tokens < common.most_tokens:
        return f"{found.address} reads {found.most_tokens} tokens only, and {common.most_tokens} are needed."
    if common.conditional and not found.conditional:
        return f"{found.address} runs without --logprobs-mode processed_logprobs, unlike the other servers."
    if found.most < common.most or (whole_rows and not found.vocabulary):
        return f"{found.address} gives fewer log-probabilities than the other servers."
    return ""


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
