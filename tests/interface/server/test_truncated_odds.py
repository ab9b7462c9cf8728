"""A page on a server that gives only the likeliest tokens: what works, and the sentence for what does not."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from interface import ModelLoader
from interface.server.page_service import PageService
from lookahead_core import Document, Model, load_model
from tests.support.completions_server import CompletionsServer
from tests.support.requests_to_pages import ask

NOTE = (
    "The model's server gives the odds of its 20 likeliest tokens only, so shares are of tokens and a typed word is "
    "not completed. Whoever runs it can start it with --max-logprobs -1."
)


@pytest.fixture
def service(tiny_model: Model, byte_tokenizer: Any) -> Iterator[PageService]:
    server = CompletionsServer(tiny_model.hf_model, most_logprobs=20)
    loader = ModelLoader(lambda report: load_model(server.address, tokenizer=byte_tokenizer))
    loader.run()
    assert loader.loading.state == "ready", loader.loading
    yield PageService(loader)
    loader.scheduler.engine.close()  # type: ignore[attr-defined]
    server.close()


def last(service: PageService, number: int = 1, **fields: Any) -> Any:
    news = asyncio.run(ask(service, number, **{"k": 3, "depth": 3, "ahead": False, **fields}))
    return next(one for one in reversed(news) if "view" in one or one["state"] == "error")


@pytest.mark.parametrize("fields", [{}, {"odds": "words"}, {"temperature": 0.5, "top_p": 0.9, "odds": "words"}])
def test_a_view_has_the_branches_of_tokens_and_says_what_is_missing(
    service: PageService, tiny_model: Model, fields: dict[str, Any]
) -> None:
    news = last(service, text="The sea wa", **fields)
    local = Document(tiny_model, "The sea wa").lookahead(k=3, depth=3)
    assert [tuple(each["ids"]) for each in news["view"]["branches"]] == [each.token_ids for each in local.branches]
    assert news["state"] == "settled" and news["note"] == NOTE
    # Where nothing is missing, nothing is said.
    assert last(service, 2, text="The sea.", **{**fields, "odds": "tokens"})["note"] is None


@pytest.mark.parametrize("odds", ["tokens", "words"])
def test_a_typed_word_is_completed_where_the_server_gives_odds_among_some_tokens(
    tiny_model: Model, byte_tokenizer: Any, odds: str
) -> None:
    server = CompletionsServer(tiny_model.hf_model, most_logprobs=20)
    server.processes = True
    loader = ModelLoader(lambda report: load_model(server.address, tokenizer=byte_tokenizer))
    loader.run()
    news = last(PageService(loader), text="The sea wa", odds=odds)
    local = Document(tiny_model, "The sea wa").lookahead(k=3, depth=3, heal=True)
    # The page does not count a token that only completes the typed word, so its branches may be one token longer.
    found = [tuple(each["ids"]) for each in news["view"]["branches"]]
    assert [ids[: len(each.token_ids)] for ids, each in zip(found, local.branches, strict=True)] == [
        each.token_ids for each in local.branches
    ]
    assert news["note"] == (None if odds == "tokens" else NOTE.replace(" and a typed word is not completed", ""))
    loader.scheduler.engine.close()  # type: ignore[attr-defined]
    server.close()


def test_columns_and_prefetched_views_are_computed_too(service: PageService) -> None:
    columns = [{"temperature": 1}, {"temperature": 0.5}]
    news = last(service, text="The sea wa", odds="words", columns=columns)
    assert news["note"] == NOTE and all(view["branches"] for view in news["view"]["views"])
    ahead = asyncio.run(ask(service, 2, text="The sea wa", odds="words", k=3, depth=3))
    assert any(one.get("ahead") for one in ahead)


@pytest.mark.parametrize("fields", [{"mode": "sampled"}, {"banned": [7]}, {"towards": "sea"}, {"avoid": "sea"}])
def test_what_needs_all_odds_is_a_sentence_that_says_what_to_do(service: PageService, fields: dict[str, Any]) -> None:
    news = last(service, text="The sea", **fields)
    assert news["state"] == "error" and "start it with --max-logprobs -1, or leave out sampling" in news["sentence"]
    assert last(service, 2, text="The sea")["view"]["branches"]
