"""Connecting to a server: what it serves, what it lacks, and a sentence for each mistake."""

from __future__ import annotations

import re
import socket
from pathlib import Path
from typing import Any

import pytest

from lookahead_core import Document, Model, load_model
from lookahead_core.errors import ModelError, TextError
from tests.support.completions_server import CompletionsServer


def refused(address: str, sentence: str, **options: Any) -> None:
    with pytest.raises(ModelError, match=sentence):
        load_model(address, **options)


@pytest.mark.parametrize(
    ("left_out", "sentence"),
    [
        ("token_ids", "answers without token ids, which branches need: serve the model with vLLM"),
        ("logprobs", "answers without log-probabilities of the likeliest tokens, which"),
        ("keys", "answers without log-probabilities by token id, which"),
    ],
)
def test_a_server_that_lacks_what_branches_need_is_refused_with_what_is_missing(
    server: CompletionsServer, byte_tokenizer: Any, left_out: str, sentence: str
) -> None:
    server.left_out = {left_out}
    refused(server.address, sentence, tokenizer=byte_tokenizer)


@pytest.mark.parametrize(("limit", "most", "whole"), [(-1, 64, True), (64, 64, False), (20, 20, False), (5, 5, False)])
def test_as_many_log_probabilities_are_used_as_the_server_gives(
    server: CompletionsServer, byte_tokenizer: Any, limit: int, most: int, whole: bool
) -> None:
    server.most_logprobs = limit
    model = load_model(server.address, tokenizer=byte_tokenizer)
    engine: Any = model.engine
    assert (engine.most, engine.whole_rows) == (most, whole)
    assert len(Document(model, "Once").predict().token_ids) == most
    engine.close()


@pytest.mark.parametrize("limit", [-1, 20, 5])
@pytest.mark.parametrize("processes", [False, True])
def test_whether_a_server_gives_odds_among_allowed_tokens_is_found_out(
    server: CompletionsServer, byte_tokenizer: Any, limit: int, processes: bool
) -> None:
    server.most_logprobs, server.processes = limit, processes
    engine: Any = load_model(server.address, tokenizer=byte_tokenizer).engine
    assert engine.conditional == processes
    engine.close()


def test_a_server_that_gives_one_log_probability_or_knows_no_allowed_tokens_is_used_without_them(
    server: CompletionsServer, byte_tokenizer: Any
) -> None:
    server.processes = True
    for server.most_logprobs, server.ignores_allowed in ((1, False), (20, True)):
        engine: Any = load_model(server.address, tokenizer=byte_tokenizer).engine
        assert not engine.conditional
        engine.close()


def test_a_server_of_several_models_needs_a_name_that_it_has(server: CompletionsServer, byte_tokenizer: Any) -> None:
    server.models = [{**server.models[0], "id": name} for name in ("one", "two")]
    refused(server.address, "serves one, two: name one with model_name", tokenizer=byte_tokenizer)
    refused(server.address, "serves no model three, but one, two", tokenizer=byte_tokenizer, model_name="three")
    model = load_model(server.address, tokenizer=byte_tokenizer, model_name="two")
    assert Document(model, "Once").predict() and server.bodies[-1]["model"] == "two"
    model.engine.close()  # type: ignore[attr-defined]


def test_a_wrong_address_is_a_sentence(server: CompletionsServer, byte_tokenizer: Any) -> None:
    wrong = server.address.removesuffix("/v1")
    refused(wrong, re.escape("has no such call or model (404): check the address, which ends in /v1"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    refused(f"http://127.0.0.1:{port}/v1", "cannot be reached: check the address, and whether the server runs")
    refused("http://name:secret@host/v1", "holds a password or key: set LOOKAHEAD_SERVER_KEY instead")
    refused("http:///v1", "is no address of a server")
    server.listed_fault = "html"
    refused(server.address, "cannot be read: check whether it is a model's server")


def test_a_missing_key_is_a_sentence(server: CompletionsServer, byte_tokenizer: Any) -> None:
    server.key = "secret"
    refused(server.address, re.escape("wants a key or does not accept this one (401): set LOOKAHEAD_SERVER_KEY"))


def test_the_tokenizer_is_that_of_the_folder_that_the_server_or_the_caller_names(
    server: CompletionsServer, byte_tokenizer: Any, tmp_path: Path
) -> None:
    refused(server.address, "The tokenizer /nowhere/tiny of the model at .* cannot be loaded .*: give tokenizer")
    byte_tokenizer.save_pretrained(tmp_path)
    named = load_model(server.address, tokenizer=str(tmp_path))
    server.models[0]["root"] = str(tmp_path)
    found = load_model(server.address)
    for model in (named, found):
        assert Document(model, "Once upon").token_ids == [token.token_id for token in model.codec.encode("Once upon")]
        assert model.end_token_ids == {byte_tokenizer.eos_token_id}
        model.engine.close()  # type: ignore[attr-defined]


def test_without_a_tokenizer_there_are_ids_and_no_text(server: CompletionsServer, tiny_model: Model) -> None:
    refused(server.address, "does not say how many tokens its model has: give its tokenizer", tokenizer=None)
    server.most_logprobs = -1
    server.models[0]["root"] = "tiny"
    bare = load_model(server.address, tokenizer=None)
    assert bare.vocabulary == tiny_model.vocabulary
    ids = [branch.token_ids for branch in Document(bare, token_ids=[5, 6]).lookahead(k=2, depth=3).branches]
    local = load_model(tiny_model.hf_model)
    assert ids == [branch.token_ids for branch in Document(local, token_ids=[5, 6]).lookahead(k=2, depth=3).branches]
    with pytest.raises(TextError):
        Document(bare, "text")
    bare.engine.close()  # type: ignore[attr-defined]
