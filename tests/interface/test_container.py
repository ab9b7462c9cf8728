"""The Dockerfile: what it copies is enough, and the app writes nothing outside of its folders, as a plain user."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from lookahead_core import Model, Settings
from lookahead_core.loading.server import addresses_of
from tests.support.browser import free_port
from tests.support.http_requests import http_request

ROOT = Path(__file__).parents[2]
HOME, CODE = "/home/user", "/home/user/app"
WRITABLE = ("/home/user/cache", "/tmp")
"""Folders in which the container may write: a volume, and a file system in memory."""
ADA = {"Authorization": "Basic YWRhOm9uZQ=="}
"""The name ada and the password one."""
WATCHED_APP = """
import os, runpy, sys
allowed, log = sys.argv[1].split(":"), sys.argv[2]
CHANGES = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.symlink", "os.link", "os.truncate", "os.chmod"}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
def watch(event, arguments):
    writes = event in CHANGES or event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITING
    if not writes or not isinstance(arguments[0], (str, bytes, os.PathLike)):
        return
    path = os.path.realpath(os.fsdecode(arguments[0]))
    if not path.startswith((*(each + "/" for each in allowed), "/dev/")) and path not in (*allowed, log):
        with open(log, "a") as file:
            file.write(event + " " + path + chr(10))
        raise PermissionError(30, "Read-only file system", path)
sys.addaudithook(watch)
sys.argv = ["app.py"]
sys.path.insert(0, "")
runpy.run_path("app.py", run_name="__main__")
"""
"""Starts the app with a hook that refuses and notes each write outside of the allowed folders, as root too."""


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile, in order, each with its arguments on one line."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(encoding="utf-8"), flags=re.M).replace("\\\n", " ")
    pairs = (line.split(None, 1) for line in text.splitlines() if line.strip())
    return [(name, arguments.strip()) for name, arguments in pairs]


def arguments_of(name: str) -> list[str]:
    return [arguments for each, arguments in instructions() if each == name]


def environment() -> dict[str, str]:
    """The variables that the Dockerfile sets."""
    return dict(word.split("=", 1) for arguments in arguments_of("ENV") for word in shlex.split(arguments))


def copied(target: Path) -> None:
    """Copy to a folder what the Dockerfile's COPY copies to the folder of the code."""
    for arguments in arguments_of("COPY"):
        source, destination = arguments.split()
        path = (target / destination / source) if destination.endswith("/") else target / destination
        path.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, path, ignore=shutil.ignore_patterns("__pycache__", "*.pyi"))
        else:
            shutil.copy(ROOT / source, path)


def test_the_container_runs_as_a_plain_user_who_owns_no_code() -> None:
    names = [name for name, _ in instructions()]
    assert names[0] == "FROM" and arguments_of("FROM") == ["python:3.12-slim"]
    assert arguments_of("USER") == ["user"]
    # Everything after the user's creation runs as the user; no option of COPY changes the owner from root.
    assert [arguments for name, arguments in instructions()[: names.index("USER")] if name == "RUN"] == [
        "useradd --create-home --uid 1000 user"
    ]
    assert not any(arguments.startswith("--") for arguments in arguments_of("COPY"))
    assert arguments_of("WORKDIR") == [CODE]


def test_the_container_keeps_its_files_in_a_volume_and_listens_on_the_port_that_it_exposes() -> None:
    variables = environment()
    folders = {
        name: value for name, value in variables.items() if value.startswith("/") and name not in ("HOME", "PATH")
    }
    assert set(folders) == {"XDG_CACHE_HOME", "HF_HOME", "LOOKAHEAD_CACHE_DIR", "GRADIO_TEMP_DIR"}
    assert all(Path(value).is_relative_to(WRITABLE[0]) or value.startswith("/tmp/") for value in folders.values())
    assert arguments_of("VOLUME") == [WRITABLE[0]] and arguments_of("EXPOSE") == [variables["GRADIO_SERVER_PORT"]]
    assert json.loads(arguments_of("CMD")[0]) == ["python", "app.py"]
    assert variables["GRADIO_SERVER_NAME"] == "0.0.0.0" and variables["HOME"] == HOME


def test_what_is_copied_is_not_ignored_and_what_is_ignored_is_not_copied() -> None:
    lines = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    assert lines[0] == "*"
    sources = {arguments.split()[0] for arguments in arguments_of("COPY")}
    assert {line[1:] for line in lines if line.startswith("!")} == sources


@contextmanager
def running_app(folder: Path, model: Path, user: dict[str, Any]) -> Iterator[tuple[str, Path]]:
    """The app in a folder as the container runs it; gives its address and the log of refused writes."""
    home, code, log = folder / "home", folder / "home" / "app", folder / "refused.log"
    moved = {
        name: value.replace(HOME, str(home)).replace("/tmp/", f"{folder}/tmp/") for name, value in environment().items()
    }
    port = free_port()
    variables = {
        **moved,
        "PATH": os.environ["PATH"],
        "TMPDIR": str(folder / "tmp"),
        "GRADIO_SERVER_NAME": "127.0.0.1",
        "GRADIO_SERVER_PORT": str(port),
        "LOOKAHEAD_MODEL": str(model),
        "LOOKAHEAD_AUTH": "ada:one",
        "LOOKAHEAD_ROOT_PATH": "/class",
    }
    allowed = f"{home / 'cache'}:{folder / 'tmp'}"
    with (folder / "output.log").open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-c", WATCHED_APP, allowed, str(log)],
            cwd=code, env=variables, stdout=output, stderr=output, **user,
        )  # fmt: skip
        try:
            yield f"http://127.0.0.1:{port}", log
        finally:
            process.terminate()
            process.wait(timeout=30)


def plain_user() -> dict[str, Any]:
    """Options of `Popen` for a user without rights, if this test runs as root and that user can run this Python."""
    if os.getuid() != 0:
        return {}
    options = {"user": 65534, "group": 65534, "extra_groups": []}
    try:
        subprocess.run([sys.executable, "-c", "import gradio"], check=True, capture_output=True, **options)
    except (OSError, subprocess.CalledProcessError):
        return {}
    return options


@pytest.mark.slow
def test_the_app_runs_from_what_is_copied_and_writes_only_to_its_volume_and_to_tmp(
    tmp_path: Path, tiny_model: Model
) -> None:
    model = tmp_path / "model"
    tiny_model.hf_model.save_pretrained(model)
    tiny_model.tokenizer.save_pretrained(model)
    home = tmp_path / "home"
    for name in ("tmp", "home/cache", "home/app"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name).chmod(0o777)
    copied(home / "app")
    before = {file: file.stat().st_mtime_ns for file in (home / "app").rglob("*")}
    for file in before:
        file.chmod(0o555 if file.is_dir() else 0o444)
    with running_app(tmp_path, model, plain_user()) as (url, log):
        wait_until_up(url, tmp_path / "output.log")
        assert http_request(url, "GET", "/api", **ADA)[0] == 200
        assert http_request(url, "GET", "/api")[0] == 401
        status, page = http_request(url, "GET", "/")
        assert status == 200 and re.search(r'"root": ?"http://127.0.0.1:\d+/class"', page)
    # Gradio writes type hints beside a component's source where it can, and goes on where it cannot.
    refused = log.read_text().split("\n") if log.exists() else []
    assert [line for line in refused if line and not line.endswith(".pyi")] == []
    assert {file: file.stat().st_mtime_ns for file in (home / "app").rglob("*")} == before
    assert [path.name for path in sorted(home.iterdir())] == ["app", "cache"]


def wait_until_up(url: str, output: Path) -> None:
    """Wait until the app's model is loaded; fail after two minutes."""
    end = time.monotonic() + 120
    while time.monotonic() < end:
        try:
            status = http_request(url, "POST", "/api/lookahead", {"text": "a", "k": 1, "depth": 1}, **ADA)[0]
        except OSError:
            status = 0
        if status == 200:
            return
        time.sleep(0.2)
    pytest.fail(output.read_text())


def test_the_compose_file_starts_the_page_with_settings_that_exist_and_one_server_in_each_profile() -> None:
    compose = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
    services = compose["services"]
    page = services["page"]
    known = {f"LOOKAHEAD_{each.name.upper()}" for each in dataclasses.fields(Settings)}
    assert set(page["environment"]) <= known
    (address,) = addresses_of(page["environment"]["LOOKAHEAD_MODEL"])
    host = address.removeprefix("http://").partition(":")[0]
    assert set(page["depends_on"]) == set(services) - {"page"}
    for profile in page["profiles"]:
        (server,) = [each for name, each in services.items() if name != "page" and profile in each["profiles"]]
        assert server["networks"]["default"]["aliases"] == [host]
        words = server["command"]
        assert words[words.index("--max-logprobs") + 1] == "-1" and "ports" not in server
        assert words[words.index("--logprobs-mode") + 1] == "processed_logprobs"
    assert {volume.partition(":")[0] for each in services.values() for volume in each["volumes"]} == set(
        compose["volumes"]
    )
