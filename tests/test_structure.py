"""The structure of the code: which package may import which, and that every package is documented."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import lookahead_core

ROOT = Path(__file__).parents[1]
CORE, INTERFACE = "lookahead_core", "interface"
PACKAGES = [
    "app.py",
    INTERFACE,
    f"{INTERFACE}/check_space",
    f"{INTERFACE}/tabs",
    f"{INTERFACE}/branch_view",
    f"{INTERFACE}/web",
    f"{INTERFACE}/http",
    f"{INTERFACE}/server",
    f"{CORE}/__main__.py",
    f"{CORE}/command",
    CORE,
    f"{CORE}/serving",
    f"{CORE}/analysis",
    f"{CORE}/experiments",
    f"{CORE}/training",
    f"{CORE}/document",
    f"{CORE}/strategies",
    f"{CORE}/speculation",
    f"{CORE}/loading",
    f"{CORE}/model.py",
    f"{CORE}/text",
    f"{CORE}/engines",
    f"{CORE}/tree.py",
    f"{CORE}/prediction.py",
    f"{CORE}/reheating.py",
    f"{CORE}/settings.py",
    f"{CORE}/validation.py",
    f"{CORE}/steps.py",
    f"{CORE}/histogram.py",
    f"{CORE}/import_logs.py",
    f"{CORE}/errors.py",
]
"""From the top down: a file imports from its own package and from those below it, never from one above."""
SUBDIVIDED = (f"{INTERFACE}/tabs", f"{CORE}/engines", f"{CORE}/speculation")
"""Packages with packages inside that have no entry of their own in PACKAGES."""
STANDARD_PACKAGES = {
    *("__future__", "collections", "dataclasses", "itertools", "math", "secrets", "typing", "weakref"),
}
"""Packages of the standard library that the tree and its predictions use."""
TRANSFORMERS = (f"{CORE}/engines/", f"{CORE}/loading/")
"""Packages that know transformers."""


def sources() -> Iterator[str]:
    """The paths of all files of the product."""
    yield "app.py"
    for folder in (INTERFACE, CORE):
        yield from (file.relative_to(ROOT).as_posix() for file in (ROOT / folder).rglob("*.py"))


def package_of(path: str) -> str:
    """The entry of PACKAGES that a file belongs to: the longest that its path begins with."""
    return max((entry for entry in PACKAGES if path == entry or path.startswith(f"{entry}/")), key=len)


def file_of(module: str) -> str | None:
    """The file of this project behind a dotted name; None for other packages."""
    path = ROOT / Path(*module.split("."))
    for candidate in (path.with_suffix(".py"), path / "__init__.py"):
        if candidate.is_file():
            return candidate.relative_to(ROOT).as_posix()
    return None


@cache
def modules_imported(path: str, at_run_time: bool = False) -> frozenset[str]:
    """The dotted names that a file imports; with `at_run_time` without those for type annotations alone."""
    found: set[str] = set()
    waiting: list[ast.AST] = [ast.parse((ROOT / path).read_text(encoding="utf-8"))]
    while waiting:
        node = waiting.pop()
        if at_run_time and isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting += node.orelse
            continue
        waiting += ast.iter_child_nodes(node)
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            modules = {name for name in names if file_of(name)}
            found |= modules | ({node.module} if modules != names else set())
    return frozenset(found)


def files_imported(path: str, at_run_time: bool = False) -> set[str]:
    """The files of this project that a file imports."""
    return {file for module in modules_imported(path, at_run_time) if (file := file_of(module))} - {path}


def test_imports_point_down_the_table_of_packages_only() -> None:
    for path in sources():
        for target in files_imported(path):
            lower = PACKAGES.index(package_of(target)) >= PACKAGES.index(package_of(path))
            assert lower or path == f"{CORE}/__init__.py", f"{path} imports {target}, which is in a package above it"


def test_no_files_import_each_other_in_a_circle() -> None:
    finished: set[str] = set()

    def visit(path: str, above: tuple[str, ...]) -> None:
        assert path not in above, " -> ".join((*above[above.index(path) :], path))
        if path not in finished:
            for target in sorted(files_imported(path, at_run_time=True)):
                visit(target, (*above, path))
            finished.add(path)

    for path in sources():
        visit(path, ())


def test_every_file_belongs_to_a_package_and_every_package_says_what_it_is_for() -> None:
    assert {package_of(path) for path in sources()} == set(PACKAGES)
    for path in sources():
        if path.endswith("/__init__.py"):
            assert ast.get_docstring(ast.parse((ROOT / path).read_text(encoding="utf-8"))), path
            package = path.removesuffix("/__init__.py")
            assert package in PACKAGES or package_of(path) in SUBDIVIDED, path


def test_the_architecture_page_describes_every_package_in_the_order_of_the_table() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert [name.rstrip("/") for name in re.findall(r"^\| `([^`]+)` \|", page, re.M)] == PACKAGES


def test_only_the_engines_and_the_loaders_know_transformers_and_only_the_interface_knows_gradio() -> None:
    for path in sources():
        packages = {module.split(".")[0] for module in modules_imported(path)}
        assert "transformers" not in packages or path.startswith(TRANSFORMERS), path
        assert "gradio" not in packages or path.startswith((f"{INTERFACE}/", "app.py")), path


def test_the_tree_and_its_predictions_are_made_of_the_standard_library_only() -> None:
    own = {"lookahead_core.prediction", "lookahead_core.reheating"}
    for path in (f"{CORE}/tree.py", f"{CORE}/prediction.py", f"{CORE}/reheating.py"):
        packages = {module.split(".")[0] for module in modules_imported(path) - own}
        assert packages <= STANDARD_PACKAGES, path


def test_the_public_names_are_what_the_package_says() -> None:
    for name in lookahead_core.__all__:
        assert getattr(lookahead_core, name).__doc__
    fetched = [name for names in lookahead_core._HOMES.values() for name in names]
    assert sorted(fetched) == sorted(lookahead_core.__all__)
    assert set(lookahead_core.__all__) <= set(dir(lookahead_core))


@pytest.mark.parametrize(
    "module",
    ["document.results", "document.stream", "document.result_context", "document.prefetch",
     "strategies.lookahead_options", "strategies.branch_growth", "strategies.healing", "strategies.beam",
     "strategies.beam_options", "strategies.rules", "strategies.stream_options", "strategies.continuation",
     "speculation.draft_and_verify", "speculation.draft_tree", "speculation.acceptance", "speculation.heads_file",
     "speculation.drafters.suffix_drafter"],
)  # fmt: skip
def test_facts_and_options_cannot_be_changed_once_they_are_made(module: str) -> None:
    held = importlib.import_module(f"lookahead_core.{module}")
    made = [kind for kind in vars(held).values() if dataclasses.is_dataclass(kind) and kind.__module__ == held.__name__]
    # What these keep changes while a search or a draft grows.
    growing = {"BeamTrace", "BeamGroup", "DraftNode", "StreamReader"}
    assert made and all(kind.__dataclass_params__.frozen != (kind.__name__ in growing) for kind in made)
