"""The branch view as a Gradio component: data in, events of the page out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gradio as gr

FOLDER = Path(__file__).parent
NOTHING: dict[str, Any] = {"state": "empty", "revision": 0, "branches": []}


class BranchView(gr.HTML):
    """Rows of branches; what is built inside it stands between the coverage and the rows.

    The template is static and the script sets text as text, so that no text of a model or a person becomes markup.
    """

    def __init__(self, value: dict[str, Any] | None = None, *, prefix: str = "", **options: Any) -> None:
        super().__init__(
            value=value or NOTHING,
            html_template=_read("template.html"),
            css_template=_read("style.css"),
            js_on_load=_read("script.js"),
            apply_default_css=False,
            elem_id=f"{prefix}branches",
            prefix=prefix,
            **options,
        )


def _read(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")
