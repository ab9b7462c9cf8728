"""One text in several columns: each view is the one that its column has alone, and all share the passes."""

from __future__ import annotations

import asyncio
import copy
import json
from dataclasses import replace
from typing import Any

import pytest

from interface import ModelLoader
from interface.server.branch_request import BranchRequest
from interface.server.page_service import PageService
from interface.server.page_session import AHEAD_BYTES, PageSession
from interface.server.prefetched_views import AHEAD_NODES
from lookahead_core import Model, load_model
from lookahead_core.errors import LookaheadError
from tests.conftest import tiny_llama
from tests.interface.server.test_page_service import TEMPLATE, Page, rows

BASE = {"page": "a-page-of-somebody", "number": 1, "revision": 1}
TEXT = "The old keeper said"
COLUMNS = [{"instruction": ""}, {"instruction": "Write a poem."}, {"instruction": "Be short.", "temperature": 0.5}]


@pytest.fixture(scope="module")
def chat_model(byte_tokenizer: Any) -> Model:
    tokenizer = copy.deepcopy(byte_tokenizer)
    tokenizer.chat_template = TEMPLATE
    return load_model(tiny_llama(len(tokenizer)), tokenizer=tokenizer)


def request_for(text: str, **fields: Any) -> BranchRequest:
    return BranchRequest.from_json(BASE | {"text": text} | fields)


def answer(session: PageSession, text: str, **fields: Any) -> Any:
    """The last value that a session answers with."""
    (*_, last) = session.answer_steps(request_for(text, **fields))
    return last


def alone(model: Model, text: str, instruction: str | None, **fields: Any) -> Any:
    return answer(PageSession(model), text, instruction=instruction, **fields)["view"]


def paths(view: Any) -> list[Any]:
    return [(branch["ids"], branch["ended"], branch["healed"]) for branch in view["branches"]]


@pytest.mark.parametrize("text", [TEXT, "The old keeper sa", ""])
def test_each_column_has_the_view_of_its_instruction_alone(chat_model: Model, text: str) -> None:
    last = answer(PageSession(chat_model), text, columns=COLUMNS, k=3, depth=4)
    assert last["state"] == "settled"
    assert last["view"]["columns"] == [0, 1, 2]
    for column, view in zip(COLUMNS, last["view"]["views"], strict=True):
        if not text and not column["instruction"]:
            assert view is None
        else:
            heat = {"temperature": column["temperature"]} if "temperature" in column else {}
            expected = alone(chat_model, text, column["instruction"] or None, k=3, depth=4, **heat)
            assert paths(view) == paths(expected)
            assert view["asked"] == expected["asked"]
            assert view["given"] == expected["given"]


def test_columns_cost_the_passes_of_one(chat_model: Model) -> None:
    engine, counts = chat_model.engine, []
    for column in COLUMNS:
        before = engine.passes
        alone(chat_model, TEXT, column["instruction"] or None, k=3, depth=4)
        counts.append(engine.passes - before)
    before, session = engine.passes, PageSession(chat_model)
    answer(session, TEXT, columns=COLUMNS, k=3, depth=4)
    assert engine.passes - before == max(counts) == 5, "one for each token, and the typed one is replaced"
    before = engine.passes
    answer(session, TEXT, columns=COLUMNS[:2], k=3, depth=4)
    assert engine.passes == before, "a column that is removed costs nothing"


@pytest.mark.parametrize("text", ["The sea.", "He saw the ship"], ids=["whole", "re-opened"])
def test_columns_that_differ_in_temperature_alone_share_the_likeliest_rows(tiny_model: Model, text: str) -> None:
    columns = [{"temperature": 0.4}, {"temperature": 1.6}, {}]
    likely = answer(PageSession(tiny_model), text, columns=columns, k=3, depth=4)["view"]
    assert likely["columns"] == [0, 0, 0]
    assert len(likely["views"]) == 1


def test_sampled_rows_are_those_of_each_columns_temperature(tiny_model: Model) -> None:
    columns = [{"temperature": 0.4}, {"temperature": 1.6}, {}]
    options: dict[str, Any] = {"k": 3, "depth": 4, "mode": "sampled", "seed": 4, "temperature": 1.0}
    found = answer(PageSession(tiny_model), "He saw the ship", columns=columns, **options)["view"]
    assert found["columns"] == [0, 1, 2]
    for column, view in zip(columns, found["views"], strict=True):
        assert paths(view) == paths(alone(tiny_model, "He saw the ship", None, **{**options, **column}))
        assert view["asked"]["temperature"] == column.get("temperature", 1.0)
    assert paths(found["views"][0]) != paths(found["views"][2])


def test_a_click_in_one_column_keeps_its_ids_in_all_of_them(chat_model: Model) -> None:
    session = PageSession(chat_model)
    views = answer(session, TEXT, columns=COLUMNS, k=3, depth=4)["view"]["views"]
    branch = views[1]["branches"][2]
    inserted = "".join(piece["text"] for piece in branch["pieces"][:2])
    ids = branch["ids"][: branch["pieces"][1]["tokens"]]
    accepted = [[len(TEXT), ids, branch["healed"]]]
    after = answer(session, TEXT + inserted, columns=COLUMNS, accepted=accepted, k=3, depth=4)["view"]["views"]
    for column, view in zip(COLUMNS, after, strict=True):
        fresh = alone(chat_model, TEXT + inserted, column["instruction"] or None, accepted=accepted, k=3, depth=4)
        assert paths(view) == paths(fresh)
    documents = [session._columns._sessions[column["instruction"] or None].document for column in COLUMNS]
    assert all(document.token_ids[-len(ids) :] == ids for document in documents)


def test_rows_and_columns_of_one_page_share_what_was_computed(chat_model: Model) -> None:
    session, engine = PageSession(chat_model), chat_model.engine
    answer(session, TEXT, k=3, depth=4)
    before = engine.passes
    answer(session, TEXT, columns=[{}, {"temperature": 0.5}], k=3, depth=4)
    answer(session, TEXT, k=3, depth=4)
    assert engine.passes == before


def test_documents_of_removed_instructions_are_dropped(chat_model: Model) -> None:
    session = PageSession(chat_model)
    for turn in range(6):
        columns = [{"instruction": f"Number {turn}.{index}"} for index in range(4)]
        answer(session, TEXT, columns=columns, k=1, depth=1)
        assert set(session._columns._sessions) == {column["instruction"] for column in columns}


def test_rows_are_painted_while_they_grow(chat_model: Model) -> None:
    steps = [one for one in PageSession(chat_model).answer_steps(request_for(TEXT, columns=COLUMNS, k=2, depth=6))]
    first = next(one for one in steps if "view" in one)
    assert first["state"] == "thinking"
    assert all(view["branches"] for view in first["view"]["views"])
    assert len(steps) == 8, "one for each pass, and the end; the typed token is replaced"


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"columns": [{}]}, "columns must be a list of 2 to 4 columns"),
        ({"columns": [{}] * 5}, "columns must be a list of 2 to 4 columns"),
        ({"columns": {"a": 1}}, "columns must be a list of 2 to 4 columns"),
        ({"columns": [{}, "poem"]}, "Column 2 must be an object"),
        ({"columns": [{"instruction": 5}, {}]}, "The instruction of column 1 must be a text"),
        (
            {"columns": [{}, {"instruction": "a" * 4001}]},
            "The instruction of column 2 has 4,001 characters",
        ),
        ({"columns": [{}, {"temperature": 2.5}]}, "The temperature of column 2 must be a number from 0 to 2"),
        ({"columns": [{}, {"temperature": -1}]}, "The temperature of column 2 must be a number from 0 to 2"),
        ({"columns": [{}, {"temperature": "1,5"}]}, "The temperature of column 2 must be a number from 0 to 2"),
        ({"columns": [{}, {"temperature": True}]}, "The temperature of column 2 must be a number from 0 to 2"),
        ({"columns": [{}, {"temperature": float("nan")}]}, "The temperature of column 2 must be a number from 0 to 2"),
        ({"columns": [{}, {}], "k": 6}, "k is 6, and may be at most 5 with columns"),
        ({"columns": [{}, {}], "instruction": "x"}, "has instructions in its columns only"),
        ({"columns": [{}, {}], "role": "user", "messages": []}, "has instructions in its columns only"),
    ],
)
def test_columns_of_a_hostile_page_are_refused_in_a_sentence(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        request_for(TEXT, **fields)


def prefetched(session: PageSession, text: str, **fields: Any) -> dict[str, Any]:
    """The prefetched views of a request that was just answered, by the ids of the accepted tokens."""
    steps = session.ahead_steps(request_for(text, **fields))
    return dict(step["ahead"] for step in steps if "ahead" in step)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["likely", "sampled", "forks"])
@pytest.mark.parametrize("text", [TEXT, "The old keeper sa"])
def test_a_prefetched_click_in_any_column_shows_the_views_of_the_request_that_follows(
    chat_model: Model, text: str, mode: str
) -> None:
    session, fields = PageSession(chat_model), {"columns": COLUMNS, "k": 3, "depth": 4, "mode": mode, "seed": 3}
    views = answer(session, text, **fields)["view"]["views"]
    ahead = prefetched(session, text, **fields)
    clicks = [
        (branch, piece)
        for view in views
        for branch in view["branches"]
        for piece in branch["pieces"][:1]
        if piece["tokens"] <= len(branch["ids"])
    ]
    keys = {" ".join(map(str, branch["ids"][: piece["tokens"]])) for branch, piece in clicks}
    assert len(keys) > (0 if mode == "forks" else 3)
    assert keys <= set(ahead)
    for branch, piece in clicks[:1] + clicks[-1:]:
        ids = branch["ids"][: piece["tokens"]]
        found = ahead[" ".join(map(str, ids))]
        before, passes = copy.deepcopy(found), chat_model.engine.passes
        # The first rows of the request need no pass: they are those of the prefetched views.
        accepted = [[len(text), ids, branch["healed"]]]
        steps = session.answer_steps(request_for(text + piece["text"], accepted=accepted, **fields, ahead=False))
        first = next(step["view"] for step in steps if "view" in step)
        assert chat_model.engine.passes == passes
        after = answer(session, text + piece["text"], accepted=accepted, **fields)["view"]
        assert found["columns"] == first["columns"] == after["columns"]
        for shallow, start, full in zip(found["views"], first["views"], after["views"], strict=True):
            assert [one["ids"][:1] for one in shallow["branches"]] == [one["ids"][:1] for one in start["branches"]]
            if mode != "forks":
                assert all(
                    one["ids"] == other["ids"][: len(one["ids"])]
                    for one, other in zip(shallow["branches"], full["branches"], strict=True)
                )
        assert found == before
        answer(session, text, **fields)


def test_prefetching_columns_keeps_to_its_limits_and_ends_with_a_new_text(chat_model: Model) -> None:
    session, fields = PageSession(chat_model), {"columns": COLUMNS, "k": 5, "depth": 4}
    answer(session, TEXT, **fields)
    steps = list(session.ahead_steps(request_for(TEXT, **fields)))
    counts = [step["tokens_ahead"] for step in steps if "ahead" in step]
    assert counts == sorted(counts)
    assert counts[-1] <= AHEAD_NODES + 3 * 11
    assert sum(len(json.dumps(step["ahead"][1])) for step in steps if "ahead" in step) <= 1.2 * AHEAD_BYTES
    answer(session, TEXT, **fields)
    steps_of_old = session.ahead_steps(request_for(TEXT, **fields))
    next(steps_of_old)
    answer(session, TEXT + " that", **fields)
    with pytest.raises(LookaheadError):
        list(steps_of_old)
    answer(session, "", **fields)
    assert prefetched(session, "", **fields) == {}, "one column has no view yet"


def test_columns_are_prefetched_unless_the_page_says_no() -> None:
    assert request_for(TEXT, columns=[{}, {}]).ahead
    assert not request_for(TEXT, columns=[{}, {}], ahead=False).ahead
    assert request_for(TEXT, columns=None, ahead=True) == request_for(TEXT)


def test_a_pages_newer_columns_supersede_the_older_and_end_with_its_session(chat_model: Model) -> None:
    loader = ModelLoader(lambda report: chat_model)
    loader.run()

    async def scenario() -> None:
        service = PageService(loader, most=1)
        page = Page(service)
        older = asyncio.create_task(page.ask(TEXT, columns=COLUMNS, k=5, depth=40))
        await asyncio.sleep(0.01)
        newer = await page.ask(TEXT + " ", columns=COLUMNS, k=2, depth=2)
        assert (await older)[-1]["superseded"]
        (*_, last) = (news["view"] for news in newer if "view" in news)
        assert [len(rows(view)) for view in last["views"]] == [2, 2, 2]
        long = asyncio.create_task(page.ask(TEXT, columns=COLUMNS, k=5, depth=40))
        await asyncio.sleep(0.01)
        await page.functions["stop"]({"page": page.name, "number": page.number})
        assert (await long)[-1]["stopped"]
        await Page(service, "another-page-of-somebody").ask(TEXT, k=1, depth=1)
        assert service.open_pages.find(page.name) is None

    asyncio.run(scenario())
    assert replace(request_for(TEXT, columns=COLUMNS), columns=()).columns == ()
