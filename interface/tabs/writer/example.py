"""The example of a first visit: a text with the branches that the default model gave it, stored.

`python -m interface.tabs.writer.example` makes it anew.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lookahead_core import Model

FILE = Path(__file__).parent / "example.json"
TEXT = "The old lighthouse keeper climbed the stairs for the last time. At the top he"


def made(model: Model) -> dict[str, Any]:
    """Text, view, and the name of the model that it is of."""
    from lookahead_core import Document
    from lookahead_core.serving.json_view import as_json

    result = Document(model, TEXT).lookahead(k=5, depth=7)
    # What it cost is nothing that a person has waited for.
    view = {name: value for name, value in as_json(result, rest=16).items() if name not in ("cost", "alone")}
    return {"text": TEXT, "model": model.describe().split(" · ")[0], "view": view}


def main() -> None:
    from lookahead_core import load_model

    found = json.dumps(made(load_model(dtype="float32")), ensure_ascii=False, indent=1)
    FILE.write_text(found + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
