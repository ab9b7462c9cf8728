"""Several servers of one model: where documents are computed, and what happens when a server dies and returns."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch

from lookahead_core import Document, Model, load_model
from lookahead_core.engines.remote import replicas, server_errors
from lookahead_core.engines.remote.placement import ranking
from lookahead_core.errors import ModelError, NoRoom
from lookahead_core.settings import Settings
from tests.conftest import CORPUS
from tests.support.completions_server import CompletionsServer

TEXT = "Once upon a time"
LONGEST_WAIT = 5.0
"""Seconds that `wait_until` waits."""


@pytest.fixture
def servers(tiny_model: Model, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[CompletionsServer]]:
    monkeypatch.setattr(server_errors, "BACK_OFF", 0.01)
    monkeypatch.setattr(replicas, "FIRST_CHECK", 0.05)
    monkeypatch.setattr(replicas, "LONGEST_CHECK", 0.1)
    started = [CompletionsServer(tiny_model.hf_model) for _ in range(3)]
    yield started
    for server in started:
        if not server.dead:
            server.close()


@pytest.fixture
def connect(byte_tokenizer: Any) -> Iterator[Callable[..., Model]]:
    """A function that loads the model from these servers; it is closed after the test."""
    models = []

    def load(servers: list[CompletionsServer], **options: Any) -> Model:
        addresses = [server.address for server in servers]
        models.append(load_model(addresses, tokenizer=byte_tokenizer, **options))
        for server in servers:
            del server.bodies[:]
            server.written = 0
        return models[-1]

    yield load
    for model in models:
        model.engine.close()  # type: ignore[attr-defined]


def branches(document: Document, depth: int = 5) -> list[tuple[int, ...]]:
    return [branch.token_ids for branch in document.lookahead(k=3, depth=depth).branches]


def timed_branches(documents: list[Document]) -> tuple[list[list[tuple[int, ...]]], float]:
    """The branches of all documents, looked up at the same time, and the seconds until the last has them."""
    started = time.perf_counter()
    with ThreadPoolExecutor(len(documents)) as threads:
        found = list(threads.map(branches, documents))
    return found, time.perf_counter() - started


def home(document: Document, servers: list[CompletionsServer]) -> CompletionsServer:
    """The server that is the document's first choice."""
    first = ranking([server.address for server in servers], document.tree.session_key)[0]
    return next(server for server in servers if server.address == first)


def wait_until(true: Callable[[], bool]) -> None:
    until = time.monotonic() + LONGEST_WAIT
    while not true():
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.mark.slow
def test_a_document_stays_on_the_server_of_its_key(
    servers: list[CompletionsServer], connect: Callable[..., Model]
) -> None:
    model = connect(servers)
    documents = [Document(model, TEXT) for _ in range(9)]
    for document in documents:
        branches(document)
        document.text = TEXT + " there"
        branches(document)
    for server in servers:
        expected = {each.tree.session_key for each in documents if home(each, servers) is server}
        assert {body["cache_salt"] for body in server.bodies} == expected
    assert sum(bool(server.bodies) for server in servers) >= 2


@pytest.mark.slow
@pytest.mark.alone  # the time until all are served depends on what runs beside it
@pytest.mark.parametrize("count", [2, 3])
def test_a_server_that_is_killed_in_the_middle_of_lookaheads_changes_no_branch_of_thirty_documents(
    servers: list[CompletionsServer], connect: Callable[..., Model], tiny_model: Model, count: int
) -> None:
    model, used = connect(servers[:count]), servers[:count]
    texts = [CORPUS[number % 3][: 10 + number] for number in range(30)]
    documents = [Document(model, text) for text in texts]
    for document in documents:
        document.predict()
    # Keys are random: the server with the most documents surely has enough of them.
    victim = max(used, key=lambda server: sum(home(document, used) is server for document in documents))
    lost = [document for document in documents if home(document, used) is victim]
    # It dies when some of its documents have had a part of their branches, and others none.
    victim.dies_after = victim.written + len(lost)
    found, seconds = timed_branches(documents)
    assert victim.dead and found == [branches(Document(tiny_model, text)) for text in texts]
    assert [document.text for document in documents] == texts
    engine: Any = model.engine
    # Those that had their whole view before it died are told at their next request, if ever.
    notices = [engine.take_notice(document.tree) for document in documents]
    assert {each for each, notice in zip(documents, notices, strict=True) if notice} <= set(lost) and any(notices)
    assert engine.moves == sum(map(bool, notices)) and engine.replicas.answering == count - 1
    assert not any(engine.take_notice(document.tree) for document in documents)

    # The loss costs less time than all lookaheads take on the servers that are left, when none is lost.
    unknown = [Document(model, text) for text in texts]
    for document in unknown:
        document.predict()
    assert seconds < 2 * timed_branches(unknown)[1]


@pytest.mark.slow
def test_documents_return_to_a_server_that_is_back_and_a_second_loss_is_told_again(
    servers: list[CompletionsServer], connect: Callable[..., Model]
) -> None:
    model = connect(servers[:2])
    document, engine = Document(model, TEXT), model.engine
    document.predict()
    own = home(document, servers[:2])
    other = next(server for server in servers[:2] if server is not own)
    for word in (" there", " was"):
        own.kill()
        document.text += word
        assert document.predict() and engine.take_notice(document.tree)  # type: ignore[attr-defined]
        assert other.bodies and not own.bodies[1:]
        own.start()
        wait_until(lambda: engine.replicas.answering == 2)  # type: ignore[attr-defined]
        del own.bodies[:], other.bodies[:]
        document.text += " a"
        document.predict()
        assert len(own.bodies) == 1 and not other.bodies
        assert not engine.take_notice(document.tree)  # type: ignore[attr-defined]


def test_a_fault_that_passes_does_not_move_a_document_and_one_that_stays_does(
    servers: list[CompletionsServer], connect: Callable[..., Model]
) -> None:
    model = connect(servers[:2])
    document = Document(model, TEXT)
    own = home(document, servers[:2])
    other = next(server for server in servers[:2] if server is not own)
    own.faults = ["500", "cut"]
    branches(document)
    assert not other.bodies
    document.text += " there"
    own.faults = ["500"] * 50
    branches(document)
    assert other.bodies and model.engine.take_notice(document.tree)  # type: ignore[attr-defined]


def test_when_all_servers_are_gone_there_is_a_sentence_and_all_works_again_after_their_return(
    servers: list[CompletionsServer], connect: Callable[..., Model], tiny_model: Model
) -> None:
    model = connect(servers[:2])
    document = Document(model, TEXT)
    for server in servers[:2]:
        server.kill()
    for _ in range(2):
        with pytest.raises(NoRoom, match="cannot be reached"):
            document.lookahead(k=3, depth=5)
    assert document.text == TEXT
    servers[1].start()
    wait_until(lambda: model.engine.replicas.answering == 1)  # type: ignore[attr-defined]
    assert branches(document) == branches(Document(tiny_model, TEXT))


def test_a_server_that_hangs_is_left_after_the_time_limit(
    servers: list[CompletionsServer], connect: Callable[..., Model], tiny_model: Model
) -> None:
    model = connect(servers[:2], settings=Settings(server_seconds=0.3))
    document = Document(model, TEXT)
    home(document, servers[:2]).faults = ["slow"]
    assert branches(document) == branches(Document(tiny_model, TEXT))


@pytest.mark.slow
def test_the_addresses_are_a_list_or_separated_by_commas(
    servers: list[CompletionsServer], byte_tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    addresses = [server.address for server in servers]
    monkeypatch.setenv("LOOKAHEAD_MODEL", ", ".join(addresses))
    for source in (None, addresses, ",".join(addresses), [*addresses, addresses[0] + "/"]):
        model = load_model(source, tokenizer=byte_tokenizer)
        assert [each.address for each in model.engine.replicas.all] == addresses  # type: ignore[attr-defined]
        assert model.describe() == f"tiny · {', '.join(addresses)} · remote"
        model.engine.close()  # type: ignore[attr-defined]
    with pytest.raises(ModelError, match="holds a password or key"):
        load_model(f"{addresses[0]},http://name:secret@host/v1", tokenizer=byte_tokenizer)


def test_the_smallest_context_and_number_of_log_probabilities_count(
    servers: list[CompletionsServer], connect: Callable[..., Model]
) -> None:
    servers[1].most_logprobs, servers[2].most_logprobs = 20, -1
    servers[2].models[0]["max_model_len"] = 99
    engine: Any = connect(servers).engine
    assert (engine.most, engine.whole_rows, engine.most_tokens) == (20, False, 99)


@pytest.mark.slow
def test_servers_of_different_models_are_refused_with_a_sentence(
    servers: list[CompletionsServer], byte_tokenizer: Any, tiny_model: Model
) -> None:
    def refused(sentence: str) -> None:
        with pytest.raises(ModelError, match=sentence):
            load_model([server.address for server in servers[:2]], tokenizer=byte_tokenizer)

    servers[1].models[0]["id"] = "other"
    refused(f"{servers[1].address} serves other, and {servers[0].address} serves tiny; give the addresses of")
    servers[1].models[0]["id"] = "tiny"
    generator = torch.Generator().manual_seed(7)
    noise = torch.rand(tiny_model.vocabulary, generator=generator) * 9
    plain = servers[1].next_logprobs
    servers[1].next_logprobs = lambda token_ids: (plain(token_ids) + noise).log_softmax(-1)  # type: ignore[method-assign]
    refused("have different weights: their odds differ")
    for server in servers[:2]:
        server.most_logprobs = -1
    servers[1].next_logprobs = lambda token_ids: plain(token_ids)[:-3].log_softmax(-1)  # type: ignore[method-assign]
    refused(f"has {tiny_model.vocabulary - 3} tokens in its vocabulary, and .* has {tiny_model.vocabulary}")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("processes", False, "runs without --logprobs-mode processed_logprobs, unlike the other servers"),
        ("most_logprobs", 20, "gives fewer log-probabilities than the other servers"),
        ("most_tokens", 100, "reads 100 tokens only, and 512 are needed"),
    ],
)
def test_a_server_that_comes_back_with_less_than_before_stays_out_and_the_reason_is_known(
    servers: list[CompletionsServer], connect: Callable[..., Model], name: str, value: Any, reason: str
) -> None:
    for server in servers:
        server.most_logprobs, server.processes = -1, True
    model = connect(servers[:2])
    engine: Any = model.engine
    servers[1].kill()
    for number in range(20):
        Document(model, f"{TEXT} {number}").predict()
    wait_until(lambda: engine.replicas.answering == 1)
    setattr(servers[1], name, value)
    servers[1].models[0]["max_model_len"] = servers[1].most_tokens
    servers[1].start()
    wait_until(lambda: reason in engine.replicas.all[1].reason)
    assert engine.replicas.answering == 1


@pytest.mark.slow
def test_a_server_may_be_down_at_the_start_and_is_used_when_it_comes_if_it_serves_the_same_model(
    servers: list[CompletionsServer], connect: Callable[..., Model], byte_tokenizer: Any
) -> None:
    for server in servers[1:]:
        server.kill()
    model = connect(servers)
    engine: Any = model.engine
    assert engine.replicas.answering == 1
    servers[2].models[0]["id"] = "other"
    for server in servers[1:]:
        server.start()
    wait_until(lambda: engine.replicas.answering == 2)
    wait_until(lambda: "serves no model tiny" in engine.replicas.all[2].reason)
    for _ in range(12):
        Document(model, TEXT).predict()
    assert servers[1].bodies and {body["model"] for body in servers[2].bodies} <= {"tiny"}
    assert all(body["max_tokens"] == 1 and len(body["prompt"][0]) == 2 for body in servers[2].bodies)
    servers[0].kill()
    servers[1].kill()
    with pytest.raises(ModelError, match="cannot be reached"):
        load_model([server.address for server in servers[:2]], tokenizer=byte_tokenizer)
