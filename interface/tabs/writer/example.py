"""The example of a first visit: a text and the default model's branches, stored in example.json.

`python -m interface.tabs.writer.example` computes it again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lookahead_core import Model

FILE = Path(__file__).parent / "example.json"
TEXT = "The old lighthouse keeper climbed the stairs for the last time. At the top he"


def example(model: Model) -> dict[str, Any]:
    """Return the example, computed with this model: `text`, `model` (its name) and `view`.

    `view` is a lookahead of 5 branches with 7 tokens each and odds of words, as the page shows them at first. It has
    the fields of `lookahead_as_json` without `cost` and `alone`.
    """
    from lookahead_core import Document
    from lookahead_core.serving.json_view import lookahead_as_json

    result = Document(model, TEXT).lookahead(k=5, depth=7, odds="words")
    # The view's cost is left out: no visitor waits for this computation.
    view = {name: value for name, value in lookahead_as_json(result, rest=16).items() if name not in ("cost", "alone")}
    return {"text": TEXT, "model": model.describe().split(" · ")[0], "view": view}


def main() -> None:
    """Load the default model in float32, compute the example, and overwrite example.json with it."""
    from lookahead_core import load_model

    text = json.dumps(example(load_model(dtype="float32")), ensure_ascii=False, indent=1)
    FILE.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
