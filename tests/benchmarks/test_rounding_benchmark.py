"""The benchmark of rounding: a small run of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.__main__ import parse
from benchmarks.rounding import main


@pytest.mark.slow
def test_a_small_run_compares_each_way_to_compute_with_float32(
    tiny_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = parse(["rounding", "--prompts", "2", "--tokens", "20", "--model", str(tiny_folder)])
    assert arguments.main is main and main(arguments) == 0
    shown = capsys.readouterr().out
    assert "40 rows of 2 prompts" in shown
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in shown.splitlines() if line.startswith("|")][2:]
    assert [row[0] for row in rows] == ["ours, float32", "ours, bfloat16", "transformers, bfloat16"]
    ours, rounded, plain = (float(row[1]) for row in rows)
    assert ours < 1e-5 < rounded < 0.1 and 1e-5 < plain < 0.1
