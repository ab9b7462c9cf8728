"""Stretches of a text: ends before a token, and the windows in which a text is read."""

from __future__ import annotations

from typing import Any

import pytest

from lookahead_core import Document, Model, load_model
from lookahead_core.analysis.text_spans import ReadingWindow, reading_windows, text_end_before
from tests.support.families import make


def test_the_text_before_the_first_token_is_its_start(tiny_model: Model) -> None:
    document = Document(tiny_model, "Old sea")
    assert text_end_before(document, 0).at_start
    assert not text_end_before(document, 1).at_start


@pytest.mark.parametrize("text", ["", "a", "zyx"])  # the model has the ids of single letters alone
def test_a_model_without_a_context_limit_reads_any_text_in_one_window(byte_tokenizer: Any, text: str) -> None:
    model = load_model(make("bloom"), tokenizer=byte_tokenizer)
    assert model.context_length is None
    document = Document(model, text)
    length = len(document.token_ids)
    first = document.passage.start_count
    assert reading_windows(document) == [ReadingWindow(first, first, length)]
