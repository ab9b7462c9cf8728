"""Ends of the text before a token."""

from __future__ import annotations

from lookahead_core import Document, Model
from lookahead_core.analysis.text_spans import text_end_before


def test_the_text_before_the_first_token_is_its_start(tiny_model: Model) -> None:
    document = Document(tiny_model, "Old sea")
    assert text_end_before(document, 0).at_start
    assert not text_end_before(document, 1).at_start
