"""Shortening a source for the Rewrite tab: what a page gets, what is refused, and how a page stops it."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

from interface import ModelLoader
from interface.server.branch_request import MOST_SOURCE, BranchRequest, SourceTooLong
from interface.server.page_service import PageService
from interface.server.page_session import PageSession
from interface.tabs.rewrite.shortening import Shortening
from lookahead_core import LookaheadError, Model, compress, load_model
from tests.conftest import tiny_llama

PAGE = "a" * 32
SOURCE = "The sea 🙂 was grey, and the keeper Anna Vold watched it. He had 42 lamps, and the stairs were long."


@pytest.fixture
def loader(tiny_model: Model) -> ModelLoader:
    made = ModelLoader(lambda report: tiny_model)
    made.run()
    return made


def payload(**fields: Any) -> dict[str, Any]:
    return {"page": PAGE, "source": SOURCE, "ratio": 0.5} | fields


def test_a_page_gets_the_kept_text_and_the_parts_of_its_source(loader: ModelLoader, tiny_model: Model) -> None:
    answer = asyncio.run(Shortening(loader).shorten(payload()))
    expected = compress(tiny_model, SOURCE, 0.5)
    assert answer["text"] == expected.text
    assert (answer["tokens_before"], answer["tokens_after"]) == (expected.tokens_before, expected.tokens_after)
    assert "".join(characters for characters, _ in answer["parts"]) == SOURCE
    kinds = [kept for _, kept in answer["parts"]]
    assert all(one != other for one, other in itertools.pairwise(kinds)), "neighbours of one kind are joined"
    removed = "".join(characters for characters, kept in answer["parts"] if not kept)
    assert removed == "".join(SOURCE[span.start : span.end] for span in expected.removed)


@pytest.mark.parametrize(
    "wrong",
    [
        {"page": 3}, {"page": "short"}, {"source": None}, {"source": ["x"]}, {"ratio": 0.3}, {"ratio": True},
        {"ratio": [0.5]}, {"ratio": None}, {"source": ""}, {"source": "x" * 200_001}, {"source": "\ud800"},
    ],
)  # fmt: skip
def test_a_wrong_payload_gets_a_sentence(loader: ModelLoader, wrong: dict[str, Any]) -> None:
    answer = asyncio.run(Shortening(loader).shorten(payload(**wrong)))
    assert list(answer) == ["sentence"] and answer["sentence"].endswith((".", "?"))
    assert "Something went wrong" not in answer["sentence"]


@pytest.mark.parametrize("wrong", [None, [], "x", 3])
def test_a_payload_that_is_no_object_gets_a_sentence(loader: ModelLoader, wrong: Any) -> None:
    assert "page" in asyncio.run(Shortening(loader).shorten(wrong))["sentence"]
    asyncio.run(Shortening(loader).stop_shortening(wrong))


@pytest.mark.slow
def test_a_page_can_stop_it_and_a_newer_call_of_a_page_stops_the_older_one(byte_tokenizer: Any) -> None:
    model = load_model(tiny_llama(len(byte_tokenizer), max_position_embeddings=4096), tokenizer=byte_tokenizer)
    loader = ModelLoader(lambda report: model)
    loader.run()
    long = SOURCE * 400

    async def stopped() -> list[dict[str, Any]]:
        shortening = Shortening(loader)
        first = asyncio.ensure_future(shortening.shorten(payload(source=long)))
        await asyncio.sleep(0)
        second = asyncio.ensure_future(shortening.shorten(payload(source=long, ratio=0.25)))
        await asyncio.sleep(0)
        await shortening.stop_shortening({"page": "b" * 32})
        await shortening.stop_shortening({"page": PAGE})
        found = [await first, await second]
        assert not shortening._running
        return [*found, await shortening.shorten(payload())]

    older, newer, later = asyncio.run(stopped())
    assert older == newer == {"sentence": "Stopped: the source is as it was."}
    assert later["text"]


def test_a_page_sees_how_far_its_source_is_read_and_other_pages_do_not(byte_tokenizer: Any) -> None:
    model = load_model(tiny_llama(len(byte_tokenizer), max_position_embeddings=4096), tokenizer=byte_tokenizer)
    loader = ModelLoader(lambda report: model)
    loader.run()
    source = SOURCE * 25
    total = len(model.codec.encode(source))

    async def followed() -> tuple[list[list[int]], dict[str, Any]]:
        shortening, seen = Shortening(loader), []
        assert [await shortening.shortening_progress(wrong) for wrong in (None, [], {}, {"page": PAGE})] == [{}] * 4
        task = asyncio.ensure_future(shortening.shorten(payload(source=source)))
        while not task.done():
            reading = (await shortening.shortening_progress({"page": PAGE})).get("reading")
            assert await shortening.shortening_progress({"page": "b" * 32}) == {}
            if reading is not None and reading not in seen:
                seen.append(reading)
            await asyncio.sleep(0)
        assert await shortening.shortening_progress({"page": PAGE}) == {} and not shortening._readings
        return seen, await task

    seen, answer = asyncio.run(followed())
    assert answer["tokens_before"] == total > 1000
    assert seen == sorted(seen) and {of for _, of in seen} == {total}
    assert len(seen) >= 2 and 0 < seen[0][0] < total, "a step for each pass, and the first long before the end"


def request(source: str) -> BranchRequest:
    fields = {"page": PAGE, "number": 1, "revision": 1, "text": "", "instruction": "Shorten it.", "source": source}
    return BranchRequest.from_json(fields)


def test_a_source_that_is_too_long_for_the_model_is_recognised_by_its_reason(tiny_model: Model) -> None:
    with pytest.raises(LookaheadError, match="shorten the source until there are at most") as refused:
        next(PageSession(tiny_model).answer_steps(request("the sea and the sky " * 200)))
    assert refused.value.reason == "source_too_long"
    context = tiny_model.context_length
    assert context is not None
    most = refused.value.details["most"]
    assert isinstance(most, int) and context // 2 < most < context
    assert int(str(refused.value.details["tokens"])) > most


def test_a_source_of_too_many_characters_has_the_same_reason() -> None:
    with pytest.raises(SourceTooLong) as refused:
        request("x" * (MOST_SOURCE + 1))
    assert isinstance(refused.value, ValueError)
    assert refused.value.details == {"tokens": None, "most": None}


def test_news_of_such_an_error_have_its_reason_and_those_of_others_do_not(loader: ModelLoader) -> None:
    async def asked(source: str, **fields: Any) -> dict[str, Any]:
        service = PageService(loader)
        first = {"page": PAGE, "number": 1, "revision": 1, "text": "", "instruction": "Shorten it.", "source": source}
        news = await service.ask(first | fields)
        while not news["over"] and "seen" in news:
            news = await service.more({"page": PAGE, "number": 1, "seen": news["seen"]})
        return news

    news = asyncio.run(asked("the sea and the sky " * 200))
    assert news["state"] == "error" and news["reason"] == "source_too_long"
    assert set(news["details"]) == {"tokens", "most"}
    ask = PageService(loader).functions[0]
    news = asyncio.run(ask({"page": PAGE, "number": 1, "revision": 1, "text": "", "source": "x" * (MOST_SOURCE + 1)}))  # type: ignore[arg-type]
    assert news["reason"] == "source_too_long" and "characters" in news["sentence"]
    news = asyncio.run(ask({"page": PAGE, "number": 1, "revision": 1, "text": "", "k": 99}))  # type: ignore[arg-type]
    assert "reason" not in news
