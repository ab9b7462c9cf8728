"""The documents are true: their code runs, their links and paths exist, and settings and dependencies are complete."""

from __future__ import annotations

import re
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import app
import lookahead_core
from lookahead_core import Model, Settings
from lookahead_core.strategies.branch_growth import Growth
from tests.support.drafting import Steady

ROOT = Path(__file__).parents[1]
PAGES = [
    *(Path(name) for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")),
    *sorted(file.relative_to(ROOT) for file in (ROOT / "docs").glob("*.md")),
]
FOLDERS = ("benchmarks", "docs", "interface", "lookahead_core", "tests")
SUFFIXES = (".py", ".md", ".js", ".html", ".css", ".json", ".toml", ".yaml", ".yml", ".png", ".gif")
WRITTEN = ("benchmarks/out/", ".mutation/")
"""Folders that commands write and git ignores."""


def text_of(page: str | Path) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def run_code(page: str, model: Model, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Run a page's Python blocks one after the other, as a reader would; returns the names that they define."""
    blocks = re.findall(r"```python\n(.+?)\n```", text_of(page), re.S)
    assert blocks
    # `load_model()` returns the tests' copy of the default model: loading it again would take seconds.
    monkeypatch.setattr(lookahead_core, "load_model", lambda: model)
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, page, "exec"), names)
    return names


def test_the_code_in_the_readme_runs(
    default_model: Model, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = run_code("README.md", default_model, monkeypatch)
    printed = capsys.readouterr().out
    assert "tokens: only those not evaluated before" in printed
    assert 0 < names["again"].cost.tokens < names["result"].cost.tokens
    assert names["document"].text == "After careful thought"


@pytest.mark.slow
def test_the_code_on_the_librarys_page_runs(default_model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    names = run_code("docs/library.md", default_model, monkeypatch)
    assert names["stream"].passes is not None and names["beams"].branches


def test_the_readme_has_at_most_150_lines() -> None:
    assert len(text_of("README.md").splitlines()) <= 150


def test_the_readme_names_the_test_command_that_the_continuous_integration_runs() -> None:
    (command,) = re.findall(r"<!-- tests -->\s*```bash\n(.+?)\n```", text_of("README.md"), re.S)
    assert "pytest" in command


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_every_link_leads_to_a_file(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", text_of(page)):
        assert (ROOT / page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_every_path_in_backticks_exists(page: Path) -> None:
    text = re.sub(r"^```.+?^```", "", text_of(page), flags=re.M | re.S)
    for words in re.findall(r"`([^`\n]+)`", text):
        for path in filter(looks_like_a_path, words.split()):
            assert path.startswith(WRITTEN) or is_in_project(path.rstrip("/")), f"`{path}` does not exist"


def looks_like_a_path(word: str) -> bool:
    """Whether a word is a path below one of the project's folders, or the name of a file of a kind that it has."""
    if not re.fullmatch(r"[\w./-]+", word) or word in SUFFIXES:
        return False
    folder, slash, _ = word.partition("/")
    return bool(slash and folder and (ROOT / folder).is_dir()) or word.endswith(SUFFIXES)


def is_in_project(path: str) -> bool:
    """Whether there is such a file or folder; one named without its folder may be in any."""
    return (ROOT / path).exists() or ("/" not in path and path in file_names())


@cache
def file_names() -> frozenset[str]:
    return frozenset(file.name for folder in FOLDERS for file in (ROOT / folder).rglob("*"))


def test_every_document_is_in_the_readmes_list() -> None:
    for page in PAGES[1:]:
        assert f"({page.as_posix()})" in text_of("README.md"), page


def settings_table() -> list[list[str]]:
    """The rows of the table of settings: variable, option, default and meaning, without the backticks."""
    rows = re.findall(r"^\|(.+)\|$", text_of("docs/settings.md"), re.M)[2:]
    return [[cell.strip().strip("`") for cell in row.split("|")] for row in rows]


def test_every_setting_is_documented_with_its_default_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    defaults = {variable: default for variable, _, default, _ in settings_table() if variable.startswith("LOOKAHEAD_")}
    written = {"False": "false", str(Path.home() / ".cache" / "lookahead"): "~/.cache/lookahead"}
    values = {f"LOOKAHEAD_{field.name.upper()}": str(getattr(Settings(), field.name)) for field in fields(Settings)}
    expected = {name: written.get(value, value.removesuffix(".0")) for name, value in values.items()}
    assert defaults == expected | {"LOOKAHEAD_MODEL": "the default model"}


def test_every_option_of_the_app_is_documented_beside_the_variable_that_it_overrides() -> None:
    options = {option: variable for variable, option, _, _ in settings_table() if option}
    existing = {name: action.dest for action in app.parser()._actions for name in action.option_strings}
    existing = {name: dest for name, dest in existing.items() if dest != "help"}
    assert set(options) == set(existing)
    for option, dest in existing.items():
        assert (options[option] == f"LOOKAHEAD_{dest.upper()}") == (dest in app.SETTING_ARGUMENTS), option


def test_every_package_has_its_reason() -> None:
    for file in ("requirements.txt", "requirements-dev.txt"):
        for name in re.findall(r"^([a-z][a-z0-9-]+)", text_of(file), re.M):
            assert re.search(rf"^\|.*\b{name}\b", text_of("docs/packages.md"), re.M), name


def test_the_changelog_begins_with_the_version_of_the_package() -> None:
    (latest, *_) = re.findall(r"^## \[([\d.]+)\] - \d{4}-\d{2}-\d{2}$", text_of("CHANGELOG.md"), re.M)
    project = re.search(r'^dynamic = \["version"\]$', text_of("pyproject.toml"), re.M)
    assert project and latest == lookahead_core.__version__


def test_the_drafter_in_the_contributors_guide_drafts_and_changes_no_text(
    default_model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a busy machine, measured costs of passes may say that drafts do not pay.
    monkeypatch.setattr(default_model.engine, "pass_costs", Steady())
    names = run_code("CONTRIBUTING.md", default_model, monkeypatch)
    assert any("bigrams" in each.drafters for each in names["stream"].passes)
    plain = names["document"].stream(max_new_tokens=20, speculate=False)
    drafted = names["document"].stream(max_new_tokens=20, drafters=[names["Bigrams"]()])
    assert [step.token_id for step in drafted] == [step.token_id for step in plain]


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "CHANGELOG.md"], ids=str)
def test_every_identifier_in_backticks_is_in_the_code(page: Path) -> None:
    text = re.sub(r"^```.+?^```", "", text_of(page), flags=re.M | re.S)
    for words in re.findall(r"`([^`\n]+)`", text):
        for name in re.findall(r"[A-Za-z_]\w*", words) if re.fullmatch(r"[\w.]+(\(.*\))?", words) else ():
            is_identifier = "_" in name or re.search(r"[a-z][A-Z]", name)
            assert not is_identifier or name in code_words(), f"`{words}`"


@cache
def code_words() -> frozenset[str]:
    """All words of the project's sources, and of the names that it takes from transformers."""
    files = [file for folder in FOLDERS for suffix in ("py", "js") for file in (ROOT / folder).rglob(f"*.{suffix}")]
    return frozenset(word for file in files for word in re.findall(r"\w+", file.read_text(encoding="utf-8")))


def test_the_mode_in_the_contributors_guide_uses_methods_that_exist() -> None:
    (block,) = re.findall(r"def _grow_runner_up.+?\n\s*```", text_of("CONTRIBUTING.md"), re.S)
    called = set(re.findall(r"growth\.(\w+)\(", block))
    assert called and all(hasattr(Growth, name) for name in called), called
