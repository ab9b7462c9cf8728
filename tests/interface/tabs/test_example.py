"""The example of a first visit as it is computed, and as it is stored."""

from __future__ import annotations

import json

from interface.tabs.writer import example
from lookahead_core import Document, Model
from lookahead_core.serving.json_view import lookahead_as_json


def test_the_example_is_the_view_of_its_text_without_cost(tiny_model: Model) -> None:
    made = example.example(tiny_model)
    view = lookahead_as_json(Document(tiny_model, example.TEXT).lookahead(k=5, depth=7, odds="words"), rest=16)
    assert made == {
        "text": example.TEXT,
        "model": "LlamaForCausalLM",
        "view": {name: value for name, value in view.items() if name not in ("cost", "alone")},
    }
    assert {"cost", "alone"} <= view.keys()


def test_the_stored_example_has_the_fields_of_a_new_one(tiny_model: Model) -> None:
    stored, made = json.loads(example.FILE.read_text(encoding="utf-8")), example.example(tiny_model)
    assert stored["text"] == example.TEXT
    assert stored.keys() == made.keys() and stored["view"].keys() == made["view"].keys()
    assert len(stored["view"]["branches"]) == 5
