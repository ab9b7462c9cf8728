"""The benchmark of Rewrite and Highlights: a small run of it, and results that it must reject."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks.__main__ import parse
from benchmarks.pages import ANEW, CLICK, FORWARD, LAST, OURS, check_click, check_losses, main
from lookahead_core import Document, Model
from lookahead_core.analysis.highlights import highlights
from tests.conftest import tiny_llama
from tests.text.test_chat import PLAIN


@pytest.fixture
def folder(byte_tokenizer: Any, tmp_path: Path) -> Path:
    """A tiny model with a chat template, as a folder."""
    tokenizer = copy.deepcopy(byte_tokenizer)
    tokenizer.chat_template = PLAIN
    tokenizer.save_pretrained(tmp_path / "tiny")
    hf_model = tiny_llama(len(tokenizer), max_position_embeddings=2048)
    for token_id in range(len(tokenizer)):
        # Whatever texts are drawn, branches begin with characters, and can be clicked.
        if not tokenizer.decode([token_id]).isascii():
            hf_model.lm_head.weight.data[token_id] = 0
    hf_model.save_pretrained(tmp_path / "tiny")
    return tmp_path / "tiny"


@pytest.mark.slow
def test_a_small_run_measures_every_method_and_saves_every_figure(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["pages", "--quick", "--source", "40", "--words", "12", "--model", str(folder), "--device", "cpu"]
    arguments = parse([*words, "--json", str(folder / "figures.json")])
    assert arguments.main is main and main(arguments) == 0
    shown = capsys.readouterr().out
    assert "a click in Rewrite" in shown and shown.count("plain forward / ours") == 2
    found = json.loads((folder / "figures.json").read_text())
    assert [len(found[name]) for name in ("clicks", "highlights")] == [3, 3]
    assert all(set(one["seconds"]) == {CLICK, LAST, ANEW, FORWARD} for one in found["clicks"])
    assert all(set(one["seconds"]) == {OURS, FORWARD} for one in found["highlights"])
    assert all(one["tokens"] > 40 for one in found["clicks"])


def test_a_different_result_fails_the_benchmark(tiny_model: Model) -> None:
    document = Document(tiny_model, "the sea and the sky")
    ids = document.token_ids
    with torch.no_grad():
        logits = tiny_model.hf_model(torch.tensor([ids])).logits[0]
    check_losses(highlights(document), logits, ids)
    with pytest.raises(AssertionError, match="transformers'"):
        check_losses(highlights(document), logits.roll(1, 0), ids)
    best = logits[-1].argsort(descending=True).tolist()
    check_click({"branches": [{"ids": [one]} for one in best[:5]]}, logits)
    with pytest.raises(AssertionError, match="not transformers' likeliest"):
        check_click({"branches": [{"ids": [one]} for one in best[9:14]]}, logits)
