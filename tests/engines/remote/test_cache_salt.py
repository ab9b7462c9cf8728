"""One cache salt for each person: the time of an answer does not tell what others have written."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from interface.server.branch_request import BranchRequest
from interface.server.page_session import PageSession
from lookahead_core import Document, Model, load_model, lookahead_batch
from tests.support.completions_server import CompletionsServer

TEXT = "Once upon a time"


@pytest.fixture
def remote(server: CompletionsServer, byte_tokenizer: Any) -> Iterator[Model]:
    server.most_logprobs = -1
    model = load_model(server.address, tokenizer=byte_tokenizer)
    del server.bodies[:]
    yield model
    model.engine.close()  # type: ignore[attr-defined]


def salts(server: CompletionsServer) -> list[str]:
    return [body["cache_salt"] for body in server.bodies]


def answer(session: PageSession, **fields: Any) -> None:
    request = {"page": "a" * 16, "number": 1, "revision": 1, "text": TEXT, "k": 3, "depth": 3, **fields}
    list(session.answer_steps(BranchRequest.from_json(request)))


def test_every_request_of_a_document_has_its_salt_and_another_document_has_another(
    server: CompletionsServer, remote: Model
) -> None:
    first, second = Document(remote, TEXT), Document(remote, TEXT)
    first.lookahead(k=3, depth=4)
    first.text = TEXT + " there"
    first.lookahead(k=2, depth=2, mode="sampled", seed=1)
    one = set(salts(server))
    del server.bodies[:]
    second.lookahead(k=3, depth=4)
    two = set(salts(server))
    assert len(one) == len(two) == 1 and one != two


def test_a_salt_has_256_random_bits_and_characters_that_every_server_takes(
    server: CompletionsServer, remote: Model
) -> None:
    for _ in range(20):
        Document(remote, TEXT).predict()
    assert len(set(salts(server))) == 20
    # vLLM wants a string that is not empty, and advises 43 characters of base64.
    assert all(len(each) == 43 and each.replace("-", "").replace("_", "").isalnum() for each in salts(server))


def test_a_batch_of_documents_has_a_request_for_each_salt(
    server: CompletionsServer, remote: Model, tiny_model: Model
) -> None:
    documents = [Document(remote, text) for text in (TEXT, "The sea", "After careful")]
    found = lookahead_batch(documents, k=3, depth=3)
    local = lookahead_batch([Document(tiny_model, each.text) for each in documents], k=3, depth=3)
    assert [[one.token_ids for one in each.branches] for each in found] == [
        [one.token_ids for one in each.branches] for each in local
    ]
    by_salt: dict[str, set[int]] = {}
    for body in server.bodies:
        by_salt.setdefault(body["cache_salt"], set()).update(prompt[-1] for prompt in body["prompt"])
    assert set(by_salt) == {document.tree.session_key for document in documents}


def test_a_page_has_one_salt_for_its_rows_columns_and_conversations_and_another_page_another(
    server: CompletionsServer, remote: Model
) -> None:
    sessions = PageSession(remote), PageSession(remote)
    for session in sessions:
        answer(session)
        answer(session, instruction="Be brief.", number=2)
        columns = [{"instruction": "Be brief.", "temperature": 1}, {"instruction": "Be long.", "temperature": 1}]
        answer(session, columns=columns, number=3)
    keys = [session.session_key for session in sessions]
    assert set(salts(server)) == set(keys) and keys[0] != keys[1]


def test_requests_with_different_salts_are_made_at_the_same_time(server: CompletionsServer, remote: Model) -> None:
    documents = [Document(remote, TEXT) for _ in range(4)]
    server.event_seconds = 0.1
    started = time.perf_counter()
    lookahead_batch(documents, k=1, depth=2)
    assert time.perf_counter() - started < 0.6  # one after the other: 0.8 seconds
