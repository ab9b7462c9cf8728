"""The load benchmark: a short run of it, and servers whose mistakes it must notice."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from benchmarks import load_page
from benchmarks.__main__ import parse
from benchmarks.load import main
from benchmarks.load_page import APART, LoadedPage, Secrets

MOST_GROWTH = 400 * 1024 * 1024
"""Bytes by which a server with a tiny model may grow while a few people write: far less than a leak of views takes."""


@pytest.mark.slow
def test_a_short_run_finds_no_error_no_foreign_secret_and_no_growth_without_end(
    tmp_path: Path, tiny_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["load", "--model", str(tiny_folder), "--people", "1", "4", "--seconds", "2", "--last", "8"]
    words += ["--idle", "12", "--pace", "0.05", "--at-once", "1", "2", "--repeats", "1"]
    arguments = parse([*words, "--json", str(tmp_path / "load.json"), "--plot", str(tmp_path / "load.png")])
    assert arguments.main is main and main(arguments) == 0, capsys.readouterr().out
    shown = capsys.readouterr().out
    assert "No error, no character lost or mixed" in shown and "times as long" in shown
    found = json.loads((tmp_path / "load.json").read_text())
    assert [step["people"] for step in found["steps"]] == [1, 4] and found["idle_errors"] == {}
    for step in found["steps"]:
        assert step["errors"] == {} and step["settled"] and step["first"] and step["passes"]
        memory = [reading["memory"] for reading in step["readings"]]
        assert max(memory) - memory[0] < MOST_GROWTH
    assert [len(one["seconds"]) for one in found["at_once"]] == [1, 1]
    assert {people: len(seconds) for people, seconds in found["in_one_batch"].items()} == {"1": 1, "2": 1}
    assert (tmp_path / "load.png").stat().st_size > 10_000


Change = Callable[[dict[str, Any], dict[str, Any]], Any]
"""Changes a response: takes the request's data and the right answer, and returns what is sent."""


def errors_of(change: Change) -> dict[str, int]:
    """What a page counts as errors, of a server whose answers are changed."""
    texts: dict[str, str] = {}

    def answer(request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        data = body["data"]
        texts[data["page"]] = data.get("text", texts.get(data["page"], ""))
        right: dict[str, Any] = {"trunk": [{"text": texts[data["page"]]}], "below": []}
        if body["fn_name"] != "tree":
            piece = {"text": texts[data["page"]][-1:] + "x", "tokens": 1, "ends": 1}
            branch = {"pieces": [piece], "ids": [7], "healed": False}
            right = {"number": data["number"], "seen": 1, "state": "settled", "over": True, "ahead": {}}
            right["view"] = {"branches": [branch]}
        changed = change(body, right)
        return changed if isinstance(changed, httpx.Response) else httpx.Response(200, json=changed)

    async def visit() -> dict[str, int]:
        secrets = Secrets(0)
        async with httpx.AsyncClient(transport=httpx.MockTransport(answer), base_url="http://server") as client:
            page = LoadedPage(client, 1, secrets, {"k": 5, "depth": 3})
            secrets.drawn.add(FOREIGN)
            page.begin(f"The keeper {page.secret}")
            await page.settle()
            assert page.accept(random.Random(0))
            page.type(" and")
            page.delete(2)
            await page.check()
            await page.check_rows()
            await page.close()
            return dict(page.findings.errors)

    return asyncio.run(visit())


FOREIGN = "K-999999"


def test_a_right_server_has_no_errors() -> None:
    assert errors_of(lambda body, right: right) == {}


def test_lost_characters_are_noticed() -> None:
    def lose(body: dict[str, Any], right: dict[str, Any]) -> Any:
        return right | {"trunk": [{"text": right["trunk"][0]["text"][:-1]}]} if body["fn_name"] == "tree" else right

    assert errors_of(lose) == {"characters lost": 1}


def test_a_foreign_secret_in_the_pieces_of_a_row_is_noticed() -> None:
    def mix(body: dict[str, Any], right: dict[str, Any]) -> Any:
        if body["fn_name"] == "tree":
            return right
        pieces = [{"text": text, "tokens": 1, "ends": 1} for text in (" K", "-", "999", "999")]
        return right | {"ahead": {"7": {"branches": [{"pieces": pieces, "ids": [7] * 4, "healed": False}]}}}

    assert set(errors_of(mix)) == {"another person's secret"}


def test_rows_of_another_text_are_noticed() -> None:
    calls = []

    def mix(body: dict[str, Any], right: dict[str, Any]) -> Any:
        if body["fn_name"] == "tree":
            return right
        calls.append(body)
        piece = {"text": f"row {len(calls)}", "tokens": 1, "ends": 1}
        return right | {"view": {"branches": [{"pieces": [piece], "ids": [len(calls)], "healed": False}]}}

    assert errors_of(mix) == {"rows of another text": 1}


def test_failed_requests_and_sentences_are_counted_and_failed_requests_are_sent_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(load_page, "RETRIES", (0.001,))
    fails = iter([500, 0, "It failed."])

    def fail(body: dict[str, Any], right: dict[str, Any]) -> Any:
        failure = next(fails, 0) if body["fn_name"] == "ask" else 0
        if isinstance(failure, str):
            return right | {"state": "error", "sentence": failure}
        return httpx.Response(failure) if failure else right

    assert errors_of(fail) == {"status 500": 1, "sentence: It failed.": 1}


@pytest.mark.slow
def test_secrets_differ_in_many_digits() -> None:
    secrets = Secrets(3)
    drawn = [secrets.draw() for _ in range(250)]
    assert len(set(drawn)) == 250
    for number, one in enumerate(drawn):
        for other in drawn[:number]:
            assert sum(mine != theirs for mine, theirs in zip(one, other, strict=True)) >= APART
