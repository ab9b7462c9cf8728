"""The benchmark of forward passes: a small run of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.__main__ import parse
from benchmarks.passes import SIZES, main


@pytest.mark.slow
def test_a_small_run_measures_every_size(tiny_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = parse(["passes", "--repeats", "1", "--model", str(tiny_folder), "--device", "cpu"])
    assert arguments.main is main and main(arguments) == 0
    shown = capsys.readouterr().out
    rows = [line.split() for line in shown.splitlines() if line.startswith("|")][2:]
    assert [int(row[1]) for row in rows] == list(SIZES)
    for row in rows:
        size, scores, each, prefill, each_token = map(float, row[1::2])
        assert scores > 0 and prefill > 0
        assert each == pytest.approx(scores / size, abs=0.06) and each_token == pytest.approx(prefill / size, abs=0.06)
