"""The house itself: who may import whom, what a prediction keeps, and settings that say what is wrong with them."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import logging
import math
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch

import lookahead_core
from lookahead_core import Document, Model, Settings
from lookahead_core.engines.rows import Rows
from lookahead_core.quiet import TALKERS, hush
from lookahead_core.tree import Prediction, TokenTree

ROOT = Path(__file__).parent.parent
# From the front door down; a file may import from its own line or from those below it.
FLOORS = [
    ["app.py"],
    ["interface"],
    [
        "lookahead_core/__init__.py",
        "lookahead_core/__main__.py",
        "lookahead_core/agreement_command.py",
        "lookahead_core/training_command.py",
    ],
    ["lookahead_core/terminal.py"],
    ["lookahead_core/api.py"],
    ["lookahead_core/shelf.py", "lookahead_core/place.py"],
    ["lookahead_core/store.py"],
    ["lookahead_core/scheduler.py"],
    ["lookahead_core/view.py"],
    ["lookahead_core/fits.py"],
    ["lookahead_core/highlights.py", "lookahead_core/endings.py"],
    ["lookahead_core/told.py"],
    ["lookahead_core/ahead.py"],
    ["lookahead_core/agreement.py"],
    ["lookahead_core/batch.py"],
    ["lookahead_core/training.py"],
    ["lookahead_core/unfinished.py"],
    ["lookahead_core/lessons.py"],
    ["lookahead_core/writing.py"],
    ["lookahead_core/document.py"],
    ["lookahead_core/ground.py"],
    ["lookahead_core/memory.py"],
    ["lookahead_core/scene.py"],
    ["lookahead_core/stream.py"],
    ["lookahead_core/branches.py"],
    ["lookahead_core/strategies"],
    ["lookahead_core/corpus.py"],
    ["lookahead_core/model.py"],
    ["lookahead_core/weights.py"],
    ["lookahead_core/default.py"],
    ["lookahead_core/reading.py"],
    ["lookahead_core/wheel.py"],
    ["lookahead_core/placement.py"],
    ["lookahead_core/quantized.py"],
    ["lookahead_core/engines"],
    ["lookahead_core/ngrams.py"],
    ["lookahead_core/passage.py"],
    ["lookahead_core/chat.py"],
    ["lookahead_core/text.py"],
    ["lookahead_core/boundaries.py"],
    ["lookahead_core/sampling.py"],
    ["lookahead_core/tree.py", "lookahead_core/window.py"],
    ["lookahead_core/settings.py", "lookahead_core/errors.py", "lookahead_core/plain.py", "lookahead_core/quiet.py"],
]
TRANSFORMERS = ("lookahead_core/engines/", "lookahead_core/reading.py", "lookahead_core/quantized.py")


def sources() -> Iterator[Path]:
    yield ROOT / "app.py"
    for folder in ("interface", "lookahead_core"):
        yield from (ROOT / folder).rglob("*.py")


def floor_of(place: str) -> int:
    for index, entries in enumerate(FLOORS):
        if any(place == entry or place.startswith(f"{entry}/") for entry in entries):
            return index
    return -1


def imports_of(file: Path) -> Iterator[str]:
    """The modules that a file imports, dotted."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def place_of(module: str) -> str | None:
    """The file in this project behind a dotted name."""
    path = ROOT / Path(*module.split("."))
    for candidate in (path.with_suffix(".py"), path / "__init__.py"):
        if candidate.is_file():
            return candidate.relative_to(ROOT).as_posix()
    return None


def test_imports_point_down_the_list_of_rooms_only() -> None:
    for file in sources():
        place = file.relative_to(ROOT).as_posix()
        assert floor_of(place) >= 0, f"{place} has no floor"
        for module in imports_of(file):
            target = place_of(module)
            if target:
                assert floor_of(target) >= floor_of(place), f"{place} imports {module}, which lies above it"


def test_only_the_engines_and_the_loaders_know_transformers_and_only_the_interface_knows_gradio() -> None:
    for file in sources():
        place = file.relative_to(ROOT).as_posix()
        packages = {module.split(".")[0] for module in imports_of(file)}
        assert "transformers" not in packages or place.startswith(TRANSFORMERS), place
        assert "gradio" not in packages or place.startswith(("interface/", "app.py")), place


def test_the_tree_is_made_of_the_standard_library_only() -> None:
    packages = {module.split(".")[0] for module in imports_of(ROOT / "lookahead_core/tree.py")}
    assert packages <= {"__future__", "collections", "dataclasses", "math", "typing", "weakref"}


def test_the_public_names_are_what_the_package_says() -> None:
    for name in lookahead_core.__all__:
        assert getattr(lookahead_core, name).__doc__
    fetched = [name for names in lookahead_core._HOMES.values() for name in names]
    assert sorted(fetched) == sorted(lookahead_core.__all__)


def made_rows() -> list[torch.Tensor]:
    """Rows of different shapes: peaked, flat, long-tailed, and the tiny vocabularies of toys."""
    dice = torch.Generator().manual_seed(0)
    flat = torch.randn(50_000, generator=dice) * 0.3
    normal = torch.randn(50_000, generator=dice) * 3
    peaked = normal.clone()
    peaked[7] += 25
    ranked = -1.1 * torch.log(torch.arange(1, 50_001).float())
    return [torch.log_softmax(row, -1) for row in (flat, normal, peaked, ranked, normal[:80], normal[:10])]


def assert_reheats(row: torch.Tensor) -> None:
    said: Prediction = Rows(row[None]).predictions()[0]
    for temperature in (0.5, 0.7, 1.0, 1.3, 1.5, 2.0):
        exact = torch.softmax(row.double() / temperature, -1)
        shares, rest = said.reheated(temperature)
        expected = exact[list(said.token_ids)]
        assert torch.allclose(torch.tensor(shares).double(), expected, rtol=0.01, atol=1e-9)
        assert rest == pytest.approx(1 - float(expected.sum()), abs=0.01)


@pytest.mark.parametrize("number", range(6))
def test_reheated_shares_are_within_one_per_cent_of_the_full_row_up_to_temperature_two(number: int) -> None:
    assert_reheats(made_rows()[number])


def test_the_default_models_odds_can_be_reheated(default_model: Model) -> None:
    document = Document(default_model, "After careful")
    row: Any = document.predict(row=True).row
    assert_reheats(row)
    _, rest = document.predict().reheated(1.5)
    assert rest == pytest.approx(0.60, abs=0.05), "the figure that a first measurement gave"


def test_a_prediction_counts_every_token_and_knows_its_entropy() -> None:
    for row in made_rows():
        said = Rows(row[None]).predictions()[0]
        assert len(said.token_ids) + sum(said.tail) == len(row)
        assert said.entropy == pytest.approx(float(-(row.exp() * row).sum()), rel=1e-4)
        assert said.logprobs == tuple(sorted(said.logprobs, reverse=True))


def test_a_token_that_is_ruled_out_leaves_the_odds_in_order() -> None:
    row = torch.log_softmax(torch.tensor([1.0, 2.0, -math.inf, 0.5]), -1)
    said = Rows(row[None]).predictions()[0]
    assert math.isfinite(said.entropy) and all(map(math.isfinite, said.reheated(1.5)[0]))


@pytest.mark.parametrize(
    "module",
    ["branches", "stream", "scene", "ahead", "strategies.options", "strategies.growth", "strategies.healing",
     "strategies.beam", "strategies.rules", "strategies.decode", "strategies.speculate", "strategies.verify",
     "strategies.trained", "strategies.drafters"],
)  # fmt: skip
def test_facts_and_options_cannot_be_changed_once_they_are_made(module: str) -> None:
    held = importlib.import_module(f"lookahead_core.{module}")
    made = [kind for kind in vars(held).values() if dataclasses.is_dataclass(kind) and kind.__module__ == held.__name__]
    # What these keep changes while a search or a draft grows.
    growing = {"Trace", "Group", "Guess", "Reader"}
    assert made and all(kind.__dataclass_params__.frozen != (kind.__name__ in growing) for kind in made)


def test_pruning_forgets_the_longest_unseen_first_and_never_the_trunk() -> None:
    tree = TokenTree()
    head = tree.descend(tree.root, [1, 2, 3])
    tree.move_head(head)
    views = []
    for token_id in (10, 20, 30):
        tree.new_view()
        views.append(tree.descend(head, [token_id, token_id + 1]))
    gone = tree.prune(2)
    assert gone == [views[0], views[0].parent]
    tree.check()
    tree.move_head(tree.root)
    tree.new_view()
    tree.move_head(head)
    tree.prune()
    assert list(tree.nodes()) == tree.path(head)
    tree.check()


def test_other_libraries_tell_a_program_of_errors_only_and_a_library_user_all(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    others = [logging.getLogger(name) for name in TALKERS]
    for logger in others:
        monkeypatch.setattr(logger, "level", logging.NOTSET)
        logger.warning("It lacks something.")
    assert len(caplog.records) == len(others)
    hush()
    for logger in others:
        logger.warning("It lacks something.")
        logger.error("It is broken.")
    assert len(caplog.records) == 2 * len(others)


NOISE = """
import logging, sys, warnings
if sys.argv[1] == "program":
    from lookahead_core.quiet import hush
    hush()
import torch
import lookahead_core.plain as ours
warn = dict(filename=ours.__file__, lineno=1)
warnings.warn_explicit("from our own code", UserWarning, module="lookahead_core.plain", **warn)
warnings.warn_explicit("from torch", FutureWarning, module="torch.nn.modules.linear", **warn)
torch.meshgrid(torch.ones(2), torch.ones(2))
logging.getLogger("torch.utils._pytree").warning("torch logs")
logging.getLogger("torch._dynamo").warning("torch logs")
logging.getLogger("torchao.quantization").warning("torchao logs")
logging.getLogger("torch._dynamo").error("HEARD: an error")
warnings.warn("HEARD: from the program itself", UserWarning)
warnings.warn_explicit("HEARD: from another package", UserWarning, module="torchvision", **warn)
"""


def heard(kind: str) -> str:
    """What a process of its own, with nothing of ours in its environment, writes to standard error."""
    ours = ("TORCH_", "PYTHONWARNINGS")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    words = [sys.executable, "-c", NOISE, kind]
    ended = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0
    return ended.stderr


def test_warnings_of_torch_and_torchao_do_not_reach_the_terminal_of_a_program_and_reach_a_library_user() -> None:
    with ThreadPoolExecutor(2) as pool:
        program, library = pool.map(heard, ("program", "library"))
    parts = ("from our own code", "from torch", "torch.meshgrid", "torch logs", "torchao logs")
    assert not [part for part in parts if part in program]
    assert all(part in library for part in parts)
    for said in (program, library):
        assert all(part in said for part in ("an error", "from the program itself", "from another package"))


@pytest.mark.parametrize("asked", [[], ["default"]])
def test_whoever_asks_python_for_warnings_has_them(asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "warnoptions", asked)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        hush()
        warnings.warn_explicit("deprecated", UserWarning, "file", 1, module="torch.nn")
    assert bool(caught) is bool(asked)


def test_a_setting_that_is_no_number_is_named_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOKAHEAD_CACHE_MB", "plenty")
    with pytest.raises(ValueError, match="LOOKAHEAD_CACHE_MB is 'plenty', and must be a number"):
        Settings.from_env()
    monkeypatch.setenv("LOOKAHEAD_CACHE_MB", "-3")
    with pytest.raises(ValueError, match="must be more than 0"):
        Settings.from_env()
    monkeypatch.setenv("LOOKAHEAD_CACHE_MB", "64")
    assert Settings.from_env().cache_bytes == 64 * 1024 * 1024
    assert os.environ["LOOKAHEAD_CACHE_MB"] == "64"
