"""The benchmark of forward passes: a small run of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.__main__ import parse
from benchmarks.passes import SIZES, main
from lookahead_core import Model


@pytest.mark.slow
def test_a_small_run_measures_every_size(tmp_path: Path, tiny_model: Model, capsys: pytest.CaptureFixture[str]) -> None:
    tiny_model.hf_model.save_pretrained(tmp_path / "model")
    tiny_model.tokenizer.save_pretrained(tmp_path / "model")
    arguments = parse(["passes", "--repeats", "1", "--model", str(tmp_path / "model"), "--device", "cpu"])
    assert arguments.main is main and main(arguments) == 0
    shown = capsys.readouterr().out
    rows = [line.split() for line in shown.splitlines() if line.startswith("|")][2:]
    assert [int(row[1]) for row in rows] == list(SIZES)
    for row in rows:
        size, scores, each, prefill, each_token = map(float, row[1::2])
        assert scores > 0 and prefill > 0
        assert each == pytest.approx(scores / size, abs=0.06) and each_token == pytest.approx(prefill / size, abs=0.06)
