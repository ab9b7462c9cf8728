"""The Lab's speculation page in a browser, and its requests on the server."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interface.tabs.lab.experiment_request import MOST_PROMPT
from interface.tabs.lab.speculation_session import SpeculationRequest, SpeculationSession
from lookahead_core import Document, Model, load_model
from tests.conftest import tiny_llama
from tests.support import browser as browsers
from tests.support.browser import PATIENCE, Visit
from tests.support.requests_to_pages import news_from

PROMPT = "One two three, one two three, one two"
OPTIONS = {"tokens": 20, "suffix": True, "recycled": True, "model": False, "temperature": 0.7, "seed": 5}


@pytest.fixture(scope="module")
def model(byte_tokenizer: Any) -> Model:
    return load_model(tiny_llama(len(byte_tokenizer)), tokenizer=byte_tokenizer)


def news_of(model: Model, part: str = "text", draft_model: Model | None = None, **fields: Any) -> list[Any]:
    return news_from(
        model,
        SpeculationRequest.from_json,
        lambda loaded: SpeculationSession(loaded, lambda: draft_model),
        **{"text": PROMPT, "experiment": OPTIONS | {"part": part}} | fields,
    )


def last_view(news: list[Any]) -> Any:
    assert news[-1]["state"] == "settled", news[-1]
    return [one["view"] for one in news if "view" in one][-1]


def test_a_request_is_answered_with_the_passes_of_the_same_text(model: Model) -> None:
    view = last_view(news_of(model))
    stream = Document(model, PROMPT).stream(max_new_tokens=20, speculate=False, temperature=0.7, seed=5)
    assert view["token_ids"] == view["plain_token_ids"] == [step.token_id for step in stream]
    assert "".join(view["texts"]) == "".join(view["plain_texts"]) == stream.text
    assert (view["equal"], view["plain_passes"], view["draft_model"]) == (True, 20, None)
    assert view["drafters"] == ["suffix", "recycled"]
    won = [sum(node["accepted"] for node in one["nodes"]) + 1 for one in view["passes"]]
    assert [one["before"] for one in view["passes"]] == [sum(won[:index]) for index in range(len(won))]
    assert sum(won) == 20


def test_a_draft_model_drafts_where_the_request_asks_for_it(model: Model, draft_model: Model) -> None:
    chosen = OPTIONS | {"part": "text", "suffix": False, "recycled": False, "model": True, "temperature": 0}
    view = last_view(news_of(model, draft_model=draft_model, experiment=chosen))
    assert (view["draft_model"], view["drafters"]) == (draft_model.name, ["model"])
    nodes = [node for one in view["passes"] for node in one["nodes"]]
    assert {tuple(node["drafters"]) for node in nodes} == {("model",)}
    assert {node["accepted"] for node in nodes} == {True, False}
    assert view["equal"] is True and len(view["passes"]) < 20


def test_a_thousand_draws_come_as_often_as_the_odds_say(model: Model, draft_model: Model) -> None:
    chosen = OPTIONS | {"part": "draws", "model": True, "recycled": False}
    view = last_view(news_of(model, draft_model=draft_model, experiment=chosen))
    assert view["draws"]["number"] == 1000 == view["drafted"]
    assert 0 < view["accepted"] < 1000
    for odds, count in zip(view["odds"], view["draws"]["counts"], strict=True):
        assert abs(count - 1000 * odds["processed"]) <= 4 * math.sqrt(1000 * odds["processed"]) + 1


@pytest.mark.parametrize(
    ("fields", "because"),
    [
        ({"text": ""}, "Write a prompt"),
        ({"text": "x" * (MOST_PROMPT + 1)}, "The prompt has 2,001 characters"),
        ({"experiment": None}, "part is None, and must be one of"),
        ({"experiment": OPTIONS | {"part": "all"}}, "part is 'all', and must be one of"),
        ({"experiment": OPTIONS | {"part": "text", "tokens": 61}}, "tokens is 61, and must be a whole number from 2"),
        ({"experiment": OPTIONS | {"part": "text", "depth": 3}}, "depth is not an option of the experiment"),
        ({"experiment": OPTIONS | {"part": "text", "draft_model": "x"}}, "draft_model is not an option"),
        ({"experiment": OPTIONS | {"part": "text", "suffix": False, "recycled": 1}}, "Choose at least one drafter"),
        ({"experiment": OPTIONS | {"part": "text", "model": True}}, "No smaller model is loaded"),
        ({"experiment": OPTIONS | {"part": "draws", "temperature": 0}}, "temperature is 0, where nothing is drawn"),
    ],
)
def test_what_cannot_be_run_gets_a_sentence(model: Model, fields: dict[str, Any], because: str) -> None:
    *_, last = news_of(model, **fields)
    assert last["state"] == "error"
    assert because in last["sentence"]


def test_a_model_without_a_cache_gets_a_sentence(byte_tokenizer: Any) -> None:
    network = tiny_llama(len(byte_tokenizer))
    *_, last = news_of(load_model(network, tokenizer=byte_tokenizer, engine="uncached"))
    assert (last["state"], "runs without a cache" in last["sentence"]) == ("error", True)
