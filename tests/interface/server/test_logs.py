"""The logs: one JSON object a line where that is wanted, and never what somebody has typed."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from interface import ModelLoader
from interface.server.logs import SAFE, JsonFormatter, PrintedLines, TextFormatter, configure_logs, log_event
from interface.server.page_service import PageService
from lookahead_core import Model
from tests.support.browser import ROOT, free_port
from tests.support.http_requests import http_request
from tests.support.requests_to_pages import PAGE, ask
from tests.support.witness import around

SECRET = "xylophone-of-somebody"


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What the JSON log holds, line by line; the logging of this process is restored afterwards."""
    root, output = logging.getLogger(), io.StringIO()
    before, level, streams = root.handlers[:], root.level, (sys.stdout, sys.stderr)
    levels = {name: logging.getLogger(name).level for name in ("interface", "lookahead_core", "__main__")}
    monkeypatch.setattr(sys, "stderr", output)
    configure_logs("json")
    try:
        yield Lines(output)
    finally:
        sys.stdout, sys.stderr = streams
        root.handlers[:] = before
        root.setLevel(level)
        for name, own in levels.items():
            logging.getLogger(name).setLevel(own)


class Lines(list[str]):
    """The lines of a stream that is still written to."""

    def __init__(self, output: io.StringIO) -> None:
        self.output = output

    @property
    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.output.getvalue().splitlines()]


def test_requests_and_errors_are_logged_without_the_text_that_they_are_about(lines: Any, tiny_model: Model) -> None:
    fails = [False]

    def fail() -> None:
        if fails[0]:
            raise RuntimeError(f"The pass over {SECRET!r} failed.")

    loader = ModelLoader(lambda report: around(tiny_model, fail))
    loader.run()
    service = PageService(loader)
    news = asyncio.run(ask(service, 1, text=f"{SECRET} and", k=2, depth=3, ahead=False))
    assert news[-1]["state"] == "settled"
    asyncio.run(ask(service, 2, text=f"{SECRET} and", mode=SECRET))
    fails[0] = True
    news = asyncio.run(ask(service, 3, text=f"{SECRET} or", k=2, depth=3, ahead=False))
    assert news[-1]["state"] == "error"
    print("Printed by the server", file=PrintedLines("stdout"))
    loop = asyncio.new_event_loop()
    loop.call_exception_handler({"message": "Never retrieved", "future": f"<{SECRET}>", "exception": OSError(SECRET)})
    loop.close()
    logging.getLogger("of.others").error("It says %s", SECRET)
    records = lines.records
    view = next(record for record in records if record["event"] == "view")
    assert view["characters"] == len(f"{SECRET} and") and view["seconds"] >= 0
    assert (view["k"], view["depth"], view["mode"]) == (2, 3, "likely")
    assert [one["kind"] for one in records if one["event"] == "error"] == ["ValueError", "RuntimeError"]
    failure = next(record for record in records if record.get("error") == "RuntimeError")
    assert any(frame.endswith(" fail") for frame in failure["frames"])
    assert {"printed", "It says %s", "ready"} <= {record["event"] for record in records}
    assert all({"time", "level", "logger", "event"} <= set(record) for record in records)
    written = lines.output.getvalue()
    assert SECRET not in written and PAGE not in written


def test_a_printed_traceback_keeps_its_frames_only(lines: Any) -> None:
    stream = PrintedLines("stderr")
    stream.write(f'Traceback:\n  File "/app/of.py", line 3, in read\n    text = "{SECRET}"\nValueError: {SECRET}\n')
    assert [record.get("frame") for record in lines.records] == ["/app/of.py:3 read"]


def raised(message: str) -> logging.LogRecord:
    try:
        raise KeyError(message)
    except KeyError:
        return logging.LogRecord(
            "interface.x", logging.ERROR, __file__, 1, "It failed: %s", ("at once",), sys.exc_info()
        )


@pytest.mark.parametrize("formatter", [JsonFormatter(), TextFormatter("%(levelname)s: %(message)s")])
def test_the_message_of_an_error_is_shown_only_where_it_cannot_be_a_persons(formatter: logging.Formatter) -> None:
    hidden = formatter.format(raised(SECRET))
    assert "It failed: at once" in hidden and "KeyError" in hidden and "test_logs.py" in hidden and SECRET not in hidden
    record = raised("no space left")
    setattr(record, SAFE, True)
    assert "no space left" in formatter.format(record)


def test_logs_as_text_show_no_events(capsys: pytest.CaptureFixture[str]) -> None:
    log_event("view", seconds=1)
    assert capsys.readouterr().err == ""


def wait_until_up(url: str) -> None:
    """Wait until the server is healthy; fail after two minutes."""
    end = time.monotonic() + 120
    while time.monotonic() < end:
        with suppress(OSError):
            if http_request(url, "GET", "/health")[0] == 200:
                return
        time.sleep(0.2)
    pytest.fail("The server is not healthy.")


@pytest.mark.slow
@pytest.mark.parametrize("form", ["json", "text"])
def test_the_log_of_a_whole_server_holds_no_secret(tmp_path: Path, tiny_folder: Path, form: str) -> None:
    """Every way in that fails: calls, their URLs, gradio_client's routes, malformed requests, the page's functions."""
    port, log = free_port(), tmp_path / "log"
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "app.py", "--port", str(port), "--model", str(tiny_folder)]
    with log.open("w") as output:
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=output, stderr=output, env=os.environ | {"LOOKAHEAD_LOG": form}
        )
    try:
        wait_until_up(url)
        http_request(url, "POST", "/api/lookahead", {"text": SECRET, "mode": SECRET, SECRET: 1})
        http_request(url, "POST", "/api/lookahead", {"text": SECRET})
        http_request(url, "GET", f"/api/{SECRET}?text={SECRET}")
        http_request(url, "GET", f"/{SECRET}")
        for body in ({"data": [SECRET] * 99}, {"data": []}, {"data": SECRET}, {SECRET: SECRET}, [SECRET]):
            for route in ("call/lookahead", "run/lookahead", "api/lookahead", "queue/join", "component_server"):
                http_request(url, "POST", f"/gradio_api/{route}", body)
        component = next(
            one["id"]
            for one in http_request(url, "GET", "/config")[1]["components"]
            if "ask" in one["props"].get("server_fns", [])
        )
        asking = {"component_id": component, "fn_name": "ask", "session_hash": SECRET}
        for data in (SECRET, {"page": SECRET}, {"page": PAGE, "number": 1, "revision": 1, "text": SECRET, "k": SECRET}):
            http_request(url, "POST", "/gradio_api/component_server", asking | {"data": data})
    finally:
        process.terminate()
        process.wait(60)
    lines = log.read_text().splitlines()
    if form == "json":
        assert len([json.loads(line) for line in lines]) > 5
    assert SECRET not in log.read_text() and PAGE not in log.read_text()
