"""The command `experiment`: a table on the screen, a CSV file, or JSON."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lookahead_core
from lookahead_core import Model, load_model
from lookahead_core.command import model_loading
from lookahead_core.command.main import main
from lookahead_core.experiments.cache_experiment import cache_experiment
from tests.conftest import tiny_llama

PROMPT = "The keeper watched"


@pytest.fixture(scope="module")
def model(byte_tokenizer: Any) -> Model:
    return load_model(tiny_llama(len(byte_tokenizer), seed=3), tokenizer=byte_tokenizer, dtype="float32")


@pytest.fixture
def run(
    model: Model, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Calls the command in this process; the model is there already."""

    def called(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(lookahead_core, "load_model", lambda name, **options: model)
        try:
            status = main(["experiment", *words])
        except SystemExit as ending:
            status = int(str(ending.code))
        return status, *capsys.readouterr()

    return called


def test_the_screen_has_some_depths_the_verdict_and_both_costs(run: Any) -> None:
    status, out, err = run(PROMPT, "--depth", "40", "--k", "2")
    lines = out.splitlines()
    assert (status, err) == (0, "")
    depths = [int(line.split()[0]) for line in lines[1:] if line[:5].strip().isdigit()]
    assert depths[0] == 1 and depths[-1] == 40 and len(depths) <= 12
    assert "True: the logits with and without the cache are equal." in lines
    assert any(line.startswith("With the cache: 40 passes, ") for line in lines)


def test_the_screen_says_how_much_times_of_several_runs_differ(run: Any) -> None:
    _, out, _ = run(PROMPT, "--depth", "4", "--k", "2", "--runs", "3")
    (sentence,) = [line for line in out.splitlines() if line.startswith("Seconds are medians of 3 runs")]
    (least, most), *_ = re.findall(r"with the cache ([0-9.]+) to ([0-9.]+) s", sentence)
    assert float(least) <= float(most)


def test_the_screen_says_where_the_precisions_part(run: Any, model: Model) -> None:
    _, out, _ = run(PROMPT, "--depth", "12", "--precisions")
    depths = [
        step.depth
        for step in cache_experiment(model, PROMPT, depth=12, precisions=True).precisions
        if step.other_tokens
    ]
    sentence = out.splitlines()[-1]
    assert sentence.startswith("In float32 and bfloat16 the most likely tokens ")
    assert (f"first at {depths[0]}" if depths else "are the same") in sentence


def test_the_csv_file_has_a_line_for_every_depth(run: Any, tmp_path: Path, model: Model) -> None:
    file = tmp_path / "depths.csv"
    assert run(PROMPT, "--depth", "12", "--csv", str(file))[0] == 0
    rows = list(csv.DictReader(file.read_text().splitlines()))
    assert [int(row["depth"]) for row in rows] == list(range(1, 13))
    found = cache_experiment(model, PROMPT, depth=12)
    assert int(rows[-1]["uncached_tokens"]) == found.uncached.tokens
    assert float(rows[-1]["difference"]) == found.steps[-1].difference


def test_a_table_that_cannot_be_written_is_said_before_the_model_is_loaded(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_loading, "load", lambda arguments: pytest.fail("The model is loaded."))
    assert "/nowhere/depths.csv: No such file" in run(PROMPT, "--csv", "/nowhere/depths.csv")[2]


def test_the_result_as_json(run: Any, model: Model) -> None:
    status, out, err = run(PROMPT, "--k", "3", "--depth", "4", "--levels", "2", "--json")
    answer = json.loads(out)
    assert (status, err, answer["equal"]) == (0, "", True)
    assert answer["options"] == {"k": 3, "depth": 4, "levels": 2, "precisions": False, "runs": 1}
    found = cache_experiment(model, PROMPT, k=3, depth=4, levels=2)
    assert [one["token_ids"] for one in answer["branches"]] == [list(ids) for ids in found.token_ids]


@pytest.mark.parametrize(
    ("words", "because"),
    [
        (["--depth", "101"], "depth is 101, and must be a whole number from 1 to 100."),
        (["--k", "9", "--levels", "3"], "k is 9 and levels is 3, which makes 729 branches"),
        (["--csv", "/nowhere/depths.csv"], "That could not be written or read: /nowhere/depths.csv: No such file"),
    ],
)
def test_what_is_wrong_gets_one_sentence(run: Any, words: list[str], because: str) -> None:
    status, out, err = run(PROMPT, *words)
    assert (status, out) == (2, "")
    assert because in err and err.count("\n") == 1
