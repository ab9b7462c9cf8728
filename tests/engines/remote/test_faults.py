"""Faults of a model's server: each is a sentence or is overcome, and the next request works again."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from lookahead_core import Document, Model, load_model
from lookahead_core.engines.remote import server_errors
from lookahead_core.engines.remote.server_connection import ServerConnection
from lookahead_core.errors import LookaheadError, NoRoom
from lookahead_core.settings import Settings
from tests.support.completions_server import CompletionsServer

TEXT = "Once upon a time"


@pytest.fixture
def remote(server: CompletionsServer, byte_tokenizer: Any) -> Iterator[Model]:
    model = load_model(server.address, tokenizer=byte_tokenizer, settings=Settings(server_seconds=20))
    del server.bodies[:]
    yield model
    model.engine.close()  # type: ignore[attr-defined]


def expected(tiny_model: Model, depth: int = 5) -> list[tuple[int, ...]]:
    return [branch.token_ids for branch in Document(tiny_model, TEXT).lookahead(k=3, depth=depth).branches]


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["500", "502", "503", "429 0.05", "cut", "half", "garbage", "html", "error", "few"])
@pytest.mark.parametrize("request_number", [0, 1])
def test_a_fault_that_passes_changes_no_branch(
    server: CompletionsServer, remote: Model, tiny_model: Model, fault: str, request_number: int
) -> None:
    server.faults = [""] * request_number + [fault, fault]
    found = Document(remote, TEXT).lookahead(k=3, depth=5)
    assert [branch.token_ids for branch in found.branches] == expected(tiny_model)
    # The answer to one token is whole before "cut", "half", "error" and "garbage" come.
    assert len(server.bodies) > 2 or (request_number == 0 and fault in ("cut", "half", "garbage", "error"))


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("500", r"has failed \(500\); try again later"),
        ("503", r"is too busy \(503\); try again later"),
        ("429 0", r"is too busy \(429\); try again in 0 seconds"),
        ("html", "cannot be read: check whether it is a model's server"),
        ("few", "has left out log-probabilities; try again"),
    ],
)
def test_a_fault_that_stays_is_a_sentence_after_some_attempts_and_then_all_works_again(
    server: CompletionsServer, remote: Model, tiny_model: Model, fault: str, sentence: str
) -> None:
    document = Document(remote, TEXT)
    server.faults = [fault] * server_errors.ATTEMPTS
    with pytest.raises(NoRoom, match=sentence):
        document.lookahead(k=3, depth=5)
    assert len(server.bodies) == server_errors.ATTEMPTS and not server.faults
    assert [branch.token_ids for branch in document.lookahead(k=3, depth=5).branches] == expected(tiny_model)


def test_an_answer_that_breaks_off_again_and_again_goes_on_where_it_broke_off(
    server: CompletionsServer, remote: Model, tiny_model: Model
) -> None:
    server.faults = ["", *["cut"] * 9]
    found = Document(remote, TEXT).lookahead(k=3, depth=9)
    assert [branch.token_ids for branch in found.branches] == expected(tiny_model, 9)
    # Up to 24 tokens in answers of at most three, each prompt longer than the one before.
    assert len(server.bodies) > server_errors.ATTEMPTS + 1
    lengths = [max(map(len, body["prompt"])) for body in server.bodies]
    assert lengths == sorted(lengths) and lengths[-1] > lengths[1]


def test_a_wait_that_the_server_asks_for_is_kept_and_a_long_one_is_a_sentence(
    server: CompletionsServer, remote: Model
) -> None:
    document = Document(remote, TEXT)
    server.faults, started = ["429 0.3"], time.perf_counter()
    document.predict()
    assert time.perf_counter() - started >= 0.3
    server.faults, started = ["503 3600"], time.perf_counter()
    with pytest.raises(NoRoom, match=r"is too busy \(503\); try again in 3600 seconds"):
        Document(remote, "The").predict()
    assert time.perf_counter() - started < 1 and len(server.bodies) == 3


def test_all_waits_that_a_server_asks_for_are_ten_seconds_together_at_most(
    server: CompletionsServer, remote: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    monkeypatch.setattr(server_errors.time, "sleep", waits.append)
    server.faults = ["429 4"] * server_errors.ATTEMPTS
    with pytest.raises(NoRoom, match="try again in 4 seconds"):
        Document(remote, TEXT).predict()
    assert waits == [4, 4] and sum(waits) <= server_errors.LONGEST_WAIT


def test_other_refusals_are_not_repeated(server: CompletionsServer, remote: Model) -> None:
    document = Document(remote, TEXT)
    for status in ("400", "401", "404", "422"):
        del server.bodies[:]
        server.faults = [status] * 3
        with pytest.raises(LookaheadError, match=rf"\({status}"):
            document.predict()
        assert len(server.bodies) == 1
        server.faults = []


def test_a_server_that_does_not_answer_is_a_sentence_after_the_time_limit(
    server: CompletionsServer, byte_tokenizer: Any
) -> None:
    model = load_model(server.address, tokenizer=byte_tokenizer, settings=Settings(server_seconds=1.5))
    del server.bodies[:]
    server.slow_seconds = 10
    server.faults, started = ["slow"], time.perf_counter()
    with pytest.raises(NoRoom, match=r"has not answered for 1.5 seconds; try again later"):
        Document(model, TEXT).predict()
    assert time.perf_counter() - started < server.slow_seconds and len(server.bodies) == 1
    model.engine.close()  # type: ignore[attr-defined]


def test_abandoning_a_lookahead_closes_the_connection_and_keeps_what_has_come(
    server: CompletionsServer, remote: Model
) -> None:
    document = Document(remote, TEXT)
    document.predict()
    server.event_seconds, server.written = 0.01, 0
    steps = document.lookahead_steps(k=4, depth=40)
    sizes = []
    for step in steps:
        sizes.append(max(len(branch.token_ids) for branch in step.result.branches))
        if sizes[-1] >= 3:
            break
    steps.close()  # type: ignore[attr-defined]
    assert sizes == [1, 2, 3]
    assert server.broken.wait(2)
    assert server.written < 4 * 39
    server.event_seconds = 0.0
    del server.bodies[:]
    assert document.lookahead(k=4, depth=3).cost.passes == 0 and not server.bodies


def test_branches_that_have_ended_close_the_connection(
    server: CompletionsServer, remote: Model, tiny_model: Model
) -> None:
    tree = Document(remote, TEXT).tree
    path = tree.token_ids(tree.head)
    ends = frozenset({int(server.next_logprobs(path).argmax())})
    server.event_seconds = 0.01
    (step,) = remote.engine.roll_out([tree.head], len(path) + 60, ends)
    assert step[0].token_id in ends
    assert server.broken.wait(2)


def test_the_key_is_sent_and_is_in_no_sentence_repr_or_log(
    tiny_model: Model, byte_tokenizer: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "sk-secret-0123456789"
    served = CompletionsServer(tiny_model.hf_model, key=key)
    monkeypatch.setenv("LOOKAHEAD_SERVER_KEY", key)
    with caplog.at_level("DEBUG"):
        model = load_model(served.address, tokenizer=byte_tokenizer)
        assert Document(model, TEXT).lookahead(k=2, depth=3).branches
        served.key = "another"
        with pytest.raises(LookaheadError, match="set LOOKAHEAD_SERVER_KEY") as caught:
            Document(model, TEXT).predict()
    connection = model.engine.replicas.all[0].completions.connection  # type: ignore[attr-defined]
    assert isinstance(connection, ServerConnection)
    seen = [repr(model), repr(Settings.from_env()), repr(connection), repr(connection._client.headers), caplog.text]
    error: BaseException | None = caught.value
    while error is not None:
        seen.append(repr(error))
        error = error.__cause__ or error.__context__
    assert not any(key in each for each in seen)
    connection.close()
    served.close()
