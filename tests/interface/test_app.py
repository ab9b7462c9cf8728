"""The app without a browser: its arguments, and how it loads its model."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import gradio as gr
import pytest

import app
from interface import ModelLoader, build, launch_options
from lookahead_core import LookaheadError, Model, ModelError, Settings, load_model
from lookahead_core.loading import load_model as models
from tests.conftest import tiny_llama

ROOT = Path(__file__).parents[2]


def run_app(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "app.py", *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_the_page_has_a_tab_for_each_package_of_tabs_with_its_script() -> None:
    page = build(ModelLoader(lambda report: pytest.fail("loaded")))
    components = page.config["components"]
    every = [each["props"]["label"] for each in components if each["type"] == "tabitem"]
    labels, inner = every[:6], every[6:]
    assert labels == ["Write", "Rewrite", "Highlights", "Type assistant", "Internals", "Lab"]
    assert inner == ["Lesson", "Cache", "Decoding", "Masks", "Speculation"], "the pages of the Lab"
    scripts = " ".join(str(each["props"].get("js_on_load", "")) for each in components)
    folders = sorted(path.name for path in (ROOT / "interface" / "tabs").iterdir() if (path / "tab.py").exists())
    assert not page.analytics_enabled
    assert len(folders) == len(labels) and all(f"/tabs/{name}/" in scripts for name in folders)


def test_the_server_keeps_no_history_takes_no_uploads_and_shows_no_monitoring() -> None:
    options = launch_options(ModelLoader(lambda report: pytest.fail("loaded")))
    kept = {name: options[name] for name in ("run_history", "enable_monitoring", "ssr_mode", "max_file_size")}
    assert kept == {"run_history": False, "enable_monitoring": False, "ssr_mode": False, "max_file_size": 1}


def test_help_names_every_argument_and_every_variable() -> None:
    ended = run_app("--help")
    assert ended.returncode == 0
    arguments = ("model", "revision", "device", "device-map", "dtype", "engine", "trust-remote-code")
    for name in (*arguments, "port", "host", "share", "mcp", "auth", "root-path"):
        assert f"\n  --{name} " in ended.stdout, name
    for name in (each.name.upper() for each in fields(Settings)):
        assert f"LOOKAHEAD_{name}" in ended.stdout


@pytest.mark.parametrize(
    "arguments", [["--port", "none"], ["--port", "99999"], ["--device", "toaster"], ["--nonsense"], ["--dtype"]]
)
def test_a_bad_argument_is_one_sentence_and_exit_code_2(arguments: list[str]) -> None:
    ended = run_app(*arguments)
    assert ended.returncode == 2
    assert len(ended.stderr.strip().splitlines()) == 1
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    "environment",
    [
        {"LOOKAHEAD_CACHE_MB": "much"},
        {"LOOKAHEAD_DTYPE": "float12"},
        {"LOOKAHEAD_ENGINE": "steam"},
        {"LOOKAHEAD_ADDRESS": "javascript:alert(1)"},
        {"LOOKAHEAD_TRUST_REMOTE_CODE": "perhaps"},
        {"LOOKAHEAD_MCP": "perhaps"},
        {"LOOKAHEAD_ROOT_PATH": "lookahead"},
        {"LOOKAHEAD_AUTH": "ada"},
        {"LOOKAHEAD_TRUSTED_PROXIES": "everybody"},
        {"LOOKAHEAD_DEVICE": "cpu", "LOOKAHEAD_DEVICE_MAP": "auto"},
    ],
)
def test_a_bad_variable_is_one_sentence_that_names_it(environment: dict[str, str]) -> None:
    ended = run_app(**environment)
    assert ended.returncode == 2
    assert ended.stderr.strip().startswith(next(iter(environment)))
    assert len(ended.stderr.strip().splitlines()) == 1


def test_shared_gpus_without_their_package_are_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "spaces.py").write_text("raise RuntimeError('no GPU here')")
    ended = run_app(SPACES_ZERO_GPU="true", PYTHONPATH=str(tmp_path))
    assert ended.returncode == 1
    assert len(ended.stderr.strip().splitlines()) == 1
    assert "spaces cannot be imported: no GPU here" in ended.stderr


@pytest.mark.slow
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


def test_arguments_override_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOKAHEAD_MODEL", "of the environment")
    monkeypatch.setenv("LOOKAHEAD_DEVICE", "cpu")
    settings = app.settings_of(app.parser().parse_args(["--model", "of the arguments"]))
    assert (settings.model, settings.device) == ("of the arguments", "cpu")


def test_device_or_device_map_as_an_argument_overrides_both_variables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def where(*words: str) -> tuple[str, str]:
        settings = app.settings_of(app.parser().parse_args(words))
        return settings.device, settings.device_map

    monkeypatch.setenv("LOOKAHEAD_DEVICE_MAP", "balanced")
    assert where() == ("auto", "balanced")
    assert where("--device", "cpu") == ("cpu", "")
    monkeypatch.delenv("LOOKAHEAD_DEVICE_MAP")
    monkeypatch.setenv("LOOKAHEAD_DEVICE", "cpu")
    assert where("--device-map", '{"": "cpu"}') == ("auto", '{"": "cpu"}')
    with pytest.raises(ValueError, match=r"\(--device\) is 'cpu' and .*\(--device-map\) is 'auto': give one"):
        where("--device", "cpu", "--device-map", "auto")


@pytest.mark.parametrize(
    ("variable", "words", "trusted"),
    [
        (None, [], False),
        (None, ["--trust-remote-code"], True),
        ("true", [], True),
        ("1", [], True),
        ("YES", [], True),
        ("0", [], False),
        ("False", [], False),
        ("no", ["--trust-remote-code"], True),
    ],
)
def test_remote_code_is_trusted_by_an_argument_or_a_variable(
    variable: str | None, words: list[str], trusted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if variable is not None:
        monkeypatch.setenv("LOOKAHEAD_TRUST_REMOTE_CODE", variable)
    assert app.settings_of(app.parser().parse_args(words)).trust_remote_code is trusted


@pytest.mark.parametrize(
    ("auth", "accounts"),
    [
        ("", None),
        (" ", None),
        ("ada:one", [("ada", "one")]),
        ("ada:a:b, ben:two,", [("ada", "a:b"), ("ben", "two")]),
    ],
)
def test_accounts_are_names_and_passwords(auth: str, accounts: list[tuple[str, str]] | None) -> None:
    assert app.accounts_of(auth) == accounts


@pytest.mark.parametrize(
    "auth", ["hunter2", "ada:hunter2,ben:", ":hunter2", "ada:hunter2,ada:other", "ada:hunter2,ben"]
)
def test_accounts_with_a_mistake_are_refused_and_no_password_is_shown(auth: str) -> None:
    with pytest.raises(ValueError, match=r"^LOOKAHEAD_AUTH \(--auth\)") as refused:
        app.accounts_of(auth)
    assert "hunter2" not in str(refused.value)
    assert "hunter2" not in repr(Settings(auth=auth))


def test_sign_in_root_path_and_mcp_come_from_variables_or_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    def chosen(*words: str) -> tuple[str, str, bool]:
        settings = app.settings_of(app.parser().parse_args(words))
        return settings.auth, settings.root_path, settings.mcp

    assert chosen() == ("", "", False)
    assert chosen("--auth", "ada:one", "--root-path", "/a", "--mcp") == ("ada:one", "/a", True)
    for name, value in (("AUTH", "ben:two"), ("ROOT_PATH", "https://example.org/b"), ("MCP", "true")):
        monkeypatch.setenv(f"LOOKAHEAD_{name}", value)
    assert chosen() == ("ben:two", "https://example.org/b", True)
    assert chosen("--auth", "ada:one", "--root-path", "/a") == ("ada:one", "/a", True)


def test_demo_is_the_page_and_is_built_once() -> None:
    assert isinstance(app.demo, gr.Blocks) and app.demo is app.demo
    with pytest.raises(AttributeError, match="has no attribute 'pages'"):
        app.pages  # noqa: B018


def test_a_model_that_cannot_be_loaded_gets_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    def load(report: Any) -> Model:
        raise ModelError("There is no such model: choose another.")

    loader = ModelLoader(load)
    loader.run()
    assert (loader.loading.state, loader.loading.sentence) == ("error", "There is no such model: choose another.")
    assert "There is no such model" in capsys.readouterr().err
    assert loader.model is None


def test_an_unexpected_error_at_loading_gets_a_sentence(caplog: pytest.LogCaptureFixture) -> None:
    def load(report: Any) -> Model:
        raise KeyError("inner workings")

    loader = ModelLoader(load)
    loader.run()
    assert loader.loading.state == "error"
    assert "inner workings" not in loader.loading.sentence


def test_a_loaded_model_is_described_on_the_terminal_and_in_the_page(
    tiny_model: Model, capsys: pytest.CaptureFixture[str]
) -> None:
    loader = ModelLoader(lambda report: tiny_model)
    assert loader.loading.as_json() == {"state": "loading", "sentence": "Starting", "fraction": None}
    assert not loader.loading.done
    loader.run()
    assert capsys.readouterr().out == f"Ready: {tiny_model.describe()}\n"
    assert loader.loading.as_json() == {"state": "ready", "sentence": tiny_model.describe(), "fraction": None}
    assert loader.loading.done
    assert loader.model is not None
    assert loader.model.engine is loader.scheduler
    assert loader.scheduler.engine is tiny_model.engine
    assert loader.caller is loader.caller


def test_progress_is_a_state_of_the_page(tiny_model: Model) -> None:
    seen = []

    def load(report: Any) -> Model:
        for sentence, fraction in (("Downloading Tiny", 0.5), ("Loading Tiny", None)):
            report(sentence, fraction)
            seen.append(loader.loading)
        return tiny_model

    loader = ModelLoader(load)
    loader.run()
    assert [(loading.state, loading.fraction) for loading in seen] == [("downloading", 0.5), ("loading", None)]
    assert loader.loading.state == "ready"


def test_a_draft_model_is_loaded_beside_the_model_and_refused_if_its_tokens_are_others(
    monkeypatch: pytest.MonkeyPatch, tiny_model: Model, draft_model: Model, fallback_tokenizer: Any
) -> None:
    monkeypatch.setenv("LOOKAHEAD_DRAFT_MODEL", "of the environment")
    assert app.settings_of(app.parser().parse_args([])).draft_model == "of the environment"
    settings = app.settings_of(app.parser().parse_args(["--draft-model", "/nowhere"]))
    assert app.draft_model_loader(replace(settings, draft_model="")) is None
    load = app.draft_model_loader(settings)
    assert load is not None
    with pytest.raises(LookaheadError, match="/nowhere"):
        load(lambda sentence, fraction: None)
    loader = ModelLoader(lambda report: tiny_model, settings, lambda report: draft_model)
    assert loader.has_draft_model and loader.draft_model is None
    loader.run()
    assert loader.loading.state == "ready" and loader.draft_model is draft_model
    other = load_model(tiny_llama(len(fallback_tokenizer)), tokenizer=fallback_tokenizer)
    loader = ModelLoader(lambda report: tiny_model, settings, lambda report: other)
    loader.run()
    assert (loader.loading.state, loader.model) == ("error", None)
    assert "has another tokenizer than" in loader.loading.sentence
