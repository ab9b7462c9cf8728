"""The calls by `gradio_client` and by an MCP client, and the examples of docs/calls.md."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import app
import lookahead_core
from interface.server.call_arguments import NAMES, function_of
from interface.server.call_runner import CallRunner
from interface.server.callers import CALLER, PROGRAMS, Caller, leave_turn
from interface.server.rate_limits import PERSON_TURNS
from lookahead_core import Model
from lookahead_core.serving.calls import Calls
from tests.interface.http.test_endpoints import CALLS
from tests.serving.test_calls import texts_of
from tests.support.http_requests import PATIENCE, http_request, served

EXAMPLES = (Path(__file__).parents[3] / "docs" / "calls.md").read_text()


@pytest.fixture(scope="module")
def client(address: str) -> Iterator[Any]:
    from gradio_client import Client

    made = Client(address, verbose=False)
    yield made
    made.close()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "given"), CALLS, ids=[name for name, _ in CALLS])
def test_gradios_client_gets_what_the_functions_return(client: Any, model: Model, name: str, given: Any) -> None:
    assert texts_of(client.predict(**given, api_name=f"/{name}")) == texts_of(getattr(Calls(model), name)(**given))


def test_gradios_client_sees_the_calls_only(client: Any) -> None:
    seen = client.view_api(return_format="dict", print_info=False)["named_endpoints"]
    assert set(seen) == {f"/{name}" for name in NAMES}
    for name in NAMES:
        known = list(inspect.signature(function_of(name)).parameters)[1:]
        assert [one["parameter_name"] for one in seen[f"/{name}"]["parameters"]] == known


@pytest.mark.parametrize(
    ("name", "given", "sentence"),
    [
        ("lookahead", {"text": "a", "k": -1}, "k must be a whole number from 1 to 20."),
        ("continue_messages", {"messages": []}, "At least one message must be provided."),
        ("generate", {"text": "a", "max_new_tokens": 10**9}, "from 1 to 512."),
        ("highlights", {"doc": "x" * 1_000_000}, "1,000,000 characters"),
    ],
)
def test_gradios_client_gets_errors_as_sentences(client: Any, name: str, given: Any, sentence: str) -> None:
    with pytest.raises(Exception, match=sentence):
        client.predict(**given, api_name=f"/{name}")


@pytest.mark.slow
def test_a_page_of_another_site_gets_nothing_over_gradios_routes_either(address: str) -> None:
    from gradio_client import Client

    for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        made = Client(address, verbose=False, headers=headers)
        with pytest.raises(Exception, match="Pages of other sites"):
            made.predict(text="a", api_name="/lookahead")
        made.close()


def test_a_text_evaluated_over_http_is_not_evaluated_again_for_gradios_client(
    address: str, client: Any, model: Model
) -> None:
    given = {"text": "Somebody reads this by one door, and somebody else by another."}
    by_http = http_request(address, "POST", "/api/logprobs", given)[1]
    passes = model.engine.passes
    assert client.predict(**given, api_name="/logprobs") == by_http
    assert model.engine.passes == passes


@pytest.mark.slow
def test_an_mcp_client_gets_what_the_functions_return(model: Model) -> None:
    pytest.importorskip("mcp", reason="The package mcp is not installed.")
    with served(model, mcp_server=True) as url:
        tools, answers, refused = asyncio.run(asked_by_mcp(f"{url}gradio_api/mcp/"))
    assert set(tools) == set(NAMES)
    assert all(tools.values()), "each says what it is for"
    for (name, given), answer in zip(CALLS, answers, strict=True):
        assert texts_of(ast.literal_eval(answer)) == texts_of(getattr(Calls(model), name)(**given)), name
    assert refused == (True, "At least one message must be provided.")


@pytest.mark.slow
def test_each_mcp_client_is_the_caller_of_its_calls(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mcp", reason="The package mcp is not installed.")
    callers: list[Caller] = []
    answer = CallRunner.answer

    async def recorded(self: CallRunner, *arguments: Any, **options: Any) -> dict[str, Any]:
        callers.append(CALLER.get())
        return await answer(self, *arguments, **options)

    with served(model, mcp_server=True) as url:
        monkeypatch.setattr(CallRunner, "answer", recorded)
        for address in ("127.0.0.2", "127.0.0.3"):
            asyncio.run(asked_by_mcp(f"{url}gradio_api/mcp/", CALLS[:1], address))
    assert {(caller.address, caller.person) for caller in callers} == {
        ("127.0.0.2", PROGRAMS),
        ("127.0.0.3", PROGRAMS),
    }


@pytest.mark.slow
def test_calls_of_an_mcp_client_that_wait_for_the_model_hold_no_turn(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("mcp", reason="The package mcp is not installed.")
    waiting = [0]

    async def wait_together(self: CallRunner, *arguments: Any, **options: Any) -> dict[str, Any]:
        leave_turn()
        waiting[0] += 1
        end = time.monotonic() + PATIENCE
        while waiting[0] <= PERSON_TURNS and time.monotonic() < end:
            await asyncio.sleep(0.02)
        return {"waiting": waiting[0]}

    async def ask(url: str) -> list[str]:
        async with mcp_session(url) as session:
            calls = (session.call_tool(*CALLS[0]) for _ in range(PERSON_TURNS + 1))
            return [answer.content[0].text for answer in await asyncio.gather(*calls)]

    with served(model, mcp_server=True) as url:
        monkeypatch.setattr(CallRunner, "answer", wait_together)
        answers = asyncio.run(ask(f"{url}gradio_api/mcp/"))
    assert [ast.literal_eval(answer)["waiting"] for answer in answers] == [PERSON_TURNS + 1] * (PERSON_TURNS + 1)


@asynccontextmanager
async def mcp_session(url: str, address: str = "127.0.0.1") -> AsyncIterator[Any]:
    """A session of an MCP client that sends its requests from `address`."""
    import httpx
    from mcp import ClientSession
    from mcp.client.streamable_http import streamable_http_client

    transport = httpx.AsyncHTTPTransport(local_address=address)
    async with (
        httpx.AsyncClient(transport=transport, timeout=PATIENCE, follow_redirects=True) as client,
        streamable_http_client(url, http_client=client) as (reading, writing, _),
        ClientSession(reading, writing) as session,
    ):
        await session.initialize()
        yield session


async def asked_by_mcp(
    url: str, calls: Sequence[tuple[str, Any]] = CALLS, address: str = "127.0.0.1"
) -> tuple[dict[str, str | None], list[str], tuple[bool, str]]:
    """The tools with their descriptions, the answers to `calls`, and that to a wrong one, asked from `address`."""
    async with mcp_session(url, address) as session:
        tools = {tool.name: tool.description for tool in (await session.list_tools()).tools}
        answers = [(await session.call_tool(name, given)).content[0].text for name, given in calls]
        wrong = await session.call_tool("continue_messages", {"messages": []})
        return tools, answers, (wrong.isError, wrong.content[0].text)


def test_mcp_without_its_package_is_refused_with_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(app, "find_spec", lambda name: None)
    monkeypatch.setattr(sys, "argv", ["app.py", "--mcp"])
    with pytest.raises(SystemExit) as ended:
        app.main()
    said = capsys.readouterr().err
    assert ended.value.code == 2 and "gradio[mcp]" in said and len(said.strip().splitlines()) == 1


@pytest.mark.slow
def test_building_the_interface_does_not_import_torch() -> None:
    script = "import sys, interface as i; i.build(i.ModelLoader(None)); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False, cwd=Path(app.__file__).parent).returncode == 0


def test_every_call_is_documented_with_its_arguments() -> None:
    for name in NAMES:
        [line] = re.findall(rf"^\| `{name}` \| (.+?) \|", EXAMPLES, re.M)
        for argument in list(inspect.signature(function_of(name)).parameters)[1:]:
            assert f"`{argument}`" in line, (name, argument)


def test_the_examples_that_people_copy_run(
    address: str, model: Model, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(lookahead_core, "load_model", lambda: model)
    there = EXAMPLES.replace("http://127.0.0.1:7860", address.rstrip("/"))
    for block in re.findall(r"```python\n(.+?)\n```", there, re.S):
        exec(compile(block, "docs/calls.md", "exec"), {})
    assert capsys.readouterr().out.count("\n") >= 5
    commands = [shlex.split(one.replace("\\\n", " ")) for one in re.findall(r"```bash\n(curl.+?)\n```", there, re.S)]
    assert len(commands) >= 4
    if shutil.which("curl") is None:
        pytest.skip("There is no curl on this machine.")
    for command in commands:
        said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
        assert said.startswith("{") and "detail" not in said[:10], said
