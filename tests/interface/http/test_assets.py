"""The page's scripts: one hash names a version of all of them, and a browser keeps them for good."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from interface.http import assets
from interface.http.assets import OTHER_VERSION, UNKNOWN_SCRIPT, ScriptFiles
from tests.support.workbench import workbench

FOLDER = Path(assets.__file__).parents[1]
NAMES = sorted(file.relative_to(FOLDER).as_posix() for file in FOLDER.rglob("*.js"))


@pytest.fixture
def client() -> Iterator[TestClient]:
    with TestClient(Starlette(routes=[assets.route()])) as client:
        yield client


@pytest.mark.slow
def test_every_script_is_served_unchanged_and_may_be_kept_for_good(client: TestClient) -> None:
    assert len(NAMES) > 40
    for name in NAMES:
        found = client.get(assets.scripts().address(name))
        assert (found.status_code, found.content) == (200, (FOLDER / name).read_bytes())
        assert found.headers["Content-Type"].startswith("text/javascript")
        assert found.headers["Cache-Control"] == "public, max-age=31536000, immutable"


def test_a_script_is_only_read(client: TestClient) -> None:
    address = assets.scripts().address(NAMES[0])
    assert (client.head(address).status_code, client.head(address).content) == (200, b"")
    assert client.post(address).status_code == 405


@pytest.mark.parametrize(
    "name",
    ["nothing.js", "server/page_service.py", "..%2fapp.py", "%2e%2e/%2e%2e/app.py", "web/", "web//net/requests.js"],
)
def test_nothing_but_scripts_is_served(client: TestClient, name: str) -> None:
    found = client.get(assets.scripts().address(name))
    assert (found.status_code, found.text, found.headers["Cache-Control"]) == (404, UNKNOWN_SCRIPT, "no-store")


def test_an_address_of_another_version_is_refused_with_a_sentence(client: TestClient) -> None:
    for version in ("0" * 16, "web", assets.scripts().version[:-1]):
        found = client.get(f"/lookahead/{version}/web/ui/header.js")
        assert (found.status_code, found.text, found.headers["Cache-Control"]) == (404, OTHER_VERSION, "no-store")


def test_a_page_knows_the_sentence_by_which_it_learns_that_it_is_outdated() -> None:
    script = (FOLDER / "web" / "net" / "page_version.js").read_text(encoding="utf-8")
    known = script.split("OTHER_VERSION = '")[1].split("'")[0]
    assert OTHER_VERSION.startswith(known) and known.endswith("version of the page.")


def test_the_version_is_another_one_when_any_script_or_its_name_changes(tmp_path: Path) -> None:
    (tmp_path / "web").mkdir()
    imported, importing = tmp_path / "web" / "imported.js", tmp_path / "importing.js"
    imported.write_text("export const one = 1;")
    importing.write_text("import './web/imported.js';")
    first = ScriptFiles.read(tmp_path)
    assert ScriptFiles.read(tmp_path).version == first.version
    imported.write_text("export const one = 2;")
    second = ScriptFiles.read(tmp_path)
    assert second.address("importing.js") != first.address("importing.js"), "though this file is the same"
    imported.rename(tmp_path / "web" / "renamed.js")
    assert ScriptFiles.read(tmp_path).version not in (first.version, second.version)


@pytest.mark.parametrize(("name", "counts"), [("a.html", True), ("a.css", True), ("tab.py", True), ("a.txt", False)])
def test_the_version_is_another_one_when_the_layout_changes(tmp_path: Path, name: str, counts: bool) -> None:
    (tmp_path / "one.js").write_text("1")
    (tmp_path / "tab").mkdir()
    first = ScriptFiles.read(tmp_path).version
    (tmp_path / "tab" / name).write_text("one")
    second = ScriptFiles.read(tmp_path).version
    (tmp_path / "tab" / name).write_text("two")
    third = ScriptFiles.read(tmp_path).version
    assert len({first, second, third}) == (3 if counts else 1)
    assert list(ScriptFiles.read(tmp_path).contents) == ["one.js"], "only scripts are served"


def test_a_script_that_changes_on_disk_is_served_as_it_was_read(tmp_path: Path) -> None:
    (tmp_path / "one.js").write_text("1")
    files = ScriptFiles.read(tmp_path)
    (tmp_path / "one.js").write_text("2")
    with TestClient(Starlette(routes=[files.route()])) as client:
        assert client.get(files.address("one.js")).text == "1"


def test_head_and_components_name_the_addresses_that_are_served() -> None:
    head = assets.head().splitlines()
    modules = [name for name in NAMES if name != assets.EARLY_KEYS]
    assert head == [f'<link rel="modulepreload" href=".{assets.scripts().address(name)}">' for name in modules]
    assert f"'.{assets.scripts().address('web/ui/header.js')}'" in assets.on_load("web/ui/header.js", "mount")


FETCHED = """async start => {
  await import(start);
  const scripts = performance.getEntriesByType('resource').filter(({name}) => name.endsWith('.js'));
  return scripts.map(({name, transferSize}) => [new URL(name).pathname, transferSize]);
}"""


@pytest.mark.slow
@pytest.mark.browser
def test_a_browser_asks_for_each_script_once_and_after_a_reload_for_none(browser: Any) -> None:
    start = assets.scripts().address("tabs/writer/writer.js")
    with workbench() as url:
        page = browser.new_page()
        page.goto(url)
        first = page.evaluate(FETCHED, start)
        assert len(first) > 20 and len(dict(first)) == len(first)
        assert all(size > 0 for _, size in first)
        page.goto("about:blank")
        page.goto(url)
        again = page.evaluate(FETCHED, start)
        assert {name for name, _ in again} == {name for name, _ in first}
        assert all(size == 0 for _, size in again)
        page.close()
