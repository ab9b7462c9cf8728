"""The app without a browser: its arguments, its handlers before hostile input, and views as JSON."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import app
from interface import Loader
from interface.asking import Asked, answers
from interface.desk import Desk
from lookahead_core import Document, Model, ModelError
from lookahead_core import model as models
from lookahead_core.store import DocumentStore, Held
from lookahead_core.view import as_json, document_as_json

ROOT = Path(__file__).parents[1]


def run_app(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "app.py", *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_help_names_every_argument_and_every_variable() -> None:
    ended = run_app("--help")
    assert ended.returncode == 0
    for word in ("--model", "--revision", "--device", "--dtype", "--engine", "--port", "--host", "--share"):
        assert word in ended.stdout
    for word in ("LOOKAHEAD_MODEL", "LOOKAHEAD_CACHE_DIR", "LOOKAHEAD_CACHE_MB", "LOOKAHEAD_HUB_TIMEOUT"):
        assert word in ended.stdout


@pytest.mark.parametrize(
    "arguments", [["--port", "none"], ["--port", "99999"], ["--device", "toaster"], ["--nonsense"], ["--dtype"]]
)
def test_a_bad_argument_is_one_sentence_and_exit_code_2(arguments: list[str]) -> None:
    ended = run_app(*arguments)
    assert ended.returncode == 2
    assert len(ended.stderr.strip().splitlines()) == 1
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    "environment", [{"LOOKAHEAD_CACHE_MB": "much"}, {"LOOKAHEAD_DTYPE": "float12"}, {"LOOKAHEAD_ENGINE": "steam"}]
)
def test_a_bad_variable_is_one_sentence_that_names_it(environment: dict[str, str]) -> None:
    ended = run_app(**environment)
    assert ended.returncode == 2
    assert ended.stderr.strip().startswith(next(iter(environment)))
    assert len(ended.stderr.strip().splitlines()) == 1


def test_a_taken_port_is_a_sentence() -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = str(holder.getsockname()[1])
        ended = run_app("--port", port, "--model", "/nowhere")
    assert ended.returncode == 1
    assert f"port {port}" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_the_choices_of_the_arguments_are_those_of_load_model() -> None:
    assert {
        "device": models.DEVICES,
        "dtype": ("auto", *models.DTYPES),
        "engine": models.ENGINES,
    } == app.CHOICES


def test_arguments_stand_above_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOKAHEAD_MODEL", "of the environment")
    monkeypatch.setenv("LOOKAHEAD_DEVICE", "cpu")
    settings = app.settings_of(app.parser().parse_args(["--model", "of the arguments"]))
    assert (settings.model, settings.device) == ("of the arguments", "cpu")


def test_a_model_that_cannot_be_loaded_leaves_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    def load(report: Any) -> Model:
        raise ModelError("There is no such model: choose another.")

    loader = Loader(load)
    loader.run()
    assert (loader.loading.state, loader.loading.sentence) == ("error", "There is no such model: choose another.")
    assert "There is no such model" in capsys.readouterr().err
    view, status = list(Desk(loader).answer({"text": "Hello", "revision": 1}, 5, 5, person("a")))[-1]
    assert view["state"] == "error"
    assert status["sentence"] == "There is no such model: choose another."


def test_an_unforeseen_failure_to_load_is_a_sentence_too(caplog: pytest.LogCaptureFixture) -> None:
    def load(report: Any) -> Model:
        raise KeyError("inner workings")

    loader = Loader(load)
    loader.run()
    assert loader.loading.state == "error"
    assert "inner workings" not in loader.loading.sentence


def test_progress_is_a_state_of_the_page(tiny_model: Model) -> None:
    seen = []

    def load(report: Any) -> Model:
        for sentence, fraction in (("Downloading Tiny", 0.5), ("Loading Tiny", None)):
            report(sentence, fraction)
            seen.append(loader.loading)
        return tiny_model

    loader = Loader(load)
    loader.run()
    assert [(loading.state, loading.fraction) for loading in seen] == [("downloading", 0.5), ("loading", None)]
    assert loader.loading.state == "ready"


def person(name: str) -> Any:
    return SimpleNamespace(session_hash=name)


@pytest.fixture
def desk(tiny_model: Model) -> Desk:
    loader = Loader(lambda report: tiny_model)
    loader.run()
    return Desk(loader)


def last(desk: Desk, given: object, k: object = 5, depth: object = 5, name: str = "a") -> tuple[Any, Any]:
    return list(desk.answer(given, k, depth, person(name)))[-1]


def test_a_view_is_json_and_its_pieces_are_the_text_of_its_branches(tiny_model: Model) -> None:
    for text in ("The lighthouse", "Emoji 🙂 and 中文", "careful "):
        for heal in (False, True):
            result = Document(tiny_model, text).lookahead(k=8, depth=12, heal=heal)
            view = json.loads(json.dumps(as_json(result)))
            assert len(view["branches"]) == len(result.branches)
            for shown, branch in zip(view["branches"], result.branches, strict=True):
                assert "".join(piece["text"] for piece in shown["pieces"]) == branch.text
                ids = [token_id for piece in shown["pieces"] for token_id in piece["ids"]]
                assert ids == list(branch.token_ids[: len(ids)])
                assert (shown["end_probability"] is not None) == branch.ended
            assert view["coverage"] == result.coverage
            assert view["given"] == result.given


def test_a_document_as_json_holds_its_text_ids_and_what_comes_next(tiny_model: Model) -> None:
    document = Document(tiny_model, "The lighthouse")
    assert document_as_json(document)["top"] == []
    prediction = document.predict()
    shown = json.loads(json.dumps(document_as_json(document)))
    assert shown["text"] == "The lighthouse"
    assert shown["token_ids"] == document.token_ids
    assert [top["id"] for top in shown["top"]] == list(prediction.token_ids[:10])
    assert all(top["text"] is None or "\ufffd" not in top["text"] for top in shown["top"])


@pytest.mark.parametrize(
    ("given", "k", "depth"),
    [
        ({"text": "Hello", "revision": 1}, 0, 5),
        ({"text": "Hello", "revision": 1}, 21, 5),
        ({"text": "Hello", "revision": 1}, 5, 1000),
        ({"text": "Hello", "revision": 1}, "five", 5),
        ({"text": "Hello", "revision": 1}, 2.5, 5),
        ({"text": "Hello", "revision": 1}, True, 5),
        ({"text": "Hello", "revision": 1}, 5, None),
        ({"text": "Hello", "revision": float("nan")}, 5, 5),
        ({"text": "Hello", "revision": -1}, 5, 5),
        ({"text": "Hello", "revision": 2**60}, 5, 5),
        ({"text": None, "revision": 1}, 5, 5),
        ({"text": ["a"], "revision": 1}, 5, 5),
        ({"text": "half a pair \ud83d", "revision": 1}, 5, 5),
        ({"text": "x" * 200_001, "revision": 1}, 5, 5),
        ({"text": "Hello"}, 5, 5),
        ({}, 5, 5),
        (None, 5, 5),
        ("text", 5, 5),
        ([], 5, 5),
    ],
)
def test_hostile_input_gets_a_sentence(desk: Desk, given: object, k: object, depth: object) -> None:
    view, status = last(desk, given, k, depth)
    assert (view["state"], status["state"]) == ("error", "error")
    assert status["sentence"].endswith((".", "again."))
    assert "<" not in status["sentence"]
    view, status = last(desk, {"text": "Hello", "revision": 2})
    assert (view["state"], status["state"]) == ("settled", "ready"), "and the next request is answered"


def test_hostile_ids_and_revisions_change_nothing(desk: Desk) -> None:
    for index, accepted in enumerate((None, "1", [None], [True], [10**30], [-1], list(range(500)), {"a": 1})):
        view, _ = last(desk, {"text": "Hello", "revision": index, "accepted": accepted})
        assert view["state"] == "settled"
    for revision in (None, "x", -1, 2**99, float("inf"), [], True):
        desk.note(revision, person("a"))
    assert last(desk, {"text": "Hello", "revision": 100})[0]["state"] == "settled"


def test_an_empty_text_asks_the_model_nothing(desk: Desk) -> None:
    views = [view for view, _ in desk.answer({"text": "", "revision": 3}, 5, 5, person("a"))]
    assert views == [{"state": "empty", "revision": 3, "branches": []}]


def test_a_view_comes_after_each_pass_and_the_last_one_is_settled(desk: Desk) -> None:
    views = [view for view, _ in desk.answer({"text": "The sea", "revision": 1}, 3, 4, person("a"))]
    assert [view["state"] for view in views[:-1]] == ["thinking"] * (len(views) - 1)
    assert views[-1]["state"] == "settled"
    assert [len(view["branches"]) for view in views] == [3] * len(views)
    assert views[-1]["alone"] > 0


def test_a_newer_text_stops_an_older_run_between_passes(desk: Desk) -> None:
    older = desk.answer({"text": "The sea", "revision": 1}, 5, 40, person("a"))
    next(older)
    desk.note(2, person("a"))
    assert list(older) == []
    newer = desk.answer({"text": "The sea and", "revision": 2}, 5, 5, person("a"))
    assert [view for view, _ in newer][-1]["state"] == "settled"


def test_an_older_request_that_comes_late_is_not_answered(desk: Desk) -> None:
    assert last(desk, {"text": "The sea and", "revision": 2})[0]["state"] == "settled"
    assert list(desk.answer({"text": "The sea", "revision": 1}, 5, 5, person("a"))) == []


def test_runs_side_by_side_on_one_document_end_with_the_newest(desk: Desk) -> None:
    texts = ["The lighthouse keeper"[:length] for length in range(1, 21)]
    ended: list[Any] = []

    def ask(revision: int) -> None:
        views = [view for view, _ in desk.answer({"text": texts[revision], "revision": revision}, 5, 5, person("a"))]
        ended.extend(view["revision"] for view in views if view["state"] == "settled")

    threads = [threading.Thread(target=ask, args=(revision,)) for revision in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    held = desk.store.hold("a")
    assert 19 in ended
    assert held.document.text == texts[19]
    held.document.check()


def test_what_was_accepted_keeps_its_ids_and_only_new_nodes_are_evaluated(tiny_model: Model) -> None:
    held = Held(Document(tiny_model))
    view = list(answers(held, Asked("The light", 1, k=4, depth=6)))[-1]
    shown, branch = held.shown, view["branches"][-1]
    assert shown is not None
    pieces = branch["pieces"][:3]
    ids = tuple(token_id for piece in pieces for token_id in piece["ids"])
    text = "The light" + "".join(piece["text"] for piece in pieces)
    after = list(answers(held, Asked(text, 2, k=4, depth=6, accepted=ids)))[-1]
    assert held.document.text == text
    assert tuple(held.document.token_ids[-len(ids) :]) == ids
    assert after["cost"]["tokens"] <= 4 * 6


def test_ids_that_do_not_belong_to_the_text_are_not_believed(tiny_model: Model) -> None:
    held = Held(Document(tiny_model))
    list(answers(held, Asked("The light", 1)))
    assert held.shown is not None
    ids = held.shown.branches[0].token_ids[:2]
    list(answers(held, Asked("Something else", 2, accepted=ids)))
    assert held.document.text == "Something else"
    assert held.document.token_ids == Document(tiny_model, "Something else").token_ids


def test_each_person_has_a_document_of_their_own(desk: Desk) -> None:
    last(desk, {"text": "The secret of the first", "revision": 1}, name="first")
    view, _ = last(desk, {"text": "The", "revision": 1}, name="second")
    alone, _ = last(desk, {"text": "The", "revision": 1}, name="")
    assert view["branches"] == alone["branches"]
    assert desk.store.hold("first").document.text == "The secret of the first"
    assert desk.store.hold("") is not desk.store.hold("")


def test_the_store_is_bounded_and_forgets_the_idle(tiny_model: Model) -> None:
    now = [0.0]
    store = DocumentStore(lambda: Document(tiny_model), most=3, seconds=10, clock=lambda: now[0])
    kept = [store.hold(name) for name in "abc"]
    assert store.hold("a") is kept[0]
    store.hold("d")
    assert len(store) == 3
    assert store.hold("a") is kept[0], "the longest unused one went"
    assert store.hold("b") is not kept[1]
    now[0] = 20.0
    store.hold("e")
    assert len(store) == 1
